//! How messages and blobs get from one place to another: in this process, and later over a network.
//!
//! A transport promises little. A message may be lost, doubled, late, out of order, or delivered although it was
//! said to be refused; whoever sends it says it again until it is answered.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

/// Bytes of a message at most; what is larger is a blob.
pub const MAX_MESSAGE: usize = 256 << 10;
/// Bytes of a blob at most.
pub const MAX_BLOB: usize = 32 << 20;
/// Messages that wait at one address.
const WAITING: usize = 1_024;

/// What became of a message or a blob, as far as is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendResult {
    /// It was taken.
    Taken,
    /// It was not: too large, or no room, or nobody there.
    Refused,
    /// Either.
    Unknown,
}

/// Carries messages to addresses, and keeps blobs by their digest.
pub trait Transport: fmt::Debug + Send + Sync {
    /// Sends a message of at most [`MAX_MESSAGE`] bytes.
    fn send<'a>(&'a self, address: &'a str, message: Vec<u8>) -> BoxFuture<'a, SendResult>;
    /// Gives out what comes to an address, from now on.
    fn listen(&self, address: &str) -> mpsc::Receiver<Vec<u8>>;
    /// Keeps bytes, of which there are at most [`MAX_BLOB`], under their [`digest`].
    fn put<'a>(&'a self, digest: &'a str, bytes: Vec<u8>) -> BoxFuture<'a, SendResult>;
    /// The bytes of a digest, where they are there. Whoever gets them holds them against it.
    fn get<'a>(&'a self, digest: &'a str) -> BoxFuture<'a, Option<Vec<u8>>>;
    /// Nobody needs the blob any more.
    fn remove<'a>(&'a self, digest: &'a str) -> BoxFuture<'a, ()>;
}

/// The SHA-256 of bytes, hexadecimal.
#[must_use]
pub fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The transport within one process.
#[derive(Debug, Default)]
pub struct LocalTransport {
    addresses: Mutex<BTreeMap<String, mpsc::Sender<Vec<u8>>>>,
    blobs: Mutex<BTreeMap<String, Vec<u8>>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Transport for LocalTransport {
    fn send<'a>(&'a self, address: &'a str, message: Vec<u8>) -> BoxFuture<'a, SendResult> {
        let fits = message.len() <= MAX_MESSAGE;
        let taken = fits
            && locked(&self.addresses)
                .get(address)
                .is_some_and(|sender| sender.try_send(message).is_ok());
        Box::pin(std::future::ready(if taken { SendResult::Taken } else { SendResult::Refused }))
    }

    fn listen(&self, address: &str) -> mpsc::Receiver<Vec<u8>> {
        let (sender, receiver) = mpsc::channel(WAITING);
        locked(&self.addresses).insert(address.to_owned(), sender);
        receiver
    }

    fn put<'a>(&'a self, digest: &'a str, bytes: Vec<u8>) -> BoxFuture<'a, SendResult> {
        let fits = bytes.len() <= MAX_BLOB;
        if fits {
            locked(&self.blobs).insert(digest.to_owned(), bytes);
        }
        Box::pin(std::future::ready(if fits { SendResult::Taken } else { SendResult::Refused }))
    }

    fn get<'a>(&'a self, digest: &'a str) -> BoxFuture<'a, Option<Vec<u8>>> {
        let found = locked(&self.blobs).get(digest).cloned();
        Box::pin(std::future::ready(found))
    }

    fn remove<'a>(&'a self, digest: &'a str) -> BoxFuture<'a, ()> {
        locked(&self.blobs).remove(digest);
        Box::pin(std::future::ready(()))
    }
}
