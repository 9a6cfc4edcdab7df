//! The catalogue of structured messages, 1.19 to 1.36 (node-logs §2): which message says what.
//!
//! Only the choice is here; `readers` reads what a message's pairs carry. Messages were reworded over the years, so
//! several spellings may share a line.

use super::Reader::{self, Own, Plain};
use super::{readers, sentence};
use crate::scan::quoted_len;
use crate::verb::Verb;

/// The reader for a structured body.
pub fn recognise(body: &[u8]) -> Option<Reader> {
    let inner = &body[1..];
    match inner.first()? {
        // A sentence of the volume manager, passed as a message; its own quotes are escaped.
        b'o' | b'V' | b'C' | b'M' | b'U' if sentence::operation(inner).is_some() => {
            return Some(Own(sentence::read_structured));
        }
        _ => {}
    }
    let Some(len) = quoted_len(inner) else { return cut_message(inner) };
    let message = &inner[..len];
    match message.first()? {
        b'S' => source_and_sync(message).or_else(|| runtime_service(message)),
        b'P' => pod(message),
        b'C' | b'K' | b'D' | b'G' | b'R' => container(message).or_else(|| runtime_service(message)),
        b'A' | b'O' | b'V' | b'W' | b'T' => volume(message),
        b'E' | b'F' | b'U' | b'M' | b'N' | b'I' | b'B' | b's' | b'c' | b'p' | b'L' | b'k' => other(message),
        _ => None,
    }
}

/// A message that the pager cut: only sentences tell enough by their beginning.
fn cut_message(inner: &[u8]) -> Option<Reader> {
    sentence::operation(inner).map(|_| Own(sentence::read_structured))
}

fn source_and_sync(message: &[u8]) -> Option<Reader> {
    Some(match message {
        b"SyncLoop ADD"
        | b"SyncLoop UPDATE"
        | b"SyncLoop REMOVE"
        | b"SyncLoop DELETE"
        | b"SyncLoop RECONCILE" => Own(readers::source),
        b"SyncLoop (PLEG): event for pod"
        | b"SyncLoop (PLEG): pod does not exist, ignore irrelevant event"
        | b"SyncLoop (PLEG): ignore irrelevant event" => Own(readers::pleg),
        _ if message.starts_with(b"Server rejected event") => Own(crate::events_table::refused),
        b"SyncPod enter" => Plain(Verb::SyncEntered),
        b"SyncTerminatingPod enter" | b"SyncTerminatedPod enter" | b"SyncTerminatingRuntimePod enter" => {
            Plain(Verb::TerminationSynced)
        }
        b"Stopping PodSandbox for pod, will start new one" => Plain(Verb::SandboxNeeded),
        b"Sync exited with context cancellation error" => Plain(Verb::SyncCancelled),
        b"Skipping pod synchronization" => Plain(Verb::LoopBlocked),
        b"Starting kubelet main sync loop" | b"Starting Kubelet Volume Manager" => {
            Plain(Verb::KubeletStarted)
        }
        b"Starting eviction manager" | b"Starting to sync pod status with apiserver" => {
            Plain(Verb::KubeletStarted)
        }
        b"Shutdown manager detected new shutdown event" => Plain(Verb::NodeShutdown),
        b"Shutdown manager killing pod with gracePeriod" => Plain(Verb::KillOrdered),
        b"Status for pod updated successfully" => Own(readers::status_updated),
        b"Sandbox for pod has changed. Need to start a new one" => Plain(Verb::SandboxChanged),
        _ => return None,
    })
}

