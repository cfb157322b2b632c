//! What has to hold after every story, however it went.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use teams::domain::request::Request;
use teams::platform::disk::RealDisk;
use teams::store::Store;

use super::house::{House, words};

/// Looks at a house whose team has stopped. `complaints`: the story has bad envelopes or refusals.
pub(crate) async fn looks_right(house: &House, complaints: bool) {
    let requests = house.requests();
    one_place_each(&house.root(), complaints);
    for request in &requests {
        if !complaints {
            let refused = house.times(request, "message_refused");
            assert_eq!(refused, 0, "Discord refused a message\n{}", house.log());
        }
        one_last_word(house, request).await;
    }
    // What an older runtime committed lies in its own repository, and had no candidate.
    let ours = |request: &&Request| {
        request.outcome.commit_sha.is_some() && request.work.candidate.is_some()
    };
    let committed = requests.iter().filter(ours).count();
    let team = house.commits().iter().filter(|subject| is_ours(subject, &requests)).count();
    assert_eq!(team, committed, "commits on the branch: {:?}", house.commits());
    empty_tail(house);
}

fn is_ours(subject: &str, requests: &[Request]) -> bool {
    requests.iter().any(|request| {
        let todo = request.todo_id.as_ref().is_some_and(|todo| subject.contains(todo.as_str()));
        todo || subject.contains(request.request_id.as_str())
    })
}

/// Every envelope lies in exactly one of the three places.
fn one_place_each(root: &Path, complaints: bool) {
    let mut places: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    let relay = root.join(".teams_runtime/internal_relay");
    for place in ["inbox", "archive", "dead"] {
        for path in files_below(&relay.join(place)) {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let Some(stem) = name.strip_suffix(".json") else { continue };
            assert!(complaints || place != "dead", "a dead letter: {}", path.display());
            if !stem.contains("-invalid") {
                places.entry(stem.to_owned()).or_default().push(path);
            }
        }
    }
    for (id, paths) in places {
        assert_eq!(paths.len(), 1, "{id} lies in {paths:?}");
    }
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// At most one outcome is told for each request.
async fn one_last_word(house: &House, request: &Request) {
    let mut outcomes = 0;
    for channel in house.channels().await {
        for message in house.messages(&channel).await {
            let text = words(&message);
            let about = text.contains(&format!("`{}`", request.request_id));
            let last = ["**Done.**", "**Kept aside.**", "**Not done.**", "no file changed"];
            if about && last.iter().any(|word| text.contains(word)) {
                outcomes += 1;
            }
        }
    }
    assert!(outcomes <= 1, "{} was told {outcomes} outcomes", request.request_id);
}

/// A clean stop leaves nothing to replay.
fn empty_tail(house: &House) {
    let opened = Store::open(&house.root(), Arc::new(RealDisk)).unwrap();
    assert_eq!(opened.report.replayed, 0, "the stop was not clean\n{}", house.log());
    assert!(opened.report.set_aside.is_empty(), "{:?}", opened.report.set_aside);
    opened.store.close().unwrap();
}

/// Processes that work in the folder or are about it, with their command lines.
pub(crate) fn processes_in(folder: &Path) -> Vec<(i32, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        let cwd = std::fs::read_link(entry.path().join("cwd")).unwrap_or_default();
        let inside = cwd.starts_with(folder) || command.contains(folder.to_str().unwrap());
        if inside && u32::try_from(pid).ok() != Some(std::process::id()) {
            found.push((pid, command));
        }
    }
    found
}
