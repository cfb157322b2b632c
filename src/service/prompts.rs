//! What agents were told, kept beyond the end of their requests, and found again.

use std::path::{Path, PathBuf};

use crate::agents::{self, PromptRecord, RunError, SentText};
use crate::domain::ids::RequestId;
use crate::domain::record::RUNTIME;
use crate::platform::files::{self, FileError};
use crate::worker::RUNS;

/// Where prompts of ended requests are, in the state's folder.
const PROMPTS: &str = "prompts";
/// Ended requests whose prompts are kept.
const KEPT: usize = 100;

/// Why prompts could not be kept or found.
#[derive(Debug, thiserror::Error)]
pub enum PromptsError {
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
    /// The folder of a run.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// A run and what its agent was told.
#[derive(Debug, Clone)]
pub struct RunPrompts {
    /// The run with its generation, as its folder is called.
    pub run: String,
    /// What the prompt was made of.
    pub record: PromptRecord,
    /// The texts, in order.
    pub sent: Vec<SentText>,
}

/// Keeps the prompts of a request that is over; those of the oldest go. May be done again.
pub(super) fn keep(state: &Path, id: &RequestId) -> Result<(), PromptsError> {
    let all = state.join(PROMPTS);
    for run in files::folders(&state.join(RUNS).join(id.as_str()))? {
        if let Some(name) = run.file_name() {
            agents::keep_sent(&run, &all.join(id.as_str()).join(name))?;
        }
    }
    // Ids of requests begin with their day, and those of runs with their time.
    let mut requests = files::list(&all)?;
    requests.sort_by_key(|folder| newest_run(folder));
    for old in requests.iter().take(requests.len().saturating_sub(KEPT)) {
        files::remove_dir_all(old)?;
    }
    Ok(())
}

/// The name of the newest run in a folder; it sorts by time.
fn newest_run(folder: &Path) -> Option<std::ffi::OsString> {
    let runs = files::list(folder).unwrap_or_default();
    runs.last().and_then(|run| run.file_name()).map(ToOwned::to_owned)
}

/// The runs of a request, or those whose id begins like this, oldest first. Reads files only: no team
/// has to be running.
///
/// # Errors
/// Where they cannot be read.
pub fn told(root: &Path, wanted: &str) -> Result<Vec<RunPrompts>, PromptsError> {
    let state = root.join(RUNTIME);
    let mut found: Vec<(String, PathBuf, PathBuf)> = Vec::new();
    for requests in [RUNS, PROMPTS].map(|folder| state.join(folder)) {
        // Beside the folders lie the records of runs that are under way.
        for request in files::folders(&requests)? {
            let whole = name(&request) == wanted;
            for run in files::folders(&request)? {
                let run_name = name(&run);
                let like = wanted.len() >= 8 && run_name.starts_with(wanted);
                let known = found.iter().any(|(known, ..)| *known == run_name);
                if (whole || like) && !known {
                    let kept = state.join(PROMPTS).join(name(&request)).join(&run_name);
                    found.push((run_name, run, kept));
                }
            }
        }
    }
    found.sort();
    let mut told = Vec::new();
    for (run, folder, kept) in found {
        let read = agents::sent(&folder);
        // Where the request ended meanwhile, its prompts were put away first.
        let read = if files::exists(&folder) { read } else { agents::sent(&kept) };
        if let Some((record, sent)) = read? {
            told.push(RunPrompts { run, record, sent });
        }
    }
    Ok(told)
}

fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(state: &Path, request: &str, run: &str, prompt: &str) {
        let folder = state.join(RUNS).join(request).join(run);
        files::create_dir_all(&folder.join("turn-0")).unwrap();
        files::create_dir_all(&folder.join("turn-1")).unwrap();
        files::create_dir_all(&folder.join("turn-2")).unwrap();
        files::write(&folder.join("prompt.md"), prompt).unwrap();
        files::write(&folder.join("spec.json"), "{}").unwrap();
        let record = json!({"role": "developer", "step": null, "request_id": request, "attempt": 1,
            "agent": "codex", "resumes": null, "instructions": "CHARTER", "budget": 9, "sections": []});
        files::write(&folder.join("prompt.json"), record.to_string()).unwrap();
        files::write(&folder.join("turn-0/told.jsonl"), "\"make it\\nblue\"\n\"to").unwrap();
        files::write(&folder.join("turn-1/prompt.md"), "again").unwrap();
        files::write(&folder.join("turn-1/turn.json"), r#"{"repairs":1,"repairing":true}"#)
            .unwrap();
        files::write(&folder.join("turn-2/prompt.md"), "words").unwrap();
        files::write(&folder.join("turn-2/turn.json"), r#"{"repairs":1,"repairing":false}"#)
            .unwrap();
    }

    #[test]
    fn what_was_sent_is_found_by_request_and_by_run_also_after_its_end() {
        let root = tempfile::tempdir().unwrap();
        let state = root.path().join(RUNTIME);
        let id = RequestId::parse("20260101-00000001").unwrap();
        run(&state, id.as_str(), "0192aaaa-1.1", "first");
        run(&state, id.as_str(), "0192bbbb-2.1", "second");
        run(&state, "20260101-00000002", "0192cccc-3.1", "other");
        let texts = |told: &[RunPrompts]| -> Vec<Vec<(agents::Why, String)>> {
            let one =
                |told: &RunPrompts| told.sent.iter().map(|it| (it.why, it.text.clone())).collect();
            told.iter().map(one).collect()
        };
        let of = |first: &str| {
            use agents::Why::{Prompt, Repair, ToldAtWork, Words};
            let own = |text: &str| text.to_owned();
            vec![
                (Prompt, own(first)),
                (ToldAtWork, own("make it\nblue")),
                (Repair, own("again")),
                (Words, own("words")),
            ]
        };
        let before = told(root.path(), id.as_str()).unwrap();
        assert_eq!(texts(&before), [of("first"), of("second")]);
        assert_eq!(texts(&told(root.path(), "0192bbbb").unwrap()), [of("second")]);
        keep(&state, &id).unwrap();
        keep(&state, &id).unwrap();
        files::remove_dir_all(&state.join(RUNS).join(id.as_str())).unwrap();
        let after = told(root.path(), id.as_str()).unwrap();
        assert_eq!(texts(&after), texts(&before));
        let kept = state.join(PROMPTS).join(id.as_str()).join("0192aaaa-1.1/spec.json");
        assert!(!files::exists(&kept));
        for nothing in ["0192", "../..", "", "20260101-00000009"] {
            assert!(told(root.path(), nothing).unwrap().is_empty(), "{nothing}");
        }
    }

    #[test]
    fn only_the_last_hundred_are_kept() {
        let root = tempfile::tempdir().unwrap();
        let state = root.path();
        for number in 0..KEPT + 3 {
            let request = format!("20260101-{number:08}");
            run(state, &request, &format!("0192{number:04}-1.1"), "x");
            keep(state, &RequestId::parse(&request).unwrap()).unwrap();
        }
        let left = files::list(&state.join(PROMPTS)).unwrap();
        assert_eq!((left.len(), name(&left[0])), (KEPT, "20260101-00000003".to_owned()));
    }
}
