//! Room 1: record the fact. Writes down what the world says, and decides nothing: no command is given here but for
//! what a person should be told. A fact that fits nothing is an anomaly and changes nothing else.

mod container;
mod mirror;
mod recovery;
mod sandbox;
mod spec;
mod volume;

use crate::anomaly::AnomalyKind;
use crate::command::{Action, Commands, KubernetesEvent, Rule, Subject, Transition};
use crate::context::{Touched, text};
use crate::event::{Event, Fact};
use crate::ids::{Name, OpId, PodUid, Word};
use crate::node::State;
use crate::state::PodState;
use crate::time::Nanos;
use alloc::sync::Arc;

pub(crate) use container::end_instance;
pub(crate) use recovery::look_again;
pub(crate) use spec::{fail_with, forget_if_over, terminate, unsubscribe, wake_now};

/// One fact being recorded.
pub(crate) struct Recording<'a> {
    pub(crate) state: &'a mut State,
    /// How far the clock that stamps facts is behind the node's time: it was set back.
    pub(crate) behind: Nanos,
    pub(crate) touched: &'a mut Touched,
    pub(crate) out: &'a mut Commands,
}

/// Records the fact and notes which pods it touches.
pub(crate) fn observe(state: &mut State, event: &Event, touched: &mut Touched, out: &mut Commands) {
    let behind = state.now.since(event.at);
    let mut r = Recording { state, behind, touched, out };
    match &event.fact {
        Fact::Tick => {}
        Fact::PodApplied(pod) => spec::pod_applied(&mut r, pod),
        Fact::PodRemoved { pod } => spec::pod_removed(&mut r, *pod),
        Fact::SourceReady { source } => recovery::source_ready(&mut r, *source),
        Fact::ObjectSeen { object, version } => spec::object_changed(&mut r, object, Some(version)),
        Fact::ObjectGone { object } => spec::object_changed(&mut r, object, None),
        Fact::NodeChanged(node) => spec::node_changed(&mut r, node),
        Fact::ReadinessGate { pod, condition, met } => spec::readiness_gate(&mut r, *pod, condition, *met),
        Fact::VolumeMounted { op, pod, volume, renew_at, image_digest } => {
            volume::mounted(&mut r, *op, *pod, volume, *renew_at, image_digest)
        }
        Fact::VolumeMountFailed { op, pod, volume, error } => {
            volume::mount_failed(&mut r, *op, *pod, volume, error)
        }
        Fact::VolumeUnmounted { op, pod, volume } => volume::unmounted(&mut r, *op, *pod, volume),
        Fact::VolumeUnmountFailed { op, pod, volume, error } => {
            volume::unmount_failed(&mut r, *op, *pod, volume, error)
        }
        Fact::VolumeRefreshed { op, pod, volume, renew_at } => {
            volume::refreshed(&mut r, *op, *pod, volume, *renew_at)
        }
        Fact::VolumeRefreshFailed { op, pod, volume, error } => {
            volume::refresh_failed(&mut r, *op, *pod, volume, error)
        }
        Fact::UsageReported { pod, of, bytes } => volume::usage_reported(&mut r, *pod, of, *bytes),
        Fact::ImagePulled { op, pod, container, image_id, already_present } => {
            container::image_pulled(&mut r, *op, *pod, container, image_id, *already_present)
        }
        Fact::ImagePullFailed { op, pod, container, error } => {
            container::image_pull_failed(&mut r, *op, *pod, container, error)
        }
        Fact::SandboxReady { op, pod, attempt, ip } => sandbox::ready(&mut r, *op, *pod, *attempt, ip),
        Fact::SandboxFailed { op, pod, attempt, error } => {
            sandbox::failed(&mut r, *op, *pod, *attempt, error)
        }
        Fact::SandboxStopped { pod, attempt } => sandbox::stopped(&mut r, *pod, *attempt),
        Fact::SandboxStopFailed { op, pod, attempt, error } => {
            sandbox::stop_failed(&mut r, *op, *pod, *attempt, error)
        }
        Fact::SandboxRemoved { op, pod, attempt } => sandbox::removed(&mut r, *op, *pod, *attempt),
        Fact::SandboxRemoveFailed { op, pod, attempt, error } => {
            sandbox::remove_failed(&mut r, *op, *pod, *attempt, error)
        }
        Fact::ContainerCreated { op, pod, container } => container::created(&mut r, *op, *pod, container),
        Fact::ContainerCreateFailed { op, pod, container, error } => {
            container::create_failed(&mut r, *op, *pod, container, error)
        }
        Fact::ContainerStarted { op, pod, container } => container::started(&mut r, *op, *pod, container),
        Fact::ContainerStartFailed { op, pod, container, error } => {
            container::start_failed(&mut r, *op, *pod, container, error)
        }
        Fact::ContainerExited { pod, container, exit } => container::exited(&mut r, *pod, container, exit),
        Fact::ContainerStopFailed { op, pod, container, error } => {
            container::stop_failed(&mut r, *op, *pod, container, error)
        }
        Fact::ContainerRemoved { op, pod, container } => container::removed(&mut r, *op, *pod, container),
        Fact::ContainerRemoveFailed { op, pod, container, error } => {
            container::remove_failed(&mut r, *op, *pod, container, error)
        }
        Fact::ContainerResized { op, pod, container } => container::resized(&mut r, *op, *pod, container),
        Fact::ContainerResizeFailed { op, pod, container, error } => {
            container::resize_failed(&mut r, *op, *pod, container, error)
        }
        Fact::PodResized { op, pod } => sandbox::pod_resized(&mut r, *op, *pod),
        Fact::PodResizeFailed { op, pod, error } => sandbox::pod_resize_failed(&mut r, *op, *pod, error),
        Fact::HookDone { op, pod, container, hook, error } => {
            container::hook_done(&mut r, *op, *pod, container, *hook, error.as_ref())
        }
        Fact::ProbeResult { pod, container, probe, passed, message } => {
            container::probe_result(&mut r, *pod, container, *probe, *passed, message)
        }
        Fact::AgentStarted { boot_id } => recovery::agent_started(&mut r, *boot_id),
        Fact::MountsObserved { op, mounts } => recovery::mounts_observed(&mut r, *op, mounts),
        Fact::RuntimeObserved { op, complete, sandboxes, containers } => {
            recovery::runtime_observed(&mut r, *op, *complete, sandboxes, containers)
        }
        Fact::ObserveFailed { op, error } => recovery::observe_failed(&mut r, *op, error),
        Fact::StatusWritten { op, pod } => spec::status_written(&mut r, *op, *pod),
        Fact::StatusWriteFailed { op, pod, .. } => spec::status_write_failed(&mut r, *op, *pod),
        Fact::ReleaseFailed { op, pod, .. } => spec::release_failed(&mut r, *op, *pod),
        Fact::MirrorSeen { namespace, name, mirror } => {
            mirror::seen(&mut r, (namespace.clone(), name.clone()), mirror)
        }
        Fact::MirrorGone { namespace, name, mirror } => {
            mirror::gone(&mut r, (namespace.clone(), name.clone()), *mirror)
        }
        Fact::MirrorCreated { op, namespace, name, mirror } => {
            mirror::created(&mut r, *op, (namespace.clone(), name.clone()), mirror)
        }
        Fact::MirrorDeleted { op, namespace, name, mirror } => {
            mirror::deleted(&mut r, *op, (namespace.clone(), name.clone()), *mirror)
        }
        Fact::MirrorFailed { op, pod, namespace, name, error } => {
            mirror::failed(&mut r, *op, (namespace.clone(), name.clone()), *pod, error)
        }
    }
}

