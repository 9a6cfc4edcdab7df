//! Builders for what a case is given: pods, containers, volumes, errors. The bench itself is in `bench`.

use nodefold_core::config::{Config, FeatureGates, NodeFacts, Timing};
use nodefold_core::event::{ErrorClass, ObjectVersion, OpError};
use nodefold_core::ids::{ObjectKind, ObjectRef, PodUid, Source, VolumeId};
use nodefold_core::resources::{QosClass, ResourceList, ResourceName, Resources};
use nodefold_core::spec::{
    Blob, Container, Medium, ObjectSource, Pod, PodSpec, ProjectedSource, PullPolicy, RestartPolicy, Volume,
    VolumeMount, VolumeSource,
};
use nodefold_core::time::{Nanos, Time};
use std::sync::Arc;

pub const GI: u64 = 1 << 30;
/// The pod that most cases are about.
pub const POD: PodUid = PodUid(1);
/// A second one.
pub const OTHER: PodUid = PodUid(2);

/// A node with both gates on and room for `cpu` millicores.
pub fn config(cpu: u64) -> Config {
    let gates = FeatureGates { dynamic_containers: true, dynamic_volumes: true };
    Config {
        node: NodeFacts { allocatable: cpu_of(cpu), labels: Vec::new(), gates },
        timing: Timing::default(),
        ..Config::default()
    }
}

pub fn cpu_of(millicores: u64) -> ResourceList {
    ResourceList::from_pairs([(ResourceName::Cpu, millicores)])
}

/// A container without anything.
pub fn container(name: &str) -> Container {
    Container { image: "image:1".into(), ..Container::unknown(name.into()) }
}

/// A container that mounts these volumes and may not be restarted for their sake.
pub fn user(name: &str, volumes: &[&str]) -> Container {
    Container { mounts: volumes.iter().map(|v| mount(v)).collect(), ..container(name) }
}

/// A container that mounts these volumes, with `dynamicVolumePolicy.restartPolicy: RestartContainer`.
pub fn swapper(name: &str, volumes: &[&str]) -> Container {
    Container { restart_on_mount_change: true, ..user(name, volumes) }
}

/// A container that runs once.
pub fn job(name: &str) -> Container {
    Container { restart_policy: Some(RestartPolicy::Never), ..container(name) }
}

pub fn with_cpu(request: u64, container: Container) -> Container {
    Container { resources: Resources { requests: cpu_of(request), ..Resources::default() }, ..container }
}

pub fn mount(volume: &str) -> VolumeMount {
    VolumeMount {
        name: volume.into(),
        mount_path: format!("/mnt/{volume}").into(),
        read_only: false,
        rest: Blob::default(),
    }
}

/// The volume of that name from the configMap `object` of the test namespace.
pub fn config_map(name: &str, object: &str) -> Volume {
    source(name, VolumeSource::ConfigMap(ObjectSource { object: object_ref(object), optional: false }))
}

pub fn optional_config_map(name: &str, object: &str) -> Volume {
    source(name, VolumeSource::ConfigMap(ObjectSource { object: object_ref(object), optional: true }))
}

pub fn empty_dir(name: &str) -> Volume {
    source(name, VolumeSource::EmptyDir { medium: Medium::Disk, size_limit: None })
}

pub fn memory_dir(name: &str, size_limit: u64) -> Volume {
    source(name, VolumeSource::EmptyDir { medium: Medium::Memory, size_limit: Some(size_limit) })
}

pub fn image_volume(name: &str, pull_policy: PullPolicy) -> Volume {
    source(name, VolumeSource::Image { reference: "registry/data:1".into(), pull_policy })
}

pub fn token(name: &str) -> Volume {
    source(name, VolumeSource::Projected(vec![ProjectedSource::ServiceAccountToken]))
}

pub fn source(name: &str, source: VolumeSource) -> Volume {
    Volume { name: name.into(), source, rest: Blob::default() }
}

pub fn object_ref(name: &str) -> ObjectRef {
    ObjectRef { kind: ObjectKind::ConfigMap, namespace: "ns".into(), name: name.into() }
}

pub fn version(digest: u128) -> ObjectVersion {
    ObjectVersion { resource_version: digest.to_string().into(), digest, keys: Vec::new() }
}

/// A pod of these containers and volumes, restarted always.
pub fn pod(uid: PodUid, containers: Vec<Container>, volumes: Vec<Volume>) -> Pod {
    let spec = PodSpec {
        restart_policy: RestartPolicy::Always,
        init_containers: Vec::new(),
        containers: containers.into_iter().map(Arc::new).collect(),
        ephemeral_containers: Vec::new(),
        volumes: volumes.into_iter().map(Arc::new).collect(),
        resources: None,
        overhead: ResourceList::default(),
        qos: QosClass::Burstable,
        priority: 0,
        termination_grace: Nanos::secs(30),
        active_deadline: None,
        host_network: false,
        node_selector: Default::default(),
        host_ports: Default::default(),
        readiness_gates: Default::default(),
        windows: false,
        rest: Blob::default(),
    };
    Pod {
        uid,
        namespace: "ns".into(),
        name: format!("pod-{}", uid.0).into(),
        source: Source::Api,
        generation: 1,
        created_at: Time(uid.0 as u64),
        metadata: Blob::default(),
        spec: Arc::new(spec),
        deletion: None,
        api_terminal: None,
    }
}

/// Edits of a spec, as `/dynamic` accepts them.
pub trait Edit {
    fn add(&mut self, container: Container);
    fn add_volume(&mut self, volume: Volume);
    fn remove(&mut self, container: &str);
    fn remove_volume(&mut self, volume: &str);
    /// Puts another source under a name, in its place.
    fn replace_volume(&mut self, volume: Volume);
    fn edit(&mut self, container: &str, change: impl FnOnce(&mut Container));
}

impl Edit for PodSpec {
    fn add(&mut self, container: Container) {
        self.containers.push(Arc::new(container));
    }
    fn add_volume(&mut self, volume: Volume) {
        self.volumes.push(Arc::new(volume));
    }
    fn remove(&mut self, container: &str) {
        self.containers.retain(|c| &*c.name != container);
    }
    fn remove_volume(&mut self, volume: &str) {
        self.volumes.retain(|v| &*v.name != volume);
    }
    fn replace_volume(&mut self, volume: Volume) {
        let old = self.volumes.iter_mut().find(|v| v.name == volume.name);
        *old.expect("the volume to replace exists") = Arc::new(volume);
    }
    fn edit(&mut self, container: &str, change: impl FnOnce(&mut Container)) {
        let list = self.containers.iter_mut().chain(&mut self.init_containers);
        let found = list.into_iter().find(|c| &*c.name == container);
        change(Arc::make_mut(found.expect("the container to edit exists")));
    }
}

pub fn error(class: ErrorClass, message: &str) -> OpError {
    OpError { class, reason: None, message: message.into() }
}

pub fn volume_id(name: &str, generation: u32) -> VolumeId {
    VolumeId { name: name.into(), generation }
}
