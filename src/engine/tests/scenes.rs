//! What people see, one scene a test.

use std::sync::Arc;

use serde_json::json;

use super::world::{
    GENERAL, Move, OWNER, Todo, World, candidate, crash, evidence, good, policy, result,
};
use crate::domain::change::Change;
use crate::domain::conflict::Conflict;
use crate::domain::effect::{EffectKind, EffectOutcome};
use crate::domain::event::Event;
use crate::domain::evidence::CheckVerdict;
use crate::domain::ids::{ChannelId, GuildId, MessageId, RequestId, UserId};
use crate::domain::incoming::Command;
use crate::domain::language::Language;
use crate::domain::lifecycle::{StepName, counter};
use crate::domain::request::{EventKind, RequestStatus};
use crate::domain::role::Role;
use crate::domain::run::RunOutcome;
use crate::domain::workflow::{Outcome, Transition};
use crate::engine::Answer;
use crate::engine::lifecycle::steps;

/// Works the request until `stop` says so of a role's step, which stays undone.
pub(super) fn work_until(world: &mut World, stop: impl Fn(Role, Option<StepName>) -> bool) -> Todo {
    loop {
        let todo = world.todo().first().cloned().expect("something to do");
        if let Todo::Run(id) = &todo {
            let envelope = &world.state.envelopes[id];
            if stop(envelope.target_role, envelope.step) {
                return todo;
            }
        }
        world.do_well(&todo);
    }
}

pub(super) fn report(world: &mut World, todo: &Todo, outcome: RunOutcome) {
    let Todo::Run(id) = todo else { panic!("not a run") };
    world.run(id, outcome);
    let Some(Todo::Report(id)) = world.todo().into_iter().find(|t| matches!(t, Todo::Report(_)))
    else {
        panic!("no report")
    };
    world.submit(Event::ReportReady { relay_id: id });
}

#[test]
fn a_message_becomes_a_commit_and_one_final_answer() {
    let mut world = World::new(policy());
    let id = world.message("do the first task");
    world.finish_well();
    let request = world.request(&id);
    assert_eq!(request.status, RequestStatus::Committed);
    assert_eq!(request.outcome.commit_sha.as_deref(), Some("c1"));
    let finals = world.said.iter().filter(|key| key.starts_with("final.")).count();
    assert_eq!((world.said[0].as_str(), finals), ("receipt", 1));
    let recorded = world.log.iter().filter_map(|change| {
        let Change::Event(_, event) = change else { return None };
        (event.kind == EventKind::Committed).then_some(event.summary.as_str())
    });
    assert_eq!(recorded.collect::<Vec<_>>(), ["c1"], "recorded once, with the commit");
    world.deliver();
    assert!(world.state.requests.is_empty(), "an ended request leaves memory");
    assert!(world.state.envelopes.is_empty() && world.state.effects.is_empty());
}

#[test]
fn failing_checks_go_back_to_the_developer_and_then_to_a_person() {
    let mut world = World::new(policy());
    let id = world.message("break it");
    let mut rounds = 0;
    world.finish_with(|kind| {
        let EffectKind::Checks { commit, .. } = kind else {
            return None;
        };
        rounds += 1;
        Some(EffectOutcome::Checked(evidence(commit, CheckVerdict::Failed)))
    });
    let request = world.request(&id);
    assert_eq!(request.status, RequestStatus::Blocked);
    assert_eq!(request.blocked.expect("why").code.word(), "checks_failing");
    assert!(request.outcome.commit_sha.is_none());
    // The configuration says how often it goes back.
    assert_eq!(rounds, 3, "the first, and as often as the lifecycle has it");
    assert!(world.said.contains(&"room.checks_failed".to_owned()));
}

