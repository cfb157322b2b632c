//! The rules that read a message's intent, held against labelled messages: a folder is a set of its
//! own, and none of its sentences stands in the rules.

use std::path::{Path, PathBuf};

use serde_json::Value;
use teams::domain::intent::Intent;
use teams::engine::intent::read;

/// A folder with fewer messages says too little to fail for.
const ENOUGH: usize = 30;

/// How long the way of an intent is: the lanes answer, fast, quick, standard and full.
fn lane(intent: Intent) -> u8 {
    match intent {
        Intent::Question | Intent::Control | Intent::Resume => 0,
        Intent::Hotfix => 1,
        Intent::BugFix | Intent::ImplementationOnly => 2,
        Intent::Refinement | Intent::Refactor | Intent::Incident => 3,
        Intent::Feature | Intent::SpecRevision => 4,
    }
}

fn folders() -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/phrases");
    let entries = std::fs::read_dir(&own).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    found.sort();
    found.extend(std::env::var_os("TEAMS_PHRASES").map(PathBuf::from));
    found
}

#[test]
#[expect(clippy::print_stdout, reason = "the figures are what people run it for")]
fn phrases() {
    let mut failed = Vec::new();
    for folder in folders() {
        let file = folder.join("intents.jsonl");
        let text = std::fs::read_to_string(&file)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let (mut all, mut answered, mut right, mut shorter) = (0, 0, 0, 0);
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let message: Value = serde_json::from_str(line).unwrap();
            let wanted: Intent = message["intent"].as_str().unwrap().parse().unwrap();
            all += 1;
            let Some(found) = read(message["text"].as_str().unwrap()).intent else { continue };
            answered += 1;
            right += usize::from(found == wanted);
            shorter += usize::from(lane(found) < lane(wanted));
        }
        let name = folder.canonicalize().unwrap();
        let name = name.file_name().unwrap().to_string_lossy();
        let line = format!(
            "phrases {name}: answered {answered} of {all}, right {right}, shorter {shorter}"
        );
        println!("{line}");
        let good =
            answered * 100 >= all * 40 && right * 100 >= answered * 90 && shorter * 100 <= all * 2;
        if all >= ENOUGH && !good {
            failed.push(line);
        }
    }
    assert!(
        failed.is_empty(),
        "below 40 % answered, 90 % right or above 2 % shorter:\n{failed:#?}"
    );
}
