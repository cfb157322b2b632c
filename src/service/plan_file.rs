//! A plan file with everything that is wrong with it, by lines: what its reader saw, and what the rules found.

use std::collections::BTreeSet;
use std::path::Path;

use crate::discord::DroppedPlan;
use crate::domain::ids::PlanItemId;
use crate::domain::incoming::Command;
use crate::domain::language::Language;
use crate::domain::outgoing::Content;
use crate::domain::plan::Severity;
use crate::engine::plan::check;
use crate::import::plan::{LARGEST, LineProblem, PlanFile, PlanReadError, plan_id};
use crate::platform::beneath::Folder;
use crate::platform::tasks;
use crate::service::team::Team;

/// Faults that one answer tells.
const FAULTS: usize = 10;

/// A plan file that was read and held against the rules.
pub struct CheckedPlan {
    /// What it says.
    pub file: PlanFile,
    /// What it is called.
    pub name: String,
    /// What is wrong with it, by lines.
    pub problems: Vec<LineProblem>,
}

impl CheckedPlan {
    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// Where it is no plan at all.
    pub fn of(name: &str, bytes: &[u8]) -> Result<CheckedPlan, PlanReadError> {
        let file = PlanFile::read(bytes)?;
        let elsewhere: BTreeSet<PlanItemId> = if file.elsewhere {
            file.plan.items.iter().flat_map(|item| item.depends_on.iter().cloned()).collect()
        } else {
            BTreeSet::new()
        };
        let mut problems = file.problems.clone();
        for problem in check::check(&file.plan, &elsewhere) {
            let other = problem.other.map(|other| format!(" (also line {})", file.line(other)));
            problems.push(LineProblem {
                line: file.line(problem.part),
                severity: problem.rule.severity(),
                message: format!("{}{}", problem.message, other.unwrap_or_default()),
                hint: problem.hint,
            });
        }
        problems.sort_by_key(|problem| (problem.line, problem.severity));
        Ok(CheckedPlan { file, name: name.to_owned(), problems })
    }

    /// What keeps it from being used.
    pub fn faults(&self) -> impl Iterator<Item = &LineProblem> {
        self.problems.iter().filter(|problem| problem.severity == Severity::Fault)
    }

    /// The command that takes it into the backlog.
    ///
    /// # Errors
    /// Where the file's name cannot name a plan.
    pub fn command(&self, approve: Option<&str>) -> Result<Command, PlanReadError> {
        Ok(Command::PlanImport {
            plan_id: plan_id(&self.name)?,
            plan: Box::new(self.file.plan.clone()),
            approve: approve.map(|digest| digest.trim().to_lowercase()),
        })
    }
}

/// The command that takes in a plan that somebody dropped, or what to answer.
pub(super) async fn command(
    team: &Team,
    dropped: DroppedPlan,
    language: Language,
) -> Result<Command, Option<Content>> {
    let root = team.root().to_owned();
    let name = dropped.name.clone();
    match tasks::blocking(move || read(&root, &dropped)).await {
        Ok(Ok(command)) => Ok(command),
        Ok(Err(faults)) => {
            let values = [("name".to_owned(), name.into()), ("faults".to_owned(), faults.into())];
            let key = "plan.unreadable".to_owned();
            Err(Some(Content { key, values: values.into_iter().collect(), language }))
        }
        Err(error) => {
            tracing::warn!(%error, "a plan was not read");
            Err(None)
        }
    }
}

/// The command that takes a saved file in, or what is wrong with the file.
fn read(root: &Path, dropped: &DroppedPlan) -> Result<Command, Vec<String>> {
    let read = || Folder::open(root)?.file(&dropped.path)?.read(LARGEST as u64 + 1);
    let bytes = read().map_err(|error| vec![error.to_string()])?;
    let plan = CheckedPlan::of(&dropped.name, &bytes).map_err(|error| vec![error.to_string()])?;
    let told = |fault: &LineProblem| format!("line {}: {}", fault.line, fault.message);
    let faults: Vec<String> = plan.faults().take(FAULTS).map(told).collect();
    if !faults.is_empty() {
        return Err(faults);
    }
    plan.command(dropped.approve.as_deref()).map_err(|error| vec![error.to_string()])
}
