//! Words that are commands when a message is nothing but them: `status`, `status <request>` and
//! `cancel <request>`. They cost no agent's turn (`spec/teams.md` 13.E #73).

use serde_json::json;

use super::authorize::{Resource, authorize};
use super::say::CatalogText;
use super::turn::Turn;
use super::withdrawal::{Withdrawal, withdraw};
use super::{intent, parse, sprint, standing};
use crate::domain::actor::Actor;
use crate::domain::ids::RequestId;
use crate::domain::incoming::Message;
use crate::domain::intent::Intent;
use crate::domain::language::Language;
use crate::domain::request::ReplyRoute;
use crate::domain::sprint::Kickoff;

/// A command in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TextCommand {
    /// What is open; all of it, or one request.
    Status(Option<RequestId>),
    /// Withdraw a request.
    Cancel(RequestId),
    /// Begin a sprint: words that ask for it, with a line that names the milestone.
    SprintStart(Box<parse::Kickoff>),
    /// End the running sprint.
    SprintStop,
    /// How the sprint stands.
    SprintStatus,
}

/// Whether words are nothing but a command: no request comes of them.
#[must_use]
pub fn are_a_command(text: &str) -> bool {
    read(text).is_some()
}

/// Reads a message that is nothing but a command. Anything else is for the orchestrator.
pub(super) fn read(text: &str) -> Option<TextCommand> {
    if let Some(word) = read_sprint(text) {
        return Some(word);
    }
    let mut words = text.split_whitespace();
    let (verb, object) = (words.next()?.to_lowercase(), words.next());
    if words.next().is_some() {
        return None;
    }
    let object = object.map(|id| RequestId::parse(id.trim_matches('`'))).transpose().ok()?;
    // A second word that names no request makes it a sentence: "status sprint", "cancel that".
    let object =
        object.map(|id| id.looks_made().then_some(id)).map_or(Some(None), |id| id.map(Some))?;
    match (verb.as_str(), object) {
        ("status" | "상태", object) => Some(TextCommand::Status(object)),
        ("cancel" | "취소", Some(id)) => Some(TextCommand::Cancel(id)),
        _ => None,
    }
}

/// The request that a message wants to go on, by its id, open or ended.
pub(super) fn resumed_request(text: &str) -> Option<RequestId> {
    if intent::read(text).intent != Some(Intent::Resume) {
        return None;
    }
    ids(text).next()
}

/// Whether a message says that the request that it is written to is to end: no more than that, or that first.
pub(super) fn asks_to_end(text: &str) -> bool {
    if only_asks_to_end(text) {
        return true;
    }
    // With a reason behind it.
    let text = text.to_lowercase();
    let words = text.split(is_between_words).filter(|word| !word.is_empty());
    let begun = words.skip_while(|word| ["please", "ok", "okay", "yes", "just"].contains(word));
    let begun: Vec<&str> = begun.take(3).collect();
    match begun[..] {
        ["cancel" | "withdraw" | "abort", "it" | "this" | "that", ..]
        | ["cancel" | "withdraw" | "abort", "the" | "my", "request"] => true,
        ["cancel" | "withdraw" | "abort", id, ..] => ids(id).next().is_some(),
        _ => false,
    }
}

