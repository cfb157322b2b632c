//! Random histories of one run between a hub and a worker that both die and come back, over a network that loses,
//! doubles, delays and reorders.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::*;

/// A run as the hub's records have it.
#[derive(Debug, Default)]
struct Records {
    generation: u32,
    granted: Option<BootId>,
    controls: Vec<Control>,
    wanted: bool,
    /// The generation whose report was applied.
    applied: Option<u32>,
    /// Over without a report, because nobody wanted it.
    gone: bool,
}

/// What the worker has on its disk of one generation.
#[derive(Debug, Clone, Default)]
struct Kept {
    given: u32,
    applied: u32,
    begun: bool,
    over: Option<RunEnd>,
}

#[derive(Debug)]
struct Agent {
    generation: u32,
    heard: Vec<u32>,
    done: bool,
}

#[derive(Debug, Clone)]
enum Carried {
    ToWorker(u32, Option<BootId>, HubBody),
    ToHub(u32, BootId, WorkerBody),
}

/// What a worker said that the hub does something about.
#[derive(Debug, Clone)]
struct Asked {
    boot: BootId,
    generation: u32,
    asked_ms: Millis,
    unable: bool,
}

#[derive(Debug)]
struct WorkerProcess {
    boot: BootId,
    held: Option<(u32, WorkerSide)>,
    stopped: bool,
}

struct World {
    now: Millis,
    records: Records,
    hub: Option<HubSide>,
    worker: WorkerProcess,
    boots: u32,
    disk: BTreeMap<u32, Kept>,
    agent: Option<Agent>,
    net: Vec<Carried>,
    /// Controls that the agent of each generation was given, after those in its prompt.
    history: BTreeMap<u32, Vec<u32>>,
}

fn boot(number: u32) -> BootId {
    BootId::parse(&format!("boot-{number:04}")).unwrap()
}

impl World {
    fn new() -> World {
        let records = Records { generation: 1, wanted: true, ..Records::default() };
        let worker = WorkerProcess { boot: boot(1), held: None, stopped: false };
        let mut world = World {
            now: 1_000,
            records,
            hub: None,
            worker,
            boots: 1,
            disk: BTreeMap::new(),
            agent: None,
            net: Vec::new(),
            history: BTreeMap::new(),
        };
        world.start_hub();
        world
    }

    fn is_over(&self) -> bool {
        self.records.applied.is_some() || self.records.gone
    }

