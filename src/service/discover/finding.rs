//! What each source of findings makes of what it found.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use crate::domain::finding::{Finding, Signal};
use crate::domain::origin::Origin;
use crate::platform::redact::redact;

/// Findings of one source that are told at a time; more of the same kind say nothing new.
pub(super) const PER_SOURCE: usize = 20;
/// The same of requests, each of which is one of its own.
pub(super) const REQUESTS: usize = 200;
/// Characters of a finding's summary.
pub(super) const SUMMARY: usize = 600;

/// Up to where each source was read, by its name.
pub type Watermarks = BTreeMap<String, String>;

/// A finding in words that anybody may read: without secrets, cut, the title on one line.
pub(super) fn finding(
    signal: Signal,
    trace: String,
    title: &str,
    summary: &str,
    origin: Origin,
) -> Finding {
    let clean = |text: &str, chars: usize| redact(text).trim().chars().take(chars).collect();
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    let origin = origin.with("signal", signal.as_str());
    Finding { signal, trace, title: clean(&title, 160), summary: clean(summary, SUMMARY), origin }
}

pub(super) fn newest(mut findings: Vec<Finding>, most: usize) -> Vec<Finding> {
    let over = findings.len().saturating_sub(most);
    findings.drain(..over);
    findings
}

/// The first characters of a digest: enough to tell traces apart.
pub(super) fn short_digest(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
