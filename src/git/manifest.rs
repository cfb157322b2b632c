//! Files by which a project names its dependencies: which ones a text of such a file names, and where from where that is
//! not its usual registry.

use std::collections::BTreeSet;

use serde_json::Value;

/// Dependencies by their names; one with a source of its own as `name (source)`.
pub(super) type Names = BTreeSet<String>;

/// What stands for all that a manifest names which does not read as one.
const UNREADABLE: &str = "what cannot be read";

const MANIFESTS: [&str; 10] = [
    "Cargo.toml",
    "Pipfile",
    "pyproject.toml",
    "package.json",
    "composer.json",
    "go.mod",
    "Gemfile",
    "build.gradle",
    "build.gradle.kts",
    "pom.xml",
];

/// The dependencies that a file of this name names with this content; `None` where the file is no manifest.
pub(super) fn dependencies(file: &str, content: &[u8]) -> Option<Names> {
    let is_requirements = file.starts_with("requirements") && file.ends_with(".txt");
    let is_manifest = MANIFESTS.contains(&file) || is_requirements;
    let named = || {
        let text = std::str::from_utf8(content).ok()?;
        read(file, text.trim_start_matches('\u{feff}'))
    };
    is_manifest.then(|| named().unwrap_or_else(|| [UNREADABLE.to_owned()].into()))
}

/// The scripts of a `package.json` that say something else now, or are gone: `npm test` and the like run them.
pub(super) fn changed_scripts(path: &str, before: Option<&[u8]>, now: &[u8]) -> Vec<String> {
    if path.rsplit('/').next() != Some("package.json") {
        return Vec::new();
    }
    let scripts = |text: &[u8]| -> Option<serde_json::Map<String, Value>> {
        let text = std::str::from_utf8(text).ok()?.trim_start_matches('\u{feff}');
        let manifest: Value = serde_json::from_str(text).ok()?;
        manifest.get("scripts")?.as_object().cloned()
    };
    let now = scripts(now).unwrap_or_default();
    let before = before.and_then(scripts).unwrap_or_default();
    let is_another = |name: &&String| now.get(*name) != before.get(*name);
    // It runs before or after one that was there.
    let is_hook = |name: &&String| {
        let of = ["pre", "post"].iter().find_map(|when| name.strip_prefix(when));
        !before.contains_key(*name) && of.is_some_and(|of| before.contains_key(of))
    };
    let changed = before.keys().filter(is_another).chain(now.keys().filter(is_hook));
    changed.cloned().collect()
}

fn read(file: &str, text: &str) -> Option<Names> {
    match file {
        "Cargo.toml" => tables(text, |path| {
            matches!(path, ["patch", _] | ["replace"])
                || path.last().is_some_and(|name| name.ends_with("dependencies"))
        }),
        "Pipfile" => tables(text, |path| matches!(path, ["packages" | "dev-packages"])),
        "pyproject.toml" => pyproject(text),
        "package.json" => json(
            text,
            &[
                "dependencies",
                "devDependencies",
                "peerDependencies",
                "optionalDependencies",
                "overrides",
                "resolutions",
            ],
        ),
        "composer.json" => json(text, &["require", "require-dev"]),
        "go.mod" => Some(go(text)),
        "Gemfile" => Some(by_word(text, &["gem"])),
        "build.gradle" | "build.gradle.kts" => Some(by_word(
            text,
            &[
                "implementation",
                "api",
                "compileOnly",
                "runtimeOnly",
                "testImplementation",
                "testRuntimeOnly",
                "classpath",
            ],
        )),
        "pom.xml" => pom(text),
        _ if file.starts_with("requirements") && file.ends_with(".txt") => {
            Some(text.lines().filter_map(requirement).collect())
        }
        _ => None,
    }
}

/// Keys of the TOML tables whose path is wanted.
fn tables(text: &str, is_wanted: impl Fn(&[&str]) -> bool) -> Option<Names> {
    fn walk<'t>(
        table: &'t toml::Table,
        path: &mut Vec<&'t str>,
        is_wanted: &impl Fn(&[&str]) -> bool,
        names: &mut Names,
    ) {
        for (key, value) in table {
            let Some(inner) = value.as_table() else { continue };
            path.push(key);
            if is_wanted(path) {
                names.extend(inner.iter().map(|(name, value)| from(name, value)));
            } else {
                walk(inner, path, is_wanted, names);
            }
            path.pop();
        }
    }
    let table: toml::Table = text.parse().ok()?;
    let mut names = Names::new();
    walk(&table, &mut Vec::new(), &is_wanted, &mut names);
    Some(names)
}