/// Whether a message says no more than that the request that it is written to is to end.
pub(super) fn only_asks_to_end(text: &str) -> bool {
    const FILLERS: [&str; 34] = [
        "please",
        "pls",
        "this",
        "it",
        "that",
        "the",
        "request",
        "my",
        "now",
        "just",
        "can",
        "could",
        "you",
        "we",
        "then",
        "ok",
        "okay",
        "yes",
        "i",
        "want",
        "to",
        "would",
        "like",
        "thanks",
        "d",
        "be",
        "no",
        "wait",
        "right",
        "immediately",
        "here",
        "actually",
        "all",
        "everything",
    ];
    const VERBS: [&str; 4] = ["cancel", "withdraw", "abort", "stop"];
    const KOREAN: [&str; 31] = [
        "이",
        "그",
        "저",
        "이거",
        "이건",
        "이것",
        "이것은",
        "그거",
        "그건",
        "요청",
        "요청을",
        "요청은",
        "작업",
        "작업을",
        "작업은",
        "그냥",
        "좀",
        "지금",
        "여기서",
        "네",
        "넵",
        "아니",
        "아니요",
        "아뇨",
        "다",
        "전부",
        "모두",
        "잠깐",
        "잠깐만",
        "해",
        "바랍니다",
    ];
    const KOREAN_BEGINS: [&str; 11] =
        ["해주", "해줘", "해요", "주시", "주세", "주십", "주실", "줘", "줄래", "부탁", "하겠"];
    const KOREAN_VERBS: [&str; 8] = ["하", "해", "할", "합", "부탁", "바랍", "시켜", "요"];
    // Sayings that mean it, as one word each.
    const SAYINGS: [(&str, &str); 11] = [
        ("’", "'"),
        ("do not do", "don't do"),
        ("never mind", "cancel"),
        ("nevermind", "cancel"),
        ("forget it", "cancel"),
        ("forget about it", "cancel"),
        ("don't do it", "cancel"),
        ("don't do this", "cancel"),
        ("don't do that", "cancel"),
        ("하지 마", "하지마"),
        ("하지 말", "하지말"),
    ];
    const NOUNS: [&str; 5] = ["취소", "철회", "중단", "중지", "그만"];
    const STOPS: [&str; 9] =
        ["하지마", "하지말", "멈춰", "멈추세", "멈추십", "멈추어", "그만두", "그만둬", "관둬"];
    // Of what is not to be done: the words behind it say what is.
    const RATHER: [&str; 1] = ["하지말고"];
    let text = text.to_lowercase();
    let text = SAYINGS.iter().fold(text, |text, (saying, word)| text.replace(saying, word));
    let words: Vec<&str> = text.split(is_between_words).filter(|word| !word.is_empty()).collect();
    let is_noun = |word: &str| {
        let bare = word.trim_end_matches(['는', '은', '를', '을']);
        NOUNS.contains(&bare)
    };
    // Whoever writes not to cancel says the opposite.
    let is_kept = words.windows(2).any(|two| is_noun(two[0]) && two[1].starts_with("하지"));
    let is_verb = |word: &str| {
        let ends = |end: &str| {
            end.is_empty()
                || KOREAN_VERBS.iter().any(|it| end.starts_with(it)) && !end.starts_with("하지")
        };
        VERBS.contains(&word)
            || NOUNS.iter().filter_map(|it| word.strip_prefix(it)).any(ends)
            || STOPS.iter().any(|it| word.starts_with(it)) && !RATHER.contains(&word)
    };
    let is_filler = |word: &str| {
        FILLERS.contains(&word)
            || KOREAN.contains(&word)
            || RATHER.contains(&word)
            || KOREAN_BEGINS.iter().any(|it| word.starts_with(it))
            || ids(word).next().is_some()
    };
    !is_kept
        && words.iter().any(|word| is_verb(word))
        && words.iter().all(|word| is_verb(word) || is_filler(word))
}

/// Whether a text names another one: all of its words stand in it, one after another. Beside a short word, such as "no",
/// nothing may stand but thanks.
pub(super) fn names(text: &str, other: &str) -> bool {
    const COURTESY: [&str; 8] =
        ["thanks", "thank", "you", "thx", "please", "pls", "감사합니다", "감사해요"];
    let (text, other) = (text.to_lowercase(), other.to_lowercase());
    let words: Vec<&str> = text.split(is_between_words).filter(|it| !it.is_empty()).collect();
    let other: Vec<&str> = other.split(is_between_words).filter(|it| !it.is_empty()).collect();
    // Korean words have endings.
    let is_same = |(word, wanted): (&&str, &&str)| {
        word == wanted || !wanted.is_ascii() && word.starts_with(wanted)
    };
    match other[..] {
        [] => false,
        [one] if one.is_ascii() && one.len() <= 3 => {
            words.split_first().is_some_and(|(first, rest)| {
                *first == one && rest.iter().all(|word| COURTESY.contains(word))
            })
        }
        _ => words.windows(other.len()).any(|run| run.iter().zip(&other).all(is_same)),
    }
}

