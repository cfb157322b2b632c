//! Changing the backlog by a payload, from the planner, the sourcer or a person (`spec/teams.md` 4.3).
//!
//! An entry is a patch: what it does not name, or names as null or blank, stays. All entries are taken, or
//! none is.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use chrono_tz::Tz;
use serde_json::Value;

use super::classify;
use super::entry::{
    Entry, MAX_ENTRIES, MAX_LINE, MAX_OPEN, MAX_TEXT, MAX_TITLE, MergeError, cut, entries, kept,
    one_line,
};
use crate::domain::criterion::Criterion;
use crate::domain::ids::{IdSupply, ItemId, RequestId, SprintId};
use crate::domain::item::{Item, ItemKind, ItemSource, ItemStatus, fingerprint};
use crate::domain::sprint::{Phase, Sprint};
use crate::domain::text::flat;
use crate::domain::time::Timestamp;
use crate::engine::plan::graph;

/// What a payload is read in.
#[derive(Debug, Clone, Copy)]
pub struct MergeContext<'a> {
    /// Who brings it. An entry may name another source, but no agent a person; only a person's words are kept as they are.
    pub source: ItemSource,
    /// The request in which it came.
    pub request_id: Option<&'a RequestId>,
    /// The active sprint.
    pub sprint: Option<&'a Sprint>,
    /// When.
    pub now: Timestamp,
    /// The zone of the workspace, whose dates ids have.
    pub zone: Tz,
    /// Items that somebody works on now, or that a person has approved for the sprint: they stay what they were then. What
    /// agents say of them is left out, and people are told.
    pub fixed: &'a BTreeSet<ItemId>,
}

/// What a payload comes to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MergeResult {
    /// The items as they are now, each once, in the order of the payload.
    pub items: Vec<Item>,
    /// How many of them are new.
    pub added: usize,
    /// How many were known.
    pub updated: usize,
    /// Titles of items that an agent wanted to change and that stay as they are.
    pub left_out: Vec<String>,
}

/// Reads a payload against the open items. Nothing is changed: the answer holds what has to be stored.
///
/// The payload is a list of entries, an object with `backlog_items` and `backlog_item`, or one entry. An entry
/// is an object, or a text that is a title. It stands for a known item by `backlog_id`, or else by what it says:
/// title, scope and kind. What equals an item that was settled (done, dropped, carried on) is a recurrence: a
/// new item whose origin names the settled one.
///
/// # Errors
///
/// [`MergeError`] names item, field and value of the first entry that is not taken.
pub fn merge(
    known: &BTreeMap<&ItemId, &Item>,
    settled: &BTreeMap<&ItemId, &str>,
    payload: &Value,
    context: &MergeContext<'_>,
    ids: &mut IdSupply,
) -> Result<MergeResult, MergeError> {
    let entries = entries(payload)?;
    let mut work = Work::new(known, settled, context, ids);
    let mut dependencies = Vec::new();
    for (number, entry) in entries.iter().enumerate() {
        let taken = match work.take(entry) {
            // Whatever is wrong with what an agent says of it, it stays as it is.
            Err(_) if work.is_fixed_for_agents(entry) => None,
            taken => taken?,
        };
        dependencies.extend(taken.map(|id| (number, id)));
    }
    for (number, id) in dependencies {
        if let Some(entry) = entries.get(number) {
            work.depend(entry, &id)?;
        }
    }
    work.no_cycle()?;
    let merged = work.finish();
    let is_full = merged.added > 0 && known.len() + merged.added > MAX_OPEN;
    if is_full && context.source != ItemSource::User {
        return Err(MergeError::Full);
    }
    Ok(merged)
}

struct Work<'a> {
    known: &'a BTreeMap<&'a ItemId, &'a Item>,
    settled: &'a BTreeMap<&'a ItemId, &'a str>,
    /// The newest settled item of each fingerprint, made when it is first asked for.
    prints: OnceCell<BTreeMap<&'a str, &'a ItemId>>,
    context: &'a MergeContext<'a>,
    ids: &'a mut IdSupply,
    items: BTreeMap<ItemId, Item>,
    order: Vec<ItemId>,
    left_out: Vec<String>,
    /// Open items by their title in lower case.
    titles: BTreeMap<String, BTreeSet<ItemId>>,
}

