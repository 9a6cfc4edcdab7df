//! A pod's QoS class, from its whole object: absent and zero differ there, and the core's amounts don't say.

use crate::quantity::Quantity;
use nodefold_core::resources::QosClass;
use serde_json::Value;
use std::collections::BTreeMap;

type Sums = BTreeMap<&'static str, Quantity>;

/// The class that the pod's spec makes (api-side §1.2 "QoS computation"): pod-level resources alone if there
/// are any, else those of containers and init containers; ephemeral containers don't count, nor amounts of
/// zero.
pub fn qos_class(pod: &Value) -> QosClass {
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    let (mut requests, mut limits) = (Sums::new(), Sums::new());
    let mut all_limited = true;
    match spec.get("resources").filter(|r| !r.is_null()) {
        Some(resources) => {
            collect(resources.get("requests"), &mut requests);
            let limited = collect(resources.get("limits"), &mut limits);
            all_limited &= limited || resources.get("limits").is_none();
        }
        None => {
            let all = |list: &str| spec.get(list).and_then(Value::as_array).into_iter().flatten();
            for container in all("containers").chain(all("initContainers")) {
                let resources = container.get("resources").unwrap_or(&Value::Null);
                collect(resources.get("requests"), &mut requests);
                all_limited &= collect(resources.get("limits"), &mut limits);
            }
        }
    }
    if requests.is_empty() && limits.is_empty() {
        QosClass::BestEffort
    } else if all_limited && requests == limits {
        QosClass::Guaranteed
    } else {
        QosClass::Burstable
    }
}

/// The class that the object carries, else the one that its spec makes. It never changes once stored
/// (api-side C13).
pub(crate) fn stored_qos_class(pod: &Value) -> QosClass {
    let stored = pod.pointer("/status/qosClass").and_then(Value::as_str);
    let known = [QosClass::Guaranteed, QosClass::Burstable, QosClass::BestEffort];
    known.into_iter().find(|class| stored == Some(class.as_str())).unwrap_or_else(|| qos_class(pod))
}

/// Adds the positive amounts of cpu and memory. Whether both were there.
fn collect(amounts: Option<&Value>, sums: &mut Sums) -> bool {
    let mut found = 0;
    for name in ["cpu", "memory"] {
        let amount = amounts.and_then(|a| a.get(name)).and_then(|a| Quantity::from_json(a).ok());
        if let Some(amount) = amount.filter(|a| a.is_positive()) {
            found += 1;
            sums.entry(name).and_modify(|sum| *sum = sum.plus(amount)).or_insert(amount);
        }
    }
    found == 2
}
