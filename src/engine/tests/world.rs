//! A world around the engine: records, a clock that is told, agents and hands that do what is planned, and the
//! project's branch. What is begun and what comes of it are two events: anything may come in between.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::domain::actor::{Actor, Author};
use crate::domain::change::Change;
use crate::domain::check_proposal::{CheckProposal, ProposedCommand};
use crate::domain::config::AgentKind;
use crate::domain::conflict::Conflict;
use crate::domain::effect::{EffectKind, EffectOutcome, EffectState, Inspection, LandingNotes};
use crate::domain::envelope::{Envelope, EnvelopeFolder, EnvelopeKind};
use crate::domain::event::Event;
use crate::domain::evidence::{
    BaseStanding, Candidate, ChangeKind, ChangedPath, CheckRun, CheckVerdict, Evidence, Isolation,
};
use crate::domain::gate::Gate;
use crate::domain::ids::{
    BootId, ChannelId, EffectId, EnvelopeId, GuildId, IdSupply, ItemId, MessageId, RequestId,
    RunId, UserId,
};
use crate::domain::incoming::{Command, Message};
use crate::domain::ingress::Ingress;
use crate::domain::item::{Item, ItemStatus};
use crate::domain::language::Language;
use crate::domain::lifecycle::{Lifecycle, StepName};
use crate::domain::outgoing::{Act, Button, ButtonAct, OutgoingOutcome, Post};
use crate::domain::policy::{Holders, Limits, Policy, Prove, Right};
use crate::domain::preparation::PreparationQuestion;
use crate::domain::record::AnyRecord;
use crate::domain::request::{Car, EventKind, Request, RequestStatus};
use crate::domain::result::{
    EvidenceResult, EvidenceRow, Methodology, Proposals, QaDecision, QaValidation, RoleResult,
};
use crate::domain::role::Role;
use crate::domain::routes::{AllWord, Lane, LaneSteps, Routes};
use crate::domain::run::{FailKind, Run, RunOutcome, RunReport};
use crate::domain::sprint::{CloseoutStatus, GitBaseline};
use crate::domain::state::State;
use crate::domain::time::Timestamp;
use crate::domain::usage::Usage;
use crate::engine::budget;
use crate::engine::lifecycle::steps;
use crate::engine::{Answer, Decision, Input, Wake, decide, plan_is_full};
use std::sync::Arc;

pub(super) const OWNER: UserId = UserId(100);
pub(super) const GUILD: GuildId = GuildId(1);
pub(super) const GENERAL: ChannelId = ChannelId(10);
/// The commit that the branch begins with.
const FIRST: &str = "b0";

/// What a project with a Makefile shows.
pub(super) fn make_test() -> CheckProposal {
    let check = ProposedCommand {
        name: "make test".to_owned(),
        command: vec!["make".to_owned(), "test".to_owned()],
        files: Vec::new(),
        because: "Makefile".to_owned(),
    };
    CheckProposal { checks: vec![check], ..CheckProposal::default() }
}

pub(super) fn policy() -> Policy {
    let owner = Holders { users: [OWNER].into(), roles: BTreeSet::new() };
    Policy {
        guilds: [GUILD].into(),
        dm: true,
        mentions: true,
        refusals: crate::domain::policy::RefusalForm::default(),
        rights: [(Right::Administer, owner)].into(),
        four_eyes: false,
        gates: crate::domain::policy::GateTable::default(),
        trusted_bots: BTreeSet::new(),
        own_ids: [UserId(1)].into(),
        relay_channel: Some(ChannelId(11)),
        actions: std::collections::BTreeMap::new(),
        train: crate::domain::policy::TrainPolicy::default(),
        check_names: vec!["tests".to_owned(), "unit".to_owned()],
        shown_checks: CheckProposal::default(),
        checks_digest: String::new(),
        proves_base: false,
        project: "demo".to_owned(),
        agents: Role::ALL.map(|role| (role, AgentKind::Rehearsal)).into(),
        branch: "main".to_owned(),
        serves: Role::ALL.into(),
        relay_debug: false,
        language: Language::En,
        limits: Limits::default(),
        budgets: crate::domain::budget::Budgets::default(),
        prices: crate::domain::budget::PriceTable::default(),
        planning: Default::default(),
        lifecycle: Arc::clone(Lifecycle::built_in()),
        routes: all_steps(),
        sprint: crate::domain::policy::SprintPolicy::default(),
    }
}

/// Routes by which every request takes every step, whatever it asks for.
pub(super) fn all_steps() -> Arc<Routes> {
    let mut routes = Routes::clone(Routes::built_in());
    routes.intents.values_mut().for_each(|lane| *lane = Lane::Full);
    // What is small goes by a lane less.
    routes.lanes.insert(Lane::Standard, LaneSteps::All(AllWord::All));
    Arc::new(routes)
}

/// Something that waits to be done by somebody outside the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Todo {
    Run(EnvelopeId),
    Report(EnvelopeId),
    Effect(EffectId),
}

