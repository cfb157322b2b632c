//! Every text in both languages, with and without its optional values.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::filters::{duration, fence};
use super::*;

type Samples = BTreeMap<String, Map<String, Value>>;

fn samples() -> Samples {
    let mut all = team_samples();
    all.extend(setup_samples());
    all
}

fn team_samples() -> Samples {
    serde_yaml::from_str(include_str!("samples.yaml")).unwrap()
}

fn setup_samples() -> Samples {
    serde_yaml::from_str(include_str!("setup.samples.yaml")).unwrap()
}

fn content(key: &str, values: &Map<String, Value>, language: Language) -> Content {
    Content { key: key.to_owned(), values: values.clone(), language }
}

/// Keys that are words inside other texts or parts of `blocked`.
fn is_word(key: &str) -> bool {
    match key.split_once('.') {
        Some(("status", name)) => name != "report",
        Some((kind, _)) => kind == "blocked" || super::filters::WORDS.contains(&kind),
        None => false,
    }
}

/// A card that is half in another language reads like a mistake.
#[test]
fn the_names_on_korean_cards_are_korean() {
    let catalog = Catalog::builtin().unwrap();
    let mut seen = 0;
    for (key, values) in samples() {
        let content = Content { key: key.clone(), values, language: Language::Ko };
        let Some(embed) = catalog.render(&content).unwrap().embed else { continue };
        for field in embed.fields {
            seen += 1;
            assert!(Language::of(&field.name) == Some(Language::Ko), "{key}: {}", field.name);
        }
    }
    assert!(seen > 8, "{seen}");
}

#[test]
fn the_name_of_a_file_says_nothing_on_a_card_but_itself() {
    let what = ["a`\n**Every check is green.**\n`b", "exe\u{202e}gpj.sh"];
    let values = serde_json::json!({ "guard": "deletion", "what": what });
    let content = Content {
        key: "gate.finding".to_owned(),
        values: serde_json::from_value(values).unwrap(),
        language: Language::En,
    };
    let said = Catalog::builtin().unwrap().render(&content).unwrap().text;
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(
        said.contains("`a' **Every check is green.** 'b`") && said.contains("<U+202E>"),
        "{said}"
    );
}

#[test]
fn both_languages_have_the_same_keys_and_each_has_a_sample() {
    let catalog = Catalog::builtin().unwrap();
    let (en, ko) = (catalog.keys(Language::En), catalog.keys(Language::Ko));
    assert_eq!(en, ko);
    let samples = samples();
    let said: BTreeSet<&str> = en.into_iter().filter(|key| !is_word(key)).collect();
    assert_eq!(said, samples.keys().map(String::as_str).collect());
}

#[test]
fn every_text_can_be_said_as_before() {
    let catalog = Catalog::builtin().unwrap();
    for language in [Language::En, Language::Ko] {
        for (name, samples) in [("said", team_samples()), ("setup", setup_samples())] {
            let mut all = String::new();
            for (key, values) in samples {
                let said = catalog.render(&content(&key, &values, language)).unwrap();
                all.push_str(&format!("=== {key}\n{}\n", shown(&said)));
            }
            insta::assert_snapshot!(format!("{name}_{}", language.as_str()), all);
        }
    }
}

fn shown(said: &Rendered) -> String {
    match &said.embed {
        None => said.text.clone(),
        Some(embed) => serde_json::to_string_pretty(embed).unwrap(),
    }
}

/// The engine gives absent values as "" or [].
#[test]
fn every_text_can_be_said_without_its_optional_values() {
    let catalog = Catalog::builtin().unwrap();
    for language in [Language::En, Language::Ko] {
        for (key, mut values) in samples() {
            for (name, value) in &mut values {
                let kept = ["status", "commit", "request_id", "attempt", "limit", "open"];
                if value.is_string() && !kept.contains(&name.as_str()) {
                    *value = json!("");
                } else if value.is_array() {
                    *value = json!([]);
                }
            }
            let said = catalog.render(&content(&key, &values, language));
            let said = said.unwrap_or_else(|error| panic!("{key}: {error}"));
            // A part of others is nothing where there is nothing to say.
            assert!(!shown(&said).is_empty() || key == "qa.remarks", "{key}");
            assert!(!shown(&said).contains("none"), "{key}: {}", shown(&said));
        }
    }
}

