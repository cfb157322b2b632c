//! Order, drops, bad letters and replays.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::watch::{KnownEnvelopes, ScanResult, Watcher, candidates, examine};
use super::*;
use crate::domain::change::Change;
use crate::domain::envelope::{
    Envelope, EnvelopeBody, EnvelopeFolder, EnvelopeKind, EnvelopeParams,
};
use crate::domain::ids::{EnvelopeId, RequestId, RunId};
use crate::domain::role::Role;
use crate::domain::run::Run;
use crate::domain::state::State;
use crate::domain::time::Timestamp;
use crate::platform::disk::RealDisk;
use crate::platform::files;
use crate::store::{Store, relay_folder};

fn at(second: u64) -> Timestamp {
    Timestamp::from_millis(1_774_310_400_000).plus_seconds(second)
}

fn request_id(name: &str) -> RequestId {
    RequestId::parse(name).unwrap()
}

fn id(number: u64) -> EnvelopeId {
    EnvelopeId::parse(&format!("019a0000-0000-7000-8000-{number:012x}")).unwrap()
}

fn delegate(number: u64, request: &str) -> Envelope {
    Envelope {
        relay_id: id(number),
        transport: "internal".to_owned(),
        created_at: at(number),
        sender_role: Role::Orchestrator,
        target_role: Role::Developer,
        kind: EnvelopeKind::Delegate,
        envelope: EnvelopeBody {
            request_id: request_id(request),
            intent: "implement".to_owned(),
            urgency: "normal".to_owned(),
            scope: String::new(),
            artifacts: Vec::new(),
            params: EnvelopeParams::default(),
            body: String::new(),
            from: Role::Orchestrator,
            to: Role::Developer,
        },
        place: EnvelopeFolder::Inbox,
        attempts: 0,
        not_before: None,
        step: None,
        report: None,
        reason: None,
    }
}

fn change(envelope: &Envelope) -> Change {
    Change::save(envelope.clone())
}

fn state_of(envelopes: &[Envelope]) -> State {
    let mut state = State::default();
    for envelope in envelopes {
        state.apply(&change(envelope));
    }
    state
}

#[test]
fn the_oldest_ready_one_of_a_free_request_comes_first() {
    let mut waiting = delegate(1, "a");
    waiting.not_before = Some(at(1_000));
    let state = state_of(&[waiting, delegate(2, "b"), delegate(3, "b"), delegate(4, "c")]);
    let free = BTreeSet::new();
    let next = |now, busy: &BTreeSet<_>| ready(&state, Role::Developer, at(now), busy, true);
    assert_eq!(next(10, &free), Some(id(2)));
    let busy = BTreeSet::from([(Role::Developer, request_id("b"))]);
    assert_eq!(next(10, &busy), Some(id(4)), "b is worked on");
    let mut at_work = State::clone(&state);
    let (run, who) = (RunId::parse("run-1").unwrap(), (Role::Planner, None));
    let run = Run::new(run, request_id("b"), who, id(5), at(1));
    at_work.apply(&Change::save(run));
    let after = ready(&at_work, Role::Developer, at(10), &free, true);
    assert_eq!(after, Some(id(4)), "b's planner was called back and still works");
    assert_eq!(next(1_000, &free), Some(id(1)), "its time has come");
    assert_eq!(ready(&state, Role::Qa, at(10), &free, true), None);
    assert_eq!(next_due(&state, at(10)), Some(at(1_000)));
    assert_eq!(next_due(&state, at(1_000)), None);
}

#[test]
fn ids_of_other_programs_do_not_jump_the_queue() {
    let mut foreign = delegate(9, "a");
    foreign.relay_id = EnvelopeId::parse("0000aaaa").unwrap();
    let state = state_of(&[delegate(1, "a"), foreign]);
    let next = ready(&state, Role::Developer, at(20), &BTreeSet::new(), true);
    assert_eq!(next, Some(id(1)));
}

#[test]
fn reports_and_forwards_share_one_row() {
    let report = |number: u64, kind: EnvelopeKind| {
        let mut envelope = delegate(number, "a");
        (envelope.kind, envelope.target_role) = (kind, Role::Orchestrator);
        (envelope.envelope.to, envelope.sender_role) = (Role::Orchestrator, Role::Developer);
        envelope.envelope.from = Role::Developer;
        envelope
    };
    let state = state_of(&[
        report(3, EnvelopeKind::Forward),
        report(2, EnvelopeKind::Report),
        report(1, EnvelopeKind::Delegate),
    ]);
    assert_eq!(next_report(&state, at(10)), Some(id(2)));
    let mine = ready(&state, Role::Orchestrator, at(10), &BTreeSet::new(), true);
    assert_eq!(mine, Some(id(1)));
}

fn inbox(root: &Path, role: Role) -> std::path::PathBuf {
    root.join(relay_folder(EnvelopeFolder::Inbox, role))
}

fn scan(root: &Path, state: &State) -> Vec<ScanResult> {
    let known = KnownEnvelopes::of(state);
    examine(root, &known, &candidates(root, || known.clone()).unwrap()).unwrap()
}

