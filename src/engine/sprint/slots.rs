//! The grid of slots and the end of the working day (`spec/teams.md` 9.1, 13.A #21).
//!
//! Slots stand on the clock of the wall: every `interval` minutes counted from a local midnight. Where the
//! interval divides a day, that is any midnight; otherwise, and above a day, it is the one of 1970-01-01, so
//! that the distance between two slots stays the same over midnight. Each slot of the wall clock comes exactly
//! once: one that summer time skips comes when the skipped hour ends, one that it repeats comes at first.

use chrono::{DateTime, Days, MappedLocalTime, NaiveDateTime, NaiveTime, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;

use crate::domain::config::CutoffTime;
use crate::domain::time::Timestamp;

const SECONDS_PER_MINUTE: i64 = 60;

/// More minutes than any zone ever skipped or repeated at once; Samoa skipped a whole day.
const LONGEST_SHIFT_MINUTES: i64 = 2 * 24 * 60;

/// The first slot after `now`.
#[must_use]
pub fn next_slot(now: Timestamp, interval_minutes: u32, zone: Tz) -> Timestamp {
    let interval = i64::from(interval_minutes.max(1));
    let local = now.utc().with_timezone(&zone).naive_local();
    let minutes = local.and_utc().timestamp().div_euclid(SECONDS_PER_MINUTE);
    let first = minutes.div_euclid(interval) + 1;
    // Only slots within a repeated stretch lie behind: at most as many as such a stretch has minutes.
    (first..=first + LONGEST_SHIFT_MINUTES)
        .filter_map(|slot| wall_clock(slot.checked_mul(interval)?))
        .filter_map(|wall| instant(wall, zone))
        .find(|at| *at > now.utc())
        .map_or_else(|| now.plus_seconds(u64::from(interval_minutes.max(1)) * 60), Timestamp::new)
}

/// The end of the working day: today at `cutoff`, or tomorrow where that is reached.
#[must_use]
pub fn cutoff_at(now: Timestamp, cutoff: &CutoffTime, zone: Tz) -> Timestamp {
    let today = now.utc().with_timezone(&zone).date_naive();
    let time = cutoff.as_str().split_once(':').and_then(|(hour, minute)| {
        NaiveTime::from_hms_opt(hour.parse().ok()?, minute.parse().ok()?, 0)
    });
    let time = time.unwrap_or_default();
    (0..4)
        .filter_map(|days| today.checked_add_days(Days::new(days)))
        .filter_map(|day| instant(day.and_time(time), zone))
        .find(|at| *at > now.utc())
        .map_or_else(|| now.plus_seconds(24 * 60 * 60), Timestamp::new)
}

/// What the clock shows that many minutes after the midnight of 1970-01-01.
fn wall_clock(minutes: i64) -> Option<NaiveDateTime> {
    let seconds = minutes.checked_mul(SECONDS_PER_MINUTE)?;
    DateTime::<Utc>::from_timestamp(seconds, 0).map(|at| at.naive_utc())
}

/// When the clock of the zone first shows `wall`; where it never does, the first minute that it shows after.
fn instant(wall: NaiveDateTime, zone: Tz) -> Option<DateTime<Utc>> {
    (0..=LONGEST_SHIFT_MINUTES)
        .filter_map(|minutes| wall.checked_add_signed(TimeDelta::minutes(minutes)))
        .find_map(|wall| match zone.from_local_datetime(&wall) {
            MappedLocalTime::Single(at) | MappedLocalTime::Ambiguous(at, _) => Some(at.to_utc()),
            MappedLocalTime::None => None,
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn next(now: &str, interval: u32, zone: &str) -> String {
        let zone: Tz = zone.parse().unwrap();
        let slot = next_slot(at(now), interval, zone).utc().with_timezone(&zone);
        slot.format("%Y-%m-%d %H:%M:%S %z").to_string()
    }

    #[test]
    fn s01_slots_of_the_korean_day() {
        for (now, slot) in [
            ("2026-03-24T09:00:00+09:00", "2026-03-24 12:00:00 +0900"),
            ("2026-03-24T08:59:00+09:00", "2026-03-24 09:00:00 +0900"),
            ("2026-03-24T23:30:00+09:00", "2026-03-25 00:00:00 +0900"),
            ("2026-03-24T00:00:00+09:00", "2026-03-24 03:00:00 +0900"),
            ("2026-03-24T08:59:59.999+09:00", "2026-03-24 09:00:00 +0900"),
            ("2026-02-28T22:00:00+09:00", "2026-03-01 00:00:00 +0900"),
            ("2028-02-28T22:00:00+09:00", "2028-02-29 00:00:00 +0900"),
            ("2026-12-31T21:00:00+09:00", "2027-01-01 00:00:00 +0900"),
        ] {
            assert_eq!(next(now, 180, "Asia/Seoul"), slot, "S01 {now}");
        }
    }

    #[test]
    fn row_13a_21_intervals_that_do_not_divide_a_day_keep_their_distance() {
        for interval in [7, 420, 1_000, 1_500, 2_880, 10_000, 10_080] {
            let mut slot =
                next_slot(at("2026-03-24T09:13:00+09:00"), interval, chrono_tz::Asia::Seoul);
            for _ in 0..50 {
                let after = next_slot(slot, interval, chrono_tz::Asia::Seoul);
                assert_eq!(after.seconds_since(slot), u64::from(interval) * 60, "{interval}");
                slot = after;
            }
        }
    }

    #[test]
    fn a_slot_in_the_skipped_hour_comes_at_its_end() {
        let zone = "America/New_York";
        let cases = [
            ("2026-03-08T01:30:00-05:00", 60, "2026-03-08 03:00:00 -0400"),
            ("2026-03-08T01:50:00-05:00", 15, "2026-03-08 03:00:00 -0400"),
            ("2026-03-08T00:30:00-05:00", 120, "2026-03-08 03:00:00 -0400"),
            ("2026-03-08T03:00:00-04:00", 60, "2026-03-08 04:00:00 -0400"),
            ("2026-03-07T12:00:00-05:00", 1_440, "2026-03-08 00:00:00 -0500"),
        ];
        for (now, interval, slot) in cases {
            assert_eq!(next(now, interval, zone), slot, "{now} every {interval}");
        }
        // Samoa had no 30 December 2011.
        assert_eq!(
            next("2011-12-29T23:00:00-10:00", 1_440, "Pacific/Apia"),
            "2011-12-31 00:00:00 +1400"
        );
    }

    #[test]
    fn a_slot_in_the_repeated_hour_comes_once() {
        let zone = "America/New_York";
        let cases = [
            ("2026-11-01T00:30:00-04:00", 60, "2026-11-01 01:00:00 -0400"),
            ("2026-11-01T01:00:00-04:00", 60, "2026-11-01 02:00:00 -0500"),
            ("2026-11-01T01:30:00-05:00", 15, "2026-11-01 02:00:00 -0500"),
            ("2026-11-01T01:30:00-04:00", 15, "2026-11-01 01:45:00 -0400"),
        ];
        for (now, interval, slot) in cases {
            assert_eq!(next(now, interval, zone), slot, "{now} every {interval}");
        }
    }

    #[test]
    fn s03_cutoff_today_or_tomorrow() {
        let cutoff = |text: &str| CutoffTime::try_from(text.to_owned()).unwrap();
        let seoul = chrono_tz::Asia::Seoul;
        for (now, end) in [
            ("2026-03-24T21:59:00+09:00", "2026-03-24T22:00:00+09:00"),
            ("2026-03-24T22:00:00+09:00", "2026-03-25T22:00:00+09:00"),
            ("2026-02-28T22:30:00+09:00", "2026-03-01T22:00:00+09:00"),
        ] {
            assert_eq!(cutoff_at(at(now), &cutoff("22:00"), seoul), at(end), "S03 {now}");
        }
        let new_york = chrono_tz::America::New_York;
        let skipped = cutoff_at(at("2026-03-08T01:00:00-05:00"), &cutoff("02:30"), new_york);
        assert_eq!(skipped, at("2026-03-08T03:00:00-04:00"));
        // The second 01:30 of the night is the same cutoff: it is reached.
        let repeated = cutoff_at(at("2026-11-01T01:10:00-05:00"), &cutoff("01:30"), new_york);
        assert_eq!(repeated, at("2026-11-02T01:30:00-05:00"));
    }

    proptest! {
        #[test]
        fn slots_only_go_on(
            seconds in 0_i64..4_102_444_800,
            interval in 1_u32..=10_080,
            zone in prop::sample::select(vec!["Asia/Seoul", "America/New_York", "Europe/Berlin",
                "Australia/Lord_Howe", "Pacific/Apia", "UTC", "America/St_Johns", "Africa/Casablanca"]),
        ) {
            let zone: Tz = zone.parse().unwrap();
            let now = Timestamp::from_millis(seconds * 1_000);
            let slot = next_slot(now, interval, zone);
            prop_assert!(slot > now);
            prop_assert!(next_slot(slot, interval, zone) > slot);
            // Between `now` and its slot there is none: asking a second before gives the same.
            let before = Timestamp::from_millis(slot.millis() - 1_000);
            prop_assert!(before < now || next_slot(before, interval, zone) == slot);
            // Summer time aside, it is at most one interval ahead.
            let offset = |at: Timestamp| {
                use chrono::Offset as _;
                at.utc().with_timezone(&zone).offset().fix()
            };
            let wall = now.utc().with_timezone(&zone).naive_local();
            let repeated = matches!(zone.from_local_datetime(&wall), MappedLocalTime::Ambiguous(..));
            if offset(now) == offset(slot) && !repeated {
                prop_assert!(slot.millis() - now.millis() <= i64::from(interval) * 60_000);
            }
        }
    }
}
