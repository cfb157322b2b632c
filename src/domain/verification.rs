//! What people look at themselves: the manual criteria of what has landed.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::domain::actor::Actor;
use crate::domain::criterion::Criterion;
use crate::domain::ids::{ChannelId, ItemId, MessageId, RequestId, SprintId, UserId};
use crate::domain::language::Language;
use crate::domain::time::Timestamp;
use crate::domain::word::words;

words! {
    /// How a person found a criterion.
    pub enum ManualVerdict {
        /// It holds.
        Pass = "pass",
        /// It does not: words say what is wrong, and become an item of the backlog.
        Issue = "issue",
        /// Nobody looks at it.
        Skip = "skip",
        /// It cannot be looked at now.
        Blocked = "blocked",
    }
}

/// What a person said about a criterion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManualAnswer {
    /// How they found it.
    pub verdict: ManualVerdict,
    /// Who.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// What they said about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub words: String,
    /// The item that came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<ItemId>,
}

/// A criterion that a person judges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManualCriterion {
    /// Its number among those of the request: 2 is `C-2`.
    pub number: u32,
    /// Its words.
    pub text: String,
    /// The message that asks about it, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<(ChannelId, MessageId)>,
    /// What was said about it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<ManualAnswer>,
}

impl ManualCriterion {
    /// Whether it still waits for a person.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.answer.as_ref().is_none_or(|answer| answer.verdict == ManualVerdict::Blocked)
    }
}

/// The manual criteria of one request that has landed. It is open until each of them is answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verification {
    /// The request.
    pub request_id: RequestId,
    /// What was asked for, in a line.
    pub title: String,
    /// Who asked for it in a direct message, where it was one: nobody else reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_to: Option<UserId>,
    /// The commit on the branch.
    pub commit: String,
    /// The sprint that it was a todo of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sprint_id: Option<SprintId>,
    /// The language of its room.
    pub language: Language,
    /// When it landed.
    pub landed_at: Timestamp,
    /// What is looked at.
    pub criteria: Vec<ManualCriterion>,
}

impl Verification {
    /// The manual ones among the criteria of a request; none where there are none.
    #[must_use]
    pub fn manual(criteria: &[Criterion]) -> Vec<ManualCriterion> {
        let numbered = criteria.iter().zip(1..).filter(|(criterion, _)| criterion.is_manual());
        let manual = |(criterion, number): (&Criterion, u32)| ManualCriterion {
            number,
            text: criterion.text.clone(),
            card: None,
            answer: None,
        };
        numbered.map(manual).collect()
    }

    /// Whether somebody may not read it.
    #[must_use]
    pub fn is_hidden_from(&self, reader: &Actor) -> bool {
        let is_other = |id| matches!(reader, Actor::Person { author, .. } if author.id != id);
        self.private_to.is_some_and(is_other)
    }

    /// Those that still wait for a person, each as a line with what was asked for.
    #[must_use]
    pub fn unanswered(&self) -> Vec<String> {
        self.open().map(|one| format!("{}: {}", self.title, one.text)).collect()
    }

    /// Those that still wait for a person.
    pub fn open(&self) -> impl Iterator<Item = &ManualCriterion> {
        self.criteria.iter().filter(|criterion| criterion.is_open())
    }
}

/// One criterion of one request, as people name it: `20260324-1a2b3c4d.2`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CriterionRef {
    /// The request.
    pub request_id: RequestId,
    /// The number of the criterion.
    pub number: u32,
}

impl fmt::Display for CriterionRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.request_id, self.number)
    }
}

impl FromStr for CriterionRef {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || "expected a request and the number of its criterion, such as 20260324-1a2b3c4d.2";
        let (request, number) = text.trim().rsplit_once('.').ok_or_else(wrong)?;
        let number = number.trim_start_matches("C-");
        let number: u32 = number.parse().map_err(|_| wrong())?;
        Ok(Self { request_id: RequestId::parse(request).map_err(|_| wrong())?, number })
    }
}

impl TryFrom<String> for CriterionRef {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<CriterionRef> for String {
    fn from(named: CriterionRef) -> String {
        named.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_criterion_is_named_by_its_request_and_its_number() {
        let read = |text: &str| text.parse::<CriterionRef>().map(|it| it.to_string());
        assert_eq!(read(" 20260324-1a2b3c4d.2 ").as_deref(), Ok("20260324-1a2b3c4d.2"));
        assert_eq!(read("20260324-1a2b3c4d.C-12").as_deref(), Ok("20260324-1a2b3c4d.12"));
        for wrong in ["", "20260324-1a2b3c4d", "20260324-1a2b3c4d.", "../x.1", "a.-1", ".1", "a.b"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
