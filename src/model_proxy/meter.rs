//! What a run has spent by its proxy.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::error::ModelProxyError;
use super::servers::ModelServers;
use super::shared_budgets::{OpenCall, RunAllowance, RunSpending};
use super::traffic::Traffic;
use super::usage::ResponseFacts;
use crate::domain::time::Timestamp;
use crate::domain::usage::Usage;
use crate::platform::{files, tasks};

/// What is kept of a run's proxy, in the run's folder.
pub(super) const KEPT: &str = "door.json";
/// Bytes for a token where a server does not count.
pub(super) const BYTES: u64 = 4;

/// Tokens of an answer, before one is known.
const ANSWER: u64 = 8_000;
/// How long a call waits for others at most: much less than an agent may be silent.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// What was counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MeterReading {
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
    /// The run asked for more than it may spend, and was refused.
    pub over_budget: bool,
    /// What its agent says that it has used, with what that costs: no call to a model came by here.
    pub told: Usage,
}

impl MeterReading {
    /// What the run has used so far: as was counted, or, where nothing came by here, as its agent says.
    #[must_use]
    pub const fn used(&self) -> Usage {
        if self.requests > 0 { self.usage } else { self.told }
    }
}

/// What is kept of a proxy, so that a restart goes on with it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct SavedAccess {
    pub(super) token: String,
    pub(super) port: Option<u16>,
    #[serde(default)]
    pub(super) counted: MeterReading,
    /// How the refusal began that the last answer was.
    #[serde(default)]
    pub(super) refusal: String,
    /// The model of the last answer.
    #[serde(default)]
    pub(super) model: String,
    /// What the calls under way are expected to cost: nobody learns what they did where the process is killed.
    #[serde(default)]
    pub(super) under_way: Usage,
}

/// How it stands with servers that answer "too many requests".
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RateLimitSign {
    /// Such answers in a row.
    pub refusals: u32,
    /// Until when the last one asks to wait, where it says so.
    pub until: Option<Timestamp>,
}

/// Counts for one run.
#[derive(Debug)]
pub(super) struct Meter {
    kept: Mutex<SavedAccess>,
    /// What it has spent, for those that share its budgets.
    spending: Arc<RunSpending>,
    models: Arc<ModelServers>,
    /// The model that is asked for.
    asked: String,
    /// Tokens that its conversation holds at most.
    window: u64,
    /// What comes to its agent.
    pub(super) traffic: Traffic,
    run_dir: PathBuf,
    signs: watch::Sender<RateLimitSign>,
    /// Held while the count is written: whoever writes last writes the newest.
    writing: Mutex<()>,
}

impl Meter {
    pub(super) fn new(
        kept: SavedAccess,
        run: RunAllowance,
        models: Arc<ModelServers>,
        run_dir: PathBuf,
    ) -> Meter {
        let (asked, window) = (run.model.clone(), run.window);
        let spending = models.spending.begin(run, kept.counted.used());
        let signs = watch::Sender::new(RateLimitSign::default());
        let (kept, writing) = (Mutex::new(kept), Mutex::default());
        let traffic = Traffic::of(&run_dir);
        Meter { kept, spending, models, asked, window, traffic, run_dir, signs, writing }
    }

    /// Follows what servers say of rate limits.
    pub(super) fn signs(&self) -> watch::Receiver<RateLimitSign> {
        self.signs.subscribe()
    }