/// Whether a message that resumes a request says nothing but that and its id.
pub(super) fn only_resume(text: &str) -> bool {
    const ENGLISH: [&str; 16] = [
        "please", "resume", "continue", "carry", "pick", "go", "on", "up", "with", "the",
        "request", "now", "again", "work", "it", "then",
    ];
    const KOREAN: [&str; 9] = ["이어", "계속", "재개", "진행", "해", "주", "줘", "요청", "다시"];
    let text = text.to_lowercase();
    let mut words = text.split(is_between_words).filter(|word| !word.is_empty());
    words.all(|word| {
        ENGLISH.contains(&word)
            || KOREAN.iter().any(|known| word.starts_with(known))
            || ids(word).next().is_some()
    })
}

/// Whether a message says no more than that something is approved.
pub(super) fn only_approves(text: &str) -> bool {
    const AROUND: [&str; 14] = [
        "yes", "please", "i", "it", "this", "that", "is", "the", "commit", "plan", "ok", "okay",
        "네", "넵",
    ];
    let text = text.to_lowercase();
    let words: Vec<&str> = text.split(is_between_words).filter(|word| !word.is_empty()).collect();
    let approves = |word: &&str| {
        ["approve", "approved", "lgtm"].contains(word)
            || ["승인", "승인합니다", "승인해", "승인할게요", "승인해요"].contains(word)
    };
    let is_around = |word: &&str| {
        AROUND.contains(word)
            || ["주세", "줘", "주시", "합니다"].iter().any(|it| word.starts_with(it))
    };
    words.iter().any(approves) && words.iter().all(|word| approves(word) || is_around(word))
}

/// Whether a message says no more than that what was to end goes on: as a no to that question, or by itself.
pub(super) fn lets_go_on(text: &str) -> bool {
    const NO: [&str; 6] = ["no", "nope", "nah", "아니", "아니요", "아뇨"];
    const NOT: [&str; 9] = ["don", "dont", "not", "never", "말고", "말아", "마", "마요", "마세요"];
    const END: [&str; 4] = ["cancel", "withdraw", "end", "stop"];
    const KOREAN_END: [&str; 5] = ["취소", "끝내", "그만두", "멈추", "중단"];
    const GO: [&str; 7] = ["go", "going", "continue", "resume", "carry", "계속하지", "진행하지"];
    const AROUND: [&str; 8] = ["t", "do", "keep", "going", "그냥", "하지", "주세요", "그러지"];
    if only_asks_to_end(text) {
        return false;
    }
    let lower = text.to_lowercase().replace('’', "'");
    let words: Vec<&str> = lower.split(is_between_words).filter(|word| !word.is_empty()).collect();
    let ends = |word: &&str| END.contains(word) || KOREAN_END.iter().any(|it| word.starts_with(it));
    let is_known = |word: &&str| {
        [&NO[..], &NOT, &AROUND].iter().any(|known| known.contains(word))
            || ends(word)
            || only_resume(word)
    };
    let has = |list: &[&str]| words.iter().any(|word| list.contains(word));
    let is_no = match (has(&NOT), words.iter().any(ends)) {
        // "Don't stop", and not "don't go on".
        (true, does_end) => does_end && !(has(&GO) && !has(&NO) && !has(&["말고"])),
        (false, does_end) => !does_end && (has(&NO) || has(&["keep", "going"])),
    };
    let goes = |word: &&str| {
        GO.contains(word) || ["계속", "이어", "재개", "진행"].iter().any(|it| word.starts_with(it))
    };
    let resumes = only_resume(text) && words.iter().any(goes);
    resumes || is_no && words.iter().all(is_known)
}

/// Whether a message says no more than yes, however politely or impatiently.
pub(super) fn says_yes(text: &str) -> bool {
    const YES: [&str; 22] = [
        "yes",
        "yep",
        "yeah",
        "y",
        "ok",
        "okay",
        "sure",
        "please",
        "now",
        "do",
        "it",
        "네",
        "넵",
        "예",
        "응",
        "그래요",
        "그렇게",
        "오케이",
        "해",
        "주세요",
        "지금",
        "바로",
    ];
    const POLITE: [&str; 4] = ["해주", "해줘", "부탁", "줘"];
    let text = text.to_lowercase();
    let mut words = text.split(is_between_words).filter(|word| !word.is_empty()).peekable();
    words.peek().is_some()
        && words.all(|word| YES.contains(&word) || POLITE.iter().any(|it| word.starts_with(it)))
}

