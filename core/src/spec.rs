//! What a pod asks for, as far as decisions need it. Everything else rides along in [`Blob`]s that only the boundary
//! and the backends open (DESIGN §3).
//!
//! A `PodSpec` is immutable once built and shared by `Arc`: desired and allocated are two pointers to such values.

use crate::few::Few;
use crate::ids::{Name, ObjectRef, PodUid, Source};
use crate::resources::{QosClass, ResourceName, Resources};
use crate::time::{Nanos, Time};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Deref;

/// JSON text the core never reads: the fields of a Kubernetes object that no decision needs.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct Blob(pub Name);

impl Default for Blob {
    fn default() -> Blob {
        Blob("{}".into())
    }
}

/// One version of a pod as its source hands it over.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct Pod {
    /// Which pod.
    pub uid: PodUid,
    /// Its namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
    /// API server or file.
    pub source: Source,
    /// `metadata.generation`; 0 if the source has none.
    pub generation: u64,
    /// `metadata.creationTimestamp`.
    pub created_at: Time,
    /// Labels, annotations and the rest of the metadata. downwardAPI volumes refresh when it changes.
    pub metadata: Blob,
    /// What is asked for.
    pub spec: Arc<PodSpec>,
    /// Set once graceful deletion was asked for.
    pub deletion: Option<Deletion>,
    /// A phase that the API already shows as terminal. Of all published status this alone is read back, and only
    /// when the pod is first seen (kubelet-pods §3.2, case 88): a finished pod must not run again.
    pub api_terminal: Option<TerminalPhase>,
}

/// `metadata.deletionTimestamp` and `deletionGracePeriodSeconds`.
#[derive(Copy, Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct Deletion {
    /// When deletion was asked for (deletionTimestamp less the grace).
    pub requested_at: Time,
    /// How long the containers have.
    pub grace: Nanos,
}

/// A phase that a pod never leaves.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
#[cfg_attr(feature = "rkyv", rkyv(derive(PartialEq, Eq, PartialOrd, Ord)))]
pub enum TerminalPhase {
    /// All containers ended well.
    Succeeded,
    /// One did not, or the node gave up on the pod.
    Failed,
}

/// A pod's spec.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct PodSpec {
    /// `restartPolicy`.
    pub restart_policy: RestartPolicy,
    /// Init containers and sidecars in order.
    pub init_containers: Vec<Arc<Container>>,
    /// Main containers in the order of the spec.
    pub containers: Vec<Arc<Container>>,
    /// Ephemeral containers. They bypass allocation (their subresource is add-only).
    pub ephemeral_containers: Vec<Arc<Container>>,
    /// Volumes in the order of the spec.
    pub volumes: Vec<Arc<Volume>>,
    /// Pod-level resources, if given.
    pub resources: Option<Resources>,
    /// `spec.overhead` requests.
    pub overhead: crate::resources::ResourceList,
    /// QoS class, computed at the boundary; it never changes (api-side C13).
    pub qos: QosClass,
    /// `priority`, 0 if absent.
    pub priority: i32,
    /// `terminationGracePeriodSeconds`.
    pub termination_grace: Nanos,
    /// `activeDeadlineSeconds`. Bypasses allocation.
    pub active_deadline: Option<Nanos>,
    /// `hostNetwork`.
    pub host_network: bool,
    /// `nodeSelector` and the required node affinity: terms are alternatives, requirements of a term hold together.
    pub node_selector: Few<NodeSelectorTerm>,
    /// Host ports of all containers.
    pub host_ports: Few<HostPort>,
    /// `readinessGates` condition types; met by conditions that others write (`Fact::ReadinessGate`).
    pub readiness_gates: Few<Name>,
    /// `os.name` is windows: never resized, never dynamic (P6).
    pub windows: bool,
    /// All other fields of the spec.
    pub rest: Blob,
}

/// When an ended container is started again.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
#[cfg_attr(feature = "rkyv", rkyv(derive(PartialEq, Eq, PartialOrd, Ord)))]
pub enum RestartPolicy {
    /// Whatever the exit code.
    Always,
    /// If the exit code was not 0.
    OnFailure,
    /// Not.
    Never,
}

