//! Reading answers.

use super::*;

fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    pairs
        .iter()
        .map(|(name, value)| {
            (
                reqwest::header::HeaderName::from_static(name),
                reqwest::header::HeaderValue::from_static(value),
            )
        })
        .collect()
}

#[test]
fn a_429_is_read_from_body_or_header_or_neither() {
    let status = StatusCode::TOO_MANY_REQUESTS;
    let table = [
        (
            headers(&[]),
            serde_json::json!({"retry_after": 0.25, "global": true}),
            250,
            LimitScope::Global,
        ),
        (
            headers(&[("retry-after", "3"), ("x-ratelimit-scope", "shared")]),
            Value::Null,
            3_000,
            LimitScope::Shared,
        ),
        (headers(&[("retry-after", "soon")]), Value::Null, 5_000, LimitScope::User),
        (
            headers(&[]),
            serde_json::json!({"retry_after": 1e300}),
            LONGEST_WAIT_MS,
            LimitScope::User,
        ),
    ];
    for (headers, body, wait, scope) in table {
        let expected = RestError::Limited { retry_after: Duration::from_millis(wait), scope };
        assert_eq!(failure(status, &headers, &body), expected);
    }
    let edits = serde_json::json!({"retry_after": 60, "code": 30046, "message": "edits"});
    assert_eq!(failure(status, &headers(&[]), &edits).code(), Some(code::EDITS_LIMITED));
}

#[test]
fn malformed_limit_headers_are_absent_ones() {
    let read =
        limits(&headers(&[("x-ratelimit-remaining", "many"), ("x-ratelimit-reset-after", "NaN")]));
    assert_eq!(read, LimitHeaders::default());
    let read = limits(&headers(&[
        ("x-ratelimit-remaining", "4"),
        ("x-ratelimit-reset-after", "1.5"),
        ("x-ratelimit-bucket", "b"),
    ]));
    assert_eq!((read.remaining, read.reset_after_ms), (Some(4), Some(1_500)));
}

#[test]
fn secrets_in_paths_stay_out_of_names() {
    let call = Call::new(Method::POST, "/webhooks/5/s3cret?wait=true");
    assert_eq!(call.name(), "POST /webhooks/5/…");
}
