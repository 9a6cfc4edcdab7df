//! A command becomes an operation: how long it takes, and whether it hangs.

use super::inflight::{InFlight, OpKey, OpKind, Phase};
use super::rules::Operation;
use super::runtime::State;
use super::{World, latency};
use crate::record::Record;
use nodefold_core::command::{Action, Command};
use nodefold_core::event::Hook;
use nodefold_core::ids::Name;
use nodefold_core::spec::{Container, PullPolicy, Volume, VolumeSource};
use nodefold_core::time::Nanos;
use serde_json::Value;

impl World {
    /// Takes a command on.
    pub(super) fn accept(&mut self, command: Command) {
        match OpKind::of(&command.action) {
            Some(kind) => self.begin(kind, command),
            None => self.probing_changes(&command),
        }
    }

    fn begin(&mut self, kind: OpKind, command: Command) {
        let mut key = OpKey::of(kind, &command);
        while self.inflight.contains_key(&key) {
            key.repeat += 1;
        }
        let takes = self.duration(&key, &command);
        self.inflight.insert(key.clone(), InFlight::begins(command, self.now.after(takes)));
        self.hold_if_ruled(&key);
    }

    /// How long the operation takes.
    fn duration(&self, key: &OpKey, command: &Command) -> Nanos {
        match &command.action {
            Action::MountVolume { spec, .. } => self.mount_time(key, spec),
            Action::PullImage { image, policy, .. } => self.pull_time(key, image, *policy),
            Action::RunHook { hook, timeout, spec, .. } => {
                let runs = hook_time(spec, *hook).unwrap_or(latency::of(key));
                timeout.map_or(runs, |limit| Nanos(runs.0.min(limit.0)))
            }
            Action::UnmountVolume { .. }
            | Action::RefreshVolume { .. }
            | Action::CreateSandbox { .. }
            | Action::StopSandbox { .. }
            | Action::RemoveSandbox { .. }
            | Action::CreateContainer { .. }
            | Action::StartContainer { .. }
            | Action::StopContainer { .. }
            | Action::KillContainer { .. }
            | Action::RemoveContainer { .. }
            | Action::ResizeContainer { .. }
            | Action::ResizePod { .. }
            | Action::StartProbe { .. }
            | Action::StopProbe { .. }
            | Action::ObserveMounts
            | Action::ObserveRuntime
            | Action::PublishStatus { .. }
            | Action::RecordEvent(_)
            | Action::ReleasePod
            | Action::CreateMirror { .. }
            | Action::DeleteMirror { .. } => latency::of(key),
        }
    }

    /// An image volume is mounted once its image is there.
    fn mount_time(&self, key: &OpKey, spec: &Volume) -> Nanos {
        let mount = latency::of_mount(key, spec);
        match &spec.source {
            VolumeSource::Image { reference, pull_policy } => {
                self.images.pull_time(reference, *pull_policy, mount)
            }
            VolumeSource::EmptyDir { .. }
            | VolumeSource::ConfigMap(_)
            | VolumeSource::Secret(_)
            | VolumeSource::DownwardApi
            | VolumeSource::Projected(_)
            | VolumeSource::HostPath
            | VolumeSource::Unsupported { .. } => mount,
        }
    }

    fn pull_time(&self, key: &OpKey, image: &Name, policy: PullPolicy) -> Nanos {
        latency::vary(self.images.pull_time(image, policy, latency::of(key)), key)
    }

    /// Stops the clock of an operation that a rule holds.
    pub(super) fn hold_if_ruled(&mut self, key: &OpKey) {
        if !self.is_op_held(key) {
            return;
        }
        let (at, now) = (self.now, self.now);
        let name = self.label_of_operation(key);
        if let Some(op) = self.inflight.get_mut(key) {
            match op.phase {
                Phase::Running { due } => {
                    op.phase = Phase::Held { remaining: due.since(now) };
                    self.records.push(Record::Held { at, operation: name });
                }
                Phase::Held { .. } | Phase::Done { .. } => {}
            }
        }
    }

    /// A rule holds the operation. A sandbox can't be stopped while the stop of a container in it hangs.
    pub(super) fn is_op_held(&self, key: &OpKey) -> bool {
        let Some(op) = self.inflight.get(key) else { return false };
        let Some(operation) = Operation::covering(key.kind) else { return false };
        if self.is_held(operation, key.pod, op.command.action.about().name()) {
            return true;
        }
        key.kind == OpKind::StopSandbox
            && self.runtime.of_pod(key.pod).any(|(id, container)| {
                matches!(container.state, State::Running { .. })
                    && self.is_held(Operation::Stop, key.pod, &id.name)
            })
    }
}

/// How long a hook runs by its own definition: a `sleep` handler says so.
fn hook_time(spec: &Container, hook: Hook) -> Option<Nanos> {
    let rest: Value = serde_json::from_str(&spec.rest.0).ok()?;
    let handler = match hook {
        Hook::PostStart => "postStart",
        Hook::PreStop => "preStop",
    };
    rest["lifecycle"][handler]["sleep"]["seconds"].as_u64().map(Nanos::secs)
}
