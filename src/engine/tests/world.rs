//! A world around the engine: records, a clock that is told, and hands that do what is planned.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::domain::change::Change;
use crate::domain::effect::{EffectKind, EffectOutcome, EffectState, Inspection};
use crate::domain::envelope::{EnvelopeKind, Place};
use crate::domain::event::Event;
use crate::domain::evidence::{
    Candidate, ChangeKind, ChangedPath, CheckRun, CheckVerdict, Evidence,
};
use crate::domain::gate::Gate;
use crate::domain::ids::{
    ChannelId, EffectId, EnvelopeId, GuildId, IdSupply, MessageId, RequestId, RunId, UserId,
};
use crate::domain::incoming::{Actor, Author, Command, Message};
use crate::domain::ingress::Ingress;
use crate::domain::outgoing::{Act, Button, ButtonAct, OutgoingOutcome};
use crate::domain::policy::{Holders, Limits, Policy, Right};
use crate::domain::request::{Language, Request, RequestStatus};
use crate::domain::result::RoleResult;
use crate::domain::role::Role;
use crate::domain::routing::RoutingPolicy;
use crate::domain::run::{FailKind, Run, RunOutcome, RunReport, Usage};
use crate::domain::sprint::{CloseoutStatus, GitBaseline};
use crate::domain::state::State;
use crate::domain::time::Timestamp;
use crate::domain::workflow::Step;
use crate::engine::{Answer, Decision, Input, Wake, decide};

pub(super) const OWNER: UserId = UserId(100);
pub(super) const GUILD: GuildId = GuildId(1);
pub(super) const GENERAL: ChannelId = ChannelId(10);

pub(super) fn policy() -> Policy {
    let owner = Holders { users: [OWNER].into(), roles: BTreeSet::new() };
    Policy {
        guilds: [GUILD].into(),
        dm: true,
        mentions: true,
        rights: [(Right::Administer, owner)].into(),
        four_eyes: false,
        gates: crate::domain::policy::GateTable::default(),
        trusted_bots: BTreeSet::new(),
        own_ids: [UserId(1)].into(),
        relay_channel: Some(ChannelId(11)),
        actions: std::collections::BTreeMap::new(),
        has_checks: true,
        project: "demo".to_owned(),
        agent: "rehearsal".to_owned(),
        branch: "main".to_owned(),
        serves: Role::ALL.into(),
        relay_debug: false,
        language: Language::En,
        limits: Limits::default(),
        budgets: crate::domain::budget::Budgets::default(),
        prices: crate::domain::budget::PriceTable::default(),
        routing: RoutingPolicy::default(),
        sprint: crate::domain::policy::SprintPolicy::default(),
    }
}

/// Something that waits to be done by somebody outside the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Todo {
    Run(EnvelopeId),
    Report(EnvelopeId),
    Effect(EffectId),
}

