//! The node's store of images: one directory for each digest with its root file system, and a list of names. What runs from an
//! image holds it: a container by its plan, a volume by its record (I12). So a lease is on disk exactly as long as what it
//! is for, and there is nothing to leak.

use super::document::{self, Found, RunConfig, hex_of};
use super::source::Source;
use super::{Image, image, names, unpack};
use crate::beneath;
use crate::fault::{Attempt, Fault};
use crate::layout::Layout;
use rustix::fd::OwnedFd;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The store.
pub struct Store {
    layout: Layout,
}

/// While it lives, no image goes: for whoever looked one up and is about to hold it.
pub struct Held {
    _lock: Option<OwnedFd>,
}

/// What is kept of an image beside its root file system.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    id: String,
    config: RunConfig,
    bytes: u64,
}

/// An image, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its digest.
    pub id: String,
    /// Its names.
    pub names: Vec<String>,
    /// What it unpacked to.
    pub bytes: u64,
    /// Who holds it.
    pub holders: Vec<String>,
}

type Names = BTreeMap<String, String>;

impl Store {
    /// The store of a node.
    pub fn at(layout: Layout) -> Store {
        Store { layout }
    }

    /// Its directory.
    pub fn dir(&self) -> PathBuf {
        self.layout.images()
    }

    fn make_dir(&self) -> Result<PathBuf, Fault> {
        let dir = self.dir();
        fs::create_dir_all(&dir).attempt(|| format!("make {}", dir.display()))?;
        Ok(dir)
    }

    fn lock(&self, how: FlockOperation) -> Result<OwnedFd, Fault> {
        let path = self.make_dir()?.join("lock");
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
        let lock = rustix::fs::open(&path, flags, Mode::from_raw_mode(0o600))
            .attempt(|| format!("open {}", path.display()))?;
        flock(&lock, how).attempt(|| format!("lock {}", path.display()))?;
        Ok(lock)
    }

    /// Lets no image go until what it gives is dropped.
    pub fn hold(&self) -> Result<Held, Fault> {
        // Where nothing was ever imported nothing can go.
        let lock = self.dir().join("names.json").exists().then(|| self.lock(FlockOperation::LockShared));
        Ok(Held { _lock: lock.transpose()? })
    }

