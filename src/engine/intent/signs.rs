//! What speaks for an intent, and which intent follows from all of it. The languages only find signs.

use std::collections::BTreeSet;

use regex::Regex;

use crate::domain::intent::Intent;
use crate::domain::word::words;

words! {
    /// Something in a message that speaks for or against an intent.
    pub enum Sign {
        /// A hotfix is asked for by this word.
        Hotfix = "hotfix",
        /// What real users use.
        Production = "production",
        /// Everybody is hit, or harm is being done.
        Harm = "harm",
        /// It cannot wait.
        Urgent = "urgent",
        /// It can wait, or is harmless.
        Calm = "calm",
        /// Something does not do what it should.
        Defect = "defect",
        /// A repair is asked for.
        Fix = "fix",
        /// The plan or specification is to be another.
        SpecChange = "spec_change",
        /// The plan or specification is settled.
        SpecReady = "spec_ready",
        /// Planning is to be left out.
        SkipPlan = "skip_plan",
        /// Building is asked for, without naming anything new.
        Build = "build",
        /// The plan or specification is spoken of.
        SpecTopic = "spec_topic",
        /// The cause of something past is asked for, which may be no more than a question.
        Cause = "cause",
        /// A cause is to be found.
        Investigate = "investigate",
        /// It is over, or others repair it.
        Over = "over",
        /// The team's own work is started, stopped, approved, landed, or an action run.
        Command = "command",
        /// How the team's own work stands.
        Status = "status",
        /// Earlier work is to go on.
        GoOn = "go_on",
        /// Another structure or other names.
        Restructure = "restructure",
        /// Behaviour stays.
        SameBehaviour = "same_behaviour",
        /// Something that exists is to be better.
        Improve = "improve",
        /// Something new is asked for.
        Create = "create",
        /// An answer is asked for.
        Ask = "ask",
        /// A sentence is a question that asks nobody to do something.
        Query = "query",
        /// Nothing is to be changed.
        NoChange = "no_change",
        /// Something else is asked for.
        Work = "work",
    }
}

/// A sign and the words that it was seen in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignMatch {
    /// The sign.
    pub sign: Sign,
    /// The clause, in lower case, with placeholders for code, quotations and names.
    pub words: String,
}

/// What a clause or a sentence is tried against; not every language has all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pattern {
    /// What stands before the verb of a polite request.
    Frame,
    /// A greeting or a filler at the beginning.
    Open,
    /// Its verb is negated.
    Negated,
    /// It speaks of changing something.
    Touches,
    /// It depends on another clause.
    Subordinate,
    /// It begins as questions do.
    Question,
    /// It asks without a question mark.
    Asked,
    /// The question may be a wish.
    MaybeWish,
    /// The question is none, although it looks like a wish.
    WishAnswer,
    /// Where it is cut into clauses.
    Cuts,
    /// A word of the lists that is part of a name: "the cancel button".
    Compound,
    /// The same at the beginning: "status page: …".
    Label,
    /// What is put off until later: "questions later".
    Deferred,
    /// Something does not do what it should.
    DoesNot,
    /// A negated verb that tells of no defect.
    NotADefect,
    /// A plan or its parts are edited, or what is called as they are.
    EditsSpec,
    /// A part of the product: its plans, scopes and decisions are none of the team's.
    OfScreen,
    /// What only a specification has.
    NamesSpec,
    /// It says where the work follows from.
    FromSpec,
    /// A plan or its parts are named.
    Topic,
    /// It asks why something failed.
    PastFailure,
    /// It asks about something past.
    CausePast,
    /// It names a failure.
    Failure,
    /// It asks for a reason.
    Reason,
    /// It says that something is down.
    Down,
    /// It tells of a person.
    OfPeople,
    /// A person tells of something met with.
    Meets,
    /// What is wanted is no new part of the product.
    NotNew,
    /// A request in any form.
    Asking,
    /// What a program is to do by itself.
    Product,
    /// It begins with a verb that no list holds.
    Bare,
    /// A word that is no verb in its base form.
    NoVerb,
    /// The plan or specification is still open.
    SpecOpen,
    /// Code is the object.
    OfCode,
    /// The word that looks like a verb is a noun.
    Noun,
    /// What is to be better is no improvement but a repair, or new.
    NotBetter,
    /// Code that has to be restructured, said of itself.
    Passive,
    /// It asks why.
    Why,
    /// A question that asks somebody to do something.
    Polite,
    /// It ends as questions do.
    AsksEnd,
    /// It holds a word of questions.
    QuestionWord,
    /// It asks why something has not happened yet.
    NotYet,
}

/// Patterns, each with what it means; several may mean the same.
#[derive(Debug)]
pub(super) struct Patterns<T>(Vec<(T, Regex)>);

impl<T: Copy + PartialEq> Patterns<T> {
    /// Of rules in which `{name}` stands for any of a list.
    pub(super) fn compile(lists: &[(&str, &str)], rules: &[(T, &str)]) -> Patterns<T> {
        let made =
            rules.iter().map(|(what, rule)| Regex::new(&expand(lists, rule)).map(|r| (*what, r)));
        Patterns(made.filter_map(Result::ok).collect())
    }

