//! Files of one module must not use each other in a circle: what two of them need of each other is a third.
//!
//! What a file uses follows from its `use` items and the paths in its code, through `pub use` to the file that
//! defines it. That a module declares or re-exports its files is no use of them.

#![expect(clippy::wildcard_enum_match_arm, reason = "most kinds of items do not matter here")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};

/// A module's path below the crate.
type Name = Vec<String>;

/// What the text of one file says; tests left aside.
#[derive(Default)]
struct File {
    /// Names that it defines.
    defines: BTreeSet<String>,
    /// Names that it imports, and where from.
    imports: BTreeMap<String, Name>,
    /// Of these the ones that it hands on.
    exports: BTreeSet<String>,
    /// Modules of which it takes or hands on everything.
    globs: Vec<Name>,
    /// Paths in its code, as written.
    paths: BTreeSet<Name>,
}

fn for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|it| {
        it.path().is_ident("cfg")
            && it.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
    })
}

/// A path as written, from the module where it stands; `None` for what is not ours.
fn absolute(module: &[String], written: &[String], children: &BTreeSet<String>) -> Option<Name> {
    let above = written.iter().take_while(|word| *word == "super").count();
    match written.first()?.as_str() {
        "crate" => Some(written[1..].to_vec()),
        "self" => Some([module, &written[1..]].concat()),
        "super" => {
            let rest = module.len().checked_sub(above)?;
            Some([&module[..rest], &written[above..]].concat())
        }
        word if children.contains(word) => Some([module, written].concat()),
        _ => None,
    }
}

struct Reader<'a> {
    module: &'a [String],
    children: BTreeSet<String>,
    /// How many modules within the file we are in.
    inside: usize,
    file: File,
}

impl Reader<'_> {
    /// A path as it would be written at the top of the file.
    fn at_top(&self, written: Name) -> Name {
        let above = written.iter().take_while(|word| *word == "super").count().min(self.inside);
        if above == 0 || written.get(above).is_some_and(|word| word == "super") {
            return written.into_iter().skip(above).collect();
        }
        ["self".to_owned()].into_iter().chain(written.into_iter().skip(above)).collect()
    }

    fn import(&mut self, tree: &syn::UseTree, before: &[String], exported: bool) {
        let with = |ident: &syn::Ident| [before, &[ident.to_string()]].concat();
        let (path, name) = match tree {
            syn::UseTree::Path(part) => {
                return self.import(&part.tree, &with(&part.ident), exported);
            }
            syn::UseTree::Group(group) => {
                return group.items.iter().for_each(|it| self.import(it, before, exported));
            }
            syn::UseTree::Glob(_) => {
                let before = self.at_top(before.to_vec());
                self.file.globs.extend(absolute(self.module, &before, &self.children));
                return;
            }
            syn::UseTree::Name(name) if name.ident == "self" => {
                (before.to_vec(), before.last().cloned().unwrap_or_default())
            }
            syn::UseTree::Name(name) => (with(&name.ident), name.ident.to_string()),
            syn::UseTree::Rename(name) => (with(&name.ident), name.rename.to_string()),
        };
        let path = self.at_top(path);
        if let Some(target) = absolute(self.module, &path, &self.children) {
            if exported {
                self.file.exports.insert(name.clone());
            }
            self.file.imports.insert(name, target);
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let (attributes, ident) = match item {
            syn::Item::Const(it) => (&it.attrs, Some(&it.ident)),
            syn::Item::Enum(it) => (&it.attrs, Some(&it.ident)),
            syn::Item::Fn(it) => (&it.attrs, Some(&it.sig.ident)),
            syn::Item::Mod(it) => (&it.attrs, Some(&it.ident)),
            syn::Item::Static(it) => (&it.attrs, Some(&it.ident)),
            syn::Item::Struct(it) => (&it.attrs, Some(&it.ident)),
            syn::Item::Trait(it) => (&it.attrs, Some(&it.ident)),
            syn::Item::Type(it) => (&it.attrs, Some(&it.ident)),
            syn::Item::Use(it) => {
                if !for_tests(&it.attrs) {
                    let exported = !matches!(it.vis, syn::Visibility::Inherited);
                    self.import(&it.tree, &[], exported);
                }
                return;
            }
            _ => return visit::visit_item(self, item),
        };
        if !for_tests(attributes) {
            self.file.defines.extend(ident.map(ToString::to_string));
            let inside = usize::from(matches!(item, syn::Item::Mod(_)));
            self.inside += inside;
            visit::visit_item(self, item);
            self.inside -= inside;
        }
    }

    /// Who may see an item is no use of them.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let written = path.segments.iter().map(|part| part.ident.to_string()).collect();
        self.file.paths.insert(self.at_top(written));
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        // The arguments of most macros are expressions; what is not is no path of ours either.
        let arguments = syn::punctuated::Punctuated::<syn::Expr, syn::Token![,]>::parse_terminated;
        if let Ok(arguments) = call.parse_body_with(arguments) {
            arguments.iter().for_each(|it| self.visit_expr(it));
        }
    }
}

fn read(module: &[String], text: &str) -> File {
    let parsed = syn::parse_file(text).unwrap();
    let children = parsed.items.iter().filter_map(|item| match item {
        syn::Item::Mod(it) if it.content.is_none() => Some(it.ident.to_string()),
        _ => None,
    });
    let mut reader =
        Reader { module, children: children.collect(), inside: 0, file: File::default() };
    reader.visit_file(&parsed);
    reader.file
}