impl<'a> Work<'a> {
    fn new(
        known: &'a BTreeMap<&'a ItemId, &'a Item>,
        settled: &'a BTreeMap<&'a ItemId, &'a str>,
        context: &'a MergeContext<'a>,
        ids: &'a mut IdSupply,
    ) -> Self {
        let mut titles: BTreeMap<String, BTreeSet<ItemId>> = BTreeMap::new();
        for item in known.values() {
            titles.entry(flat(&item.title)).or_default().insert(item.backlog_id.clone());
        }
        let (items, order, left_out) = (BTreeMap::new(), Vec::new(), Vec::new());
        let prints = OnceCell::new();
        Self { known, settled, prints, context, ids, items, order, left_out, titles }
    }

    /// Whether an agent names an item that it cannot change; it is noted as left out.
    fn is_fixed_for_agents(&mut self, entry: &Entry) -> bool {
        let named = entry.fields.get("backlog_id").and_then(Value::as_str);
        let id = named.and_then(|id| ItemId::parse(id).ok());
        let fixed = id.filter(|id| self.context.fixed.contains(id));
        let item = fixed.and_then(|id| self.known.get(&id).copied());
        let item = item.filter(|_| self.context.source != ItemSource::User);
        self.left_out.extend(item.map(|item| item.title.clone()));
        item.is_some()
    }

    fn current(&self, id: &ItemId) -> Option<&Item> {
        self.items.get(id).or_else(|| self.known.get(id).copied())
    }

    fn keep(&mut self, item: Item) {
        let id = item.backlog_id.clone();
        let old = self.current(&id).map(|old| flat(&old.title));
        if let Some(ids) = old.and_then(|title| self.titles.get_mut(&title)) {
            ids.remove(&id);
        }
        if item.status.is_active() {
            self.titles.entry(flat(&item.title)).or_default().insert(id.clone());
        }
        if !self.items.contains_key(&id) {
            self.order.push(id.clone());
        }
        self.items.insert(id, item);
    }

    /// Applies all of an entry but its dependencies; none where that is left out.
    fn take(&mut self, entry: &Entry) -> Result<Option<ItemId>, MergeError> {
        let summary = entry.whole_text("summary")?;
        let scope = entry.whole_text("scope")?;
        let kind = entry.word("kind", "bug, feature, enhancement or chore")?;
        let mut title = entry.text("title", MAX_TITLE)?.map(|title| one_line(&title));
        if self.context.source != ItemSource::User {
            title = title.map(|title| meaningful(title, summary.as_deref(), scope.as_deref()));
        }
        let id = entry.text("backlog_id", MAX_LINE)?;
        let mut recurrence_of = None;
        let found = match &id {
            Some(text) => {
                let unknown = || MergeError::UnknownItem { item: text.clone() };
                let id = ItemId::parse(text).map_err(|_| unknown())?;
                if self.current(&id).is_some() {
                    Some(id)
                } else if self.settled.contains_key(&id) && title.is_some() {
                    recurrence_of = Some(id);
                    None
                } else {
                    return Err(unknown());
                }
            }
            None => None,
        };
        let found = match (found, &title) {
            (None, Some(title)) => self.same(title, scope.as_deref(), kind),
            (found, _) => found,
        };
        let mut item = match found.as_ref().and_then(|id| self.current(id)) {
            Some(item) => item.clone(),
            None => {
                let title = title
                    .as_deref()
                    .ok_or_else(|| MergeError::NoTitle { item: entry.name.clone() })?;
                let scope = scope.as_deref().unwrap_or_default();
                let said = format!("{title} {scope} {}", summary.as_deref().unwrap_or_default());
                let kind = kind.unwrap_or_else(|| classify(&said));
                let recurrence_of = recurrence_of.or_else(|| self.settled_as(title, scope, kind));
                self.fresh(title, scope, kind, recurrence_of)
            }
        };
        let before = item.clone();
        set(&mut item.title, title);
        set(&mut item.summary, summary);
        set(&mut item.scope, scope);
        set(&mut item.kind, kind);
        let said = self.rest(entry, &mut item);
        item.fingerprint = fingerprint(&item.title, &item.scope, item.kind);
        if self.context.fixed.contains(&item.backlog_id) {
            // In which request it came is no word about it.
            if !before.origin.has("request_id") {
                item.origin.remove("request_id");
            }
            let same = item == before;
            return match self.context.source {
                ItemSource::User => match said {
                    Ok(()) if same => Ok(None),
                    Ok(()) => Err(MergeError::UnderWay { item: before.title }),
                    Err(error) => Err(error),
                },
                ItemSource::Planner
                | ItemSource::Sourcer
                | ItemSource::Discovery
                | ItemSource::CarryOver => {
                    if said.is_err() || !same {
                        self.left_out.push(before.title);
                    }
                    Ok(None)
                }
            };
        }
        said?;
        if item != before {
            item.updated_at = self.context.now;
        }
        let id = item.backlog_id.clone();
        self.keep(item);
        Ok(Some(id))
    }

