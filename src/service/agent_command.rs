//! What an agent commands, and whether its role may. An agent holds no right of a person: the planner may change the
//! backlog, and that is all.

use super::control::{self, CallSubject, Reply};
use super::team::Team;
use crate::domain::actor::Actor;
use crate::domain::ids::CallId;
use crate::domain::incoming::Command;
use crate::domain::item::ItemSource;
use crate::domain::refusal::Refusal;
use crate::domain::role::Role;
use crate::domain::run::Run;

/// What an agent may not, whatever it says.
#[derive(Debug, PartialEq)]
pub(super) struct CommandRefusal {
    /// The kind of it, and what it was; none where it is noted elsewhere.
    pub(super) refusal: Option<(Refusal, String)>,
    /// What the agent is told.
    pub(super) why: String,
}

impl CommandRefusal {
    fn new(refusal: Refusal, what: &str, why: String) -> CommandRefusal {
        CommandRefusal::of_a_kind(Some(refusal), what, why)
    }

    /// The same, or without a kind where nothing was tried that has to be noted.
    pub(super) fn of_a_kind(refusal: Option<Refusal>, what: &str, why: String) -> CommandRefusal {
        CommandRefusal { refusal: refusal.map(|kind| (kind, what.to_owned())), why }
    }
}

/// Does what an agent commands, where its role may.
pub(super) async fn command(
    team: &Team,
    run: &Run,
    call: &CallId,
    wanted: CallSubject,
) -> Result<Reply, CommandRefusal> {
    let command = tool(run.role, wanted)?;
    let actor = Actor::Agent {
        role: run.role,
        request_id: run.request_id.clone(),
        run_id: run.run_id.clone(),
        call: call.clone(),
    };
    tracing::info!(role = %run.role, request = %run.request_id, "an agent uses a tool");
    Ok(control::submit(team, actor, command).await)
}

/// The command as an agent of this role may give it.
fn tool(role: Role, wanted: CallSubject) -> Result<Command, CommandRefusal> {
    let command = match wanted {
        CallSubject::Command(command) => command,
        CallSubject::Question(_) | CallSubject::Tools | CallSubject::Use { .. } => {
            let why = "that is for people; an agent cannot ask it".to_owned();
            return Err(CommandRefusal::new(Refusal::Command, "a question", why));
        }
    };
    let name = match command {
        Command::BacklogMerge { payload, source: _ } if role == Role::Planner => {
            return Ok(Command::BacklogMerge { payload, source: ItemSource::Planner });
        }
        Command::BacklogMerge { .. } => {
            let why = format!("only the planner keeps the backlog; {role} can propose items");
            return Err(CommandRefusal::new(Refusal::Tool, "backlog", why));
        }
        Command::Press { .. } => "press",
        Command::Ask { .. } => "ask",
        Command::Route { .. } => "route",
        Command::Cancel { .. } => "cancel",
        Command::Steer { .. } => "steer",
        Command::RequestChanges { .. } => "revise",
        Command::AnswerQuestions { .. } => "answer",
        Command::Verify { .. } => "verify",
        Command::Decide { .. } | Command::ApproveAnyway { .. } | Command::AskBack { .. } => {
            "approve"
        }
        Command::Retry { .. } => "retry",
        Command::Split { .. } => "split",
        Command::Skip { .. } => "skip",
        Command::Pause { .. } => "pause",
        Command::OutboxRetry => "outbox retry",
        Command::OutboxDismiss { .. } => "outbox dismiss",
        Command::SprintStart { .. } => "sprint start",
        Command::SprintStop { .. } => "sprint stop",
        Command::SprintRestart => "sprint restart",
        Command::PlanImport { .. } => "plan import",
    };
    let why = format!("`{name}` is for people; an agent cannot do it");
    Err(CommandRefusal::new(Refusal::Command, name, why))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn merge(source: ItemSource) -> Command {
        Command::BacklogMerge { payload: json!([]), source }
    }

    #[test]
    fn only_the_planner_changes_the_backlog_and_only_as_itself() {
        for role in Role::ALL {
            let allowed = tool(role, merge(ItemSource::User).into());
            if role == Role::Planner {
                assert_eq!(allowed, Ok(merge(ItemSource::Planner)));
            } else {
                let refused = allowed.unwrap_err().why;
                assert!(refused.contains(role.as_str()), "{refused}");
            }
        }
    }

    #[test]
    fn nothing_else_is_done_for_an_agent() {
        for (command, name) in [
            (Command::SprintStop { now: true }, "sprint stop"),
            (Command::SprintStart { kickoff: Box::default() }, "sprint start"),
            (Command::SprintRestart, "sprint restart"),
            (
                Command::PlanImport {
                    plan_id: "letters".parse().unwrap(),
                    plan: Box::default(),
                    approve: None,
                },
                "plan import",
            ),
        ] {
            let refused = tool(Role::Planner, command.into()).unwrap_err().why;
            assert!(refused.contains(name), "{refused}");
        }
    }
}
