//! What is wrong with a plan, by rules alone. A fault keeps it from being used; a warning is for whoever approves it.

use std::collections::{BTreeMap, BTreeSet};

use super::graph;
use crate::domain::criterion::Criterion;
use crate::domain::ids::{PlanItemId, RequirementId};
use crate::domain::path_glob;
use crate::domain::plan::{Plan, PlanItem, PlanPart, PlanRule, RequirementTime};

/// What one commit can deliver and one person can review.
const MANY_CRITERIA: usize = 12;
const MOST_PATHS: usize = 15;
const MOST_SCOPE: usize = 8_000;
/// Ids that are written out in one sentence.
const NAMED: usize = 12;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanProblem {
    /// The rule.
    pub rule: PlanRule,
    /// Where.
    pub part: PlanPart,
    /// Where the other one is, where it is about two.
    pub other: Option<PlanPart>,
    /// What is wrong, in one sentence without its place.
    pub message: String,
    /// What to do.
    pub hint: String,
    /// The words that it is about, where it is about words.
    pub phrase: Option<&'static str>,
}

struct Problems(Vec<PlanProblem>);

impl Problems {
    fn add(&mut self, rule: PlanRule, part: PlanPart, message: String, hint: &str) {
        let hint = hint.to_owned();
        self.0.push(PlanProblem { rule, part, other: None, message, hint, phrase: None });
    }

    fn add_phrase(
        &mut self,
        (rule, part): (PlanRule, PlanPart),
        phrase: &'static str,
        message: String,
        hint: &str,
    ) {
        let (hint, phrase) = (hint.to_owned(), Some(phrase));
        self.0.push(PlanProblem { rule, part, other: None, message, hint, phrase });
    }
}

/// Everything that is wrong with a plan, in the order of its parts. What an item depends on may also be one of `known`:
/// items of other files of the same plan.
#[must_use]
pub fn check(plan: &Plan, known: &BTreeSet<PlanItemId>) -> Vec<PlanProblem> {
    let mut problems = Problems(Vec::new());
    if plan.items.is_empty() {
        let hint = "each thing that is to be delivered needs a heading or a row with an id";
        problems.add(PlanRule::NoItems, PlanPart::Whole, "the plan has no items".to_owned(), hint);
    }
    doubled(plan, &mut problems);
    let ids: BTreeSet<&PlanItemId> = plan.items.iter().map(|item| &item.id).collect();
    for (at, item) in plan.items.iter().enumerate() {
        criteria(at, item, &mut problems);
        dependencies(at, item, &ids, known, &mut problems);
        paths(at, item, &mut problems);
        size(at, item, &mut problems);
        weakening(at, item, &mut problems);
    }
    cycles(plan, &mut problems);
    requirements(plan, &mut problems);
    let bare = plan.items.iter().filter(|item| item.allowed_paths.is_empty());
    let bare: Vec<&str> = bare.map(|item| item.id.as_str()).collect();
    if !bare.is_empty() {
        let message = format!("no paths are declared by {}", listed(&bare));
        let hint = "items with paths in common are not worked on at the same time; without paths a collision shows only \
                    when the second one lands";
        problems.add(PlanRule::NoPaths, PlanPart::Whole, message, hint);
    }
    problems.0.sort_by_key(|problem| problem.part);
    problems.0
}

fn listed(ids: &[&str]) -> String {
    match ids.len().checked_sub(NAMED) {
        Some(more) if more > 0 => format!("{} and {more} more", ids[..NAMED].join(", ")),
        Some(_) | None => ids.join(", "),
    }
}

fn doubled(plan: &Plan, problems: &mut Problems) {
    let mut add = |part, first, id: &str| {
        problems.0.push(PlanProblem {
            rule: PlanRule::DoubledId,
            part,
            other: Some(first),
            message: format!("{id} stands twice"),
            hint: "give one of them another id".to_owned(),
            phrase: None,
        });
    };
    let mut items: BTreeMap<&PlanItemId, usize> = BTreeMap::new();
    for (at, item) in plan.items.iter().enumerate() {
        let first = *items.entry(&item.id).or_insert(at);
        if first != at {
            add(PlanPart::Item(at), PlanPart::Item(first), item.id.as_str());
        }
    }
    let mut requirements: BTreeMap<&RequirementId, usize> = BTreeMap::new();
    for (at, requirement) in plan.requirements.iter().enumerate() {
        let first = *requirements.entry(&requirement.id).or_insert(at);
        if first != at {
            add(PlanPart::Requirement(at), PlanPart::Requirement(first), requirement.id.as_str());
        }
    }
}

