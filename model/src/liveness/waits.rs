//! L5: every wait has a producer. What waits at the end must wait for something that can still happen: an operation in
//! flight, a retry that came within the longest delay, a volume that is being tried, another container's end, a probe that
//! is being asked.

use super::{AtTheEnd, Thing};
use crate::invariant::Invariant;
use crate::world_view::container::{ContainerView, Life, Role, find_container};
use crate::world_view::operations::Lane;
use crate::world_view::pod::{AfterExit, MISSING_EVIDENCE, after_exit};
use nodefold_core::command::Subject;
use nodefold_core::event::ProbeKind;
use nodefold_core::ids::Name;
use nodefold_core::spec::Container;
use nodefold_core::status::{ContainerState, HostPhase, PodStatus};
use nodefold_core::time::Nanos;

const MINUTE: Nanos = Nanos::secs(60);

impl AtTheEnd<'_> {
    /// An operation without completion is a wait without a producer, if it had the time.
    pub(super) fn operations_completed(&mut self) {
        let (pod, now, healed) = (self.pod, self.now, self.healed);
        for operation in pod.in_flight.iter().filter(|o| o.at.max(healed).after(MINUTE) <= now) {
            // A stop's time is its grace.
            let due = operation.deadline.unwrap_or(operation.at).after(MINUTE);
            if due <= now && !matches!(operation.lane, Lane::Hook(..)) {
                let explanation =
                    format!("the {} of record {} never completed", operation.verb, operation.index);
                self.report(Invariant::L5, operation.lane.subject(), explanation, &[operation.index]);
            }
        }
    }

    /// Containers and volumes that wait.
    pub(super) fn waits_can_end(&mut self) {
        let pod = self.pod;
        if pod.termination.is_some() || pod.is_static() {
            return;
        }
        for container in
            pod.containers.iter().filter(|c| c.life == Life::Running && c.stop_commanded.is_none())
        {
            self.probes_are_asked(container);
        }
        let Some((index, status)) = pod.published.clone().filter(|_| self.says_allocated()) else { return };
        for row in &status.volumes {
            // One that nobody mounts any more is as good as never tried (SEMANTICS).
            let mounts = |c: &Container| c.mounts.iter().any(|mount| mount.name == row.name);
            let wish = pod.applied.as_ref().map(|applied| &applied.spec);
            let is_mounted =
                wish.is_some_and(|s| s.init_containers.iter().chain(&s.containers).any(|c| mounts(c)));
            let fails = row.phase == HostPhase::ErrorMounting && is_mounted;
            if fails && !self.tried_lately(Thing::Volume(row.name.clone())) && pod.in_flight.is_empty() {
                let explanation =
                    format!("volume {} is in error, and nothing tries to mount it any more", row.name);
                self.report(Invariant::L5, Subject::Pod, explanation, &[index]);
            }
        }
        let rows = status.init_containers.iter().chain(&status.containers);
        for row in rows.filter(|row| matches!(row.state, ContainerState::Waiting { .. })) {
            if !self.can_end(&row.name, &status) {
                let explanation =
                    format!("container {} waits, and nothing is under way that could end that", row.name);
                self.report(Invariant::L5, Subject::Pod, explanation, &[index]);
            }
        }
        let spec = pod.applied.iter().map(|applied| &applied.spec);
        for wanted in spec.flat_map(|spec| &spec.containers) {
            if let Some(ended) = self.ended_to_restart(wanted)
                && !self.can_end(&wanted.name, &status)
            {
                let explanation =
                    format!("container {} has ended and is to run again, and nothing is under way", ended.id);
                let subject = Subject::Container(ended.id.clone());
                self.report(Invariant::L5, subject, explanation, &[ended.life_index]);
            }
        }
    }

    /// The newest instance of a main container, if it has ended in a way after which another one is due.
    fn ended_to_restart(&self, wanted: &Container) -> Option<&ContainerView> {
        let newest = self.pod.newest(&wanted.name).filter(|c| !c.may_run())?;
        let code = newest.exit.as_ref().map_or(MISSING_EVIDENCE, |(_, exit)| exit.code);
        let after = after_exit(wanted, Role::Main, self.pod.restart_policy()?, code);
        match after {
            AfterExit::Restarts | AfterExit::RestartsAll => Some(newest),
            AfterExit::Stays => None,
        }
    }

    /// Something was commanded for it within the longest delay.
    fn tried_lately(&self, thing: Thing) -> bool {
        self.quiet.tried_lately(self.pod.uid, &Some(thing), self.now)
    }

    /// Whether what a container waits for can still come.
    fn can_end(&self, name: &Name, status: &PodStatus) -> bool {
        let pod = self.pod;
        if !pod.in_flight.is_empty() || self.tried_lately(Thing::Container(name.clone())) {
            return true;
        }
        // The pod's sandbox is being tried.
        let sandbox = self.quiet.tried_lately(pod.uid, &None, self.now);
        if pod.sandboxes.iter().all(|s| !s.live) && sandbox {
            return true;
        }
        let spec = pod.applied.as_ref().map(|applied| &applied.spec);
        let Some((wanted, _)) = spec.and_then(|spec| find_container(spec, name)) else { return true };
        if self.waits_for_a_volume(wanted, status) {
            return true;
        }
        // What comes before it runs, or waits itself and is judged itself. A former life of its name may still run.
        let before = spec.into_iter().flat_map(|spec| &spec.init_containers);
        let mut before = before.take_while(|c| c.name != *name);
        let lives = |name: &Name| pod.containers.iter().any(|c| c.id.name == *name && c.may_run());
        before.any(|c| !self.is_up(c)) || lives(name)
    }

    /// An init container that is done, or a sidecar that is up.
    fn is_up(&self, init: &Container) -> bool {
        self.pod.sandboxes.iter().any(|s| s.live && self.pod.init_is_done(&init.name, s.attempt))
    }

    /// A volume of the pod is not there and says so; its own wait is judged with it.
    fn waits_for_a_volume(&self, wanted: &Container, status: &PodStatus) -> bool {
        let waits = |name: &Name| {
            status.volumes.iter().any(|row| row.name == *name && row.phase != HostPhase::HostMounted)
                || self.tried_lately(Thing::Volume(name.clone()))
        };
        // Until the pod has a sandbox, each volume that anything mounts counts (KEP-6395 stage 2).
        let begun = self.pod.sandboxes.iter().any(|s| s.live);
        wanted.mounts.iter().any(|mount| waits(&mount.name))
            || (!begun && status.volumes.iter().any(|row| waits(&row.name)))
    }

    /// A running container's probes are asked in this life of the agent, or their results never come (B18, B21).
    fn probes_are_asked(&mut self, container: &ContainerView) {
        let Some(spec) = &container.spec else { return };
        let started = spec.startup_probe.is_none() || container.startup_passed.is_some();
        let wanted = [
            (ProbeKind::Startup, spec.startup_probe.is_some() && container.startup_passed.is_none()),
            (ProbeKind::Liveness, spec.liveness_probe.is_some() && started),
            (ProbeKind::Readiness, spec.readiness_probe.is_some() && started),
        ];
        let probed = matches!(container.role, Role::Main | Role::Sidecar);
        for (probe, wanted) in wanted {
            if probed && wanted && !container.probing.contains(&probe) {
                let explanation = format!(
                    "container {} runs and nobody asks its {} probe: what waits for a result waits for ever",
                    container.id,
                    format!("{probe:?}").to_lowercase()
                );
                let subject = Subject::Container(container.id.clone());
                self.report(Invariant::L5, subject, explanation, &[container.proof()]);
            }
        }
    }
}
