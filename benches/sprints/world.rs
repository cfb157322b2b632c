//! A world around the engine in which everything goes well: records, a clock that is told, roles and
//! hands that do what is planned. Nothing of it touches a disk.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use teams::domain::actor::Actor;
use teams::domain::change::Change;
use teams::domain::config::CutoffTime;
use teams::domain::effect::{EffectKind, EffectOutcome, Inspection, LandingNotes};
use teams::domain::envelope::EnvelopeKind;
use teams::domain::event::Event;
use teams::domain::evidence::{
    BaseStanding, Candidate, ChangeKind, ChangedPath, CheckRun, CheckVerdict, Evidence, Isolation,
};
use teams::domain::ids::{ChannelId, EffectId, EnvelopeId, IdSupply, MessageId, RequestId, RunId};
use teams::domain::incoming::Command;
use teams::domain::item::{Item, ItemSource, ItemStatus};
use teams::domain::language::Language;
use teams::domain::lifecycle::StepName;
use teams::domain::modes::StartMode;
use teams::domain::outgoing::{Act, OutgoingOutcome};
use teams::domain::policy::{GateTable, Limits, Policy, SprintPolicy};
use teams::domain::request::{Request, RequestEvent};
use teams::domain::result::RoleResult;
use teams::domain::role::Role;
use teams::domain::run::{Run, RunOutcome, RunReport};
use teams::domain::sprint::{CloseoutStatus, Duty, GitBaseline, Kickoff, PlanningStep, Sprint};
use teams::domain::state::State;
use teams::domain::time::Timestamp;
use teams::domain::usage::Usage;
use teams::engine::sprint::backlog::relevant;
use teams::engine::{Answer, Input, decide};

/// What this thread has had of the processor. Everything here is work without a wait, and a shared machine
/// lets it stand now and then.
pub(crate) fn processor() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap()
}

/// The milestone of every sprint here.
pub(crate) const MILESTONE: &str = "Sign in";

/// A workspace in which people start sprints and no check is left out.
pub(crate) fn policy() -> Policy {
    Policy {
        guilds: [].into(),
        dm: true,
        mentions: true,
        rights: BTreeMap::new(),
        four_eyes: false,
        refusals: Default::default(),
        gates: GateTable::default(),
        trusted_bots: [].into(),
        own_ids: [].into(),
        relay_channel: Some(ChannelId(11)),
        actions: BTreeMap::new(),
        train: Default::default(),
        check_names: vec!["tests".to_owned()],
        shown_checks: Default::default(),
        checks_digest: String::new(),
        proves_base: false,
        project: "demo".to_owned(),
        agents: Default::default(),
        branch: "main".to_owned(),
        serves: Role::ALL.into(),
        relay_debug: false,
        language: Language::En,
        limits: Limits::default(),
        budgets: teams::domain::budget::Budgets::default(),
        prices: teams::domain::budget::PriceTable::default(),
        planning: Default::default(),
        lifecycle: std::sync::Arc::clone(teams::domain::lifecycle::Lifecycle::built_in()),
        routes: std::sync::Arc::clone(teams::domain::routes::Routes::built_in()),
        sprint: SprintPolicy {
            start_mode: StartMode::ManualDaily,
            cutoff: CutoffTime::try_from("22:00".to_owned()).ok(),
            ..SprintPolicy::default()
        },
    }
}

/// What is looked at beside the decisions themselves.
#[derive(Default)]
pub(crate) struct Watch {
    /// How long each kind of step took, its changes applied.
    pub(crate) times: BTreeMap<String, Vec<Duration>>,
    /// The first step of each kind: the records before it, and what happened.
    pub(crate) moments: BTreeMap<String, (State, Input)>,
    /// The histories of requests.
    pub(crate) histories: BTreeMap<RequestId, Vec<RequestEvent>>,
}

pub(crate) struct World {
    pub(crate) state: State,
    pub(crate) policy: Policy,
    pub(crate) decisions: u64,
    pub(crate) watch: Option<Watch>,
    /// How many items the planner finds where there are none.
    pub(crate) finds: usize,
    clock: i64,
    next: u128,
}

