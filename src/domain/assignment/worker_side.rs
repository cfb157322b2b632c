//! What the worker does about one generation of a run.

use std::collections::BTreeMap;

use super::{
    CallAnswer, Control, HubBody, Lease, MARGIN_MS, Millis, RESEND_MS, RunCall, RunEnd, WorkerBody,
};
use crate::domain::ids::CallId;

/// Controls that are kept before it is their turn; the hub says them again.
const EARLY: usize = 64;

/// Where a run stands at its worker.
#[derive(Debug, Clone, PartialEq)]
enum Phase {
    /// It waits to be let begin.
    Claiming,
    /// Its agent is at work.
    Working,
    /// Its agent is being ended, and this is what is said then; its own report where nothing stands here.
    Ending(Option<RunEnd>),
    /// It is over, and the hub has not settled it yet.
    Over(RunEnd),
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkerStep {
    /// Say this to the hub.
    Send(WorkerBody),
    /// Begin with the agent, or go on with the one that is there.
    Begin,
    /// Keep this durably, and then give it to the agent.
    Apply(Control),
    /// End the agent; [`WorkerSide::over`] says when it has.
    Stop,
    /// The agent's call has an answer.
    Answer {
        /// The call.
        call: CallId,
        /// What it is.
        answer: CallAnswer,
    },
    /// The hub needs nothing of it any more.
    Forget,
}

/// What the worker does about one generation of a run.
#[derive(Debug, Clone)]
pub struct WorkerSide {
    phase: Phase,
    lease: Lease,
    /// When what the hub has answered was asked.
    contact: Millis,
    /// When it was last said how things stand.
    said: Millis,
    applied: u32,
    early: BTreeMap<u32, Control>,
    calls: BTreeMap<CallId, (RunCall, Millis)>,
}

impl WorkerSide {
    /// An assignment that is durable here, with the number of the last control that its agent knows.
    #[must_use]
    pub fn claim(applied: u32, now: Millis) -> (WorkerSide, Vec<WorkerStep>) {
        WorkerSide::new(Phase::Claiming, applied, now)
    }

    /// One that was over before this start of the worker.
    #[must_use]
    pub fn was_over(over: RunEnd, now: Millis) -> (WorkerSide, Vec<WorkerStep>) {
        WorkerSide::new(Phase::Over(over), 0, now)
    }

    fn new(phase: Phase, applied: u32, now: Millis) -> (WorkerSide, Vec<WorkerStep>) {
        let mut side = WorkerSide {
            phase,
            lease: Lease::default(),
            contact: now,
            said: now,
            applied,
            early: BTreeMap::new(),
            calls: BTreeMap::new(),
        };
        let first = side.say(now);
        (side, first)
    }

    /// How things stand, as the hub needs it.
    fn say(&mut self, now: Millis) -> Vec<WorkerStep> {
        self.said = now;
        let body = match &self.phase {
            Phase::Claiming => WorkerBody::Claim { asked_ms: now },
            Phase::Working | Phase::Ending(_) => {
                WorkerBody::Renew { asked_ms: now, applied: self.applied }
            }
            Phase::Over(over) => WorkerBody::Over(over.clone()),
        };
        vec![WorkerStep::Send(body)]
    }

    /// The hub says something, to this start of the worker and about this generation.
    pub fn receive(&mut self, body: HubBody, now: Millis) -> Vec<WorkerStep> {
        match body {
            // The hub does not know what it was told.
            HubBody::Assignment(_) => self.say(now),
            HubBody::Grant { asked_ms, lease } => {
                self.heard(asked_ms, lease);
                match self.phase {
                    Phase::Claiming => {
                        self.phase = Phase::Working;
                        let mut steps = vec![WorkerStep::Begin];
                        steps.extend(self.next_control());
                        steps
                    }
                    Phase::Working | Phase::Ending(_) | Phase::Over(_) => Vec::new(),
                }
            }
            HubBody::Renewed { asked_ms, cancel, lease } => {
                self.heard(asked_ms, lease);
                match self.phase {
                    Phase::Working if cancel => self.stop(None),
                    Phase::Working | Phase::Claiming | Phase::Ending(_) | Phase::Over(_) => {
                        Vec::new()
                    }
                }
            }
            HubBody::Control(control) => {
                if control.number > self.applied && self.early.len() < EARLY {
                    self.early.insert(control.number, control);
                }
                self.next_control()
            }
            HubBody::Answer { call, answer } => match self.calls.remove(&call) {
                Some(_) => vec![WorkerStep::Answer { call, answer }],
                None => Vec::new(),
            },
            HubBody::Ended { reason: _ } => self.end_for_good(),
            HubBody::Settled { unable, refused: _ } => match &self.phase {
                Phase::Over(over) if matches!(over, RunEnd::Unable(_)) == unable => {
                    vec![WorkerStep::Forget]
                }
                // It is about an earlier attempt.
                Phase::Over(_) => Vec::new(),
                // What is settled is not what is at work here.
                Phase::Claiming | Phase::Working | Phase::Ending(_) => Vec::new(),
            },
        }
    }

