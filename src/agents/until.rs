//! Until when an agent says that it cannot work: usage limits and rate limits tell it in words, in fields,
//! or in seconds.
//!
//! The rule for times of day: with a zone's name behind them they are of that zone; else of the zone in
//! which the agent was started, which is the team's own. One without a date is the next such time. What is
//! told to the minute is over when that minute is.

use std::sync::LazyLock;

use chrono::{DateTime, Datelike, Days, NaiveDate, NaiveDateTime, NaiveTime, TimeZone, Utc};
use regex::{Captures, Regex};

use crate::domain::run::limit_end;
use crate::domain::time::Timestamp;

/// Seconds since 1970 that are taken for milliseconds.
const MILLIS: i64 = 100_000_000_000;

macro_rules! pattern {
    ($name:ident, $text:expr) => {
        static $name: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new($text).ok());
    };
}

pattern!(
    INSTANT,
    r#"(?i)(?:resets?[_ ]?at|limit reached\||reset)["']?\s*[:=|]?\s*["']?(\d{10}|\d{13})\b"#
);
pattern!(
    ISO,
    r#"(?i)(?:resets?(?:[_ ]?at)?|again (?:at|after)|until)["']?\s*[:=]?\s*["']?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d))"#
);
pattern!(
    SECONDS,
    r#"(?i)(?:retry[-_ ]?(?:after|delay)|resets?_in(?:_seconds)?|retry_delay_s(?:econds)?)["']?\s*[:=]?\s*["']?(\d+(?:\.\d+)?)\s*(?:s\b|sec|["',}\s]|$)"#
);
pattern!(
    IN,
    r"(?i)(?:again|retry|resets?) in ((?:(?:about )?\d+(?:\.\d+)?\s*[a-z]+[,\s]*(?:and )?)+)"
);
pattern!(
    DAY,
    r"(?i)(?:access|again|resets?|until) on (\d{4}-\d\d-\d\d)(?:,? (?:at )?(\d\d:\d\d)(?: (?:UTC|GMT))?)?"
);
pattern!(PART, r"(?i)(\d+(?:\.\d+)?)\s*([a-z]+)");
pattern!(
    CLOCK,
    r"(?ix)(?:again\ (?:at|after)|resets?(?:\ at|\ on)?|until)\s+
      (?:(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?
         (?:,?\s+(?P<year>20\d\d))?\s*,?\s*(?:at\s+)?)?
      (?P<hour>\d{1,2})(?::(?P<minute>\d\d))?(?::\d\d)?\s*(?P<half>[ap]\.?m\b\.?)?
      (?:\s*\((?P<zone>[A-Za-z_+\-/0-9]+)\))?"
);

/// The instant that a message names, told at `said`, by an agent whose clock is in `zone`.
pub(super) fn until<Z: TimeZone>(message: &str, said: Timestamp, zone: &Z) -> Option<Timestamp> {
    let at = field(message)
        .or_else(|| iso(message))
        .or_else(|| day(message))
        .or_else(|| seconds(message, said))
        .or_else(|| span(message, said))
        .or_else(|| clock(message, said, zone))?;
    limit_end(at, said)
}

/// Seconds or milliseconds since 1970, where they can be meant.
pub(super) fn instant(number: i64, said: Timestamp) -> Option<Timestamp> {
    limit_end(of_number(number), said)
}

fn of_number(number: i64) -> Timestamp {
    let millis = if number.abs() < MILLIS { number.saturating_mul(1000) } else { number };
    Timestamp::from_millis(millis)
}

fn find<'t>(pattern: &LazyLock<Option<Regex>>, text: &'t str) -> Option<Captures<'t>> {
    pattern.as_ref().and_then(|pattern| pattern.captures(text))
}

fn field(message: &str) -> Option<Timestamp> {
    find(&INSTANT, message)?[1].parse().ok().map(of_number)
}

fn iso(message: &str) -> Option<Timestamp> {
    Timestamp::parse(&find(&ISO, message)?[1]).ok()
}

/// A date, with a time of day or not, in UTC: how the Messages API tells it.
fn day(message: &str) -> Option<Timestamp> {
    let found = find(&DAY, message)?;
    let time = found.get(2).map_or("00:00", |it| it.as_str());
    Timestamp::parse(&format!("{}T{time}:00Z", &found[1])).ok().map(|at| at.plus_seconds(60))
}

fn seconds(message: &str, said: Timestamp) -> Option<Timestamp> {
    let seconds: f64 = find(&SECONDS, message)?[1].parse().ok()?;
    Some(after(said, seconds))
}

fn after(said: Timestamp, seconds: f64) -> Timestamp {
    let millis = (seconds * 1000.0).clamp(0.0, 1e13);
    #[expect(clippy::cast_possible_truncation, reason = "clamped to what fits")]
    Timestamp::from_millis(said.millis() + millis.ceil() as i64)
}

/// `3 days 5 hours 12 minutes`, `1m20s`, `350ms`.
fn span(message: &str, said: Timestamp) -> Option<Timestamp> {
    let found = find(&IN, message)?;
    let parts = PART.as_ref()?.captures_iter(found.get(1)?.as_str());
    let mut all = 0.0;
    let mut any = false;
    for part in parts {
        let number: f64 = part[1].parse().ok()?;
        let unit = match part[2].to_ascii_lowercase().as_str() {
            "ms" | "millisecond" | "milliseconds" => 0.001,
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3_600.0,
            "d" | "day" | "days" => 86_400.0,
            "w" | "week" | "weeks" => 604_800.0,
            _ => break,
        };
        all += number * unit;
        any = true;
    }
    any.then(|| after(said, all))
}

