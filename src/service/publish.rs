//! An ended sprint as an issue of the project's GitHub repository, by the operator's own `gh` (`spec/teams.md`
//! 9.9). Off unless `sprint.publish_issues` says so.
//!
//! The issue and its comments are found again by a mark that their text begins with and that no reader
//! sees, so that doing it a second time changes them in place. Only what the operator's own account wrote
//! is ever taken for ours.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::domain::time::Timestamp;
use crate::domain::word::words;
use crate::platform::redact::redact;
use crate::platform::supervise::{self, EndedBy, Spec};
use crate::platform::{files, ids, spawn};

/// Characters of a document that go into one comment; GitHub takes 65,536 in all.
pub const PART_CHARS: usize = 58_000;
/// Characters of the issue's title.
const TITLE_CHARS: usize = 200;
/// How long one call may take, in milliseconds.
const CALL_WALL: u64 = 60_000;
/// Entries of a page, and pages at most.
const PAGE: usize = 100;
const PAGES: usize = 100;

words! {
    /// Where publishing stands.
    pub enum Stage {
        /// Is there a `gh`?
        Version = "version",
        /// Who is it?
        Auth = "auth",
        /// Which repository is it?
        Repo = "repo",
        /// The issue.
        Issue = "issue",
        /// Its comments.
        Comments = "comments",
    }
}

/// Why a sprint was not published: `auth: …`. The sprint itself is not affected.
#[derive(Debug, thiserror::Error)]
#[error("{}: {message}", stage.as_str())]
pub struct PublishError {
    /// Where it stopped.
    pub stage: Stage,
    /// One line.
    pub message: String,
}

/// The program, and how it is run.
#[derive(Debug, Clone)]
pub struct Gh {
    /// It.
    pub program: PathBuf,
    /// The project's folder: says which repository is meant.
    pub project: PathBuf,
    /// Its environment.
    pub env: BTreeMap<String, String>,
    /// A folder for its output.
    pub scratch: PathBuf,
}

/// What is published.
#[derive(Debug, Clone, Default)]
pub struct Publication {
    /// The sprint's id.
    pub sprint_id: String,
    /// One line.
    pub title: String,
    /// The summary.
    pub body: String,
    /// Documents by name, in order.
    pub documents: Vec<(String, String)>,
    /// When the sprint began: no issue of it can be older.
    pub since: Option<Timestamp>,
}

/// Brings it to the repository's issues; the address of the issue.
///
/// # Errors
/// [`PublishError`] names the stage; what was published before it stays, and a second try goes on from there.
pub async fn publish(gh: &Gh, what: &Publication) -> Result<String, PublishError> {
    gh.text(Stage::Version, &["--version"]).await?;
    let me = gh.json(Stage::Auth, &["api", "user"], None).await?;
    let me = me["login"].as_str().unwrap_or_default().to_owned();
    let repo = gh.json(Stage::Repo, &["repo", "view", "--json", "nameWithOwner"], None).await?;
    let repo = repo["nameWithOwner"].as_str().unwrap_or_default().to_owned();
    if repo.split('/').count() != 2 {
        let message = format!("gh does not know the repository of {}", gh.project.display());
        return Err(PublishError { stage: Stage::Repo, message });
    }
    let (number, url) = issue(gh, what, &repo, &me).await?;
    comments(gh, what, &repo, number, &me).await?;
    Ok(url)
}

/// The mark of a sprint's issue, or with `part` of one of its comments.
fn mark(sprint: &str, part: Option<(&str, usize)>) -> String {
    match part {
        Some((document, number)) => {
            format!("<!-- teams:sprint:{sprint}:{document}:part-{number} -->")
        }
        None => format!("<!-- teams:sprint:{sprint} -->"),
    }
}

