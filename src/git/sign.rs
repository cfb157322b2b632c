//! Signed commits. Git itself signs, with the key that the person's settings name; the commit is then known.

use git2::{Commit, Oid, Signature};

use super::{GitError, Project, Result, program};
use crate::domain::config::Signing;

/// Writes a signed commit that no ref names.
pub(super) fn commit(
    project: &Project,
    sign: Signing,
    (author, committer): (&Signature<'_>, &Signature<'_>),
    message: &str,
    (tree, parent): (Oid, Oid),
) -> Result<Oid> {
    let format = match sign {
        Signing::Ssh => "ssh",
        Signing::Off | Signing::Gpg => "openpgp",
    };
    let settings = [format!("gpg.format={format}"), "i18n.commitEncoding=UTF-8".to_owned()];
    let (tree, parent) = (tree.to_string(), parent.to_string());
    let words = ["commit-tree", "-S", &tree, "-p", &parent, "-F", "-"];
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned().into();
    let date = |who: &Signature<'_>| {
        let (when, minutes) = (who.when(), who.when().offset_minutes());
        let sign = if minutes < 0 { '-' } else { '+' };
        let minutes = minutes.abs();
        format!("{} {sign}{:02}{:02}", when.seconds(), minutes / 60, minutes % 60).into()
    };
    let more = [
        ("GIT_AUTHOR_NAME", text(author.name_bytes())),
        ("GIT_AUTHOR_EMAIL", text(author.email_bytes())),
        ("GIT_AUTHOR_DATE", date(author)),
        ("GIT_COMMITTER_NAME", text(committer.name_bytes())),
        ("GIT_COMMITTER_EMAIL", text(committer.email_bytes())),
        ("GIT_COMMITTER_DATE", date(committer)),
    ];
    let common = project.common_dir();
    let id = program::git(common, common, &settings, &words, &more, message.into())?;
    let id = id.trim();
    Oid::from_str(id).map_err(|_| GitError::BadId { text: id.to_owned() })
}

/// By what a commit is signed.
pub(super) fn of(commit: &Commit<'_>) -> Signing {
    match commit.header_field_bytes("gpgsig") {
        Ok(signature) if signature.starts_with(b"-----BEGIN SSH") => Signing::Ssh,
        Ok(_) => Signing::Gpg,
        Err(_) => Signing::Off,
    }
}
