//! Images on this node: directories that somebody named, and the host's own static busybox, so that examples run on a machine
//! that reaches no registry.

use crate::fault::{Attempt, Fault};
use crate::layout::Layout;
use nodefold_core::spec::PullPolicy;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// The repository that stands for the host's busybox, with any tag.
const BUILT_IN: &str = "registry.local/busybox";
/// Where a static busybox is on Debian.
const BUSYBOX: [&str; 3] = ["/bin/busybox", "/usr/bin/busybox", "/bin/busybox-static"];

/// The node's images.
pub struct Images {
    layout: Layout,
    named: BTreeMap<String, PathBuf>,
    busybox: Mutex<Option<Image>>,
}

/// An image that is there.
#[derive(Clone, Debug)]
pub struct Image {
    /// Its digest.
    pub id: String,
    /// Its root file system, which nobody writes to.
    pub root: PathBuf,
    /// What its configuration sets in the environment.
    pub env: Vec<(String, String)>,
    /// What it runs, when a container doesn't say.
    pub command: Vec<String>,
}

impl Images {
    /// The node's images, with directories for some names.
    pub fn new(layout: Layout, named: BTreeMap<String, PathBuf>) -> Images {
        Images { layout, named, busybox: Mutex::new(None) }
    }

    /// Has an image present, or says in Kubernetes' words why it can't be had.
    pub fn get(&self, reference: &str, policy: PullPolicy) -> Result<Image, Fault> {
        if !is_valid(reference) {
            let message = format!(
                "Failed to apply default image tag \"{reference}\": couldn't parse image name \"{reference}\": invalid reference format"
            );
            return Err(Fault::refused(message).because("InvalidImageName"));
        }
        if let Some(path) = self.named.get(reference).or_else(|| self.named.get(repository(reference))) {
            return directory(path);
        }
        if repository(reference) == BUILT_IN {
            return self.busybox();
        }
        Err(match policy {
            PullPolicy::Never => Fault::refused(format!(
                "Container image \"{reference}\" is not present with pull policy of Never"
            ))
            .because("ErrImageNeverPull"),
            PullPolicy::Always | PullPolicy::IfNotPresent => Fault::refused(format!(
                "failed to pull and unpack image \"{reference}\": failed to resolve reference \"{reference}\": \
                 {reference}: not found (this node pulls from no registry: name a directory with --image {reference}=PATH)"
            )),
        })
    }

    /// The host's busybox as an image, made once for each version of it.
    fn busybox(&self) -> Result<Image, Fault> {
        let mut made = self.busybox.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(image) = &*made {
            return Ok(image.clone());
        }
        let binary = BUSYBOX.iter().map(Path::new).find(|path| path.is_file()).ok_or_else(|| {
            Fault::refused(format!("{BUILT_IN} is made from the host's busybox, and there is none: apt-get install busybox-static"))
        })?;
        let bytes = fs::read(binary).attempt(|| format!("read {}", binary.display()))?;
        let digest = format!("{:032x}", xxhash_rust::xxh3::xxh3_128(&bytes));
        let place = self.layout.images().join(format!("busybox-{digest}"));
        let root = place.join("rootfs");
        if !root.is_dir() {
            build_busybox(binary, &bytes, &self.layout.images(), &place)?;
        }
        let image = Image {
            id: format!("busybox:{digest}"),
            root,
            env: vec![("PATH".into(), "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".into())],
            command: vec!["sh".into()],
        };
        *made = Some(image.clone());
        Ok(image)
    }
}

/// Builds the root file system beside its place and moves it there whole.
fn build_busybox(binary: &Path, bytes: &[u8], images: &Path, place: &Path) -> Result<(), Fault> {
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

/// A directory as an image: the one itself, or the `rootfs` in it.
fn directory(path: &Path) -> Result<Image, Fault> {
    let root = if path.join("rootfs").is_dir() { path.join("rootfs") } else { path.to_owned() };
    if !root.is_dir() {
        return Err(Fault::refused(format!("--image names {}, which is no directory", path.display())));
    }
    let root = fs::canonicalize(&root).attempt(|| format!("resolve {}", root.display()))?;
    Ok(Image {
        id: format!("dir:{}", root.display()),
        root,
        env: vec![("PATH".into(), "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".into())],
        command: Vec::new(),
    })
}

/// A reference without its tag and digest.
fn repository(reference: &str) -> &str {
    let without_digest = reference.split_once('@').map_or(reference, |(before, _)| before);
    match without_digest.rsplit_once(':') {
        Some((before, tag)) if !tag.contains('/') => before,
        Some(_) | None => without_digest,
    }
}

/// Lower-case repository, no blanks: enough to tell a typing error from a reference.
fn is_valid(reference: &str) -> bool {
    let repository = repository(reference);
    !repository.is_empty()
        && !repository.ends_with('/')
        && repository.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "./-_:".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_what_is_left_without_tag_and_digest() {
        assert_eq!(repository("registry.local/busybox:1"), "registry.local/busybox");
        assert_eq!(repository("registry:5000/a"), "registry:5000/a");
        assert_eq!(repository("a@sha256:00"), "a");
    }

    #[test]
    fn what_is_not_there_is_refused_in_the_words_of_its_policy() {
        let images = Images::new(Layout::at("/nonexistent"), BTreeMap::new());
        let never = images.get("x:1", PullPolicy::Never).expect_err("absent");
        assert_eq!(never.reason, Some("ErrImageNeverPull"));
        assert_eq!(
            images.get("X y", PullPolicy::Always).expect_err("invalid").reason,
            Some("InvalidImageName")
        );
        assert!(
            images.get("x:1", PullPolicy::IfNotPresent).expect_err("absent").message.contains("not found")
        );
    }
}
