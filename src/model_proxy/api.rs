//! What may be asked of a model server, and how it is told who asks.

use axum::http::{HeaderMap, HeaderName, Method, header};

use crate::domain::config::ModelApi;

/// Headers of a request that a model server needs.
const FORTH: [&str; 14] = [
    "accept",
    "content-encoding",
    "content-length",
    "content-type",
    "user-agent",
    "anthropic-version",
    "anthropic-beta",
    "anthropic-dangerous-direct-browser-access",
    "openai-beta",
    "originator",
    "session_id",
    "conversation_id",
    "version",
    "x-goog-api-client",
];
/// Headers of an answer that an agent needs.
const BACK: [&str; 8] = [
    "content-type",
    "retry-after",
    "retry-after-ms",
    "request-id",
    "x-request-id",
    "x-should-retry",
    "openai-model",
    "openai-processing-ms",
];
/// And those that begin so: what is left of a plan.
const BACK_BEGINNINGS: [&str; 3] = ["x-ratelimit-", "anthropic-ratelimit-", "x-codex-"];
/// Where agents put what they think is the key.
const KEYS: [&str; 4] = ["authorization", "x-api-key", "x-goog-api-key", "api-key"];

/// What an answer is counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallKind {
    /// For an answer of a model.
    Model,
    /// For something that costs nothing.
    Other,
}

/// What a request is, by method and path; `None` for what no agent has to ask. The path begins with `/`.
pub(super) fn allowed(api: ModelApi, method: &Method, path: &str) -> Option<CallKind> {
    // Nothing that a server could read as another path.
    let plain = |c: char| c.is_ascii_alphanumeric() || "/-_.:@".contains(c);
    if !path.chars().all(plain) || path.contains("..") || path.contains("//") {
        return None;
    }
    let post = *method == Method::POST;
    let get = *method == Method::GET;
    match api {
        ModelApi::Responses => match path {
            "/responses" | "/responses/compact" if post => Some(CallKind::Model),
            "/models" if get => Some(CallKind::Other),
            _ => None,
        },
        ModelApi::Messages => match path {
            "/v1/messages" if post => Some(CallKind::Model),
            "/v1/messages/count_tokens" if post => Some(CallKind::Other),
            "/v1/models" if get => Some(CallKind::Other),
            _ => None,
        },
        ModelApi::Chat => match path {
            "/chat/completions" if post => Some(CallKind::Model),
            "/models" if get => Some(CallKind::Other),
            _ => None,
        },
        ModelApi::Gemini => gemini(path.strip_prefix("/v1beta/models")?, post, get),
    }
}

fn gemini(rest: &str, post: bool, get: bool) -> Option<CallKind> {
    let one = rest.strip_prefix('/').filter(|name| !name.contains('/'));
    match (one.and_then(|name| name.split_once(':')), one) {
        (Some((_, "generateContent" | "streamGenerateContent")), _) if post => {
            Some(CallKind::Model)
        }
        (Some((_, "countTokens")), _) if post => Some(CallKind::Other),
        (None, Some(_)) if get => Some(CallKind::Other),
        (None, None) if get && rest.is_empty() => Some(CallKind::Other),
        _ => None,
    }
}

/// The query as it goes on: without what was a key.
pub(super) fn query(query: Option<&str>) -> String {
    let kept = query.unwrap_or_default().split('&');
    let kept: Vec<&str> = kept.filter(|it| !it.is_empty() && !it.starts_with("key=")).collect();
    if kept.is_empty() { String::new() } else { format!("?{}", kept.join("&")) }
}

/// The word that an agent shows as its key.
pub(super) fn shown(headers: &HeaderMap, query: Option<&str>) -> Option<String> {
    let of = |name: &&str| headers.get(*name).and_then(|value| value.to_str().ok());
    let word = KEYS.iter().find_map(of).map(|word| word.strip_prefix("Bearer ").unwrap_or(word));
    let in_query = || query?.split('&').find_map(|it| it.strip_prefix("key="));
    word.or_else(in_query).map(str::to_owned)
}

/// The headers that go on.
pub(super) fn forth(headers: &HeaderMap) -> HeaderMap {
    let known = headers.iter().filter(|(name, _)| FORTH.contains(&name.as_str()));
    known.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The headers that come back.
pub(super) fn back(headers: &HeaderMap) -> HeaderMap {
    let wanted = |name: &HeaderName| {
        BACK.contains(&name.as_str())
            || BACK_BEGINNINGS.iter().any(|beginning| name.as_str().starts_with(beginning))
    };
    let known = headers.iter().filter(|(name, _)| wanted(name));
    known.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The header and the value by which a server is told the key.
pub(super) fn key(api: ModelApi, key: &str) -> (HeaderName, String) {
    match api {
        ModelApi::Responses | ModelApi::Chat => (header::AUTHORIZATION, format!("Bearer {key}")),
        ModelApi::Messages => (HeaderName::from_static("x-api-key"), key.to_owned()),
        ModelApi::Gemini => (HeaderName::from_static("x-goog-api-key"), key.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_agents_need_is_let_through() {
        use ModelApi::{Chat, Gemini, Messages, Responses};
        let yes = [
            (Responses, "POST", "/responses", CallKind::Model),
            (Responses, "GET", "/models", CallKind::Other),
            (Messages, "POST", "/v1/messages", CallKind::Model),
            (Messages, "POST", "/v1/messages/count_tokens", CallKind::Other),
            (Chat, "POST", "/chat/completions", CallKind::Model),
            (
                Gemini,
                "POST",
                "/v1beta/models/gemini-2.5-pro:streamGenerateContent",
                CallKind::Model,
            ),
            (Gemini, "GET", "/v1beta/models", CallKind::Other),
        ];
        for (api, method, path, asks) in yes {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            assert_eq!(allowed(api, &method, path), Some(asks), "{path}");
        }
        let no = [
            (Responses, "GET", "/responses"),
            (Responses, "DELETE", "/responses/resp_1"),
            (Responses, "POST", "/files"),
            (Responses, "POST", "/responses/../files"),
            (Responses, "POST", "/responses%2f..%2ffiles"),
            (Messages, "POST", "/v1/messages/batches"),
            (Messages, "GET", "/v1/organizations/api_keys"),
            (Chat, "POST", "/v1/chat/completions"),
            (Gemini, "POST", "/v1beta/models/m:batchGenerateContent"),
            (Gemini, "POST", "/v1beta/files"),
            (Gemini, "POST", "/v1beta/models/a/b:generateContent"),
        ];
        for (api, method, path) in no {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            assert_eq!(allowed(api, &method, path), None, "{path}");
        }
    }

    #[test]
    fn keys_are_found_wherever_agents_put_them_and_go_no_further() {
        let with = |name: &'static str, value: &'static str| {
            HeaderMap::from_iter([(HeaderName::from_static(name), value.parse().unwrap())])
        };
        for headers in
            [with("authorization", "Bearer t"), with("x-api-key", "t"), with("x-goog-api-key", "t")]
        {
            assert_eq!(shown(&headers, None).as_deref(), Some("t"));
            assert!(forth(&headers).is_empty());
        }
        assert_eq!(shown(&HeaderMap::new(), Some("alt=sse&key=t")).as_deref(), Some("t"));
        assert_eq!(query(Some("alt=sse&key=t")), "?alt=sse");
        assert_eq!(query(Some("key=t")), "");
        assert_eq!(shown(&HeaderMap::new(), None), None);
        let extra = with("cookie", "c");
        assert!(forth(&extra).is_empty() && back(&with("set-cookie", "c")).is_empty());
    }
}
