//! Kubernetes Events, wherever they are told: event.go's copies in the log, `kubectl get events`, a watch. Reasons are
//! the kubelet's own constants and have hardly changed since 1.5.

use crate::scan;
use crate::verb::Verb;

/// What an Event about a pod means. `None`: nothing of a lifecycle.
pub fn event(reason: &[u8], message: &[u8]) -> Option<Verb> {
    let says = |words: &str| scan::has(message, words.as_bytes());
    Some(match reason {
        b"Created" => Verb::ContainerCreated,
        b"Started" => Verb::ContainerStarted,
        b"Pulled" => Verb::ImagePulled,
        b"Killing" => Verb::KillPlanned,
        b"BackOff" if says("restarting") => Verb::BackedOff,
        b"Failed" if says("to pull") || says("ImagePull") => return None,
        b"Failed" if says("failed to start") || says("failed to create containerd task") => Verb::StartFailed,
        b"Failed" => Verb::CreateFailed,
        b"FailedMount" | b"FailedMapVolume" if says("timed out waiting") || says("timeout expired") => {
            Verb::VolumesTimedOut
        }
        b"FailedMount" | b"FailedMapVolume" => Verb::MountFailed,
        b"FailedKillPod" if says("KillPodSandbox") => Verb::SandboxStopFailed,
        b"FailedKillPod" | b"ExceededGracePeriod" => Verb::StopFailed,
        b"SandboxChanged" => Verb::SandboxChanged,
        b"Evicted" => Verb::Evicted,
        b"Preempting" | b"NodeShutdown" => Verb::NodeShutdown,
        b"Unhealthy" => Verb::ProbeResult,
        b"FailedPreStopHook" => Verb::HookDone,
        b"NodeAffinity" | b"OutOfcpu" | b"OutOfmemory" | b"OutOfpods" | b"UnexpectedAdmissionError" => {
            Verb::AdmissionDenied
        }
        _ => return None,
    })
}

/// The container in `spec.containers{c}` or `spec.initContainers{c}`.
pub fn field_path_container(path: &[u8]) -> Option<&[u8]> {
    scan::between(path, b"{", b"}").filter(|c| !c.is_empty())
}