    /// All of them, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(T, Regex)> {
        self.0.iter()
    }

    /// The first that means this.
    pub(super) fn get(&self, what: T) -> Option<&Regex> {
        self.0.iter().find(|(means, _)| *means == what).map(|(_, regex)| regex)
    }

    /// Whether the first that means this is seen in the words.
    pub(super) fn fits(&self, what: T, words: &str) -> bool {
        self.get(what).is_some_and(|regex| regex.is_match(words))
    }
}

impl Patterns<Pattern> {
    /// Whether a plan or its parts are edited: "change the plan", and not "change the plan's price on the pricing page".
    pub(super) fn edits_spec(&self, words: &str) -> bool {
        self.fits(Pattern::EditsSpec, words)
            && !self.fits(Pattern::FromSpec, words)
            && (self.fits(Pattern::NamesSpec, words) || !self.fits(Pattern::OfScreen, words))
    }
}

/// A pattern with its lists put in.
pub(super) fn expand(lists: &[(&str, &str)], rule: &str) -> String {
    let mut rule = rule.to_owned();
    // A list may name lists that stand before it.
    for (name, words) in lists.iter().rev() {
        rule = rule.replace(&format!("{{{name}}}"), &format!("(?:{words})"));
    }
    rule.replace(r"\w", WORD)
}

/// Letters and digits of the languages that people write, and little else. The exact class has 800 ranges, and each
/// place where it stands in a compiled pattern takes as many states: together 20 MB, and most of what the English
/// grammar takes to compile.
const WORD: &str = r"[0-9A-Z_a-zªµºÀ-ÖØ-öø-\u{1FFF}Ⓐ-ⓩ\u{3040}-\u{D7FF}]";

/// The intent that the signs of one piece speak for; `None` where they do not settle it.
pub(super) fn settle(found: &[SignMatch]) -> Option<Intent> {
    let signs: BTreeSet<Sign> = found.iter().map(|found| found.sign).collect();
    let has = |sign: Sign| signs.contains(&sign);
    let any = |list: &[Sign]| list.iter().any(|sign| signs.contains(sign));

    let burning = has(Sign::Production) && any(&[Sign::Harm, Sign::Urgent])
        || has(Sign::Harm) && has(Sign::Urgent);
    let cold =
        [Sign::Calm, Sign::Over, Sign::NoChange, Sign::Investigate, Sign::Cause, Sign::Query];
    let cold = any(&cold) || has(Sign::Ask);
    if has(Sign::Hotfix) {
        let meant = any(&[Sign::Defect, Sign::Harm, Sign::Production]);
        return (meant && !cold).then_some(Intent::Hotfix);
    }
    if burning && has(Sign::Defect) && !any(&[Sign::Over, Sign::NoChange]) {
        let other = [Sign::Create, Sign::Improve, Sign::SpecChange, Sign::Restructure];
        return (!cold && !any(&other)).then_some(Intent::Hotfix);
    }
    let settled = any(&[Sign::SpecReady, Sign::SkipPlan]);
    if has(Sign::Build) && settled {
        let other = [Sign::SpecChange, Sign::Improve, Sign::Fix, Sign::Defect, Sign::Ask];
        return (!any(&other)).then_some(Intent::ImplementationOnly);
    }
    let alone = !any(&[Sign::Investigate, Sign::Build, Sign::Ask, Sign::SpecTopic]) && !settled;
    let as_before = has(Sign::SameBehaviour);
    let hot = any(&[Sign::Urgent, Sign::Production, Sign::Harm]);
    let work = [
        (Sign::Create, Intent::Feature, alone && !as_before),
        (Sign::SpecChange, Intent::SpecRevision, true),
        (Sign::Improve, Intent::Refinement, alone && !has(Sign::Defect) && !as_before),
        (Sign::Restructure, Intent::Refactor, alone && !has(Sign::Defect)),
        (Sign::Fix, Intent::BugFix, alone && !has(Sign::Work) && !hot && !as_before),
    ];
    let work: Vec<_> = work.into_iter().filter(|(sign, ..)| signs.contains(sign)).collect();
    if let [(_, intent, clear)] = work.as_slice() {
        return clear.then_some(*intent);
    }
    if !work.is_empty() || any(&[Sign::Build, Sign::SkipPlan]) {
        return None;
    }
    if has(Sign::Investigate) || has(Sign::Cause) && has(Sign::Over) {
        return Some(Intent::Incident);
    }
    if any(&[Sign::Work, Sign::Cause]) || burning && !any(&[Sign::Calm, Sign::NoChange]) {
        return None;
    }
    if has(Sign::Defect) {
        let only = !any(&[
            Sign::Ask,
            Sign::NoChange,
            Sign::Over,
            Sign::Urgent,
            Sign::Production,
            Sign::Harm,
            Sign::GoOn,
            Sign::Command,
            Sign::Status,
            Sign::SpecTopic,
        ]);
        if only {
            return Some(Intent::BugFix);
        }
        return (has(Sign::Ask) && has(Sign::NoChange)).then_some(Intent::Question);
    }
    let steering = any(&[Sign::Command, Sign::Status]);
    match (has(Sign::GoOn), steering, has(Sign::Ask)) {
        (true, false, false) => Some(Intent::Resume),
        (false, true, asks) => {
            let told = !asks || has(Sign::Status) && !has(Sign::NoChange);
            (told && !has(Sign::SpecTopic)).then_some(Intent::Control)
        }
        (false, false, true) => Some(Intent::Question),
        _ => None,
    }
}
