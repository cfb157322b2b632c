//! From a definition to a lifecycle that holds together.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest as _, Sha256};

use super::definition::{Definition, EdgeDefinition, ReopenDefinition, ResultWord, StepDefinition};
use super::{
    Access, CounterName, Edge, Lifecycle, Prerequisite, ReopenCategory, Step, StepKind, StepName,
    StepOutcome, counter,
};
use crate::domain::config::Problem;
use crate::domain::role::Role;

/// What helps whoever wrote something that is no definition at all.
const LOOK: &str = "`teams lifecycle show --yaml` prints one that holds together";
/// Bytes of the longest definition.
const LONGEST: usize = 64 << 10;
/// The most that a counter may allow, and the most attempts of a step.
const MOST: u32 = 200;
const MOST_ATTEMPTS: u32 = 20;
/// The longest time-out, in seconds.
const LONGEST_TIMEOUT: u64 = 24 * 60 * 60;
/// The counters that the rules above every lifecycle pay by.
const REQUIRED: [CounterName; 2] = [counter::TURNS, counter::PLANNER_CONTRACT];

impl Lifecycle {
    /// Reads and checks a definition.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with the key at which it stands.
    pub fn compile(text: &str) -> Result<Lifecycle, Vec<Problem>> {
        compile(text)
    }
}

fn compile(text: &str) -> Result<Lifecycle, Vec<Problem>> {
    if text.len() > LONGEST {
        let message = format!("{} bytes, where at most {LONGEST} are expected", text.len());
        return Err(vec![Problem::at("", message).hint(LOOK)]);
    }
    let definition: Definition = serde_path_to_error::deserialize(
        serde_yaml::Deserializer::from_str(text),
    )
    .map_err(|error| {
        let key = error.path().to_string();
        let key = if key == "." { "" } else { &key };
        vec![Problem::at(key, error.inner().to_string()).hint(LOOK)]
    })?;
    let mut compiler = Compiler { problems: Vec::new(), definition };
    let lifecycle = compiler.lifecycle(text);
    let mut problems = compiler.problems;
    // What does not fit together would only repeat what is wrong with its parts.
    if problems.is_empty() {
        problems = Graph::of(&lifecycle).problems();
    }
    if problems.is_empty() { Ok(lifecycle) } else { Err(problems) }
}

struct Compiler {
    problems: Vec<Problem>,
    definition: Definition,
}

impl Compiler {
    fn problem(&mut self, key: &str, message: impl Into<String>, hint: impl Into<String>) {
        self.problems.push(Problem::at(key, message).hint(hint));
    }

    fn lifecycle(&mut self, text: &str) -> Lifecycle {
        if self.definition.lifecycle != "request" {
            let message = format!("`{}` is no lifecycle", self.definition.lifecycle);
            self.problem("lifecycle", message, "write `request`");
        }
        self.counters();
        let definitions = std::mem::take(&mut self.definition.steps.0);
        let names: Vec<StepName> = definitions.iter().map(|(name, _)| *name).collect();
        let known = Known { names, counters: self.definition.counters.keys().copied().collect() };
        for (key, name) in [
            ("begin", self.definition.begin),
            ("begin_todo", self.definition.begin_todo),
            ("resume", self.definition.resume),
        ] {
            self.target(key, name, &known);
        }
        let steps: Vec<Step> =
            definitions.into_iter().map(|(name, step)| self.step(name, step, &known)).collect();
        let reopen = std::mem::take(&mut self.definition.reopen);
        self.counter("reopen.counter", reopen.counter, &known);
        let reopen = self.reopened("reopen", &reopen, &known);
        for category in ReopenCategory::ALL {
            if !reopen.contains_key(&category) {
                let key = format!("reopen.{category}");
                self.problem(&key, "it is not there", format!("write `{category}: STEP`"));
            }
        }
        let landings: Vec<&Step> = steps.iter().filter(|it| it.kind == StepKind::Land).collect();
        if landings.len() != 1 {
            let hint = "write one step with `runtime: land`: a change comes to the branch there, proven, and nowhere else";
            self.problem("steps", format!("{} of the steps land", landings.len()), hint);
        }
        let resume = steps.iter().find(|step| step.name == self.definition.resume);
        if resume.is_some_and(|step| step.kind != StepKind::Plan) {
            let hint = "name a step with `result: plan`";
            self.problem("resume", "the answer of a person has to lead to a plan", hint);
        }
        Lifecycle {
            text: text.to_owned(),
            digest: Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect(),
            begin: self.definition.begin,
            begin_todo: self.definition.begin_todo,
            resume: self.definition.resume,
            counters: self.definition.counters.clone(),
            reopen,
            steps,
        }
    }