#[test]
fn a_crashing_agent_is_tried_again_and_then_a_person_is_asked() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    for _ in 0..3 {
        let todo = work_until(&mut world, |role, _| role == Role::Research);
        report(&mut world, &todo, crash());
    }
    let request = world.request(&id);
    assert_eq!(request.blocked.expect("why").code.word(), "step_failed");
    assert_eq!(world.said.iter().filter(|key| *key == "room.failed_attempt").count(), 3);
    world.command(Command::Retry { request_id: id.clone() });
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
    assert_eq!(world.dead_letters(), 0);
}

#[test]
fn an_answered_question_makes_no_commit() {
    let mut world = World::new(policy());
    let id = world.message("which tasks are left?");
    let todo = work_until(&mut world, |role, _| role == Role::Orchestrator);
    let answer = result(Role::Orchestrator, json!({ "request_handling": { "mode": "complete" } }));
    report(&mut world, &todo, RunOutcome::Result(Arc::new(answer)));
    assert_eq!(world.request(&id).status, RequestStatus::Completed);
    assert!(world.said.contains(&"final.answered".to_owned()));
}

#[test]
fn what_planning_has_found_out_reaches_whoever_asked() {
    let mut world = World::new(policy());
    let id = world.message("find out why the tests fail");
    let todo = work_until(&mut world, |role, _| role == Role::Planner);
    let mut found = good(Role::Planner, Some(steps::DRAFT));
    found.summary = "The clock is read twice.".to_owned();
    found.proposals.root_cause_contract = Some("src/clock.rs reads it anew in `later`.".to_owned());
    found.proposals.workflow_transition = Some(Transition {
        outcome: Some(Outcome::Complete),
        finalize_phase: true,
        ..Transition::default()
    });
    report(&mut world, &todo, RunOutcome::Result(Arc::new(found)));
    let request = world.request(&id);
    assert_eq!(request.status, RequestStatus::Completed);
    let answer = request.outcome.final_answer.expect("an answer").values["summary"].to_string();
    for part in ["The clock is read twice.", "src/clock.rs reads it anew"] {
        assert!(answer.contains(part), "{answer}");
    }
}

#[test]
fn a_build_that_changes_no_file_is_a_failed_attempt_and_then_a_persons_business() {
    let mut world = World::new(policy());
    let id = world.message("look around");
    let mut commits = 0;
    let nothing = |kind: &EffectKind| {
        matches!(kind, EffectKind::Commit { .. }).then(|| {
            commits += 1;
            EffectOutcome::NothingChanged { base: "b0".to_owned() }
        })
    };
    world.finish_with(nothing);
    let request = world.request(&id);
    assert_eq!(request.status, RequestStatus::Blocked);
    assert_eq!(request.blocked.expect("why").code.word(), "no_change");
    assert_eq!(commits, 3, "the attempts of the step");
    let said = |key: &str| world.said.iter().filter(|said| *said == key).count();
    assert_eq!(said("room.failed_attempt"), 3);
    assert_eq!(said("final.answered"), 0);
    // No review took place.
    assert_eq!(request.params.workflow.expect("a workflow").counter(counter::REVIEW).used, 0);
    // A person lets it go on: the developer builds, and it is judged and proven like any other.
    world.command(Command::Retry { request_id: id.clone() });
    let todo = work_until(&mut world, |role, _| role == Role::Developer);
    world.do_well(&todo);
    world.finish_well();
    let request = world.request(&id);
    assert_eq!(request.status, RequestStatus::Committed);
    assert_eq!(request.work.spent.rejected, 0);
}

#[test]
fn a_second_build_that_changes_something_goes_on_as_if_it_were_the_first() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    let mut first = true;
    world.finish_with(|kind| {
        let nothing = matches!(kind, EffectKind::Commit { .. }) && std::mem::take(&mut first);
        nothing.then_some(EffectOutcome::NothingChanged { base: "b0".to_owned() })
    });
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
    assert_eq!(world.said.iter().filter(|key| *key == "room.failed_attempt").count(), 1);
    let revised = world.request(&id).params.workflow.expect("a workflow");
    assert_eq!(revised.counter(counter::REVIEW).used, 1);
}

