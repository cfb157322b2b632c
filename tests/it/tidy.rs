//! The rules of the house that a compiler does not know: which module may use which, what the pure
//! modules may touch, how large a file may grow, and that nothing is forgotten.

use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

/// Each module and the modules that it may use. `cli` stands at the top and may use all.
const ARROWS: &[(&str, &[&str])] = &[
    ("platform", &[]),
    ("domain", &[]),
    ("engine", &["domain"]),
    ("assets", &["domain", "platform"]),
    ("workspace", &["domain", "assets", "platform"]),
    ("import", &["domain", "workspace", "platform"]),
    ("store", &["domain", "platform"]),
    ("relay", &["domain", "store", "platform"]),
    ("git", &["domain", "platform"]),
    ("agents", &["domain", "assets", "platform"]),
    ("model_proxy", &["domain", "agents", "platform"]),
    ("rehearsal", &["domain", "assets", "agents", "platform"]),
    ("worker", &["domain", "assets", "git", "agents", "rehearsal", "model_proxy", "platform"]),
    ("discord", &["domain", "assets", "platform"]),
    ("local_guild", &["platform"]),
    (
        "onboarding",
        &[
            "domain",
            "assets",
            "workspace",
            "store",
            "git",
            "agents",
            "model_proxy",
            "discord",
            "local_guild",
            "platform",
        ],
    ),
    (
        "service",
        &[
            "platform",
            "domain",
            "engine",
            "assets",
            "workspace",
            "import",
            "store",
            "relay",
            "git",
            "agents",
            "model_proxy",
            "worker",
            "onboarding",
            "discord",
            "local_guild",
        ],
    ),
    (
        "cli",
        &[
            "platform",
            "domain",
            "engine",
            "assets",
            "workspace",
            "import",
            "store",
            "relay",
            "git",
            "agents",
            "rehearsal",
            "model_proxy",
            "onboarding",
            "discord",
            "local_guild",
            "service",
        ],
    ),
];

/// What the pure modules may not name: input, output, clock, randomness, threads, async.
const IMPURE: &[&[&str]] = &[
    &["std", "fs"],
    &["std", "io"],
    &["std", "net"],
    &["std", "process"],
    &["std", "env"],
    &["std", "thread"],
    &["std", "os"],
    &["std", "time", "Instant"],
    &["std", "time", "SystemTime"],
    &["tokio"],
    &["tokio_util"],
    &["futures_util"],
    &["reqwest"],
    &["git2"],
    &["rustix"],
    &["tracing"],
    &["metrics"],
    &["chrono", "Local"],
    &["Utc", "now"],
    &["chrono", "Utc", "now"],
    &["Uuid", "new_v4"],
    &["Uuid", "now_v7"],
    &["uuid", "Uuid", "new_v4"],
    &["uuid", "Uuid", "now_v7"],
];

/// Hash maps iterate in another order each time, so the same history would decide differently.
const UNORDERED: &[&[&str]] =
    &[&["std", "collections", "HashMap"], &["std", "collections", "HashSet"]];

/// What only `platform` may name.
const PLATFORM_ONLY: &[&[&str]] = &[
    &["std", "fs"],
    &["std", "process", "Command"],
    &["tokio", "fs"],
    &["tokio", "process"],
    &["tokio", "spawn"],
    &["tokio", "task", "spawn"],
    &["tokio", "task", "spawn_blocking"],
];