fn json(envelope: &Envelope) -> String {
    serde_json::to_string(envelope).unwrap()
}

fn workspace() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for place in [EnvelopeFolder::Inbox, EnvelopeFolder::Archive, EnvelopeFolder::Dead] {
        for role in Role::ALL {
            files::create_dir_all(&root.path().join(relay_folder(place, role))).unwrap();
        }
    }
    files::create_dir_all(&root.path().join(".teams_runtime/internal_relay/tmp")).unwrap();
    root
}

/// The dead letters of the developer.
fn dead_letters(root: &Path) -> Vec<Envelope> {
    let folder = root.join(relay_folder(EnvelopeFolder::Dead, Role::Developer));
    let names = files::list(&folder).unwrap();
    names
        .iter()
        .map(|name| serde_json::from_slice(&files::read(&folder.join(name)).unwrap()).unwrap())
        .collect()
}

#[tokio::test]
async fn a_foreign_drop_is_found_and_gets_its_own_name() {
    let root = workspace();
    let watcher = Watcher::new(root.path()).unwrap();
    watcher.changed().await;
    let state = State::default();
    assert_eq!(scan(root.path(), &state), []);
    let mut dropped = delegate(1, "a");
    dropped.attempts = 77;
    let folder = inbox(root.path(), Role::Developer);
    let temp = root.path().join(".teams_runtime/internal_relay/tmp/x");
    files::write_durable(&temp, json(&dropped)).unwrap();
    files::rename(&temp, &folder.join("whatever.json")).unwrap();
    tokio::time::timeout(std::time::Duration::from_secs(60), watcher.changed())
        .await
        .expect("the rename is noticed");
    dropped.attempts = 0;
    let found = scan(root.path(), &state);
    assert_eq!(found, [ScanResult::Dropped(Box::new(dropped.clone()))]);
    assert!(files::exists(&folder.join(format!("{}.json", id(1)))));
    assert_eq!(scan(root.path(), &state_of(&[dropped])), [], "known now");
}

