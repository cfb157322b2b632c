//! `teams config`: change one value of the configuration and leave the rest of the file as it is.

use clap::Subcommand;

use super::{Failure, Global, say};
use crate::domain::config::Reasoning;
use crate::domain::role::Role;
use crate::domain::run::Approach;
use crate::workspace::{self, edit};

/// What to change.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Defaults of a role
    #[command(subcommand)]
    Role(RoleCommand),
}

#[derive(Debug, Subcommand)]
pub(super) enum RoleCommand {
    /// Set the model or the reasoning of a role
    Set {
        /// One of the seven public roles
        #[arg(long, value_parser = public_role)]
        agent: Role,
        /// The model
        #[arg(long)]
        model: Option<String>,
        /// How long it may think: minimal, low, medium, high, xhigh
        #[arg(long, value_parser = reasoning)]
        reasoning: Option<Reasoning>,
    },
}

fn public_role(word: &str) -> Result<Role, String> {
    Role::parse(word)
        .filter(|role| role.is_public())
        .ok_or_else(|| format!("expected one of {}", Role::PUBLIC.map(Role::as_str).join(", ")))
}

fn reasoning(word: &str) -> Result<Reasoning, String> {
    [Reasoning::Minimal, Reasoning::Low, Reasoning::Medium, Reasoning::High, Reasoning::Xhigh]
        .into_iter()
        .find(|reasoning| reasoning.as_str() == word)
        .ok_or_else(|| "expected minimal, low, medium, high or xhigh".to_owned())
}

/// Runs it.
pub(super) fn run(global: &Global, command: &Command) -> Result<(), Failure> {
    let root = global.existing()?;
    match command {
        Command::Role(RoleCommand::Set { agent, model, reasoning }) => {
            edit::set_role_defaults(&root, *agent, model.as_deref(), *reasoning)?;
            let mut changed = Vec::new();
            if let Some(model) = model {
                changed.push(format!("model={model}"));
            }
            if let Some(reasoning) = reasoning {
                changed.push(format!("reasoning={}", reasoning.as_str()));
            }
            say(format_args!("{agent}: {}", changed.join(" ")));
            let now = workspace::load(&root)?.choice(*agent, None, Approach::Usual)?;
            if model.as_ref().is_some_and(|model| now.model != *model) {
                say(format_args!(
                    "{} does not go by that: {agent} works with `{}`, by {}",
                    now.agent.as_str(),
                    now.model,
                    now.source
                ));
            }
        }
    }
    Ok(())
}
