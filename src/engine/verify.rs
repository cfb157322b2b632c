//! What people look at themselves: each manual criterion of a request that has landed is a card, which anybody with the
//! right answers, in any order, whenever they like. What they find wrong becomes an item of the backlog, in their words.

use serde_json::{Value, json};

use super::authorize::{Granted, Resource, act, authorize, denied};
use super::decision::Answer;
use super::turn::Turn;
use super::{say, sprint, standing};
use crate::domain::actor::Actor;
use crate::domain::criterion::{Criterion, Judge};
use crate::domain::ids::{ChannelId, ItemId, MessageId, RequestId};
use crate::domain::outgoing::{Act, Button, ButtonAct, Post, Priority, Target, Voice};
use crate::domain::request::EventKind;
use crate::domain::state::State;
use crate::domain::verification::{
    CriterionRef, ManualAnswer, ManualCriterion, ManualVerdict, Verification,
};

/// The change of a request is on the branch: whoever may is asked to look at what is left to people.
pub(super) fn landed(turn: &mut Turn<'_>, id: &RequestId, commit: &str) {
    let Some(request) = turn.request(id) else { return };
    let mut criteria = Verification::manual(&request.work.criteria);
    // What another request left to people is that one's.
    let others = &request.work.others_criteria;
    criteria.retain(|own| others.iter().all(|it| it.text != own.text));
    if criteria.is_empty() {
        return;
    }
    let route = &request.conversation.reply_route;
    let verification = Verification {
        request_id: id.clone(),
        private_to: route.author_id.filter(|_| route.is_dm),
        title: standing::title(request),
        commit: commit.to_owned(),
        sprint_id: request.sprint_id.clone(),
        language: request.conversation.language,
        landed_at: turn.now,
        criteria,
    };
    turn.save(verification.clone());
    for criterion in &verification.criteria {
        let mut values = shown(&verification, criterion);
        values["commit"] = json!(say::short(commit));
        let subject = named(&verification, criterion).to_string();
        let button = |act| Button { act, subject: subject.clone(), version: 0 };
        let all = [ButtonAct::Pass, ButtonAct::Issue, ButtonAct::Skip, ButtonAct::Blocked];
        let act = Act::Post(Post {
            buttons: all.map(button).to_vec(),
            ..Post::new(say::content("verify.card", verification.language, values))
        });
        let target = Target::Room(id.clone());
        let mut outgoing = say::outgoing(turn, target, Voice::Team, Priority::Approval, act);
        outgoing.request_id = Some(id.clone());
        turn.send(outgoing);
    }
}

fn named(verification: &Verification, criterion: &ManualCriterion) -> CriterionRef {
    CriterionRef { request_id: verification.request_id.clone(), number: criterion.number }
}

/// A criterion for people, with how they name it.
fn shown(verification: &Verification, criterion: &ManualCriterion) -> Value {
    let answer = criterion.answer.as_ref();
    json!({
        "criterion": named(verification, criterion).to_string(),
        "request_id": verification.request_id,
        "title": verification.title,
        "text": criterion.text,
        "verdict": answer.map(|it| it.verdict),
        "by": answer.map(|it| it.by.as_str()),
    })
}

/// The criteria that wait for a person, those that have waited longest first, as far as `reader` may read them.
#[must_use]
pub fn waiting(state: &State, reader: &Actor) -> Vec<Value> {
    let all = state.verifications.values().map(AsRef::as_ref);
    let mut all: Vec<&Verification> = all.filter(|it| !it.is_hidden_from(reader)).collect();
    all.sort_by_key(|it| (it.landed_at, &it.request_id));
    let open = |it: &'_ Verification| it.open().map(|one| shown(it, one)).collect::<Vec<_>>();
    all.into_iter().flat_map(open).collect()
}

