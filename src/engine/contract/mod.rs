//! The result contract (`spec/teams.md` 8.1 and 8.2): reading what a role wrote, judging it, and the
//! schema that it is asked to follow.

use crate::domain::criterion::Criterion;
use crate::domain::item::Item;
use crate::domain::request::Request;

mod extract;
mod normalize;
pub mod numbered;
mod schema;
mod validate;

pub use extract::{ExtractError, extract_json_object};
pub use normalize::normalize;
pub use schema::schema;
pub use validate::{ContractIssue, check, validate};

/// The acceptance criteria that a request is held against: those that a person wrote, those of its item or else of its
/// own plan, and those of others that its change was brought together with.
#[must_use]
pub fn criteria(request: &Request, item: Option<&Item>) -> Vec<Criterion> {
    let own = item.map(|item| item.acceptance_criteria.as_slice()).unwrap_or_default();
    let said = |list: &[Criterion]| -> Vec<Criterion> {
        list.iter().filter(|it| !it.is_blank()).cloned().collect()
    };
    let own = said(own);
    let planned = if own.is_empty() { said(&request.work.criteria) } else { own };
    let persons = said(&request.work.persons_criteria);
    let is_new = |one: &Criterion| persons.iter().all(|it| it.text != one.text);
    let planned: Vec<Criterion> = planned.into_iter().filter(is_new).collect();
    let mut all = [persons, planned].concat();
    let others = said(&request.work.others_criteria);
    if all.is_empty() && !others.is_empty() {
        // Without a plan it is what was asked for that has to hold beside them.
        all.extend(request.scope.lines().next().map(Criterion::from));
    }
    for one in others {
        if !all.contains(&one) {
            all.push(one);
        }
    }
    all
}

/// The status line of a prompt that was copied instead of answered.
const STATUS_LITERAL: &str = "completed|blocked|failed";
/// Placeholders of older prompts that count as no answer, in lower case.
const SUMMARY_PLACEHOLDER: &str = "short korean summary";
const INSIGHT_PLACEHOLDER: &str = "private role insight for journal.md";

#[cfg(test)]
mod tests;
