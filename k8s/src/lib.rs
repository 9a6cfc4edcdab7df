//! The boundary: Kubernetes manifests to the core's types, and the core's statuses to Kubernetes' objects.
//!
//! Nothing else in nodefold reads or writes v1.Pod, Secret or ConfigMap. Objects are JSON values
//! ([`serde_json::Value`]) with the two KEPs' new fields (`dynamicVolumePolicy`, `volumeStatuses`), which no
//! published Kubernetes types have.
//!
//! ```
//! use nodefold_k8s::{default_pod, parse_documents, pod_from_json};
//! use nodefold_core::ids::Source;
//!
//! let text = "{kind: Pod, metadata: {name: web}, spec: {containers: [{name: app, image: busybox:1}]}}";
//! let mut pod = parse_documents(text, "web.yaml")?.remove(0).value;
//! default_pod(&mut pod);
//! let pod = pod_from_json(&pod, Source::File).map_err(|problems| problems[0].clone())?;
//! assert_eq!(pod.spec.termination_grace.as_secs(), 30);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod apply;
mod canonical;
mod check;
mod defaults;
mod document;
mod duplicates;
mod event;
mod fields;
mod json_patch;
pub mod merge;
mod mirror;
mod object;
mod openapi;
mod problem;
mod protobuf;
mod prune;
mod qos;
pub mod quantity;
mod read_container;
mod read_pod;
mod read_volume;
mod schema;
mod share;
mod spans;
mod status;
pub mod time;
mod write_pod;
mod yaml;

pub use canonical::canonical;
pub use check::{check_fields, check_patch_fields, has_known_fields};
pub use defaults::{containers_together, default_pod};
pub use document::{Document, InputError, parse_documents};
pub use duplicates::duplicate_fields;
pub use event::{Recorded, event_to_json};
pub use fields::resource_list_from_json;
pub use json_patch::{JsonPatchError, json_merge, json_patch};
pub use mirror::{MIRROR_ANNOTATION, mirror_from_json, mirror_to_json};
pub use object::{default_object, object_data, object_ref, object_version};
pub use openapi::openapi_schemas;
pub use problem::{FieldProblem, ProblemReason};
pub use protobuf::{Garbled, from_protobuf};
pub use prune::{drop_unknown_fields, drop_unknown_patch_fields};
pub use qos::qos_class;
pub use read_pod::{pod_from_json, pod_uid};
pub use spans::{Place, Spans};
pub use status::{container_id, keep_foreign_conditions, readiness_gates, status_to_json};
pub use write_pod::{
    RETAINED_ANNOTATION, allocated_to_json, blob_to_json, container_to_json, mount_to_json, pod_to_json,
    resource_list_to_json, volume_to_json,
};
pub use yaml::{MAX_BYTES, MAX_DEPTH, MAX_NODES};
