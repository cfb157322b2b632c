//! A plan while it is read: items, their parts and their lines, and what all formats write in the same way.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::domain::criterion::Criterion;
use crate::domain::ids::{PlanItemId, RequirementId};
use crate::domain::plan::{MOST_EFFORT, Plan, PlanItem, PlanPart, Severity};

/// Something that is wrong with a plan, by the line of its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LineProblem {
    /// The line.
    pub line: u32,
    /// Whether the plan can be used all the same.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: String,
}

/// A plan that is being read.
#[derive(Debug, Default)]
pub(super) struct Reader {
    pub(super) plan: Plan,
    pub(super) lines: BTreeMap<PlanPart, u32>,
    pub(super) problems: Vec<LineProblem>,
}

impl Reader {
    fn problem(&mut self, severity: Severity, line: u32, message: String, hint: &str) {
        self.problems.push(LineProblem { line, severity, message, hint: hint.to_owned() });
    }

    pub(super) fn fault(&mut self, line: u32, message: String, hint: &str) {
        self.problem(Severity::Fault, line, message, hint);
    }

    pub(super) fn warn(&mut self, line: u32, message: String, hint: &str) {
        self.problem(Severity::Warning, line, message, hint);
    }

    /// Begins an item.
    pub(super) fn item(&mut self, id: PlanItemId, title: &str, line: u32) {
        self.lines.insert(PlanPart::Item(self.plan.items.len()), line);
        self.plan.items.push(PlanItem::new(id, title));
    }

    /// Whether a heading is meant to begin an item and does not, such as `EPIC 2: Title`, `Phase 2a: Title` or `phase 5`
    /// where items begin with `EPIC-2` and `Phase 2`. One that was begun is only named again.
    pub(super) fn is_misspelt(&self, text: &str, word: &str) -> bool {
        let lower = text.to_lowercase();
        let Some(rest) = lower.strip_prefix(word) else { return false };
        let rest = rest.trim_start_matches([' ', '-', '_', '#']);
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '.')).unwrap_or(rest.len());
        let (number, behind) = (rest[..end].trim_end_matches('.'), rest[end..].trim_start());
        let is_begun = |item: &PlanItem| {
            let known = item.id.as_str().rsplit('-').next().unwrap_or_default();
            known.trim_start_matches('0') == number.trim_start_matches('0')
        };
        number.starts_with(|c: char| c.is_ascii_digit())
            && (behind.is_empty() || behind.starts_with([':', '-', '–', '—']))
            && !self.plan.items.iter().any(is_begun)
    }

    /// The item that was begun last, and its place.
    pub(super) fn last(&mut self) -> Option<(usize, &mut PlanItem)> {
        let at = self.plan.items.len().checked_sub(1)?;
        Some((at, self.plan.items.last_mut()?))
    }

    pub(super) fn scope(&mut self, text: &str) {
        let Some((_, item)) = self.last() else { return };
        if !item.scope.is_empty() {
            item.scope.push('\n');
        }
        item.scope.push_str(text);
    }

    pub(super) fn criterion(&mut self, text: &str, depth: usize, line: u32) {
        let text = text.trim();
        let Some((at, item)) = self.last() else { return };
        if text.is_empty() {
            return;
        }
        match item.criteria.last_mut() {
            // What stands below a criterion says more about it.
            Some(above) if depth > 0 => {
                above.extend(text);
            }
            Some(_) | None => {
                let number = item.criteria.len();
                item.criteria.push(Criterion::from(text));
                self.lines.insert(PlanPart::Criterion(at, number), line);
            }
        }
    }

    /// What the last item depends on, each name by itself.
    pub(super) fn depends_on(&mut self, names: &[String], line: u32) {
        for name in names {
            match PlanItemId::parse(name) {
                Ok(id) => {
                    let Some((at, item)) = self.last() else { return };
                    let number = item.depends_on.len();
                    if !item.depends_on.contains(&id) {
                        item.depends_on.push(id);
                        self.lines.insert(PlanPart::Dependency(at, number), line);
                    }
                }
                Err(error) => {
                    let message =
                        format!("\"{}\" is no id of an item: {error}", name.escape_debug());
                    self.fault(line, message, "name items by their ids, with commas between them");
                }
            }
        }
    }

    pub(super) fn serves(&mut self, names: &[String], line: u32) {
        for name in names {
            match RequirementId::parse(name) {
                Ok(id) => {
                    let Some((_, item)) = self.last() else { return };
                    if !item.requirements.contains(&id) {
                        item.requirements.push(id);
                    }
                }
                Err(error) => {
                    let message =
                        format!("\"{}\" is no id of a requirement: {error}", name.escape_debug());
                    self.warn(
                        line,
                        message,
                        "name requirements by their ids, with commas between them",
                    );
                }
            }
        }
    }

    pub(super) fn allowed(&mut self, paths: Vec<String>, line: u32) {
        let Some((at, item)) = self.last() else { return };
        let from = item.allowed_paths.len();
        item.allowed_paths.extend(paths);
        let to = item.allowed_paths.len();
        self.lines.extend((from..to).map(|number| (PlanPart::Path(at, number), line)));
    }

    pub(super) fn excluded(&mut self, paths: Vec<String>) {
        if let Some((_, item)) = self.last() {
            item.excluded_paths.extend(paths);
        }
    }

    /// The work that the last item takes, as people estimate it: days, hours, weeks or points. Words that are no
    /// estimate say nothing about it.
    pub(super) fn effort(&mut self, text: &str, line: u32) {
        let text = text.trim().to_lowercase();
        let digits = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+')));
        let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
        let Ok(number) = number.parse::<f64>() else { return };
        if number < 0.0 {
            let message = format!("the estimate \"{}\" is negative", text.escape_debug());
            return self.fault(
                line,
                message,
                "write what it takes, such as 4h, 2d, 1w or 3 points",
            );
        }
        if number == 0.0 {
            return;
        }
        let half_days = match unit.trim() {
            "h" | "hour" | "hours" => number / 4.0,
            "" | "d" | "day" | "days" => number * 2.0,
            "w" | "week" | "weeks" => number * 10.0,
            "p" | "pt" | "pts" | "sp" | "point" | "points" => match number {
                ..=1.0 => 1.0,
                ..=3.0 => 2.0,
                ..=5.0 => 6.0,
                _ => 10.0,
            },
            _ => return,
        };
        let whole = (1..MOST_EFFORT).find(|whole| f64::from(*whole) >= half_days);
        if let Some((_, item)) = self.last() {
            item.effort = whole.unwrap_or(MOST_EFFORT);
        }
    }

    pub(super) fn rank(&mut self, text: &str, line: u32) {
        let rank = match text.trim().to_lowercase().as_str() {
            "critical" | "p0" => 1,
            "high" | "p1" => 2,
            "medium" | "p2" => 3,
            "low" | "p3" => 4,
            other => match other.parse() {
                Ok(rank) => rank,
                Err(_) => {
                    let message =
                        format!("the priority \"{}\" is not known", text.trim().escape_debug());
                    let hint = "write critical, high, medium, low, or a number of which 1 is first";
                    return self.fault(line, message, hint);
                }
            },
        };
        if let Some((_, item)) = self.last() {
            item.priority_rank = rank;
        }
    }
}

