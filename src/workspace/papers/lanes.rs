//! The todos of a sprint as lanes over time: who worked on which and when, and in grey what waited.

use chrono_tz::Tz;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::chart::{self, Area, BLUE, ChartError, FAINT, FONT, INK, LETTERS};
use crate::domain::language::Language;
use crate::domain::role::Role;
use crate::domain::sprint::{Sprint, Todo};
use crate::domain::time::Timestamp;

/// Lanes that are drawn; more are not readable.
const MOST: usize = 40;
/// Pixels: of a lane with its gap, of what is above and below all of them, and of the edges.
const LANE: i32 = 46;
const TOP: i32 = 130;
const BOTTOM: i32 = 76;
const LEFT: i32 = 76;
const RIGHT: i32 = 40;
/// A bar is at least so wide, or nobody sees it.
const THIN: i32 = 3;

const WAITING: RGBColor = RGBColor(0xd5, 0xda, 0xe0);

const fn color(role: Role) -> RGBColor {
    match role {
        Role::Planner => RGBColor(0x8a, 0x63, 0xc7),
        Role::Designer => RGBColor(0xc9, 0x6b, 0xa8),
        Role::Developer => BLUE,
        Role::ConflictResolver => RGBColor(0xb8, 0x45, 0x45),
        Role::Architect => RGBColor(0xe0, 0x92, 0x2f),
        Role::Qa => RGBColor(0x2b, 0x9a, 0x9a),
        Role::VersionController => RGBColor(0x3d, 0x96, 0x5a),
        Role::Orchestrator | Role::Research | Role::Parser | Role::Sourcer => {
            RGBColor(0x7a, 0x7f, 0x3a)
        }
    }
}

/// What a colour means. The font has the Hangul of these words alone.
const fn word(role: Option<Role>, language: Language) -> &'static str {
    match (language, role) {
        (Language::En, Some(Role::Planner)) => "plan",
        (Language::En, Some(Role::Designer)) => "design",
        (Language::En, Some(Role::Developer)) => "build",
        (Language::En, Some(Role::ConflictResolver)) => "merge",
        (Language::En, Some(Role::Architect)) => "arch.",
        (_, Some(Role::Qa)) => "QA",
        (Language::En, Some(Role::VersionController)) => "checks",
        (_, Some(Role::Orchestrator | Role::Research | Role::Parser | Role::Sourcer)) => "…",
        (Language::En, None) => "waits",
        (Language::Ko, Some(Role::Planner)) => "계획",
        (Language::Ko, Some(Role::Designer)) => "UX",
        (Language::Ko, Some(Role::Developer)) => "개발",
        (Language::Ko, Some(Role::ConflictResolver)) => "재작업",
        (Language::Ko, Some(Role::Architect)) => "설계",
        (Language::Ko, Some(Role::VersionController)) => "검사",
        (Language::Ko, None) => "대기",
    }
}

/// The todos that have begun, in the order of their lanes: the first lane is number 1.
#[must_use]
pub fn lane_order(sprint: &Sprint) -> Vec<&Todo> {
    let begun = sprint.work.todos.iter().filter(|todo| todo.progress.started_at.is_some());
    let mut lanes: Vec<&Todo> = begun.collect();
    lanes.sort_by_key(|todo| {
        (todo.progress.started_at, todo.priority_rank, todo.progress.created_at)
    });
    lanes
}

/// The picture as PNG, with the clock of a zone. The same sprint always gives the same bytes.
pub fn lanes(sprint: &Sprint, zone: Tz) -> Result<Vec<u8>, ChartError> {
    let all = lane_order(sprint);
    let shown = all.get(..MOST).unwrap_or(&all);
    let rows = i32::try_from(shown.len()).unwrap_or_default().max(1);
    let height = u32::try_from(TOP + rows * LANE + BOTTOM).unwrap_or_default();
    chart::picture(height, |area| draw(sprint, shown, zone, area))
}

