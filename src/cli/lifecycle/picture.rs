//! A lifecycle as a picture: its steps from top to bottom, where their outcomes lead to the right of them, and what
//! they send back as words to the left. Names are letters, digits and `_`, so nothing has to be escaped.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::cli::svg::{INK, RED, SOFT, begin};
use crate::domain::lifecycle::{
    Condition, Lifecycle, SprintStep, Step, StepKind, StepName, Subject,
};

/// The left edge of the boxes, their width, and what is between two of them.
const LEFT: i32 = 330;
const WIDTH: i32 = 210;
const GAP: i32 = 34;
const TOP: i32 = 60;
/// Between two lines that begin or end at the same box, and between two that go beside each other.
const SLOT: i32 = 15;
const LANE: i32 = 22;
/// What the words beside a line need.
const WORDS: i32 = 200;

/// One way from a box to another that is not just the next one, with all outcomes that take it.
struct Arrow {
    from: usize,
    to: usize,
    words: Vec<String>,
}

/// A box: where it stands, how high it is, and how many lines begin or end at it so far.
struct BoxPosition {
    y: i32,
    height: i32,
    used: i32,
}

impl BoxPosition {
    /// The height of the next line that begins or ends here.
    fn slot(&mut self) -> i32 {
        self.used += 1;
        self.y + self.used * SLOT
    }
}

/// The picture as SVG, in its own size.
pub(super) fn svg(lifecycle: &Lifecycle) -> String {
    let steps: Vec<&Step> = lifecycle.steps().collect();
    let rows: BTreeMap<StepName, usize> = steps.iter().map(|it| it.name).zip(0..).collect();
    let (straight, mut around) = ways(&steps, &rows);
    // Short ways inside of long ones cross less.
    around.sort_by_key(|way| way.from.abs_diff(way.to));
    let mut places: Vec<BoxPosition> = Vec::new();
    for at in 0..steps.len() {
        let y = places.last().map_or(TOP, |last| last.y + last.height + GAP);
        let ends = around.iter().map(|way| u8::from(way.from == at) + u8::from(way.to == at));
        let lines: i32 = ends.map(i32::from).sum();
        places.push(BoxPosition { y, height: (SLOT * (lines + 1)).max(48), used: 0 });
    }
    let lanes = lanes(&around);
    let most = lanes.iter().max().map_or(0, |most| most + 1);
    let width = LEFT + WIDTH + WORDS + length(most) * LANE + 20;
    let (of, legend) = match lifecycle.subject {
        Subject::Request => (
            "a request",
            "left: where a step sends the work back · in brackets: the counter that allows it",
        ),
        Subject::Sprint => ("a sprint", "in brackets: the counter that allows it"),
        Subject::Sourcing => ("sourcing", "work that nobody asked for"),
    };
    let height = places.last().map_or(TOP, |last| last.y + last.height) + 24;
    let mut svg = begin(width, height, &format!("Lifecycle of {of}"), legend);
    for (id, color) in [("on", INK), ("back", RED)] {
        let _ = writeln!(
            svg,
            "<marker id=\"{id}\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" \
             markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0 8 4 0 8z\" fill=\"{color}\"/></marker>"
        );
    }
    for way in &straight {
        let x = LEFT + WIDTH / 2;
        let (y, end) = (places[way.from].y + places[way.from].height, places[way.to].y);
        line(&mut svg, &format!("M{x} {y}V{end}"), false);
        words(&mut svg, (x + 8, y + 21), &way.words.join(", "), INK);
    }
    for (lane, way) in lanes.into_iter().zip(&around) {
        let back = way.to <= way.from;
        let (side, lane) = (LEFT + WIDTH, WORDS + length(lane) * LANE);
        let y = places[way.from].slot();
        let end = places[way.to].slot();
        line(&mut svg, &format!("M{side} {y}h{lane}V{end}h-{lane}"), back);
        let color = if back { RED } else { INK };
        words(&mut svg, (side + 8, y - 3), &way.words.join(", "), color);
    }
    for (step, place) in steps.iter().zip(&places) {
        draw(&mut svg, lifecycle, step, place);
    }
    svg.push_str("</svg>");
    svg
}

/// How far out each way goes: as near as the ways beside it let it.
fn lanes(around: &[Arrow]) -> Vec<usize> {
    let rows = |way: &Arrow| (way.from.min(way.to), way.from.max(way.to));
    let mut lanes: Vec<usize> = Vec::new();
    for way in around {
        let (first, last) = rows(way);
        let beside = around.iter().zip(&lanes).filter(|(other, _)| {
            let (from, to) = rows(other);
            from <= last && first <= to
        });
        let taken: Vec<usize> = beside.map(|(_, lane)| *lane).collect();
        lanes.push((0..).find(|lane| !taken.contains(lane)).unwrap_or(0));
    }
    lanes
}

