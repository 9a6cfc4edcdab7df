//! Cases 29 to 77: what a pod's containers and sandbox need now (the kubelet's computePodActions).
//!
//! Each row gives what the runtime shows and expects a plan, in the sheet's notation: `K` kill the pod, `S+n` make sandbox
//! attempt n, `I[..]` `C[..]` `E[..]` start init, main and ephemeral containers by index, `X{..}` stop by name, `–` nothing.
//! A row is brought about in up to two ways, both with nothing but facts:
//! - *remembered*: the node made the pod; the agent restarts, and a partial list, which is true but allows nothing yet,
//!   shows what is given. The plan is asked, then a complete list lets the node act, and its commands must be the plan's.
//! - *found*: a node without memory finds the runtime so, as a kubelet does at every sync, and is then told of the pod.
//!
//! Stops never block (DESIGN §4 rule 6), so where the sheet has `X{c} C[c]`, the stop is commanded now and the start
//! follows the exit.

use crate::kit::*;
use nodefold_core::command::Action;
use nodefold_core::event::{ProbeKind, SeenState};
use nodefold_core::ids::ContainerId;
use nodefold_core::rules::{Plan, compute};
use nodefold_core::spec::{
    Container, Medium, Pod, PodSpec, Probe, RestartAction, RestartPolicy, RestartRule, Volume, VolumeMount, VolumeSource,
};
use nodefold_core::state::PodState;
use nodefold_core::time::Nanos;
use nodefold_core::{Command, Fact};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ProbeKind::{Liveness, Startup};
use RestartPolicy::{Always, Never, OnFailure};
use State::*;

/// What the runtime shows of a container.
#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    Absent,
    Created,
    Running,
    Exit(i32),
    Unknown,
}