fn criteria(at: usize, item: &PlanItem, problems: &mut Problems) {
    if item.criteria.iter().all(Criterion::is_blank) && !item.done {
        let hint = "write at least one thing that can be seen to pass or fail when it is done";
        let message = format!("{} has no criterion", item.id);
        problems.add(PlanRule::NoCriterion, PlanPart::Item(at), message, hint);
    }
    // What a person looks at may be such that only a person sees it.
    let seen = item.criteria.iter().enumerate().filter(|(_, it)| !it.is_manual());
    for (number, criterion) in seen {
        if let Some(word) = phrase_in(&criterion.text, VAGUE) {
            let message =
                format!("{} C-{}: nobody can see whether it is \"{word}\"", item.id, number + 1);
            let hint =
                "say what can be observed: a command and its output, a number, a file, a message";
            let place = (PlanRule::Unseen, PlanPart::Criterion(at, number));
            problems.add_phrase(place, word, message, hint);
        }
    }
}

fn dependencies(
    at: usize,
    item: &PlanItem,
    ids: &BTreeSet<&PlanItemId>,
    known: &BTreeSet<PlanItemId>,
    problems: &mut Problems,
) {
    for (number, on) in item.depends_on.iter().enumerate() {
        if ids.contains(on) || known.contains(on) {
            continue;
        }
        let all = ids.iter().copied().chain(known);
        let nearest =
            nearest(on.as_str(), all.map(PlanItemId::as_str).filter(|id| *id != item.id.as_str()));
        let hint = nearest.map_or_else(
            || "take it away, or add the item".to_owned(),
            |nearest| format!("the nearest is {nearest}"),
        );
        let message = format!("{} depends on {on}, which is no item of the plan", item.id);
        problems.add(PlanRule::UnknownItem, PlanPart::Dependency(at, number), message, &hint);
    }
}

fn nearest<'t>(wrong: &str, all: impl Iterator<Item = &'t str>) -> Option<&'t str> {
    all.min_by_key(|id| strsim::damerau_levenshtein(&id.to_lowercase(), &wrong.to_lowercase()))
}

fn cycles(plan: &Plan, problems: &mut Problems) {
    // One after the other, each without the members of those before it.
    let mut edges: BTreeMap<PlanItemId, Vec<PlanItemId>> = BTreeMap::new();
    for item in &plan.items {
        edges.entry(item.id.clone()).or_default().extend(item.depends_on.iter().cloned());
    }
    let mut left: Vec<(PlanItemId, Vec<PlanItemId>)> = edges.into_iter().collect();
    while let Some(around) = graph::cycle(&left) {
        let at = plan.items.iter().position(|item| around.contains(&item.id)).unwrap_or(0);
        let mut names: Vec<&str> = around.iter().map(PlanItemId::as_str).collect();
        names.extend(around.first().map(PlanItemId::as_str));
        let message = format!("a cycle: {}", names.join(" → "));
        let hint = "none of them could begin; take one of these dependencies away";
        problems.add(PlanRule::Cycle, PlanPart::Item(at), message, hint);
        left.retain(|(id, _)| !around.contains(id));
    }
}

fn paths(at: usize, item: &PlanItem, problems: &mut Problems) {
    let all = item.allowed_paths.iter().chain(&item.excluded_paths);
    for (number, path) in all.enumerate() {
        let Some(wrong) = path_glob::fault(path) else { continue };
        let message = format!("{}: the path \"{}\" {wrong}", item.id, path.escape_debug());
        let hint = "paths are relative to the project's root, with `/`, such as `src/**`";
        problems.add(PlanRule::OutsidePath, PlanPart::Path(at, number), message, hint);
    }
    if let Some(both) = item.allowed_paths.iter().find(|path| item.excluded_paths.contains(path)) {
        let message = format!("{}: \"{both}\" is allowed and excluded", item.id);
        let hint = "it counts as excluded; take it away from one of the two";
        problems.add(PlanRule::ContradictingPath, PlanPart::Item(at), message, hint);
    }
}

fn size(at: usize, item: &PlanItem, problems: &mut Problems) {
    let long = item.scope.chars().count();
    let said = if item.criteria.len() > MANY_CRITERIA {
        format!("{} criteria, where {MANY_CRITERIA} are a lot for one commit", item.criteria.len())
    } else if item.allowed_paths.len() > MOST_PATHS {
        format!("{} paths, where {MOST_PATHS} are a lot for one commit", item.allowed_paths.len())
    } else if long > MOST_SCOPE {
        format!("{long} characters of scope, where {MOST_SCOPE} are a lot for one commit")
    } else {
        return;
    };
    let message = format!("{} has {said}", item.id);
    problems.add(PlanRule::Size, PlanPart::Item(at), message, "split it into items of their own");
}

