//! What people write to a request after it was asked, and what short words of theirs say.

use serde::{Deserialize, Serialize};

use crate::domain::ids::{ChannelId, MessageId, UserId};
use crate::domain::role::Role;
use crate::domain::time::Timestamp;

/// A message that belongs to a running request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Followup {
    /// The message; editing it edits the text, deleting it withdraws it.
    pub message_id: Option<MessageId>,
    /// Where it was written; none of one that came by a command, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel_id: Option<ChannelId>,
    /// Who wrote it.
    pub author_name: String,
    /// Their id; none of the operator's, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author_id: Option<UserId>,
    /// What they wrote.
    pub body: String,
    /// Files that came with it, as workspace-relative hints.
    #[serde(default)]
    pub artifacts: Vec<String>,
    /// When.
    pub at: Timestamp,
    /// The roles that took it into their conversation while they worked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heard_by: Vec<Role>,
    /// Whether somebody else wrote it than who asked, and not the operator.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_others: bool,
    /// A question that somebody had before deciding: it takes no place of those that people may write.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_gate: bool,
    /// Whether that is no question, but says what a plan should be like.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub guides: bool,
}

/// Words by which somebody says that a message is not for the run under way.
const WAITS: [&str; 3] = ["later:", "wait:", "나중에:"];

/// How somebody begins who will answer later, in English, after words that come before.
const PROMISES: [&str; 3] = ["i ll ", "i will ", "let me "];
const BEFORE: [&str; 7] = ["ok ", "okay ", "sure ", "sorry ", "well ", "tomorrow ", "later "];
/// And how they go on.
const PROMISED: [&str; 13] = [
    "answer",
    "reply",
    "respond",
    "get back",
    "come back",
    "think",
    "check",
    "look",
    "let you know",
    "tell you",
    "decide",
    "ask",
    "see",
];
/// Words that may stand behind that.
const BEHIND_PROMISE: usize = 3;
/// What they say in Korean: a promise, or a later time and that they will, without a choice.
const KOREAN_PROMISES: [&str; 9] = [
    "답할게",
    "답변할게",
    "답변드릴게",
    "알려줄게",
    "알려드릴게",
    "말씀드릴게",
    "생각해볼게",
    "확인할게",
    "확인해볼게",
];
const KOREAN_LATER: [&str; 3] = ["나중에", "내일", "이따"];
const KOREAN_WILL: [&str; 7] =
    ["할게요", "할게", "드릴게요", "드릴게", "볼게요", "볼게", "하겠습니다"];

/// Words by which somebody says that it is done.
const DONE: [&str; 8] =
    ["done", "fixed", "ready", "again", "retry", "try", "committed", "installed"];
const KOREAN_DONE: [&str; 6] = ["했어", "했습", "완료", "됐", "다시", "시도"];

/// Words that alone put it off.
const LATER: [&str; 5] = ["later", "soon", "나중에", "잠시만요", "잠시만"];

/// Words of thanks.
const THANKS: [&str; 14] = [
    "thanks",
    "thank",
    "thx",
    "감사합니다",
    "감사해요",
    "감사드립니다",
    "감사",
    "고마워요",
    "고맙습니다",
    "수고하셨습니다",
    "수고하셨어요",
    "수고했어요",
    "고생하셨습니다",
    "고생하셨어요",
];
/// Words of praise.
const PRAISE: [&str; 12] = [
    "nice",
    "great",
    "cool",
    "perfect",
    "good",
    "lgtm",
    "wow",
    "awesome",
    "좋아요",
    "좋습니다",
    "좋네요",
    "굿",
];
/// Words of assent, which may answer a question.
const ASSENT: [&str; 6] = ["ok", "okay", "yes", "네", "넵", "오케이"];
/// Words that say nothing more beside those.
const AROUND_THANKS: [&str; 19] = [
    "you", "so", "very", "much", "a", "lot", "looks", "to", "me", "all", "team", "job", "work",
    "well", "done", "everyone", "정말", "너무", "다들",
];

/// The words of a message in lowercase letters. Mentions, and emoji of a server, are none.
fn said(words: &str) -> Vec<&str> {
    let mut parts = words.split('<');
    let first = parts.next().unwrap_or_default();
    let said = std::iter::once(first).chain(parts.map(|part| match part.split_once('>') {
        Some((token, behind)) if token.starts_with(['@', '#', ':']) || token.starts_with("a:") => {
            behind
        }
        Some(_) | None => part,
    }));
    said.flat_map(|part| part.split(|letter: char| !letter.is_alphanumeric()))
        .filter(|word| !word.is_empty())
        .collect()
}

