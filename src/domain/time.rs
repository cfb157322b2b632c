//! Instants as the workspace writes them: ISO-8601 in Korean time (`spec/teams.md` 4.1).

use chrono::{DateTime, Datelike, FixedOffset, NaiveDateTime, Offset as _, TimeZone, Utc};
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};

/// A point in time. Written as `2026-03-24T09:00:00.000000+09:00` whatever zone it was read in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Timestamp(DateTime<Utc>);

const KST_SECONDS: i32 = 9 * 3600;
/// The last second of the year 9999 in Korea, in seconds since 1970.
const LAST: i64 = 253_402_268_399;

fn kst() -> FixedOffset {
    // +09:00 is within chrono's bounds, so the fallback is never taken.
    FixedOffset::east_opt(KST_SECONDS).unwrap_or_else(|| Utc.fix())
}

impl Timestamp {
    /// From an instant.
    #[must_use]
    pub const fn new(instant: DateTime<Utc>) -> Self {
        Self(instant)
    }

    /// From milliseconds since 1970; out-of-range values become 1970.
    #[must_use]
    pub fn from_millis(millis: i64) -> Self {
        Self(DateTime::from_timestamp_millis(millis).unwrap_or_default())
    }

    /// Milliseconds since 1970.
    #[must_use]
    pub fn millis(self) -> i64 {
        self.0.timestamp_millis()
    }

    /// The instant.
    #[must_use]
    pub const fn utc(self) -> DateTime<Utc> {
        self.0
    }

    /// The Korean date as `YYYYMMDD`: folders of records are named by it whatever the zone of the workspace is,
    /// so that they are found again when that is changed.
    #[must_use]
    pub fn archive_date(self) -> String {
        self.0.with_timezone(&kst()).format("%Y%m%d").to_string()
    }

    /// The day that a day's budget is for, in the zone of the workspace.
    #[must_use]
    pub fn budget_day(self, zone: Tz) -> String {
        self.format_in(zone, "%Y-%m-%d")
    }

    /// The date in a zone as `YYYYMMDD`, used in ids.
    #[must_use]
    pub fn date_in(self, zone: Tz) -> String {
        self.format_in(zone, "%Y%m%d")
    }

    /// Date and time in a zone by a `chrono` format, used in ids and names.
    #[must_use]
    pub fn format_in(self, zone: Tz, format: &str) -> String {
        self.0.with_timezone(&zone).format(format).to_string()
    }

    /// Seconds that the clocks of a zone are ahead of UTC at this instant.
    #[must_use]
    pub fn offset_in(self, zone: Tz) -> i32 {
        self.0.with_timezone(&zone).offset().fix().local_minus_utc()
    }

    /// This instant plus some seconds; the last one that [`Timestamp::parse`] reads where that is beyond it.
    #[must_use]
    pub fn plus_seconds(self, seconds: u64) -> Self {
        let last = DateTime::from_timestamp(LAST, 0).unwrap_or(self.0);
        let delta = i64::try_from(seconds).ok().and_then(chrono::TimeDelta::try_seconds);
        Self(delta.and_then(|delta| self.0.checked_add_signed(delta)).unwrap_or(last).min(last))
    }

    /// The instant a day before this one.
    #[must_use]
    pub fn day_before(self) -> Self {
        Self(self.0 - chrono::TimeDelta::days(1))
    }

    /// The beginning of the next day in a zone: midnight, or the first instant that its clocks show after it.
    #[must_use]
    pub fn next_day(self, zone: Tz) -> Self {
        let tomorrow = self.0.with_timezone(&zone).date_naive().succ_opt();
        let quarters = (0..96_i64).map(|quarter| chrono::TimeDelta::minutes(quarter * 15));
        let begins = tomorrow.and_then(|day| {
            let midnight = day.and_time(chrono::NaiveTime::MIN);
            quarters
                .filter_map(|later| midnight.checked_add_signed(later))
                .find_map(|wall| zone.from_local_datetime(&wall).earliest())
        });
        begins.map_or_else(|| self.plus_seconds(86_400), |at| Self(at.with_timezone(&Utc)))
    }

    /// Whole seconds from `earlier` to this instant; 0 where it lies ahead.
    #[must_use]
    pub fn seconds_since(self, earlier: Timestamp) -> u64 {
        u64::try_from((self.0 - earlier.0).num_seconds()).unwrap_or(0)
    }

