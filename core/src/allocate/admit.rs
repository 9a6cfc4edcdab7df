//! Admission of a new pod: does it belong here, and does it fit beside what was promised already (kubelet-pods §1.3, §1.4).

use super::pod_requests;
use crate::context::text;
use crate::ids::{Name, PodUid};
use crate::node::State;
use crate::resources::{ResourceList, ResourceName};
use crate::spec::{HostPort, NodeOperator, NodeRequirement};
use crate::state::PodState;

/// Why a pod was not admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// There is not enough of something: room may be made for a critical pod.
    pub for_want_of_room: bool,
    /// `status.reason`.
    pub reason: Name,
    /// The rest of `status.message`.
    pub message: Name,
}

/// First refusal wins.
pub(crate) fn admit(state: &State, pod: &PodState) -> Result<(), Refusal> {
    let spec = &pod.pod.spec;
    if spec.windows {
        return Err(Refusal {
            for_want_of_room: false,
            reason: "PodOSNotSupported".into(),
            message: "Failed to admit pod as the OS field doesn't match node OS".into(),
        });
    }
    if let Some(short) = shortages(state, pod, &pod_requests(spec)).next() {
        let reason = text(format_args!("OutOf{}", short.resource));
        return Err(Refusal { for_want_of_room: true, reason, message: short.message() });
    }
    suits(state, pod)
}

/// The node is one that the pod may run on, room aside.
pub(crate) fn suits(state: &State, pod: &PodState) -> Result<(), Refusal> {
    if !selects(state, pod) {
        return Err(Refusal {
            for_want_of_room: false,
            reason: "NodeAffinity".into(),
            message: "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
                .into(),
        });
    }
    if let Some(port) = pod.pod.spec.host_ports.iter().find(|port| taken(state, pod, port)) {
        let message = text(format_args!("Predicate NodePorts failed: node port {} is taken", port.port));
        return Err(Refusal { for_want_of_room: false, reason: "NodePorts".into(), message });
    }
    Ok(())
}

/// A resource of which there is not enough.
pub(crate) struct Shortage {
    /// Which.
    pub(crate) resource: ResourceName,
    /// What the pod asks for.
    pub(crate) wanted: u64,
    /// What others hold, or is set aside for them.
    pub(crate) used: u64,
    /// What there is.
    pub(crate) capacity: u64,
}

impl Shortage {
    /// As the kubelet words it.
    pub(crate) fn message(&self) -> Name {
        let Shortage { resource, wanted, used, capacity } = self;
        text(format_args!(
            "Node didn't have enough resource: {resource}, requested: {wanted}, used: {used}, capacity: {capacity}"
        ))
    }
}

/// Resources of which there is not enough beside all other pods' charges, cpu before memory before the rest.
pub(crate) fn shortages<'a>(
    state: &'a State,
    pod: &'a PodState,
    requests: &'a ResourceList,
) -> impl Iterator<Item = Shortage> + 'a {
    const ONE_POD: &(ResourceName, u64) = &(ResourceName::Pods, 1);
    let claimed = super::preempt::claimed_by_others(state, pod.pod.uid);
    requests.iter().chain(core::iter::once(ONE_POD)).filter_map(move |(name, wanted)| {
        let used = state.charged.get(name).saturating_sub(pod.charge.get(name));
        let used = used.saturating_add(claimed.get(name));
        // What the node does not list of these is not limited; an extended resource it doesn't have is stripped from the
        // request, as the kubelet does.
        let capacity = state.config.node.allocatable.given(name)?;
        (*wanted > 0 && used.saturating_add(*wanted) > capacity).then(|| Shortage {
            resource: name.clone(),
            wanted: *wanted,
            used,
            capacity,
        })
    })
}

/// The node has the labels that the pod asks for: some term holds, or there is none.
fn selects(state: &State, pod: &PodState) -> bool {
    let terms = &pod.pod.spec.node_selector;
    terms.is_empty() || terms.iter().any(|term| term.requirements.iter().all(|r| holds(state, r)))
}

fn holds(state: &State, requirement: &NodeRequirement) -> bool {
    let node = &state.config.node;
    let label = if &*requirement.key == "metadata.name" {
        Some(&state.config.node_name)
    } else {
        node.labels.iter().find(|(key, _)| *key == requirement.key).map(|(_, value)| value)
    };
    let numbers = |value: &Name| {
        let (have, want) = (value.parse::<i64>().ok()?, requirement.values.first()?.parse::<i64>().ok()?);
        Some((have, want))
    };
    match requirement.operator {
        NodeOperator::In => label.is_some_and(|value| requirement.values.contains(value)),
        NodeOperator::NotIn => label.is_none_or(|value| !requirement.values.contains(value)),
        NodeOperator::Exists => label.is_some(),
        NodeOperator::DoesNotExist => label.is_none(),
        NodeOperator::Gt => label.and_then(numbers).is_some_and(|(have, want)| have > want),
        NodeOperator::Lt => label.and_then(numbers).is_some_and(|(have, want)| have < want),
    }
}

/// Another started pod has that host port.
fn taken(state: &State, pod: &PodState, port: &HostPort) -> bool {
    let clashes = |other: &HostPort| {
        let everywhere = |ip: &Name| ip.is_empty() || &**ip == "0.0.0.0";
        other.port == port.port
            && other.protocol == port.protocol
            && (other.host_ip == port.host_ip || everywhere(&other.host_ip) || everywhere(&port.host_ip))
    };
    state
        .pods
        .values()
        .filter(|other| other.pod.uid != pod.pod.uid && other.is_started())
        .any(|other| other.spec().host_ports.iter().any(clashes))
}

/// Pods that have the full name of a static one, and have not been admitted.
pub(crate) fn waiting_for_name_of(state: &State, uid: PodUid) -> impl Iterator<Item = PodUid> + '_ {
    let key = state.pods.get(&uid).map(|pod| (pod.pod.namespace.clone(), pod.pod.name.clone()));
    let named = key.and_then(|key| state.names.get(&key)).map(alloc::vec::Vec::as_slice).unwrap_or_default();
    let waits = |uid: &PodUid| state.pods.get(uid).is_some_and(|pod| pod.is_not_ended() && !pod.is_started());
    named.iter().copied().filter(waits)
}

/// No started static pod has the same full name, and none that came earlier waits for it (kubelet-pods §3.2, B8, B9).
pub(crate) fn static_name_free(state: &State, pod: &PodState) -> bool {
    let key = (pod.pod.namespace.clone(), pod.pod.name.clone());
    let others = state.names.get(&key).map(alloc::vec::Vec::as_slice).unwrap_or_default();
    others.iter().filter(|uid| **uid != pod.pod.uid).filter_map(|uid| state.pods.get(uid)).all(|other| {
        let same_kind = other.pod.source == pod.pod.source;
        let earlier = other.is_not_ended() && !other.is_started() && other.arrived < pod.arrived;
        !(same_kind && (other.is_started() || earlier))
    })
}
