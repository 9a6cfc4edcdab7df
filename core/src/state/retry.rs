//! A back-off: how often something failed in a row and when it may be tried again. It dies with what it belongs to
//! (kubelet-volumes I11).

use crate::time::{Nanos, Time};

/// See the file's head.
#[derive(Default, Clone, Debug, PartialEq, Eq, bincode::Encode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct Retry {
    /// Failures in a row.
    pub failures: u32,
    /// Not before; `None`: at once.
    pub until: Option<Time>,
}

impl Retry {
    /// Counts a failure: the next try is `initial`, doubled per earlier failure, at most `max`, after `now`.
    pub fn fail(&mut self, now: Time, initial: Nanos, max: Nanos) {
        self.failures = self.failures.saturating_add(1);
        self.until = Some(now.after(backoff(self.failures, initial, max)));
    }
    /// Success, or a reason to try at once.
    pub fn clear(&mut self) {
        *self = Retry::default();
    }
}

/// The delay after the `n`th failure in a row (from 1): `initial`, 2×, 4×, ... up to `max`.
pub fn backoff(n: u32, initial: Nanos, max: Nanos) -> Nanos {
    let mut delay = initial;
    for _ in 1..n.min(64) {
        delay = delay.doubled(max);
    }
    if delay > max { max } else { delay }
}
