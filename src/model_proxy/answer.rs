//! What the proxy itself says, in the shape that a model server's errors have.

use axum::body::Body;
use axum::http::{Response, StatusCode, header};
use serde_json::{Value, json};

use crate::domain::config::ModelApi;

/// The words by which a run that has spent what it may is known (`agents::blame`).
pub(super) const SPENT: &str = "the budget of this run is used up";

/// Why the proxy says no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProxyRefusal {
    /// Another token than the run's.
    Token,
    /// What no agent has to ask.
    Path,
    /// A server that the run was not given.
    Server,
    /// The run has spent what it may.
    Spent,
    /// Too large.
    Large,
    /// The server cannot be reached.
    Gone,
}

/// The answer; `api` is that of the server that was meant.
pub(super) fn no(why: ProxyRefusal, api: Option<ModelApi>) -> Response<Body> {
    let (status, kind, message) = match why {
        ProxyRefusal::Token => (401, "authentication_error", "this token opens nothing here"),
        ProxyRefusal::Path => (404, "not_found_error", "an agent of the team cannot ask for this"),
        ProxyRefusal::Server => (404, "not_found_error", "this run has no such model server"),
        // Not 429: agents would try again.
        ProxyRefusal::Spent => (400, "invalid_request_error", SPENT),
        ProxyRefusal::Large => (413, "request_too_large", "the request is too large"),
        ProxyRefusal::Gone => (502, "api_error", "the model server cannot be reached"),
    };
    let body: Value = match api {
        Some(ModelApi::Messages) => {
            json!({"type": "error", "error": {"type": kind, "message": message}})
        }
        Some(ModelApi::Gemini) => {
            json!({"error": {"code": status, "message": message, "status": "FAILED_PRECONDITION"}})
        }
        Some(ModelApi::Responses | ModelApi::Chat) | None => {
            let code = if why == ProxyRefusal::Spent { "run_budget" } else { kind };
            json!({"error": {"message": message, "type": kind, "code": code}})
        }
    };
    let mut answer = Response::new(Body::from(body.to_string()));
    *answer.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    let json = header::HeaderValue::from_static("application/json");
    answer.headers_mut().insert(header::CONTENT_TYPE, json);
    answer
}

/// An answer without words, for a proxy's requests.
pub(super) fn bare(status: StatusCode) -> Response<Body> {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = status;
    answer
}
