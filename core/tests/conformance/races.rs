//! Historical races (kubelet-pods §6) that no scenario can tell, since no simulated host does such a thing.

use crate::kit::*;
use nodefold_core::spec::RestartPolicy;
use nodefold_core::status::ContainerState;

/// B11: the runtime loses a run-once container without a record of its end. It counts as failed, and never runs again.
#[test]
fn b11_a_vanished_container_looks_never_run() {
    let mut bench = Bench::with(&mains(RestartPolicy::Never, 1));
    let mark = bench.mark();
    bench.host.containers.clear();
    bench.restart_agent();
    bench.pod(&mains(RestartPolicy::Never, 1));
    bench.sources_ready();
    bench.run();
    assert_eq!(bench.asked(mark, &["create", "start"]).len(), 0, "run-once is not run twice");
    assert_eq!(bench.phase(UID), "Failed");
    match bench.row(UID, "c0").state {
        ContainerState::Terminated(end) => {
            assert_eq!((end.exit_code, &*end.reason), (137, "ContainerStatusUnknown"));
        }
        other => panic!("{other:?}"),
    }
}
