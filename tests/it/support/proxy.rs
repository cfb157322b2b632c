//! A road to a Discord that can be broken in every way that roads are: in front of its REST side, of its
//! gateway, or of both. Connections are counted where they arrive.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What a connection meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The upgrade or the call is answered, and then TCP ends without a word.
    Fin,
    /// Reset at once.
    Reset,
    /// Half of an answer, and then TCP ends.
    HalfAnswer,
    /// Taken, and never answered.
    Silence,
    /// The upgrade or the call is answered, and then nothing comes, and nothing is taken.
    HalfOpen,
    /// Answered with that status.
    Status(u16),
    /// Something that is neither HTTP nor TLS.
    Garbage,
    /// Everything gets through, in pieces of a few bytes.
    Dribble,
}

impl Trouble {
    pub(crate) const ALL: [Trouble; 8] = [
        Trouble::Fin,
        Trouble::Reset,
        Trouble::HalfAnswer,
        Trouble::Silence,
        Trouble::HalfOpen,
        Trouble::Status(503),
        Trouble::Garbage,
        Trouble::Dribble,
    ];
}

#[derive(Debug, Default)]
struct State {
    rest: Option<Trouble>,
    gateway: Option<Trouble>,
    /// The heads of the requests for an upgrade.
    upgrades: Vec<String>,
}

/// The road.
pub(crate) struct Proxy {
    address: std::net::SocketAddr,
    state: Arc<Mutex<State>>,
    /// Counts gateway connections, and changes of trouble.
    news: watch::Sender<u64>,
    upstream: watch::Sender<String>,
}

impl Proxy {
    /// A road that leads nowhere yet.
    pub(crate) async fn open() -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State::default()));
        let (news, upstream) = (watch::Sender::new(0), watch::Sender::new(String::new()));
        let serves = Serves {
            state: Arc::clone(&state),
            news: news.clone(),
            upstream: upstream.subscribe(),
        };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serves.clone().serve(stream));
            }
        });
        Proxy { address, state, news, upstream }
    }

    /// Leads to a server, such as `http://127.0.0.1:3000`.
    pub(crate) fn leads_to(&self, base_url: &str) {
        let address = base_url.split_once("://").unwrap().1;
        self.upstream.send_replace(address.trim_end_matches('/').to_owned());
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn gateway_url(&self) -> String {
        format!("ws://{}", self.address)
    }

    /// What gateway connections meet from now on; silent ones of before end.
    pub(crate) fn gateway(&self, trouble: Option<Trouble>) {
        self.state.lock().unwrap().gateway = trouble;
        self.news.send_modify(|count| *count += 1);
    }

    /// What calls meet from now on.
    pub(crate) fn rest(&self, trouble: Option<Trouble>) {
        self.state.lock().unwrap().rest = trouble;
        self.news.send_modify(|count| *count += 1);
    }

    /// Gateway connections so far, by the heads of their requests.
    pub(crate) fn upgrades(&self) -> Vec<String> {
        self.state.lock().unwrap().upgrades.clone()
    }

    /// Waits until more than so many gateway connections were made.
    pub(crate) async fn made_more_than(&self, number: usize) {
        let mut news = self.news.subscribe();
        while self.state.lock().unwrap().upgrades.len() <= number {
            news.changed().await.unwrap();
        }
    }
}

#[derive(Clone)]
struct Serves {
    state: Arc<Mutex<State>>,
    news: watch::Sender<u64>,
    upstream: watch::Receiver<String>,
}

impl Serves {
    async fn serve(self, mut client: TcpStream) {
        client.set_nodelay(true).unwrap();
        let Some(head) = head(&mut client).await else { return };
        let text = String::from_utf8_lossy(&head).to_lowercase();
        let gateway = text.contains("upgrade: websocket");
        if gateway {
            self.state.lock().unwrap().upgrades.push(text);
        }
        let now = || {
            let state = self.state.lock().unwrap();
            if gateway { state.gateway } else { state.rest }
        };
        let trouble = now();
        let mut news = self.news.subscribe();
        self.news.send_modify(|count| *count += 1);
        news.mark_unchanged();
        match trouble {
            Some(Trouble::Reset) => return reset(&client),
            Some(Trouble::HalfAnswer) => {
                let _ = client.write_all(b"HTTP/1.1 101 Switching Prot").await;
                return;
            }
            Some(Trouble::Silence) => {
                // Others connect meanwhile; what counts is that the trouble is over.
                while now() == trouble {
                    let _ = news.changed().await;
                }
                return;
            }
            Some(Trouble::Status(status)) => {
                let answer = format!("HTTP/1.1 {status} Trouble\r\ncontent-length: 0\r\n\r\n");
                let _ = client.write_all(answer.as_bytes()).await;
                return;
            }
            Some(Trouble::Garbage) => {
                let _ = client.write_all(b"\x16\x03\x01\xff\x00\x80garbage\r\n\r\n").await;
                return;
            }
            Some(Trouble::Fin | Trouble::HalfOpen | Trouble::Dribble) | None => {}
        }
        let upstream = self.upstream.borrow().clone();
        let Ok(mut server) = TcpStream::connect(upstream).await else { return };
        server.set_nodelay(true).unwrap();
        if server.write_all(&head).await.is_err() {
            return;
        }
        match trouble {
            Some(Trouble::Fin | Trouble::HalfOpen) => {
                let Some(answer) = self::head(&mut server).await else { return };
                let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
                let _ = client.write_all(&answer[..end]).await;
                if trouble == Some(Trouble::HalfOpen) {
                    while now() == trouble {
                        let _ = news.changed().await;
                    }
                }
            }
            Some(Trouble::Dribble) => dribble(&mut client, &mut server).await,
            Some(_) | None => {
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            }
        }
    }
}

/// The head of a request or an answer, with what came along.
async fn head(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    while !head.windows(4).any(|four| four == b"\r\n\r\n") {
        if stream.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    Some(head)
}

/// The end of the connection is a reset.
fn reset(stream: &TcpStream) {
    rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO)).unwrap();
}

async fn dribble(client: &mut TcpStream, server: &mut TcpStream) {
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let up = async { tokio::io::copy(&mut from_client, &mut to_server).await };
    let down = async {
        let mut piece = [0; 5];
        while let Ok(length @ 1..) = from_server.read(&mut piece).await {
            if to_client.write_all(&piece[..length]).await.is_err() {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = up => {}
        () = down => {}
    }
}
