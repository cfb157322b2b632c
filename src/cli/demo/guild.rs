//! The demo's local guild: a process of its own that ends with us.

use std::collections::BTreeMap;

use super::home::{Home, broken};
use crate::cli::Failure;
use crate::local_guild::GuildInfo;
use crate::platform::companion::Companion;

/// The guild.
pub(super) struct Guild {
    pub(super) info: GuildInfo,
    process: Companion,
}

impl Guild {
    /// Starts it and waits until it answers.
    pub(super) async fn start(home: &Home, port: u16) -> Result<Guild, Failure> {
        let args = [
            "local-guild".to_owned(),
            "--json".to_owned(),
            "--parent-pipe".to_owned(),
            "--port".to_owned(),
            port.to_string(),
            "--dir".to_owned(),
            home.guild().to_string_lossy().into_owned(),
        ];
        let mut process = Companion::start(&args, &BTreeMap::new()).map_err(broken)?;
        let line = process.line().await.map_err(broken)?;
        let Some(line) = line else {
            return Err(Failure::new("the local guild did not start").hint(Some(
                "another demo uses this folder or port: the line above names it".to_owned(),
            )));
        };
        let info = serde_json::from_str(&line).map_err(broken)?;
        Ok(Guild { info, process })
    }

    pub(super) async fn stop(&mut self) {
        // It ends by itself when we do.
        let _ = self.process.stop().await;
    }
}
