//! The supervisor process itself: threads and channels, no async, nothing of the team's state.

use std::ffi::OsString;
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::FlockOperation;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process_group, nice, set_child_subreaper,
};

use super::adopt::StartRecord;
use super::spool::{SpoolSpace, SpoolWriter};
use super::{
    EXIT_FILE, EndedBy, Exit, OnCap, OnEof, SPEC_FILE, STARTED_FILE, STDERR_SPOOL, STDOUT_SPOOL,
    Spec, millis, read_json, tree,
};
use crate::platform::{clock, files, folder_lock};

/// How long the sweep goes on before what is left is reported as unkillable.
const SWEEP_LIMIT: Duration = Duration::from_secs(20);
/// How long the end of output is waited for once no process of ours can hold the pipe.
const DRAIN_LIMIT: Duration = Duration::from_secs(5);
/// Milliseconds of an idle period for each processor tick (10 ms) that a waiting program may use, 2 %: timers of a
/// hanging agent tick as well. Codex CLI, waiting for its model, uses two ticks every five seconds.
const MS_PER_IDLE_TICK: u128 = 500;

/// The part of an idle period after which it is looked what the program had used by then.
const IDLE_LOOK: u32 = 10;
/// How much sooner than the team the kernel takes what an agent or a check runs, where no memory is left.
const OUT_OF_MEMORY: &str = "500";

/// What reaches the main thread.
enum Signals {
    Control(u8),
    ControlClosed,
    Full,
    Reaped(WaitStatus),
}

/// What is told of a stream, in this order.
enum Spooled {
    /// It has ended, and what came of it is being made durable.
    All,
    /// It is in its spool, less these bytes.
    Dropped(u64),
}

/// The hidden subcommand: `args` is what follows `__supervise`, the run folder.
pub fn main(args: &[OsString]) -> ExitCode {
    let Some(run_dir) = args.first().map(PathBuf::from) else {
        return complain("usage: teams __supervise <run folder>");
    };
    // Our stderr is the lock file, locked by whoever started us; locking it again is then granted.
    let stderr = io::stderr();
    if rustix::fs::flock(&stderr, FlockOperation::NonBlockingLockExclusive).is_err() {
        return complain("stderr has to be the lock file of the run folder");
    }
    match supervise(&run_dir) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain(&error),
    }
}

#[expect(clippy::print_stderr, reason = "stderr of this process is the log in the run folder")]
fn complain(text: &str) -> ExitCode {
    eprintln!("{text}");
    ExitCode::FAILURE
}

fn supervise(run_dir: &Path) -> Result<(), String> {
    let spec: Spec = read_json(&run_dir.join(SPEC_FILE))
        .map_err(|error| error.to_string())?
        .ok_or("the run folder has no spec.json")?;
    if files::exists(&run_dir.join(EXIT_FILE)) {
        return Err("this run is already over".to_owned());
    }
    set_child_subreaper(Some(getpid())).map_err(|error| error.to_string())?;
    // Best effort: a refused niceness is no reason not to run.
    let _ = nice(i32::from(spec.nice.min(19)));
    // A reader that does not keep up must never stop the program; the spool is the truth.
    rustix::io::ioctl_fionbio(io::stdout(), true).map_err(|error| error.to_string())?;

    let _locks: Vec<_> = spec.locks.iter().map(|folder| folder_lock::hold(folder)).collect();
    let started_at = clock::now();
    let exit = match start(&spec, run_dir) {
        Err(error) => Exit {
            ended_by: EndedBy::NotStarted,
            code: None,
            signal: None,
            started_at,
            ended_at: clock::now(),
            dropped_stdout: 0,
            dropped_stderr: 0,
            swept: 0,
            error: Some(format!("cannot start {}: {error}", spec.program.display())),
        },
        Ok(child) => match watch(&spec, run_dir, child, started_at) {
            Ok(exit) => exit,
            Err(error) => {
                // Whatever went wrong with our files, nothing goes on unwatched.
                let mut pause = 1;
                while tree::kill_all() > 0 {
                    // One that cannot be killed may stay for hours.
                    thread::sleep(millis(pause));
                    pause = (pause * 2).min(1_000);
                }
                return Err(error);
            }
        },
    };
    let text = serde_json::to_vec_pretty(&exit).map_err(|error| error.to_string())?;
    let path = run_dir.join(EXIT_FILE);
    let written = if spec.is_repeated {
        files::write_atomic(&path, text)
    } else {
        files::write_durable(&path, text)
    };
    written.map_err(|error| error.to_string())
}

