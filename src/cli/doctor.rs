//! `teams doctor`: the checks of setup and of this machine, at any time.

use std::process::ExitCode;

use serde_json::{Map, Value, json};

use super::told::{Printer, language};
use super::{Failure, Global, say};
use crate::onboarding::doctor::{self, Finding, Health};
use crate::workspace;

/// Its options.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Put right what can be put right safely: missing channels, roles and voices, the bot's intent, rights
    /// on files with tokens, a damaged journal
    #[arg(long)]
    fix: bool,
    /// A line of JSON for each check
    #[arg(long)]
    json: bool,
}

/// Runs it: 0 where no problem is left, else 1.
pub(super) fn run(global: &Global, args: &Args) -> ExitCode {
    match look(global, args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => failure.report(),
    }
}

fn look(global: &Global, args: &Args) -> Result<bool, Failure> {
    let root = global.workspace()?;
    let own = workspace::load(&root).map(|workspace| workspace.runtime.language);
    let printer = Printer::new(language(own.unwrap_or_default()), args.json)?;
    let runtime = super::runtime()?;
    let mut findings = runtime.block_on(doctor::diagnose(&root));
    if args.fix && findings.iter().any(|finding| finding.repair.is_some()) {
        let repaired = runtime.block_on(doctor::repair(&root, &findings));
        findings = runtime.block_on(doctor::diagnose(&root));
        for finding in &repaired {
            tell(&printer, finding);
        }
    }
    for finding in &findings {
        tell(&printer, finding);
    }
    let problems = findings.iter().filter(|finding| finding.health == Health::Problem);
    let (mut count, mut fixable) = (0, 0);
    for problem in problems {
        count += 1;
        fixable += usize::from(problem.repair.is_some());
    }
    if !printer.is_json() {
        let mut values = Map::new();
        values.insert("count".to_owned(), json!(count));
        values.insert("fixable".to_owned(), json!(fixable));
        let key = if count == 0 { "doctor.all_well" } else { "doctor.problems" };
        say(printer.words(key, &values));
    }
    Ok(count == 0)
}

fn tell(printer: &Printer, finding: &Finding) {
    let text = printer.words(finding.key, &finding.values);
    let fix = finding.fix_key().map(|key| printer.words(&key, &finding.values));
    if printer.is_json() {
        let mut fields = vec![
            ("check", json!(finding.check.as_str())),
            ("result", json!(finding.health.as_str())),
            ("text", Value::String(text)),
        ];
        if let Some(fix) = fix {
            fields.push(("fix", Value::String(fix)));
            fields.push(("fixable", json!(finding.repair.is_some())));
        }
        printer.object(fields, &finding.values);
        return;
    }
    printer.line(&format!("doctor.mark.{}", finding.health.as_str()), &text);
    if let Some(fix) = fix {
        printer.line("doctor.mark.fix", &fix);
    }
}
