//! Where new work comes from when nobody asks for it (`spec/teams.md` 10): findings become candidates, the
//! planner judges them, and only then something is stored. No finding, no model call.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::json;

use super::duties::{self, DutyRequest};
use super::{queue, say};
use crate::domain::effect::EffectKind;
use crate::domain::finding::Finding;
use crate::domain::ids::{ItemId, RequestId};
use crate::domain::incoming::Message;
use crate::domain::intent::Intent;
use crate::domain::item::{GAVE_UP, Item, ItemSource, ItemStatus};
use crate::domain::lifecycle::{Lifecycle, Subject};
use crate::domain::modes::DiscoveryScope;
use crate::domain::origin::Origin;
use crate::domain::policy::Policy;
use crate::domain::request::{Request, RequestStatus};
use crate::domain::result::{ProposedItem, ProposedOrigin};
use crate::domain::schedule::{ReviewEnd, SourcingStatus};
use crate::domain::sprint::{Duty, DutyDetails, Todo};
use crate::domain::state::State;
use crate::domain::text::flat;
use crate::domain::time::Timestamp;
use crate::engine::intent;
use crate::engine::message::saved;
use crate::engine::turn::Turn;

/// Findings that one look hands on.
const FINDINGS: usize = 30;

/// When findings are looked for next. A team that never had a sprint and was given no discovery actions
/// does not look for work by itself.
pub(super) fn due(state: &State, policy: &Policy) -> Option<Timestamp> {
    let wanted = state.scheduler.slots.last_started_at.is_some()
        || !policy.sprint.discovery_actions.is_empty();
    let open = |request: &Request| {
        matches!(request.duty(), Some(Duty::Sourcing | Duty::SourcerReview))
            && !request.status.is_terminal()
    };
    let looking =
        state.effects.values().any(|effect| matches!(effect.kind, EffectKind::Discover { .. }));
    let is_off = policy.sprint.discovery_scope == DiscoveryScope::Off;
    if is_off || !wanted || looking || state.requests.values().map(Arc::as_ref).any(open) {
        return None;
    }
    let last = state.scheduler.sourcing.last_at.or(state.scheduler.slots.last_started_at);
    let next = last.map_or(Timestamp::from_millis(0), |last| {
        last.plus_seconds(policy.sprint.interval_seconds())
    });
    // What is found is for roles to judge, who cost money.
    Some(next.max(state.spending.declined_until()))
}

/// Looks for findings where it is time.
pub(super) fn look(turn: &mut Turn<'_>) {
    let now = turn.now;
    if turn.scheduler().sourcing.last_at.is_some_and(|last| last > now) {
        // A clock that was ahead has been put right.
        turn.edit_scheduler().sourcing.last_at = Some(now);
    }
    if due(turn.before(), turn.policy).is_none_or(|at| at > turn.now) {
        return;
    }
    let scheduler = turn.edit_scheduler();
    scheduler.sourcing.last_at = Some(now);
    let watermarks = scheduler.sourcing.watermarks.clone();
    turn.plan(EffectKind::Discover { watermarks });
}

