//! The first program within a sandbox: our binary as `teams __inside [--mounted PLACE WHAT]… [--proxy PORT SOCKET]
//! [--rules FILE] -- program arguments…`.
//!
//! With a proxy it listens on that port of the sandbox's own loopback, which leads nowhere else, and carries
//! every connection to a Unix socket that the sandbox shows: the one way out. It passes an interrupt on to
//! the program and ends with it; in a process namespace of its own, that is the end of everything there.
//! With rules it confines itself by Landlock before the program begins. What [`super::bind`] opened has to be
//! mounted at its place.

#![expect(clippy::disallowed_methods, reason = "this module owns processes")]

use std::ffi::OsString;
use std::fmt::Display;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, Statx, StatxAttributes, StatxFlags};
use rustix::process::{Pid, Signal, kill_process_group, set_parent_process_death_signal};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::signal::unix::{SignalKind, signal};

use super::accept::AcceptRetry;
use super::landlock::{self, Rules};
use super::{files, tasks};

/// The exit code where the program could not be started.
pub const NOT_STARTED: u8 = 126;
/// How the line on stderr begins that says why.
pub const CANNOT_START: &str = "cannot start ";
/// And where it begins with the sandbox instead.
pub const NO_SANDBOX: &str = "the sandbox could not be set up: ";

/// What it is told.
#[derive(Debug, Default, PartialEq, Eq)]
struct Orders {
    mounted: Vec<ExpectedMount>,
    proxy: Option<(u16, PathBuf)>,
    rules: Option<PathBuf>,
    stays: bool,
    program: PathBuf,
    args: Vec<OsString>,
}

/// What has to be mounted at a place of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ExpectedMount {
    place: PathBuf,
    /// Device and inode; within a mount namespace the same as outside.
    what: String,
}

impl ExpectedMount {
    /// What is open, for a place.
    pub(super) fn of(opened: impl AsFd, place: &Path) -> io::Result<ExpectedMount> {
        let found = rustix::fs::statx(opened, "", AtFlags::EMPTY_PATH, StatxFlags::INO)?;
        Ok(ExpectedMount { place: place.to_owned(), what: identity(&found) })
    }

    pub(super) fn words(&self) -> [OsString; 3] {
        [MOUNTED.into(), self.place.clone().into(), self.what.clone().into()]
    }

    /// What is there and that it is mounted there are one answer of the kernel, so nothing comes between.
    fn check(&self) -> Result<(), String> {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let found = rustix::fs::statx(CWD, &self.place, flags, StatxFlags::INO);
        let why = match found {
            Ok(found) if identity(&found) != self.what => "something else stands there".to_owned(),
            Ok(found) if !found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT) => {
                "it was exchanged while it was mounted, or Linux is older than 5.8".to_owned()
            }
            Ok(_) => return Ok(()),
            Err(error) => io::Error::from(error).to_string(),
        };
        Err(format!("{}: {why}", self.place.display()))
    }
}

fn identity(found: &Statx) -> String {
    format!("{}:{}:{}", found.stx_dev_major, found.stx_dev_minor, found.stx_ino)
}

const MOUNTED: &str = "--mounted";

/// The words by which it is started, ahead of the program's own; `stay` where it has to outlast the
/// program's start although there is no proxy: for interrupts.
#[must_use]
pub fn arguments(proxy: Option<(u16, &Path)>, rules: Option<&Path>, stay: bool) -> Vec<String> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut words = vec![super::spawn::INSIDE.to_owned()];
    if let Some((port, socket)) = proxy {
        words.extend(["--proxy".to_owned(), port.to_string(), text(socket)]);
    }
    if let Some(rules) = rules {
        words.extend(["--rules".to_owned(), text(rules)]);
    }
    if stay {
        words.push("--stay".to_owned());
    }
    words.push("--".to_owned());
    words
}

/// The hidden subcommand: `args` is what follows `__inside`.
pub fn main(args: &[OsString]) -> ExitCode {
    let Some(orders) = read(args) else {
        return complain(
            "usage: teams __inside [--mounted PLACE WHAT]… [--proxy PORT SOCKET] [--rules FILE] -- program …",
        );
    };
    let no_sandbox = |error: &dyn Display| complain(&format!("{NO_SANDBOX}{error}"));
    if let Some(error) = orders.mounted.iter().find_map(|it| it.check().err()) {
        return no_sandbox(&error);
    }
    if let Some(rules) = &orders.rules
        && let Err(error) = restrict(rules)
    {
        return no_sandbox(&error);
    }
    if orders.proxy.is_none() && !orders.stays {
        // Without a process namespace nothing else ends it together with its supervisor.
        if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
            return no_sandbox(&std::io::Error::from(error));
        }
        let error = std::process::Command::new(&orders.program).args(&orders.args).exec();
        return complain(&format!("{CANNOT_START}{}: {error}", orders.program.display()));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.and_then(|runtime| runtime.block_on(attend(&orders))) {
        Ok(code) => ExitCode::from(code),
        Err(error) => complain(&format!("{CANNOT_START}{}: {error}", orders.program.display())),
    }
}

#[expect(
    clippy::print_stderr,
    reason = "what a sandbox says goes where its program's complaints go"
)]
fn complain(text: &str) -> ExitCode {
    eprintln!("{text}");
    ExitCode::from(NOT_STARTED)
}