/// A file of one subject that is longer than this is rare enough to be looked at.
const FILE_LINES: usize = 1_000;
const TEST_FILE_LINES: usize = 1_200;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else {
        return found;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// A source file: its path below the top, its module, its text.
struct Source {
    path: String,
    module: Option<String>,
    text: String,
    is_test: bool,
}

fn sources() -> Vec<Source> {
    let root = root();
    let files = rust_files(&root.join("src"));
    assert!(files.len() > 40, "the sources were not found");
    let read = |path: PathBuf| {
        let below = path.strip_prefix(&root).unwrap();
        let parts: Vec<String> =
            below.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        let is_test = parts
            .iter()
            .any(|part| part == "tests" || part == "tests.rs" || part.ends_with("_tests.rs"));
        Source {
            module: (parts.len() > 2).then(|| parts[1].clone()),
            path: parts.join("/"),
            text: fs::read_to_string(&path).unwrap(),
            is_test,
        }
    };
    files.into_iter().map(read).collect()
}

/// Every path that a file names, use trees spelled out, code for tests left aside.
#[derive(Default)]
struct Names {
    paths: Vec<(usize, Vec<String>)>,
    asyncs: Vec<usize>,
    prints: Vec<usize>,
    allows: Vec<usize>,
}

impl Names {
    fn of(text: &str) -> Names {
        let mut names = Names::default();
        names.visit_file(&syn::parse_file(text).unwrap());
        names
    }

    fn tree(&mut self, tree: &syn::UseTree, before: &[String], line: usize) {
        let mut path = before.to_vec();
        match tree {
            syn::UseTree::Path(part) => {
                path.push(part.ident.to_string());
                self.tree(&part.tree, &path, line);
            }
            syn::UseTree::Name(name) => {
                path.push(name.ident.to_string());
                self.paths.push((line, path));
            }
            syn::UseTree::Rename(name) => {
                path.push(name.ident.to_string());
                self.paths.push((line, path));
            }
            syn::UseTree::Glob(_) => self.paths.push((line, path)),
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.tree(tree, &path, line);
                }
            }
        }
    }

    /// Paths within a macro, which are only tokens: `a :: b :: c`.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut line = 0;
        let mut colons = 0;
        let mut dollar = false;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) if colons == 2 && !path.is_empty() => {
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Ident(ident) => {
                    if path.len() > 1 {
                        self.paths.push((line, std::mem::take(&mut path)));
                    }
                    // `$crate` is the crate that uses the macro, not a module.
                    path = if dollar { Vec::new() } else { vec![ident.to_string()] };
                    line = ident.span().start().line;
                    colons = 0;
                    dollar = false;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    colons = 0;
                    self.tokens(group.stream());
                }
                TokenTree::Punct(punct) => {
                    dollar = punct.as_char() == '$';
                    colons = 0;
                }
                TokenTree::Literal(_) => colons = 0,
            }
        }
        if path.len() > 1 {
            self.paths.push((line, path));
        }
    }
}

fn is_test_only(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
    })
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test_only(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_test_only(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !is_test_only(&item.attrs) {
            self.tree(&item.tree, &[], item.span().start().line);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let words = path.segments.iter().map(|part| part.ident.to_string());
        self.paths.push((path.span().start().line, words.collect()));
        visit::visit_path(self, path);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        if let Some(word) = &signature.asyncness {
            self.asyncs.push(word.span.start().line);
        }
        visit::visit_signature(self, signature);
    }

    fn visit_expr_async(&mut self, block: &'ast syn::ExprAsync) {
        self.asyncs.push(block.async_token.span.start().line);
        visit::visit_expr_async(self, block);
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        if attribute.path().is_ident("allow") {
            self.allows.push(attribute.span().start().line);
        }
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let name = call.path.segments.last().unwrap().ident.to_string();
        if ["print", "println", "eprint", "eprintln", "dbg"].contains(&name.as_str()) {
            self.prints.push(call.span().start().line);
        }
        self.tokens(call.tokens.clone());
        visit::visit_macro(self, call);
    }
}

fn starts_with(path: &[String], prefix: &[&str]) -> bool {
    path.len() >= prefix.len() && path.iter().zip(prefix).all(|(word, part)| word == part)
}

fn fail_on(what: &str, mut found: Vec<String>) {
    found.sort();
    found.dedup();
    assert!(found.is_empty(), "{what}:\n  {}", found.join("\n  "));
}

/// One pass over every file that is not for tests.
fn check(mut rule: impl FnMut(&Source, &str, &Names, &mut Vec<String>)) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources() {
        if let (Some(module), false) = (source.module.clone(), source.is_test) {
            rule(&source, &module, &Names::of(&source.text), &mut found);
        }
    }
    found
}

#[test]
fn modules_use_only_what_they_may() {
    let found = check(|source, module, names, found| {
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == module) else {
            found.push(format!("{}: no arrows are drawn for this module", source.path));
            return;
        };
        for (line, path) in &names.paths {
            if let [first, used, ..] = path.as_slice() {
                let known = ARROWS.iter().any(|(name, _)| name == used);
                if first == "crate" && known && used != module && !allowed.contains(&used.as_str())
                {
                    found.push(format!("{}:{line}: {module} uses {used}", source.path));
                }
            }
        }
    });
    fail_on("arrows point one way (tests/it/tidy.rs, ARROWS)", found);
}

#[test]
fn engine_and_domain_are_pure() {
    let found = check(|source, module, names, found| {
        if !["engine", "domain"].contains(&module) {
            return;
        }
        for (line, path) in &names.paths {
            if IMPURE.iter().chain(UNORDERED).any(|prefix| starts_with(path, prefix)) {
                found.push(format!("{}:{line}: {}", source.path, path.join("::")));
            }
        }
        for line in &names.asyncs {
            found.push(format!("{}:{line}: async", source.path));
        }
    });
    fail_on("what is decided comes from the input alone", found);
}