/// This was found.
pub(super) fn discovered(
    turn: &mut Turn<'_>,
    findings: Vec<Finding>,
    watermarks: BTreeMap<String, String>,
) {
    let sourcing = &mut turn.edit_scheduler().sourcing;
    sourcing.watermarks = watermarks;
    // What was read already is not found again.
    let unjudged = std::mem::take(&mut sourcing.unjudged);
    let findings = [unjudged, findings].concat();
    let mut known: BTreeSet<String> = turn.items().into_values().filter_map(trace_of).collect();
    // Of some a candidate waits already.
    let waiting = turn.scheduler().sourcing.for_later.iter();
    known.extend(waiting.filter_map(|it| it.origin.as_ref()?.trace.clone()));
    let is_known = |finding: &Finding| {
        known.contains(&finding.trace)
            || made_of(&finding.origin).is_some_and(|it| known.contains(&it))
    };
    let mut fresh: Vec<Finding> =
        findings.into_iter().filter(|finding| !is_known(finding)).collect();
    fresh.sort_by(|a, b| (a.signal, &a.trace).cmp(&(b.signal, &b.trace)));
    fresh.dedup_by(|a, b| a.trace == b.trace);
    // The next look hands these on.
    let later = fresh.split_off(fresh.len().min(FINDINGS));
    turn.edit_scheduler().sourcing.unjudged = later;
    if fresh.is_empty() {
        return hand_to_planner(turn, &[], Vec::new());
    }
    let print = digest(fresh.iter().map(|finding| finding.trace.as_str()));
    if turn.scheduler().sourcing.fingerprint == print {
        hand_to_planner(turn, &[], Vec::new());
        let status = &mut turn.edit_scheduler().sourcing.status;
        if *status == Some(SourcingStatus::NoChanges) {
            *status = Some(SourcingStatus::DuplicateSuppressed);
        }
        return;
    }
    let scope = format!("{} finding(s)", fresh.len());
    let lifecycle = Lifecycle::of(Subject::Sourcing);
    let Some(step) = lifecycle.step(lifecycle.begin) else { return };
    let duty = DutyDetails::Sourcing { findings: fresh };
    let request = duties::ask(turn, DutyRequest { duty, step, sprint: None, scope });
    let scheduler = turn.edit_scheduler();
    scheduler.sourcing.request_id = Some(request);
    scheduler.sourcing.fingerprint = print;
    scheduler.sourcing.status = Some(SourcingStatus::Sourcing);
}

/// What an item was found by: the trace that it carries or, as in older workspaces, what its origin names.
fn trace_of(item: &Item) -> Option<String> {
    let own = item.origin.text("trace").map(ToOwned::to_owned);
    own.or_else(|| made_of(&item.origin))
}

/// What an origin names, where that is more than a kind of finding.
fn made_of(origin: &Origin) -> Option<String> {
    let is_vague =
        |part: &str| ["signal=", "status=", "role="].iter().any(|vague| part.starts_with(vague));
    let text = origin.trace();
    (!text.is_empty() && !text.split('|').all(is_vague)).then_some(text)
}

fn digest<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    use sha1::{Digest, Sha1};
    let text: Vec<&str> = parts.collect();
    Sha1::digest(text.join("\n")).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The sourcer has made candidates, or found that there are none; where it could not, the findings themselves are (S32).
pub(super) fn sourced(turn: &mut Turn<'_>, request: &Request) {
    if turn.scheduler().sourcing.request_id.as_ref() != Some(&request.request_id)
        || turn.scheduler().sourcing.status != Some(SourcingStatus::Sourcing)
    {
        return;
    }
    let findings = request.params.duty.as_ref().map(DutyDetails::findings).unwrap_or_default();
    let made = duties::outcome(request).ok();
    let made = made.and_then(|result| result.proposals.backlog_items.clone());
    let candidates = made.unwrap_or_else(|| plain(findings));
    hand_to_planner(turn, findings, candidates);
}

/// Hands candidates to the planner, with those of before that waited for the end of a sprint. What another milestone is
/// about does not come into a running one (S31), and waits.
fn hand_to_planner(turn: &mut Turn<'_>, findings: &[Finding], made: Vec<ProposedItem>) {
    let mut candidates = made;
    for later in turn.scheduler().sourcing.for_later.clone() {
        if !candidates.iter().any(|it| flat(&it.title) == flat(&later.title)) {
            candidates.push(later);
        }
    }
    let sprint = turn.active_sprint();
    let fits = |candidate: &ProposedItem| match (sprint, candidate.milestone_title.as_deref()) {
        (Some(sprint), Some(title)) if !title.trim().is_empty() => sprint.is_about(title),
        (_, _) => true,
    };
    let (candidates, mut later): (Vec<_>, Vec<_>) = candidates.into_iter().partition(fits);
    let too_many = later.split_off(later.len().min(FINDINGS));
    // Those that are judged now stay until they have been.
    let waiting = &turn.scheduler().sourcing.for_later;
    later.extend(waiting.iter().filter(|it| candidates.contains(it)).cloned());
    if *waiting != later {
        turn.edit_scheduler().sourcing.for_later = later;
    }
    tell_left(turn, too_many.into_iter().map(|it| it.title).collect());
    if candidates.is_empty() {
        turn.edit_scheduler().sourcing.status = Some(SourcingStatus::NoChanges);
        return;
    }
    let titles: Vec<String> = candidates.iter().map(|it| it.title.clone()).collect();
    let duty = DutyDetails::SourcerReview { findings: findings.to_vec(), candidates };
    let Some(step) = Lifecycle::of(Subject::Sourcing).step_of(duty.kind()) else { return };
    let scope = format!("{} candidate(s)", titles.len());
    let review = duties::ask(turn, DutyRequest { duty, step, sprint: None, scope });
    let scheduler = turn.edit_scheduler();
    scheduler.sourcing.status = Some(SourcingStatus::QueuedForPlannerReview);
    scheduler.sourcing.review_request_id = Some(review);
    scheduler.sourcing.review_status = ReviewEnd::Open;
    let values = json!({ "count": titles.len(), "titles": titles });
    say::report(turn, None, "sourcing.candidates", values, Vec::new());
}

