//! How long things take: the one table of delays, with figures as a small real node has them (recordings/,
//! linux-executor.md §2, §6 and §7). Each operation varies a little by a hash of what it is about, so that things do not
//! complete in lockstep; nothing is drawn.

use super::inflight::{OpKey, OpKind};
use nodefold_core::codec;
use nodefold_core::spec::{ProjectedSource, Volume, VolumeSource};
use nodefold_core::time::Nanos;

const fn micros(n: u64) -> Nanos {
    Nanos(n * 1_000)
}

/// From a change in the API's store to its delivery by a watch.
pub const WATCH: Nanos = Nanos::millis(5);
/// From registering an object to the answer of its first GET.
pub const OBJECT_GET: Nanos = Nanos::millis(6);
/// From the death of a process to the runtime's event.
pub const EXIT_NOTICE: Nanos = Nanos::millis(2);
/// From TERM to the end of a process that obeys it.
pub const TERM_OBEYED: Nanos = Nanos::millis(30);
/// From the start of a process that has something to finish to its end, once faults have stopped.
pub const RUN_ONCE: Nanos = Nanos::secs(1);
/// From an agent's crash to its next start (the service manager's delay and the program's own).
pub const AGENT_RESTART: Nanos = Nanos::millis(2_500);
/// From a host's crash to the agent's start.
pub const HOST_REBOOT: Nanos = Nanos::secs(45);
/// From the agent's start to the API server's first list.
pub const API_LIST: Nanos = Nanos::millis(90);
/// From the agent's start to the first list of manifest files.
pub const FILE_LIST: Nanos = Nanos::millis(30);
/// From a change of a manifest file to its delivery.
pub const FILE_WATCH: Nanos = Nanos::millis(20);
/// From a change of the node's own facts to their delivery.
pub const NODE_CHANGE: Nanos = Nanos::millis(4);
/// From a probe's start, its initial delay aside, to its first result.
pub const PROBE: Nanos = Nanos::millis(12);
/// From a flip of what a probe finds to the report: its threshold counts as reached.
pub const PROBE_FLIP: Nanos = Nanos::millis(1);
/// From a change of what something takes up to the agent's next measurement: a kubelet's, of local storage.
pub const USAGE_MEASURED: Nanos = Nanos::secs(10);
/// From a lost watch to the list that makes up for it.
pub const RELIST: Nanos = Nanos::secs(1);

/// How long an operation takes, a mount aside.
const fn base(kind: OpKind) -> Nanos {
    match kind {
        OpKind::Mount => Nanos::millis(6),
        OpKind::Unmount => Nanos::millis(7),
        OpKind::Refresh => Nanos::millis(6),
        OpKind::Pull => Nanos::millis(3),
        OpKind::CreateSandbox => Nanos::millis(120),
        OpKind::StopSandbox => Nanos::millis(36),
        OpKind::RemoveSandbox => Nanos::millis(6),
        OpKind::Create => Nanos::millis(25),
        OpKind::Start => Nanos::millis(15),
        OpKind::Stop => Nanos::millis(3),
        OpKind::Kill => Nanos::millis(3),
        OpKind::Remove => Nanos::millis(4),
        OpKind::Resize => Nanos::millis(6),
        OpKind::ResizePod => Nanos::millis(2),
        OpKind::PostStart | OpKind::PreStop => Nanos::millis(40),
        OpKind::ObserveMounts => Nanos::millis(11),
        OpKind::ObserveRuntime => Nanos::millis(8),
        OpKind::Status => Nanos::millis(4),
        OpKind::Release | OpKind::CreateMirror | OpKind::DeleteMirror => Nanos::millis(6),
    }
}

/// How long it takes to ask the registry whether what is present is still what the tag means (`Always`).
pub const REGISTRY_CHECK: Nanos = Nanos::millis(120);
/// How long it takes the registry to refuse.
pub const REGISTRY_REFUSAL: Nanos = Nanos::millis(310);

/// How long an operation takes.
pub fn of(key: &OpKey) -> Nanos {
    vary(base(key.kind), key)
}

/// How long this mount takes: content that has to be fetched and written takes longer than a directory.
pub fn of_mount(key: &OpKey, spec: &Volume) -> Nanos {
    let base = match &spec.source {
        VolumeSource::EmptyDir { .. } => micros(1_500),
        VolumeSource::ConfigMap(_) | VolumeSource::Secret(_) => Nanos::millis(8),
        VolumeSource::DownwardApi => Nanos::millis(5),
        VolumeSource::Projected(sources) => {
            let tokens = sources.iter().filter(|s| matches!(s, ProjectedSource::ServiceAccountToken)).count();
            Nanos::millis(9 + 7 * tokens as u64)
        }
        VolumeSource::Image { .. } => Nanos::millis(14),
        VolumeSource::HostPath => micros(400),
        VolumeSource::Unsupported { .. } => Nanos::millis(1),
    };
    vary(base, key)
}

/// The given delay, up to a fifth longer, by what the operation is about.
pub fn vary(base: Nanos, key: &OpKey) -> Nanos {
    let hash = codec::hash(&(key.kind.verb().len() as u64, key.pod, key.subject_name(), key.repeat)).0 as u64;
    Nanos(base.0 + base.0 / 5 * (hash % 1000) / 1000)
}
