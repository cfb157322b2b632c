//! How the connections stand, written down for `teams status`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::discord::sessions::Bot;
use crate::domain::role::Role;
use crate::domain::time::Timestamp;
use crate::platform::{clock, files};

/// Where it is written, relative to the workspace.
pub const STANDING_FILE: &str = ".teams_runtime/discord/standing.json";

/// How one bot's connection stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum Standing {
    /// Events flow.
    Connected,
    /// The connection is gone; the next is being made.
    Away {
        /// Why.
        reason: String,
    },
    /// The next connection is put off.
    Waiting {
        /// Until then.
        until: Timestamp,
        /// Why.
        reason: String,
    },
    /// Nothing more is tried until a person has done something.
    NeedsYou {
        /// Why, and what to do.
        reason: String,
    },
}

/// One bot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BotStanding {
    /// How it stands.
    #[serde(flatten)]
    pub standing: Standing,
    /// Since when.
    pub since: Timestamp,
    /// What works less well, and how to change that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lessened: Option<String>,
}

/// All bots, by the role that they are; `team` is the one that listens for the team. And whether calls
/// are being refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The connections.
    #[serde(default)]
    pub bots: BTreeMap<String, BotStanding>,
    /// No calls are made until then, because so many were refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_calls_until: Option<Timestamp>,
}

impl Report {
    /// What a workspace's team wrote down last; empty where it has not.
    #[must_use]
    pub fn read(workspace: &Path) -> Report {
        let text = files::read_text_if_present(&workspace.join(STANDING_FILE)).ok().flatten();
        serde_json::from_str(&text.unwrap_or_default()).unwrap_or_default()
    }

    /// The values of the text `discord.standing`, for everything that a person should know; one where all is
    /// well.
    #[must_use]
    pub fn lines(&self, now: Timestamp) -> Vec<Value> {
        let line = |who: &str, state: &str, reason: &str, until: Option<Timestamp>| {
            let until = until.map(|at| at.kst("%Y-%m-%dT%H:%M")).unwrap_or_default();
            json!({ "who": who, "state": state, "reason": reason, "until": until })
        };
        let mut lines = Vec::new();
        let mut well = 0;
        for (name, bot) in &self.bots {
            let who = if name == "team" { "" } else { name.as_str() };
            match &bot.standing {
                Standing::Connected => well += 1,
                Standing::Away { reason } => lines.push(line(who, "away", reason, None)),
                Standing::Waiting { until, reason } => {
                    lines.push(line(who, "waiting", reason, Some(*until)));
                }
                Standing::NeedsYou { reason } => lines.push(line(who, "needs_you", reason, None)),
            }
            if let Some(reason) = &bot.lessened {
                lines.push(line(who, "lessened", reason, None));
            }
        }
        if let Some(until) = self.no_calls_until.filter(|until| *until > now) {
            lines.push(line("", "no_calls", "", Some(until)));
        }
        if lines.is_empty() && well > 0 {
            lines.push(line("", "connected", "", None));
        }
        lines
    }
}

/// Where connections say how they stand.
#[derive(Debug)]
pub(crate) struct Board {
    path: PathBuf,
    report: Mutex<Report>,
}

impl Board {
    /// The board of a workspace, blank: what an earlier process wrote is over.
    pub(crate) fn of(workspace: &Path) -> Board {
        let board = Board { path: workspace.join(STANDING_FILE), report: Mutex::default() };
        board.write(&board.lock());
        board
    }

    fn lock(&self) -> MutexGuard<'_, Report> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, report: &Report) {
        let text = serde_json::to_vec_pretty(report).unwrap_or_default();
        if let Err(error) = files::write_atomic(&self.path, text) {
            tracing::debug!(%error, "how Discord stands was not written down");
        }
    }

    fn change(&self, bot: Bot, change: impl FnOnce(&mut BotStanding)) {
        let mut report = self.lock();
        let name = bot.map_or("team", Role::as_str).to_owned();
        let now = Timestamp::new(clock::now());
        let blank = BotStanding {
            standing: Standing::Away { reason: "not connected yet".to_owned() },
            since: now,
            lessened: None,
        };
        let before = report.bots.get(&name).cloned();
        let entry = report.bots.entry(name).or_insert(blank);
        change(entry);
        if before.as_ref().is_some_and(|before| before.standing != entry.standing) {
            entry.since = now;
        }
        if before.as_ref() != Some(entry) {
            self.write(&report);
        }
    }

    pub(crate) fn set(&self, bot: Bot, standing: Standing) {
        self.change(bot, |it| it.standing = standing);
    }

    pub(crate) fn lessen(&self, bot: Bot, reason: &str) {
        self.change(bot, |it| it.lessened = Some(reason.to_owned()));
    }

    pub(crate) fn no_calls_until(&self, until: Timestamp) {
        let mut report = self.lock();
        if report.no_calls_until.is_none_or(|before| before < until) {
            report.no_calls_until = Some(until);
            self.write(&report);
        }
    }

    /// As it stands now.
    pub(crate) fn report(&self) -> Report {
        self.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assets::catalog::Catalog;
    use crate::domain::outgoing::Content;
    use crate::domain::request::Language;

    #[test]
    fn what_needs_a_person_is_said_and_what_is_well_is_short() {
        let folder = tempfile::tempdir().unwrap();
        files::create_dir_all(&folder.path().join(".teams_runtime/discord")).unwrap();
        let board = Board::of(folder.path());
        let now = Timestamp::from_millis(0);
        let report = || Report::read(folder.path());
        let catalog = Catalog::builtin().unwrap();
        let say = |line: Value| {
            let values = json!({ "line": line }).as_object().cloned().unwrap();
            let key = "discord.standing".to_owned();
            catalog.render(&Content { key, values, language: Language::En }).unwrap().text
        };
        let lines = || report().lines(now).into_iter().map(say).collect::<Vec<_>>();
        assert!(lines().is_empty());
        board.set(None, Standing::Connected);
        assert_eq!(lines(), ["Discord: connected"]);
        board.lessen(None, "no content");
        board.set(Some(Role::Qa), Standing::NeedsYou { reason: "a token (4004)".to_owned() });
        assert_eq!(
            lines(),
            ["Discord (QA): needs you: a token (4004)", "Discord: with less: no content"]
        );
        board.no_calls_until(Timestamp::from_millis(5_000));
        assert_eq!(lines().len(), 3);
        assert_eq!(board.report().lines(now), report().lines(now));
    }
}