    fn counters(&mut self) {
        let counters = self.definition.counters.clone();
        for (name, most) in &counters {
            if !(1..=MOST).contains(most) {
                let key = format!("counters.{name}");
                self.problem(&key, format!("{most} is not between 1 and {MOST}"), "write a number");
            }
        }
        for name in REQUIRED.into_iter().filter(|name| !counters.contains_key(name)) {
            let key = format!("counters.{name}");
            self.problem(&key, "every lifecycle needs it", format!("write `{name}: NUMBER`"));
        }
    }

    fn step(&mut self, name: StepName, step: StepDefinition, known: &Known) -> Step {
        let key = format!("steps.{name}");
        let kind = match (step.result, step.runtime) {
            (Some(word), None) => kind_of(word),
            (None, Some(_)) => StepKind::Land,
            (Some(_), Some(_)) | (None, None) => {
                let hint = "write `role:` and `result:`, or `runtime: land`";
                self.problem(&key, "a step is either a role's or the runtime's", hint);
                StepKind::Land
            }
        };
        let role = self.role(&key, kind, step.role);
        self.rails(&key, kind, &step);
        self.counter(&format!("{key}.counts"), step.counts, known);
        self.counter(&format!("{key}.reopen.counter"), step.reopen.counter, known);
        let attempts = step.attempts.or(self.definition.attempts).unwrap_or(0);
        let timeout = step.timeout.as_ref().or(self.definition.timeout.as_ref());
        let timeout_seconds = timeout.and_then(|text| seconds(text)).unwrap_or(0);
        if kind != StepKind::Land {
            if !(1..=MOST_ATTEMPTS).contains(&attempts) {
                let hint = format!(
                    "write `attempts: 3`, here or above the steps; at most {MOST_ATTEMPTS}"
                );
                self.problem(&format!("{key}.attempts"), "its attempts have no end", hint);
            }
            if !(1..=LONGEST_TIMEOUT).contains(&timeout_seconds) {
                let hint = "write `timeout: 60m`, here or above the steps; at most `24h`";
                self.problem(&format!("{key}.timeout"), "an attempt of it has no end", hint);
            }
        }
        let on = self.edges(&key, kind, &step, known);
        let reopen = self.reopened(&format!("{key}.reopen"), &step.reopen, known);
        let usual = self.definition.reopen.counter;
        Step {
            name,
            kind,
            role,
            prompt: step.prompt.unwrap_or_else(|| name.to_string()),
            access: step.access,
            needs: step.needs,
            counts: step.counts,
            attempts,
            timeout_seconds,
            reopen_counter: step.reopen.counter.or(usual).unwrap_or(counter::TURNS),
            on,
            reopen,
        }
    }