impl Followup {
    /// Whether there is something in it for the team to heed.
    #[must_use]
    pub fn asks_for_something(&self) -> bool {
        let words = self.body.to_lowercase();
        let said = said(&words);
        let says_nothing =
            |word: &&str| [&THANKS[..], &PRAISE, &ASSENT].iter().any(|known| known.contains(word));
        let is_thanks = said.is_empty() || said.iter().any(says_nothing);
        let is_known = |word: &&str| says_nothing(word) || AROUND_THANKS.contains(word);
        !self.artifacts.is_empty() || !is_thanks || !said.iter().all(is_known)
    }

    /// Whether it is thanks, or no words at all, and asks for nothing.
    #[must_use]
    pub fn is_thanks(&self) -> bool {
        let words = self.body.to_lowercase();
        let said = said(&words);
        let thanks = said.is_empty() || said.iter().any(|word| THANKS.contains(word));
        thanks && !self.asks_for_something()
    }

    /// Whether it says no more than that an answer comes later.
    #[must_use]
    pub fn puts_off(&self) -> bool {
        let words = self.body.to_lowercase();
        let said = said(&words);
        let flat = said.join(" ");
        let mut rest = flat.as_str();
        while let Some(behind) = BEFORE.iter().find_map(|it| rest.strip_prefix(it)) {
            rest = behind;
        }
        let promised = PROMISES.iter().find_map(|it| rest.strip_prefix(it));
        let promised = promised.is_some_and(|rest| {
            let behind = PROMISED.iter().find_map(|it| rest.strip_prefix(it));
            let is_whole = |it: &&str| it.is_empty() || it.starts_with(' ');
            let behind = behind.filter(is_whole);
            behind.is_some_and(|it| it.split_whitespace().count() <= BEHIND_PROMISE)
        });
        let joined = said.concat();
        let is_later = |word: &&str| KOREAN_LATER.iter().any(|it| word.starts_with(it));
        let wills = |word: &&str| KOREAN_WILL.iter().any(|it| word.ends_with(it));
        let promises = promised
            || KOREAN_PROMISES.iter().any(|it| joined.contains(it))
            || said.iter().any(wills)
                && said.iter().any(is_later)
                && !said.iter().any(|word| word.ends_with('로'));
        said.len() <= 12 && promises || said.len() == 1 && LATER.contains(&said[0])
    }

    /// Whether it is short and says that something is done, or is to be tried again.
    #[must_use]
    pub fn says_done(&self) -> bool {
        let words = self.body.to_lowercase();
        let said = said(&words);
        let is_done =
            |word: &&str| DONE.contains(word) || KOREAN_DONE.iter().any(|it| word.contains(it));
        said.len() <= 12 && said.iter().any(is_done)
    }

    /// Whether it is a yes and no more: it asks for nothing, but where something was asked.
    #[must_use]
    pub fn is_assent(&self) -> bool {
        let words = self.body.to_lowercase();
        let said = said(&words);
        !said.is_empty() && said.iter().all(|word| ASSENT.contains(word))
    }

    /// Words that came by a command.
    #[must_use]
    pub fn command(author: &str, body: String, at: Timestamp) -> Self {
        Self {
            message_id: None,
            channel_id: None,
            author_name: author.to_owned(),
            author_id: None,
            body,
            artifacts: Vec::new(),
            at,
            heard_by: Vec::new(),
            is_others: false,
            at_gate: false,
            guides: false,
        }
    }

    /// What it is known by: its message, or, where it came by a command, its instant in milliseconds, which no
    /// message has for an id.
    #[must_use]
    pub fn key(&self) -> MessageId {
        let instant = || MessageId(u64::try_from(self.at.millis()).unwrap_or_default());
        self.message_id.unwrap_or_else(instant)
    }

    /// Whether its author wants it to wait until the step under way is over.
    #[must_use]
    pub fn waits(&self) -> bool {
        let words = self.body.trim_start().to_lowercase();
        WAITS.iter().any(|word| words.starts_with(word))
    }
}