/// Something that the world can do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Move {
    /// A worker takes an envelope, and its agent begins, or one that an earlier start began is found.
    BeginRun(EnvelopeId),
    /// An agent is done.
    EndRun(RunId),
    /// A report is read.
    Report(EnvelopeId),
    /// An executor takes an effect: what it will need is durable, and the world is about to be touched.
    BeginEffect(EffectId),
    /// A commit arrives at the branch; nobody has told the engine yet.
    Land(EffectId),
    /// An executor is done.
    EndEffect(EffectId),
}

/// The world outside the records that outlives the team's process, and what this process is at.
#[derive(Debug, Default)]
struct Outside {
    /// The project's branch, oldest first; a person may add to it.
    branch: Vec<String>,
    /// Where each request's worktree stands.
    bases: BTreeMap<RequestId, String>,
    /// What each commit of the team was made on.
    grown_from: BTreeMap<String, String>,
    /// What was brought to the branch, by the effect that did.
    landings: BTreeMap<EffectId, Vec<Car>>,
    /// Agents that this process looks after.
    agents: BTreeMap<RunId, Run>,
    /// Effects that this process has begun.
    hands: BTreeSet<EffectId>,
}

pub(super) struct World {
    pub(super) state: State,
    pub(super) policy: Policy,
    pub(super) log: Vec<Change>,
    pub(super) said: Vec<String>,
    pub(super) clock: i64,
    /// The conversation that agents have.
    pub(super) session: Option<String>,
    /// Whether people commit to the branch all the time, in the same places.
    pub(super) restless: bool,
    /// What each run costs.
    pub(super) usage: Usage,
    next: u128,
    /// What decisions made possible, oldest first.
    pub(super) wakes: Vec<Wake>,
    outside: Outside,
    /// Each request and each item as it was last written.
    requests: BTreeMap<RequestId, Request>,
    items: BTreeMap<ItemId, Item>,
    /// How often each request was recorded as committed, and the commit.
    committed: BTreeMap<RequestId, Vec<String>>,
}

impl World {
    pub(super) fn new(policy: Policy) -> World {
        World {
            state: State::default(),
            policy,
            log: Vec::new(),
            wakes: Vec::new(),
            said: Vec::new(),
            clock: 1_774_310_400_000,
            session: None,
            restless: false,
            usage: Usage::default(),
            next: 1 << 32,
            outside: Outside { branch: vec![FIRST.to_owned()], ..Outside::default() },
            requests: BTreeMap::new(),
            items: BTreeMap::new(),
            committed: BTreeMap::new(),
        }
    }

    /// One event, decided twice to see that the same history gives the same decision.
    pub(super) fn submit(&mut self, event: Event) -> Answer {
        self.notice(&event);
        self.clock += 1_000;
        self.next += 1 << 16;
        let input = Input {
            event,
            now: Timestamp::from_millis(self.clock),
            ids: IdSupply::new(uuid::Uuid::from_u128(self.next)),
        };
        let decision: Decision = decide(&self.state, &self.policy, input.clone());
        assert_eq!(decision, decide(&self.state, &self.policy, input));
        self.wakes.extend(decision.effects);
        for change in decision.changes {
            if let Change::Save(AnyRecord::Outgoing(outgoing)) = &change
                && let Act::Post(Post { content, .. }) = &outgoing.act
                && !self.state.outgoing.contains_key(&outgoing.outgoing_id)
            {
                self.said.push(content.key.clone());
            }
            self.keep(&change);
            self.state.apply(&change);
            self.log.push(change);
        }
        self.check();
        self.check_proof();
        decision.answer
    }

    /// What an outcome says about the branch is so.
    fn notice(&mut self, event: &Event) {
        if let Event::EffectFinished { effect_id, outcome } = event
            && let EffectOutcome::Merged { commit, .. } = &**outcome
            && let Some(effect) = self.state.effects.get(effect_id)
        {
            let mut cars = effect.kind.lands();
            // Where the tests say what a merge came to, it is so.
            if let Some(last) = cars.last_mut() {
                last.commit.clone_from(commit);
            }
            self.put_on_branch(effect_id, cars);
        }
    }

    fn put_on_branch(&mut self, effect: &EffectId, cars: Vec<Car>) {
        if !self.outside.landings.contains_key(effect) {
            self.outside.branch.extend(cars.iter().map(|car| car.commit.clone()));
            self.outside.landings.insert(effect.clone(), cars);
        }
    }

    /// The newest state of records that leave the engine's memory.
    fn keep(&mut self, change: &Change) {
        if let Change::Save(AnyRecord::Request(request)) = change {
            self.requests.insert(request.request_id.clone(), (**request).clone());
        } else if let Change::Save(AnyRecord::Backlog(item)) = change {
            self.items.insert(item.backlog_id.clone(), (**item).clone());
        } else if let Change::Event(id, event) = change
            && event.kind == EventKind::Committed
        {
            self.committed.entry(id.clone()).or_default().push(event.summary.clone());
        }
    }

    /// Time passes until the next envelope may be taken; whether one waits for that.
    pub(super) fn wait_for_an_envelope(&mut self) -> bool {
        let delayed = self.state.envelopes.values().filter_map(|it| it.not_before);
        let next = delayed.map(Timestamp::millis).filter(|at| *at > self.clock).min();
        self.clock = next.unwrap_or(self.clock);
        next.is_some()
    }

