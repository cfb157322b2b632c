//! What is found in a plan before anything of it is built, and what people made of that.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::domain::plan::PlanRule;
use crate::domain::time::Timestamp;
use crate::domain::word::words;

/// How many versions of a plan are looked at before a person decides.
const MOST_ROUNDS: u32 = 3;

words! {
    /// Who looks at a plan.
    pub enum PlanReviewer {
        /// The runtime, by rules alone.
        Rules = "rules",
        /// The architect, who did not write it.
        Architect = "architect",
    }
}

/// One thing that is wrong with a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanFinding {
    /// Who found it.
    pub by: PlanReviewer,
    /// The rule that found it; none where somebody did.
    #[serde(default)]
    pub rule: Option<PlanRule>,
    /// The part that it is about, by its id: `C-2`, `R-1`, an item; blank where it is about the whole.
    #[serde(default)]
    pub part: String,
    /// The words that the rule is about; blank where it is about none.
    #[serde(default)]
    pub phrase: String,
    /// What is wrong, for agents and programs.
    pub text: String,
    /// What to do about it.
    #[serde(default)]
    pub advice: String,
}

impl PlanFinding {
    /// In one line.
    #[must_use]
    pub fn line(&self) -> String {
        let part = if self.part.is_empty() { String::new() } else { format!("{}: ", self.part) };
        let advice =
            if self.advice.is_empty() { String::new() } else { format!(" ({})", self.advice) };
        format!("{part}{}{advice}", self.text)
    }
}

/// Somebody wants a plan as it is, whatever was found in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedFindings {
    /// Their name.
    pub by: String,
    /// Why.
    pub reason: String,
    /// When.
    pub at: Timestamp,
}

/// How a plan fared with those who look at it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanReview {
    /// How often the planner has got it back.
    pub sent_back: u32,
    /// How much each has found in the version that they saw last.
    pub counts: BTreeMap<PlanReviewer, usize>,
    /// What is wrong with it now.
    pub findings: Vec<PlanFinding>,
    /// Who has decided that this is no matter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted: Option<AcceptedFindings>,
}

impl PlanReview {
    /// Whether nobody has looked at a plan.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        *self == Self::default()
    }

    /// A person has said something: the planner gets the plan back as often as before. What was found in it stands until
    /// the next one is looked at.
    pub fn renew(&mut self) {
        self.sent_back = 0;
        self.counts.clear();
    }

    /// Nobody has looked at the plan as it is now.
    pub fn begin(&mut self) {
        self.findings.clear();
        self.accepted = None;
    }

    /// Takes what somebody found in the plan; whether the planner gets it back for that. It does while there is less
    /// each time, for three versions at most; then a person decides.
    pub fn take(&mut self, by: PlanReviewer, found: Vec<PlanFinding>) -> bool {
        let before = self.counts.insert(by, found.len());
        let falls = before.is_none_or(|before| before == 0 || found.len() < before);
        let goes_back = !found.is_empty() && falls && self.sent_back + 1 < MOST_ROUNDS;
        self.sent_back += u32::from(goes_back);
        if !found.is_empty() {
            // Nobody has seen these.
            self.accepted = None;
        }
        self.findings.retain(|it| it.by != by);
        self.findings.extend(found);
        goes_back
    }

    /// Whether something is wrong with it that nobody has accepted.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.findings.is_empty() && self.accepted.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(by: PlanReviewer, number: usize) -> Vec<PlanFinding> {
        let one = |at| PlanFinding {
            by,
            rule: None,
            part: format!("C-{at}"),
            phrase: String::new(),
            text: "too vague".to_owned(),
            advice: String::new(),
        };
        (0..number).map(one).collect()
    }

    /// What each version's findings lead to: whether the planner gets it back.
    fn rounds(found_each: &[(PlanReviewer, usize)]) -> Vec<bool> {
        let mut review = PlanReview::default();
        found_each.iter().map(|(by, number)| review.take(*by, found(*by, *number))).collect()
    }

    #[test]
    fn a_plan_goes_back_three_times_at_most_and_only_while_the_findings_fall() {
        use PlanReviewer::{Architect, Rules};
        assert_eq!(rounds(&[(Rules, 3), (Rules, 2), (Rules, 1)]), [true, true, false]);
        assert_eq!(rounds(&[(Rules, 3), (Rules, 3)]), [true, false]);
        assert_eq!(rounds(&[(Rules, 1), (Rules, 0)]), [true, false]);
        let both = [(Rules, 1), (Rules, 0), (Architect, 4), (Rules, 0), (Architect, 3)];
        assert_eq!(rounds(&both), [true, false, true, false, false]);
        assert_eq!(rounds(&[(Architect, 0)]), [false]);
        // What was clean before is another plan now.
        assert_eq!(rounds(&[(Rules, 1), (Rules, 0), (Rules, 1)]), [true, false, true]);
    }

    #[test]
    fn what_is_found_later_was_accepted_by_nobody() {
        let mut review = PlanReview::default();
        review.take(PlanReviewer::Architect, found(PlanReviewer::Architect, 1));
        let (by, reason, at) = ("Mina".to_owned(), "fine".to_owned(), Timestamp::from_millis(0));
        review.accepted = Some(AcceptedFindings { by, reason, at });
        assert!(!review.is_open());
        review.take(PlanReviewer::Architect, found(PlanReviewer::Architect, 1));
        assert!(review.is_open());
    }

    #[test]
    fn what_one_finds_leaves_what_the_other_found() {
        let mut review = PlanReview::default();
        for by in PlanReviewer::ALL {
            review.take(by, found(by, 2));
        }
        review.take(PlanReviewer::Rules, found(PlanReviewer::Rules, 1));
        assert_eq!((review.findings.len(), review.is_open()), (3, true));
        review.begin();
        assert!(!review.is_open());
    }
}
