//! What the hub does about one run.

use super::{
    Control, EndReason, HubBody, Lease, MARGIN_MS, Millis, Payload, RESEND_MS, RunCall, RunEnd,
    WorkerBody,
};
use crate::domain::ids::{BootId, CallId};

/// What the records say about a run.
#[derive(Debug, Clone, Copy)]
pub struct RunFacts<'a> {
    /// Its generation.
    pub generation: u32,
    /// The start of the worker that holds it.
    pub granted: Option<&'a BootId>,
    /// What was written to its request since it began.
    pub controls: &'a [Control],
    /// Whether its request waits for it.
    pub wanted: bool,
}

/// Something that the engine has to decide, durably, before the worker is answered.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// This start of the worker holds the run; then it is told so ([`HubSide::granted`]).
    Grant(BootId),
    /// The generation is over without an outcome.
    TakeAway,
    /// This came of it.
    Finish(Payload),
    /// The worker could not carry it out, for this reason. Whether an agent may still be at work is told.
    Fail {
        /// One line.
        reason: String,
        /// See [`Over::Ended`].
        agent_lives: bool,
    },
    /// What the run says is answered; then [`HubBody::Answer`].
    Answer {
        /// The call.
        call: CallId,
        /// What it is about.
        what: RunCall,
    },
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum HubStep {
    /// Send the assignment.
    Assign {
        /// Whether nothing is to be done but to end what is there.
        only_end: bool,
    },
    /// Say this to that start of the worker.
    Send(BootId, HubBody),
    /// Have this decided.
    Decide(Decision),
}

/// Where a run stands at the hub.
#[derive(Debug, Clone, PartialEq)]
enum Phase {
    /// It is sent until it is claimed.
    Assigned,
    /// A worker holds it.
    Granted {
        /// When the worker was answered.
        answered: Millis,
    },
    /// The worker is told to end it.
    Ending(EndReason),
}

/// What the hub does about one generation of a run.
#[derive(Debug, Clone)]
pub struct HubSide {
    lease: Lease,
    phase: Phase,
    /// When the assignment was sent, or the worker told to end.
    said: Option<Millis>,
    /// Whether the worker has said anything of it since this start of the hub.
    heard: bool,
    /// Why the worker could not carry it out, while it is told to end.
    unable: Option<String>,
}

impl HubSide {
    /// A run as the records have it; one that a worker holds has its full lease again.
    #[must_use]
    pub const fn new(facts: &RunFacts<'_>, lease: Lease, now: Millis) -> HubSide {
        let phase = match facts.granted {
            Some(_) => Phase::Granted { answered: now },
            None => Phase::Assigned,
        };
        HubSide { lease, phase, said: None, heard: false, unable: None }
    }

    /// Tells the worker to end its agent, because it has failed too often.
    pub fn end(&mut self, boot: BootId, reason: String, now: Millis) -> Vec<HubStep> {
        self.unable = Some(reason);
        self.tell_to_end(boot, EndReason::Unable, now)
    }

    fn tell_to_end(&mut self, boot: BootId, reason: EndReason, now: Millis) -> Vec<HubStep> {
        self.phase = Phase::Ending(reason);
        self.said = Some(now);
        vec![HubStep::Send(boot, HubBody::Ended { reason })]
    }

