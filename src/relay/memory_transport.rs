//! The transport of simulations: what was delivered survives a restart as long as the queue is handed on.

use std::collections::{BTreeMap, BTreeSet};

use super::transport::{Transport, TransportError};
use crate::domain::envelope::Envelope;
use crate::domain::ids::EnvelopeId;
use crate::domain::role::Role;
use crate::domain::time::Timestamp;

type Key = (Role, Timestamp, EnvelopeId);

/// Queues in memory.
#[derive(Debug, Clone, Default)]
pub struct MemoryTransport {
    waiting: BTreeMap<Key, Envelope>,
    acknowledged: BTreeSet<(Role, EnvelopeId)>,
    received: BTreeSet<EnvelopeId>,
}

impl MemoryTransport {
    /// Empty queues.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The next life: what was received and not acknowledged is received again.
    #[must_use]
    pub fn restarted(self) -> Self {
        Self { received: BTreeSet::new(), ..self }
    }
}

impl Transport for MemoryTransport {
    fn deliver(&mut self, envelope: &Envelope) -> Result<(), TransportError> {
        let (role, id) = (envelope.target_role, envelope.relay_id.clone());
        let waits = self.waiting.keys().any(|key| key.0 == role && key.2 == id);
        if !waits && !self.acknowledged.contains(&(role, id.clone())) {
            self.waiting.insert((role, envelope.created_at, id), envelope.clone());
        }
        Ok(())
    }

    fn receive(&mut self, role: Role) -> Result<Option<Envelope>, TransportError> {
        let next = self
            .waiting
            .iter()
            .find(|(key, _)| key.0 == role && !self.received.contains(&key.2))
            .map(|(_, envelope)| envelope.clone());
        if let Some(envelope) = &next {
            self.received.insert(envelope.relay_id.clone());
        }
        Ok(next)
    }

    fn ack(&mut self, role: Role, id: &EnvelopeId) -> Result<(), TransportError> {
        let before = self.waiting.len();
        self.waiting.retain(|key, _| !(key.0 == role && key.2 == *id));
        if self.waiting.len() < before {
            self.acknowledged.insert((role, id.clone()));
        }
        Ok(())
    }
}
