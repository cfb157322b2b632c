//! From a definition to a lifecycle that holds together.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest as _, Sha256};

use super::definition::{Definition, EdgeDefinition, ReopenDefinition, StepDefinition};
use super::{
    CounterName, Edge, Lifecycle, Prerequisite, ReopenCategory, SprintStep, Step, StepAccess,
    StepKind, StepName, StepOutcome, Subject, counter,
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

    /// What no request begins by. Requests that began by such a definition of an earlier build go on by it.
    #[must_use]
    pub fn problems_of_new(&self) -> Vec<Problem> {
        let graph = Graph::of(self);
        let mut problems = self.ways_past_qa(&graph);
        problems.extend(self.ways_without_change());
        problems.extend(self.ways_past_the_planner());
        problems.extend(graph.uncounted_loops());
        problems
    }

    /// Where somebody would judge, or something would land, that is no change: who delivered none, or none that fits,
    /// plans or builds again.
    fn ways_without_change(&self) -> Vec<Problem> {
        let looks = |name: StepName| {
            self.step(name).is_some_and(|it| it.kind.judges() || it.kind == StepKind::Land)
        };
        let mut problems = Vec::new();
        for step in self.steps() {
            for (outcome, edge) in step.edges() {
                let again = matches!(outcome, StepOutcome::NoChange | StepOutcome::Conflict);
                let mut targets = [Some(edge.to), edge.otherwise].into_iter().flatten();
                if let Some(to) = targets.find(|to| again && looks(*to)) {
                    let key = format!("steps.{}.on.{outcome}", step.name);
                    let message = format!("`{to}` has no change to look at then");
                    let hint = "let it lead to a step with `result: change`";
                    problems.push(Problem::at(&key, message).hint(hint));
                }
            }
        }
        problems
    }

    /// Where an adviser's words would be built: what is built is the plan of whoever asked for them.
    fn ways_past_the_planner(&self) -> Vec<Problem> {
        let plans_on = |name: StepName| {
            let kind = self.step(name).map(|step| step.kind);
            matches!(kind, Some(StepKind::Plan | StepKind::Advice))
        };
        let advice = self.steps().filter(|step| step.kind == StepKind::Advice);
        let ways =
            advice.flat_map(|step| step.edges().map(move |(outcome, edge)| (step, outcome, edge)));
        ways.filter(|(_, _, edge)| {
            !plans_on(edge.to) || edge.otherwise.is_some_and(|to| !plans_on(to))
        })
        .map(|(step, outcome, edge)| {
            let key = format!("steps.{}.on.{outcome}", step.name);
            let message = format!("`{}` would build advice in place of a plan", edge.to);
            Problem::at(&key, message).hint("let it lead to a step with `result: plan`")
        })
        .collect()
    }

    /// Where what QA has refused would come to the branch on the word of a review alone.
    fn ways_past_qa(&self, graph: &Graph<'_>) -> Vec<Problem> {
        let landing = self.landing();
        let is_verdict =
            |name: StepName| self.step(name).is_some_and(|it| it.kind == StepKind::Verdict);
        let is_past = |way: &&GraphEdge| {
            let on = |way: &GraphEdge| !is_verdict(way.from) && !way.answers;
            way.negative
                && is_verdict(way.from)
                && !is_verdict(way.to)
                && graph.reached(&[way.to], on).contains(&landing)
        };
        let problem = |way: &GraphEdge| {
            let message = "what QA has refused would come to the branch without its word";
            Problem::at(&way.key, message).hint("let it lead to a step from which QA comes again")
        };
        graph.ways.iter().filter(is_past).map(problem).collect()
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
        let subject = self.definition.lifecycle;
        self.counters();
        let definitions = std::mem::take(&mut self.definition.steps.0);
        let names: Vec<StepName> = definitions.iter().map(|(name, _)| *name).collect();
        let known =
            Declarations { names, counters: self.definition.counters.keys().copied().collect() };
        let begin = self.definition.begin;
        self.target("begin", begin, &known);
        let [begin_todo, begin_blocked, resume, stop] = [
            ("begin_todo", self.definition.begin_todo, Subject::Request),
            ("begin_blocked", self.definition.begin_blocked, Subject::Sourcing),
            ("resume", self.definition.resume, Subject::Request),
            ("stop", self.definition.stop, Subject::Sprint),
        ]
        .map(|(key, name, of)| self.entry(key, name, subject == of, &known));
        let steps: Vec<Step> =
            definitions.into_iter().map(|(name, step)| self.step(name, step, &known)).collect();
        let reopen = std::mem::take(&mut self.definition.reopen);
        self.counter("reopen.counter", reopen.counter, &known);
        let reopen = self.reopened("reopen", &reopen, &known);
        let lifecycle = Lifecycle {
            text: text.to_owned(),
            digest: Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect(),
            subject,
            begin,
            begin_todo,
            begin_blocked,
            resume,
            stop,
            counters: self.definition.counters.clone(),
            reopen,
            steps,
        };
        match subject {
            Subject::Request => self.request(&lifecycle),
            Subject::Sprint => self.sprint(&lifecycle),
            Subject::Sourcing => {}
        }
        lifecycle
    }

    /// A step that a lifecycle of one subject names above its steps, and others do not.
    fn entry(
        &mut self,
        key: &str,
        name: Option<StepName>,
        is_needed: bool,
        known: &Declarations,
    ) -> StepName {
        match name {
            Some(name) if is_needed => {
                self.target(key, name, known);
                name
            }
            Some(_) => {
                let message =
                    format!("nothing of a {} is decided by it", self.definition.lifecycle);
                self.problem(key, message, format!("leave `{key}` out"));
                self.definition.begin
            }
            None if is_needed => {
                self.problem(key, "it is not there", format!("write `{key}: STEP`"));
                self.definition.begin
            }
            None => self.definition.begin,
        }
    }

    fn request(&mut self, lifecycle: &Lifecycle) {
        for category in ReopenCategory::ALL {
            if !lifecycle.reopen.contains_key(&category) {
                let key = format!("reopen.{category}");
                self.problem(&key, "it is not there", format!("write `{category}: STEP`"));
            }
        }
        let landings = lifecycle.steps().filter(|it| it.kind == StepKind::Land).count();
        if landings != 1 {
            let hint = "write one step with `runtime: land`: a change comes to the branch there, proven, and nowhere else";
            self.problem("steps", format!("{landings} of the steps land"), hint);
        }
        let resume = lifecycle.step(lifecycle.resume);
        if resume.is_some_and(|step| step.kind != StepKind::Plan) {
            let hint = "name a step with `result: plan`";
            self.problem("resume", "the answer of a person has to lead to a plan", hint);
        }
    }

    fn sprint(&mut self, lifecycle: &Lifecycle) {
        for (word, step) in [
            ("baseline", SprintStep::Baseline),
            ("work", SprintStep::Work),
            ("inspect", SprintStep::Inspection),
            ("archive", SprintStep::Archive),
        ] {
            let count = lifecycle.steps().filter(|it| it.kind == StepKind::Sprint(step)).count();
            if count != 1 {
                let message = format!("{count} of the steps have `runtime: {word}`");
                self.problem("steps", message, format!("write one step with `runtime: {word}`"));
            }
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
        let needed = self.definition.lifecycle == Subject::Request;
        let missing = REQUIRED.into_iter().filter(|name| needed && !counters.contains_key(name));
        for name in missing {
            let key = format!("counters.{name}");
            self.problem(&key, "every lifecycle needs it", format!("write `{name}: NUMBER`"));
        }
    }

    fn step(&mut self, name: StepName, step: StepDefinition, known: &Declarations) -> Step {
        let key = format!("steps.{name}");
        let kind = match (step.result, step.runtime) {
            (Some(word), None) => word.kind(),
            (None, Some(word)) => word.kind(),
            (Some(_), Some(_)) | (None, None) => {
                let hint = "write `role:` and `result:`, or `runtime:`";
                self.problem(&key, "a step is either a role's or the runtime's", hint);
                StepKind::Land
            }
        };
        let subject = self.definition.lifecycle;
        if kind.subject() != subject {
            let message = format!("no {subject} has such a step");
            let hint = format!("`teams lifecycle show {subject}` shows those that it may have");
            self.problem(&key, message, hint);
        }
        let only_if = format!("{key}.only_if");
        if step.only_if.iter().any(|condition| condition.subject() != subject) {
            let message = format!("nothing of a {subject} is decided by it");
            self.problem(&only_if, message, "leave it out");
        }
        let always = matches!(kind, StepKind::Change | StepKind::Land)
            || self.definition.resume == Some(name);
        if subject == Subject::Request && always && !step.only_if.is_empty() {
            let message = "building, landing and the step of `resume` are on every route";
            self.problem(&only_if, message, "leave `only_if` out");
        }
        let role = self.role(&key, kind, step.role);
        self.rails(&key, kind, &step);
        self.counter(&format!("{key}.counts"), step.counts, known);
        self.counter(&format!("{key}.reopen.counter"), step.reopen.counter, known);
        let attempts = step.attempts.or(self.definition.attempts).unwrap_or(0);
        let timeout = step.timeout.as_ref().or(self.definition.timeout.as_ref());
        let timeout_seconds = timeout.and_then(|text| seconds(text)).unwrap_or(0);
        if !kind.roles().is_empty() {
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
            only_if: step.only_if,
            counts: step.counts,
            attempts,
            timeout_seconds,
            reopen_counter: step.reopen.counter.or(usual).unwrap_or(counter::TURNS),
            on,
            reopen,
        }
    }

    fn role(&mut self, key: &str, kind: StepKind, role: Option<Role>) -> Role {
        let may = kind.roles();
        match role {
            None if may.is_empty() => {}
            Some(role) if may.contains(&role) => return role,
            Some(_) if may.is_empty() => {
                let (message, hint) = if kind == StepKind::Land {
                    ("no role lands a change", "leave `role` out: the runtime proves and lands")
                } else {
                    ("the runtime does this itself", "leave `role` out")
                };
                self.problem(&format!("{key}.role"), message, hint);
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
        let writes = step.access == StepAccess::Write;
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
            | StepKind::Change
            | StepKind::Sprint(_) => &[],
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
        known: &Declarations,
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
        known: &Declarations,
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

    fn edge(&mut self, key: &str, edge: &EdgeDefinition, known: &Declarations) -> Edge {
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

    fn target(&mut self, key: &str, name: StepName, known: &Declarations) {
        if !known.names.contains(&name) {
            let names: Vec<&str> = known.names.iter().map(StepName::as_str).collect();
            self.problem(key, format!("there is no step `{name}`"), nearest(name.as_str(), &names));
        }
    }

    fn counter(&mut self, key: &str, name: Option<CounterName>, known: &Declarations) {
        if let Some(name) = name.filter(|name| !known.counters.contains(name)) {
            let hint = format!("write it under `counters`: `{name}: 2`");
            self.problem(key, format!("there is no counter `{name}`"), hint);
        }
    }
}

struct Declarations {
    names: Vec<StepName>,
    counters: BTreeSet<CounterName>,
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
    let units = [('s', 1), ('m', 60), ('h', 3_600)];
    let (number, unit) =
        units.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(*unit)?, seconds)))?;
    number.parse::<u64>().ok()?.checked_mul(*unit)
}

/// The steps and the ways between them.
struct Graph<'l> {
    lifecycle: &'l Lifecycle,
    ways: Vec<GraphEdge>,
    /// The places in `ways` of those that leave a step.
    leaving: BTreeMap<StepName, Vec<usize>>,
}

struct GraphEdge {
    from: StepName,
    to: StepName,
    key: String,
    /// Whether a counter or a number of attempts ends it.
    bounded: bool,
    /// The counter by which alone it is, without taking from that itself.
    within: Option<CounterName>,
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
                let attempts = step.kind.bounds(outcome);
                let bounded = attempts || edge.charge.is_some() || edge.within.is_some();
                let negative = step.kind.judges() && outcome != StepOutcome::Pass;
                let key = format!("steps.{}.on.{outcome}", step.name);
                let answers = outcome == StepOutcome::Answered;
                let (from, to) = (step.name, edge.to);
                let within = edge.within.filter(|_| !attempts && edge.charge.is_none());
                let way = GraphEdge { from, to, key, bounded, within, negative, answers };
                // What the counter does not allow is not ended by it.
                ways.extend(edge.otherwise.map(|to| GraphEdge {
                    to,
                    bounded: attempts,
                    within: None,
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
                let (to, bounded, within, answers) = (edge.to, true, None, false);
                let way = GraphEdge { from, to, key, bounded, within, negative, answers };
                ways.extend(edge.otherwise.map(|to| GraphEdge { to, key: way.key.clone(), ..way }));
                ways.push(way);
            }
        }
        let mut leaving: BTreeMap<StepName, Vec<usize>> = BTreeMap::new();
        for (at, way) in ways.iter().enumerate() {
            leaving.entry(way.from).or_default().push(at);
        }
        Graph { lifecycle, ways, leaving }
    }

    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let Lifecycle { begin, begin_todo, begin_blocked, resume, stop, .. } = *self.lifecycle;
        let reached = self.reached(&[begin, begin_todo, begin_blocked, resume, stop], |_| true);
        let landing = self.lifecycle.landing();
        let ends = self.ends();
        let judges = |name: StepName| self.lifecycle.step(name).is_some_and(|it| it.kind.judges());
        for step in &self.lifecycle.steps {
            let key = format!("steps.{}", step.name);
            if !reached.contains(&step.name) {
                let hint = "let an outcome lead to it, or remove it";
                problems.push(Problem::at(&key, "nothing leads here").hint(hint));
            }
            if self.reached(&[step.name], |_| true).is_disjoint(&ends) {
                let ends: Vec<&str> = ends.iter().map(StepName::as_str).collect();
                let hint =
                    format!("let an outcome lead on, so that `{}` is reached", ends.join("` or `"));
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

    /// The steps with which it is over.
    fn ends(&self) -> BTreeSet<StepName> {
        let is_end = |step: &&Step| match self.lifecycle.subject {
            Subject::Request => step.kind == StepKind::Land,
            Subject::Sprint | Subject::Sourcing => step.on.is_empty(),
        };
        self.lifecycle.steps().filter(is_end).map(|step| step.name).collect()
    }

    /// Where an edge goes by a counter that does not go up on the way back to it.
    fn uncounted_loops(&self) -> Vec<Problem> {
        let counts = |name: StepName, counter: CounterName| {
            self.lifecycle.step(name).is_some_and(|step| step.counts == Some(counter))
        };
        let is_uncounted = |way: &GraphEdge, counter: CounterName| {
            let on = |way: &GraphEdge| !way.bounded && !counts(way.to, counter);
            !counts(way.to, counter) && self.reached(&[way.to], on).contains(&way.from)
        };
        let uncounted = self.ways.iter().filter_map(|way| {
            let counter = way.within.filter(|counter| is_uncounted(way, *counter))?;
            let message = format!("nothing on this loop counts `{counter}`");
            let hint = format!("write `counts: {counter}` at `{}`", way.from);
            Some(Problem::at(&way.key, message).hint(hint))
        });
        uncounted.collect()
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
    fn reached(
        &self,
        from: &[StepName],
        counts: impl Fn(&GraphEdge) -> bool,
    ) -> BTreeSet<StepName> {
        let mut reached: BTreeSet<StepName> = from.iter().copied().collect();
        let mut open = from.to_vec();
        while let Some(step) = open.pop() {
            let ways = self.leaving.get(&step).into_iter().flatten();
            for way in ways.filter_map(|at| self.ways.get(*at)).filter(|way| counts(way)) {
                if reached.insert(way.to) {
                    open.push(way.to);
                }
            }
        }
        reached
    }
}
