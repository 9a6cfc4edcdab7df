//! Finding again what is there: shims that outlived an agent, containers with them, and records of those that ended.

use super::containers::plan_in;
use super::{Known, Phase, Runtime, container_group, exit};
use crate::fault::{Attempt, Fault};
use crate::layout;
use crate::pod::plan::{ExitRecord, SandboxPlan};
use crate::pod::wire::{Answer, Ask, ListedState};
use nodefold_core::event::{SeenContainer, SeenSandbox, SeenState};
use nodefold_core::ids::{ContainerId, Name, PodUid};
use nodefold_core::time::Time;
use std::fs;
use std::path::Path;
use std::sync::Arc;

impl Runtime {
    /// Connects to every shim that lives, and takes over what it has. Of a sandbox whose shim is dead, what still runs is
    /// killed: nobody could hold it.
    pub(super) fn adopt(self: &Arc<Runtime>) -> Result<(), Fault> {
        let on_disk = self.sandboxes_on_disk()?;
        for (pod, attempt) in &on_disk {
            // Before anybody else can be given them.
            if let Some(ids) = self.sandbox_plan(*pod, *attempt).and_then(|plan| plan.users) {
                self.lock().users.insert(*pod, ids);
            }
        }
        for (pod, attempt) in on_disk {
            match self.connect(pod, attempt, None) {
                Ok(()) => self.take_over(pod, attempt)?,
                Err(_) => {
                    self.lock().sandboxes.remove(&(pod, attempt));
                    self.bury(pod, attempt)?;
                }
            }
        }
        self.sweep()
    }

    /// Removes what belongs to no sandbox: what an agent left that died between the last of a pod and the pod's own. Nothing
    /// of it can run, or be asked for again.
    fn sweep(&self) -> Result<(), Fault> {
        let run = self.layout.run().join("pods");
        for pod in names_in(&run)? {
            // Only an empty one goes.
            fs::remove_dir(run.join(&pod)).ok();
        }
        let is_here = |pod: &str| run.join(pod).exists();
        for group in self.cgroups.pods() {
            if group.strip_prefix("pod").is_none_or(|pod| !is_here(pod)) {
                self.cgroups.kill(&group)?;
                // Killed a moment ago: what is still busy goes with the next start.
                self.cgroups.remove(&group).ok();
            }
        }
        for dir in names_in(&self.layout.logs().join("pods"))? {
            if !dir.rsplit('_').next().is_some_and(is_here) {
                super::remove_dir(&self.layout.logs().join("pods").join(dir))?;
            }
        }
        Ok(())
    }

    fn sandboxes_on_disk(&self) -> Result<Vec<(PodUid, u32)>, Fault> {
        let mut found = Vec::new();
        for pod in names_in(&self.layout.run().join("pods"))? {
            let Some(uid) = layout::pod_of_dir(&pod) else { continue };
            for attempt in names_in(&self.layout.run().join("pods").join(&pod))? {
                found.extend(attempt.parse().ok().map(|attempt| (uid, attempt)));
            }
        }
        Ok(found)
    }

    /// The containers of a shim that lives.
    fn take_over(&self, pod: PodUid, attempt: u32) -> Result<(), Fault> {
        let link = self.lock().sandboxes.get(&(pod, attempt)).map(|sandbox| sandbox.link.clone());
        let Some(link) = link else { return Ok(()) };
        let (listed, pidfds) = match link.call(Ask::List, &[])? {
            (Answer::Listed(listed), pidfds) => (listed, pidfds),
            (other, _) => return Err(Fault::uncertain(format!("the shim answered {other:?} to a list"))),
        };
        let mut pidfds = pidfds.into_iter().map(Arc::new);
        for one in listed {
            let (phase, pidfd) = match one.state {
                ListedState::Created => (Phase::Created, pidfds.next()),
                ListedState::Running { started_at } => (Phase::Running { started_at }, pidfds.next()),
                ListedState::Ended(record) => (Phase::Ended(record), None),
            };
            let Some(id) = layout::container_of_file(&one.id) else { continue };
            if let (Some(watch), Some(pidfd)) = (self.watch(), &pidfd) {
                let started_at = match &phase {
                    Phase::Running { started_at } => Some(*started_at),
                    Phase::Created | Phase::Ended(_) => None,
                };
                watch.add((pod, id.clone()), pidfd.clone(), started_at);
            }
            let plan = plan_in(&self.container_dir(pod, attempt, &id));
            let group = container_group(pod, &id, plan.as_ref());
            let storage = plan.map(|plan| plan.storage).unwrap_or_default();
            let mut known = Known::new(attempt, group, pidfd, phase, storage);
            if let Phase::Ended(record) = &known.phase {
                known.last_words = self.last_words(pod, attempt, &id, record);
            }
            self.lock().containers.insert((pod, id), known);
        }
        // A directory without a container: an agent died between the two. Nothing runs in it.
        for file in names_in(&self.sandbox_dir(pod, attempt).join("c"))? {
            let Some(id) = layout::container_of_file(&file) else { continue };
            if !self.lock().containers.contains_key(&(pod, id.clone())) {
                let dir = self.container_dir(pod, attempt, &id);
                let group = container_group(pod, &id, plan_in(&dir).as_ref());
                self.cgroups.kill(&group)?;
                super::remove_dir(&dir)?;
                self.cgroups.remove(&group)?;
            }
        }
        self.find_slots(pod, attempt)
    }

