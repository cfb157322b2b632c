//! A plan that a person brought becomes items of the backlog. The same plan again changes nothing; a newer version
//! shows its difference and counts when a person has approved exactly it. What is under way is never changed.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::check;
use crate::domain::actor::Actor;
use crate::domain::ids::{ItemId, PlanId, PlanItemId};
use crate::domain::item::{GAVE_UP, Item, ItemKind, ItemSource, ItemStatus};
use crate::domain::modes::StartMode;
use crate::domain::plan::{Plan, PlanItem, PlanRef, Severity, StoredPlan};
use crate::domain::word::words;
use crate::engine::decision::Answer;
use crate::engine::say;
use crate::engine::sprint;
use crate::engine::turn::Turn;

/// Faults that one answer tells.
const FAULTS: usize = 10;
/// Letters of a digest that people see, and the fewest that name one.
const DIGEST: usize = 12;
const FEWEST: usize = 7;
/// What the line of an item's words is called that tells its estimate.
const ESTIMATES: [&str; 2] = ["estimate", "effort"];
/// Characters of a title.
const TITLE: usize = 200;

words! {
    /// How an item of a newer version differs.
    enum Difference {
        /// It is new.
        Added = "added",
        /// It says something else.
        Changed = "changed",
        /// It is not there any more.
        Removed = "removed",
    }
}

/// Takes in a plan for whoever may.
pub(in crate::engine) fn import(
    turn: &mut Turn<'_>,
    actor: &Actor,
    id: &PlanId,
    plan: Plan,
    approve: Option<&str>,
) -> Answer {
    let language = turn.policy.language;
    let refused = |key, values| Answer::Refused(say::content(key, language, values));
    let by = match sprint::commands::may(turn, actor) {
        Ok(granted) => granted.name(),
        Err((key, values)) => return refused(key, values),
    };
    let stored = turn.stored_plan(id).cloned();
    let others = turn.before().plans.values().filter(|other| other.plan_id != *id);
    let elsewhere = others.flat_map(|other| &other.plan.items).map(|item| item.id.clone());
    let problems = check::check(&plan, &elsewhere.collect()).into_iter();
    let faults = problems.filter(|problem| problem.rule.severity() == Severity::Fault);
    let faults: Vec<String> = faults.map(|problem| problem.message).take(FAULTS).collect();
    if !faults.is_empty() {
        return refused("plan.refused", json!({ "plan_id": id.as_str(), "faults": faults }));
    }
    let digest = plan.digest();
    let approval =
        stored.as_ref().map_or_else(|| digest.clone(), |stored| stored.approval_of(&digest));
    let version = stored.as_ref().map_or(1, |stored| stored.version + 1);
    let open = OpenItems::of(turn);
    let old = stored.as_ref().map(|stored| &stored.plan);
    let mut differences = differences(old, &plan);
    // Another estimate, rank or order is nothing new for what is not waiting.
    differences.retain(|(how, item)| {
        let is_same = matches!(how, Difference::Changed) && is_same_work(old, item);
        !is_same || open.of_plan(id, &item.id).any(|(_, held)| !held)
    });
    let told = differences.iter().map(|(how, item)| {
        json!({
            "how": how,
            "item_id": item.id.as_str(),
            "title": item.title,
            "under_way": open.of_plan(id, &item.id).any(|(_, held)| held),
        })
    });
    let values = json!({
        "plan_id": id.as_str(),
        "title": plan.title,
        "version": version,
        "digest": &approval[..DIGEST],
        "differences": told.collect::<Vec<Value>>(),
        "unknown_checks": unknown_checks(&plan, &turn.policy.check_names),
        "by_itself": turn.policy.sprint.start_mode == StartMode::Auto,
    });
    let said = |key, result: &str| {
        let mut values = values.clone();
        values["result"] = json!(result);
        Answer::Say(say::content(key, language, values))
    };
    if stored.is_none() && approve.is_some() {
        return refused("plan.not_known", values);
    }
    if let Some(stored) = &stored {
        if stored.digest == digest {
            return said("plan.unchanged", "unchanged");
        }
        match approve {
            None => return said("plan.difference", "difference"),
            Some(approve) if approve.len() < FEWEST || !approval.starts_with(approve) => {
                return refused("plan.other_digest", values);
            }
            Some(_) => {}
        }
    }
    queue(turn, id, (old, &plan), version, &differences, open);
    let (plan_id, imported_at, imported_by) = (id.clone(), turn.now, by);
    turn.put_plan(StoredPlan { plan_id, version, digest, plan, imported_at, imported_by });
    said("plan.imported", "imported")
}

