//! What the text of a request and its item says that is to be done with files and dependencies.

use std::sync::LazyLock;

use regex::Regex;

use crate::domain::item::Item;
use crate::domain::request::{Followup, Request};

/// The words of a request and its item.
pub(super) struct RequestText {
    /// In lower case.
    sentences: Vec<String>,
    /// Paths that a person's plan lets it change.
    paths: Vec<String>,
}

/// What may stand between a verb and the name of a file, so that the one still means the other.
const BETWEEN: &str = r"the|a|an|this|that|these|those|our|all|both|of|file|files|module|script|folder|old|unused|dead|stale|obsolete|legacy|now|also|and|or|completely|entirely|\S*[./]\S*";
/// After these, up to a comma or in a list, nothing is told to go.
const NOT: &str = r"(?:\bnot|n't|\bdont|\bnever|\bwithout|\bavoid|\bcannot|\bno need to|\binstead of|\brather than)\b(?:[^,]*|.*\b(?:or|nor)\s+)$|\bfrom\s+$";
/// After these a sentence tells a condition, a wish that it may not be, or asks.
const CONDITION: &str = r"\b(?:if|when|whenever|unless|while|after|before|why|who|which|prevent\w*|stop\w*|refus\w*|revert\w*)\b";
/// What is done to a file that nobody wants done.
const DEED: &str = r"(?:touch|chang|modif|edit|alter|mov|delet|remov|renam|rewrit|rewrot|refactor|break|bring|add|restor)\w*";
/// A sentence that wants to know something.
const ASKS: &str = r"^(?:(?:and|but|so|hm+|ok(?:ay)?|sorry|wait)\b[\s,]*)*(?:(?:why|how come)\b|(?:who|what|which|when|where|is|are|was|were|does|did|has|have|should|must)\b.*\?)|^(?:.*\s)?(?:왜|어째서)\s.*(?:\?|요|죠|지|나|니|냐)[.?!]*$|(?:인가요|한가요|건가요|했나요|됐나요|되었나요|까요|니까)\?";
/// A wish that is put as a question.
const POLITE: &str = r"\b(?:could|can|would|will) (?:you|we)\b|\bis it possible\b|\b(?:what|how) about\b|주시|주실|줄 수|줄래|주겠";
/// A file in a list.
const PATH: &str = r"[`'\x22]?[\w@-]*[./][\w./@-]*[`'\x22]?";
/// Words after which a file is named to be left alone.
const SPARED: &str = r"\bexcept(?:\s+for)?\b|\bbut\s+not\b|\bno\s+(?:changes?|edits?|modifications?)\s+(?:to|in|of|on)\b";

/// How a sentence goes on after the name of a file that is told to go.
const AFTER: &str = r"^[`'\x22*)]*(?:$|[.,;:!)]|\s+(?:files?|and|or|with|into|to|by|as|from|in favou?r|completely|entirely|too|now|then|please)\b)";

/// How sentences tell files to go, and words that say what a name is.
struct Patterns {
    delete_before: Regex,
    deleted_after: Regex,
    korean_after: Regex,
    korean_not: Regex,
    not: Regex,
    spared_before: Regex,
    spared_after: Regex,
    left_before: Regex,
    left_after: Regex,
    korean_spared: Regex,
    condition: Regex,
    asks: Regex,
    polite: Regex,
    ends: Regex,
    kind_before: Regex,
    kind_after: Regex,
    used_before: Regex,
    added_before: Regex,
    added_after: Regex,
    korean_used: Regex,
    entry: Regex,
}

