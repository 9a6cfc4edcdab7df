//! Time as the core knows it: a number that arrives with a fact. Nothing here reads a clock.

use core::fmt;

/// Nanoseconds since the Unix epoch, as the event that carries it says.
#[derive(
    Copy, Default, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, bincode::Encode, bincode::Decode,
)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
#[cfg_attr(feature = "rkyv", rkyv(derive(PartialEq, Eq, PartialOrd, Ord)))]
pub struct Time(pub u64);

/// A length of time in nanoseconds.
#[derive(
    Copy, Default, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, bincode::Encode, bincode::Decode,
)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
#[cfg_attr(feature = "rkyv", rkyv(derive(PartialEq, Eq, PartialOrd, Ord)))]
pub struct Nanos(pub u64);

impl Nanos {
    /// No time at all.
    pub const ZERO: Nanos = Nanos(0);
    /// Whole milliseconds.
    pub const fn millis(n: u64) -> Nanos {
        Nanos(n.saturating_mul(1_000_000))
    }
    /// Whole seconds.
    pub const fn secs(n: u64) -> Nanos {
        Nanos(n.saturating_mul(1_000_000_000))
    }
    /// Whole seconds in it, rounded down.
    pub const fn as_secs(self) -> u64 {
        self.0 / 1_000_000_000
    }
    /// Twice as long, at most `cap`.
    pub const fn doubled(self, cap: Nanos) -> Nanos {
        let twice = self.0.saturating_mul(2);
        if twice > cap.0 { cap } else { Nanos(twice) }
    }
    /// The longer of two.
    pub fn max(self, other: Nanos) -> Nanos {
        if self.0 >= other.0 { self } else { other }
    }
    /// What is left of it after `used`.
    pub const fn less(self, used: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(used.0))
    }
}

impl Time {
    /// This moment plus a length, saturating (hostile input must not wrap around into the past).
    pub const fn after(self, d: Nanos) -> Time {
        Time(self.0.saturating_add(d.0))
    }
    /// How long since `earlier`; zero if it is later.
    pub const fn since(self, earlier: Time) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
    /// Cut to whole seconds, as Kubernetes' timestamps are.
    pub const fn whole_seconds(self) -> Time {
        Time(self.0 / 1_000_000_000 * 1_000_000_000)
    }
}

impl fmt::Display for Nanos {
    /// As Go prints a duration, near enough to read: `1m30s`, `10s`, `500ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (secs, millis) = (self.as_secs(), self.0 / 1_000_000 % 1000);
        match (secs / 3600, secs / 60 % 60, secs % 60) {
            (0, 0, 0) => write!(f, "{millis}ms"),
            (0, 0, s) if millis > 0 => write!(f, "{s}.{millis:03}s"),
            (0, 0, s) => write!(f, "{s}s"),
            (0, m, s) => write!(f, "{m}m{s}s"),
            (h, m, s) => write!(f, "{h}h{m}m{s}s"),
        }
    }
}
