//! What the team says is written for Discord; a terminal shows its markup as it stands. This takes it away.

use crate::domain::time::Timestamp;

/// The same words without Discord's markup: marks of bold text, small print and headings go, mentions are
/// shown by their ids and times as times. Code stands as it is.
pub(super) fn plain(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if in_code {
            // What the fence put between the marks of another fence.
            lines.push(line.replace("`\u{200b}`\u{200b}`", "```"));
        } else {
            lines.push(without_marks(line_of(line)));
        }
    }
    lines.join("\n")
}

/// A line without the mark of small print or of a heading.
fn line_of(line: &str) -> &str {
    ["-# ", "### ", "## ", "# "].iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(line)
}

/// A line without `**`, and with mentions and times as people read them; what stands between backticks stays.
fn without_marks(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for (at, part) in line.split('`').enumerate() {
        if at > 0 {
            out.push('`');
        }
        if at % 2 == 0 {
            out.push_str(&mentions(&part.replace("**", "")))
        } else {
            out.push_str(part)
        }
    }
    out
}

fn mentions(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, from)) = rest.split_once('<') {
        out.push_str(before);
        let known =
            from.split_once('>').and_then(|(inside, after)| Some((mention(inside)?, after)));
        rest = match known {
            Some((shown, after)) => {
                out.push_str(&shown);
                after
            }
            None => {
                out.push('<');
                from
            }
        };
    }
    out.push_str(rest);
    out
}

/// What stands between `<` and `>`, where it is a mention or a time.
fn mention(inside: &str) -> Option<String> {
    let id = |text: &str| {
        let is_id = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_id.then(|| text.to_owned())
    };
    if let Some(role) = inside.strip_prefix("@&") {
        return Some(format!("@&{}", id(role)?));
    }
    if let Some(user) = inside.strip_prefix('@') {
        return Some(format!("@{}", id(user.trim_start_matches('!'))?));
    }
    if let Some(channel) = inside.strip_prefix('#') {
        return Some(format!("#{}", id(channel)?));
    }
    if let Some(command) = inside.strip_prefix('/') {
        let (name, number) = command.split_once(':')?;
        return id(number).map(|_| format!("/{name}"));
    }
    let seconds = inside.strip_prefix("t:")?;
    let seconds: i64 = seconds.split(':').next()?.parse().ok()?;
    let at = Timestamp::from_millis(seconds.checked_mul(1_000)?).to_string();
    // Minutes are enough; the zone stands at the end.
    let (day, time) = at.split_once('T')?;
    let zone = time.get(time.rfind(['+', '-', 'Z'])?..)?;
    Some(format!("{day} {} {zone}", time.get(..5)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_discord_would_show_differently_is_taken_away() {
        for (text, shown) in [
            ("**Who works** with what", "Who works with what"),
            ("-# `2026` · five", "`2026` · five"),
            ("## Title", "Title"),
            ("#no title", "#no title"),
            (
                "ask <@1>, <@!2>, <@&3> in <#4> by </sprint start:5>",
                "ask @1, @2, @&3 in #4 by /sprint start",
            ),
            ("by <t:1774310400:f>.", "by 2026-03-24 09:00 +09:00."),
            ("by <t:1774310400>, <t:x>", "by 2026-03-24 09:00 +09:00, <t:x>"),
            ("a < b > c, <html>, <@>, <", "a < b > c, <html>, <@>, <"),
            ("`**kept** <@1>` and **not**", "`**kept** <@1>` and not"),
            (
                "see\n```diff\n-# **code** <@1>\n`\u{200b}`\u{200b}`x\n```\nend",
                "see\n-# **code** <@1>\n```x\nend",
            ),
        ] {
            assert_eq!(plain(text), shown, "{text:?}");
        }
    }
}
