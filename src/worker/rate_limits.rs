//! Tells the hub, and so the room of a run, while its agent is still at work, that the model's server makes it wait: agents try
//! again by themselves, some of them for minutes and without a word.

use std::convert::Infallible;

use tokio::sync::{mpsc, watch};

use super::worker::Worker;
use crate::agents::{self, Event};
use crate::domain::assignment::RunCall;
use crate::domain::ids::RunId;
use crate::domain::time::Timestamp;
use crate::model_proxy::RateLimitSign;
use crate::platform::clock;

/// Events of an agent that may wait to be looked at.
pub(super) const EVENTS: usize = 64;
/// Refusals in a row that are told; one alone is over before anybody reads of it,
const REFUSALS: u32 = 2;
/// unless it asks to wait for so many seconds.
const LONG: u64 = 15;

/// Follows a run: by its proxy, which sees each refusal of a server behind it, and by what its agent says.
pub(super) async fn follow(
    worker: &Worker,
    run_id: &RunId,
    proxy: Option<watch::Receiver<RateLimitSign>>,
    events: mpsc::Receiver<Event>,
) -> Infallible {
    let RateLimitSign { until, .. } = tokio::select! {
        sign = by_proxy(proxy) => sign,
        sign = by_agent(events) => sign,
    };
    worker.say_for(run_id, RunCall::RateLimited { until }).await;
    std::future::pending().await
}

fn now() -> Timestamp {
    Timestamp::new(clock::now())
}

fn is_worth_telling(sign: &RateLimitSign) -> bool {
    let long = sign.until.is_some_and(|until| until >= now().plus_seconds(LONG));
    sign.refusals >= REFUSALS || (sign.refusals > 0 && long)
}

async fn by_proxy(proxy: Option<watch::Receiver<RateLimitSign>>) -> RateLimitSign {
    if let Some(mut signs) = proxy
        && let Ok(sign) = signs.wait_for(is_worth_telling).await
    {
        return *sign;
    }
    std::future::pending().await
}

async fn by_agent(mut events: mpsc::Receiver<Event>) -> RateLimitSign {
    let mut sign = RateLimitSign::default();
    while let Some(event) = events.recv().await {
        match agents::rate_limit(&event, now()) {
            Some(Some(until)) => {
                sign = RateLimitSign { refusals: sign.refusals + 1, until: until.or(sign.until) };
            }
            Some(None) => sign = RateLimitSign::default(),
            None => {}
        }
        if is_worth_telling(&sign) {
            return sign;
        }
    }
    std::future::pending().await
}