struct Row {
    number: u32,
    given: &'static str,
    pod: Pod,
    states: Vec<(String, State)>,
    /// Attempt and whether it is ready.
    sandbox: (u32, bool),
    /// Probe results before and after the restart of the agent.
    probes: Vec<(&'static str, ProbeKind, bool)>,
    late_probes: Vec<(&'static str, ProbeKind, bool)>,
    /// The desired spec changes at last.
    edit: Option<fn(&mut PodSpec)>,
    remembered: Option<&'static str>,
    found: Option<&'static str>,
}

impl Row {
    fn of(number: u32, given: &'static str, spec: PodSpec, state: impl Fn(&Container, bool) -> State) -> Row {
        let states = spec.init_containers.iter().map(|c| (c.name.to_string(), state(c, true)));
        let others = spec.containers.iter().chain(&spec.ephemeral_containers);
        let states = states.chain(others.map(|c| (c.name.to_string(), state(c, false)))).collect();
        let (probes, late_probes) = (Vec::new(), Vec::new());
        let sandbox = (0, true);
        let pod = pod(UID, spec);
        Row { number, given, pod, states, sandbox, probes, late_probes, edit: None, remembered: None, found: None }
    }
    fn is(mut self, called: &str, state: State) -> Row {
        let row = self.states.iter_mut().find(|(name, _)| name == called).expect("a container of that name");
        row.1 = state;
        self
    }
    fn all(mut self, called: &[&str], state: State) -> Row {
        for name in called {
            self = self.is(name, state);
        }
        self
    }
    fn nothing_known(mut self) -> Row {
        self.states.iter_mut().for_each(|(_, state)| *state = Absent);
        self
    }
    fn sandbox_down(mut self, attempt: u32) -> Row {
        self.sandbox = (attempt, false);
        self
    }
    fn policy(mut self, called: &str, policy: RestartPolicy) -> Row {
        let mut spec = (*self.pod.spec).clone();
        change(&mut spec, called, |c| c.restart_policy = Some(policy));
        self.pod.spec = Arc::new(spec);
        self
    }
    /// A probe result that is known before; replaces the fixture's.
    fn probe(mut self, called: &'static str, kind: ProbeKind, passed: Option<bool>) -> Row {
        self.probes.retain(|(name, k, _)| !(*name == called && *k == kind));
        self.probes.extend(passed.map(|p| (called, kind, p)));
        self
    }
    fn then(mut self, called: &'static str, kind: ProbeKind, passed: bool) -> Row {
        self.late_probes.push((called, kind, passed));
        self
    }
    fn edit(mut self, edit: fn(&mut PodSpec)) -> Row {
        self.edit = Some(edit);
        self
    }
    /// The same plan either way.
    fn expect(mut self, plan: &'static str) -> Row {
        self.remembered = Some(plan);
        // Without memory there are no probe results, and the definition is the one it comes with.
        self.found = Some(plan).filter(|_| self.edit.is_none() && !self.has_probes());
        self
    }
    fn expect_remembered(mut self, plan: &'static str) -> Row {
        self.remembered = Some(plan);
        self
    }
    fn expect_found(mut self, plan: &'static str) -> Row {
        self.found = Some(plan);
        self
    }
    fn has_probes(&self) -> bool {
        let all = self.pod.spec.containers.iter().chain(&self.pod.spec.init_containers);
        all.into_iter().any(|c| c.startup_probe.is_some() || c.liveness_probe.is_some())
    }
    fn state(&self, called: &str) -> State {
        self.states.iter().find(|(name, _)| name == called).expect("a container of that name").1
    }
}

/// B: three mains run.
fn b(number: u32, given: &'static str, policy: RestartPolicy) -> Row {
    let mains = (0..3).map(|i| container(&format!("c{i}"))).collect();
    Row::of(number, given, spec(policy, vec![], mains), |_, _| Running)
}

/// I: three plain init containers have ended well, nothing is known of the mains.
fn i(number: u32, given: &'static str, policy: RestartPolicy) -> Row {
    let inits = (0..3).map(|i| container(&format!("i{i}"))).collect();
    let mains = (0..3).map(|i| container(&format!("c{i}"))).collect();
    Row::of(number, given, spec(policy, inits, mains), |_, init| if init { Exit(0) } else { Absent })
}

/// R: three sidecars run, two of them with startup and liveness probes that pass; nothing is known of the mains.
fn r(number: u32, given: &'static str, policy: RestartPolicy) -> Row {
    let probe = Some(Probe { grace: None });
    let inits = (0..3)
        .map(|i| match i {
            0 => sidecar("r0"),
            i => Container { startup_probe: probe, liveness_probe: probe, ..sidecar(&format!("r{i}")) },
        })
        .collect();
    let mains = (0..3).map(|i| container(&format!("c{i}"))).collect();
    let mut row = Row::of(number, given, spec(policy, inits, mains), |_, init| if init { Running } else { Absent });
    for called in ["r1", "r2"] {
        row = row.probe(called, Startup, Some(true)).probe(called, Liveness, Some(true));
    }
    row
}

/// R without probes, so that a node without memory can be shown it.
fn plain_r(number: u32, given: &'static str, policy: RestartPolicy) -> Row {
    let inits = (0..3).map(|i| sidecar(&format!("r{i}"))).collect();
    let mains = (0..3).map(|i| container(&format!("c{i}"))).collect();
    Row::of(number, given, spec(policy, inits, mains), |_, init| if init { Running } else { Absent })
}

/// E: an init container ended well, three mains and an ephemeral container run.
fn e(number: u32, given: &'static str, policy: RestartPolicy) -> Row {
    let mut spec = (*i(number, given, policy).pod.spec).clone();
    spec.init_containers.truncate(1);
    spec.ephemeral_containers.push(Arc::new(container("e0")));
    Row::of(number, given, spec, |_, init| if init { Exit(0) } else { Running })
}

fn second_ephemeral(spec: &mut PodSpec) {
    spec.ephemeral_containers.push(Arc::new(container("e1")));
}

fn rows() -> Vec<Row> {
    let exits = |row: Row| row.is("c0", Exit(0)).is("c1", Exit(111));
    vec![
        b(29, "all run", Always).expect("–"),
        exits(b(31, "Always; exits 0 and 111", Always)).expect("C[0,1]"),
        exits(b(32, "OnFailure; exits 0 and 111", OnFailure)).expect("C[1]"),
        b(33, "OnFailure; exit 0, Created", OnFailure).is("c0", Exit(0)).is("c1", Created).expect("C[1]"),
        exits(b(34, "Never; exits 0 and 111", Never)).expect("–"),
        b(35, "Always; sandbox not ready", Always).sandbox_down(0).expect("K S+1 C[0,1,2]"),
        b(36, "OnFailure; sandbox not ready, c1 exit 0", OnFailure)
            .is("c1", Exit(0))
            .sandbox_down(0)
            .expect("K S+1 C[0,2]"),
        b(38, "c1's image differs", Always)
            .edit(|spec| change(spec, "c1", |c| c.image = name("other")))
            .expect("X{c1} C[1]"),
        b(38, "c1's image differs; regardless of policy", Never)
            .edit(|spec| change(spec, "c1", |c| c.image = name("other")))
            .expect("X{c1} C[1]"),
        probed(b(39, "c1 liveness Failure", Always)).then("c1", Liveness, false).expect("X{c1} C[1]"),
        probed(b(39, "c1 liveness Failure; Never", Never)).then("c1", Liveness, false).expect("X{c1}"),
        starting(b(39, "c1 startup Failure", Always)).then("c1", Startup, false).expect("X{c1} C[1]"),
        b(40, "Never; sandbox 1 not ready, all exited", Never)
            .all(&["c0", "c1", "c2"], Exit(1))
            .sandbox_down(1)
            .expect("K"),
        b(41, "OnFailure; sandbox 1 not ready, all exit 0", OnFailure)
            .all(&["c0", "c1", "c2"], Exit(0))
            .sandbox_down(1)
            .expect("K"),
        b(42, "Never; sandbox 2 not ready, nothing known", Never)
            .nothing_known()
            .sandbox_down(2)
            .expect("K S+3 C[0,1,2]"),
        b(43, "Never; c1 Unknown", Never).is("c1", Unknown).expect("X{c1} C[1]"),
        b(44, "Never; c1 Created", Never).is("c1", Created).expect("C[1]"),
        exits(b(45, "pod Never; c0, c1 Always", Never).policy("c0", Always).policy("c1", Always)).expect("C[0,1]"),
        exits(b(46, "pod Never; c0, c1 OnFailure", Never).policy("c0", OnFailure).policy("c1", OnFailure))
            .expect("C[1]"),
        b(46, "pod Never; c0, c1 OnFailure; c1 Created", Never)
            .policy("c0", OnFailure)
            .policy("c1", OnFailure)
            .is("c0", Exit(0))
            .is("c1", Created)
            .expect("C[1]"),
        exits(b(47, "pod Always; c0, c1 Never", Always).policy("c0", Never).policy("c1", Never)).expect("–"),
        b(48, "pod Always; c1 OnFailure exit 0; sandbox not ready", Always)
            .policy("c1", OnFailure)
            .is("c1", Exit(0))
            .sandbox_down(0)
            .expect("K S+1 C[0,2]"),
        i(52, "all init done", Always).expect("C[0,1,2]"),
        i(53, "nothing known", Always).nothing_known().expect("I[0]"),
        i(54, "i2 runs", Always).is("i2", Running).expect("–"),
        i(55, "sandbox not ready", Always).sandbox_down(0).expect("K S+1 I[0]"),
        i(56, "i2 exit 137, Always", Always).is("i2", Exit(137)).expect("I[2]"),
        i(56, "i2 exit 137, OnFailure", OnFailure).is("i2", Exit(137)).expect("I[2]"),
        i(56, "i2 exit 137, Never", Never).is("i2", Exit(137)).expect("K"),
        i(57, "i2 Unknown, Always", Always).is("i2", Unknown).expect("X{i2} I[2]"),
        i(57, "i2 Unknown, OnFailure", OnFailure).is("i2", Unknown).expect("X{i2} I[2]"),
        i(57, "i2 Unknown, Never", Never).is("i2", Unknown).expect("K"),
        i(58, "Never; sandbox not ready", Never).sandbox_down(0).expect("K"),
        i(59, "Never; sandbox not ready, nothing known", Never)
            .nothing_known()
            .sandbox_down(0)
            .expect("K S+1 I[0]"),
        // A node that remembers has seen i0 and i1 end; one that doesn't infers it.
        i(60, "only i2 known, runs", Always).all(&["i0", "i1"], Absent).is("i2", Running).expect_found("–"),
        i(61, "i2 Created", Always).is("i2", Created).expect("I[2]"),
        r(62, "all sidecars run", Always).expect("C[0,1,2]"),
        plain_r(62, "all sidecars run", Always).expect("C[0,1,2]"),
        r(63, "only r0 known, runs", Always).all(&["r1", "r2"], Absent).expect("I[1]"),
        plain_r(63, "only r0 known, runs", Always).all(&["r1", "r2"], Absent).expect("I[1]"),
        r(64, "r2 unknown; r1's liveness missing", Always)
            .is("r2", Absent)
            .probe("r1", Liveness, None)
            .expect("I[2]"),
        r(64, "r2 unknown; r1's liveness passes", Always).is("r2", Absent).expect("I[2]"),
        r(65, "r2 unknown; r1's startup missing", Always).is("r2", Absent).probe("r1", Startup, None).expect("–"),
        r(65, "r2 unknown; r1's startup passed", Always).is("r2", Absent).expect("I[2]"),
        r(66, "r2 liveness Failure", Always).then("r2", Liveness, false).expect("X{r2} I[2] C[0,1,2]"),
        r(67, "r2 startup Failure", Always)
            .probe("r2", Startup, None)
            .then("r2", Startup, false)
            .expect("X{r2} I[2]"),
        r(68, "r2's image differs", Always)
            .edit(|spec| change(spec, "r2", |c| c.image = name("other")))
            .expect("X{r2} I[2] C[0,1,2]"),
        r(69, "r0 and r2 exited, r2 had not yet started up", Always)
            .probe("r2", Startup, None)
            .all(&["r0", "r2"], Exit(1))
            .expect("I[0,2]"),
        plain_r(69, "r0 and r2 exited", Always)
            .all(&["r0", "r2"], Exit(1))
            .expect_found("I[0,2]")
            // SEMANTICS: initialization that was done in this sandbox is remembered (B29); the mains need not wait for the
            // sidecar to come back, as a kubelet's do when none of them was made yet.
            .expect_remembered("I[0,2] C[0,1,2]"),
        r(70, "r0 exited", Always).is("r0", Exit(1)).expect("I[0] C[0,1,2]"),
        plain_r(70, "r0 exited", Always).is("r0", Exit(1)).expect("I[0] C[0,1,2]"),
        r(71, "Never, r2 exit 137", Never).probe("r2", Startup, None).is("r2", Exit(137)).expect("I[2]"),
        plain_r(71, "Never, r2 exit 137", Never).is("r2", Exit(137)).expect_found("I[2]"),
        r(71, "Never, r2 Unknown", Never).probe("r2", Startup, None).is("r2", Unknown).expect("X{r2} I[2]"),
        plain_r(71, "Never, r2 Unknown", Never).is("r2", Unknown).expect_found("X{r2} I[2]"),
        r(72, "Never, mains run, r2 exit 137", Never)
            .all(&["c0", "c1", "c2"], Running)
            .is("r2", Exit(137))
            .expect("I[2]"),
        plain_r(72, "Never, mains run, r2 exit 137", Never)
            .all(&["c0", "c1", "c2"], Running)
            .is("r2", Exit(137))
            .expect("I[2]"),
        r(73, "Never, all mains exit 0", Never).all(&["c0", "c1", "c2"], Exit(0)).expect("K"),
        plain_r(73, "Never, all mains exit 0", Never).all(&["c0", "c1", "c2"], Exit(0)).expect("K"),
        // An ended sidecar is no reason to begin an ended pod anew, where it is remembered that it had begun (B29).
        plain_r(73, "Never, all mains exit 0, r2 exit 1", Never)
            .all(&["c0", "c1", "c2"], Exit(0))
            .is("r2", Exit(1))
            .expect_remembered("K"),
        plain_r(74, "only r2 known, runs", Always).all(&["r0", "r1"], Absent).expect_found("I[0,1] C[0,1,2]"),
        e(75, "all as it should be", Always).expect("–"),
        e(75, "ephemeral missing", Always).is("e0", Absent).expect("E[0]"),
        e(75, "second ephemeral added", Always).edit(second_ephemeral).expect("E[1]"),
        e(75, "ephemeral exited", Always).is("e0", Exit(1)).expect("–"),
        e(75, "ephemeral Unknown", Always).is("e0", Unknown).expect("–"),
        e(76, "init runs, ephemeral missing", Always)
            .nothing_known()
            .is("i0", Running)
            .expect("E[0]"),
        e(77, "Never, mains exit 0, ephemeral runs", Never).all(&["c0", "c1", "c2"], Exit(0)).expect("K"),
    ]
}

/// c1 has a liveness probe that passes.
fn probed(mut row: Row) -> Row {
    let mut spec = (*row.pod.spec).clone();
    change(&mut spec, "c1", |c| c.liveness_probe = Some(Probe { grace: None }));
    row.pod.spec = Arc::new(spec);
    row.probe("c1", Liveness, Some(true))
}

/// c1 has a startup probe that says nothing yet.
fn starting(mut row: Row) -> Row {
    let mut spec = (*row.pod.spec).clone();
    change(&mut spec, "c1", |c| c.startup_probe = Some(Probe { grace: None }));
    row.pod.spec = Arc::new(spec);
    row
}

// --- the plan as the sheet writes it ---------------------------------------------------------------------------------

fn show(plan: &Plan, pod: &PodState, spec: &PodSpec) -> String {
    let index = |list: &[Arc<Container>], i: usize| {
        list.iter().position(|c| c.name == pod.containers[i].name).expect("a container of the spec").to_string()
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
        let list: Vec<&str> =
            part.get(2..part.len().saturating_sub(1)).unwrap_or("").split(',').filter(|s| !s.is_empty()).collect();
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

fn remembered(row: &Row, expected: &str) {
    let mut bench = Bench::booted(config());
    for (called, state) in &row.states {
        let called = called.clone();
        match state {
            Absent => bench.hold(move |a| a.verb() == "pull" && a.container().is_some_and(|c| *c.name == *called)),
            Created => bench.hold(move |a| a.verb() == "start" && a.container().is_some_and(|c| *c.name == *called)),
            Exit(0) if called.starts_with('i') => {
                bench.ends.insert(called, 0);
            }
            Running | Exit(_) | Unknown => {}
        }
    }
    for (called, kind, passed) in &row.probes {
        bench.probes.insert((called.to_string(), *kind), *passed);
    }
    bench.pod(&row.pod);
    bench.run();
    bench.restart_agent();
    let mounts = bench.take(verb("observe-mounts")).op;
    bench.apply(Fact::MountsObserved { op: mounts, mounts: vec![] });
    bench.sources_ready();
    show_host(&mut bench, row);
    list(&mut bench, false);
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
    let mark = bench.mark();
    list(&mut bench, true);
    acts(bench, row, mark, expected, &spec);
}

fn list(bench: &mut Bench, complete: bool) {
    let op = bench.take(verb("observe-runtime")).op;
    let (sandboxes, containers) = (bench.host.seen_sandboxes(), bench.host.seen_containers());
    bench.apply(Fact::RuntimeObserved { op, complete, sandboxes, containers });
}

fn found(row: &Row, expected: &str) {
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
        bench.ends.insert(called.to_string(), 0);
    }
    for called in ["r1", "r2"] {
        bench.probes.insert((called.to_string(), Startup), true);
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
        let running: Vec<&str> =
            row.states.iter().filter(|(_, s)| matches!(s, Running | Unknown)).map(|(c, _)| c.as_str()).collect();
        assert!(running.iter().all(|c| before.contains(&format!("stop {c}"))), "what ran is stopped, {deeds:?}");
    }
    assert!(row.states.iter().all(|(c, _)| row.state(c) != Unknown || c == "e0" || started.contains(c)));
}

fn sandbox_attempt(command: &Command) -> Option<u32> {
    match &command.action {
        Action::CreateSandbox { attempt, .. } => Some(*attempt),
        _ => None,
    }
}

// --- cases that a list can't show ------------------------------------------------------------------------------------

/// 30: with a volume's mount in flight nothing has been done yet, and the plan says what will be.
fn no_sandbox() {
    let mut of_pod = mains(Always, 3);
    let mut spec = (*of_pod.spec).clone();
    let source = VolumeSource::EmptyDir { medium: Medium::Disk, size_limit: None };
    spec.volumes.push(Arc::new(Volume { name: name("v"), source, rest: Default::default() }));
    change(&mut spec, "c0", |c| {
        c.mounts.push(VolumeMount {
            name: name("v"),
            mount_path: name("/v"),
            read_only: false,
            rest: Default::default(),
        })
    });
    of_pod.spec = Arc::new(spec);
    let mut bench = Bench::booted(config());
    bench.hold(verb("mount"));
    let mark = bench.mark();
    bench.pod(&of_pod);
    bench.run();
    let pod = bench.state(UID);
    assert_eq!(show(&compute(pod), pod, &of_pod.spec), "K S+0 C[0,1,2]");
    bench.let_go();
    bench.run();
    let deeds = bench.deeds(mark);
    assert_eq!(deeds[0], "sandbox", "the kill of nothing is nothing");
    assert_eq!(bench.asked(mark, &["start"]), ["c0", "c1", "c2"].map(String::from).into());
    assert_eq!(bench.count(mark, "sandbox"), 1);
}

/// 37
fn sandbox_without_address() {
    let mut bench = Bench::booted(config());
    bench.hold(verb("sandbox"));
    bench.pod(&mains(Always, 3));
    bench.run();
    let op = bench.take(verb("sandbox")).op;
    let mark = bench.mark();
    bench.apply(Fact::SandboxReady { op, pod: UID, attempt: 0, ip: None });
    let pod = bench.state(UID);
    assert_eq!(show(&compute(pod), pod, &pod.pod.spec), "K S+1 C[0,1,2]");
    bench.let_go();
    bench.run();
    let made: Vec<u32> = bench.log[mark..].iter().filter_map(sandbox_attempt).collect();
    assert_eq!((bench.deeds(mark)[0].as_str(), made), ("stop-sandbox", vec![1]));
    assert_eq!(bench.asked(mark, &["start"]), ["c0", "c1", "c2"].map(String::from).into());
}

/// B, with a rule on c2 that code 42 restarts all (KEP-5532).
fn restarting() -> Pod {
    let base = mains(Always, 3);
    let mut spec = (*base.spec).clone();
    change(&mut spec, "c2", |c| {
        c.restart_policy = Some(Never);
        let action = RestartAction::RestartAllContainers;
        c.restart_rules.push(RestartRule { negated: false, codes: vec![42], action });
    });
    Pod { spec: Arc::new(spec), ..base }
}

fn shown_reset(plan: &Plan) -> Vec<String> {
    let show = |(id, kill): &(ContainerId, bool)| format!("{}.{}{}", id.name, id.attempt, if *kill { " kill" } else { "" });
    plan.reset.iter().map(show).collect()
}

/// 49: with the flag and all running, each is killed, without preStop, grace or order, and nothing else happens. The flag
/// comes from an exit, so the one that exited is there in no life; the two that run are reset.
fn restart_all_kills_all() {
    let mut bench = Bench::with(&restarting());
    let mark = bench.mark();
    bench.exits(UID, "c2", 42);
    let plan = compute(bench.state(UID));
    assert_eq!(shown_reset(&plan), ["c0.0 kill", "c1.0 kill", "c2.0"]);
    assert_eq!(Plan { reset: vec![], ..plan }, Plan::default(), "nothing else");
    assert_eq!(bench.deeds(mark), ["kill c0", "kill c1"]);
}

/// 50: older dead ones go after their own newer ones, and the source last.
fn restart_all_order() {
    let mut bench = Bench::with(&restarting());
    // A dead older instance of each: stop what the node would collect.
    bench.hold(verb("remove"));
    bench.exits(UID, "c0", 1);
    bench.exits(UID, "c1", 1);
    bench.run();
    bench.exits(UID, "c2", 42);
    let plan = compute(bench.state(UID));
    assert_eq!(shown_reset(&plan), ["c0.1 kill", "c0.0", "c1.1 kill", "c1.0", "c2.0"]);
}

/// 51: all are gone; they begin anew in the same sandbox, at once.
fn restart_all_begins_anew() {
    let mut bench = Bench::with(&restarting());
    let mark = bench.mark();
    bench.exits(UID, "c2", 42);
    bench.run();
    assert_eq!(bench.asked(mark, &["start"]), ["c0", "c1", "c2"].map(String::from).into());
    assert_eq!((bench.count(mark, "sandbox"), bench.count(mark, "stop-sandbox")), (0, 0));
    let counts: Vec<u32> = ["c0", "c1", "c2"].iter().map(|c| bench.row(UID, c).restart_count).collect();
    assert_eq!((counts, bench.state(UID).restarting_all.clone()), (vec![1, 1, 1], None));
    bench.pass(Nanos::secs(60));
    assert_eq!(bench.count(mark, "start"), 3, "once");
}

const CASES: &[Case] = &[
    Case { number: 30, given: "no sandbox, nothing known", run: no_sandbox },
    Case { number: 37, given: "sandbox without address", run: sandbox_without_address },
    Case { number: 49, given: "restart all, all running", run: restart_all_kills_all },
    Case { number: 50, given: "restart all, with older dead ones", run: restart_all_order },
    Case { number: 51, given: "restart all is done", run: restart_all_begins_anew },
];

pub fn numbers() -> Vec<u32> {
    rows().iter().map(|r| r.number).chain(CASES.iter().map(|c| c.number)).collect()
}

#[test]
fn a_remembering_node_plans_and_acts_as_the_table_says() {
    let rows = rows();
    run_all(rows.iter().filter_map(|row| {
        let expected = row.remembered?;
        Some((row.number, row.given.to_string(), Box::new(move || remembered(row, expected)) as Box<dyn Fn()>))
    }));
}

#[test]
fn a_node_without_memory_acts_as_the_table_says() {
    let rows = rows();
    run_all(rows.iter().filter_map(|row| {
        let expected = row.found?;
        Some((row.number, row.given.to_string(), Box::new(move || found(row, expected)) as Box<dyn Fn()>))
    }));
}

#[test]
fn what_a_list_cannot_show() {
    run_cases(CASES);
}
