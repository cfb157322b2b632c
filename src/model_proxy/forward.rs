//! One request to a model server, and its answer back, piece by piece as it comes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::{Body, BodyDataStream, Bytes};
use axum::http::{Method, Request, Response, StatusCode, header};
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt as _};
use hyper::body::Incoming;
use secrecy::ExposeSecret as _;
use tokio::sync::Mutex;

use super::answer::{ProxyRefusal, no};
use super::api;
use super::limit;
use super::meter::{BYTES, Meter};
use super::servers::Server;
use super::shared_budgets::OpenCall;
use super::usage::{Reader, ResponseFacts};
use crate::agents;
use crate::domain::time::Timestamp;
use crate::platform::clock;

/// Bytes of a request's body: a whole conversation with pictures.
const LARGEST: u64 = 64 << 20;
/// Bytes of events in which a token comes, about: of an answer that broke off nobody tells its tokens.
const EVENT_BYTES: u64 = 32;
/// Bytes of a refusal that are read for its words before it goes on.
const WORDS: usize = 16 << 10;

/// The body is larger than that.
#[derive(Debug, thiserror::Error)]
#[error("the request is too large")]
struct TooLarge;

/// Why a body ends early.
type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// An answer to what is not passed on, when that is read: where it is left unread, the connection is reset, and the
/// agent hears of that in place of the answer.
pub(super) async fn after(request: Request<Incoming>, answer: Response<Body>) -> Response<Body> {
    RequestBody::of(request).read_to_end().await;
    answer
}

/// The body of a request, of which what a server did not take can still be read.
#[derive(Clone)]
struct RequestBody(Arc<Mutex<BodyDataStream>>);

impl RequestBody {
    fn of(request: Request<Incoming>) -> RequestBody {
        RequestBody(Arc::new(Mutex::new(Body::new(request.into_body()).into_data_stream())))
    }

    fn pieces(&self) -> impl Stream<Item = Result<Bytes, axum::Error>> + Send + 'static {
        futures_util::stream::unfold(self.clone(), async |body| {
            let piece = body.0.lock().await.next().await;
            piece.map(|piece| (piece, body))
        })
    }

    async fn read_to_end(&self) {
        let mut left = LARGEST;
        while let Some(Ok(piece)) = self.0.lock().await.next().await {
            let size = u64::try_from(piece.len()).unwrap_or(u64::MAX);
            let Some(rest) = left.checked_sub(size) else { break };
            left = rest;
        }
    }
}

