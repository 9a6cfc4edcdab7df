//! The host's own static busybox as an image, so that examples run on a machine that reaches no registry.

use super::{Image, PATH};
use crate::fault::{Attempt, Fault};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

/// The repository that stands for the host's busybox, with any tag.
pub const BUILT_IN: &str = "registry.local/busybox";
/// Where a static busybox is on Debian.
const BUSYBOX: [&str; 3] = ["/bin/busybox", "/usr/bin/busybox", "/bin/busybox-static"];

/// The host's busybox as an image, made once for each version of it.
pub fn image(images: &Path) -> Result<Image, Fault> {
    let binary = BUSYBOX.iter().map(Path::new).find(|path| path.is_file()).ok_or_else(|| {
        Fault::refused(format!(
            "{BUILT_IN} is made from the host's busybox, and there is none: apt-get install busybox-static"
        ))
    })?;
    let bytes = fs::read(binary).attempt(|| format!("read {}", binary.display()))?;
    let digest = format!("{:032x}", xxhash_rust::xxh3::xxh3_128(&bytes));
    let place = images.join(format!("busybox-{digest}"));
    let root = place.join("rootfs");
    if !root.is_dir() {
        build(binary, &bytes, images, &place)?;
    }
    Ok(Image {
        id: format!("busybox:{digest}"),
        root,
        env: vec![("PATH".into(), PATH.into())],
        command: vec!["sh".into()],
        ..Image::default()
    })
}

/// Builds the root file system beside its place and moves it there whole.
fn build(binary: &Path, bytes: &[u8], images: &Path, place: &Path) -> Result<(), Fault> {
    let listed =
        Command::new(binary).arg("--list").output().attempt(|| format!("run {} --list", binary.display()))?;
    let applets = String::from_utf8_lossy(&listed.stdout).into_owned();
    fs::create_dir_all(images).attempt(|| format!("make {}", images.display()))?;
    let draft = images.join(format!("draft-{}", std::process::id()));
    let make = || -> std::io::Result<()> {
        if draft.exists() {
            fs::remove_dir_all(&draft)?;
        }
        let root = draft.join("rootfs");
        for dir in ["bin", "etc", "proc", "sys", "dev", "root", "tmp", "var/run", "usr"] {
            fs::create_dir_all(root.join(dir))?;
        }
        fs::set_permissions(root.join("tmp"), fs::Permissions::from_mode(0o1777))?;
        fs::write(root.join("bin/busybox"), bytes)?;
        fs::set_permissions(root.join("bin/busybox"), fs::Permissions::from_mode(0o755))?;
        for applet in applets.lines().filter(|name| *name != "busybox" && !name.contains('/')) {
            symlink("busybox", root.join("bin").join(applet))?;
        }
        symlink("../bin", root.join("usr/bin"))?;
        fs::write(
            root.join("etc/passwd"),
            "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
        )?;
        fs::write(root.join("etc/group"), "root:x:0:\nnogroup:x:65534:\n")?;
        match fs::rename(&draft, place) {
            // Another agent was faster.
            Err(_) if place.join("rootfs").is_dir() => fs::remove_dir_all(&draft),
            done => done,
        }
    };
    make().attempt(|| "make the busybox image")
}
