//! How the connections stand, written down for `teams status`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::discord::bot::Bot;
use crate::domain::config::Zone;
use crate::domain::role::Role;
use crate::domain::time::Timestamp;
use crate::platform::{clock, files};

/// Where it is written, relative to the workspace.
pub const STANDING_FILE: &str = ".teams_runtime/discord/standing.json";

/// How one bot's connection stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum Standing {
    /// The first connection is being made.
    Connecting,
    /// Events flow.
    Connected,
    /// The connection lives and brings no events; the channels are read instead.
    Silent {
        /// What is missing.
        reason: String,
    },
    /// The connection is gone; the next is being made.
    Away {
        /// Why.
        reason: String,
        /// When the next is made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<Timestamp>,
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

/// Connections that came to nothing or broke soon, in a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionFailures {
    /// When the first of them ended.
    pub since: Timestamp,
    /// How many they are.
    pub times: u32,
    /// Why the last of them ended.
    pub reason: String,
}

/// Events that did not come, or came unreadable, also when they were asked for again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissedEvents {
    /// How many times since the team was started.
    pub times: u32,
    /// The last of them, by its name where it had one.
    pub what: String,
    /// When that was.
    pub at: Timestamp,
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
    /// What went wrong lately; none once a connection has lasted for a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<ConnectionFailures>,
    /// Events that were not to be had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<MissedEvents>,
}

/// Events that were not to be had are told for a day, in seconds.
const MISSED_TOLD: u64 = 86_400;
/// Connections that broke before a connection that lives is called unsteady: one is nothing special.
const UNSTEADY: u32 = 2;

fn minute(at: Timestamp, zone: Zone) -> String {
    at.format_in(zone.0, "%Y-%m-%dT%H:%M")
}

/// The values of one line of the text `discord.standing`.
fn line(who: &str, state: &str) -> Value {
    json!({
        "who": who, "state": state, "reason": "", "until": "", "since": "", "times": 0, "last": "",
    })
}

impl BotStanding {
    /// What a person should know, and whether all is well otherwise.
    fn lines(&self, who: &str, now: Timestamp, zone: Zone, lines: &mut Vec<Value>) -> bool {
        let told = |state: &str, reason: &str, until: Option<Timestamp>| {
            let mut line = line(who, state);
            line["reason"] = json!(reason);
            line["until"] = json!(until.map(|at| minute(at, zone)).unwrap_or_default());
            if let Some(trouble) = &self.trouble {
                line["since"] = json!(minute(trouble.since, zone));
                line["times"] = json!(trouble.times);
                line["last"] = json!(trouble.reason);
            }
            line
        };
        let unsteady = self.trouble.as_ref().filter(|it| it.times >= UNSTEADY);
        let mut well = false;
        match (&self.standing, unsteady) {
            (Standing::Connecting, _) => lines.push(told("connecting", "", None)),
            (Standing::Connected, None) => well = true,
            (Standing::Connected, Some(trouble)) => {
                lines.push(told("unsteady", &trouble.reason, None));
            }
            (Standing::Silent { reason }, _) => {
                let mut line = told("silent", reason, None);
                line["since"] = json!(minute(self.since, zone));
                lines.push(line);
            }
            (Standing::Away { reason, next }, _) => lines.push(told("away", reason, *next)),
            (Standing::Waiting { until, reason }, _) => {
                lines.push(told("waiting", reason, Some(*until)));
            }
            (Standing::NeedsYou { reason }, _) => lines.push(told("needs_you", reason, None)),
        }
        if let Some(reason) = &self.lessened {
            lines.push(told("lessened", reason, None));
        }
        let lately = |it: &&MissedEvents| now <= it.at.plus_seconds(MISSED_TOLD);
        if let Some(missed) = self.missed.as_ref().filter(lately) {
            let mut line = line(who, "missed");
            line["reason"] = json!(missed.what);
            line["since"] = json!(minute(missed.at, zone));
            line["times"] = json!(missed.times);
            lines.push(line);
        }
        well
    }
}