#[test]
fn only_platform_uses_the_system() {
    let found = check(|source, module, names, found| {
        if module == "platform" {
            return;
        }
        for (line, path) in &names.paths {
            // Open files and what is known about one are handed out by `platform` and may be named.
            let is_type = matches!(path.last().map(String::as_str), Some("File" | "Metadata"));
            if !is_type && PLATFORM_ONLY.iter().any(|prefix| starts_with(path, prefix)) {
                found.push(format!("{}:{line}: {}", source.path, path.join("::")));
            }
        }
    });
    fail_on("files, processes and tasks belong to `platform`", found);
}

#[test]
fn nobody_prints_past_the_command_line_or_silences_a_lint() {
    let found = check(|source, module, names, found| {
        // The supervisor of `platform` is a process of its own, whose stderr is its log.
        for line in names.prints.iter().filter(|_| module != "platform") {
            found.push(format!("{}:{line}: prints", source.path));
        }
        for line in &names.allows {
            found.push(format!("{}:{line}: `allow`; write `expect` with a reason", source.path));
        }
    });
    fail_on("output goes through `cli::say` or tracing", found);
}

#[test]
fn a_file_can_be_read_in_one_sitting_and_says_what_it_is_for() {
    let mut found = Vec::new();
    let tests = rust_files(&root().join("tests")).into_iter().map(|path| Source {
        path: path.strip_prefix(root()).unwrap().display().to_string(),
        module: None,
        text: fs::read_to_string(&path).unwrap(),
        is_test: true,
    });
    for source in sources().into_iter().chain(tests) {
        // Tests at the bottom of a file are read by themselves.
        let code = source.text.split("\n#[cfg(test)]\nmod tests {").next().unwrap();
        let counts = [(source.text.as_str(), TEST_FILE_LINES), (code, FILE_LINES)];
        for (text, limit) in counts.into_iter().take(if source.is_test { 1 } else { 2 }) {
            let lines = text.lines().count();
            if lines > limit {
                found.push(format!("{}: {lines} lines, at most {limit}", source.path));
            }
        }
        if !source.text.starts_with("//!") {
            found.push(format!("{}:1: begins without `//!`", source.path));
        }
    }
    fail_on("one subject a file", found);
}

#[test]
fn no_test_file_is_forgotten() {
    let folder = root().join("tests/it");
    let main = fs::read_to_string(folder.join("main.rs")).unwrap();
    let registered: Vec<String> = syn::parse_file(&main)
        .unwrap()
        .items
        .into_iter()
        .filter_map(|item| {
            if let syn::Item::Mod(item) = item { Some(item.ident.to_string()) } else { None }
        })
        .collect();
    let mut found = Vec::new();
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let is_module = path.is_dir() && path.join("mod.rs").exists()
            || path.extension().is_some_and(|extension| extension == "rs");
        if is_module && name != "main" && !registered.contains(&name) {
            found.push(format!("tests/it/{name}: add `mod {name};` to tests/it/main.rs"));
        }
    }
    fail_on("every test file runs", found);
}

#[test]
fn the_architecture_names_tests_that_exist() {
    let page = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let (_, table) = page.split_once("| invariant | backed by |").unwrap();
    let all: Vec<String> = ["src", "tests"]
        .iter()
        .flat_map(|folder| rust_files(&root().join(folder)))
        .map(|file| fs::read_to_string(file).unwrap())
        .collect();
    let rows = table.lines().filter_map(|row| row.trim_end_matches(" |").rsplit_once("| "));
    let named = rows.flat_map(|(_, tests)| tests.split('`').skip(1).step_by(2));
    let missing = named
        .filter(|name| !all.iter().any(|text| text.contains(&format!("fn {name}("))))
        .map(|name| format!("docs/architecture.md: there is no test {name}"));
    fail_on("what is promised is tested", missing.collect());
}

#[test]
fn the_rules_catch_what_they_are_for() {
    let names = Names::of(
        "use std::{fs, collections::{BTreeMap, HashMap as M}};\n\
         async fn f() { crate::store::x(); }\n\
         fn g() { format!(\"{}\", crate::relay::y(1)); println!(); }\n\
         #[cfg(test)] mod tests { use crate::cli::Z; }\n",
    );
    let has = |path: &str| names.paths.iter().any(|(_, words)| words.join("::") == path);
    assert!(has("std::fs") && has("std::collections::HashMap"));
    assert!(has("crate::store::x") && has("crate::relay::y") && !has("crate::cli::Z"));
    assert_eq!(
        (names.asyncs.as_slice(), names.prints.as_slice()),
        ([2].as_slice(), [3].as_slice())
    );
    let line = names.paths.iter().find(|(_, words)| words.join("::") == "crate::relay::y");
    assert_eq!(line.unwrap().0, 3);
}