fn watch(
    spec: &Spec,
    run_dir: &Path,
    child: Child,
    started_at: chrono::DateTime<chrono::Utc>,
) -> Result<Exit, String> {
    let child_pid = i32::try_from(child.id()).map_err(|error| error.to_string())?;
    let started = StartRecord { child_pid, began: tree::began(child_pid) };
    let text = serde_json::to_vec(&started).map_err(|error| error.to_string())?;
    files::write_atomic(&run_dir.join(STARTED_FILE), text).map_err(|error| error.to_string())?;
    Watch::new(spec, run_dir, child, started.child_pid)?.into_outcome(started_at)
}

#[expect(clippy::disallowed_methods, reason = "this module owns processes")]
fn start(spec: &Spec, run_dir: &Path) -> io::Result<Child> {
    use std::os::unix::process::CommandExt as _;
    let stdin = match &spec.stdin {
        Some(_) if spec.live_stdin => Stdio::piped(),
        Some(path) => Stdio::from(files::open(path).map_err(io::Error::other)?),
        None => Stdio::null(),
    };
    // It begins with our number. Whoever may not raise that runs it as it is.
    let own = Path::new("/proc/self/oom_score_adj");
    let before = files::read_text(own).unwrap_or_default();
    let _ = files::write(own, OUT_OF_MEMORY);
    let child = Command::new(&spec.program)
        .args(&spec.args)
        .env_clear()
        .envs(&spec.env)
        .env(tree::RUN_FOLDER, run_dir)
        .current_dir(&spec.cwd)
        .process_group(0)
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let _ = files::write(own, before.trim());
    child
}

/// The watch over one program.
struct Watch<'a> {
    spec: &'a Spec,
    group: Option<Pid>,
    signals: Receiver<Signals>,
    /// Rung where the program's input has grown; gone where it is ended.
    input: Option<Sender<()>>,
    began: Instant,
    /// Milliseconds after `began` at which stdout last said something.
    last_output: Arc<AtomicU64>,
    /// Since when it is silent, and the processor time that it had used then; none while that was not looked at since.
    idle_since: Instant,
    idle_ticks: Option<u64>,
    /// When something came to it, as was seen last.
    traffic_at: Option<SystemTime>,
    spools: [Receiver<io::Result<Spooled>>; 2],
    ended_by: Option<EndedBy>,
    kill_at: Option<Instant>,
    status: Option<WaitStatus>,
}

impl<'a> Watch<'a> {
    fn new(spec: &'a Spec, run_dir: &Path, mut child: Child, pid: i32) -> Result<Self, String> {
        let (sender, signals) = channel();
        let began = Instant::now();
        let last_output = Arc::new(AtomicU64::new(0));
        let writer = |name: &str, on_cap, max_line, max_total| {
            files::open_append(&run_dir.join(name))
                .map(|file| SpoolWriter::new(file, on_cap, max_line, max_total))
                .map_err(|error| error.to_string())
        };
        let out = writer(STDOUT_SPOOL, spec.on_cap, spec.max_line_bytes, spec.max_stdout_bytes)?;
        let err = writer(STDERR_SPOOL, OnCap::Drop, u64::MAX, spec.max_stderr_bytes)?;
        let full = sender.clone();
        let last = Arc::clone(&last_output);
        let on_output = move |room| {
            let now = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            last.store(now, Ordering::Release);
            // A full pipe means that the reader was told already and has not looked yet.
            let _ = rustix::io::write(io::stdout(), b".");
            if room == SpoolSpace::Full {
                // The main thread is gone only when the process ends.
                let _ = full.send(Signals::Full);
            }
        };
        let stdout = child.stdout.take().ok_or("no stdout")?;
        let stderr = child.stderr.take().ok_or("no stderr")?;
        let durable = !spec.is_repeated;
        let spools =
            [follow(stdout, out, durable, on_output), follow(stderr, err, durable, |_room| {})];
        let input = match (child.stdin.take(), &spec.stdin) {
            (Some(pipe), Some(path)) => Some(feed(pipe, path)?),
            (Some(_) | None, _) => None,
        };
        let control = sender.clone();
        thread::spawn(move || listen(&control));
        thread::spawn(move || reap(pid, &sender));
        Ok(Watch {
            spec,
            group: Pid::from_raw(pid),
            signals,
            input,
            began,
            last_output,
            idle_since: began,
            idle_ticks: Some(0),
            traffic_at: traffic(spec),
            spools,
            ended_by: None,
            kill_at: None,
            status: None,
        })
    }

