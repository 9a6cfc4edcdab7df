//! The specification and the production core side by side: the same wishes, deletions and crashes, at random; the one runs
//! by its tables, the other in its world; whenever both have settled they must agree on what is there.

use nodefold_core::time::{Nanos, Time};
use nodefold_harness::act::{Acted, act};
use nodefold_harness::brain::production;
use nodefold_harness::log::InMemory;
use nodefold_harness::run::node_config_of;
use nodefold_harness::scenario::{NodeSpec, Verb};
use nodefold_harness::{Earliest, Record, Scenario, Simulation, Stage, World};
use nodefold_model::spec::allocation::Promise;
use nodefold_model::spec::container::Life;
use nodefold_model::spec::pod::{self, Pod};
use nodefold_model::spec::scope::{State, Step};
use nodefold_model::spec::shapes::{Shape, shape};
use proptest::prelude::*;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};

/// The wishes of the specification's scope `collide`, for a real pod: it runs with a volume, without, with another one of
/// the same name.
const STORY: &str = "
name: collide
steps:
- create:
    apiVersion: v1
    kind: Pod
    metadata: {name: web}
    spec:
      terminationGracePeriodSeconds: 5
      containers:
      - {name: app, image: a, dynamicVolumePolicy: {restartPolicy: RestartContainer}, volumeMounts: [{name: v, mountPath: /v}]}
      volumes: [{name: v, emptyDir: {}}]
- dynamic: {pod: web, patch: {spec: {volumes: [{name: v, $patch: delete}], containers: [{name: app, volumeMounts: [{mountPath: /v, $patch: delete}]}]}}}
- dynamic: {pod: web, patch: {spec: {volumes: [{name: v, emptyDir: {medium: Memory}}], containers: [{name: app, volumeMounts: [{name: v, mountPath: /v}]}]}}}
- delete: {pod: web}
- crash: agent
- crash: host
";

#[derive(Clone, Debug)]
enum Act {
    Wish,
    Delete,
    CrashAgent,
    CrashHost,
    /// The world goes on for so many steps.
    GoOn(u8),
    /// Both run until nothing more is to be done.
    Settle,
}

/// The specification's side.
#[derive(Clone, Debug)]
struct Specified {
    shape: &'static Shape,
    state: State,
    deleted: bool,
}

/// What both sides can say of the pod: how many containers run, how many volumes they hold, how many volumes are there.
#[derive(Debug, PartialEq, Eq)]
struct There {
    running: usize,
    leases: usize,
    volumes: usize,
}

impl Specified {
    /// Runs by the tables, whatever comes first among what is not asked for from outside.
    fn settle(&mut self) {
        let mut steps = Vec::new();
        let mut turn = 0;
        while !self.state.is_settled(self.shape) {
            self.state.steps(self.shape, &mut steps);
            // Nobody asks for more, and this node has no reason to refuse the pod.
            let refuses = |row: &u8| pod::TABLE[usize::from(*row)].act == "refuse";
            steps.retain(|step| match step {
                Step::Wish(_) | Step::Delete(_) | Step::AgentDies | Step::HostDies => false,
                Step::Pod(_, row) => !refuses(row),
                Step::Allocate(_)
                | Step::Sandbox(..)
                | Step::Initialized(_)
                | Step::Told(_)
                | Step::Volume(..)
                | Step::Container(..)
                | Step::Doom(..)
                | Step::SourcesListed
                | Step::MountsSeen
                | Step::RuntimeSeen => true,
            });
            assert!(!steps.is_empty(), "the specification has no dead end");
            turn += 1;
            self.state.take(self.shape, steps[turn % steps.len()]);
            assert_eq!(self.state.broken(self.shape), None);
            assert!(turn < 10_000, "the specification settles");
        }
    }

    fn there(&self) -> There {
        let pod = &self.state.pods[0];
        let runs = |c: &&nodefold_model::spec::scope::ContainerSlot| c.life == Life::Running;
        There {
            running: pod.containers.iter().filter(runs).count(),
            leases: pod.containers.iter().map(|c| c.leases.count_ones() as usize).sum(),
            volumes: pod.volumes.iter().filter(|v| v.promise == Promise::Kept && v.life.is_set_up()).count(),
        }
    }
}

impl ReferenceStateMachine for Specified {
    type State = Specified;
    type Transition = Act;

    fn init_state() -> BoxedStrategy<Specified> {
        let shape = shape("collide").expect("a named scope");
        let mut state = State::new(shape);
        state.crashes = u8::MAX;
        Just(Specified { shape, state, deleted: false }).boxed()
    }

    fn transitions(_: &Specified) -> BoxedStrategy<Act> {
        prop_oneof![
            3 => Just(Act::Wish),
            1 => Just(Act::Delete),
            2 => Just(Act::CrashAgent),
            1 => Just(Act::CrashHost),
            6 => (1u8..20).prop_map(Act::GoOn),
            3 => Just(Act::Settle),
        ]
        .boxed()
    }