/// What a newer version adds, changes and leaves out; everything is new where there is no older one.
fn differences(old: Option<&Plan>, new: &Plan) -> Vec<(Difference, PlanItem)> {
    let before = |item: &PlanItem| old.and_then(|old| old.item(&item.id));
    // What is left out comes first: of many differences a card shows the beginning.
    let gone = old.iter().flat_map(|old| &old.items).filter(|item| new.item(&item.id).is_none());
    let mut all: Vec<(Difference, PlanItem)> =
        gone.map(|item| (Difference::Removed, item.clone())).collect();
    for item in &new.items {
        match before(item) {
            None => all.push((Difference::Added, item.clone())),
            Some(before) if before != item => all.push((Difference::Changed, item.clone())),
            Some(_) => {}
        }
    }
    all
}

/// The checks that criteria name, and that are not configured.
fn unknown_checks<'p>(plan: &'p Plan, checks: &[String]) -> BTreeSet<&'p str> {
    let criteria = plan.items.iter().flat_map(|item| &item.criteria);
    criteria.filter_map(|it| it.unknown_check(checks)).collect()
}

/// Whether an item differs from what it was by its estimate alone.
fn only_estimate_differs(old: Option<&Plan>, item: &PlanItem) -> bool {
    let before = old.and_then(|old| old.item(&item.id));
    before.is_some_and(|before| without_estimate(before) == without_estimate(item))
}

/// Whether an item differs from what it was by nothing that says what it delivers.
fn is_same_work(old: Option<&Plan>, item: &PlanItem) -> bool {
    let work = |item: &PlanItem| PlanItem {
        priority_rank: 0,
        depends_on: Vec::new(),
        ..without_estimate(item)
    };
    old.and_then(|old| old.item(&item.id)).is_some_and(|before| work(before) == work(item))
}

/// An item without its estimate, which stands in its words as well.
fn without_estimate(item: &PlanItem) -> PlanItem {
    let is_estimate = |line: &str| {
        let label = line.split_once(':').map(|(label, _)| label.trim().to_lowercase());
        label.is_some_and(|label| ESTIMATES.contains(&label.as_str()))
    };
    let words = item.scope.lines().filter(|line| !is_estimate(line));
    let scope = words.collect::<Vec<&str>>().join("\n");
    PlanItem { effort: 0, scope, ..item.clone() }
}

/// The open items of the backlog that stand for items of plans, and whether each is under way. What changed while it was
/// under way has two: the one at work, and the one that waits; what was split has its pieces.
struct OpenItems(Vec<(PlanRef, Item, bool)>);

impl OpenItems {
    fn of(turn: &Turn<'_>) -> OpenItems {
        let items = turn.items().into_values();
        let of_plans = items.filter_map(|item| {
            let of = item.plan.as_ref().or(item.piece_of.as_ref())?;
            Some((of.clone(), item.clone(), sprint::is_in_work(turn, item)))
        });
        OpenItems(of_plans.collect())
    }

    fn of_plan(&self, plan: &PlanId, item: &PlanItemId) -> impl Iterator<Item = (&Item, bool)> {
        let mine = self.0.iter().filter(move |(of, ..)| of.plan_id == *plan && of.item_id == *item);
        mine.map(|(_, item, held)| (item, *held))
    }

