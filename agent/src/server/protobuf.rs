//! The few messages that kubectl sends in protobuf and in nothing else: `auth can-i`, and what `create namespace`, `secret`,
//! `configmap`, `serviceaccount`, `role` and `rolebinding` make. Field numbers are Kubernetes' own. Any other kind is refused.

use super::body::SUPPORTED;
use super::failure::Failure;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost::Message;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The envelope: four bytes, then this.
#[derive(Clone, PartialEq, Message)]
struct Unknown {
    #[prost(message, optional, tag = "1")]
    type_meta: Option<TypeMeta>,
    #[prost(bytes = "vec", tag = "2")]
    raw: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct TypeMeta {
    #[prost(string, tag = "1")]
    api_version: String,
    #[prost(string, tag = "2")]
    kind: String,
}

#[derive(Clone, PartialEq, Message)]
struct Metadata {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    generate_name: String,
    #[prost(string, tag = "3")]
    namespace: String,
    #[prost(btree_map = "string, string", tag = "11")]
    labels: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "12")]
    annotations: BTreeMap<String, String>,
}

/// Every object begins with its metadata: what is read of a namespace and of a service account.
#[derive(Clone, PartialEq, Message)]
struct Bare {
    #[prost(message, optional, tag = "1")]
    metadata: Option<Metadata>,
}

