//! The one table of what people can command. Slash commands, the help of the command line and
//! `docs/commands.md` are made from it, so that they cannot differ.

use serde::{Deserialize, Serialize};

use crate::domain::ids::SubjectId;
use crate::domain::policy::Right;

/// What somebody wants to see. Nothing is changed by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// What is open, and what it waits for.
    Status,
    /// Why something is not moving.
    Why(SubjectId),
    /// The active sprint, or the last one.
    Sprint,
    /// The todos of the sprint, what each waits for, and the queue to the branch.
    Board,
    /// The criteria that wait for a person who looks.
    Verify,
    /// The backlog.
    Backlog,
    /// Which agent and model works for which role.
    Models,
    /// What was spent.
    Cost,
    /// Whether everything works.
    Health,
    /// What the team is set to.
    Settings,
}

/// Words in both languages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Words {
    /// English.
    pub en: &'static str,
    /// Korean.
    pub ko: &'static str,
}

/// What an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// Text.
    Text,
    /// A number from zero.
    Number,
    /// Yes or no.
    Yes,
    /// A file.
    File,
    /// A kind of work.
    Kind,
    /// Approve or turn down.
    Verdict,
    /// A request that is open; suggested while it is typed.
    Request,
    /// Something that is open, whatever it is; suggested while it is typed.
    Subject,
    /// Something that waits for a person; suggested while it is typed.
    Waiting,
    /// A criterion that a person judges; suggested while it is typed.
    ManualCriterion,
    /// How a person found a criterion.
    ManualVerdict,
    /// A message that Discord refused; suggested while it is typed.
    RefusedMessage,
    /// A lane.
    Lane,
}

/// One option of a slash command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// Its name; the English one is also its key.
    pub name: Words,
    /// What it is.
    pub about: Words,
    /// What it takes.
    pub takes: Takes,
    /// Whether it has to be given.
    pub required: bool,
}

/// One command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Its name, or the name of its group and its own.
    pub path: &'static [Words],
    /// What it does.
    pub about: Words,
    /// Its options in Discord.
    pub options: &'static [Choice],
    /// The right that it takes.
    pub right: Right,
}

const fn words(en: &'static str, ko: &'static str) -> Words {
    Words { en, ko }
}

const fn choice(name: Words, about: Words, takes: Takes, required: bool) -> Choice {
    Choice { name, about, takes, required }
}

const TEXT: Choice =
    choice(words("text", "내용"), words("What should be done", "무엇을 할까요"), Takes::Text, true);

const REQUEST: Choice = choice(
    words("request", "요청"),
    words("Which request", "어느 요청인가요"),
    Takes::Request,
    true,
);

const fn file(en: &'static str, ko: &'static str) -> Choice {
    choice(words(en, ko), words("A file that goes with it", "함께 볼 파일"), Takes::File, false)
}

/// The groups of commands: their names, and what they are about.
pub const GROUPS: [(Words, Words); 5] = [
    (
        words("request", "요청"),
        words(
            "Withdraw, try again, split, pause, skip or steer a request",
            "요청 취소, 다시 시도, 나누기, 보류, 건너뛰기, 방향 바꾸기",
        ),
    ),
    (
        words("sprint", "스프린트"),
        words("Sprints: start, stop, go on, look", "스프린트 시작, 중지, 이어 하기, 보기"),
    ),
    (
        words("backlog", "백로그"),
        words("The backlog: list, add, change", "백로그 보기, 추가, 바꾸기"),
    ),
    (
        words("plan", "계획"),
        words("Plans that people write: check, import", "사람이 쓴 계획 검사, 가져오기"),
    ),
    (
        words("outbox", "보낼편지함"),
        words(
            "Messages that Discord refused: try again, give up",
            "Discord가 거절한 메시지 다시 보내기, 지우기",
        ),
    ),
];

