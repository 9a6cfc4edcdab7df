//! From a container's manifest to what its first process becomes: command, environment, user, confinement. By Kubernetes'
//! rules; what can't be had is told with its reasons.

use crate::beneath;
use crate::confine;
use crate::fault::Fault;
use crate::fields::PodFields;
use crate::ids::Ids;
use crate::images::{Image, user_of};
use crate::objects::Objects;
use crate::pod::plan::{ContainerPlan, StorageLimits, UserIds};
use crate::seccomp::Instruction;
use nodefold_core::ids::{Name, ObjectKind, ObjectRef};
use nodefold_core::resources::{ResourceName, Resources};
use nodefold_core::spec::{Container, PodSpec};
use rustix::fs::OFlags;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

/// A profile longer than this is none.
const LONGEST_PROFILE: u64 = 1 << 20;

/// What can't be composed.
fn config_error(message: impl Into<String>) -> Fault {
    Fault::refused(message).because("CreateContainerConfigError")
}

/// Composes a container, its mounts aside. `profiles`: where the operator's seccomp profiles are; `ids`: those that there are.
pub fn compose(
    container: &Container,
    image: &Image,
    fields: &PodFields<'_>,
    objects: &Objects,
    (profiles, ids): (&Path, &Ids),
) -> Result<ContainerPlan, Fault> {
    let manifest = nodefold_k8s::blob_to_json(&container.rest);
    let pod = nodefold_k8s::blob_to_json(&fields.spec.rest);
    let env = environment(container, &manifest, image, fields, objects)?;
    let known: BTreeMap<&str, &str> = env.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let words = |list: &Value| -> Vec<String> {
        let words = list.as_array().into_iter().flatten().filter_map(Value::as_str);
        words.map(|word| expand(word, &|name| known.get(name).map(|value| (*value).to_owned()))).collect()
    };
    let (command, arguments) = (words(&manifest["command"]), words(&manifest["args"]));
    let args: Vec<String> = match (command.is_empty(), arguments.is_empty()) {
        (true, true) => image.entrypoint.iter().chain(&image.command).cloned().collect(),
        (true, false) => image.entrypoint.iter().cloned().chain(arguments).collect(),
        (false, _) => command.into_iter().chain(arguments).collect(),
    };
    if args.is_empty() {
        return Err(Fault::refused(format!(
            "no command specified: neither container {} nor its image says what to run",
            container.name
        )));
    }
    let own = &manifest["securityContext"];
    let of_pod = &pod["securityContext"];
    let either = |name: &str| if own[name].is_null() { &of_pod[name] } else { &own[name] };
    let asked = number(either("runAsUser"), "runAsUser")?;
    let spec = asked.map_or_else(|| image.user.clone(), |uid| uid.to_string());
    let non_root = either("runAsNonRoot").as_bool() == Some(true);
    let told =
        || format!("(pod: \"{}/{}\", container: {})", fields.pod.namespace, fields.pod.name, container.name);
    let name = spec.split(':').next().unwrap_or("");
    if non_root && !name.is_empty() && name.parse::<u32>().is_err() {
        return Err(config_error(format!(
            "container has runAsNonRoot and image has non-numeric user ({name}), cannot verify user is non-root {}",
            told()
        )));
    }
    let user = user_of(&image.root, &spec).map_err(|fault| config_error(fault.message))?;
    let uid = user.uid;
    let gid = number(either("runAsGroup"), "runAsGroup")?.unwrap_or(user.gid);
    let has_own_users = pod["hostUsers"].as_bool() == Some(false);
    if let Some(id) = [uid, gid].into_iter().find(|id| has_own_users && *id >= UserIds::LENGTH) {
        return Err(config_error(format!(
            "user or group {id} is not in the pod's user namespace, whose ids end with {} {}",
            UserIds::LENGTH - 1,
            told()
        )));
    }
    if non_root && uid == 0 {
        return Err(config_error(format!(
            "container has runAsNonRoot and image will run as root {}",
            told()
        )));
    }
    let mut env = env;
    if !env.iter().any(|(key, _)| key == "HOME") {
        env.push(("HOME".into(), user.home));
    }
    let mut groups = vec![gid];
    if of_pod["supplementalGroupsPolicy"].as_str() != Some("Strict") {
        groups.extend(user.groups.into_iter().filter(|group| *group != gid));
    }
    for group in of_pod["supplementalGroups"].as_array().into_iter().flatten().chain([&of_pod["fsGroup"]]) {
        groups.extend(number(group, "supplementalGroups")?.filter(|group| !groups.contains(group)));
    }
    ids.user("user", uid)
        .and_then(|()| groups.iter().try_for_each(|id| ids.group("group", *id)))
        .map_err(config_error)?;
    if !ids.sets_groups && groups != [gid] {
        return Err(config_error(
            "supplementalGroups can't be had of a rootless node whose user has one id only: it keeps his own",
        ));
    }
    let privileged = own["privileged"].as_bool().unwrap_or(false);
    if privileged && !ids.are_the_hosts() {
        return Err(config_error(
            "privileged: true can't be had of a rootless node: it has no rights on the host to give",
        ));
    }
    let names = |list: &str| -> Vec<&str> {
        own["capabilities"][list].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    };
    let capabilities = match privileged {
        true => confine::all(),
        false => confine::capabilities(&names("add"), &names("drop")).map_err(config_error)?,
    };
    let memory_request = container.resources.requests.get(&ResourceName::Memory);
    let node_memory = fields.allocatable.get(&ResourceName::Memory);
    let hidden = own["procMount"].as_str() != Some("Unmasked");
    let paths = |list: &[&str]| {
        if hidden { list.iter().map(|path| (*path).to_owned()).collect() } else { Vec::new() }
    };
    Ok(ContainerPlan {
        args,
        env,
        cwd: [manifest["workingDir"].as_str().unwrap_or(""), &image.working_directory, "/"]
            .into_iter()
            .find(|dir| !dir.is_empty())
            .unwrap_or("/")
            .to_owned(),
        uid,
        gid,
        groups,
        keeps_groups: !ids.sets_groups,
        mounts: Vec::new(),
        read_only_root: own["readOnlyRootFilesystem"].as_bool().unwrap_or(false),
        capabilities,
        no_new_privileges: !privileged && own["allowPrivilegeEscalation"].as_bool() == Some(false),
        privileged,
        host_pid: pod["hostPID"].as_bool().unwrap_or(false),
        masked: paths(&confine::MASKED),
        read_only: paths(&confine::READ_ONLY),
        oom_score_adj: confine::oom_score_adj(fields.spec.qos, memory_request, node_memory),
        seccomp: seccomp(either("seccompProfile"), capabilities, privileged, profiles)?,
        umask: 0o022,
        cgroups: Vec::new(),
        image: image.id.clone(),
        last_words_from_log: manifest["terminationMessagePolicy"].as_str() == Some("FallbackToLogsOnError"),
        storage: storage_limits(container, fields.spec),
        stop_signal: stop_signal(&manifest, image)?,
        slot: None,
    })
}

