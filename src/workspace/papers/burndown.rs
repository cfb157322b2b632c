//! The burndown of a sprint as a picture: how many todos were left, and when (`spec/teams.md` 12).

use chrono_tz::Tz;
use plotters::prelude::*;

use super::chart::{self, Area, BLUE, ChartError, FAINT, FONT, GROUND, INK, LETTERS, STEADY};
use crate::domain::language::Language;
use crate::domain::sprint::Sprint;
use crate::domain::time::Timestamp;

const HEIGHT: u32 = 600;

/// The words in a chart. Their letters have to be in the font.
struct Words {
    left: &'static str,
    steady: &'static str,
}

const fn words(language: Language) -> Words {
    match language {
        Language::En => Words { left: "todos left", steady: "steady pace" },
        Language::Ko => Words { left: "남은 작업", steady: "기준 속도" },
    }
}

/// The picture as PNG, with the clock of a zone. The same sprint always gives the same bytes.
pub fn burndown(sprint: &Sprint, zone: Tz) -> Result<Vec<u8>, ChartError> {
    chart::picture(HEIGHT, |area| draw(sprint, zone, area))
}

/// How many todos were left at each instant, in seconds since the begin. Only what was delivered burns.
struct Course {
    begun: Timestamp,
    total: usize,
    length: u64,
    steps: Vec<(u64, usize)>,
}

fn course(sprint: &Sprint) -> Course {
    let mut delivered: Vec<Timestamp> = sprint
        .work
        .todos
        .iter()
        .filter(|todo| todo.progress.status.is_success())
        .filter_map(|todo| todo.progress.ended_at)
        .collect();
    delivered.sort_unstable();
    let begun = sprint
        .started_at
        .or_else(|| delivered.first().copied())
        .or(sprint.ended_at)
        .unwrap_or_else(|| Timestamp::from_millis(0));
    let end = sprint.ended_at.or(sprint.work.last_activity_at).unwrap_or(begun);
    let end = delivered.last().map_or(end, |last| end.max(*last));
    let total = sprint.work.todos.len();
    // A sprint that ended at once still has a width.
    let length = end.seconds_since(begun).max(10);
    let mut steps = vec![(0, total)];
    let mut left = total;
    for at in delivered {
        let second = at.seconds_since(begun);
        steps.push((second, left));
        left = left.saturating_sub(1);
        steps.push((second, left));
    }
    steps.push((length, left));
    Course { begun, total, length, steps }
}

fn draw(sprint: &Sprint, zone: Tz, area: &Area<'_>) -> Result<(), String> {
    let failed = |error: DrawingAreaErrorKind<_>| format!("{error}");
    let course = course(sprint);
    let words = words(sprint.language);
    let letters = (FONT, LETTERS).into_font().color(&INK);
    let top = course.total.max(1);
    let mut chart = ChartBuilder::on(area)
        .margin(24)
        // Half of the last label stands beyond the axis.
        .margin_right(64)
        .caption(sprint.sprint_id.as_str(), (FONT, LETTERS + 6).into_font().color(&INK))
        .x_label_area_size(52)
        .y_label_area_size(64)
        // A little more than all of them, so that the line does not lie on the edge.
        .build_cartesian_2d(0..course.length, 0_f64..(as_float(top) * 1.08))
        .map_err(failed)?;
    let (format, labels) = chart::clock(course.length);
    let clock = |second: &u64| course.begun.plus_seconds(*second).format_in(zone, format);
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(FAINT)
        .axis_style(STEADY)
        .x_labels(labels)
        .y_labels((top + 1).min(7))
        .x_label_formatter(&clock)
        .y_label_formatter(&|left| format!("{left:.0}"))
        .label_style(letters.clone())
        .draw()
        .map_err(failed)?;
    let steady = [(0, as_float(course.total)), (course.length, 0.0)];
    chart
        .draw_series(DashedLineSeries::new(steady, 14, 10, STEADY.stroke_width(4)))
        .map_err(failed)?
        .label(words.steady)
        .legend(|(x, y)| PathElement::new([(x, y), (x + 36, y)], STEADY.stroke_width(4)));
    let steps = course.steps.iter().map(|(second, left)| (*second, as_float(*left)));
    chart
        .draw_series(LineSeries::new(steps, BLUE.stroke_width(6)))
        .map_err(failed)?
        .label(words.left)
        .legend(|(x, y)| PathElement::new([(x, y), (x + 36, y)], BLUE.stroke_width(6)));
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .legend_area_size(48)
        .margin(12)
        .background_style(GROUND.mix(0.85))
        .label_font(letters)
        .draw()
        .map_err(failed)?;
    Ok(())
}

/// A count on an axis.
fn as_float(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_letter_is_in_the_font() {
        for language in [Language::En, Language::Ko] {
            let Words { left, steady } = words(language);
            chart::letters_are_there(&format!("{left}{steady}"));
        }
    }
}