fn pod(message: &[u8]) -> Option<Reader> {
    Some(match message {
        b"Patch status for pod" => Own(readers::patch),
        b"Post-termination container state" => Own(readers::post_termination),
        b"Pod is being synced for the first time" => Plain(Verb::FirstSync),
        b"Pod cannot start yet" | b"Pod cannot start ever" => Plain(Verb::StartBlocked),
        b"Pod is terminating but has been requested to restart with same UID, will be reconciled later" => {
            Plain(Verb::RestartSameUid)
        }
        b"Pod is orphaned and must be torn down"
        | b"Pod is marked for graceful deletion, begin teardown"
        | b"Pod is in a terminal phase (success/failed), begin teardown"
        | b"Pod is being evicted by the kubelet, begin teardown"
        | b"Pod is being removed by the kubelet, begin teardown"
        | b"Pod is orphaned and still running, began terminating" => Own(readers::termination_began),
        b"Pod worker has been requested for removal but is still not fully terminated" => {
            Plain(Verb::WorkerNotDone)
        }
        b"Processing pod event" => Own(readers::processed),
        b"Pod terminating with grace period" => Plain(Verb::TerminationSynced),
        b"Pod termination stopped all running containers" => Plain(Verb::ContainersStopped),
        b"Pod termination unmounted volumes" => Plain(Verb::VolumesUnmounted),
        b"Pod termination removed cgroups" => Plain(Verb::CgroupsRemoved),
        b"Pod termination cleaned up volume paths" => Plain(Verb::PathsCleaned),
        b"Pod is terminated, but some volumes have not been cleaned up" => Plain(Verb::VolumesLeft),
        b"Pod is terminated, but some containers are still running"
        | b"Pod is terminated, but some pod sandboxes have not been cleaned up" => Plain(Verb::ContainersLeft),
        b"Pod is complete and the worker can now stop" | b"Pod worker has stopped" => Plain(Verb::WorkerStopped),
        b"Pod has been deleted and must be killed" => Plain(Verb::KillOrdered),
        b"Pod fully terminated and removed from etcd" => Plain(Verb::PodReleased),
        b"Pod was deleted and then recreated, skipping status update" => Own(readers::recreated),
        b"Pod attempted illegal phase transition" => Plain(Verb::IllegalTransition),
        b"Pod still has one or more containers in the non-exited state and will not be removed from desired state" => {
            Plain(Verb::VolumesHeld)
        }
        b"PreStop hook completed" | b"PreStop hook failed" => Plain(Verb::HookDone),
        b"PreStop hook not completed in grace period" => Own(readers::hook_late),
        b"PodSandboxStatus of sandbox for pod" => Own(readers::sandbox_unknown),
        b"Pod admission denied" => Plain(Verb::AdmissionDenied),
        b"Preempting pod to free up resources" => Plain(Verb::Evicted),
        b"Pod resize is deferred; will reevaluate later" | b"Pod resize is infeasible" => {
            Plain(Verb::ResizeRefused)
        }
        b"Pod resize successfully allocated" => Plain(Verb::Allocated),
        _ if message.ends_with(b"programmer error") => Plain(Verb::ProgrammerError),
        _ => return None,
    })
}

fn container(message: &[u8]) -> Option<Reader> {
    Some(match message {
        b"Killing container with a grace period" => Own(readers::kill),
        b"Killing container with a grace period override" => Own(readers::kill_override),
        b"Killing unwanted container for pod" => Plain(Verb::KillPlanned),
        b"Kill container failed" | b"Container termination failed with gracePeriod" => Plain(Verb::StopFailed),
        b"Container exited normally" => Plain(Verb::StopReturned),
        b"Container not found in pod's containers" => Plain(Verb::ContainerUnknown),
        b"Creating container in pod" => Own(readers::creating),
        b"Created PodSandbox for pod" => Own(readers::sandbox_created),
        b"GenericPLEG" => Own(readers::generic_pleg),
        b"Generic (PLEG): container finished" => Own(readers::finished),
        b"Got phase for pod" => Own(readers::phase),
        b"Generating pod status" => Plain(Verb::StatusGenerated),
        b"Delaying pod deletion as the phase is non-terminal" => Plain(Verb::DeletionDelayed),
        b"DeleteContainer returned error" => Plain(Verb::RemoveRaced),
        b"Removing container" => Plain(Verb::RemoveStarted),
        b"RemoveContainer" => Plain(Verb::RemovalNoted),
        b"Removing sandbox" => Own(readers::removing_sandbox),
        b"Receiving a new pod" => Plain(Verb::PodReceived),
        b"Running preStop hook" => Plain(Verb::HookStarted),
        b"Resize cannot be accommodated" => Plain(Verb::ResizeRefused),
        b"Removing volume from desired state" => Own(readers::desired_gone),
        b"Reconciler: start to sync state" => Plain(Verb::KubeletStarted),
        b"Reconciler sync states: could not find pod information in desired state, update it in actual state" => {
            Own(readers::reconstructed)
        }
        b"Reconciler sync states: could not find volume information in desired state, clean up the mount points" => {
            Own(readers::cleanup)
        }
        b"Cleaning up mounts for volume that could not be reconstructed" => Own(readers::cleanup),
        b"Could not construct volume information, cleaning up mounts"
        | b"Could not construct volume information" => Own(readers::reconstruct_failed),
        b"Clean up containers for orphaned pod we had not seen before"
        | b"Clean up orphaned pod containers" => Plain(Verb::PodOrphaned),
        b"Deleted mirror pod because it is outdated" | b"Creating a mirror pod for static pod" => {
            Plain(Verb::MirrorPod)
        }
        _ if message.starts_with(b"Cleaned up orphaned") => Own(readers::orphan_cleaned),
        _ if message.starts_with(b"Deleted mirror pod") => Plain(Verb::MirrorPod),
        _ if message.starts_with(b"Could not initialize") => Own(readers::checkpoint_unreadable),
        _ if message.ends_with(b"programmer error") => Plain(Verb::ProgrammerError),
        _ => return None,
    })
}

