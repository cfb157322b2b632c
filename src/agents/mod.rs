//! Driving real coding agents: one driver, pure codecs, the result contract, prompts and sessions.
//!
//! [`Driver`] runs an agent process for one step and hands back what came of it; a codec per agent
//! translates the agent's stream and does no I/O, so that it can be replayed against recordings.

pub mod acp;
mod answer;
mod blame;
pub mod claude;
mod codec;
mod codec_kind;
pub mod codex;
pub mod confine;
mod contract;
mod driver;
mod error;
mod login;
pub mod probe;
pub mod project_settings;
pub mod prompt;
pub mod rehearsal;
mod run;
mod run_folder;
mod sandbox;
mod sent;
mod stuck;
mod tools;
mod turn;
mod until;
mod words;

pub use crate::platform::confinement::Confinement;
pub use answer::beginning;
pub use blame::{is_used_up, rate_limit};
pub use codec::{Codec, Event};
pub use codec_kind::CodecKind;
pub(crate) use confine::REPOSITORY;
pub use contract::{Check, ContractFns};
pub use driver::{Driver, Watch, conversation, end, submit};
pub use error::RunError;
pub use prompt::check as check_templates;
pub use prompt::{
    ActionBrief, ConflictBrief, EarlierWork, EndedRequest, Handover, OpenRequest, OtherChange,
    PersonMessage, PromptError, Section, SprintBrief, Task, TaskDocument, Upstream, Work,
};
pub use run::{Agent, AgentOutcome, Limits, ProjectView, RunSpec, Surroundings};
pub use sandbox::{ProxyAddress, RUN_SOCKET, Sandbox, WriteAccess};
pub use sent::{PromptRecord, SentText, Why, sent};
pub use stuck::Patience;
pub use words::{Mailbox, Words};

#[cfg(test)]
mod tests;
