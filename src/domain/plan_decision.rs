//! What a plan rests on that the request leaves open: a question of the planner, and what was decided about it. People
//! know it by its number, `D-1` for the first of a request.

use serde::{Deserialize, Serialize};

use crate::domain::ids::MessageId;

/// The most questions that a person is asked about one plan.
pub const MOST_QUESTIONS: usize = 4;
/// The options that a question has at least and at most.
pub const OPTIONS: std::ops::RangeInclusive<usize> = 2..=5;
/// The longest question, in characters.
pub const LONGEST_QUESTION: usize = 300;
/// The longest option, in characters: what Discord shows of it in a list.
pub const LONGEST_OPTION: usize = 80;
/// The longest answer in a person's own words, in characters.
pub const LONGEST_ANSWER: usize = 300;

/// A question and what was decided about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanDecision {
    /// What was open.
    pub question: String,
    /// What there is to choose from.
    pub options: Vec<String>,
    /// The one of them that is taken where nobody says otherwise.
    pub assumption: String,
    /// What was decided; none while a person is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<DecidedAnswer>,
}

/// What was decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecidedAnswer {
    /// One of the options, or a person's own words.
    pub text: String,
    /// By whom.
    pub by: DecidedBy,
}

/// Who decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecidedBy {
    /// A person.
    Person {
        /// Their name.
        name: String,
        /// The message with their words, or the card on which they chose; none in the terminal.
        message_id: Option<MessageId>,
    },
    /// The planner: it is assumed.
    Planner,
}

impl PlanDecision {
    /// Whether a person is still asked.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.answer.is_none()
    }

    /// Whether what holds is what the planner took.
    #[must_use]
    pub fn is_as_assumed(&self) -> bool {
        self.answer.as_ref().is_none_or(|answer| answer.text == self.assumption)
    }

    /// What the planner takes holds.
    pub fn assume(&mut self) {
        let text = self.assumption.clone();
        self.answer = Some(DecidedAnswer { text, by: DecidedBy::Planner });
    }

    /// What is open of these is left to the planner.
    pub fn assume_open(decisions: &mut [PlanDecision]) {
        decisions.iter_mut().filter(|it| it.is_open()).for_each(PlanDecision::assume);
    }

    /// For the planner, where somebody asked back: what is open.
    #[must_use]
    pub fn open_line(&self) -> String {
        let (question, options) = (&self.question, self.options.join(" / "));
        format!("{question} {options} (open; assumed: {})", self.assumption)
    }

    /// For roles: what was decided, and by whom.
    #[must_use]
    pub fn line(&self) -> Option<String> {
        let DecidedAnswer { text, by } = self.answer.as_ref()?;
        let by = match by {
            DecidedBy::Person { name, .. } => format!("decided by {name}"),
            DecidedBy::Planner => "assumed".to_owned(),
        };
        Some(format!("{} {text} ({by})", self.question))
    }
}

/// What somebody answers to a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GivenAnswer {
    /// The option at this place, from 1.
    Option(usize),
    /// What the planner assumes.
    YouDecide,
    /// Something else.
    Words(String),
}

/// An answer to the question with this number, from 1: `2=1`, `2=you-decide` or `2=as it was before`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumberedAnswer {
    /// The number of the question.
    pub number: usize,
    /// The answer.
    pub answer: GivenAnswer,
}

impl std::str::FromStr for NumberedAnswer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            "expected the number of a question and an answer, such as `1=2` for its second option, `1=you-decide`, or `1=` \
             and words"
                .to_owned()
        };
        let (number, answer) = text.split_once('=').ok_or_else(wrong)?;
        let number = number.trim();
        let number = number.strip_prefix("D-").unwrap_or(number).parse().map_err(|_| wrong())?;
        let answer = answer.trim();
        let answer = match answer.parse() {
            Ok(option) => GivenAnswer::Option(option),
            Err(_) if answer == "you-decide" => GivenAnswer::YouDecide,
            Err(_) if answer.is_empty() => return Err(wrong()),
            Err(_) => GivenAnswer::Words(answer.to_owned()),
        };
        Ok(Self { number, answer })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_names_its_question_and_an_option_or_words() {
        let read = |text: &str| text.parse::<NumberedAnswer>();
        let numbered = |number, answer| Ok(NumberedAnswer { number, answer });
        assert_eq!(read("1=2"), numbered(1, GivenAnswer::Option(2)));
        assert_eq!(read(" D-3 = you-decide "), numbered(3, GivenAnswer::YouDecide));
        assert_eq!(read("2=a = b"), numbered(2, GivenAnswer::Words("a = b".to_owned())));
        for wrong in ["", "1", "=2", "1=", "x=1", "-1=2"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