    /// What stands for an item that another plan has: the plans of a roadmap's phases are files of their own.
    fn of_others(&self, plan: &PlanId, item: &PlanItemId) -> impl Iterator<Item = &Item> {
        let all = self.0.iter();
        let theirs = all.filter(move |(of, ..)| of.plan_id != *plan && of.item_id == *item);
        theirs.map(|(_, item, _)| item)
    }
}

/// Puts what is new or changed into the backlog, and takes out what was left out and has not begun.
fn queue(
    turn: &mut Turn<'_>,
    id: &PlanId,
    (old, plan): (Option<&Plan>, &Plan),
    version: u32,
    differences: &[(Difference, PlanItem)],
    mut open: OpenItems,
) {
    let mut queued: Vec<(&PlanItem, Item)> = Vec::new();
    for (how, item) in differences {
        let all = open.of_plan(id, &item.id).filter(|(_, held)| !held);
        let mut all: Vec<Item> = all.map(|(it, _)| it.clone()).collect();
        let is_split = all.iter().any(|it| it.piece_of.is_some());
        let waits_for_the_same = old
            .and_then(|old| old.item(&item.id))
            .is_some_and(|before| before.depends_on == item.depends_on);
        if is_split && *how == Difference::Changed && is_same_work(old, item) && waits_for_the_same
        {
            // The pieces of a split have estimates and ranks of their own.
            continue;
        }
        let pieces = all.split_off(all.len().min(1));
        let mut waits = all.pop();
        if let Some(first) = &mut waits {
            for piece in pieces {
                // The last piece has what people wrote for the whole.
                first.persons_criteria.extend(piece.persons_criteria.iter().cloned());
                sprint::hand_over_dependents(
                    turn,
                    &piece.backlog_id,
                    std::slice::from_ref(&first.backlog_id),
                );
                // Nothing is to wait for it any more.
                open.0.retain(|(_, item, _)| item.backlog_id != piece.backlog_id);
                drop_item(turn, piece, format!("version {version} of the plan {id} says it anew"));
            }
        }
        match (how, waits) {
            (Difference::Removed, Some(waits)) => {
                drop_item(turn, waits, format!("not in version {version} of the plan {id}"));
            }
            (Difference::Changed, Some(mut waits)) if only_estimate_differs(old, item) => {
                waits.effort = item.effort;
                waits.scope.clone_from(&item.scope);
                waits.updated_at = turn.now;
                turn.put_item(waits);
            }
            // Its author says that it is delivered.
            (Difference::Added | Difference::Changed, Some(waits)) if item.done => {
                let mut waits = taken_out(turn, waits, ItemStatus::Done);
                waits.status = ItemStatus::Done;
                waits.updated_at = turn.now;
                turn.put_item(waits);
            }
            (Difference::Added | Difference::Changed, waits) if !item.done => {
                let reference = PlanRef { plan_id: id.clone(), item_id: item.id.clone() };
                let is_new = waits.is_none();
                let before = old.and_then(|old| old.item(&item.id));
                let put = made(turn, reference.clone(), &plan.title, (before, item), waits);
                if is_new {
                    open.0.push((reference, put.clone(), false));
                }
                queued.push((item, put));
            }
            // What is under way or delivered stays as it is.
            (Difference::Removed | Difference::Added | Difference::Changed, _) => {}
        }
    }
    // What did not change waits as well for what is to be done anew.
    let anew: Vec<(PlanItemId, ItemId)> =
        queued.iter().map(|(item, put)| (item.id.clone(), put.backlog_id.clone())).collect();
    for item in &plan.items {
        let is_named = |id: &PlanItemId| item.depends_on.contains(id);
        let on: Vec<ItemId> =
            anew.iter().filter(|(id, _)| is_named(id)).map(|(_, put)| put.clone()).collect();
        let waiting = open.of_plan(id, &item.id).filter(|(_, held)| !held);
        let waiting = waiting.filter(|(it, _)| !anew.iter().any(|(_, put)| *put == it.backlog_id));
        for mut waits in waiting.map(|(it, _)| it.clone()).collect::<Vec<_>>() {
            let before = waits.depends_on.len();
            let on = on.iter().filter(|it| !waits.depends_on.contains(it)).cloned();
            let on: Vec<ItemId> = on.collect();
            waits.depends_on.extend(on);
            if waits.depends_on.len() > before {
                waits.updated_at = turn.now;
                turn.put_item(waits);
            }
        }
    }
    for (item, mut put) in queued {
        for on in &item.depends_on {
            let waited_for: Vec<&Item> = match plan.item(on) {
                Some(_) => open.of_plan(id, on).map(|(item, _)| item).collect(),
                None => open.of_others(id, on).collect(),
            };
            put.depends_on.extend(waited_for.into_iter().map(|item| item.backlog_id.clone()));
        }
        turn.put_item(put);
    }
}

