//! The parity probe: the same program on the same root in a container of ours and in one of runc reports the same
//! confinement, item by item.

use crate::node::Node;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

/// Says how it is confined, an item a line. Only busybox is there to say it. It tries nothing that would change the host if a
/// container could do it: no clocks, no kernel settings that no namespace holds.
const PROBE: &str = r#"
say() { printf '%s=%s\n' "$1" "$2"; }
say user "$(id)"
say user_map "$(tr -s ' ' < /proc/self/uid_map)"
say group_map "$(tr -s ' ' < /proc/self/gid_map)"
say owners "$(ls -ldn / /proc/1 /dev/pts /dev/shm /dev/null | awk '{print $1, $3, $4}' | tr '\n' ';')"
for key in Uid Gid Groups CapInh CapPrm CapEff CapBnd CapAmb NoNewPrivs Seccomp; do
  say "$key" "$(grep "^$key:" /proc/self/status | tr -s '\t ' ' ')"
done
say umask "$(umask)"
say pid "$(cut -d' ' -f1 /proc/1/stat)"
say hostname "$(hostname)"
say cwd "$(pwd)"
say cgroup "$(cat /proc/self/cgroup | cut -d: -f3 | sort -u | tr '\n' ' ')"
say limits "$(tail -n +2 /proc/self/limits | tr -s ' ' | tr '\n' ';')"
say oom_score_adj "$(cat /proc/self/oom_score_adj)"
say env "$(env | grep -v -E '^(PWD|SHLVL|OLDPWD|_)=' | sort | tr '\n' ' ')"
say devices "$(cd /dev && ls -l | grep '^[cbl]' | awk '{if (/^l/) print $1, $NF; else print $1, $5, $6, $NF}' | sort | tr '\n' ';')"
say interfaces "$(ls /sys/class/net | tr '\n' ' ')"
say descriptors "$(ls /proc/self/fd | wc -l)"
for target in /proc /dev /dev/pts /dev/mqueue /dev/shm /sys /sys/fs/cgroup /sys/fs/cgroup/memory /sys/fs/cgroup/systemd /proc/bus /proc/fs /proc/irq /proc/sys /proc/acpi /proc/keys /proc/timer_list /sys/firmware; do
  say "mount$target" "$(awk -v t="$target" '$2 == t {print $3, $4}' /proc/self/mounts)"
done
say mounts "$(awk '{print $2}' /proc/self/mounts | grep -v -E '^/(etc/.*|dev/termination-log)?$' | sort | tr '\n' ' ')"
say masked "$(cat /proc/keys /proc/timer_list 2>/dev/null | wc -c) $(ls /sys/firmware | wc -l)"
try() { if sh -c "$2" >/dev/null 2>&1; then say "$1" allowed; else say "$1" refused; fi; }
try write_proc_sys 'cat /proc/sys/kernel/domainname > /proc/sys/kernel/domainname'
try write_sys 'cat /sys/class/net/lo/ifalias > /sys/class/net/lo/ifalias'
try mount 'mount -t tmpfs none /tmp'
try set_hostname 'hostname other'
try make_device 'mknod /tmp/vda b 254 0'
try open_device 'head -c 1 /tmp/vda'
try make_allowed 'mknod /tmp/zero c 1 5 && head -c 1 /tmp/zero'
try chown 'touch /tmp/f && chown 1:1 /tmp/f'
try chroot 'chroot / true'
try raw_socket 'ping -c 1 -W 1 127.0.0.1'
try kernel_log dmesg
try print_by_name 'true >> /proc/1/fd/1 && true >> /proc/1/fd/2'
try new_users 'unshare -U true'
try new_proc 'mkdir -p /tmp/p; mount -t proc proc /tmp/p'
try new_sys 'mount -t sysfs sysfs /tmp'
try ptrace_cap 'grep -q "^CapEff:.*ffffff" /proc/self/status'
"#;

/// A container's securityContext, and what it is in runc's words.
struct Case {
    name: &'static str,
    context: Value,
    process: Value,
    read_only: bool,
    /// It is in a user namespace.
    own_users: bool,
}

fn default_capabilities() -> Vec<&'static str> {
    vec![
        "CAP_CHOWN",
        "CAP_DAC_OVERRIDE",
        "CAP_FSETID",
        "CAP_FOWNER",
        "CAP_MKNOD",
        "CAP_NET_RAW",
        "CAP_SETGID",
        "CAP_SETUID",
        "CAP_SETFCAP",
        "CAP_SETPCAP",
        "CAP_NET_BIND_SERVICE",
        "CAP_SYS_CHROOT",
        "CAP_KILL",
        "CAP_AUDIT_WRITE",
    ]
}

