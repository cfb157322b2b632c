//! One decision in the making: the open records, and over them what this decision has changed so far.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono_tz::Tz;
use serde_json::Value;

use super::decision::{Answer, Decision, Wake};
use super::planning_changes::PlanningChanges;
use crate::domain::budget::Spending;
use crate::domain::change::{Change, ChannelMark};
use crate::domain::effect::{Effect, EffectKind, EffectState};
use crate::domain::envelope::{Envelope, EnvelopeFolder};
use crate::domain::ids::{
    ChannelId, EffectId, GuildId, IdSupply, ItemId, MessageId, PlanId, RequestId, RunId, SprintId,
};
use crate::domain::incoming::Message;
use crate::domain::item::{Item, ItemTodo};
use crate::domain::lifecycle::{Lifecycle, Step, StepName};
use crate::domain::outgoing::{Outgoing, OutgoingState};
use crate::domain::plan::StoredPlan;
use crate::domain::policy::Policy;
use crate::domain::record::{AnyRecord, RecordId};
use crate::domain::request::{EventKind, Request, RequestEvent};
use crate::domain::schedule::Scheduler;
use crate::domain::sprint::{Activity, Sprint, SprintEvent, SprintEventKind, Todo, TodoProgress};
use crate::domain::state::State;
use crate::domain::time::Timestamp;
use crate::domain::workflow::WorkflowState;

/// Attempts of what is no step of a lifecycle.
const ATTEMPTS: u32 = 3;
/// How many message ids of a channel are remembered for those that arrive doubled.
pub(super) const RECENT_MESSAGES: usize = 64;
/// A person who may not ask is told so once in this time.
const REFUSAL_SECONDS: u64 = 3_600;
/// People of one channel who are told so within it.
const REFUSALS_REMEMBERED: usize = 100;

/// A decision in the making.
pub(super) struct Turn<'a> {
    /// The records as they are, with the changes of this turn already applied where they are read
    /// through the methods here.
    state: &'a State,
    /// The rules of this workspace.
    pub(super) policy: &'a Policy,
    /// The time.
    pub(super) now: Timestamp,
    /// Fresh ids.
    pub(super) ids: IdSupply,
    requests: BTreeMap<RequestId, Arc<Request>>,
    /// Sprints, backlog items and the scheduler as this turn leaves them.
    pub(super) planning: PlanningChanges,
    /// What was spent, as this turn leaves it.
    spending: Option<Spending>,
    changes: Vec<Change>,
    wakes: Vec<Wake>,
}