fn is_between_words(c: char) -> bool {
    !c.is_alphanumeric() && c != '-'
}

/// The ids of requests that a text names.
fn ids(text: &str) -> impl Iterator<Item = RequestId> {
    let words = text.split(is_between_words);
    words.filter_map(|word| RequestId::parse(word).ok()).filter(RequestId::looks_made)
}

/// Words about sprints that leave nothing open; others are for the orchestrator to understand.
fn read_sprint(text: &str) -> Option<TextCommand> {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    match flat.as_str() {
        "sprint status" | "status sprint" | "스프린트 상태" => {
            return Some(TextCommand::SprintStatus);
        }
        "stop sprint" | "sprint stop" | "finalize sprint" | "스프린트 종료" | "스프린트 마무리" =>
        {
            return Some(TextCommand::SprintStop);
        }
        _ => {}
    }
    let begins = text.lines().next().is_some_and(only_sprint_start);
    let kickoff = parse::parse_kickoff(text);
    (begins && parse::names_milestone(text) && !kickoff.milestone.is_empty())
        .then(|| TextCommand::SprintStart(Box::new(kickoff)))
}

/// Whether a line says that a sprint begins, and nothing else: neither that it is not to begin, nor a question, nor what
/// has a sprint in its name.
fn only_sprint_start(line: &str) -> bool {
    const ENGLISH: [&str; 23] = [
        "please", "start", "begin", "kickoff", "kick", "off", "run", "open", "create", "a", "the",
        "new", "next", "our", "sprint", "now", "today", "lets", "let", "s", "us", "team", "with",
    ];
    const KOREAN: [&str; 16] = [
        "스프린트",
        "시작",
        "열어",
        "열기",
        "만들",
        "생성",
        "새",
        "다음",
        "이번",
        "지금",
        "오늘",
        "바로",
        "해",
        "주세요",
        "줘",
        "부탁",
    ];
    let line = line.to_lowercase();
    let mut words = line.split(is_between_words).filter(|word| !word.is_empty());
    let is_open = line.contains(['?', '？'])
        || ["지마", "지 마", "말", "않"].iter().any(|no| line.contains(no));
    parse::is_sprint_start_text(&line)
        && !is_open
        && words.all(|word| {
            ENGLISH.contains(&word)
                || KOREAN.iter().any(|known| word.starts_with(known))
                || word.chars().all(|letter| letter.is_ascii_digit())
        })
}

/// What came with a command that was written as words.
pub(super) struct WrittenCommand<'a> {
    /// The words.
    pub(super) text: &'a str,
    /// Whether nobody else reads the answer, as everybody does in a channel.
    pub(super) is_alone: bool,
    pub(super) artifacts: Vec<String>,
    pub(super) missing_files: u32,
    pub(super) reply_route: ReplyRoute,
}

impl<'a> WrittenCommand<'a> {
    /// Of a message.
    pub(super) fn of(message: &'a Message) -> Self {
        Self {
            text: &message.content,
            is_alone: message.guild_id.is_none(),
            artifacts: super::message::saved(message),
            missing_files: super::message::missing_files(message),
            reply_route: super::message::route(message),
        }
    }
}

/// What is answered: a catalog key and its values; an error where it is not done.
pub(super) fn obey(
    turn: &mut Turn<'_>,
    actor: &Actor,
    command: WrittenCommand<'_>,
    word: TextCommand,
) -> Result<CatalogText, CatalogText> {
    let alone = command.is_alone.then_some(actor);
    match word {
        TextCommand::Status(None) => Ok(("overview", standing::overview(turn.before(), alone))),
        TextCommand::Status(Some(id)) => match turn.request(&id) {
            Some(found) if !found.status.is_terminal() => {
                Ok(("overview", standing::overview_of(turn.before(), found, alone)))
            }
            Some(_) | None => Err(unknown(&id)),
        },
        TextCommand::SprintStatus => {
            Ok(("sprint.status", standing::sprint(turn.before(), turn.zone())))
        }
        TextCommand::SprintStop => sprint::commands::may(turn, actor)
            .and_then(|granted| sprint::commands::stopped(turn, &granted, false)),
        TextCommand::SprintStart(written) => {
            let kickoff = Kickoff {
                milestone: written.milestone,
                brief: written.brief,
                requirements: written.requirements,
                artifacts: command.artifacts,
                missing_files: command.missing_files,
                request_text: command.text.to_owned(),
                source_request_id: None,
                reply_route: command.reply_route,
                language: Language::of(command.text),
            };
            sprint::commands::may(turn, actor)
                .and_then(|granted| sprint::commands::started(turn, &granted, kickoff))
        }
        TextCommand::Cancel(id) => {
            let Some(found) = turn.request(&id).cloned() else { return Err(unknown(&id)) };
            let Ok(granted) = authorize(turn.policy, actor, Resource::Request(&found)) else {
                return Err(("cancel.not_yours", json!({ "request_id": id.as_str() })));
            };
            let (became, values) = withdraw(turn, &granted, &found);
            match became {
                Withdrawal::Done | Withdrawal::Landing => Ok((became.key(), values)),
                Withdrawal::Ended => Err((became.key(), values)),
            }
        }
    }
}