static PATTERNS: LazyLock<Option<Patterns>> = LazyLock::new(|| {
    let new = |pattern: &str| Regex::new(pattern).ok();
    let before = format!(
        r"\b(?:delet(?:e|ing)|remov(?:e|ing)|eras(?:e|ing)|discard(?:ing)?|drop(?:ping)?|retir(?:e|ing)|purg(?:e|ing)|prun(?:e|ing)|replac(?:e|ing)|renam(?:e|ing)|mov(?:e|ing)|inlin(?:e|ing)|convert(?:ing)?|merg(?:e|ing)|split(?:ting)?|kill|rm|get(?:ting)? rid of)(?:[\s,:`'\x22*(]+(?:{BETWEEN}))*[\s,:`'\x22*(]*$"
    );
    let after = format!(
        r"^[`'\x22*)]*(?:[\s,]+(?:{BETWEEN}))*[\s,]+(?:should|must|can|may|could|has to|have to|needs? to|is to|are to)\s+(?:(?:now|also)\s+)?(?:be\s+(?:deleted|removed|erased|discarded|dropped|retired|replaced|gone)\b|go(?: away)?(?:$|[.,;!]))"
    );
    let done =
        r"(?:해(?:\s?(?:줘|주|라|요|서|도|야)|\b)|하(?:고|자|기|세요|십시오|시고|여)|할\s?것|\b)";
    let korean = format!(
        r"^[`'\x22*)]*\s?(?:파일|모듈|스크립트|폴더)?(?:을|를|은|는|이|가|도|만|과|와|랑|하고|까지)?[\s,]*(?:(?:\S*[./]\S*|파일\S{{0,2}}|모두|전부|다|이제|그냥|완전히|및|그리고)[\s,]+)*(?:(?:삭제|제거|대체){done}|(?:지우|버리|치우|옮기|없애)(?:고|자|기|세요|십시오|시고)|(?:지워|버려|치워|옮겨|없애)(?:\s?(?:줘|주|라|요|서|도|야)|\b))"
    );
    let list = r"(?:[`'\x22]?[\w.@/-]+[`'\x22]?(?:,\s*|,?\s+and\s+))*[`'\x22]?$";
    let uses =
        format!(r"\b(?:us(?:e|ing)|install(?:ing)?|import(?:ing)?|depend(?:s|ing)? on)\s+{list}");
    let adds =
        format!(r"\b(?:add(?:ing)?|with|upgrad(?:e|ing)|bump(?:ing)?|switch(?:ing)? to)\s+{list}");
    let listed = format!(r"(?:{PATH}(?:\s*,\s*(?:and\s+|or\s+|nor\s+)?|\s+(?:and|or|nor)\s+))");
    let spared = format!(
        r"(?:(?:\bnot|n't|\bdont|\bnever|\bwithout|\bavoid)\s+(?:to\s+|ever\s+|even\s+)?{DEED}\b|{SPARED})(?:[^,;]*|\s*{listed}+)$|\b(?:leav(?:e|ing)|keep(?:ing)?)\b[^,;]*\b(?:alone|untouched|unchanged|out)\s*:\s*{listed}*$"
    );
    let spared_after = format!(
        r"^[`'\x22*)]*\s+(?:(?:must|should|shall|may|can|is|are|has|have|needs?)(?:\s+not|n't|\s+never)(?:\s+to)?(?:\s+be\s+{DEED}|\s+(?:chang|mov)\w*\s*(?:$|[.,;!]))|(?:(?:must|should|has to|have to|needs to|is to|can)\s+(?:stay|remain|be\s+(?:left|kept))|stays|remains)\s+(?:alone|untouched|unchanged|as\s+(?:it|they)\s+(?:is|are)|as\s+is|out)\b)"
    );
    let left = format!(r"\b(?:leav(?:e|ing)|keep(?:ing)?)\b(?:[^,;]*|\s*{listed}+)$");
    let left_after = format!(
        r"^[`'\x22*)]*(?:(?:\s*,\s*(?:and\s+)?|\s+(?:and|or)\s+){PATH})*\s+(?:alone|untouched|unchanged|as\s+(?:it|they)\s+(?:is|are)|as\s+is|out)\b"
    );
    Some(Patterns {
        delete_before: new(&before)?,
        deleted_after: new(&after)?,
        korean_after: new(&korean)?,
        korean_not: new(
            r"^[^,]{0,24}(?:금지|필요|말고|지\s?(?:는|도|를)?\s?(?:말|마|않|못)|안\s?[돼되된됩]|못|하지|마세요|마라|말아)",
        )?,
        not: new(NOT)?,
        spared_before: new(&spared)?,
        spared_after: new(&spared_after)?,
        left_before: new(&left)?,
        left_after: new(&left_after)?,
        korean_spared: new(
            r"^[`'\x22*)]*\s?(?:파일)?(?:은|는|을|를|이|가|도|만|과|와|랑|이랑)?\s?(?:(?:절대로?|그냥|전혀|제발|더|다시|\S*[./]\S*)\s)*(?:(?:건드리|건들|만지|손\s?대|\S{0,6}하|바꾸|고치|지우|옮기|되살리|되돌리|만들|쓰)지\s?(?:는\s?|도\s?)?(?:말|마|않)|\S{0,4}(?:은|는)?\s?(?:금지|하지\s?(?:말|마))|\S{0,4}(?:하|바꾸|고치|건드리|지우|만지)면\s?안\s?[돼되된됩]|(?:건드릴|\S{0,4}할)\s?필요\s?(?:는|가)?\s?없|그대로\s?(?:두|둬|둘|놔|놓|유지|남)|제외|빼고|놔(?:두|둬|둘))",
        )?,
        condition: new(CONDITION)?,
        asks: new(ASKS)?,
        polite: new(POLITE)?,
        ends: new(AFTER)?,
        kind_before: new(r"\b(?:crate|package|library|gem|dependency|sdk)\s+[`'\x22]?$")?,
        kind_after: new(
            r"^[`'\x22]?(?:\s(?:crates?|packages?|librar(?:y|ies)|gems?|dependenc(?:y|ies)|sdk)(?:[\s,;:)]|[.!?]?$)|\s?(?:의존성|패키지|라이브러리|크레이트))",
        )?,
        used_before: new(&uses)?,
        added_before: new(&adds)?,
        added_after: new(
            r"^[`'\x22]?(?:[.,;!)]|\s*$|\s+and\s|\s+v?\d|\s+as\s+a|\s+to\s+(?:the\s+)?(?:cargo|package|dependenc|requirements|pyproject|go\.mod|gemfile))",
        )?,
        korean_used: new(
            r"^[`'\x22]?(?:를|을|로|으로)?\s?(?:추가|써|쓰|사용|설치|도입|올려|올리|업그레이드)",
        )?,
        entry: new(r"^(?:[-*•+]|\d+[.)])\s+")?,
    })
});

