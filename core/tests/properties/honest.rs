//! A world that tells the truth, however slowly and with whatever failures: the bench checks S1, S2, S6 and S12 on each
//! command, and once nothing fails any more everything comes to rest with the host as the record has it.

use crate::bench::Bench;
use crate::generate::{NAMES, VOLUMES, volumes};
use crate::kit::*;
use crate::words::{Op, failure, kind};
use nodefold_core::command::Action;
use nodefold_core::event::ErrorClass;
use nodefold_core::spec::{Container, RestartPolicy, Volume};
use nodefold_core::state::VolumePhase;
use nodefold_core::time::Nanos;
use proptest::prelude::*;
use std::sync::Arc;

/// One thing that happens.
#[derive(Clone, Debug)]
enum Step {
    /// The pod is to have these containers and volumes.
    Change(Vec<Container>, Vec<Volume>),
    /// A command is answered: done; or failed, having been done or not.
    Answer(usize, Option<(ErrorClass, bool)>),
    /// The oldest commands are answered: done.
    AnswerMany(usize),
    /// A container ends by itself.
    Exit(usize, i32),
    /// An object gets new content.
    Object(u128),
    /// Time passes.
    Pass(u64),
    /// The agent dies, some of what it was doing having been done, or not.
    Restart(u32),
    /// The host reboots.
    Reboot,
}

/// Containers that mostly may be restarted for their mounts, and mostly fit.
fn containers() -> impl Strategy<Value = Container> {
    let mounts = prop::sample::subsequence(VOLUMES.to_vec(), 0..=2);
    let cpu = prop_oneof![9 => 0..900u64, 1 => Just(5000u64)];
    let rare = || prop::bool::weighted(0.15);
    (prop::sample::select(NAMES.to_vec()), mounts, (rare(), rare(), rare(), rare()), cpu).prop_map(
        |(name, mounts, (stays, new_image, once, hooks), cpu)| {
            let made = if stays { user(name, &mounts) } else { swapper(name, &mounts) };
            let restart_policy = once.then_some(RestartPolicy::Never);
            let image = if new_image { "image:2".into() } else { "image:1".into() };
            with_cpu(cpu, Container { image, restart_policy, pre_stop: hooks, post_start: hooks, ..made })
        },
    )
}

fn steps() -> impl Strategy<Value = Step> {
    // Only an unknown end may have been done and called failed.
    let failure = prop_oneof![
        Just((ErrorClass::Final, false)),
        Just((ErrorClass::Transient, false)),
        any::<bool>().prop_map(|done| (ErrorClass::Uncertain, done)),
    ];
    let outcome = prop::option::weighted(0.25, failure);
    let lists = (prop::collection::vec(containers(), 0..4), prop::collection::vec(volumes(), 0..4));
    prop_oneof![
        5 => lists.prop_map(|(containers, volumes)| Step::Change(containers, volumes)),
        6 => (0..20usize, outcome).prop_map(|(which, outcome)| Step::Answer(which, outcome)),
        6 => (1..30usize).prop_map(Step::AnswerMany),
        2 => (0..4usize, 0..2i32).prop_map(|(which, code)| Step::Exit(which, code)),
        1 => (0..5u128).prop_map(Step::Object),
        4 => (0..60_000u64).prop_map(Step::Pass),
        1 => any::<u32>().prop_map(Step::Restart),
        1 => Just(Step::Reboot),
    ]
}

