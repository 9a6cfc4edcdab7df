//! What an observation of the host proves. Presence proves presence. Absence proves absence only in a complete list
//! that was read after the last command that could have made the thing (DESIGN §4 rule 3).

use super::WorldView;
use super::container::{ContainerView, Life};
use super::facts;
use super::operations::{InFlight, Lane};
use super::pod::PodView;
use super::volume::Host;
use nodefold_core::event::{SeenContainer, SeenMount, SeenSandbox, SeenState};
use nodefold_core::ids::{OpId, PodUid};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

impl WorldView {
    /// The record at which an observation was asked for, and about which pod (the null UID: all of them). In a trace that never asks (an importer's), a list is as new
    /// as the record that brings it; in one that does, an answer nobody waits for is of an older epoch or comes a second
    /// time, and proves nothing about what was done since: `None`.
    fn asked_at(&mut self, op: OpId, index: usize) -> Option<(PodUid, usize)> {
        let asked = self.observing.iter().find(|(o, ..)| *o == op).map(|(_, pod, at)| (*pod, *at));
        self.observing.retain(|(o, ..)| *o != op);
        asked.or(if self.observes { None } else { Some((PodUid(0), index)) })
    }

    pub(super) fn mounts_observed(&mut self, op: OpId, mounts: &[SeenMount], index: usize) {
        let Some((_, asked)) = self.asked_at(op, index) else { return };
        let mut seen: BTreeMap<PodUid, Vec<&SeenMount>> = BTreeMap::new();
        for mount in mounts {
            seen.entry(mount.pod).or_default().push(mount);
        }
        for (uid, mounts) in &seen {
            let pod = self.pods.entry(*uid).or_insert_with(|| PodView::new(*uid));
            for mount in mounts {
                pod.volume_or_stub(&mount.volume, Host::FoundOnly, index).seen(index);
            }
        }
        let none = Vec::new();
        for pod in self.pods.values_mut() {
            let there = seen.get(&pod.uid).unwrap_or(&none);
            for volume in &mut pod.volumes {
                let newer = volume.commanded >= asked && volume.host_index != index;
                let being_made = pod
                    .in_flight
                    .iter()
                    .any(|o| o.verb == "mount" && o.lane == Lane::Volume(volume.id.clone()));
                if !newer && !being_made && !there.iter().any(|m| m.volume == volume.id) {
                    volume.missing(index);
                }
            }
            pod.in_flight.retain(|o| o.verb != "unmount" || o.index > asked);
        }
        self.forget_all_that_is_over(index);
    }

    pub(super) fn runtime_observed(
        &mut self,
        op: OpId,
        complete: bool,
        sandboxes: &[SeenSandbox],
        containers: &[SeenContainer],
        index: usize,
    ) {
        let Some((about, asked)) = self.asked_at(op, index) else { return };
        if complete {
            self.runtime_unknown = None;
        }
        for seen in containers {
            let hearsay = about != PodUid(0) && about != seen.pod;
            self.container_seen(seen, asked, hearsay, index);
        }
        if complete {
            let ready: BTreeSet<_> =
                sandboxes.iter().filter(|s| s.ready).map(|s| (s.pod, s.attempt)).collect();
            for pod in self.pods.values_mut() {
                let PodView { uid, sandboxes, in_flight, .. } = pod;
                for sandbox in sandboxes {
                    // One that is still being made may come about after the list was read.
                    let being_made = in_flight
                        .iter()
                        .any(|o| o.verb == "sandbox" && o.lane == Lane::Sandbox(sandbox.attempt));
                    let absent = sandbox.index < asked && !ready.contains(&(*uid, sandbox.attempt));
                    if absent && !being_made && sandbox.live {
                        sandbox.live = false;
                        sandbox.index = index;
                    }
                }
            }
        }
        if complete {
            let listed: BTreeSet<_> = containers.iter().map(|c| (c.pod, &c.container)).collect();
            for pod in self.pods.values_mut() {
                let in_flight = std::mem::take(&mut pod.in_flight);
                for container in &mut pod.containers {
                    // A create that was in flight when the list was asked for may bring it about after the list was read.
                    let being_made = in_flight
                        .iter()
                        .any(|o| o.verb == "create" && o.lane == Lane::Container(container.id.clone()));
                    let doubted_since = container.life == Life::Unknown && container.life_index > asked;
                    let absent = container.commanded < asked && !listed.contains(&(pod.uid, &container.id));
                    if absent && !being_made && !doubted_since {
                        container.unanswered = None;
                        container.vanished(index);
                    }
                }
                pod.in_flight = in_flight;
                // What is listed is there, and its answer is still to come; what isn't may be tried again.
                let listed = |o: &InFlight| match &o.lane {
                    Lane::Container(id) => listed.contains(&(pod.uid, id)),
                    Lane::Hook(..)
                    | Lane::Volume(_)
                    | Lane::Sandbox(_)
                    | Lane::PodResources
                    | Lane::Status
                    | Lane::Release => false,
                };
                pod.in_flight
                    .retain(|o| !matches!(o.verb, "create" | "start") || o.index > asked || listed(o));
            }
            self.forget_all_that_is_over(index);
        }
    }