impl World {
    pub(crate) fn new(finds: usize) -> Self {
        Self {
            state: State::default(),
            policy: policy(),
            decisions: 0,
            watch: None,
            finds,
            clock: 1_774_310_400_000,
            next: 1 << 32,
        }
    }

    fn submit(&mut self, event: Event) -> Answer {
        self.clock += 1_000;
        self.next += 1 << 16;
        self.decisions += 1;
        let now = Timestamp::from_millis(self.clock);
        let input = Input { event, now, ids: IdSupply::new(uuid::Uuid::from_u128(self.next)) };
        let Some(mut watch) = self.watch.take() else {
            let decision = decide(&self.state, &self.policy, input);
            decision.changes.iter().for_each(|change| self.state.apply(change));
            return decision.answer;
        };
        let name = self.name(&input.event);
        if !watch.moments.contains_key(&name) {
            watch.moments.insert(name.clone(), (self.state.clone(), input.clone()));
        }
        let start = processor();
        let decision = decide(&self.state, &self.policy, input);
        decision.changes.iter().for_each(|change| self.state.apply(change));
        watch.times.entry(name).or_default().push(processor() - start);
        for change in decision.changes {
            if let Change::Event(id, event) = change {
                watch.histories.entry(id).or_default().push(event);
            }
        }
        self.watch = Some(watch);
        decision.answer
    }

    /// What kind of step an event is.
    fn name(&self, event: &Event) -> String {
        match event {
            Event::ReportReady { relay_id } => {
                let envelope = &self.state.envelopes[relay_id];
                let request = &self.state.requests[&envelope.envelope.request_id];
                match (request.duty(), request.planning_step()) {
                    (_, Some(step)) => format!("planning result: {step}"),
                    (Some(duty), None) => format!("result of {}", duty.as_str()),
                    (None, None) => "result of a todo's role".to_owned(),
                }
            }
            Event::EffectFinished { effect_id, .. } => match &self.state.effects[effect_id].kind {
                EffectKind::Merge { .. } => "a todo ends".to_owned(),
                kind => format!("{} is done", kind.name()),
            },
            Event::Command { .. } => "command".to_owned(),
            _ => "other".to_owned(),
        }
    }

    pub(crate) fn command(&mut self, command: Command) {
        let answer =
            self.submit(Event::Command { actor: Actor::Operator, command, interaction: None });
        let Answer::Say(content) = &answer else { panic!("{answer:?}") };
        assert!(!content.key.contains("refused"), "{content:?}");
    }

    pub(crate) fn kickoff(&mut self) {
        let kickoff = Kickoff { milestone: MILESTONE.to_owned(), ..Kickoff::default() };
        self.command(Command::SprintStart { kickoff: Box::new(kickoff) });
    }

