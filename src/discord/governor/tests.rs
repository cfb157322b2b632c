//! Limits, by a clock of the test.

use super::*;

fn post() -> Route {
    Route::of("POST", "/channels/7/messages")
}

#[test]
fn minor_ids_and_secrets_do_not_make_routes() {
    let table = [
        ("PATCH", "/channels/1/messages/2", "PATCH channels/*/messages/*", "1"),
        (
            "PUT",
            "/channels/1/messages/2/reactions/%E2%9C%85/@me",
            "PUT channels/*/messages/*/reactions/*/@me",
            "1",
        ),
        ("POST", "/webhooks/5/secret?wait=true", "POST webhooks/*/*", "5/secret"),
        ("POST", "/interactions/5/secret/callback", "POST interactions/*/*/callback", ""),
        ("GET", "/guilds/9/roles", "GET guilds/*/roles", "9"),
        ("GET", "/users/@me", "GET users/@me", ""),
    ];
    for (method, path, key, major) in table {
        let route = Route::of(method, path);
        assert_eq!((route.key.as_str(), route.major.as_str()), (key, major));
    }
    assert!(post().posts);
    assert!(!Route::of("PATCH", "/channels/7/messages/1").posts);
}

fn fresh() -> Governor {
    Governor::new(Limits::DISCORD, 0)
}

fn headers(limit: u32, remaining: u32, reset_after_ms: u64) -> LimitHeaders {
    LimitHeaders {
        bucket: Some("abc".to_owned()),
        limit: Some(limit),
        remaining: Some(remaining),
        reset_after_ms: Some(reset_after_ms),
    }
}

#[test]
fn an_exhausted_bucket_waits_for_its_reset_and_routes_share_it() {
    let mut governor = fresh();
    let edit = Route::of("PATCH", "/channels/7/messages/1");
    governor.learn(&post(), &headers(5, 0, 2_500), true, 1_000);
    governor.learn(&edit, &headers(5, 0, 2_500), true, 1_000);
    assert_eq!(governor.admit(&post(), 1_000), Err(3_500));
    assert_eq!(governor.admit(&edit, 3_499), Err(3_500));
    assert!(governor.admit(&edit, 3_500).is_ok());
    let elsewhere = Route::of("PATCH", "/channels/8/messages/1");
    assert!(governor.admit(&elsewhere, 1_000).is_ok());
}

#[test]
fn one_call_finds_a_bucket_out_before_others_follow() {
    let mut governor = fresh();
    let route = Route::of("PUT", "/channels/7/messages/1/reactions/x/@me");
    let first = governor.admit(&route, 0).unwrap();
    assert_eq!(governor.admit(&route, 0), Err(LOOK_AGAIN_MS));
    governor.learn(&route, &headers(3, 2, 1_000), true, 10);
    governor.answered(&first);
    let two = [governor.admit(&route, 10).unwrap(), governor.admit(&route, 10).unwrap()];
    assert_eq!(governor.admit(&route, 10), Err(10 + LOOK_AGAIN_MS), "two left, two under way");
    // The later answer overtakes the earlier one.
    governor.learn(&route, &headers(3, 0, 980), true, 30);
    governor.answered(&two[1]);
    governor.learn(&route, &headers(3, 1, 970), true, 40);
    governor.answered(&two[0]);
    assert_eq!(governor.admit(&route, 40), Err(1_010), "what is left only shrinks");
    // The next window is whole.
    for _ in 0..3 {
        assert!(governor.admit(&route, 1_010).is_ok());
    }
    assert_eq!(governor.admit(&route, 1_010), Err(1_010 + LOOK_AGAIN_MS));
}

#[test]
fn a_limit_that_is_told_ends_no_window_sooner() {
    let mut governor = fresh();
    let route = Route::of("PUT", "/channels/7/messages/1/reactions/x/@me");
    let first = governor.admit(&route, 0).unwrap();
    governor.learn(&route, &headers(3, 2, 1_000), true, 0);
    governor.answered(&first);
    governor.limited(&route, LimitScope::User, 200, 10);
    assert_eq!(
        governor.admit(&route, 210),
        Err(1_000),
        "two of three may be left, and none is sure"
    );
    assert!(governor.admit(&route, 1_000).is_ok());
    governor.limited(&route, LimitScope::User, 500, 1_010);
    assert!(governor.admit(&route, 1_200).is_err());
}

