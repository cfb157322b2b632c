//! Work that a message or a command needs before it can be told: files, rights, acknowledgements. Each queue does
//! one thing after the other, in the order of coming; queues do not wait for each other.
//!
//! A message that waits is safe without us: the watermark of its channel stays before it, so that the next start
//! reads it again. What overtakes it is remembered by the engine by its id, and because that remembers so many
//! ids only, so many messages of a channel overtake at most; the rest waits.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;

use crate::discord::inbound::Inbound;
use crate::domain::ids::{ChannelId, MessageId, UserId};

/// Messages of a channel that may overtake one that waits; fewer than the ids of a channel that the engine
/// remembers.
const OVERTAKING: usize = 48;

/// What keeps its order among itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Queue {
    /// Everything in a room or a direct message.
    Channel(ChannelId),
    /// What one person writes in a channel.
    Author(ChannelId, UserId),
    /// What one person commands.
    Person(UserId),
    /// One interaction for itself: what is suggested while somebody types is of use at once or not at all.
    Typing(u64),
    /// The edits of one message that was told before.
    Edits(MessageId),
}

/// A piece of work; it yields the fact to tell.
pub(super) struct Job {
    /// The message that waits for it, which is not read before.
    pub(super) message: Option<(ChannelId, MessageId)>,
    /// The message of which it reads another wording.
    pub(super) edit_of: Option<MessageId>,
    pub(super) work: BoxFuture<'static, Option<Inbound>>,
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job").field("message", &self.message).finish_non_exhaustive()
    }
}

/// A piece of work that is done.
pub(super) struct FinishedJob {
    queue: Queue,
    pub(super) message: Option<(ChannelId, MessageId)>,
    edit_of: Option<MessageId>,
    pub(super) fact: Option<Inbound>,
}

/// The edits of a message that are not told yet.
#[derive(Debug, Default)]
struct PendingEdits {
    count: usize,
    /// The message was deleted since they were heard of.
    is_deleted: bool,
}

/// A channel in which something waits.
#[derive(Debug, Default)]
struct PendingChannel {
    /// The messages that wait, those behind among them.
    waiting: BTreeSet<MessageId>,
    /// The newest message that was looked at.
    newest: Option<MessageId>,
    /// Messages that are worked on, or wait for one of their queue.
    active: usize,
    /// Messages that were told meanwhile.
    overtook: usize,
    /// Those that do not overtake any more.
    behind: VecDeque<(Queue, Job)>,
}

impl PendingChannel {
    fn is_closed(&self) -> bool {
        !self.behind.is_empty() || self.overtook + self.active >= OVERTAKING
    }

    fn look_at(&mut self, message: MessageId) {
        self.newest = self.newest.max(Some(message));
    }
}

/// All queues.
#[derive(Debug, Default)]
pub(super) struct Queues {
    /// What waits in each queue behind the work that it has under way.
    queues: BTreeMap<Queue, VecDeque<Job>>,
    channels: BTreeMap<ChannelId, PendingChannel>,
    edits: BTreeMap<MessageId, PendingEdits>,
    pub(super) under_way: FuturesUnordered<BoxFuture<'static, FinishedJob>>,
    count: usize,
}

impl Queues {
    /// Pieces of work that are not done.
    pub(super) const fn len(&self) -> usize {
        self.count
    }

    /// Whether something of the queue is not done, or the channel lets nothing overtake any more.
    pub(super) fn is_busy(&self, queue: Queue, channel: ChannelId) -> bool {
        self.queues.contains_key(&queue) || self.is_closed(channel)
    }

    fn is_closed(&self, channel: ChannelId) -> bool {
        self.channels.get(&channel).is_some_and(PendingChannel::is_closed)
    }

    /// Whether a message waits.
    pub(super) fn waits(&self, channel: ChannelId, message: MessageId) -> bool {
        self.channels.get(&channel).is_some_and(|it| it.waiting.contains(&message))
    }