/// What a container, and its pod, may take up of the disk. A pod's limit is its own, or the sum where every main container has
/// one, as the core has it.
fn storage_limits(container: &Container, pod: &PodSpec) -> StorageLimits {
    let limit = |resources: &Resources| resources.limits.given(&ResourceName::EphemeralStorage);
    let sum =
        || pod.containers.iter().try_fold(0_u64, |sum, c| Some(sum.saturating_add(limit(&c.resources)?)));
    let of_pod = pod.resources.as_ref().and_then(limit).or_else(sum);
    StorageLimits { own: limit(&container.resources), of_pod: of_pod.filter(|limit| *limit > 0) }
}

/// The signal that asks a container to end: its own, its image's, or TERM.
fn stop_signal(manifest: &Value, image: &Image) -> Result<Option<i32>, Fault> {
    let asked = manifest["lifecycle"]["stopSignal"].as_str().or(image.stop_signal.as_deref());
    let Some(name) = asked else { return Ok(None) };
    let number = crate::signals::number(name);
    number
        .map(Some)
        .ok_or_else(|| config_error(format!("{name} is no signal that can ask a container to end")))
}

/// The programs of a seccomp profile. Without one, and for a privileged container, there is no filter: as Kubernetes has it.
fn seccomp(
    profile: &Value,
    capabilities: u64,
    privileged: bool,
    profiles: &Path,
) -> Result<Vec<Vec<Instruction>>, Fault> {
    match profile["type"].as_str() {
        _ if privileged => Ok(Vec::new()),
        None | Some("Unconfined") => Ok(Vec::new()),
        Some("RuntimeDefault") => {
            crate::seccomp::runtime_default(capabilities).map(|program| vec![program]).map_err(config_error)
        }
        Some("Localhost") => {
            let name = profile["localhostProfile"].as_str().unwrap_or("");
            let told = |why: &str| config_error(format!("cannot load seccomp profile {name:?}: {why}"));
            let root = beneath::open_root(profiles).map_err(|fault| told(&fault.message))?;
            let file = beneath::open(&root, name, OFlags::RDONLY | OFlags::NONBLOCK);
            let file = file.map_err(|errno| told(&std::io::Error::from(errno).to_string()))?;
            let mut text = Vec::new();
            let read = std::fs::File::from(file).take(LONGEST_PROFILE).read_to_end(&mut text);
            read.map_err(|error| told(&error.to_string()))?;
            crate::seccomp::localhost(&text).map(|program| vec![program]).map_err(|why| told(&why))
        }
        Some(kind) => Err(config_error(format!("this node can't install a seccomp profile of type {kind}"))),
    }
}

