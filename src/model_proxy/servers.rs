//! The model servers of a team, with their keys.

use std::collections::BTreeMap;
use std::time::Duration;

use secrecy::SecretString;

use super::error::ModelProxyError;
use super::shared_budgets::SpendingOfRuns;
use crate::domain::budget::PriceTable;
use crate::domain::config::ModelApi;
use crate::platform::redact;

/// How long a model server may be silent before its answer counts as broken off.
const SILENCE: Duration = Duration::from_secs(600);
/// How long a connection to one may take.
const CONNECT: Duration = Duration::from_secs(30);

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
pub struct ModelServers {
    pub(super) servers: BTreeMap<String, Server>,
    pub(super) prices: PriceTable,
    pub(super) spending: SpendingOfRuns,
    http: reqwest::Client,
    local: reqwest::Client,
}

impl ModelServers {
    /// With these servers, and prices for those that do not say what they cost.
    ///
    /// # Errors
    /// Where no client can be made.
    pub fn new(
        servers: BTreeMap<String, Server>,
        prices: PriceTable,
    ) -> Result<ModelServers, ModelProxyError> {
        ModelServers::patient(servers, prices, SILENCE)
    }

    /// As [`ModelServers::new`], for servers that may be silent for so long.
    ///
    /// # Errors
    /// Where no client can be made.
    pub fn patient(
        servers: BTreeMap<String, Server>,
        prices: PriceTable,
        silence: Duration,
    ) -> Result<ModelServers, ModelProxyError> {
        for key in servers.values().filter_map(|server| server.key.as_ref()) {
            redact::register(secrecy::ExposeSecret::expose_secret(key));
        }
        let client = || {
            reqwest::Client::builder()
                .connect_timeout(CONNECT)
                .read_timeout(silence)
                // A server that sends us elsewhere would send the key along.
                .redirect(reqwest::redirect::Policy::none())
        };
        // A proxy of the environment is for the world outside, not for a server on this machine.
        Ok(ModelServers {
            servers,
            prices,
            spending: SpendingOfRuns::default(),
            http: client().build()?,
            local: client().no_proxy().build()?,
        })
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

    /// The client that reaches a server.
    pub(super) fn client(&self, server: &Server) -> &reqwest::Client {
        if is_here(&server.base_url) { &self.local } else { &self.http }
    }
}

/// Whether an address is one of this machine.
fn is_here(base_url: &str) -> bool {
    let host = reqwest::Url::parse(base_url).ok().and_then(|url| url.host_str().map(str::to_owned));
    host.is_some_and(|host| host == "localhost" || host == "[::1]" || host.starts_with("127."))
}
