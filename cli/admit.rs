//! `nodefold admit`: would this request on `pods/dynamic` be accepted, and who has what to say about it? Offline, over the
//! manifests of a cluster.

use crate::args;
use crate::ending::{Ending, Unusable};
use crate::manifests;
use crate::out::Out;
use crate::paint::{Tone, paint};
use anyhow::Result;
use nodefold_api::admission::attributes::User;
use nodefold_api::authorize::rbac::Rbac;
use nodefold_api::{
    Account, Api, ApiConfig, ApiEvent, Body, Request, Response, Stage, Step, Verdict, check_handler,
};
use nodefold_core::time::Time;
use nodefold_k8s::default_pod;
use serde_json::{Value, json};
use std::path::Path;

/// Who asks, if nobody is named: nobody's roles are looked at then.
const ANYBODY: &str = "somebody";

/// Explains the decision.
pub fn admit(args: &args::Admit, out: &mut Out) -> Result<Ending> {
    let cluster = manifests::of_directory(&args.policies)?;
    let pod = the_pod(&args.pod)?;
    let body = the_request(&args.request, &pod)?;
    let named = |field: &str| pod["metadata"][field].as_str().unwrap_or_default().to_owned();
    let (namespace, name) = (named("namespace"), named("name"));
    let user = user(args);
    let rbac = args.user.as_ref().map(|_| Rbac::read(&cluster));
    // A webhook can't be called from here: what it would say is said to be taken for granted.
    let config = ApiConfig { absent_webhooks_allow: true, ..ApiConfig::default() };
    let api = Api::holding(config, others(&cluster, &pod).chain([pod.clone()]));
    let request = Request::Dynamic { namespace: namespace.as_str().into(), name: name.as_str().into(), body };
    let event = ApiEvent::of(Time(0), request, user.clone());
    let (response, account) = api.explain(&event, rbac.as_ref());

    let given_away = rbac.as_ref().map(Rbac::give_dynamic_unnamed).unwrap_or_default();
    let asked = Asked {
        pod: format!("{namespace}/{name}"),
        user: &user,
        authorized: rbac.is_some(),
        given_away,
        unstorable: cluster.iter().flat_map(unstorable).collect(),
    };
    if args.json {
        out.line(as_json(&asked, &response, &account));
    } else {
        tell(&asked, &response, &account, &pod, args.verbose, out);
    }
    Ok(if response.is_ok() { Ending::Good } else { Ending::Broken })
}

struct Asked<'a> {
    pod: String,
    user: &'a User,
    authorized: bool,
    /// Bindings through which anybody gets `pods/dynamic` without its being named.
    given_away: Vec<String>,
    /// What a server would not store of the handlers' manifests.
    unstorable: Vec<String>,
}

fn unstorable(manifest: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let who = format!("{} {:?}", text(&manifest["kind"]), text(&manifest["metadata"]["name"]));
    check_handler(manifest).iter().map(|cause| format!("{who}: {}: {}", cause.field, cause.message)).collect()
}

fn user(args: &args::Admit) -> User {
    let mut user = User::named(args.user.as_deref().unwrap_or(ANYBODY));
    user.groups.extend(args.groups.iter().map(|group| group.as_str().into()));
    user
}

/// The cluster's objects but the pod itself, which may be among them; pods with their defaults.
fn others<'a>(cluster: &'a [Value], pod: &'a Value) -> impl Iterator<Item = Value> + 'a {
    let place = |object: &Value| {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default").to_owned();
        (object["kind"].clone(), namespace, object["metadata"]["name"].clone())
    };
    cluster.iter().filter(move |object| place(object) != place(pod)).cloned().map(|mut object| {
        if object["kind"] == "Pod" {
            default_pod(&mut object);
        }
        object
    })
}

/// The one pod of the file, as it is stored.
fn the_pod(file: &Path) -> Result<Value> {
    let name = file.display();
    let mut pods = manifests::of_file(file)?;
    let is_one = pods.len() == 1 && pods[0]["kind"] == "Pod";
    let Some(mut pod) = pods.pop().filter(|_| is_one) else {
        let what = format!("{name}: exactly one Pod is needed");
        return Err(Unusable::new(what, "give what `kubectl get pod NAME -o yaml` prints").into());
    };
    default_pod(&mut pod);
    if !pod["spec"].is_object() || pod["metadata"]["name"].as_str().is_none_or(str::is_empty) {
        return Err(Unusable::new(format!("{name}: the pod has no name or no spec"), "").into());
    }
    if pod["metadata"]["namespace"].as_str().is_none_or(str::is_empty) {
        pod["metadata"]["namespace"] = json!("default");
    }
    Ok(pod)
}