    fn role(&mut self, key: &str, kind: StepKind, role: Option<Role>) -> Role {
        let may: &[Role] = match kind {
            StepKind::Research => &[Role::Research],
            StepKind::Plan => &[Role::Planner],
            StepKind::Advice => &[Role::Designer, Role::Architect],
            StepKind::Guidance => &[Role::Architect],
            StepKind::Change => &[Role::Developer],
            StepKind::Review => &[Role::Architect, Role::Designer],
            StepKind::Verdict => &[Role::Qa],
            StepKind::Land => &[],
        };
        match role {
            None if may.is_empty() => {}
            Some(role) if may.contains(&role) => return role,
            Some(_) if may.is_empty() => {
                let hint = "leave `role` out: the runtime proves and lands";
                self.problem(&format!("{key}.role"), "no role lands a change", hint);
            }
            None | Some(_) => {
                let names: Vec<&str> = may.iter().map(|role| role.as_str()).collect();
                let hint = format!("write `role: {}`", names.join("` or `role: "));
                let message = "whoever gives this result has to be named";
                let message =
                    if role.is_some() { "the role cannot give this result" } else { message };
                self.problem(&format!("{key}.role"), message, hint);
            }
        }
        may.first().copied().unwrap_or(Role::VersionController)
    }

    /// What no definition can switch off.
    fn rails(&mut self, key: &str, kind: StepKind, step: &StepDefinition) {
        let writes = step.access == Access::Write;
        if writes != (kind == StepKind::Change) {
            let (message, hint) = if writes {
                ("only who makes the change may write to the worktree", "leave `access` out")
            } else {
                ("who makes the change has to be able to write it", "write `access: write`")
            };
            self.problem(&format!("{key}.access"), message, hint);
        }
        let needed: &[Prerequisite] = match kind {
            StepKind::Review => &[Prerequisite::Commit],
            StepKind::Verdict | StepKind::Land => &[Prerequisite::Commit, Prerequisite::Evidence],
            StepKind::Research
            | StepKind::Plan
            | StepKind::Advice
            | StepKind::Guidance
            | StepKind::Change => &[],
        };
        if needed.iter().any(|need| !step.needs.contains(need)) {
            let (message, hint) = if needed.len() == 1 {
                ("a review looks at an exact commit", "write `needs: [commit]`")
            } else {
                ("nothing is accepted that is not proven", "write `needs: [commit, evidence]`")
            };
            self.problem(&format!("{key}.needs"), message, hint);
        }
        if needed.is_empty() && !step.needs.is_empty() {
            let hint = "leave `needs` out";
            self.problem(&format!("{key}.needs"), "only who judges or lands needs that", hint);
        }
        if step.needs.contains(&Prerequisite::Evidence)
            && !step.needs.contains(&Prerequisite::Commit)
        {
            let hint = "write `needs: [commit, evidence]`";
            self.problem(&format!("{key}.needs"), "evidence is of a commit", hint);
        }
    }

    fn edges(
        &mut self,
        key: &str,
        kind: StepKind,
        step: &StepDefinition,
        known: &Known,
    ) -> BTreeMap<StepOutcome, Edge> {
        let (required, optional) = kind.outcomes();
        let all: Vec<String> = required.iter().chain(optional).map(|it| it.to_string()).collect();
        for outcome in required.iter().filter(|outcome| !step.on.contains_key(outcome)) {
            let hint = format!("write `{outcome}: STEP`");
            self.problem(&format!("{key}.on.{outcome}"), "it leads nowhere", hint);
        }
        if step.needs.contains(&Prerequisite::Evidence) && !step.on.contains_key(&StepOutcome::Red)
        {
            let hint = "write `red: {to: STEP, charge: COUNTER}`";
            self.problem(&format!("{key}.on.red"), "it leads nowhere", hint);
        }
        let mut edges = BTreeMap::new();
        for (outcome, edge) in &step.on {
            let place = format!("{key}.on.{outcome}");
            if !required.contains(outcome) && !optional.contains(outcome) {
                let hint = format!("its outcomes are {}", all.join(", "));
                self.problem(&place, "nothing like that comes of this step", hint);
            }
            edges.insert(*outcome, self.edge(&place, edge, known));
        }
        edges
    }

    fn reopened(
        &mut self,
        key: &str,
        reopen: &ReopenDefinition,
        known: &Known,
    ) -> BTreeMap<ReopenCategory, Edge> {
        let ReopenDefinition { counter: _, scope, ux, architecture, implementation, verification } =
            reopen;
        let mut edges = BTreeMap::new();
        for (category, edge) in [
            (ReopenCategory::Scope, scope),
            (ReopenCategory::Ux, ux),
            (ReopenCategory::Architecture, architecture),
            (ReopenCategory::Implementation, implementation),
            (ReopenCategory::Verification, verification),
        ] {
            if let Some(edge) = edge {
                edges.insert(category, self.edge(&format!("{key}.{category}"), edge, known));
            }
        }
        edges
    }

