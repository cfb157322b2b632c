//! What the rest of the house may not do itself: files, processes, clock, randomness, tasks.

pub mod accept;
pub mod alarm;
pub mod ask;
pub mod backup;
#[doc(hidden)]
pub mod bad_transport;
pub mod beneath;
pub mod bind;
pub mod bubblewrap;
pub mod clock;
pub mod companion;
pub mod confinement;
pub mod disk;
pub mod files;
pub mod folder_lock;
#[doc(hidden)]
pub mod forgetful_disk;
pub mod full_disk;
pub mod heap;
pub mod hidden;
pub mod ids;
pub mod inside;
pub mod landlock;
pub mod layers;
pub mod machine;
pub mod panics;
pub mod places;
pub mod plug;
pub mod redact;
mod removal;
#[doc(hidden)]
pub mod sim_disk;
pub mod socket;
pub mod spawn;
pub mod supervise;
pub mod tasks;
pub mod terminal;
pub mod transport;
