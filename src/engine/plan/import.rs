//! A plan that a person brought becomes items of the backlog. The same plan again changes nothing; a newer version
//! shows its difference and counts when a person has approved exactly it. What is under way is never changed.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::check;
use crate::domain::actor::Actor;
use crate::domain::backlog::{BacklogItem, BacklogKind, BacklogSource, BacklogStatus};
use crate::domain::ids::{BacklogId, PlanId, PlanItemId};
use crate::domain::plan::{Plan, PlanItem, PlanRef, Severity, StoredPlan};
use crate::engine::decision::Answer;
use crate::engine::say;
use crate::engine::sprint;
use crate::engine::turn::Turn;

/// Faults that one answer tells.
const FAULTS: usize = 10;
/// Letters of a digest that people see, and the fewest that name one.
const DIGEST: usize = 12;
const FEWEST: usize = 7;
/// Characters of a title.
const TITLE: usize = 200;

/// How an item of a newer version differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Difference {
    Added,
    Changed,
    Removed,
}

impl Difference {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Changed => "changed",
            Self::Removed => "removed",
        }
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
    let elsewhere = elsewhere(turn, id);
    let findings = check::check(&plan, &elsewhere.keys().cloned().collect()).into_iter();
    let faults = findings.filter(|finding| finding.rule.severity() == Severity::Fault);
    let faults: Vec<String> = faults.map(|finding| finding.message).take(FAULTS).collect();
    if !faults.is_empty() {
        return refused("plan.refused", json!({ "plan_id": id.as_str(), "faults": faults }));
    }
    let digest = plan.digest();
    let differences = differences(stored.as_ref().map(|stored| &stored.plan), &plan);
    let values = json!({
        "plan_id": id.as_str(),
        "title": plan.title,
        "version": stored.as_ref().map_or(1, |stored| stored.version + 1),
        "digest": &digest[..DIGEST],
        "differences": differences.iter().map(|(how, item)| told(turn, stored.as_ref(), *how, item)).collect::<Vec<_>>(),
    });
    let key = match &stored {
        Some(stored) if stored.digest == digest => "plan.unchanged",
        Some(_)
            if !approve.is_some_and(|said| said.len() >= FEWEST && digest.starts_with(said)) =>
        {
            if approve.is_some() {
                "plan.other_digest"
            } else {
                "plan.difference"
            }
        }
        Some(_) | None => {
            take_in(turn, id, stored, plan, &differences, &elsewhere, by);
            "plan.imported"
        }
    };
    let content = say::content(key, language, values);
    if key == "plan.other_digest" { Answer::Refused(content) } else { Answer::Say(content) }
}

/// What a newer version adds, changes and leaves out; everything is new where there is no older one.
fn differences(old: Option<&Plan>, new: &Plan) -> Vec<(Difference, PlanItem)> {
    let before = |item: &PlanItem| old.and_then(|old| old.item(&item.id));
    let mut all: Vec<(Difference, PlanItem)> = Vec::new();
    for item in &new.items {
        match before(item) {
            None => all.push((Difference::Added, item.clone())),
            Some(before) if before != item => all.push((Difference::Changed, item.clone())),
            Some(_) => {}
        }
    }
    let gone = old.iter().flat_map(|old| &old.items).filter(|item| new.item(&item.id).is_none());
    all.extend(gone.map(|item| (Difference::Removed, item.clone())));
    all
}

fn told(turn: &Turn<'_>, stored: Option<&StoredPlan>, how: Difference, item: &PlanItem) -> Value {
    let backlog_id = stored.and_then(|stored| stored.backlog_ids.get(&item.id));
    json!({
        "how": how.as_str(),
        "item_id": item.id.as_str(),
        "title": item.title,
        "under_way": backlog_id.is_some_and(|id| is_under_way(turn, id)),
    })
}

/// The items of other plans, which one plan may name where just one has it: the plans of a roadmap's phases are files
/// of their own.
fn elsewhere(turn: &Turn<'_>, id: &PlanId) -> BTreeMap<PlanItemId, BacklogId> {
    let mut found: BTreeMap<PlanItemId, Option<BacklogId>> = BTreeMap::new();
    for other in turn.before().plans.values().filter(|other| other.plan_id != *id) {
        for (item_id, backlog_id) in &other.backlog_ids {
            let one = found.entry(item_id.clone());
            one.and_modify(|known| *known = None).or_insert_with(|| Some(backlog_id.clone()));
        }
    }
    found.into_iter().filter_map(|(item_id, backlog_id)| Some((item_id, backlog_id?))).collect()
}

