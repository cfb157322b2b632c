//! How full a role's conversation with its agent is, and when a fresh one takes over (issue: warn at 35 % of
//! the window left, hand over at 25 %).

use serde::{Deserialize, Serialize};

/// Tokens that the window of a model holds where nobody knows better.
const WINDOW: u64 = 200_000;
/// The same by how the model's name begins; the first that fits counts.
const WINDOWS: [(&str, u64); 5] = [
    ("gpt-5", 272_000),
    ("gpt-6", 272_000),
    ("codex", 272_000),
    ("gemini", 1_000_000),
    ("claude", 200_000),
];

/// How it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FillUnit {
    /// From the last request to the model: as the agent or the provider counted it.
    Tokens,
    /// From the bytes that went in and came out: a guess.
    Bytes,
}

/// How much of the window of a model a conversation takes up, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fill {
    /// Taken up.
    pub used: u64,
    /// What the window holds.
    pub size: u64,
    /// How that is known.
    pub measured: FillUnit,
}

impl Fill {
    /// Percent of the window that are left, rounded down.
    #[must_use]
    pub const fn left(self) -> u64 {
        if self.size == 0 {
            return 0;
        }
        let left = self.size.saturating_sub(self.used);
        // Windows are far from overflowing this.
        left.saturating_mul(100) / self.size
    }
}

/// What room a conversation has, from much to none.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum ContextLevel {
    /// Enough.
    #[default]
    Plenty,
    /// At most 35 % of the window: people are told.
    Low,
    /// At most 25 %: the next run begins a fresh one, and this one is asked for a summary.
    HandOver,
    /// None that an answer would fit in.
    Full,
}

impl ContextLevel {
    /// The room after a run. `full` says that the agent failed because there was none.
    #[must_use]
    pub const fn after(fill: Option<Fill>, full: bool) -> ContextLevel {
        let Some(fill) = fill else {
            return if full { ContextLevel::Full } else { ContextLevel::Plenty };
        };
        let (left, size) = (fill.size.saturating_sub(fill.used) as u128, fill.size as u128);
        if full || left * 100 <= size * 3 {
            ContextLevel::Full
        } else if left * 100 <= size * 25 {
            ContextLevel::HandOver
        } else if left * 100 <= size * 35 {
            ContextLevel::Low
        } else {
            ContextLevel::Plenty
        }
    }

    /// Whether the next run begins a fresh conversation.
    #[must_use]
    pub const fn hands_over(self) -> bool {
        match self {
            ContextLevel::HandOver | ContextLevel::Full => true,
            ContextLevel::Plenty | ContextLevel::Low => false,
        }
    }
}

/// That a conversation was handed over to a fresh one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedOver {
    /// The one before.
    pub from: String,
    /// Whether it wrote a summary itself; else the records had to do.
    pub by_itself: bool,
}

/// What a run tells about its conversation and its prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conversation {
    /// How full it is.
    pub fill: Option<Fill>,
    /// The run began with a hand-over.
    pub handed_over: Option<HandedOver>,
    /// Sections of the prompt that were cut to fit.
    pub prompt_cut: Vec<String>,
    /// The command of an agent that speaks the protocol: no other one knows the conversation.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub command: String,
}

/// The window of a model, in tokens.
#[must_use]
pub fn window_of(model: &str) -> u64 {
    let known = WINDOWS.iter().find(|(name, _)| model.starts_with(name));
    known.map_or(WINDOW, |(_, window)| *window)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_told_at_35_percent_and_a_fresh_conversation_begins_at_25() {
        let table = [
            (0, 200_000, ContextLevel::Plenty),
            (129_999, 200_000, ContextLevel::Plenty),
            (130_000, 200_000, ContextLevel::Low),
            (149_999, 200_000, ContextLevel::Low),
            (150_000, 200_000, ContextLevel::HandOver),
            (193_999, 200_000, ContextLevel::HandOver),
            (195_000, 200_000, ContextLevel::Full),
            (250_000, 200_000, ContextLevel::Full),
            (0, 0, ContextLevel::Full),
            (176_799, 272_000, ContextLevel::Plenty),
            (176_800, 272_000, ContextLevel::Low),
            (204_000, 272_000, ContextLevel::HandOver),
            (u64::MAX, u64::MAX, ContextLevel::Full),
        ];
        for (used, size, room) in table {
            let fill = Fill { used, size, measured: FillUnit::Tokens };
            assert_eq!(ContextLevel::after(Some(fill), false), room, "{fill:?}");
            assert_eq!(ContextLevel::after(Some(fill), true), ContextLevel::Full);
        }
        assert_eq!(ContextLevel::after(None, false), ContextLevel::Plenty);
        assert_eq!(ContextLevel::after(None, true), ContextLevel::Full);
        assert!(
            !ContextLevel::Low.hands_over()
                && ContextLevel::HandOver.hands_over()
                && ContextLevel::Full.hands_over()
        );
    }

    #[test]
    fn windows_are_known_by_the_models_name() {
        for (model, window) in [
            ("gpt-5.5", 272_000),
            ("gpt-6-codex", 272_000),
            ("sonnet", 200_000),
            ("claude-opus-5", 200_000),
            ("gemini-2.5-pro", 1_000_000),
            ("", 200_000),
        ] {
            assert_eq!(window_of(model), window, "{model}");
        }
    }
}
