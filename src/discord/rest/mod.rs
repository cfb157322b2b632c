//! A thin REST client: one call, its limits, its errors. The endpoints are in `endpoints.rs`.
//!
//! It waits for a place itself where the wait is short, and repeats nothing that could double an effect: a
//! message create is repeated only where its nonce protects it, which the delivery decides.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::multipart::{Form, Part};
use reqwest::{Method, StatusCode};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use tokio::sync::Notify;

use crate::discord::error::{LimitScope, RestError, code};
use crate::discord::governor::{Governor, InvalidCalls, LimitHeaders, Limits, Route, Ticket};
use crate::platform::clock;

/// Who we say we are, here and at the gateway.
pub(crate) const USER_AGENT: &str =
    concat!("DiscordBot (https://localhost/teams, ", env!("CARGO_PKG_VERSION"), ")");
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const CALL_TIMEOUT: Duration = Duration::from_secs(20);
/// Interactions die after 3 s, so a slower answer is of no use.
const INTERACTION_TIMEOUT: Duration = Duration::from_millis(2_500);
/// The longest time a call waits for its place before it gives up with [`RestError::Limited`].
const PATIENCE: Duration = Duration::from_secs(10);
/// What an upload has to get through in a second at least, in bytes.
const SLOWEST_UPLOAD: u64 = 50_000;
/// After a token was refused, calls with it are refused here for so long: each counts against the address.
const REFUSED_MS: u64 = 60_000;
/// How often a call that was limited or failed on the way is made in all.
const TRIES: u32 = 3;
/// Waits above this are taken as this: an hour is enough to notice that something is wrong.
const LONGEST_WAIT_MS: u64 = 3_600_000;

/// A file to upload.
#[derive(Debug, Clone)]
pub struct Upload {
    /// Its name for people.
    pub filename: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// The part that all bots of one process share: the connection pool and the count of refused calls.
#[derive(Debug, Clone)]
pub struct Pool {
    http: reqwest::Client,
    base_url: Arc<str>,
    invalid: Arc<Mutex<InvalidCalls>>,
    epoch: tokio::time::Instant,
    /// The other side's clock minus ours in seconds; [`UNKNOWN`] until it answered.
    skew: Arc<AtomicI64>,
    limits: Limits,
}

const UNKNOWN: i64 = i64::MIN;

impl Pool {
    /// A pool for a server at `base_url`, such as `https://discord.com` (without `/api`).
    pub fn new(base_url: &str) -> Result<Pool, RestError> {
        let here = is_loopback(base_url);
        Pool::with(base_url, if here { Limits::THIS_MACHINE } else { Limits::DISCORD })
    }

    /// A pool that keeps to other limits than the server's place suggests.
    pub fn with(base_url: &str, limits: Limits) -> Result<Pool, RestError> {
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(CALL_TIMEOUT)
            .user_agent(USER_AGENT);
        // A proxy of the environment is for the world outside, not for a server on this machine.
        let http = if is_loopback(base_url) { http.no_proxy() } else { http };
        let http = http.build().map_err(|error| RestError::Network(error.to_string()))?;
        Ok(Pool {
            http,
            base_url: base_url.trim_end_matches('/').into(),
            invalid: Arc::default(),
            epoch: tokio::time::Instant::now(),
            skew: Arc::new(AtomicI64::new(UNKNOWN)),
            limits,
        })
    }