/// A container of any kind.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct Container {
    /// Unique in the pod among all kinds.
    pub name: Name,
    /// Image reference.
    pub image: Name,
    /// `imagePullPolicy`.
    pub pull_policy: PullPolicy,
    /// `restartPolicy` of the container. `Always` on an init container makes it a sidecar.
    pub restart_policy: Option<RestartPolicy>,
    /// `restartPolicyRules` (KEP-5307), first match wins.
    pub restart_rules: Few<RestartRule>,
    /// Requests and limits.
    pub resources: Resources,
    /// Resources whose in-place resize needs a restart (`resizePolicy: RestartContainer`).
    pub resize_restarts: Few<ResourceName>,
    /// Mounts in the order of the spec.
    pub mounts: Vec<VolumeMount>,
    /// `dynamicVolumePolicy.restartPolicy: RestartContainer` (KEP-6395).
    pub restart_on_mount_change: bool,
    /// Probes that exist. Their details are in `rest`.
    pub startup_probe: Option<Probe>,
    /// See `startup_probe`.
    pub liveness_probe: Option<Probe>,
    /// See `startup_probe`.
    pub readiness_probe: Option<Probe>,
    /// `lifecycle.postStart` exists.
    pub post_start: bool,
    /// `lifecycle.preStop` exists.
    pub pre_stop: bool,
    /// All other fields.
    pub rest: Blob,
}

/// A probe, as far as the core cares.
#[derive(Copy, Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct Probe {
    /// `terminationGracePeriodSeconds` of the probe: the grace of a kill that it causes.
    pub grace: Option<Nanos>,
}

/// `imagePullPolicy`.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
#[cfg_attr(feature = "rkyv", rkyv(derive(PartialEq, Eq, PartialOrd, Ord)))]
pub enum PullPolicy {
    /// Ask the registry at every start.
    Always,
    /// Pull if absent.
    IfNotPresent,
    /// Absent is an error.
    Never,
}

/// One of `restartPolicyRules`.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct RestartRule {
    /// `In` or `NotIn` of the values.
    pub negated: bool,
    /// Exit codes.
    pub codes: Vec<i32>,
    /// What to do on a match.
    pub action: RestartAction,
}

/// `restartPolicyRules[].action`.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
#[cfg_attr(feature = "rkyv", rkyv(derive(PartialEq, Eq, PartialOrd, Ord)))]
pub enum RestartAction {
    /// Restart this container.
    Restart,
    /// Restart all containers of the pod (KEP-5532).
    RestartAllContainers,
}

/// A mount of a volume in a container.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct VolumeMount {
    /// The volume's name.
    pub name: Name,
    /// Where in the container.
    pub mount_path: Name,
    /// `readOnly`.
    pub read_only: bool,
    /// `subPath`, `subPathExpr`, propagation and the rest, canonical.
    pub rest: Blob,
}

/// The mounts of one instance: those of the definition that it was made from, or, at the boundary, a list.
#[derive(Default, Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(from = "Vec<VolumeMount>", into = "Vec<VolumeMount>"))]
pub enum Mounts {
    /// There is no instance.
    #[default]
    None,
    /// All that the definition has.
    Of(Arc<Container>),
    /// These.
    List(Arc<[VolumeMount]>),
}

impl Deref for Mounts {
    type Target = [VolumeMount];
    fn deref(&self) -> &[VolumeMount] {
        match self {
            Mounts::None => &[],
            Mounts::Of(definition) => &definition.mounts,
            Mounts::List(list) => list,
        }
    }
}

impl PartialEq for Mounts {
    fn eq(&self, other: &Mounts) -> bool {
        **self == **other
    }
}

impl Eq for Mounts {}

impl bincode::Encode for Mounts {
    fn encode<E: bincode::enc::Encoder>(&self, encoder: &mut E) -> Result<(), bincode::error::EncodeError> {
        (**self).encode(encoder)
    }
}

impl<C> bincode::Decode<C> for Mounts {
    fn decode<D: bincode::de::Decoder<Context = C>>(
        decoder: &mut D,
    ) -> Result<Mounts, bincode::error::DecodeError> {
        Vec::decode(decoder).map(Mounts::from)
    }
}

