//! A local guild as the other side: it is on this machine and hands out its own tokens.

use super::SetupError;
use crate::discord::rest::{Pool, is_loopback};
use crate::local_guild::{GuildInfo, PAGE_KEY};

/// Asks a running local guild who is in it, by the address that it prints, with the key in it.
pub(super) async fn info(address: &str) -> Result<GuildInfo, SetupError> {
    let (address, key) = address.split_once("?key=").unwrap_or((address, ""));
    let address = address.trim_end_matches('/');
    let gone = || SetupError::NoLocalGuild(address.to_owned());
    // As people copy it from a browser.
    let address = &match address.contains("://") {
        true => address.to_owned(),
        false => format!("http://{address}"),
    };
    if !is_loopback(address) {
        return Err(gone());
    }
    let pool = Pool::new(address)?;
    // What its own page says as well: no other page in a browser can.
    let call = pool.http().get(format!("{address}/_local/info"));
    let call = call.header("sec-fetch-site", "same-origin").header(PAGE_KEY, key);
    let answer = call.send().await.and_then(reqwest::Response::error_for_status);
    answer.map_err(|_| gone())?.json().await.map_err(|_| gone())
}