fn weakening(at: usize, item: &PlanItem, problems: &mut Problems) {
    let texts = std::iter::once((PlanPart::Item(at), item.scope.as_str()));
    let criteria = item.criteria.iter().enumerate();
    let criteria = criteria.map(|(number, it)| (PlanPart::Criterion(at, number), it.text.as_str()));
    for (part, text) in texts.chain(criteria) {
        if let Some(word) = phrase_in(text, WEAK) {
            let message = format!("{}: \"{word}\" promises less than the thing itself", item.id);
            let hint = "deliver it, or make what is left out an item or a requirement for later";
            problems.add_phrase((PlanRule::Weakening, part), word, message, hint);
        }
    }
}

fn requirements(plan: &Plan, problems: &mut Problems) {
    let mut covered: BTreeSet<&RequirementId> = BTreeSet::new();
    for (at, item) in plan.items.iter().enumerate() {
        for id in &item.requirements {
            if plan.requirements.iter().any(|requirement| requirement.id == *id) {
                covered.insert(id);
                continue;
            }
            let all = plan.requirements.iter().map(|requirement| requirement.id.as_str());
            let hint = nearest(id.as_str(), all).map_or_else(
                || "the plan has no requirements; take it away".to_owned(),
                |nearest| format!("the nearest is {nearest}"),
            );
            let message = format!("{} serves {id}, which is no requirement of the plan", item.id);
            problems.add(PlanRule::UnknownRequirement, PlanPart::Item(at), message, &hint);
        }
    }
    let now = |when| when == RequirementTime::Now;
    if covered.is_empty() && plan.requirements.iter().any(|requirement| now(requirement.when)) {
        let message = "no item says which requirement it serves".to_owned();
        let hint = "name them at the items, so that what nobody delivers can be seen";
        return problems.add(PlanRule::UncoveredRequirement, PlanPart::Whole, message, hint);
    }
    for (at, requirement) in plan.requirements.iter().enumerate() {
        if now(requirement.when) && !covered.contains(&requirement.id) {
            let message = format!("no item serves {}", requirement.id);
            let hint = "name it at an item, or say that it is for later or out of scope";
            let part = PlanPart::Requirement(at);
            problems.add(PlanRule::UncoveredRequirement, part, message, hint);
        }
    }
}

/// Words by which an item promises less than it says.
const WEAK: &[&str] = &[
    "for now",
    "placeholder",
    "placeholders",
    "stub",
    "stubbed",
    "dummy data",
    "hard-coded for",
    "hardcoded for",
    "static data",
    "mocked for",
    "to be done later",
    "will be added later",
    "in a later version",
    "temporary workaround",
    "임시로",
    "일단은",
    "나중에 추가",
    "추후 구현",
    "더미 데이터",
    "하드코딩",
];

/// Words in a criterion that nobody can see.
const VAGUE: &[&str] = &[
    "works well",
    "works correctly",
    "works properly",
    "works as expected",
    "works fine",
    "as expected",
    "user-friendly",
    "user friendly",
    "intuitive",
    "clean code",
    "high quality",
    "good performance",
    "performs well",
    "looks good",
    "looks nice",
    "is robust",
    "is maintainable",
    "잘 동작",
    "정상적으로 동작",
    "적절히",
    "사용하기 쉽",
    "보기 좋",
];

