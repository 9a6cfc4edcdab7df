//! The simulated host as what executes a served node's commands, in real time. What its processes write goes into log files as a
//! runtime's would.

use crossbeam_channel::{Receiver, Sender, bounded};
use nodefold_agent::clock;
use nodefold_agent::fault::{Attempt, Fault};
use nodefold_agent::layout::Layout;
use nodefold_agent::server::{Host, Waker};
use nodefold_core::Backend;
use nodefold_core::command::Command;
use nodefold_core::event::Fact;
use nodefold_core::ids::{ObjectRef, PodUid};
use nodefold_core::resources::{ResourceList, ResourceName};
use nodefold_core::time::{Nanos, Time};
use nodefold_harness::host::{Line, SimulatedHost};
use nodefold_k8s::time;
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

/// It looks up no more often than this.
const SHORTEST_WAIT: Nanos = Nanos::millis(1);

/// The host.
pub struct Simulated {
    host: SimulatedHost,
    layout: Layout,
    boot_id: u128,
    wake: Sender<()>,
    woken: Receiver<()>,
}

impl Simulated {
    /// A host that has just booted: what an earlier one ran is gone with it.
    pub fn boot(layout: Layout, node_name: &str) -> Result<Simulated, Fault> {
        let logs = layout.logs();
        fs::create_dir_all(&logs).attempt(|| format!("make {}", logs.display()))?;
        let now = clock::now();
        // One wake-up is as good as many.
        let (wake, woken) = bounded(1);
        let host = SimulatedHost::begin(node_name, now);
        Ok(Simulated { host, layout, boot_id: u128::from(now.0), wake, woken })
    }

    fn pass(&mut self) -> Time {
        let now = clock::now();
        // The world is ours: what it can't go on with is a mistake of ours.
        self.host.pass(now).unwrap_or_else(|error| panic!("the simulated world: {error}"));
        for line in self.host.take_lines() {
            // A log that can't be written is a disk that is full: the process goes on.
            self.write(&line).ok();
        }
        now
    }

    fn write(&self, line: &Line) -> std::io::Result<()> {
        let (namespace, name) = &line.of;
        let pod = self.layout.logs().join("pods").join(format!("{namespace}_{name}_{}", line.pod));
        let dir = pod.join(&*line.container.name);
        fs::create_dir_all(&dir)?;
        let file = dir.join(format!("{}.{}.log", line.container.incarnation, line.container.attempt));
        let mut log = fs::OpenOptions::new().create(true).append(true).open(file)?;
        match &line.text {
            Some(text) => writeln!(log, "{} stdout F {text}", time::format_micro(line.at)),
            None => Ok(()),
        }
    }
}

impl Backend for Simulated {
    fn submit(&mut self, command: &Command) {
        self.pass();
        self.host.submit(command);
    }

    fn receive(&mut self, wait: Nanos) -> Option<Fact> {
        let until = clock::now().after(wait);
        loop {
            let now = self.pass();
            if let Some(fact) = self.host.next_fact() {
                return Some(fact);
            }
            if now >= until {
                return None;
            }
            let next = self.host.next_due().map_or(until, |due| due.min(until));
            let wait = Duration::from_nanos(next.since(now).0.max(SHORTEST_WAIT.0));
            if self.woken.recv_timeout(wait).is_ok() {
                return Some(Fact::Tick);
            }
        }
    }

    fn in_flight(&self) -> usize {
        self.host.in_flight()
    }
}

impl Host for Simulated {
    fn waker(&self) -> Waker {
        let wake = self.wake.clone();
        Arc::new(move || {
            wake.try_send(()).ok();
        })
    }

    fn boot_id(&self) -> Result<u128, Fault> {
        Ok(self.boot_id)
    }

    fn stored(&mut self, object: &ObjectRef, value: Option<&Arc<Value>>) {
        self.host
            .stored(object, value.map(|value| &**value))
            .unwrap_or_else(|error| panic!("the simulated world: {error}"));
    }

    fn allocatable(&self) -> Result<ResourceList, Fault> {
        let pairs = [(ResourceName::Cpu, 4_000), (ResourceName::Memory, 8 << 30), (ResourceName::Pods, 110)];
        Ok(ResourceList::from_pairs(pairs))
    }

    fn left(&mut self, namespace: &str, name: &str, pod: PodUid) {
        let logs = self.layout.logs().join("pods").join(format!("{namespace}_{name}_{pod}"));
        // Most pods never wrote anything; what can't be removed is only what it takes up.
        fs::remove_dir_all(logs).ok();
    }

    fn name(&self) -> &'static str {
        "sim"
    }

    fn end(self: Box<Self>) {}
}