#[derive(Clone, PartialEq, Message)]
struct Secret {
    #[prost(message, optional, tag = "1")]
    metadata: Option<Metadata>,
    #[prost(btree_map = "string, bytes", tag = "2")]
    data: BTreeMap<String, Vec<u8>>,
    #[prost(string, tag = "3")]
    kind: String,
    #[prost(btree_map = "string, string", tag = "4")]
    texts: BTreeMap<String, String>,
    #[prost(bool, optional, tag = "5")]
    immutable: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
struct ConfigMap {
    #[prost(message, optional, tag = "1")]
    metadata: Option<Metadata>,
    #[prost(btree_map = "string, string", tag = "2")]
    data: BTreeMap<String, String>,
    #[prost(btree_map = "string, bytes", tag = "3")]
    binary: BTreeMap<String, Vec<u8>>,
    #[prost(bool, optional, tag = "4")]
    immutable: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
struct Role {
    #[prost(message, optional, tag = "1")]
    metadata: Option<Metadata>,
    #[prost(message, repeated, tag = "2")]
    rules: Vec<Rule>,
}

#[derive(Clone, PartialEq, Message)]
struct Rule {
    #[prost(string, repeated, tag = "1")]
    verbs: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    groups: Vec<String>,
    #[prost(string, repeated, tag = "3")]
    resources: Vec<String>,
    #[prost(string, repeated, tag = "4")]
    names: Vec<String>,
    #[prost(string, repeated, tag = "5")]
    paths: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct RoleBinding {
    #[prost(message, optional, tag = "1")]
    metadata: Option<Metadata>,
    #[prost(message, repeated, tag = "2")]
    subjects: Vec<Subject>,
    #[prost(message, optional, tag = "3")]
    role: Option<RoleRef>,
}

#[derive(Clone, PartialEq, Message)]
struct Subject {
    #[prost(string, tag = "1")]
    kind: String,
    #[prost(string, tag = "2")]
    group: String,
    #[prost(string, tag = "3")]
    name: String,
    #[prost(string, tag = "4")]
    namespace: String,
}

#[derive(Clone, PartialEq, Message)]
struct RoleRef {
    #[prost(string, tag = "1")]
    group: String,
    #[prost(string, tag = "2")]
    kind: String,
    #[prost(string, tag = "3")]
    name: String,
}

#[derive(Clone, PartialEq, Message)]
struct AccessReview {
    #[prost(message, optional, tag = "2")]
    spec: Option<AccessSpec>,
}

#[derive(Clone, PartialEq, Message)]
struct AccessSpec {
    #[prost(message, optional, tag = "1")]
    resource: Option<ResourceAttributes>,
    #[prost(message, optional, tag = "2")]
    path: Option<PathAttributes>,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceAttributes {
    #[prost(string, tag = "1")]
    namespace: String,
    #[prost(string, tag = "2")]
    verb: String,
    #[prost(string, tag = "3")]
    group: String,
    #[prost(string, tag = "4")]
    version: String,
    #[prost(string, tag = "5")]
    resource: String,
    #[prost(string, tag = "6")]
    subresource: String,
    #[prost(string, tag = "7")]
    name: String,
}

#[derive(Clone, PartialEq, Message)]
struct PathAttributes {
    #[prost(string, tag = "1")]
    path: String,
    #[prost(string, tag = "2")]
    verb: String,
}

#[derive(Clone, PartialEq, Message)]
struct RulesReview {
    #[prost(message, optional, tag = "2")]
    spec: Option<RulesSpec>,
}

#[derive(Clone, PartialEq, Message)]
struct RulesSpec {
    #[prost(string, tag = "1")]
    namespace: String,
}

/// The object that a message says, as JSON.
pub fn object(bytes: &[u8]) -> Result<Value, Failure> {
    let Some(body) = bytes.strip_prefix(b"k8s\0") else {
        return Err(Failure::bad_request("the body lacks protobuf's prefix k8s\\x00"));
    };
    let Unknown { type_meta, raw } = decoded(body)?;
    let TypeMeta { api_version, kind } = type_meta.unwrap_or_default();
    let (metadata, mut object) = match kind.as_str() {
        "SelfSubjectAccessReview" => {
            let review: AccessReview = decoded(&raw)?;
            (None, json!({"spec": access(review.spec.unwrap_or_default())}))
        }
        "SelfSubjectRulesReview" => {
            let review: RulesReview = decoded(&raw)?;
            (None, json!({"spec": {"namespace": review.spec.unwrap_or_default().namespace}}))
        }
        "SelfSubjectReview" => (None, json!({})),
        "Namespace" | "ServiceAccount" => (decoded::<Bare>(&raw)?.metadata, json!({})),
        "Secret" => {
            let Secret { metadata, data, kind, texts, immutable } = decoded(&raw)?;
            let mut secret = json!({"data": encoded(data)});
            put(&mut secret, "type", json!(kind));
            put(&mut secret, "stringData", json!(texts));
            put(&mut secret, "immutable", json!(immutable));
            (metadata, secret)
        }
        "ConfigMap" => {
            let ConfigMap { metadata, data, binary, immutable } = decoded(&raw)?;
            let mut map = json!({});
            put(&mut map, "data", json!(data));
            put(&mut map, "binaryData", encoded(binary));
            put(&mut map, "immutable", json!(immutable));
            (metadata, map)
        }
        "Role" | "ClusterRole" => {
            let Role { metadata, rules } = decoded(&raw)?;
            (metadata, json!({"rules": rules.into_iter().map(rule).collect::<Vec<Value>>()}))
        }
        "RoleBinding" | "ClusterRoleBinding" => {
            let RoleBinding { metadata, subjects, role } = decoded(&raw)?;
            let role = role.unwrap_or_default();
            let role = json!({"apiGroup": role.group, "kind": role.kind, "name": role.name});
            let subjects: Vec<Value> = subjects.into_iter().map(subject).collect();
            (metadata, json!({"roleRef": role, "subjects": subjects}))
        }
        _ => {
            return Err(Failure::unsupported_media_type("application/vnd.kubernetes.protobuf", SUPPORTED));
        }
    };
    object["apiVersion"] = json!(api_version);
    object["kind"] = json!(kind);
    object["metadata"] = metadata.map_or_else(|| json!({}), metadata_of);
    Ok(object)
}

fn decoded<M: Message + Default>(bytes: &[u8]) -> Result<M, Failure> {
    M::decode(bytes).map_err(|_| Failure::bad_request("error decoding the body as protobuf"))
}

/// What is not given is not there.
fn put(into: &mut Value, field: &str, value: Value) {
    let empty = match &value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Array(entries) => entries.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    };
    if !empty {
        into[field] = value;
    }
}

fn encoded(data: BTreeMap<String, Vec<u8>>) -> Value {
    data.into_iter().map(|(key, bytes)| (key, json!(STANDARD.encode(bytes)))).collect::<Map<_, _>>().into()
}

fn metadata_of(of: Metadata) -> Value {
    let mut metadata = json!({});
    put(&mut metadata, "name", json!(of.name));
    put(&mut metadata, "generateName", json!(of.generate_name));
    put(&mut metadata, "namespace", json!(of.namespace));
    put(&mut metadata, "labels", json!(of.labels));
    put(&mut metadata, "annotations", json!(of.annotations));
    metadata
}

fn rule(of: Rule) -> Value {
    let mut rule = json!({"verbs": of.verbs});
    put(&mut rule, "apiGroups", json!(of.groups));
    put(&mut rule, "resources", json!(of.resources));
    put(&mut rule, "resourceNames", json!(of.names));
    put(&mut rule, "nonResourceURLs", json!(of.paths));
    rule
}

fn subject(of: Subject) -> Value {
    let mut subject = json!({"kind": of.kind, "name": of.name});
    put(&mut subject, "apiGroup", json!(of.group));
    put(&mut subject, "namespace", json!(of.namespace));
    subject
}

fn access(spec: AccessSpec) -> Value {
    let mut read = json!({});
    if let Some(asked) = spec.resource {
        read["resourceAttributes"] = json!({
            "namespace": asked.namespace, "verb": asked.verb, "group": asked.group, "version": asked.version,
            "resource": asked.resource, "subresource": asked.subresource, "name": asked.name,
        });
    }
    if let Some(asked) = spec.path {
        read["nonResourceAttributes"] = json!({"path": asked.path, "verb": asked.verb});
    }
    read
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn sent(kind: &str, api_version: &str, message: &impl Message) -> Result<Value, Failure> {
        let type_meta = TypeMeta { api_version: api_version.into(), kind: kind.into() };
        let mut bytes = b"k8s\0".to_vec();
        bytes.extend(Unknown { type_meta: Some(type_meta), raw: message.encode_to_vec() }.encode_to_vec());
        object(&bytes)
    }

    #[test]
    fn what_kubectl_sends() {
        let asked = ResourceAttributes {
            verb: "update".into(),
            resource: "pods".into(),
            subresource: "dynamic".into(),
            ..Default::default()
        };
        let review = AccessReview { spec: Some(AccessSpec { resource: Some(asked), path: None }) };
        let read = sent("SelfSubjectAccessReview", "authorization.k8s.io/v1", &review).unwrap();
        assert_eq!(read["spec"]["resourceAttributes"]["subresource"], "dynamic");

        let metadata = Some(Metadata { name: "s".into(), ..Default::default() });
        let data = BTreeMap::from([("k".to_owned(), b"v".to_vec())]);
        let secret = Secret { metadata: metadata.clone(), data, ..Default::default() };
        let read = sent("Secret", "v1", &secret).unwrap();
        let expected =
            json!({"data": {"k": "dg=="}, "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
        assert_eq!(read, expected);

        let unknown = sent("Pod", "v1", &Bare { metadata }).unwrap_err();
        assert_eq!(unknown.code, 415);
    }
}
