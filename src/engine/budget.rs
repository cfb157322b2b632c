//! What may be spent, and what happens when it is: at four fifths people are told, and at the end no run
//! begins before a person says so.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::say;
use super::turn::Turn;
use crate::domain::budget::{
    Allowance, BudgetRefusal, BudgetUse, PlanLimit, Scope, SharedBudgets, Spending,
};
use crate::domain::config::AgentKind;
use crate::domain::ids::{RequestId, SprintId};
use crate::domain::outgoing::{NamedChannel, Priority, Target, Voice};
use crate::domain::policy::Policy;
use crate::domain::request::Request;
use crate::domain::role::Role;
use crate::domain::run::{Run, RunReport};
use crate::domain::sprint::Sprint;
use crate::domain::state::State;
use crate::domain::time::Timestamp;
use crate::domain::usage::Usage;

/// The part of a budget at which people are told.
const NEARLY: f64 = 0.8;

/// A budget with what was spent of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Account {
    pub(super) scope: Scope,
    budget_use: BudgetUse,
    budget: Allowance,
}

impl Account {
    fn share(&self) -> f64 {
        self.budget_use.limit(self.budget).share(self.budget_use.used)
    }

    fn left(&self) -> Allowance {
        self.budget_use.limit(self.budget).left(self.budget_use.used)
    }

    pub(super) fn is_spent(&self) -> bool {
        self.share() >= 1.0
    }

    /// The values of a card or a message.
    pub(super) fn values(&self, role: Role) -> Value {
        let limit = self.budget_use.limit(self.budget);
        json!({
            "scope": self.scope.as_str(),
            "role": role,
            "used": amount(Some(self.budget_use.used.cost_usd).filter(|_| limit.usd.is_some()),
                limit.tokens.map(|_| self.budget_use.used.tokens())),
            "limit": amount(limit.usd, limit.tokens),
            "more": amount(self.budget.usd, self.budget.tokens),
        })
    }

    /// The digest of what a person decides on: this budget, as often as it was granted so far.
    pub(super) fn digest(&self, of: &str) -> String {
        let Allowance { usd, tokens } = self.budget;
        let raised = self.budget_use.raised;
        let text = format!("{}\0{of}\0{raised}\0{usd:?}\0{tokens:?}", self.scope.as_str());
        Sha256::digest(text).iter().take(20).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// An amount for templates: dollars, tokens or both.
#[must_use]
pub fn amount(usd: Option<f64>, tokens: Option<u64>) -> Value {
    json!({ "usd": usd.map_or_else(String::new, |usd| format!("{usd:.2}")),
        "tokens": tokens.map_or_else(String::new, |tokens| tokens.to_string()) })
}

/// The sprint that a request spends for: its own, or the active one where it is a duty of it.
fn sprint_of(turn: &Turn<'_>, request: &Request) -> Option<SprintId> {
    let active = || turn.scheduler().active_sprint_id.clone();
    request.sprint_id.clone().or_else(|| request.duty().and_then(|_| active()))
}

/// What a budget is about, as one word.
pub(super) fn subject(turn: &Turn<'_>, request: &Request, role: Role, scope: Scope) -> String {
    match scope {
        Scope::Request => request.request_id.to_string(),
        Scope::Sprint => sprint_of(turn, request).map(|id| id.to_string()).unwrap_or_default(),
        Scope::Role => format!("{role} {}", turn.now.budget_day(turn.zone())),
        Scope::Day => turn.now.budget_day(turn.zone()),
    }
}

/// One budget as it stands for a request and a role; none where there is no limit.
pub(super) fn account(
    turn: &Turn<'_>,
    request: &Request,
    role: Role,
    scope: Scope,
) -> Option<Account> {
    let budgets = &turn.policy.budgets;
    let spending = turn.spending();
    let (budget_use, budget) = match scope {
        Scope::Request => (request.budget_use(), budgets.request),
        Scope::Sprint => (spending.of_sprint(&sprint_of(turn, request)?), budgets.sprint),
        Scope::Role => {
            let budget_use = spending.roles.get(&role).copied().unwrap_or_default();
            (budget_use, budgets.roles.get(&role).copied()?)
        }
        Scope::Day => (spending.today, budgets.day),
    };
    (!budget.is_unlimited()).then_some(Account { scope, budget_use, budget })
}

/// A budget of the day of which a person wants no more before the next one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct DeclinedBudget {
    /// Whose it is; none where it is that of all roles.
    role: Option<Role>,
    declined: BudgetRefusal,
}

impl DeclinedBudget {
    /// The values of a message about what waits for the next day in this sprint.
    pub(super) fn values(&self, sprint: &Sprint) -> Value {
        let ends = sprint.cutoff_at.is_some_and(|at| at < self.declined.until);
        json!({ "role": self.role, "ends": ends })
    }