#[test]
fn a_check_without_an_end_runs_once_more_and_then_a_person_decides() {
    for verdict in [CheckVerdict::TimedOut, CheckVerdict::CutOff] {
        let mut world = World::new(policy());
        let id = world.message("do it");
        let mut runs = 0;
        world.finish_with(|kind| {
            let EffectKind::Checks { commit, .. } = kind else { return None };
            runs += 1;
            Some(EffectOutcome::Checked(evidence(commit, verdict)))
        });
        let request = world.request(&id);
        assert_eq!(request.blocked.expect("why").code.word(), "checks_inconclusive");
        assert_eq!(runs, 2);
        let state = request.params.workflow.expect("a workflow");
        assert_eq!(state.counter(counter::CHECKS).used, 0, "the developer is not charged");
        assert!(!world.said.contains(&"room.checks_failed".to_owned()));
        // Each further word of a person is worth two runs again, and an end is an end.
        world.command(Command::Retry { request_id: id.clone() });
        let mut verdicts = vec![CheckVerdict::Passed, verdict];
        world.finish_with(|kind| {
            let EffectKind::Checks { commit, .. } = kind else { return None };
            verdicts.pop().map(|verdict| EffectOutcome::Checked(evidence(commit, verdict)))
        });
        assert_eq!(world.request(&id).status, RequestStatus::Committed);
        assert!(verdicts.is_empty());
    }
}

#[test]
fn a_red_check_beside_one_without_an_end_is_red() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    world.finish_with(|kind| {
        let EffectKind::Checks { commit, .. } = kind else { return None };
        let mut both = evidence(commit, CheckVerdict::TimedOut);
        both.checks.extend(evidence(commit, CheckVerdict::Failed).checks);
        Some(EffectOutcome::Checked(both))
    });
    assert_eq!(world.request(&id).blocked.expect("why").code.word(), "checks_failing");
}

#[test]
fn the_same_words_again_are_not_a_second_request() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    assert_eq!(world.message("do  IT"), id);
    assert!(world.said.contains(&"reused".to_owned()));
    world.finish_well();
    assert_ne!(world.message("do it"), id, "an ended request does not swallow a new one (I24)");
}

#[test]
fn a_doubled_message_is_taken_in_once() {
    let mut world = World::new(policy());
    let words = world.words(GENERAL, 77, "do it");
    world.submit(Event::Message(words.clone()));
    let before = world.log.len();
    assert_eq!(world.submit(Event::Message(words)), Answer::Ignored("already taken in"));
    assert_eq!(world.log.len(), before);
}

#[test]
fn words_in_the_room_of_a_blocked_request_resume_it() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    world.deliver();
    let todo = work_until(&mut world, |role, _| role == Role::Planner);
    let mut stuck = result(Role::Planner, json!({ "required_inputs": ["the deadline"] }));
    stuck.status = crate::domain::result::ResultStatus::Blocked;
    report(&mut world, &todo, RunOutcome::Result(Arc::new(stuck)));
    let request = world.request(&id);
    assert_eq!(request.blocked.expect("why").required_inputs, ["the deadline"]);
    let room = request.conversation.room.and_then(|room| room.thread_id).expect("a room");
    let mut words = world.words(room, 9_000_000_000_000, "next Friday");
    words.addressed = false;
    world.submit(Event::Message(words));
    let request = world.request(&id);
    assert_eq!(request.status, RequestStatus::Delegated);
    assert_eq!(request.params.followups[0].body, "next Friday");
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
}

#[test]
fn who_is_on_no_list_gets_a_refusal_and_no_request() {
    let mut world = World::new(policy());
    let mut words = world.words(GENERAL, 5, "do it");
    words.author.id = UserId(999);
    world.submit(Event::Message(words.clone()));
    assert_eq!(world.said, ["not_allowed"]);
    words.message_id = MessageId(6);
    words.author.id = OWNER;
    words.guild_id = Some(GuildId(2));
    world.submit(Event::Message(words.clone()));
    words.message_id = MessageId(7);
    words.author.id = UserId(1);
    world.submit(Event::Message(words.clone()));
    words.author.id = UserId(55);
    words.author.is_bot = true;
    world.submit(Event::Message(words));
    assert_eq!((world.said.len(), world.state.requests.len()), (1, 0));
}

