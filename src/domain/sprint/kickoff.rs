//! What a sprint is begun with.

use serde::{Deserialize, Serialize};

use crate::domain::attachment::ATTACHMENTS;
use crate::domain::ids::RequestId;
use crate::domain::language::Language;
use crate::domain::lenient::{self, blank_is_none};
use crate::domain::request::ReplyRoute;

/// What somebody asks for who begins a sprint.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Kickoff {
    /// The milestone, as it was asked for; blank only for a sprint that the scheduler begins.
    pub milestone: String,
    /// What it is about.
    pub brief: String,
    /// What has to hold at the end.
    pub requirements: Vec<String>,
    /// Files that go with it, workspace-relative.
    pub artifacts: Vec<String>,
    /// How many files came with it and could not be kept; it begins without them, and says so.
    #[serde(skip_serializing_if = "lenient::is_zero")]
    pub missing_files: u32,
    /// The words that asked for it, verbatim.
    pub request_text: String,
    /// The request that asked, where one did.
    pub source_request_id: Option<RequestId>,
    /// Where reports to the person go.
    pub reply_route: ReplyRoute,
    /// The language of the sprint.
    pub language: Option<Language>,
}

impl Kickoff {
    /// What was filled in, as a person would have written it (`spec/teams.md` 1.5): the sections that
    /// plain words to the team are read by.
    #[must_use]
    pub fn written(&self) -> String {
        let mut lines = vec!["start sprint".to_owned(), format!("milestone: {}", self.milestone)];
        if !self.brief.is_empty() {
            lines.push(format!("brief: {}", self.brief));
        }
        if !self.requirements.is_empty() {
            lines.push("requirements:".to_owned());
            lines.extend(self.requirements.iter().map(|words| format!("- {words}")));
        }
        lines.join("\n")
    }
}

/// What a sprint was begun with: kept as it was given and never changed afterwards.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SprintKickoff {
    /// The milestone as it was asked for.
    #[serde(rename = "requested_milestone_title")]
    pub milestone: String,
    /// What it is about.
    #[serde(rename = "kickoff_brief")]
    pub brief: String,
    /// What has to hold at the end.
    #[serde(rename = "kickoff_requirements")]
    pub requirements: Vec<String>,
    /// The words that asked for it.
    #[serde(rename = "kickoff_request_text")]
    pub request_text: String,
    /// The request that asked.
    #[serde(rename = "kickoff_source_request_id", with = "blank_is_none")]
    pub source_request_id: Option<RequestId>,
    /// Files that go with it, workspace-relative.
    #[serde(rename = "kickoff_reference_artifacts")]
    pub artifacts: Vec<String>,
    /// Where reports to the person who asked go.
    pub reply_route: ReplyRoute,
}

impl From<Kickoff> for SprintKickoff {
    fn from(kickoff: Kickoff) -> Self {
        Self {
            milestone: kickoff.milestone,
            brief: kickoff.brief,
            requirements: kickoff.requirements,
            request_text: kickoff.request_text,
            source_request_id: kickoff.source_request_id,
            artifacts: kickoff.artifacts,
            reply_route: kickoff.reply_route,
        }
    }
}

impl SprintKickoff {
    /// Whether somebody has written or attached what is worth reading before the sprint is planned.
    #[must_use]
    pub fn has_material(&self) -> bool {
        !self.artifacts.is_empty() || !self.brief.trim().is_empty()
    }

    /// What it is about, for people to read: blank where somebody said it to the team alone.
    #[must_use]
    pub fn public_brief(&self) -> &str {
        if self.reply_route.is_dm { "" } else { &self.brief }
    }

    /// Its files that lie with those of all messages, each with where it lies in the folder of its sprint.
    pub fn attachments(&self, sprint_folder: &str) -> Vec<(String, String)> {
        let mut all = Vec::new();
        for path in &self.artifacts {
            let name = path.strip_prefix(ATTACHMENTS).and_then(|it| it.strip_prefix('/'));
            if let Some(name) = name.filter(|name| !name.is_empty() && !name.contains('/')) {
                all.push((path.clone(), format!("{sprint_folder}/attachments/{name}")));
            }
        }
        all
    }
}