    fn edge(&mut self, key: &str, edge: &EdgeDefinition, known: &Known) -> Edge {
        let EdgeDefinition { to, charge, within, otherwise } = *edge;
        for name in [Some(to), otherwise].into_iter().flatten() {
            self.target(key, name, known);
        }
        for counter in [charge, within] {
            self.counter(key, counter, known);
        }
        if otherwise.is_some() && charge.is_none() && within.is_none() {
            let hint = "write `charge: COUNTER`, or leave `else` out";
            self.problem(key, "nothing decides between the two", hint);
        }
        Edge { to, charge, within, otherwise }
    }

    fn target(&mut self, key: &str, name: StepName, known: &Known) {
        if !known.names.contains(&name) {
            let names: Vec<&str> = known.names.iter().map(StepName::as_str).collect();
            self.problem(key, format!("there is no step `{name}`"), nearest(name.as_str(), &names));
        }
    }

    fn counter(&mut self, key: &str, name: Option<CounterName>, known: &Known) {
        if let Some(name) = name.filter(|name| !known.counters.contains(name)) {
            let hint = format!("write it under `counters`: `{name}: 2`");
            self.problem(key, format!("there is no counter `{name}`"), hint);
        }
    }
}

struct Known {
    names: Vec<StepName>,
    counters: BTreeSet<CounterName>,
}

const fn kind_of(word: ResultWord) -> StepKind {
    match word {
        ResultWord::Research => StepKind::Research,
        ResultWord::Plan => StepKind::Plan,
        ResultWord::Advice => StepKind::Advice,
        ResultWord::Guidance => StepKind::Guidance,
        ResultWord::Change => StepKind::Change,
        ResultWord::Review => StepKind::Review,
        ResultWord::Verdict => StepKind::Verdict,
    }
}

/// What may have been meant.
fn nearest(word: &str, known: &[&str]) -> String {
    let near = known.iter().min_by_key(|other| strsim::levenshtein(word, other));
    match near.filter(|other| strsim::levenshtein(word, other) <= 3) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the steps are {}", known.join(", ")),
    }
}

/// `90s`, `60m` or `2h` in seconds.
fn seconds(text: &str) -> Option<u64> {
    let text = text.trim();
    let (number, unit) = text.split_at(text.len().checked_sub(1)?);
    let unit = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

/// The steps and the ways between them.
struct Graph<'l> {
    lifecycle: &'l Lifecycle,
    ways: Vec<Way>,
}

struct Way {
    from: StepName,
    to: StepName,
    key: String,
    /// Whether a counter or a number of attempts ends it.
    bounded: bool,
    /// Whether it is taken where a judgement went against the change.
    negative: bool,
    /// Whether the plan is the answer; the engine lets it be only where nothing was built.
    answers: bool,
}

