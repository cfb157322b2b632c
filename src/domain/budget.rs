//! Money and tokens: what a model costs, what may be spent, and what was.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::domain::config::AgentKind;
use crate::domain::ids::{RunId, SprintId};
use crate::domain::role::Role;
use crate::domain::time::Timestamp;
use crate::domain::usage::Usage;
use crate::domain::word::words;

/// What may be spent on something. What is absent has no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Allowance {
    /// US dollars.
    pub usd: Option<f64>,
    /// Tokens in and out, cached ones included.
    pub tokens: Option<u64>,
}

impl Allowance {
    /// Whether there is no limit at all.
    #[must_use]
    pub fn is_unlimited(self) -> bool {
        self == Self::default()
    }

    /// The part of it that is used, the greater of both; 1.0 is all of it.
    #[must_use]
    pub fn share(self, used: Usage) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a share needs no exact count")]
        let of = |used: u64, limit: u64| used as f64 / (limit.max(1) as f64);
        let money = self.usd.map_or(0.0, |limit| used.cost_usd / limit.max(f64::MIN_POSITIVE));
        let tokens = self.tokens.map_or(0.0, |limit| of(used.tokens(), limit));
        money.max(tokens)
    }

    /// So many times as much.
    #[must_use]
    pub fn times(self, factor: u32) -> Self {
        Self {
            usd: self.usd.map(|usd| usd * f64::from(factor)),
            tokens: self.tokens.map(|tokens| tokens.saturating_mul(u64::from(factor))),
        }
    }

    /// What is left of it.
    #[must_use]
    pub fn left(self, used: Usage) -> Self {
        Self {
            usd: self.usd.map(|usd| (usd - used.cost_usd).max(0.0)),
            tokens: self.tokens.map(|tokens| tokens.saturating_sub(used.tokens())),
        }
    }

    /// The narrower of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let least = |one: Option<f64>, two: Option<f64>| match (one, two) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        };
        Self {
            usd: least(self.usd, other.usd),
            tokens: match (self.tokens, other.tokens) {
                (Some(one), Some(two)) => Some(one.min(two)),
                (one, two) => one.or(two),
            },
        }
    }
}

/// Budgets that a run spends from together with others, as they stood when it began or the team was started after that.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SharedBudgets {
    /// What was left of each, by what it is for.
    pub left: BTreeMap<String, Allowance>,
    /// The runs under way then, with their generations: what they had spent so far is not taken off yet.
    pub beside: BTreeSet<(RunId, u32)>,
}

impl SharedBudgets {
    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }
}

/// `budgets:` of `team_runtime.yaml`: what may be spent before a person is asked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budgets {
    /// One run of an agent: it is stopped there.
    pub run: Allowance,
    /// One request, and so one todo.
    pub request: Allowance,
    /// One sprint.
    pub sprint: Allowance,
    /// A role, a day of the workspace's zone.
    pub roles: BTreeMap<Role, Allowance>,
    /// Everything, a day of that zone.
    pub day: Allowance,
}

impl Budgets {
    /// Whether any of them is in dollars.
    #[must_use]
    pub fn are_in_dollars(&self) -> bool {
        let named = [self.run, self.request, self.sprint, self.day];
        named.iter().chain(self.roles.values()).any(|allowance| allowance.usd.is_some())
    }
}

words! {
    /// What a budget is for.
    pub enum Scope {
        /// A request.
        Request = "request",
        /// A sprint.
        Sprint = "sprint",
        /// A role's day.
        Role = "role",
        /// A day.
        Day = "day",
    }
}

impl Scope {
    /// Whether it is full again with the next day.
    #[must_use]
    pub const fn is_daily(self) -> bool {
        match self {
            Self::Role | Self::Day => true,
            Self::Request | Self::Sprint => false,
        }
    }
}

/// What was spent against a budget, and what people said about it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BudgetUse {
    /// Spent.
    pub used: Usage,
    /// How often a person granted the whole budget once more.
    pub raised: u32,
    /// Whether it was told that it is nearly spent.
    pub warned: bool,
    /// That a person wants no more of it today, where it is one of the day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declined: Option<BudgetRefusal>,
}

/// A person was asked for more of a budget of the day, and said no.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BudgetRefusal {
    /// When the budget is full again.
    pub until: Timestamp,
    /// What might be spent then: another limit may be asked about.
    pub limit: Allowance,
    /// Whether it was told that a sprint waits for it.
    pub told: bool,
}

impl BudgetUse {
    /// All that may be spent: the budget, and as much again as often as people said.
    #[must_use]
    pub fn limit(&self, budget: Allowance) -> Allowance {
        budget.times(self.raised.saturating_add(1))
    }

    /// A person grants the budget once more.
    pub const fn raise(&mut self) {
        self.raised = self.raised.saturating_add(1);
        self.warned = false;
        self.declined = None;
    }
}

