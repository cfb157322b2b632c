//! What several subjects share.

pub(crate) mod acp_agent;
pub(crate) mod agent_run;
pub(crate) mod axe;
pub(crate) mod chromium;
pub(crate) mod gateway;
pub(crate) mod guild;
pub(crate) mod house;
pub(crate) mod life;
pub(crate) mod model_server;
pub(crate) mod openapi;
pub(crate) mod proxy;
pub(crate) mod sound;
pub(crate) mod team;
pub(crate) mod terminal;
pub(crate) mod whole;
pub(crate) mod wire;
pub(crate) mod yard;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use teams::agents::ContractFns;
use teams::domain::criterion::Criterion;
use teams::domain::lifecycle::StepName;
use teams::domain::result::{Proposals, ResultStatus, RoleResult};
use teams::domain::role::Role;
use teams::domain::sprint::Duty;

/// Looks until there is an answer, at what tells nobody that it has changed.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let looked = async {
        let mut looks = looks();
        loop {
            looks.tick().await;
            if let Some(found) = look().await {
                return found;
            }
        }
    };
    let found = tokio::time::timeout(Duration::from_secs(120), looked).await;
    found.unwrap_or_else(|_| panic!("never happened: {what}"))
}

/// When to look again at what changes all the time: a look takes the time of whoever makes the change.
pub(crate) fn looks() -> tokio::time::Interval {
    let mut looks = tokio::time::interval(Duration::from_millis(25));
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    looks
}

/// A point to be killed at instead of one that a life did not meet: appends are grouped as they come, so that one life
/// has fewer of them than another.
pub(crate) fn earlier(point: u64) -> u64 {
    assert!(point > 1, "a life in which this point did not come at all");
    point * 4 / 5
}

/// A pipe with a name, and the folder that it lies in.
pub(crate) fn fifo(path: &Path) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, path, 0o600.into()).unwrap();
}

/// What becomes another program on a machine whose kernel has no Landlock: a filter of system calls says so.
pub(crate) fn without_landlock() -> Vec<String> {
    // The number of `landlock_create_ruleset` is the same everywhere; that of `prctl` is not.
    let prctl = if cfg!(target_arch = "x86_64") { 157 } else { 167 };
    let text = format!(
        "my $f = pack('SCCL' x 4, 0x20,0,0,0, 0x15,0,1,444, 0x06,0,0,0x50026, 0x06,0,0,0x7fff0000); \
         my $p = pack('Sx6P', 4, $f); \
         syscall({prctl}, 38, 1, 0, 0, 0) == 0 or die $!; \
         syscall({prctl}, 22, 2, $p, 0, 0) == 0 or die $!; exec @ARGV or die $!"
    );
    ["perl".to_owned(), "-e".to_owned(), text].to_vec()
}

/// A `bwrap` that is there and does not work, as where the system keeps user namespaces from it.
pub(crate) fn broken_bubblewrap(folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    let text = "#!/bin/sh\necho 'setting up uid map: Permission denied' >&2\nexit 1\n";
    std::fs::write(folder.join("bwrap"), text).unwrap();
    crate::git_repo::set_mode(&folder.join("bwrap"), 0o755);
}

/// A small contract: enough to judge an answer, not the engine's rules.
pub(crate) const CONTRACT: ContractFns = ContractFns { extract, check, schema };

fn extract(text: &str) -> Option<Value> {
    let from = text.find('{')?;
    let value = serde_json::Deserializer::from_str(&text[from..]).into_iter().next()?.ok()?;
    Some(value)
}

fn check(
    value: &Value,
    role: Role,
    step: Option<StepName>,
    _criteria: &[Criterion],
) -> Result<RoleResult, Vec<String>> {
    let status = match value["status"].as_str() {
        Some("completed") => ResultStatus::Completed,
        Some("blocked") => ResultStatus::Blocked,
        Some("failed") => ResultStatus::Failed,
        _ => return Err(vec!["invalid_status".to_owned()]),
    };
    let proposals = Proposals::read(value.get("proposals")).0;
    if step.is_some() && proposals.workflow_transition.is_none() {
        return Err(vec!["missing_workflow_transition".to_owned()]);
    }
    let mut result = RoleResult::new(role, "");
    result.status = status;
    result.summary = value["summary"].as_str().unwrap_or_default().to_owned();
    result.error = value["error"].as_str().unwrap_or_default().to_owned();
    result.artifacts = serde_json::from_value(value["artifacts"].clone()).unwrap_or_default();
    result.proposals = proposals;
    Ok(result)
}

fn schema(_role: Role, _step: Option<StepName>, _duty: Option<Duty>) -> Value {
    json!({
        "type": "object",
        "properties": {"status": {"type": "string"}, "summary": {"type": "string"}, "proposals": {"type": "object"}},
        "required": ["status", "summary"],
        "additionalProperties": false
    })
}

/// A test skips itself for want of a tool, unless `TEAMS_NO_SKIP` forbids skipping.
#[expect(clippy::print_stderr, reason = "a skipped test has to say so")]
pub(crate) fn skipped(why: &str) {
    assert!(std::env::var_os("TEAMS_NO_SKIP").is_none(), "{why}");
    eprintln!("skipped: {why}");
}

/// The path in a variable. `None` skips the test, unless `TEAMS_NO_SKIP` forbids skipping.
pub(crate) fn installed(variable: &str) -> Option<PathBuf> {
    let found = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.exists());
    if found.is_none() {
        skipped(&format!("{variable} names nothing that is there (.ci/run installs it)"));
    }
    found
}

/// Copies a folder with everything in it.
pub(crate) fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