    fn into_outcome(mut self, started_at: chrono::DateTime<chrono::Utc>) -> Result<Exit, String> {
        self.until_over();
        let swept = self.sweep()?;
        let [out, err] = &self.spools;
        let unwritten = |error: io::Error| format!("cannot write the spool: {error}");
        let dropped = |spool: &Receiver<io::Result<Spooled>>| -> Result<u64, String> {
            let held_open = |_| "the output pipe is held open by a stranger".to_owned();
            let mut next = spool.recv_timeout(DRAIN_LIMIT).map_err(held_open)?;
            loop {
                match next.map_err(unwritten)? {
                    Spooled::Dropped(bytes) => return Ok(bytes),
                    // A busy disk may take its time.
                    Spooled::All => next = spool.recv().map_err(|error| error.to_string())?,
                }
            }
        };
        let code = self.status.and_then(WaitStatus::exit_status);
        let signal = self.status.and_then(WaitStatus::terminating_signal);
        // A sandbox tells a signal as shells do.
        let told = code.filter(|code| self.spec.holds_inside && *code > 128).map(|code| code - 128);
        Ok(Exit {
            ended_by: self.ended_by.unwrap_or(EndedBy::Exit),
            code: code.filter(|_| told.is_none()),
            signal: signal.or(told),
            started_at,
            ended_at: clock::now(),
            dropped_stdout: dropped(out)?,
            dropped_stderr: dropped(err)?,
            swept,
            error: None,
        })
    }

