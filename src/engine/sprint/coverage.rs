//! Which requirements of a sprint no delivered todo serves.

use std::collections::BTreeSet;

use crate::domain::plan::{Plan, Requirement, RequirementTime};
use crate::domain::sprint::{Sprint, Todo};
use crate::engine::contract::numbered::{self, REQUIREMENT};
use crate::engine::say;

/// The longest text of a requirement that is quoted, in characters.
const TEXT: usize = 200;

/// Those that no delivered todo serves, each as `R-1: its words`: of what the sprint was begun with, or else of the plans
/// that its todos come from, as far as a todo or else no item at all names them.
pub(super) fn unmet<'p>(
    sprint: &Sprint,
    plans: impl Iterator<Item = &'p Plan> + Clone,
) -> Vec<String> {
    let todos = &sprint.work.todos;
    let delivered = todos.iter().filter(|todo| todo.progress.status.is_success());
    let of = |todo: &'_ Todo| todo.requirements.clone();
    let met: BTreeSet<String> = delivered.flat_map(of).collect();
    // Todos of an older build do not say what they serve.
    if todos.iter().any(|todo| todo.progress.status.is_success())
        && todos.iter().all(|todo| todo.requirements.is_empty())
    {
        return Vec::new();
    }
    let known = &sprint.kickoff.requirements;
    if !known.is_empty() {
        let met: BTreeSet<usize> =
            met.iter().filter_map(|said| numbered::find(known, REQUIREMENT, said)).collect();
        let open = known.iter().enumerate().filter(|(index, _)| !met.contains(index));
        let line = |(index, text): (usize, &String)| {
            format!("{}: {}", numbered::name(REQUIREMENT, index), say::cut(text, TEXT))
        };
        return open.map(line).collect();
    }
    let mut named: BTreeSet<String> = todos.iter().flat_map(of).collect();
    for plan in plans.clone() {
        // What other items of the plan serve is for other sprints.
        let is_served =
            |it: &&Requirement| plan.items.iter().any(|item| item.requirements.contains(&it.id));
        let open = plan.requirements.iter().filter(|it| it.when == RequirementTime::Now);
        named.extend(open.filter(|it| !is_served(it)).map(|it| it.id.to_string()));
    }
    let line = |id: &String| {
        let mut known = plans.clone().flat_map(|plan| &plan.requirements);
        let found = known.find(|it| it.id.as_str() == id);
        match found {
            Some(found) => format!("{id}: {}", say::cut(&found.text, TEXT)),
            None => id.clone(),
        }
    };
    named.difference(&met).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::{RequirementId, SprintId, TodoId};
    use crate::domain::language::Language;
    use crate::domain::sprint::{Kickoff, TodoStatus, Trigger};
    use crate::domain::time::Timestamp;

    fn sprint(requirements: &[&str], todos: &[(TodoStatus, &str)]) -> Sprint {
        let id = SprintId::parse("261125-Sprint-09:00").unwrap();
        let mut sprint = Sprint::new(id, Trigger::ManualStart, Kickoff::default(), Language::En);
        sprint.kickoff.requirements = requirements.iter().map(|it| (*it).to_owned()).collect();
        for (number, (status, requirement)) in todos.iter().enumerate() {
            let id = TodoId::parse(&format!("todo-{number}")).unwrap();
            let mut todo = Todo::new(id, "t", Timestamp::from_millis(0));
            todo.progress.status = *status;
            todo.requirements = vec![(*requirement).to_owned()];
            sprint.work.todos.push(todo);
        }
        sprint
    }

    #[test]
    fn what_only_an_undelivered_todo_serves_is_not_met() {
        let todos = [
            (TodoStatus::Committed, "R-1"),
            (TodoStatus::Blocked, "fast"),
            (TodoStatus::Failed, "R-1"),
        ];
        let begun = sprint(&["small", "fast", "free"], &todos);
        assert_eq!(unmet(&begun, std::iter::empty()), ["R-2: fast", "R-3: free"]);
        let requirement = Requirement {
            id: RequirementId::parse("fast").unwrap(),
            text: "within a second".to_owned(),
            when: Default::default(),
        };
        let forgotten = Requirement {
            id: RequirementId::parse("free").unwrap(),
            text: "for nothing".to_owned(),
            when: Default::default(),
        };
        let plan = Plan { requirements: vec![requirement, forgotten], ..Plan::default() };
        let planned = sprint(&[], &todos);
        let open = ["fast: within a second", "free: for nothing"];
        assert_eq!(unmet(&planned, [&plan].into_iter()), open);
        let mut other =
            sprint(&[], &[(TodoStatus::Committed, "R-1"), (TodoStatus::Blocked, "fast")]);
        other.work.todos[0].requirements.clear();
        assert_eq!(unmet(&other, [&plan].into_iter()), open, "what landed serves nothing");
        assert!(unmet(&sprint(&[], &[]), std::iter::empty()).is_empty());
    }
}
