//! Images on this node: those in its store, layouts, archives and directories that somebody named, and the host's own
//! busybox. Nothing is pulled from a registry.

mod busybox;
mod document;
mod names;
mod source;
mod store;
mod unpack;
mod users;

pub use document::digest_of;
pub use names::canonical;
pub use store::{Held, Listed, Store};
pub use users::{User, user_of};

use crate::fault::{Attempt, Fault};
use crate::layout::Layout;
use busybox::BUILT_IN;
use document::RunConfig;
use nodefold_core::spec::PullPolicy;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// The search path of a container whose image gives none.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The node's images.
pub struct Images {
    store: Store,
    named: BTreeMap<String, PathBuf>,
    busybox: Mutex<Option<Image>>,
    /// What a layout or archive that somebody named was when it was imported, and as what.
    imported: Mutex<BTreeMap<String, (Stamp, String)>>,
}

/// How a file is told from what it was before.
type Stamp = (Option<SystemTime>, u64);

/// An image that is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// Its digest.
    pub id: String,
    /// Its root file system, which nobody writes to.
    pub root: PathBuf,
    /// What its configuration sets in the environment.
    pub env: Vec<(String, String)>,
    /// What runs, when a container doesn't say.
    pub entrypoint: Vec<String>,
    /// Its arguments, or what runs where there is no entry point.
    pub command: Vec<String>,
    /// As whom: a user or uid, and perhaps a group.
    pub user: String,
    /// Where it begins.
    pub working_directory: String,
    /// How it wants to be asked to end.
    pub stop_signal: Option<String>,
}

impl Images {
    /// The node's images, with directories, layouts or archives for some names.
    pub fn new(layout: &Layout, named: BTreeMap<String, PathBuf>) -> Images {
        let (busybox, imported) = (Mutex::default(), Mutex::default());
        Images { store: Store::at(layout.clone()), named, busybox, imported }
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Has an image present, or says in Kubernetes' words why it can't be had.
    pub fn get(&self, reference: &str, policy: PullPolicy) -> Result<Image, Fault> {
        if !names::is_valid(reference) {
            let message = format!(
                "Failed to apply default image tag \"{reference}\": couldn't parse image name \"{reference}\": invalid reference format"
            );
            return Err(Fault::refused(message).because("InvalidImageName"));
        }
        if let Some(path) = self.path_of(reference) {
            return self.named(reference, path);
        }
        if let Some(image) = self.store.find(reference)? {
            return Ok(image);
        }
        if names::repository(reference) == BUILT_IN {
            let mut made = self.busybox.lock().unwrap_or_else(PoisonError::into_inner);
            if made.is_none() {
                *made = Some(busybox::image(&self.store.dir())?);
            }
            return made.clone().ok_or_else(|| Fault::refused("the busybox image was not made"));
        }
        Err(match policy {
            PullPolicy::Never => Fault::refused(format!(
                "Container image \"{reference}\" is not present with pull policy of Never"
            ))
            .because("ErrImageNeverPull"),
            PullPolicy::Always | PullPolicy::IfNotPresent => Fault::refused(format!(
                "failed to pull and unpack image \"{reference}\": failed to resolve reference \"{reference}\": \
                 {reference}: not found (this node pulls from no registry: name a layout, archive or directory with \
                 --image {reference}=PATH, or `nodefold image import` it)"
            )),
        })
    }

    /// An image that is here as it is: nothing is read in, made or waited for. None: ask [`Images::get`], where that can be.
    pub fn at_hand(&self, reference: &str) -> Option<Image> {
        if !names::is_valid(reference) {
            return None;
        }
        if let Some(path) = self.path_of(reference) {
            return is_plain(path).then(|| directory(path).ok()).flatten();
        }
        match self.store.find(reference).ok()? {
            Some(image) => Some(image),
            None if names::repository(reference) == BUILT_IN => self.busybox.try_lock().ok()?.clone(),
            None => None,
        }
    }

    /// What somebody named so, with or without a tag.
    fn path_of(&self, reference: &str) -> Option<&PathBuf> {
        self.named.get(reference).or_else(|| self.named.get(names::repository(reference)))
    }

    /// What somebody named: a directory is the image itself; a layout or an archive is imported, again when it changed.
    fn named(&self, reference: &str, path: &Path) -> Result<Image, Fault> {
        if is_plain(path) {
            return directory(path);
        }
        let index = path.join("index.json");
        let file = if index.is_file() { index } else { path.to_owned() };
        let found =
            fs::metadata(&file).attempt(|| format!("--image {reference}: look at {}", file.display()))?;
        let stamp = (found.modified().ok(), found.len());
        let mut imported = self.imported.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, id)) = imported.get(reference)
            && *of == stamp
            && let Some(image) = self.store.by_id(id)?
        {
            return Ok(image);
        }
        let image = self.store.import_one(path, reference)?;
        imported.insert(reference.to_owned(), (stamp, image.id.clone()));
        Ok(image)
    }
}

/// An image of the store as a node runs it.
fn image(id: String, root: PathBuf, config: RunConfig) -> Image {
    let env = config.env.unwrap_or_default();
    let mut env: Vec<(String, String)> = env
        .iter()
        .filter_map(|entry| entry.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    if !env.iter().any(|(name, _)| name == "PATH") {
        env.insert(0, ("PATH".into(), PATH.into()));
    }
    Image {
        id,
        root,
        env,
        entrypoint: config.entrypoint.unwrap_or_default(),
        command: config.cmd.unwrap_or_default(),
        user: config.user.unwrap_or_default(),
        working_directory: config.working_dir.unwrap_or_default(),
        stop_signal: config.stop_signal.filter(|signal| !signal.is_empty()),
    }
}

/// Whether that is a directory which is an image itself, and no layout of images.
fn is_plain(path: &Path) -> bool {
    path.is_dir() && !path.join("index.json").is_file()
}

/// A directory as an image: the one itself, or the `rootfs` in it.
fn directory(path: &Path) -> Result<Image, Fault> {
    let root = if path.join("rootfs").is_dir() { path.join("rootfs") } else { path.to_owned() };
    let root = fs::canonicalize(&root).attempt(|| format!("resolve {}", root.display()))?;
    Ok(Image {
        id: format!("dir:{}", root.display()),
        root,
        env: vec![("PATH".into(), PATH.into())],
        ..Image::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_at_hand_is_what_would_be_had() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().join("root");
        fs::create_dir(&root).expect("made");
        let named =
            BTreeMap::from([("a.local/b".into(), root), ("a.local/gone".into(), "/nonexistent".into())]);
        let images = Images::new(&Layout::at(directory.path().join("node")), named);
        let had = images.get("a.local/b:1", PullPolicy::IfNotPresent).expect("it is there");
        assert_eq!(images.at_hand("a.local/b:1"), Some(had));
        assert_eq!(images.at_hand(BUILT_IN), None, "it is made first");
        let made = images.get(BUILT_IN, PullPolicy::IfNotPresent).expect("it is there");
        assert_eq!(images.at_hand(BUILT_IN), Some(made));
        for absent in ["a.local/gone:1", "x:1", "X y"] {
            assert_eq!(images.at_hand(absent), None);
        }
    }

    #[test]
    fn what_is_not_there_is_refused_in_the_words_of_its_policy() {
        let images = Images::new(&Layout::at("/nonexistent"), BTreeMap::new());
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