    /// The hub wants no more of this generation.
    fn end_for_good(&mut self) -> Vec<WorkerStep> {
        match self.phase {
            // An agent of an earlier start may be there.
            Phase::Claiming | Phase::Working => {
                self.stop(Some(RunEnd::Ended { agent_lives: false }))
            }
            Phase::Ending(_) => {
                self.phase = Phase::Ending(Some(RunEnd::Ended { agent_lives: false }));
                Vec::new()
            }
            Phase::Over(RunEnd::Unable(_) | RunEnd::Ended { agent_lives: true }) => {
                self.stop(Some(RunEnd::Ended { agent_lives: false }))
            }
            Phase::Over(
                RunEnd::Report(_) | RunEnd::Lost | RunEnd::Ended { agent_lives: false },
            ) => {
                self.phase = Phase::Over(RunEnd::Ended { agent_lives: false });
                vec![WorkerStep::Send(WorkerBody::Over(RunEnd::Ended { agent_lives: false }))]
            }
        }
    }

    fn stop(&mut self, over: Option<RunEnd>) -> Vec<WorkerStep> {
        self.phase = Phase::Ending(over);
        vec![WorkerStep::Stop]
    }

    fn heard(&mut self, asked_ms: Millis, lease: Lease) {
        self.contact = self.contact.max(asked_ms);
        self.lease = lease;
    }

    fn next_control(&mut self) -> Vec<WorkerStep> {
        if self.phase != Phase::Working {
            return Vec::new();
        }
        let mut steps = Vec::new();
        while let Some(control) = self.early.remove(&(self.applied + 1)) {
            self.applied += 1;
            steps.push(WorkerStep::Apply(control));
        }
        self.early.retain(|number, _| *number > self.applied);
        steps
    }

    /// The agent says something that the hub has to answer.
    pub fn call(&mut self, call: CallId, what: RunCall, now: Millis) -> Vec<WorkerStep> {
        let body = WorkerBody::Call { call: call.clone(), what: what.clone() };
        self.calls.insert(call, (what, now));
        vec![WorkerStep::Send(body)]
    }

    /// What is to be said where the agent ends now, if not what came of it.
    #[must_use]
    pub fn ends_as(&self) -> Option<RunEnd> {
        match &self.phase {
            Phase::Ending(over) => over.clone(),
            Phase::Claiming | Phase::Working | Phase::Over(_) => None,
        }
    }

    /// How it ended, where it has.
    #[must_use]
    pub const fn is_over(&self) -> Option<&RunEnd> {
        match &self.phase {
            Phase::Over(over) => Some(over),
            Phase::Claiming | Phase::Working | Phase::Ending(_) => None,
        }
    }

    /// No agent is at work any more, or none can be; what is said is durable here.
    pub fn over(&mut self, over: RunEnd, now: Millis) -> Vec<WorkerStep> {
        self.phase = Phase::Over(over);
        self.calls.clear();
        self.say(now)
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Millis) -> Vec<WorkerStep> {
        if self.phase == Phase::Working && now >= self.gives_up() {
            return self.stop(Some(RunEnd::Lost));
        }
        let mut steps = Vec::new();
        if now >= self.says_again() {
            steps.extend(self.say(now));
        }
        for (call, (what, said)) in &mut self.calls {
            if now >= *said + RESEND_MS {
                *said = now;
                let body = WorkerBody::Call { call: call.clone(), what: what.clone() };
                steps.push(WorkerStep::Send(body));
            }
        }
        steps
    }

    /// When [`WorkerSide::tick`] has something to do.
    #[must_use]
    pub fn due(&self) -> Millis {
        let calls = self.calls.values().map(|(_, said)| said + RESEND_MS).min();
        let gives_up = (self.phase == Phase::Working).then(|| self.gives_up());
        [Some(self.says_again()), calls, gives_up]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(Millis::MAX)
    }

    fn gives_up(&self) -> Millis {
        self.contact + self.lease.lasts_ms.saturating_sub(MARGIN_MS)
    }

    fn says_again(&self) -> Millis {
        let after = match self.phase {
            Phase::Claiming | Phase::Over(_) => RESEND_MS,
            Phase::Working | Phase::Ending(_) => self.lease.renew_ms,
        };
        self.said + after
    }
}