/// Findings as candidates, word for word.
fn plain(findings: &[Finding]) -> Vec<ProposedItem> {
    let candidate = |it: &Finding| ProposedItem {
        title: it.title.clone(),
        summary: it.summary.clone(),
        scope: it.summary.clone(),
        origin: Some(ProposedOrigin {
            trace: Some(it.trace.clone()),
            signal: Some(it.signal.as_str().to_owned()),
            ..ProposedOrigin::default()
        }),
        ..ProposedItem::default()
    };
    findings.iter().map(candidate).collect()
}

/// The planner has judged the candidates: what it kept is stored.
pub(super) fn reviewed(turn: &mut Turn<'_>, request: &Request) {
    let id = &request.request_id;
    if turn.scheduler().sourcing.review_request_id.as_ref() != Some(id)
        || turn.scheduler().sourcing.review_status != ReviewEnd::Open
    {
        return;
    }
    let stored = store(turn, request, ItemSource::Sourcer);
    let judged = request.params.duty.as_ref().map(DutyDetails::candidates).unwrap_or_default();
    let scheduler = turn.edit_scheduler();
    match stored {
        Ok((added, updated)) => {
            scheduler.sourcing.review_status = ReviewEnd::Completed;
            scheduler.sourcing.again.clear();
            scheduler.sourcing.for_later.retain(|it| !judged.contains(it));
            scheduler.sourcing.status = Some(SourcingStatus::Updated);
            let values = json!({ "added": added, "updated": updated });
            say::report(turn, None, "sourcing.stored", values, Vec::new());
        }
        Err(reason) => {
            scheduler.sourcing.review_status =
                ReviewEnd::Failed(crate::engine::say::cut(&reason, 200));
            let findings = request.params.duty.as_ref().map(DutyDetails::findings);
            let findings = findings.unwrap_or_default();
            if !findings.is_empty() {
                // The next look hands the same findings on once more.
                scheduler.sourcing.fingerprint.clear();
            }
            let again = std::mem::take(&mut scheduler.sourcing.again);
            let (left, unjudged): (Vec<Finding>, Vec<Finding>) =
                findings.iter().cloned().partition(|it| again.contains(&it.trace));
            let (over, later): (Vec<_>, Vec<_>) = std::mem::take(&mut scheduler.sourcing.for_later)
                .into_iter()
                .partition(|it| judged.contains(it) && again.contains(&it.title));
            let tried = later.iter().filter(|it| judged.contains(it)).map(|it| it.title.clone());
            let again = unjudged.iter().map(|it| it.trace.clone()).chain(tried).collect();
            scheduler.sourcing.again = again;
            scheduler.sourcing.for_later = later;
            scheduler.sourcing.unjudged.extend(unjudged);
            let left = left.into_iter().map(|it| it.title);
            tell_left(turn, left.chain(over.into_iter().map(|it| it.title)).collect());
        }
    }
}

/// These were found and judged by nobody.
fn tell_left(turn: &mut Turn<'_>, titles: Vec<String>) {
    if !titles.is_empty() {
        say::report(turn, None, "sourcing.left", json!({ "titles": titles }), Vec::new());
    }
}