fn draw(sprint: &Sprint, lanes: &[&Todo], zone: Tz, area: &Area<'_>) -> Result<(), String> {
    let failed = |error: DrawingAreaErrorKind<_>| format!("{error}");
    let (width, height) = area.dim_in_pixel();
    let (right, bottom) = (
        i32::try_from(width).unwrap_or_default() - RIGHT,
        i32::try_from(height).unwrap_or_default() - BOTTOM,
    );
    let axis = TimeAxis::of(sprint, lanes, right);
    let letters = |horizontal, vertical| {
        let font = (FONT, LETTERS).into_font().color(&INK);
        font.pos(Pos::new(horizontal, vertical))
    };
    let text = |words: String, place, horizontal, vertical| {
        area.draw(&Text::new(words, place, letters(horizontal, vertical))).map_err(failed)
    };
    let bar = |from: i32, to: i32, top: i32, bottom: i32, color: RGBColor| {
        area.draw(&Rectangle::new([(from, top), (to, bottom)], color.filled())).map_err(failed)
    };
    let title = (FONT, LETTERS + 6).into_font().color(&INK).pos(Pos::new(HPos::Center, VPos::Top));
    let middle = i32::try_from(width / 2).unwrap_or_default();
    area.draw(&Text::new(sprint.sprint_id.as_str(), (middle, 22), title)).map_err(failed)?;
    let mut at = LEFT;
    let worked = |role: &Role| {
        lanes.iter().flat_map(|todo| &todo.progress.spans).any(|span| span.worker() == *role)
    };
    for role in Role::ALL.into_iter().filter(worked).map(Some).chain([None]) {
        let word = word(role, sprint.language);
        bar(at, at + 26, 82, 108, role.map_or(WAITING, color))?;
        text(word.to_owned(), (at + 36, 95), HPos::Left, VPos::Center)?;
        let letters = word.chars().map(|it| if it.is_ascii() { 15 } else { 28 }).sum::<i32>();
        at += 36 + letters + 16;
    }
    let (format, most) = chart::clock(axis.seconds());
    for mark in 0..=most {
        let at = axis.mark(mark, most);
        let x = axis.x(at);
        bar(x, x + 1, TOP - 4, bottom, FAINT)?;
        // The first and the last would stand beyond the edge.
        if mark != most || most < 2 {
            text(at.format_in(zone, format), (x, bottom + 18), HPos::Center, VPos::Top)?;
        }
    }
    for (row, todo) in (0..).zip(lanes) {
        let top = TOP + row * LANE + 6;
        let floor = top + LANE - 14;
        text((row + 1).to_string(), (LEFT - 18, (top + floor) / 2), HPos::Right, VPos::Center)?;
        let begun = todo.progress.started_at.unwrap_or(axis.begun);
        let ended = todo.progress.ended_at.unwrap_or(axis.ended);
        bar(axis.x(begun), axis.x(ended).max(axis.x(begun) + THIN), top, floor, WAITING)?;
        for span in &todo.progress.spans {
            let (from, to) = (axis.x(span.from.max(begun)), axis.x(span.to.min(ended)));
            bar(from, to.max(from + THIN), top, floor, color(span.worker()))?;
        }
    }
    Ok(())
}

/// The time along the bottom.
struct TimeAxis {
    begun: Timestamp,
    ended: Timestamp,
    right: i32,
}

impl TimeAxis {
    fn of(sprint: &Sprint, lanes: &[&Todo], right: i32) -> TimeAxis {
        let begun =
            lanes.iter().filter_map(|todo| todo.progress.started_at).min().or(sprint.started_at);
        let begun = begun.unwrap_or_else(|| Timestamp::from_millis(0));
        let ended =
            lanes.iter().filter_map(|todo| todo.progress.ended_at).max().or(sprint.ended_at);
        // What ended at once still has a width.
        let ended = ended.unwrap_or(begun).max(begun.plus_seconds(10));
        TimeAxis { begun, ended, right }
    }

    fn seconds(&self) -> u64 {
        self.ended.seconds_since(self.begun)
    }

    fn mark(&self, mark: usize, of: usize) -> Timestamp {
        let whole = self.ended.millis() - self.begun.millis();
        let part = i64::try_from(mark).unwrap_or(0) * whole / i64::try_from(of).unwrap_or(1).max(1);
        Timestamp::from_millis(self.begun.millis() + part)
    }

    fn x(&self, at: Timestamp) -> i32 {
        let whole = (self.ended.millis() - self.begun.millis()).max(1);
        let since = (at.millis() - self.begun.millis()).clamp(0, whole);
        let wide = i64::from(self.right - LEFT);
        LEFT + i32::try_from(since * wide / whole).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_letter_is_in_the_font() {
        for language in [Language::En, Language::Ko] {
            for role in Role::ALL.into_iter().map(Some).chain([None]) {
                chart::letters_are_there(word(role, language));
            }
        }
    }
}