impl Graph<'_> {
    fn of(lifecycle: &Lifecycle) -> Graph<'_> {
        let mut ways = Vec::new();
        for step in &lifecycle.steps {
            for (outcome, edge) in step.edges() {
                // Attempts of the step itself end these; a plan goes again only where the planner sends it back.
                let attempts = matches!(outcome, StepOutcome::NoChange | StepOutcome::Again);
                let bounded = attempts || edge.charge.is_some() || edge.within.is_some();
                let negative = step.kind.judges() && outcome != StepOutcome::Pass;
                let key = format!("steps.{}.on.{outcome}", step.name);
                let answers = outcome == StepOutcome::Answered;
                let way = Way { from: step.name, to: edge.to, key, bounded, negative, answers };
                // What the counter does not allow is not ended by it.
                ways.extend(edge.otherwise.map(|to| Way {
                    to,
                    bounded: attempts,
                    key: way.key.clone(),
                    ..way
                }));
                ways.push(way);
            }
            for (category, edge) in lifecycle.ways_back(step) {
                let key = match step.reopen.contains_key(&category) {
                    true => format!("steps.{}.reopen.{category}", step.name),
                    false => format!("reopen.{category}"),
                };
                let (from, negative) = (step.name, step.kind.judges());
                // The counter of what is sent back ends it.
                let way = Way { from, to: edge.to, key, bounded: true, negative, answers: false };
                ways.extend(edge.otherwise.map(|to| Way { to, key: way.key.clone(), ..way }));
                ways.push(way);
            }
        }
        Graph { lifecycle, ways }
    }

    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let begins = [self.lifecycle.begin, self.lifecycle.begin_todo, self.lifecycle.resume];
        let reached = self.reached(&begins, |_| true);
        let landing = self.lifecycle.landing();
        let judges = |name: StepName| self.lifecycle.step(name).is_some_and(|it| it.kind.judges());
        for step in &self.lifecycle.steps {
            let key = format!("steps.{}", step.name);
            if !reached.contains(&step.name) {
                let hint = "let an outcome lead to it, or remove it";
                problems.push(Problem::at(&key, "nothing leads here").hint(hint));
            }
            if !self.reached(&[step.name], |_| true).contains(&landing) {
                let hint = format!("let an outcome lead on, so that `{landing}` is reached");
                problems.push(Problem::at(&key, "no way leads from here to the end").hint(hint));
            }
        }
        for (key, name) in self.idle_counters() {
            let hint = format!("write `counts: {name}` at a step of the loop, or `charge:` here");
            problems.push(Problem::at(&key, format!("nothing counts `{name}`")).hint(hint));
        }
        for way in self.ways.iter().filter(|way| !way.bounded) {
            if self.reached(&[way.to], |way| !way.bounded).contains(&way.from) {
                let hint =
                    format!("write `{{to: {}, charge: COUNTER}}` on one way of the loop", way.to);
                problems.push(Problem::at(&way.key, "this loop has no end").hint(hint));
            }
        }
        for way in self.ways.iter().filter(|way| way.negative) {
            let past = !judges(way.to) && {
                let on = self.reached(&[way.to], |way| !judges(way.from) && !way.answers);
                on.contains(&landing)
            };
            if past {
                let hint = "let it lead to a step from which a review or QA comes again";
                let message =
                    "what was refused would come to the branch without being judged again";
                problems.push(Problem::at(&way.key, message).hint(hint));
            }
        }
        problems
    }

    /// Where an edge asks for a counter that never goes up.
    fn idle_counters(&self) -> Vec<(String, CounterName)> {
        let steps = &self.lifecycle.steps;
        let charged = steps.iter().flat_map(Step::edges).filter_map(|(_, edge)| edge.charge);
        let counted: BTreeSet<CounterName> =
            steps.iter().filter_map(|step| step.counts).chain(charged).collect();
        let asks = |step: &Step| -> Vec<(String, CounterName)> {
            let asked = step.edges().filter_map(|(outcome, edge)| Some((outcome, edge.within?)));
            let idle = asked.filter(|(_, name)| !counted.contains(name));
            idle.map(|(outcome, name)| (format!("steps.{}.on.{outcome}", step.name), name))
                .collect()
        };
        steps.iter().flat_map(asks).collect()
    }

    /// The steps that are reached from these by the ways that count, themselves included.
    fn reached(&self, from: &[StepName], counts: impl Fn(&Way) -> bool) -> BTreeSet<StepName> {
        let mut reached: BTreeSet<StepName> = from.iter().copied().collect();
        loop {
            let next: Vec<StepName> = (self.ways.iter())
                .filter(|way| counts(way) && reached.contains(&way.from))
                .map(|way| way.to)
                .filter(|to| !reached.contains(to))
                .collect();
            if next.is_empty() {
                return reached;
            }
            reached.extend(next);
        }
    }
}