    /// Time passes, and the engine is told where it asked to be.
    pub(super) fn wait_until_due(&mut self) -> bool {
        let Some(due) = crate::engine::due(&self.state, &self.policy).pop_first() else {
            return false;
        };
        self.clock = self.clock.max(due.millis());
        self.submit(Event::Tick);
        true
    }

    /// What always holds: a delegated request has exactly one thing that moves it, an ended one none.
    /// No commit is on its way to the branch whose checks were not green, where there are checks.
    fn check_proof(&self) {
        for effect in self.state.effects.values() {
            let EffectKind::Merge { request_id, commit, .. } = &effect.kind else { continue };
            let Some(request) = self.state.requests.get(request_id) else { continue };
            if !self.policy.has_checks() || request.work.candidate.is_none() {
                continue;
            }
            let proof = request.work.evidence.as_ref().filter(|proof| proof.commit == *commit);
            assert!(
                proof.is_some_and(|it| it.is_green() || it.is_red_before()),
                "unproven on its way: {request:#?}"
            );
        }
    }

    fn check(&self) {
        assert_eq!(crate::engine::sprint::consistent(&self.state), Ok(()));
        self.check_landings();
        self.check_sprint_moves();
        for request in self.state.requests.values() {
            let id = &request.request_id;
            // That of a run which was called back goes when the run ends.
            let is_called_back = |envelope: &Envelope| {
                let run = self.state.runs.values().find(|it| it.envelope_id == envelope.relay_id);
                run.is_some_and(|run| request.work.active_run.as_ref() != Some(&run.run_id))
            };
            let envelopes = self.state.envelopes.values();
            let envelopes =
                envelopes.filter(|e| e.envelope.request_id == *id && !is_called_back(e)).count();
            let effects = self
                .state
                .effects
                .values()
                .filter(|e| e.kind.request_id() == Some(id))
                .filter(|e| !matches!(e.kind, EffectKind::Release { .. }))
                .count();
            let gates = self.state.gates.values().filter(|g| g.request_id == *id).count();
            let movers = envelopes + effects + gates;
            // Behind the first in the queue to the branch, the queue itself moves it.
            let waits = request.work.landing_since.is_some();
            match request.status {
                RequestStatus::Delegated if waits => {
                    assert!(movers <= 1 && envelopes + gates == 0, "{request:#?}");
                }
                RequestStatus::Delegated => assert_eq!(movers, 1, "{request:#?}"),
                RequestStatus::Blocked => {
                    assert_eq!(movers, 0, "{request:#?}");
                    assert!(request.blocked.is_some());
                }
                RequestStatus::Queued => panic!("nobody is named: {request:#?}"),
                RequestStatus::Completed
                | RequestStatus::Committed
                | RequestStatus::Failed
                | RequestStatus::Cancelled => assert_eq!(gates, 0),
            }
            assert!(!waits || request.status == RequestStatus::Delegated, "{request:#?}");
            assert!(request.work.spent.counted_turns() <= self.policy.limits.turns);
        }
        self.check_train();
    }

    /// One thing at a time moves the branch, and the train is never without something that moves it.
    fn check_train(&self) {
        let effects = || self.state.effects.values().map(|effect| &effect.kind);
        let merges = effects().filter(|it| !it.lands().is_empty()).count();
        assert!(merges <= 1, "two land at once: {:#?}", self.state.effects);
        let queued = |id: &RequestId| crate::engine::place(&self.state, id).is_some();
        let moved =
            effects().any(|it| !it.lands().is_empty() || it.change_of().is_some_and(queued));
        let waits = self.state.requests.values().any(|it| it.work.landing_since.is_some());
        assert!(!waits || moved, "nobody lands: {:#?}", self.state.effects);
        let first = |id: &RequestId| crate::engine::place(&self.state, id) == Some(1);
        let each = self.policy.train.prove == Prove::Each;
        let moved = effects().any(|it| !it.lands().is_empty() || it.change_of().is_some_and(first));
        assert!(!waits || !each || moved, "the first one waits: {:#?}", self.state.effects);
    }

    /// What is on the branch is recorded as that, once, and its item is done. While nobody has told the engine
    /// yet, the request waits for it and the item is nobody else's.
    fn check_landings(&self) {
        let mut requests = BTreeSet::new();
        let mut items = BTreeSet::new();
        let landings = self.outside.landings.iter();
        let landings =
            landings.flat_map(|(effect, cars)| cars.iter().map(move |car| (effect, car)));
        for (effect, Car { request_id, commit }) in landings {
            let request = &self.requests[request_id];
            assert!(requests.insert(request_id), "{request_id} is on the branch twice");
            let item = request.backlog_id.as_ref().and_then(|id| self.items.get(id));
            if let Some(item) = item {
                let id = &item.backlog_id;
                assert!(items.insert(id), "{id} is on the branch twice");
                assert_ne!(item.status, ItemStatus::Pending, "{id} is on the branch");
            }
            if self.state.effects.contains_key(effect) {
                assert!(!request.status.is_terminal(), "it ended while it lands: {request:#?}");
                continue;
            }
            assert_eq!(request.status, RequestStatus::Committed, "{request:#?}");
            assert_eq!(request.outcome.commit_sha.as_ref(), Some(commit));
            assert_eq!(&self.committed[request_id], std::slice::from_ref(commit), "recorded once");
            assert!(item.is_none_or(|it| it.status == ItemStatus::Done), "{item:#?}");
        }
        for effect in self.state.effects.values() {
            for car in effect.kind.lands() {
                let request = &self.requests[&car.request_id];
                let begun = matches!(effect.state, EffectState::Started { .. });
                assert!(!begun || !request.status.is_terminal(), "it may land yet: {request:#?}");
            }
        }
    }