// Row R06.
#[test]
fn what_is_no_envelope_is_buried_with_its_reason() {
    let root = workspace();
    let folder = inbox(root.path(), Role::Developer);
    let good = delegate(1, "a");
    let mut elsewhere = delegate(2, "a");
    (elsewhere.target_role, elsewhere.envelope.to) = (Role::Qa, Role::Qa);
    let mut liar = delegate(3, "a");
    liar.envelope.from = Role::Qa;
    let bad_id = json(&good).replace(id(1).as_str(), "../../evil");
    files::write(&folder.join("a.json"), "{ not").unwrap();
    files::write(&folder.join("b.json"), json(&elsewhere)).unwrap();
    files::write(&folder.join("c.json"), json(&liar)).unwrap();
    files::write(&folder.join("d.json"), bad_id).unwrap();
    files::create_dir_all(&folder.join("e.json")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", folder.join("f.json")).unwrap();
    files::write(&folder.join(".hidden.json"), "{ not").unwrap();
    let known = state_of(std::slice::from_ref(&good));
    files::write(&folder.join("g.json"), json(&good)).unwrap();
    let found = scan(root.path(), &known);
    assert_eq!(found.len(), 7, "{found:?}");
    for (found, name) in found.iter().zip(["a", "b", "c", "d", "e", "f", "g"]) {
        let ScanResult::Bad { path, reason } = found else {
            panic!("{found:?}");
        };
        let grave = root.path().join(relay_folder(EnvelopeFolder::Dead, Role::Developer));
        assert_eq!(path, &grave.join(format!("{name}-invalid.json")));
        let epitaph = files::read_text(&grave.join(format!("{name}-invalid.reason.txt"))).unwrap();
        assert_eq!(epitaph, format!("{reason}\n"));
    }
    assert_eq!(scan(root.path(), &known), []);
    files::write(&folder.join("a.json"), "{ not").unwrap();
    let [ScanResult::Bad { path, .. }] = &scan(root.path(), &known)[..] else {
        panic!("it is bad again");
    };
    assert!(path.ends_with("a-invalid-1.json"), "{}", path.display());
}

#[test]
fn r05_nobody_but_a_role_of_the_team_has_an_inbox() {
    // Roles are a closed set, so that no code of ours can name another one; a file that does is buried.
    let root = workspace();
    let stranger = json(&delegate(1, "a")).replace("\"developer\"", "\"marketing\"");
    files::write(&inbox(root.path(), Role::Developer).join("a.json"), &stranger).unwrap();
    let elsewhere = inbox(root.path(), Role::Developer).with_file_name("marketing");
    files::create_dir_all(&elsewhere).unwrap();
    files::write(&elsewhere.join("b.json"), &stranger).unwrap();
    let [ScanResult::Bad { reason: BadEnvelope::Unparsable(why), .. }] =
        &scan(root.path(), &State::default())[..]
    else {
        panic!("one is buried and the other is nobody's");
    };
    assert!(why.contains("marketing"), "{why}");
}

#[tokio::test]
async fn r04_a_hand_off_is_one_file_in_the_inbox_of_its_role() {
    let root = tempfile::tempdir().unwrap();
    let opened = Store::open(root.path(), Arc::new(RealDisk)).unwrap();
    opened.store.append(vec![change(&delegate(1, "a"))]).await.unwrap();
    opened.store.settled().await.unwrap();
    for role in Role::ALL {
        let names = files::list(&inbox(root.path(), role)).unwrap();
        let expected = if role == Role::Developer {
            vec![inbox(root.path(), role).join(format!("{}.json", id(1)))]
        } else {
            Vec::new()
        };
        assert_eq!(names, expected, "{role}");
    }
    opened.store.close().unwrap();
}

#[tokio::test]
async fn a_dead_letter_is_replayed_by_moving_it_back() {
    let root = tempfile::tempdir().unwrap();
    let opened = Store::open(root.path(), Arc::new(RealDisk)).unwrap();
    let mut letter = delegate(1, "a");
    opened.store.append(vec![change(&letter)]).await.unwrap();
    letter.place = EnvelopeFolder::Dead;
    letter.attempts = 5;
    letter.reason = Some("poison".to_owned());
    opened.store.append(vec![change(&letter)]).await.unwrap();
    opened.store.settled().await.unwrap();
    let state = State::default();
    assert_eq!(dead_letters(root.path()), [letter.clone()]);
    assert_eq!(scan(root.path(), &state), []);
    let name = format!("{}.json", id(1));
    let grave = root.path().join(relay_folder(EnvelopeFolder::Dead, Role::Developer));
    files::rename(&grave.join(&name), &inbox(root.path(), Role::Developer).join(&name)).unwrap();
    let found = scan(root.path(), &state);
    assert_eq!(found, [ScanResult::Replayed(Box::new(delegate(1, "a")))]);
    opened.store.append(vec![change(&delegate(1, "a"))]).await.unwrap();
    opened.store.close().unwrap();
    assert_eq!(dead_letters(root.path()), []);
}

#[tokio::test]
async fn our_own_consumed_envelopes_are_no_drops() {
    let root = tempfile::tempdir().unwrap();
    let opened = Store::open(root.path(), Arc::new(RealDisk)).unwrap();
    for number in 0..100 {
        let mut letter = delegate(number, "a");
        opened.store.append(vec![change(&letter)]).await.unwrap();
        letter.place = EnvelopeFolder::Archive;
        let consumed = opened.store.append(vec![change(&letter)]);
        // The state has forgotten it, its file may still be in the inbox.
        let unknown = candidates(root.path(), KnownEnvelopes::default).unwrap();
        consumed.await.unwrap();
        opened.store.settled().await.unwrap();
        let found = examine(root.path(), &KnownEnvelopes::default(), &unknown).unwrap();
        assert_eq!(found, [], "envelope {number}");
    }
    // Dropped once more it is known to be a double.
    let path = inbox(root.path(), Role::Developer).join(format!("{}.json", id(7)));
    files::write(&path, json(&delegate(7, "a"))).unwrap();
    let found = scan(root.path(), &State::default());
    let [ScanResult::Bad { reason, .. }] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!(*reason, BadEnvelope::Doubled(id(7).to_string()));
}

#[test]
fn a_thousand_envelopes_keep_their_order_over_restarts() {
    let root = tempfile::tempdir().unwrap();
    let mut opened = Store::open(root.path(), Arc::new(RealDisk)).unwrap();
    let sent: Vec<_> = (0..1_000)
        .map(|number| {
            opened.store.append(vec![change(&delegate(number, &format!("r{}", number % 10)))])
        })
        .collect();
    for appended in sent {
        appended.wait().unwrap();
    }
    let mut handled = Vec::new();
    for life in 0..4 {
        drop(opened.store);
        opened = Store::open(root.path(), Arc::new(RealDisk)).unwrap();
        let mut last = None;
        while let Some(next) =
            ready(&opened.state, Role::Developer, at(5_000), &BTreeSet::new(), true)
        {
            let mut letter = Envelope::clone(&opened.state.envelopes[&next]);
            letter.place = EnvelopeFolder::Archive;
            let consumed = change(&letter);
            opened.state.apply(&consumed);
            last = Some(opened.store.append(vec![consumed]));
            handled.push(next);
            if handled.len() == 250 * (life + 1) {
                break;
            }
        }
        last.unwrap().wait().unwrap();
    }
    let all: Vec<EnvelopeId> = (0..1_000).map(id).collect();
    assert_eq!(handled, all);
    opened.store.close().unwrap();
    let left =
        |place| files::list(&root.path().join(relay_folder(place, Role::Developer))).unwrap();
    assert_eq!(left(EnvelopeFolder::Inbox).len(), 0);
    assert_eq!(left(EnvelopeFolder::Dead).len(), 0);
    let kept: usize =
        left(EnvelopeFolder::Archive).iter().map(|day| files::list(day).unwrap().len()).sum();
    assert_eq!(kept, 1_000);
}
