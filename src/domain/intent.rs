//! What kind of thing a request is.

use crate::domain::word::words;

words! {
    /// What a message asks for; the order is the one in which the pieces of a message are named: the
    /// first of them is the message's intent.
    #[derive(schemars::JsonSchema)]
    pub enum Intent {
        /// Production is broken now.
        Hotfix = "hotfix",
        /// Something that does not exist yet.
        Feature = "feature",
        /// Another plan, requirement, criterion or decision; no code.
        SpecRevision = "spec_revision",
        /// What exists is improved, sped up or extended.
        Refinement = "refinement",
        /// The specification is there: only the building is wanted.
        ImplementationOnly = "implementation_only",
        /// Another structure or other names, the same behaviour.
        Refactor = "refactor",
        /// A defect that can wait for its turn.
        BugFix = "bug_fix",
        /// The cause of something that went wrong is wanted, and no repair.
        Incident = "incident",
        /// Earlier work goes on.
        Resume = "resume",
        /// The team's own work is started, stopped, approved or shown.
        Control = "control",
        /// An answer is wanted, and no change.
        Question = "question",
    }
}
