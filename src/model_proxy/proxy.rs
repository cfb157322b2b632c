//! The proxy of one run: where it listens, and who may come in.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, Response, StatusCode, header};
use base64::Engine as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio_util::either::Either;
use tokio_util::io::InspectReader;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::answer::{ProxyRefusal, SPENT, bare, no};
use super::error::ModelProxyError;
use super::meter::{self, Meter, MeterReading, RateLimitSign, SavedAccess};
use super::outside::{self, AllowedHosts};
use super::servers::ModelServers;
use super::shared_budgets::RunAllowance;
use super::{api, forward};
use crate::agents::{self, AgentOutcome, ProxyAddress};
use crate::domain::conversation::{Fill, FillUnit};
use crate::domain::refusal::Refusal;
use crate::domain::usage::Usage;
use crate::platform::accept::AcceptRetry;
use crate::platform::files;
use crate::platform::{ids, redact, tasks};

/// Bytes of the longest path that a socket can have, the ending zero left aside.
const LONGEST_PATH: usize = 107;
/// Connections of one run at the same time.
const MOST: usize = 64;
/// Hexadecimal digits of a token.
const DIGITS: usize = 48;

/// What a run's proxy leads to.
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
    pub outside: AllowedHosts,
    /// The run, and what it may spend.
    pub run: RunAllowance,
    /// Where to say what was refused.
    pub refused: mpsc::Sender<RefusedCall>,
}

/// What a proxy refused.
#[derive(Debug)]
pub struct RefusedCall {
    /// The kind of it.
    pub refusal: Refusal,
    /// In a few words.
    pub what: String,
    /// Told once it is noted; the agent has its answer after that.
    pub noted: oneshot::Sender<()>,
}

/// The open proxy of a run; it closes with its value, and whatever goes through it breaks off.
#[derive(Debug)]
pub struct ModelProxy {
    address: ProxyAddress,
    meter: Arc<Meter>,
    _listens: DropGuard,
    /// The run's token is worth nothing once the proxy is closed.
    _token: redact::MaskedSecret,
}

impl ModelProxy {
    /// Where it is, for the agent.
    #[must_use]
    pub const fn address(&self) -> &ProxyAddress {
        &self.address
    }

    /// Follows what servers say of rate limits.
    #[must_use]
    pub fn rate_limits(&self) -> watch::Receiver<RateLimitSign> {
        self.meter.signs()
    }

    /// What was counted so far.
    #[must_use]
    pub fn counted(&self) -> MeterReading {
        self.meter.counted()
    }

    /// Takes what the agent says that it has used so far; whether the run has spent what it may.
    #[must_use]
    pub fn tell(&self, told: Usage) -> bool {
        self.meter.tell(told)
    }

    /// What a run has used: as was counted here, or as its agent says where that is more and the servers did not say
    /// all. Never both: an agent may tell of its last step alone, of its whole conversation, or of no cost.
    #[must_use]
    pub fn settle(&self, told: Usage) -> Usage {
        let MeterReading { usage, requests, guessed, told: seen, .. } = self.counted();
        if requests == 0 {
            // Its end may not be known, where what it told before is.
            let told = self.meter.priced(told);
            let most = if seen.tokens() > told.tokens() { seen } else { told };
            return Usage { cost_usd: seen.cost_usd.max(told.cost_usd), ..most };
        }
        let is_exact = requests > 0 && !guessed;
        match is_exact || usage.tokens() >= told.tokens() {
            true => Usage { cost_usd: usage.cost_usd.max(told.cost_usd), ..usage },
            false => told,
        }
    }

    /// What the agent came to, with what was counted here.
    #[must_use]
    pub fn complete(&self, outcome: AgentOutcome) -> AgentOutcome {
        let counted = self.counted();
        let known = counted.last_input > 0 && !counted.guessed;
        let fill = outcome.fill.map(|fill| match fill.measured {
            FillUnit::Bytes if known => {
                Fill { used: counted.last_input, measured: FillUnit::Tokens, ..fill }
            }
            FillUnit::Bytes | FillUnit::Tokens => fill,
        });
        let refusal = self.meter.refusal().map(|words| agents::beginning(&words));
        let mut result = outcome.outcome.by_server(refusal.as_deref(), counted.limited_until);
        if counted.over_budget {
            result = result.beyond_budget(SPENT);
        }
        AgentOutcome { outcome: result, usage: self.settle(outcome.usage), fill, ..outcome }
    }
}

impl Drop for ModelProxy {
    fn drop(&mut self) {
        if let Err(error) = files::remove_file(&self.address.socket) {
            tracing::warn!(%error, "the socket of a proxy stays behind");
        }
    }
}

