//! What the guards find in a change (`gates:` in `team_runtime.yaml`): paths, and what the runtime saw of the content.

use std::collections::{BTreeMap, BTreeSet};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::request_text::{RequestText, file_name};
use crate::domain::evidence::Candidate;
use crate::domain::gate::Stance;
use crate::domain::guard::{ContentFact, Guard, GuardFinding};
use crate::domain::item::Item;
use crate::domain::policy::GateTable;
use crate::domain::request::Request;
use crate::domain::request_plan::RequestPlan;
use crate::domain::run_by::FilePart;
use crate::engine::turn::Turn;

/// Folders that agents, checks or the repository's own machinery run by.
const FOLDERS: [&str; 18] = [
    ".claude/",
    ".codex/",
    ".agents/",
    ".gemini/",
    ".opencode/",
    ".qwen/",
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

/// Lock files, each with what it follows from.
const LOCK_FILES: [(&str, &str); 20] = [
    ("Cargo.lock", "Cargo.toml"),
    ("package-lock.json", "package.json"),
    ("npm-shrinkwrap.json", "package.json"),
    ("pnpm-lock.yaml", "package.json"),
    ("yarn.lock", "package.json"),
    ("bun.lock", "package.json"),
    ("bun.lockb", "package.json"),
    ("deno.lock", "deno.json"),
    ("poetry.lock", "pyproject.toml"),
    ("uv.lock", "pyproject.toml"),
    ("pdm.lock", "pyproject.toml"),
    ("Pipfile.lock", "Pipfile"),
    ("go.sum", "go.mod"),
    ("Gemfile.lock", "Gemfile"),
    ("composer.lock", "composer.json"),
    ("flake.lock", "flake.nix"),
    ("Podfile.lock", "Podfile"),
    ("mix.lock", "mix.exs"),
    ("pubspec.lock", "pubspec.yaml"),
    ("Package.resolved", "Package.swift"),
];

/// What the guards find in a request's change, without what is allowed or a person has accepted.
pub(in crate::engine) fn open_findings(turn: &Turn<'_>, request: &Request) -> Vec<GuardFinding> {
    let Some(candidate) = &request.work.candidate else { return Vec::new() };
    let item = request.backlog_id.as_ref().and_then(|id| turn.item(id));
    let mut all = findings(&turn.policy.gates, request, item, candidate);
    let accepted: BTreeSet<_> = request.work.accepted.iter().map(known_by).collect();
    let is_allowed = |it: &GuardFinding| turn.policy.gates.of_guard(it.guard) == Stance::Allow;
    all.retain(|finding| !is_allowed(finding) && !accepted.contains(&known_by(finding)));
    all
}

/// What an acceptance counts for. The line of a secret moves with what is above it.
fn known_by(finding: &GuardFinding) -> (Guard, &str, &str) {
    let detail = if finding.guard == Guard::Secret { "" } else { finding.detail.as_str() };
    (finding.guard, finding.path.as_str(), detail)
}

fn findings(
    table: &GateTable,
    request: &Request,
    item: Option<&Item>,
    candidate: &Candidate,
) -> Vec<GuardFinding> {
    let mut all = Vec::new();
    let mut add = |guard, path: &str, detail: String| {
        all.push(GuardFinding { guard, path: path.to_owned(), detail });
    };
    let paths: Vec<&str> = candidate.paths.iter().map(|changed| changed.path.as_str()).collect();
    let text = RequestText::of(request, item);
    let scope = match item {
        Some(item) => Some(Scope::of(item)),
        None => request.work.planned.as_ref().map(Scope::of_plan),
    };
    // What a person named is within what was asked for, unless the plan leaves it out by name.
    let is_asked_for = |path: &str| item.is_none() && text.names_file(path);
    let own = Guarded::by(table);
    for path in &paths {
        if own.has(path) {
            add(Guard::Machinery, path, String::new());
        }
        let is_beyond =
            |scope: &Scope| scope.excludes(path) || !scope.declares(path) && !is_asked_for(path);
        if scope.as_ref().is_some_and(is_beyond) {
            add(Guard::Scope, path, String::new());
        }
        if is_lock_alone(path, &paths) {
            add(Guard::LockFile, path, String::new());
        }
    }
    let gone = candidate.marks.iter().filter(|mark| mark.what == ContentFact::Gone);
    let mut gone_by_name: BTreeMap<&str, usize> = BTreeMap::new();
    for mark in gone {
        *gone_by_name.entry(file_name(&mark.path)).or_default() += 1;
    }
    let is_alone = |path: &str| gone_by_name.get(file_name(path)).is_none_or(|count| *count == 1);
    for mark in &candidate.marks {
        let path = mark.path.as_str();
        match &mark.what {
            ContentFact::Gone if !text.deletes(path, is_alone(path)) => {
                add(Guard::Deletion, path, String::new());
            }
            ContentFact::Restored { commit } if !text.names_file(path) => {
                add(Guard::Restored, path, commit.chars().take(10).collect());
            }
            ContentFact::Overwritten { line, more, commit } => {
                let more = (*more > 0).then(|| format!("… +{more}"));
                let commit = commit.chars().take(10).collect();
                let said = [line.clone(), more.unwrap_or_default(), commit];
                let said: Vec<String> = said.into_iter().filter(|it| !it.is_empty()).collect();
                add(Guard::Overwritten, path, said.join(" "));
            }
            ContentFact::Dependency { name } if !text.names_dependency(name) => {
                add(Guard::Dependency, path, name.clone());
            }
            ContentFact::Binary { bytes } if *bytes > u64::from(table.binary_kb) * 1_024 => {
                add(Guard::Binary, path, format!("{} kB", bytes / 1_024));
            }
            // A check runs it by its name.
            ContentFact::Script { name } => add(Guard::Machinery, path, name.clone()),
            ContentFact::Part { name } if own.runs_by_part(path, name) => {
                add(Guard::Machinery, path, name.clone());
            }
            ContentFact::Linked { name } if own.has(name) && !own.has(path) => {
                add(Guard::Machinery, path, name.clone());
            }
            ContentFact::LinkedOften => add(Guard::Machinery, path, String::new()),
            ContentFact::Secret { line } => add(Guard::Secret, path, line.to_string()),
            ContentFact::Gone
            | ContentFact::Restored { .. }
            | ContentFact::Dependency { .. }
            | ContentFact::Part { .. }
            | ContentFact::Linked { .. }
            | ContentFact::Binary { .. } => {}
        }
    }
    let evidence = request.work.evidence.as_ref().filter(|it| it.commit == candidate.commit);
    for name in evidence.into_iter().flat_map(|it| it.compared(|one| &one.lost).lines()) {
        add(Guard::Tests, &name, String::new());
    }
    all.extend(request.work.unjudged.iter().cloned());
    all
}

/// The first path of a commit that changes what agents or checks run by (`spec/field.md` 5).
pub(in crate::engine) fn machinery<'a>(
    table: &GateTable,
    candidate: &'a Candidate,
) -> Option<&'a str> {
    let own = Guarded::by(table);
    let by_content = candidate.marks.iter().filter(|mark| match &mark.what {
        ContentFact::Script { .. } => true,
        ContentFact::Part { name } => own.runs_by_part(&mark.path, name),
        ContentFact::Linked { name } => own.has(name),
        ContentFact::LinkedOften => true,
        ContentFact::Gone
        | ContentFact::Restored { .. }
        | ContentFact::Overwritten { .. }
        | ContentFact::Dependency { .. }
        | ContentFact::Binary { .. }
        | ContentFact::Secret { .. } => false,
    });
    let paths = candidate.paths.iter().map(|changed| changed.path.as_str());
    let by_path = paths.filter(|path| own.has(path));
    by_path.chain(by_content.map(|mark| mark.path.as_str())).next()
}