fn number(value: &Value, what: &str) -> Result<Option<u32>, Fault> {
    if value.is_null() {
        return Ok(None);
    }
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    number.map(Some).ok_or_else(|| config_error(format!("{what}: {value} is no id")))
}

/// The environment in order: the image's, the host name, `envFrom`, `env`; a later one of a name replaces an earlier one.
fn environment(
    container: &Container,
    manifest: &Value,
    image: &Image,
    fields: &PodFields<'_>,
    objects: &Objects,
) -> Result<Vec<(String, String)>, Fault> {
    let mut env: Vec<(String, String)> = Vec::new();
    for (key, value) in &image.env {
        set(&mut env, key, value.clone());
    }
    set(&mut env, "HOSTNAME", hostname(fields));
    for source in manifest["envFrom"].as_array().into_iter().flatten() {
        let prefix = source["prefix"].as_str().unwrap_or("");
        let (kind, of) = match source["configMapRef"].is_object() {
            true => (ObjectKind::ConfigMap, &source["configMapRef"]),
            false => (ObjectKind::Secret, &source["secretRef"]),
        };
        for (key, value) in keys(kind, of, fields, objects)?.unwrap_or_default() {
            set(&mut env, &format!("{prefix}{key}"), text(value));
        }
    }
    for entry in manifest["env"].as_array().into_iter().flatten() {
        let name = entry["name"].as_str().unwrap_or("");
        let from = &entry["valueFrom"];
        let value = if from["fieldRef"].is_object() {
            Some(fields.field(from["fieldRef"]["fieldPath"].as_str().unwrap_or("")).map_err(config_error)?)
        } else if from["resourceFieldRef"].is_object() {
            Some(fields.resource(&from["resourceFieldRef"], Some(&container.name)).map_err(config_error)?)
        } else if from["configMapKeyRef"].is_object() {
            key(ObjectKind::ConfigMap, &from["configMapKeyRef"], fields, objects)?
        } else if from["secretKeyRef"].is_object() {
            key(ObjectKind::Secret, &from["secretKeyRef"], fields, objects)?
        } else {
            let value = entry["value"].as_str().unwrap_or("");
            Some(expand(value, &|name| {
                env.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
            }))
        };
        if let Some(value) = value {
            set(&mut env, name, value);
        }
    }
    Ok(env)
}

