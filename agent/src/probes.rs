//! Probes: one thread each, which tells when a threshold is reached and then when it flips, not each sample (DESIGN §3).

use crate::pod::join::Task;
use crate::runtime::{Runtime, task_of};
use crossbeam_channel::{RecvTimeoutError, Sender, bounded};
use nodefold_core::event::{Fact, ProbeKind};
use nodefold_core::ids::{ContainerId, PodUid};
use nodefold_core::spec::Container;
use nodefold_core::time::Nanos;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A probe of a container.
pub type ProbeKey = (PodUid, ContainerId, ProbeKind);

/// The probes that run. Dropping it ends them.
#[derive(Default)]
pub struct Probes {
    running: BTreeMap<ProbeKey, Sender<()>>,
}

struct Timing {
    initial_delay: Duration,
    period: Duration,
    timeout: Nanos,
    successes: u64,
    failures: u64,
}

impl Probes {
    /// Begins to probe.
    pub fn start(&mut self, key: ProbeKey, spec: &Container, runtime: &Arc<Runtime>, facts: Sender<Fact>) {
        let manifest = nodefold_k8s::blob_to_json(&spec.rest);
        let handler = manifest[match key.2 {
            ProbeKind::Startup => "startupProbe",
            ProbeKind::Liveness => "livenessProbe",
            ProbeKind::Readiness => "readinessProbe",
        }]
        .clone();
        let number = |name: &str, default: u64| handler[name].as_u64().unwrap_or(default);
        let timing = Timing {
            initial_delay: Duration::from_secs(number("initialDelaySeconds", 0)),
            period: Duration::from_secs(number("periodSeconds", 10).max(1)),
            timeout: Nanos::secs(number("timeoutSeconds", 1).max(1)),
            successes: number("successThreshold", 1).max(1),
            failures: number("failureThreshold", 3).max(1),
        };
        let task = task_of(&handler, &manifest, timing.timeout);
        let (stop, stopped) = bounded::<()>(0);
        let runtime = Arc::downgrade(runtime);
        self.running.insert(key.clone(), stop);
        let probe = move || {
            let mut streak = Streak::default();
            let mut wait = timing.initial_delay;
            // Ends when its other end is dropped.
            while stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                let Some(runtime) = runtime.upgrade() else { return };
                let (passed, said) = sample(&runtime, &key, &task, timing.timeout);
                if streak.add(passed, timing.successes, timing.failures) {
                    let (pod, container, probe) = key.clone();
                    facts
                        .send(Fact::ProbeResult { pod, container, probe, passed, message: said.into() })
                        .ok();
                }
                wait = timing.period;
            }
        };
        // Without a thread it stays without a result: not ready, not started, not killed.
        std::thread::Builder::new().name("probe".into()).spawn(probe).ok();
    }

    /// Stops probing.
    pub fn stop(&mut self, key: &ProbeKey) {
        self.running.remove(key);
    }
}

fn sample(
    runtime: &Runtime,
    key: &ProbeKey,
    task: &Result<Option<Task>, String>,
    timeout: Nanos,
) -> (bool, String) {
    match task {
        Ok(Some(task)) => match runtime.do_errand(key.0, &key.1, task.clone(), Some(timeout)) {
            Ok(done) => (done.well, done.said),
            Err(fault) => (false, fault.message),
        },
        Ok(None) => (true, String::new()),
        Err(why) => (false, why.clone()),
    }
}

/// Samples in a row with the same result.
#[derive(Default)]
struct Streak {
    passed: bool,
    length: u64,
    told: Option<bool>,
}

impl Streak {
    /// Takes a sample. True: a threshold is reached that says something new.
    fn add(&mut self, passed: bool, successes: u64, failures: u64) -> bool {
        self.length = if self.passed == passed { self.length + 1 } else { 1 };
        self.passed = passed;
        let reached = self.length >= if passed { successes } else { failures };
        let news = reached && self.told != Some(passed);
        if news {
            self.told = Some(passed);
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn only_thresholds_and_flips_are_told() {
        let mut streak = Streak::default();
        let told: Vec<bool> = [false, false, false, false, true, false, true, true, false, false, false]
            .into_iter()
            .map(|passed| streak.add(passed, 2, 3))
            .collect();
        assert_eq!(told, [false, false, true, false, false, false, false, true, false, false, true]);
    }

    #[test]
    fn a_named_port_is_the_containers() {
        let container = serde_json::json!({"ports": [{"name": "web", "containerPort": 8080}]});
        let task = |port: Value| {
            task_of(&serde_json::json!({"tcpSocket": {"port": port}}), &container, Nanos::secs(1))
        };
        assert!(
            matches!(task("web".into()), Ok(Some(Task::Connect { address, .. })) if address.port() == 8080)
        );
        assert!(matches!(task(81.into()), Ok(Some(Task::Connect { address, .. })) if address.port() == 81));
        assert!(task("nope".into()).is_err());
    }
}