    /// A sprint that holds the slot is moved by something: a request of its own, a todo at work, an effect, or the day.
    fn check_sprint_moves(&self) {
        let Some(sprint) = self.state.active_sprint() else { return };
        let open = |id: &Option<RequestId>| {
            let request = id.as_ref().and_then(|id| self.state.requests.get(id));
            request.is_some_and(|request| !request.status.is_terminal())
        };
        let looked_at = self.state.effects.values().any(|effect| {
            matches!(&effect.kind, EffectKind::Baseline { sprint_id } | EffectKind::Inspect { sprint_id }
                if *sprint_id == sprint.sprint_id)
        });
        let at_work = sprint.work.todos.iter().any(|todo| {
            todo.progress.status == crate::domain::sprint::TodoStatus::Running
                && open(&todo.progress.request_id)
        });
        let now = Timestamp::from_millis(self.clock);
        let is_queued = |todo: &crate::domain::sprint::Todo| {
            todo.progress.status == crate::domain::sprint::TodoStatus::Queued
        };
        let waits_for_next_day = sprint.work.todos.iter().any(is_queued)
            && budget::declined_at(&self.state.spending, &self.policy, now).is_some();
        let rests = sprint.work.paused_by.is_some() || waits_for_next_day;
        let moves = looked_at || at_work || rests || open(&sprint.planning_request_id);
        assert!(moves, "nobody moves it: {sprint:#?}");
    }

    pub(super) fn message(&mut self, text: &str) -> RequestId {
        let number = self.next as u64;
        self.submit(Event::Message(self.words(GENERAL, number, text)));
        let newest = self.state.requests.values().max_by_key(|r| r.created_at);
        newest.map(|request| request.request_id.clone()).expect("a request")
    }

    pub(super) fn words(&self, channel: ChannelId, number: u64, text: &str) -> Message {
        Message {
            message_id: MessageId(number),
            channel_id: channel,
            guild_id: Some(GUILD),
            author: Author {
                id: OWNER,
                name: "owner".to_owned(),
                is_bot: false,
                server_roles: Vec::new(),
            },
            content: text.to_owned(),
            addressed: true,
            role: None,
            attachments: Vec::new(),
            created_at: Timestamp::from_millis(self.clock),
            via: Ingress::Message,
            reply_to: None,
            read_up_to: None,
        }
    }

    pub(super) fn command(&mut self, command: Command) -> Answer {
        self.submit(Event::Command { actor: Actor::Operator, command, interaction: None })
    }

    pub(super) fn request(&self, id: &RequestId) -> Request {
        self.requests[id].clone()
    }

    /// An item as it was last written.
    pub(super) fn item(&self, id: &ItemId) -> Item {
        self.items[id].clone()
    }

    pub(super) fn todo(&self) -> Vec<Todo> {
        let mut todo = Vec::new();
        for envelope in self.state.envelopes.values() {
            let id = envelope.relay_id.clone();
            if envelope.not_before.is_some_and(|at| at.millis() > self.clock) {
                continue;
            }
            if envelope.kind == EnvelopeKind::Delegate && !self.may_run(envelope) {
                continue;
            }
            todo.push(match envelope.kind {
                EnvelopeKind::Delegate => Todo::Run(id),
                EnvelopeKind::Report | EnvelopeKind::Forward => Todo::Report(id),
            });
        }
        todo.extend(self.state.effects.keys().cloned().map(Todo::Effect));
        todo
    }

    /// Whether the worker of a role takes this envelope now.
    fn may_run(&self, envelope: &Envelope) -> bool {
        let now = Timestamp::from_millis(self.clock);
        let request = &envelope.envelope.request_id;
        let mut others = self.state.runs.values().filter(|it| it.request_id == *request);
        if others.any(|run| run.envelope_id != envelope.relay_id) {
            return false;
        }
        self.state.runs.values().any(|run| run.envelope_id == envelope.relay_id)
            || plan_is_full(&self.state, &self.policy, AgentKind::Rehearsal, now).is_none()
    }

    /// Discord takes everything that waits.
    pub(super) fn deliver(&mut self) {
        while let Some(outgoing) = self.state.outgoing.values().next().cloned() {
            let id = outgoing.outgoing_id.clone();
            self.submit(Event::OutgoingStarting { outgoing_id: id.clone(), parts_done: 0 });
            let number = self.next as u64;
            let outcome = match outgoing.act {
                Act::OpenRoom { .. } => {
                    OutgoingOutcome::RoomOpened { thread_id: ChannelId(number) }
                }
                Act::Post(_) | Act::Card { .. } | Act::Board { .. } | Act::Envelope { .. } => {
                    OutgoingOutcome::Posted {
                        channel_id: GENERAL,
                        message_ids: vec![MessageId(number)],
                    }
                }
                Act::React { .. } | Act::Unbutton { .. } | Act::Pin { .. } => OutgoingOutcome::Done,
            };
            self.submit(Event::OutgoingFinished { outgoing_id: id, outcome });
        }
    }