#[test]
fn odd_messages_get_a_clear_word() {
    let mut world = World::new(policy());
    for (number, text, key) in [(1, "   ".to_owned(), "empty"), (2, "x".repeat(16_001), "too_long")]
    {
        let words = world.words(GENERAL, number, &text);
        world.submit(Event::Message(words));
        assert_eq!(world.said.last().map(String::as_str), Some(key));
    }
    assert!(world.state.requests.is_empty());
}

#[test]
fn a_cancelled_request_leaves_nothing_behind() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    work_until(&mut world, |role, _| role == Role::Developer);
    world.command(Command::Cancel { request_id: id.clone() });
    assert_eq!(world.request(&id).status, RequestStatus::Cancelled);
    world.finish_well();
    world.deliver();
    assert!(world.state.requests.is_empty() && world.state.envelopes.is_empty());
    let Answer::Refused(unknown) = world.command(Command::Cancel { request_id: id }) else {
        panic!()
    };
    assert_eq!(unknown.key, "unknown_request");
}

/// Everything goes well but the first merge, which ends like this.
fn finish_with_first_merge(world: &mut World, outcome: EffectOutcome) {
    let mut first = Some(outcome);
    world.finish_with(
        |kind| {
            if matches!(kind, EffectKind::Merge { .. }) { first.take() } else { None }
        },
    );
}

#[test]
fn a_moved_branch_is_followed_and_proven_again() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    let moved = EffectOutcome::BranchMoved { head: "h1".to_owned() };
    finish_with_first_merge(&mut world, moved);
    assert_eq!(world.request(&id).outcome.commit_sha.as_deref(), Some("c2"));
    let checks = world.said.iter().filter(|key| *key == "room.checks_passed").count();
    assert_eq!(checks, 2, "the rebased commit is another commit");
}

fn conflict() -> Conflict {
    Conflict {
        head: "h1".to_owned(),
        commit: "c1".to_owned(),
        base: "b0".to_owned(),
        paths: vec!["a.py".to_owned()],
        excerpt: "<<<<<<< main".to_owned(),
        ..Conflict::default()
    }
}

/// Everything goes well, but the branch has always moved, and in the same lines.
fn finish_with_conflicts(world: &mut World, mut conflicts: usize) {
    world.finish_with(|kind| {
        if matches!(kind, EffectKind::Merge { .. }) && conflicts > 0 {
            return Some(EffectOutcome::BranchMoved { head: "h1".to_owned() });
        }
        matches!(kind, EffectKind::Rebase { .. }).then(|| {
            conflicts -= 1;
            EffectOutcome::Conflict(conflict())
        })
    });
}

#[test]
fn a_conflict_is_solved_on_the_new_head_and_proven_there() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    finish_with_conflicts(&mut world, 1);
    let request = world.request(&id);
    assert_eq!((request.status, request.work.conflict), (RequestStatus::Committed, None));
    let said = |key: &str| world.said.iter().filter(|said| *said == key).count();
    // Nothing says that it stands there before it does.
    assert_eq!((said("room.conflict"), said("room.rebased")), (1, 0));
    assert_eq!(request.params.workflow.expect("a workflow").counter(counter::CHECKS).used, 0);
}

#[test]
fn conflict_after_conflict_ends_at_a_person_and_is_solved_from_there() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    finish_with_conflicts(&mut world, usize::MAX);
    let request = world.request(&id);
    let blocked = request.blocked.expect("why");
    assert_eq!(blocked.code.word(), "rebase_conflict");
    assert_eq!(blocked.detail, "a.py\n<<<<<<< main", "the place is shown");
    assert!(request.work.candidate.is_none() && request.work.conflict.is_some());
    world.command(Command::Retry { request_id: id.clone() });
    let next = world.todo().first().cloned().expect("something to do");
    let Todo::Run(envelope) = &next else { panic!("{next:?}") };
    assert_eq!(world.state.envelopes[envelope].target_role, Role::ConflictResolver);
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
}

