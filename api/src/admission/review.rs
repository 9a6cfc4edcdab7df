//! `admission.k8s.io/v1` AdmissionReview: the question that a webhook is sent, and what its answer says.

use super::attributes::Attributes;
use super::image_policy;
use super::webhook::{Answer, ReviewKind, WebhookAnswer, WebhookCall};
use crate::view::{at, list, text};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;

const VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// The question, without its uid.
pub(super) fn request(request: &Attributes<'_>) -> Value {
    let mut asked = request.request();
    asked["object"] = request.object.clone();
    asked["oldObject"] = request.old_object.clone();
    json!({"apiVersion": VERSION, "kind": KIND, "request": asked})
}

/// Where a webhook is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// `https://...`
    pub url: String,
    /// The authorities that its certificate is checked by, as PEM; none: those of this host.
    pub ca_bundle: Option<Vec<u8>>,
}

/// Why a webhook can't be called, whatever it would say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// A service's address is known to a cluster's own network only.
    Service {
        /// `namespace/name`.
        service: String,
    },
    /// No place is given, or both kinds.
    NoPlace,
    /// This is no URL that a webhook may have.
    BadUrl {
        /// It.
        url: String,
        /// What is wrong.
        why: &'static str,
    },
    /// `caBundle` is no base64.
    BadBundle,
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unreachable::Service { service } => write!(
                f,
                "clientConfig.service {service:?} can't be resolved on a node by itself: give clientConfig.url"
            ),
            Unreachable::NoPlace => f.write_str("clientConfig needs exactly one of url and service"),
            Unreachable::BadUrl { url, why } => write!(f, "clientConfig.url {url:?}: {why}"),
            Unreachable::BadBundle => f.write_str("clientConfig.caBundle is no base64"),
        }
    }
}

impl WebhookCall {
    /// The question to send. The uid is drawn by whoever sends it; the answer must repeat it.
    pub fn review_as(&self, uid: &str) -> Value {
        let mut review = self.review.clone();
        match self.kind {
            ReviewKind::Mutating | ReviewKind::Validating => review["request"]["uid"] = json!(uid),
            ReviewKind::Image => {}
        }
        review
    }

    /// Where to send it.
    pub fn endpoint(&self) -> Result<Endpoint, Unreachable> {
        let (url, service) = (at(&self.client_config, "url"), at(&self.client_config, "service"));
        let url = match (url.as_str(), service.is_object()) {
            (Some(url), false) => url,
            (None, true) => {
                let service = format!("{}/{}", text(service, "namespace"), text(service, "name"));
                return Err(Unreachable::Service { service });
            }
            (_, _) => return Err(Unreachable::NoPlace),
        };
        let bad = |why| Unreachable::BadUrl { url: url.to_owned(), why };
        let place = url.strip_prefix("https://").ok_or_else(|| bad("it must begin with https://"))?;
        let host = place.split('/').next().unwrap_or_default();
        if host.is_empty() {
            return Err(bad("it names no host"));
        }
        if host.contains('@') {
            return Err(bad("user information is not permitted in it"));
        }
        if place.contains(['?', '#']) {
            return Err(bad("neither a query nor a fragment is permitted in it"));
        }
        let bundle = text(&self.client_config, "caBundle");
        let ca_bundle = match bundle {
            "" => None,
            bundle => Some(STANDARD.decode(bundle).map_err(|_| Unreachable::BadBundle)?),
        };
        Ok(Endpoint { url: url.to_owned(), ca_bundle })
    }

    /// That it couldn't be asked, or didn't answer.
    pub fn failed(&self, why: impl fmt::Display) -> WebhookAnswer {
        self.answered(Answer::Failed { why: why.to_string() })
    }

    /// What it said.
    pub fn answered(&self, answer: Answer) -> WebhookAnswer {
        WebhookAnswer {
            configuration: self.configuration.clone(),
            webhook: self.webhook.clone(),
            about: self.about.clone(),
            answer,
            warnings: Vec::new(),
            audit_annotations: Default::default(),
        }
    }

    /// Reads the review that came back for this uid.
    pub fn read(&self, uid: &str, review: &Value) -> WebhookAnswer {
        if self.kind == ReviewKind::Image {
            return image_policy::read(self, review);
        }
        let response = at(review, "response");
        match self.said(uid, review, response) {
            Ok(answer) => {
                let warnings = list(response, "warnings").iter().filter_map(Value::as_str);
                WebhookAnswer {
                    warnings: warnings.map(str::to_owned).collect(),
                    audit_annotations: annotations(response),
                    ..self.answered(answer)
                }
            }
            Err(why) => self.failed(format!("received invalid webhook response: {why}")),
        }
    }

    fn said(&self, uid: &str, review: &Value, response: &Value) -> Result<Answer, String> {
        let (version, kind) = (text(review, "apiVersion"), text(review, "kind"));
        if (version, kind) != (VERSION, KIND) {
            return Err(format!(
                "expected webhook response of {VERSION}, Kind={KIND}, got {version}, Kind={kind}"
            ));
        }
        if !response.is_object() {
            return Err("webhook response was absent".to_owned());
        }
        if text(response, "uid") != uid {
            return Err(format!("expected response.uid={uid:?}, got {:?}", text(response, "uid")));
        }
        // A validating webhook may change nothing: upstream doesn't look at its patch either.
        let patch = if self.kind == ReviewKind::Mutating { patch(response)? } else { None };
        let status = at(response, "status");
        match at(response, "allowed") {
            Value::Bool(true) => Ok(Answer::Allowed { patch }),
            Value::Bool(false) | Value::Null => Ok(Answer::Denied {
                code: at(status, "code").as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(0),
                reason: text(status, "reason").to_owned(),
                message: text(status, "message").to_owned(),
            }),
            Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                Err("response.allowed is no boolean".to_owned())
            }
        }
    }
}

/// `auditAnnotations`.
pub(super) fn annotations(of: &Value) -> BTreeMap<String, String> {
    let notes = at(of, "auditAnnotations").as_object().into_iter().flatten();
    notes.filter_map(|(key, note)| Some((key.clone(), note.as_str()?.to_owned()))).collect()
}

fn patch(response: &Value) -> Result<Option<Value>, String> {
    let kind = at(response, "patchType");
    match (text(response, "patch"), kind.as_str()) {
        ("", None) => Ok(None),
        ("", Some(_)) => Err("webhook returned response.patchType but not response.patch".to_owned()),
        (_, None) => Err("webhook returned response.patch but not response.patchType".to_owned()),
        (patch, Some("JSONPatch")) => {
            let bytes = STANDARD.decode(patch).map_err(|_| "response.patch is no base64".to_owned())?;
            let patch: Value = serde_json::from_slice(&bytes)
                .map_err(|wrong| format!("response.patch is no JSON: {wrong}"))?;
            if patch.is_array() { Ok(Some(patch)) } else { Err("response.patch is no list".to_owned()) }
        }
        (_, Some(other)) => Err(format!("webhook returned invalid response.patchType of {other:?}")),
    }
}
