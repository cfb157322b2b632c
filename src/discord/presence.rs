//! What the bot shows beside its name.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

/// Between two changes: Discord takes five in twenty seconds.
const PACE: Duration = Duration::from_secs(15);

/// Characters that Discord shows.
const LONGEST: usize = 128;

/// What is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Presence {
    /// What the team is doing, in a few words.
    pub text: String,
    /// Whether nothing goes on before a person decides.
    pub waits: bool,
}

impl Presence {
    /// The frame that says so (opcode 3).
    fn frame(&self) -> Value {
        let text: String = self.text.chars().take(LONGEST).collect();
        json!({"op": 3, "d": {
            "since": null, "afk": false,
            "status": if self.waits { "idle" } else { "online" },
            "activities": [{"name": "Custom Status", "type": 4, "state": text}],
        }})
    }
}

/// Tells one connection what to show: the newest, at Discord's pace, and nothing while nothing changes.
#[derive(Debug)]
pub(super) struct PresenceSender {
    wanted: watch::Receiver<Presence>,
    /// When the next frame may go; none while what is shown is what is wanted.
    due: Option<Instant>,
    last: Option<Instant>,
}

impl PresenceSender {
    /// For a connection that was greeted just now: what the one before showed may be gone.
    pub(super) fn new(wanted: &watch::Receiver<Presence>) -> PresenceSender {
        let wanted = wanted.clone();
        let due = (!wanted.borrow().text.is_empty()).then(Instant::now);
        PresenceSender { wanted, due, last: None }
    }

    /// The next frame to send, when it is time. Waits for ever where nobody wants anything shown any more.
    pub(super) async fn next(&mut self) -> String {
        loop {
            let changed = self.wanted.changed();
            match self.due {
                Some(due) => tokio::select! {
                    () = tokio::time::sleep_until(due) => {
                        self.due = None;
                        self.last = Some(Instant::now());
                        return self.wanted.borrow_and_update().frame().to_string();
                    }
                    Ok(()) = changed => {}
                },
                None => match changed.await {
                    Ok(()) => self.due = Some(due(self.last, Instant::now())),
                    Err(_) => std::future::pending().await,
                },
            }
        }
    }
}

/// When the next frame may go.
fn due(last: Option<Instant>, now: Instant) -> Instant {
    last.map_or(now, |last| now.max(last + PACE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(frame: &str) -> (String, String) {
        let frame: Value = serde_json::from_str(frame).unwrap();
        let text = frame["d"]["activities"][0]["state"].as_str().unwrap().to_owned();
        (text, frame["d"]["status"].as_str().unwrap().to_owned())
    }

    #[test]
    fn what_is_shown_is_short_and_says_whether_something_is_done() {
        let busy = Presence { text: "일".repeat(300), waits: false };
        let (text, status) = said(&busy.frame().to_string());
        assert_eq!((text.chars().count(), status.as_str()), (LONGEST, "online"));
        let ready = Presence { text: "Ready".to_owned(), waits: false };
        assert_eq!(said(&ready.frame().to_string()), ("Ready".to_owned(), "online".to_owned()));
        let waits = Presence { text: "1 waiting for you".to_owned(), waits: true };
        assert_eq!(said(&waits.frame().to_string()).1, "idle");
    }

    #[test]
    fn the_first_goes_at_once_and_the_next_at_discords_pace() {
        let now = Instant::now();
        assert_eq!(due(None, now), now);
        assert_eq!(due(Some(now), now), now + PACE);
        assert_eq!(due(Some(now), now + PACE * 2), now + PACE * 2);
    }

    #[tokio::test]
    async fn the_newest_is_shown_and_a_new_connection_begins_with_it() {
        let (show, wanted) = watch::channel(Presence::default());
        let mut shower = PresenceSender::new(&wanted);
        for text in ["one", "two"] {
            show.send_replace(Presence { text: text.to_owned(), waits: false });
        }
        assert_eq!(said(&shower.next().await).0, "two");
        assert_eq!(said(&PresenceSender::new(&wanted).next().await).0, "two");
    }
}