impl<'a> Turn<'a> {
    pub(super) fn new(
        state: &'a State,
        policy: &'a Policy,
        now: Timestamp,
        ids: IdSupply,
    ) -> Turn<'a> {
        Turn {
            state,
            policy,
            now,
            ids,
            requests: BTreeMap::new(),
            planning: PlanningChanges::default(),
            spending: None,
            changes: Vec::new(),
            wakes: Vec::new(),
        }
    }

    /// The zone of the workspace.
    pub(super) fn zone(&self) -> Tz {
        self.policy.sprint.zone.0
    }

    /// Today's date in the zone of the workspace, as ids have it.
    pub(super) fn today(&self) -> String {
        self.now.date_in(self.zone())
    }

    /// The lifecycle that a request goes by, and where it stands in it; `None` before it has begun.
    pub(super) fn stands(&self, id: &RequestId) -> Option<(Arc<Lifecycle>, WorkflowState)> {
        let state = self.request(id)?.params.workflow.clone()?;
        Some((Arc::clone(self.lifecycle_of(&state)), state))
    }

    /// The lifecycle that a request goes by which stands there.
    pub(super) fn lifecycle_of(&self, state: &WorkflowState) -> &'a Arc<Lifecycle> {
        let current = &self.policy.lifecycle;
        match state.lifecycle == current.digest() {
            true => current,
            false => self.state.lifecycle(&state.lifecycle),
        }
    }

    /// The step at which a request stands.
    pub(super) fn step(&self, id: &RequestId) -> Option<&'a Step> {
        let state = self.request(id)?.params.workflow.as_ref()?;
        self.lifecycle_of(state).step(state.step)
    }

    /// Attempts that the step of a request has before a person is asked.
    pub(super) fn attempts(&self, id: &RequestId) -> u32 {
        let duty = self.request(id).and_then(|request| self.state.duty_step(request));
        let own = self.step(id).or(duty).map_or(ATTEMPTS, |step| step.attempts);
        self.policy.limits.step_attempts.unwrap_or(own)
    }

    /// The beginning of a person's request.
    pub(super) fn begin_request(&mut self) -> WorkflowState {
        self.begin(self.policy.lifecycle.begin)
    }

    /// The beginning of a todo's request.
    pub(super) fn begin_todo(&mut self) -> WorkflowState {
        self.begin(self.policy.lifecycle.begin_todo)
    }

    /// A request keeps the lifecycle that it begins with, so that is kept as well.
    fn begin(&mut self, step: StepName) -> WorkflowState {
        let lifecycle = &self.policy.lifecycle;
        if !self.state.lifecycles.contains_key(lifecycle.digest()) {
            self.changes.push(Change::save(Arc::clone(lifecycle)));
        }
        WorkflowState::begin(lifecycle, step).within(&self.policy.limits)
    }

    /// The records as they were before this turn.
    pub(super) fn before(&self) -> &'a State {
        self.state
    }

    /// The request as it is now.
    pub(super) fn request(&self, id: &RequestId) -> Option<&Request> {
        self.requests.get(id).or_else(|| self.state.requests.get(id)).map(Arc::as_ref)
    }

    /// The request for changing; what is changed becomes part of the decision.
    pub(super) fn edit(&mut self, id: &RequestId) -> Option<&mut Request> {
        if !self.requests.contains_key(id) {
            let request = Arc::clone(self.state.requests.get(id)?);
            self.requests.insert(id.clone(), request);
        }
        let now = self.now;
        let request = Arc::make_mut(self.requests.get_mut(id)?);
        request.updated_at = now;
        Some(request)
    }

    /// A new request.
    pub(super) fn create(&mut self, request: Request) {
        self.requests.insert(request.request_id.clone(), Arc::new(request));
    }

    /// The requests that this turn has changed or made.
    pub(super) fn touched(&self) -> Vec<RequestId> {
        self.requests.keys().cloned().collect()
    }

    /// The requests as they are now, ended ones that are still in memory among them.
    pub(super) fn requests(&self) -> impl Iterator<Item = &Request> {
        let old = self.state.requests.iter().filter(|(id, _)| !self.requests.contains_key(*id));
        old.map(|(_, request)| request).chain(self.requests.values()).map(Arc::as_ref)
    }

    /// The effects that are planned or under way, this turn's included.
    pub(super) fn effects(&self) -> impl Iterator<Item = &Effect> {
        let mut effects: BTreeMap<&EffectId, &Arc<Effect>> = self.state.effects.iter().collect();
        for change in &self.changes {
            if let Change::Save(AnyRecord::Effect(effect)) = change {
                effects.insert(&effect.effect_id, effect);
            } else if let Change::Remove(RecordId::Effect(id)) = change {
                effects.remove(id);
            }
        }
        effects.into_values().map(Arc::as_ref)
    }

    /// Whether such an effect is planned or under way.
    pub(super) fn has_effect(&self, which: impl Fn(&EffectKind) -> bool) -> bool {
        self.effects().any(|effect| which(&effect.kind))
    }

    /// Whether such an effect has started and its outcome has not come.
    pub(super) fn is_under_way(&self, which: impl Fn(&EffectKind) -> bool) -> bool {
        let mut started =
            self.effects().filter(|it| matches!(it.state, EffectState::Started { .. }));
        started.any(|effect| which(&effect.kind))
    }

    /// What was spent, as of today.
    pub(super) fn spending(&self) -> Cow<'_, Spending> {
        match &self.spending {
            // Who edits it has brought it to this day.
            Some(now) => Cow::Borrowed(now),
            None => self.state.spending.on(&self.now.budget_day(self.zone())),
        }
    }

    /// The same for changing.
    pub(super) fn edit_spending(&mut self) -> &mut Spending {
        let spending = self.spending().into_owned();
        self.spending.insert(spending)
    }

    /// Adds a change.
    pub(super) fn change(&mut self, change: Change) {
        self.changes.push(change);
    }

    /// The record is now this.
    pub(super) fn save(&mut self, record: impl Into<AnyRecord>) {
        self.change(Change::save(record));
    }

    /// The record leaves memory.
    pub(super) fn remove(&mut self, id: RecordId) {
        self.change(Change::Remove(id));
    }

    /// Adds something that may begin afterwards.
    pub(super) fn wake(&mut self, wake: Wake) {
        self.wakes.push(wake);
    }

    /// Adds a line to a request's history.
    pub(super) fn record(
        &mut self,
        id: &RequestId,
        kind: EventKind,
        actor: &str,
        summary: &str,
        payload: Value,
    ) {
        let event = RequestEvent {
            timestamp: self.now,
            kind,
            actor: actor.to_owned(),
            summary: summary.to_owned(),
            payload,
        };
        self.change(Change::Event(id.clone(), event));
    }

    /// Notes that a message was taken in, and that its channel was read up to it, or as far as it says.
    pub(super) fn mark_taken(&mut self, message: &Message) {
        let up_to = message.read_up_to.unwrap_or(message.message_id);
        let mark =
            self.marked((message.channel_id, message.guild_id), up_to, Some(message.message_id));
        self.change(Change::Channel(mark));
    }

    /// The same of one of which nothing came, with the digest of its words.
    pub(super) fn mark_idle(&mut self, message: &Message, words: String) {
        let up_to = message.read_up_to.unwrap_or(message.message_id);
        let place = (message.channel_id, message.guild_id);
        let mut mark = self.marked(place, up_to, Some(message.message_id));
        mark.idle.insert(message.message_id, words);
        self.change(Change::Channel(mark));
    }

    /// Notes that a channel was read up to a message.
    pub(super) fn mark_read(&mut self, channel_id: ChannelId, message_id: MessageId) {
        let mark = self.marked((channel_id, None), message_id, None);
        self.change(Change::Channel(mark));
    }

    /// Notes that a message of somebody who may not ask was looked at. Whether they are to be told so: once an
    /// hour, wherever they write, and nobody new while a whole crowd is told in this channel.
    pub(super) fn mark_refused(&mut self, message: &Message) -> bool {
        let up_to = message.read_up_to.unwrap_or(message.message_id);
        let place = (message.channel_id, message.guild_id);
        let mut mark = self.marked(place, up_to, Some(message.message_id));
        let (now, who) = (self.now, message.author.id);
        let told = |at: &Timestamp| now.seconds_since(*at) < REFUSAL_SECONDS;
        let again = self.state.channels.values().any(|it| it.refused.get(&who).is_some_and(told));
        let tell = !again && mark.refused.len() < REFUSALS_REMEMBERED;
        if tell {
            mark.refused.insert(who, now);
        }
        self.change(Change::Channel(mark));
        tell
    }

    fn marked(
        &self,
        (channel_id, guild_id): (ChannelId, Option<GuildId>),
        up_to: MessageId,
        taken: Option<MessageId>,
    ) -> ChannelMark {
        let old = self.state.channels.get(&channel_id);
        let mut recent = old.map(|mark| mark.recent.clone()).unwrap_or_default();
        recent.extend(taken.filter(|id| !recent.contains(id)));
        if recent.len() > RECENT_MESSAGES {
            recent.remove(0);
        }
        let mut idle = old.map(|mark| mark.idle.clone()).unwrap_or_default();
        idle.retain(|id, _| recent.contains(id) && Some(*id) != taken);
        let watermark = old.map_or(up_to, |mark| mark.watermark.max(up_to));
        let mut refused = old.map(|mark| mark.refused.clone()).unwrap_or_default();
        refused.retain(|_, at| self.now.seconds_since(*at) < REFUSAL_SECONDS);
        let guild_id = guild_id.or_else(|| old.and_then(|mark| mark.guild_id));
        ChannelMark { channel_id, guild_id, watermark, recent, idle, refused }
    }

    /// Nobody waits for a run any more: whoever follows it is told, at once also where its envelope waits to be tried
    /// again.
    pub(super) fn stop_run(&mut self, id: RunId) {
        let before = self.before();
        let envelope = before.runs.get(&id).and_then(|run| before.envelopes.get(&run.envelope_id));
        if let Some(envelope) = envelope.filter(|it| it.not_before.is_some()) {
            self.wake(Wake::Role(envelope.target_role));
            self.save(Envelope { not_before: None, ..Envelope::clone(envelope) });
        }
        self.wake(Wake::StopRun(id));
    }

    /// Puts an envelope away.
    pub(super) fn put_away(&mut self, envelope: &Envelope, place: EnvelopeFolder, reason: &str) {
        let mut envelope = envelope.clone();
        envelope.place = place;
        envelope.reason = Some(reason.to_owned());
        self.change(Change::save(envelope));
    }

    /// Plans an effect.
    pub(super) fn plan(&mut self, kind: EffectKind) {
        let effect = Effect {
            effect_id: self.ids.effect(),
            kind,
            state: EffectState::Planned,
            attempts: 0,
            told: None,
            planned_at: self.now,
            waits_for: None,
        };
        self.wake(Wake::Effect(effect.effect_id.clone()));
        self.change(Change::save(effect));
    }

    /// Puts something into the outbox. What it supersedes leaves it, unless it is being sent; what Discord
    /// refused is not.
    pub(super) fn send(&mut self, outgoing: Outgoing) {
        if let Some(slot) = outgoing.slot.clone() {
            self.unsend(|old| old.slot.as_ref() == Some(&slot));
        }
        self.wake(Wake::Outbox);
        self.save(outgoing);
    }

    /// Takes these out of the outbox, as far as they are not being sent.
    pub(super) fn unsend(&mut self, which: impl Fn(&Outgoing) -> bool) {
        let old: Vec<_> = self
            .outbox()
            .filter(|old| which(old))
            .filter(|old| old.state == OutgoingState::Queued || old.refused.is_some())
            .map(|old| old.outgoing_id.clone())
            .collect();
        for id in old {
            self.remove(RecordId::Outgoing(id));
        }
    }

    /// Whether a request belongs to the sprint under way.
    pub(super) fn is_of_active_sprint(&self, request: &Request) -> bool {
        let active = self.active_sprint().map(|sprint| &sprint.sprint_id);
        active.is_some() && active == request.sprint_id.as_ref()
    }

    /// The outbox as it is now, in no particular order.
    pub(super) fn outbox(&self) -> impl Iterator<Item = &Outgoing> {
        let mut now: BTreeMap<_, _> = self.state.outgoing.iter().collect();
        for change in &self.changes {
            if let Change::Save(AnyRecord::Outgoing(outgoing)) = change {
                now.insert(&outgoing.outgoing_id, outgoing);
            } else if let Change::Remove(RecordId::Outgoing(id)) = change {
                now.remove(id);
            }
        }
        now.into_values().map(Arc::as_ref)
    }

    /// Closes the turn: changed requests are written, and ended ones that nothing refers to any more leave memory.
    pub(super) fn finish(mut self, answer: Answer) -> Decision {
        let planning = std::mem::take(&mut self.planning);
        planning.close(&mut self.changes);
        if let Some(spending) = self.spending.take() {
            self.save(spending);
        }
        let requests = std::mem::take(&mut self.requests);
        let over = requests.values().filter(|request| request.status.is_terminal());
        let mut ended: BTreeSet<RequestId> = over.map(|it| it.request_id.clone()).collect();
        // Whatever was about an ended request may have been the last thing that held it.
        let freed = self.changes.iter().filter_map(|change| self.freed(change));
        let freed = freed.filter(|id| !requests.contains_key(*id));
        let freed = freed
            .filter(|id| self.state.requests.get(*id).is_some_and(|it| it.status.is_terminal()));
        ended.extend(freed.cloned());
        let mut changes: Vec<Change> = requests.into_values().map(Change::save).collect();
        changes.append(&mut self.changes);
        self.changes = changes;
        ended.retain(|id| !self.is_held(id));
        let unused = if ended.is_empty() { Vec::new() } else { self.unused_lifecycles(&ended) };
        for id in ended {
            self.retire(id);
        }
        for digest in unused {
            self.remove(RecordId::Lifecycle(digest));
        }
        self.wakes.sort();
        self.wakes.dedup();
        Decision { changes: self.changes, effects: self.wakes, answer }
    }

    /// The request that a change may have let go of.
    fn freed<'c>(&'c self, change: &'c Change) -> Option<&'c RequestId> {
        match change {
            Change::Save(record) => record.holds().and_then(|(_, about)| about),
            Change::Remove(RecordId::Outgoing(id)) => {
                self.state.outgoing.get(id)?.request_id.as_ref()
            }
            Change::Remove(RecordId::Effect(id)) => self.state.effects.get(id)?.kind.request_id(),
            Change::Remove(RecordId::Run(id)) => Some(&self.state.runs.get(id)?.request_id),
            Change::Remove(
                RecordId::Request(_)
                | RecordId::Session(..)
                | RecordId::Sprint(_)
                | RecordId::Lifecycle(_),
            )
            | Change::Event(..)
            | Change::SprintEvent(..)
            | Change::Channel(_)
            | Change::Append { .. } => None,
        }
    }

    /// Whether anything open still refers to the request, after the changes of this turn.
    fn is_held(&self, id: &RequestId) -> bool {
        let open = self.state.records();
        let mut held: BTreeSet<String> = (open.filter_map(|record| {
            let (key, about) = record.holds()?;
            (about == Some(id)).then_some(key)
        }))
        .collect();
        for change in &self.changes {
            match change {
                Change::Save(record) => {
                    let Some((key, about)) = record.holds() else { continue };
                    if record.is_open() && about == Some(id) {
                        held.insert(key);
                    } else {
                        held.remove(&key);
                    }
                }
                Change::Remove(RecordId::Outgoing(key)) => drop(held.remove(key.as_str())),
                Change::Remove(RecordId::Effect(key)) => drop(held.remove(key.as_str())),
                Change::Remove(RecordId::Run(key)) => drop(held.remove(key.as_str())),
                Change::Remove(_)
                | Change::Event(..)
                | Change::SprintEvent(..)
                | Change::Channel(_)
                | Change::Append { .. } => {}
            }
        }
        !held.is_empty()
    }

    /// The lifecycles by which no request goes any more once some have left, but for the one in force.
    fn unused_lifecycles(&self, leaving: &BTreeSet<RequestId>) -> Vec<String> {
        let now = self.changes.iter().filter_map(Change::saved_request);
        let stay = self.state.requests.values().chain(now);
        let stay = stay.filter(|request| !leaving.contains(&request.request_id));
        let used: BTreeSet<&str> = (stay.filter_map(|it| it.params.workflow.as_ref()))
            .map(|workflow| workflow.lifecycle.as_str())
            .chain(self.state.sprints.values().map(|sprint| sprint.lifecycle.as_str()))
            .chain(
                self.changes
                    .iter()
                    .filter_map(Change::saved_sprint)
                    .map(|it| it.lifecycle.as_str()),
            )
            .chain([self.policy.lifecycle.digest()])
            .collect();
        let kept = self.state.lifecycles.keys().filter(|digest| !used.contains(digest.as_str()));
        kept.cloned().collect()
    }

    /// The ended request leaves memory, and the conversations about it go.
    fn retire(&mut self, id: RequestId) {
        let sessions = self.state.sessions.values().filter(|it| it.request_id == id);
        let mut gone: Vec<RecordId> =
            sessions.map(|it| RecordId::Session(it.role, id.clone())).collect();
        gone.extend(self.changes.iter().filter_map(|change| {
            let AnyRecord::Session(it) = change.saved()? else { return None };
            (it.request_id == id).then(|| RecordId::Session(it.role, id.clone()))
        }));
        gone.push(RecordId::Request(id));
        for id in gone {
            self.remove(id);
        }
    }
}