    /// How the refusal began that the last answer was, where it was one.
    pub(super) fn refusal(&self) -> Option<String> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.counted.refused.then(|| kept.refusal.clone())
    }

    pub(super) fn counted(&self) -> MeterReading {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).counted
    }

    /// Takes what the agent says that it has used so far; whether that is what the run may spend. Where its calls come by
    /// here, that is known better.
    pub(super) fn tell(self: &Arc<Self>, told: Usage) -> bool {
        let told = self.priced(told);
        {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.counted.requests > 0 {
                return false;
            }
            kept.counted.told = told;
        }
        self.spending.set(told);
        Arc::clone(self).keep_later();
        self.is_spent()
    }

    /// What an agent tells, with what it costs by the model that it is to ask.
    pub(super) fn priced(&self, told: Usage) -> Usage {
        self.models.prices.priced(&self.asked, told)
    }

    /// Whether the run has spent what it may.
    pub(super) fn is_spent(&self) -> bool {
        self.models.spending.is_spent(&self.spending)
    }

    /// A call of so many bytes, where that is known, begins when there is something left to spend for it; none where
    /// nothing is.
    pub(super) async fn call(&self, bytes: Option<u64>) -> Option<OpenCall> {
        let input_tokens = bytes.map_or(self.window, |bytes| (bytes / BYTES).min(self.window));
        let cost = Usage { input_tokens, output_tokens: ANSWER, ..Usage::default() };
        let cost = self.models.prices.priced_at_most(&self.asked, cost);
        self.models.spending.call(&self.spending, cost, LONGEST_WAIT).await
    }

    /// The run asks for more than it may spend.
    pub(super) fn refused_as_spent(&self) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).counted.over_budget = true;
    }

    /// Counts an answer: as it says, or by the bytes of question and answer.
    pub(super) fn add(&self, told: ResponseFacts, (asked, answered): (u64, u64)) {
        // A picture has more bytes than its tokens would have; what is worked on unseen may become anything.
        let window = self.window;
        let guess = match told.is_unseen {
            true => Usage { input_tokens: window, output_tokens: window, ..Usage::default() },
            false => Usage {
                input_tokens: (asked / BYTES).min(window),
                output_tokens: answered / BYTES,
                ..Usage::default()
            },
        };
        let guessed = told.cost.is_none();
        {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            // What broke off before it named its model is of the one before it.
            kept.model = told.model.unwrap_or(std::mem::take(&mut kept.model));
            let prices = &self.models.prices;
            let usage = prices.priced(&kept.model, told.cost.unwrap_or(guess));
            // The one that answers often has a dated name, which no price is listed for.
            let usage = prices.priced(&self.asked, usage);
            let counted = &mut kept.counted;
            counted.usage = counted.usage.plus(usage);
            self.spending.set(counted.usage);
            if !guessed {
                self.spending.answered(usage);
            }
            counted.requests += 1;
            counted.last_input = usage.input_tokens;
            counted.guessed |= guessed;
            if told.is_silence {
                return;
            }
            counted.refused = told.refusal.is_some();
            counted.limited_until = None;
            kept.refusal = told.refusal.unwrap_or_default();
        }
        self.signs.send_if_modified(|sign| std::mem::take(sign).refusals > 0);
    }

    /// A server answers "too many requests", and perhaps until when.
    pub(super) fn limited(&self, until: Option<Timestamp>) {
        if until.is_some() {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.counted.limited_until = until;
        }
        self.signs.send_modify(|sign| {
            *sign = RateLimitSign { refusals: sign.refusals.saturating_add(1), until };
        });
    }

    /// A server says that the plan is used up, and perhaps until when.
    pub(super) fn used_up(&self, until: Option<Timestamp>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.counted.limited_until = until.or(kept.counted.limited_until);
    }

    /// Writes the count down, off the async threads.
    pub(super) async fn kept(self: Arc<Self>) {
        // A thread that was cut off has written it, or the next answer does.
        let _ = tasks::blocking(move || self.keep_or_say()).await;
    }

    /// The same for somebody who cannot wait.
    pub(super) fn keep_later(self: Arc<Self>) {
        tasks::later(move || self.keep_or_say());
    }

    fn keep_or_say(&self) {
        if let Err(error) = self.keep() {
            tracing::warn!(%error, "what a run has spent is not kept");
        }
    }

    /// Keeps the proxy itself. Blocks.
    pub(super) fn keep(&self) -> Result<(), ModelProxyError> {
        let _one = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let text = {
            let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            let under_way = self.spending.under_way();
            serde_json::to_vec(&SavedAccess { under_way, ..kept.clone() })?
        };
        Ok(files::write_private(&self.run_dir.join(KEPT), text)?)
    }
}

/// What is kept in a run's folder of a proxy that is gone; `None` where its models were not reached by one. Calls that were
/// under way are counted as was expected of them.
pub(super) fn read_kept(run_dir: &Path) -> Result<Option<SavedAccess>, ModelProxyError> {
    let Some(text) = files::read_text_if_present(&run_dir.join(KEPT))? else { return Ok(None) };
    let mut kept: SavedAccess = serde_json::from_str(&text)?;
    let under_way = std::mem::take(&mut kept.under_way);
    if under_way != Usage::default() {
        kept.counted.usage = kept.counted.usage.plus(under_way);
        kept.counted.requests += 1;
        kept.counted.guessed = true;
    }
    Ok(Some(kept))
}

/// What is known of a run that nobody reports about; nothing where it had no proxy, or that cannot be read.
#[must_use]
pub fn usage_in(run_dir: &Path) -> Usage {
    let kept = read_kept(run_dir).ok().flatten();
    kept.map(|kept| kept.counted.used()).unwrap_or_default()
}

/// Whether a run has, or had, a proxy.
#[must_use]
pub fn is_kept(run_dir: &Path) -> bool {
    files::exists(&run_dir.join(KEPT))
}