/// All commands.
pub const COMMANDS: [Entry; 30] = [
    Entry {
        path: &[words("ask", "부탁")],
        about: words("Ask the team for something", "팀에 요청하기"),
        options: &[TEXT],
        right: Right::Ask,
    },
    Entry {
        path: &[words("fast", "빠르게")],
        about: words(
            "Ask for something small: built, proven by tests, landed",
            "작은 일 요청하기: 만들고, 테스트로 검증하고, 반영",
        ),
        options: &[TEXT],
        right: Right::Approve,
    },
    Entry {
        path: &[words("quick", "간단히")],
        about: words(
            "Ask for something that takes no plan: built, proven, reviewed",
            "계획 없이 할 일 요청하기: 만들고, 검증하고, 검토",
        ),
        options: &[TEXT],
        right: Right::Approve,
    },
    Entry {
        path: &[words("full", "전체로")],
        about: words(
            "Ask for something with every step of the team",
            "모든 단계를 거쳐 할 일 요청하기",
        ),
        options: &[TEXT],
        right: Right::Ask,
    },
    Entry {
        path: &[words("route", "경로")],
        about: words("Change which steps a request takes", "요청이 거칠 단계 바꾸기"),
        options: &[
            REQUEST,
            choice(words("lane", "경로"), words("Another lane", "다른 경로"), Takes::Lane, false),
            choice(
                words("add", "추가"),
                words("A step more, such as qa", "더할 단계, 예: qa"),
                Takes::Text,
                false,
            ),
        ],
        right: Right::Ask,
    },
    Entry {
        path: &[words("status", "상태")],
        about: words(
            "What is going on, and what waits for you",
            "진행 상황과 나를 기다리는 일 보기",
        ),
        options: &[],
        right: Right::Ask,
    },
    Entry {
        path: &[words("board", "현황판")],
        about: words(
            "The sprint's todos, and what each waits for",
            "스프린트의 할 일과 저마다 기다리는 것 보기",
        ),
        options: &[],
        right: Right::Ask,
    },
    Entry {
        path: &[words("why", "이유")],
        about: words("Why something is not moving", "무엇이 왜 멈춰 있는지 보기"),
        options: &[choice(
            words("what", "대상"),
            words("A request, item, todo, sprint or gate", "요청, 항목, 할 일, 스프린트 또는 승인"),
            Takes::Subject,
            true,
        )],
        right: Right::Ask,
    },
    Entry {
        path: &[words("request", "요청"), words("cancel", "취소")],
        about: words("Withdraw a request", "요청 취소"),
        options: &[REQUEST],
        right: Right::Ask,
    },
    Entry {
        path: &[words("request", "요청"), words("retry", "다시")],
        about: words("Let a blocked request try again", "막힌 요청 다시 시도"),
        options: &[REQUEST],
        right: Right::Ask,
    },
    Entry {
        path: &[words("request", "요청"), words("split", "나누기")],
        about: words(
            "Split a request that the team could not do into items",
            "팀이 해내지 못한 일을 나누어 계획하기",
        ),
        options: &[REQUEST],
        right: Right::Ask,
    },
    Entry {
        path: &[words("request", "요청"), words("pause", "보류")],
        about: words("Pause a request that the team could not do", "팀이 해내지 못한 일 보류하기"),
        options: &[REQUEST],
        right: Right::Ask,
    },
    Entry {
        path: &[words("request", "요청"), words("skip", "건너뛰기")],
        about: words(
            "Skip a request that the team could not do, with a reason",
            "팀이 해내지 못한 일을 이유와 함께 건너뛰기",
        ),
        options: &[REQUEST, choice(words("text", "내용"), words("Why", "이유"), Takes::Text, true)],
        right: Right::Ask,
    },
    Entry {
        path: &[words("request", "요청"), words("steer", "방향")],
        about: words("Tell a request something while it runs", "진행 중인 요청에 말하기"),
        options: &[
            REQUEST,
            choice(
                words("text", "내용"),
                words("What it should know", "무엇을 알려 줄까요"),
                Takes::Text,
                true,
            ),
        ],
        right: Right::Ask,
    },
    Entry {
        path: &[words("approve", "승인")],
        about: words("Decide what waits for a person", "사람을 기다리는 일 결정하기"),
        options: &[
            choice(
                words("what", "대상"),
                words("What is decided", "무엇을 결정하나요"),
                Takes::Waiting,
                true,
            ),
            choice(
                words("decision", "결정"),
                words("Approve, or turn down", "승인 또는 거절"),
                Takes::Verdict,
                true,
            ),
            choice(
                words("reason", "이유"),
                words(
                    "Why, where something was found in a plan",
                    "계획에 지적이 있어도 승인하는 이유",
                ),
                Takes::Text,
                false,
            ),
        ],
        right: Right::Approve,
    },
    Entry {
        path: &[words("verify", "확인")],
        about: words(
            "What has landed and waits for your look",
            "반영된 것 중 사람이 봐야 하는 것 확인하기",
        ),
        options: &[
            choice(
                words("what", "대상"),
                words("Which criterion", "어느 기준인가요"),
                Takes::ManualCriterion,
                false,
            ),
            choice(
                words("verdict", "결과"),
                words("How it is", "어떤가요"),
                Takes::ManualVerdict,
                false,
            ),
            choice(
                words("text", "내용"),
                words("What is wrong", "무엇이 문제인가요"),
                Takes::Text,
                false,
            ),
        ],
        right: Right::Approve,
    },
    Entry {
        path: &[words("revise", "고치기")],
        about: words(
            "Say what should be different about what was delivered",
            "반영된 것에서 고칠 점 말하기",
        ),
        options: &[
            choice(
                words("request", "요청"),
                words("The id of the request that delivered it", "반영한 요청의 번호"),
                Takes::Text,
                true,
            ),
            choice(
                words("text", "내용"),
                words("What should be different", "무엇이 달라야 하나요"),
                Takes::Text,
                true,
            ),
        ],
        right: Right::Ask,
    },
    Entry {
        path: &[words("sprint", "스프린트"), words("start", "시작")],
        about: words("Begin a sprint", "스프린트 시작"),
        options: &[
            file("file", "파일"),
            file("file2", "파일2"),
            file("file3", "파일3"),
            file("file4", "파일4"),
        ],
        right: Right::Approve,
    },
    Entry {
        path: &[words("sprint", "스프린트"), words("stop", "마무리")],
        about: words("End the sprint after its running todos", "진행 중인 할 일까지 하고 마무리"),
        options: &[choice(
            words("now", "지금"),
            words(
                "Release running todos instead of waiting for them",
                "진행 중인 할 일을 기다리지 않고 놓기",
            ),
            Takes::Yes,
            false,
        )],
        right: Right::Approve,
    },
    Entry {
        path: &[words("sprint", "스프린트"), words("restart", "이어하기")],
        about: words("Go on with the last sprint", "마지막 스프린트 이어 하기"),
        options: &[],
        right: Right::Approve,
    },
    Entry {
        path: &[words("sprint", "스프린트"), words("status", "상태")],
        about: words("How the sprint stands", "스프린트 상태 보기"),
        options: &[],
        right: Right::Ask,
    },
    Entry {
        path: &[words("backlog", "백로그"), words("list", "보기")],
        about: words("What could be done next", "다음에 할 수 있는 일 보기"),
        options: &[],
        right: Right::Ask,
    },
    Entry {
        path: &[words("backlog", "백로그"), words("add", "추가")],
        about: words("Add an item to the backlog", "백로그에 추가하기"),
        options: &[
            choice(words("title", "제목"), words("One line", "한 줄 제목"), Takes::Text, true),
            choice(
                words("scope", "범위"),
                words("What is to be done", "무엇을 해야 하나요"),
                Takes::Text,
                false,
            ),
            choice(
                words("kind", "종류"),
                words("What kind of work it is", "작업 종류"),
                Takes::Kind,
                false,
            ),
            choice(
                words("rank", "순위"),
                words("1 is first", "1이 가장 먼저"),
                Takes::Number,
                false,
            ),
        ],
        right: Right::Approve,
    },
    Entry {
        path: &[words("plan", "계획"), words("import", "가져오기")],
        about: words(
            "Take a plan into the backlog; a newer version is shown first",
            "계획을 백로그에 넣기. 바뀐 판은 먼저 보여 줍니다",
        ),
        options: &[
            choice(
                words("file", "파일"),
                words("A requirement document, PLAN.md, backlog table or roadmap", "계획 파일"),
                Takes::File,
                true,
            ),
            choice(
                words("approve", "승인"),
                words("The approval that the difference named", "변경 내용에 적힌 승인 값"),
                Takes::Text,
                false,
            ),
        ],
        right: Right::Approve,
    },
    Entry {
        path: &[words("outbox", "보낼편지함"), words("retry", "다시")],
        about: words("Try again what Discord refused", "Discord가 거절한 메시지 다시 보내기"),
        options: &[],
        right: Right::Approve,
    },
    Entry {
        path: &[words("outbox", "보낼편지함"), words("dismiss", "지우기")],
        about: words(
            "Give up a message that Discord refused; its words stay in a file",
            "Discord가 거절한 메시지 그만 보내기. 내용은 파일에 남습니다",
        ),
        options: &[choice(
            words("message", "메시지"),
            words("Which message, or all", "어느 메시지인가요, 또는 all"),
            Takes::RefusedMessage,
            true,
        )],
        right: Right::Approve,
    },
    Entry {
        path: &[words("models", "모델")],
        about: words("Which agent and model works for which role", "역할별 에이전트와 모델 보기"),
        options: &[],
        right: Right::Ask,
    },
    Entry {
        path: &[words("cost", "비용")],
        about: words(
            "What was spent today, this week and on what is open",
            "오늘, 이번 주, 진행 중인 일에 쓴 양 보기",
        ),
        options: &[],
        right: Right::Ask,
    },
    Entry {
        path: &[words("health", "점검")],
        about: words("Whether everything works", "모두 잘 돌아가는지 점검"),
        options: &[],
        right: Right::Ask,
    },
    Entry {
        path: &[words("settings", "설정")],
        about: words("What the team is set to, and where to change it", "팀 설정과 바꾸는 곳 보기"),
        options: &[],
        right: Right::Ask,
    },
];