    /// What an entry says of an item beside what makes it another one.
    fn rest(&self, entry: &Entry, item: &mut Item) -> Result<(), MergeError> {
        let source = entry.word("source", "user, planner, sourcer, discovery or carry_over")?;
        // Whether they are a person's words no agent says.
        let is_persons = |it: ItemSource| it == ItemSource::User;
        let old = item.source;
        let may_say = |new: &ItemSource| {
            is_persons(self.context.source) || !is_persons(*new) && !is_persons(old)
        };
        set(&mut item.source, source.filter(may_say));
        set(
            &mut item.milestone_title,
            entry.text("milestone_title", MAX_TITLE)?.map(|t| one_line(&t)),
        );
        set(&mut item.priority_rank, entry.rank()?);
        self.declared(entry, item)?;
        set(
            &mut item.acceptance_criteria,
            entry
                .list("acceptance_criteria")?
                .filter(|criteria| !criteria.is_empty())
                .map(|criteria| criteria.into_iter().map(Criterion::from).collect()),
        );
        self.origin(entry, item)?;
        self.plan(entry, item)?;
        self.status(entry, item)
    }

    /// Paths and effort, which a person or the planner declares. An empty list is no word of an agent against what is
    /// declared: models fill in what they leave open.
    fn declared(&self, entry: &Entry, item: &mut Item) -> Result<(), MergeError> {
        let (paths, effort) = (entry.paths()?, entry.effort()?);
        match self.context.source {
            ItemSource::User => set(&mut item.allowed_paths, paths),
            ItemSource::Planner => {
                set(&mut item.allowed_paths, paths.filter(|paths| !paths.is_empty()));
            }
            ItemSource::Sourcer | ItemSource::Discovery | ItemSource::CarryOver => {
                return Ok(());
            }
        }
        set(&mut item.effort, effort);
        Ok(())
    }

    /// The open item that an entry without an id speaks of. What the entry leaves open fits any item of that
    /// title; one that it would have made itself comes first.
    fn same(&self, title: &str, scope: Option<&str>, kind: Option<ItemKind>) -> Option<ItemId> {
        let named = self.titles.get(&flat(title))?.iter().filter_map(|id| self.current(id));
        let wanted = scope.map(flat);
        let fits = named.filter(|item| {
            wanted.as_ref().is_none_or(|scope| flat(&item.scope) == *scope)
                && kind.is_none_or(|kind| item.kind == kind)
        });
        let guess = kind.unwrap_or_else(|| classify(title));
        fits.min_by_key(|item| (scope.is_none() && !item.scope.is_empty(), item.kind != guess))
            .map(|item| item.backlog_id.clone())
    }

    /// The newest settled item that was the same.
    fn settled_as(&self, title: &str, scope: &str, kind: ItemKind) -> Option<ItemId> {
        let prints = self
            .prints
            .get_or_init(|| self.settled.iter().map(|(id, print)| (*print, *id)).collect());
        prints.get(fingerprint(title, scope, kind).as_str()).map(|id| (*id).clone())
    }

    fn fresh(
        &mut self,
        title: &str,
        scope: &str,
        kind: ItemKind,
        recurrence_of: Option<ItemId>,
    ) -> Item {
        let date = self.context.now.date_in(self.context.zone);
        let mut id = self.ids.backlog(&date);
        while self.current(&id).is_some() || self.settled.contains_key(&id) {
            id = self.ids.backlog(&date);
        }
        let mut item = Item::new(id, title, scope, kind, self.context.now);
        item.source = self.context.source;
        if let Some(of) = recurrence_of {
            item.origin.set("recurrence_of", of.as_str());
        }
        // What people add is of the sprint where they say so.
        if let Some(sprint) =
            self.context.sprint.filter(|_| self.context.source != ItemSource::User)
        {
            item.added_during_active_sprint = sprint.phase == Phase::Ongoing;
            if sprint.phase == Phase::Initial {
                item.origin.set("sprint_id", sprint.sprint_id.as_str());
                item.milestone_title.clone_from(&sprint.milestone_title);
            }
        }
        item
    }

