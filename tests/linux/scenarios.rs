//! The same scenario files on this host: they hold, their journals fold again to the same digest, and nothing stays.

use crate::node::nodefold;

#[test]
fn scenarios_hold_on_this_host_and_their_journals_fold_again() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["workspace-swap", "warm-pod", "sidecar-upgrade", "missing-secret"] {
        let file = format!("{}/examples/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
        let journal = directory.path().join(name).display().to_string();
        // The run itself says (exit status 2) if a mount, a cgroup, a process or a directory is left behind.
        let run = nodefold(&["run", "--backend", "linux", "--journal", &journal, &file]);
        let told = String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(0), "{told}");
        let verify = nodefold(&["verify", &journal]);
        assert_eq!(verify.status.code(), Some(0), "{}", String::from_utf8_lossy(&verify.stdout));
    }
}

#[test]
fn what_only_a_simulation_can_do_is_refused_by_name() {
    let file = format!("{}/examples/slow-mount.yaml", env!("CARGO_MANIFEST_DIR"));
    let run = nodefold(&["run", "--backend", "linux", &file]);
    assert_eq!(run.status.code(), Some(2));
    let told = String::from_utf8_lossy(&run.stderr);
    assert!(told.contains("only a simulated world") && told.contains("line 14: hold mount"), "{told}");
}
