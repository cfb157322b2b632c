//! Slash commands: what they are called, and their registration.

use serde_json::{Value, json};

use crate::discord::error::RestError;
use crate::discord::rest::Rest;
use crate::domain::ids::GuildId;

fn option(name: &str, en: &str, ko: &str) -> Value {
    json!({
        "type": 3, "name": name, "description": en, "required": true,
        "description_localizations": {"ko": ko},
    })
}

fn command(name: &str, en: &str, ko: &str, option: &Value) -> Value {
    json!({
        "type": 1, "name": name, "description": en,
        "description_localizations": {"ko": ko}, "options": [option],
    })
}

/// The commands of the team.
#[must_use]
pub fn definitions() -> Vec<Value> {
    let request =
        option("request", "The id, such as 20260324-1a2b3c4d", "요청 번호 (예: 20260324-1a2b3c4d)");
    vec![
        command(
            "ask",
            "Ask the team for something",
            "팀에 요청하기",
            &option("text", "What should be done", "무엇을 할까요"),
        ),
        command("cancel", "Withdraw a request", "요청 취소", &request),
        command("retry", "Try a blocked request again", "막힌 요청 다시 시도", &request),
    ]
}

/// What two definitions are compared by: Discord adds ids, versions and defaults to what it was given.
fn essence(command: &Value) -> Value {
    let options: Vec<Value> = command["options"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|it| json!([it["type"], it["name"], it["description"], it["required"]]))
        .collect();
    json!([command["name"], command["description"], options])
}

fn same(ours: &[Value], theirs: &[Value]) -> bool {
    let sorted = |list: &[Value]| {
        let mut all: Vec<String> = list.iter().map(|it| essence(it).to_string()).collect();
        all.sort();
        all
    };
    sorted(ours) == sorted(theirs)
}

/// Makes the commands of a server ours, if they are not yet: creations are limited per day.
pub(crate) async fn register(
    rest: &Rest,
    application: u64,
    guild: GuildId,
) -> Result<(), RestError> {
    let wanted = definitions();
    let there = rest.commands(application, guild).await?;
    if same(&wanted, &there) {
        return Ok(());
    }
    rest.overwrite_commands(application, guild, &wanted).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_discord_adds_is_no_change() {
        let ours = definitions();
        let mut theirs = ours.clone();
        theirs.reverse();
        for command in &mut theirs {
            command["id"] = json!("1");
            command["version"] = json!("2");
            command["nsfw"] = json!(false);
        }
        assert!(same(&ours, &theirs));
        theirs[0]["description"] = json!("other");
        assert!(!same(&ours, &theirs));
        assert!(!same(&ours, &theirs[1..]));
    }
}