#[test]
fn marks_that_stay_in_the_files_are_a_failed_attempt() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    let mut moved = true;
    let mut unsolved = 2;
    world.finish_with(|kind| {
        let merges = matches!(kind, EffectKind::Merge { .. });
        if merges && std::mem::take(&mut moved) {
            return Some(EffectOutcome::BranchMoved { head: "h1".to_owned() });
        }
        if matches!(kind, EffectKind::Rebase { .. }) {
            return Some(EffectOutcome::Conflict(conflict()));
        }
        let marks = matches!(kind, EffectKind::Commit { .. }) && !moved && unsolved > 0;
        marks.then(|| {
            unsolved -= 1;
            EffectOutcome::Unsolved { paths: vec!["a.py".to_owned()] }
        })
    });
    // The first commits came before the conflict.
    let request = world.request(&id);
    assert_eq!(request.blocked.expect("why").code.word(), "unsolved_conflict");
    assert!(request.work.conflict.is_some(), "the next one is told of it as well");
    world.command(Command::Retry { request_id: id.clone() });
    world.finish_well();
    let request = world.request(&id);
    assert_eq!((request.status, request.work.conflict), (RequestStatus::Committed, None));
}

#[test]
fn a_solution_that_is_red_is_mended_by_whoever_solved_it_and_then_a_person_decides() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    let (mut moved, mut red, mut commits) = (true, 0, 0);
    let mut builders = Vec::new();
    while let Some(todo) = world.todo().first().cloned() {
        if let Todo::Run(envelope) = &todo {
            let role = world.state.envelopes[envelope].target_role;
            builders.extend((role != Role::Qa).then_some(role).filter(|_| !moved));
        }
        let Todo::Effect(effect) = &todo else {
            world.do_well(&todo);
            continue;
        };
        #[expect(clippy::wildcard_enum_match_arm, reason = "all else goes well")]
        let outcome = match &world.state.effects[effect].kind {
            EffectKind::Merge { .. } if std::mem::take(&mut moved) => {
                EffectOutcome::BranchMoved { head: "h1".to_owned() }
            }
            EffectKind::Rebase { .. } => EffectOutcome::Conflict(conflict()),
            EffectKind::Commit { .. } => {
                commits += 1;
                EffectOutcome::Committed(candidate(&format!("c{commits}")))
            }
            EffectKind::Checks { commit, .. } if !moved && red < 2 => {
                red += 1;
                EffectOutcome::Checked(evidence(commit, CheckVerdict::Failed))
            }
            _ => {
                world.do_well(&todo);
                continue;
            }
        };
        world.effect(effect, outcome);
    }
    assert_eq!(builders, [Role::ConflictResolver, Role::ConflictResolver]);
    let request = world.request(&id);
    let blocked = request.blocked.as_ref().expect("why");
    assert_eq!(blocked.code.word(), "solution_sent_back");
    assert_eq!(blocked.detail, "tests\ntail\n<<<<<<< main", "what is red, and the place");
    world.command(Command::Retry { request_id: id.clone() });
    world.finish_well();
    let request = world.request(&id);
    assert_eq!((request.status, request.work.conflict), (RequestStatus::Committed, None));
}