impl Recording<'_> {
    /// The pod that a fact names, touched and changed; or an anomaly.
    pub(crate) fn pod(&mut self, uid: PodUid) -> Option<&mut PodState> {
        let pod = self.pod_unchanged(uid)?;
        pod.changed();
        Some(pod)
    }

    /// The pod that a fact names, if the fact by itself changes nothing that the status or the charge is derived from.
    pub(crate) fn pod_unchanged(&mut self, uid: PodUid) -> Option<&mut PodState> {
        match self.state.pods.get_mut(&uid) {
            Some(pod) => {
                self.touched.add(uid);
                Some(Arc::make_mut(pod))
            }
            None => {
                let (kind, event) = (AnomalyKind::UnknownPod, self.state.events);
                self.state.anomalies.note(kind, event, Some(uid), "no such pod".into());
                None
            }
        }
    }

    /// A completion that names no operation in flight.
    pub(crate) fn stale(&mut self, uid: PodUid, op: OpId) {
        self.state.anomaly(AnomalyKind::StaleCompletion, Some(uid), text(format_args!("operation {}", op.0)));
    }

    /// A fact about an instance that does not exist.
    pub(crate) fn unknown_instance(&mut self, uid: PodUid, what: Name) {
        self.state.anomaly(AnomalyKind::UnknownInstance, Some(uid), what);
    }

    /// Tells people, in the fact's own name.
    pub(crate) fn tell(
        &mut self,
        pod: PodUid,
        warning: bool,
        reason: &'static str,
        message: Word,
        container: Option<Name>,
    ) {
        let event = KubernetesEvent { warning, reason: reason.into(), message, container };
        self.state.command(self.out, pod, Rule::Told, Action::RecordEvent(event));
    }

    /// A command of a look at the host, which belongs to no pod.
    pub(crate) fn look(&mut self, action: Action) -> OpId {
        self.state.command(self.out, PodUid(0), Rule::ObservationNeeded, action)
    }

    /// Notes a change of phase for people.
    pub(crate) fn moved(&mut self, pod: PodUid, subject: Subject, from: &'static str, to: &'static str) {
        if from != to {
            self.out.transitions.push(Transition { pod, subject, from: from.into(), to: to.into() });
        }
    }
}