pub(super) struct World {
    pub(super) state: State,
    pub(super) policy: Policy,
    pub(super) log: Vec<Change>,
    pub(super) said: Vec<String>,
    pub(super) clock: i64,
    /// The conversation that agents have.
    pub(super) session: Option<String>,
    /// What each run costs.
    pub(super) usage: Usage,
    next: u128,
    /// What decisions made possible, oldest first.
    pub(super) wakes: Vec<Wake>,
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
            usage: Usage::default(),
            next: 1 << 32,
        }
    }

    /// One event, decided twice to see that the same history gives the same decision.
    pub(super) fn submit(&mut self, event: Event) -> Answer {
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
            if let Change::Outgoing(outgoing) = &change
                && let Act::Post { content, .. } = &outgoing.act
                && !self.state.outgoing.contains_key(&outgoing.outgoing_id)
            {
                self.said.push(content.key.clone());
            }
            self.state.apply(&change);
            self.log.push(change);
        }
        self.check();
        decision.answer
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
        let Some(due) = crate::engine::due(&self.state, &self.policy) else {
            return false;
        };
        self.clock = self.clock.max(due.millis());
        self.submit(Event::Tick);
        true
    }

    /// What always holds: a delegated request has exactly one thing that moves it, an ended one none.
    fn check(&self) {
        assert_eq!(crate::engine::sprint::consistent(&self.state), Ok(()));
        for request in self.state.requests.values() {
            let id = &request.request_id;
            let envelopes =
                self.state.envelopes.values().filter(|e| e.envelope.request_id == *id).count();
            let effects = self
                .state
                .effects
                .values()
                .filter(|e| e.kind.request_id() == Some(id))
                .filter(|e| !matches!(e.kind, EffectKind::Release { .. }))
                .count();
            let gates = self.state.gates.values().filter(|g| g.request_id == *id).count();
            let movers = envelopes + effects + gates;
            match request.status {
                RequestStatus::Delegated => assert_eq!(movers, 1, "{request:#?}"),
                RequestStatus::Blocked => {
                    assert_eq!(movers, 0, "{request:#?}");
                    assert!(request.blocked.is_some());
                }
                RequestStatus::Queued | RequestStatus::Uncommitted => {
                    panic!("nobody is named: {request:#?}")
                }
                RequestStatus::Completed
                | RequestStatus::Committed
                | RequestStatus::Failed
                | RequestStatus::Cancelled => assert_eq!(gates, 0),
            }
            assert!(request.spent.counted_turns() <= self.policy.limits.turns);
        }
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
        }
    }

    pub(super) fn command(&mut self, command: Command) -> Answer {
        self.submit(Event::Command { actor: Actor::Operator, command })
    }

    pub(super) fn request(&self, id: &RequestId) -> Request {
        let last = self.log.iter().rev().find_map(|change| {
            let Change::Request(request) = change else { return None };
            (request.request_id == *id).then(|| (**request).clone())
        });
        last.expect("a request")
    }

    pub(super) fn todo(&self) -> Vec<Todo> {
        let mut todo = Vec::new();
        for envelope in self.state.envelopes.values() {
            let id = envelope.relay_id.clone();
            if envelope.not_before.is_some_and(|at| at.millis() > self.clock) {
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
                Act::Post { .. } | Act::Card { .. } | Act::Envelope { .. } => {
                    OutgoingOutcome::Posted {
                        channel_id: GENERAL,
                        message_ids: vec![MessageId(number)],
                    }
                }
                Act::React { .. } | Act::Unbutton { .. } => OutgoingOutcome::Done,
            };
            self.submit(Event::OutgoingFinished { outgoing_id: id, outcome });
        }
    }

    /// A role works an envelope to this outcome.
    pub(super) fn run(&mut self, envelope: &EnvelopeId, outcome: RunOutcome) {
        let found = self.state.envelopes[envelope].clone();
        let run = Run {
            run_id: RunId::parse(&format!("run-{}", self.next)).expect("an id"),
            request_id: found.envelope.request_id.clone(),
            role: found.target_role,
            step: found.step,
            envelope_id: envelope.clone(),
            attempt: found.attempts + 1,
            generation: 1,
            started_at: Timestamp::from_millis(self.clock),
            pre_tree: None,
            agent: crate::domain::config::AgentKind::Rehearsal,
            approach: crate::domain::run::Approach::Usual,
            allowance: crate::domain::budget::Allowance::default(),
        };
        if self.submit(Event::RunStarting(run.clone())) != Answer::Accepted {
            return;
        }
        let documents_present = match &outcome {
            RunOutcome::Result(result) => result.artifacts.clone(),
            RunOutcome::Failed { .. } => Vec::new(),
        };
        let report = RunReport {
            run_id: run.run_id,
            request_id: run.request_id,
            role: run.role,
            step: run.step,
            generation: 1,
            outcome,
            changed_paths: Vec::new(),
            documents_present,
            usage: self.usage,
            session_id: self.session.clone(),
            duration_ms: 5,
            repairs: 0,
            dropped_bytes: 0,
            agent: "rehearsal".to_owned(),
            agent_kind: crate::domain::config::AgentKind::Rehearsal,
            model: String::new(),
            heard: Vec::new(),
            conversation: Default::default(),
        };
        self.submit(Event::RunFinished(Box::new(report)));
    }

    pub(super) fn effect(&mut self, id: &EffectId, outcome: EffectOutcome) {
        let started = Event::EffectStarting { effect_id: id.clone(), pre_state: Value::Null };
        if self.submit(started) == Answer::Accepted {
            let effect = &self.state.effects[id];
            assert!(matches!(effect.state, EffectState::Started { .. }));
            self.submit(Event::EffectFinished {
                effect_id: id.clone(),
                outcome: Box::new(outcome),
            });
        }
    }

    /// Does one thing, and it goes well.
    pub(super) fn do_well(&mut self, todo: &Todo) {
        match todo {
            Todo::Run(id) => {
                let envelope = self.state.envelopes[id].clone();
                let request = &self.state.requests[&envelope.envelope.request_id];
                let mut result = match request.duty() {
                    Some(duty) => super::sprints::dutiful(self, request, duty),
                    None => good(envelope.target_role, envelope.step),
                };
                if request.todo_id.is_some() && envelope.target_role == Role::Planner {
                    result.artifacts = vec!["shared_workspace/sprints/s/spec.md".to_owned()];
                }
                self.run(id, RunOutcome::Result(Box::new(result)));
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

    pub(super) fn dead_letters(&self) -> usize {
        let dead = |change: &&Change| matches!(change, Change::Envelope(envelope) if envelope.place == Place::Dead);
        self.log.iter().filter(dead).count()
    }
}

pub(in crate::engine) fn candidate(commit: &str) -> Candidate {
    Candidate {
        commit: commit.to_owned(),
        base: "b0".to_owned(),
        paths: vec![ChangedPath { path: "a.py".to_owned(), kind: ChangeKind::Modified }],
        subject: "subject".to_owned(),
        added_lines: 1,
        removed_lines: 0,
        tree: format!("tree of {commit}"),
        excerpt: String::new(),
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
    };
    Evidence { commit: commit.to_owned(), checks: vec![check], at: Timestamp::from_millis(0) }
}

pub(super) fn good_effect(kind: &EffectKind, commit: &str) -> EffectOutcome {
    match kind {
        EffectKind::Commit { .. } => EffectOutcome::Committed(candidate(commit)),
        EffectKind::Checks { commit, .. } => {
            EffectOutcome::Checked(evidence(commit, CheckVerdict::Passed))
        }
        EffectKind::Merge { commit, .. } => EffectOutcome::Merged { commit: commit.clone() },
        EffectKind::Rebase { .. } => EffectOutcome::Rebased(candidate("c2")),
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
        EffectKind::Collect { .. } => EffectOutcome::Collected,
        EffectKind::Archive { .. } => EffectOutcome::Archived {
            report_path: "shared_workspace/sprints/s/report.md".to_owned(),
        },
        EffectKind::Publish { .. } => EffectOutcome::Published { url: String::new() },
        EffectKind::Discover { watermarks } => {
            EffectOutcome::Discovered { findings: Vec::new(), watermarks: watermarks.clone() }
        }
    }
}

/// A result of `role` with these proposals.
pub(super) fn result(role: Role, proposals: Value) -> RoleResult {
    let mut result = RoleResult::new(role, "r");
    result.summary = format!("{role} is done");
    result.proposals = serde_json::from_value(proposals).expect("proposals");
    result
}

/// A result that moves the step on.
pub(super) fn good(role: Role, step: Option<Step>) -> RoleResult {
    let target = match step {
        Some(Step::PlannerDraft | Step::PlannerFinalize) => "architect_guidance",
        Some(Step::ArchitectReview | Step::DeveloperRevision) => "qa_validation",
        _ => "",
    };
    let outcome = if step == Some(Step::QaValidation) { "complete" } else { "advance" };
    let row = json!({ "criterion": "c", "source": "s", "evidence": "e", "result": "pass" });
    result(
        role,
        json!({
            "workflow_transition": {
                "outcome": outcome, "target_phase": "", "target_step": target,
                "reopen_category": "", "reason": "", "unresolved_items": [], "finalize_phase": true,
            },
            "qa_validation": {
                "methodology": "evidence_matrix", "decision": "pass", "evidence_matrix": [row],
                "passed_checks": [], "findings": [], "residual_risks": [], "not_checked": [],
            },
        }),
    )
}

pub(super) fn crash() -> RunOutcome {
    RunOutcome::Failed { kind: FailKind::Crash, message: "it died".to_owned(), until: None }
}

/// A press of a button on the card of a gate.
pub(super) fn press(gate: &Gate, act: ButtonAct) -> Command {
    let (channel_id, message_id) = gate.card.unwrap_or((GENERAL, MessageId(1)));
    let button = Button { act, subject: gate.gate_id.to_string(), version: gate.version };
    Command::Press { button, message_id, channel_id }
}
