//! What people write to a request while an agent works on it: from the records to the agent.

use std::collections::BTreeSet;
use std::convert::Infallible;

use super::team::Team;
use crate::agents::{Mailbox, Said, Words};
use crate::domain::ids::MessageId;
use crate::domain::run::Run;

/// The words that a run was given, each wording of a message for itself.
#[derive(Debug, Default)]
pub(super) struct WordsGiven(BTreeSet<(MessageId, String)>);

impl WordsGiven {
    /// What stands in the records before the prompt is made stands in the prompt.
    pub(super) fn so_far(team: &Team, run: &Run) -> WordsGiven {
        let given = unwaiting(team, run).into_iter();
        WordsGiven(given.map(|words| (words.id, words.said.text)).collect())
    }

    /// Messages that the agent took as they are now: an edit that came too late has not been heard.
    pub(super) fn heard(&self, team: &Team, run: &Run, heard: Vec<MessageId>) -> Vec<MessageId> {
        let now = unwaiting(team, run);
        let asked = |id: MessageId| self.0.iter().filter(|(given, _)| *given == id).count();
        let taken = |id: MessageId| heard.iter().filter(|taken| **taken == id).count();
        let as_it_is = |id: MessageId| {
            now.iter()
                .any(|words| words.id == id && self.0.contains(&(id, words.said.text.clone())))
        };
        let all: BTreeSet<MessageId> = heard.iter().copied().collect();
        all.into_iter().filter(|id| as_it_is(*id) && taken(*id) >= asked(*id)).collect()
    }

    /// Puts what is new into the box, now and whenever the bell of the run rings.
    pub(super) async fn feed(&mut self, team: &Team, run: &Run, mailbox: &Mailbox) -> Infallible {
        let bell = team.signals.words_for(&run.run_id);
        loop {
            for words in unwaiting(team, run) {
                if self.0.insert((words.id, words.said.text.clone())) {
                    mailbox.put(words);
                }
            }
            bell.notified().await;
        }
    }
}

/// What the run's request asks for now, where it was edited, and its follow-ups that are not to wait for the next
/// run.
fn unwaiting(team: &Team, run: &Run) -> Vec<Words> {
    team.hub.read(|state| {
        let Some(request) = state.requests.get(&run.request_id) else { return Vec::new() };
        let author = &request.reply_route.author_name;
        let edited = (!request.params.earlier_bodies.is_empty()).then(|| Words {
            id: request.words_key(),
            said: Said { replaces: true, ..Said::new(author, &request.body) },
        });
        let followups = request.params.followups.iter().filter(|followup| !followup.waits());
        let added = followups.map(|followup| Words {
            id: followup.key(),
            said: Said::new(&followup.author_name, &followup.body),
        });
        edited.into_iter().chain(added).collect()
    })
}