fn read(args: &[OsString]) -> Option<Orders> {
    let mut orders = Orders::default();
    let mut words = args.iter();
    loop {
        match words.next()?.to_str()? {
            "--proxy" => {
                let port = words.next()?.to_str()?.parse().ok()?;
                orders.proxy = Some((port, PathBuf::from(words.next()?)));
            }
            MOUNTED => {
                let place = PathBuf::from(words.next()?);
                orders
                    .mounted
                    .push(ExpectedMount { place, what: words.next()?.to_str()?.to_owned() });
            }
            "--rules" => orders.rules = Some(PathBuf::from(words.next()?)),
            "--stay" => orders.stays = true,
            "--" => break,
            _ => return None,
        }
    }
    orders.program = PathBuf::from(words.next()?);
    orders.args = words.cloned().collect();
    Some(orders)
}

fn restrict(path: &Path) -> Result<(), landlock::RestrictError> {
    let text = files::read_text(path)?;
    let rules: Rules = serde_json::from_str(&text)?;
    landlock::restrict(&rules)
}

/// Starts the program and serves it until it ends; the exit code, with signals as shells write them.
async fn attend(orders: &Orders) -> io::Result<u8> {
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut terminations = signal(SignalKind::terminate())?;
    let proxy = match &orders.proxy {
        Some((port, socket)) => {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, *port));
            Some((TcpListener::bind(address).await?, socket.clone()))
        }
        None => None,
    };
    let mut child = tokio::process::Command::new(&orders.program)
        .args(&orders.args)
        .process_group(0)
        .spawn()?;
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let tell = |signal| {
        if let Some(group) = group {
            // Gone meanwhile is what was wanted.
            let _ = kill_process_group(group, signal);
        }
    };
    let mut retry = AcceptRetry::new("proxy");
    loop {
        tokio::select! {
            status = child.wait() => {
                let status = status?;
                let signal = status.signal().map(|signal| 128 + signal);
                let code = status.code().or(signal).unwrap_or(1);
                return Ok(u8::try_from(code).unwrap_or(1));
            }
            _ = interrupts.recv() => tell(Signal::INT),
            _ = terminations.recv() => tell(Signal::TERM),
            accepted = accept(proxy.as_ref().map(|(listener, _)| listener), &mut retry) => {
                if let (Some(stream), Some((_, socket))) = (accepted, &proxy) {
                    let socket = socket.clone();
                    tasks::spawn("proxy", async move { carry(stream, &socket).await });
                }
            }
        }
    }
}

async fn accept(listener: Option<&TcpListener>, retry: &mut AcceptRetry) -> Option<TcpStream> {
    match listener {
        Some(listener) => {
            let accepted = listener.accept().await;
            retry.settle(accepted).await.map(|(stream, _)| stream)
        }
        None => std::future::pending().await,
    }
}

/// How often a team that is not there is looked for, and after which pause: a restart of it is no failing server.
const LOOKS: u32 = 120;
const PAUSE: Duration = Duration::from_millis(500);

/// One connection; it breaks where the team does not come back, which the program takes for a failing server.
async fn carry(mut inner: TcpStream, socket: &Path) {
    for _ in 0..LOOKS {
        let Ok(mut outer) = UnixStream::connect(socket).await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let _ = inner.set_nodelay(true);
        let _ = copy_bidirectional(&mut inner, &mut outer).await;
        return;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_is_told_is_what_was_meant() {
        let mut words = arguments(Some((99, Path::new("/s"))), Some(Path::new("/r")), true);
        assert_eq!(words.remove(0), super::super::spawn::INSIDE);
        words.extend(["/bin/a", "--", "b"].map(str::to_owned));
        let mount = ExpectedMount { place: PathBuf::from("/m"), what: "8:1:2".to_owned() };
        let words = words.into_iter().map(OsString::from);
        let words: Vec<OsString> = mount.words().into_iter().chain(words).collect();
        let expected = Orders {
            mounted: vec![mount],
            proxy: Some((99, PathBuf::from("/s"))),
            rules: Some(PathBuf::from("/r")),
            stays: true,
            program: PathBuf::from("/bin/a"),
            args: vec!["--".into(), "b".into()],
        };
        assert_eq!(read(&words), Some(expected));
        for wrong in
            [&["--mounted", "m", "--"][..], &["--proxy", "x", "y", "--", "p"], &["p"], &["--"], &[]]
        {
            let words: Vec<OsString> = wrong.iter().map(OsString::from).collect();
            assert_eq!(read(&words), None, "{wrong:?}");
        }
    }

    #[test]
    fn what_is_there_without_being_mounted_there_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let opened = std::fs::File::open(folder.path()).unwrap();
        let refused =
            |place: &Path| ExpectedMount::of(&opened, place).unwrap().check().unwrap_err();
        assert!(refused(folder.path()).contains("exchanged while it was mounted"));
        assert!(refused(Path::new("/proc")).contains("something else stands there"));
        assert!(refused(&folder.path().join("gone")).contains("No such file"));
        let root = std::fs::File::open("/proc").unwrap();
        assert_eq!(ExpectedMount::of(root, Path::new("/proc")).unwrap().check(), Ok(()));
    }
}
