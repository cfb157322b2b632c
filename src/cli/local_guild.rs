//! `teams local-guild`: serves the local guild alone.

use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use crate::local_guild::{self, Config, GuildError, GuildInfo};
use crate::platform::tasks;

/// How long a start waits for a guild that may be ending, and how often it looks.
const DYING: std::time::Duration = std::time::Duration::from_secs(5);
const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_millis(50);

/// The arguments of `teams local-guild`.
#[derive(Debug, clap::Args)]
pub(super) struct LocalGuildArgs {
    /// The port on 127.0.0.1; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Keep everything in this folder, and go on from there next time.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Print one line of JSON instead of text.
    #[arg(long)]
    json: bool,
    /// End when standard input ends: then the guild never outlives the process that started it.
    #[arg(long, hide = true)]
    parent_pipe: bool,
}

/// Serves until a signal, or until the parent is gone.
pub(super) fn run(args: LocalGuildArgs) -> ExitCode {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let result = match runtime {
        Ok(runtime) => {
            let result = runtime.block_on(serve(args));
            // A read of standard input may still be under way; it must not hold the end up.
            runtime.shutdown_background();
            result
        }
        Err(error) => Err(format!("cannot start: {error}")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            // Nothing is left to tell it to if standard error is gone.
            let _ = writeln!(std::io::stderr(), "teams local-guild: {text}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(args: LocalGuildArgs) -> Result<(), String> {
    let config = Config { port: args.port, dir: args.dir, gateway_url: None };
    let running = open(config).await.map_err(|error| error.to_string())?;
    announce(&running.info, args.json).map_err(|error| format!("cannot write: {error}"))?;
    wait_for_end(args.parent_pipe).await?;
    running.shutdown().await;
    Ok(())
}

/// Opens the guild. One that was killed just now may still be ending: it is waited for.
async fn open(config: Config) -> Result<local_guild::Running, GuildError> {
    let until = tokio::time::Instant::now() + DYING;
    loop {
        match local_guild::serve(config.clone()).await {
            Err(GuildError::Busy { .. }) if tokio::time::Instant::now() < until => {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            Err(GuildError::Listen { source, .. })
                if source.kind() == std::io::ErrorKind::AddrInUse
                    && tokio::time::Instant::now() < until =>
            {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            opened => return opened,
        }
    }
}

fn announce(info: &GuildInfo, json: bool) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    if json {
        serde_json::to_writer(&mut out, info)?;
        writeln!(out)?;
    } else {
        writeln!(out, "The local guild is open at {}", info.page_url)?;
        writeln!(out, "REST     {}/api/v10", info.base_url)?;
        writeln!(out, "Gateway  {}", info.gateway_url)?;
        writeln!(out, "Guild    {}", info.guild_id)?;
        for (name, id) in &info.channels {
            writeln!(out, "Channel  {id}  #{name}")?;
        }
        for (name, account) in &info.bots {
            writeln!(out, "Bot      {}  {name}  {}", account.id, account.token)?;
        }
    }
    out.flush()
}

async fn wait_for_end(parent_pipe: bool) -> Result<(), String> {
    use tokio::signal::unix::{SignalKind, signal};
    let listen = |kind| signal(kind).map_err(|error| format!("cannot listen for signals: {error}"));
    let mut terminate = listen(SignalKind::terminate())?;
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut hangup = listen(SignalKind::hangup())?;
    let parent = async {
        if !parent_pipe {
            return std::future::pending().await;
        }
        // Whatever the parent writes is ignored; only the end counts.
        let watch = tasks::blocking(|| {
            let mut stdin = std::io::stdin().lock();
            let mut scratch = [0; 256];
            while matches!(stdin.read(&mut scratch), Ok(1..)) {}
        });
        if let Err(error) = watch.await {
            tracing::warn!(%error, "lost sight of standard input");
        }
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        _ = hangup.recv() => {}
        () = parent => {}
    }
    Ok(())
}
