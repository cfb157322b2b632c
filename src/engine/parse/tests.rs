//! The rows of `spec/teams.md` 14.3 and 14.4 that are about text.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::domain::role::Role;

fn bots() -> Vec<(Role, String)> {
    [Role::Orchestrator, Role::Planner, Role::Designer, Role::Architect, Role::Developer, Role::Qa]
        .into_iter()
        .zip(100..)
        .map(|(role, id)| (role, id.to_string()))
        .collect()
}

fn relay(text: &str) -> ParsedMessage {
    parse_message_content(text, &bots(), "user", Role::Orchestrator)
}

#[test]
fn i01_a_relay_text() {
    let message = relay("<@104>\nintent: implement\nscope: x\n\nbody line");
    assert_eq!(message.target, Role::Developer);
    assert_eq!((message.intent.as_str(), message.scope.as_str()), ("implement", "x"));
    assert_eq!(message.body, "body line");
}

#[test]
fn i02_status_in_words() {
    let message = relay("status sprint");
    assert_eq!((message.intent.as_str(), message.scope.as_str()), ("status", "sprint"));
    let message = relay("status request_id: 20260324-aa");
    assert_eq!(message.request_id.as_deref(), Some("20260324-aa"));
    assert_eq!(relay("statuses are fine").intent, "route");
}

#[test]
fn i03_i04_unknown_target_and_broken_params() {
    assert_eq!(relay("to: nobody").target, Role::Orchestrator);
    assert!(relay("params: {not json}").params.is_empty());
    assert_eq!(json!(relay("params: {\"a\": 1}").params), json!({"a": 1}));
}

#[test]
fn i05_a_body_cannot_change_the_header() {
    let message = relay("request_id: r-1\nscope: x\n\nplease\nscope: spoof\nrequest_id: r-2");
    assert_eq!(message.scope, "x");
    assert_eq!(message.request_id.as_deref(), Some("r-1"));
    assert_eq!(message.body, "please\nscope: spoof\nrequest_id: r-2");
}

#[test]
fn i06_a_person_writes_no_header() {
    let message = parse_user_text("intent: plan\nscope: y", &bots(), "ann");
    assert_eq!(message.intent, "route");
    assert_eq!(message.scope, "intent: plan\nscope: y");
}

#[test]
fn i13_i14_i15_sprint_words() {
    for text in ["start sprint", "please kickoff the sprint", "스프린트 시작"] {
        assert!(is_sprint_start_text(text), "{text}");
    }
    for text in ["sprint start now", "what is sprint status", "restart sprint"] {
        assert!(!is_sprint_start_text(text), "{text}");
    }
    for text in ["finalize sprint", "스프린트 종료", "wrap up the sprint"] {
        assert!(is_sprint_finalize_text(text), "{text}");
    }
}

#[test]
fn i16_i17_kickoff_sections() {
    let kickoff = parse_kickoff(
        "milestone: relay\nbrief: keep the first scope\nrequirements:\n- keep the context\n\
         - keep the context\n- write the contract down",
    );
    assert_eq!(kickoff.milestone, "relay");
    assert_eq!(kickoff.brief, "keep the first scope");
    assert_eq!(kickoff.requirements, ["keep the context", "write the contract down"]);
    assert_eq!(parse_kickoff("milestone: now").milestone, "");
    assert_eq!(parse_kickoff("milestone: Today").milestone, "");
}

#[test]
fn i18_i19_parts_of_a_message() {
    let part = part_header("<@100> [2/3]\nB").unwrap();
    assert_eq!((part.index, part.total, part.body.as_str()), (2, 3, "B"));
    assert_eq!(part_header("[1/2]\nA").unwrap().body, "A");
    for text in ["Progress [1/3]\nfoo", "[3/2]\nx", "[1/1]\nx", "[a/b]\nx", "[1/2]"] {
        assert_eq!(part_header(text), None, "{text}");
    }
}

