//! Waiting for an instant of the wall clock. A timer that counts elapsed time is late after the machine
//! slept and wrong after its clock was set; this one is the kernel's, on the clock that people read.

use chrono::{DateTime, Utc};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;

/// Returns when the wall clock has reached `at`, at once where it has passed, and also where the clock was set or the
/// machine has slept: what was waited for may be another instant then.
///
/// # Errors
/// Where the system has no timer to give.
pub async fn at(at: DateTime<Utc>) -> std::io::Result<()> {
    let timer =
        timerfd_create(TimerfdClockId::Realtime, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
    // All zeros would take the alarm away instead of ringing at once.
    let tv_sec = at.timestamp().max(1);
    let once = Itimerspec {
        it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
        it_value: Timespec {
            tv_sec,
            tv_nsec: i64::from(at.timestamp_subsec_nanos() % 1_000_000_000),
        },
    };
    timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET, &once)?;
    #[expect(deprecated, reason = "its successor is unsafe; an `OwnedFd` keeps what that asks for")]
    let timer = AsyncFd::new(timer)?;
    loop {
        let mut ready = timer.readable().await?;
        let mut rung = [0; 8];
        match rustix::io::read(timer.get_ref(), &mut rung) {
            Ok(_) | Err(Errno::CANCELED) => return Ok(()),
            Err(Errno::AGAIN) => ready.clear_ready(),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::clock;

    #[tokio::test]
    async fn it_rings_at_its_instant_and_not_before() {
        let due = clock::now() + chrono::TimeDelta::milliseconds(20);
        at(due).await.unwrap();
        assert!(clock::now() >= due);
    }

    #[tokio::test]
    async fn what_has_passed_rings_at_once() {
        at(DateTime::UNIX_EPOCH).await.unwrap();
        at(clock::now() - chrono::TimeDelta::days(9)).await.unwrap();
    }
}
