//! Nothing grows with what is gone: the size of a snapshot is the size of the state.
#![cfg(feature = "rkyv")]

use crate::bench::Bench;
use crate::kit::*;
use nodefold_core::event::Fact;
use nodefold_core::ids::PodUid;
use nodefold_core::spec::Container;
use nodefold_core::time::Nanos;

fn size_after(rounds: std::ops::Range<u32>, bench: &mut Bench) -> usize {
    for round in rounds {
        let (name, object) = (format!("job-{round}"), format!("object-{round}"));
        bench.object(&object, u128::from(round));
        bench.change(|spec| {
            spec.add_volume(config_map(&name, &object));
            spec.add(job_with(&name));
            spec.edit("keeper", |c| c.mounts.push(mount(&name)));
        });
        bench.exits(&name, 0);
        bench.change(|spec| {
            spec.remove(&name);
            spec.edit("keeper", |c| c.mounts.retain(|m| *m.name != *name));
            spec.remove_volume(&name);
        });
        bench.pass(Nanos::secs(1));
        bench.log.clear();
        bench.events.clear();
    }
    bench.node.to_snapshot().len()
}

fn job_with(name: &str) -> Container {
    Container { mounts: vec![mount(name)], ..job(name) }
}

/// A pod that lives for ever is as large after a thousand tasks as after a hundred.
#[test]
fn a_thousand_containers_and_volumes_leave_nothing_behind() {
    let mut bench = Bench::running(pod(POD, vec![swapper("keeper", &[])], vec![]));
    let early = size_after(0..100, &mut bench);
    let late = size_after(100..1000, &mut bench);
    // Numbers and names get a little longer; nothing else grows.
    assert!(late < early + early / 10, "{early} bytes after 100 rounds, {late} after 1000");
}

/// Neither do pods.
#[test]
fn a_thousand_pods_leave_nothing_behind() {
    let mut bench = Bench::running(pod(POD, vec![container("keeper")], vec![]));
    let mut sizes = Vec::new();
    for round in 0..1000u32 {
        let uid = PodUid(u128::from(round) + 100);
        let object = format!("object-{round}");
        bench.object(&object, 1);
        bench.apply(pod(uid, vec![user("a", &["v"])], vec![config_map("v", &object)]));
        bench.fact(Fact::PodRemoved { pod: uid });
        bench.pass(Nanos::secs(1));
        bench.log.clear();
        bench.events.clear();
        sizes.push(bench.node.to_snapshot().len());
    }
    let (early, late) = (sizes[99], sizes[999]);
    assert!(late < early + early / 10, "{early} bytes after 100 pods, {late} after 1000");
}