fn store(
    turn: &mut Turn<'_>,
    request: &Request,
    source: ItemSource,
) -> Result<(usize, usize), String> {
    let result = duties::outcome(request)?;
    let items = result.proposals.backlog_items.as_deref().unwrap_or_default();
    if items.is_empty() {
        return Ok((0, 0));
    }
    let (merged, wrong) =
        queue::merge_what_fits(turn, items, source, Some(&request.request_id), None);
    if merged.items.is_empty() && !wrong.is_empty() {
        return Err(wrong.join("; "));
    }
    say::not_taken(turn, None, &wrong);
    Ok((merged.added, merged.updated))
}

/// What is blocked and not people's alone to make possible again, in its order, and a digest of it as it is now.
fn blocked<'t>(turn: &'t Turn<'_>) -> (Vec<&'t Item>, String) {
    let is_reviewed =
        |item: &&Item| item.status == ItemStatus::Blocked && !item.origin.has(GAVE_UP);
    let mut blocked: Vec<&Item> = turn.items().into_values().filter(is_reviewed).collect();
    blocked.sort_by_key(|item| (item.priority_rank, item.updated_at, item.backlog_id.clone()));
    let keys: Vec<String> =
        blocked.iter().map(|item| format!("{}@{}", item.backlog_id, item.updated_at)).collect();
    let print = digest(keys.iter().map(String::as_str));
    (blocked, print)
}

/// Whether a sprint has to wait until the planner has looked at what is blocked. It looks once at each set.
pub(super) fn waits_for_review_of_blocked(turn: &mut Turn<'_>) -> bool {
    let (blocked, print) = blocked(turn);
    if blocked.is_empty() {
        if !turn.scheduler().blocked_review.fingerprint.is_empty() {
            let scheduler = turn.edit_scheduler();
            scheduler.blocked_review.last_at = None;
            scheduler.blocked_review.request_id = None;
            scheduler.blocked_review.status = ReviewEnd::Open;
            scheduler.blocked_review.fingerprint.clear();
        }
        return false;
    }
    let scheduler = turn.scheduler();
    if scheduler.blocked_review.fingerprint == print {
        return scheduler.blocked_review.status == ReviewEnd::Open;
    }
    let open =
        scheduler.blocked_review.request_id.as_ref().is_some_and(|id| {
            turn.request(id).is_some_and(|request| !request.status.is_terminal())
        });
    if open {
        return true;
    }
    let lifecycle = Lifecycle::of(Subject::Sourcing);
    let Some(step) = lifecycle.step(lifecycle.begin_blocked) else { return false };
    let blocked_items = blocked.iter().map(|item| json!(item.without_todo())).collect();
    let scope = format!("{} blocked item(s)", blocked.len());
    let duty = DutyDetails::BlockedReview { blocked_items };
    let request = duties::ask(turn, DutyRequest { duty, step, sprint: None, scope });
    let now = turn.now;
    let scheduler = turn.edit_scheduler();
    scheduler.blocked_review.last_at = Some(now);
    scheduler.blocked_review.request_id = Some(request);
    scheduler.blocked_review.fingerprint = print;
    scheduler.blocked_review.status = ReviewEnd::Open;
    true
}

/// The planner has looked at what is blocked.
pub(super) fn blocked_reviewed(turn: &mut Turn<'_>, request: &Request) {
    let id = &request.request_id;
    if turn.scheduler().blocked_review.request_id.as_ref() != Some(id)
        || turn.scheduler().blocked_review.status != ReviewEnd::Open
    {
        return;
    }
    let (_, before) = blocked(turn);
    let status = match store(turn, request, ItemSource::Planner) {
        Ok(_) => ReviewEnd::Completed,
        Err(reason) => ReviewEnd::Failed(crate::engine::say::cut(&reason, 200)),
    };
    // What the planner has left or made so is not shown to it again.
    let (_, print) = blocked(turn);
    let review = &mut turn.edit_scheduler().blocked_review;
    review.status = status;
    // What was blocked meanwhile is.
    if review.fingerprint == before {
        review.fingerprint = print;
    }
}