    /// Adds work.
    pub(super) fn add(&mut self, queue: Queue, job: Job) {
        self.count += 1;
        if let Some(message) = job.edit_of {
            self.edits.entry(message).or_default().count += 1;
        }
        if let Some((channel, message)) = job.message {
            let pending = self.channels.entry(channel).or_default();
            pending.waiting.insert(message);
            if pending.is_closed() {
                pending.behind.push_back((queue, job));
                return;
            }
            pending.active += 1;
        }
        self.begin(queue, job);
    }

    fn begin(&mut self, queue: Queue, job: Job) {
        match self.queues.get_mut(&queue) {
            Some(waiting) => waiting.push_back(job),
            None => {
                self.queues.insert(queue, VecDeque::new());
                self.start(queue, job);
            }
        }
    }

    fn start(&self, queue: Queue, Job { message, edit_of, work }: Job) {
        self.under_way.push(Box::pin(async move {
            FinishedJob { queue, message, edit_of, fact: work.await }
        }));
    }

    /// Whether edits or commands are not told yet. Unlike a message that waits, no later start would read them.
    pub(super) fn has_unrepeatable(&self) -> bool {
        let commands = self.queues.keys().any(|queue| matches!(queue, Queue::Person(_)));
        commands || !self.edits.is_empty()
    }

    /// A piece of work is done: what comes after it in its queue begins. An edit of what is deleted yields nothing.
    pub(super) fn done(&mut self, done: &mut FinishedJob) {
        self.count = self.count.saturating_sub(1);
        if let Some(message) = done.edit_of
            && let Some(edits) = self.edits.get_mut(&message)
        {
            done.fact.take_if(|_| edits.is_deleted);
            edits.count -= 1;
            if edits.count == 0 {
                self.edits.remove(&message);
            }
        }
        if let Some((channel, _)) = done.message
            && let Some(pending) = self.channels.get_mut(&channel)
        {
            pending.active = pending.active.saturating_sub(1);
        }
        match self.queues.get_mut(&done.queue).map(VecDeque::pop_front) {
            Some(Some(next)) => self.start(done.queue, next),
            Some(None) | None => {
                self.queues.remove(&done.queue);
            }
        }
    }

    /// A message is about to be told, or came to nothing: how far its channel may be noted as read, where that
    /// is not up to the message itself.
    pub(super) fn told(&mut self, channel: ChannelId, message: MessageId) -> Option<MessageId> {
        let pending = self.channels.get_mut(&channel)?;
        pending.waiting.remove(&message);
        pending.look_at(message);
        pending.overtook += 1;
        let oldest = pending.waiting.first()?;
        Some(message.min(before(*oldest)))
    }

    /// Everything of a channel up to here was looked at: how far that may be noted.
    pub(super) fn looked_at(&mut self, channel: ChannelId, newest: MessageId) -> MessageId {
        let Some(pending) = self.channels.get_mut(&channel) else { return newest };
        pending.look_at(newest);
        pending.waiting.first().map_or(newest, |oldest| newest.min(before(*oldest)))
    }

    /// The channel is rid of what waited in it: how far it is read now. What did not overtake begins.
    pub(super) fn settle(&mut self, channel: ChannelId) -> Option<MessageId> {
        let pending = self.channels.get_mut(&channel)?;
        if pending.active > 0 {
            return None;
        }
        pending.overtook = 0;
        let mut next = Vec::new();
        while pending.active < OVERTAKING
            && let Some(job) = pending.behind.pop_front()
        {
            pending.active += 1;
            next.push(job);
        }
        if next.is_empty() {
            return self.channels.remove(&channel).and_then(|pending| pending.newest);
        }
        for (queue, job) in next {
            self.begin(queue, job);
        }
        None
    }

    /// A message is deleted: it is not told, and no edit of it.
    pub(super) fn deleted(&mut self, channel: ChannelId, message: MessageId) {
        self.forget(channel, message);
        if let Some(edits) = self.edits.get_mut(&message) {
            edits.is_deleted = true;
        }
    }

