//! Long messages that a sender cut into numbered parts (`spec/teams.md` 5.4).

use super::lines;

/// The number of dashes of a boundary line.
const BOUNDARY: usize = 34;
/// How long a part's prefix may be, in characters.
const PREFIX: usize = 200;

/// The head of one part of a longer message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartHeader {
    /// What stands before the number.
    pub prefix: String,
    /// Which part, from 1.
    pub index: u32,
    /// How many there are, at least 2.
    pub total: u32,
    /// The text of the part.
    pub body: String,
}

/// Reads a message as a part: its first line is a mention prefix or nothing, then `[i/n]` alone.
/// A person's line such as "Progress [1/3]" is no part (`spec/teams.md` I19): only mentions may
/// stand before the number.
#[must_use]
pub fn part_header(text: &str) -> Option<PartHeader> {
    let (first, body) = text.split_once('\n')?;
    let open = first.rfind('[')?;
    let (prefix, number) = first.split_at_checked(open)?;
    let only_mentions =
        prefix.split_whitespace().all(|word| word.starts_with("<@") && word.ends_with('>'));
    if !only_mentions || prefix.chars().count() > PREFIX {
        return None;
    }
    let (index, total) = number.trim_end().strip_prefix('[')?.strip_suffix(']')?.split_once('/')?;
    let (index, total) = (index.parse().ok()?, total.parse().ok()?);
    (total >= 2 && (1..=total).contains(&index)).then(|| PartHeader {
        prefix: prefix.trim().to_owned(),
        index,
        total,
        body: body.to_owned(),
    })
}

/// A text without the dashed lines that frame a role's message.
#[must_use]
pub fn strip_boundary_lines(text: &str) -> String {
    let is_boundary = |line: &str| {
        let line = line.trim();
        line.len() == BOUNDARY && line.bytes().all(|byte| byte == b'-')
    };
    let all = lines(text);
    let first = usize::from(all.first().is_some_and(|line| is_boundary(line)));
    let last = usize::from(all.len() > first && all.last().is_some_and(|line| is_boundary(line)));
    all.get(first..all.len() - last).unwrap_or_default().join("\n")
}
