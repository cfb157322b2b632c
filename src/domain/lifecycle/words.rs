//! The closed sets of words that a lifecycle is written with.

use crate::domain::word::words;

words! {
    /// What goes by a lifecycle.
    pub enum Subject {
        /// A request.
        Request = "request",
        /// A sprint.
        Sprint = "sprint",
        /// The search for work that nobody asked for.
        Sourcing = "sourcing",
    }
    /// What has to hold for a step that is not always taken. Where it does not, the step is passed over along its
    /// first outcome.
    pub enum Condition {
        /// Research before planning is configured.
        Research = "research",
        /// A todo was begun.
        Worked = "worked",
        /// The route of the request has the step.
        Route = "route",
    }
}

words! {
    /// The four phases of a request.
    #[derive(schemars::JsonSchema)]
    pub enum Phase {
        /// Research, plan, advice.
        Planning = "planning",
        /// Guidance, build, review, revision.
        Implementation = "implementation",
        /// QA.
        Validation = "validation",
        /// Commit and report.
        Closeout = "closeout",
    }
}

words! {
    /// What has to be done again (`spec/teams.md` 7.1).
    #[derive(schemars::JsonSchema)]
    pub enum ReopenCategory {
        /// What is to be built.
        Scope = "scope",
        /// What people see.
        Ux = "ux",
        /// How it is built.
        Architecture = "architecture",
        /// The change itself.
        Implementation = "implementation",
        /// The proof of the change.
        Verification = "verification",
    }
}

words! {
    /// What may come of a step.
    pub enum StepOutcome {
        /// Its work is done.
        Done = "done",
        /// The plan itself is the answer: nothing is to be built.
        Answered = "answered",
        /// The plan is to be gone over once more.
        Again = "again",
        /// The designer is to advise.
        AskDesigner = "ask_designer",
        /// The architect is to advise.
        AskArchitect = "ask_architect",
        /// The developer wants the change reviewed.
        Review = "review",
        /// It passes.
        Pass = "pass",
        /// The change has to be revised.
        Revise = "revise",
        /// The runtime's checks failed.
        Red = "red",
        /// The branch changed the same places.
        Conflict = "conflict",
        /// What was to be judged is no change.
        NoChange = "no_change",
    }
}

impl Condition {
    /// Whose steps it decides about.
    #[must_use]
    pub const fn subject(self) -> Subject {
        match self {
            Self::Research | Self::Worked => Subject::Sprint,
            Self::Route => Subject::Request,
        }
    }
}