/// The first of the phrases that stands in the text: whole words in English, and any place in Korean, whose words take
/// endings.
pub(in crate::engine) fn phrase_in<'p>(text: &str, phrases: &[&'p str]) -> Option<&'p str> {
    let text = text.to_lowercase();
    phrases.iter().copied().find(|phrase| {
        text.match_indices(phrase).any(|(at, found)| {
            let is_word = |c: char| c.is_ascii_alphanumeric();
            let before = text[..at].chars().next_back().is_some_and(is_word);
            let after = text[at + found.len()..].chars().next().is_some_and(is_word);
            !before && !after
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(id: &str) -> PlanItem {
        let mut item = PlanItem::new(PlanItemId::parse(id).unwrap(), id);
        item.criteria = vec!["`make test` prints 3 passed".into()];
        item.allowed_paths = vec![format!("src/{id}/**")];
        item
    }

    fn ids(of: &[&str]) -> Vec<PlanItemId> {
        of.iter().map(|id| PlanItemId::parse(id).unwrap()).collect()
    }

    fn requirement(id: &str, when: RequirementTime) -> crate::domain::plan::Requirement {
        let id = RequirementId::parse(id).unwrap();
        crate::domain::plan::Requirement { text: id.to_string(), id, when }
    }

    fn found(plan: &Plan) -> Vec<(PlanRule, String)> {
        let all = check(plan, &BTreeSet::new());
        all.into_iter().map(|it| (it.rule, format!("{} | {}", it.message, it.hint))).collect()
    }

    fn of(items: Vec<PlanItem>) -> Plan {
        Plan { title: "t".to_owned(), requirements: Vec::new(), items }
    }

    #[test]
    fn a_plan_that_holds_together_has_no_findings() {
        let mut second = item("B");
        second.depends_on = ids(&["A"]);
        assert_eq!(found(&of(vec![item("A"), second])), []);
    }

    #[test]
    fn every_rule_names_what_it_is_about() {
        let with = |change: &dyn Fn(&mut PlanItem)| {
            let mut second = item("EPIC-2");
            change(&mut second);
            found(&of(vec![item("EPIC-1"), second]))
        };
        type Case = (PlanRule, &'static str, Vec<(PlanRule, String)>);
        let cases: [Case; 12] = [
            (PlanRule::NoItems, "no items", found(&of(Vec::new()))),
            (
                PlanRule::NoCriterion,
                "EPIC-2 has no criterion",
                with(&|it| it.criteria = vec![" ".into()]),
            ),
            (
                PlanRule::DoubledId,
                "EPIC-1 stands twice",
                with(&|it| it.id = ids(&["EPIC-1"]).remove(0)),
            ),
            (
                PlanRule::UnknownItem,
                "the nearest is EPIC-1",
                with(&|it| it.depends_on = ids(&["EPIC-11"])),
            ),
            (PlanRule::Cycle, "EPIC-2 → EPIC-2", with(&|it| it.depends_on = ids(&["EPIC-2"]))),
            (
                PlanRule::OutsidePath,
                "leaves the project",
                with(&|it| it.allowed_paths = vec!["a/../..".to_owned()]),
            ),
            (
                PlanRule::OutsidePath,
                "below the project",
                with(&|it| it.excluded_paths = vec!["/etc".to_owned()]),
            ),
            (
                PlanRule::Weakening,
                "\"for now\"",
                with(&|it| it.scope = "Static, for now.".to_owned()),
            ),
            (PlanRule::Unseen, "C-1", with(&|it| it.criteria = vec!["It works well".into()])),
            (PlanRule::Size, "13 criteria", with(&|it| it.criteria = vec!["c".into(); 13])),
            (PlanRule::NoPaths, "declared by EPIC-2", with(&|it| it.allowed_paths.clear())),
            (
                PlanRule::ContradictingPath,
                "allowed and excluded",
                with(&|it| it.excluded_paths.clone_from(&it.allowed_paths)),
            ),
        ];
        for (rule, words, found) in cases {
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!(found[0].0, rule);
            assert!(found[0].1.contains(words), "{found:?}");
        }
    }

    #[test]
    fn words_that_only_look_weak_are_left_alone() {
        let mut plain = item("A");
        plain.scope = "Stubbornness: an event for nowhere, and a holder for places".to_owned();
        assert_eq!(found(&of(vec![plain])), []);
    }

    #[test]
    fn r_1_is_not_r_10() {
        let mut plan = of(vec![item("A")]);
        plan.items[0].requirements = vec![RequirementId::parse("R-10").unwrap()];
        plan.requirements = ["R-1", "R-10"].map(|id| requirement(id, RequirementTime::Now)).into();
        plan.requirements.push(requirement("R-2", RequirementTime::Later));
        let uncovered = found(&plan);
        assert_eq!(uncovered.len(), 1, "{uncovered:?}");
        assert!(uncovered[0].1.starts_with("no item serves R-1 |"), "{uncovered:?}");
        plan.items[0].requirements = vec![RequirementId::parse("R-11").unwrap()];
        assert!(found(&plan).iter().any(|it| it.1.contains("the nearest is R-1")));
    }

    #[test]
    fn two_cycles_are_two_findings_by_their_members() {
        let after = |id: &str, on: &[&str]| {
            let mut item = item(id);
            item.depends_on = ids(on);
            item
        };
        let plan = of(vec![
            after("A", &["B"]),
            after("B", &["A"]),
            after("C", &["D"]),
            after("D", &["E"]),
            after("E", &["C", "A"]),
        ]);
        let all: Vec<String> = found(&plan).into_iter().map(|it| it.1).collect();
        assert_eq!(all.len(), 2, "{all:?}");
        assert!(all[0].contains("A → B → A") && all[1].contains("C → D → E → C"), "{all:?}");
    }

    #[test]
    fn items_of_other_files_may_be_named() {
        let mut plan = of(vec![item("01-02")]);
        plan.items[0].depends_on = ids(&["01-01"]);
        assert_eq!(check(&plan, &ids(&["01-01"]).into_iter().collect()), []);
    }
}