impl RequestText {
    pub(super) fn of(request: &Request, item: Option<&Item>) -> RequestText {
        let mut texts = match &request.params.persons_words {
            Some(words) => vec![words.as_str()],
            None => vec![request.scope.as_str(), request.body.as_str()],
        };
        if let Some(item) = item {
            texts.extend([item.title.as_str(), item.summary.as_str(), item.scope.as_str()]);
            texts.extend(item.acceptance_criteria.iter().map(|it| it.text.as_str()));
        }
        // What the planner declares is no person's word.
        let by_a_person = item.filter(|item| item.plan.is_some());
        let paths = by_a_person.map(|item| item.allowed_paths.clone()).unwrap_or_default();
        let mut sentences: Vec<String> = texts.into_iter().flat_map(sentences).collect();
        // Whoever asks about what was done, at a card or in the room, has not asked for it.
        let counts = |it: &&Followup| !it.at_gate || it.guides;
        let said = request.params.followups.iter().filter(counts);
        let said = said.flat_map(|followup| self::sentences(&followup.body));
        sentences.extend(said.filter(|sentence| !asks(sentence)));
        RequestText { sentences, paths }
    }

    /// Whether somebody said that a file is to go. A word about what is in it is none. A name without its folder says which
    /// one where it `is_alone` among all that go.
    pub(super) fn deletes(&self, path: &str, is_alone: bool) -> bool {
        self.any(path, is_to_go) || is_alone && self.any(file_name(path), is_to_go)
    }

    /// Whether somebody named a file, and not to leave it alone. A name that is a word of the language is one only with its
    /// folder.
    pub(super) fn names_file(&self, path: &str) -> bool {
        let name = file_name(path);
        let is_a_word = name.chars().all(|letter| letter.is_ascii_lowercase());
        let is_meant = |before: &str, after: &str| !is_spared(before, after);
        self.paths.iter().any(|it| it == path)
            || (path != name || !is_a_word) && self.any(path, is_meant)
            || !is_a_word && self.any(name, is_meant)
    }

