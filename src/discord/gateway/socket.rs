//! One WebSocket to a gateway. Every wait has an end.

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::http::{HeaderValue, header};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{self, Message, Utf8Bytes};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::discord::rest::USER_AGENT;

/// From the name to the open WebSocket.
const CONNECT: Duration = Duration::from_secs(10);
/// Until a frame is on its way, or the other side has been told of the end.
const SEND: Duration = Duration::from_secs(10);
const GOODBYE: Duration = Duration::from_secs(1);
/// The largest frame that is read, in bytes. A server with everything in it fills a few million.
const LARGEST: usize = 16 << 20;

/// What came.
#[derive(Debug)]
pub(super) enum Frame {
    Text(Utf8Bytes),
    Binary,
    /// A closing frame, with its code and reason where it has them.
    Close(Option<(u16, String)>),
}

/// One connection.
pub(super) struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Socket {
    /// Connects to an address such as `wss://gateway.discord.gg`. The error is for people.
    pub(super) async fn connect(address: &reqwest::Url) -> Result<Socket, String> {
        let host = address.host_str().unwrap_or_default().to_owned();
        let opened = tokio::time::timeout(CONNECT, open(address, &host)).await;
        opened
            .unwrap_or_else(|_| Err("no answer within ten seconds".to_owned()))
            .map(Socket)
            .map_err(|error| format!("the gateway at {host} cannot be reached: {error}"))
    }

    /// What comes next. The error is for people.
    pub(super) async fn next(&mut self) -> Result<Frame, String> {
        loop {
            return match self.0.next().await {
                Some(Ok(Message::Text(text))) => Ok(Frame::Text(text)),
                Some(Ok(Message::Binary(_))) => Ok(Frame::Binary),
                Some(Ok(Message::Close(frame))) => {
                    Ok(Frame::Close(frame.map(|it| (it.code.into(), it.reason.to_string()))))
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
                // TCP ended, and no closing frame came before.
                None
                | Some(Err(tungstenite::Error::Protocol(
                    ProtocolError::ResetWithoutClosingHandshake,
                ))) => Err("the connection ended without a word".to_owned()),
                Some(Err(error)) => Err(format!("the connection broke: {}", said(&error))),
            };
        }
    }

    /// Sends a frame. The error is for people.
    pub(super) async fn send(&mut self, text: String) -> Result<(), String> {
        match tokio::time::timeout(SEND, self.0.send(Message::text(text))).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(format!("the connection broke: {}", said(&error))),
            Err(_) => Err("discord takes nothing any more".to_owned()),
        }
    }

    /// Ends the connection; its session can be gone on with.
    pub(super) async fn leave(mut self) {
        let code = CloseCode::from(4_000);
        let frame = CloseFrame { code, reason: Utf8Bytes::from_static("reconnecting") };
        // Whoever is gone hears no goodbye.
        let _ = tokio::time::timeout(GOODBYE, self.0.close(Some(frame))).await;
    }
}

async fn open(
    address: &reqwest::Url,
    host: &str,
) -> Result<WebSocketStream<MaybeTlsStream<TcpStream>>, String> {
    let mut request = address.as_str().into_client_request().map_err(|error| said(&error))?;
    request.headers_mut().insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
    let port = address.port_or_known_default().unwrap_or(443);
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let io = |error: std::io::Error| error.to_string();
    let stream = match bare.parse::<Ipv6Addr>() {
        Ok(ip) => TcpStream::connect((IpAddr::V6(ip), port)).await.map_err(io)?,
        Err(_) => TcpStream::connect((bare, port)).await.map_err(io)?,
    };
    // Frames are small and wait for nothing.
    stream.set_nodelay(true).map_err(io)?;
    let config =
        WebSocketConfig::default().max_message_size(Some(LARGEST)).max_frame_size(Some(LARGEST));
    let opened =
        tokio_tungstenite::client_async_tls_with_config(request, stream, Some(config), None).await;
    Ok(opened.map_err(|error| said(&error))?.0)
}

/// An error in plain words.
fn said(error: &tungstenite::Error) -> String {
    match error {
        tungstenite::Error::Http(response) => {
            format!("it answered {} where a WebSocket was asked for", response.status())
        }
        tungstenite::Error::Tls(error) => format!("no secure connection: {error}"),
        tungstenite::Error::Capacity(_) => {
            format!("it sent more than {LARGEST} bytes at once")
        }
        tungstenite::Error::ConnectionClosed
        | tungstenite::Error::AlreadyClosed
        | tungstenite::Error::Io(_)
        | tungstenite::Error::Protocol(_)
        | tungstenite::Error::WriteBufferFull(_)
        | tungstenite::Error::Utf8(_)
        | tungstenite::Error::AttackAttempt
        | tungstenite::Error::Url(_)
        | tungstenite::Error::HttpFormat(_) => error.to_string(),
    }
}