fn sets(names: &[&str]) -> Value {
    json!({"bounding": names, "effective": names, "permitted": names})
}

fn cases() -> Vec<Case> {
    let user = |uid: u32, gid: u32, groups: &[u32]| json!({"uid": uid, "gid": gid, "additionalGids": groups, "umask": 0o22});
    vec![
        Case {
            name: "default",
            context: json!({}),
            process: json!({"user": user(0, 0, &[0]), "capabilities": sets(&default_capabilities()), "noNewPrivileges": false}),
            read_only: false,
            own_users: false,
        },
        Case {
            name: "own-users",
            context: json!({}),
            process: json!({"user": user(0, 0, &[0]), "capabilities": sets(&default_capabilities()), "noNewPrivileges": false}),
            read_only: false,
            own_users: true,
        },
        Case {
            name: "own-users-more",
            context: json!({
                "runAsUser": 1000, "runAsGroup": 2000, "capabilities": {"add": ["SYS_ADMIN", "NET_ADMIN"]},
                "readOnlyRootFilesystem": true,
            }),
            process: {
                let mut names = default_capabilities();
                names.extend(["CAP_SYS_ADMIN", "CAP_NET_ADMIN"]);
                json!({"user": user(1000, 2000, &[2000]), "capabilities": sets(&names), "noNewPrivileges": false})
            },
            read_only: true,
            own_users: true,
        },
        Case {
            name: "hardened",
            context: json!({
                "runAsUser": 1000, "runAsGroup": 2000, "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
            }),
            process: json!({"user": user(1000, 2000, &[2000]), "capabilities": sets(&[]), "noNewPrivileges": true}),
            read_only: true,
            own_users: false,
        },
        Case {
            name: "more",
            context: json!({"capabilities": {"add": ["SYS_PTRACE", "NET_ADMIN"], "drop": ["MKNOD", "CHOWN"]}}),
            process: {
                let mut names = default_capabilities();
                names.retain(|name| !matches!(*name, "CAP_MKNOD" | "CAP_CHOWN"));
                names.extend(["CAP_SYS_PTRACE", "CAP_NET_ADMIN"]);
                json!({"user": user(0, 0, &[0]), "capabilities": sets(&names), "noNewPrivileges": false})
            },
            read_only: false,
            own_users: false,
        },
    ]
}

fn items(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.trim().to_owned()))
        .collect()
}

/// The options of a mount in an order that doesn't matter.
fn normal(items: &mut BTreeMap<String, String>) {
    for (key, value) in items.iter_mut().filter(|(key, _)| key.starts_with("mount/")) {
        let mut words: Vec<&str> = value.split([' ', ',']).collect();
        words.sort_unstable();
        // The kernel tells `inode64` and such of its own.
        words.retain(|word| !matches!(*word, "inode64" | "noswap"));
        let _ = key;
        *value = words.join(",");
    }
}

fn assert_runc() {
    let runc = Command::new("runc").arg("--version").output();
    assert!(
        runc.is_ok_and(|output| output.status.success()),
        "runc is the measuring stick: apt-get install runc"
    );
}

#[test]
fn a_container_is_confined_as_runcs_is() {
    assert_runc();
    let mut node = Node::new();
    for case in cases() {
        let manifest = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": case.name},
            "spec": {
                "restartPolicy": "Never", "hostUsers": !case.own_users,
                "containers": [{
                    "name": "probe", "image": "registry.local/busybox:1", "command": ["sh", "-c", PROBE],
                    "securityContext": case.context,
                }],
            },
        });
        node.write(&format!("{}.yaml", case.name), &manifest.to_string());
    }
    node.start();
    let mut differences = Vec::new();
    for case in cases() {
        node.until(&format!("{} ended", case.name), |node| {
            node.container(case.name, "probe").is_some_and(|c| c["state"]["terminated"].is_object())
        });
        let mut ours = items(&node.logs(case.name, "probe"));
        let mut config = config(&case, &["sh", "-c", PROBE]);
        let first = case.own_users.then(|| first_id(&ours["user_map"]));
        if let Some(first) = first {
            let ids = json!([{"containerID": 0, "hostID": first, "size": 65_536}]);
            config["linux"]["namespaces"].as_array_mut().unwrap().push(json!({"type": "user"}));
            config["linux"]["uidMappings"] = ids.clone();
            config["linux"]["gidMappings"] = ids;
        }
        let mut theirs = items(&under_runc(&node, case.name, &config, first));
        normal(&mut ours);
        normal(&mut theirs);
        assert!(theirs.len() > 40, "the probe says something: {theirs:?}");
        for key in theirs.keys().chain(ours.keys()) {
            if ours.get(key) != theirs.get(key) {
                differences.push(format!(
                    "{} {key}\n   ours {:?}\n   runc {:?}",
                    case.name,
                    ours.get(key),
                    theirs.get(key)
                ));
            }
        }
    }
    differences.sort();
    differences.dedup();
    assert!(differences.is_empty(), "confined otherwise than by runc:\n{}", differences.join("\n"));
    node.end();
}