/// Sprints, backlog items and the scheduler.
impl Turn<'_> {
    /// The sprint as it is now.
    pub(super) fn sprint(&self, id: &SprintId) -> Option<&Sprint> {
        self.planning.sprints.get(id).or_else(|| self.before().sprints.get(id)).map(Arc::as_ref)
    }

    /// The sprint that holds the slot.
    pub(super) fn active_sprint(&self) -> Option<&Sprint> {
        self.scheduler().active_sprint_id.as_ref().and_then(|id| self.sprint(id))
    }

    /// The sprint for changing.
    pub(super) fn edit_sprint(&mut self, id: &SprintId) -> Option<&mut Sprint> {
        if !self.planning.sprints.contains_key(id) {
            let sprint = self.before().sprints.get(id)?.clone();
            self.planning.sprints.insert(id.clone(), sprint);
        }
        let now = self.now;
        let sprint = Arc::make_mut(self.planning.sprints.get_mut(id)?);
        sprint.updated_at = Some(now);
        Some(sprint)
    }

    /// Changes how far a sprint is with the item of a todo, in the item's record and where the sprint shows it. It is changed
    /// where it is shown alone if the item has left the backlog, is another todo by now, or is none and the todo is over.
    pub(super) fn edit_todo(
        &mut self,
        id: &SprintId,
        at: usize,
        change: impl FnOnce(&mut TodoProgress),
    ) {
        let now = self.now;
        let Some(todo) = self.edit_sprint(id).and_then(|it| it.work.todos.get_mut(at)) else {
            return;
        };
        change(&mut todo.progress);
        todo.progress.updated_at = Some(now);
        let (item, progress) = (todo.backlog_id.clone(), todo.progress.clone());
        let item = item.and_then(|id| self.item(&id)).cloned();
        let todo_id = progress.todo_id.clone();
        let is_its = |item: &Item| match progress.status.is_terminal() {
            true => item.is_todo(&todo_id),
            false => item.may_be_todo(&todo_id),
        };
        if let Some(mut item) = item.filter(is_its) {
            item.todo = Some(ItemTodo { sprint_id: id.clone(), progress });
            self.put_item(item);
        }
    }

    /// An item is its todo no longer; one that is another by now stays as it is.
    pub(super) fn leave_todo(&mut self, todo: &Todo, change: impl FnOnce(&mut Item)) {
        let item = todo.backlog_id.as_ref().and_then(|id| self.item(id));
        let is_its = |item: &&Item| item.may_be_todo(&todo.progress.todo_id);
        let Some(item) = item.filter(is_its) else { return };
        let id = item.backlog_id.clone();
        self.edit_item(&id, |item| {
            item.todo = None;
            change(item);
        });
    }

    /// The sprint that an item is in shows it as it is now; a todo that is over, and a sprint, say what was so then.
    pub(super) fn show(&mut self, item: &Item) {
        let Some(ItemTodo { sprint_id, progress }) = &item.todo else { return };
        let open = self.sprint(sprint_id).filter(|sprint| !sprint.status.is_terminal());
        let Some(todos) = open.map(|sprint| &sprint.work.todos) else { return };
        let at = todos.iter().position(|todo| todo.progress.todo_id == progress.todo_id);
        let todo = Todo::of(item, progress, todos);
        let is_over = progress.status.is_terminal();
        if at.map_or(is_over, |at| todos[at] == todo || is_over && todos[at].progress == *progress)
        {
            return;
        }
        let Some(sprint) = self.edit_sprint(sprint_id) else { return };
        match at {
            Some(at) => sprint.work.todos[at] = todo,
            None => sprint.work.todos.push(todo),
        }
    }

    /// A new sprint.
    pub(super) fn create_sprint(&mut self, sprint: Sprint) {
        self.planning.sprints.insert(sprint.sprint_id.clone(), Arc::new(sprint));
    }

    /// The scheduler as it is now.
    pub(super) fn scheduler(&self) -> &Scheduler {
        self.planning.scheduler.as_ref().unwrap_or(&self.before().scheduler)
    }

    /// The scheduler for changing.
    pub(super) fn edit_scheduler(&mut self) -> &mut Scheduler {
        let before = &self.before().scheduler;
        Arc::make_mut(self.planning.scheduler.get_or_insert_with(|| Arc::clone(before)))
    }

    /// The active backlog item as it is now.
    pub(super) fn item(&self, id: &ItemId) -> Option<&Item> {
        match self.planning.items.get(id) {
            Some(item) => item.status.is_active().then_some(&**item),
            None => self.before().backlog.get(id).map(Arc::as_ref),
        }
    }

    /// The active backlog items as they are now.
    pub(super) fn items(&self) -> BTreeMap<&ItemId, &Item> {
        let before = self.before().backlog.iter();
        let mut items: BTreeMap<_, _> = before.map(|(id, item)| (id, &**item)).collect();
        for (id, item) in &self.planning.items {
            if item.status.is_active() {
                items.insert(id, item);
            } else {
                items.remove(id);
            }
        }
        items
    }

    /// The fingerprints of items that left the backlog, as they are now.
    pub(super) fn settled_items(&self) -> BTreeMap<&ItemId, &str> {
        let before = &self.before().settled_items;
        let mut settled: BTreeMap<_, _> =
            before.iter().map(|(id, print)| (id, print.as_str())).collect();
        for (id, item) in &self.planning.items {
            if item.status.is_active() {
                settled.remove(id);
            } else {
                settled.insert(id, &item.fingerprint);
            }
        }
        settled
    }

    /// Whether an item has left the backlog, as it is now.
    pub(super) fn is_settled(&self, id: &ItemId) -> bool {
        match self.planning.items.get(id) {
            Some(item) => !item.status.is_active(),
            None => self.before().settled_items.contains_key(id),
        }
    }

    /// A plan as it is now.
    pub(super) fn stored_plan(&self, id: &PlanId) -> Option<&StoredPlan> {
        self.planning.plans.get(id).or_else(|| self.before().plans.get(id)).map(Arc::as_ref)
    }

    /// The plan is now this.
    pub(super) fn put_plan(&mut self, plan: StoredPlan) {
        self.planning.plans.insert(plan.plan_id.clone(), Arc::new(plan));
    }

    /// The items that this turn has changed so far.
    pub(super) fn changed_items(&self) -> impl Iterator<Item = &Item> {
        self.planning.items.values().map(Arc::as_ref)
    }

    /// The item is now this.
    pub(super) fn put_item(&mut self, item: Item) {
        self.show(&item);
        self.planning.items.insert(item.backlog_id.clone(), Arc::new(item));
    }

    /// Changes an active item, if there is one.
    pub(super) fn edit_item(&mut self, id: &ItemId, change: impl FnOnce(&mut Item)) {
        if let Some(mut item) = self.item(id).cloned() {
            change(&mut item);
            item.updated_at = self.now;
            self.put_item(item);
        }
    }

    /// Adds a line to a sprint's history and to its recent activity.
    pub(super) fn sprint_event(
        &mut self,
        id: &SprintId,
        kind: SprintEventKind,
        summary: &str,
        payload: Value,
    ) {
        let now = self.now;
        if let Some(sprint) = self.edit_sprint(id) {
            let request_id = payload.get("request_id").and_then(Value::as_str).unwrap_or_default();
            let role = payload.get("role").and_then(Value::as_str).unwrap_or_default();
            sprint.note(Activity {
                timestamp: now,
                kind,
                role: role.to_owned(),
                request_id: request_id.to_owned(),
                summary: summary.to_owned(),
            });
        }
        let event = SprintEvent { timestamp: now, kind, summary: summary.to_owned(), payload };
        self.change(Change::SprintEvent(id.clone(), event));
    }
}
