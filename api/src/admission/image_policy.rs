//! ImagePolicyWebhook: a backend says which images may run. It is asked about new containers' images, and, since `/dynamic` brings
//! containers and changes images (api-side §2.4), about those of a dynamic change and of an update, too.

use super::attributes::{Attributes, Operation};
use super::review;
use super::webhook::{Answer, ReviewKind, WebhookAnswer, WebhookCall};
use crate::account::{Stage, Verdict};
use crate::call::Call;
use crate::response::Status;
use crate::view::{at, name, named, spec_list, text};
use serde_json::{Map, Value, json};

const NAME: &str = "ImagePolicyWebhook";
const VERSION: &str = "imagepolicy.k8s.io/v1alpha1";
/// Annotations that the backend is shown.
const SHOWN: &str = ".image-policy.k8s.io/";

/// How the plugin is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImagePolicy {
    /// Where the backend is, as a webhook's `clientConfig` says it.
    pub client_config: Value,
    /// What holds when it gives no answer.
    pub default_allow: bool,
}

/// How long the backend is waited for.
const TIMEOUT_SECONDS: u64 = 30;

pub(super) fn check(
    request: &Attributes<'_>,
    settings: &ImagePolicy,
    call: &mut Call<'_>,
) -> Result<(), Status> {
    let images = images(request);
    if images.is_empty() {
        return Ok(());
    }
    let containers: Vec<Value> = images.into_iter().map(|image| json!({"image": image})).collect();
    let annotations = at(at(request.object, "metadata"), "annotations").as_object().into_iter().flatten();
    let shown: Map<String, Value> = annotations
        .filter(|(key, _)| key.contains(SHOWN))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let review = json!({"apiVersion": VERSION, "kind": "ImageReview", "spec": {"containers": containers,
        "annotations": shown, "namespace": request.namespace}});
    let place = (NAME.into(), NAME.into());
    let asked =
        WebhookCall::new(place, settings.client_config.clone(), TIMEOUT_SECONDS, ReviewKind::Image, review);
    let given = asked.find(call.answers);
    let refused = |why: String| Err(Status::forbidden(request.resource, request.name, &why));
    let (verdict, what, said) = match given.map(|given| &given.answer) {
        Some(Answer::Allowed { .. }) => (Verdict::Passed, "allowed".to_owned(), Ok(())),
        Some(Answer::Denied { message, .. }) => {
            let why = match message.as_str() {
                "" => "one or more images rejected by webhook backend".to_owned(),
                why => format!("image policy webhook backend denied one or more images: {why}"),
            };
            (Verdict::Refused, why.clone(), refused(why))
        }
        None | Some(Answer::Failed { .. }) => {
            let why = match given.map(|given| &given.answer) {
                Some(Answer::Failed { why }) => why.clone(),
                Some(Answer::Allowed { .. } | Answer::Denied { .. }) | None => "it was not called".to_owned(),
            };
            match settings.default_allow {
                true => (Verdict::Skipped, format!("{why} (defaultAllow)"), Ok(())),
                false => (Verdict::Refused, why.clone(), refused(why)),
            }
        }
    };
    call.account.tell(Stage::Admission, verdict, || (NAME.to_owned(), what));
    match given {
        Some(given) => call.heard(given),
        None => call.is_due(Some(asked)),
    }
    said
}

/// Images that this request brings.
fn images<'a>(request: &Attributes<'a>) -> Vec<&'a str> {
    let lists: &[&str] = match (request.operation, request.subresource) {
        (Operation::Create, "") => &["containers", "initContainers"],
        (Operation::Update, "" | "dynamic") => &["containers", "initContainers"],
        (Operation::Update, "ephemeralcontainers") => &["ephemeralContainers"],
        (Operation::Create | Operation::Update | Operation::Delete, _) => &[],
    };
    if request.resource != "pods" {
        return Vec::new();
    }
    let brings = |list: &str, container: &Value| {
        let before = named(spec_list(request.old_object, list), name(container));
        before.is_none_or(|before| text(before, "image") != text(container, "image"))
    };
    let all = lists.iter().flat_map(|list| spec_list(request.object, list).iter().map(move |c| (*list, c)));
    all.filter(|(list, container)| brings(list, container))
        .map(|(_, container)| text(container, "image"))
        .collect()
}

/// Reads the ImageReview that came back.
pub(super) fn read(call: &WebhookCall, review: &Value) -> WebhookAnswer {
    let status = at(review, "status");
    let Some(allowed) = at(status, "allowed").as_bool() else {
        return call.failed("the ImageReview that came back has no status.allowed");
    };
    let answer = match allowed {
        true => Answer::Allowed { patch: None },
        false => {
            let message = text(status, "reason").to_owned();
            Answer::Denied { code: 403, reason: String::new(), message }
        }
    };
    WebhookAnswer { audit_annotations: review::annotations(status), ..call.answered(answer) }
}