/// What 0 is outside, of a line of a uid_map.
fn first_id(map: &str) -> u32 {
    let mut words = map.split_whitespace();
    assert_eq!(words.next(), Some("0"), "{map}");
    let first = words.next().unwrap().parse().unwrap();
    assert_eq!(words.next(), Some("65536"), "{map}");
    first
}

/// What runc's container says, on the image that the node unpacked: given to that user and group, if there is one.
fn under_runc(node: &Node, name: &str, config: &Value, owner: Option<u32>) -> String {
    let bundle = tempfile::tempdir().unwrap();
    let mut images = fs::read_dir(node.layout.images()).unwrap().map(|entry| entry.unwrap().path());
    let image = images.find(|path| path.join("rootfs").is_dir()).unwrap();
    let copied = Command::new("cp").arg("-a").arg(image.join("rootfs")).arg(bundle.path()).status().unwrap();
    assert!(copied.success());
    for dir in ["dev/pts", "dev/mqueue", "dev/shm"] {
        fs::create_dir_all(bundle.path().join("rootfs").join(dir)).unwrap();
    }
    if let Some(owner) = owner {
        let owner = format!("{owner}:{owner}");
        let given = Command::new("chown").args(["-hR", &owner]).arg(bundle.path()).status().unwrap();
        assert!(given.success());
    }
    fs::write(bundle.path().join("config.json"), config.to_string()).unwrap();
    let state = bundle.path().join("state");
    let output = Command::new("runc")
        .arg("--root")
        .arg(&state)
        .args(["run", "--bundle"])
        .arg(bundle.path())
        .arg(format!("nodefold-parity-{name}-{}", std::process::id()))
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "runc: {}", String::from_utf8_lossy(&output.stderr));
    text
}

/// What containerd's CRI gives runc for such a container.
fn config(case: &Case, args: &[&str]) -> Value {
    let mount = |target: &str, kind: &str, source: &str, options: &[&str]| json!({"destination": target, "type": kind, "source": source, "options": options});
    let mut process = case.process.clone();
    process["args"] = json!(args);
    process["cwd"] = json!("/");
    process["env"] = json!([
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        format!("HOSTNAME={}", case.name)
    ]);
    process["oomScoreAdj"] = json!(1000);
    let device = |kind: &str, major: Option<u32>, minor: Option<u32>, access: &str| {
        let mut rule = json!({"allow": true, "type": kind, "access": access});
        if let Some(major) = major {
            rule["major"] = json!(major);
        }
        if let Some(minor) = minor {
            rule["minor"] = json!(minor);
        }
        rule
    };
    json!({
        "ociVersion": "1.0.2",
        "process": process,
        "root": {"path": "rootfs", "readonly": case.read_only},
        "hostname": case.name,
        "mounts": [
            mount("/proc", "proc", "proc", &["nosuid", "noexec", "nodev"]),
            mount("/dev", "tmpfs", "tmpfs", &["nosuid", "strictatime", "mode=755", "size=65536k"]),
            mount("/dev/pts", "devpts", "devpts", &["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"]),
            mount("/dev/mqueue", "mqueue", "mqueue", &["nosuid", "noexec", "nodev"]),
            mount("/dev/shm", "tmpfs", "shm", &["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"]),
            mount("/sys", "sysfs", "sysfs", &["nosuid", "noexec", "nodev", "ro"]),
            mount("/sys/fs/cgroup", "cgroup", "cgroup", &["nosuid", "noexec", "nodev", "relatime", "ro"]),
        ],
        "linux": {
            "namespaces": (["pid", "ipc", "uts", "mount", "network", "cgroup"].map(|kind| json!({"type": kind}))),
            "cgroupsPath": format!("/nodefold-parity-{}-{}", case.name, std::process::id()),
            "maskedPaths": nodefold_agent::confine::MASKED,
            "readonlyPaths": nodefold_agent::confine::READ_ONLY,
            "resources": {"devices": [
                {"allow": false, "access": "rwm"},
                device("c", None, None, "m"), device("b", None, None, "m"),
                device("c", Some(1), Some(3), "rwm"), device("c", Some(1), Some(5), "rwm"),
                device("c", Some(1), Some(7), "rwm"), device("c", Some(1), Some(8), "rwm"),
                device("c", Some(1), Some(9), "rwm"), device("c", Some(5), Some(0), "rwm"),
                device("c", Some(5), Some(2), "rwm"), device("c", Some(136), None, "rwm"),
            ]},
        },
    })
}