/// What was spent on what is not a record of its own: one record a workspace. It does not grow with the
/// history; the runs themselves stand in the ledger.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spending {
    /// The day of the workspace's zone that `today` and `roles` are about.
    pub date: String,
    /// That day.
    pub today: BudgetUse,
    /// That day, by role.
    pub roles: BTreeMap<Role, BudgetUse>,
    /// By sprint, of those whose requests are open.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sprints: BTreeMap<SprintId, BudgetUse>,
    /// The one sprint that older records know.
    #[serde(rename = "sprint", skip_serializing_if = "Option::is_none")]
    pub older_sprint: Option<(SprintId, BudgetUse)>,
    /// Agents that nobody begins with for now, and until when: their plan is used up, or their model's server
    /// asks to wait.
    pub resting: BTreeMap<AgentKind, Timestamp>,
    /// Those of them that wait for a rate limit.
    pub rate_limited: BTreeSet<AgentKind>,
    /// How many runs of an agent the plan of its model bears, where its server refused more.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub plan_limits: BTreeMap<AgentKind, PlanLimit>,
}

/// How many runs the plan of a model bears at the same time, as it showed when its server refused one more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanLimit {
    /// So many, one at least.
    pub runs: usize,
    /// When more are tried again.
    pub until: Timestamp,
}

impl Spending {
    /// The record on a day: another day begins with nothing used.
    #[must_use]
    pub fn on(&self, date: &str) -> Cow<'_, Self> {
        if self.date == date {
            return Cow::Borrowed(self);
        }
        Cow::Owned(Self {
            date: date.to_owned(),
            sprints: self.sprints.clone(),
            older_sprint: self.older_sprint.clone(),
            resting: self.resting.clone(),
            rate_limited: self.rate_limited.clone(),
            plan_limits: self.plan_limits.clone(),
            ..Self::default()
        })
    }

    /// The budgets of the day.
    fn daily(&self) -> impl Iterator<Item = &BudgetUse> {
        self.roles.values().chain([&self.today])
    }

    /// The same for changing.
    pub fn daily_mut(&mut self) -> impl Iterator<Item = &mut BudgetUse> {
        self.roles.values_mut().chain([&mut self.today])
    }

    /// Those of them of which a person wants no more.
    pub fn declined(&self) -> impl Iterator<Item = BudgetRefusal> {
        self.daily().filter_map(|it| it.declined)
    }

    /// When all of those are full again; long ago where there is none.
    #[must_use]
    pub fn declined_until(&self) -> Timestamp {
        self.declined().map(|it| it.until).max().unwrap_or(Timestamp::from_millis(0))
    }

    /// What was spent on a sprint.
    #[must_use]
    pub fn of_sprint(&self, id: &SprintId) -> BudgetUse {
        let older = || self.older_sprint.as_ref().filter(|(sprint, _)| sprint == id);
        let mine = self.sprints.get(id).copied();
        mine.or_else(|| older().map(|(_, budget_use)| *budget_use)).unwrap_or_default()
    }

    /// The same for changing.
    pub fn sprint_mut(&mut self, id: &SprintId) -> &mut BudgetUse {
        if let Some((older, budget_use)) = self.older_sprint.take() {
            self.sprints.entry(older).or_insert(budget_use);
        }
        self.sprints.entry(id.clone()).or_default()
    }
}

/// US dollars for a million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Price {
    /// Of input that no cache had.
    pub input: f64,
    /// Of input from a cache; as `input` where absent.
    pub cached: Option<f64>,
    /// Of input that is written into a cache; as `input` where absent.
    pub written: Option<f64>,
    /// Of output.
    pub output: f64,
}

/// `prices:` of `team_runtime.yaml`, by model; a name that ends with `*` stands for all that begin so. The
/// longest that fits counts, and of two as long the one without. For agents that do not say themselves what a run cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PriceTable(pub BTreeMap<String, Price>);

impl PriceTable {
    /// The price of a model; none where the table has none.
    #[must_use]
    pub fn of(&self, model: &str) -> Option<Price> {
        let fits = |name: &str| match name.strip_suffix('*') {
            Some(beginning) => model.starts_with(beginning),
            None => model == name,
        };
        let fitting = self.0.iter().filter(|(name, _)| fits(name));
        let closest = fitting
            .max_by_key(|(name, _)| (name.trim_end_matches('*').len(), !name.ends_with('*')));
        closest.map(|(_, price)| *price)
    }

    /// The same, where a model without a price is as dear as the dearest one in the table.
    #[must_use]
    pub fn priced_at_most(&self, model: &str, usage: Usage) -> Usage {
        match self.of(model) {
            Some(_) => self.priced(model, usage),
            None => {
                let all = self.0.keys().map(|name| self.priced(name, usage));
                all.max_by(|a, b| a.cost_usd.total_cmp(&b.cost_usd)).unwrap_or(usage)
            }
        }
    }