    fn preconditions(specified: &Specified, act: &Act) -> bool {
        let pod = &specified.state.pods[0];
        let more = usize::from(pod.desired) + 1 < specified.shape.pods[0].len();
        match act {
            Act::Wish => more && !specified.deleted,
            Act::Delete => !specified.deleted,
            Act::CrashAgent | Act::CrashHost => specified.state.crashes > 0,
            Act::GoOn(_) | Act::Settle => true,
        }
    }

    fn apply(mut specified: Specified, act: &Act) -> Specified {
        let shape = specified.shape;
        match act {
            Act::Wish => specified.state.take(shape, Step::Wish(0)),
            Act::Delete => {
                specified.deleted = true;
                specified.state.take(shape, Step::Delete(0));
            }
            Act::CrashAgent => specified.state.take(shape, Step::AgentDies),
            Act::CrashHost => specified.state.take(shape, Step::HostDies),
            Act::GoOn(_) => {}
            Act::Settle => specified.settle(),
        }
        specified
    }
}

/// The production core's side.
struct Real {
    stage: Simulation,
    verbs: Vec<Verb>,
    /// Wishes that the API has not accepted yet: it takes none before the pod runs.
    wishes: Vec<Verb>,
    wished: usize,
}

impl Real {
    fn act(&mut self, verb: &Verb) -> bool {
        match act(&mut self.stage, verb, verb.name()) {
            Ok(Acted::Answered(response)) => response.is_ok(),
            Ok(Acted::Done) => true,
            Ok(Acted::Missed) => false,
            Ok(Acted::Impossible(why)) => panic!("{why}"),
            Err(error) => panic!("{error}"),
        }
    }

    fn judge(&mut self) {
        for record in self.stage.take_records() {
            if let Record::InvariantBroken { violation, .. } = record {
                panic!("{violation}");
            }
        }
    }

    fn settle(&mut self) {
        while !self.stage.world.unsettled(Nanos::secs(600)).is_empty() {
            self.stage.world.run_one(Time(u64::MAX), &mut Earliest).expect("the world goes on");
            self.judge();
        }
    }

    fn there(&self) -> Option<There> {
        let node = self.stage.node()?;
        let pod = node.pod(*node.pods().first()?)?;
        let instances = || pod.containers.iter().filter_map(|c| c.instance.as_ref());
        Some(There {
            running: pod.containers.iter().filter(|c| c.is_running()).count(),
            leases: instances().map(|i| i.leases.len()).sum(),
            volumes: pod.volumes.iter().filter(|v| v.is_ready()).count(),
        })
    }
}

impl StateMachineTest for Real {
    type SystemUnderTest = Real;
    type Reference = Specified;

    fn init_test(_: &Specified) -> Real {
        let scenario = Scenario::parse(STORY, "story.yaml").expect("a scenario");
        let verbs: Vec<Verb> = scenario.steps.into_iter().map(|step| step.verb).collect();
        let node = NodeSpec::default();
        let config = node_config_of(&node);
        let mut world = World::new(&config, production(config.clone()), &node, Box::<InMemory>::default());
        world.server_mut().refuse_names_in_flight(false);
        let mut real = Real {
            stage: Simulation { world, chooser: Box::new(Earliest) },
            verbs,
            wishes: Vec::new(),
            wished: 0,
        };
        let create = real.verbs[0].clone();
        assert!(real.act(&create), "the pod is created");
        real
    }

    fn apply(mut real: Real, specified: &Specified, act: Act) -> Real {
        let verb = |real: &Real, nth: usize| real.verbs[nth].clone();
        match act {
            Act::Wish => {
                real.wished += 1;
                let wish = verb(&real, real.wished);
                if !real.wishes.is_empty() || !real.act(&wish) {
                    real.wishes.push(wish);
                }
            }
            Act::Delete => {
                let delete = verb(&real, 3);
                assert!(real.act(&delete), "a pod can always be deleted");
                real.wishes.clear();
            }
            Act::CrashAgent => {
                let crash = verb(&real, 4);
                real.act(&crash);
            }
            Act::CrashHost => {
                let crash = verb(&real, 5);
                real.act(&crash);
            }
            Act::GoOn(steps) => {
                for _ in 0..steps {
                    real.stage.world.run_one(Time(u64::MAX), &mut Earliest).expect("the world goes on");
                }
            }
            Act::Settle => {
                real.settle();
                for wish in std::mem::take(&mut real.wishes) {
                    assert!(real.act(&wish), "a pod that runs takes it");
                    real.settle();
                }
                let gone = specified.state.pods[0].life == Pod::Absent;
                assert_eq!(real.there(), (!gone).then(|| specified.there()), "both have settled");
            }
        }
        real.judge();
        real
    }
}

prop_state_machine! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_core_settles_where_the_specification_does(sequential 1..24 => Real);
}