    /// Returns when the program ended by itself or has to be killed.
    fn until_over(&mut self) {
        loop {
            let now = Instant::now();
            if self.kill_at.is_some_and(|at| at <= now) {
                return;
            }
            let next = self.check_limits(now);
            let signal = match next {
                Some(at) => self.signals.recv_timeout(at.saturating_duration_since(now)),
                None => self.signals.recv().map_err(RecvTimeoutError::from),
            };
            match signal {
                Ok(Signals::Control(b'i')) => self.begin_end(EndedBy::Cancelled),
                Ok(Signals::Control(b'k')) => {
                    self.ended_by.get_or_insert(EndedBy::Cancelled);
                    return;
                }
                Ok(Signals::Control(b'w')) => {
                    if let Some(input) = &self.input {
                        // The feeder is gone where the program does not read any more.
                        let _ = input.send(());
                    }
                }
                Ok(Signals::Control(b'e')) => {
                    self.input = None;
                    self.kill_at.get_or_insert(Instant::now() + millis(self.spec.grace_ms));
                }
                Ok(Signals::Control(_)) | Err(RecvTimeoutError::Timeout) => {}
                Ok(Signals::ControlClosed) => match self.spec.on_eof {
                    // Nobody is left to say more.
                    OnEof::Finish => self.input = None,
                    OnEof::Kill => {
                        self.ended_by.get_or_insert(EndedBy::ParentGone);
                        return;
                    }
                },
                Ok(Signals::Full) => {
                    self.ended_by.get_or_insert(EndedBy::OutputCap);
                    return;
                }
                Ok(Signals::Reaped(status)) => {
                    self.status = Some(status);
                    return;
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Begins the end where a limit is over; gives the instant to look again.
    fn check_limits(&mut self, now: Instant) -> Option<Instant> {
        if self.kill_at.is_none() {
            let wall = self.spec.wall_ms.map(|ms| self.began + millis(ms));
            if wall.is_some_and(|at| at <= now) {
                self.begin_end(EndedBy::Wall);
            } else {
                let idle = self.spec.idle_ms.map(|ms| self.idle_deadline(now, millis(ms)));
                match idle {
                    Some(at) if at <= now => self.begin_end(EndedBy::Idle),
                    Some(at) => return Some(wall.map_or(at, |wall| wall.min(at))),
                    None => return wall,
                }
            }
        }
        self.kill_at
    }

    /// When the program counts as idle; not in the future only where it does now.
    fn idle_deadline(&mut self, now: Instant, limit: Duration) -> Instant {
        let output = self.began + millis(self.last_output.load(Ordering::Acquire));
        if output > self.idle_since {
            (self.idle_since, self.idle_ticks) = (output, None);
        }
        let ticks_before = match self.idle_ticks {
            Some(ticks) => ticks,
            None => {
                // Not at each piece of output: a look at all processes is dear.
                let look_at = self.idle_since + limit / IDLE_LOOK;
                if now < look_at {
                    return look_at;
                }
                self.traffic_at = traffic(self.spec);
                *self.idle_ticks.insert(tree::Activity::now().ticks)
            }
        };
        if self.idle_since + limit <= now {
            // Silent for the whole period: it still works if its tree used the processor, or would if the
            // machine were less busy, or if something came to it. Where nothing lives it has ended by itself, which is
            // told next.
            // Looked at once: it may end at any moment.
            let tree::Activity { ticks, is_running, is_over } = tree::Activity::now();
            let spent = u128::from(ticks.saturating_sub(ticks_before));
            let works = spent > (limit.as_millis() / MS_PER_IDLE_TICK).max(1);
            let traffic_at = traffic(self.spec);
            let is_answered = traffic_at != std::mem::replace(&mut self.traffic_at, traffic_at);
            if works || is_running || is_over || is_answered {
                (self.idle_since, self.idle_ticks) = (now, Some(ticks));
            }
        }
        self.idle_since + limit
    }

    fn begin_end(&mut self, why: EndedBy) {
        self.ended_by.get_or_insert(why);
        self.kill_at.get_or_insert(Instant::now() + millis(self.spec.grace_ms));
        if !(self.spec.holds_inside && tree::interrupt_inside(tree::own())) {
            self.signal_group(Signal::INT);
        }
    }

    fn signal_group(&self, signal: Signal) {
        // Not after the reaping: the number could belong to somebody else by then.
        if let (Some(group), None) = (self.group, self.status) {
            let _ = kill_process_group(group, signal);
        }
    }

    /// Kills what is left, again and again until nothing is: a process may fork between the look
    /// and the kill. Gives the number of processes seen at first beside the program itself.
    fn sweep(&mut self) -> Result<u32, String> {
        let deadline = Instant::now() + SWEEP_LIMIT;
        let running = usize::from(self.status.is_none());
        self.signal_group(Signal::KILL);
        let mut first = None;
        loop {
            let living = tree::kill_all();
            first.get_or_insert(living.saturating_sub(running));
            if living == 0 && self.status.is_some() {
                break;
            }
            if Instant::now() > deadline {
                return Err(format!("{living} processes cannot be killed"));
            }
            match self.signals.recv_timeout(millis(2)) {
                Ok(Signals::Reaped(status)) => self.status = Some(status),
                Ok(Signals::Control(_) | Signals::ControlClosed | Signals::Full) => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    thread::sleep(millis(1));
                }
            }
        }
        Ok(first.and_then(|count| u32::try_from(count).ok()).unwrap_or(0))
    }
}

/// When something came to the program last.
fn traffic(spec: &Spec) -> Option<SystemTime> {
    files::metadata(spec.traffic.as_ref()?).ok()?.modified().ok()
}

/// Copies a stream into its spool on a thread of its own; the result comes at its end.
fn follow(
    mut stream: impl Read + Send + 'static,
    mut spool: SpoolWriter,
    durable: bool,
    mut on_output: impl FnMut(SpoolSpace) + Send + 'static,
) -> Receiver<io::Result<Spooled>> {
    let (done, result) = channel();
    thread::spawn(move || {
        let mut buffer = vec![0_u8; 64 << 10];
        let outcome = loop {
            match stream.read(&mut buffer) {
                Ok(0) => {
                    // Nobody may wait for it any more.
                    let _ = done.send(Ok(Spooled::All));
                    break spool.finish(durable);
                }
                Ok(read) => match spool.push(&buffer[..read]) {
                    Ok(room) => on_output(room),
                    Err(error) => {
                        on_output(SpoolSpace::Full);
                        break Err(error);
                    }
                },
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        let _ = done.send(outcome.map(Spooled::Dropped));
    });
    result
}

/// Copies a file into the program's stdin on a thread of its own, and what is added to it whenever the
/// sender rings; the pipe is closed when the sender is gone.
fn feed(mut pipe: ChildStdin, path: &Path) -> Result<Sender<()>, String> {
    let mut file = files::open(path).map_err(|error| error.to_string())?;
    let (ring, rung) = channel();
    thread::spawn(move || {
        // A program that does not read its input any more needs none.
        while io::copy(&mut file, &mut pipe).and_then(|_| pipe.flush()).is_ok() {
            if rung.recv().is_err() {
                // The last words may have come together with the end.
                let _ = io::copy(&mut file, &mut pipe);
                return;
            }
        }
    });
    Ok(ring)
}

/// Hands on the bytes of the control pipe.
fn listen(signals: &Sender<Signals>) {
    let mut byte = [0_u8; 1];
    loop {
        match io::stdin().read(&mut byte) {
            Ok(1..) => {
                let _ = signals.send(Signals::Control(byte[0]));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => {
                let _ = signals.send(Signals::ControlClosed);
                return;
            }
        }
    }
}

/// Reaps the program and whatever orphans come to us, until there are no more.
fn reap(program: i32, signals: &Sender<Signals>) {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get() == program => {
                let _ = signals.send(Signals::Reaped(status));
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}
