//! Generators: pods of few names, so that they meet, and facts likely and not.

use crate::host::exit;
use crate::kit::*;
use nodefold_core::config::{FeatureGates, NodeFacts};
use nodefold_core::event::{Fact, ProbeKind, SeenContainer, SeenMount, SeenSandbox, SeenState, UsageOf};
use nodefold_core::ids::{ContainerId, OpId, PodUid, Source};
use nodefold_core::spec::{Container, Deletion, Pod, RestartPolicy, Volume};
use nodefold_core::time::{Nanos, Time};
use proptest::prelude::*;
use std::sync::Arc;

pub const NAMES: [&str; 3] = ["a", "b", "c"];
pub const VOLUMES: [&str; 3] = ["u", "v", "w"];

pub fn names(from: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    prop::sample::select(from)
}

pub fn uids() -> impl Strategy<Value = PodUid> {
    prop_oneof![8 => Just(PodUid(1)), 4 => Just(PodUid(2)), 1 => Just(PodUid(3)), 1 => Just(PodUid(0))]
}

/// Small numbers, and now and then an absurd one.
pub fn counts() -> impl Strategy<Value = u32> {
    prop_oneof![12 => 0..3u32, 1 => Just(u32::MAX), 1 => Just(u32::MAX - 1)]
}

pub fn amounts() -> impl Strategy<Value = u64> {
    prop_oneof![6 => 0..800u64, 1 => Just(5000u64), 1 => Just(u64::MAX)]
}

pub fn containers() -> impl Strategy<Value = Container> {
    let policies = prop::sample::select(vec![None, Some(RestartPolicy::Never), Some(RestartPolicy::Always)]);
    let mounts = prop::sample::subsequence(VOLUMES.to_vec(), 0..=2);
    (names(&NAMES), mounts, any::<(bool, bool, bool)>(), policies, amounts()).prop_map(
        |(name, mounts, (swaps, new_image, hooks), restart_policy, cpu)| {
            let made = if swaps { swapper(name, &mounts) } else { user(name, &mounts) };
            let mut made = with_cpu(cpu, made);
            made.resources.limits = made.resources.requests.clone();
            made.image = if new_image { "image:2".into() } else { "image:1".into() };
            Container { restart_policy, pre_stop: hooks, post_start: hooks, ..made }
        },
    )
}

pub fn volumes() -> impl Strategy<Value = Volume> {
    let kinds = 0..5u8;
    (names(&VOLUMES), kinds, amounts()).prop_map(|(name, kind, size)| match kind {
        0 => empty_dir(name),
        1 => config_map(name, "one"),
        2 => optional_config_map(name, "two"),
        3 => token(name),
        _ => memory_dir(name, size),
    })
}

pub fn pods() -> impl Strategy<Value = Arc<Pod>> {
    let lists = (
        prop::collection::vec(containers(), 0..4),
        prop::collection::vec(containers(), 0..2),
        prop::collection::vec(containers(), 0..2),
        prop::collection::vec(volumes(), 0..4),
    );
    let deletion = prop::option::weighted(0.1, 0..40u64);
    (uids(), lists, any::<(bool, bool)>(), deletion, 0..1000u64).prop_map(
        |(uid, (mains, inits, ephemeral, volumes), (same_name, is_static), deletion, generation)| {
            let mut pod = pod(uid, mains, volumes);
            let spec = Arc::make_mut(&mut pod.spec);
            spec.init_containers = inits.into_iter().map(Arc::new).collect();
            spec.ephemeral_containers = ephemeral.into_iter().map(Arc::new).collect();
            pod.generation = generation;
            pod.source = if is_static && uid != POD { Source::File } else { Source::Api };
            if same_name {
                pod.name = "shared".into();
            }
            pod.deletion = deletion.map(|s| Deletion { requested_at: Time(0), grace: Nanos::secs(s) });
            Arc::new(pod)
        },
    )
}

