//! Threads that Discord has put away: a room, or a question, of somebody who came while nobody was there.

use reqwest::Method;
use serde::Deserialize;

use crate::discord::endpoints::{SeenChannel, read};
use crate::discord::error::RestError;
use crate::discord::rest::{Call, Rest};
use crate::domain::ids::ChannelId;
use crate::domain::time::Timestamp;

impl Rest {
    /// Threads of a channel that were put into the archive after `since`, the latest first; no more than
    /// `pages` times a hundred.
    pub async fn threads_archived_since(
        &self,
        channel: ChannelId,
        since: Timestamp,
        pages: usize,
    ) -> Result<Vec<SeenChannel>, RestError> {
        #[derive(Deserialize)]
        struct Details {
            archive_timestamp: String,
        }
        #[derive(Deserialize)]
        struct Thread {
            #[serde(flatten)]
            channel: SeenChannel,
            thread_metadata: Details,
        }
        #[derive(Deserialize)]
        struct Page {
            threads: Vec<Thread>,
            #[serde(default)]
            has_more: bool,
        }
        let path = format!("/channels/{channel}/threads/archived/public?limit=100");
        let (mut found, mut before) = (Vec::new(), String::new());
        for _ in 0..pages {
            let call = Call::new(Method::GET, format!("{path}{before}"));
            let page: Page = read("archived threads", self.call(call).await?)?;
            let Some(last) = page.threads.last() else { break };
            // A colon and a plus of an offset are not for an address as they are.
            let cursor = last.thread_metadata.archive_timestamp.replace('+', "%2B");
            before = format!("&before={cursor}");
            let all = page.threads.len();
            let late = page.threads.into_iter().filter(|thread| {
                // What tells no time is read once too often rather than not.
                let at = Timestamp::parse(&thread.thread_metadata.archive_timestamp).ok();
                at.is_none_or(|at| at >= since)
            });
            let before_page = found.len();
            found.extend(late.map(|thread| thread.channel));
            if found.len() < before_page + all || !page.has_more {
                break;
            }
        }
        Ok(found)
    }
}
