//! Forms that a slash command opens. A form has to be shown within three seconds and instead of any
//! other answer, so whether there is one is told from the bare payload.

use serde_json::{Value, json};

use crate::discord::asked::language;
use crate::domain::request::Language;

/// The field of the milestone.
pub(crate) const MILESTONE: &str = "milestone";
/// The field of the brief.
pub(crate) const BRIEF: &str = "brief";
/// The field of the requirements.
pub(crate) const REQUIREMENTS: &str = "requirements";

/// How a form that begins a sprint is known again. What follows are the ids of the files that came with
/// the command: so they are found again after a restart, and by nobody else's form.
const KICKOFF: &str = "k:";

/// The options by which `/sprint start` takes files. Their ids have to fit into 100 characters.
pub(crate) const FILES: [&str; 4] = ["file", "file2", "file3", "file4"];

/// The form that a command asks for, from the payload as Discord sent it.
pub(crate) fn asked_for(interaction: &Value) -> Option<Value> {
    let data = &interaction["data"];
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
    let locale = interaction["locale"].as_str().unwrap_or_default();
    Some(kickoff(&format!("{KICKOFF}{}", files.join(",")), language(locale)))
}

/// The files of a form that begins a sprint; `None` for any other form.
pub(crate) fn files_of(custom_id: &str) -> Option<Vec<u64>> {
    let ids = custom_id.strip_prefix(KICKOFF)?;
    ids.split(',').filter(|id| !id.is_empty()).map(|id| id.parse().ok()).collect()
}

fn kickoff(custom_id: &str, language: Language) -> Value {
    let [title, milestone, brief, requirements, hint] = match language {
        Language::En => [
            "Start a sprint",
            "Milestone",
            "What it is about",
            "What has to hold at the end, one a line",
            "What is to be reached",
        ],
        Language::Ko => [
            "스프린트 시작",
            "마일스톤",
            "무엇에 관한 일인가요",
            "끝났을 때 만족해야 할 조건 (한 줄에 하나)",
            "무엇을 이루려고 하나요",
        ],
    };
    let field = |id: &str, label: &str, style: u8, most: u16, required: bool, hint: &str| {
        let mut input = json!({
            "type": 4, "custom_id": id, "label": label, "style": style, "max_length": most,
            "required": required,
        });
        if !hint.is_empty() {
            input["placeholder"] = json!(hint);
        }
        json!({"type": 1, "components": [input]})
    };
    json!({
        "custom_id": custom_id, "title": title,
        "components": [
            field(MILESTONE, milestone, 1, 200, true, hint),
            field(BRIEF, brief, 2, 4_000, false, ""),
            field(REQUIREMENTS, requirements, 2, 4_000, false, ""),
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
        let longest = "18446744073709551615";
        for locale in ["en-US", "ko"] {
            let form = asked_for(&start(locale, &[longest; 4])).unwrap();
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
        assert_eq!(asked_for(&other), None);
        assert_eq!(asked_for(&json!({"type": 5, "data": {"custom_id": "k:"}})), None);
    }
}
