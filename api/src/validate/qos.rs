//! C13: a pod keeps its QoS class. An addition or removal that would move it is refused at `spec`.

use super::Errors;
use crate::view::{at, text};
use nodefold_k8s::qos_class;
use serde_json::Value;

/// The class in status (the one of the stored spec, should status not say) is that of the new spec.
pub(super) fn unchanged(old: &Value, new: &Value, errors: &mut Errors) {
    let stored = match text(at(old, "status"), "qosClass") {
        "" => qos_class(old).as_str(),
        stored => stored,
    };
    let now = qos_class(new).as_str();
    if stored != now {
        let detail = format!("Pod QOS Class may not change as a result of resizing: it is {stored}");
        errors.of("C13").invalid("spec", &Value::from(now), &detail);
    }
}