/// A name with where it comes from, where the TOML says that.
fn from(name: &str, value: &toml::Value) -> String {
    let sources = ["git", "path", "url", "file", "registry", "package"];
    let said =
        sources.iter().filter_map(|key| Some(format!("{key} {}", value.get(key)?.as_str()?)));
    match said.collect::<Vec<_>>().join(", ") {
        said if said.is_empty() => name.to_owned(),
        said => format!("{name} ({said})"),
    }
}

/// PEP 621, PEP 735 and Poetry.
fn pyproject(text: &str) -> Option<Names> {
    fn texts<'t>(value: &'t toml::Value, all: &mut Vec<&'t str>) {
        match value {
            toml::Value::String(text) => all.push(text),
            toml::Value::Array(items) => items.iter().for_each(|item| texts(item, all)),
            toml::Value::Table(table) => table.values().for_each(|item| texts(item, all)),
            toml::Value::Integer(_)
            | toml::Value::Float(_)
            | toml::Value::Boolean(_)
            | toml::Value::Datetime(_) => {}
        }
    }
    let table: toml::Table = text.parse().ok()?;
    let project = table.get("project");
    let lists = [
        project.and_then(|it| it.get("dependencies")),
        project.and_then(|it| it.get("optional-dependencies")),
        table.get("dependency-groups"),
        table.get("build-system").and_then(|it| it.get("requires")),
    ];
    let mut all = Vec::new();
    for list in lists.into_iter().flatten() {
        texts(list, &mut all);
    }
    let mut names: Names = all.into_iter().filter_map(requirement).collect();
    names.extend(tables(text, |path| match path {
        ["tool", "poetry", rest @ ..] => {
            rest.last().is_some_and(|name| name.ends_with("dependencies"))
        }
        _ => false,
    })?);
    Some(names)
}

/// The name in a line such as `requests[socks]>=2 ; python_version < "3"`.
fn requirement(line: &str) -> Option<String> {
    let line = line.trim();
    if line.contains("://") {
        let address = line.split_whitespace().find(|word| word.contains("://"))?;
        return Some(format!(
            "{} ({address})",
            line.split([' ', '@', '+']).next().unwrap_or_default()
        ));
    }
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let end = line.find(|c| !is_of_name(c)).unwrap_or(line.len());
    let name = &line[..end];
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    begins.then(|| name.to_ascii_lowercase().replace(['_', '.'], "-"))
}

fn json(text: &str, fields: &[&str]) -> Option<Names> {
    let value: Value = serde_json::from_str(text).ok()?;
    let objects = fields.iter().filter_map(|field| value.get(field)?.as_object());
    let entry = |(name, value): (&String, &Value)| match value.as_str() {
        Some(from) if from.contains([':', '/']) => format!("{name} ({from})"),
        Some(_) | None => name.clone(),
    };
    Some(objects.flat_map(|it| it.iter().map(entry)).collect())
}

/// The modules that `require` names, in a block or on a line, and those that `replace` puts in their place.
fn go(text: &str) -> Names {
    let mut names = Names::new();
    let mut block = "";
    for line in text.lines() {
        let line = line.replace('(', " ( ");
        let mut words = line.split_whitespace();
        let Some(first) = words.next().filter(|word| !word.starts_with("//")) else { continue };
        let (kind, name) = match (block, first) {
            ("", "require" | "replace") => (first, words.next()),
            ("", _) => continue,
            (_, ")") => {
                block = "";
                continue;
            }
            (open, name) => (open, Some(name)),
        };
        match name {
            Some("(") => block = if kind == "replace" { "replace" } else { "require" },
            Some(name) if kind == "replace" => {
                names.insert(format!("{name} ({})", words.collect::<Vec<_>>().join(" ")));
            }
            Some(name) => {
                names.insert(name.to_owned());
            }
            None => {}
        }
    }
    names
}

/// The first quoted text of each line that begins with one of the words, without a version after the second colon.
fn by_word(text: &str, words: &[&str]) -> Names {
    let line = |line: &str| {
        let line = line.trim_start();
        let word: String = line.chars().take_while(char::is_ascii_alphanumeric).collect();
        let rest = words.contains(&word.as_str()).then(|| &line[word.len()..])?;
        let mut quoted = rest.split(['"', '\'']);
        let name = quoted.nth(1)?;
        let parts: Vec<&str> = name.split(':').take(2).collect();
        Some(parts.join(":")).filter(|name| !name.is_empty())
    };
    text.lines().filter_map(line).collect()
}