    /// Puts items into the backlog, which a person does.
    pub(crate) fn add(&mut self, items: &[Value]) {
        for some in items.chunks(100) {
            let payload = json!({ "backlog_items": some });
            self.command(Command::BacklogMerge { payload, source: ItemSource::User });
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.state.scheduler.active_sprint_id.is_some()
    }

    /// Everything goes well, until nothing is left to do or `enough`.
    pub(crate) fn play(&mut self, mut enough: impl FnMut(&World) -> bool) {
        while !enough(self) {
            let envelope = self.state.envelopes.values().next();
            if let Some((kind, id)) = envelope.map(|it| (it.kind, it.relay_id.clone())) {
                match kind {
                    EnvelopeKind::Delegate => self.work(&id),
                    EnvelopeKind::Report | EnvelopeKind::Forward => {
                        self.submit(Event::ReportReady { relay_id: id });
                    }
                }
            } else if let Some(id) = self.state.effects.keys().next().cloned() {
                self.perform(id);
            } else {
                break;
            }
            self.deliver();
        }
    }

    /// Discord takes everything that waits.
    fn deliver(&mut self) {
        while let Some(outgoing) = self.state.outgoing.values().next() {
            let outgoing_id = outgoing.outgoing_id.clone();
            let number = self.next as u64;
            let outcome = match outgoing.act {
                Act::OpenRoom { .. } => {
                    OutgoingOutcome::RoomOpened { thread_id: ChannelId(number) }
                }
                Act::Post(_) | Act::Card { .. } | Act::Board { .. } | Act::Envelope { .. } => {
                    let channel_id = ChannelId(10);
                    OutgoingOutcome::Posted { channel_id, message_ids: vec![MessageId(number)] }
                }
                Act::React { .. } | Act::Unbutton { .. } | Act::Pin { .. } => OutgoingOutcome::Done,
            };
            let (id, parts_done) = (outgoing_id.clone(), 0);
            self.submit(Event::OutgoingStarting { outgoing_id: id, parts_done });
            self.submit(Event::OutgoingFinished { outgoing_id, outcome });
        }
    }

    /// A role does what it was asked, well.
    fn work(&mut self, id: &EnvelopeId) {
        let found = &self.state.envelopes[id];
        let request = &self.state.requests[&found.envelope.request_id];
        let mut result = match request.duty() {
            Some(duty) => self.dutiful(request, duty),
            None => good(found.target_role, found.step),
        };
        if request.todo_id.is_some() && found.target_role == Role::Planner {
            result.artifacts = vec!["shared_workspace/sprints/s/spec.md".to_owned()];
        }
        let run = Run {
            attempt: found.attempts + 1,
            agent: teams::domain::config::AgentKind::Rehearsal,
            ..Run::new(
                RunId::parse(&format!("run-{}", self.next)).unwrap(),
                request.request_id.clone(),
                (found.target_role, found.step),
                id.clone(),
                Timestamp::from_millis(self.clock),
            )
        };
        assert_eq!(self.submit(Event::RunStarting(run.clone())), Answer::Accepted);
        let report = RunReport {
            run_id: run.run_id,
            request_id: run.request_id,
            role: run.role,
            step: run.step,
            generation: 1,
            documents_present: result.artifacts.clone(),
            outcome: RunOutcome::Result(Arc::new(result)),
            changed_paths: Vec::new(),
            work: None,
            usage: Usage::default(),
            session_id: None,
            duration_ms: 5,
            repairs: 0,
            dropped_bytes: 0,
            isolation: None,
            agent: "rehearsal".to_owned(),
            agent_kind: teams::domain::config::AgentKind::Rehearsal,
            model: String::new(),
            heard: Vec::new(),
            conversation: Default::default(),
        };
        self.submit(Event::RunFinished(Box::new(report)));
    }

    fn perform(&mut self, effect_id: EffectId) {
        let outcome = Box::new(good_effect(&self.state.effects[&effect_id].kind));
        let id = effect_id.clone();
        self.submit(Event::EffectStarting { effect_id: id, pre_state: Value::Null });
        self.submit(Event::EffectFinished { effect_id, outcome });
    }

    fn dutiful(&self, request: &Request, duty: Duty) -> RoleResult {
        match duty {
            Duty::Planning => {
                let sprint = &self.state.sprints[request.sprint_id.as_ref().unwrap()];
                self.planned(request.planning_step().unwrap(), sprint)
            }
            Duty::ClosingReport => {
                let words = json!({ "sprint_report": { "headline": "It went well." } });
                result(Role::Planner, words)
            }
            Duty::ResearchPrepass => panic!("research is not configured"),
            Duty::PlanReview => result(Role::Architect, json!({ "plan_findings": [] })),
            Duty::Sourcing => result(Role::Sourcer, json!({})),
            Duty::SourcerReview | Duty::OngoingReview | Duty::BlockedReview => {
                result(Role::Planner, json!({}))
            }
        }
    }

    fn planned(&self, step: PlanningStep, sprint: &Sprint) -> RoleResult {
        let mine: Vec<&Item> = relevant(self.state.backlog.values().map(Arc::as_ref), sprint)
            .into_iter()
            .filter(|item| item.status != ItemStatus::Blocked)
            .collect();
        let items: Vec<Value> = match step {
            PlanningStep::MilestoneRefinement | PlanningStep::ArtifactSync => Vec::new(),
            PlanningStep::BacklogDefinition => {
                (0..self.finds).map(|number| item("found", number, true)).collect()
            }
            PlanningStep::BacklogPrioritization => (1..)
                .zip(&mine)
                .map(|(rank, item)| json!({ "backlog_id": item.backlog_id, "priority_rank": rank }))
                .collect(),
            PlanningStep::TodoFinalization => mine
                .iter()
                .map(|item| {
                    let sprint = &sprint.sprint_id;
                    json!({ "backlog_id": item.backlog_id, "planned_in_sprint_id": sprint })
                })
                .collect(),
        };
        result(Role::Planner, json!({ "backlog_items": items }))
    }
}

/// An entry of a backlog payload, with all that planning asks for.
pub(crate) fn item(kind: &str, number: usize, is_of_the_milestone: bool) -> Value {
    let words = "What it is for, who asked for it and how it is seen to work. ".repeat(4);
    json!({
        "title": format!("{kind} {number}: a page that shows what was asked for"),
        "summary": words,
        "scope": format!("the {kind} thing number {number}, and nothing beside it"),
        "kind": "feature",
        "acceptance_criteria": ["it works", "it is fast", "people find it"],
        "milestone_title": if is_of_the_milestone { MILESTONE } else { "Another time" },
        "origin": {
            "milestone_ref": MILESTONE, "spec_refs": ["spec.md"], "requirement_refs": ["R-1"],
        },
    })
}

fn result(role: Role, proposals: Value) -> RoleResult {
    let mut result = RoleResult::new(role, "r");
    result.summary = format!("{role} is done");
    result.proposals = serde_json::from_value(proposals).unwrap();
    result
}

/// A result that moves the step on.
fn good(role: Role, step: Option<StepName>) -> RoleResult {
    let target = match step.as_ref().map(StepName::as_str) {
        Some("planner_draft" | "planner_finalize") => "architect_guidance",
        Some("architect_review" | "developer_revision") => "qa_validation",
        _ => "",
    };
    let outcome = if step == Some(StepName::of("qa_validation")) { "complete" } else { "advance" };
    let rows: Vec<Value> = ["C-1", "C-2", "C-3"]
        .iter()
        .map(|it| json!({ "criterion": it, "source": "s", "evidence": "e", "result": "pass" }))
        .collect();
    let proposals = json!({
        "workflow_transition": {
            "outcome": outcome, "target_phase": "", "target_step": target,
            "reopen_category": "", "reason": "", "unresolved_items": [], "finalize_phase": true,
        },
        "qa_validation": {
            "methodology": "evidence_matrix", "decision": "pass", "evidence_matrix": rows,
            "passed_checks": [], "findings": [], "residual_risks": [], "not_checked": [],
        },
    });
    result(role, proposals)
}

fn candidate() -> Candidate {
    Candidate {
        commit: "c1".to_owned(),
        base: "b0".to_owned(),
        paths: vec![ChangedPath { path: "a.py".to_owned(), kind: ChangeKind::Modified }],
        subject: "subject".to_owned(),
        added_lines: 1,
        removed_lines: 0,
        tree: String::new(),
        excerpt: String::new(),
        marks: Vec::new(),
    }
}

fn evidence(commit: &str) -> Evidence {
    let check = CheckRun {
        name: "tests".to_owned(),
        command: vec!["make".to_owned()],
        exit_code: Some(0),
        verdict: CheckVerdict::Passed,
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

fn good_effect(kind: &EffectKind) -> EffectOutcome {
    match kind {
        EffectKind::Commit { .. } => EffectOutcome::Committed(candidate()),
        EffectKind::Base { .. } => EffectOutcome::BaseProven(BaseStanding::default()),
        EffectKind::Checks { commit, .. } => EffectOutcome::Checked(evidence(commit)),
        EffectKind::UseChecks { .. } => EffectOutcome::ChecksChanged,
        EffectKind::Merge { commit, .. } => {
            EffectOutcome::Merged { commit: commit.clone(), notes: LandingNotes::default() }
        }
        EffectKind::Rebase { .. } => EffectOutcome::Rebased(candidate()),
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
