//! A transport that does what bad networks do, for tests of whole teams.
//!
//! With `TEAMS_BAD_TRANSPORT=<seed>` messages are doubled, delayed past later ones, lost, lost after they were taken,
//! or delivered although they are said to be refused; an old one comes again; and a blob is altered or cut. What it
//! does next depends on the seed and on nothing else.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

use super::transport::{LocalTransport, SendResult, Transport};

/// The variable with the seed.
pub const VARIABLE: &str = "TEAMS_BAD_TRANSPORT";
/// Old messages that may come again.
const OLD: usize = 32;

/// The transport of this process: a good one, and a bad one where [`VARIABLE`] says so.
#[must_use]
pub fn transport() -> Arc<dyn Transport> {
    let good = Arc::new(LocalTransport::default());
    let seed = std::env::var(VARIABLE).ok().and_then(|seed| seed.parse().ok());
    match seed {
        Some(seed) => Arc::new(BadTransport { good, fate: Mutex::new(Fate::new(seed)) }),
        None => good,
    }
}

#[derive(Debug)]
struct BadTransport {
    good: Arc<dyn Transport>,
    fate: Mutex<Fate>,
}

/// What is to come, and what was.
#[derive(Debug)]
struct Fate {
    /// xorshift: good enough to be bad by.
    state: u64,
    held: Option<(String, Vec<u8>)>,
    old: Vec<(String, Vec<u8>)>,
}

impl Fate {
    const fn new(seed: u64) -> Fate {
        Fate { state: seed.wrapping_mul(2) | 1, held: None, old: Vec::new() }
    }

    fn pick(&mut self, of: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from(self.state % u64::try_from(of).unwrap_or(1)).unwrap_or(0)
    }

    /// What is delivered in place of a message, and what is said of it.
    fn of(&mut self, address: &str, message: Vec<u8>) -> (Vec<(String, Vec<u8>)>, SendResult) {
        let own = (address.to_owned(), message);
        if self.old.len() == OLD {
            self.old.remove(0);
        }
        self.old.push(own.clone());
        match self.pick(10) {
            0 => (Vec::new(), SendResult::Refused),
            1 => (Vec::new(), SendResult::Taken),
            2 => (vec![own], SendResult::Refused),
            3 => (vec![own.clone(), own], SendResult::Unknown),
            4 => (self.held.replace(own).into_iter().collect(), SendResult::Taken),
            5 => {
                let past = self.pick(self.old.len());
                (vec![self.old[past].clone(), own], SendResult::Taken)
            }
            _ => {
                let late = self.held.take();
                (std::iter::once(own).chain(late).collect(), SendResult::Taken)
            }
        }
    }
}

impl BadTransport {
    fn fate<T>(&self, ask: impl FnOnce(&mut Fate) -> T) -> T {
        ask(&mut self.fate.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Transport for BadTransport {
    fn send<'a>(&'a self, address: &'a str, message: Vec<u8>) -> BoxFuture<'a, SendResult> {
        let (delivered, said) = self.fate(|fate| fate.of(address, message));
        Box::pin(async move {
            for (address, message) in delivered {
                self.good.send(&address, message).await;
            }
            said
        })
    }

    fn listen(&self, address: &str) -> mpsc::Receiver<Vec<u8>> {
        self.good.listen(address)
    }

    fn put<'a>(&'a self, digest: &'a str, bytes: Vec<u8>) -> BoxFuture<'a, SendResult> {
        self.good.put(digest, bytes)
    }

    fn get<'a>(&'a self, digest: &'a str) -> BoxFuture<'a, Option<Vec<u8>>> {
        Box::pin(async move {
            let mut bytes = self.good.get(digest).await?;
            match self.fate(|fate| fate.pick(6)) {
                0 => return None,
                1 => bytes.truncate(bytes.len() / 2),
                2 => bytes.iter_mut().take(1).for_each(|byte| *byte ^= 1),
                _ => {}
            }
            Some(bytes)
        })
    }

    fn remove<'a>(&'a self, digest: &'a str) -> BoxFuture<'a, ()> {
        self.good.remove(digest)
    }
}