#[test]
fn words_that_change_while_what_is_there_already_is_proven_are_read_before_it_ends() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    let first = world.request(&id).conversation.reply_route.message_id.expect("a message").0;
    let (mut moved, mut edited) = (false, false);
    while let Some(todo) = world.todo().first().cloned() {
        let Todo::Effect(effect) = &todo else {
            world.do_well(&todo);
            continue;
        };
        let kind = world.state.effects[effect].kind.clone();
        if matches!(kind, EffectKind::Merge { .. }) && !moved {
            moved = true;
            world.effect(effect, EffectOutcome::BranchMoved { head: "h1".to_owned() });
        } else if matches!(kind, EffectKind::Rebase { .. }) {
            world.effect(effect, EffectOutcome::AlreadyOnBranch { head: "h1".to_owned() });
        } else if matches!(&kind, EffectKind::Checks { commit, .. } if commit == "h1") && !edited {
            edited = true;
            let words = world.words(GENERAL, first, "do something else");
            world.submit(Event::MessageEdited(words));
            world.effect(effect, EffectOutcome::Checked(evidence("h1", CheckVerdict::Passed)));
            let request = world.request(&id);
            assert!(!request.status.is_terminal(), "its new words are not done");
        } else {
            world.do_well(&todo);
        }
    }
    assert!(edited);
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
}

#[test]
fn what_the_branch_has_already_is_proven_there_and_ends_without_a_commit() {
    for verdict in [CheckVerdict::Passed, CheckVerdict::Failed] {
        let mut world = World::new(policy());
        let id = world.message("do it");
        let mut moved = true;
        let mut proven_there = 0;
        world.finish_with(|kind| {
            if matches!(kind, EffectKind::Merge { .. }) && std::mem::take(&mut moved) {
                return Some(EffectOutcome::BranchMoved { head: "h1".to_owned() });
            }
            if matches!(kind, EffectKind::Checks { commit, .. } if commit == "h1") {
                proven_there += 1;
                return Some(EffectOutcome::Checked(evidence("h1", verdict)));
            }
            let rebases = matches!(kind, EffectKind::Rebase { .. });
            rebases.then(|| EffectOutcome::AlreadyOnBranch { head: "h1".to_owned() })
        });
        assert_eq!(proven_there, 1);
        let request = world.request(&id);
        if verdict == CheckVerdict::Passed {
            assert_eq!(
                (request.status, request.outcome.commit_sha),
                (RequestStatus::Completed, None)
            );
            assert!(world.said.contains(&"final.already_there".to_owned()));
        } else {
            // The branch is red with it: the developer mends that.
            assert_eq!(request.status, RequestStatus::Committed);
            assert!(world.said.contains(&"room.checks_failed".to_owned()));
        }
    }
}

#[test]
fn a_persons_edits_stop_the_merge_and_retry_goes_on() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    let edits = EffectOutcome::PersonEdits { paths: vec!["a.py".to_owned()] };
    finish_with_first_merge(&mut world, edits);
    assert_eq!(world.request(&id).blocked.expect("why").code.word(), "person_edits");
    world.command(Command::Retry { request_id: id.clone() });
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
}

#[test]
fn ids_of_nowhere_are_answered() {
    let mut world = World::new(policy());
    let id = RequestId::parse("20260101-00000000").expect("an id");
    let Answer::Refused(content) = world.command(Command::Retry { request_id: id }) else {
        panic!()
    };
    assert_eq!(content.key, "unknown_request");
    let foreign = Event::MessageDeleted { channel_id: ChannelId(1), message_id: MessageId(1) };
    assert!(matches!(world.submit(foreign), Answer::Ignored(_)));
}

#[test]
fn status_and_cancel_in_words_cost_no_run() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    for (number, text, key) in [
        (9_001, "status".to_owned(), "overview"),
        (9_002, format!("status {id}"), "overview"),
        (9_003, format!("cancel {id}"), "cancel.done"),
        (9_004, "cancel 20200101-00000000".to_owned(), "unknown_request"),
    ] {
        let words = world.words(GENERAL, number, &text);
        world.submit(Event::Message(words));
        assert_eq!(world.said.last().map(String::as_str), Some(key), "{text}");
    }
    assert_eq!(world.request(&id).status, RequestStatus::Cancelled);
    assert_eq!(world.request(&id).work.spent.turns, 0);
    let known = world.state.requests.len();
    for (text, done, key) in [
        ("status", true, "overview"),
        ("stop sprint", false, "sprint.refused.none"),
        ("cancel 20200101-00000000", false, "unknown_request"),
    ] {
        let (text, channel_id, lane) = (text.to_owned(), None, None);
        let ask = Command::Ask {
            text: text.clone(),
            channel_id,
            parent_id: None,
            language: Language::En,
            lane,
        };
        let answer = world.command(ask);
        assert_eq!(matches!(answer, Answer::Say(_)), done, "{text}");
        let said = answer.content().expect("words");
        assert_eq!(said.key, key, "{text}");
    }
    assert_eq!(world.state.requests.len(), known, "words at a terminal are the same command");
}