    fn with_hub(&mut self, act: impl FnOnce(&mut HubSide, &RunFacts<'_>, Millis) -> Vec<HubStep>) {
        if self.is_over() {
            return;
        }
        let Some(mut hub) = self.hub.take() else { return };
        let facts = RunFacts {
            generation: self.records.generation,
            granted: self.records.granted.as_ref(),
            controls: &self.records.controls,
            wanted: self.records.wanted,
        };
        let steps = act(&mut hub, &facts, self.now);
        self.hub = Some(hub);
        self.do_hub(steps, None);
    }

    fn start_hub(&mut self) {
        let facts = RunFacts {
            generation: self.records.generation,
            granted: self.records.granted.as_ref(),
            controls: &self.records.controls,
            wanted: self.records.wanted,
        };
        self.hub = Some(HubSide::new(&facts, Lease::default(), self.now));
    }

    fn do_hub(&mut self, steps: Vec<HubStep>, asked: Option<Asked>) {
        for step in steps {
            let generation = self.records.generation;
            match step {
                HubStep::Assign { only_end } => {
                    let given = u32::try_from(self.records.controls.len()).unwrap();
                    let job = (!only_end).then(|| Payload::Text(String::new()));
                    let folder = Default::default();
                    let body = HubBody::Assignment(Assignment { folder, job, given });
                    self.net.push(Carried::ToWorker(generation, None, body));
                }
                HubStep::Send(boot, body) => {
                    self.net.push(Carried::ToWorker(generation, Some(boot), body));
                }
                HubStep::Decide(Decision::Grant(boot)) => {
                    self.records.granted = Some(boot.clone());
                    let asked_ms = asked.as_ref().map_or(0, |asked| asked.asked_ms);
                    let body = self.hub.as_mut().unwrap().granted(asked_ms, self.now);
                    self.net.push(Carried::ToWorker(generation, Some(boot), body));
                }
                HubStep::Decide(Decision::TakeAway) => {
                    let works = self
                        .worker
                        .held
                        .as_ref()
                        .is_some_and(|(held, side)| *held == generation && works(side));
                    assert!(
                        asked.is_some() || self.worker.stopped || !works,
                        "a worker that can act has not ended its agent before its run is taken away"
                    );
                    if !self.records.wanted {
                        self.records.gone = true;
                        self.hub = None;
                        return self.settle(asked);
                    }
                    self.records.generation += 1;
                    self.records.granted = None;
                    self.records.controls.clear();
                    self.start_hub();
                    self.settle(asked.clone());
                }
                HubStep::Decide(Decision::Finish(_)) => {
                    assert_eq!(self.records.applied, None, "a result is applied twice");
                    self.records.applied = Some(generation);
                    self.hub = None;
                    return self.settle(asked);
                }
                HubStep::Decide(Decision::Fail { .. }) => {
                    // It is tried again after a while.
                    self.hub = None;
                    return self.settle(asked);
                }
                HubStep::Decide(Decision::Answer { .. }) => panic!("nobody here calls"),
            }
        }
    }

    /// The hub says that it knows what came of a run.
    fn settle(&mut self, asked: Option<Asked>) {
        if let Some(Asked { boot, generation, unable, .. }) = asked {
            let body = HubBody::Settled { unable, refused: None };
            self.net.push(Carried::ToWorker(generation, Some(boot), body));
        }
    }

    fn deliver(&mut self, carried: Carried) {
        match carried {
            Carried::ToHub(generation, boot, body) => {
                if self.is_over() || self.hub.is_none() {
                    if self.is_over() {
                        let body = body.refused(EndReason::Unknown);
                        self.net.push(Carried::ToWorker(generation, Some(boot), body));
                    }
                    return;
                }
                let asked_ms = body.asked_ms();
                let unable = matches!(body, WorkerBody::Over(RunEnd::Unable(_)));
                let facts = RunFacts {
                    generation: self.records.generation,
                    granted: self.records.granted.as_ref(),
                    controls: &self.records.controls,
                    wanted: self.records.wanted,
                };
                let hub = self.hub.as_mut().unwrap();
                let steps = hub.receive(&facts, (generation, boot.clone()), body, self.now);
                // A message of the generation at hand, or an answer to an older one.
                let mut answers = Vec::new();
                for step in steps {
                    if generation != self.records.generation
                        && let HubStep::Send(boot, body) = step
                    {
                        self.net.push(Carried::ToWorker(generation, Some(boot), body));
                    } else {
                        answers.push(step);
                    }
                }
                self.do_hub(answers, Some(Asked { boot, generation, asked_ms, unable }));
            }
            Carried::ToWorker(generation, to, body) => {
                if self.worker.stopped {
                    // It waits in the socket.
                    return self.net.push(Carried::ToWorker(generation, to, body));
                }
                if to.is_some_and(|to| to != self.worker.boot) {
                    return;
                }
                self.worker_hears(generation, body);
            }
        }
    }

    fn worker_hears(&mut self, generation: u32, body: HubBody) {
        if let HubBody::Assignment(assignment) = &body {
            match &mut self.worker.held {
                Some((held, _)) if *held > generation => return,
                Some((held, side)) if *held == generation => {
                    if assignment.job.is_none() {
                        let reason = EndReason::MovedOn;
                        let steps = side.receive(HubBody::Ended { reason }, self.now);
                        return self.do_worker(generation, steps);
                    }
                }
                Some((held, side)) => {
                    let old = *held;
                    let steps = side.receive(HubBody::Ended { reason: EndReason::Stale }, self.now);
                    return self.do_worker(old, steps);
                }
                None => return self.take(generation, assignment.given, assignment.job.is_none()),
            }
        }
        let now = self.now;
        if let Some((held, side)) = &mut self.worker.held
            && *held == generation
        {
            let steps = side.receive(body, now);
            self.do_worker(generation, steps);
        }
    }

    fn take(&mut self, generation: u32, given: u32, only_end: bool) {
        if self.disk.keys().any(|other| *other > generation) {
            return;
        }
        let kept = self.disk.entry(generation).or_insert(Kept {
            given,
            applied: given,
            ..Kept::default()
        });
        if only_end {
            self.agent.take_if(|agent| agent.generation == generation);
            kept.over = Some(RunEnd::Ended { agent_lives: false });
        }
        let lives = self.agent.as_ref().is_some_and(|agent| agent.generation == generation);
        let (side, steps) = match &kept.over {
            Some(over) => WorkerSide::was_over(over.clone(), self.now),
            None if kept.begun && !lives => WorkerSide::was_over(RunEnd::Lost, self.now),
            None => WorkerSide::claim(kept.applied, self.now),
        };
        self.worker.held = Some((generation, side));
        self.do_worker(generation, steps);
    }

    fn do_worker(&mut self, generation: u32, steps: Vec<WorkerStep>) {
        for step in steps {
            match step {
                WorkerStep::Send(body) => {
                    self.net.push(Carried::ToHub(generation, self.worker.boot.clone(), body));
                }
                WorkerStep::Begin => {
                    let kept = self.disk.get_mut(&generation).unwrap();
                    if kept.begun {
                        assert!(self.agent.is_some(), "nothing to adopt");
                        continue;
                    }
                    kept.begun = true;
                    // What an older generation left behind is ended first.
                    let older = self.agent.take();
                    assert!(older.is_none_or(|agent| agent.generation < generation));
                    self.agent = Some(Agent { generation, heard: Vec::new(), done: false });
                    self.history.insert(generation, Vec::new());
                }
                WorkerStep::Apply(control) => {
                    let kept = self.disk.get_mut(&generation).unwrap();
                    assert_eq!(control.number, kept.applied + 1, "out of order");
                    kept.applied = control.number;
                    let agent = self.agent.as_mut().unwrap();
                    assert_eq!(agent.generation, generation);
                    agent.heard.push(control.number);
                    self.history.get_mut(&generation).unwrap().push(control.number);
                }
                WorkerStep::Stop => self.end_agent(generation),
                WorkerStep::Answer { .. } => panic!("nothing was asked"),
                WorkerStep::Forget => {
                    self.worker.held = None;
                    return;
                }
            }
        }
    }

    fn end_agent(&mut self, generation: u32) {
        let agent = self.agent.take_if(|agent| agent.generation == generation);
        let now = self.now;
        let Some((held, side)) = &mut self.worker.held else { return };
        if *held != generation {
            return;
        }
        let report = RunEnd::Report(Payload::Text("it was ended".to_owned()));
        let over = side.ends_as().unwrap_or(match agent {
            Some(_) => report,
            None => RunEnd::Lost,
        });
        self.disk.get_mut(&generation).unwrap().over = Some(over.clone());
        let steps = side.over(over, now);
        self.do_worker(generation, steps);
    }

    fn act(&mut self, (what, pick): (u8, u16)) {
        match what {
            0..=9 if !self.net.is_empty() => {
                let carried = self.net.swap_remove(usize::from(pick) % self.net.len());
                self.deliver(carried);
            }
            10..=11 if !self.net.is_empty() => {
                self.net.swap_remove(usize::from(pick) % self.net.len());
            }
            12..=13 if !self.net.is_empty() => {
                let carried = self.net[usize::from(pick) % self.net.len()].clone();
                self.deliver(carried);
            }
            14 => self.pass(u64::from(pick) % 4_000),
            15 => self.pass(u64::from(pick)),
            16 => self.pass(u64::from(pick) * 3),
            // The hub dies and comes back, after a while.
            17 => self.hub = None,
            18 | 19 if self.hub.is_none() && !self.is_over() => self.start_hub(),
            // The worker dies and comes back; its agent may live on.
            20 => {
                self.boots += 1;
                self.worker = WorkerProcess { boot: boot(self.boots), held: None, stopped: false };
                if pick % 2 == 0 {
                    self.agent = None;
                }
            }
            21 => self.worker.stopped = true,
            22 | 23 => self.worker.stopped = false,
            24..=25 => self.finish_agent(),
            26 => self.fail_to_follow_agent(),
            27..=28 => {
                if self.records.wanted && !self.is_over() {
                    let number = u32::try_from(self.records.controls.len()).unwrap() + 1;
                    self.records.controls.push(control(number));
                    self.with_hub(|hub, facts, _| hub.news(facts));
                }
            }
            29 if pick % 8 == 0 => {
                self.records.wanted = false;
                self.with_hub(|hub, facts, _| hub.news(facts));
            }
            _ => self.pass(1_000),
        }
    }

    fn finish_agent(&mut self) {
        let Some(agent) = &mut self.agent else { return };
        agent.done = true;
        let generation = agent.generation;
        // Its spool is read by its worker, where there is one that knows of it.
        let knows = self.worker.held.as_ref().is_some_and(|(held, _)| *held == generation);
        let works = self.worker.held.as_ref().is_some_and(|(_, side)| works(side));
        if knows && works && !self.worker.stopped && self.disk[&generation].begun {
            self.end_agent(generation);
        }
    }

    /// The worker cannot go on with a run, and its agent goes on alone.
    fn fail_to_follow_agent(&mut self) {
        let now = self.now;
        let Some((generation, side)) = &mut self.worker.held else { return };
        if works(side) && !self.worker.stopped {
            let generation = *generation;
            let steps = side.over(RunEnd::Unable("the disk is full".to_owned()), now);
            self.do_worker(generation, steps);
        }
    }

    fn pass(&mut self, millis: Millis) {
        self.now += millis;
        let now = self.now;
        if !self.worker.stopped
            && let Some((generation, side)) = &mut self.worker.held
        {
            let generation = *generation;
            let steps = side.tick(now);
            self.do_worker(generation, steps);
        }
        self.with_hub(HubSide::tick);
    }

    /// Everything works again.
    fn heal(&mut self) {
        self.worker.stopped = false;
        for _ in 0..2_000 {
            if self.is_over() {
                return;
            }
            if self.hub.is_none() {
                self.start_hub();
            }
            for carried in std::mem::take(&mut self.net) {
                self.deliver(carried);
            }
            self.finish_agent();
            self.pass(1_000);
        }
        panic!(
            "nobody has the run: {:?}, hub {:?}, worker {:?}",
            self.records, self.hub, self.worker
        );
    }
}

/// Whether it has been let begin: that is when a cancellation ends something.
fn works(side: &WorkerSide) -> bool {
    let cancel = HubBody::Renewed { asked_ms: 0, cancel: true, lease: Lease::default() };
    side.clone().receive(cancel, 0) == vec![WorkerStep::Stop]
}

fn control(number: u32) -> Control {
    let message_id = number.to_string().parse().unwrap();
    let (author, text) = ("Mina".to_owned(), format!("word {number}"));
    Control { number, message_id, author, text, replaces: false }
}

#[test]
fn a_run_has_one_result_and_always_an_owner() {
    let config = Config { cases: 5_000, failure_persistence: None, ..Config::default() };
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let acts = vec((0_u8..30, any::<u16>()), 0..250);
    let kept = TestRunner::new_with_rng(config, random).run(&acts, |history| {
        let mut world = World::new();
        for act in history {
            world.act(act);
        }
        world.heal();
        for (generation, heard) in &world.history {
            let given = world.disk[generation].given;
            let expected: Vec<u32> = (given + 1..).take(heard.len()).collect();
            prop_assert_eq!(heard, &expected, "each once and in order");
        }
        Ok(())
    });
    if let Err(broken) = kept {
        panic!("{broken}");
    }
}

/// An agent whose end cannot be found out is looked at again in a while, and not as fast as messages go.
#[test]
fn an_agent_that_may_live_is_looked_at_again_with_a_pause() {
    let (holder, lives) = (boot(1), RunEnd::Ended { agent_lives: true });
    let facts = RunFacts { generation: 1, granted: Some(&holder), controls: &[], wanted: true };
    let mut hub = HubSide::new(&facts, Lease::default(), 0);
    hub.end(holder.clone(), "it cannot".to_owned(), 10);
    let said = hub.receive(&facts, (1, holder.clone()), WorkerBody::Over(lives.clone()), 20);
    assert!(said.is_empty(), "{said:?}");
    assert_eq!(hub.due(), 10 + RESEND_MS);
    // And whoever is told so looks.
    let (mut worker, _) = WorkerSide::was_over(lives, 0);
    let steps = worker.receive(HubBody::Ended { reason: EndReason::Unable }, 30);
    assert!(matches!(steps[..], [WorkerStep::Stop]), "{steps:?}");
}
