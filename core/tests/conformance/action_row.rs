//! A row of the action table: what is given, how it is brought about, and how the node's plan and commands are read.
//!
//! A row is brought about in up to two ways, both with nothing but facts:
//! - *remembered*: the node made the pod; the agent restarts, and a partial list, which is true but allows nothing yet,
//!   shows what is given. The plan is asked, then a complete list lets the node act, and its commands must be the plan's.
//! - *found*: a node without memory finds the runtime so, as a kubelet does at every sync, and is then told of the pod.

use crate::kit::*;
use nodefold_core::command::Action;
use nodefold_core::event::{ProbeKind, SeenState};
use nodefold_core::rules::{Plan, compute};
use nodefold_core::spec::{Container, Pod, PodSpec, RestartPolicy};
use nodefold_core::state::PodState;
use nodefold_core::time::Nanos;
use nodefold_core::{Command, Fact};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use State::*;

/// What the runtime shows of a container.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum State {
    Absent,
    Created,
    Running,
    Exit(i32),
    Unknown,
}

pub struct Row {
    pub number: u32,
    pub given: &'static str,
    pub pod: Pod,
    pub states: Vec<(String, State)>,
    /// Attempt and whether it is ready.
    pub sandbox: (u32, bool),
    /// Probe results before and after the restart of the agent.
    pub probes: Vec<(&'static str, ProbeKind, bool)>,
    pub late_probes: Vec<(&'static str, ProbeKind, bool)>,
    /// The desired spec changes at last.
    pub edit: Option<fn(&mut PodSpec)>,
    pub remembered: Option<&'static str>,
    pub found: Option<&'static str>,
}

impl Row {
    pub fn of(
        number: u32,
        given: &'static str,
        spec: PodSpec,
        state: impl Fn(&Container, bool) -> State,
    ) -> Row {
        let states = spec.init_containers.iter().map(|c| (c.name.to_string(), state(c, true)));
        let others = spec.containers.iter().chain(&spec.ephemeral_containers);
        let states = states.chain(others.map(|c| (c.name.to_string(), state(c, false)))).collect();
        let (probes, late_probes) = (Vec::new(), Vec::new());
        let sandbox = (0, true);
        let pod = pod(UID, spec);
        Row {
            number,
            given,
            pod,
            states,
            sandbox,
            probes,
            late_probes,
            edit: None,
            remembered: None,
            found: None,
        }
    }
    pub fn is(mut self, called: &str, state: State) -> Row {
        let row = self.states.iter_mut().find(|(name, _)| name == called).expect("a container of that name");
        row.1 = state;
        self
    }
    pub fn all(mut self, called: &[&str], state: State) -> Row {
        for name in called {
            self = self.is(name, state);
        }
        self
    }
    pub fn nothing_known(mut self) -> Row {
        self.states.iter_mut().for_each(|(_, state)| *state = Absent);
        self
    }
    pub fn sandbox_down(mut self, attempt: u32) -> Row {
        self.sandbox = (attempt, false);
        self
    }
    pub fn policy(mut self, called: &str, policy: RestartPolicy) -> Row {
        let mut spec = (*self.pod.spec).clone();
        change(&mut spec, called, |c| c.restart_policy = Some(policy));
        self.pod.spec = Arc::new(spec);
        self
    }
    /// A probe result that is known before; replaces the fixture's.
    pub fn probe(mut self, called: &'static str, kind: ProbeKind, passed: Option<bool>) -> Row {
        self.probes.retain(|(name, k, _)| !(*name == called && *k == kind));
        self.probes.extend(passed.map(|p| (called, kind, p)));
        self
    }
    pub fn then(mut self, called: &'static str, kind: ProbeKind, passed: bool) -> Row {
        self.late_probes.push((called, kind, passed));
        self
    }
    pub fn edit(mut self, edit: fn(&mut PodSpec)) -> Row {
        self.edit = Some(edit);
        self
    }
    /// The same plan either way.
    pub fn expect(mut self, plan: &'static str) -> Row {
        self.remembered = Some(plan);
        // Without memory there are no probe results, and the definition is the one it comes with.
        self.found = Some(plan).filter(|_| self.edit.is_none() && !self.has_probes());
        self
    }
    pub fn expect_remembered(mut self, plan: &'static str) -> Row {
        self.remembered = Some(plan);
        self
    }
    pub fn expect_found(mut self, plan: &'static str) -> Row {
        self.found = Some(plan);
        self
    }
    pub fn has_probes(&self) -> bool {
        let all = self.pod.spec.containers.iter().chain(&self.pod.spec.init_containers);
        all.into_iter().any(|c| c.startup_probe.is_some() || c.liveness_probe.is_some())
    }
    pub fn state(&self, called: &str) -> State {
        self.states.iter().find(|(name, _)| name == called).expect("a container of that name").1
    }
}

// --- the plan as the sheet writes it ---------------------------------------------------------------------------------

pub fn show(plan: &Plan, pod: &PodState, spec: &PodSpec) -> String {
    let index = |list: &[Arc<Container>], i: usize| {
        list.iter()
            .position(|c| c.name == pod.containers[i].name)
            .expect("a container of the spec")
            .to_string()
    };
    let many = |head: &str, list: Vec<String>, tail: &str| {
        if list.is_empty() { String::new() } else { format!("{head}{}{tail}", list.join(",")) }
    };
    let parts = [
        if plan.kill_pod { "K".to_string() } else { String::new() },
        plan.create_sandbox.map(|n| format!("S+{n}")).unwrap_or_default(),
        many("X{", plan.stop.iter().map(|(i, _)| pod.containers[*i].name.to_string()).collect(), "}"),
        many("I[", plan.start_init.iter().map(|(i, _)| index(&spec.init_containers, *i)).collect(), "]"),
        many("C[", plan.start_main.iter().map(|(i, _)| index(&spec.containers, *i)).collect(), "]"),
        many("E[", plan.start_ephemeral.iter().map(|i| index(&spec.ephemeral_containers, *i)).collect(), "]"),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|p| !p.is_empty()).collect();
    if parts.is_empty() { "–".to_string() } else { parts.join(" ") }
}

/// What a plan in that notation asks for.
#[derive(Default)]
struct Want {
    kill: bool,
    sandbox: Option<u32>,
    stop: BTreeSet<String>,
    start: BTreeSet<String>,
}

fn parse(plan: &str, spec: &PodSpec) -> Want {
    let mut want = Want::default();
    for part in plan.split(' ').filter(|p| *p != "–") {
        let list: Vec<&str> = part
            .get(2..part.len().saturating_sub(1))
            .unwrap_or("")
            .split(',')
            .filter(|s| !s.is_empty())
            .collect();
        let mut start = |from: &[Arc<Container>]| {
            for i in &list {
                want.start.insert(from[i.parse::<usize>().expect("an index")].name.to_string());
            }
        };
        match part.chars().next() {
            Some('K') => want.kill = true,
            Some('S') => want.sandbox = part[2..].parse().ok(),
            Some('X') => want.stop.extend(list.iter().map(|s| s.to_string())),
            Some('I') => start(&spec.init_containers),
            Some('C') => start(&spec.containers),
            Some('E') => start(&spec.ephemeral_containers),
            other => panic!("{other:?} in a plan"),
        }
    }
    want
}

// --- bringing a row about --------------------------------------------------------------------------------------------

fn show_host(bench: &mut Bench, row: &Row) {
    bench.host.containers.clear();
    bench.host.sandboxes = BTreeMap::from([((UID, row.sandbox.0), row.sandbox.1)]);
    let started_at = bench.now;
    for (called, state) in &row.states {
        let seen = match state {
            Absent => continue,
            Created => SeenState::Created,
            Running => SeenState::Running { started_at },
            Exit(code) => SeenState::Exited(exit(*code, started_at)),
            Unknown => SeenState::Unknown,
        };
        bench.host.containers.insert((UID, id(called, 0)), seen);
    }
}

pub fn remembered(row: &Row, expected: &str) {
    let mut bench = Bench::booted(config());
    for (called, state) in &row.states {
        let called = called.clone();
        match state {
            Absent => {
                bench.hold(move |a| a.verb() == "pull" && a.container().is_some_and(|c| *c.name == *called))
            }
            Created => {
                bench.hold(move |a| a.verb() == "start" && a.container().is_some_and(|c| *c.name == *called))
            }
            Exit(0) if called.starts_with('i') => {
                bench.host.ends.insert(called, 0);
            }
            Running | Exit(_) | Unknown => {}
        }
    }
    for (called, kind, passed) in &row.probes {
        bench.host.probes.insert((called.to_string(), *kind), *passed);
    }
    bench.pod(&row.pod);
    bench.run();
    bench.restart_agent();
    let mounts = bench.take(verb("observe-mounts")).op;
    bench.apply(Fact::MountsObserved { op: mounts, mounts: vec![] });
    bench.sources_ready();
    show_host(&mut bench, row);
    list(&mut bench, false);
    // The runtime is asked again after a back-off.
    bench.now = bench.now.after(Nanos::secs(1));
    bench.apply(Fact::Tick);
    let mut spec = (*row.pod.spec).clone();
    if let Some(edit) = row.edit {
        edit(&mut spec);
        bench.pod(&edited(&row.pod, edit));
    }
    for (called, kind, passed) in &row.late_probes {
        bench.probe(UID, called, *kind, *passed);
    }
    let pod = bench.state(UID);
    let plan = compute(pod);
    assert_eq!(show(&plan, pod, &spec), expected, "the plan");
    // The partial list is asked for again after a while.
    bench.now = bench.now.after(bench.node.config().timing.retry_backoff_initial);
    bench.apply(Fact::Tick);
    let mark = bench.mark();
    list(&mut bench, true);
    acts(bench, row, mark, expected, &spec);
}

fn list(bench: &mut Bench, complete: bool) {
    let op = bench.take(verb("observe-runtime")).op;
    let (sandboxes, containers) = (bench.host.seen_sandboxes(), bench.host.seen_containers());
    bench.apply(Fact::RuntimeObserved { op, complete, sandboxes, containers });
}

pub fn found(row: &Row, expected: &str) {
    let mut bench = Bench::started(config());
    show_host(&mut bench, row);
    bench.run();
    let mark = bench.mark();
    bench.pod(&row.pod);
    bench.apply(Fact::Tick);
    acts(bench, row, mark, expected, &row.pod.spec);
}

/// The commands given now are the plan's, and what it begins is carried through.
fn acts(mut bench: Bench, row: &Row, mark: usize, expected: &str, spec: &PodSpec) {
    let want = parse(expected, spec);
    let stops = bench.asked(mark, &["stop", "kill"]);
    let starts = bench.asked(mark, &["pull", "create", "start"]);
    if want.kill {
        assert_eq!(starts, BTreeSet::new(), "nothing starts before the kill is over");
    } else {
        assert_eq!(stops, want.stop, "stops now, {:?}", bench.deeds(mark));
        let now: BTreeSet<String> = want.start.difference(&want.stop).cloned().collect();
        assert_eq!(starts, now, "starts now, {:?}", bench.deeds(mark));
    }
    if bench.node.is_recovered() {
        bench.let_go();
    } else {
        bench.sources_ready();
    }
    for called in ["i0", "i1", "i2"] {
        bench.host.ends.insert(called.to_string(), 0);
    }
    for called in ["r1", "r2"] {
        bench.host.probes.insert((called.to_string(), ProbeKind::Startup), true);
    }
    bench.run();
    let deeds = bench.deeds(mark);
    let made: Vec<u32> = bench.log[mark..].iter().filter_map(sandbox_attempt).collect();
    assert_eq!(made, want.sandbox.into_iter().collect::<Vec<u32>>(), "sandboxes made, {deeds:?}");
    let started = bench.asked(mark, &["start"]);
    if want.kill && want.sandbox.is_none() {
        assert_eq!(bench.state(UID).label(), "Terminated", "the pod is over, {deeds:?}");
        assert!(started.is_empty(), "an ended pod starts nothing, {deeds:?}");
        assert!(!bench.state(UID).has_instances());
        return;
    }
    assert_eq!(bench.state(UID).label(), "Active");
    assert!(started.is_superset(&want.start), "all that was planned started, {deeds:?}");
    for (called, state) in &row.states {
        let kept = *state == Running && !want.kill && !want.stop.contains(called);
        let plain = called.starts_with('i');
        assert!(!kept || plain || !deeds.contains(&format!("stop {called}")), "{called} is kept, {deeds:?}");
    }
    if want.sandbox.is_some() {
        let made = deeds.iter().position(|d| d == "sandbox").expect("a sandbox was made");
        let before = &deeds[..made];
        assert!(before.iter().all(|d| d.starts_with("stop")), "only stops before the new sandbox, {deeds:?}");
        let running: Vec<&str> = row
            .states
            .iter()
            .filter(|(_, s)| matches!(s, Running | Unknown))
            .map(|(c, _)| c.as_str())
            .collect();
        assert!(
            running.iter().all(|c| before.contains(&format!("stop {c}"))),
            "what ran is stopped, {deeds:?}"
        );
    }
    assert!(row.states.iter().all(|(c, _)| row.state(c) != Unknown || c == "e0" || started.contains(c)));
}

pub fn sandbox_attempt(command: &Command) -> Option<u32> {
    match &command.action {
        Action::CreateSandbox { attempt, .. } => Some(*attempt),
        _ => None,
    }
}
