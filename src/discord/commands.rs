//! Slash commands: what they are called, and their registration.

use serde_json::{Value, json};

use crate::discord::error::RestError;
use crate::discord::forms;
use crate::discord::rest::Rest;
use crate::domain::backlog::BacklogKind;
use crate::domain::ids::GuildId;

/// A text option.
fn option(name: &str, en: &str, ko: &str) -> Value {
    typed(3, name, en, ko, true)
}

/// An option of a type of Discord's: 3 text, 4 number, 5 yes or no, 11 file.
fn typed(kind: u8, name: &str, en: &str, ko: &str, required: bool) -> Value {
    json!({
        "type": kind, "name": name, "description": en, "required": required,
        "description_localizations": {"ko": ko},
    })
}

fn command(name: &str, en: &str, ko: &str, options: &[Value]) -> Value {
    json!({
        "type": 1, "name": name, "description": en,
        "description_localizations": {"ko": ko}, "options": options,
    })
}

/// The commands of the team. A subcommand is written like a command.
#[must_use]
pub fn definitions() -> Vec<Value> {
    let request =
        option("request", "The id, such as 20260324-1a2b3c4d", "요청 번호 (예: 20260324-1a2b3c4d)");
    vec![
        command(
            "ask",
            "Ask the team for something",
            "팀에 요청하기",
            &[option("text", "What should be done", "무엇을 할까요")],
        ),
        command("cancel", "Withdraw a request", "요청 취소", std::slice::from_ref(&request)),
        command("retry", "Try a blocked request again", "막힌 요청 다시 시도", &[request]),
        sprint(),
        backlog(),
    ]
}

fn sprint() -> Value {
    let files =
        forms::FILES.map(|name| typed(11, name, "A file that goes with it", "함께 볼 파일", false));
    let now = typed(
        5,
        "now",
        "Release running todos instead of waiting for them",
        "진행 중인 할 일을 기다리지 않고 놓기",
        false,
    );
    command(
        "sprint",
        "Sprints: start, stop, go on, look",
        "스프린트 시작, 중지, 이어 하기, 보기",
        &[
            command("start", "Start a sprint", "스프린트 시작", &files),
            command("stop", "Stop the sprint after its running todos", "스프린트 마무리", &[now]),
            command("restart", "Go on with the last sprint", "마지막 스프린트 이어 하기", &[]),
            command("status", "How the sprint stands", "스프린트 상태 보기", &[]),
        ],
    )
}

fn backlog() -> Value {
    let mut kind = typed(3, "kind", "What kind of work it is", "작업 종류", false);
    let choice = |kind: BacklogKind| {
        let ko = match kind {
            BacklogKind::Bug => "버그",
            BacklogKind::Feature => "기능",
            BacklogKind::Enhancement => "개선",
            BacklogKind::Chore => "잡무",
        };
        json!({"name": kind.as_str(), "value": kind.as_str(), "name_localizations": {"ko": ko}})
    };
    kind["choices"] = json!(BacklogKind::ALL.map(choice));
    let mut rank = typed(4, "rank", "1 is first", "순위 (1이 가장 먼저)", false);
    rank["min_value"] = json!(0);
    command(
        "backlog",
        "The backlog: look, add",
        "백로그 보기, 추가",
        &[
            command("list", "What could be done next", "다음에 할 수 있는 일 보기", &[]),
            command(
                "add",
                "Add an item to the backlog",
                "백로그에 추가하기",
                &[
                    option("title", "One line", "한 줄 제목"),
                    typed(3, "scope", "What is to be done", "무엇을 해야 하나요", false),
                    kind,
                    rank,
                ],
            ),
        ],
    )
}

/// What two definitions are compared by: Discord adds ids, versions and defaults to what it was given.
fn essence(command: &Value) -> Value {
    let options: Vec<Value> =
        command["options"].as_array().into_iter().flatten().map(essence).collect();
    let choices: Vec<&Value> =
        command["choices"].as_array().into_iter().flatten().map(|it| &it["value"]).collect();
    let required = command["required"].as_bool().unwrap_or(false);
    json!([command["type"], command["name"], command["description"], required, options, choices])
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