/// The command of these English names, such as `["sprint", "start"]`.
#[must_use]
pub fn find(path: &[&str]) -> Option<&'static Entry> {
    COMMANDS.iter().find(|entry| entry.path.iter().map(|name| name.en).eq(path.iter().copied()))
}

/// The page `docs/commands.md`.
#[must_use]
pub fn page() -> String {
    let mut page = String::from(
        "# Commands\n\nMade from `src/domain/commands.rs`; a test keeps the two the same. Each is a slash command in \
         Discord and a command of `teams` of the same name; the options here are Discord's, and `teams <command> \
         --help` names its own.\n\n| command | what it does | 한국어 | takes the \
         right to |\n|---|---|---|---|\n",
    );
    for entry in &COMMANDS {
        let name = |pick: fn(&Words) -> &'static str| {
            entry.path.iter().map(pick).collect::<Vec<_>>().join(" ")
        };
        let mut options = String::new();
        for option in entry.options {
            let (open, close) = if option.required { ('<', '>') } else { ('[', ']') };
            options.push(' ');
            options.push(open);
            options.push_str(option.name.en);
            options.push(close);
        }
        let right = match entry.right {
            Right::Ask => "ask",
            Right::Approve => "approve",
            Right::Administer => "administer",
        };
        let (en, ko) = (name(|it| it.en), name(|it| it.ko));
        let (about, about_ko) = (entry.about.en, entry.about.ko);
        page.push_str(&format!("| `{en}{options}` | {about} | `{ko}` {about_ko} | {right} |\n"));
    }
    page.push_str(
        "\nWithdrawing, retrying, splitting, pausing or skipping what somebody else asked for takes the right to administer; words in the room of one that waits, also of a paused one, go on with it and take the right to ask. Fewer steps for a request, \
         and more for somebody else's, take the right to approve. So do changes to what somebody else asked for (`revise`), and a \
         pause in a sprint that runs. Who holds which right stands under `people:` in \
         `team_runtime.yaml`.\n\n\
         ## Exit codes\n\n\
         | code | of every command of `teams` |\n|---|---|\n\
         | 0 | it was done; a reader that closes its end of a pipe early is no failure |\n\
         | 1 | it was not: there is no workspace, no such request or item, no team that runs, the team refused, a file or \
         standard output did not take what was written, `teams doctor` found a problem, what `teams ask --wait` waited for \
         was not done, or the configuration is broken (`teams status`, `list` and `why` tell beside it what they can) |\n\
         | 2 | wrong usage: an option, an id or a word that the command does not have |\n\
         | 70 | a fault of this program; a team (`teams run`) has stopped in order, and the log names the task that broke off |\n\
         | 130 | `teams ask --wait` was left with Ctrl-C; the request goes on |\n",
    );
    page
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_and_texts_fit_discord() {
        let mut seen = BTreeSet::new();
        for entry in &COMMANDS {
            assert!(seen.insert(entry.path.iter().map(|it| it.en).collect::<Vec<_>>()));
            let mut named: Vec<Words> = entry.path.to_vec();
            named.extend(entry.options.iter().map(|option| option.name));
            for name in named {
                for one in [name.en, name.ko] {
                    let fits = (1..=32).contains(&one.chars().count());
                    let small = one.chars().all(|c| c.is_alphanumeric() && !c.is_uppercase());
                    assert!(fits && small, "{one}");
                }
            }
            let abouts = entry.options.iter().map(|option| option.about);
            for about in abouts.chain([entry.about]) {
                for one in [about.en, about.ko] {
                    assert!((1..=100).contains(&one.chars().count()), "{one}");
                }
            }
            if let [group, _] = entry.path {
                assert!(GROUPS.iter().any(|(name, _)| name == group), "{}", group.en);
            }
            let late = entry.options.iter().skip_while(|option| option.required);
            assert!(
                late.clone().all(|option| !option.required),
                "Discord wants required ones first"
            );
        }
    }

    #[test]
    fn a_command_is_found_by_its_words() {
        assert_eq!(find(&["sprint", "start"]).map(|it| it.right), Some(Right::Approve));
        assert_eq!(find(&["sprint"]), None);
        assert_eq!(find(&["explode"]), None);
    }
}