/// An item that waits in a sprint is taken out of that.
fn taken_out(turn: &mut Turn<'_>, item: Item, becomes: ItemStatus) -> Item {
    if item.status != ItemStatus::Selected {
        return item;
    }
    sprint::release_todo(turn, &item.backlog_id, becomes);
    Item { todo: None, selected_in_sprint_id: None, planned_in_sprint_id: None, ..item }
}

fn drop_item(turn: &mut Turn<'_>, item: Item, reason: String) {
    let item = taken_out(turn, item, ItemStatus::Dropped);
    let (status, updated_at) = (ItemStatus::Dropped, turn.now);
    turn.put_item(Item { status, dropped_reason: reason, updated_at, ..item });
}

fn fresh_id(turn: &mut Turn<'_>) -> ItemId {
    let date = turn.today();
    loop {
        let id = turn.ids.backlog(&date);
        if turn.item(&id).is_none() && !turn.before().settled_items.contains_key(&id) {
            return id;
        }
    }
}

/// An item of the plan as one of the backlog: a new one, or the one that waits, changed.
fn made(
    turn: &mut Turn<'_>,
    plan: PlanRef,
    plan_title: &str,
    (before, item): (Option<&PlanItem>, &PlanItem),
    waits: Option<Item>,
) -> Item {
    let title = say::cut(&item.title, TITLE);
    let title = if title.is_empty() { item.id.to_string() } else { title };
    let id = match &waits {
        Some(waits) => waits.backlog_id.clone(),
        None => fresh_id(turn),
    };
    let mut put = Item::new(id, &title, &item.scope, ItemKind::Feature, turn.now);
    put.acceptance_criteria.clone_from(&item.criteria);
    if let Some(waits) = waits {
        // What a person wrote beside the plan stays.
        let of_plan = item.criteria.iter().chain(before.into_iter().flat_map(|it| &it.criteria));
        let of_plan: Vec<&str> = of_plan.map(|it| it.text.as_str()).collect();
        put.persons_criteria = waits.persons_criteria;
        put.persons_criteria.retain(|one| !of_plan.contains(&one.text.as_str()));
        put.acceptance_criteria.extend(put.persons_criteria.iter().cloned());
        put.carry_over_of = waits.carry_over_of;
        put.created_at = waits.created_at;
        put.kind = waits.kind;
        put.planned_in_sprint_id = waits.planned_in_sprint_id;
        put.origin = waits.origin;
        put.origin.remove(GAVE_UP);
        put.answers = waits.answers;
        put.artifacts = waits.artifacts;
        if waits.status == ItemStatus::Selected {
            // It waits in its sprint, with the new words.
            put.status = waits.status;
            put.selected_in_sprint_id = waits.selected_in_sprint_id;
            put.todo = waits.todo;
        }
    }
    put.source = ItemSource::User;
    put.milestone_title = say::cut(plan_title, TITLE);
    put.priority_rank = item.priority_rank;
    put.effort = item.effort;
    put.allowed_paths.clone_from(&item.allowed_paths);
    put.excluded_paths.clone_from(&item.excluded_paths);
    put.plan = Some(plan);
    if !item.requirements.is_empty() {
        let refs: Vec<String> = item.requirements.iter().map(ToString::to_string).collect();
        put.origin.set("requirement_refs", refs);
    }
    put
}
