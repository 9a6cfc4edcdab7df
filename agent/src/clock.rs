//! The node's clock: the one place that reads it. What it says goes into facts; nothing else asks.

use nodefold_core::time::{Nanos, Time};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Nanoseconds since the Unix epoch, by the host's clock. It may be set back; a driver makes facts' times not go back.
pub fn now() -> Time {
    let at = clock_gettime(ClockId::Realtime);
    let (seconds, nanos) = (u64::try_from(at.tv_sec).unwrap_or(0), u64::try_from(at.tv_nsec).unwrap_or(0));
    Time(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}

/// A moment that never goes back, for measuring how long something takes.
pub fn monotonic() -> Nanos {
    let at = clock_gettime(ClockId::Monotonic);
    let (seconds, nanos) = (u64::try_from(at.tv_sec).unwrap_or(0), u64::try_from(at.tv_nsec).unwrap_or(0));
    Nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}

/// Lets time pass, for a driver that has nothing else to wait for.
pub fn pause(time: Nanos) {
    // Woken early by a signal: the caller looks at the clock again.
    let _: rustix::thread::NanosleepRelativeResult = rustix::thread::nanosleep(&timespec(time));
}

/// A span as system calls take it.
pub fn timespec(time: Nanos) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(time.0 / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (time.0 % 1_000_000_000) as _,
    }
}
