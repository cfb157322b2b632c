//! The rows of `spec/teams.md` 14.3 and 14.4 that are about text.

use proptest::prelude::*;

use super::*;

#[test]
fn i13_i14_sprint_words() {
    for text in ["start sprint", "please kickoff the sprint", "스프린트 시작"] {
        assert!(is_sprint_start_text(text), "{text}");
    }
    for text in ["sprint start now", "what is sprint status", "restart sprint"] {
        assert!(!is_sprint_start_text(text), "{text}");
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

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_stops_the_parsers(text in ".{0,300}") {
        let _ = parse_kickoff(&text);
        let _ = is_sprint_start_text(&text);
        let _ = crate::engine::contract::extract_json_object(&text);
        let _ = terms::Text::new(&text).has(&text);
    }
}
