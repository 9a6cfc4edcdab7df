//! A back-off: how often something failed in a row and when it may be tried again. It dies with what it belongs to
//! (kubelet-volumes I11).

use crate::time::{Nanos, Time};
use alloc::boxed::Box;

/// See the file's head. Most things never fail: what did not fail takes a pointer's room.
#[derive(Default, Clone, Debug, PartialEq, Eq, bincode::Encode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct Retry(Option<Box<Failing>>);

#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
struct Failing {
    failures: u32,
    until: Time,
}

impl Retry {
    /// Nothing failed.
    pub(super) const NONE: Retry = Retry(None);
    /// As it was told elsewhere.
    #[cfg(feature = "serde")]
    pub(crate) fn told(failures: u32, until: Option<Time>) -> Retry {
        Retry(until.map(|until| Box::new(Failing { failures, until })))
    }
    /// Failures in a row.
    pub fn failures(&self) -> u32 {
        self.0.as_ref().map_or(0, |failing| failing.failures)
    }
    /// Not before; `None`: at once.
    pub fn until(&self) -> Option<Time> {
        self.0.as_ref().map(|failing| failing.until)
    }
    /// Counts a failure: the next try is `initial`, doubled per earlier failure, at most `max`, after `now`.
    pub fn fail(&mut self, now: Time, initial: Nanos, max: Nanos) {
        let failures = self.failures().saturating_add(1);
        self.0 = Some(Box::new(Failing { failures, until: now.after(backoff(failures, initial, max)) }));
    }
    /// Success, or a reason to try at once.
    pub fn clear(&mut self) {
        self.0 = None;
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