    fn now(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// How far the other side's clock is before ours, in seconds, as its last answer said.
    #[must_use]
    pub fn skew_seconds(&self) -> Option<i64> {
        Some(self.skew.load(Ordering::Relaxed)).filter(|skew| *skew != UNKNOWN)
    }

    /// The server, as it was given.
    pub(crate) fn base_url(&self) -> &str {
        &self.base_url
    }

    /// How fast calls follow each other at most.
    pub(crate) const fn limits(&self) -> Limits {
        self.limits
    }

    /// The plain HTTP client, for files on the content network.
    #[must_use]
    pub fn http(&self) -> &reqwest::Client {
        &self.http
    }
}

/// The REST side of one bot.
#[derive(Debug, Clone)]
pub struct Rest {
    pool: Pool,
    token: Arc<SecretString>,
    governor: Arc<Mutex<Governor>>,
    /// Rings when a call is over, for those who wait for what its answer says.
    over: Arc<Notify>,
    /// The token was refused; until then it is not shown again.
    refused_until: Arc<AtomicU64>,
}

/// A place among the calls under way, given back at the end of whatever becomes of the call.
struct CallSlot<'a> {
    rest: &'a Rest,
    ticket: Ticket,
    /// Whether an answer has said what is left.
    heard: AtomicBool,
}

impl Drop for CallSlot<'_> {
    fn drop(&mut self) {
        let mut governor = lock(&self.rest.governor);
        if !self.heard.load(Ordering::Relaxed) {
            governor.unheard(&self.ticket, self.rest.pool.now());
        }
        governor.answered(&self.ticket);
        drop(governor);
        self.rest.over.notify_waiters();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One call.
#[derive(Debug)]
pub(crate) struct Call {
    method: Method,
    path: String,
    body: Option<Value>,
    files: Vec<Upload>,
    /// Whether doing it twice is the same as doing it once.
    repeatable: bool,
    /// Webhook and interaction calls carry their secret in the path.
    bare: bool,
    urgent: bool,
}

impl Call {
    /// A call below `/api/v10`. GET, PUT, PATCH and DELETE are repeated on trouble; POST is not.
    pub(crate) fn new(method: Method, path: impl Into<String>) -> Call {
        let repeatable = method != Method::POST;
        Call {
            method,
            path: path.into(),
            body: None,
            files: Vec::new(),
            repeatable,
            bare: false,
            urgent: false,
        }
    }

    pub(crate) fn json(mut self, body: Value) -> Call {
        self.body = Some(body);
        self
    }

    pub(crate) fn files(mut self, files: Vec<Upload>) -> Call {
        self.files = files;
        self
    }

    /// May be repeated although it is a POST, because a nonce protects it.
    pub(crate) const fn repeatable(mut self) -> Call {
        self.repeatable = true;
        self
    }

    /// Without the bot's token.
    pub(crate) const fn bare(mut self) -> Call {
        self.bare = true;
        self
    }

    /// With the short deadline of interactions.
    pub(crate) const fn urgent(mut self) -> Call {
        self.urgent = true;
        self
    }

    /// For logs: webhook and interaction secrets are left out.
    fn name(&self) -> String {
        let path = self.path.split('?').next().unwrap_or_default();
        let mut parts: Vec<&str> = path.split('/').collect();
        if matches!(parts.get(1), Some(&"webhooks" | &"interactions"))
            && let Some(secret) = parts.get_mut(3)
        {
            *secret = "…";
        }
        format!("{} {}", self.method, parts.join("/"))
    }
}

impl Rest {
    /// The client of one token.
    #[must_use]
    pub fn new(pool: Pool, token: SecretString) -> Rest {
        let governor = Governor::new(pool.limits, pool.now());
        Rest {
            pool,
            token: Arc::new(token),
            governor: Arc::new(Mutex::new(governor)),
            over: Arc::default(),
            refused_until: Arc::default(),
        }
    }

    /// The shared part.
    #[must_use]
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Whether Discord refused this token just now.
    pub(crate) fn is_refused(&self) -> bool {
        self.pool.now() < self.refused_until.load(Ordering::Relaxed)
    }

    /// The token, for the gateway.
    pub(crate) fn token(&self) -> &SecretString {
        &self.token
    }

    /// Makes a call and returns its JSON answer; an empty answer is `null`.
    pub(crate) async fn call(&self, call: Call) -> Result<Value, RestError> {
        let route = Route::of(call.method.as_str(), &call.path);
        let patience = if call.urgent { INTERACTION_TIMEOUT } else { PATIENCE };
        let mut tries = 0;
        loop {
            if !call.bare && self.is_refused() {
                return Err(RestError::Unauthorized);
            }
            let place = self.place(&route, patience).await?;
            tries += 1;
            let outcome = self.once(&call, &route, &place).await;
            drop(place);
            let error = match outcome {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            tracing::debug!(call = call.name(), %error, tries, "discord call failed");
            let again = match &error {
                // A 429 was not carried out, so any call may be made again.
                RestError::Limited { retry_after, .. } => *retry_after <= patience,
                RestError::Server { .. } | RestError::Network(_) => call.repeatable,
                RestError::Breaker { .. }
                | RestError::Unauthorized
                | RestError::Gone { .. }
                | RestError::Refused { .. }
                | RestError::Unreadable(_) => false,
            };
            if !again || tries >= TRIES || call.urgent {
                return Err(error);
            }
            if !matches!(error, RestError::Limited { .. }) {
                tokio::time::sleep(Duration::from_millis(200 << tries)).await;
            }
        }
    }

    /// Waits for a place.
    async fn place(&self, route: &Route, patience: Duration) -> Result<CallSlot<'_>, RestError> {
        let began = self.pool.now();
        loop {
            let over = self.over.notified();
            let now = self.pool.now();
            if let Some(until) = lock(&self.pool.invalid).open_until(now) {
                return Err(RestError::Breaker {
                    retry_after: Duration::from_millis(until.saturating_sub(now)),
                });
            }
            let asked = lock(&self.governor).admit(route, now);
            let free_at = match asked {
                Ok(ticket) => {
                    return Ok(CallSlot { rest: self, ticket, heard: AtomicBool::new(false) });
                }
                Err(free_at) => free_at,
            };
            let wait = Duration::from_millis(free_at.saturating_sub(now).max(1));
            if Duration::from_millis(now - began) + wait > patience {
                return Err(RestError::Limited { retry_after: wait, scope: LimitScope::User });
            }
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = over => {}
            }
        }
    }

    async fn once(
        &self,
        call: &Call,
        route: &Route,
        place: &CallSlot<'_>,
    ) -> Result<Value, RestError> {
        let url = format!("{}/api/v10{}", self.pool.base_url, call.path);
        let mut request = self.pool.http.request(call.method.clone(), url);
        if !call.bare {
            request = request.header(
                reqwest::header::AUTHORIZATION,
                format!("Bot {}", self.token.expose_secret()),
            );
        }
        if call.urgent {
            request = request.timeout(INTERACTION_TIMEOUT);
        }
        if call.files.is_empty() {
            if let Some(body) = &call.body {
                request = request.json(body);
            } else if call.method == Method::PUT || call.method == Method::POST {
                request = request.header(reqwest::header::CONTENT_LENGTH, "0");
            }
        } else {
            let bytes: u64 = call.files.iter().map(|file| file.bytes.len() as u64).sum();
            let slow = Duration::from_secs(bytes / SLOWEST_UPLOAD);
            request = request.timeout(CALL_TIMEOUT + slow).multipart(form(call));
        }
        // The address is left out: it can hold a webhook's secret.
        let response = request
            .send()
            .await
            .map_err(|error| RestError::Network(chain(&error.without_url())))?;
        let status = response.status();
        let headers = response.headers().clone();
        let now = self.pool.now();
        lock(&self.governor).learn(route, &limits(&headers), status.is_success(), now);
        place.heard.store(true, Ordering::Relaxed);
        if let Some(theirs) = date(&headers) {
            let skew = (theirs - clock::now()).num_seconds();
            self.pool.skew.store(skew, Ordering::Relaxed);
        }
        let text = response
            .text()
            .await
            .map_err(|error| RestError::Network(chain(&error.without_url())))?;
        if status.is_success() {
            if text.is_empty() {
                return Ok(Value::Null);
            }
            return serde_json::from_str(&text).map_err(|_| RestError::Unreadable(call.name()));
        }
        let body: Value = serde_json::from_str(&text).unwrap_or_default();
        let error = failure(status, &headers, &body);
        if let RestError::Limited { retry_after, scope } = &error {
            let wait = u64::try_from(retry_after.as_millis()).unwrap_or(LONGEST_WAIT_MS);
            lock(&self.governor).limited(route, *scope, wait, now);
            tracing::warn!(call = call.name(), ?scope, wait_ms = wait, "rate limited");
        }
        if error == RestError::Unauthorized && !call.bare {
            self.refused_until.store(now + REFUSED_MS, Ordering::Relaxed);
        }
        if counts_as_invalid(status, &error) {
            lock(&self.pool.invalid).count(now);
        }
        Err(error)
    }
}

/// Whether an address is one of this machine.
pub(crate) fn is_loopback(base_url: &str) -> bool {
    reqwest::Url::parse(base_url)
        .ok()
        .and_then(|url| url.host_str().map(str::to_owned))
        .is_some_and(|host| host == "localhost" || host == "[::1]" || host.starts_with("127."))
}

fn counts_as_invalid(status: StatusCode, error: &RestError) -> bool {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => true,
        StatusCode::TOO_MANY_REQUESTS => {
            !matches!(error, RestError::Limited { scope: LimitScope::Shared, .. })
        }
        _ => false,
    }
}

