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
    let critical = graph.critical_path(|_| 1.0);
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
    for (at, item) in plan.items.iter().enumerate() {
        for on in &item.depends_on {
            let Some(before) = plan.items.iter().position(|other| other.id == *on) else {
                continue;
            };
            let chained = critical.windows(2).any(|pair| pair == [before, at]);
            let color = if chained { RED } else { SOFT };
            let (from, to) = (places[before], places[at]);
            let (x, y, end) = (from.0 + WIDTH, from.1 + HEIGHT / 2, to.1 + HEIGHT / 2);
            let middle = to.0 - GAP_X / 2;
            let _ = writeln!(
                svg,
                "<path d=\"M{x} {y}C{middle} {y} {middle} {end} {} {end}\" stroke=\"{color}\" fill=\"none\"/>",
                to.0
            );
        }
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