/// The body: a list is a JSON patch, a whole Pod replaces, anything else is a strategic-merge patch.
fn the_request(file: &Path, pod: &Value) -> Result<Body> {
    let mut documents = manifests::documents(file)?;
    let alone = documents.len() == 1;
    let Some(mut body) = documents.pop().filter(|_| alone) else {
        let what = format!("{}: exactly one document is needed", file.display());
        return Err(Unusable::new(what, "give a patch, or the whole pod as it shall be").into());
    };
    // The pod's own version is none here: it is stored under a new one.
    let stored = &pod["metadata"]["resourceVersion"];
    let metadata = body.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(metadata) = metadata.filter(|m| m.get("resourceVersion").is_some_and(|v| v == stored)) {
        metadata.shift_remove("resourceVersion");
    }
    match &body {
        Value::Array(_) => Ok(Body::JsonPatch(body)),
        Value::Object(fields) if fields.get("kind").is_some_and(|kind| kind == "Pod") => Ok(Body::Full(body)),
        Value::Object(_) => Ok(Body::StrategicMerge(body)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            let what = format!("{}: this is no request", file.display());
            Err(Unusable::new(
                what,
                "give a patch (a mapping, or a list of JSON patch operations) or a whole pod",
            )
            .into())
        }
    }
}

/// The whole account as one object.
fn as_json(asked: &Asked<'_>, response: &Response, account: &Account) -> Value {
    let steps: Vec<Value> = account
        .steps()
        .iter()
        .map(|s| json!({"stage": s.stage.as_str(), "who": s.who, "verdict": s.verdict.as_str(), "what": s.what}))
        .collect();
    let (code, status, causes) = match response {
        Response::Ok { .. } => (200, Value::Null, Vec::new()),
        Response::Rejected(status) => {
            let rules = status.causes.iter().filter(|c| !c.rule.is_empty());
            let rules = rules.map(|c| json!({"rule": &*c.rule, "field": c.field})).collect();
            (status.code, status.to_json(), rules)
        }
    };
    json!({
        "allowed": response.is_ok(), "code": code, "pod": asked.pod, "user": &*asked.user.name,
        "groups": asked.user.groups.iter().map(|g| &**g).collect::<Vec<_>>(),
        "authorized": asked.authorized, "dynamicGivenAwayBy": asked.given_away,
        "unstorable": asked.unstorable, "steps": steps, "brokenRules": causes, "status": status,
    })
}

/// The account in lines.
fn tell(
    asked: &Asked<'_>,
    response: &Response,
    account: &Account,
    pod: &Value,
    verbose: bool,
    out: &mut Out,
) {
    let by = if asked.authorized { format!(", by {}", asked.user.name) } else { String::new() };
    out.line(paint(Tone::Step.style(), format!("pods/dynamic of {}{by}", asked.pod)));
    if !asked.authorized {
        out.line(line(Stage::Authorization, Tone::Quiet, '-', "", "not asked: name a user with --as"));
    }
    for binding in &asked.given_away {
        let what = format!("{binding} gives pods/dynamic away without naming it");
        out.line(line(Stage::Authorization, Tone::Warning, '!', "", &what));
    }
    for what in &asked.unstorable {
        let what = format!("{what}: a server would not store it");
        out.line(line(Stage::Coverage, Tone::Warning, '!', "", &what));
    }
    let held = |step: &&Step| step.stage == Stage::Validation && step.verdict == Verdict::Passed;
    let rules_held = account.steps().iter().filter(held).count();
    let mut rules_told = false;
    for step in account.steps() {
        if held(&step) && !verbose {
            if !rules_told {
                let what = format!("{rules_held} numbered rules hold (--verbose lists them)");
                out.line(line(Stage::Validation, Tone::Good, '✓', "", &what));
                rules_told = true;
            }
            continue;
        }
        let (tone, sign) = match step.verdict {
            Verdict::Passed => (Tone::Good, '✓'),
            Verdict::Changed => (Tone::Good, '±'),
            Verdict::Skipped => (Tone::Quiet, '-'),
            Verdict::Warned => (Tone::Warning, '!'),
            Verdict::Refused => (Tone::Bad, '✗'),
        };
        out.line(line(step.stage, tone, sign, &step.who, &step.what));
    }
    match response {
        Response::Ok { .. } => out.line(paint(Tone::Good.style(), "allowed")),
        Response::Rejected(status) => {
            let head = format!("refused: {} {}", status.code, status.reason.as_str());
            out.line(paint(Tone::Bad.style(), head.trim_end()));
            // The causes of a 422 are told above, each with its rule.
            if status.causes.iter().all(|cause| cause.rule.is_empty()) {
                out.line(format!("  {}", status.message));
            }
            if pod["status"].is_null() {
                let hint = "  the pod of --pod has no status, so it counts as one that isn't running";
                out.line(paint(Tone::Warning.style(), hint));
            }
        }
    }
}

fn line(stage: Stage, tone: Tone, sign: char, who: &str, what: &str) -> String {
    let what = what.replace('\n', "; ");
    let told = match (who, what.as_str()) {
        ("", what) => what.to_owned(),
        (who, "") => who.to_owned(),
        (who, what) => format!("{who}: {what}"),
    };
    let stage = paint(Tone::Quiet.style(), format!("  {:<13}", stage.as_str()));
    format!("{stage} {} {told}", paint(tone.style(), sign))
}
