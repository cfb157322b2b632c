//! Slash commands: the table of [`crate::domain::commands`] as Discord wants it, and its registration.

use serde_json::{Value, json};

use crate::discord::error::RestError;
use crate::discord::rest::Rest;
use crate::domain::commands::{COMMANDS, Choice, Entry, GROUPS, Takes, Words};
use crate::domain::ids::GuildId;
use crate::domain::item::ItemKind;
use crate::domain::routes::Lane;
use crate::domain::verification::ManualVerdict;

/// What a person chooses to decide; the words are the values.
pub(crate) const VERDICTS: [&str; 2] = ["approve", "reject"];

/// The commands of the team.
#[must_use]
pub fn definitions() -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    for entry in &COMMANDS {
        let options: Vec<Value> = entry.options.iter().map(option).collect();
        let made = |name: &Words| named(1, name, &entry.about, &options);
        match entry.path {
            [group, name] => {
                let inner = made(name);
                let known = all.iter_mut().find(|it| it["name"] == group.en);
                match known.and_then(|it| it["options"].as_array_mut()) {
                    Some(inners) => inners.push(inner),
                    None => all.push(named(1, group, group_about(group, entry), &[inner])),
                }
            }
            path => all.extend(path.first().map(made)),
        }
    }
    all
}

fn group_about<'a>(group: &Words, entry: &'a Entry) -> &'a Words {
    GROUPS.iter().find(|(name, _)| name == group).map_or(&entry.about, |(_, about)| about)
}

/// A command, a subcommand (both are of type 1) or the beginning of an option.
fn named(kind: u8, name: &Words, about: &Words, options: &[Value]) -> Value {
    json!({
        "type": kind, "name": name.en, "name_localizations": {"ko": name.ko},
        "description": about.en, "description_localizations": {"ko": about.ko},
        "options": options,
    })
}

fn option(choice: &Choice) -> Value {
    let (kind, choices, suggests) = match choice.takes {
        Takes::Text => (3, Vec::new(), false),
        Takes::Number => (4, Vec::new(), false),
        Takes::Yes => (5, Vec::new(), false),
        Takes::File => (11, Vec::new(), false),
        Takes::Kind => (3, ItemKind::ALL.map(kind_choice).to_vec(), false),
        Takes::Verdict => (3, VERDICTS.map(verdict_choice).to_vec(), false),
        Takes::ManualVerdict => (3, ManualVerdict::ALL.map(manual_choice).to_vec(), false),
        Takes::Lane => (3, Lane::ALL.map(lane_choice).to_vec(), false),
        Takes::Request
        | Takes::Subject
        | Takes::Waiting
        | Takes::ManualCriterion
        | Takes::RefusedMessage => (3, Vec::new(), true),
    };
    let mut option = named(kind, &choice.name, &choice.about, &[]);
    if let Some(option) = option.as_object_mut() {
        option.remove("options");
        option.insert("required".to_owned(), json!(choice.required));
        if !choices.is_empty() {
            option.insert("choices".to_owned(), json!(choices));
        }
        if suggests {
            option.insert("autocomplete".to_owned(), json!(true));
        }
        if choice.takes == Takes::Number {
            option.insert("min_value".to_owned(), json!(0));
        }
    }
    option
}

fn kind_choice(kind: ItemKind) -> Value {
    let ko = match kind {
        ItemKind::Bug => "버그",
        ItemKind::Feature => "기능",
        ItemKind::Enhancement => "개선",
        ItemKind::Chore => "잡무",
    };
    json!({"name": kind.as_str(), "value": kind.as_str(), "name_localizations": {"ko": ko}})
}

fn verdict_choice(verdict: &str) -> Value {
    let ko = if verdict == "approve" { "승인" } else { "거절" };
    json!({"name": verdict, "value": verdict, "name_localizations": {"ko": ko}})
}

fn manual_choice(verdict: ManualVerdict) -> Value {
    let ko = match verdict {
        ManualVerdict::Pass => "통과",
        ManualVerdict::Issue => "문제 있음",
        ManualVerdict::Skip => "건너뛰기",
        ManualVerdict::Blocked => "지금은 못 봄",
    };
    let name = verdict.as_str();
    json!({"name": name, "value": name, "name_localizations": {"ko": ko}})
}

fn lane_choice(lane: Lane) -> Value {
    let ko = match lane {
        Lane::Answer => "답변만",
        Lane::Fast => "빠르게",
        Lane::Quick => "간단히",
        Lane::Standard => "보통",
        Lane::Full => "전체",
    };
    json!({"name": lane.as_str(), "value": lane.as_str(), "name_localizations": {"ko": ko}})
}

