//! This host as what executes a served node's commands.

use super::hub::{Host, Waker};
use crate::backend::Linux;
use crate::credentials::LocalKey;
use crate::daemon::host_resources;
use crate::doctor::Allowed;
use crate::driver;
use crate::fault::Fault;
use crate::housekeeping::Habits;
use crate::images::Images;
use crate::layout::Layout;
use crate::objects::Objects;
use crate::pod::join::Task;
use crate::runtime::Parts;
use nodefold_core::Backend;
use nodefold_core::command::Command;
use nodefold_core::event::Fact;
use nodefold_core::ids::{ObjectRef, PodUid};
use nodefold_core::resources::ResourceList;
use nodefold_core::status::PodStatus;
use nodefold_core::time::Nanos;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The Linux backend, and the objects that it writes into volumes.
pub struct LinuxHost {
    backend: Linux,
    objects: Objects,
    layout: Layout,
}

impl LinuxHost {
    /// Over whatever an earlier agent left.
    pub fn open(
        layout: Layout,
        node_name: &str,
        images: BTreeMap<String, PathBuf>,
        habits: Habits,
        shim_program: PathBuf,
        allowed: Allowed,
    ) -> Result<LinuxHost, Fault> {
        let objects = Objects::default();
        let parts = Parts {
            layout: layout.clone(),
            node_name: node_name.into(),
            allocatable: host_resources()?,
            images: Arc::new(Images::new(&layout, images)),
            habits,
            issuer: Arc::new(LocalKey::at(layout.data())),
            objects: objects.clone(),
            shim_program,
            allowed,
        };
        Ok(LinuxHost { backend: Linux::open(parts, objects.clone())?, objects, layout })
    }
}

impl Backend for LinuxHost {
    fn submit(&mut self, command: &Command) {
        self.backend.submit(command);
    }

    fn receive(&mut self, wait: Nanos) -> Option<Fact> {
        self.backend.receive(wait)
    }

    fn in_flight(&self) -> usize {
        self.backend.in_flight()
    }
}

impl Host for LinuxHost {
    fn waker(&self) -> Waker {
        let sender = self.backend.sender();
        // The loop has ended when nobody hears it.
        Arc::new(move || drop(sender.send(Fact::Tick)))
    }

    fn boot_id(&self) -> Result<u128, Fault> {
        driver::boot_id(&self.layout)
    }

    fn stored(&mut self, object: &ObjectRef, value: Option<&Arc<Value>>) {
        match value {
            Some(value) => self.objects.put(object.clone(), value.clone()),
            None => self.objects.forget(object),
        }
    }

    fn allocatable(&self) -> Result<ResourceList, Fault> {
        host_resources()
    }

    fn tell_last_words(&self, pod: PodUid, status: &mut PodStatus) {
        self.backend.runtime().tell_last_words(pod, status);
    }

    fn exec(
        &self,
        pod: PodUid,
        container: &str,
        command: Vec<String>,
        tty: bool,
    ) -> Option<Result<std::process::Command, Fault>> {
        Some(self.backend.runtime().exec(pod, container, Task::Run { args: command, tty }))
    }

    fn name(&self) -> &'static str {
        "linux"
    }

    fn end(self: Box<Self>) {
        self.backend.abandon();
    }
}