    /// A role works an envelope to this outcome.
    pub(super) fn run(&mut self, envelope: &EnvelopeId, outcome: RunOutcome) {
        if let Some(run) = self.begin_run(envelope) {
            self.end_run(&run, outcome);
        }
    }

    /// A worker takes an envelope: its agent begins, anew where an earlier start left one behind.
    pub(super) fn begin_run(&mut self, envelope: &EnvelopeId) -> Option<RunId> {
        let found = self.state.envelopes[envelope].clone();
        let earlier = self.state.runs.values().find(|run| run.envelope_id == *envelope).cloned();
        let run = match earlier {
            Some(run) => {
                let (run_id, generation) = (run.run_id.clone(), run.generation);
                self.submit(Event::RunTakenAway {
                    run_id: run_id.clone(),
                    generation,
                    usage: Default::default(),
                });
                let run = self.state.runs.get(&run_id)?;
                self.outside.agents.insert(run_id.clone(), Run::clone(run));
                return Some(run_id);
            }
            None => Run {
                attempt: found.attempts + 1,
                agent: AgentKind::Rehearsal,
                ..Run::new(
                    RunId::parse(&format!("run-{}", self.next)).expect("an id"),
                    found.envelope.request_id.clone(),
                    (found.target_role, found.step),
                    envelope.clone(),
                    Timestamp::from_millis(self.clock),
                )
            },
        };
        self.worktree(&run.request_id);
        if self.submit(Event::RunStarting(run.clone())) != Answer::Accepted {
            return None;
        }
        let id = run.run_id.clone();
        let boot = BootId::parse("boot-a").expect("an id");
        let claimed = Event::RunClaimed { run_id: id.clone(), generation: run.generation, boot };
        if self.submit(claimed) != Answer::Accepted {
            // Its request was withdrawn as it began: the worker has nothing to end.
            let generation = run.generation;
            self.submit(Event::RunTakenAway { run_id: id, generation, usage: Default::default() });
            return None;
        }
        self.outside.agents.insert(id.clone(), run);
        Some(id)
    }

    /// The agent of a run that an earlier start began is found, and looked after.
    pub(super) fn adopt_run(&mut self, envelope: &EnvelopeId) -> Option<RunId> {
        let run = self.state.runs.values().find(|run| run.envelope_id == *envelope)?.clone();
        let id = run.run_id.clone();
        self.outside.agents.insert(id.clone(), Run::clone(&run));
        Some(id)
    }

    /// An agent is done.
    pub(super) fn end_run(&mut self, id: &RunId, outcome: RunOutcome) {
        let run = self.outside.agents.remove(id).expect("an agent at work");
        let documents_present = match &outcome {
            RunOutcome::Result(result) => result.artifacts.clone(),
            RunOutcome::Failed { .. } => Vec::new(),
        };
        let report = RunReport {
            run_id: run.run_id,
            request_id: run.request_id,
            role: run.role,
            step: run.step,
            generation: run.generation,
            outcome,
            changed_paths: Vec::new(),
            work: None,
            documents_present,
            usage: self.usage,
            session_id: self.session.clone(),
            duration_ms: 5,
            repairs: 0,
            dropped_bytes: 0,
            isolation: None,
            agent: "rehearsal".to_owned(),
            agent_kind: crate::domain::config::AgentKind::Rehearsal,
            model: String::new(),
            heard: Vec::new(),
            conversation: Default::default(),
        };
        self.submit(Event::RunFinished(Box::new(report)));
    }

    /// Nobody looks after an agent any more, and the envelope is left to another attempt.
    pub(super) fn lose_run(&mut self, id: &RunId, agent_lives: bool) {
        let run = self.outside.agents.remove(id).expect("an agent at work");
        let reason = "the disk is full".to_owned();
        let relay_id = run.envelope_id;
        self.submit(Event::EnvelopeFailed { relay_id, reason, agent_lives, usage: self.usage });
    }

    /// The process is killed and begins again: what it was at is lost, what it did is not.
    pub(super) fn restart(&mut self) {
        self.outside.agents.clear();
        self.outside.hands.clear();
        self.submit(Event::Started { announce: false, serves: Role::ALL.to_vec() });
    }

    /// A person puts a commit onto the branch.
    pub(super) fn person_commits(&mut self) {
        self.next += 1;
        self.outside.branch.push(format!("p{}", self.next));
    }

    pub(super) fn head(&self) -> String {
        self.outside.branch.last().cloned().expect("a commit")
    }

    /// Where the worktree of a request stands; it is made where there is none.
    fn worktree(&mut self, id: &RequestId) -> String {
        let head = self.head();
        self.outside.bases.entry(id.clone()).or_insert(head).clone()
    }

