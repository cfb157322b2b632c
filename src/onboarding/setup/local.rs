//! A local guild as the other side: it is on this machine and hands out its own tokens.

use super::SetupError;
use crate::discord::rest::{Pool, is_loopback};
use crate::local_guild::GuildInfo;

/// Asks a running local guild who is in it.
pub(super) async fn info(address: &str) -> Result<GuildInfo, SetupError> {
    let gone = || SetupError::NoLocalGuild(address.to_owned());
    // As people copy it from a browser.
    let address = &match address.contains("://") {
        true => address.to_owned(),
        false => format!("http://{address}"),
    };
    if !is_loopback(address) {
        return Err(gone());
    }
    let url = format!("{}/_local/info", address.trim_end_matches('/'));
    let pool = Pool::new(address)?;
    // What its own page says as well: no other page in a browser can.
    let call = pool.http().get(url).header("sec-fetch-site", "same-origin");
    let answer = call.send().await.and_then(reqwest::Response::error_for_status);
    answer.map_err(|_| gone())?.json().await.map_err(|_| gone())
}