fn unknown(id: &RequestId) -> CatalogText {
    ("unknown_request", json!({ "request_id": id.as_str() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lets_go_on_says_no_more_than_that() {
        for text in [
            "go on",
            "no",
            "No, don't cancel it",
            "don't stop",
            "keep going please",
            "계속해 주세요",
            "아니요",
            "아니요, 계속 진행해 주세요",
            "취소하지 마세요",
            "취소하지 말고 계속해 주세요",
        ] {
            assert!(lets_go_on(text), "{text}");
        }
        for text in [
            "",
            "yes",
            "stop",
            "don't go on",
            "no, do not continue",
            "계속하지 마세요",
            "하지 마세요",
            "마무리해 주세요",
            "취소해 주세요",
            "please",
            "now!",
            "해 주세요",
            "no, make it blue",
            "아니요, 파란색으로 해 주세요",
        ] {
            assert!(!lets_go_on(text), "{text}");
        }
    }

    #[test]
    fn words_of_approval_are_no_more_than_that() {
        for text in ["approved", "yes, approve it please", "승인합니다", "네, 승인해 주세요"]
        {
            assert!(only_approves(text), "{text}");
        }
        for text in ["approve it when it is blue", "yes", "승인 화면을 고쳐 주세요"] {
            assert!(!only_approves(text), "{text}");
        }
    }

    #[test]
    fn only_a_message_that_is_nothing_else_is_a_command() {
        let id = RequestId::parse("20260324-1a2b3c4d").unwrap();
        assert_eq!(read(" Status\n"), Some(TextCommand::Status(None)));
        assert_eq!(read("상태"), Some(TextCommand::Status(None)));
        assert_eq!(read("status `20260324-1a2b3c4d`"), Some(TextCommand::Status(Some(id.clone()))));
        assert_eq!(read("cancel 20260324-1a2b3c4d"), Some(TextCommand::Cancel(id)));
        assert_eq!(read("sprint status"), Some(TextCommand::SprintStatus));
        assert_eq!(read("스프린트 종료"), Some(TextCommand::SprintStop));
        let start = "start sprint\nmilestone: Sign in\nrequirements:\n- by mail";
        let Some(TextCommand::SprintStart(kickoff)) = read(start) else { panic!("not a start") };
        assert_eq!((kickoff.milestone.as_str(), kickoff.requirements.len()), ("Sign in", 1));
        assert_eq!(read("please start a sprint about sign in"), None, "for the orchestrator");
        for start in [
            "please start the next sprint now\nMilestone: Sign in",
            "스프린트 시작해 주세요\n마일스톤: 로그인",
        ] {
            assert!(matches!(read(start), Some(TextCommand::SprintStart(_))), "{start}");
        }
        for other in [
            "Please don't start the sprint yet, only tell me what you think.\nmilestone: Payments",
            "스프린트 시작은 아직 하지 마시고 검토만 해주세요\n마일스톤: 로그인",
            "스프린트 시작하지마세요\n마일스톤: 로그인",
            "start the sprint now?\nmilestone: Payments",
            "Create a sprint report page\nMilestone names should be bold",
            "스프린트 목록 화면 만들어줘\n마일스톤 이름도 보여줘",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
        for sentence in ["cancel", "cancel that", "what is the status", "", "status of it"] {
            assert_eq!(read(sentence), None, "{sentence}");
        }
    }
}