    /// What the world can do next, but for people and the clock.
    pub(super) fn moves(&self) -> Vec<Move> {
        let mut moves = Vec::new();
        for todo in self.todo() {
            match todo {
                Todo::Run(id) => {
                    let at_work = |run: &Run| run.envelope_id == id;
                    if !self.outside.agents.values().any(at_work) {
                        moves.push(Move::BeginRun(id));
                    }
                }
                Todo::Report(id) => moves.push(Move::Report(id)),
                Todo::Effect(id) if self.outside.hands.contains(&id) => {
                    if self.may_land(&id) {
                        moves.push(Move::Land(id.clone()));
                    }
                    moves.push(Move::EndEffect(id));
                }
                Todo::Effect(id) if self.may_begin(&id) => moves.push(Move::BeginEffect(id)),
                Todo::Effect(_) => {}
            }
        }
        moves.extend(self.outside.agents.keys().cloned().map(Move::EndRun));
        moves
    }

    pub(super) fn agents(&self) -> Vec<RunId> {
        self.outside.agents.keys().cloned().collect()
    }

    pub(super) fn agent(&self, id: &RunId) -> &Run {
        &self.outside.agents[id]
    }

    /// A worktree is given back last.
    fn may_begin(&self, id: &EffectId) -> bool {
        let EffectKind::Release { request_id } = &self.state.effects[id].kind else { return true };
        let uses = |kind: &EffectKind| {
            !matches!(kind, EffectKind::Release { .. }) && kind.request_id() == Some(request_id)
        };
        !self.state.runs.values().any(|run| run.request_id == *request_id)
            && !self.state.effects.values().any(|effect| uses(&effect.kind))
    }

    /// Whether a merge under way can move the branch: it stands where the commit grew from.
    fn may_land(&self, id: &EffectId) -> bool {
        let cars = self.state.effects[id].kind.lands();
        let Some(first) = cars.first() else { return false };
        let base = self.outside.grown_from.get(&first.commit);
        !self.outside.landings.contains_key(id) && base == Some(&self.head())
    }

    /// A commit arrives at the branch.
    pub(super) fn land(&mut self, id: &EffectId) {
        let cars = self.state.effects[id].kind.lands();
        self.put_on_branch(id, cars);
        self.check();
    }

    /// An executor takes an effect. Whether it is wanted still.
    pub(super) fn begin_effect(&mut self, id: &EffectId) -> bool {
        let effect = &self.state.effects[id];
        let planned = matches!(effect.state, EffectState::Planned);
        // What a commit or a merge will be is in its record: it is done again by that.
        let resumes = matches!(effect.kind, EffectKind::Commit { .. } | EffectKind::Merge { .. });
        if planned || !resumes {
            let started = Event::EffectStarting { effect_id: id.clone(), pre_state: Value::Null };
            if self.submit(started) != Answer::Accepted {
                return false;
            }
        }
        assert!(matches!(self.state.effects[id].state, EffectState::Started { .. }));
        self.outside.hands.insert(id.clone());
        true
    }

    /// An executor is done.
    pub(super) fn end_effect(&mut self, id: &EffectId, outcome: EffectOutcome) {
        self.outside.hands.remove(id);
        let outcome = Box::new(outcome);
        self.submit(Event::EffectFinished { effect_id: id.clone(), outcome });
    }

    /// What git makes of an effect, where nothing is in its way; `fresh` names a new commit. None for what is
    /// not about commits.
    pub(super) fn by_git(&mut self, id: &EffectId, fresh: &str) -> Option<EffectOutcome> {
        match self.state.effects[id].kind.clone() {
            EffectKind::Commit { request_id, .. } => {
                let base = self.worktree(&request_id);
                self.outside.grown_from.insert(fresh.to_owned(), base.clone());
                Some(EffectOutcome::Committed(Candidate { base, ..candidate(fresh) }))
            }
            EffectKind::Rebase { request_id, onto, .. } => {
                let base = onto.map_or_else(|| self.head(), |car| car.commit);
                self.outside.bases.insert(request_id, base.clone());
                self.outside.grown_from.insert(fresh.to_owned(), base.clone());
                Some(EffectOutcome::Rebased(Candidate { base, ..candidate(fresh) }))
            }
            EffectKind::Merge { commit, .. } => {
                let is_there = self.outside.landings.contains_key(id) || self.may_land(id);
                let head = self.head();
                Some(match is_there {
                    true => EffectOutcome::Merged { commit, notes: LandingNotes::default() },
                    false => EffectOutcome::BranchMoved { head },
                })
            }
            EffectKind::Base { .. }
            | EffectKind::Checks { .. }
            | EffectKind::UseChecks { .. }
            | EffectKind::Action { .. }
            | EffectKind::Release { .. }
            | EffectKind::Baseline { .. }
            | EffectKind::Inspect { .. }
            | EffectKind::Archive { .. }
            | EffectKind::Publish { .. }
            | EffectKind::Discover { .. } => None,
        }
    }

    /// A rebase meets a conflict: the worktree stands on the branch's head, with the marks of both sides.
    pub(super) fn conflict(&mut self, id: &EffectId) -> Conflict {
        let EffectKind::Rebase { request_id, commit, .. } = self.state.effects[id].kind.clone()
        else {
            panic!("not a rebase")
        };
        let (head, base) = (self.head(), self.worktree(&request_id));
        self.outside.bases.insert(request_id, head.clone());
        let paths = vec!["a.py".to_owned()];
        Conflict { head, commit, base, paths, ..Conflict::default() }
    }

