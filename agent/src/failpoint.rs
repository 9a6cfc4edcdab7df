//! Moments at which a test lets an agent die: between any two steps of set-up, teardown, create and start. In a release build
//! there is nothing here: a step's name is not even looked at.

/// Every step, in no order.
pub const STEPS: [&str; 36] = [
    "set-up.begun",
    "set-up.recorded",
    "set-up.placed",
    "set-up.mounted",
    "set-up.written",
    "set-up.done",
    "write.named",
    "write.filled",
    "write.linked",
    "write.swapped",
    "write.shown",
    "tear-down.begun",
    "tear-down.noted",
    "tear-down.emptied",
    "tear-down.unmounted",
    "tear-down.removed",
    "tear-down.forgotten",
    "tear-down.done",
    "sandbox.begun",
    "sandbox.grouped",
    "sandbox.planned",
    "sandbox.up",
    "sandbox.connected",
    "sandbox.stopped",
    "sandbox.removed",
    "spare.grouped",
    "spare.asked",
    "create.begun",
    "create.planned",
    "create.grouped",
    "create.rooted",
    "create.parked",
    "start.begun",
    "start.running",
    "remove.forgotten",
    "remove.done",
];

/// Passes a step.
#[inline(always)]
pub fn hit(step: &'static str) {
    #[cfg(debug_assertions)]
    armed::hit(step);
    #[cfg(not(debug_assertions))]
    let _ = step;
}

/// Lets this process die, without warning, when it passes a step for the nth time (from 1). False: this build can't.
pub fn arm(step: &str, nth: u64) -> bool {
    #[cfg(debug_assertions)]
    return armed::arm(step, nth);
    #[cfg(not(debug_assertions))]
    return {
        let _ = (step, nth);
        false
    };
}

#[cfg(debug_assertions)]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static ARMED: OnceLock<(String, AtomicU64)> = OnceLock::new();

    pub fn arm(step: &str, nth: u64) -> bool {
        super::STEPS.contains(&step) && ARMED.set((step.to_owned(), AtomicU64::new(nth))).is_ok()
    }

    pub fn hit(step: &'static str) {
        debug_assert!(super::STEPS.contains(&step), "{step} is in no list: no test walks through it");
        if let Some((armed, left)) = ARMED.get()
            && armed == step
            && left.fetch_sub(1, Ordering::SeqCst) == 1
        {
            // As anybody's KILL would: nothing is flushed, dropped or told.
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).ok();
            loop {
                std::thread::park();
            }
        }
    }
}