async fn issue(
    gh: &Gh,
    what: &Publication,
    repo: &str,
    me: &str,
) -> Result<(u64, String), PublishError> {
    let mark = mark(&what.sprint_id, None);
    let title: String = harmless(&what.title).chars().take(TITLE_CHARS).collect();
    let body: String = harmless(&what.body).chars().take(PART_CHARS).collect();
    let body = format!("{mark}\n{body}");
    let since = what.since.map(|at| format!("&since={}", at.utc().format("%Y-%m-%dT%H:%M:%SZ")));
    let query = format!("repos/{repo}/issues?state=all{}", since.unwrap_or_default());
    let found = gh
        .pages(Stage::Issue, &query, |entry| {
            entry.get("pull_request").is_none() && is_ours(entry, &mark, me)
        })
        .await?;
    let wanted = json!({ "title": title, "body": body });
    let answer = match found.into_iter().next() {
        Some(old) if old["title"] == title.as_str() && same(&old["body"], &body) => old,
        Some(old) => {
            let path = format!("repos/{repo}/issues/{}", old["number"]);
            gh.json(Stage::Issue, &["api", "--method", "PATCH", &path], Some(&wanted)).await?
        }
        None => {
            let path = format!("repos/{repo}/issues");
            gh.json(Stage::Issue, &["api", "--method", "POST", &path], Some(&wanted)).await?
        }
    };
    match (answer["number"].as_u64(), answer["html_url"].as_str()) {
        (Some(number), Some(url)) => Ok((number, url.to_owned())),
        (Some(_) | None, Some(_) | None) => Err(PublishError {
            stage: Stage::Issue,
            message: "the answer names no issue".to_owned(),
        }),
    }
}

async fn comments(
    gh: &Gh,
    what: &Publication,
    repo: &str,
    issue: u64,
    me: &str,
) -> Result<(), PublishError> {
    let stage = Stage::Comments;
    let query = format!("repos/{repo}/issues/{issue}/comments?");
    let prefix = format!("<!-- teams:sprint:{}:", what.sprint_id);
    let mut old = gh.pages(stage, &query, |entry| is_ours(entry, &prefix, me)).await?;
    for (name, text) in &what.documents {
        let parts = split(&harmless(text), PART_CHARS);
        for (part, number) in parts.iter().zip(1..) {
            let mark = mark(&what.sprint_id, Some((name, number)));
            let body = format!("{mark}\n### {name} ({number}/{})\n\n{part}", parts.len());
            let wanted = json!({ "body": body });
            let known = old.iter().position(|entry| is_ours(entry, &mark, me));
            match known.map(|at| old.remove(at)) {
                Some(comment) if same(&comment["body"], &body) => {}
                Some(comment) => {
                    let path = format!("repos/{repo}/issues/comments/{}", comment["id"]);
                    gh.json(stage, &["api", "--method", "PATCH", &path], Some(&wanted)).await?;
                }
                None => {
                    let path = format!("repos/{repo}/issues/{issue}/comments");
                    gh.json(stage, &["api", "--method", "POST", &path], Some(&wanted)).await?;
                }
            }
        }
    }
    // Parts of an earlier, longer version.
    for comment in old {
        let path = format!("repos/{repo}/issues/comments/{}", comment["id"]);
        gh.text(stage, &["api", "--method", "DELETE", &path]).await?;
    }
    Ok(())
}

fn is_ours(entry: &Value, mark: &str, me: &str) -> bool {
    entry["user"]["login"].as_str() == Some(me)
        && entry["body"].as_str().is_some_and(|body| body.starts_with(mark))
}

/// GitHub keeps line ends in its own way.
fn same(old: &Value, new: &str) -> bool {
    old.as_str().is_some_and(|old| old.replace("\r\n", "\n").trim_end() == new.trim_end())
}

/// Without secrets, and without names that would call people who have nothing to do with it.
fn harmless(text: &str) -> String {
    let clean = redact(text);
    let mut out = String::with_capacity(clean.len());
    let mut chars = clean.chars().peekable();
    while let Some(char) = chars.next() {
        out.push(char);
        if char == '@' && chars.peek().is_some_and(|next| next.is_ascii_alphanumeric()) {
            out.push('\u{200b}');
        }
    }
    out
}

/// A text in parts of at most so many characters, at the ends of lines where there are any.
fn split(text: &str, most: usize) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut room = most;
    for line in text.split_inclusive('\n') {
        let mut chars = line.chars().count();
        if chars > room && chars <= most {
            parts.push(String::new());
            room = most;
        }
        let mut rest = line.chars();
        while chars > 0 {
            if room == 0 {
                parts.push(String::new());
                room = most;
            }
            let take = chars.min(room);
            if let Some(part) = parts.last_mut() {
                part.extend(rest.by_ref().take(take));
            }
            chars -= take;
            room -= take;
        }
    }
    parts
}

impl Gh {
    /// The `gh` that the `PATH` of its environment finds.
    ///
    /// # Errors
    /// Stage `version`, where there is none.
    pub fn find(
        project: PathBuf,
        env: BTreeMap<String, String>,
        scratch: PathBuf,
    ) -> Result<Gh, PublishError> {
        let path = env.get("PATH").map(|path| OsStr::new(path.as_str()));
        match spawn::find_program("gh", path) {
            Some(program) => Ok(Gh { program, project, env, scratch }),
            None => Err(PublishError {
                stage: Stage::Version,
                message: "gh is not installed, or not in PATH".to_owned(),
            }),
        }
    }

