//! Findings of `spec/teams.md` 10.2: what each scope looks at, and that nothing is found twice.

use std::collections::BTreeMap;

use teams::domain::finding::Signal;
use teams::domain::ids::{ItemId, RequestId};
use teams::domain::modes::DiscoveryScope;
use teams::domain::request::{Request, RequestOutcome, RequestStatus, RequestWork};
use teams::domain::result::{ResultStatus, RoleResult};
use teams::domain::role::Role;
use teams::domain::time::Timestamp;
use teams::platform::spawn::set_own_binary;
use teams::service::discover::{DiscoveryInput, Watermarks, look};

use crate::git_repo::{Repo, put};

struct Place {
    repo: Repo,
    marks: Watermarks,
}

fn failed(id: &str, at: i64) -> Request {
    let mut result = RoleResult::new(Role::Developer, id);
    result.status = ResultStatus::Failed;
    result.error = "the build broke".to_owned();
    Request {
        request_id: RequestId::parse(id).unwrap(),
        status: RequestStatus::Failed,
        scope: "add a parser".to_owned(),
        outcome: RequestOutcome {
            ended_at: Some(Timestamp::from_millis(at)),
            ..RequestOutcome::default()
        },
        work: RequestWork { result: Some(std::sync::Arc::new(result)), ..RequestWork::default() },
        ..Request::default()
    }
}

/// The machine's clock, which is also that of the files.
fn now() -> i64 {
    teams::platform::clock::now().timestamp_millis()
}

impl Place {
    fn new() -> Place {
        set_own_binary(env!("CARGO_BIN_EXE_teams").into());
        let repo = Repo::with_workspace_inside();
        Place { repo, marks: Watermarks::new() }
    }

    fn record(&self, request: &Request) {
        let path = format!("ws/.teams_runtime/requests/{}.json", request.request_id);
        put(&self.repo.path.join(path), &serde_json::to_string(request).unwrap());
    }

    /// Looks; the signals and traces.
    async fn look(&mut self, scope: DiscoveryScope, command: &[&str]) -> Vec<(Signal, String)> {
        let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
        let root = self.repo.path.join("ws");
        let spec = DiscoveryInput {
            scratch: root.join("scratch"),
            root,
            project: self.repo.project(),
            git: Default::default(),
            excluded: vec!["ws".into()],
            scope,
            actions: vec![("lint".to_owned(), command)],
            env: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
            now: Timestamp::from_millis(now()),
        };
        let (found, marks) = look(spec, self.marks.clone()).await.unwrap();
        self.marks = marks;
        found.into_iter().map(|finding| (finding.signal, finding.trace)).collect()
    }
}

#[tokio::test]
async fn each_scope_looks_where_it_says_and_nothing_is_found_twice() {
    for (scope, wanted) in [
        (DiscoveryScope::WorkspaceOnly, vec![Signal::OpenRequest]),
        (DiscoveryScope::PlusGit, vec![Signal::OpenRequest, Signal::GitDirty]),
        (
            DiscoveryScope::BroadScan,
            vec![
                Signal::RoleFailure,
                Signal::GitDirty,
                Signal::RuntimeLogError,
                Signal::DiscoveryActionCheck,
            ],
        ),
    ] {
        let mut place = Place::new();
        place.record(&failed("20260324-00000001", now()));
        place.repo.write("left.txt", "left\n");
        place.repo.write("ws/logs/teams.log", "2026-03-24T00:00:00Z ERROR no space\n");
        let lint = ["sh", "-c", "echo bad; exit 3"];
        let found = place.look(scope, &lint).await;
        let signals: Vec<Signal> = found.iter().map(|(signal, _)| *signal).collect();
        assert_eq!(signals, wanted, "{scope:?}");
        assert_eq!(found[0].1, "request:20260324-00000001");
        for _ in 0..2 {
            assert_eq!(place.look(scope, &lint).await, [], "{scope:?}");
        }
        let scratch = place.repo.path.join("ws/scratch");
        assert!(std::fs::read_dir(scratch).map_or(0, Iterator::count) == 0);
    }
}

#[tokio::test]
async fn what_is_new_since_is_found_and_what_others_look_after_is_not() {
    let mut place = Place::new();
    let scope = DiscoveryScope::BroadScan;
    let pass = ["true"];
    assert_eq!(place.look(scope, &pass).await, []);
    // Each ended shortly before the look, so that the next one meets it again.
    let late = failed("20260324-00000002", now());
    place.record(&late);
    let mut planned = failed("20260324-00000003", now());
    planned.backlog_id = Some(ItemId::parse("backlog-1").unwrap());
    place.record(&planned);
    let mut own = failed("20260324-00000004", now());
    own.params.kind = Some("sprint_internal".to_owned());
    place.record(&own);
    let mut good = failed("20260324-00000005", now());
    good.status = RequestStatus::Completed;
    place.record(&good);
    let traces = |found: Vec<(Signal, String)>| -> Vec<String> {
        found.into_iter().map(|(_, trace)| trace).collect()
    };
    let found = traces(place.look(scope, &pass).await);
    assert_eq!(found, ["request:20260324-00000002"]);
    assert_eq!(place.look(scope, &pass).await, []);
    // Another file is told; the first one is known.
    place.repo.write("one.txt", "1");
    let one = place.look(scope, &pass).await;
    place.repo.write("one.txt", "1, again");
    assert_eq!(place.look(scope, &pass).await, []);
    place.repo.write("two.txt", "2");
    let two = place.look(scope, &pass).await;
    assert_eq!((one.len(), two.len()), (1, 1));
    assert_ne!(one, two);
}

#[tokio::test]
async fn an_action_that_cannot_run_is_told_as_such() {
    let action = vec![(Signal::DiscoveryActionFailure, "action:lint".to_owned())];
    for command in [&["/no/such/program"][..], &["echo", "{name}"], &[]] {
        let mut place = Place::new();
        let found = place.look(DiscoveryScope::BroadScan, command).await;
        assert_eq!(found, action, "{command:?}");
    }
}
