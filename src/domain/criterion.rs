//! Criteria: what passes or fails when something is done, one thing each, and who says which.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Acceptance criteria that the plan of one request may have.
pub const MOST_CRITERIA: usize = 40;
/// Characters of one of them.
pub const LONGEST_CRITERION: usize = 600;

/// Who says whether a criterion holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Judge {
    /// QA, with evidence.
    #[default]
    Qa,
    /// The check of this name: where it fails, QA's yes is none.
    Check(String),
    /// A person, after the change has landed.
    Person,
}

/// One criterion. Written as its words, with `(check: NAME)` or `(manual)` before or behind them where QA is not the
/// one who judges it; records have it as it is written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Criterion {
    /// Its words.
    pub text: String,
    /// Who judges it.
    pub judge: Judge,
}

impl Criterion {
    /// Whether it says nothing.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Whether a person judges it.
    #[must_use]
    pub fn is_manual(&self) -> bool {
        self.judge == Judge::Person
    }

    /// As an agent may write it: only people leave something to people, and what is no configured check decides nothing.
    #[must_use]
    pub fn by_agent(mut self, checks: &[String]) -> Criterion {
        if self.is_manual() || self.unknown_check(checks).is_some() {
            self.judge = Judge::Qa;
        }
        self
    }

    /// The check that it is bound to, where none of that name is configured.
    #[must_use]
    pub fn unknown_check(&self, checks: &[String]) -> Option<&str> {
        match &self.judge {
            Judge::Check(name) => {
                Some(name.as_str()).filter(|name| !checks.iter().any(|it| it == name))
            }
            Judge::Qa | Judge::Person => None,
        }
    }

    /// The lines of a person's words that leave something to people, bullets or not.
    #[must_use]
    pub fn manual_lines(words: &str) -> Vec<Criterion> {
        let lines = words.lines().map(|line| line.trim().trim_start_matches(['-', '*', '•']));
        lines.map(Criterion::from).filter(|it| it.is_manual() && !it.is_blank()).collect()
    }

    /// The words of an agent, which leaves nothing to people: the marks of its lines that would are gone.
    #[must_use]
    pub fn nothing_left_to_people(words: &str) -> String {
        let mut lines = words.lines().map(|line| {
            let said = line.trim().trim_start_matches(['-', '*', '•']);
            let criterion = Criterion::from(said);
            if criterion.is_manual() { criterion.text } else { line.to_owned() }
        });
        let first = lines.next().unwrap_or_default();
        lines.fold(first, |all, line| format!("{all}\n{line}"))
    }

    /// Says more about it.
    pub fn extend(&mut self, text: &str) {
        *self = Criterion::from(format!("{self}; {text}"));
    }
}

impl fmt::Display for Criterion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.judge {
            Judge::Qa => f.write_str(&self.text),
            Judge::Check(name) => write!(f, "(check: {name}) {}", self.text),
            Judge::Person => write!(f, "(manual) {}", self.text),
        }
    }
}

impl From<&str> for Criterion {
    fn from(written: &str) -> Criterion {
        let text = written.trim();
        let before = text.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        let behind = || text.strip_suffix(')').and_then(|rest| rest.rsplit_once('('));
        let marked = before
            .and_then(|(mark, rest)| Some((judge(mark)?, rest)))
            .or_else(|| behind().and_then(|(rest, mark)| Some((judge(mark)?, rest))));
        match marked {
            Some((judge, rest)) => Criterion { text: rest.trim().to_owned(), judge },
            None => Criterion { text: written.to_owned(), judge: Judge::Qa },
        }
    }
}

/// Who is meant by the words in brackets; none where they are a part of the sentence.
fn judge(mark: &str) -> Option<Judge> {
    let mark = mark.trim();
    if mark.eq_ignore_ascii_case("manual") || mark == "수동" {
        return Some(Judge::Person);
    }
    let (word, name) = mark.split_once(':')?;
    let is_check = word.trim().eq_ignore_ascii_case("check") || word.trim() == "검사";
    let name = name.trim();
    (is_check && !name.is_empty()).then(|| Judge::Check(name.to_owned()))
}

impl From<String> for Criterion {
    fn from(written: String) -> Criterion {
        Criterion::from(written.as_str())
    }
}

impl From<Criterion> for String {
    fn from(criterion: Criterion) -> String {
        criterion.to_string()
    }
}

/// As they are written.
#[must_use]
pub fn written(criteria: &[Criterion]) -> Vec<String> {
    criteria.iter().map(Criterion::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_people_leave_something_to_people() {
        let checks = ["unit".to_owned()];
        let by_agent = |text: &str| Criterion::from(text).by_agent(&checks).to_string();
        assert_eq!(by_agent("(check: tests) it works"), "it works");
        assert_eq!(by_agent("(manual) it works"), "it works");
        assert_eq!(by_agent("(check: unit) it works"), "(check: unit) it works");
        let words = "do it\n- (manual) it looks calm\n(manual)\nand fast";
        assert_eq!(Criterion::manual_lines(words), [Criterion::from("(manual) it looks calm")]);
        let theirs = Criterion::nothing_left_to_people(words);
        assert_eq!(Criterion::manual_lines(&theirs), []);
        assert!(theirs.starts_with("do it\nit looks calm\n") && theirs.ends_with("and fast"));
    }

    #[test]
    fn a_mark_before_or_behind_says_who_judges_and_brackets_in_a_sentence_do_not() {
        for (written, text, judge) in [
            ("it works", "it works", Judge::Qa),
            ("(manual) it looks calm", "it looks calm", Judge::Person),
            ("it looks calm (Manual)", "it looks calm", Judge::Person),
            ("(수동) 차분해 보인다", "차분해 보인다", Judge::Person),
            ("(check: unit) it adds", "it adds", Judge::Check("unit".to_owned())),
            ("it adds ( Check:unit )", "it adds", Judge::Check("unit".to_owned())),
            ("(check: ) it adds", "(check: ) it adds", Judge::Qa),
            ("(a manual) is there", "(a manual) is there", Judge::Qa),
            ("`f(manual)` is called once", "`f(manual)` is called once", Judge::Qa),
            ("(manual", "(manual", Judge::Qa),
            ("manual)", "manual)", Judge::Qa),
            ("", "", Judge::Qa),
        ] {
            let read = Criterion::from(written);
            assert_eq!((read.text.as_str(), &read.judge), (text, &judge), "{written:?}");
            assert_eq!(Criterion::from(read.to_string()), read, "{written:?}");
        }
    }
}