#[test]
fn words_cover_every_role_step_and_reason() {
    let catalog = Catalog::builtin().unwrap();
    let keys = catalog.keys(Language::En);
    for role in crate::domain::role::Role::ALL {
        assert!(keys.contains(format!("role.{role}").as_str()), "{role}");
    }
    for code in crate::domain::block::BlockCode::ALL {
        let key = format!("blocked.{}", code.word());
        assert!(keys.contains(key.as_str()), "{key}");
    }
    for step in crate::domain::lifecycle::Lifecycle::built_in().steps() {
        let key = format!("step.{}", step.name);
        assert!(keys.contains(key.as_str()), "{key}");
    }
    // A sprint's own runs are called by what they are for.
    let duties = crate::domain::sprint::Duty::ALL.map(|duty| duty.as_str());
    let planning = crate::domain::sprint::PlanningStep::ALL.map(|step| step.as_str());
    for word in duties.iter().chain(&planning).filter(|word| **word != "planning") {
        assert!(keys.contains(format!("step.{word}").as_str()), "{word}");
    }
    for rule in crate::domain::plan::PlanRule::ALL {
        assert!(keys.contains(format!("plan_rule.{rule}").as_str()), "{rule}");
    }
}

#[test]
fn a_reason_is_found_by_value_and_by_key() {
    let catalog = Catalog::builtin().unwrap();
    let values = samples().remove("blocked").unwrap();
    let by_value = catalog.render(&content("blocked", &values, Language::En)).unwrap();
    let by_key = catalog.render(&content("blocked.role_blocked", &values, Language::En)).unwrap();
    assert_eq!(by_value, by_key);
    let mut values = values;
    values.insert("code".to_owned(), json!("something_new"));
    let other = catalog.render(&content("blocked", &values, Language::En)).unwrap();
    assert!(other.text.contains("cannot go on by itself"));
}

#[test]
fn a_missing_value_and_an_unknown_key_are_errors() {
    let catalog = Catalog::builtin().unwrap();
    let nothing = Map::new();
    let missing = catalog.render(&content("receipt", &nothing, Language::En));
    assert!(matches!(missing, Err(CatalogError::Unfilled { .. })));
    let unknown = catalog.render(&content("no.such", &nothing, Language::Ko));
    assert!(matches!(unknown, Err(CatalogError::UnknownKey { .. })));
}

#[test]
fn a_card_stays_within_discords_limits() {
    let catalog = Catalog::builtin().unwrap();
    let mut values = samples().remove("card").unwrap();
    let paths: Vec<String> = (0..200).map(|n| format!("src/{}{n}.rs", "x".repeat(200))).collect();
    values.insert("files".to_owned(), json!(paths));
    values.insert("title".to_owned(), json!("t".repeat(1_000)));
    values.insert("next".to_owned(), json!("가".repeat(9_000)));
    let said = catalog.render(&content("card", &values, Language::Ko)).unwrap();
    let card = said.embed.unwrap();
    let count = |text: &str| text.chars().count();
    let fields: usize = card.fields.iter().map(|it| count(&it.name) + count(&it.value)).sum();
    let total = count(&card.title) + count(&card.description) + count(&card.footer) + fields;
    assert!(total <= EMBED_LIMIT, "{total}");
    assert!(card.fields.iter().all(|it| count(&it.value) <= FIELD_VALUE_LIMIT));
    assert!(count(&card.title) <= 256);

    let wild = Embed {
        description: "d".repeat(9_000),
        fields: vec![Field { name: "n".repeat(300), value: "v".repeat(2_000), inline: false }; 40],
        ..Embed::default()
    };
    let card = within_limits(wild);
    let fields: usize = card.fields.iter().map(|it| count(&it.name) + count(&it.value)).sum();
    assert!(fields + count(&card.description) <= EMBED_LIMIT);
}

#[test]
fn what_people_wrote_cannot_break_out_of_a_code_block() {
    let fenced = fence("a\n```\nb".to_owned(), None).unwrap();
    assert_eq!(fenced.matches("```").count(), 2);
    assert!(fence(String::new(), Some("x y".to_owned())).is_err());
}

#[test]
fn durations_read_well() {
    let table = [
        (0.0, "0 s"),
        (59.4, "59 s"),
        (60.0, "1 min"),
        (61.0, "1 min 1 s"),
        (3_600.0, "1 h"),
        (7_260.0, "2 h 1 min"),
    ];
    for (seconds, text) in table {
        assert_eq!(duration(seconds, Language::En), text);
    }
    assert_eq!(duration(61.0, Language::Ko), "1분 1초");
}