/// What agents or checks run by.
struct Guarded<'t> {
    /// What the table says: each entry with all that lies below it, a pattern without a slash in any folder.
    named: GlobSet,
    command_words: &'t [String],
    names: &'t BTreeSet<String>,
    parts: &'t BTreeSet<FilePart>,
}

impl Guarded<'_> {
    fn by(table: &GateTable) -> Guarded<'_> {
        let all = table.guarded.iter().flat_map(|entry| {
            let entry = entry.trim().trim_start_matches("./").trim_end_matches('/');
            let anywhere = entry.contains('*') && !entry.contains('/');
            let entry = if anywhere { format!("**/{entry}") } else { entry.to_owned() };
            // What has brackets in its name means itself as well, and a link may stand where a folder is looked for.
            [globset::escape(&entry), entry].map(|it| [format!("{it}/**"), it])
        });
        let all: Vec<String> = all.flatten().collect();
        Guarded {
            named: globs(&all),
            command_words: &table.command_words,
            names: &table.guarded_names,
            parts: &table.guarded_parts,
        }
    }

    /// Whether a check runs by that part of a file.
    fn runs_by_part(&self, path: &str, name: &str) -> bool {
        self.parts.iter().any(|part| part.file == file_name(path) && part.name == name)
    }

    fn has(&self, path: &str) -> bool {
        // A link may stand where a folder is looked for.
        let as_folder = format!("/{path}/");
        let below = |folder: &&str| as_folder.contains(&format!("/{folder}"));
        let is_run = |word: &String| match word.strip_prefix("./") {
            Some(name) => path == name || path.ends_with(&format!("/{name}")),
            None => path == word,
        };
        let is_named = |name: &String| match name.split_once('*') {
            Some((begin, end)) => {
                let rest = file_name(path).strip_prefix(begin);
                rest.is_some_and(|rest| rest.ends_with(end))
            }
            None => file_name(path) == name,
        };
        self.named.is_match(path)
            || self.command_words.iter().any(is_run)
            || FOLDERS.iter().any(below)
            || FILES.contains(&file_name(path))
            || self.names.iter().any(is_named)
    }
}

