//! What clients send in protobuf: objects by their fields' numbers (`nodefold_k8s::from_protobuf`), and options of a deletion. kubectl
//! sends some requests in nothing else, and never tries them as JSON: `auth can-i`, most of `create`, `debug --copy-to`, `debug
//! node/...`, `drain`. A kind that isn't served is refused. Answers are JSON but for one document that kubectl reads in nothing else.

use super::body::SUPPORTED;
use super::failure::Failure;
use prost::Message;
use serde_json::{Value, json};

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
struct DeleteOptions {
    #[prost(int64, optional, tag = "1")]
    grace_period_seconds: Option<i64>,
    #[prost(message, optional, tag = "2")]
    preconditions: Option<Preconditions>,
    #[prost(string, repeated, tag = "5")]
    dry_run: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct Preconditions {
    #[prost(string, optional, tag = "1")]
    uid: Option<String>,
    #[prost(string, optional, tag = "2")]
    resource_version: Option<String>,
}

/// OpenAPI's document of version 2 (gnostic's `openapi.v2.Document`), as far as it must be there.
#[derive(Clone, PartialEq, Message)]
struct OldDocument {
    #[prost(string, tag = "1")]
    swagger: String,
    #[prost(message, optional, tag = "2")]
    info: Option<OldInfo>,
}

#[derive(Clone, PartialEq, Message)]
struct OldInfo {
    #[prost(string, tag = "1")]
    title: String,
    #[prost(string, tag = "2")]
    version: String,
}

/// The document of version 2, which tells of no kind: version 3 has them all. Without it kubectl gives up over a kind that version 3
/// doesn't have, before it says which kind that is.
pub fn empty_openapi_v2() -> Vec<u8> {
    let info = OldInfo { title: "nodefold".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
    OldDocument { swagger: "2.0".to_owned(), info: Some(info) }.encode_to_vec()
}

/// The object that a message says, as JSON.
pub fn object(bytes: &[u8]) -> Result<Value, Failure> {
    let Some(body) = bytes.strip_prefix(b"k8s\0") else {
        return Err(Failure::bad_request("the body lacks protobuf's prefix k8s\\x00"));
    };
    let garbled = || Failure::bad_request("error decoding the body as protobuf");
    let Unknown { type_meta, raw } = Unknown::decode(body).map_err(|_| garbled())?;
    let TypeMeta { api_version, kind } = type_meta.unwrap_or_default();
    match kind.as_str() {
        "DeleteOptions" => {
            let DeleteOptions { grace_period_seconds, preconditions, dry_run } =
                DeleteOptions::decode(&*raw).map_err(|_| garbled())?;
            let Preconditions { uid, resource_version } = preconditions.unwrap_or_default();
            Ok(json!({"apiVersion": api_version, "kind": kind, "gracePeriodSeconds": grace_period_seconds,
                "preconditions": {"uid": uid, "resourceVersion": resource_version}, "dryRun": dry_run}))
        }
        // It asks who asks, and says nothing.
        "SelfSubjectReview" => Ok(json!({"apiVersion": api_version, "kind": kind})),
        _ => match nodefold_k8s::from_protobuf(&api_version, &kind, &raw) {
            Some(read) => read.map_err(|_| garbled()),
            None => Err(Failure::unsupported_media_type("application/vnd.kubernetes.protobuf", SUPPORTED)),
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn sent(kind: &str, api_version: &str, message: Vec<u8>) -> Result<Value, Failure> {
        let type_meta = TypeMeta { api_version: api_version.into(), kind: kind.into() };
        let mut bytes = b"k8s\0".to_vec();
        bytes.extend(Unknown { type_meta: Some(type_meta), raw: message }.encode_to_vec());
        object(&bytes)
    }

    #[test]
    fn what_kubectl_sends() {
        // spec (2) { resourceAttributes (1) { verb (2), resource (5), subresource (6) } }
        let asked = b"\x12\x19\x0a\x17\x12\x06update\x2a\x04pods\x32\x07dynamic".to_vec();
        let read = sent("SelfSubjectAccessReview", "authorization.k8s.io/v1", asked).unwrap();
        let expected = json!({"verb": "update", "resource": "pods", "subresource": "dynamic"});
        assert_eq!(read["spec"]["resourceAttributes"], expected);

        let preconditions = Some(Preconditions { uid: Some("u".into()), resource_version: None });
        let options =
            DeleteOptions { grace_period_seconds: Some(0), preconditions, dry_run: vec!["All".into()] };
        let read = sent("DeleteOptions", "v1", options.encode_to_vec()).unwrap();
        assert_eq!((&read["gracePeriodSeconds"], &read["preconditions"]["uid"]), (&json!(0), &json!("u")));
        assert_eq!(read["dryRun"], json!(["All"]));

        assert_eq!(sent("Eviction", "policy/v1", Vec::new()).unwrap_err().code, 415);
        assert_eq!(sent("Pod", "v1", vec![0xff]).unwrap_err().code, 400);
    }
}
