//! Words for an agent that is at work.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use crate::agents::prompt::PersonMessage;
use crate::domain::ids::MessageId;

/// What somebody wrote to a request while a run of it was under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Words {
    /// The message; whoever sent it learns by it whether the agent took it.
    pub id: MessageId,
    /// Who wrote what.
    pub said: PersonMessage,
}

/// Where words wait until the driver gives them to the agent. Clones are the same box. What is still in
/// it when the run ends came too late.
#[derive(Debug, Clone, Default)]
pub struct Mailbox(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    waiting: Mutex<VecDeque<Words>>,
    rung: Notify,
}

impl Mailbox {
    /// Adds words.
    pub fn put(&self, words: Words) {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner).push_back(words);
        self.0.rung.notify_one();
    }

    /// Takes the oldest words, when there are some. Safe to cancel: nothing is taken then.
    pub(super) async fn take(&self) -> Words {
        loop {
            let oldest = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            match oldest {
                Some(words) => return words,
                None => self.0.rung.notified().await,
            }
        }
    }
}