fn clock<Z: TimeZone>(message: &str, said: Timestamp, zone: &Z) -> Option<Timestamp> {
    let found = find(&CLOCK, message)?;
    let named = found.name("zone").and_then(|it| it.as_str().parse::<chrono_tz::Tz>().ok());
    let at = match named {
        Some(named) => at_clock(&found, said, &named),
        None => at_clock(&found, said, zone),
    }?;
    Some(Timestamp::new(at).plus_seconds(60))
}

fn at_clock<Z: TimeZone>(found: &Captures<'_>, said: Timestamp, zone: &Z) -> Option<DateTime<Utc>> {
    let number = |name: &str| found.name(name).and_then(|it| it.as_str().parse::<u32>().ok());
    let half = found.name("half").map(|it| it.as_str().to_ascii_lowercase());
    let hour = match (number("hour")?, half.as_deref().map(|half| half.starts_with('p'))) {
        (12, Some(false)) => 0,
        (hour @ 1..=11, Some(true)) => hour + 12,
        (hour @ 1..=12, Some(_)) => hour,
        (_, Some(_)) => return None,
        // A bare number is an hour only where the minutes stand with it.
        (hour, None) => found.name("minute").map(|_| hour)?,
    };
    let time = NaiveTime::from_hms_opt(hour, number("minute").unwrap_or(0), 0)?;
    let today = said.utc().with_timezone(zone).date_naive();
    let ahead = |date: NaiveDate| of_zone(date.and_time(time), zone).filter(|at| *at > said.utc());
    let (Some(month), Some(day)) = (found.name("month"), number("day")) else {
        return ahead(today).or_else(|| ahead(today.checked_add_days(Days::new(1))?));
    };
    let month = month_of(month.as_str())?;
    match number("year") {
        Some(year) => ahead(NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)?),
        None => [today.year(), today.year() + 1]
            .into_iter()
            .filter_map(|year| NaiveDate::from_ymd_opt(year, month, day))
            .find_map(ahead),
    }
}

/// The later one where the clock shows a time twice; none where it skips it.
fn of_zone<Z: TimeZone>(time: NaiveDateTime, zone: &Z) -> Option<DateTime<Utc>> {
    zone.from_local_datetime(&time).latest().map(|at| at.with_timezone(&Utc))
}

fn month_of(name: &str) -> Option<u32> {
    let names =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let name = name.to_ascii_lowercase();
    (1..).zip(names).find(|(_, month)| name.starts_with(month)).map(|(number, _)| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEOUL: chrono_tz::Tz = chrono_tz::Asia::Seoul;

    /// Told on a Saturday at noon in Seoul.
    fn read(message: &str) -> Option<String> {
        let said = Timestamp::parse("2026-11-21T12:00:00+09:00").unwrap();
        until(message, said, &SEOUL).map(|at| at.format_in(SEOUL, "%Y-%m-%d %H:%M:%S"))
    }

    #[test]
    fn times_are_read_as_the_agents_write_them() {
        let table = [
            // Codex: of the day, of another day, older versions.
            (
                "You've hit your usage limit. Upgrade to Pro, or try again at 3:05 PM.",
                "2026-11-21 15:06:00",
            ),
            ("or try again at 9:30 AM.", "2026-11-22 09:31:00"),
            ("try again at Nov 24th, 2026 12:05 AM.", "2026-11-24 00:06:00"),
            ("Try again in 3 days 5 hours 12 minutes.", "2026-11-24 17:12:00"),
            ("Please try again in 1m20s.", "2026-11-21 12:01:20"),
            ("Please try again in 350ms.", "2026-11-21 12:00:00"),
            (
                r#"{"error":{"type":"usage_limit_reached","resets_at":1795262400}}"#,
                "2026-11-21 21:00:00",
            ),
            (r#""resets_in_seconds": 90"#, "2026-11-21 12:01:30"),
            // Claude: its words, their zone, and how it used to be.
            (
                "You've hit your session limit · resets 3pm (America/New_York)",
                "2026-11-22 05:01:00",
            ),
            ("You've hit your weekly limit · resets Dec 4, 3:30pm (UTC)", "2026-12-05 00:31:00"),
            ("5-hour limit reached ∙ resets 11pm", "2026-11-21 23:01:00"),
            ("resets Jan 2 at 8am", "2027-01-02 08:01:00"),
            ("Claude AI usage limit reached|1795262400", "2026-11-21 21:00:00"),
            // Others: HTTP's header, Google's detail, ISO.
            ("429 too many requests, retry-after: 30", "2026-11-21 12:00:30"),
            (r#""retryDelay":"34.07s""#, "2026-11-21 12:00:34"),
            ("quota resets at 2026-11-21T05:00:00Z", "2026-11-21 14:00:00"),
            (
                "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.",
                "2026-12-01 09:01:00",
            ),
            ("limit resets at 18:30", "2026-11-21 18:31:00"),
        ];
        for (message, at) in table {
            assert_eq!(read(message).as_deref(), Some(at), "{message}");
        }
    }

    #[test]
    fn what_names_no_time_ahead_has_none() {
        for message in [
            "",
            "Quota exceeded. Check your plan and billing details.",
            "try again later",
            "the session resets 3 counters",
            "try again at 25:00",
            "resets 13pm",
            "try again at Feb 31st, 2027 3:05 PM",
            "resets_at: 1000000000",
            "resets_at: 9999999999",
            "try again in a while",
            "try again in 5 apples",
        ] {
            assert_eq!(read(message), None, "{message}");
        }
    }
}