    /// Whether a commit of the sprint is on its way to the branch.
    pub(super) fn lands(&self) -> bool {
        self.state.effects.values().any(|effect| {
            matches!(effect.kind, EffectKind::Merge { .. })
                && matches!(effect.state, EffectState::Started { .. })
        })
    }

    /// Whether the commit of a merge is on the branch.
    pub(super) fn has_landed(&self, id: &EffectId) -> bool {
        self.outside.landings.contains_key(id)
    }

    pub(super) fn effect(&mut self, id: &EffectId, outcome: EffectOutcome) {
        if self.begin_effect(id) {
            self.end_effect(id, outcome);
        }
    }

    /// What a run of a role comes to, where it goes well.
    pub(super) fn good_result(
        &self,
        request: &RequestId,
        role: Role,
        step: Option<StepName>,
    ) -> RoleResult {
        let request = &self.requests[request];
        let mut result = match request.duty() {
            Some(duty) => super::sprints::dutiful(self, request, duty),
            None => good(role, step),
        };
        if request.todo_id.is_some() && role == Role::Planner {
            result.artifacts = vec!["shared_workspace/sprints/s/spec.md".to_owned()];
        }
        result
    }

    /// Does one thing, and it goes well.
    pub(super) fn do_well(&mut self, todo: &Todo) {
        match todo {
            Todo::Run(id) => {
                let envelope = self.state.envelopes[id].clone();
                let (request, role) = (&envelope.envelope.request_id, envelope.target_role);
                let result = self.good_result(request, role, envelope.step);
                self.run(id, RunOutcome::Result(Arc::new(result)));
            }
            Todo::Report(id) => {
                self.submit(Event::ReportReady { relay_id: id.clone() });
            }
            Todo::Effect(id) => {
                let outcome = good_effect(&self.state.effects[id].kind, "c1");
                self.effect(id, outcome);
            }
        }
    }

    /// Makes one move, and it goes well.
    pub(super) fn move_well(&mut self, next: &Move) {
        match next {
            Move::BeginRun(id) => {
                self.begin_run(id);
            }
            Move::EndRun(id) => {
                let run = self.agent(id).clone();
                let result = self.good_result(&run.request_id, run.role, run.step);
                self.end_run(id, RunOutcome::Result(Arc::new(result)));
            }
            Move::Report(id) => {
                self.submit(Event::ReportReady { relay_id: id.clone() });
            }
            Move::BeginEffect(id) => {
                self.begin_effect(id);
            }
            Move::Land(id) => self.land(id),
            Move::EndEffect(id) => {
                let fresh = format!("c{}", self.next);
                let kind = self.state.effects[id].kind.clone();
                let outcome = self.by_git(id, &fresh).unwrap_or_else(|| good_effect(&kind, &fresh));
                self.end_effect(id, outcome);
            }
        }
    }

    /// Everything goes well, until nothing is left to do.
    pub(super) fn finish_well(&mut self) {
        self.finish_with(|_| None);
    }

    /// Everything goes well except the effects that `other` has an outcome for.
    pub(super) fn finish_with(
        &mut self,
        mut other: impl FnMut(&EffectKind) -> Option<EffectOutcome>,
    ) {
        while let Some(todo) = self.todo().first().cloned() {
            if let Todo::Effect(id) = &todo
                && let Some(outcome) = other(&self.state.effects[id].kind)
            {
                self.effect(id, outcome);
            } else {
                self.do_well(&todo);
            }
        }
    }

    /// Commits of the team on the branch.
    pub(super) fn landed(&self) -> usize {
        self.outside.landings.len()
    }

    pub(super) fn dead_letters(&self) -> usize {
        let dead = |change: &&Change| matches!(change, Change::Save(AnyRecord::Envelope(envelope)) if envelope.place == EnvelopeFolder::Dead);
        self.log.iter().filter(dead).count()
    }
}

pub(in crate::engine) fn candidate(commit: &str) -> Candidate {
    Candidate {
        commit: commit.to_owned(),
        base: FIRST.to_owned(),
        paths: vec![ChangedPath { path: "a.py".to_owned(), kind: ChangeKind::Modified }],
        subject: "subject".to_owned(),
        added_lines: 1,
        removed_lines: 0,
        tree: format!("tree of {commit}"),
        excerpt: String::new(),
        marks: Vec::new(),
    }
}

/// What is asked before the dependencies of a change are prepared.
pub(super) fn question(digest: &str) -> PreparationQuestion {
    PreparationQuestion {
        digest: digest.to_owned(),
        files: vec!["a.lock".to_owned()],
        commands: vec!["prepare it".to_owned()],
        has_network: true,
        secrets: Vec::new(),
    }
}

