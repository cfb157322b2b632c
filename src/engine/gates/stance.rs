//! What the operator's table says about a commit (`gates:` in `team_runtime.yaml`).

use crate::domain::evidence::{Candidate, ChangeKind, Proof};
use crate::domain::gate::{GateKind, Stance};
use crate::domain::guard::GuardFinding;
use crate::domain::policy::GateTable;

/// Files that a commit deletes.
pub(super) fn deleted(candidate: &Candidate) -> usize {
    candidate.paths.iter().filter(|changed| changed.kind == ChangeKind::Deleted).count()
}

/// The strictest of what applies to a commit, and what it is about. What failed before may be allowed where the same
/// tests fail by `name`; an exit code says nothing of what fails.
pub(super) fn of_commit(
    table: &GateTable,
    findings: &[GuardFinding],
    proof: Proof,
    by_name: bool,
) -> (Stance, GateKind) {
    let mut all = Vec::with_capacity(3);
    match proof {
        Proof::None => all.push((table.unproven_commit, GateKind::UnprovenCommit)),
        Proof::RedBefore if table.red_base == Stance::Allow && !by_name => {
            all.push((Stance::Ask, GateKind::RedBase));
        }
        Proof::RedBefore => all.push((table.red_base, GateKind::RedBase)),
        Proof::Green => {}
    }
    all.extend(findings.iter().map(|it| (table.of_guard(it.guard), GateKind::GuardedCommit)));
    all.push((table.commit, GateKind::Commit));
    let strictest = all.into_iter().min_by_key(|(stance, _)| stance.strictness());
    strictest.unwrap_or((Stance::Ask, GateKind::Commit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::guard::Guard;

    fn check(table: &GateTable, guards: &[Guard], proof: Proof, expected: (Stance, GateKind)) {
        let finding = |guard: &Guard| GuardFinding {
            guard: *guard,
            path: "a".to_owned(),
            detail: String::new(),
        };
        let findings: Vec<GuardFinding> = guards.iter().map(finding).collect();
        assert_eq!(of_commit(table, &findings, proof, true), expected, "{guards:?} {proof:?}");
    }

    #[test]
    fn the_strictest_applies() {
        let table = GateTable::default();
        check(&table, &[], Proof::Green, (Stance::Allow, GateKind::Commit));
        check(&table, &[], Proof::None, (Stance::Ask, GateKind::UnprovenCommit));
        for guard in Guard::ALL {
            check(&table, &[guard], Proof::Green, (Stance::Ask, GateKind::GuardedCommit));
        }
        check(&table, &[], Proof::RedBefore, (Stance::Ask, GateKind::RedBase));
        let lenient = GateTable { red_base: Stance::Allow, ..GateTable::default() };
        check(&lenient, &[], Proof::RedBefore, (Stance::Allow, GateKind::RedBase));
        let unnamed = of_commit(&lenient, &[], Proof::RedBefore, false);
        assert_eq!(unnamed, (Stance::Ask, GateKind::RedBase));
        let strict = GateTable { guarded_commit: Stance::Refuse, ..GateTable::default() };
        check(&strict, &[Guard::Machinery], Proof::None, (Stance::Refuse, GateKind::GuardedCommit));
        let every = GateTable { commit: Stance::Ask, ..GateTable::default() };
        check(&every, &[], Proof::Green, (Stance::Ask, GateKind::Commit));
    }
}