/// Plays on until there is a move like this one.
fn until(world: &mut World, is_it: impl Fn(&World, &Move) -> bool) -> Move {
    loop {
        let next = world.moves().first().cloned().expect("something to do");
        if is_it(world, &next) {
            return next;
        }
        world.move_well(&next);
    }
}

fn interrupted(world: &World) -> usize {
    world.said.iter().filter(|key| *key == "room.interrupted").count()
}

#[test]
fn a_room_hears_once_what_a_crash_cut_off_when_it_goes_on() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    // Agents that live on are found again: nothing was cut off.
    let Move::EndRun(run) = until(&mut world, |_, next| matches!(next, Move::EndRun(_))) else {
        panic!("not a run")
    };
    let envelope = world.state.runs[&run].envelope_id.clone();
    world.restart();
    assert_eq!(world.adopt_run(&envelope), Some(run.clone()));
    assert_eq!(interrupted(&world), 0);
    // One that did not begins anew, and the room hears it then, however often the team came up before.
    world.restart();
    world.restart();
    assert_eq!(interrupted(&world), 0, "nobody knows yet whether it lives");
    assert_eq!(world.begin_run(&envelope), Some(run.clone()));
    assert_eq!(interrupted(&world), 1);
    world.restart();
    assert_eq!(world.begin_run(&envelope), Some(run), "another interruption");
    assert_eq!(interrupted(&world), 2);
    // What the runtime itself was at goes on at once.
    let is_checks = |world: &World, next: &Move| {
        let kind = |id| &world.state.effects[id].kind;
        matches!(next, Move::EndEffect(id) if matches!(kind(id), EffectKind::Checks { .. }))
    };
    let Move::EndEffect(checks) = until(&mut world, is_checks) else { panic!("no checks") };
    assert_eq!(interrupted(&world), 2);
    world.restart();
    assert_eq!(interrupted(&world), 3);
    world.restart();
    assert_eq!(interrupted(&world), 3, "they had not begun again");
    assert!(world.begin_effect(&checks));
    world.restart();
    assert_eq!(interrupted(&world), 4);
    while let Some(next) = world.moves().first().cloned() {
        world.move_well(&next);
    }
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
    assert_eq!(interrupted(&world), 4);
}

#[test]
fn what_a_run_spent_is_counted_also_where_its_request_was_withdrawn_meanwhile() {
    let mut world = World::new(policy());
    world.usage.cost_usd = 0.3;
    let request_id = world.message("do it");
    let Move::EndRun(run) = until(&mut world, |_, next| matches!(next, Move::EndRun(_))) else {
        panic!("not a run")
    };
    world.command(Command::Cancel { request_id: request_id.clone() });
    world.end_run(&run, crash());
    assert!((world.state.spending.today.used.cost_usd - 0.3).abs() < 1e-9);
    assert!((world.request(&request_id).work.usage.cost_usd - 0.3).abs() < 1e-9);
    world.deliver();
    while let Some(next) = world.moves().first().cloned() {
        world.move_well(&next);
    }
    assert!(world.state.requests.is_empty() && world.state.runs.is_empty());
}