    /// A message is not told.
    pub(super) fn forget(&mut self, channel: ChannelId, message: MessageId) {
        if let Some(pending) = self.channels.get_mut(&channel) {
            pending.waiting.remove(&message);
        }
    }
}

const fn before(message: MessageId) -> MessageId {
    MessageId(message.0.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: ChannelId = ChannelId(1);

    fn job(message: u64) -> Job {
        let message = Some((HERE, MessageId(message)));
        Job { message, edit_of: None, work: Box::pin(async { None }) }
    }

    fn queue(author: u64) -> Queue {
        Queue::Author(HERE, UserId(author))
    }

    fn done(author: u64, message: u64) -> FinishedJob {
        let message = Some((HERE, MessageId(message)));
        FinishedJob { queue: queue(author), message, edit_of: None, fact: None }
    }

    #[test]
    fn an_edit_of_what_is_deleted_meanwhile_yields_nothing() {
        for is_deleted in [false, true] {
            let (mut queues, message) = (Queues::default(), MessageId(7));
            let work = || Box::pin(async { Some(Inbound::Live) });
            for _ in 0..2 {
                let job = Job { message: None, edit_of: Some(message), work: work() };
                queues.add(Queue::Edits(message), job);
            }
            if is_deleted {
                queues.deleted(HERE, message);
            }
            for left in [true, false] {
                let mut done = FinishedJob {
                    queue: Queue::Edits(message),
                    message: None,
                    edit_of: Some(message),
                    fact: Some(Inbound::Live),
                };
                assert!(queues.has_unrepeatable());
                queues.done(&mut done);
                assert_eq!((done.fact.is_none(), queues.has_unrepeatable()), (is_deleted, left));
            }
        }
    }

    #[test]
    fn a_channel_is_read_up_to_before_the_oldest_that_waits() {
        let mut queues = Queues::default();
        assert_eq!(queues.told(HERE, MessageId(5)), None, "nothing waits");
        queues.add(queue(1), job(10));
        queues.add(queue(1), job(20));
        queues.add(queue(2), job(30));
        assert!(queues.is_busy(queue(1), HERE) && !queues.is_busy(queue(3), HERE));
        assert_eq!(queues.told(HERE, MessageId(15)), Some(MessageId(9)));
        assert_eq!(queues.looked_at(HERE, MessageId(40)), MessageId(9));
        queues.done(&mut done(2, 30));
        assert_eq!(queues.told(HERE, MessageId(30)), Some(MessageId(9)));
        assert_eq!(queues.settle(HERE), None);
        queues.done(&mut done(1, 10));
        assert_eq!(queues.told(HERE, MessageId(10)), Some(MessageId(10)));
        queues.done(&mut done(1, 20));
        // It was deleted before its turn.
        queues.forget(HERE, MessageId(20));
        assert!(!queues.waits(HERE, MessageId(20)));
        assert_eq!(queues.settle(HERE), Some(MessageId(40)), "all of it is read now");
        assert_eq!((queues.len(), queues.told(HERE, MessageId(50))), (0, None));
    }

    #[test]
    fn so_many_overtake_and_the_others_wait_in_order() {
        let mut queues = Queues::default();
        queues.add(queue(0), job(1));
        for number in 2..=OVERTAKING as u64 {
            assert!(!queues.is_busy(queue(number), HERE), "{number}");
            queues.told(HERE, MessageId(number));
        }
        assert!(queues.is_busy(queue(99), HERE));
        for number in 100..100 + 2 * OVERTAKING as u64 {
            queues.add(queue(number), job(number));
        }
        assert_eq!(queues.under_way.len(), 1);
        queues.done(&mut done(0, 1));
        assert_eq!(queues.told(HERE, MessageId(1)), Some(MessageId(1)));
        assert_eq!(queues.settle(HERE), None);
        assert_eq!(queues.under_way.len(), 1 + OVERTAKING, "as many again");
        assert!(queues.is_busy(queue(99), HERE));
    }
}
