//! Commands in words: about which thing, and with what.

use crate::facts::{probe, sandbox};
use nodefold_core::about::About;
use nodefold_core::command::Action;
use nodefold_core::event::Hook;
use nodefold_core::resources::ResourceList;
use nodefold_core::spec::PullPolicy;

/// What a command is about: a container, a volume, a sandbox; empty for the pod or the node.
pub fn subject(action: &Action) -> String {
    match action.about() {
        About::Container(container) => container.to_string(),
        About::Volume(volume) => volume.to_string(),
        About::Sandbox(attempt) => sandbox(attempt),
        About::Pod | About::Node => String::new(),
    }
}

/// With what; may be empty.
pub fn detail(action: &Action) -> String {
    match action {
        Action::PullImage { image, policy, .. } => {
            let policy = match policy {
                PullPolicy::Always => "Always",
                PullPolicy::IfNotPresent => "IfNotPresent",
                PullPolicy::Never => "Never",
            };
            format!("{image}, {policy}")
        }
        Action::CreateContainer { spec, mounts, sandbox: attempt, .. } => {
            let mounts: Vec<String> = mounts.iter().map(|m| m.volume.to_string()).collect();
            format!("{} in {} with [{}]", spec.image, sandbox(*attempt), mounts.join(", "))
        }
        Action::StopContainer { grace, .. } => format!("grace {grace}"),
        Action::RunHook { hook, .. } => match hook {
            Hook::PostStart => "postStart".to_owned(),
            Hook::PreStop => "preStop".to_owned(),
        },
        Action::StartProbe { probe: kind, .. } | Action::StopProbe { probe: kind, .. } => {
            probe(*kind).to_owned()
        }
        Action::ResizeContainer { resources, .. } | Action::ResizePod { resources } => {
            let told = [("requests", &resources.requests), ("limits", &resources.limits)];
            let told = told.into_iter().filter(|(_, list)| !list.is_empty());
            told.map(|(word, list)| format!("{word} {}", amounts(list))).collect::<Vec<_>>().join("; ")
        }
        Action::PublishStatus { status, .. } => {
            let ready = status.containers.iter().filter(|c| c.ready).count();
            format!("{}, {ready}/{} ready", status.phase.as_str(), status.containers.len())
        }
        Action::RecordEvent(event) => {
            let weight = if event.warning { "Warning" } else { "Normal" };
            format!("{weight} {}: {}", event.reason, event.message)
        }
        Action::DeleteMirror { namespace, name } => format!("of {namespace}/{name}"),
        Action::MountVolume { .. }
        | Action::UnmountVolume { .. }
        | Action::RefreshVolume { .. }
        | Action::CreateSandbox { .. }
        | Action::StopSandbox { .. }
        | Action::RemoveSandbox { .. }
        | Action::StartContainer { .. }
        | Action::KillContainer { .. }
        | Action::RemoveContainer { .. }
        | Action::ObserveMounts
        | Action::ObserveRuntime
        | Action::ReleasePod
        | Action::CreateMirror { .. } => String::new(),
    }
}

/// Amounts as Kubernetes writes them: `cpu 500m, memory 1Gi`.
fn amounts(list: &ResourceList) -> String {
    let written = nodefold_k8s::resource_list_to_json(list);
    let pairs = written.as_object().into_iter().flatten();
    let pairs = pairs.map(|(name, amount)| format!("{name} {}", amount.as_str().unwrap_or_default()));
    pairs.collect::<Vec<_>>().join(", ")
}