fn play(steps: &[Step]) -> Bench {
    let keeper = swapper("keeper", &["base"]);
    let mut bench = Bench::running(pod(POD, vec![keeper.clone()], vec![empty_dir("base")]));
    bench.manual = true;
    for step in steps {
        match step {
            Step::Change(containers, volumes) => bench.change(|spec| {
                spec.containers = vec![Arc::new(keeper.clone())];
                spec.volumes = vec![Arc::new(empty_dir("base"))];
                for volume in volumes {
                    if spec.volume(&volume.name).is_none() {
                        spec.add_volume(volume.clone());
                    }
                }
                for container in containers {
                    let dangles = container.mounts.iter().any(|m| spec.volume(&m.name).is_none());
                    if spec.container(&container.name).is_none() && !dangles {
                        spec.add(container.clone());
                    }
                }
            }),
            Step::Answer(which, outcome) => answer(&mut bench, *which, *outcome),
            Step::AnswerMany(count) => {
                for _ in 0..*count {
                    answer(&mut bench, 0, None);
                }
            }
            Step::Exit(which, code) => {
                let live = bench.node.instances(POD);
                let running: Vec<_> =
                    live.iter().filter(|(_, s)| matches!(*s, "Running" | "Stopping")).collect();
                if let Some((id, _)) = running.get(which % running.len().max(1)) {
                    // What a stop or a kill was to end has ended by itself.
                    bench.exits(&id.name.clone(), *code);
                }
            }
            Step::Object(digest) => bench.object("one", *digest),
            Step::Pass(millis) => bench.pass(Nanos::millis(*millis)),
            Step::Restart(done) => {
                for (n, command) in bench.held.clone().iter().enumerate() {
                    if done >> (n % 32) & 1 == 1 && may_be_done(&bench, command) {
                        let _lost = bench.do_unanswered(command);
                    }
                }
                bench.restart();
                bench.relist();
            }
            Step::Reboot => {
                bench.reboot();
                bench.relist();
            }
        }
    }
    bench
}

/// An exit that was told already is not told again.
fn may_be_done(bench: &Bench, command: &nodefold_core::Command) -> bool {
    match &command.action {
        Action::StopContainer { container, .. } | Action::KillContainer { container } => {
            bench.is_live(container)
        }
        _ => true,
    }
}

fn answer(bench: &mut Bench, which: usize, outcome: Option<(ErrorClass, bool)>) {
    if bench.held.is_empty() {
        return;
    }
    let command = bench.held.remove(which % bench.held.len());
    if !may_be_done(bench, &command) {
        return;
    }
    match outcome {
        None => {
            for fact in bench.do_unanswered(&command) {
                bench.fact(fact);
            }
        }
        Some((class, done)) => {
            // A stop that failed did not end anything, or its exit would be told.
            if done && !matches!(kind(&command).0, Op::Stop | Op::Kill | Op::StopSandbox) {
                let _lost = bench.do_unanswered(&command);
            }
            if let (Action::StartContainer { container }, ErrorClass::Final) = (&command.action, class) {
                // The runtime shows what can't be started as exited.
                bench.end_on_host(container);
            }
            bench.fact(failure(&command, error(class, "no")));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, max_shrink_iters: 4000, failure_persistence: None,
        ..ProptestConfig::default() })]

    #[test]
    fn an_honest_world_keeps_the_invariants_and_comes_to_rest(steps in prop::collection::vec(steps(), 1..120)) {
        let mut bench = play(&steps);
        bench.manual = false;
        while !bench.held.is_empty() {
            answer(&mut bench, 0, None);
        }
        // Long enough for every back-off, and quiet after it: the bench counts ticks.
        bench.pass(Nanos::secs(3600));
        prop_assert!(bench.node.is_recovered());
        prop_assert!(bench.held.is_empty());
        let pod = bench.node.pod(POD).expect("it was never deleted");
        // L2, and the host is as the record has it.
        for volume in &pod.volumes {
            prop_assert!(volume.removed.is_none(), "L2: {} is still there", volume.id);
            let mounted = matches!(volume.phase, VolumePhase::Mounted);
            prop_assert_eq!(mounted, bench.has_mount(POD, &volume.id), "{}", volume.id);
        }
        let mounted = pod.volumes.iter().filter(|v| matches!(v.phase, VolumePhase::Mounted)).count();
        prop_assert_eq!(mounted, bench.mount_count(), "nothing else is on the host");
        prop_assert_eq!(&*pod.surplus, &[]);
        // L1: what is allocated runs, has ended, or is in back-off; what is not is visibly pending.
        for container in &pod.containers {
            prop_assert!(container.removed.is_none() || container.instance.is_none(), "{}", container.name);
            let label = container.label();
            let settled = container.removed.is_some() || matches!(label, "Running" | "Exited");
            prop_assert!(settled, "L1: {} is {label}", container.name);
        }
    }
}
