//! L1: every accepted change is actuated, or visibly Pending, Waiting, Deferred, Infeasible or in error with its reason.

use super::AtTheEnd;
use crate::invariant::Invariant;
use crate::world_view::container::LEAST_CPU_MILLICORES;
use nodefold_core::command::Subject;
use nodefold_core::ids::Name;
use nodefold_core::resources::{ResourceList, ResourceName};
use nodefold_core::spec::{Container, Pod, PodSpec};
use nodefold_core::status::{ConditionKind, ContainerState, ContainerStatus, HostPhase, PodPhase, PodStatus};

impl AtTheEnd<'_> {
    /// What was wished last is seen in the status, or why not.
    pub(super) fn wish_is_visible(&mut self) {
        let pod = self.pod;
        if let Some(wanted) = pod.wanted_again.filter(|_| pod.is_quiet() && !self.next_life_was_refused()) {
            let explanation = "the pod came back, its former life is over, and nothing began anew".to_owned();
            return self.report(Invariant::L1, Subject::Pod, explanation, &[wanted]);
        }
        let Some(applied) = pod.applied.clone().filter(|_| pod.termination.is_none()) else { return };
        if pod.is_static() {
            // The API has no object of its own for it, only a mirror that may be gone.
            return;
        }
        let Some((index, status)) = &pod.published else {
            let explanation = "no status of the pod was ever published".to_owned();
            return self.report(Invariant::L1, Subject::Pod, explanation, &[pod.applied_index]);
        };
        let evidence = [pod.applied_index, *index];
        if let Some(refused) = pod.status_refused {
            let explanation = "the API server refuses its status again and again".to_owned();
            return self.report(Invariant::L1, Subject::Pod, explanation, &[*index, refused]);
        }
        if status.observed_generation < applied.generation {
            let explanation = format!(
                "generation {} is wished, and the status published last speaks of {}",
                applied.generation, status.observed_generation
            );
            return self.report(Invariant::L1, Subject::Pod, explanation, &evidence);
        }
        for (what, name) in missing_from_status(&applied, status, self.world.node.gates.dynamic_volumes) {
            let explanation =
                format!("{what} {name} is wished, and the status published last {}", what.how());
            self.report(Invariant::L1, Subject::Pod, explanation, &evidence);
        }
        for wanted in applied.spec.init_containers.iter().chain(&applied.spec.containers) {
            if let Some((born, aspect)) = self.not_as_wished(&applied.spec, wanted, status) {
                let explanation = format!(
                    "container {} runs with another {aspect} than is wished, and the status published last tells no \
                     reason",
                    wanted.name
                );
                self.report(Invariant::L1, Subject::Pod, explanation, &[born, evidence[0], evidence[1]]);
            }
        }
    }

    /// The node admitted no further life of the pod: a reason, told after the last of the former one was gone.
    fn next_life_was_refused(&self) -> bool {
        let pod = self.pod;
        let containers = pod.containers.iter().map(|c| c.life_index);
        let sandboxes = pod.sandboxes.iter().map(|s| s.index);
        let volumes = pod.volumes.iter().map(|v| v.host_index);
        let over = containers.chain(sandboxes).chain(volumes).chain(pod.wanted_again).max();
        pod.published.as_ref().is_some_and(|(index, status)| {
            status.phase == PodPhase::Failed && !status.reason.is_empty() && Some(*index) > over
        })
    }

    /// A container that runs by another definition than the wished one, while nothing in the status says why.
    fn not_as_wished(
        &self,
        wish: &PodSpec,
        wanted: &Container,
        status: &PodStatus,
    ) -> Option<(usize, &'static str)> {
        let row = row_of(status, &wanted.name)?;
        let (ContainerState::Running { .. }, Some(id)) = (&row.state, &row.id) else { return None };
        let view = self.pod.container(id).filter(|c| c.may_run())?;
        let own = view.spec.as_ref()?;
        let said = status.conditions.iter().any(|c| {
            matches!(c.kind, ConditionKind::PodResizePending | ConditionKind::PodResizeInProgress) && c.status
        });
        // It runs on until the volumes of its new definition are ready (KEP-6395), and those say why they aren't.
        let waits = wanted.mounts.iter().any(|mount| {
            wish.volume(&mount.name).is_none()
                || status
                    .volumes
                    .iter()
                    .any(|row| row.name == mount.name && row.phase != HostPhase::HostMounted)
        });
        if said || waits {
            return None;
        }
        if own.image != wanted.image {
            Some((view.born, "image"))
        } else if own.mounts.len() != wanted.mounts.len()
            || own.mounts.iter().any(|mount| !wanted.mounts.contains(mount))
        {
            Some((view.born, "set of mounts"))
        } else if shares(&view.resources.requests) != shares(&wanted.resources.requests) {
            Some((view.born, "amount of cpu"))
        } else {
            None
        }
    }
}

/// What a runtime is told of requests: a memory request alone makes no call, and the least cpu requests mean the same
/// (kubelet-pods case 81).
fn shares(requests: &ResourceList) -> u64 {
    requests.get(&ResourceName::Cpu).max(LEAST_CPU_MILLICORES)
}

fn row_of<'a>(status: &'a PodStatus, name: &Name) -> Option<&'a ContainerStatus> {
    status.init_containers.iter().chain(&status.containers).find(|row| row.name == *name)
}

/// What a status may fail to tell.
#[derive(Copy, Clone)]
enum Missing {
    Container,
    Reason,
    Volume,
}

impl Missing {
    fn how(self) -> &'static str {
        match self {
            Missing::Container | Missing::Volume => "doesn't mention it",
            Missing::Reason => "says that it waits but not why",
        }
    }
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Missing::Container | Missing::Reason => "container",
            Missing::Volume => "volume",
        })
    }
}

fn missing_from_status(applied: &Pod, status: &PodStatus, dynamic_volumes: bool) -> Vec<(Missing, Name)> {
    let mut missing = Vec::new();
    for container in applied.spec.init_containers.iter().chain(&applied.spec.containers) {
        match row_of(status, &container.name).map(|row| &row.state) {
            None => missing.push((Missing::Container, container.name.clone())),
            Some(ContainerState::Waiting { reason, .. }) if reason.is_empty() => {
                missing.push((Missing::Reason, container.name.clone()));
            }
            Some(
                ContainerState::Waiting { .. }
                | ContainerState::Running { .. }
                | ContainerState::Terminated(_),
            ) => {}
        }
    }
    for volume in applied.spec.volumes.iter().filter(|_| dynamic_volumes) {
        if !status.volumes.iter().any(|row| row.name == volume.name) {
            missing.push((Missing::Volume, volume.name.clone()));
        }
    }
    missing
}