/// A person wrote into the room of a todo that had to be put aside, or asks for the same elsewhere, by the id of its item
/// or in the words of its title: the item is possible again, with the answer; where it is possible already, the words go
/// with it until somebody begins. What is said to that, and the title of the item, where there is one.
pub(in crate::engine) fn answered(
    turn: &mut Turn<'_>,
    room_of: Option<&RequestId>,
    message: &Message,
) -> Option<(&'static str, String)> {
    let words = message.content.to_lowercase();
    let resumes = intent::read(&message.content).intent == Some(Intent::Resume);
    let flat = |text: &str| {
        let text = text.to_lowercase();
        text.split_whitespace().collect::<Vec<_>>().join(" ").trim_end_matches('.').to_owned()
    };
    let names = |item: &Item| {
        let is_id = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let mut all = words.split(|c: char| !is_id(c));
        resumes && all.any(|word| word == item.backlog_id.as_str())
            || flat(&words) == flat(&item.title)
    };
    let items = turn.items().into_values();
    let item = items.filter(|item| !queue::is_in_work(turn, item)).find(|item| {
        let request = item.origin.text("request_id");
        let has_ended = |id: &str| {
            let request = RequestId::parse(id).ok().and_then(|id| turn.request(&id));
            request.is_none_or(|it| match room_of {
                Some(_) => it.status == RequestStatus::Cancelled || it.was_refused(),
                None => it.status.is_terminal(),
            })
        };
        let is_blocked = item.status == ItemStatus::Blocked;
        let waits = matches!(item.status, ItemStatus::Pending | ItemStatus::Selected);
        let is_meant = match room_of {
            Some(room_of) => (is_blocked || waits) && item.is_of_ended(room_of),
            None => is_blocked && names(item),
        };
        is_meant && request.is_none_or(has_ended)
    })?;
    let (id, title) = (item.backlog_id.clone(), item.title.clone());
    if item.status == ItemStatus::Blocked {
        bring_back(turn, &id, &message.author.name, &message.content, &saved(message));
        return Some(("backlog.reopened", title));
    }
    // It has not changed by that: no sprint begins because of it.
    let mut item = item.clone();
    item.add_answer(answer(&message.author.name, &message.content), &saved(message));
    turn.put_item(item);
    Some(("backlog.noted", title))
}

/// The item that was put aside when the request of its todo ended, and still waits for a person.
pub(in crate::engine) fn put_aside_with<'t>(
    turn: &'t Turn<'_>,
    request: &RequestId,
) -> Option<&'t Item> {
    let mut items = turn.items().into_values();
    items.find(|item| {
        item.status == ItemStatus::Blocked
            && item.is_of_ended(request)
            && !queue::is_held(turn, item)
    })
}

/// What somebody said, as an item keeps it.
fn answer(by: &str, words: &str) -> String {
    match words.trim() {
        "" => String::new(),
        words => crate::engine::say::cut(&format!("{by}: {words}"), 4_000),
    }
}

/// What people wrote to the request of a todo goes to whoever does it again.
pub(super) fn keep_words(turn: &mut Turn<'_>, todo: &Todo) {
    let request = todo.progress.request_id.as_ref().and_then(|id| turn.request(id));
    let Some((request, item)) = request.cloned().zip(todo.backlog_id.clone()) else { return };
    if !request.params.followups.is_empty() || request.params.open_end().is_some() {
        turn.edit_item(&item, |item| take_words(item, &request));
    }
}

/// The same for an item at hand.
pub(super) fn take_words(item: &mut Item, request: &Request) {
    for words in request.params.followups.iter().filter(|words| !words.at_gate) {
        item.add_answer(answer(&words.author_name, &words.body), &words.artifacts);
    }
    if let Some(asked) = request.params.open_end() {
        item.add_answer(asked.line(), &[]);
    }
}

/// What was put aside is possible again, with what somebody said about it.
pub(in crate::engine) fn bring_back(
    turn: &mut Turn<'_>,
    id: &ItemId,
    by: &str,
    words: &str,
    files: &[String],
) {
    turn.edit_item(id, |item| {
        item.add_answer(answer(by, words), files);
        item.origin.remove(GAVE_UP);
        item.status = ItemStatus::Pending;
        item.clear_blockers();
    });
}

/// Nobody does what was put aside.
pub(in crate::engine) fn drop_item(turn: &mut Turn<'_>, id: &ItemId, reason: String) {
    turn.edit_item(id, |item| {
        item.clear_blockers();
        item.status = ItemStatus::Dropped;
        item.dropped_reason = reason;
    });
}
