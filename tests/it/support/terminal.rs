//! The binary at a terminal, and somebody who types.

use std::path::Path;
use std::process::Stdio;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use super::yard::PATIENCE;

/// Types `keys` when `until` was shown; everything that the terminal showed, and whether it ended well. The words go
/// through a shell.
pub(crate) async fn typed(words: &str, folder: &Path, until: &str, keys: &str) -> (String, bool) {
    let words = format!("exec '{}' {words}", env!("CARGO_BIN_EXE_teams"));
    let mut child = Command::new("script")
        .args(["-qec", &words, "/dev/null"])
        .current_dir(folder)
        .env_remove("TEAMS_DISCORD_TOKEN")
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("`script` of util-linux makes a terminal");
    let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let talk = async {
        let (mut shown, mut typed) = (Vec::new(), false);
        while output.read_buf(&mut shown).await.unwrap() > 0 {
            if !typed && String::from_utf8_lossy(&shown).contains(until) {
                input.write_all(keys.as_bytes()).await.unwrap();
                typed = true;
            }
        }
        (String::from_utf8(shown).unwrap(), child.wait().await.unwrap().success())
    };
    tokio::time::timeout(PATIENCE, talk).await.expect("it ends")
}