/// The file that defines what a path names.
fn owner(files: &BTreeMap<Name, File>, path: &[String], steps: usize) -> Option<Name> {
    let at = (0..=path.len()).rev().find(|at| files.contains_key(&path[..*at]))?;
    let (module, rest) = path.split_at(at);
    let file = &files[module];
    let Some(name) = rest.first().filter(|name| steps > 0 && !file.defines.contains(*name)) else {
        return Some(module.to_vec());
    };
    if let Some(target) = file.imports.get(name) {
        return owner(files, &[target.as_slice(), &rest[1..]].concat(), steps - 1);
    }
    let defines = |it: &&Name| files.get(*it).is_some_and(|file| file.defines.contains(name));
    Some(file.globs.iter().find(defines).cloned().unwrap_or_else(|| module.to_vec()))
}

/// What each file uses of its own top-level module.
fn arrows(files: &BTreeMap<Name, File>) -> BTreeMap<&Name, BTreeSet<Name>> {
    let uses = |(module, file): (&'_ Name, &'_ File)| -> BTreeSet<Name> {
        let imported = file.imports.iter().filter(|(name, _)| !file.exports.contains(*name));
        let imported = imported.map(|(_, target)| target.clone());
        let written = file.paths.iter().filter_map(|path| {
            let (first, rest) = path.split_first()?;
            match file.imports.get(first) {
                Some(target) => Some([target.as_slice(), rest].concat()),
                None => absolute(module, path, &file.defines),
            }
        });
        let owners = imported.chain(written).filter_map(|path| owner(files, &path, 16));
        owners.filter(|it| it != module && it.first() == module.first()).collect()
    };
    files.iter().map(|it| (it.0, uses(it))).collect()
}

/// Each file from which the arrows lead back to it, with the arrows that do.
fn circles(files: &BTreeMap<Name, File>) -> BTreeMap<Name, BTreeSet<Name>> {
    let arrows = arrows(files);
    let reached = |from: &Name| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(at) = next.pop() {
            let new = arrows.get(&at).into_iter().flatten().filter(|to| seen.insert((*to).clone()));
            next.extend(new.cloned().collect::<Vec<_>>());
        }
        seen
    };
    let reach: BTreeMap<&Name, BTreeSet<Name>> =
        arrows.keys().map(|name| (*name, reached(name))).collect();
    let back = |name: &Name| -> BTreeSet<Name> {
        arrows[name].iter().filter(|to| reach[*to].contains(name)).cloned().collect()
    };
    let all = arrows.keys().map(|name| ((*name).clone(), back(name)));
    all.filter(|(_, back)| !back.is_empty()).collect()
}

fn sources(folder: &Path, module: &[String], into: &mut BTreeMap<Name, File>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path: PathBuf = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        let is_rust = path.extension().is_some_and(|it| it == "rs");
        if stem == "tests" || stem.ends_with("_tests") || ["lib", "main"].contains(&stem.as_str()) {
            continue;
        }
        let name = if stem == "mod" { module.to_vec() } else { [module, &[stem]].concat() };
        if path.is_dir() {
            sources(&path, &name, into);
        } else if is_rust {
            let text = std::fs::read_to_string(&path).unwrap();
            into.insert(name.clone(), read(&name, &text));
        }
    }
}

#[test]
fn files_form_no_circles() {
    let mut files = BTreeMap::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &[], &mut files);
    assert!(files.len() > 400, "the sources were not found");
    let found = circles(&files);
    let lines: Vec<String> = found
        .iter()
        .map(|(name, to)| {
            let to: Vec<String> = to.iter().map(|name| name.join("::")).collect();
            format!("{} uses {}", name.join("::"), to.join(", "))
        })
        .collect();
    assert!(lines.is_empty(), "files that use each other in a circle:\n  {}", lines.join("\n  "));
}

#[test]
fn a_circle_is_found_through_what_is_handed_on() {
    let name = |path: &str| -> Name { path.split("::").map(str::to_owned).collect() };
    let of = |texts: &[(&str, &str)]| -> Vec<String> {
        let read = |(path, text): &(&str, &str)| (name(path), read(&name(path), text));
        let files = texts.iter().map(read).collect();
        circles(&files).keys().map(|name| name.join("::")).collect()
    };
    let parent = ("a", "mod b; mod c; pub use b::B; pub use c::C;");
    let b = ("a::b", "use super::C; pub(super) struct B(C);");
    assert_eq!(of(&[parent, b, ("a::c", "pub struct C;")]), [""; 0]);
    let back = ("a::c", "pub struct C; fn f() { println!(\"{}\", super::B::new()); }");
    assert_eq!(of(&[parent, b, back]), ["a::b", "a::c"]);
    let back = ("a::c", "pub struct C; #[cfg(test)] mod tests { use crate::a::B; }");
    assert_eq!(of(&[parent, b, back]), [""; 0]);
    let inner = ("a::b", "pub struct B; mod c { use super::B; }");
    assert_eq!(of(&[parent, inner, ("a::c", "pub struct C;")]), [""; 0]);
    let own = ("a", "mod b; pub const X: u8 = 1; fn f() { b::run(); }");
    assert_eq!(of(&[own, ("a::b", "use super::X; pub fn run() {}")]), ["a", "a::b"]);
    assert_eq!(of(&[own, ("a::b", "use crate::d::X; pub fn run() {}")]), [""; 0]);
}