fn form(call: &Call) -> Form {
    let mut form = Form::new();
    let body = call.body.clone().unwrap_or_default();
    form = form.text("payload_json", body.to_string());
    for (at, file) in call.files.iter().enumerate() {
        let part = Part::bytes(file.bytes.clone()).file_name(file.filename.clone());
        form = form.part(format!("files[{at}]"), part);
    }
    form
}

fn date(headers: &HeaderMap) -> Option<chrono::DateTime<chrono::Utc>> {
    let text = headers.get(reqwest::header::DATE)?.to_str().ok()?;
    Some(chrono::DateTime::parse_from_rfc2822(text).ok()?.to_utc())
}

fn number(headers: &HeaderMap, name: &str) -> Option<f64> {
    let text = headers.get(name)?.to_str().ok()?;
    let number: f64 = text.trim().parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be finite and not negative, and capped"
)]
fn millis(seconds: f64) -> u64 {
    ((seconds * 1_000.0).ceil() as u64).min(LONGEST_WAIT_MS)
}

fn limits(headers: &HeaderMap) -> LimitHeaders {
    let count = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse().ok();
    LimitHeaders {
        bucket: headers
            .get("x-ratelimit-bucket")
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned),
        limit: count("x-ratelimit-limit"),
        remaining: count("x-ratelimit-remaining"),
        reset_after_ms: number(headers, "x-ratelimit-reset-after").map(millis),
    }
}

