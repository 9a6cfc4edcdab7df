//! A status's digest: equal exactly when statuses are. Fed by hand, since it is wanted at almost every event, and field by
//! field through a codec it costs several times as much. Every field goes in, and what varies in length with its length.

use crate::ids::{ContainerId, Name};
use crate::node::Digest;
use crate::resources::{ResourceList, ResourceName, Resources};
use crate::spec::VolumeMount;
use crate::status::{Condition, ContainerState, ContainerStatus, PodStatus, Terminated, VolumeStatus};
use crate::time::Time;
use alloc::vec::Vec;
use xxhash_rust::xxh3::xxh3_128;

/// Room for most statuses.
const TYPICAL_BYTES: usize = 1000;

/// The digest of all that the status says.
pub(super) fn of(status: &PodStatus) -> Digest {
    let mut feed = Feed(Vec::with_capacity(TYPICAL_BYTES));
    feed.pod(status);
    Digest(xxh3_128(&feed.0))
}

struct Feed(Vec<u8>);

impl Feed {
    fn tag(&mut self, tag: u8) {
        self.0.push(tag);
    }
    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }
    /// Most are short.
    fn length(&mut self, length: usize) {
        match u8::try_from(length) {
            Ok(short) if short < u8::MAX => self.tag(short),
            Ok(_) | Err(_) => {
                self.tag(u8::MAX);
                self.number(length as u64);
            }
        }
    }
    fn text(&mut self, text: &str) {
        self.length(text.len());
        if text.is_empty() {
            return;
        }
        self.0.extend_from_slice(text.as_bytes());
    }
    fn list<T>(&mut self, list: &[T], each: fn(&mut Feed, &T)) {
        self.length(list.len());
        list.iter().for_each(|item| each(self, item));
    }
    fn option<T>(&mut self, option: Option<&T>, some: fn(&mut Feed, &T)) {
        self.tag(option.is_some().into());
        if let Some(value) = option {
            some(self, value);
        }
    }
    fn time(&mut self, time: &Time) {
        self.number(time.0);
    }
    fn name(&mut self, name: &Name) {
        self.text(name);
    }

    fn pod(&mut self, status: &PodStatus) {
        let PodStatus {
            observed_generation,
            phase,
            reason,
            message,
            start_time,
            pod_ip,
            qos,
            conditions,
            init_containers,
            containers,
            ephemeral_containers,
            volumes,
            allocated_resources,
            resources,
        } = status;
        self.number(*observed_generation);
        self.tag(*phase as u8);
        self.text(reason);
        self.text(message);
        self.option(start_time.as_ref(), Feed::time);
        self.option(pod_ip.as_ref(), Feed::name);
        self.tag(*qos as u8);
        self.list(conditions, Feed::condition);
        self.list(init_containers, Feed::container);
        self.list(containers, Feed::container);
        self.list(ephemeral_containers, Feed::container);
        self.list(volumes, Feed::volume);
        self.amounts(allocated_resources);
        self.resources(resources);
    }

    fn condition(&mut self, condition: &Condition) {
        let Condition { kind, status, reason, message, last_transition, observed_generation } = condition;
        self.tag(*kind as u8);
        self.tag((*status).into());
        self.text(reason);
        self.text(message);
        self.time(last_transition);
        self.number(*observed_generation);
    }

    fn container(&mut self, row: &ContainerStatus) {
        let ContainerStatus {
            name,
            id,
            state,
            last_state,
            ready,
            started,
            restart_count,
            image,
            image_id,
            allocated_resources,
            resources,
            mounts,
        } = row;
        self.text(name);
        self.option(id.as_ref(), Feed::id);
        match state {
            ContainerState::Waiting { reason, message } => {
                self.tag(0);
                self.text(reason);
                self.text(message);
            }
            ContainerState::Running { started_at } => {
                self.tag(1);
                self.time(started_at);
            }
            ContainerState::Terminated(end) => {
                self.tag(2);
                self.end(end);
            }
        }
        self.option(last_state.as_ref(), Feed::end);
        self.tag((*ready).into());
        self.tag((*started).into());
        self.number((*restart_count).into());
        self.text(image);
        self.text(image_id);
        self.amounts(allocated_resources);
        self.resources(resources);
        self.list(mounts, Feed::mount);
    }

    fn id(&mut self, id: &ContainerId) {
        let ContainerId { name, incarnation, attempt } = id;
        self.text(name);
        self.number(u64::from(*incarnation) << 32 | u64::from(*attempt));
    }

    fn end(&mut self, end: &Terminated) {
        let Terminated { id, exit_code, signal, reason, message, started_at, finished_at } = end;
        self.option(id.as_ref(), Feed::id);
        self.number(u64::from(*exit_code as u32) << 32 | u64::from(*signal as u32));
        self.text(reason);
        self.text(message);
        self.option(started_at.as_ref(), Feed::time);
        self.option(finished_at.as_ref(), Feed::time);
    }

    fn volume(&mut self, row: &VolumeStatus) {
        let VolumeStatus { name, phase, error_message } = row;
        self.text(name);
        self.tag(*phase as u8);
        self.text(error_message);
    }

    fn mount(&mut self, mount: &VolumeMount) {
        let VolumeMount { name, mount_path, read_only, rest } = mount;
        self.text(name);
        self.text(mount_path);
        self.tag((*read_only).into());
        self.text(&rest.0);
    }

    fn resources(&mut self, resources: &Resources) {
        let Resources { requests, limits } = resources;
        self.amounts(requests);
        self.amounts(limits);
    }

    fn amounts(&mut self, list: &ResourceList) {
        self.length(list.iter().count());
        for (name, amount) in list.iter() {
            match name {
                ResourceName::Cpu => self.tag(0),
                ResourceName::Memory => self.tag(1),
                ResourceName::EphemeralStorage => self.tag(2),
                ResourceName::Pods => self.tag(3),
                ResourceName::Other(name) => {
                    self.tag(4);
                    self.text(name);
                }
            }
            self.number(*amount);
        }
    }
}