    fn origin(&self, entry: &Entry, item: &mut Item) -> Result<(), MergeError> {
        match entry.fields.get("origin") {
            None | Some(Value::Null) => {}
            Some(Value::Object(fields)) => {
                for (name, value) in fields {
                    let name = cut(name, MAX_LINE);
                    let room = item.origin.len() < MAX_ENTRIES || item.origin.contains(&name);
                    if let Some(value) = kept(value).filter(|_| room) {
                        item.origin.set(&name, value);
                    }
                }
            }
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                return Err(entry.wrong("origin", "an object"));
            }
        }
        if let Some(request) = self.context.request_id
            && !item.origin.has("request_id")
        {
            item.origin.set("request_id", request.as_str());
        }
        Ok(())
    }

    /// Only the active sprint can plan an item.
    fn plan(&self, entry: &Entry, item: &mut Item) -> Result<(), MergeError> {
        let Some(text) = entry.text("planned_in_sprint_id", MAX_LINE)? else { return Ok(()) };
        let active = self.context.sprint.map(|sprint| &sprint.sprint_id);
        let same = |id: Option<&SprintId>| id.is_some_and(|id| id.as_str() == text);
        if same(item.planned_in_sprint_id.as_ref()) {
            return Ok(());
        }
        if !same(active) {
            return Err(entry.wrong("planned_in_sprint_id", "the id of the active sprint"));
        }
        item.planned_in_sprint_id = active.cloned();
        Ok(())
    }

    /// What an entry may say about where its item stands. `selected`, `done` and `carried_over` follow from todos;
    /// said of an item that stands there already, or of one that is selected now, they change nothing.
    fn status(&self, entry: &Entry, item: &mut Item) -> Result<(), MergeError> {
        let said =
            entry.word("status", "pending, selected, blocked, done, carried_over or dropped")?;
        let reason = entry.text("dropped_reason", MAX_TEXT)?;
        // People take out of a sprint what waits there; a planner gives it another place.
        let may_take_out = self.context.source == ItemSource::User
            && !self.context.fixed.contains(&item.backlog_id);
        let in_work = item.status == ItemStatus::Selected && !may_take_out;
        match said {
            Some(ItemStatus::Pending) if !in_work => {
                item.status = ItemStatus::Pending;
                item.clear_blockers();
            }
            Some(ItemStatus::Blocked | ItemStatus::Dropped) if in_work => {
                return Err(
                    entry.wrong("status", "no change while a todo of the sprint works on the item")
                );
            }
            Some(ItemStatus::Blocked) => {
                item.status = ItemStatus::Blocked;
            }
            Some(ItemStatus::Dropped) => {
                item.status = ItemStatus::Dropped;
                item.clear_blockers();
                set(&mut item.dropped_reason, reason);
            }
            Some(ItemStatus::Done) if self.context.source == ItemSource::User && !in_work => {
                item.status = ItemStatus::Done;
                item.clear_blockers();
            }
            // A planner that plans an item for the sprint may call it selected; the todo makes it so.
            Some(ItemStatus::Selected)
                if self.context.sprint.is_some() && self.context.source != ItemSource::User => {}
            Some(said @ (ItemStatus::Selected | ItemStatus::Done | ItemStatus::CarriedOver))
                if said != item.status =>
            {
                return Err(entry.wrong(
                    "status",
                    "pending, blocked or dropped; the others follow from the work",
                ));
            }
            Some(
                ItemStatus::Pending
                | ItemStatus::Selected
                | ItemStatus::Done
                | ItemStatus::CarriedOver,
            )
            | None => {}
        }
        if item.status == ItemStatus::Blocked {
            set(&mut item.blocked_reason, entry.text("blocked_reason", MAX_TEXT)?);
            set(&mut item.blocked_by_role, entry.text("blocked_by_role", MAX_LINE)?);
            set(&mut item.required_inputs, entry.list("required_inputs")?);
            set(&mut item.recommended_next_step, entry.text("recommended_next_step", MAX_TEXT)?);
        }
        Ok(())
    }

    /// Reads what an entry's item depends on: ids, or titles of items of the payload or of the backlog.
    fn depend(&mut self, entry: &Entry, id: &ItemId) -> Result<(), MergeError> {
        let Some(named) = entry.list("depends_on")? else { return Ok(()) };
        let mut on: Vec<ItemId> = Vec::new();
        for name in named {
            let by_id = ItemId::parse(&name)
                .ok()
                .filter(|id| self.current(id).is_some() || self.settled.contains_key(id))
                .map(|id| self.carried_on(&id).unwrap_or(id));
            let by_title = || self.same(&name, None, None);
            let found = by_id.or_else(by_title).ok_or_else(|| MergeError::UnknownDependency {
                item: entry.name.clone(),
                found: name.clone(),
            })?;
            if !on.contains(&found) {
                on.push(found);
            }
        }
        let now = self.context.now;
        if let Some(item) = self.items.get_mut(id)
            && item.depends_on != on
        {
            item.depends_on = on;
            item.updated_at = now;
        }
        Ok(())
    }

    /// The item that carries this one on, where one does and still waits.
    fn carried_on(&self, id: &ItemId) -> Option<ItemId> {
        let carries = |item: &&&Item| item.carry_over_of.as_ref() == Some(id);
        self.known.values().find(carries).map(|item| item.backlog_id.clone())
    }

    fn no_cycle(&self) -> Result<(), MergeError> {
        let known = self.known.values().copied();
        let untouched = known.filter(|item| !self.items.contains_key(&item.backlog_id));
        let mut edges: Vec<_> = self
            .items
            .values()
            .chain(untouched)
            .map(|item| (item.backlog_id.clone(), item.depends_on.clone()))
            .collect();
        let mut around = loop {
            let Some(around) = graph::cycle(&edges) else { return Ok(()) };
            if around.iter().any(|id| self.items.contains_key(id)) {
                break around;
            }
            // Two plans that know nothing of each other may have it so: it is not the matter of others.
            edges.retain(|(id, _)| !around.contains(id));
        };
        around.extend(around.first().cloned());
        let name = |id: &ItemId| match self.current(id) {
            Some(item) => format!("{id} ({})", cut(&item.title, 60)),
            None => id.to_string(),
        };
        Err(MergeError::Cycle { path: around.iter().map(name).collect() })
    }

    fn finish(mut self) -> MergeResult {
        let mut items: Vec<Item> =
            self.order.iter().filter_map(|id| self.items.remove(id)).collect();
        for item in &mut items {
            if let Some(known) = self.known.get(&item.backlog_id) {
                item.updated_at = known.updated_at;
                if *item != **known {
                    item.updated_at = self.context.now;
                }
            }
        }
        let updated = items.iter().filter(|item| self.known.contains_key(&item.backlog_id)).count();
        MergeResult { added: items.len() - updated, updated, items, left_out: self.left_out }
    }
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