#[test]
fn what_qa_refused_is_not_brought_to_the_branch_because_its_planner_calls_it_done() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    let todo = work_until(&mut world, |role, _| role == Role::Qa);
    let Todo::Run(envelope) = todo else { panic!() };
    let transition = json!({ "outcome": "reopen", "reopen_category": "scope", "reason": "not it" });
    let refusal = result(Role::Qa, json!({ "workflow_transition": transition }));
    world.run(&envelope, RunOutcome::Result(Arc::new(refusal)));
    let Todo::Run(envelope) = work_until(&mut world, |role, _| role == Role::Planner) else {
        panic!()
    };
    let transition = json!({ "outcome": "complete", "target_step": "closeout" });
    let note = json!({ "workflow_transition": transition, "planning_note": "it is all there" });
    world.run(&envelope, RunOutcome::Result(Arc::new(result(Role::Planner, note))));
    let next = work_until(&mut world, |_, _| true);
    let Todo::Run(envelope) = next else { panic!("{next:?}") };
    assert_eq!(world.state.envelopes[&envelope].step, Some(steps::GUIDANCE));
    assert_eq!(world.landed(), 0);
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Committed, "QA judged it once more");
}

#[test]
fn what_the_branch_is_in_the_way_of_is_not_answered_instead_of_built() {
    use crate::domain::conflict::Conflict;
    let mut world = World::new(policy());
    let id = world.message("do it");
    loop {
        let todo = world.todo().first().cloned().expect("something to do");
        let Todo::Effect(effect) = &todo else {
            world.do_well(&todo);
            continue;
        };
        let (head, kind) = ("h1".to_owned(), world.state.effects[effect].kind.clone());
        if let EffectKind::Rebase { commit, .. } = kind {
            let conflict =
                Conflict { head, commit, paths: vec!["a.py".to_owned()], ..Conflict::default() };
            world.effect(effect, EffectOutcome::Conflict(conflict));
            break;
        } else if matches!(kind, EffectKind::Merge { .. }) {
            world.effect(effect, EffectOutcome::BranchMoved { head });
        } else {
            world.do_well(&todo);
        }
    }
    assert!(!crate::engine::lanes::may_only_be_answered(&world.request(&id)));
    let todo = work_until(&mut world, |role, _| role == Role::ConflictResolver);
    let Todo::Run(envelope) = todo else { panic!() };
    let transition = json!({ "outcome": "reopen", "reopen_category": "scope", "reason": "not it" });
    let refusal = result(Role::ConflictResolver, json!({ "workflow_transition": transition }));
    world.run(&envelope, RunOutcome::Result(Arc::new(refusal)));
    let Todo::Run(envelope) = work_until(&mut world, |role, _| role == Role::Planner) else {
        panic!()
    };
    let transition = json!({ "outcome": "complete", "target_step": "closeout" });
    let note = json!({ "workflow_transition": transition, "planning_note": "it is all there" });
    world.run(&envelope, RunOutcome::Result(Arc::new(result(Role::Planner, note))));
    work_until(&mut world, |_, _| true);
    assert_ne!(world.request(&id).status, RequestStatus::Completed, "it was called an answer");
}

#[test]
fn a_step_that_the_lifecycle_does_not_have_waits_for_a_person_and_the_answer_leads_to_the_plan() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    let Todo::Run(envelope) = work_until(&mut world, |_, step| step == Some(steps::REVIEW)) else {
        panic!()
    };
    // Its definition was of a build that knew another step, and is not there any more.
    let gone = StepName::of("security_review");
    let request = Arc::make_mut(world.state.requests.get_mut(&id).expect("the request"));
    let state = request.params.workflow.as_mut().expect("a workflow");
    (state.step, state.lifecycle) = (gone, "0".repeat(64));
    let letter = world.state.envelopes.get_mut(&envelope).expect("the envelope");
    Arc::make_mut(letter).step = Some(gone);
    world.run(&envelope, RunOutcome::Result(Arc::new(good(Role::Architect, None))));
    while let Some(todo @ Todo::Report(_)) = world.todo().first().cloned() {
        world.do_well(&todo);
    }
    let blocked = world.request(&id).blocked.expect("why");
    assert_eq!((blocked.code.word(), blocked.detail.as_str()), ("unknown_step", "security_review"));
    world.command(Command::Steer { request_id: id.clone(), text: "go on".to_owned() });
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
}