#[test]
fn a_bucket_that_changes_its_name_strands_no_call() {
    let mut governor = fresh();
    let route = |channel: u64| Route::of("PUT", &format!("/channels/{channel}/pins/1"));
    let named = |bucket: &str| LimitHeaders { bucket: Some(bucket.to_owned()), ..headers(3, 2, 1) };
    for turn in 0..20_u64 {
        let now = turn * 1_000;
        let tickets = [7, 8].map(|channel| governor.admit(&route(channel), now).unwrap());
        // The first answer renames the bucket while the other call is under way.
        let name = if turn % 2 == 0 { "a" } else { "b" };
        for (channel, ticket) in [7, 8].into_iter().zip(&tickets) {
            governor.learn(&route(channel), &named(name), true, now + 10);
            governor.answered(ticket);
        }
    }
    assert!(governor.budgets.values().all(|budget| budget.in_flight == 0));
}

#[test]
fn answers_without_limits_hold_nothing_up_and_failures_say_nothing() {
    let mut governor = fresh();
    let route = Route::of("GET", "/channels/7/messages");
    let first = governor.admit(&route, 0).unwrap();
    governor.learn(&route, &LimitHeaders::default(), false, 1);
    governor.answered(&first);
    let second = governor.admit(&route, 1).unwrap();
    assert_eq!(governor.admit(&route, 1), Err(1 + LOOK_AGAIN_MS), "a 502 is no permission");
    governor.learn(&route, &LimitHeaders::default(), true, 2);
    governor.answered(&second);
    for _ in 0..5 {
        assert!(governor.admit(&route, 2).is_ok());
    }
}

#[test]
fn what_nobody_answers_may_have_been_counted() {
    let mut governor = fresh();
    let route = Route::of("PUT", "/channels/7/messages/1/reactions/x/@me");
    let first = governor.admit(&route, 0).unwrap();
    governor.learn(&route, &headers(3, 2, 1_000), true, 0);
    governor.answered(&first);
    // Two are left; the connection of one breaks, and a proxy answers the other.
    let broken = governor.admit(&route, 10).unwrap();
    governor.unheard(&broken, 20);
    governor.answered(&broken);
    let by_proxy = governor.admit(&route, 20).unwrap();
    governor.learn(&route, &LimitHeaders::default(), false, 30);
    governor.answered(&by_proxy);
    assert_eq!(governor.admit(&route, 30), Err(1_000), "nothing is left");
    // Both may be counted in the next window, of which nobody has said anything yet.
    let broken = governor.admit(&route, 1_000).unwrap();
    governor.unheard(&broken, 1_000);
    governor.answered(&broken);
    assert_eq!(governor.admit(&route, 1_010), Err(2_000));
    // The first answer says how it is.
    let heard = governor.admit(&route, 2_000).unwrap();
    assert_eq!(governor.admit(&route, 2_000), Err(2_000 + LOOK_AGAIN_MS));
    governor.learn(&route, &headers(3, 2, 1_000), true, 2_000);
    governor.answered(&heard);
    for _ in 0..2 {
        assert!(governor.admit(&route, 2_000).is_ok());
    }
}

/// A server whose windows end by the way of an answer before the client takes them to end counts a call that
/// is lost at the end of one in the next, and must not be asked for more than it allows there.
#[test]
fn a_call_that_is_lost_at_the_end_of_a_window_is_missing_in_the_next() {
    const LIMIT: u32 = 5;
    let mut governor = fresh();
    let route = Route::of("PUT", "/channels/7/messages/1/reactions/x/@me");
    let first = governor.admit(&route, 0).unwrap();
    // The server's window began at 0 and ends at 1,000; its answer took 50 ms.
    governor.learn(&route, &headers(LIMIT, LIMIT - 1, 1_000), true, 50);
    governor.answered(&first);
    let mut counted = 0;
    for _ in 0..2 {
        let lost = governor.admit(&route, 1_010).unwrap();
        counted += 1;
        governor.unheard(&lost, 1_020);
        governor.answered(&lost);
    }
    while governor.admit(&route, 1_050).is_ok() {
        counted += 1;
    }
    assert_eq!(counted, LIMIT);
}

