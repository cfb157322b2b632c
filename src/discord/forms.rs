//! Forms that a slash command or a button opens. A form has to be shown within three seconds and instead of any
//! other answer, so whether there is one is told from the bare payload.

use serde_json::{Value, json};

use crate::assets::catalog::Catalog;
use crate::domain::ids::{GateId, RequestId};
use crate::domain::language::Language;
use crate::domain::outgoing::{Button, ButtonAct};
use crate::domain::verification::CriterionRef;

/// The field of the milestone.
pub(crate) const MILESTONE: &str = "milestone";
/// The field of the brief.
pub(crate) const BRIEF: &str = "brief";
/// The field of the requirements.
pub(crate) const REQUIREMENTS: &str = "requirements";

/// How a form that begins a sprint is known again. What follows are the ids of the files that came with
/// the command: so they are found again after a restart, and by nobody else's form.
const KICKOFF: &str = "k:";

/// How a form that asks something before deciding is known again; the gate and the version of its card follow.
const QUESTION: &str = "q:";

/// How a form that says why something is done all the same is known again; the gate and the version of its card follow.
const ANYWAY: &str = "a:";

/// How a form that says what is wrong with a criterion is known again; the criterion and a version follow.
const ISSUE: &str = "i:";

/// How a form that says what should be different is known again; the request and a version follow.
const REVISE: &str = "r:";

/// How a form with words for a request that is tried again is known again; the request and a version follow.
const WORD: &str = "w:";

/// How a form that says why nobody does a request is known again; the request and a version follow.
const SKIP: &str = "x:";

/// The field of all these.
pub(crate) const WORDS: &str = "question";

/// The options by which `/sprint start` takes files. Their ids have to fit into 100 characters.
pub(crate) const FILES: [&str; 4] = ["file", "file2", "file3", "file4"];

/// The form that an interaction asks for, from the payload as Discord sent it.
pub(crate) fn asked_for(interaction: &Value, catalog: &Catalog) -> Option<Value> {
    let data = &interaction["data"];
    let locale = interaction["locale"].as_str().unwrap_or_default();
    if interaction["type"] == 3 {
        // Only a button opens a form: what merely has its id, such as a list, does not.
        let button = Button::parse(data["custom_id"].as_str()?)?;
        let (mark, name) = match button.act {
            ButtonAct::Question => (QUESTION, "question"),
            ButtonAct::Guide => (QUESTION, "guide"),
            ButtonAct::ApproveAnyway => (ANYWAY, "anyway"),
            ButtonAct::Issue => (ISSUE, "issue"),
            ButtonAct::RequestChanges => (REVISE, "revise"),
            ButtonAct::TryWithWords => (WORD, "words"),
            ButtonAct::SkipRequest => (SKIP, "skip_request"),
            ButtonAct::Approve
            | ButtonAct::Reject
            | ButtonAct::UseChecks
            | ButtonAct::Pass
            | ButtonAct::Skip
            | ButtonAct::Blocked
            | ButtonAct::Cancel
            | ButtonAct::Retry
            | ButtonAct::Pause
            | ButtonAct::SplitWork
            | ButtonAct::AsSprint
            | ButtonAct::Split
            | ButtonAct::Together
            | ButtonAct::Answer
            | ButtonAct::YouDecide
            | ButtonAct::Choose
            | ButtonAct::Lane => return None,
        };
        let label = |key: &str| catalog.label(key, Language::of_locale(locale));
        return (data["component_type"] == 2).then(|| one_field(&button, mark, name, &label));
    }
    let chosen = &data["options"][0];
    if interaction["type"] != 2 || data["name"] != "sprint" || chosen["name"] != "start" {
        return None;
    }
    let files: Vec<&str> = chosen["options"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|option| option["type"] == 11)
        .filter_map(|option| option["value"].as_str())
        .take(FILES.len())
        .collect();
    let label = |key: &str| catalog.label(key, Language::of_locale(locale));
    Some(kickoff(&format!("{KICKOFF}{}", files.join(",")), &label))
}

/// The files of a form that begins a sprint; `None` for any other form.
pub(crate) fn files_of(custom_id: &str) -> Option<Vec<u64>> {
    let ids = custom_id.strip_prefix(KICKOFF)?;
    ids.split(',').filter(|id| !id.is_empty()).map(|id| id.parse().ok()).collect()
}

/// The gate and the version of the card of a form that asks something before deciding; `None` for any other.
pub(crate) fn gate_of(custom_id: &str) -> Option<(GateId, u32)> {
    gate(custom_id.strip_prefix(QUESTION)?)
}