    /// The usage with its cost, where it says none itself and the model has a price.
    #[must_use]
    pub fn priced(&self, model: &str, usage: Usage) -> Usage {
        let Some(price) = self.of(model).filter(|_| usage.cost_usd <= 0.0) else { return usage };
        #[expect(clippy::cast_precision_loss, reason = "fractions of a cent do not matter")]
        let cost = |tokens: u64, price: f64| tokens as f64 * price / 1_000_000.0;
        let of_cache = usage.cached_tokens.saturating_add(usage.written_tokens);
        let cost_usd = cost(usage.input_tokens.saturating_sub(of_cache), price.input)
            + cost(usage.cached_tokens, price.cached.unwrap_or(price.input))
            + cost(usage.written_tokens, price.written.unwrap_or(price.input))
            + cost(usage.output_tokens, price.output);
        Usage { cost_usd, ..usage }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: u64, cached: u64, output: u64, cost_usd: f64) -> Usage {
        let (input_tokens, cached_tokens, output_tokens) = (input, cached, output);
        Usage { input_tokens, cached_tokens, output_tokens, cost_usd, ..Usage::default() }
    }

    #[test]
    fn the_longest_name_that_fits_has_the_price() {
        let price = |input| Price { input, cached: Some(0.5), output: 10.0, ..Price::default() };
        let table = PriceTable(
            [("gpt-*", 1.0), ("gpt-5", 3.0), ("gpt-5*", 2.0), ("gpt-5.5", 4.0)]
                .map(|(name, input)| (name.to_owned(), price(input)))
                .into(),
        );
        for (model, input) in [("gpt-4", 1.0), ("gpt-5.1", 2.0), ("gpt-5", 3.0), ("gpt-5.5", 4.0)] {
            assert_eq!(table.of(model).map(|it| it.input), Some(input), "{model}");
        }
        assert_eq!(table.of("sonnet"), None);
        let used = usage(3_000_000, 1_000_000, 100_000, 0.0);
        assert!((table.priced("gpt-5.5", used).cost_usd - 9.5).abs() < 1e-9);
        let told = usage(3_000_000, 0, 0, 0.25);
        assert_eq!(table.priced("gpt-5.5", told), told, "the agent knows better");
        assert_eq!(table.priced("sonnet", used), used);
    }

    #[test]
    fn what_is_written_into_a_cache_has_its_own_price_where_one_is_set() {
        let used = Usage { written_tokens: 1_000_000, ..usage(3_000_000, 1_000_000, 0, 0.0) };
        for (written, cost) in [(None, 6.3), (Some(3.75), 7.05)] {
            let price = Price { input: 3.0, cached: Some(0.3), written, output: 15.0 };
            let table = PriceTable([("claude-*".to_owned(), price)].into());
            assert!((table.priced("claude-opus", used).cost_usd - cost).abs() < 1e-9);
        }
    }

    #[test]
    fn a_budget_is_used_by_its_scarcer_part() {
        let both = Allowance { usd: Some(2.0), tokens: Some(1_000) };
        assert!((both.share(usage(400, 0, 100, 0.5)) - 0.5).abs() < 1e-9);
        assert!((both.share(usage(0, 0, 0, 3.0)) - 1.5).abs() < 1e-9);
        assert!(Allowance::default().share(usage(1 << 40, 0, 0, 1e9)).abs() < 1e-9);
        let left = both.times(2).left(usage(1_500, 0, 0, 5.0));
        assert_eq!(left, Allowance { usd: Some(0.0), tokens: Some(500) });
        let one = Allowance { usd: Some(1.0), tokens: None };
        assert_eq!(one.and(left), Allowance { usd: Some(0.0), tokens: Some(500) });
    }

    #[test]
    fn a_new_day_begins_with_full_budgets() {
        let used = usage(1, 0, 0, 0.0);
        let budget_use = BudgetUse { used, raised: 1, warned: true, declined: None };
        let id: SprintId = "2026-Sprint-01-20260101T000000Z".parse().expect("an id");
        let old = Spending {
            date: "2026-01-01".to_owned(),
            today: budget_use,
            roles: [(Role::Qa, budget_use)].into(),
            older_sprint: Some((id.clone(), budget_use)),
            ..Spending::default()
        };
        assert_eq!(*old.on("2026-01-01"), old);
        let new = old.on("2026-01-02").into_owned();
        assert_eq!((new.today, new.roles.len()), (BudgetUse::default(), 0));
        assert_eq!(new.of_sprint(&id), budget_use);
        // Another sprint takes nothing from it.
        let other: SprintId = "2026-Sprint-02-20260102T000000Z".parse().expect("an id");
        let mut both = new;
        both.sprint_mut(&other).raised = 7;
        assert_eq!((both.of_sprint(&id), both.of_sprint(&other).raised), (budget_use, 7));
        let budget = Allowance { usd: Some(2.0), tokens: None };
        assert_eq!(budget_use.limit(budget).usd, Some(4.0));
    }
}
