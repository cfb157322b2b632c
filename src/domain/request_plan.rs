//! The plan of one request: what its planner settled last, by version. A sprint has documents of its own.

use serde::{Deserialize, Serialize};

use crate::domain::criterion::Criterion;
use crate::domain::plan::{Requirement, RequirementTime};
use crate::domain::time::Timestamp;

/// Earlier versions that are remembered.
const EARLIER: usize = 20;

/// A plan as it was settled, before anything of it was built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestPlan {
    /// Which one it is.
    pub version: PlanVersion,
    /// What is to be done, in the planner's words.
    #[serde(default)]
    pub summary: String,
    /// What has to hold, in the order of the numbers: `C-1` is the first.
    #[serde(default)]
    pub criteria: Vec<Criterion>,
    /// What was decided about what the request leaves open, in the order of the numbers: `D-1` is the first.
    #[serde(default)]
    pub decisions: Vec<String>,
    /// What the person wants to hold, by this plan or not; none where its planner named none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requirements: Vec<Requirement>,
    /// Globs of the paths that its change touches; none declared where empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_paths: Vec<String>,
    /// Globs of the paths that it leaves as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded_paths: Vec<String>,
    /// Those before it, the newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<PlanVersion>,
}

/// A version of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanVersion {
    /// From 1.
    pub number: u32,
    /// What an approval of exactly this plan is bound to: SHA-256 in hex.
    pub digest: String,
    /// When it was settled.
    pub at: Timestamp,
}

impl RequestPlan {
    /// What of it this plan does not bring about, in lines.
    #[must_use]
    pub fn left_out(&self) -> Vec<String> {
        let others = self.requirements.iter().filter(|it| it.when != RequirementTime::Now);
        others.map(Requirement::line).collect()
    }

    /// An empty plan that comes after another one, or is the first.
    #[must_use]
    pub fn after(before: Option<RequestPlan>, digest: String, at: Timestamp) -> RequestPlan {
        let known = before.into_iter().flat_map(|it| std::iter::once(it.version).chain(it.earlier));
        let earlier: Vec<PlanVersion> = known.take(EARLIER).collect();
        let number = earlier.first().map_or(1, |it| it.number + 1);
        let version = PlanVersion { number, digest, at };
        RequestPlan {
            version,
            summary: String::new(),
            criteria: Vec::new(),
            decisions: Vec::new(),
            requirements: Vec::new(),
            allowed_paths: Vec::new(),
            excluded_paths: Vec::new(),
            earlier,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_counted_and_the_last_ones_remembered() {
        let mut plan = None;
        for day in 0..30 {
            plan = Some(RequestPlan::after(plan, format!("d{day}"), Timestamp::from_millis(day)));
        }
        let plan = plan.unwrap();
        assert_eq!((plan.version.number, plan.earlier.len()), (30, EARLIER));
        assert_eq!((plan.earlier[0].number, plan.earlier[0].digest.as_str()), (29, "d28"));
    }
}