/// Somebody says how a criterion is.
pub(super) fn answer(
    turn: &mut Turn<'_>,
    actor: &Actor,
    criterion: &CriterionRef,
    (verdict, words): (ManualVerdict, &str),
    card: Option<(ChannelId, MessageId)>,
) -> Answer {
    let language = turn.policy.language;
    let refused = |key: &str, values: Value| Answer::Refused(say::content(key, language, values));
    let Ok(granted) = authorize(turn.policy, actor, Resource::Team) else {
        return refused(denied(turn.policy, actor), json!({}));
    };
    let known = turn.before().verifications.get(&criterion.request_id).cloned();
    let known = known.filter(|it| !it.is_hidden_from(actor));
    let place = known
        .as_ref()
        .and_then(|it| it.criteria.iter().position(|one| one.number == criterion.number));
    let (Some(known), Some(at)) = (known, place) else {
        return refused("verify.unknown", json!({ "criterion": criterion.to_string() }));
    };
    let one = &known.criteria[at];
    if !one.is_open() {
        return refused("verify.answered", shown(&known, one));
    }
    let words = words.trim();
    let limit = turn.policy.limits.message_chars;
    if words.is_empty() && verdict == ManualVerdict::Issue {
        return refused("verify.words", json!({ "criterion": criterion.to_string() }));
    }
    if words.chars().count() > limit {
        return refused("too_long", json!({ "limit": limit }));
    }
    let item = match verdict {
        ManualVerdict::Issue => match item_of(turn, &granted, &known, one, words) {
            Ok(item) => item,
            Err(reason) => return refused("backlog.refused", json!({ "reason": reason })),
        },
        ManualVerdict::Pass | ManualVerdict::Skip | ManualVerdict::Blocked => None,
    };
    let mut verification = Verification::clone(&known);
    let one = &mut verification.criteria[at];
    one.answer = Some(ManualAnswer {
        verdict,
        by: granted.name(),
        at: turn.now,
        words: words.to_owned(),
        item: item.clone(),
    });
    let mut values = shown(&known, &verification.criteria[at]);
    values["item"] = json!(item);
    values["left"] = json!(verification.open().count());
    let payload = json!({ "criterion": criterion.number, "verdict": verdict, "item": item });
    turn.record(&known.request_id, EventKind::Verified, &granted.name(), words, payload);
    tell(turn, &verification, values.clone());
    let card = card.or(verification.criteria[at].card);
    if let Some(card) = card.filter(|_| verdict != ManualVerdict::Blocked) {
        say::unbutton(turn, card, None);
    }
    turn.save(verification);
    Answer::Say(say::content("verify.said", language, values))
}

/// The card that asks about a criterion is there: however that is answered, the card asks no more.
pub(super) fn posted(turn: &mut Turn<'_>, subject: &str, card: (ChannelId, MessageId)) {
    let Ok(criterion) = subject.parse::<CriterionRef>() else { return };
    let known = turn.before().verifications.get(&criterion.request_id);
    let asked = known.and_then(|known| {
        let is_it = |it: &ManualCriterion| it.number == criterion.number && it.is_open();
        let at = known.criteria.iter().position(is_it)?;
        let mut known = Verification::clone(known);
        known.criteria[at].card = Some(card);
        Some(known)
    });
    match asked {
        Some(asked) => turn.save(asked),
        // It was answered before the card was there.
        None => say::unbutton(turn, card, None),
    }
}

/// Says in the room, where it is known, what came of a look.
fn tell(turn: &mut Turn<'_>, verification: &Verification, values: Value) {
    let rooms = turn.before().rooms.iter();
    let room =
        rooms.filter(|(_, id)| **id == verification.request_id).map(|(room, _)| *room).next();
    let Some(room) = room else { return };
    let act = say::post(say::content("verify.said", verification.language, values));
    let target = Target::Channel(room);
    let outgoing = say::outgoing(turn, target, Voice::Team, Priority::Progress, act);
    turn.send(outgoing);
}

/// What is wrong, as an item: whoever delivers it reads the person's words, and is held to the same criterion.
fn item_of(
    turn: &mut Turn<'_>,
    _granted: &Granted<act::Verify>,
    verification: &Verification,
    criterion: &ManualCriterion,
    words: &str,
) -> Result<Option<ItemId>, String> {
    let (found, commit) = (named(verification, criterion), say::short(&verification.commit));
    let mut origin = format!("{found}, {commit}");
    let mut criteria = vec![Criterion::from(say::cut(words, 300))];
    // The backlog is everybody's, what was asked for directly is not.
    if verification.private_to.is_none() {
        origin = format!("{} ({origin})", verification.title);
        criteria.push(Criterion { text: criterion.text.clone(), judge: Judge::Person });
    }
    let payload = json!([{
        "title": say::cut(words.lines().next().unwrap_or_default(), 80),
        "scope": format!("{words}\n\n{origin}"),
        "kind": "bug",
        "acceptance_criteria": criteria,
    }]);
    let added = sprint::add_items(turn, &payload).map_err(|error| error.to_string())?;
    Ok(added.into_iter().next())
}
