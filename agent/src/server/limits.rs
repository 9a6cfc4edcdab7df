//! How much anybody may ask for: sizes, rates, watches, time. One place for all of them.

use super::failure::Failure;
use nodefold_core::time::Nanos;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The limits.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of a request's body: etcd's and Kubernetes' 3 MiB.
    pub body: usize,
    /// Bytes of a request's head.
    pub head: usize,
    /// Requests at once on one connection of HTTP/2.
    pub streams: u32,
    /// Programs at once that clients run in containers.
    pub programs: usize,
    /// Connections at once.
    pub connections: usize,
    /// A head must have arrived within this time.
    pub head_time: Duration,
    /// A body must have arrived within this time.
    pub body_time: Duration,
    /// A TLS handshake must be over within this time.
    pub handshake_time: Duration,
    /// A client that reads nothing for so long is left.
    pub write_time: Duration,
    /// Watches at once.
    pub watchers: usize,
    /// Changes that wait for one watcher.
    pub watch_queue: usize,
    /// Changes that are kept, so that a watch can go on from an earlier version.
    pub changes_kept: usize,
    /// Runs of containers that are remembered after their end, and so for volumes and allocations: older ones are read from the
    /// journal.
    pub history_kept: usize,
    /// Requests a second of one user, on average.
    pub rate: f64,
    /// Requests of one user at once.
    pub burst: f64,
    /// Requests that wait for the node's loop.
    pub waiting: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            body: 3 << 20,
            head: 64 << 10,
            streams: 250,
            programs: 100,
            connections: 2_000,
            head_time: Duration::from_secs(10),
            body_time: Duration::from_secs(30),
            handshake_time: Duration::from_secs(10),
            write_time: Duration::from_secs(30),
            watchers: 1_000,
            watch_queue: 1_000,
            changes_kept: 10_000,
            history_kept: 10_000,
            rate: 1_000.0,
            burst: 2_000.0,
            waiting: 1_000,
        }
    }
}

/// Requests that are refused before the node's loop hears of them are recorded, so many a second: a record costs more than the
/// refusal, and whoever is refused may come as often as they like.
const RECORDED_RATE: f64 = 20.0;

/// How many refusals may be recorded, and how many were not.
pub struct Recorded {
    rates: Rates,
    left_out: AtomicU64,
}

impl Recorded {
    /// None yet.
    pub fn new() -> Recorded {
        let limits = Limits { rate: RECORDED_RATE, burst: 10.0 * RECORDED_RATE, ..Limits::default() };
        Recorded { rates: Rates::new(&limits), left_out: AtomicU64::new(0) }
    }

    /// One more, now: how many were left out before it, if it may be recorded.
    pub fn take(&self, now: Nanos) -> Option<u64> {
        if self.rates.take("", now).is_err() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(self.left_out.swap(0, Ordering::Relaxed))
    }
}

/// Who asked how often lately: a bucket for each user, filled at the rate.
pub struct Rates {
    rate: f64,
    burst: f64,
    buckets: Mutex<BTreeMap<String, Bucket>>,
}

struct Bucket {
    filled: f64,
    /// When, by a clock that is never set.
    at: Nanos,
}

/// More users than this are not remembered: those whose buckets are full again go.
const MOST_BUCKETS: usize = 10_000;

impl Rates {
    /// Full buckets.
    pub fn new(limits: &Limits) -> Rates {
        Rates { rate: limits.rate, burst: limits.burst, buckets: Mutex::default() }
    }

    /// One more request of that user, now.
    pub fn take(&self, user: &str, now: Nanos) -> Result<(), Failure> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() > MOST_BUCKETS {
            let is_full = |bucket: &Bucket| bucket.filled + seconds(bucket.at, now) * self.rate >= self.burst;
            buckets.retain(|_, bucket| !is_full(bucket));
        }
        let bucket = buckets.entry(user.to_owned()).or_insert(Bucket { filled: self.burst, at: now });
        bucket.filled = (bucket.filled + seconds(bucket.at, now) * self.rate).min(self.burst);
        bucket.at = now;
        if bucket.filled < 1.0 {
            return Err(Failure::too_many_requests("too many requests, please try again later", 1));
        }
        bucket.filled -= 1.0;
        Ok(())
    }
}

fn seconds(from: Nanos, to: Nanos) -> f64 {
    to.0.saturating_sub(from.0) as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_recorded_is_counted() {
        let recorded = Recorded::new();
        let now = Nanos::secs(1);
        assert!((0..200).all(|_| recorded.take(now) == Some(0)));
        assert!((0..7).all(|_| recorded.take(now).is_none()));
        assert_eq!(recorded.take(Nanos::secs(2)), Some(7));
    }

    #[test]
    fn a_bucket_empties_and_fills_again_and_is_nobody_elses() {
        let limits = Limits { rate: 10.0, burst: 3.0, ..Limits::default() };
        let rates = Rates::new(&limits);
        let now = Nanos::secs(1);
        let later = Nanos(now.0 + Nanos::millis(150).0);
        assert!((0..3).all(|_| rates.take("a", now).is_ok()));
        let refused = rates.take("a", now);
        assert_eq!(refused.map_err(|failure| (failure.code, failure.retry_after())), Err((429, Some(1))));
        assert!(rates.take("b", now).is_ok());
        assert!(rates.take("a", later).is_ok());
        assert!(rates.take("a", later).is_err());
    }
}
