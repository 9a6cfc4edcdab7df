//! A container of a v1.Pod, of any of the three lists, to the core's [`Container`].

use crate::defaults::default_pull_policy;
use crate::fields::{Fields, Problems};
use crate::problem::{self, FieldProblem, ProblemReason};
use crate::read_pod::{read_resources, seconds};
use nodefold_core::few::Few;
use nodefold_core::resources::ResourceName;
use nodefold_core::spec::{
    Container, Probe, PullPolicy, RestartAction, RestartPolicy, RestartRule, VolumeMount,
};
use serde_json::Value;

/// The lists that containers stand in.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum ContainerList {
    Init,
    Main,
    Ephemeral,
}

impl ContainerList {
    /// The list's field in the pod's spec.
    pub const fn field(self) -> &'static str {
        match self {
            ContainerList::Init => "initContainers",
            ContainerList::Main => "containers",
            ContainerList::Ephemeral => "ephemeralContainers",
        }
    }
}

pub(crate) const PULL_POLICIES: [(&str, PullPolicy); 3] = [
    ("Always", PullPolicy::Always),
    ("IfNotPresent", PullPolicy::IfNotPresent),
    ("Never", PullPolicy::Never),
];

pub(crate) const RESTART_POLICIES: [(&str, RestartPolicy); 3] = [
    ("Always", RestartPolicy::Always),
    ("OnFailure", RestartPolicy::OnFailure),
    ("Never", RestartPolicy::Never),
];

/// The pull policy of an image that gives none.
pub(crate) fn pull_policy(image: &str) -> PullPolicy {
    let spelling = default_pull_policy(image);
    PULL_POLICIES.iter().find(|(name, _)| *name == spelling).map_or(PullPolicy::Always, |(_, policy)| *policy)
}

pub(crate) fn read(path: String, value: Value, list: ContainerList, out: &mut Problems) -> Container {
    let mut fields = Fields::new(path, value, out);
    let name = fields.required_text("name", "give the container a name", out);
    let image = fields.required_text("image", "name an image", out);
    let resources = match fields.object("resources", out) {
        Some(mut resources) => {
            let read = read_resources(&mut resources, out);
            if !resources.is_empty() {
                fields.keep("resources", Value::Object(resources.into_map()));
            }
            read
        }
        None => Default::default(),
    };
    let allowed = match list {
        // On a sidecar's list only Always and, with rules, the others; which of them is the API's to check.
        ContainerList::Init | ContainerList::Main => RESTART_POLICIES.as_slice(),
        ContainerList::Ephemeral => &[],
    };
    let restart_policy = if allowed.is_empty() { None } else { fields.choice("restartPolicy", allowed, out) };
    Container {
        pull_policy: fields
            .choice("imagePullPolicy", &PULL_POLICIES, out)
            .unwrap_or_else(|| pull_policy(&image)),
        restart_policy,
        restart_rules: restart_rules(&mut fields, out),
        resources,
        resize_restarts: resize_restarts(&fields),
        mounts: mounts(&mut fields, out),
        restart_on_mount_change: restart_on_mount_change(&mut fields, out),
        startup_probe: probe(&fields, "startupProbe"),
        liveness_probe: probe(&fields, "livenessProbe"),
        readiness_probe: probe(&fields, "readinessProbe"),
        post_start: hook(&fields, "postStart"),
        pre_stop: hook(&fields, "preStop"),
        name,
        image,
        rest: fields.rest(),
    }
}

fn restart_rules(fields: &mut Fields, out: &mut Problems) -> Few<RestartRule> {
    let path = fields.path_of("restartPolicyRules");
    let rules = fields.list("restartPolicyRules", out).into_iter().enumerate();
    rules.filter_map(|(i, rule)| restart_rule(problem::index(&path, i), rule, out)).collect()
}

fn restart_rule(path: String, value: Value, out: &mut Problems) -> Option<RestartRule> {
    let mut rule = Fields::new(path, value, out);
    let actions =
        [("Restart", RestartAction::Restart), ("RestartAllContainers", RestartAction::RestartAllContainers)];
    let action = rule.choice("action", &actions, out);
    if action.is_none() && rule.peek("action").is_none() {
        out.push(FieldProblem::required(rule.path_of("action"), "use Restart or RestartAllContainers"));
    }
    let Some(mut exit_codes) = rule.object("exitCodes", out) else {
        out.push(FieldProblem::required(rule.path_of("exitCodes"), "give an operator and values"));
        return None;
    };
    let negated = exit_codes.choice("operator", &[("In", false), ("NotIn", true)], out)?;
    let path = exit_codes.path_of("values");
    let mut codes = Vec::new();
    for (i, value) in exit_codes.list("values", out).into_iter().enumerate() {
        match value.as_i64().and_then(|code| i32::try_from(code).ok()) {
            Some(code) => codes.push(code),
            None => out.push(FieldProblem::new(
                problem::index(&path, i),
                ProblemReason::Invalid,
                format!("{value} is no exit code"),
                "use a number from 0 to 255",
            )),
        }
    }
    Some(RestartRule { negated, codes, action: action? })
}

/// A digest: `resizePolicy` stays whole in the rest, since it also says `NotRequired`.
fn resize_restarts(fields: &Fields) -> Few<ResourceName> {
    let policies = fields.peek("resizePolicy").and_then(Value::as_array).into_iter().flatten();
    policies
        .filter(|p| p.get("restartPolicy").and_then(Value::as_str) == Some("RestartContainer"))
        .filter_map(|p| p.get("resourceName").and_then(Value::as_str).map(ResourceName::parse))
        .collect()
}

fn mounts(fields: &mut Fields, out: &mut Problems) -> Vec<VolumeMount> {
    let path = fields.path_of("volumeMounts");
    let mounts = fields.list("volumeMounts", out).into_iter().enumerate();
    mounts
        .map(|(i, mount)| {
            let mut mount = Fields::new(problem::index(&path, i), mount, out);
            VolumeMount {
                name: mount.required_text("name", "name a volume of the pod", out),
                mount_path: mount.required_text("mountPath", "give a path in the container", out),
                read_only: mount.flag("readOnly", out),
                rest: mount.rest(),
            }
        })
        .collect()
}

/// KEP-6395's `dynamicVolumePolicy`. It leaves the rest when the flag says all of it; an empty policy stays.
fn restart_on_mount_change(fields: &mut Fields, out: &mut Problems) -> bool {
    let Some(mut policy) = fields.object("dynamicVolumePolicy", out) else { return false };
    let restarts = policy.choice("restartPolicy", &[("RestartContainer", true), ("", false)], out);
    if restarts == Some(true) && policy.is_empty() {
        return true;
    }
    if restarts.is_some() {
        policy
            .keep("restartPolicy", Value::from(if restarts == Some(true) { "RestartContainer" } else { "" }));
    }
    fields.keep("dynamicVolumePolicy", Value::Object(policy.into_map()));
    restarts.unwrap_or(false)
}

/// A digest: the probe stays whole in the rest.
fn probe(fields: &Fields, name: &str) -> Option<Probe> {
    let probe = fields.peek(name)?;
    Some(Probe { grace: probe.get("terminationGracePeriodSeconds").and_then(Value::as_i64).map(seconds) })
}

/// A digest: the hook stays whole in the rest.
fn hook(fields: &Fields, name: &str) -> bool {
    fields.peek("lifecycle").and_then(|l| l.get(name)).is_some_and(|hook| !hook.is_null())
}
