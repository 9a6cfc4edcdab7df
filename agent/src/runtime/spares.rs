//! Spare processes: each pod's shim keeps one that is already in control groups of its own and has made what surrounds a
//! container. To move a process into a group of version 1 the kernel may wait for a grace period, many milliseconds; so it is
//! done before anybody waits for it.

use super::{Runtime, Sandbox, pod_group};
use crate::confine;
use crate::failpoint;
use crate::fault::{Attempt, Fault};
use crate::pod::plan::Stage;
use crate::pod::wire::{Answer, Ask};
use crossbeam_channel::Receiver;
use nodefold_core::ids::PodUid;
use std::sync::{Arc, PoisonError};

/// A thread that prepares a spare process wherever one is wanted, until the runtime is gone.
pub(super) fn keep(runtime: &Arc<Runtime>, wanted: Receiver<(PodUid, u32)>) -> Result<(), Fault> {
    let runtime = Arc::downgrade(runtime);
    let prepare = move || {
        for (pod, attempt) in wanted {
            let Some(runtime) = runtime.upgrade() else { return };
            // Without one, the next container takes longer.
            runtime.prepare(pod, attempt).ok();
        }
    };
    std::thread::Builder::new().name("spares".into()).spawn(prepare).attempt(|| "start a thread").map(drop)
}

/// The control group of a slot.
fn slot_group(pod: PodUid, slot: &str) -> String {
    format!("{}/{slot}", pod_group(pod))
}

/// What the slots of a sandbox are called, up to their number.
fn slots_of(attempt: u32) -> String {
    format!("slot.{attempt}.")
}

impl Sandbox {
    /// Waits until nobody is preparing a spare process in it: who looks next sees that it is being stopped.
    pub(super) fn until_prepared(&self) {
        drop(self.preparing.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn new_slot(&mut self, attempt: u32) -> String {
        let slot = format!("{}{}", slots_of(attempt), self.next_slot);
        self.next_slot += 1;
        slot
    }
}

impl Runtime {
    /// What surrounds a container that asks for nothing special.
    fn common_stage(&self) -> Stage {
        let all = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
        Stage {
            privileged: false,
            host_pid: false,
            masked: all(&confine::MASKED),
            read_only: all(&confine::READ_ONLY),
            cgroups: self.cgroups.shown(),
        }
    }

    /// Has a spare process prepared in a sandbox, soon.
    pub(super) fn want_spare(&self, pod: PodUid, attempt: u32) {
        self.wanting.send((pod, attempt)).ok();
    }

    /// A slot for a container: that of the spare process, if it has made what the container needs, or a new one. Its groups are
    /// there.
    pub(super) fn take_slot(&self, pod: PodUid, attempt: u32, stage: &Stage) -> Result<String, Fault> {
        let is_common = *stage == self.common_stage();
        let (spare, slot) = {
            let mut state = self.lock();
            let sandbox = state.sandboxes.get_mut(&(pod, attempt));
            let sandbox = sandbox.ok_or_else(|| Fault::refused("its sandbox is gone"))?;
            let spare = sandbox.spare.take_if(|_| is_common);
            (spare.is_some(), spare.unwrap_or_else(|| sandbox.new_slot(attempt)))
        };
        if !spare {
            self.cgroups.make(&slot_group(pod, &slot))?;
        }
        Ok(slot)
    }

    fn prepare(&self, pod: PodUid, attempt: u32) -> Result<(), Fault> {
        let sandbox = self.lock().sandboxes.get(&(pod, attempt)).cloned();
        let Some(sandbox) = sandbox else { return Ok(()) };
        let _held = sandbox.preparing.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = {
            let mut state = self.lock();
            let Some(sandbox) = state.sandboxes.get_mut(&(pod, attempt)) else { return Ok(()) };
            if sandbox.stopping || !sandbox.keeps_spares || sandbox.spare.is_some() {
                return Ok(());
            }
            sandbox.new_slot(attempt)
        };
        let group = slot_group(pod, &slot);
        let prepared = self.prepare_in(&sandbox, &slot, &group);
        match (&prepared, self.lock().sandboxes.get_mut(&(pod, attempt))) {
            (Ok(()), Some(sandbox)) => sandbox.spare = Some(slot),
            _ => self.cgroups.kill(&group).and_then(|()| self.cgroups.remove(&group))?,
        }
        prepared
    }

    fn prepare_in(&self, sandbox: &Sandbox, slot: &str, group: &str) -> Result<(), Fault> {
        self.cgroups.make(group)?;
        failpoint::hit("spare.grouped");
        let entrance = self.cgroups.entrance(group)?;
        let into: Vec<_> = entrance.into.into_iter().collect();
        let ask = Ask::Prepare { slot: slot.to_owned(), stage: self.common_stage() };
        let pid = match sandbox.link.call(ask, &into)? {
            (Answer::Parked { pid }, _) => pid.to_string(),
            (other, _) => return Err(Fault::uncertain(format!("the shim answered {other:?} to a prepare"))),
        };
        failpoint::hit("spare.asked");
        for procs in &entrance.joins {
            rustix::io::write(procs, pid.as_bytes()).attempt(|| format!("put a process into {group}"))?;
        }
        sandbox.link.call(Ask::Placed { slot: slot.to_owned() }, &[]).map(drop)
    }

    /// Finds the slots of a sandbox that an earlier agent left: the one in which a process waits is a spare, empty ones go.
    pub(super) fn find_slots(&self, pod: PodUid, attempt: u32) -> Result<(), Fault> {
        let (mut spare, mut next) = (None, 0);
        let mut slots: Vec<(u32, String)> = self.slots(pod, attempt);
        slots.sort_unstable();
        for (number, slot) in slots {
            next = number.saturating_add(1);
            let group = slot_group(pod, &slot);
            if self.lock().containers.iter().any(|((of, _), known)| *of == pod && known.group == group) {
                continue;
            }
            if self.cgroups.is_populated(&group) {
                spare = Some(slot);
            } else {
                self.cgroups.remove(&group)?;
            }
        }
        if let Some(sandbox) = self.lock().sandboxes.get_mut(&(pod, attempt)) {
            sandbox.next_slot = next;
            sandbox.spare = spare;
        }
        self.want_spare(pod, attempt);
        Ok(())
    }

    /// Removes what is left of a sandbox's slots.
    pub(super) fn remove_slots(&self, pod: PodUid, attempt: u32) -> Result<(), Fault> {
        self.slots(pod, attempt).iter().try_for_each(|(_, slot)| {
            let group = slot_group(pod, slot);
            self.cgroups.kill(&group)?;
            self.cgroups.remove(&group)
        })
    }

    /// The slots of a sandbox that have groups, by number.
    fn slots(&self, pod: PodUid, attempt: u32) -> Vec<(u32, String)> {
        let groups = self.cgroups.below(&pod_group(pod));
        let numbered = groups.into_iter().filter_map(|name| {
            let number = name.strip_prefix(&slots_of(attempt))?.parse().ok()?;
            Some((number, name))
        });
        numbered.collect()
    }
}
