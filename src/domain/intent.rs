//! What kind of thing a request is (`spec/s2s-william.md` A1.2, with questions and the going on with earlier work).

use crate::domain::word::words;

words! {
    /// What a request asks for. The sentences are for the orchestrator: they stand in the schema.
    #[derive(schemars::JsonSchema)]
    pub enum Intent {
        /// Wants an answer and no change.
        Question = "question",
        /// Wants the team's own work started, stopped, approved or shown, or a registered action run.
        Control = "control",
        /// Goes on with earlier work.
        Resume = "resume",
        /// Production is broken now.
        Hotfix = "hotfix",
        /// Any other defect, a typo too.
        BugFix = "bug_fix",
        /// The same behaviour in another structure or under other names.
        Refactor = "refactor",
        /// The specification is there: no planning, only building.
        ImplementationOnly = "implementation_only",
        /// Improves, speeds up or extends what is there.
        Refinement = "refinement",
        /// Something that is not there yet.
        Feature = "feature",
        /// Changes the plan, the requirements or the criteria, not the code.
        SpecRevision = "spec_revision",
        /// Something went wrong: find the cause or write it up; no repair is asked for.
        Incident = "incident",
    }
}