bincode::impl_borrow_decode!(Mounts);

impl From<Vec<VolumeMount>> for Mounts {
    fn from(mounts: Vec<VolumeMount>) -> Mounts {
        Mounts::List(mounts.into())
    }
}

impl From<Mounts> for Vec<VolumeMount> {
    fn from(mounts: Mounts) -> Vec<VolumeMount> {
        mounts.to_vec()
    }
}

impl FromIterator<VolumeMount> for Mounts {
    fn from_iter<I: IntoIterator<Item = VolumeMount>>(mounts: I) -> Mounts {
        Mounts::List(mounts.into_iter().collect())
    }
}

impl<'a> IntoIterator for &'a Mounts {
    type Item = &'a VolumeMount;
    type IntoIter = core::slice::Iter<'a, VolumeMount>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<const N: usize> PartialEq<[VolumeMount; N]> for Mounts {
    fn eq(&self, other: &[VolumeMount; N]) -> bool {
        **self == *other
    }
}

/// A volume.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct Volume {
    /// Unique in the pod.
    pub name: Name,
    /// What it is made from.
    pub source: VolumeSource,
    /// The source as the manifest has it, for backends and `/allocated`. Part of the volume's identity.
    pub rest: Blob,
}

/// What a volume is made from: as much as decides how it lives.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub enum VolumeSource {
    /// Scratch space.
    EmptyDir {
        /// Where it lives.
        medium: Medium,
        /// `sizeLimit` in bytes.
        size_limit: Option<u64>,
    },
    /// A configMap's keys.
    ConfigMap(ObjectSource),
    /// A secret's keys.
    Secret(ObjectSource),
    /// Fields of the pod.
    DownwardApi,
    /// Several sources in one directory.
    Projected(Vec<ProjectedSource>),
    /// An OCI image, read-only. Mounting it is having it present, at a digest, under a lease.
    Image {
        /// Image reference.
        reference: Name,
        /// Its pull policy.
        pull_policy: PullPolicy,
    },
    /// A path of the host.
    HostPath,
    /// A source that this node cannot mount (persistent volumes come in a room of their own). Kept whole in the
    /// volume's `rest`, refused when mounted, and told so.
    Unsupported {
        /// The source's field name, for the message.
        kind: Name,
    },
}

/// emptyDir's medium.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
#[cfg_attr(feature = "rkyv", rkyv(derive(PartialEq, Eq, PartialOrd, Ord)))]
pub enum Medium {
    /// The node's disk.
    Disk,
    /// tmpfs.
    Memory,
    /// hugetlbfs.
    HugePages,
}

/// A reference to a secret or configMap.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct ObjectSource {
    /// Which object.
    pub object: ObjectRef,
    /// An absent object makes an empty volume instead of an error.
    pub optional: bool,
}

/// One source of a projected volume.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub enum ProjectedSource {
    /// A configMap's keys.
    ConfigMap(ObjectSource),
    /// A secret's keys.
    Secret(ObjectSource),
    /// Fields of the pod.
    DownwardApi,
    /// A token of the pod's service account, renewed before it ends.
    ServiceAccountToken,
    /// A trust bundle, by name or by signer (`None`).
    ClusterTrustBundle(Option<ObjectSource>),
    /// A certificate of the pod's own, renewed before it ends.
    PodCertificate,
}

/// A node selector term: its requirements all hold.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct NodeSelectorTerm {
    /// Requirements on labels (`field`: on `metadata.name`).
    pub requirements: Vec<NodeRequirement>,
}

/// One requirement of a term.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct NodeRequirement {
    /// Label key.
    pub key: Name,
    /// How to compare.
    pub operator: NodeOperator,
    /// With what.
    pub values: Vec<Name>,
}

/// How a requirement compares.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
#[cfg_attr(feature = "rkyv", rkyv(derive(PartialEq, Eq, PartialOrd, Ord)))]
pub enum NodeOperator {
    /// Value is one of these.
    In,
    /// Value is none of these (an absent label passes).
    NotIn,
    /// The label exists.
    Exists,
    /// It does not.
    DoesNotExist,
    /// Integer greater than.
    Gt,
    /// Integer less than.
    Lt,
}