fn is_under_way(turn: &Turn<'_>, id: &BacklogId) -> bool {
    turn.item(id).is_some_and(|item| sprint::is_held(turn, item))
}

fn take_in(
    turn: &mut Turn<'_>,
    id: &PlanId,
    stored: Option<StoredPlan>,
    plan: Plan,
    differences: &[(Difference, PlanItem)],
    elsewhere: &BTreeMap<PlanItemId, BacklogId>,
    by: String,
) {
    let version = stored.as_ref().map_or(1, |stored| stored.version + 1);
    let mut ids = stored.map(|stored| stored.backlog_ids).unwrap_or_default();
    let mut queued: Vec<(PlanItem, Option<BacklogItem>)> = Vec::new();
    for (how, item) in differences {
        let known = ids.get(&item.id).and_then(|id| turn.item(id)).cloned();
        let waits = known.filter(|known| !sprint::is_held(turn, known));
        match (how, waits) {
            (Difference::Removed, Some(mut item)) => {
                item.status = BacklogStatus::Dropped;
                item.dropped_reason = format!("not in version {version} of the plan {id}");
                item.updated_at = turn.now;
                turn.put_item(item);
            }
            // What is under way or delivered stays as it is.
            (Difference::Removed, None) => {}
            (Difference::Added | Difference::Changed, waits) if !item.done => {
                let backlog_id = match &waits {
                    Some(waits) => waits.backlog_id.clone(),
                    None => fresh_id(turn),
                };
                ids.insert(item.id.clone(), backlog_id);
                queued.push((item.clone(), waits));
            }
            (Difference::Added | Difference::Changed, _) => {}
        }
    }
    for (item, waits) in queued {
        let on = item.depends_on.iter();
        let on = on.filter_map(|on| ids.get(on).or_else(|| elsewhere.get(on)).cloned()).collect();
        let reference = PlanRef { plan_id: id.clone(), item_id: item.id.clone() };
        if let Some(backlog_id) = ids.get(&item.id) {
            put(turn, backlog_id.clone(), reference, &plan.title, &item, on, waits);
        }
    }
    let digest = plan.digest();
    let imported_at = turn.now;
    let plan_id = id.clone();
    let imported_by = by;
    turn.put_plan(StoredPlan {
        plan_id,
        version,
        digest,
        plan,
        backlog_ids: ids,
        imported_at,
        imported_by,
    });
}

fn fresh_id(turn: &mut Turn<'_>) -> BacklogId {
    let date = turn.today();
    loop {
        let id = turn.ids.backlog(&date);
        if turn.item(&id).is_none() && !turn.settled_items().contains_key(&id) {
            return id;
        }
    }
}

fn put(
    turn: &mut Turn<'_>,
    backlog_id: BacklogId,
    plan: PlanRef,
    plan_title: &str,
    item: &PlanItem,
    depends_on: Vec<BacklogId>,
    waits: Option<BacklogItem>,
) {
    let title = say::cut(&item.title, TITLE);
    let title = if title.is_empty() { item.id.to_string() } else { title };
    let mut put = BacklogItem::new(backlog_id, &title, &item.scope, BacklogKind::Feature, turn.now);
    if let Some(waits) = waits {
        put.created_at = waits.created_at;
        put.kind = waits.kind;
        put.planned_in_sprint_id = waits.planned_in_sprint_id;
        put.origin = waits.origin;
    }
    put.source = BacklogSource::User;
    put.acceptance_criteria.clone_from(&item.criteria);
    put.milestone_title = say::cut(plan_title, TITLE);
    put.priority_rank = item.priority_rank;
    put.depends_on = depends_on;
    put.allowed_paths.clone_from(&item.allowed_paths);
    put.excluded_paths.clone_from(&item.excluded_paths);
    put.plan = Some(plan);
    if !item.requirements.is_empty() {
        let refs: Vec<String> = item.requirements.iter().map(ToString::to_string).collect();
        put.origin.set("requirement_refs", refs);
    }
    turn.put_item(put);
}
