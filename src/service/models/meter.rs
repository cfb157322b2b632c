//! What a run has spent by its door.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::KEPT;
use super::usage::Told;
use crate::domain::budget::{Allowance, PriceTable};
use crate::domain::run::Usage;
use crate::domain::time::Timestamp;
use crate::platform::files;

/// Bytes for a token where a server does not count.
const BYTES: u64 = 4;

/// What was counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Metered {
    /// Tokens, and what they cost where the model has a price.
    pub usage: Usage,
    /// Answers of models.
    pub requests: u64,
    /// Tokens of the last request: how full the conversation is.
    pub last_input: u64,
    /// Some server did not count, and by bytes it was guessed.
    pub guessed: bool,
    /// The last answer was a refusal that stands in no text.
    pub refused: bool,
    /// Until when a server answers nothing more, where its last answer says so.
    pub limited_until: Option<Timestamp>,
}

/// What is kept of a door, so that a restart goes on with it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) token: String,
    pub(super) port: Option<u16>,
    #[serde(default)]
    pub(super) counted: Metered,
}

/// Counts for one run.
#[derive(Debug)]
pub(super) struct Meter {
    kept: Mutex<Kept>,
    allowance: Allowance,
    prices: PriceTable,
    run_dir: PathBuf,
}

impl Meter {
    pub(super) const fn new(
        kept: Kept,
        allowance: Allowance,
        prices: PriceTable,
        run_dir: PathBuf,
    ) -> Meter {
        Meter { kept: Mutex::new(kept), allowance, prices, run_dir }
    }

    pub(super) fn counted(&self) -> Metered {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).counted
    }

    /// Whether the run has spent what it may.
    pub(super) fn is_spent(&self) -> bool {
        !self.allowance.is_unlimited() && self.allowance.share(self.counted().usage) >= 1.0
    }

    /// Counts an answer: as it says, or by the bytes of question and answer.
    pub(super) fn add(&self, told: Told, (asked, answered): (u64, u64)) {
        let guess = Usage {
            input_tokens: asked / BYTES,
            cached_tokens: 0,
            output_tokens: answered / BYTES,
            cost_usd: 0.0,
        };
        let guessed = told.cost.is_none();
        let (usage, model) = told.cost.unwrap_or((guess, None));
        let usage = self.prices.priced(&model.unwrap_or_default(), usage);
        self.note(|counted| {
            counted.usage = counted.usage.plus(usage);
            counted.requests += 1;
            counted.last_input = usage.input_tokens;
            counted.guessed |= guessed;
            counted.refused = told.refused;
            counted.limited_until = None;
        });
    }

    /// A server said until when it answers nothing more.
    pub(super) fn limited(&self, until: Timestamp) {
        self.note(|counted| counted.limited_until = Some(until));
    }

    fn note(&self, what: impl FnOnce(&mut Metered)) {
        let text = {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            what(&mut kept.counted);
            serde_json::to_vec(&*kept)
        };
        let path = self.run_dir.join(KEPT);
        let written = text.map_err(std::io::Error::other);
        let written = written.map(|text| files::write_private(&path, text));
        if let Err(error) | Ok(Err(error)) = written.map(|it| it.map_err(std::io::Error::other)) {
            tracing::warn!(%error, "what a run has spent is not kept");
        }
    }

    /// Keeps the door itself.
    pub(super) fn keep(&self) -> Result<(), super::DoorError> {
        let text = {
            let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            serde_json::to_vec(&*kept)?
        };
        Ok(files::write_private(&self.run_dir.join(KEPT), text)?)
    }
}
