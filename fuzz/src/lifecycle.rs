//! The bytes are the chooser of the harness's world: they draw a profile, then decide who asks for what and what goes wrong,
//! with all oracles and refinement on; then faults stop, and everything must converge.

use super::choices::Bytes;
use nodefold_harness::swarm::{Profile, SwarmOptions, play};

/// Nothing breaks. What broke is told with the history that breaks it again in any version: `nodefold shrink` takes it.
pub fn lifecycle(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let profile = Profile::draw(&mut bytes, &[], &[]);
    let report = play(0, &mut bytes, &profile, &SwarmOptions::default());
    if let Some(first) = report.broken.first() {
        panic!(
            "{}: {}\n{}",
            first.invariant,
            first.what,
            report.history.to_text("found by fuzzing", &report.profile)
        );
    }
}
