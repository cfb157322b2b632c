//! The other paths by which what lies in a tree is reached, through the links that the tree holds.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Component, Path, PathBuf};

use git2::{Oid, Repository};

use super::tracked::{Tracked, as_path};

const MODE_LINK: u32 = 0o120_000;
/// Links in a row that Linux follows.
const HOPS: usize = 40;
/// Names of one path that are looked for: links may stand behind links.
const NAMES: usize = 1_000;

/// The links of a tree, by where they lead.
#[derive(Default)]
pub(super) struct Links {
    ends: BTreeMap<PathBuf, Vec<PathBuf>>,
    /// The ends, and the links that stand in the way to them.
    places: BTreeMap<PathBuf, Vec<PathBuf>>,
}

impl Links {
    /// The links of a tree.
    pub(super) fn of(repository: &Repository, tree: &Tracked) -> Links {
        let target = |id: Oid| Some(as_path(repository.find_blob(id).ok()?.content()).to_owned());
        let links = tree.iter().filter(|(_, (_, mode))| *mode == MODE_LINK);
        let read = |(path, (id, _)): (&Vec<u8>, &(Oid, u32))| {
            Some((as_path(path).to_owned(), target(*id)?))
        };
        Links::between(&links.filter_map(read).collect())
    }

    fn between(targets: &BTreeMap<PathBuf, PathBuf>) -> Links {
        let mut links = Links::default();
        for link in targets.keys() {
            let way = way(link, targets);
            if let Some(end) = way.last().filter(|end| *end != link) {
                links.ends.entry(end.clone()).or_default().push(link.clone());
            }
            for place in way.into_iter().filter(|place| place != link) {
                links.places.entry(place).or_default().push(link.clone());
            }
        }
        links
    }

    /// The other paths by which a path is reached, through no link twice, or would be if it were what a link leads to;
    /// `None` where there are too many to name.
    pub(super) fn names(&self, path: &Path) -> Option<BTreeSet<PathBuf>> {
        let mut names = BTreeSet::new();
        let mut left = VecDeque::from([(path.to_owned(), Vec::<&Path>::new())]);
        while let Some((path, passed)) = left.pop_front() {
            let above = path.ancestors().filter_map(|at| Some((path.strip_prefix(at).ok()?, at)));
            let through = above.filter_map(|(rest, at)| Some((rest, self.ends.get(at)?)));
            let mut found: Vec<(PathBuf, &Path)> = through
                .flat_map(|(rest, links)| {
                    links.iter().map(move |link| (under(link, rest), &**link))
                })
                .collect();
            // It stands in the way of what a link leads to.
            let places = self.places.range(path.clone()..);
            let places = places.take_while(|(place, _)| place.starts_with(&path));
            found.extend(places.flat_map(|(_, links)| links).map(|link| (link.clone(), &**link)));
            for (name, link) in found.into_iter().filter(|(_, link)| !passed.contains(link)) {
                if names.insert(name.clone()) {
                    left.push_back((name, [&passed[..], &[link]].concat()));
                }
            }
            if names.len() > NAMES {
                return None;
            }
        }
        names.remove(path);
        Some(names)
    }
}

fn under(link: &Path, rest: &Path) -> PathBuf {
    if rest.as_os_str().is_empty() { link.to_owned() } else { link.join(rest) }
}

/// The links that a link leads by, and where it ends; nothing where it leaves the tree or never ends.
fn way(link: &Path, targets: &BTreeMap<PathBuf, PathBuf>) -> Vec<PathBuf> {
    let mut places = Vec::new();
    let mut at = PathBuf::new();
    let mut left: VecDeque<Component<'_>> = link.components().collect();
    while let Some(part) = left.pop_front() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                if !at.pop() {
                    return Vec::new();
                }
            }
            Component::RootDir | Component::Prefix(_) => return Vec::new(),
            Component::Normal(name) => {
                at.push(name);
                if let Some(target) = targets.get(&at) {
                    places.push(at.clone());
                    if places.len() > HOPS {
                        return Vec::new();
                    }
                    at.pop();
                    for part in target.components().rev() {
                        left.push_front(part);
                    }
                }
            }
        }
    }
    places.push(at);
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_the_names_that_links_give_it() {
        let targets = [
            ("CLAUDE.md", "docs/team.md"),
            (".claude", "config/agent"),
            ("config", "settings/now"),
            ("settings/now/agent/skills", "../../../skills"),
            ("sub/up", ".."),
            ("round", "round"),
            ("out", "../elsewhere"),
            ("absolute", "/etc"),
        ];
        let targets = targets.map(|(link, target)| (link.into(), target.into())).into();
        let links = Links::between(&targets);
        let all = |path: &str| -> Vec<String> {
            let names = links.names(Path::new(path)).expect("few");
            names.iter().map(|name| name.display().to_string()).collect()
        };
        let names = |path: &str| -> Vec<String> {
            all(path).into_iter().filter(|name| !name.contains("sub/up")).collect()
        };
        assert_eq!(names("docs/team.md"), ["CLAUDE.md"]);
        assert_eq!(names("docs"), ["CLAUDE.md"], "it may be no folder any more");
        assert_eq!(names("docs/other.md"), [] as [&str; 0]);
        assert_eq!(
            names("settings/now/agent/a.json"),
            [".claude/a.json", "config/agent/a.json"],
            "a link in the way of a link"
        );
        assert_eq!(names("config"), [".claude"]);
        let skill = names("skills/one/SKILL.md");
        assert!(skill.contains(&".claude/skills/one/SKILL.md".to_owned()), "{skill:?}");
        assert_eq!(names("round"), [] as [&str; 0]);
        assert_eq!(all("a.txt"), ["sub/up/a.txt"], "a folder above the link");
        let many = (0..=NAMES).map(|n| (format!("a{n}").into(), "docs/team.md".into())).collect();
        assert_eq!(Links::between(&many).names(Path::new("docs/team.md")), None);
    }
}