/// The error in an answer. A 429 without any usable number (an HTML page of a proxy) waits 5 s.
fn failure(status: StatusCode, headers: &HeaderMap, body: &Value) -> RestError {
    let code = body
        .get("code")
        .and_then(Value::as_u64)
        .and_then(|code| u32::try_from(code).ok())
        .unwrap_or(0);
    let message: String = match body.get("message").and_then(Value::as_str) {
        Some(text) => text.chars().take(300).collect(),
        None => status.canonical_reason().unwrap_or("no reason").to_owned(),
    };
    match status.as_u16() {
        401 => RestError::Unauthorized,
        404 => RestError::Gone { code, message },
        // Not a limit of calls: waiting helps this message only, and another one at once.
        429 if code == code::EDITS_LIMITED => RestError::Refused { status: 429, code, message },
        429 => {
            let seconds = body
                .get("retry_after")
                .and_then(Value::as_f64)
                .filter(|seconds| seconds.is_finite() && *seconds >= 0.0)
                .or_else(|| number(headers, "retry-after"))
                .unwrap_or(5.0);
            let global = body.get("global").and_then(Value::as_bool) == Some(true)
                || headers.contains_key("x-ratelimit-global");
            let scope = match headers.get("x-ratelimit-scope").map(|value| value.to_str()) {
                _ if global => LimitScope::Global,
                Some(Ok(text)) => LimitScope::read(text),
                Some(Err(_)) | None => LimitScope::User,
            };
            RestError::Limited { retry_after: Duration::from_millis(millis(seconds)), scope }
        }
        500.. => RestError::Server { status: status.as_u16() },
        _ => RestError::Refused { status: status.as_u16(), code, message },
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        source = inner.source();
    }
    text
}

#[cfg(test)]
mod tests;
