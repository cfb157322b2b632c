//! What REST requests meet on their way in and out.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::limits::{RateLimitState, Route};
use super::{Faults, RestFault, RestTrouble, Scope};
use crate::local_guild::guild::{Guild, GuildState};
use crate::platform::clock;

impl Faults {
    /// The fault that a request meets, counted down.
    fn meet(&self, method: &str, path: &str) -> Option<RestFault> {
        let mut settings = self.lock();
        let position = settings.rest.iter().position(|fault| {
            fault.method.as_deref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(method))
                && path.contains(&fault.path_contains)
        })?;
        let fault = settings.rest.get_mut(position)?;
        fault.times = fault.times.saturating_sub(1);
        let met = fault.clone();
        if met.times == 0 {
            settings.rest.remove(position);
        }
        Some(met)
    }

    /// Where a request stands, if limits are kept.
    fn standing(&self, bot: &str, route: &Route) -> Option<RateLimitState> {
        let limits = self.lock().limits.filter(|it| it.per_route > 0 || it.global > 0)?;
        Some(self.counters().count(limits, bot, route))
    }

    /// Whether an edit of an old message is one too many.
    fn edit_refused(&self, route: &Route) -> bool {
        let rule = self.lock().edits;
        match (rule, route.edited) {
            (Some(rule), Some(id)) => !self.counters().edit(rule, id, clock::now()),
            (Some(_) | None, _) => false,
        }
    }

    /// The page of the proxy in front, while this machine is banned.
    fn ban(&self) -> Option<Response> {
        let limit = self.lock().invalid_limit;
        self.counters().banned(limit).map(|left| proxy_page(left.as_secs_f64()))
    }

    /// Counts what the platform takes for an invalid request.
    fn judge(&self, response: &Response) {
        let shared = response.headers().get("x-ratelimit-scope").is_some_and(|it| it == "shared");
        let counts = matches!(response.status().as_u16(), 401 | 403 | 429);
        if counts && !shared {
            self.counters().invalid();
        }
    }
}

/// A response whose body fails, upon which the server cuts the connection.
fn cut() -> Response {
    let broken = futures_util::stream::once(async {
        Err::<axum::body::Bytes, _>(std::io::Error::other("cut by an injected fault"))
    });
    (StatusCode::SERVICE_UNAVAILABLE, Body::from_stream(broken)).into_response()
}