fn volume(message: &[u8]) -> Option<Reader> {
    Some(match message {
        b"All volumes are attached and mounted for pod" => Plain(Verb::VolumesReady),
        b"All volumes are unmounted for pod" => Plain(Verb::VolumesUnmounted),
        b"Adding static pod path" => Plain(Verb::KubeletStarted),
        b"Added volume to desired state" => Own(readers::desired),
        b"Waiting for volumes to attach and mount for pod" => Plain(Verb::VolumesAwaited),
        b"Waiting for volumes to unmount for pod" => Plain(Verb::UnmountAwaited),
        b"Volume is marked as uncertain and added into the actual state" => Own(readers::reconstructed),
        b"Volume reconstruction finished"
        | b"Orphan volume cleanup finished"
        | b"Volume reconstruction is finished" => Plain(Verb::ReconstructionDone),
        b"The pod termination is finished as SyncTerminatedPod completes its execution" => {
            Plain(Verb::TerminationFinished)
        }
        b"There were many similar errors. Turn up verbosity to see them." => Own(readers::orphan_left),
        b"Trying to delete pod" => Plain(Verb::MirrorPod),
        b"Observed a panic" => Plain(Verb::PanicCaught),
        _ if message.starts_with(b"Orphaned pod found, but volume") => Plain(Verb::OrphanVolumesLeft),
        _ => return None,
    })
}

fn other(message: &[u8]) -> Option<Reader> {
    Some(match message {
        b"Event occurred" => Own(readers::event),
        b"Failed to stop sandbox before removing" => Own(readers::sandbox_stop_failed),
        b"Error syncing pod, skipping" => Own(readers::sync_failed),
        b"Unable to attach or mount volumes for pod; skipping pod"
        | b"Unable to mount volumes for pod; skipping pod" => Own(readers::sync_failed),
        b"Error processing volume" | b"Failed to add volume to desiredStateOfWorld" => {
            Own(readers::unresolved)
        }
        b"Failed to run kubelet" => Plain(Verb::KubeletFailed),
        b"Failed to initialize allocation checkpoint manager" | b"Failed to start ContainerManager" => {
            Own(readers::checkpoint_unreadable)
        }
        b"Failed to admit pod to node" => Plain(Verb::AdmissionDenied),
        b"Failed deleting a mirror pod"
        | b"Failed creating a mirror pod for"
        | b"Failed creating a mirror pod" => Plain(Verb::MirrorPodFailed),
        b"Initialized new in-memory state store"
        | b"Initialized new in-memory state store for pod resource allocation tracking"
        | b"Initialized new in-memory state store for pod resource information tracking" => {
            Plain(Verb::StateStoreReady)
        }
        b"Updated container resource information" | b"Updated container resource allocation" => {
            Plain(Verb::Allocated)
        }
        b"No sandbox for pod can be found. Need to start a new one"
        | b"No ready sandbox for pod can be found. Need to start a new one" => Plain(Verb::SandboxNeeded),
        b"Message for Container of pod" => Own(readers::container_message),
        b"Backing Off restarting container in pod" => Plain(Verb::BackedOff),
        b"computePodActions got for pod" => Own(readers::plan),
        b"syncPod enter" => Plain(Verb::SyncEntered),
        b"syncTerminatingPod enter" | b"syncTerminatedPod enter" => Plain(Verb::TerminationSynced),
        b"killContainer for pod failed" => Plain(Verb::StopFailed),
        b"Finished populating initial desired state of world" => Plain(Verb::DesiredStateReady),
        b"Eviction manager: must evict pod(s) to reclaim" => Plain(Verb::EvictionBegan),
        b"pod is evicted successfully" => Plain(Verb::Evicted),
        _ if message.starts_with(b"Eviction manager: pod is evicted") => Plain(Verb::Evicted),
        _ if message.ends_with(b"programmer error") => Plain(Verb::ProgrammerError),
        _ => return runtime_service(message),
    })
}

/// `… from runtime service failed`.
fn runtime_service(message: &[u8]) -> Option<Reader> {
    let call = message.strip_suffix(b" from runtime service failed")?;
    Some(match call {
        b"StopContainer" => Plain(Verb::StopFailed),
        b"StopPodSandbox" => Own(readers::sandbox_stop_failed),
        b"StartContainer" => Plain(Verb::StartFailed),
        b"CreateContainer in sandbox" | b"CreateContainer" => Plain(Verb::CreateFailed),
        _ => Plain(Verb::RuntimeFailed),
    })
}