fn length(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX / (LANE * 2))
}

fn line(svg: &mut String, path: &str, back: bool) {
    let (id, color) = if back { ("back", RED) } else { ("on", INK) };
    let _ = writeln!(
        svg,
        "<path d=\"{path}\" stroke=\"{color}\" fill=\"none\" marker-end=\"url(#{id})\"/>"
    );
}

/// Words on a line, which stay readable where another line crosses them.
fn words(svg: &mut String, (x, y): (i32, i32), words: &str, color: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{x}\" y=\"{y}\" font-size=\"11\" fill=\"{color}\" stroke=\"#ffffff\" \
         stroke-width=\"3\" paint-order=\"stroke\">{words}</text>"
    );
}

/// A step and, to the left of it, what it sends back.
fn draw(svg: &mut String, lifecycle: &Lifecycle, step: &Step, place: &BoxPosition) {
    let BoxPosition { y, height, used: _ } = *place;
    let (fill, who) = look(step.kind, step.role.as_str());
    let who = format!("{who}{}", conditions(step));
    let middle = (LEFT + WIDTH / 2, y + height / 2);
    let _ = writeln!(
        svg,
        "<rect x=\"{LEFT}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{height}\" rx=\"8\" fill=\"{fill}\" \
         stroke=\"{INK}\"/><text x=\"{0}\" y=\"{1}\" text-anchor=\"middle\" fill=\"{INK}\">{2}</text>\
         <text x=\"{0}\" y=\"{3}\" text-anchor=\"middle\" font-size=\"11\" fill=\"{SOFT}\">{who}</text>",
        middle.0,
        middle.1 - 3,
        step.name,
        middle.1 + 14
    );
    let mut back: Vec<(StepName, Vec<String>)> = Vec::new();
    for (category, edge) in lifecycle.ways_back(step) {
        match back.iter_mut().find(|(to, _)| *to == edge.to) {
            Some((_, words)) => words.push(category.to_string()),
            None => back.push((edge.to, vec![category.to_string()])),
        }
    }
    let lines = length(back.len());
    for (at, (to, categories)) in (0..).zip(&back) {
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" font-size=\"11\" fill=\"{RED}\">{} → {to}</text>",
            LEFT - 10,
            middle.1 + 4 + (2 * at - lines + 1) * 7,
            categories.join(", ")
        );
    }
}

/// What has to hold for a step, as it is said behind who works it.
pub(super) fn conditions(step: &Step) -> String {
    let words = step.only_if.iter().map(|condition| match condition {
        Condition::Research => ", where research is configured",
        Condition::Worked => ", where a todo was begun",
        Condition::Route => ", where the route has it",
    });
    words.collect()
}

pub(super) fn look(kind: StepKind, role: &str) -> (&'static str, &str) {
    match kind {
        StepKind::Research | StepKind::Plan => ("#e8f0fe", role),
        StepKind::Advice => ("#f1f3f4", role),
        StepKind::Guidance | StepKind::Review => ("#fef3d6", role),
        StepKind::Change => ("#e3f5e5", role),
        StepKind::Verdict => ("#fde7ea", role),
        StepKind::Land => ("#e6e0f5", "the runtime proves and lands"),
        StepKind::Sprint(step) => match step {
            SprintStep::Planning(_) | SprintStep::Duty(_) => ("#e8f0fe", role),
            SprintStep::Baseline => ("#e6e0f5", "the runtime looks at the project"),
            SprintStep::Work => ("#e3f5e5", "todos are worked"),
            SprintStep::Inspection => ("#e6e0f5", "the runtime asks git"),
            SprintStep::Archive => ("#e6e0f5", "the runtime writes the report"),
        },
    }
}

/// The ways to the step below, and all others; outcomes that join the same two steps are one way.
fn ways(steps: &[&Step], rows: &BTreeMap<StepName, usize>) -> (Vec<Arrow>, Vec<Arrow>) {
    let mut ways: Vec<Arrow> = Vec::new();
    for (from, step) in steps.iter().enumerate() {
        for (outcome, edge) in step.edges() {
            let to = rows.get(&edge.to).copied().unwrap_or(from);
            let counter = edge.charge.or(edge.within).map(|name| format!(" ({name})"));
            let word = format!("{}{}", outcome.as_str(), counter.unwrap_or_default());
            match ways.iter_mut().find(|way| (way.from, way.to) == (from, to)) {
                Some(way) => way.words.push(word),
                None => ways.push(Arrow { from, to, words: vec![word] }),
            }
        }
    }
    ways.into_iter().partition(|way| way.to == way.from + 1)
}
