//! What work costs.

use serde::{Deserialize, Serialize};

/// Tokens and money.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Input tokens, those of a cache included.
    pub input_tokens: u64,
    /// Input tokens that were read from a cache.
    pub cached_tokens: u64,
    /// Input tokens that were written into a cache, where the model's server tells them apart.
    #[serde(skip_serializing_if = "is_zero")]
    pub written_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// US dollars, where the agent or a price table says.
    pub cost_usd: f64,
}

const fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

/// More than this is no amount of a run, in US dollars.
const MOST_USD: f64 = 1e9;

/// Money as an agent told it, in US dollars; none where that is no amount.
#[must_use]
pub fn told_usd(amount: Option<f64>) -> f64 {
    amount.filter(|amount| (0.0..MOST_USD).contains(amount)).unwrap_or(0.0)
}

impl Usage {
    /// All tokens, in and out.
    #[must_use]
    pub const fn tokens(self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Usage) -> Usage {
        Usage {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            written_tokens: self.written_tokens.saturating_add(other.written_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            // What JSON cannot say could not be read again.
            cost_usd: (self.cost_usd + other.cost_usd).min(f64::MAX),
        }
    }

    /// What came on top of an earlier total; nothing of what was more before.
    #[must_use]
    pub fn minus(self, earlier: Usage) -> Usage {
        Usage {
            input_tokens: self.input_tokens.saturating_sub(earlier.input_tokens),
            cached_tokens: self.cached_tokens.saturating_sub(earlier.cached_tokens),
            written_tokens: self.written_tokens.saturating_sub(earlier.written_tokens),
            output_tokens: self.output_tokens.saturating_sub(earlier.output_tokens),
            cost_usd: (self.cost_usd - earlier.cost_usd).max(0.0),
        }
    }

    /// Of each count the larger one.
    #[must_use]
    pub fn max(self, other: Usage) -> Usage {
        Usage {
            input_tokens: self.input_tokens.max(other.input_tokens),
            cached_tokens: self.cached_tokens.max(other.cached_tokens),
            written_tokens: self.written_tokens.max(other.written_tokens),
            output_tokens: self.output_tokens.max(other.output_tokens),
            cost_usd: self.cost_usd.max(other.cost_usd),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_that_is_none_counts_for_nothing() {
        for told in [None, Some(f64::INFINITY), Some(f64::NAN), Some(-1.0), Some(1e308)] {
            assert!(told_usd(told).abs() < f64::EPSILON, "{told:?}");
        }
        let most = Usage { cost_usd: f64::MAX, ..Usage::default() };
        let text = serde_json::to_string(&most.plus(most)).unwrap();
        assert!(serde_json::from_str::<Usage>(&text).is_ok(), "{text}");
    }
}
