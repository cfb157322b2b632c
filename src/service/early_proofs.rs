//! Early proofs: while the last judgement of a change is still out, the checks run at the tree that the branch will have
//! with it, behind what lands before it. What they say is kept by that tree, as every proof is: where the change comes
//! to stand on it, the checks have run already; where it comes elsewhere, nothing is lost but their time.
//!
//! Only places for checks that nobody needs are used, and whoever needs one gets it at once. Nothing is decided here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::effect_error::EffectError;
use super::proofs;
use super::team::Team;
use crate::domain::evidence::Candidate;
use crate::engine;
use crate::git::{self, CommitId, TreeId};
use crate::platform::tasks;

/// Early proofs of a change as it was built, at most: the branch may move often while it is judged.
const EACH: usize = 3;

/// Proves what is expected on the branch, one tree at a time, until the team closes.
pub(super) async fn keep(team: Arc<Team>) {
    let mut tried = Tried::default();
    while !team.closing.is_cancelled() {
        match step(&team, &mut tried).await {
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
async fn step(team: &Arc<Team>, tried: &mut Tried) -> Result<bool, EffectError> {
    let expected = expected(team);
    tried.keep(&expected);
    if !expected.iter().any(|it| it.is_judged) {
        return Ok(false);
    }
    // From here on whoever needs the place can say so.
    let stop = team.signals.early.begin(&team.closing);
    let Ok(_slot) = team.check_slots.try_acquire() else { return Ok(false) };
    let Some(next) = next(team, &expected, tried).await? else { return Ok(false) };
    team.signals.early.is_about(Some(next.tree));
    let proven = prove(team, &next, &stop).await;
    team.signals.early.is_about(None);
    if stop.is_cancelled() {
        tried.trees.remove(&next.tree);
    }
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

/// What was proven early, or cannot be.
#[derive(Default)]
struct Tried {
    trees: BTreeSet<TreeId>,
    /// By the commit of the candidate.
    changes: BTreeMap<String, usize>,
}

impl Tried {
    /// Forgets what is not expected any more.
    fn keep(&mut self, expected: &[ExpectedChange]) {
        self.changes.retain(|commit, _| expected.iter().any(|it| it.candidate.commit == *commit));
        if self.changes.is_empty() {
            self.trees.clear();
        }
    }
}

/// A commit that is to be proven.
struct EarlyProof {
    /// The commit of the candidate.
    change: String,
    commit: CommitId,
    tree: TreeId,
    head: CommitId,
}

/// The first change that comes to another tree than its own, as far as that was not tried yet.
async fn next(
    team: &Arc<Team>,
    expected: &[ExpectedChange],
    tried: &mut Tried,
) -> Result<Option<EarlyProof>, EffectError> {
    let (project, changes) =
        (team.project.clone(), expected.iter().map(|it| it.candidate.clone()).collect::<Vec<_>>());
    let (head, chain) = tasks::blocking(move || {
        let chain = git::rebase::chain(&project, &changes)?;
        let tree = |commit: CommitId| Ok::<_, git::GitError>((commit, project.tree_of(commit)?));
        let chain = chain.into_iter().map(|commit| commit.map(tree).transpose());
        Ok::<_, EffectError>((project.head()?, chain.collect::<Result<Vec<_>, _>>()?))
    })
    .await??;
    for (change, place) in expected.iter().zip(chain) {
        let Some((commit, tree)) = place.filter(|_| change.is_judged) else { continue };
        let candidate = &change.candidate;
        let count = tried.changes.get(&candidate.commit).copied().unwrap_or(0);
        if candidate.tree == tree.to_string() || count >= EACH || !tried.trees.insert(tree) {
            continue;
        }
        tried.changes.insert(candidate.commit.clone(), count + 1);
        let change = candidate.commit.clone();
        return Ok(Some(EarlyProof { change, commit, tree, head }));
    }
    Ok(None)
}

/// Proves it, as long as its change is expected and nobody needs the place.
async fn prove(
    team: &Arc<Team>,
    proof: &EarlyProof,
    stop: &CancellationToken,
) -> Result<(), EffectError> {
    let proving = proofs::early(team, proof.commit, proof.head, stop);
    tokio::pin!(proving);
    loop {
        tokio::select! {
            proven = &mut proving => break proven,
            () = team.signals.expected.notified() => {
                if !expected(team).iter().any(|it| it.candidate.commit == proof.change) {
                    stop.cancel();
                }
            }
        }
    }
}