    /// Whether a dependency was named. One with a source of its own (`name (git …)`) is asked about all the same, and a
    /// word of the language names one where the sentence says that it does.
    pub(super) fn names_dependency(&self, entry: &str) -> bool {
        let has_capitals = entry.chars().skip(1).any(|c| c.is_ascii_uppercase());
        let is_a_word = entry.chars().all(|c| c.is_ascii_alphabetic()) && !has_capitals;
        !entry.contains(' ')
            && self.any(entry, |before, after| !is_a_word || means_a_dependency(before, after))
    }

    /// Whether the name stands in a sentence by itself, not as a part of another path, and the words before and after it
    /// are as wanted. What follows it in another script, as Korean particles do, is no part of it.
    fn any(&self, name: &str, is_wanted: impl Fn(&str, &str) -> bool) -> bool {
        let name = name.to_lowercase().replace('_', "-");
        let is_of_path = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '/' | '@');
        self.sentences.iter().any(|sentence| {
            sentence.match_indices(&name).any(|(at, _)| {
                let (before, after) = (&sentence[..at], &sentence[at + name.len()..]);
                let mut next = after.chars();
                let goes_on = match next.next() {
                    // A full stop ends a sentence, and a point goes on.
                    Some('.') => next.next().is_some_and(is_of_path),
                    Some(next) => is_of_path(next),
                    None => false,
                };
                let before = before.strip_suffix("./").unwrap_or(before);
                let begins = before.chars().next_back();
                !goes_on
                    && !begins.is_some_and(|c| is_of_path(c) || c == '.')
                    && is_wanted(before, after)
            })
        })
    }
}

/// The sentences of a text. What stands in a list counts with the line that begins it, where that ends with a colon.
fn sentences(text: &str) -> Vec<String> {
    let Some(patterns) = PATTERNS.as_ref() else { return Vec::new() };
    let mut all = Vec::new();
    let mut head = "";
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let entry = patterns.entry.find(line).map(|mark| &line[mark.end()..]);
        if entry.is_none() {
            head = if line.ends_with(':') { line } else { "" };
        }
        let whole = entry.map_or_else(|| line.to_owned(), |entry| format!("{head} {entry}"));
        let whole = whole.to_lowercase().replace('_', "-").replace(['’', '‘'], "'");
        let mut sentence = String::new();
        for part in whole.split_inclusive([' ', '\t']) {
            sentence.push_str(part);
            if part.trim_end().ends_with(['.', '!', '?', ';']) && part.ends_with([' ', '\t']) {
                all.push(std::mem::take(&mut sentence).trim_end().to_owned());
            }
        }
        all.push(sentence);
    }
    all
}

fn asks(sentence: &str) -> bool {
    let is_asked = |it: &Patterns| it.asks.is_match(sentence) && !it.polite.is_match(sentence);
    PATTERNS.as_ref().is_some_and(is_asked)
}

fn is_spared(before: &str, after: &str) -> bool {
    PATTERNS.as_ref().is_some_and(|patterns| {
        patterns.spared_before.is_match(before)
            || patterns.spared_after.is_match(after)
            || patterns.korean_spared.is_match(after)
            || patterns.left_before.is_match(before) && patterns.left_after.is_match(after)
    })
}

fn is_to_go(before: &str, after: &str) -> bool {
    let Some(patterns) = PATTERNS.as_ref() else { return false };
    let is_told =
        |before: &str| !patterns.not.is_match(before) && !patterns.condition.is_match(before);
    if let Some(found) = patterns.delete_before.find(before) {
        return patterns.ends.is_match(after) && is_told(&before[..found.start()]);
    }
    if let Some(found) = patterns.korean_after.find(after) {
        return !patterns.korean_not.is_match(&after[found.end()..]);
    }
    patterns.deleted_after.is_match(after) && is_told(before)
}

