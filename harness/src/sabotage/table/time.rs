//! Wrong about time: never wakes, always wakes, or knows no delay.

use super::super::memory::PodMemory;
use super::super::{Saboteur, Wrong};
use nodefold_core::time::{Nanos, Time};
use nodefold_model::Invariant;

pub(super) static TABLE: &[Saboteur] = &[
    Saboteur {
        name: "never-wakes",
        about: "Waits for a time and tells nobody when that is, unless a pod is ending.",
        races: &["B33"],
        breaks: Invariant::L5,
        // What was due long ago is begun by the fact that wakes it, and that may tell the pod's deletion.
        also: &[Invariant::S7],
        // A stop's deadline that passes unheard would be another wrong (S15).
        wrong: &[Wrong::Wakes(|memory, due| due.filter(|_| memory.pods.values().any(PodMemory::is_ending)))],
        story: "missing-secret",
    },
    Saboteur {
        name: "wakes-for-nothing",
        about: "Asks to be woken at a time that has passed, again and again.",
        races: &["B36"],
        breaks: Invariant::L4,
        also: &[],
        wrong: &[Wrong::Wakes(|_, due| due.map(|_| Time(1)))],
        story: "missing-secret",
    },
    Saboteur {
        name: "mounts-without-delay",
        about: "Tries a failed mount again at once, without any back-off.",
        races: &["V24"],
        breaks: Invariant::L4,
        also: &[],
        wrong: &[Wrong::Believes(|config| {
            config.timing.volume_backoff_initial = Nanos::millis(100);
            config.timing.volume_backoff_max = Nanos::millis(100);
        })],
        story: "what-never-comes",
    },
    Saboteur {
        name: "pulls-without-delay",
        about: "Tries a failed pull again at once, without any back-off.",
        races: &["B35"],
        breaks: Invariant::L4,
        also: &[],
        wrong: &[Wrong::Believes(|config| {
            config.timing.pull_backoff_initial = Nanos::secs(1);
            config.timing.pull_backoff_max = Nanos::secs(1);
        })],
        story: "what-never-comes",
    },
    Saboteur {
        name: "restarts-without-delay",
        about: "Restarts a crashing container at once, without any back-off.",
        races: &["B35"],
        breaks: Invariant::L4,
        also: &[],
        wrong: &[Wrong::Believes(|config| {
            config.timing.crash_backoff_initial = Nanos::ZERO;
            config.timing.crash_backoff_max = Nanos::ZERO;
        })],
        story: "crashes-again-and-again",
    },
];
