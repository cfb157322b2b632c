//! Until when a model server says that it answers nothing more: a limit tells it in its headers.

use axum::http::{HeaderMap, StatusCode};
use chrono::DateTime;

use crate::domain::run::limit_end;
use crate::domain::time::Timestamp;

/// The instant that an answer of a limit names, heard at `now`; none where it is none or names no time ahead.
///
/// `retry-after` is in seconds or a date of HTTP (RFC 9110, 10.2.3), `retry-after-ms` in milliseconds. Of a plan
/// Anthropic's servers tell the reset in seconds since 1970, and that is what counts: the other may be shorter.
pub(super) fn until(status: StatusCode, headers: &HeaderMap, now: Timestamp) -> Option<Timestamp> {
    if status != StatusCode::TOO_MANY_REQUESTS {
        return None;
    }
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let number = |name: &str| text(name)?.parse::<u64>().ok();
    let rejected = text("anthropic-ratelimit-unified-status") == Some("rejected");
    let reset = number("anthropic-ratelimit-unified-reset").filter(|_| rejected);
    let date = || DateTime::parse_from_rfc2822(text("retry-after")?).ok().map(|at| at.to_utc());
    let at = reset
        .and_then(|seconds| {
            Some(Timestamp::from_millis(i64::try_from(seconds).ok()?.checked_mul(1_000)?))
        })
        .or_else(|| number("retry-after").map(|seconds| now.plus_seconds(seconds)))
        .or_else(|| number("retry-after-ms").map(|millis| now.plus_seconds(millis.div_ceil(1_000))))
        .or_else(|| date().map(Timestamp::new))?;
    limit_end(at, now)
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn a_limit_names_its_end_in_seconds_as_a_date_or_as_the_reset_of_a_plan() {
        let now = Timestamp::parse("2026-11-21T12:00:00Z").unwrap();
        let read = |status: u16, headers: &[(&'static str, &'static str)]| {
            let headers = headers.iter().map(|(name, value)| {
                (HeaderName::from_static(name), HeaderValue::from_static(value))
            });
            let at = until(StatusCode::from_u16(status).unwrap(), &headers.collect(), now);
            at.map(|at| at.seconds_since(now))
        };
        let reset = ("anthropic-ratelimit-unified-reset", "1795266000");
        let rejected = ("anthropic-ratelimit-unified-status", "rejected");
        for (headers, seconds) in [
            (&[("retry-after", "90")][..], Some(90)),
            (&[("retry-after-ms", "1500")], Some(2)),
            (&[("retry-after", "Sat, 21 Nov 2026 12:05:00 GMT")], Some(300)),
            (&[("retry-after", "5"), rejected, reset], Some(3_600)),
            (&[("retry-after", "5"), reset], Some(5)),
            (&[("retry-after", "soon")], None),
            (&[("retry-after", "0")], None),
            (&[("retry-after", "99999999999999999999")], None),
            (&[("retry-after", "99999999999999999")], None),
            (&[("retry-after", "99999999999")], None),
            (&[("retry-after", "Sat, 21 Nov 2020 12:05:00 GMT")], None),
            (&[], None),
        ] {
            assert_eq!(read(429, headers), seconds, "{headers:?}");
        }
        assert_eq!(read(200, &[rejected, reset]), None);
        assert_eq!(read(503, &[("retry-after", "90")]), None);
    }
}