    /// Whether it was told that a sprint waits for it.
    pub(super) const fn is_told(&self) -> bool {
        self.declined.told
    }
}

/// The budget for which no todo begins today, where there is one: each would ask once more for what was turned down.
pub(super) fn declined(turn: &Turn<'_>) -> Option<DeclinedBudget> {
    declined_at(&turn.spending(), turn.policy, turn.now)
}

/// The same outside of a decision.
pub(super) fn declined_at(
    spending: &Spending,
    policy: &Policy,
    now: Timestamp,
) -> Option<DeclinedBudget> {
    // Nothing was turned down, as on most days.
    spending.declined().next()?;
    let lifecycle = &policy.lifecycle;
    let begins = lifecycle.step(lifecycle.begin_todo);
    let roles = begins.into_iter().chain(lifecycle.usual_steps()).map(|step| step.role);
    declined_for(spending, policy, now, roles)
}

/// The same for a run of one role.
pub(super) fn is_declined(turn: &Turn<'_>, role: Role) -> bool {
    declined_for(&turn.spending(), turn.policy, turn.now, [role]).is_some()
}

fn declined_for(
    spending: &Spending,
    policy: &Policy,
    now: Timestamp,
    roles: impl IntoIterator<Item = Role>,
) -> Option<DeclinedBudget> {
    let of = |role: Option<Role>, budget_use: Option<&BudgetUse>, budget: Allowance| {
        let declined = budget_use?.declined?;
        // Who has changed the configuration since may be asked anew.
        let is_same = budget_use?.limit(budget) == declined.limit;
        (is_same && declined.until > now).then_some(DeclinedBudget { role, declined })
    };
    of(None, Some(&spending.today), policy.budgets.day).or_else(|| {
        let of_role = |role: Role| {
            of(Some(role), spending.roles.get(&role), *policy.budgets.roles.get(&role)?)
        };
        roles.into_iter().find_map(of_role)
    })
}

fn accounts(turn: &Turn<'_>, id: &RequestId, role: Role) -> Vec<Account> {
    let Some(request) = turn.request(id) else { return Vec::new() };
    Scope::ALL.into_iter().filter_map(|scope| account(turn, request, role, scope)).collect()
}

/// The first budget that has nothing left for a run of the role on the request.
pub(super) fn spent(turn: &Turn<'_>, id: &RequestId, role: Role) -> Option<Account> {
    accounts(turn, id, role).into_iter().find(Account::is_spent)
}

/// What a run of the role on the request may spend: the narrowest of what is left.
pub(super) fn allowance(turn: &Turn<'_>, id: &RequestId, role: Role) -> Allowance {
    let left = accounts(turn, id, role).into_iter().map(|it| it.left());
    left.fold(turn.policy.budgets.run, Allowance::and)
}

/// The budgets of a run of the role on the request, by what they are called among runs.
fn named(turn: &Turn<'_>, id: &RequestId, role: Role) -> BTreeMap<String, Account> {
    let Some(request) = turn.request(id) else { return BTreeMap::new() };
    let name = |scope| format!("{scope} {}", subject(turn, request, role, scope));
    accounts(turn, id, role).into_iter().map(|it| (name(it.scope), it)).collect()
}

/// What it may spend together with those under way, of which nobody knows yet what they have spent.
pub(super) fn shared(turn: &Turn<'_>, run: &Run) -> SharedBudgets {
    let all = named(turn, &run.request_id, run.role).into_iter();
    let left: BTreeMap<_, _> = all.map(|(name, it)| (name, it.left())).collect();
    let others = turn.before().runs.values().filter(|it| it.run_id != run.run_id);
    let beside = others.map(|it| (it.run_id.clone(), it.generation));
    match left.is_empty() {
        true => SharedBudgets::default(),
        false => SharedBudgets { left, beside: beside.collect() },
    }
}

fn is_spent_alone(turn: &Turn<'_>, report: &RunReport) -> bool {
    let usage = turn.policy.prices.priced(&report.model, report.usage);
    turn.policy.budgets.run.share(usage) >= 1.0
}

/// Whether a run that was stopped for its budgets could go on by now: it was held to what was left when it began, and
/// somebody has granted more since, or it is another day.
pub(super) fn has_more(turn: &Turn<'_>, id: &RequestId, report: &RunReport) -> bool {
    let all = named(turn, id, report.role);
    !is_spent_alone(turn, report) && !all.is_empty() && !all.values().any(Account::is_spent)
}

/// The budget that runs under way have used up together with one that was stopped for it: of those that they share the
/// fullest, though what the others have spent is not taken off yet. None where the run had used up what it may spend by
/// itself.
pub(super) fn spent_together(
    turn: &Turn<'_>,
    id: &RequestId,
    report: &RunReport,
) -> Option<Account> {
    if is_spent_alone(turn, report) {
        return None;
    }
    let others = || turn.before().runs.values().filter(|it| it.run_id != report.run_id);
    let is_shared = |(name, _): &(String, Account)| {
        others().any(|it| it.shared_budgets.left.contains_key(name))
    };
    let shared = named(turn, id, report.role).into_iter().filter(is_shared);
    shared.map(|(_, it)| it).max_by(|a, b| a.share().total_cmp(&b.share()))
}

/// A run has spent this: it is noted, and people are told of what is nearly used up.
pub(super) fn charge(turn: &mut Turn<'_>, id: &RequestId, role: Role, usage: Usage) {
    let sprint = turn.request(id).and_then(|request| sprint_of(turn, request));
    let spending = turn.edit_spending();
    spending.today.used = spending.today.used.plus(usage);
    let budget_use = spending.roles.entry(role).or_default();
    budget_use.used = budget_use.used.plus(usage);
    if let Some(sprint) = sprint {
        let budget_use = spending.sprint_mut(&sprint);
        budget_use.used = budget_use.used.plus(usage);
        // A request may outlive its sprint, and one that nobody goes on with spends no more.
        let open = turn.requests().filter(|it| !it.status.is_terminal());
        let mut goes_on: BTreeSet<SprintId> = open.filter_map(|it| it.sprint_id.clone()).collect();
        goes_on.extend(turn.before().sprints.keys().cloned());
        turn.edit_spending().sprints.retain(|id, _| goes_on.contains(id));
    }
    if let Some(request) = turn.edit(id) {
        request.work.usage = request.work.usage.plus(usage);
    }
    let near: Vec<Account> = accounts(turn, id, role)
        .into_iter()
        .filter(|it| it.share() >= NEARLY && !it.is_spent() && !it.budget_use.warned)
        .collect();
    for account in near {
        change(turn, id, role, account.scope, |budget_use| budget_use.warned = true);
        let mut values = account.values(role);
        #[expect(clippy::cast_possible_truncation, reason = "a share below one")]
        let percent = (account.share() * 100.0) as i64;
        values["percent"] = json!(percent);
        values["request_id"] = json!(id.as_str());
        tell(turn, id, account.scope, values);
    }
}

fn tell(turn: &mut Turn<'_>, id: &RequestId, scope: Scope, values: Value) {
    match scope {
        Scope::Request => {
            say::in_room(turn, id, Voice::Team, Priority::Error, "budget.nearly", values);
        }
        Scope::Sprint | Scope::Role | Scope::Day => {
            let content = say::content("budget.nearly", turn.policy.language, values);
            let target = Target::Named(NamedChannel::Report);
            let act = say::post(content);
            let outgoing = say::outgoing(turn, target, Voice::Team, Priority::Error, act);
            turn.send(outgoing);
        }
    }
}

/// A person grants a budget once more.
pub(super) fn raise(turn: &mut Turn<'_>, id: &RequestId, role: Role, scope: Scope) {
    change(turn, id, role, scope, BudgetUse::raise);
}

/// A person wants no more of a budget that is full again with the next day.
pub(super) fn decline(turn: &mut Turn<'_>, id: &RequestId, role: Role, scope: Scope) {
    let Some(account) = turn.request(id).and_then(|it| account(turn, it, role, scope)) else {
        return;
    };
    let until = turn.now.next_day(turn.zone());
    let limit = account.budget_use.limit(account.budget);
    let told = account.budget_use.declined.is_some_and(|it| it.told && it.limit == limit);
    let declined = BudgetRefusal { until, limit, told };
    change(turn, id, role, scope, |budget_use| budget_use.declined = Some(declined));
}

/// People have heard that a sprint waits for it.
pub(super) fn told_of_declined(turn: &mut Turn<'_>) {
    for budget_use in turn.edit_spending().daily_mut() {
        if let Some(declined) = &mut budget_use.declined {
            declined.told = true;
        }
    }
}

/// What was turned down may be asked about again: a person wants to go on all the same, or another day has begun.
pub(super) fn ask_again(turn: &mut Turn<'_>) {
    if turn.before().spending.declined().next().is_some() {
        turn.edit_spending().daily_mut().for_each(|it| it.declined = None);
    }
}

fn change(
    turn: &mut Turn<'_>,
    id: &RequestId,
    role: Role,
    scope: Scope,
    how: impl FnOnce(&mut BudgetUse),
) {
    match scope {
        Scope::Request => {
            if let Some(request) = turn.edit(id) {
                let mut budget_use = request.budget_use();
                how(&mut budget_use);
                request.work.spent.budget_raised = budget_use.raised;
                request.work.spent.budget_warned = budget_use.warned;
            }
        }
        Scope::Sprint => {
            let sprint = turn.request(id).and_then(|request| sprint_of(turn, request));
            if let Some(sprint) = sprint {
                how(turn.edit_spending().sprint_mut(&sprint));
            }
        }
        Scope::Role => how(turn.edit_spending().roles.entry(role).or_default()),
        Scope::Day => how(&mut turn.edit_spending().today),
    }
}

/// Until when nobody begins with an agent; none where it can be begun with.
pub(super) fn rests_until(turn: &Turn<'_>, agent: AgentKind) -> Option<Timestamp> {
    turn.before().spending.resting.get(&agent).copied().filter(|until| *until > turn.now)
}

/// Whether that is because its model's server asks to wait, rather than because its plan is used up.
pub(super) fn is_rate_limited(turn: &Turn<'_>, agent: AgentKind) -> bool {
    turn.before().spending.rate_limited.contains(&agent)
}

/// Seconds for which fewer runs of an agent begin after its model's server refused one.
const PLAN_SECONDS: u64 = 3_600;

/// The server of a run's model refused it: one run of its agent less at the same time, for a while.
pub(super) fn refused_by_model(turn: &mut Turn<'_>, run: &Run) {
    let runs = turn.before().runs.values().filter(|it| it.agent == run.agent).count();
    let now = turn.now;
    let spending = turn.edit_spending();
    spending.plan_limits.retain(|_, limit| limit.until > now);
    let limit =
        PlanLimit { runs: runs.saturating_sub(1).max(1), until: now.plus_seconds(PLAN_SECONDS) };
    spending.plan_limits.insert(run.agent, limit);
}

/// What the plan of the agent's model bears, where that counts now.
#[must_use]
pub fn plan_limit(
    state: &State,
    policy: &Policy,
    agent: AgentKind,
    now: Timestamp,
) -> Option<PlanLimit> {
    let limit = state.spending.plan_limits.get(&agent)?;
    (policy.limits.follows_plan && limit.until > now).then_some(*limit)
}

/// The same where that many of its runs are at work: no other begins.
#[must_use]
pub fn plan_is_full(
    state: &State,
    policy: &Policy,
    agent: AgentKind,
    now: Timestamp,
) -> Option<PlanLimit> {
    let limit = plan_limit(state, policy, agent, now)?;
    let runs = state.runs.values().filter(|run| run.agent == agent).count();
    (runs >= limit.runs).then_some(limit)
}

/// Nobody begins with an agent until then.
pub(super) fn rest(turn: &mut Turn<'_>, agent: AgentKind, until: Timestamp, rate_limited: bool) {
    let now = turn.now;
    let spending = turn.edit_spending();
    spending.resting.retain(|_, until| *until > now);
    spending.resting.insert(agent, until);
    let resting = &spending.resting;
    spending.rate_limited.retain(|agent| resting.contains_key(agent));
    if rate_limited {
        spending.rate_limited.insert(agent);
    } else {
        spending.rate_limited.remove(&agent);
    }
}
