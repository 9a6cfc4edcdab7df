//! Bodies of requests: from bytes to JSON values, by their media type.

use super::ask::{Change, Deletion};
use super::failure::Failure;
use super::protobuf;
use serde_json::{Value, json};

pub(super) const SUPPORTED: &str = "application/json, application/yaml";
const PATCHES: &str = "application/json-patch+json, application/merge-patch+json, \
application/strategic-merge-patch+json, application/apply-patch+yaml";

/// The media type without its parameters.
fn essence(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

/// An object. Without a type it is JSON (`kubectl replace --raw` states none).
pub fn object(content_type: &str, bytes: &[u8]) -> Result<Value, Failure> {
    match essence(content_type) {
        "" | "application/json" => match json(bytes) {
            Ok(value) => Ok(value),
            // Whoever states no type may mean YAML.
            Err(_) if content_type.is_empty() => yaml(bytes),
            Err(failure) => Err(failure),
        },
        "application/yaml" | "application/x-yaml" | "text/yaml" => yaml(bytes),
        "application/vnd.kubernetes.protobuf" => protobuf::object(bytes),
        other => Err(Failure::unsupported_media_type(other, SUPPORTED)),
    }
}

/// A patch.
pub fn patch(content_type: &str, bytes: &[u8], force: bool) -> Result<Change, Failure> {
    match essence(content_type) {
        "application/json-patch+json" => json(bytes).map(Change::Json),
        "application/merge-patch+json" => json(bytes).map(Change::Merge),
        "application/strategic-merge-patch+json" => json(bytes).map(Change::Strategic),
        "application/apply-patch+yaml" => yaml(bytes).map(|config| Change::Apply { config, force }),
        other => Err(Failure::unsupported_media_type(other, PATCHES)),
    }
}

/// `DeleteOptions`; an empty body has none. What the query says counts where the body says nothing.
pub fn deletion(content_type: &str, bytes: &[u8], query: &super::query::Query) -> Result<Deletion, Failure> {
    let options = if bytes.is_empty() { json!({}) } else { object(content_type, bytes)? };
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let stated = &options["gracePeriodSeconds"];
    let bad = || Failure::bad_request("gracePeriodSeconds must be a number of seconds, not below zero");
    let grace = if stated.is_null() {
        query.number("gracePeriodSeconds")?
    } else {
        Some(stated.as_u64().ok_or_else(bad)?)
    };
    Ok(Deletion {
        grace_seconds: grace,
        uid: text(&options["preconditions"]["uid"]),
        resource_version: text(&options["preconditions"]["resourceVersion"]),
        dry_run: query.dry_run()? || options["dryRun"] == json!(["All"]),
    })
}

fn json(bytes: &[u8]) -> Result<Value, Failure> {
    serde_json::from_slice(bytes)
        .map_err(|error| Failure::bad_request(format!("error decoding the body as JSON: {error}")))
}

fn yaml(bytes: &[u8]) -> Result<Value, Failure> {
    let text = std::str::from_utf8(bytes).map_err(|_| Failure::bad_request("the body is no UTF-8"))?;
    let mut documents = nodefold_k8s::parse_documents(text, "body")
        .map_err(|error| Failure::bad_request(format!("error decoding the body as YAML: {error}")))?;
    match (documents.pop(), documents.is_empty()) {
        (Some(document), true) => Ok(document.value),
        (_, _) => Err(Failure::bad_request("the body must be one YAML document")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_media_type() {
        assert_eq!(object("application/json; charset=utf-8", b"{\"a\":1}").unwrap(), json!({"a": 1}));
        assert_eq!(object("application/yaml", b"a: 1").unwrap(), json!({"a": 1}));
        assert_eq!(object("", b"a: 1").unwrap(), json!({"a": 1}));
        assert_eq!(object("text/html", b"x").unwrap_err().code, 415);
        assert_eq!(patch("application/json", b"{}", false).unwrap_err().code, 415);
        for (kind, bytes) in [
            ("application/json", &b"{"[..]),
            ("application/json", b"\xff"),
            ("application/yaml", b"a: [1"),
            ("application/yaml", b"a: 1\n---\nb: 2"),
            ("application/vnd.kubernetes.protobuf", b"k8s\0\xff\xff\xff"),
            ("application/vnd.kubernetes.protobuf", b"nothing"),
        ] {
            assert_eq!(object(kind, bytes).unwrap_err().code, 400, "{kind} {bytes:?}");
        }
        let deep = vec![b'['; 100_000];
        assert_eq!(object("application/json", &deep).unwrap_err().code, 400);
    }
}
