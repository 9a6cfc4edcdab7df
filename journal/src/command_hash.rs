//! The running hash of the commands given out: by it another version of the reducer, whose state may look different,
//! still says at which batch it would decide otherwise.
//!
//! It covers the operation, the pod and the action with all its arguments. Not the cause: a rule may be renamed without
//! anything being decided otherwise. An action is named by its verb, not by its place in the enum, for the same reason.

use nodefold_core::codec;
use nodefold_core::command::{Action, Command};
use nodefold_core::ids::PodUid;
use nodefold_core::spec::{Pod, PodSpec};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use xxhash_rust::xxh3::xxh3_128;

/// Pods whose hashes are remembered; a bound on memory, not on pods.
const REMEMBERED_PODS: usize = 1 << 17;

/// The running hash.
#[derive(Clone, Debug, Default)]
pub struct CommandHash {
    value: u128,
    scratch: Vec<u8>,
    pods: BTreeMap<PodUid, Shared>,
}

/// The hashes of what a pod's commands carry again and again. Weak: the hash must not keep an old spec alive, and while
/// a `Weak` exists no other value gets its address.
#[derive(Clone, Debug, Default)]
struct Shared {
    pod: (Weak<Pod>, u128),
    allocated: (Weak<PodSpec>, u128),
}

impl CommandHash {
    /// Goes on from a recorded value.
    pub fn resume(value: u128) -> CommandHash {
        CommandHash { value, ..CommandHash::default() }
    }

    /// The hash over all commands so far; zero before the first.
    pub fn value(&self) -> u128 {
        self.value
    }

    /// Adds commands, in the order in which they were given.
    pub fn add(&mut self, commands: &[Command]) {
        for command in commands {
            let mut bytes = std::mem::take(&mut self.scratch);
            bytes.clear();
            codec::encode(&self.value, &mut bytes);
            codec::encode(&(command.op, command.pod), &mut bytes);
            self.action(command.pod, &command.action, &mut bytes);
            self.value = xxh3_128(&bytes);
            self.scratch = bytes;
        }
    }

    fn action(&mut self, uid: PodUid, action: &Action, out: &mut Vec<u8>) {
        codec::encode(&action.verb(), out);
        match action {
            Action::MountVolume { volume, spec, pod, allocated }
            | Action::RefreshVolume { volume, spec, pod, allocated } => {
                codec::encode(&(volume, spec), out);
                self.pod(uid, pod, allocated, out);
            }
            Action::UnmountVolume { volume, spec } => codec::encode(&(volume, spec), out),
            Action::PullImage { container, image, policy } => codec::encode(&(container, image, policy), out),
            Action::CreateSandbox { attempt, pod, allocated } => {
                codec::encode(attempt, out);
                self.pod(uid, pod, allocated, out);
            }
            Action::StopSandbox { attempt } | Action::RemoveSandbox { attempt } => {
                codec::encode(attempt, out)
            }
            Action::CreateContainer { container, spec, mounts, sandbox, pod, allocated } => {
                codec::encode(&(container, spec, mounts, sandbox), out);
                self.pod(uid, pod, allocated, out);
            }
            Action::StartContainer { container }
            | Action::KillContainer { container }
            | Action::RemoveContainer { container } => codec::encode(container, out),
            Action::StopContainer { container, grace } => codec::encode(&(container, grace), out),
            Action::ResizeContainer { container, resources } => codec::encode(&(container, resources), out),
            Action::ResizePod { resources } => codec::encode(resources, out),
            Action::RunHook { container, hook, timeout, spec } => {
                codec::encode(&(container, hook, timeout, spec), out);
            }
            Action::StartProbe { container, probe, spec } => codec::encode(&(container, probe, spec), out),
            Action::StopProbe { container, probe } => codec::encode(&(container, probe), out),
            Action::ObserveMounts | Action::ObserveRuntime => {}
            Action::PublishStatus { status, mirror } => {
                codec::encode(status, out);
                if let Some(mirror) = mirror {
                    codec::encode(mirror, out);
                }
            }
            Action::RecordEvent(event) => codec::encode(event, out),
            Action::ReleasePod => {
                self.pods.remove(&uid);
            }
            Action::CreateMirror { pod } => codec::encode(pod, out),
            Action::DeleteMirror { namespace, name } => codec::encode(&(namespace, name), out),
        }
    }

    /// A pod and its allocation, each hashed once and not with every command that carries it.
    fn pod(&mut self, uid: PodUid, pod: &Arc<Pod>, allocated: &Arc<PodSpec>, out: &mut Vec<u8>) {
        if self.pods.len() >= REMEMBERED_PODS {
            self.pods.clear();
        }
        let shared = self.pods.entry(uid).or_default();
        if shared.pod.0.as_ptr() != Arc::as_ptr(pod) {
            shared.pod = (Arc::downgrade(pod), codec::hash(&**pod).0);
        }
        if shared.allocated.0.as_ptr() != Arc::as_ptr(allocated) {
            shared.allocated = (Arc::downgrade(allocated), codec::hash(&**allocated).0);
        }
        codec::encode(&(shared.pod.1, shared.allocated.1), out);
    }
}
