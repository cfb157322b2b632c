//! A plan as a picture: a column for each wave, lines to what each item waits for, the longest chain in colour.

use std::fmt::Write as _;

use crate::cli::output::fit;
use crate::cli::svg::{INK, RED, SOFT, begin, escaped};
use crate::domain::plan::Plan;
use crate::engine::parse::display_width;
use crate::engine::plan::graph::Graph;

const WIDTH: usize = 220;
const HEIGHT: usize = 46;
const GAP_X: usize = 70;
const GAP_Y: usize = 18;
const TOP: usize = 60;
/// Columns of text that fit into a box.
const COLUMNS: usize = 30;

/// The picture as SVG, in its own size.
pub(super) fn svg(plan: &Plan, graph: &Graph) -> String {
    let waves = graph.waves();
    let critical = graph.critical_path(|at| plan.items[at].effort.max(1));
    let mut places = vec![(0, 0); plan.items.len()];
    for (column, wave) in waves.iter().enumerate() {
        for (row, at) in wave.iter().enumerate() {
            places[*at] = (16 + column * (WIDTH + GAP_X), TOP + row * (HEIGHT + GAP_Y));
        }
    }
    let rows = waves.iter().map(Vec::len).max().unwrap_or(0);
    let (width, height) =
        (32 + waves.len().max(1) * (WIDTH + GAP_X) - GAP_X, TOP + rows * (HEIGHT + GAP_Y) + 8);
    let legend = "from left to right: what can begin when what is before it is delivered · red: the longest chain";
    let mut svg = begin(width, height, fit(&plan.title, 80), legend);
    let mut lines: Vec<(bool, String)> = Vec::new();
    for (at, item) in plan.items.iter().enumerate() {
        let waits = plan.items.iter().enumerate();
        for (before, _) in waits.filter(|(_, other)| item.depends_on.contains(&other.id)) {
            let chained = critical.windows(2).any(|pair| pair == [before, at]);
            lines.push((chained, line(places[before], places[at])));
        }
    }
    // What stands out is drawn over the rest.
    lines.sort();
    for (chained, path) in lines {
        let color = if chained { RED } else { SOFT };
        let _ = writeln!(svg, "<path d=\"{path}\" stroke=\"{color}\" fill=\"none\"/>");
    }
    for (at, item) in plan.items.iter().enumerate() {
        let (x, y) = places[at];
        let color = if critical.contains(&at) { RED } else { INK };
        let title = fit(&item.title, COLUMNS);
        let cut = if display_width(title) < display_width(&item.title) { "…" } else { "" };
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"8\" fill=\"{}\" stroke=\"{color}\"/>\
             <text x=\"{2}\" y=\"{3}\" fill=\"{color}\">{1}</text>\
             <text x=\"{2}\" y=\"{4}\" font-size=\"11\" fill=\"{SOFT}\">{5}{cut}</text>",
            if item.done { "#e3f5e5" } else { "#f7f8fa" },
            escaped(item.id.as_str()),
            x + 10,
            y + 19,
            y + 36,
            escaped(title)
        );
    }
    svg.push_str("</svg>");
    svg
}

/// The line from a box to one that waits for it; one that passes other columns goes below the boxes of its row.
fn line(from: (usize, usize), to: (usize, usize)) -> String {
    let (x, y, end) = (from.0 + WIDTH, from.1 + HEIGHT / 2, to.1 + HEIGHT / 2);
    let (half, to) = (GAP_X / 2, to.0);
    if to - x == GAP_X {
        return format!("M{x} {y}C{0} {y} {0} {end} {to} {end}", to - half);
    }
    let below = from.1 + HEIGHT + GAP_Y / 2;
    let (out, into) = (x + half, to - half);
    format!(
        "M{x} {y}C{out} {y} {x} {below} {out} {below}H{into}C{to} {below} {into} {end} {to} {end}"
    )
}
