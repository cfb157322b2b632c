//! Routing: scores, candidates, selection.

use regex::Regex;
use serde_json::{Value, json};
use teams::domain::role::Role;
use teams::domain::routing::RoutingPolicy;
use teams::engine::parse::terms::Text;
use teams::engine::routing::{
    Candidate, RoutingFacts, RoutingSelection, SelectionSource, phase_for_role, score, select,
};

use super::{Rule, Subject, text, whole};

pub(crate) const SUBJECTS: &[Subject] = &[
    Subject {
        name: "routing_phase_for_role",
        ours: |args| json!(phase_for_role(Role::parse(text(args, "role")))),
        theirs: whole,
        rules: &[],
    },
    Subject { name: "score_candidate_role", ours: scored, theirs: candidate, rules: SCORE_RULES },
    Subject {
        name: "build_governed_routing_selection",
        ours: selected,
        theirs: selection,
        rules: SELECTION_RULES,
    },
];

const SCORE_RULES: &[Rule] = &[Rule {
    row: "13.A #15, #16",
    instead: "terms match as words, not inside other words; route is nobody's intent",
    applies: |args| {
        text(args, "intent") == "route" || inside_words(&[text(args, "role")], text(args, "text"))
    },
    expected: |args, theirs| as_words(theirs, text(args, "text")),
}];

const SELECTION_RULES: &[Rule] = &[Rule {
    row: "13.A #15, #16",
    instead: "the same candidates scored by words, and the best of them through the same gates",
    applies: |args| {
        let roles: Vec<&str> = Role::PUBLIC.iter().map(|role| role.as_str()).collect();
        text(&args["request_record"], "intent") == "route"
            || inside_words(&roles, text(args, "routing_text"))
    },
    expected: reselected,
}];

/// Whether a term of one of the roles stands inside a word of the text.
fn inside_words(roles: &[&str], text: &str) -> bool {
    let policy = RoutingPolicy::default();
    let lower = text.to_lowercase();
    roles.iter().filter_map(|role| policy.capability(Role::parse(role)?)).any(|capability| {
        [
            &capability.routing_signals,
            &capability.strongest_for,
            &capability.strongest_domain_signals,
            &capability.preferred_skills,
            &capability.preferred_skill_signals,
            &capability.behavior_traits,
            &capability.behavior_trait_signals,
            &capability.should_not_handle,
        ]
        .into_iter()
        .flatten()
        .any(|term| {
            lower.contains(&term.to_lowercase()) && !is_word_match(&format!("term:{term}"), text)
        })
    })
}

/// The recorded selection with its candidates scored by words, sorted again, and gated again.
fn reselected(args: &Value, theirs: &Value) -> Value {
    let routing_text = text(args, "routing_text");
    let preferred = text(args, "preferred_role");
    let policy = RoutingPolicy::default();
    let (excluded, mut scored): (Vec<Value>, Vec<Value>) = theirs["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|candidate| match candidate.get("excluded") {
            Some(_) => candidate.clone(),
            None => as_words(candidate, routing_text),
        })
        .partition(|candidate| candidate.get("excluded").is_some());
    scored.sort_by_key(|candidate| {
        let role = text(candidate, "role").to_owned();
        let capability = policy.capability(Role::parse(&role).unwrap()).unwrap();
        let total = candidate["score_total"].as_u64();
        std::cmp::Reverse((total, capability.routing_priority, role == preferred, role))
    });
    let best = scored.first().filter(|best| {
        let parts = best["score_breakdown"].as_object().unwrap();
        let evidence = parts.iter().any(|(part, points)| !part.ends_with("_fit") && *points != 0);
        let explicit = args["planner_reentry_has_explicit_signal"] == json!(true);
        let asked = text(best, "role") != "planner" || explicit || !preferred.is_empty();
        match text(args, "current_role") {
            "planner" => evidence || !preferred.is_empty(),
            "qa" => evidence && asked,
            "designer" | "architect" | "developer" => {
                asked && (evidence || args["is_internal_sprint_request"] == json!(true))
            }
            _ => true,
        }
    });
    let mut expected = theirs.clone();
    if text(args, "selection_source") == "role_report" {
        expected["selected_role"] = best.map_or(json!(""), |best| best["role"].clone());
        expected["score_total"] = best.map_or(json!(0), |best| best["score_total"].clone());
    }
    scored.extend(excluded);
    expected["candidates"] = json!(scored);
    expected
}