/// What every connection of a proxy needs.
struct Connections {
    models: Arc<ModelServers>,
    meter: Arc<Meter>,
    servers: BTreeSet<String>,
    outside: AllowedHosts,
    token: String,
    refused: mpsc::Sender<RefusedCall>,
    stop: CancellationToken,
    room: Arc<Semaphore>,
    tunnels: Arc<Semaphore>,
}

impl Connections {
    /// Says what was refused, and waits until it is noted.
    async fn refuse(&self, refusal: Refusal, what: String) {
        let (noted, known) = oneshot::channel();
        if self.refused.send(RefusedCall { refusal, what, noted }).await.is_ok() {
            // Where nobody listens any more there is nothing to wait for.
            let _ = known.await;
        }
    }
}

impl ModelServers {
    /// Opens the proxy of a run, or opens it again after a restart: then with the token, the port and the count
    /// that it had.
    ///
    /// # Errors
    /// [`ModelProxyError`]; the run then has no model.
    pub async fn open(
        self: &Arc<Self>,
        options: ProxyOptions,
    ) -> Result<ModelProxy, ModelProxyError> {
        let ProxyOptions { socket, port, run_dir, servers, outside, run, refused } = options;
        if socket.as_os_str().len() > LONGEST_PATH {
            return Err(ModelProxyError::TooLong(LONGEST_PATH));
        }
        let fresh = || SavedAccess {
            token: format!("teams-run-{}", ids::random_hex(DIGITS)),
            port: None,
            counted: MeterReading::default(),
            refusal: String::new(),
            model: String::new(),
            under_way: Usage::default(),
        };
        let mut kept = meter::read_kept(&run_dir)?.unwrap_or_else(fresh);
        let token = redact::hold(&kept.token);
        let listener = if port { Some(listen(kept.port).await?) } else { None };
        kept.port = match &listener {
            Some(listener) => Some(listener.local_addr()?.port()),
            None => None,
        };
        files::remove_file(&socket)?;
        let unix = UnixListener::bind(&socket)?;
        files::set_mode(&socket, 0o600)?;
        let (port, token_word) = (kept.port, kept.token.clone());
        files::create_dir_all(&run_dir)?;
        files::set_mode(&run_dir, 0o700)?;
        let meter = Arc::new(Meter::new(kept, run, Arc::clone(self), run_dir));
        meter.keep()?;
        let address = ProxyAddress {
            socket,
            port,
            token: token_word,
            leads_out: outside.is_open(),
            traffic: Some(meter.traffic.file().to_owned()),
        };
        let stop = CancellationToken::new();
        let shared = Arc::new(Connections {
            models: Arc::clone(self),
            meter: Arc::clone(&meter),
            servers,
            outside,
            token: address.token.clone(),
            refused,
            stop: stop.clone(),
            room: Arc::new(Semaphore::new(MOST)),
            tunnels: Arc::new(Semaphore::new(MOST)),
        });
        tasks::spawn("model-proxy", accept(unix, listener, shared));
        Ok(ModelProxy { address, meter, _listens: stop.drop_guard(), _token: token })
    }
}

/// A port of the loopback: the one that it had, for an agent that is still there, else any.
async fn listen(earlier: Option<u16>) -> Result<TcpListener, std::io::Error> {
    if let Some(port) = earlier
        && let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await
    {
        return Ok(listener);
    }
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await
}

async fn accept(unix: UnixListener, tcp: Option<TcpListener>, shared: Arc<Connections>) {
    let mut retry = AcceptRetry::new("model proxy");
    loop {
        let by_port = async {
            match &tcp {
                Some(listener) => listener.accept().await,
                None => std::future::pending().await,
            }
        };
        let accepted = tokio::select! {
            () = shared.stop.cancelled() => return,
            accepted = unix.accept() => accepted.map(|(stream, _)| Either::Left(stream)),
            accepted = by_port => accepted.map(|(stream, _)| Either::Right(stream)),
        };
        let Some(stream) = retry.settle(accepted).await else { continue };
        if let Either::Right(stream) = &stream {
            let _ = stream.set_nodelay(true);
        }
        serve(stream, &shared);
    }
}

fn serve(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, shared: &Arc<Connections>) {
    // One run cannot take the others' places; what is too much breaks off.
    let Ok(place) = Arc::clone(&shared.room).try_acquire_owned() else { return };
    let shared = Arc::clone(shared);
    tasks::spawn("proxy-call", async move {
        let _place = place;
        let answering = service_fn(|request| {
            let shared = Arc::clone(&shared);
            async move { Ok::<_, Infallible>(answer(&shared, request).await) }
        });
        let connection = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(stream), answering)
            .with_upgrades();
        tokio::select! {
            () = shared.stop.cancelled() => {}
            served = connection => if let Err(error) = served {
                tracing::debug!(%error, "a connection of an agent broke off");
            },
        }
    });
}