/// The gate and the version of the card of a form that says why something is done all the same; `None` for any other.
pub(crate) fn approved_anyway(custom_id: &str) -> Option<(GateId, u32)> {
    gate(custom_id.strip_prefix(ANYWAY)?)
}

fn gate(text: &str) -> Option<(GateId, u32)> {
    let (gate, version) = text.rsplit_once(':')?;
    Some((GateId::parse(gate).ok()?, version.parse().ok()?))
}

/// The criterion of a form that says what is wrong with it; `None` for any other.
pub(crate) fn criterion_of(custom_id: &str) -> Option<CriterionRef> {
    let (criterion, _) = custom_id.strip_prefix(ISSUE)?.rsplit_once(':')?;
    criterion.parse().ok()
}

/// The request of a form that says what should be different about it; `None` for any other.
pub(crate) fn revised(custom_id: &str) -> Option<RequestId> {
    request(custom_id.strip_prefix(REVISE)?)
}

/// The request of a form with words for its next attempt; `None` for any other.
pub(crate) fn tried_with_words(custom_id: &str) -> Option<RequestId> {
    request(custom_id.strip_prefix(WORD)?)
}

/// The request of a form that says why nobody does it; `None` for any other.
pub(crate) fn skipped(custom_id: &str) -> Option<RequestId> {
    request(custom_id.strip_prefix(SKIP)?)
}

fn request(text: &str) -> Option<RequestId> {
    let (request, _) = text.rsplit_once(':')?;
    RequestId::parse(request).ok()
}

fn one_field(button: &Button, mark: &str, name: &str, label: &dyn Fn(&str) -> String) -> Value {
    let of = |part: &str| label(&format!("form.{name}{part}"));
    let (words, hint) = (of(".label"), of(".hint"));
    json!({
        "custom_id": format!("{mark}{}:{}", button.subject, button.version),
        "title": of(""),
        // Trying again takes no words.
        "components": [field(WORDS, &words, 2, 1_000, mark != WORD, &hint)],
    })
}

fn field(id: &str, label: &str, style: u8, most: u16, required: bool, hint: &str) -> Value {
    let mut input = json!({
        "type": 4, "custom_id": id, "label": label, "style": style, "max_length": most,
        "required": required,
    });
    if !hint.is_empty() {
        input["placeholder"] = json!(hint);
    }
    json!({"type": 1, "components": [input]})
}

fn kickoff(custom_id: &str, label: &dyn Fn(&str) -> String) -> Value {
    let hint = label("form.kickoff.hint");
    let of = |part: &str| label(&format!("form.kickoff.{part}"));
    json!({
        "custom_id": custom_id, "title": label("form.kickoff"),
        "components": [
            field(MILESTONE, &of("milestone"), 1, 200, true, &hint),
            field(BRIEF, &of("brief"), 2, 4_000, false, ""),
            field(REQUIREMENTS, &of("requirements"), 2, 4_000, false, ""),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(locale: &str, files: &[&str]) -> Value {
        let options: Vec<Value> =
            files.iter().map(|id| json!({"name": "file", "type": 11, "value": id})).collect();
        json!({"type": 2, "locale": locale, "data": {
            "name": "sprint", "options": [{"name": "start", "type": 1, "options": options}],
        }})
    }

    #[test]
    fn only_a_start_opens_the_form_and_it_fits_discords_limits() {
        let catalog = Catalog::builtin().unwrap();
        let longest = "18446744073709551615";
        for locale in ["en-US", "ko"] {
            let form = asked_for(&start(locale, &[longest; 4]), &catalog).unwrap();
            let id = form["custom_id"].as_str().unwrap();
            assert!(id.len() <= 100, "{id}");
            assert_eq!(files_of(id).unwrap(), [u64::MAX; 4]);
            assert!(form["title"].as_str().unwrap().chars().count() <= 45);
            for row in form["components"].as_array().unwrap() {
                let label = row["components"][0]["label"].as_str().unwrap();
                assert!(label.chars().count() <= 45, "{label}");
            }
        }
        assert_eq!(files_of("k:"), Some(Vec::new()));
        assert_eq!(files_of("k:x"), None);
        assert_eq!(files_of("t:approve:x:1"), None);
        let mut other = start("en", &[]);
        other["data"]["options"][0]["name"] = json!("stop");
        assert_eq!(asked_for(&other, &catalog), None);
        assert_eq!(asked_for(&json!({"type": 5, "data": {"custom_id": "k:"}}), &catalog), None);
    }
}
