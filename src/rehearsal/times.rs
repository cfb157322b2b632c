//! How long each role takes in a simulated plan: `step: 1.0` seconds, other items otherwise, and how many todos are
//! worked on at the same time.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::edits::{Change, Edit};
use super::tasks::Job;
use crate::agents::prompt::Task;
use crate::domain::ids::PlanItemId;

/// Seconds of the longest step.
const LONGEST: f64 = 3_600.0;
/// The most todos at the same time.
const MOST_SLOTS: u32 = 64;

/// The times of a simulated plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepTimes {
    /// Seconds of each role's step.
    pub step: f64,
    /// Seconds of each role's step for these items of the plan.
    #[serde(default)]
    pub items: BTreeMap<PlanItemId, f64>,
    /// Todos that are worked on at the same time.
    #[serde(default = "one")]
    pub slots: u32,
}

const fn one() -> u32 {
    1
}

impl StepTimes {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// What is wrong with it, in one sentence.
    pub fn read(text: &str) -> Result<StepTimes, String> {
        let times: StepTimes = serde_yaml::from_str(text).map_err(|error| error.to_string())?;
        let named = times.items.iter().map(|(id, seconds)| (format!("items.{id}"), *seconds));
        for (name, seconds) in std::iter::once(("step".to_owned(), times.step)).chain(named) {
            if !(0.0..=LONGEST).contains(&seconds) {
                return Err(format!("`{name}` is {seconds}; write seconds from 0 to {LONGEST}"));
            }
        }
        if times.slots == 0 || times.slots > MOST_SLOTS {
            return Err(format!("`slots` is {}; write 1 to {MOST_SLOTS}", times.slots));
        }
        Ok(times)
    }

    /// The times of a script that is a mapping; other scripts are lists.
    pub(super) fn of_script(text: &str) -> Result<Option<StepTimes>, String> {
        match serde_yaml::from_str(text) {
            Ok(serde_yaml::Value::Mapping(_)) => StepTimes::read(text).map(Some),
            Ok(_) | Err(_) => Ok(None),
        }
    }

    /// How long a role takes for its task. What the sprint does for itself takes no time.
    pub(super) fn of(&self, task: &Task) -> Duration {
        let item = task.work.item.as_ref().and_then(|item| item.plan.as_ref());
        if task.work.duty.is_some() {
            return Duration::ZERO;
        }
        let seconds = item.and_then(|plan| self.items.get(&plan.item_id)).unwrap_or(&self.step);
        Duration::from_secs_f64(*seconds)
    }
}

/// What is built for an item of a simulated plan: a file of its own.
pub(super) fn job(task: &Task) -> Option<Job> {
    let item = task.work.item.as_ref()?;
    let plan = item.plan.as_ref()?;
    let path = format!("simulated/{}.md", plan.item_id);
    let text = format!("# {}\n", item.title);
    Some(Job::Literal(vec![Edit { path, change: Change::Create { text } }]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_what_is_wrong_is_named() {
        let times = StepTimes::read("step: 1.5\nitems: {EPIC-001: 0}\nslots: 4\n").unwrap();
        assert_eq!((times.step, times.items.len(), times.slots), (1.5, 1, 4));
        for (text, words) in [
            ("step: -1", "`step` is -1"),
            ("step: .nan", "`step` is NaN"),
            ("step: 1\nitems: {A: -2}", "`items.A` is -2"),
            ("step: 1\nslots: 0", "`slots` is 0"),
            ("step: 1\nslots: -1", "slots"),
            ("step: 1\nsteps: 2", "steps"),
            ("{}", "step"),
        ] {
            let error = StepTimes::read(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
        assert_eq!(StepTimes::of_script("- {do: crash}"), Ok(None));
    }
}
