//! The team's door: the way of its agents to the models, and out.
//!
//! Real keys are here and nowhere else. Each run gets a socket of its own and a token that opens nothing but
//! that; the door takes the token off, puts the key on, lets through what a model server is asked for and
//! nothing else, counts the tokens on their way back, and says no when the run has spent what it may. What
//! passes is neither kept nor logged.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use tokio::sync::mpsc;

use super::refusals::Refused;
use crate::domain::budget::{Allowance, PriceTable};
use crate::domain::config::ModelApi;
use crate::platform::files::{self, FileError};

mod answer;
mod api;
mod door;
mod forward;
mod limit;
mod meter;
mod outside;
mod usage;

pub use door::{OpenDoor, socket_in};
pub use meter::{MeterReading, RateLimitSign};
pub use outside::Outside;

/// How long a model server may be silent before its answer counts as broken off.
const SILENCE: Duration = Duration::from_secs(600);
/// How long a connection to one may take.
const CONNECT: Duration = Duration::from_secs(30);
/// What a run's door is kept in, in the run's folder.
pub(super) const KEPT: &str = "door.json";

/// A model server.
#[derive(Debug, Clone)]
pub struct Server {
    /// What it speaks.
    pub api: ModelApi,
    /// Where its paths begin, such as `https://api.openai.com/v1`.
    pub base_url: String,
    /// The key; none for a server that wants none.
    pub key: Option<SecretString>,
}

/// All the model servers of a team.
#[derive(Debug)]
pub struct Models {
    servers: BTreeMap<String, Server>,
    prices: PriceTable,
    http: reqwest::Client,
    local: reqwest::Client,
}

/// What a run's door opens to.
#[derive(Debug, Clone)]
pub struct ProxyOptions {
    /// Where its socket is to be.
    pub socket: PathBuf,
    /// Whether it has to have a port on this machine's loopback besides.
    pub port: bool,
    /// The run's folder, in which what was counted is kept.
    pub run_dir: PathBuf,
    /// The model servers by name.
    pub servers: BTreeSet<String>,
    /// What else it leads to.
    pub outside: Outside,
    /// What the run may spend.
    pub allowance: Allowance,
    /// Where to say what was refused.
    pub refused: mpsc::Sender<Refused>,
}

/// Why there is no door.
#[derive(Debug, thiserror::Error)]
pub enum DoorError {
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
    /// The socket.
    #[error("cannot listen: {0}")]
    Io(#[from] std::io::Error),
    /// What is kept of it does not parse.
    #[error("{KEPT} does not parse: {0}")]
    Json(#[from] serde_json::Error),
    /// The path of the socket.
    #[error("its path would be longer than {0} bytes; set TMPDIR to a shorter one")]
    TooLong(usize),
    /// The client for model servers.
    #[error("no client for model servers: {0}")]
    Client(#[from] reqwest::Error),
}

impl Models {
    /// With these servers, and prices for those that do not say what they cost.
    ///
    /// # Errors
    /// Where no client can be made.
    pub fn new(servers: BTreeMap<String, Server>, prices: PriceTable) -> Result<Models, DoorError> {
        Models::patient(servers, prices, SILENCE)
    }

    /// As [`Models::new`], for servers that may be silent for so long.
    ///
    /// # Errors
    /// Where no client can be made.
    pub fn patient(
        servers: BTreeMap<String, Server>,
        prices: PriceTable,
        silence: Duration,
    ) -> Result<Models, DoorError> {
        for key in servers.values().filter_map(|server| server.key.as_ref()) {
            crate::platform::redact::register(secrecy::ExposeSecret::expose_secret(key));
        }
        let client = || {
            reqwest::Client::builder()
                .connect_timeout(CONNECT)
                .read_timeout(silence)
                // A server that sends us elsewhere would send the key along.
                .redirect(reqwest::redirect::Policy::none())
        };
        // A proxy of the environment is for the world outside, not for a server on this machine.
        Ok(Models { servers, prices, http: client().build()?, local: client().no_proxy().build()? })
    }

    /// Whether there is a server of that name, with its key.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.servers.contains_key(name)
    }

    /// The names of the servers.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.servers.keys().map(String::as_str)
    }

    /// Opens the door of a run, or opens it again after a restart: then with the token, the port and the count
    /// that it had.
    ///
    /// # Errors
    /// [`DoorError`]; the run then has no model.
    pub async fn open(self: &Arc<Self>, opening: ProxyOptions) -> Result<OpenDoor, DoorError> {
        door::open(Arc::clone(self), opening).await
    }

    fn client(&self, server: &Server) -> &reqwest::Client {
        if is_here(&server.base_url) { &self.local } else { &self.http }
    }
}

/// Whether an address is one of this machine.
fn is_here(base_url: &str) -> bool {
    let host = reqwest::Url::parse(base_url).ok().and_then(|url| url.host_str().map(str::to_owned));
    host.is_some_and(|host| host == "localhost" || host == "[::1]" || host.starts_with("127."))
}

/// What was counted for a run, as it stands in its folder; `None` where its models were not reached by the
/// door.
///
/// # Errors
/// Where the file is there and cannot be read.
pub fn counted(run_dir: &Path) -> Result<Option<MeterReading>, DoorError> {
    let kept: Option<meter::Kept> = files::read_text_if_present(&run_dir.join(KEPT))?
        .map(|text| serde_json::from_str(&text))
        .transpose()?;
    Ok(kept.map(|kept| kept.counted))
}