    /// The containers of a shim that is dead: those whose end it wrote down, and those that are ended now.
    fn bury(&self, pod: PodUid, attempt: u32) -> Result<(), Fault> {
        for file in names_in(&self.sandbox_dir(pod, attempt).join("c"))? {
            let Some(id) = layout::container_of_file(&file) else { continue };
            let dir = self.container_dir(pod, attempt, &id);
            let plan = plan_in(&dir);
            let group = container_group(pod, &id, plan.as_ref());
            let record = match read_record(&dir) {
                Some(record) => record,
                None => {
                    self.cgroups.kill(&group)?;
                    let record = unseen_end();
                    let text =
                        serde_json::to_vec(&record).map_err(|error| Fault::refused(error.to_string()))?;
                    crate::volumes::write_whole(&crate::beneath::open_root(&dir)?, "exit.json", &text)?;
                    record
                }
            };
            let last_words = self.last_words(pod, attempt, &id, &record);
            let mut known = Known::new(attempt, group, None, Phase::Ended(record), Default::default());
            known.last_words = last_words;
            self.lock().containers.insert((pod, id), known);
        }
        Ok(())
    }

    /// Everything that is here. Complete: whatever is missing from it is not on this host.
    pub fn observe(&self) -> Result<(Vec<SeenSandbox>, Vec<SeenContainer>), Fault> {
        let on_disk = self.sandboxes_on_disk()?;
        let state = self.lock();
        let sandboxes = on_disk
            .iter()
            .map(|(pod, attempt)| SeenSandbox {
                pod: *pod,
                attempt: *attempt,
                ready: state
                    .sandboxes
                    .get(&(*pod, *attempt))
                    .is_some_and(|sandbox| !sandbox.link.is_closed()),
                ip: self.address_of(*pod, *attempt),
            })
            .collect();
        let containers = state
            .containers
            .iter()
            .map(|((pod, id), known)| SeenContainer {
                pod: *pod,
                container: ContainerId::clone(id),
                state: match &known.phase {
                    Phase::Created => SeenState::Created,
                    Phase::Running { started_at } => SeenState::Running { started_at: Time(*started_at) },
                    Phase::Ended(record) => SeenState::Exited(exit(record)),
                },
            })
            .collect();
        Ok((sandboxes, containers))
    }
}

impl Runtime {
    /// The address that a sandbox was made with.
    fn address_of(&self, pod: PodUid, attempt: u32) -> Option<Name> {
        let plan = self.sandbox_plan(pod, attempt)?;
        (!plan.host_network).then(|| super::POD_ADDRESS.into())
    }

    /// What a sandbox was made with.
    pub(super) fn sandbox_plan(&self, pod: PodUid, attempt: u32) -> Option<SandboxPlan> {
        plan_of_sandbox(&self.sandbox_dir(pod, attempt))
    }
}

/// What the sandbox of a directory was made with.
pub(super) fn plan_of_sandbox(dir: &Path) -> Option<SandboxPlan> {
    serde_json::from_slice(&fs::read(dir.join("sandbox.json")).ok()?).ok()
}

fn read_record(dir: &Path) -> Option<ExitRecord> {
    serde_json::from_slice(&fs::read(dir.join("exit.json")).ok()?).ok()
}

/// Nobody saw how it ended: that is failure, never success (DESIGN §4 rule 8).
fn unseen_end() -> ExitRecord {
    ExitRecord {
        code: 137,
        signal: None,
        out_of_memory: false,
        start_error: None,
        started_at: None,
        finished_at: crate::clock::now().0,
    }
}

fn names_in(dir: &Path) -> Result<Vec<String>, Fault> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).attempt(|| format!("list {}", dir.display())),
    };
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    Ok(names)
}