/// The recorded candidate with its matches found again as whole words, and without the intent
/// `route`; the score follows from what was found.
fn as_words(theirs: &Value, text: &str) -> Value {
    let policy = RoutingPolicy::default();
    let capability = policy.capability(Role::parse(super::text(theirs, "role")).unwrap()).unwrap();
    let intent = theirs["matched_signals"][0].as_str().unwrap_or_default();
    let owned = intent.starts_with("intent:") && intent != "intent:route";
    let mut expected = theirs.clone();
    let mut total = if owned { 60 } else { 0 };
    expected["score_breakdown"]["owned_intent"] = json!(total);
    for (list, part, cap, weight, terms) in [
        (
            "matched_signals",
            "routing_signals",
            4,
            10,
            vec![("routing", &capability.routing_signals)],
        ),
        (
            "matched_strongest_domains",
            "strongest_domains",
            3,
            12,
            vec![
                ("strength", &capability.strongest_for),
                ("strength_signal", &capability.strongest_domain_signals),
            ],
        ),
        (
            "matched_preferred_skills",
            "preferred_skills",
            2,
            8,
            vec![
                ("skill", &capability.preferred_skills),
                ("skill_signal", &capability.preferred_skill_signals),
            ],
        ),
        (
            "matched_behavior_traits",
            "behavior_traits",
            2,
            6,
            vec![
                ("behavior", &capability.behavior_traits),
                ("behavior_signal", &capability.behavior_trait_signals),
            ],
        ),
    ] {
        let mut found: Vec<String> = Vec::new();
        if owned && list == "matched_signals" {
            found.push(intent.to_owned());
        }
        for (kind, terms) in terms {
            let entries = terms.iter().map(|term| format!("{kind}:{term}"));
            found.extend(entries.filter(|entry| is_word_match(entry, text)));
        }
        found.truncate(cap);
        let points = found.len() * weight;
        expected["score_breakdown"][part] = json!(points);
        expected[list] = json!(found);
        total += points;
    }
    for part in ["phase_fit", "request_state_fit"] {
        let points = theirs["score_breakdown"][part].as_u64().unwrap_or_default();
        total += usize::try_from(points).unwrap();
    }
    expected["score_total"] = json!(total);
    expected
}

fn is_word_match(entry: &str, text: &str) -> bool {
    let (_, term) = entry.split_once(':').unwrap();
    let first = term.split(|letter: char| !letter.is_alphanumeric()).next().unwrap();
    if !text.to_lowercase().contains(&first.to_lowercase()) {
        return false;
    }
    let is_korean = |word: &str| word.chars().all(|letter| ('가'..='힣').contains(&letter));
    let words: Vec<String> = term
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(|word| {
            format!("{}{}", regex::escape(word), if is_korean(word) { r"\p{Hangul}*" } else { "" })
        })
        .collect();
    let gap = r"[^\p{L}\p{N}]+";
    // Korean particles follow without a blank, so the script's change is an edge as well.
    let other = if is_korean(term) { r"[a-zA-Z0-9]" } else { r"\p{Hangul}" };
    let edge = format!(r"[^\p{{L}}\p{{N}}]|{other}");
    let pattern = format!(r"(?i)(^|{edge}){}($|{edge})", words.join(gap));
    Regex::new(&pattern).unwrap().is_match(text)
}

fn parsed<T: serde::de::DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap()
}

fn scored(args: &Value) -> Value {
    let role = Role::parse(text(args, "role")).unwrap();
    let policy = RoutingPolicy::default();
    let prepared = Text::new(text(args, "text"));
    let phase = parsed(&args["routing_phase"]);
    let class = parsed(&args["request_state_class"]);
    let scored = score(&policy, role, text(args, "intent"), &prepared, phase, class);
    scored.map_or(Value::Null, |scored| ours(&scored))
}

fn ours(scored: &Candidate) -> Value {
    if scored.excluded_by_boundary {
        return json!({"role": scored.role, "excluded": scored.disallowed_matches});
    }
    candidate(&json!(scored))
}

fn candidate(value: &Value) -> Value {
    if value["excluded_by_boundary"] == json!(true) {
        return json!({"role": value["role"], "excluded": value["disallowed_matches"]});
    }
    super::fields(
        value,
        &[
            "role",
            "score_total",
            "score_breakdown",
            "matched_signals",
            "matched_strongest_domains",
            "matched_preferred_skills",
            "matched_behavior_traits",
        ],
    )
}

fn selected(args: &Value) -> Value {
    let policy = RoutingPolicy::default();
    let record = &args["request_record"];
    let selection: RoutingSelection = select(
        &policy,
        &RoutingFacts {
            source: parsed::<SelectionSource>(&args["selection_source"]),
            current: Role::parse(text(args, "current_role")).unwrap(),
            preferred: Role::parse(text(args, "preferred_role")),
            intent: text(record, "intent"),
            text: text(args, "routing_text"),
            sprint_internal: args["is_internal_sprint_request"] == json!(true),
            planner_reentry: args["planner_reentry_has_explicit_signal"] == json!(true),
        },
    );
    let candidates: Vec<Value> = selection.candidate_summary.iter().map(ours).collect();
    json!({
        "selected_role": selection.selected_role.map_or("", Role::as_str),
        "preferred_role": selection.preferred_role.map_or("", Role::as_str),
        "routing_phase": selection.routing_phase,
        "request_state_class": selection.request_state_class,
        "score_total": selection.score_total,
        "candidates": candidates,
    })
}

fn selection(ok: &Value) -> Value {
    let mut value = super::fields(
        ok,
        &["selected_role", "preferred_role", "routing_phase", "request_state_class", "score_total"],
    );
    let candidates = ok["candidate_summary"].as_array().into_iter().flatten();
    value["candidates"] = candidates.map(candidate).collect();
    value
}
