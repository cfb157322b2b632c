//! The papers of sprints and backlog that the team keeps in the shared workspace (`spec/teams.md` 3.4,
//! 3.5, 9.9). Pure: texts and pictures out of records; whoever calls decides when they are written.

mod backlog;
mod burndown;
mod chart;
pub(in crate::workspace) mod history;
mod lanes;
mod marks;
mod paper;
mod report;
mod reports;
mod request;
mod sprint;
mod values;

pub use backlog::{backlog, completed, current_sprint};
pub use burndown::burndown;
pub use chart::ChartError;
pub use lanes::{lane_order, lanes};

pub use history::{INDEX, index_with_row, sprint_history};
pub use marks::{BrokenMarks, splice};
pub use report::{final_report, machine_summary};
pub use reports::{Reports, RoleReport, role_reports};
pub use request::request_plan;
pub use sprint::{report_paper, sprint_papers};

pub use paper::{Keep, Paper, folder_name, sprint_folder};
use paper::{fill, fill_with, is_korean, nothing};

#[cfg(test)]
mod tests;
