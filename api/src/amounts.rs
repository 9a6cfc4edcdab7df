//! Amounts of resources: what is stated, and what a pod asks for as a whole.

use crate::view::at;
use nodefold_k8s::containers_together;
use nodefold_k8s::quantity::Quantity;
use serde_json::Value;
use std::collections::BTreeMap;

/// Amounts by resource.
pub(crate) type Amounts = BTreeMap<String, Quantity>;

/// A field of amounts: what can be read of it.
pub(crate) fn read(amounts: &Value) -> Amounts {
    let stated = amounts.as_object().into_iter().flatten();
    stated.filter_map(|(name, amount)| Some((name.clone(), Quantity::from_json(amount).ok()?))).collect()
}

/// `resources.requests` or `resources.limits` of a container or pod spec.
pub(crate) fn stated(owner: &Value, list: &str) -> Amounts {
    read(at(at(owner, "resources"), list))
}

/// What the pod asks for: its own amounts, else its containers' together; and its overhead. A limit's overhead
/// counts only where there is a limit.
pub(crate) fn of_pod(pod: &Value, list: &str) -> Amounts {
    let spec = at(pod, "spec");
    let mut all = spec.as_object().map(|fields| containers_together(fields, list)).unwrap_or_default();
    all.extend(stated(spec, list));
    for (resource, overhead) in read(at(spec, "overhead")) {
        match all.get_mut(&resource) {
            Some(amount) => *amount = amount.plus(overhead),
            None if list == "requests" => _ = all.insert(resource, overhead),
            None => {}
        }
    }
    all
}