fn put(headers: &mut HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// The proxy's 429: a page instead of JSON, and one header.
fn proxy_page(retry_after: f64) -> Response {
    let text = "<!doctype html><title>Rate limited</title><h1>Error 1015</h1>";
    let mut response = (StatusCode::TOO_MANY_REQUESTS, text).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    put(headers, "retry-after", &whole(retry_after));
    response
}

/// Seconds as the older header has them: whole ones, rounded up.
fn whole(seconds: f64) -> String {
    seconds.ceil().max(1.0).to_string()
}

/// The headers that tell where a request stands in its bucket.
fn tell(headers: &mut HeaderMap, standing: &RateLimitState) {
    let reset = clock::now().timestamp_millis() as f64 / 1000.0 + standing.reset_after;
    put(headers, "x-ratelimit-limit", &standing.limit.to_string());
    put(headers, "x-ratelimit-remaining", &standing.remaining.to_string());
    put(headers, "x-ratelimit-reset", &format!("{reset:.3}"));
    put(headers, "x-ratelimit-reset-after", &format!("{:.3}", standing.reset_after));
    put(headers, "x-ratelimit-bucket", &standing.bucket);
}

/// A 429 with everything that belongs to its scope.
fn limited(scope: Scope, standing: &RateLimitState, code: u32, message: &str) -> Response {
    let global = scope == Scope::Global;
    let seconds = (standing.reset_after * 1000.0).round() / 1000.0;
    let mut body = json!({"message": message, "retry_after": seconds, "global": global});
    if code != 0 {
        body["code"] = json!(code);
    }
    let mut response = (StatusCode::TOO_MANY_REQUESTS, axum::Json(body)).into_response();
    let headers = response.headers_mut();
    put(headers, "retry-after", &whole(standing.reset_after));
    match scope {
        Scope::Global => {
            put(headers, "x-ratelimit-global", "true");
            put(headers, "x-ratelimit-scope", "global");
        }
        Scope::User | Scope::Shared => {
            tell(headers, standing);
            let name = if scope == Scope::User { "user" } else { "shared" };
            put(headers, "x-ratelimit-scope", name);
        }
    }
    response
}

fn refused(fault: &RestFault) -> Response {
    let status = StatusCode::from_u16(fault.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if status != StatusCode::TOO_MANY_REQUESTS {
        let body = json!({"message": format!("{status}"), "code": fault.code});
        return (status, axum::Json(body)).into_response();
    }
    if fault.html {
        return proxy_page(fault.retry_after);
    }
    let scope = if fault.global { Scope::Global } else { fault.scope.unwrap_or(Scope::User) };
    let standing = RateLimitState {
        limit: 5,
        remaining: 0,
        reset_after: fault.retry_after,
        bucket: "10ca1fa7".to_owned(),
        refused: Some(scope),
    };
    limited(scope, &standing, fault.code, "You are being rate limited.")
}

/// Lets requests meet their faults. The local side is exempt: it is what steers them.
pub(crate) async fn layer(State(guild): GuildState, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let bot_side = path.starts_with("/api/") || path.starts_with("/attachments/");
    let gateway = request.headers().contains_key("upgrade");
    let faults = &guild.faults;
    if faults.down() && (bot_side || gateway) {
        return cut();
    }
    if !bot_side {
        return next.run(request).await;
    }
    if let Some(page) = faults.ban() {
        return page;
    }
    let response = answer(&guild, request, next, &path).await;
    faults.judge(&response);
    response
}

async fn answer(guild: &Arc<Guild>, request: Request, next: Next, path: &str) -> Response {
    let faults = &guild.faults;
    let method = request.method().as_str().to_owned();
    let mut orders = faults.orders();
    let fault = faults.meet(&method, path);
    if let Some(fault) = fault.filter(|it| it.trouble != RestTrouble::Slow || it.delay_ms > 0) {
        if fault.trouble == RestTrouble::Slow {
            tokio::select! {
                () = tokio::time::sleep(std::time::Duration::from_millis(fault.delay_ms)) => {}
                () = guild.closing.cancelled() => return cut(),
            }
        } else {
            if fault.after {
                next.run(request).await;
            }
            return match fault.trouble {
                RestTrouble::Status | RestTrouble::Slow => refused(&fault),
                RestTrouble::Drop => cut(),
                RestTrouble::Hang => {
                    tokio::select! {
                        _ = orders.changed() => {}
                        () = guild.closing.cancelled() => {}
                    }
                    cut()
                }
            };
        }
    }
    let bot = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bot = bot.unwrap_or_default().to_owned();
    let route = Route::new(&method, path);
    let standing = faults.standing(&bot, &route);
    if let Some(standing) = &standing
        && let Some(scope) = standing.refused
    {
        return limited(scope, standing, 0, "You are being rate limited.");
    }
    if faults.edit_refused(&route) {
        let standing = standing.unwrap_or(RateLimitState {
            limit: 1,
            remaining: 0,
            reset_after: 60.0,
            bucket: "10ca1ed1".to_owned(),
            refused: None,
        });
        let text =
            "Maximum number of edits to messages older than 1 hour reached. Try again later.";
        return limited(Scope::User, &standing, 30046, text);
    }
    let mut response = next.run(request).await;
    // A limit over all routes alone has no bucket to tell of.
    if let Some(standing) = standing.as_ref().filter(|it| it.limit > 0) {
        tell(response.headers_mut(), standing);
    }
    response
}