/// Those of the paths that an item does not allow, and what it declares without any of the paths; neither where it
/// declares nothing.
pub(in crate::engine) fn beside_declared(
    item: &Item,
    paths: &[String],
) -> (Vec<String>, Vec<String>) {
    let scope = Scope::of(item);
    let outside = paths.iter().filter(|path| !scope.allows(path)).cloned().collect();
    let is_untouched = |declared: &&String| {
        let declared = globs(std::slice::from_ref(*declared));
        !paths.iter().any(|path| declared.is_match(path))
    };
    (outside, item.allowed_paths.iter().filter(is_untouched).cloned().collect())
}

fn is_lock_alone(path: &str, paths: &[&str]) -> bool {
    let name = file_name(path);
    let lock = LOCK_FILES.iter().find(|(lock, _)| *lock == name);
    lock.is_some_and(|(_, from)| !paths.iter().any(|path| file_name(path) == *from))
}

/// The paths that an item, or the plan of a request, declares.
struct Scope {
    /// `None` where it declares none.
    allowed: Option<GlobSet>,
    excluded: GlobSet,
}

impl Scope {
    fn of(item: &Item) -> Scope {
        Scope::new(&item.allowed_paths, &item.excluded_paths)
    }

    fn of_plan(plan: &RequestPlan) -> Scope {
        Scope::new(&plan.allowed_paths, &plan.excluded_paths)
    }

    fn new(allowed: &[String], excluded: &[String]) -> Scope {
        Scope { allowed: (!allowed.is_empty()).then(|| globs(allowed)), excluded: globs(excluded) }
    }

    fn allows(&self, path: &str) -> bool {
        self.declares(path) && !self.excludes(path)
    }

    fn declares(&self, path: &str) -> bool {
        self.allowed.as_ref().is_none_or(|globs| globs.is_match(path))
    }

    fn excludes(&self, path: &str) -> bool {
        self.excluded.is_match(path)
    }
}