/// What two definitions are compared by: Discord adds ids, versions and defaults to what it was given.
fn essence(command: &Value) -> Value {
    let options: Vec<Value> =
        command["options"].as_array().into_iter().flatten().map(essence).collect();
    let choices: Vec<Value> = command["choices"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|it| json!([it["value"], it["name_localizations"]["ko"]]))
        .collect();
    json!([
        command["type"],
        command["name"],
        command["name_localizations"]["ko"],
        command["description"],
        command["description_localizations"]["ko"],
        command["required"].as_bool().unwrap_or(false),
        command["autocomplete"].as_bool().unwrap_or(false),
        options,
        choices,
    ])
}

/// What has to be done to make Discord's commands ours: those to write, and those to take away. A command
/// that is the same is left alone, and one that differs is changed in place: its id stays.
#[derive(Debug, Default, PartialEq)]
struct Difference {
    /// To be created, or changed where Discord knows the name.
    write: Vec<Value>,
    /// The ids of commands of ours that are no more.
    remove: Vec<String>,
}

fn difference(ours: &[Value], theirs: &[Value]) -> Difference {
    let same = |one: &&Value| theirs.iter().any(|it| essence(it) == essence(one));
    let gone = |one: &&Value| !ours.iter().any(|it| it["name"] == one["name"]);
    Difference {
        write: ours.iter().filter(|one| !same(one)).cloned().collect(),
        remove: theirs
            .iter()
            .filter(gone)
            .filter_map(|it| it["id"].as_str().map(str::to_owned))
            .collect(),
    }
}

/// Makes the commands of a server ours, one by one and only where they differ: creations are limited per day.
/// One that is refused costs only itself; what became of those is the answer, by name.
pub(crate) async fn register(
    rest: &Rest,
    application: u64,
    guild: GuildId,
) -> Vec<(String, RestError)> {
    let there = match rest.commands(application, guild).await {
        Ok(there) => there,
        Err(error) => return vec![("all".to_owned(), error)],
    };
    let mut refused = Vec::new();
    let difference = difference(&definitions(), &there);
    for command in &difference.write {
        if let Err(error) = rest.write_command(application, guild, command).await {
            refused.push((command["name"].as_str().unwrap_or_default().to_owned(), error));
        }
    }
    for id in &difference.remove {
        if let Err(error) = rest.remove_command(application, guild, id).await {
            tracing::warn!(%error, id, "a command that is no more is still shown");
        }
    }
    refused
}

/// The commands that were refused and why, in one line; `None` where there is none.
pub(crate) fn refusal(refused: &[(String, RestError)]) -> Option<String> {
    let (_, error) = refused.first()?;
    let names: Vec<String> = refused.iter().map(|(name, _)| format!("/{name}")).collect();
    Some(format!("{}: {error}", names.join(", ")))
}

/// The commands of ours that a server does not know as they are now, by name.
pub async fn unregistered(
    rest: &Rest,
    application: u64,
    guild: GuildId,
) -> Result<Vec<String>, RestError> {
    let there = rest.commands(application, guild).await?;
    let difference = difference(&definitions(), &there);
    let names = difference.write.iter().filter_map(|it| it["name"].as_str());
    Ok(names.map(|name| format!("/{name}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_discord_adds_is_no_change_and_only_what_differs_is_written() {
        let ours = definitions();
        let mut theirs = ours.clone();
        theirs.reverse();
        for (at, command) in theirs.iter_mut().enumerate() {
            command["id"] = json!(at.to_string());
            command["version"] = json!("2");
            command["nsfw"] = json!(false);
        }
        assert_eq!(difference(&ours, &theirs), Difference::default());
        let changed = theirs[0]["name"].clone();
        theirs[0]["description_localizations"]["ko"] = json!("다른 말");
        let difference_now = difference(&ours, &theirs);
        let written: Vec<&Value> = difference_now.write.iter().map(|it| &it["name"]).collect();
        assert_eq!((written, difference_now.remove.len()), (vec![&changed], 0));
        theirs.push(json!({"id": "77", "name": "cancel", "type": 1, "description": "old"}));
        assert_eq!(difference(&ours, &theirs).remove, ["77"]);
        assert_eq!(difference(&ours, &theirs[1..]).write.len(), 1);
    }

    #[test]
    fn groups_hold_their_commands() {
        let all = definitions();
        let names: Vec<&str> = all.iter().filter_map(|it| it["name"].as_str()).collect();
        assert_eq!(
            names,
            [
                "ask", "fast", "quick", "full", "route", "status", "board", "why", "request",
                "approve", "verify", "revise", "sprint", "backlog", "plan", "outbox", "models",
                "cost", "health", "settings"
            ]
        );
        let request = all.iter().find(|it| it["name"] == "request").unwrap();
        let inner: Vec<&str> = request["options"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|it| it["name"].as_str())
            .collect();
        assert_eq!(inner, ["cancel", "retry", "split", "pause", "skip", "steer"]);
        assert_eq!(request["options"][0]["options"][0]["autocomplete"], true);
    }
}