fn pom(text: &str) -> Option<Names> {
    let document = roxmltree::Document::parse(text).ok()?;
    let found = document.descendants().filter(|node| node.has_tag_name_local("dependency"));
    let part = |node: roxmltree::Node<'_, '_>, name: &str| {
        let child = node.children().find(|child| child.has_tag_name_local(name))?;
        Some(child.text()?.trim().to_owned())
    };
    let named = found.filter_map(|node| {
        Some(format!("{}:{}", part(node, "groupId")?, part(node, "artifactId")?))
    });
    Some(named.collect())
}

/// Tags by their name, whatever their namespace.
trait LocalName {
    fn has_tag_name_local(&self, name: &str) -> bool;
}

impl LocalName for roxmltree::Node<'_, '_> {
    fn has_tag_name_local(&self, name: &str) -> bool {
        self.tag_name().name() == name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn names(file: &str, text: &str, expected: &[&str]) {
        let found = dependencies(file, text.as_bytes()).expect("a manifest");
        assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), expected, "{file}");
    }

    #[test]
    fn what_manifests_name() {
        names(
            "Cargo.toml",
            "[package]\nname = \"a\"\n[dependencies]\nserde = \"1\"\n[dependencies.regex]\nversion = \"1\"\n\
             [target.'cfg(unix)'.dev-dependencies]\nlibc = \"0.2\"\n[workspace.dependencies]\nlog = \"0.4\"\n",
            &["libc", "log", "regex", "serde"],
        );
        names(
            "pyproject.toml",
            "[build-system]\nrequires = [\"hatchling\"]\n[project]\ndependencies = [\"Requests[socks]>=2\", \"click\"]\n\
             [project.optional-dependencies]\nx = [\"typing_extensions; python_version < '3.11'\"]\n\
             [tool.poetry.group.dev.dependencies]\npytest = \"*\"\n",
            &["click", "hatchling", "pytest", "requests", "typing-extensions"],
        );
        names(
            "package.json",
            "{\"name\": \"x\", \"dependencies\": {\"left-pad\": \"1\"}, \"devDependencies\": {\"@a/b\": \"2\"}}",
            &["@a/b", "left-pad"],
        );
        names("requirements-dev.txt", "# tools\n-r base.txt\nsix==1.16.0\n\n", &["six"]);
        names(
            "go.mod",
            "module x\n\nrequire github.com/a/b v1.0.0\n\nrequire (\n\t// why\n\tgolang.org/x/c v0.1.0 // indirect\n)\n",
            &["github.com/a/b", "golang.org/x/c"],
        );
        names(
            "go.mod",
            "require(\n\ta.b/c v1\n)\nreplace a.b/c => ../c\n",
            &["a.b/c", "a.b/c (=> ../c)"],
        );
        names(
            "Cargo.toml",
            "[dependencies]\na = {git = \"https://x\"}\n[patch.crates-io]\nb = {path = \"../b\"}\n",
            &["a (git https://x)", "b (path ../b)"],
        );
        names("requirements.txt", "pip @ https://x/pip.whl\n", &["pip (https://x/pip.whl)"]);
        names(
            "package.json",
            "\u{feff}{\"overrides\": {\"a\": \"file:../a\"}}",
            &["a (file:../a)"],
        );
        names("Gemfile", "source \"https://x\"\ngem 'rails', '~> 7'\n", &["rails"]);
        names(
            "build.gradle.kts",
            "dependencies {\n    implementation(\"com.a:b:1.0\")\n    apiary(\"no\")\n}\n",
            &["com.a:b"],
        );
        names(
            "pom.xml",
            "<project xmlns=\"urn:x\"><dependencies><dependency><groupId>g</groupId><artifactId>a</artifactId>\
             </dependency></dependencies></project>",
            &["g:a"],
        );
    }

    #[test]
    fn what_does_not_read_is_no_manifest_without_dependencies() {
        assert_eq!(dependencies("main.rs", b"gem 'x'"), None);
        names("Cargo.toml", "[dependencies", &[UNREADABLE]);
        assert_eq!(dependencies("package.json", b"[]"), Some(Names::new()));
        let utf_16 = dependencies("requirements.txt", b"\xff\xfee\0v\0i\0l\0");
        assert_eq!(utf_16, Some([UNREADABLE.to_owned()].into()));
    }
}