#[test]
fn an_answer_that_was_written_before_a_call_was_counted_gives_nothing_back() {
    let mut governor = fresh();
    let route = Route::of("PUT", "/channels/7/messages/1/reactions/x/@me");
    let first = governor.admit(&route, 0).unwrap();
    governor.learn(&route, &headers(4, 3, 1_000), true, 0);
    governor.answered(&first);
    let heard = governor.admit(&route, 10).unwrap();
    let broken = governor.admit(&route, 10).unwrap();
    governor.unheard(&broken, 20);
    governor.answered(&broken);
    governor.learn(&route, &headers(4, 2, 980), true, 20);
    governor.answered(&heard);
    let last = governor.admit(&route, 30).unwrap();
    assert!(governor.admit(&route, 30).is_err(), "the broken one has taken the place");
    governor.answered(&last);
    // The window after it is whole.
    let next = governor.admit(&route, 1_000).unwrap();
    governor.learn(&route, &headers(4, 3, 1_000), true, 1_000);
    governor.answered(&next);
    for _ in 0..3 {
        assert!(governor.admit(&route, 1_000).is_ok());
    }
}

#[test]
fn a_channel_takes_a_burst_and_then_one_message_a_second() {
    let mut governor = fresh();
    let mut say = |channel: u64, now| -> Result<(), u64> {
        let route = Route::of("POST", &format!("/channels/{channel}/messages"));
        let ticket = governor.admit(&route, now)?;
        governor.learn(&route, &LimitHeaders::default(), true, now);
        governor.answered(&ticket);
        Ok(())
    };
    for _ in 0..5 {
        assert_eq!(say(7, 0), Ok(()));
    }
    assert_eq!(say(7, 0), Err(1_000));
    assert_eq!(say(7, 1_000), Ok(()));
    assert_eq!(say(7, 1_001), Err(2_000));
    assert_eq!(say(8, 1_001), Ok(()));
}

#[test]
fn a_global_limit_stops_every_route_but_interactions() {
    let mut governor = fresh();
    governor.limited(&post(), LimitScope::Global, 5_000, 100);
    let other = Route::of("GET", "/users/@me");
    assert_eq!(governor.admit(&other, 200), Err(5_100));
    let callback = Route::of("POST", "/interactions/1/t/callback");
    assert!(governor.admit(&callback, 200).is_ok());
    assert!(governor.admit(&callback, 200).is_ok());
    assert!(governor.admit(&other, 5_100).is_ok());
}

#[test]
fn a_route_limit_stops_only_its_bucket() {
    let mut governor = fresh();
    governor.limited(&post(), LimitScope::Shared, 5_000, 100);
    assert_eq!(governor.admit(&post(), 200), Err(5_100));
    assert!(governor.admit(&Route::of("GET", "/users/@me"), 200).is_ok());
}

#[test]
fn no_second_ever_sees_more_than_fifty_calls() {
    let mut governor = fresh();
    let mut begun: Vec<u64> = Vec::new();
    let mut now = 0;
    while begun.len() < 500 {
        let route = Route::of("GET", &format!("/channels/{}", begun.len()));
        match governor.admit(&route, now) {
            Ok(_) => begun.push(now),
            Err(free_at) => now = free_at,
        }
    }
    for (at, first) in begun.iter().enumerate() {
        let within = begun[at..].iter().filter(|it| **it < first + 1_000).count();
        assert!(within <= 50, "{within} calls in the second after {first}");
    }
    assert!(now < 14_000, "and not much less than allowed: {now}");
}

#[test]
fn the_breaker_opens_at_its_limit_and_closes_with_time() {
    let mut calls = InvalidCalls::default();
    for n in 0..INVALID_LIMIT as u64 {
        assert_eq!(calls.open_until(n), None);
        calls.count(n);
    }
    assert_eq!(calls.open_until(2_000), Some(600_000));
    assert_eq!(calls.open_until(600_000), None);
}