/// A port of the host that a container takes.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct HostPort {
    /// TCP, UDP or SCTP.
    pub protocol: Name,
    /// Empty: all addresses.
    pub host_ip: Name,
    /// The port.
    pub port: u16,
}

impl Pod {
    /// A pod that nobody asked for: found on the host, with nothing known but its UID.
    pub fn orphan(uid: PodUid) -> Pod {
        let spec = PodSpec {
            restart_policy: RestartPolicy::Never,
            init_containers: Vec::new(),
            containers: Vec::new(),
            ephemeral_containers: Vec::new(),
            volumes: Vec::new(),
            resources: None,
            overhead: crate::resources::ResourceList::default(),
            qos: QosClass::BestEffort,
            priority: 0,
            termination_grace: Nanos::secs(1),
            active_deadline: None,
            host_network: false,
            node_selector: Few::default(),
            host_ports: Few::default(),
            readiness_gates: Few::default(),
            windows: false,
            rest: Blob::default(),
        };
        Pod {
            uid,
            namespace: "".into(),
            name: "".into(),
            source: Source::Api,
            generation: 0,
            created_at: Time(0),
            metadata: Blob::default(),
            spec: Arc::new(spec),
            deletion: None,
            api_terminal: None,
        }
    }
}

impl Container {
    /// A container found on the host of which nothing is known but its name.
    pub fn unknown(name: Name) -> Container {
        Container {
            name,
            image: "".into(),
            pull_policy: PullPolicy::IfNotPresent,
            restart_policy: None,
            restart_rules: Few::default(),
            resources: Resources::default(),
            resize_restarts: Few::default(),
            mounts: Vec::new(),
            restart_on_mount_change: false,
            startup_probe: None,
            liveness_probe: None,
            readiness_probe: None,
            post_start: false,
            pre_stop: false,
            rest: Blob::default(),
        }
    }
}

impl PodSpec {
    /// Whether an init container of this name is a sidecar.
    pub fn is_sidecar(container: &Container) -> bool {
        container.restart_policy == Some(RestartPolicy::Always)
    }
    /// The volume of that name.
    pub fn volume(&self, name: &str) -> Option<&Arc<Volume>> {
        self.volumes.iter().find(|v| &*v.name == name)
    }
    /// The main container of that name.
    pub fn container(&self, name: &str) -> Option<&Arc<Container>> {
        self.containers.iter().find(|c| &*c.name == name)
    }
}

impl VolumeSource {
    /// The objects whose content this volume shows, and whether each may be absent.
    pub fn objects(&self) -> Vec<&ObjectSource> {
        match self {
            VolumeSource::ConfigMap(o) | VolumeSource::Secret(o) => alloc::vec![o],
            VolumeSource::Projected(sources) => sources
                .iter()
                .filter_map(|s| match s {
                    ProjectedSource::ConfigMap(o) | ProjectedSource::Secret(o) => Some(o),
                    ProjectedSource::ClusterTrustBundle(o) => o.as_ref(),
                    ProjectedSource::DownwardApi
                    | ProjectedSource::ServiceAccountToken
                    | ProjectedSource::PodCertificate => None,
                })
                .collect(),
            VolumeSource::EmptyDir { .. }
            | VolumeSource::DownwardApi
            | VolumeSource::Image { .. }
            | VolumeSource::HostPath
            | VolumeSource::Unsupported { .. } => Vec::new(),
        }
    }
    /// Whether it shows the pod's own metadata, so that a change of labels refreshes it.
    pub fn shows_metadata(&self) -> bool {
        match self {
            VolumeSource::DownwardApi => true,
            VolumeSource::Projected(sources) => {
                sources.iter().any(|s| matches!(s, ProjectedSource::DownwardApi))
            }
            VolumeSource::EmptyDir { .. }
            | VolumeSource::ConfigMap(_)
            | VolumeSource::Secret(_)
            | VolumeSource::Image { .. }
            | VolumeSource::HostPath
            | VolumeSource::Unsupported { .. } => false,
        }
    }
}
