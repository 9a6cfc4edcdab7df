//! The same scenario files on this host: they hold, their journals fold again to the same digest, and nothing stays.

use crate::node::nodefold;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

#[test]
fn scenarios_hold_on_this_host_and_their_journals_fold_again() {
    let directory = tempfile::tempdir().unwrap();
    for name in [
        "examples/workspace-swap",
        "examples/warm-pod",
        "examples/sidecar-upgrade",
        "examples/missing-secret",
        "tests/scenarios/readiness-gates",
        "tests/scenarios/requests-and-an-end-while-the-agent-is-down",
    ] {
        let file = format!("{}/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
        let journal = directory.path().join(name.replace('/', "-")).display().to_string();
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

/// A program that works for a while before it listens to TERM, and one that never rests.
const PROGRAMS: &str = r#"name: programs-that-take-their-time
about: A program that was let go has set its handlers when a story goes on.
steps:
- create:
    apiVersion: v1
    kind: Pod
    metadata: {name: web}
    spec:
      terminationGracePeriodSeconds: 2
      containers:
      - name: slow
        image: registry.local/busybox:1
        command: [sh, -c, "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; trap 'exit 0' TERM; while true; do sleep 0.1; done"]
      - {name: busy, image: registry.local/busybox:1, command: [sh, -c, "while true; do true; done"]}
- settle: 1m
- mark: up
- dynamic: {pod: web, patch: {spec: {containers: [{name: slow, $patch: delete}]}}}
- settle: 1m
- expect: {pod: web, status: {containerStatuses: [{name: slow, state: {terminated: {exitCode: 0}}}]}}
- expect: {pod: web, container: busy, sameInstance: up}
"#;

#[test]
fn a_story_goes_on_when_programs_have_come_to_rest_or_take_too_long() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("story.yaml");
    std::fs::write(&file, PROGRAMS).unwrap();
    let run = nodefold(&["run", "--backend", "linux", &file.display().to_string()]);
    let told = String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(0), "{told}");
}

#[test]
fn a_story_that_is_interrupted_takes_down_what_it_made() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("story.yaml");
    std::fs::write(&file, PROGRAMS.replace("- settle: 1m\n- mark: up", "- advance: 10m\n- mark: up"))
        .unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_nodefold"));
    command.args(["run", "--backend", "linux"]).arg(&file).env("TMPDIR", directory.path());
    let mut run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(run.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("web/busy#0.0  Running")));
    let signalled = std::process::Command::new("kill").args(["-INT", &run.id().to_string()]).status();
    assert!(signalled.unwrap().success());
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    let mut said = String::new();
    run.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(2), "{rest:?} {said}");
    assert!(said.contains("interrupted; what it had made on this host was taken down"), "{said}");
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let place = directory.path().display().to_string();
    assert!(!mounts.contains(&place), "{mounts}");
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["story.yaml"]);
}