/// All bots, by the role that they are; `team` is the one that listens for the team. And whether calls
/// are being refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The zone of the workspace, in which its lines tell times.
    #[serde(default)]
    pub zone: Zone,
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
        let mut lines = Vec::new();
        let mut well = 0;
        for (name, bot) in &self.bots {
            let who = if name == "team" { "" } else { name.as_str() };
            well += u32::from(bot.lines(who, now, self.zone, &mut lines));
        }
        if let Some(until) = self.no_calls_until.filter(|until| *until > now) {
            let mut line = line("", "no_calls");
            line["until"] = json!(minute(until, self.zone));
            lines.push(line);
        }
        if lines.is_empty() && well > 0 {
            lines.push(line("", "connected"));
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
    pub(crate) fn of(workspace: &Path, zone: Zone) -> Board {
        let board = Board {
            path: workspace.join(STANDING_FILE),
            report: Mutex::new(Report { zone, ..Report::default() }),
        };
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
            standing: Standing::Connecting,
            since: now,
            lessened: None,
            trouble: None,
            missed: None,
        };
        let before = report.bots.get(&name).cloned();
        let entry = report.bots.entry(name).or_insert(blank);
        change(entry);
        let same = |before: &BotStanding| {
            std::mem::discriminant(&before.standing) == std::mem::discriminant(&entry.standing)
        };
        if !before.as_ref().is_some_and(same) {
            entry.since = now;
        }
        if before.as_ref() != Some(entry) {
            self.write(&report);
        }
    }

    fn set(&self, bot: Bot, standing: Standing) {
        self.change(bot, |it| it.standing = standing);
    }

    pub(crate) fn connecting(&self, bot: Bot) {
        self.set(bot, Standing::Connecting);
    }

    /// Events flow; what went wrong before is told until the connection has lasted.
    pub(crate) fn connected(&self, bot: Bot) {
        self.set(bot, Standing::Connected);
    }

    /// The connection has lasted.
    pub(crate) fn steady(&self, bot: Bot) {
        self.change(bot, |it| it.trouble = None);
    }

    pub(crate) fn silent(&self, bot: Bot, reason: &str) {
        self.set(bot, Standing::Silent { reason: reason.to_owned() });
    }

    /// A connection came to nothing or broke; the next is made at that time.
    pub(crate) fn failed(&self, bot: Bot, reason: &str, next: Timestamp) {
        let now = Timestamp::new(clock::now());
        self.change(bot, |it| {
            it.standing = Standing::Away { reason: reason.to_owned(), next: Some(next) };
            let trouble = it.trouble.get_or_insert_with(|| ConnectionFailures {
                since: now,
                times: 0,
                reason: String::new(),
            });
            trouble.times = trouble.times.saturating_add(1);
            reason.clone_into(&mut trouble.reason);
        });
    }

    pub(crate) fn waiting(&self, bot: Bot, until: Timestamp, reason: &str) {
        self.set(bot, Standing::Waiting { until, reason: reason.to_owned() });
    }

    pub(crate) fn needs_you(&self, bot: Bot, reason: &str) {
        self.set(bot, Standing::NeedsYou { reason: reason.to_owned() });
    }

    /// Events were not to be had from the gateway.
    pub(crate) fn missed(&self, bot: Bot, what: &str) {
        let at = Timestamp::new(clock::now());
        self.change(bot, |it| {
            let times = it.missed.as_ref().map_or(0, |missed| missed.times).saturating_add(1);
            it.missed = Some(MissedEvents { times, what: what.to_owned(), at });
        });
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
    use crate::domain::language::Language;
    use crate::domain::outgoing::Content;

    struct Scene {
        folder: tempfile::TempDir,
        board: Board,
    }

    impl Scene {
        fn new() -> Scene {
            let folder = tempfile::tempdir().unwrap();
            files::create_dir_all(&folder.path().join(".teams_runtime/discord")).unwrap();
            let board = Board::of(folder.path(), Zone::default());
            Scene { folder, board }
        }

        /// As `teams status` reads them.
        fn lines(&self, now: Timestamp) -> Vec<String> {
            let report = Report::read(self.folder.path());
            assert_eq!(self.board.report().lines(now), report.lines(now));
            let catalog = Catalog::builtin().unwrap();
            let say = |line: Value| {
                let values = json!({ "line": line }).as_object().cloned().unwrap();
                let key = "discord.standing".to_owned();
                catalog.render(&Content { key, values, language: Language::En }).unwrap().text
            };
            report.lines(now).into_iter().map(say).collect()
        }
    }

    #[test]
    fn what_needs_a_person_is_said_and_what_is_well_is_short() {
        let scene = Scene::new();
        let board = &scene.board;
        let now = Timestamp::from_millis(0);
        assert!(scene.lines(now).is_empty());
        board.connecting(None);
        assert_eq!(scene.lines(now), ["Discord: connecting"]);
        board.connected(None);
        assert_eq!(scene.lines(now), ["Discord: connected"]);
        board.lessen(None, "no content");
        board.needs_you(Some(Role::Qa), "a token (4004)");
        assert_eq!(
            scene.lines(now),
            ["Discord (QA): needs you: a token (4004)", "Discord: with less: no content"]
        );
        board.no_calls_until(Timestamp::from_millis(5_000));
        assert_eq!(scene.lines(now).len(), 3);
    }

    #[test]
    fn trouble_is_told_with_its_cause_its_beginning_its_count_and_the_next_try() {
        let scene = Scene::new();
        let board = &scene.board;
        let at = Timestamp::from_millis(3_600_000);
        let only = || match &scene.lines(Timestamp::new(clock::now()))[..] {
            [line] => line.clone(),
            lines => panic!("{lines:?}"),
        };
        board.failed(None, "it ended without a word", at);
        board.connected(None);
        assert_eq!(only(), "Discord: connected", "one that broke is nothing special");
        board.failed(None, "it ended without a word", at);
        let line = only();
        for part in ["not connected since ", "2 tries", "it ended without a word", "10:00"] {
            assert!(line.contains(part), "{part}: {line}");
        }
        board.waiting(None, at, "five were made");
        let line = only();
        for part in ["waiting until", "10:00", "five were made", "2 tries", "it ended without"] {
            assert!(line.contains(part), "{part}: {line}");
        }
        board.connected(None);
        assert!(only().contains("connected, but it broke 2 times since "), "{}", only());
        board.steady(None);
        assert_eq!(only(), "Discord: connected");
        board.silent(None, "no events come");
        assert!(only().contains("silent since ") && only().contains("no events come"));
        board.connected(None);
        board.missed(None, "MESSAGE_CREATE");
        let line = only();
        for part in ["1 time", "MESSAGE_CREATE", "read"] {
            assert!(line.contains(part), "{part}: {line}");
        }
        let later = Timestamp::new(clock::now()).plus_seconds(2 * MISSED_TOLD);
        assert_eq!(scene.lines(later), ["Discord: connected"]);
    }

    #[test]
    fn what_an_older_team_wrote_down_is_read() {
        let text = r#"{"bots": {"team": {"state": "away", "reason": "x", "since": "2026-03-24T09:00:00.000000+09:00"}}}"#;
        let report: Report = serde_json::from_str(text).unwrap();
        assert_eq!(report.bots["team"].standing, Standing::Away { reason: "x".into(), next: None });
    }
}
