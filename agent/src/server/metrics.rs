//! `/metrics`, with the kubelet's and the API server's names where they exist.

use nodefold_core::event::Fact;
use prometheus::{Encoder, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder};

/// What is counted. Shared by the loop and the connections.
pub struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    inflight: IntGauge,
    watchers: IntGauge,
    watchers_dropped: IntGauge,
    facts: IntCounterVec,
    runtime_errors: IntCounterVec,
    sync_errors: IntCounter,
    worker_errors: IntCounter,
    pod_starts: IntCounter,
    container_starts: IntCounter,
    exits: IntCounterVec,
    info: IntGaugeVec,
    started: IntGauge,
    folded_at_start: IntGauge,
}

impl Metrics {
    /// All at zero. An error is a mistake in this file.
    pub fn new(version: &str) -> Result<Metrics, prometheus::Error> {
        let registry = Registry::new();
        let counter = |name: &str, help: &str| -> Result<IntCounter, prometheus::Error> {
            let made = IntCounter::new(name, help)?;
            registry.register(Box::new(made.clone()))?;
            Ok(made)
        };
        let counters =
            |name: &str, help: &str, labels: &[&str]| -> Result<IntCounterVec, prometheus::Error> {
                let made = IntCounterVec::new(Opts::new(name, help), labels)?;
                registry.register(Box::new(made.clone()))?;
                Ok(made)
            };
        let gauge = |name: &str, help: &str| -> Result<IntGauge, prometheus::Error> {
            let made = IntGauge::new(name, help)?;
            registry.register(Box::new(made.clone()))?;
            Ok(made)
        };
        let info = IntGaugeVec::new(Opts::new("kubernetes_build_info", "The version"), &["git_version"])?;
        registry.register(Box::new(info.clone()))?;
        let metrics = Metrics {
            requests: counters(
                "apiserver_request_total",
                "Requests answered",
                &["verb", "resource", "code"],
            )?,
            inflight: gauge("apiserver_current_inflight_requests", "Requests being answered")?,
            watchers: gauge("apiserver_longrunning_requests", "Watches open")?,
            watchers_dropped: gauge(
                "apiserver_terminated_watchers_total",
                "Watches cut off because their clients did not read",
            )?,
            facts: counters("nodefold_facts_total", "Facts folded", &["fact"])?,
            runtime_errors: counters(
                "kubelet_runtime_operations_errors_total",
                "Runtime operations that failed",
                &["operation_type"],
            )?,
            sync_errors: counter("kubelet_sync_result_errors_total", "Operations of pods that failed")?,
            worker_errors: counter(
                "kubelet_pod_worker_errors_total",
                "Operations of pods that failed and will be tried again",
            )?,
            pod_starts: counter("kubelet_started_pods_total", "Sandboxes that came up")?,
            container_starts: counter("kubelet_started_containers_total", "Containers started")?,
            exits: counters("nodefold_container_exits_total", "Containers that ended", &["exit_code"])?,
            started: gauge("process_start_time_seconds", "When the agent started")?,
            folded_at_start: gauge(
                "nodefold_start_folded_requests",
                "Requests that the journal had after the store was kept, folded again at the start",
            )?,
            info,
            registry,
        };
        metrics.info.with_label_values(&[version]).set(1);
        metrics.started.set(i64::try_from(crate::clock::now().0 / 1_000_000_000).unwrap_or(i64::MAX));
        Ok(metrics)
    }

    /// So many requests were folded again.
    pub fn opened(&self, requests: u64) {
        self.folded_at_start.set(i64::try_from(requests).unwrap_or(i64::MAX));
    }

    /// A request came in.
    pub fn begun(&self) {
        self.inflight.inc();
    }

    /// It was answered.
    pub fn answered(&self, verb: &str, resource: &str, code: u16) {
        self.inflight.dec();
        self.requests.with_label_values(&[verb, resource, &code.to_string()]).inc();
    }

    /// How many watch, and how many were cut off.
    pub fn watchers(&self, open: usize, dropped: u64) {
        self.watchers.set(i64::try_from(open).unwrap_or(i64::MAX));
        self.watchers_dropped.set(i64::try_from(dropped).unwrap_or(i64::MAX));
    }

    /// A fact was folded.
    pub fn folded(&self, fact: &Fact) {
        let name = fact.name();
        self.facts.with_label_values(&[name]).inc();
        if name.ends_with("Failed") {
            self.runtime_errors.with_label_values(&[name.trim_end_matches("Failed")]).inc();
            self.sync_errors.inc();
            self.worker_errors.inc();
        }
        match name {
            "SandboxReady" => self.pod_starts.inc(),
            "ContainerStarted" => self.container_starts.inc(),
            _ => {}
        }
        if let Fact::ContainerExited { exit, .. } = fact {
            self.exits.with_label_values(&[&exit.code.to_string()]).inc();
        }
    }

    /// As Prometheus reads it.
    pub fn text(&self) -> Result<Vec<u8>, prometheus::Error> {
        let mut out = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut out)?;
        Ok(out)
    }
}
