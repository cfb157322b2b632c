//! What agents were told, kept beyond the end of their requests, and found again.

use std::collections::BTreeMap;
use std::path::Path;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};

use crate::agents::{self, PromptRecord, SentText};
use crate::domain::ids::RequestId;
use crate::domain::record::RUNTIME;
use crate::platform::files::{self, FileError};
use crate::worker::RUNS;

/// Where prompts of ended requests are, in the state's folder.
const PROMPTS: &str = "prompts";
/// Ended requests whose prompts are kept.
const KEPT: usize = 100;
/// How the name of a file ends that holds those of one request.
const PACKED: &str = ".json.gz";

/// Why prompts could not be kept or found.
#[derive(Debug, thiserror::Error)]
pub enum PromptsError {
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
    /// They have no JSON form.
    #[error("prompts cannot be written down: {0}")]
    Json(#[from] serde_json::Error),
    /// They could not be packed.
    #[error("prompts cannot be packed: {0}")]
    Pack(#[source] std::io::Error),
}

/// A run and what its agent was told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    let mut told = of_folder(&state.join(RUNS).join(id.as_str()))?;
    if told.is_empty() {
        return Ok(());
    }
    let file = all.join(format!("{id}{PACKED}"));
    let known = |run: &RunPrompts| told.iter().any(|it| it.run == run.run);
    let earlier: Vec<_> = unpacked(&file).into_iter().filter(|run| !known(run)).collect();
    told.extend(earlier);
    told.sort_by(|one, other| one.run.cmp(&other.run));
    files::create_dir_all(&all)?;
    files::write_private_durable(&file, packed(&told)?)?;
    Ok(files::keep_newest(&all, &file, KEPT)?)
}

fn packed(told: &[RunPrompts]) -> Result<Vec<u8>, PromptsError> {
    let mut pack = GzEncoder::new(Vec::new(), Compression::default());
    serde_json::to_writer(&mut pack, told)?;
    pack.finish().map_err(PromptsError::Pack)
}

/// What a file of them holds; nothing where there is none, or none that can be read.
fn unpacked(file: &Path) -> Vec<RunPrompts> {
    let Ok(bytes) = files::read(file) else { return Vec::new() };
    serde_json::from_reader(GzDecoder::new(bytes.as_slice())).unwrap_or_else(|error| {
        tracing::warn!(file = %file.display(), %error, "prompts that were kept cannot be read");
        Vec::new()
    })
}

/// The runs in a folder of a request, oldest first.
fn of_folder(request: &Path) -> Result<Vec<RunPrompts>, PromptsError> {
    let mut told = Vec::new();
    for folder in files::folders(request)? {
        match agents::sent(&folder) {
            Ok(Some((record, sent))) => {
                told.push(RunPrompts { run: name(&folder), record, sent });
            }
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(folder = %folder.display(), %error, "prompts cannot be read");
            }
        }
    }
    Ok(told)
}

/// The runs of a request, or those whose id begins like this, oldest first. Reads files only: no team
/// has to be running.
///
/// # Errors
/// Where they cannot be read.
pub fn told(root: &Path, wanted: &str) -> Result<Vec<RunPrompts>, PromptsError> {
    let state = root.join(RUNTIME);
    let mut found: BTreeMap<String, RunPrompts> = BTreeMap::new();
    let mut add = |request: &str, told: Vec<RunPrompts>| {
        let like = |run: &RunPrompts| wanted.len() >= 8 && run.run.starts_with(wanted);
        for run in told.into_iter().filter(|run| request == wanted || like(run)) {
            found.entry(run.run.clone()).or_insert(run);
        }
    };
    // What is under way, and what was put away; earlier builds put away folders.
    for folder in [RUNS, PROMPTS] {
        for path in files::folders(&state.join(folder))? {
            add(&name(&path), of_folder(&path)?);
        }
    }
    for path in files::list(&state.join(PROMPTS))? {
        if let Some(request) = name(&path).strip_suffix(PACKED) {
            add(request, unpacked(&path));
        }
    }
    Ok(found.into_values().collect())
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
        assert_eq!(files::list(&state.join(PROMPTS)).unwrap().len(), 1);
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
        assert_eq!((left.len(), name(&left[0])), (KEPT, "20260101-00000003.json.gz".to_owned()));
    }
}