    /// Reads ISO-8601; a value without an offset is taken as Korean time.
    ///
    /// # Errors
    ///
    /// [`TimeError`] for any other text, and for times that have no year of four digits in Korea, because what
    /// was written of them could not be read again.
    pub fn parse(text: &str) -> Result<Self, TimeError> {
        let read = Self::read(text.trim()).filter(|at| {
            let year = at.0.with_timezone(&kst()).year();
            (1..=9_999).contains(&year)
        });
        read.ok_or_else(|| TimeError(text.to_owned()))
    }

    fn read(text: &str) -> Option<Self> {
        let basic = || DateTime::parse_from_str(text, "%Y%m%dT%H%M%S%.f%#z");
        if let Ok(instant) = DateTime::parse_from_rfc3339(text).or_else(|_| basic()) {
            return Some(Self(instant.with_timezone(&Utc)));
        }
        for format in ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M"] {
            if let Ok(naive) = NaiveDateTime::parse_from_str(text, format)
                && let Some(instant) = kst().from_local_datetime(&naive).single()
            {
                return Some(Self(instant.with_timezone(&Utc)));
            }
        }
        None
    }
}

/// A text that is no instant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a time such as 2026-03-24T09:00:00+09:00")]
pub struct TimeError(String);

impl std::str::FromStr for Timestamp {
    type Err = TimeError;
    fn from_str(text: &str) -> Result<Self, TimeError> {
        Self::parse(text)
    }
}

impl TryFrom<String> for Timestamp {
    type Error = TimeError;
    fn try_from(text: String) -> Result<Self, TimeError> {
        Self::parse(&text)
    }
}

impl From<Timestamp> for String {
    fn from(at: Timestamp) -> String {
        at.to_string()
    }
}

impl std::fmt::Display for Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0.with_timezone(&kst()).format("%Y-%m-%dT%H:%M:%S%.6f%:z"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_in_korean_time_and_read_back() {
        let at = Timestamp::parse("2026-03-24T00:00:00Z").unwrap();
        assert_eq!(at.to_string(), "2026-03-24T09:00:00.000000+09:00");
        assert_eq!(Timestamp::parse(&at.to_string()).unwrap(), at);
        assert_eq!(Timestamp::parse("2026-03-24T09:00:00").unwrap(), at);
        assert_eq!(at.archive_date(), "20260324");
        assert!(Timestamp::parse("yesterday").is_err());
        let basic = Timestamp::parse("20260405T010203+0530").unwrap();
        assert_eq!(basic.to_string(), "2026-04-05T04:32:03.000000+09:00");
    }

    #[test]
    fn a_day_is_one_of_the_zone() {
        let at = |text: &str| Timestamp::parse(text).unwrap();
        let table = [
            ("2026-03-24T14:30:00Z", "Asia/Seoul", "20260324", "2026-03-24T15:00:00Z"),
            ("2026-03-24T15:30:00Z", "Asia/Seoul", "20260325", "2026-03-25T15:00:00Z"),
            ("2026-03-24T15:30:00Z", "America/New_York", "20260324", "2026-03-25T04:00:00Z"),
            // A day of 23 hours, and one that begins at one o'clock.
            ("2026-03-08T06:00:00Z", "America/New_York", "20260308", "2026-03-09T04:00:00Z"),
            ("2026-09-05T20:00:00Z", "America/Santiago", "20260905", "2026-09-06T04:00:00Z"),
        ];
        for (now, zone, date, next) in table {
            let zone: Tz = zone.parse().unwrap();
            assert_eq!(at(now).date_in(zone), date, "{now} {zone}");
            assert_eq!(at(now).next_day(zone), at(next), "{now} {zone}");
        }
        let summer = at("2026-07-01T00:00:00Z");
        assert_eq!(summer.offset_in(chrono_tz::America::New_York), -4 * 3_600);
    }

    #[test]
    fn seconds_beyond_all_time_lead_to_its_end() {
        let at = Timestamp::parse("2026-03-24T00:00:00Z").unwrap();
        assert_eq!(at.plus_seconds(60).seconds_since(at), 60);
        for seconds in [10_u64.pow(13), 10_u64.pow(17), u64::MAX] {
            let last = at.plus_seconds(seconds);
            assert_eq!(String::from(last), "9999-12-31T23:59:59.000000+09:00");
            assert_eq!(Timestamp::parse(&String::from(last)), Ok(last));
        }
    }

    #[test]
    fn what_is_read_can_be_written_and_read_again() {
        assert!(Timestamp::parse("9999-12-31T23:59:59Z").is_err());
        assert!(Timestamp::parse("+10000-01-01T00:00:00Z").is_err());
        for text in ["0001-01-01T00:00:00+09:00", "9999-12-31T23:59:59+09:00"] {
            let at = Timestamp::parse(text).unwrap();
            assert_eq!(Timestamp::parse(&at.to_string()), Ok(at));
        }
    }
}