    fn names(&self) -> Result<Names, Fault> {
        let path = self.dir().join("names.json");
        match fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text).map_err(|error| {
                Fault::refused(format!("{}: {error}: remove it and import again", path.display()))
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Names::new()),
            Err(error) => Err(error).attempt(|| format!("read {}", path.display())),
        }
    }

    fn write_names(&self, names: &Names) -> Result<(), Fault> {
        let text = serde_json::to_vec_pretty(names).map_err(|error| Fault::refused(error.to_string()))?;
        crate::volumes::write_whole(&beneath::open_root(&self.dir())?, "names.json", &text)
    }

    fn place(&self, id: &str) -> Result<PathBuf, Fault> {
        let hex = hex_of(id).ok_or_else(|| Fault::refused(format!("{id:?} is no sha256 digest")))?;
        Ok(self.dir().join(format!("sha256-{hex}")))
    }

    fn kept(&self, id: &str) -> Result<Option<Kept>, Fault> {
        let path = self.place(id)?.join("image.json");
        match fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text).map(Some).map_err(|error| {
                Fault::refused(format!("{}: {error}: remove the image and import it again", path.display()))
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).attempt(|| format!("read {}", path.display())),
        }
    }

    /// The image of a digest, if it is here.
    pub fn by_id(&self, id: &str) -> Result<Option<Image>, Fault> {
        let Some(kept) = self.kept(id)? else { return Ok(None) };
        Ok(Some(image(kept.id, self.place(id)?.join("rootfs"), kept.config)))
    }

    /// The image of a reference, if it is here: a digest in it decides, whatever its names.
    pub fn find(&self, reference: &str) -> Result<Option<Image>, Fault> {
        match names::digest(reference) {
            Some(digest) => self.by_id(digest),
            None => match self.names()?.get(&names::canonical(reference)) {
                Some(id) => self.by_id(id),
                None => Ok(None),
            },
        }
    }

    /// Imports what a layout or archive has, under its own names, or its only image under this one.
    pub fn import(&self, path: &Path, name: Option<&str>) -> Result<Vec<Listed>, Fault> {
        let dir = self.make_dir()?;
        self.sweep()?;
        let source = Source::open(path, &dir)?;
        let found = read(path, &source)?;
        if let (Some(name), many) = (name, found.len())
            && many != 1
        {
            return Err(Fault::refused(format!(
                "{} has {many} images: {name} can be the name of one only",
                path.display()
            )));
        }
        let mut imported = Vec::new();
        for mut one in found {
            if let Some(name) = name {
                one.names = vec![name.to_owned()];
            }
            if one.names.is_empty() {
                return Err(Fault::refused(format!(
                    "{} does not name its image: give it a --name",
                    path.display()
                )));
            }
            imported.push(self.take_in(&source, one)?);
        }
        Ok(imported)
    }

    /// Imports the image of a layout or archive that is meant by a name: the one of that name, or the only one. It gets no
    /// name in the store.
    pub(super) fn import_one(&self, path: &Path, name: &str) -> Result<Image, Fault> {
        let dir = self.make_dir()?;
        self.sweep()?;
        let source = Source::open(path, &dir)?;
        let mut found = read(path, &source)?;
        let wanted = names::canonical(name);
        let is_wanted = |one: &Found| one.names.iter().any(|name| names::canonical(name) == wanted);
        let at = found.iter().position(is_wanted).or((found.len() == 1).then_some(0));
        let Some(at) = at else {
            let names: Vec<&str> = found.iter().flat_map(|one| &one.names).map(String::as_str).collect();
            return Err(Fault::refused(format!(
                "{} has no image {name}: it has {}",
                path.display(),
                names.join(", ")
            )));
        };
        let mut one = found.swap_remove(at);
        one.names.clear();
        let id = one.id.clone();
        self.take_in(&source, one)?;
        self.by_id(&id)?
            .ok_or_else(|| Fault::transient(format!("image {id} was removed while it was imported")))
    }

    /// Unpacks an image beside its place, moves it there whole, and only then names it.
    fn take_in(&self, source: &Source, found: Found) -> Result<Listed, Fault> {
        let place = self.place(&found.id)?;
        if !place.is_dir() {
            let draft = Draft::new(&self.dir())?;
            let root = draft.path.join("rootfs");
            fs::create_dir(&root).attempt(|| format!("make {}", root.display()))?;
            let fd = beneath::open_root(&root)?;
            rustix::fs::fchmod(&fd, Mode::from_raw_mode(0o755)).attempt(|| "open up the image's root")?;
            for layer in &found.layers {
                unpack::layer(source, layer, &fd)?;
            }
            let bytes = crate::usage::of_tree(&fd)?;
            let kept = Kept { id: found.id.clone(), config: found.config.config.unwrap_or_default(), bytes };
            let text = serde_json::to_vec(&kept).map_err(|error| Fault::refused(error.to_string()))?;
            crate::volumes::write_whole(&beneath::open_root(&draft.path)?, "image.json", &text)?;
            let _locked = self.lock(FlockOperation::LockExclusive)?;
            match fs::rename(&draft.path, &place) {
                Ok(()) => {}
                // Somebody else was faster; the draft goes.
                Err(_) if place.is_dir() => {}
                Err(error) => return Err(error).attempt(|| format!("move the image to {}", place.display())),
            }
        }
        let _locked = self.lock(FlockOperation::LockExclusive)?;
        let mut names = self.names()?;
        for name in &found.names {
            names.insert(names::canonical(name), found.id.clone());
        }
        self.write_names(&names)?;
        let bytes = self.kept(&found.id)?.map_or(0, |kept| kept.bytes);
        let names = found.names.iter().map(|name| names::canonical(name)).collect();
        Ok(Listed { id: found.id, names, bytes, holders: Vec::new() })
    }

    /// Every image, by digest.
    pub fn list(&self) -> Result<Vec<Listed>, Fault> {
        let names = self.names()?;
        let mut listed = Vec::new();
        for entry in fs::read_dir(self.dir()).into_iter().flatten().flatten() {
            let file = entry.file_name().to_string_lossy().into_owned();
            let Some(hex) = file.strip_prefix("sha256-") else { continue };
            let id = format!("sha256:{hex}");
            let Some(kept) = self.kept(&id)? else { continue };
            let names = names.iter().filter(|(_, of)| **of == id).map(|(name, _)| name.clone()).collect();
            let holders = self.holders(&id)?;
            listed.push(Listed { id, names, bytes: kept.bytes, holders });
        }
        listed.sort_by(|a, b| (&a.names, &a.id).cmp(&(&b.names, &b.id)));
        Ok(listed)
    }

    /// Takes a name away, and with its last one the image; or, by its digest, the image and all its names. What is in use
    /// stays, and who uses it is told. True: the image went too.
    pub fn remove(&self, reference: &str) -> Result<bool, Fault> {
        let moved = {
            let _locked = self.lock(FlockOperation::LockExclusive)?;
            let mut names = self.names()?;
            let id = if hex_of(reference).is_some() {
                reference.to_owned()
            } else {
                let name = names::canonical(reference);
                names
                    .get(&name)
                    .cloned()
                    .ok_or_else(|| Fault::refused(format!("there is no image {reference}")))?
            };
            if self.kept(&id)?.is_none() {
                return Err(Fault::refused(format!("there is no image {id}")));
            }
            let others =
                names.iter().filter(|(name, of)| **of == id && **name != names::canonical(reference)).count();
            if hex_of(reference).is_none() && others > 0 {
                names.remove(&names::canonical(reference));
                self.write_names(&names)?;
                return Ok(false);
            }
            let holders = self.holders(&id)?;
            if !holders.is_empty() {
                return Err(Fault::refused(format!("image {reference} is in use by {}", holders.join(", "))));
            }
            names.retain(|_, of| *of != id);
            self.write_names(&names)?;
            let draft = Draft::new(&self.dir())?;
            let place = self.place(&id)?;
            let to = draft.path.join("removed");
            fs::rename(&place, &to).attempt(|| format!("move {} away", place.display()))?;
            draft
        };
        drop(moved);
        Ok(true)
    }

    /// Who holds an image: containers by their plans, volumes by their records.
    pub fn holders(&self, id: &str) -> Result<Vec<String>, Fault> {
        let mut holders = BTreeSet::new();
        let below = |dir: &Path| -> Vec<PathBuf> {
            fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
        };
        let names_it = |path: &Path| {
            let text = fs::read(path).unwrap_or_default();
            let record: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
            record["image"]["id"].as_str().or(record["image"].as_str()) == Some(id)
        };
        let last = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for pod in below(&self.layout.run().join("pods")) {
            for container in below(&pod).iter().flat_map(|sandbox| below(&sandbox.join("c"))) {
                if names_it(&container.join("plan.json")) {
                    holders.insert(format!("container {} of pod {}", last(&container), last(&pod)));
                }
            }
        }
        for pod in below(&self.layout.pods()) {
            for record in below(&pod.join("nodefold/volumes")) {
                if names_it(&record) {
                    let volume = last(&record);
                    let volume = volume.trim_end_matches(".json");
                    holders.insert(format!("volume {volume} of pod {}", last(&pod)));
                }
            }
        }
        Ok(holders.into_iter().collect())
    }

    /// Removes drafts whose makers died.
    pub fn sweep(&self) -> Result<(), Fault> {
        let Ok(dir) = beneath::open_root(&self.dir()) else { return Ok(()) };
        for name in beneath::names(&dir).attempt(|| "list the images")? {
            if !name.to_bytes().starts_with(b"import-") {
                continue;
            }
            let Ok(draft) = beneath::open_dir(&dir, beneath::os(&name)) else { continue };
            // Whoever lives holds its own.
            if flock(&draft, FlockOperation::NonBlockingLockExclusive).is_ok() {
                beneath::remove_tree(&dir, beneath::os(&name))?;
            }
        }
        Ok(())
    }
}

