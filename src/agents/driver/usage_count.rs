//! What a run has used, by what its turns tell.

use super::keep::seen_usage;
use super::rollout::Rollout;
use crate::agents::run::{Agent, RunSpec};
use crate::agents::turn::Turn;
use crate::domain::usage::Usage;

/// What the turns of a run tell together.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct UsageCount {
    /// Of the conversation before, when it handed over to this one.
    handed_over: Usage,
    /// What the conversation had used before the run.
    baseline: Usage,
    /// Of the whole conversation, as was told last.
    total: Option<Usage>,
    /// Of single turns.
    turns: Usage,
    /// Of the last turn, what none of the two has told.
    untold: Usage,
}

impl UsageCount {
    /// Of a run whose conversation had used this, after one that used that much to hand over to it.
    pub(super) fn since(baseline: Usage, handed_over: Usage) -> UsageCount {
        UsageCount { baseline, handed_over, ..UsageCount::default() }
    }

    /// What a conversation has used before a run goes on with it: as its agent notes, else as was seen last. Blocks.
    pub(super) fn before(spec: &RunSpec, session: &str) -> Usage {
        let noted = Rollout::of(&spec.agent).and_then(|it| it.total_of(&spec.session_dir, session));
        noted.unwrap_or_else(|| seen_usage(spec, session))
    }

    /// Takes in what a turn tells.
    pub(super) fn add(&mut self, spec: &RunSpec, turn: &Turn) {
        // Claude Code and Codex count on in a conversation that took over from another one.
        let counts_on = match &spec.agent {
            Agent::Acp(_) => turn.session.is_none() || turn.session == spec.resume,
            Agent::Codex(_) | Agent::Claude(_) | Agent::Rehearsal(_) => true,
        };
        if !counts_on {
            self.baseline = Usage::default();
        }
        self.total = turn.usage_total.or(self.total);
        self.turns = self.turns.plus(turn.usage);
        self.untold = turn.untold;
    }

    /// What the run has used with a turn that may go on.
    pub(super) fn with(mut self, spec: &RunSpec, turn: &Turn) -> Usage {
        self.add(spec, turn);
        self.in_all()
    }

    /// What the run has used.
    pub(super) fn in_all(&self) -> Usage {
        self.used().plus(self.handed_over)
    }

    /// The same without what the conversation before used.
    pub(super) fn used(&self) -> Usage {
        let total = self.total.unwrap_or(self.baseline);
        total.minus(self.baseline).plus(self.turns).plus(self.untold)
    }

    /// What its conversation has used, for the run that goes on with it; none where nothing is known of that.
    pub(super) const fn of_conversation(&self) -> Option<Usage> {
        self.total
    }
}