pub(in crate::engine) fn evidence(commit: &str, verdict: CheckVerdict) -> Evidence {
    let check = CheckRun {
        name: "tests".to_owned(),
        command: vec!["make".to_owned()],
        exit_code: Some(i32::from(verdict != CheckVerdict::Passed)),
        verdict,
        tests_passed: Some(3),
        tests_failed: None,
        log_digest: String::new(),
        log_tail: "tail".to_owned(),
        duration_ms: 1_234,
        tests: Default::default(),
        compared: None,
    };
    Evidence {
        commit: commit.to_owned(),
        checks: vec![check],
        at: Timestamp::from_millis(0),
        isolation: Isolation::Bubblewrap,
        checks_digest: String::new(),
        tree_ms: 0,
        environments: Vec::new(),
        repetitions: 0,
    }
}

pub(super) fn good_effect(kind: &EffectKind, commit: &str) -> EffectOutcome {
    match kind {
        EffectKind::Commit { .. } => EffectOutcome::Committed(candidate(commit)),
        EffectKind::Base { .. } => EffectOutcome::BaseProven(BaseStanding::default()),
        EffectKind::Checks { commit, .. } => {
            EffectOutcome::Checked(evidence(commit, CheckVerdict::Passed))
        }
        EffectKind::UseChecks { .. } => EffectOutcome::ChecksChanged,
        EffectKind::Merge { commit, .. } => {
            EffectOutcome::Merged { commit: commit.clone(), notes: LandingNotes::default() }
        }
        EffectKind::Rebase { onto, .. } => {
            let usual = candidate("c2");
            let base = onto.as_ref().map_or(usual.base.clone(), |car| car.commit.clone());
            EffectOutcome::Rebased(Candidate { base, ..usual })
        }
        EffectKind::Action { .. } => {
            EffectOutcome::ActionEnded { exit_code: Some(0), log_tail: String::new() }
        }
        EffectKind::Release { .. } => EffectOutcome::Released,
        EffectKind::Baseline { .. } => EffectOutcome::Baselined(GitBaseline {
            head_sha: "base".to_owned(),
            ..GitBaseline::default()
        }),
        EffectKind::Inspect { .. } => EffectOutcome::Inspected(Inspection {
            status: CloseoutStatus::Verified,
            commits: Vec::new(),
            uncommitted_paths: Vec::new(),
            message: String::new(),
        }),
        EffectKind::Archive { .. } => EffectOutcome::Archived {
            report_path: "shared_workspace/sprints/s/report.md".to_owned(),
        },
        EffectKind::Publish { .. } => EffectOutcome::Published { url: String::new() },
        EffectKind::Discover { watermarks } => {
            EffectOutcome::Discovered { findings: Vec::new(), watermarks: watermarks.clone() }
        }
    }
}

/// A verdict with these rows, each a criterion and what was seen.
pub(in crate::engine) fn verdict(
    decision: QaDecision,
    rows: &[(&str, EvidenceResult)],
) -> QaValidation {
    let row = |(criterion, result): &(&str, EvidenceResult)| EvidenceRow {
        criterion: (*criterion).to_owned(),
        source: String::new(),
        evidence: String::new(),
        result: *result,
    };
    QaValidation {
        methodology: Methodology::EvidenceMatrix,
        decision,
        evidence_matrix: rows.iter().map(row).collect(),
        passed_checks: Vec::new(),
        findings: Vec::new(),
        residual_risks: Vec::new(),
        not_checked: Vec::new(),
    }
}

/// A result of `role` with these proposals.
pub(super) fn result(role: Role, proposals: Value) -> RoleResult {
    let mut result = RoleResult::new(role, "r");
    result.summary = format!("{role} is done");
    let (proposals, faults) = Proposals::read(Some(&proposals));
    assert_eq!(faults, [""; 0]);
    result.proposals = proposals;
    result
}

/// A result that moves the step on.
pub(super) fn good(role: Role, step: Option<StepName>) -> RoleResult {
    let target = match step {
        Some(steps::DRAFT | steps::FINALIZE) => "architect_guidance",
        Some(steps::REVIEW | steps::REVISION) => "qa_validation",
        _ => "",
    };
    let reviews = step.is_some_and(|step| step.as_str().starts_with("review_"));
    let outcome = if reviews || step == Some(steps::QA) { "complete" } else { "advance" };
    let row = json!({ "criterion": "C-1", "source": "s", "evidence": "e", "result": "pass" });
    result(
        role,
        json!({
            "workflow_transition": {
                "outcome": outcome, "target_phase": "", "target_step": target,
                "reopen_category": "", "reason": "", "unresolved_items": [], "finalize_phase": true,
            },
            "acceptance_criteria": ["it does what was asked for"],
            "qa_validation": {
                "methodology": "evidence_matrix", "decision": "pass", "evidence_matrix": [row],
                "passed_checks": [], "findings": [], "residual_risks": [], "not_checked": [],
            },
        }),
    )
}

pub(super) fn crash() -> RunOutcome {
    RunOutcome::Failed {
        kind: FailKind::Crash,
        message: "it died".to_owned(),
        until: None,
        answer: None,
    }
}

/// A press of a button on the card of a gate.
pub(super) fn press(gate: &Gate, act: ButtonAct) -> Command {
    let (channel_id, message_id) = gate.card.unwrap_or((GENERAL, MessageId(1)));
    let button = Button { act, subject: gate.gate_id.to_string(), version: gate.version };
    Command::Press { button, message_id, channel_id }
}
