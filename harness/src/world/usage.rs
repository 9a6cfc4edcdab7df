//! What takes up space on the host, and when the agent hears how much.

use super::choice::Choice;
use super::{World, WorldError, latency};
use crate::scenario::{PodRef, Used};
use nodefold_core::event::{Fact, UsageOf};
use nodefold_core::ids::PodUid;

impl World {
    /// From now on this takes up so much. False: no such thing is on the host.
    pub fn takes_up(&mut self, name: &PodRef, used: &Used, bytes: u64) -> bool {
        let Some(pod) = self.server.uid(name) else { return false };
        if self.used(pod, used).is_none() {
            return false;
        }
        self.usage.insert((pod, used.clone()), bytes);
        if self.agent.is_alive() {
            let measured = Choice::UsageMeasured { pod, subject: used.to_string() };
            self.pending.insert(measured, self.now.after(latency::USAGE_MEASURED));
        }
        true
    }

    /// The agent measures, and hears how much it is by then.
    pub(super) fn usage_measured(&mut self, pod: PodUid, subject: &str) -> Result<(), WorldError> {
        let found = self.usage.iter().find(|((of, used), _)| *of == pod && used.to_string() == subject);
        let Some(((_, used), bytes)) = found.map(|(key, bytes)| (key.clone(), *bytes)) else { return Ok(()) };
        match self.used(pod, &used) {
            Some(of) => self.tell(Fact::UsageReported { pod, of, bytes }),
            // Gone meanwhile: it takes up nothing any more.
            None => {
                self.usage.remove(&(pod, used));
                Ok(())
            }
        }
    }

    /// A new agent measures everything.
    pub(super) fn measure_all(&mut self) {
        let due = self.now.after(latency::USAGE_MEASURED);
        for (pod, used) in self.usage.keys() {
            self.pending.insert(Choice::UsageMeasured { pod: *pod, subject: used.to_string() }, due);
        }
    }

    fn used(&self, pod: PodUid, used: &Used) -> Option<UsageOf> {
        match used {
            Used::Volume(name) => self.mounts.life(pod, name).map(|volume| UsageOf::Volume(volume.clone())),
            Used::Container(name) => {
                self.runtime.running(pod, name).map(|container| UsageOf::Container(container.clone()))
            }
        }
    }
}
