//! The archive of an ended sprint: report, machine summary and burndown in its folder, its history file,
//! and its row in the table of all (`spec/teams.md` 9.9). Everything follows from the record, so doing it
//! again after a crash gives the same.

use std::path::Path;
use std::sync::Arc;

use super::effect_error::EffectError;
use super::papers::{folder_of, hear, put};
use super::team::Team;
use chrono_tz::Tz;

use crate::domain::effect::EffectOutcome;
use crate::domain::ids::{RequestId, SprintId};
use crate::domain::record::RUNTIME;
use crate::domain::sprint::Sprint;
use crate::platform::{files, tasks};
use crate::workspace::papers::{self, Reports};

/// Writes the archive of a sprint.
pub(super) async fn archive(team: &Arc<Team>, id: &SprintId) -> Result<EffectOutcome, EffectError> {
    let sprint = match team.hub.read(|state| state.sprints.get(id).cloned()) {
        Some(sprint) => sprint,
        // A newer sprint has begun meanwhile, and this one has left memory.
        None => {
            team.store.settled().await?;
            let path = team.root().join(format!("{RUNTIME}/sprints/{id}.json"));
            serde_json::from_slice(&files::read(&path)?)?
        }
    };
    let requests: Vec<RequestId> =
        sprint.work.todos.iter().filter_map(|todo| todo.progress.request_id.clone()).collect();
    let reports = hear(team, &requests).await?;
    let root = team.root().to_owned();
    let zone = team.workspace.runtime.sprint.timezone.0;
    let report_path = tasks::blocking(move || write(&root, &sprint, zone, &reports)).await??;
    Ok(EffectOutcome::Archived { report_path })
}

/// Returns where the report lies, relative to the workspace.
fn write(root: &Path, sprint: &Sprint, zone: Tz, reports: &Reports) -> Result<String, EffectError> {
    for paper in papers::sprint_papers(sprint, zone, reports)? {
        put(root, &paper)?;
    }
    let report = papers::report_paper(sprint, zone, reports)?;
    let (folder, report_name) = folder_of(root, &report.path)?;
    folder.write_durable("report.json", papers::machine_summary(sprint)?)?;
    folder.write_durable("burndown.png", papers::burndown(sprint, zone)?)?;
    folder.write_durable("lanes.png", papers::lanes(sprint, zone)?)?;
    folder.sync_file(report_name)?;

    let history = papers::sprint_history(sprint, &report.text)?;
    let (folder, name) = folder_of(root, &history.path)?;
    folder.write_durable(name, history.text + "\n")?;

    let index = root.join(papers::INDEX);
    let old = match files::read_text_if_present(&index) {
        Ok(old) => old,
        Err(error) => {
            // Somebody keeps it in another encoding; all else is written.
            tracing::warn!(%error, "the index of sprints has no row for this one");
            return Ok(report.path);
        }
    };
    let new = papers::index_with_row(old.as_deref(), sprint);
    if old.as_ref() != Some(&new) {
        files::write_durable(&index, new)?;
    }
    Ok(report.path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::language::Language;
    use crate::domain::sprint::{Kickoff, SprintStatus, Trigger};
    use crate::domain::time::Timestamp;

    fn ended(nth: u32) -> Sprint {
        let id = SprintId::parse(&format!("260324-Sprint-09:00-{nth}")).unwrap();
        let kickoff = Kickoff { milestone: "M".to_owned(), ..Kickoff::default() };
        let mut sprint = Sprint::new(id, Trigger::ManualStart, kickoff, Language::En);
        let begun = Timestamp::parse("2026-03-24T09:00:00").unwrap();
        sprint.started_at = Some(begun.plus_seconds(u64::from(nth)));
        sprint.ended_at = Some(begun.plus_seconds(3_600));
        sprint.status = SprintStatus::Completed;
        sprint
    }

    fn text(root: &Path, path: &str) -> String {
        files::read_text(&root.join(path)).unwrap()
    }

    #[test]
    fn the_archive_written_twice_is_the_archive_written_once_s23() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path();
        let index = papers::INDEX;
        for nth in [1, 2, 1] {
            let sprint = ended(nth);
            let path = write(root, &sprint, Tz::UTC, &Reports::new()).unwrap();
            let name = format!("260324-Sprint-09-00-{nth}");
            assert_eq!(path, format!("shared_workspace/sprints/{name}/report.md"));
            assert!(text(root, &path).contains("## At a glance"));
            let history = text(root, &format!("shared_workspace/sprint_history/{name}.md"));
            assert!(history.contains("#### At a glance"), "{history}");
            let machine = text(root, &format!("shared_workspace/sprints/{name}/report.json"));
            let machine: serde_json::Value = serde_json::from_str(&machine).unwrap();
            assert_eq!(machine["status"], "completed");
        }
        let rows: Vec<String> = text(root, index)
            .lines()
            .filter(|line| line.starts_with("| 260324"))
            .map(|line| line[2..23].to_owned())
            .collect();
        assert_eq!(rows, ["260324-Sprint-09:00-2", "260324-Sprint-09:00-1"]);
    }

    #[test]
    fn what_people_wrote_in_the_folder_stays() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path();
        let folder = root.join("shared_workspace/sprints/260324-Sprint-09-00-1");
        files::create_dir_all(&folder).unwrap();
        files::write(&folder.join("kickoff.md"), "the kickoff as it was").unwrap();
        files::write(&folder.join("plan.md"), "# Our plan\n\nby hand\n").unwrap();
        files::write(&folder.join("spec.md"), "<!-- teams:generated spec -->\nno end").unwrap();
        files::write(&folder.join("milestone.md"), b"\xff\xfe").unwrap();
        write(root, &ended(1), Tz::UTC, &Reports::new()).unwrap();
        let read = |name: &str| files::read(&folder.join(name)).unwrap();
        assert_eq!(read("kickoff.md"), b"the kickoff as it was");
        assert!(read("plan.md").starts_with(b"# Our plan\n\nby hand\n\n<!-- teams:generated plan"));
        assert_eq!(read("spec.md"), b"<!-- teams:generated spec -->\nno end");
        assert_eq!(read("milestone.md"), b"\xff\xfe");
    }
}
