//! Early proofs: while the last judgement of a change is still out, the checks run at the tree that the branch will have
//! with it, behind what lands before it. What they say is kept by that tree, as every proof is: where the change comes
//! to stand on it, the checks have run already; where it comes elsewhere, nothing is lost but their time.
//!
//! Only places for checks that nobody needs are used, and whoever needs one gets it at once. Nothing is decided here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::checks;
use super::effect_error::EffectError;
use super::proofs;
use super::team::Team;
use crate::domain::evidence::Candidate;
use crate::engine;
use crate::git::{self, CommitId, GitError, TreeId};
use crate::platform::tasks;

/// Early proofs of a change as it was built, at most: the branch may move often while it is judged.
const EACH: usize = 3;

/// Proves what is expected on the branch, one tree at a time, until the team closes.
pub(super) async fn keep(team: Arc<Team>) {
    if let Err(trouble) = checks::end_early(&team).await {
        tracing::debug!(%trouble, "an early proof of an earlier start was not put away");
    }
    let mut done = EarlyProofs::default();
    while !team.closing.is_cancelled() {
        match step(&team, &mut done).await {
            Ok(true) => continue,
            Ok(false) => {}
            Err(trouble) => {
                tracing::debug!(%trouble, "what is expected on the branch was not proven early");
            }
        }
        tokio::select! {
            () = team.closing.cancelled() => {}
            () = team.signals.expected.notified() => {}
        }
    }
}

/// Whether there was something to prove.
async fn step(team: &Arc<Team>, done: &mut EarlyProofs) -> Result<bool, EffectError> {
    let expected = expected(team);
    done.forget(&expected);
    if !expected.iter().any(|change| change.is_judged && done.is_open(change)) {
        return Ok(false);
    }
    // From here on whoever needs the place can say so.
    let stop = team.signals.early.begin(&team.closing);
    let Ok(_place) = team.check_slots.try_acquire() else { return Ok(false) };
    let branch = composed(team, &expected).await?;
    let mut all = expected.iter().zip(&branch.changes);
    let next = all.find_map(|(change, place)| {
        let place = place.as_ref().filter(|place| done.is_wanted(change, place.tree))?;
        Some((change, place))
    });
    let Some((change, place)) = next else { return Ok(false) };
    team.signals.early.is_about(Some(place.tree));
    let proven = prove(team, place, branch.head, &stop).await;
    team.signals.early.is_about(None);
    if stop.is_cancelled() {
        return Ok(true);
    }
    done.note(change, place.tree);
    proven.map(|()| true)
}

/// A change that is expected on the branch.
struct ExpectedChange {
    candidate: Candidate,
    /// Whether it is not in the queue yet, where it would be proven anyway.
    is_judged: bool,
}

fn expected(team: &Team) -> Vec<ExpectedChange> {
    let all = team.hub.consult(engine::expected).into_iter();
    all.filter_map(|(request, is_judged)| {
        Some(ExpectedChange { candidate: request.work.candidate.clone()?, is_judged })
    })
    .collect()
}

/// What was proven early to its end, whatever came of it.
#[derive(Default)]
struct EarlyProofs {
    trees: BTreeSet<TreeId>,
    /// How often, by the commit of the candidate.
    changes: BTreeMap<String, usize>,
}

impl EarlyProofs {
    /// Forgets what is not expected any more.
    fn forget(&mut self, expected: &[ExpectedChange]) {
        self.changes.retain(|commit, _| expected.iter().any(|it| it.candidate.commit == *commit));
        if self.changes.is_empty() {
            self.trees.clear();
        }
    }

    fn is_open(&self, change: &ExpectedChange) -> bool {
        self.changes.get(&change.candidate.commit).is_none_or(|count| *count < EACH)
    }

    /// Whether a change is to be proven as this tree; its own is known.
    fn is_wanted(&self, change: &ExpectedChange, tree: TreeId) -> bool {
        change.is_judged
            && self.is_open(change)
            && change.candidate.tree != tree.to_string()
            && !self.trees.contains(&tree)
    }

    fn note(&mut self, change: &ExpectedChange, tree: TreeId) {
        self.trees.insert(tree);
        *self.changes.entry(change.candidate.commit.clone()).or_default() += 1;
    }
}

/// The branch, and what it is going to be with each of the changes.
struct ComposedBranch {
    head: CommitId,
    changes: Vec<Option<ComposedChange>>,
}

struct ComposedChange {
    commit: CommitId,
    tree: TreeId,
}

async fn composed(team: &Team, expected: &[ExpectedChange]) -> Result<ComposedBranch, EffectError> {
    let candidates: Vec<Candidate> = expected.iter().map(|it| it.candidate.clone()).collect();
    let project = team.project.clone();
    tasks::blocking(move || {
        let head = project.head()?;
        let place =
            |commit| Ok::<_, GitError>(ComposedChange { commit, tree: project.tree_of(commit)? });
        let chain = git::rebase::chain(&project, head, &candidates)?.into_iter();
        let changes = chain.map(|commit| commit.map(place).transpose());
        Ok(ComposedBranch { head, changes: changes.collect::<Result<_, _>>()? })
    })
    .await?
}

/// Proves it, as long as a change is expected to come to this tree and nobody needs the place.
async fn prove(
    team: &Arc<Team>,
    place: &ComposedChange,
    head: CommitId,
    stop: &CancellationToken,
) -> Result<(), EffectError> {
    let proving = proofs::early(team, place.commit, head, stop);
    tokio::pin!(proving);
    loop {
        tokio::select! {
            proven = &mut proving => break proven,
            () = team.signals.expected.notified() => {
                let now = composed(team, &expected(team)).await?.changes;
                if !now.iter().flatten().any(|it| it.tree == place.tree) {
                    stop.cancel();
                }
            }
        }
    }
}
