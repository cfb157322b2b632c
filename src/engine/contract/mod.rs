//! The result contract (`spec/teams.md` 8.1 and 8.2): reading what a role wrote, judging it, and the
//! schema that it is asked to follow.

mod extract;
mod normalize;
mod plan;
mod schema;
mod shape;
mod validate;

pub use extract::{ExtractError, extract_json_object};
pub use normalize::normalize;
pub use schema::schema;
pub use shape::misshapen;
pub use validate::{ContractIssue, validate};

/// The status line of a prompt that was copied instead of answered.
const STATUS_LITERAL: &str = "completed|blocked|failed";
/// Placeholders of older prompts that count as no answer, in lower case.
const SUMMARY_PLACEHOLDER: &str = "short korean summary";
const INSIGHT_PLACEHOLDER: &str = "private role insight for journal.md";

#[cfg(test)]
mod tests;
