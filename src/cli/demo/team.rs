//! The demo's team: a process that is started again when it is killed.

use std::collections::BTreeMap;

use super::home::{Home, broken};
use crate::cli::output::FAULT;
use crate::cli::{Failure, say};
use crate::local_guild::GuildInfo;
use crate::platform::companion::{Companion, ExitReason};
use crate::platform::plug;
use crate::workspace::DEMO_TOKEN;

/// Starts of the team that nobody asked for, before the demo gives up.
const MAX_RESTARTS: u32 = 3;

/// The team.
pub(super) struct Team {
    process: Companion,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    plug_pulled: bool,
    restarts: u32,
}

impl Team {
    /// Starts it, with what is to go wrong on purpose ([`plug::PLUG_VARIABLE`]).
    pub(super) fn start(
        home: &Home,
        guild: &GuildInfo,
        plug: Option<String>,
    ) -> Result<Team, Failure> {
        let args = vec![
            "run".to_owned(),
            "--quiet".to_owned(),
            "--parent-pipe".to_owned(),
            "--workspace-root".to_owned(),
            home.workspace().to_string_lossy().into_owned(),
        ];
        let token = guild.bots.get("teams").map(|bot| bot.token.clone()).unwrap_or_default();
        let env = BTreeMap::from([(DEMO_TOKEN.to_owned(), token)]);
        let mut first = env.clone();
        let plug_pulled = plug.is_none();
        first.extend(plug.map(|plug| (plug::PLUG_VARIABLE.to_owned(), plug)));
        let process = Companion::start(&args, &first).map_err(broken)?;
        Ok(Team { process, args, env, plug_pulled, restarts: 0 })
    }

    /// Waits for the team to end, and starts it again. An error where that does not help.
    pub(super) async fn keep(&mut self) -> Result<(), Failure> {
        let ended = self.process.ended().await.map_err(broken)?;
        match ended {
            ExitReason::Signal(9) if !self.plug_pulled => {
                self.plug_pulled = true;
                say("The plug was pulled: the team was killed with SIGKILL. Starting it again.");
            }
            ExitReason::Code(code) if code == i32::from(FAULT) && self.restarts < MAX_RESTARTS => {
                self.plug_pulled = true;
                self.restarts += 1;
                say(
                    "A task of the team broke off, and the team has stopped in order. Starting it again.",
                );
            }
            ExitReason::Signal(signal) if self.restarts < MAX_RESTARTS => {
                self.restarts += 1;
                say(format_args!("The team was ended by signal {signal}. Starting it again."));
            }
            ExitReason::Code(_) | ExitReason::Signal(_) => {
                return Err(Failure::new("the team stopped")
                    .hint(Some("its log is logs/teams.log in the demo's workspace".to_owned())));
            }
        }
        self.process = Companion::start(&self.args, &self.env).map_err(broken)?;
        Ok(())
    }

    pub(super) async fn stop(&mut self) {
        // A team that does not stop is ended with us.
        let _ = self.process.stop().await;
    }
}
