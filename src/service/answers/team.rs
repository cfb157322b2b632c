//! How the team is set up, and whether it works.

use serde_json::{Value, json};

use super::super::team::{Team, now};
use crate::agents::Confinement;
use crate::domain::config::AgentKind;
use crate::domain::guard::Guard;
use crate::domain::outgoing::SET_ASIDE;
use crate::domain::policy::{PlanStances, Right};
use crate::domain::role::Role;
use crate::domain::run::Approach;
use crate::domain::time::Timestamp;
use crate::engine::{plan_limit, standing};
use crate::platform::landlock::Strength;
use crate::platform::{files, machine};
use crate::workspace::Workspace;

/// Which agent and model works for which role, and where that is said.
pub(super) fn models(workspace: &Workspace) -> Value {
    let chosen = |role| workspace.choice(role, None, Approach::Usual).ok().map(|it| (role, it));
    let roles: Vec<Value> = Role::PUBLIC
        .into_iter()
        .filter_map(chosen)
        .map(|(role, choice)| {
            json!({
                "role": role,
                "agent": choice.agent.as_str(),
                "model": choice.model,
                "reasoning": if choice.agent == AgentKind::Acp { "" } else { choice.reasoning.as_str() },
                "profile": choice.profile.as_str(),
                "source": choice.source,
                "thinks": choice.agent != AgentKind::Rehearsal,
            })
        })
        .collect();
    json!({ "roles": roles, "escalates": workspace.runtime.profiles.escalate })
}

/// Whether everything works.
pub(super) fn health(team: &Team, now: Timestamp) -> Value {
    let discord = team.link.standing().lines(now);
    let aside = files::read_text_if_present(&team.root().join(SET_ASIDE)).ok().flatten();
    let mut values = team.hub.read(|state| {
        let waiting = state.outgoing.values().filter(|it| it.refused.is_none());
        let oldest = waiting.clone().map(|it| it.created_at).min();
        json!({
            "runs": state.runs.len(),
            "waiting": waiting.count(),
            "oldest_seconds": oldest.map_or(0, |at| now.seconds_since(at)),
            "blocked": state.requests.values().filter(|it| it.blocked.is_some()).count(),
            "gates": state.gates.len(),
            "refused": standing::refusals(state, standing::refused(state)),
        })
    });
    values["discord"] = json!(discord);
    values["problems"] = json!(team.link.problems().lines());
    values["confined"] = json!(match team.driver.known_confinement() {
        Some(Confinement::Bubblewrap(_)) => "bubblewrap",
        Some(Confinement::Landlock(..)) => "landlock",
        Some(Confinement::Nothing(_)) => "nothing",
        None => "",
    });
    values["kernel"] = json!(match team.driver.known_confinement() {
        Some(Confinement::Landlock(Strength::Files, _)) => "files",
        Some(Confinement::Landlock(Strength::FilesAndTcp, _)) => "tcp",
        Some(Confinement::Landlock(Strength::FilesTcpAndSignals, _)) => "signals",
        Some(Confinement::Bubblewrap(_) | Confinement::Nothing(_)) | None => "",
    });
    values["set_aside"] = json!(aside.map_or(0, |text| text.lines().count()));
    values
}

/// What the team is set to.
pub(super) fn settings(team: &Team) -> Value {
    let runtime = &team.workspace.runtime;
    let checks: Vec<&str> = runtime.checks.iter().map(|check| check.name.as_str()).collect();
    team.hub.consult(|state, policy| {
        let people: Vec<Value> = policy
            .rights
            .iter()
            .map(|(right, holders)| {
                let who: Vec<String> = holders.mentions().collect();
                let right = match right {
                    Right::Ask => "ask",
                    Right::Approve => "approve",
                    Right::Administer => "administer",
                };
                json!({ "right": right, "who": who })
            })
            .collect();
        let gates = &policy.gates;
        let (machine, capacity) = (machine::this(), team.workspace.capacity());
        let limited = state.spending.plan_limits.keys();
        let plans: Vec<Value> = limited
            .filter_map(|agent| Some((agent, plan_limit(state, policy, *agent, now())?)))
            .map(|(agent, limit)| {
                let until = limit.until.format_in(policy.sprint.zone.0, "%Y-%m-%d %H:%M");
                json!({ "agent": agent, "runs": limit.runs, "until": until })
            })
            .collect();
        let plan = match &gates.plan {
            PlanStances::All(stance) => json!({ "all": stance, "by": [] }),
            PlanStances::ByIntent(by) => {
                let each = by.iter().map(|(intent, it)| json!({ "intent": intent, "stance": it }));
                json!({ "all": null, "by": each.collect::<Vec<_>>() })
            }
        };
        let guards =
            Guard::ALL.map(|guard| json!({ "guard": guard, "stance": gates.of_guard(guard) }));
        json!({
            "project": policy.project,
            "branch": policy.branch,
            "checks": checks,
            "people": people,
            "four_eyes": policy.four_eyes,
            "gates": {
                "unproven": gates.unproven_commit, "red_base": gates.red_base,
                "prepare": gates.prepare,
                "commit": gates.commit, "action": gates.action, "wait_hours": gates.wait_hours,
            },
            "guards": guards,
            "plan": plan, "sprint_plan": gates.of_sprint_plan(), "planning": policy.planning,
            "train": { "prove": policy.train.prove, "batch": policy.train.batch },
            "capacity": {
                "todos": capacity.todos, "runs": capacity.runs, "checks": capacity.checks,
                "set": team.workspace.capacity_set(), "plans": plans,
                "cores": machine.cores, "memory_gib": machine.memory_gib,
            },
            "language": policy.language,
            "dm": policy.dm,
            "mentions": policy.mentions,
            "sprint_mode": policy.sprint.mode,
            "start_mode": policy.sprint.start_mode,
            "interval_minutes": policy.sprint.interval_minutes,
            "zone": policy.sprint.zone,
            "publish": policy.sprint.publish,
        })
    })
}