pub fn ids() -> impl Strategy<Value = ContainerId> {
    (names(&NAMES), counts(), counts()).prop_map(|(name, incarnation, attempt)| ContainerId {
        name: name.into(),
        incarnation,
        attempt,
    })
}

pub fn seen_states() -> impl Strategy<Value = SeenState> {
    prop_oneof![
        Just(SeenState::Created),
        Just(SeenState::Running { started_at: Time(5) }),
        Just(SeenState::Exited(exit(1, Time(9)))),
        Just(SeenState::Unknown),
    ]
}

pub fn observed() -> impl Strategy<Value = Fact> {
    let op = (1..60u64).prop_map(OpId);
    let mounts = prop::collection::vec((uids(), names(&VOLUMES), counts()), 0..3);
    let sandboxes = prop::collection::vec((uids(), counts(), any::<bool>()), 0..2);
    let seen = prop::collection::vec((uids(), ids(), seen_states()), 0..3);
    (op, mounts, sandboxes, seen, any::<(bool, bool)>()).prop_map(
        |(op, mounts, sandboxes, seen, (runtime, complete))| {
            if !runtime {
                let seen = |(pod, name, g)| SeenMount { pod, volume: volume_id(name, g) };
                return Fact::MountsObserved { op, mounts: mounts.into_iter().map(seen).collect() };
            }
            let ip = Some("10.0.0.2".into());
            let sandbox = |(pod, attempt, ready)| SeenSandbox { pod, attempt, ready, ip: Option::clone(&ip) };
            let container = |(pod, container, state)| SeenContainer { pod, container, state };
            Fact::RuntimeObserved {
                op,
                complete,
                sandboxes: sandboxes.into_iter().map(sandbox).collect(),
                containers: seen.into_iter().map(container).collect(),
            }
        },
    )
}

pub fn facts() -> impl Strategy<Value = Fact> {
    let op = || (1..80u64).prop_map(OpId);
    let object = || names(&["one", "two"]).prop_map(object_ref);
    let gates = any::<(bool, bool)>().prop_map(|(dynamic_containers, dynamic_volumes)| FeatureGates {
        dynamic_containers,
        dynamic_volumes,
    });
    prop_oneof![
        3 => uids().prop_map(|pod| Fact::PodRemoved { pod }),
        3 => prop::sample::select(vec![Source::Api, Source::File]).prop_map(|source| Fact::SourceReady { source }),
        3 => (object(), 0..3u128).prop_map(|(object, d)| Fact::ObjectSeen { object, version: version(d) }),
        1 => object().prop_map(|object| Fact::ObjectGone { object }),
        2 => (gates, 0..2000u64).prop_map(|(gates, cpu)| {
            Fact::NodeChanged(NodeFacts { allocatable: cpu_of(cpu), labels: Vec::new(), gates })
        }),
        3 => observed(),
        1 => (uids(), ids(), any::<bool>()).prop_map(|(pod, container, passed)| Fact::ProbeResult {
            pod, container, probe: ProbeKind::Liveness, passed, message: "".into(),
        }),
        1 => (uids(), ids(), -1..3i32).prop_map(|(pod, container, code)| Fact::ContainerExited {
            pod, container, exit: exit(code, Time(7)),
        }),
        1 => (uids(), names(&VOLUMES), counts(), amounts()).prop_map(|(pod, v, g, bytes)| Fact::UsageReported {
            pod, of: UsageOf::Volume(volume_id(v, g)), bytes,
        }),
        1 => (op(), uids(), names(&VOLUMES), counts()).prop_map(|(op, pod, v, g)| Fact::VolumeUnmounted {
            op, pod, volume: volume_id(v, g),
        }),
        1 => (op(), uids(), ids()).prop_map(|(op, pod, container)| Fact::ContainerStarted { op, pod, container }),
        1 => (uids(), counts()).prop_map(|(pod, attempt)| Fact::SandboxStopped { pod, attempt }),
        1 => (op(), uids()).prop_map(|(op, pod)| Fact::StatusWritten { op, pod }),
    ]
}
