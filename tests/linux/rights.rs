//! What a process that lacks rights says of it, and that it then does nothing.

use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// The program run so by util-linux' setpriv, from a place where anybody may.
fn with(directory: &Path, rights: &[&str], args: &[&str]) -> Output {
    let program = directory.join("nodefold");
    if !program.exists() {
        fs::copy(env!("CARGO_BIN_EXE_nodefold"), &program).unwrap();
        for (path, mode) in [(program.as_path(), 0o755), (directory, 0o777)] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
    }
    Command::new("setpriv").args(rights).arg(&program).args(args).output().unwrap()
}

const STORY: &str = "name: short
about: One container that ends at once.
steps:
- create:
    apiVersion: v1
    kind: Pod
    metadata: {name: short}
    spec: {restartPolicy: Never, containers: [{name: app, image: 'registry.local/busybox:1', command: ['true']}]}
- settle: 1m
- advance: 10s
- expect: {pod: short, status: {phase: Succeeded}}
";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A root directory that is not its mount namespace's: the kernel makes no user namespace from there.
const CONFINED: &str = "mkdir -p $1/root && mount --rbind / $1/root && shift && exec chroot \"$@\"";

#[test]
fn a_user_who_can_have_no_namespaces_is_told_what_is_missing_and_nothing_is_begun() {
    let directory = tempfile::tempdir().unwrap();
    with(directory.path(), &[], &["doctor"]);
    let at = directory.path().display().to_string();
    let confined = |args: &[&str]| {
        let (root, program) = (format!("{at}/root"), format!("{at}/nodefold"));
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", CONFINED, "sh", &at]);
        command.args(["--userspec=65534:65534", "--groups=", &root, &program]).args(args);
        command.env("TMPDIR", &at).output().unwrap()
    };
    let told = confined(&["doctor", "--json"]);
    assert_eq!(told.status.code(), Some(1), "{}", text(&told.stderr));
    let told: Value = serde_json::from_slice(&told.stdout).unwrap();
    assert_eq!(told["mode"], "none");
    let finding = |what: &str| {
        let all = told["findings"].as_array().unwrap();
        let found = all.iter().find(|finding| finding["what"] == what);
        found.unwrap_or_else(|| panic!("{what}: {told}")).clone()
    };
    for what in ["CAP_SYS_ADMIN", "CAP_MKNOD", "control groups", "namespaces", "network namespace"] {
        assert_eq!(
            (&finding(what)["there"], &finding(what)["needed"]),
            (&false.into(), &true.into()),
            "{what}"
        );
    }
    assert!(finding("control groups")["detail"].as_str().unwrap().contains("/sys/fs/cgroup"));
    let noswap = finding("tmpfs noswap")["detail"].to_string();
    assert!(noswap.contains("not permitted") && !noswap.contains("before Linux"), "{noswap}");
    let users = finding("user namespaces")["detail"].to_string();
    assert!(users.contains("hostUsers: false can't run") && users.contains("not permitted"), "{users}");
    let data = directory.path().join("data");
    let data_at = data.display().to_string();
    let story = format!("{}/examples/warm-pod.yaml", env!("CARGO_MANIFEST_DIR"));
    fs::copy(story, directory.path().join("story.yaml")).unwrap();
    let story = directory.path().join("story.yaml").display().to_string();
    for args in [
        &["agent", "--data", &data_at, "--pods", &at][..],
        &["agent", "--data", &data_at, "--backend", "linux"],
        &["run", &story, "--backend", "linux"],
    ] {
        let refused = confined(args);
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{args:?}: {said}");
        for what in [
            "can't run containers (mode: none)",
            "CAP_SYS_ADMIN: ",
            "CAP_MKNOD: ",
            "control groups: ",
            "nor has it namespaces of its own: make a user namespace",
        ] {
            assert!(said.contains(what), "{what}: {said}");
        }
    }
    let mut begun: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    begun.sort();
    assert_eq!(begun, ["nodefold", "root", "story.yaml"]);
    // The simulated world needs no rights.
    let simulated = confined(&["run", &story]);
    assert_eq!(simulated.status.code(), Some(0), "{}", text(&simulated.stderr));
}

#[test]
fn root_without_one_capability_is_told_which_and_one_that_can_be_missed_stops_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let story = directory.path().join("story.yaml");
    fs::write(&story, STORY).unwrap();
    let story = story.display().to_string();
    let without = |name: &str| {
        let drop = format!("-{name}");
        let rights = ["--bounding-set", &drop, "--inh-caps", &drop];
        let mode = with(directory.path(), &rights, &["doctor", "--json"]);
        let mode: Value = serde_json::from_slice(&mode.stdout).unwrap();
        let run = with(directory.path(), &rights, &["run", &story, "--backend", "linux"]);
        (mode["mode"].as_str().unwrap().to_owned(), run.status.code(), text(&run.stderr))
    };
    let (mode, code, said) = without("mknod");
    assert_eq!((&*mode, code), ("none", Some(2)), "{said}");
    assert!(
        said.contains("CAP_MKNOD: device nodes can't be made") && !said.contains("CAP_SYS_ADMIN"),
        "{said}"
    );
    let (mode, code, said) = without("sys_resource");
    assert_eq!(mode, "no-sys-resource");
    assert_eq!(code, Some(0), "{said}");
}
