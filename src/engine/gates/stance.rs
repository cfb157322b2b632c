//! What the operator's table says about a commit (`gates:` in `team_runtime.yaml`).

use crate::domain::evidence::{Candidate, ChangeKind, Proof};
use crate::domain::gate::{GateKind, Stance};
use crate::domain::policy::GateTable;

/// Folders that agents, checks or the repository's own machinery run by.
const FOLDERS: [&str; 17] = [
    ".claude/",
    ".codex/",
    ".agents/",
    ".gemini/",
    ".opencode/",
    ".cursor/",
    ".windsurf/",
    ".vscode/",
    ".devcontainer/",
    ".github/",
    ".gitlab/",
    ".circleci/",
    ".buildkite/",
    ".woodpecker/",
    ".husky/",
    ".githooks/",
    ".cargo/",
];

/// Files that they run by, wherever they lie.
const FILES: [&str; 25] = [
    "AGENTS.md",
    "AGENTS.override.md",
    "CLAUDE.md",
    "CLAUDE.local.md",
    "GEMINI.md",
    ".cursorrules",
    ".windsurfrules",
    ".goosehints",
    ".aider.conf.yml",
    ".mcp.json",
    "opencode.json",
    "opencode.jsonc",
    ".envrc",
    ".npmrc",
    ".gitlab-ci.yml",
    ".travis.yml",
    ".drone.yml",
    ".woodpecker.yml",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    ".pre-commit-config.yaml",
    ".gitattributes",
    ".gitmodules",
    ".gitconfig",
    "Jenkinsfile",
];

/// The paths of a commit that change what agents or checks run by (`spec/field.md` 5).
pub(in crate::engine) fn guarded<'a>(table: &GateTable, candidate: &'a Candidate) -> Vec<&'a str> {
    let paths = candidate.paths.iter().map(|changed| changed.path.as_str());
    paths.filter(|path| is_guarded(table, path)).collect()
}

fn is_guarded(table: &GateTable, path: &str) -> bool {
    let below = |folder: &str| path.starts_with(folder) || path.contains(&format!("/{folder}"));
    let name = path.rsplit('/').next().unwrap_or(path);
    let own = table
        .guarded
        .iter()
        .any(|one| if one.ends_with('/') { path.starts_with(one.as_str()) } else { path == one });
    own || FOLDERS.iter().any(|folder| below(folder)) || FILES.contains(&name)
}

/// Files that a commit deletes.
pub(super) fn deleted(candidate: &Candidate) -> usize {
    candidate.paths.iter().filter(|changed| changed.kind == ChangeKind::Deleted).count()
}

/// The strictest of what applies to a commit, and what it is about. What failed before may be allowed where the same
/// tests fail by `name`; an exit code says nothing of what fails.
pub(super) fn of_commit(
    table: &GateTable,
    candidate: &Candidate,
    proof: Proof,
    by_name: bool,
) -> (Stance, GateKind) {
    let mut all = Vec::with_capacity(3);
    match proof {
        Proof::None => all.push((table.unproven_commit, GateKind::UnprovenCommit)),
        Proof::RedBefore if table.red_base == Stance::Allow && !by_name => {
            all.push((Stance::Ask, GateKind::RedBase));
        }
        Proof::RedBefore => all.push((table.red_base, GateKind::RedBase)),
        Proof::Green => {}
    }
    if !guarded(table, candidate).is_empty() {
        all.push((table.guarded_commit, GateKind::GuardedCommit));
    }
    all.push((table.commit, GateKind::Commit));
    let strictness = |stance: Stance| match stance {
        Stance::Refuse => 0,
        Stance::Ask => 1,
        Stance::Allow => 2,
    };
    let strictest = all.into_iter().min_by_key(|(stance, _)| strictness(*stance));
    strictest.unwrap_or((Stance::Ask, GateKind::Commit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::evidence::ChangedPath;

    fn commit(paths: &[&str]) -> Candidate {
        let changed =
            |path: &&str| ChangedPath { path: (*path).to_owned(), kind: ChangeKind::Modified };
        Candidate {
            paths: paths.iter().map(changed).collect(),
            ..crate::engine::tests::candidate("c1")
        }
    }

    fn check(table: &GateTable, paths: &[&str], proof: Proof, expected: (Stance, GateKind)) {
        assert_eq!(of_commit(table, &commit(paths), proof, true), expected, "{paths:?} {proof:?}");
    }

    #[test]
    fn the_strictest_applies() {
        let table = GateTable::default();
        check(&table, &["src/a.rs"], Proof::Green, (Stance::Allow, GateKind::Commit));
        check(&table, &["src/a.rs"], Proof::None, (Stance::Ask, GateKind::UnprovenCommit));
        check(
            &table,
            &["src/a.rs", ".github/x.yml"],
            Proof::Green,
            (Stance::Ask, GateKind::GuardedCommit),
        );
        check(&table, &["src/a.rs"], Proof::RedBefore, (Stance::Ask, GateKind::RedBase));
        let lenient = GateTable { red_base: Stance::Allow, ..GateTable::default() };
        check(&lenient, &["src/a.rs"], Proof::RedBefore, (Stance::Allow, GateKind::RedBase));
        let unnamed = of_commit(&lenient, &commit(&["src/a.rs"]), Proof::RedBefore, false);
        assert_eq!(unnamed, (Stance::Ask, GateKind::RedBase));
        let strict = GateTable { guarded_commit: Stance::Refuse, ..GateTable::default() };
        check(&strict, &["sub/AGENTS.md"], Proof::None, (Stance::Refuse, GateKind::GuardedCommit));
        let every = GateTable { commit: Stance::Ask, ..GateTable::default() };
        check(&every, &["src/a.rs"], Proof::Green, (Stance::Ask, GateKind::Commit));
    }

    #[test]
    fn what_is_guarded() {
        let table = GateTable {
            guarded: vec!["deploy/".to_owned(), "Makefile".to_owned()],
            ..GateTable::default()
        };
        let paths = [
            ".claude/settings.json",
            "app/.codex/config.toml",
            "docs/AGENTS.md",
            ".mcp.json",
            "deploy/prod.yaml",
            "Makefile",
            "src/github/client.rs",
            "sub/Makefile",
            "AGENTS.md.txt",
        ];
        assert_eq!(guarded(&table, &commit(&paths)), paths[..6]);
    }
}
