//! Commands that the script has the rehearsal agent run: what could an agent do here?

use std::time::Duration;

use crate::platform::ask::{self, ProgramOutput};

/// How long one command may take.
const LIMIT: Duration = Duration::from_secs(30);
/// Characters of a command, or of what it said, in the report.
const SHOWN: usize = 160;

/// Runs each in turn, where the agent is and as the agent; a line each: the command, how it ended, and the last
/// line that it printed.
pub(super) fn all(commands: &[Vec<String>]) -> String {
    let lines: Vec<String> = commands.iter().map(|command| line(command)).collect();
    lines.join("\n")
}

fn line(command: &[String]) -> String {
    let shown = cut(&command.join(" "));
    let Some((program, arguments)) = command.split_first() else {
        return format!("`{shown}`: nothing to run");
    };
    match ask::here(program, arguments, LIMIT) {
        Ok(ProgramOutput { code, stdout, stderr }) => {
            let ended =
                code.map_or_else(|| "a signal".to_owned(), |code| format!("exit code {code}"));
            format!("`{shown}`: {ended}: {}", cut(last(&stdout).or(last(&stderr)).unwrap_or("")))
        }
        Err(error) => format!("`{shown}`: not run: {}", cut(&error.to_string())),
    }
}

fn last(text: &str) -> Option<&str> {
    text.lines().map(str::trim).rfind(|line| !line.is_empty())
}

fn cut(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_is_a_line_with_its_end_and_its_last_words() {
        let sh = |text: &str| ["sh", "-c", text].map(str::to_owned).to_vec();
        let commands = [
            sh("echo one; echo two"),
            sh("echo no >&2; exit 3"),
            vec!["/no/such/program".to_owned()],
            Vec::new(),
            sh("kill -9 $$"),
        ];
        let told = all(&commands);
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(lines[0], "`sh -c echo one; echo two`: exit code 0: two");
        assert_eq!(lines[1], "`sh -c echo no >&2; exit 3`: exit code 3: no");
        assert!(lines[2].starts_with("`/no/such/program`: not run: "), "{told}");
        assert_eq!(lines[3], "``: nothing to run");
        assert_eq!(lines[4], "`sh -c kill -9 $$`: a signal: ");
    }
}