fn means_a_dependency(before: &str, after: &str) -> bool {
    let quoted = before.ends_with('`') && after.starts_with('`');
    let says = |it: &Patterns| {
        it.kind_before.is_match(before)
            || it.kind_after.is_match(after)
            || it.used_before.is_match(before)
            || it.added_before.is_match(before) && it.added_after.is_match(after)
            || it.korean_used.is_match(after)
    };
    quoted || PATTERNS.as_ref().is_some_and(says)
}

pub(super) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(words: &str) -> RequestText {
        RequestText::of(&Request { body: words.to_owned(), ..Request::default() }, None)
    }

    #[test]
    fn words_about_a_file_are_none_that_it_may_go() {
        for words in [
            "Delete README.md",
            "please remove the old `README.md` and notes.txt.",
            "Get rid of notes.txt, docs/a.md and README.md.",
            "README.md should be deleted",
            "README.md and notes.txt can be removed",
            "These are not needed; drop README.md",
            "Delete these:\n- notes.txt\n- README.md",
            "README.md 삭제해 줘",
            "README.md를 지워줘",
            "`README.md`랑 notes.txt 파일은 없애자",
            "Replace ./README.md with docs/index.md",
            "Delete these:\n\n1. notes.txt\n2. README.md",
            "Do not touch notes.txt, delete README.md",
            "Merge README.md into docs/index.md",
            "README.md has to go",
        ] {
            assert!(said(words).deletes("README.md", true), "{words}");
        }
        for words in [
            "Fix the typo in README.md",
            "Remove the trailing blanks from README.md",
            "Remove README.md's first line",
            "README.md: remove the second paragraph",
            "Do not delete README.md",
            "Move the notes without deleting README.md",
            "README.md should not be deleted",
            "README.md에서 오타를 지워줘",
            "README.md의 마지막 줄을 삭제해 줘",
            "README.md는 지우지 마",
            "README.md 오타 삭제",
            "Delete docs/README.md",
            "Delete notes.txt. Update README.md.",
            "Change these:\n- delete notes.txt\n- README.md",
            "Add a dropdown (README.md)",
            "Fix the crash when a user deletes README.md",
            "If README.md is deleted, restore it",
            "There is no need to delete README.md",
            "I deleted README.md, bring it back",
            "README.md는 삭제하면 안 돼",
            "README.md 삭제 금지",
            "README.md 삭제는 하지 마",
            "README.md를 삭제할 필요는 없어",
            "README.md를 지우지 못하게 해 줘",
            "README.md가 삭제되면 오류가 나요",
            "README.md 파일이 삭제됐어요, 복구해 주세요",
            "README.md가 지워졌어요",
            "README.md는 삭제 말고 고쳐 줘",
            "README.md를 지우는 버그를 고쳐 줘",
            "Do not rename, move, or delete README.md",
            "When the user logs out, delete README.md",
            "Prevent the cleanup from deleting README.md",
            "Why does build.sh delete README.md?",
            "Remove the README.md link",
            "README.md needs to go into more detail",
        ] {
            assert!(!said(words).deletes("README.md", true), "{words}");
        }
    }

    #[test]
    fn a_question_is_told_from_a_wish() {
        for question in [
            "why does src/old.rs go?",
            "why does src/old.rs go",
            "ok, but should src/old.rs be removed?",
            "is it safe to remove src/old.rs now?",
            "src/old.rs는 왜 지워요?",
            "src/old.rs를 지워도 될까요?",
        ] {
            assert!(asks(question), "{question}");
        }
        for wish in [
            "remove src/old.rs",
            "could you remove src/old.rs?",
            "what about deleting src/old.rs?",
            "src/old.rs 삭제해 줘",
            "src/old.rs 삭제해 주시겠습니까?",
            "src/old.rs를 지워 주실 수 있을까요?",
            "왜 남아 있는지 모르겠으니 src/old.rs 삭제해 줘",
        ] {
            assert!(!asks(wish), "{wish}");
        }
    }

    #[test]
    fn a_file_that_is_to_be_left_alone_is_not_asked_for() {
        for words in [
            "Fix the login in src/db.rs",
            "src/db.rs is slow, make it faster",
            "Users cannot log in because src/db.rs fails",
            "Do not touch a.rs, change src/db.rs",
            "Keep the names in src/db.rs as short as they are",
            "src/db.rs를 고쳐 주세요",
            "src/db.rs 수정 필요",
            "src/db.rs가 안 돼요 고쳐 주세요",
            "src/db.rs를 읽지 못하는 버그를 고쳐 주세요",
            "src/db.rs should not be slow",
            "Leave a comment in src/db.rs",
            "Leave src/api.rs alone and change src/db.rs",
            "Keep the API unchanged and rewrite src/db.rs",
            "Leave out the logging in src/db.rs",
            "src/db.rs remains slow, make it faster",
            "src/db.rs should stay fast: cache the query",
            "src/db.rs should not change the timezone",
            "src/db.rs만 수정하고 나머지는 건드리지 마세요",
        ] {
            assert!(said(words).names_file("src/db.rs"), "{words}");
        }
        for words in [
            "Fix the login, but do not touch src/db.rs",
            "Fix the login without changing src/db.rs.",
            "Leave src/db.rs alone",
            "keep `src/db.rs` as it is",
            "Change everything except src/db.rs",
            "Don't bring src/db.rs back",
            "src/db.rs는 건드리지 마세요",
            "src/db.rs must not be touched",
            "src/db.rs must not change",
            "src/db.rs should stay as it is",
            "Make it faster, no changes to src/db.rs",
            "Do not touch src/api.rs, src/db.rs or src/x.rs",
            "Leave src/db.rs and src/x.rs alone",
            "Leave src/x.rs and src/db.rs alone",
            "src/db.rs는 그대로 두고 api만 고쳐 주세요",
            "src/db.rs는 그대로 둬 주세요",
            "src/db.rs는 수정 금지",
            "src/db.rs를 수정하면 안 돼요",
            "src/db.rs는 절대 건드리면 안 됩니다",
            "src/db.rs 수정은 하지 마세요",
            "src/db.rs는 리팩터링하지 마세요",
            "src/db.rs는 건드릴 필요 없어요",
            "Leave these alone: src/api.rs, src/db.rs",
        ] {
            assert!(!said(words).names_file("src/db.rs"), "{words}");
        }
        // A word of the language is a file only with its folder.
        assert!(!said("make the server faster").names_file("bin/server"));
        assert!(said("make bin/server faster").names_file("bin/server"));
        assert!(said("mend the Makefile").names_file("sub/Makefile"));
    }

    #[test]
    fn digits_at_the_beginning_of_a_name_are_no_number_of_a_list() {
        assert!(said("404.html should be deleted").deletes("404.html", true));
    }

    #[test]
    fn a_name_without_its_folder_says_which_file_where_one_is_called_so() {
        let words = said("delete index.md");
        assert!(words.deletes("docs/index.md", true));
        assert!(!words.deletes("docs/index.md", false), "there are two");
        assert!(words.deletes("index.md", false), "that is its path");
    }

    #[test]
    fn a_word_of_the_language_names_a_dependency_where_the_sentence_says_so() {
        assert!(!said("log the time of each call").names_dependency("log"));
        assert!(!said("log the time of each call").names_dependency("time"));
        assert!(said("log it with the log crate").names_dependency("log"));
        assert!(said("tell it with `time`").names_dependency("time"));
        assert!(said("use requests for that").names_dependency("requests"));
        assert!(said("requests 라이브러리를 써 줘").names_dependency("requests"));
        assert!(said("serde 추가해 줘").names_dependency("serde"));
        for name in ["serde", "clap", "anyhow"] {
            assert!(said("Use serde, clap and anyhow").names_dependency(name), "{name}");
        }
        assert!(said("Add serde").names_dependency("serde"));
        assert!(said("rewrite it with tokio").names_dependency("tokio"));
        assert!(said("map it to SQLAlchemy models").names_dependency("SQLAlchemy"));
        assert!(!said("click the button").names_dependency("Click"));
        assert!(!said("log the time in the auth module").names_dependency("time"));
        assert!(!said("update the time in package.json").names_dependency("time"));
        assert!(!said("add time to the report").names_dependency("time"));
        assert!(said("take left-pad").names_dependency("left-pad"));
        assert!(!said("the log crate from git").names_dependency("log (git https://x)"));
    }
}