/// A path that ends with a slash means what lies below; one that does not read as a glob means itself.
fn globs(globs: &[String]) -> GlobSet {
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        let glob = glob.trim().trim_start_matches("./");
        let glob = if glob.ends_with('/') { format!("{glob}**") } else { glob.to_owned() };
        let build = |text: &str| GlobBuilder::new(text).literal_separator(true).build();
        if let Ok(glob) = build(&glob).or_else(|_| build(&globset::escape(&glob))) {
            set.add(glob);
        }
    }
    set.build().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::evidence::{ChangeKind, ChangedPath};
    use crate::domain::guard::ContentMark;
    use crate::domain::ids::{ItemId, PlanId, PlanItemId};
    use crate::domain::item::ItemKind;
    use crate::domain::plan::PlanRef;
    use crate::domain::time::Timestamp;
    use crate::engine::tests::candidate;

    fn item() -> Item {
        let id = ItemId::parse("backlog-1").unwrap();
        Item::new(id, "One", "", ItemKind::Chore, Timestamp::from_millis(0))
    }

    fn change(paths: &[&str], marks: &[(&str, ContentFact)]) -> Candidate {
        let changed =
            |path: &&str| ChangedPath { path: (*path).to_owned(), kind: ChangeKind::Modified };
        let mark = |(path, what): &(&str, ContentFact)| ContentMark {
            path: (*path).to_owned(),
            what: what.clone(),
        };
        Candidate {
            paths: paths.iter().map(changed).collect(),
            marks: marks.iter().map(mark).collect(),
            ..candidate("c1")
        }
    }

    fn found(words: &str, item: Option<&Item>, candidate: &Candidate) -> Vec<(Guard, String)> {
        let request = Request { body: words.to_owned(), ..Request::default() };
        let all = findings(&GateTable::default(), &request, item, candidate);
        all.into_iter().map(|it| (it.guard, it.path)).collect()
    }

    #[test]
    fn what_agents_and_checks_run_by() {
        let table = GateTable {
            guarded: [
                "deploy/",
                "Makefile",
                "ops",
                "./infra/",
                "*.tf",
                "db/**/*.sql",
                "a[.txt",
                "app/[id]/x",
            ]
            .map(str::to_owned)
            .into(),
            command_words: ["scripts/ci.sh", "./ci.sh", "./go/x.sh", "tests"]
                .map(str::to_owned)
                .into(),
            guarded_names: ["jest.config.*", ".flake8"].map(str::to_owned).into(),
            ..GateTable::default()
        };
        let own = Guarded::by(&table);
        for path in [
            ".claude/settings.json",
            "app/.codex/config.toml",
            "docs/AGENTS.md",
            ".mcp.json",
            "deploy/prod.yaml",
            "Makefile",
            ".qwen/settings.json",
            // A link in the place of the folder.
            ".claude",
            "app/.cargo",
            "deploy",
            "ops/prod.yaml",
            "scripts/ci.sh",
            "web/go/x.sh",
            "web/ci.sh",
            "app/[id]/x",
            "infra/a/b.yaml",
            "main.tf",
            "modules/net/main.tf",
            "db/one/two.sql",
            // No pattern, so it means itself.
            "a[.txt",
            "web/jest.config.js",
            ".flake8",
        ] {
            assert!(own.has(path), "{path}");
        }
        for path in [
            "src/github/client.rs",
            "sub/Makefile",
            "AGENTS.md.txt",
            "sub/deploy",
            "x.claude",
            "opsx",
            "tests/a.rs",
            "main.tf.md",
            "jest.confi",
            "a.flake8",
        ] {
            assert!(!own.has(path), "{path}");
        }
    }

    #[test]
    fn an_item_keeps_to_its_paths() {
        let mut item = item();
        let change = change(&["src/a.rs", "src/gen/x.rs", "docs/a.md"], &[]);
        assert_eq!(found("", Some(&item), &change), [], "it declares none");
        item.allowed_paths = vec!["./src/".to_owned()];
        item.excluded_paths = vec!["src/gen/*".to_owned()];
        let outside = ["src/gen/x.rs", "docs/a.md"].map(|path| (Guard::Scope, path.to_owned()));
        assert_eq!(found("", Some(&item), &change), outside);
        item.allowed_paths = vec!["src/*".to_owned(), "docs/a.md".to_owned(), "a[".to_owned()];
        item.excluded_paths.clear();
        let deeper = [(Guard::Scope, "src/gen/x.rs".to_owned())];
        assert_eq!(found("", Some(&item), &change), deeper, "a star ends at a slash");
    }

    #[test]
    fn what_nobody_spoke_of() {
        let name = || "left-pad".to_owned();
        let marks = [
            ("src/old.rs", ContentFact::Gone),
            ("src/back.rs", ContentFact::Restored { commit: "0123456789abcdef".to_owned() }),
            ("package.json", ContentFact::Dependency { name: name() }),
        ];
        let change = change(&[], &marks);
        let guards = |words: &str, item: Option<&Item>| -> Vec<Guard> {
            found(words, item, &change).into_iter().map(|(guard, _)| guard).collect()
        };
        let all = [Guard::Deletion, Guard::Restored, Guard::Dependency];
        assert_eq!(guards("tidy the old things up", None), all);
        assert_eq!(guards("Delete `old.rs`, bring src/back.rs back, take left-pad.", None), []);
        let paths = vec!["src/old.rs".to_owned()];
        let plan = PlanRef {
            plan_id: PlanId::parse("letters").unwrap(),
            item_id: PlanItemId::parse("US-1").unwrap(),
        };
        let by_planner = Item { allowed_paths: paths, ..item() };
        assert_eq!(guards("tidy up", Some(&by_planner)), all, "no person has said so");
        let allowed = Item { plan: Some(plan), ..by_planner };
        assert_eq!(guards("tidy up", Some(&allowed)), all, "leave to edit is none to delete");
        let title = "Delete src/old.rs".to_owned();
        let named = Item { title, ..allowed };
        assert_eq!(guards("tidy up", Some(&named)), all[1..]);
        let wide = Item { allowed_paths: vec!["src/**".to_owned()], ..item() };
        assert_eq!(guards("tidy up", Some(&wide)), all, "leave to edit is none to delete");
        assert_eq!(guards("fix lib/old.rs and old.rs.bak", None), all, "those are others");
        assert_eq!(guards("`old.rs`를 지우고 back.rs를 되살려 줘", None), all[2..]);
        let hidden = change_of_hidden();
        assert_eq!(found("remove .env.", None, &hidden), []);
    }

    #[test]
    fn a_part_counts_where_a_check_runs_by_it() {
        let part = |name: &str| ContentFact::Part { name: name.to_owned() };
        let of = [("web/package.json", part("jest")), ("pyproject.toml", part("tool.ruff"))];
        let change = change(&["web/package.json", "pyproject.toml"], &of);
        let guarded_parts =
            [FilePart { file: "package.json".to_owned(), name: "jest".to_owned() }].into();
        let table = GateTable { guarded_parts, ..GateTable::default() };
        let found = findings(&table, &Request::default(), None, &change);
        let told: Vec<_> = found.iter().map(|it| (it.guard, it.detail.as_str())).collect();
        assert_eq!(told, [(Guard::Machinery, "jest")]);
        assert_eq!(machinery(&table, &change), Some("web/package.json"));
        assert_eq!(machinery(&GateTable::default(), &change), None);
    }

    #[test]
    fn what_a_link_leads_to_counts_as_the_link() {
        let linked = |name: &str| ContentFact::Linked { name: name.to_owned() };
        let of = [("docs/team.md", linked("CLAUDE.md")), ("a.txt", linked("sub/a.txt"))];
        let change = change(&["docs/team.md", "a.txt"], &of);
        let table = GateTable::default();
        assert_eq!(found("", None, &change), [(Guard::Machinery, "docs/team.md".to_owned())]);
        assert_eq!(machinery(&table, &change), Some("docs/team.md"));
    }

    fn change_of_hidden() -> Candidate {
        change(&[], &[(".env", ContentFact::Gone)])
    }

    #[test]
    fn lock_files_large_files_and_secrets() {
        let lock = |paths: &[&str]| found("", None, &change(paths, &[]));
        assert_eq!(lock(&["sub/Cargo.lock"]), [(Guard::LockFile, "sub/Cargo.lock".to_owned())]);
        assert_eq!(lock(&["Cargo.lock", "crates/a/Cargo.toml"]), []);
        let binary =
            |bytes| found("", None, &change(&[], &[("a.png", ContentFact::Binary { bytes })]));
        assert_eq!(binary(1_048_576), []);
        assert_eq!(binary(1_048_577), [(Guard::Binary, "a.png".to_owned())]);
        let secret = [("a.env", ContentFact::Secret { line: 3 })];
        assert_eq!(found("", None, &change(&[], &secret)), [(Guard::Secret, "a.env".to_owned())]);
    }
}
