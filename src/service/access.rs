//! The rules of the team for the Discord link: the same gate as everywhere, asked of the hub.

use super::hub::Hub;
use crate::discord::{Access, Form};
use crate::domain::actor::Actor;
use crate::domain::ids::ChannelId;
use crate::domain::incoming::Message;
use crate::domain::ingress::Ingress;
use crate::domain::time::Timestamp;
use crate::engine::authorize::{Resource, act, authorize, is_known};
use crate::engine::{depends_on_roles, is_addressed_by_edit, would_take_in};
use crate::platform::clock;

/// The hub's answers.
pub(super) struct HubAccess(pub(super) Hub);

impl std::fmt::Debug for HubAccess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HubAccess")
    }
}

impl Access for HubAccess {
    fn takes_in(&self, message: &Message) -> bool {
        self.0.consult(|state, policy| would_take_in(state, policy, message))
    }

    fn is_addressed_by_edit(&self, message: &Message) -> bool {
        let now = Timestamp::new(clock::now());
        self.0.consult(|state, _| is_addressed_by_edit(state, now, message))
    }

    fn depends_on_roles(&self, message: &Message) -> bool {
        self.0.consult(|state, policy| depends_on_roles(state, policy, message))
    }

    fn is_room(&self, channel: ChannelId) -> bool {
        self.0.read(|state| state.is_room(channel))
    }

    fn is_known(&self, actor: &Actor) -> bool {
        self.0.consult(|_, policy| is_known(policy, actor))
    }

    fn opens(&self, actor: &Actor, form: Form) -> bool {
        // A form that is sent comes as one, whatever opened it.
        let actor = match actor {
            Actor::Person { author, guild_id, via: _ } => {
                Actor::Person { author: author.clone(), guild_id: *guild_id, via: Ingress::Modal }
            }
            Actor::Operator | Actor::Deleter | Actor::Agent { .. } => actor.clone(),
        };
        self.0.consult(|_, policy| match form {
            Form::Kickoff => {
                authorize::<act::ControlSprint>(policy, &actor, Resource::Team).is_ok()
            }
            Form::Question => authorize::<act::Decide>(policy, &actor, Resource::Team).is_ok(),
            // What one asked for oneself takes less: that is looked at when the form is sent.
            Form::AboutRequest => is_known(policy, &actor),
            Form::Issue => authorize::<act::Verify>(policy, &actor, Resource::Team).is_ok(),
        })
    }
}
