//! What was spent: what stands in the ledger of runs (`logs/usage/<month>.jsonl`), and on what is open.

use std::collections::BTreeMap;
use std::path::Path;

use chrono_tz::Tz;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::team::Team;
use crate::domain::budget::{Allowance, BudgetUse, Scope};
use crate::domain::policy::Policy;
use crate::domain::role::Role;
use crate::domain::run::ledger_of;
use crate::domain::state::State;
use crate::domain::time::Timestamp;
use crate::domain::usage::Usage;
use crate::engine;
use crate::engine::standing::{self, LINES};
use crate::platform::files;

const DAY: i64 = 24 * 3_600 * 1_000;

/// One run in the ledger.
#[derive(Debug, Deserialize)]
struct Entry {
    at: Timestamp,
    role: Role,
    usage: Usage,
}

/// Today, the last seven days, by role, and what open requests have taken so far.
pub(super) fn report(team: &Team, now: Timestamp) -> Value {
    let week = Timestamp::from_millis(now.millis() - 7 * DAY);
    let (mut today, mut seven) = (Usage::default(), Usage::default());
    let mut roles: BTreeMap<Role, Usage> = BTreeMap::new();
    let mut runs = 0_usize;
    let zone = team.workspace.runtime.sprint.timezone.0;
    for entry in entries(team.root(), zone, week, now) {
        runs += 1;
        seven = seven.plus(entry.usage);
        let of_role = roles.entry(entry.role).or_default();
        *of_role = of_role.plus(entry.usage);
        if entry.at.budget_day(zone) == now.budget_day(zone) {
            today = today.plus(entry.usage);
        }
    }
    let roles: Vec<Value> = roles
        .into_iter()
        .map(|(role, usage)| json!({ "role": role, "usage": shown(usage) }))
        .collect();
    let open: Vec<Value> = team.hub.read(|state| {
        standing::open(state)
            .filter(|request| request.work.usage != Usage::default())
            .take(LINES)
            .map(|request| {
                let title = standing::title(request);
                let id = request.request_id.as_str();
                json!({ "title": title, "request_id": id, "usage": shown(request.work.usage) })
            })
            .collect()
    });
    let budgets = team.hub.consult(|state, policy| budgets(state, policy, now));
    json!({
        "today": shown(today), "week": shown(seven), "runs": runs, "roles": roles, "open": open,
        "budgets": budgets,
    })
}

/// The budgets that are not a request's, as they stand.
fn budgets(state: &State, policy: &Policy, now: Timestamp) -> Vec<Value> {
    let spending = state.spending.on(&now.budget_day(policy.sprint.zone.0));
    let line = |scope: Scope, role: Option<Role>, budget_use: BudgetUse, budget: Allowance| {
        let limit = budget_use.limit(budget);
        (!budget.is_unlimited()).then(|| {
            json!({
                "scope": scope.as_str(), "role": role,
                "used": engine::amount(limit.usd.map(|_| budget_use.used.cost_usd), limit.tokens.map(|_| budget_use.used.tokens())),
                "limit": engine::amount(limit.usd, limit.tokens),
            })
        })
    };
    let sprint = state.active_sprint().map(|it| spending.of_sprint(&it.sprint_id));
    let day = line(Scope::Day, None, spending.today, policy.budgets.day);
    let sprint =
        sprint.and_then(|budget_use| line(Scope::Sprint, None, budget_use, policy.budgets.sprint));
    let roles = policy.budgets.roles.iter().filter_map(|(role, budget)| {
        let budget_use = spending.roles.get(role).copied().unwrap_or_default();
        line(Scope::Role, Some(*role), budget_use, *budget)
    });
    day.into_iter().chain(sprint).chain(roles).collect()
}

fn shown(usage: Usage) -> Value {
    json!({
        "tokens_in": thousands(usage.input_tokens),
        "cached": thousands(usage.cached_tokens),
        "tokens_out": thousands(usage.output_tokens),
        "usd": if usage.cost_usd > 0.0 { format!("{:.2}", usage.cost_usd) } else { String::new() },
    })
}

/// `840`, `12.3k`, `4.1M`.
fn thousands(count: u64) -> String {
    let tenths = |unit: u64| format!("{}.{}", count / unit, count % unit / (unit / 10));
    match count {
        0..=999 => count.to_string(),
        1_000..=999_999 => format!("{}k", tenths(1_000)),
        _ => format!("{}M", tenths(1_000_000)),
    }
}

/// The runs that ended since; a line that is none, such as one cut by a full disk, is left out.
fn entries(root: &Path, zone: Tz, since: Timestamp, now: Timestamp) -> Vec<Entry> {
    let mut files = vec![ledger_of(since, zone), ledger_of(now, zone)];
    files.dedup();
    let mut all = Vec::new();
    for file in files {
        let text = files::read_text_if_present(&root.join(file)).ok().flatten().unwrap_or_default();
        let parsed = text.lines().filter_map(|line| serde_json::from_str::<Entry>(line).ok());
        all.extend(parsed.filter(|entry| entry.at >= since));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_short() {
        for (count, text) in
            [(0, "0"), (999, "999"), (1_000, "1.0k"), (12_345, "12.3k"), (4_150_000, "4.1M")]
        {
            assert_eq!(thousands(count), text);
        }
    }
}