/// The pod's host name: its own if it gives one, else its name.
pub fn hostname(fields: &PodFields<'_>) -> String {
    let pod = nodefold_k8s::blob_to_json(&fields.spec.rest);
    let name = pod["hostname"].as_str().filter(|name| !name.is_empty()).unwrap_or(&fields.pod.name);
    // The kernel takes 64 bytes; Kubernetes cuts at 63.
    name.chars().take(63).collect()
}

fn set(env: &mut Vec<(String, String)>, key: &str, value: String) {
    match env.iter_mut().find(|(known, _)| known == key) {
        Some((_, known)) => *known = value,
        None => env.push((key.to_owned(), value)),
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

/// All keys of an object; `None`: there is none, and that is all right.
fn keys(
    kind: ObjectKind,
    reference: &Value,
    fields: &PodFields<'_>,
    objects: &Objects,
) -> Result<Option<BTreeMap<String, Vec<u8>>>, Fault> {
    let name = reference["name"].as_str().unwrap_or("");
    let object = ObjectRef { kind, namespace: fields.pod.namespace.clone(), name: Name::from(name) };
    match objects.get(&object) {
        Some(object) => Ok(Some(nodefold_k8s::object_data(&object))),
        None if reference["optional"].as_bool() == Some(true) => Ok(None),
        None => {
            let word = match kind {
                ObjectKind::Secret => "secret",
                ObjectKind::ConfigMap => "configmap",
                ObjectKind::ClusterTrustBundle => "clustertrustbundle",
            };
            Err(config_error(format!("{word} \"{name}\" not found")))
        }
    }
}

fn key(
    kind: ObjectKind,
    reference: &Value,
    fields: &PodFields<'_>,
    objects: &Objects,
) -> Result<Option<String>, Fault> {
    let Some(mut keys) = keys(kind, reference, fields, objects)? else { return Ok(None) };
    let name = reference["key"].as_str().unwrap_or("");
    match keys.remove(name) {
        Some(value) => Ok(Some(text(value))),
        None if reference["optional"].as_bool() == Some(true) => Ok(None),
        None => {
            let of = reference["name"].as_str().unwrap_or("");
            Err(config_error(format!(
                "couldn't find key {name} in {} {}/{of}",
                kind_word(kind),
                fields.pod.namespace
            )))
        }
    }
}

fn kind_word(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Secret => "Secret",
        ObjectKind::ConfigMap => "ConfigMap",
        ObjectKind::ClusterTrustBundle => "ClusterTrustBundle",
    }
}

/// `$(NAME)` becomes the variable's value; `$$` is a dollar that starts nothing; what names no variable stays as it is.
pub fn expand(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(dollar) = rest.find('$') {
        out.push_str(&rest[..dollar]);
        rest = &rest[dollar + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some((name, after)) = rest.strip_prefix('(').and_then(|inner| inner.split_once(')')) {
            match variable(name) {
                Some(value) => out.push_str(&value),
                None => out.push_str(&format!("$({name})")),
            }
            rest = after;
        } else {
            out.push('$');
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_expanded_as_kubernetes_does() {
        let variable = |name: &str| (name == "A").then(|| "1".to_owned());
        for (text, expanded) in [
            ("$(A)", "1"),
            ("x$(A)y$(A)", "x1y1"),
            ("$(B)", "$(B)"),
            ("$$(A)", "$(A)"),
            ("$$$(A)", "$1"),
            ("$A $ $", "$A $ $"),
            ("$(A", "$(A"),
            ("$()", "$()"),
        ] {
            assert_eq!(expand(text, &variable), expanded, "{text}");
        }
    }
}