/// A title that only names upkeep ("backlog 정리", "update the docs") says nothing about the work: the summary
/// stands for it, else the scope, where these say more.
fn meaningful(title: String, summary: Option<&str>, scope: Option<&str>) -> String {
    if !is_upkeep(&title) {
        return title;
    }
    let other = [summary, scope].into_iter().flatten().map(one_line);
    let mut better = other.filter(|text| !is_upkeep(text));
    better.next().map_or(title, |text| cut(&text, MAX_TITLE))
}

fn is_upkeep(text: &str) -> bool {
    const ENDINGS: [&str; 6] = ["정리", "구체화", "반영", "동기화", "재구성", "업데이트"];
    const VERBS: [&str; 9] = [
        "update", "refresh", "sync", "refine", "organize", "tidy", "rewrite", "clarify", "cleanup",
    ];
    const PAPERS: [&str; 13] = [
        "backlog",
        "plan",
        "planning",
        "spec",
        "milestone",
        "todo",
        "todos",
        "doc",
        "docs",
        "document",
        "documents",
        "prompt",
        "prompts",
    ];
    let text = flat(text);
    let words: BTreeSet<&str> = text.split(|c: char| !c.is_alphanumeric()).collect();
    let last = text.trim_end_matches(|c: char| !c.is_alphanumeric());
    ENDINGS.iter().any(|ending| last.ends_with(ending))
        || (words.len() <= 5
            && text.split(' ').next().is_some_and(|first| VERBS.contains(&first))
            && PAPERS.iter().any(|paper| words.contains(paper)))
}