/// Names with commas between them, without brackets and quotes; none where it says that there are none. A comma within
/// braces belongs to a glob.
pub(super) fn names(text: &str) -> Vec<String> {
    let text = text.trim();
    let text = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let is_none = |name: &str| {
        matches!(name.to_lowercase().as_str(), "" | "none" | "nothing" | "n/a" | "-" | "–" | "—")
    };
    let clean = |name: &str| {
        let name = name.trim().trim_end_matches('.').trim_matches(['"', '\'', '`']);
        name.to_owned()
    };
    let mut depth = 0_i32;
    let ends = |c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth <= 0
    };
    text.split(ends).map(clean).filter(|name| !is_none(name)).collect()
}

/// An id at the beginning of a title, such as `US-001: Title`, `EPIC-2 — Title` or `US-3 Title`, and the title.
pub(super) fn id_and_title<'t>(text: &'t str, prefixes: &[&str]) -> Option<(String, &'t str)> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '.'));
    let (id, rest) = text.split_at(end.unwrap_or(text.len()));
    let (prefix, number) = id.split_once('-')?;
    let fits = prefixes.iter().any(|known| prefix.eq_ignore_ascii_case(known));
    let number = number.trim_end_matches(['-', '.']);
    let is_number = number.starts_with(|c: char| c.is_ascii_digit());
    (fits && is_number).then(|| {
        let title = rest.trim_start_matches(|c: char| {
            c.is_whitespace() || matches!(c, '-' | '–' | '—' | ':' | '.' | '|' | ')')
        });
        (format!("{}-{number}", prefix.to_uppercase()), title.trim())
    })
}