    fn container_seen(&mut self, seen: &SeenContainer, asked: usize, hearsay: bool, index: usize) {
        let live = !matches!(seen.state, SeenState::Exited(_));
        // What ended, of a pod that nobody knows or of a former life of one that came back, holds nothing.
        let pod = match self.pods.entry(seen.pod) {
            Entry::Occupied(known) if live || !known.get().came_back => known.into_mut(),
            Entry::Occupied(_) => return,
            Entry::Vacant(unknown) if live => unknown.insert(PodView::new(seen.pod)),
            Entry::Vacant(_) => return,
        };
        if pod.container(&seen.container).is_none() {
            pod.ran_before_trace = true;
            let life = Life::Unknown;
            pod.containers.push(ContainerView::new(seen.container.clone(), life, index));
        }
        // The list may have been read before what was told of the container's end since it was asked for.
        let ended_since =
            |view: &ContainerView| matches!(view.life, Life::Ended(_)) && view.life_index > asked;
        if live && pod.container(&seen.container).is_some_and(ended_since) {
            return;
        }
        match &seen.state {
            SeenState::Created => {
                if let Some(view) = pod.container_mut(&seen.container) {
                    view.unanswered = None;
                    // An older list must not take a running container back.
                    if !matches!(view.life, Life::Running | Life::Starting) {
                        view.turn(Life::Created, index);
                    }
                }
            }
            SeenState::Running { .. } => {
                let known =
                    pod.container(&seen.container).is_some_and(|c| c.life == Life::Running && !c.hearsay);
                if let Some(view) = pod.container_mut(&seen.container) {
                    view.unanswered = None;
                }
                facts::started(pod, &seen.container, index);
                if let Some(view) = pod.container_mut(&seen.container) {
                    view.hearsay = hearsay && !known;
                }
            }
            SeenState::Exited(exit) => {
                if let Some(view) = pod.container_mut(&seen.container) {
                    view.unanswered = None;
                }
                facts::exited(pod, &seen.container, exit, index);
                let id = &seen.container;
                pod.in_flight.retain(|o| !(o.is_stop() && o.lane == Lane::Container(id.clone())));
            }
            SeenState::Unknown => {
                if let Some(view) = pod.container_mut(&seen.container) {
                    view.unanswered = None;
                    view.turn(Life::Unknown, index);
                }
            }
        }
    }

    fn forget_all_that_is_over(&mut self, index: usize) {
        let candidates: Vec<PodUid> = self
            .pods
            .values()
            .filter(|p| p.left_source.is_some() || p.applied.is_none())
            .map(|p| p.uid)
            .collect();
        for uid in candidates {
            self.forget_if_over(uid, index);
        }
    }
}