/// The default seccomp profile as runc is given it, for the default capabilities.
fn runtime_default() -> Value {
    let names: Vec<&str> = nodefold_agent::seccomp::allowed().chain(["chroot"]).collect();
    let allow = |names: Value| json!({"names": names, "action": "SCMP_ACT_ALLOW"});
    let only = |name: &str, argument: Value| json!({"names": [name], "action": "SCMP_ACT_ALLOW", "args": [argument]});
    let mut rules = vec![allow(json!(names))];
    rules.extend(
        [0x0, 0x0008, 0x2_0000, 0x2_0008, 0xffff_ffff_u32]
            .map(|value| only("personality", json!({"index": 0, "value": value, "op": "SCMP_CMP_EQ"}))),
    );
    rules.push(only("socket", json!({"index": 0, "value": 40, "op": "SCMP_CMP_NE"})));
    rules.push(only(
        "clone",
        json!({"index": 0, "value": 0x7e02_0000, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}),
    ));
    rules.push(json!({"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38}));
    json!({
        "defaultAction": "SCMP_ACT_ERRNO",
        "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"],
        "syscalls": rules,
    })
}

#[test]
fn every_call_by_every_number_meets_what_it_meets_under_runc() {
    assert_runc();
    let mut node = Node::new();
    let programs = node.directory().join("programs");
    fs::create_dir(&programs).unwrap();
    let compiled = Command::new("cc")
        .args([
            "-O1",
            "-static",
            "-nostdlib",
            "-fno-stack-protector",
            "-fno-builtin",
            "-fcf-protection=none",
            "-o",
        ])
        .arg(programs.join("calls"))
        .arg(format!("{}/tests/linux/calls.c", env!("CARGO_MANIFEST_DIR")))
        .status()
        .unwrap();
    assert!(compiled.success());
    let manifest = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "calls"},
        "spec": {
            "restartPolicy": "Never",
            "volumes": [{"name": "programs", "hostPath": {"path": programs}}],
            "containers": [{
                "name": "probe", "image": "registry.local/busybox:1", "command": ["/programs/calls"],
                "volumeMounts": [{"name": "programs", "mountPath": "/programs", "readOnly": true}],
                "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            }],
        },
    });
    node.write("calls.yaml", &manifest.to_string());
    node.start();
    node.until("calls ended", |node| {
        node.container("calls", "probe").is_some_and(|c| c["state"]["terminated"].is_object())
    });
    let ours = node.logs("calls", "probe");
    let mut cases = cases();
    let mut config = config(&cases.remove(0), &["/programs/calls"]);
    config["linux"]["seccomp"] = runtime_default();
    config["mounts"].as_array_mut().unwrap().push(json!({
        "destination": "/programs", "type": "bind", "source": programs, "options": ["bind", "ro"],
    }));
    let theirs = under_runc(&node, "calls", &config, None);
    assert!(theirs.lines().count() > 1400, "{theirs}");
    let differences: Vec<String> = ours
        .lines()
        .zip(theirs.lines())
        .filter(|(ours, theirs)| ours != theirs)
        .map(|(ours, theirs)| format!("ours {ours:?}, runc {theirs:?}"))
        .collect();
    assert_eq!(ours.lines().count(), theirs.lines().count());
    assert!(differences.is_empty(), "architecture, number, error:\n{}", differences.join("\n"));
    node.end();
}