fn read(path: &Path, source: &Source) -> Result<Vec<Found>, Fault> {
    let found = document::images(source)
        .map_err(|fault| Fault { message: format!("{}: {fault}", path.display()), ..fault })?;
    match found.is_empty() {
        true => Err(Fault::refused(format!("{} has no image for this machine", path.display()))),
        false => Ok(found),
    }
}

/// A directory in which something is made or undone. It goes with its maker, or is swept by the next one.
struct Draft {
    path: PathBuf,
    _lock: OwnedFd,
}

impl Draft {
    fn new(images: &Path) -> Result<Draft, Fault> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = MADE.fetch_add(1, Ordering::Relaxed);
            let path = images.join(format!("import-{}-{number}", std::process::id()));
            match rustix::fs::mkdir(&path, Mode::from_raw_mode(0o700)) {
                Err(Errno::EXIST) => continue,
                made => made.attempt(|| format!("make {}", path.display()))?,
            }
            let lock = beneath::open_root(&path)?;
            flock(&lock, FlockOperation::LockExclusive).attempt(|| format!("lock {}", path.display()))?;
            return Ok(Draft { path, _lock: lock });
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let (Some(parent), Some(name)) = (self.path.parent(), self.path.file_name())
            && let Ok(parent) = beneath::open_root(parent)
        {
            // Moved to its place, it is not there. What can't be removed is swept later.
            beneath::remove_tree(&parent, name).ok();
        }
    }
}