/// Bytes of a request's body, where it says so.
pub(super) fn length(request: &Request<Incoming>) -> Option<u64> {
    request.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Passes a request on; one with a call is counted.
pub(super) async fn pass(
    client: &reqwest::Client,
    meter: &Arc<Meter>,
    (server, call, path): (&Server, Option<OpenCall>, &str),
    request: Request<Incoming>,
) -> Response<Body> {
    let counts = call.is_some();
    if length(&request).is_some_and(|length| length > LARGEST) {
        return no(ProxyRefusal::Large, Some(server.api));
    }
    let query = api::query(request.uri().query());
    let url = format!("{}{path}{query}", server.base_url.trim_end_matches('/'));
    let mut headers = api::forth(request.headers());
    if let Some(key) = &server.key {
        let (name, value) = api::key(server.api, key.expose_secret());
        let Ok(mut value) = header::HeaderValue::from_str(&value) else {
            tracing::warn!("a model server's key cannot stand in a header");
            return after(request, no(ProxyRefusal::Gone, Some(server.api))).await;
        };
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    let asked = Arc::new(AtomicU64::new(0));
    let is_post = request.method() != Method::GET;
    let body = RequestBody::of(request);
    let onward = match is_post {
        false => {
            // Nothing is said of a body that does not go on: a server would take the next call of anybody for it.
            for name in [header::CONTENT_LENGTH, header::CONTENT_TYPE, header::CONTENT_ENCODING] {
                headers.remove(name);
            }
            client.get(url)
        }
        true => client.post(url).body(limited(body.pieces(), Arc::clone(&asked))),
    };
    // What was asked costs, also where the agent hangs up before an answer comes.
    let mut tap = call.map(|call| Tap {
        reader: Some(Reader::new(server.api, true)),
        meter: Arc::clone(meter),
        call: Some(call),
        is_silence: true,
        asked,
        answered: 0,
    });
    if tap.is_some() {
        Arc::clone(meter).keep_later();
    }
    let sent = onward.headers(headers).send().await;
    let costs = match &sent {
        Ok(answer) => answer.status().is_success(),
        // A server that has taken it may have worked on it all the time.
        Err(error) => error.is_timeout() && !error.is_connect(),
    };
    if let Some(tap) = &mut tap {
        tap.is_silence = sent.is_err();
    }
    if let Some(tap) = tap.take_if(|_| !costs) {
        tap.forget();
    }
    let answer = match sent {
        Ok(answer) if answer.status().is_redirection() => {
            tracing::warn!("a model server sends elsewhere, which is not followed");
            body.read_to_end().await;
            return no(ProxyRefusal::Gone, Some(server.api));
        }
        Ok(answer) => answer,
        Err(error) => {
            // Without its address, which may be the operator's own business.
            tracing::warn!(error = %error.without_url(), "a model server cannot be reached");
            body.read_to_end().await;
            return no(ProxyRefusal::Gone, Some(server.api));
        }
    };
    let status = StatusCode::from_u16(answer.status().as_u16()).unwrap_or(StatusCode::BAD_GATEWAY);
    let until = limit::until(status, answer.headers(), Timestamp::new(clock::now()));
    let kind = answer.headers().get(header::CONTENT_TYPE);
    let events = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    let mut response = Response::new(Body::empty());
    *response.headers_mut() = api::back(answer.headers());
    *response.status_mut() = status;
    let mut pieces = answer.bytes_stream().boxed();
    if counts && status == StatusCode::TOO_MANY_REQUESTS {
        let (first, rest) = beginning(pieces).await;
        let words: Vec<u8> = first.iter().flatten().flat_map(|piece| piece.to_vec()).collect();
        // A plan that is used up is waited for in another way.
        if agents::is_used_up(&String::from_utf8_lossy(&words)) {
            meter.used_up(until);
        } else {
            meter.limited(until);
        }
        Arc::clone(meter).kept().await;
        pieces = futures_util::stream::iter(first).chain(rest).boxed();
    }
    if let Some(tap) = &mut tap {
        tap.reader = Some(Reader::new(server.api, events));
    }
    *response.body_mut() = Body::from_stream(tapped(pieces, tap));
    response
}

/// The pieces of an answer.
type Pieces = BoxStream<'static, reqwest::Result<Bytes>>;

/// The first pieces of an answer, until its words are known, and the rest.
async fn beginning(mut pieces: Pieces) -> (Vec<reqwest::Result<Bytes>>, Pieces) {
    let (mut first, mut size) = (Vec::new(), 0);
    while size < WORDS
        && let Some(piece) = pieces.next().await
    {
        size += piece.as_ref().map_or(WORDS, Bytes::len);
        first.push(piece);
    }
    (first, pieces)
}

/// The body as it goes on; it breaks off where it grows too large.
fn limited(
    pieces: impl Stream<Item = Result<Bytes, axum::Error>> + Send + 'static,
    count: Arc<AtomicU64>,
) -> reqwest::Body {
    reqwest::Body::wrap_stream(pieces.map(move |piece| {
        let piece = piece.map_err(BodyError::from)?;
        let size = u64::try_from(piece.len()).unwrap_or(u64::MAX);
        let before = count.fetch_add(size, Ordering::Relaxed);
        if before.saturating_add(size) > LARGEST {
            return Err(BodyError::from(TooLarge));
        }
        Ok(piece)
    }))
}

/// Reads along, and counts when the answer is over, however that came.
struct Tap {
    reader: Option<Reader>,
    meter: Arc<Meter>,
    call: Option<OpenCall>,
    is_silence: bool,
    asked: Arc<AtomicU64>,
    answered: u64,
}

impl Tap {
    fn see(&mut self, piece: &Bytes) {
        self.meter.traffic.answered();
        self.answered = self.answered.saturating_add(u64::try_from(piece.len()).unwrap_or(0));
        if let Some(reader) = &mut self.reader {
            reader.feed(piece);
        }
    }
}

impl Tap {
    /// Nothing costs anything.
    fn forget(mut self) {
        (self.reader, self.call) = (None, None);
        Arc::clone(&self.meter).keep_later();
    }

    /// Counts what was seen, once; of an answer that broke off no less than what came of it.
    fn count(&mut self, is_whole: bool) -> Option<Arc<Meter>> {
        let reader = self.reader.take()?;
        // A token of a stream comes with many bytes around it.
        let answered =
            if reader.is_stream() { self.answered / EVENT_BYTES * BYTES } else { self.answered };
        let mut facts = ResponseFacts { is_silence: self.is_silence, ..reader.finish() };
        if let (Some(usage), false) = (&mut facts.cost, is_whole || facts.is_final) {
            usage.output_tokens = usage.output_tokens.max(self.answered / EVENT_BYTES);
        }
        let asked = self.asked.load(Ordering::Relaxed);
        self.meter.add(facts, (asked, answered));
        self.call = None;
        Some(Arc::clone(&self.meter))
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        // The agent hung up in the middle.
        if let Some(meter) = self.count(false) {
            meter.keep_later();
        }
    }
}

/// The answer as it goes on. The agent sees its end when its cost is written down.
fn tapped(
    pieces: Pieces,
    tap: Option<Tap>,
) -> impl Stream<Item = Result<Bytes, reqwest::Error>> + Send + 'static {
    futures_util::stream::unfold((pieces, tap), async |(mut pieces, mut tap)| {
        let piece = pieces.next().await;
        if let (Some(tap), Some(Ok(piece))) = (&mut tap, &piece) {
            tap.see(piece);
        }
        if piece.is_none()
            && let Some(meter) = tap.as_mut().and_then(|tap| tap.count(true))
        {
            meter.kept().await;
        }
        Some((piece?.map_err(reqwest::Error::without_url), (pieces, tap)))
    })
}