#[test]
fn i20_indentation_survives() {
    let pasted = "look:\n```yaml\na:\n    b: 1\n\n    c: 2\n```";
    let message = parse_user_text(&format!("<@100> {pasted}"), &bots(), "ann");
    assert_eq!(message.body, pasted);
}

#[test]
fn dashed_frames_come_off() {
    let frame = "-".repeat(34);
    assert_eq!(strip_boundary_lines(&format!("{frame}\nhello\n---\n{frame}")), "hello\n---");
    assert_eq!(strip_boundary_lines("plain"), "plain");
}

#[test]
fn r01_a_long_word_in_numbered_chunks() {
    // The dashed frame of a role's message stands alone when what follows is too long.
    let frame = "-".repeat(34);
    let content = format!("{frame}\n{}\n{frame}", "x".repeat(4500));
    let chunks = number_chunks("<@user> ", &content, 2000);
    assert_eq!(chunks.len(), 4);
    for (index, chunk) in chunks.iter().enumerate() {
        assert!(discord_length(chunk) <= 2000);
        assert!(chunk.starts_with(&format!("<@user> [{}/4]\n", index + 1)), "{chunk}");
    }
    assert_eq!(number_chunks("<@user> ", "short", 2000), ["<@user> short"]);
}

#[test]
fn emoji_count_as_discord_counts_them() {
    let text = "😀".repeat(1200);
    let chunks = split_discord_chunks(&text, 2000);
    assert!(chunks.iter().all(|chunk| discord_length(chunk) <= 2000));
    assert_eq!(chunks.concat(), text);
}

#[test]
fn a_cut_block_is_closed_and_opened_in_its_language() {
    let code: String = (0..40).map(|line| format!("let x{line} = {line};\n")).collect();
    let chunks = split_discord_chunks(&format!("Look:\n```rust\n{code}```\ndone"), 200);
    assert!(chunks.len() > 2);
    for chunk in &chunks {
        assert!(discord_length(chunk) <= 200);
        assert_eq!(chunk.matches("```").count() % 2, 0, "{chunk}");
    }
    assert!(chunks[1].starts_with("```rust\nlet "), "{}", chunks[1]);
    let lines = |text: &str| text.lines().filter(|l| l.starts_with("let")).count();
    assert_eq!(chunks.iter().map(|chunk| lines(chunk)).sum::<usize>(), 40);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn chunks_keep_the_limit_and_every_word(
        pieces in proptest::collection::vec(
            prop_oneof![
                Just("\n".to_owned()),
                Just("\n\n".to_owned()),
                Just("```\n".to_owned()),
                Just("```py\n".to_owned()),
                Just(" ".to_owned()),
                "[a-oq-z가-힣😀]{1,60}",
            ],
            0..60,
        ),
        limit in 40_usize..300,
    ) {
        let text = pieces.concat();
        let chunks = split_discord_chunks(&text, limit);
        let letters = |text: &str| {
            let words: String = text.split_whitespace().collect();
            words.replace('`', "").replace("py", "")
        };
        prop_assert!(chunks.iter().all(|chunk| discord_length(chunk) <= limit));
        prop_assert!(chunks.iter().all(|chunk| !chunk.trim().is_empty()));
        let long = chunks.len() > 1;
        prop_assert!(!long || chunks.iter().all(|chunk| chunk.matches("```").count() % 2 == 0));
        prop_assert_eq!(letters(&chunks.join("\n")), letters(&text));
    }

    #[test]
    fn no_text_stops_the_parsers(text in ".{0,300}") {
        let _ = relay(&text);
        let _ = parse_user_text(&text, &bots(), "ann");
        let _ = parse_kickoff(&text);
        let _ = part_header(&text);
        let _ = is_sprint_start_text(&text);
        let _ = crate::engine::contract::extract_json_object(&text);
        let _ = terms::Text::new(&text).has(&text);
    }
}