async fn answer(shared: &Arc<Connections>, request: Request<Incoming>) -> Response<Body> {
    if *request.method() == Method::CONNECT {
        return lead_out(shared, request).await;
    }
    let path = request.uri().path();
    let (name, rest) = path.trim_start_matches('/').split_once('/').unwrap_or((path, ""));
    let known = shared.servers.contains(name).then(|| shared.models.servers.get(name)).flatten();
    let query = request.uri().query();
    let shown = api::shown(request.headers(), query);
    if !shown.as_ref().is_some_and(|word| same(word, &shared.token)) {
        // Programs also knock without anything, to see what is wanted.
        if shown.is_some() {
            shared.refuse(Refusal::Proxy, format!("{name}, with another token")).await;
        }
        let answer = no(ProxyRefusal::Token, known.map(|server| server.api));
        return forward::after(request, answer).await;
    }
    let Some(server) = known else {
        shared.refuse(Refusal::Proxy, name.to_owned()).await;
        return forward::after(request, no(ProxyRefusal::Server, None)).await;
    };
    let rest = format!("/{rest}");
    let Some(asks) = api::allowed(server.api, request.method(), &rest) else {
        tracing::info!(method = %request.method(), "an agent asked a model server for what it need not");
        return forward::after(request, no(ProxyRefusal::Path, Some(server.api))).await;
    };
    let call = match asks {
        api::CallKind::Model => shared.meter.call(forward::length(&request)).await.map(Some),
        api::CallKind::Other => Some(None),
    };
    let Some(call) = call else {
        shared.meter.refused_as_spent();
        Arc::clone(&shared.meter).kept().await;
        return forward::after(request, no(ProxyRefusal::Spent, Some(server.api))).await;
    };
    forward::pass(shared.models.client(server), &shared.meter, (server, call, &rest), request).await
}

/// A way out, where the run has one there.
async fn lead_out(shared: &Arc<Connections>, request: Request<Incoming>) -> Response<Body> {
    let shown = proxy_word(request.headers());
    if !shown.as_ref().is_some_and(|word| same(word, &shared.token)) {
        if shown.is_some() {
            let what = "the way out, with another token".to_owned();
            shared.refuse(Refusal::Proxy, what).await;
        }
        return bare(StatusCode::PROXY_AUTHENTICATION_REQUIRED);
    }
    let place = request.uri().authority().cloned();
    let Some((host, port)) = place.as_ref().and_then(|it| Some((it.host(), it.port_u16()?))) else {
        return bare(StatusCode::BAD_REQUEST);
    };
    let outer = match outside::connect(&shared.outside, host, port).await {
        Ok(Some(stream)) => stream,
        Ok(None) => {
            shared.refuse(Refusal::Network, format!("{host}:{port}")).await;
            return bare(StatusCode::FORBIDDEN);
        }
        Err(error) => {
            tracing::debug!(host, %error, "where an agent may go cannot be reached");
            return bare(StatusCode::BAD_GATEWAY);
        }
    };
    // The place of its connection is given back with the answer.
    let Ok(place) = Arc::clone(&shared.tunnels).try_acquire_owned() else {
        return bare(StatusCode::SERVICE_UNAVAILABLE);
    };
    let (stop, meter) = (shared.stop.clone(), Arc::clone(&shared.meter));
    tasks::spawn("proxy-tunnel", async move {
        let _place = place;
        let carried = async {
            let mut inner = TokioIo::new(hyper::upgrade::on(request).await?);
            let mut outer = InspectReader::new(outer, |bytes| meter.traffic.carried(bytes.len()));
            // Either side may simply be gone.
            let _ = copy_bidirectional(&mut inner, &mut outer).await;
            Ok::<_, hyper::Error>(())
        };
        tokio::select! {
            () = stop.cancelled() => {}
            _ = carried => {}
        }
    });
    bare(StatusCode::OK)
}

/// The word that a program shows to a proxy: `Basic` of `name:word`, or `Bearer`.
fn proxy_word(headers: &HeaderMap) -> Option<String> {
    let shown = headers.get(header::PROXY_AUTHORIZATION)?.to_str().ok()?;
    if let Some(word) = shown.strip_prefix("Bearer ") {
        return Some(word.to_owned());
    }
    let pair = base64::engine::general_purpose::STANDARD.decode(shown.strip_prefix("Basic ")?);
    let pair = String::from_utf8(pair.ok()?).ok()?;
    pair.split_once(':').map(|(_, word)| word.to_owned())
}

/// Whether two words are the same, in the same time wherever they differ.
fn same(one: &str, other: &str) -> bool {
    use sha2::{Digest as _, Sha256};
    Sha256::digest(one) == Sha256::digest(other)
}

/// Where the socket of a proxy lies in the folder of a run's sockets.
#[must_use]
pub fn socket_in(folder: &std::path::Path) -> PathBuf {
    folder.join("door.sock")
}
