//! A host with control groups of version 2 alone: this one, in a mount namespace from which those of version 1 are gone, for
//! devices, killing and what containers see; and one in an emulated machine, where the controllers that limit anything are
//! version 2's, too.

use std::process::{Command, Output};

/// A run of a scenario on such a host.
fn run(file: &str) -> Output {
    const HOST: &str = "umount -R -l /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup && exec \"$0\" run \"$1\" --backend linux";
    Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", HOST, env!("CARGO_BIN_EXE_nodefold"), file])
        .output()
        .unwrap()
}

#[test]
fn scenarios_hold_and_devices_are_kept_from_containers() {
    for file in ["tests/linux/version-two.yaml", "examples/warm-pod.yaml", "examples/workspace-swap.yaml"] {
        let output = run(&format!("{}/{file}", env!("CARGO_MANIFEST_DIR")));
        let told = String::from_utf8_lossy(&output.stdout);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{file}\n{told}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(told.contains("holds"), "{told}");
    }
}

/// A host whose controllers are all version 2's: Debian's kernel in QEMU, which needs no KVM, with nothing but busybox, this
/// program and its libraries in memory. (In user-mode Linux a processor with AMX is not survived.) That kernel is 6.1: it
/// lacks much of what the newest has, and the backend does without.
mod guest {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};

    /// From the initramfs, whose root can't be pivoted from, to a root of its own.
    const INIT: &str = "#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t devtmpfs dev /dev
mount -t sysfs sys /sys
insmod /overlay.ko
mount -t tmpfs -o size=800m,mode=755 root /new
for dir in bin lib lib64 usr stories; do [ -d /$dir ] && cp -a /$dir /new/; done
mkdir -p /new/proc /new/dev /new/sys /new/tmp /new/etc
for dir in proc dev sys; do mount --move /$dir /new/$dir; done
exec switch_root /new /bin/second
";
    /// Asks what there is, plays the stories, and ends.
    const SECOND: &str = "#!/bin/busybox sh
export PATH=/bin NO_COLOR=1
mount -t cgroup2 none /sys/fs/cgroup
echo controllers: $(cat /sys/fs/cgroup/cgroup.controllers)
nodefold doctor
for story in /stories/*; do
  nodefold run $story --backend linux
  echo $story ended with $?
  echo left: $(ls -d /sys/fs/cgroup/nodefold* /tmp/* 2>/dev/null) $(ps | grep -c '[_]_nodefold-pod-shim')
done
poweroff -f
";

    fn done(command: &mut Command) -> Vec<u8> {
        let output = command.stderr(Stdio::inherit()).output();
        let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}: ./test installs it"));
        assert!(output.status.success(), "{command:?}: {}", output.status);
        output.stdout
    }

    fn put(root: &Path, from: &Path, to: &str) {
        let to = root.join(to.trim_start_matches('/'));
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, &to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
    }

    fn write(root: &Path, name: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        fs::write(root.join(name), text).unwrap();
        fs::set_permissions(root.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// What the guest says while it plays these stories.
    pub fn play(stories: &[&str]) -> String {
        let tools = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("tools/guest");
        let kernel = tools.join("vmlinuz");
        assert!(kernel.is_file(), "{} is missing: ./test gets Debian's kernel", kernel.display());
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("root");
        for dir in ["bin", "proc", "dev", "sys", "new", "stories"] {
            fs::create_dir_all(root.join(dir)).unwrap();
        }
        let busybox = ["/bin/busybox", "/usr/bin/busybox"].into_iter().map(PathBuf::from);
        put(&root, &busybox.clone().find(|path| path.is_file()).unwrap(), "/bin/busybox");
        put(&root, &tools.join("overlay.ko"), "/overlay.ko");
        let program = env!("CARGO_BIN_EXE_nodefold");
        done(Command::new("strip").arg("-o").arg(root.join("bin/nodefold")).arg(program));
        let needed = String::from_utf8(done(Command::new("ldd").arg(program))).unwrap();
        for library in needed.split_whitespace().filter(|word| word.starts_with('/')) {
            put(&root, Path::new(library), library);
        }
        for (i, story) in stories.iter().enumerate() {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(story);
            put(&root, &path, &format!("/stories/{i}-{}", path.file_name().unwrap().to_string_lossy()));
        }
        write(&root, "init", INIT);
        write(&root, "bin/second", SECOND);
        let archive = directory.path().join("initramfs");
        let pack = "find . | busybox cpio -o -H newc > \"$0\"";
        done(Command::new("sh").args(["-c", pack]).arg(&archive).current_dir(&root));
        let mut qemu = Command::new("timeout");
        qemu.args([
            "--kill-after=5",
            "900",
            "qemu-system-x86_64",
            "-accel",
            "tcg,thread=multi",
            "-cpu",
            "max",
        ]);
        qemu.args(["-smp", "2", "-m", "1536", "-nographic", "-no-reboot", "-nic", "none"]);
        qemu.arg("-kernel").arg(&kernel).arg("-initrd").arg(&archive);
        qemu.args(["-append", "console=ttyS0 quiet panic=-1 cgroup_no_v1=all"]).stdin(Stdio::null());
        String::from_utf8_lossy(&done(&mut qemu)).replace('\r', "")
    }
}

#[test]
fn limits_hold_where_all_controllers_are_version_twos() {
    let stories =
        ["tests/linux/version-two-limits.yaml", "tests/linux/version-two.yaml", "examples/warm-pod.yaml"];
    let told = guest::play(&stories);
    let has = |what: &str| assert!(told.contains(what), "{what:?} is missing\n{told}");
    let controllers = told.lines().find_map(|line| line.split_once("controllers: ")).unwrap_or_default().1;
    for controller in ["cpu", "memory", "pids"] {
        assert!(controllers.split(' ').any(|word| word == controller), "{controller}: {told}");
    }
    has("cgroup limits: cpu and memory of pods and containers are limited");
    has("device rules: containers may open only their own devices");
    // What such a kernel can't do is said.
    has(
        "user namespaces: a pod with hostUsers: false can't run: show files as a user namespace has their owners",
    );
    has("exit codes without being the parent: before Linux 6.15");
    has("ContainerResizeFailed: 4");
    has("bytes are in use, more");
    for (i, story) in stories.iter().enumerate() {
        let name = story.rsplit('/').next().unwrap();
        has(&format!("/stories/{i}-{name} ended with 0"));
    }
    assert_eq!(told.lines().filter(|line| *line == "left: 0").count(), stories.len(), "{told}");
}
