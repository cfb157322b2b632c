//! The agents that were tried, and in which versions.

/// A program's version against the tested ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Age {
    /// Before the first tested one.
    TooOld,
    /// Tested.
    Tested,
    /// After the last tested one.
    Newer,
}

/// A version by its three numbers; what is missing counts as 0.
pub type Number = (u32, u32, u32);

/// An agent that was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TestedAgent {
    /// What people call it.
    pub name: &'static str,
    /// Its package.
    pub package: &'static str,
    /// The first version that was tried,
    pub first: Number,
    /// and the first one after the last.
    pub after: Number,
}

/// Codex CLI.
pub const CODEX: TestedAgent = TestedAgent {
    name: "Codex CLI",
    package: "@openai/codex",
    first: (0, 169, 0),
    after: (0, 170, 0),
};
/// Claude Code. npm gives older ones to an older Node.
pub const CLAUDE: TestedAgent = TestedAgent {
    name: "Claude Code",
    package: "@anthropic-ai/claude-code",
    first: (2, 1, 329),
    after: (2, 2, 0),
};
/// Those that speak the Agent Client Protocol, by how they call themselves.
const ACP: [(&str, TestedAgent); 4] = [
    (
        "codex-acp",
        TestedAgent {
            name: "codex-acp",
            package: "@agentclientprotocol/codex-acp",
            first: (2, 6, 0),
            after: (3, 0, 0),
        },
    ),
    (
        "claude-agent-acp",
        TestedAgent {
            name: "claude-agent-acp",
            package: "@agentclientprotocol/claude-agent-acp",
            first: (0, 100, 0),
            after: (0, 101, 0),
        },
    ),
    (
        "gemini-cli",
        TestedAgent {
            name: "Gemini CLI",
            package: "@google/gemini-cli",
            first: (0, 61, 0),
            after: (0, 62, 0),
        },
    ),
    (
        "OpenCode",
        TestedAgent {
            name: "OpenCode",
            package: "opencode-ai",
            first: (1, 18, 33),
            after: (1, 19, 0),
        },
    ),
];

impl TestedAgent {
    /// Which version to install.
    #[must_use]
    pub fn version(&self) -> String {
        let (major, minor, patch) = self.first;
        format!("{major}.{minor}.{patch}")
    }

    /// A version against the tried ones.
    #[must_use]
    pub fn age(&self, number: Number) -> Age {
        match number {
            _ if number < self.first => Age::TooOld,
            _ if number < self.after => Age::Tested,
            _ => Age::Newer,
        }
    }
}

/// An agent that speaks the protocol, by what it calls itself: with or without the owner of its package.
#[must_use]
pub fn acp(name: &str) -> Option<TestedAgent> {
    let short = name.rsplit('/').next().unwrap_or(name);
    ACP.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(short)).map(|(_, tried)| tried)
}

/// The numbers at the beginning of a version.
#[must_use]
pub fn number(text: &str) -> Option<Number> {
    let mut numbers = text.split(['.', '-', '+']).map(str::parse::<u32>);
    match (numbers.next(), numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor)), patch) => {
            Some((major, minor, patch.and_then(Result::ok).unwrap_or(0)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert_eq!(number("2.1.329"), Some((2, 1, 329)));
        assert_eq!(number("1.2.0-alpha.3"), Some((1, 2, 0)));
        assert_eq!(number("3.4"), Some((3, 4, 0)));
        assert_eq!(number("soon"), None);
        assert_eq!(CLAUDE.age((2, 1, 197)), Age::TooOld);
        assert_eq!(CLAUDE.age((2, 1, 400)), Age::Tested);
        assert_eq!(CLAUDE.age((2, 2, 0)), Age::Newer);
        assert_eq!(acp("@agentclientprotocol/codex-acp").unwrap().version(), "2.6.0");
        assert_eq!(acp("opencode").unwrap().package, "opencode-ai");
        assert_eq!(acp("somebody-elses"), None);
    }
}