    /// A worker says something about the run.
    pub fn receive(
        &mut self,
        facts: &RunFacts<'_>,
        (generation, boot): (u32, BootId),
        body: WorkerBody,
        now: Millis,
    ) -> Vec<HubStep> {
        // Starts of the worker are in their order, and of two the later one is alive.
        let dead = facts.granted.is_some_and(|holder| boot < *holder);
        if generation != facts.generation || dead {
            let reason = EndReason::Stale;
            return vec![HubStep::Send(boot, body.refused(reason))];
        }
        self.heard = true;
        match body {
            WorkerBody::Claim { asked_ms: _ } => match self.phase {
                Phase::Ending(reason) => self.tell_to_end(boot, reason, now),
                Phase::Assigned | Phase::Granted { .. } if !facts.wanted => {
                    self.tell_to_end(boot, EndReason::MovedOn, now)
                }
                Phase::Assigned | Phase::Granted { .. } => {
                    vec![HubStep::Decide(Decision::Grant(boot))]
                }
            },
            WorkerBody::Renew { asked_ms, applied } => {
                if let Phase::Ending(reason) = self.phase {
                    return self.tell_to_end(boot, reason, now);
                }
                if facts.granted != Some(&boot) {
                    // It works without having been let, as far as is known here.
                    return self.tell_to_end(boot, EndReason::Stale, now);
                }
                self.phase = Phase::Granted { answered: now };
                // The worker has the assignment.
                self.said = Some(now);
                let (cancel, lease) = (!facts.wanted, self.lease);
                let answer = HubBody::Renewed { asked_ms, cancel, lease };
                let mut steps = vec![HubStep::Send(boot.clone(), answer)];
                steps.extend(controls(facts, &boot, applied));
                steps
            }
            WorkerBody::Call { call, what } => {
                vec![HubStep::Decide(Decision::Answer { call, what })]
            }
            WorkerBody::Over(RunEnd::Report(report)) => {
                vec![HubStep::Decide(Decision::Finish(report))]
            }
            WorkerBody::Over(RunEnd::Lost) => {
                vec![HubStep::Decide(Decision::TakeAway)]
            }
            WorkerBody::Over(RunEnd::Unable(reason)) => match self.phase {
                Phase::Ending(why) => self.tell_to_end(boot, why, now),
                Phase::Assigned | Phase::Granted { .. } => {
                    vec![HubStep::Decide(Decision::Fail { reason, agent_lives: true })]
                }
            },
            // It is asked to look again in a while.
            WorkerBody::Over(RunEnd::Ended { agent_lives: true }) if self.unable.is_some() => {
                Vec::new()
            }
            WorkerBody::Over(RunEnd::Ended { agent_lives }) => {
                vec![HubStep::Decide(match (self.unable.take(), agent_lives) {
                    (Some(reason), _) => Decision::Fail { reason, agent_lives },
                    (None, true) => {
                        let reason = "whether its agent has ended is not known".to_owned();
                        Decision::Fail { reason, agent_lives }
                    }
                    (None, false) => Decision::TakeAway,
                })]
            }
        }
    }

    /// The grant is durable, and this is said to the worker.
    pub fn granted(&mut self, asked_ms: Millis, now: Millis) -> HubBody {
        self.phase = Phase::Granted { answered: now };
        self.said = Some(now);
        HubBody::Grant { asked_ms, lease: self.lease }
    }

    /// Whether a worker has it, as far as is known.
    #[must_use]
    pub const fn is_held(&self) -> bool {
        match self.phase {
            Phase::Granted { .. } | Phase::Ending(_) => true,
            Phase::Assigned => false,
        }
    }

    /// Something was written, or the run is not wanted any more.
    #[must_use]
    pub fn news(&self, facts: &RunFacts<'_>) -> Vec<HubStep> {
        let (Phase::Granted { .. }, Some(boot)) = (&self.phase, facts.granted) else {
            return Vec::new();
        };
        if !facts.wanted {
            // It is no answer to anything: it gives the lease no time.
            let body = HubBody::Renewed { asked_ms: 0, cancel: true, lease: self.lease };
            return vec![HubStep::Send(boot.clone(), body)];
        }
        // The worker leaves aside what it has; what is lost on the way comes again when it renews.
        controls(facts, boot, 0)
    }

    /// Time has passed.
    pub fn tick(&mut self, facts: &RunFacts<'_>, now: Millis) -> Vec<HubStep> {
        if let Phase::Granted { answered } = self.phase
            && now >= answered + self.lease.lasts_ms + MARGIN_MS
        {
            // Until it is decided, nothing is said.
            self.phase = Phase::Granted { answered: now };
            return vec![HubStep::Decide(Decision::TakeAway)];
        }
        if self.says_again().is_none_or(|due| now < due) {
            return Vec::new();
        }
        self.said = Some(now);
        let only_end = match self.phase {
            Phase::Ending(_) => true,
            Phase::Assigned | Phase::Granted { .. } => !facts.wanted,
        };
        vec![HubStep::Assign { only_end }]
    }

    /// When [`HubSide::tick`] has something to do.
    #[must_use]
    pub fn due(&self) -> Millis {
        let expires = match self.phase {
            Phase::Granted { answered } => Some(answered + self.lease.lasts_ms + MARGIN_MS),
            Phase::Assigned | Phase::Ending(_) => None,
        };
        [expires, self.says_again()].into_iter().flatten().min().unwrap_or(Millis::MAX)
    }

    /// A worker that holds the run is asked nothing once it is heard of: after a start of the hub it may be another.
    fn says_again(&self) -> Option<Millis> {
        match (&self.phase, self.said) {
            (_, None) => Some(0),
            (Phase::Granted { .. }, Some(_)) if self.heard => None,
            (Phase::Granted { .. } | Phase::Assigned | Phase::Ending(_), Some(said)) => {
                Some(said + RESEND_MS)
            }
        }
    }
}

/// What is above the number that the worker has given its agent.
fn controls(facts: &RunFacts<'_>, boot: &BootId, applied: u32) -> Vec<HubStep> {
    let above = facts.controls.iter().filter(|control| control.number > applied);
    above.map(|control| HubStep::Send(boot.clone(), HubBody::Control(control.clone()))).collect()
}