    /// Every entry of a list that is wanted, page by page.
    async fn pages(
        &self,
        stage: Stage,
        query: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Result<Vec<Value>, PublishError> {
        let mut found = Vec::new();
        for page in 1..=PAGES {
            let path = format!("{query}&per_page={PAGE}&page={page}");
            let list = self.json(stage, &["api", &path], None).await?;
            let list = list.as_array().cloned().unwrap_or_default();
            let is_last = list.len() < PAGE;
            found.extend(list.into_iter().filter(&wanted));
            if is_last {
                break;
            }
        }
        Ok(found)
    }

    async fn json(
        &self,
        stage: Stage,
        args: &[&str],
        input: Option<&Value>,
    ) -> Result<Value, PublishError> {
        let text = self.call(stage, args, input).await?;
        serde_json::from_str(&text).map_err(|error| PublishError {
            stage,
            message: format!("gh {} answered no JSON: {error}", args.join(" ")),
        })
    }

    async fn text(&self, stage: Stage, args: &[&str]) -> Result<String, PublishError> {
        self.call(stage, args, None).await
    }

    /// Runs it once. The input goes through a file, which has no limit and no shell.
    async fn call(
        &self,
        stage: Stage,
        args: &[&str],
        input: Option<&Value>,
    ) -> Result<String, PublishError> {
        let fail = |message: String| PublishError {
            stage,
            message: redact(message.split_whitespace().collect::<Vec<_>>().join(" ").trim())
                .chars()
                .take(600)
                .collect(),
        };
        let dir = self.scratch.join(format!("gh-{}", ids::random_hex(8)));
        files::create_dir_all(&dir).map_err(|error| fail(error.to_string()))?;
        let mut spec = Spec::new(&self.program, &self.project);
        spec.args = args.iter().map(|arg| (*arg).to_owned()).collect();
        spec.env.clone_from(&self.env);
        spec.wall_ms = Some(CALL_WALL);
        if let Some(input) = input {
            let path = dir.join("input.json");
            files::write_private(&path, input.to_string())
                .map_err(|error| fail(error.to_string()))?;
            spec.args.extend(["--input".to_owned(), path.to_string_lossy().into_owned()]);
        }
        let run = dir.join("run");
        let exit = supervise::run(&spec, &run).await.map_err(|error| fail(error.to_string()))?;
        let out = files::read(&run.join(supervise::STDOUT_SPOOL)).unwrap_or_default();
        let complaint = supervise::stderr_tail(&run, 2_000);
        // What stays behind goes a day later; it is no reason to fail.
        if let Err(error) = files::remove_dir_all(&dir) {
            tracing::debug!(%error, "a folder of gh stays behind");
        }
        match exit.ended_by {
            EndedBy::Exit if exit.success() => Ok(String::from_utf8_lossy(&out).into_owned()),
            EndedBy::Wall => Err(fail(format!("gh {} took longer than a minute", args.join(" ")))),
            EndedBy::NotStarted => Err(fail(exit.error.unwrap_or_default())),
            EndedBy::Exit
            | EndedBy::Idle
            | EndedBy::OutputCap
            | EndedBy::Cancelled
            | EndedBy::ParentGone => {
                Err(fail(format!("gh {}: {complaint}", args.first().copied().unwrap_or_default())))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_split_at_lines_and_loses_nothing() {
        for (text, wanted) in [
            ("", vec![""]),
            ("ab\ncd\n", vec!["ab\n", "cd\n"]),
            ("a\nb\ncd", vec!["a\nb\n", "cd"]),
            ("가나다라마바", vec!["가나다라", "마바"]),
            ("a\n12345678", vec!["a\n12", "3456", "78"]),
        ] {
            let parts = split(text, 4);
            assert_eq!(parts, wanted, "{text:?}");
            assert_eq!(parts.concat(), text);
        }
    }

    #[test]
    fn nobody_is_called_and_no_secret_is_told() {
        let key = format!("sk-{}", "a1".repeat(20));
        let text = harmless(&format!("@octocat, mail me@x.org, 3 @ 4, {key}"));
        assert!(text.starts_with("@\u{200b}octocat") && text.contains("me@\u{200b}x.org"));
        assert!(text.contains("3 @ 4") && !text.contains(&key));
    }
}
