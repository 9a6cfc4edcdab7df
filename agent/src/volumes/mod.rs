//! Volumes on the host: set up, refreshed, taken down and found again. Every operation may be repeated over whatever an
//! earlier one left. Nothing here decides whether it is time.

mod atomic;
mod bundles;
mod empty_dir;
mod host_path;
mod ownership;
mod payload;
mod record;

pub use empty_dir::memory_size;
pub use record::{remove_drafts, write_whole};

use crate::beneath;
use crate::credentials::{Certificates, Tokens};
use crate::failpoint;
use crate::fault::{Attempt, Fault};
use crate::fields::PodFields;
use crate::ids::Ids;
use crate::images::Images;
use crate::layout::{self, Layout};
use crate::mounts::{self, Propagation};
use crate::objects::Objects;
use crate::usage;
use nodefold_core::event::SeenMount;
use nodefold_core::ids::{Name, PodUid, VolumeId};
use nodefold_core::resources::ResourceList;
use nodefold_core::spec::{Pod, PodSpec, Volume, VolumeMount, VolumeSource};
use nodefold_core::time::Time;
use payload::Gathered;
use record::{HeldImage, VolumeRecord};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags, fchmod, fstat, mkdirat, unlinkat};
use rustix::io::Errno;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where volumes' contents come from.
pub struct Sources {
    /// Secrets, configMaps, trust bundles.
    pub objects: Objects,
    /// Images.
    pub images: Arc<Images>,
    /// Service accounts' tokens.
    pub tokens: Tokens,
    /// Pods' certificates.
    pub certificates: Certificates,
}

/// Everything that the pods' directory holds.
pub struct Volumes {
    layout: Layout,
    sources: Sources,
    node_name: Name,
    allocatable: Mutex<ResourceList>,
    ids: Ids,
    /// Held while directories that volumes share are made or removed, so that neither happens under the other.
    shared_directories: Mutex<()>,
}

/// The plugin whose volumes containers write to.
const EMPTY_DIR: &str = "kubernetes.io~empty-dir";

/// What a set-up or refresh is about.
pub struct Wanted<'a> {
    /// Which volume.
    pub volume: &'a VolumeId,
    /// From what.
    pub spec: &'a Volume,
    /// Whose.
    pub pod: &'a Pod,
    /// The allocation it belongs to.
    pub allocated: &'a PodSpec,
    /// When this is, for the names of new content.
    pub now: Time,
}

/// What a set-up made known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetUp {
    /// When what it shows is to be renewed.
    pub renew_at: Option<Time>,
    /// The digest of the image that it shows.
    pub image: Option<String>,
}

/// A pod's directories, open.
struct PodDirs {
    pod: OwnedFd,
    records: OwnedFd,
}

impl Volumes {
    /// The volumes of a node. Makes its directory if need be.
    pub fn new(
        layout: Layout,
        sources: Sources,
        node_name: Name,
        allocatable: ResourceList,
    ) -> Result<Volumes, Fault> {
        let pods = layout.pods();
        std::fs::create_dir_all(&pods).attempt(|| format!("make {}", pods.display()))?;
        let (allocatable, shared_directories) = (Mutex::new(allocatable), Mutex::new(()));
        Ok(Volumes { layout, sources, node_name, allocatable, ids: Ids::here()?, shared_directories })
    }

    /// The node's allocatable changed.
    pub fn set_allocatable(&self, allocatable: ResourceList) {
        *self.allocatable.lock().unwrap_or_else(PoisonError::into_inner) = allocatable;
    }

    fn directories(&self) -> MutexGuard<'_, ()> {
        self.shared_directories.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_pods(&self) -> Result<OwnedFd, Fault> {
        beneath::open_root(&self.layout.pods())
    }

    /// A pod's directories, if it has any.
    fn pod(&self, pod: PodUid) -> Result<Option<PodDirs>, Fault> {
        let pods = self.open_pods()?;
        let open = || -> Result<PodDirs, Errno> {
            let dir = beneath::open_dir(&pods, pod.to_string())?;
            let records = beneath::open_dir(&dir, "nodefold/volumes")?;
            Ok(PodDirs { pod: dir, records })
        };
        match open() {
            Ok(dirs) => Ok(Some(dirs)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno).attempt(|| format!("open the directory of pod {pod}")),
        }
    }

    fn make_pod(&self, pod: PodUid) -> Result<PodDirs, Fault> {
        let pods = self.open_pods()?;
        let mode = Mode::from_raw_mode(0o750);
        let make = || -> Result<PodDirs, Errno> {
            let dir = beneath::make_dirs(&pods, pod.to_string(), mode)?;
            let records = beneath::make_dirs(&dir, "nodefold/volumes", mode)?;
            Ok(PodDirs { pod: dir, records })
        };
        make().attempt(|| format!("make the directory of pod {pod}"))
    }

    /// Sets a volume up. What could not be set up whole leaves nothing, unless the error says that it is uncertain.
    pub fn set_up(&self, wanted: &Wanted<'_>) -> Result<SetUp, Fault> {
        let name: &str = &wanted.volume.name;
        let content = self.content(wanted)?;
        // Until its record holds it.
        let _held = self.sources.images.store().hold()?;
        let mut image = None;
        match &wanted.spec.source {
            VolumeSource::HostPath => host_path::check(wanted.spec)?,
            VolumeSource::Image { reference, pull_policy } => {
                let found = self.sources.images.get(reference, *pull_policy)?;
                image = Some(HeldImage { id: found.id, root: found.root });
            }
            VolumeSource::Unsupported { kind } => {
                return Err(Fault::refused(format!("this node has no way to mount a volume of type {kind}")));
            }
            VolumeSource::EmptyDir { .. }
            | VolumeSource::ConfigMap(_)
            | VolumeSource::Secret(_)
            | VolumeSource::DownwardApi
            | VolumeSource::Projected(_) => {}
        }
        let plugin = layout::plugin(&wanted.spec.source);
        if let (Some(group), Some(_)) = (fs_group(wanted.allocated), plugin) {
            self.ids.group("fsGroup", group).map_err(Fault::refused)?;
        }
        failpoint::hit("set-up.begun");
        let record = |ready| VolumeRecord {
            generation: wanted.volume.generation,
            plugin: plugin.map(str::to_owned),
            ready,
            size_limit: size_limit(&wanted.spec.source),
            image: image.clone(),
        };
        let (dirs, was_ready) = {
            let _held = self.directories();
            let dirs = self.make_pod(wanted.pod.uid)?;
            let was_ready = match record::read(&dirs.records, name)? {
                Some(former) if former.generation != wanted.volume.generation => {
                    return Err(Fault::transient(format!(
                        "an earlier life of volume {name} ({}) is still on the host",
                        former.generation
                    )));
                }
                // What is noted is looked at all the same: somebody may have cleaned up (V33).
                Some(former) => former.ready && is_in_place(&dirs, plugin, name)?,
                None => false,
            };
            if !was_ready {
                record::write(&dirs.records, name, &record(false))?;
                failpoint::hit("set-up.recorded");
                if let Some(plugin) = plugin {
                    self.make_place(&dirs, plugin, name)?;
                    failpoint::hit("set-up.placed");
                }
            }
            (dirs, was_ready)
        };
        let done = self.realise(wanted, &dirs, plugin, content.as_ref(), was_ready);
        match done {
            Ok(()) => {
                failpoint::hit("set-up.written");
                record::write(&dirs.records, name, &record(true))?;
                failpoint::hit("set-up.done");
                let renew_at = content.and_then(|content| content.renew_at);
                Ok(SetUp { renew_at, image: image.map(|image| image.id) })
            }
            // What was whole before stays as it is (I6).
            Err(fault) if was_ready => Err(fault),
            Err(fault) => match self.tear_down(wanted.pod.uid, wanted.volume) {
                Ok(()) => Err(fault),
                Err(undo) => Err(Fault::uncertain(format!("{fault}; and to undo it failed: {undo}"))),
            },
        }
    }

    /// The volume's own directory, below a directory for all of its plugin.
    fn make_place(&self, dirs: &PodDirs, plugin: &str, name: &str) -> Result<(), Fault> {
        let make = || -> Result<(), Errno> {
            beneath::make_dirs(&dirs.pod, "volumes", Mode::from_raw_mode(0o750))?;
            let of_plugin =
                beneath::make_dirs(&dirs.pod, Path::new("volumes").join(plugin), Mode::from_raw_mode(0o755))?;
            match mkdirat(&of_plugin, name, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => Ok(()),
                Err(errno) => Err(errno),
            }
        };
        make().attempt(|| format!("make the directory of volume {name}"))
    }

    fn realise(
        &self,
        wanted: &Wanted<'_>,
        dirs: &PodDirs,
        plugin: Option<&str>,
        content: Option<&Gathered>,
        was_ready: bool,
    ) -> Result<(), Fault> {
        let Some(plugin) = plugin else { return Ok(()) };
        let name: &str = &wanted.volume.name;
        let of_plugin = beneath::open_dir(&dirs.pod, Path::new("volumes").join(plugin))
            .attempt(|| format!("open volumes/{plugin}"))?;
        let limit = size_limit(&wanted.spec.source);
        let allocatable = self.allocatable.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let size = empty_dir::memory_size(wanted.allocated, &allocatable, limit);
        empty_dir::set_up(&of_plugin, name, wanted, size)?;
        failpoint::hit("set-up.mounted");
        let dir = beneath::open_dir(&of_plugin, name).attempt(|| format!("open volume {name}"))?;
        let group = fs_group(wanted.allocated);
        match content {
            Some(content) => {
                nested_mount_points(&dir, wanted)?;
                atomic::write(&dir, &content.payload, group, wanted.now)?;
                if let Some(group) = group {
                    // The root itself; the content was given away before it was swapped in.
                    rustix::fs::fchown(&dir, None, Some(rustix::fs::Gid::from_raw(group)))
                        .attempt(|| format!("give volume {name} to group {group}"))?;
                    let mode = fstat(&dir).attempt(|| format!("look at volume {name}"))?.st_mode & 0o7777;
                    fchmod(&dir, Mode::from_raw_mode(mode | 0o2550))
                        .attempt(|| format!("open volume {name} to group {group}"))?;
                }
            }
            // An emptyDir's files are its containers' from the first one on: only at the first set-up.
            None if !was_ready => {
                if let Some(group) = group {
                    ownership::give_to_group(dir.as_fd(), group, false)?;
                }
            }
            None => {}
        }
        Ok(())
    }

    fn content(&self, wanted: &Wanted<'_>) -> Result<Option<Gathered>, Fault> {
        let allocatable = self.allocatable.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let fields = PodFields {
            pod: wanted.pod,
            spec: wanted.allocated,
            allocatable: &allocatable,
            node_name: &self.node_name,
            pod_ip: None,
        };
        payload::gather(wanted.spec, &self.sources, &fields, wanted.now)
    }

    /// Writes the newest content of a volume that is set up. A failure leaves the former content as it was (I6).
    /// When it is to be renewed is returned.
    pub fn refresh(&self, wanted: &Wanted<'_>) -> Result<Option<Time>, Fault> {
        let name: &str = &wanted.volume.name;
        let content = self.content(wanted)?;
        let dirs = self.pod(wanted.pod.uid)?;
        let record = match &dirs {
            Some(dirs) => record::read(&dirs.records, name)?,
            None => None,
        };
        match (&dirs, &record) {
            (Some(dirs), Some(record)) if record.ready && record.generation == wanted.volume.generation => {
                self.realise(wanted, dirs, record.plugin.as_deref(), content.as_ref(), true)?;
                Ok(content.and_then(|content| content.renew_at))
            }
            _ => Err(Fault::refused(format!("volume {} is not set up: nothing to refresh", wanted.volume))),
        }
    }

    /// Takes a volume down. Not there is success; another life of the name stays.
    pub fn tear_down(&self, pod: PodUid, volume: &VolumeId) -> Result<(), Fault> {
        let name: &str = &volume.name;
        let Some(dirs) = self.pod(pod)? else { return self.tear_down_unrecorded(pod, name) };
        let Some(mut record) = record::read(&dirs.records, name)? else {
            return self.tear_down_unrecorded(pod, name);
        };
        if record.generation != volume.generation {
            return Ok(());
        }
        failpoint::hit("tear-down.begun");
        if record.ready {
            record.ready = false;
            record::write(&dirs.records, name, &record)?;
        }
        failpoint::hit("tear-down.noted");
        if let Some(plugin) = &record.plugin {
            self.remove_place(&dirs.pod, plugin, name)?;
        }
        failpoint::hit("tear-down.removed");
        record::forget(&dirs.records, name)?;
        failpoint::hit("tear-down.forgotten");
        // As a kubelet does: the pod's other volumes ask anew (kubelet-volumes §2.4).
        self.sources.tokens.forget(pod);
        self.remove_empty(pod)?;
        failpoint::hit("tear-down.done");
        Ok(())
    }

    /// What lies where a volume of this name would, without a record: a kubelet's, or one whose record was lost.
    fn tear_down_unrecorded(&self, pod: PodUid, name: &str) -> Result<(), Fault> {
        let pods = self.open_pods()?;
        let dir = match beneath::open_dir(&pods, pod.to_string()) {
            Ok(dir) => dir,
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => return Err(errno).attempt(|| format!("open the directory of pod {pod}")),
        };
        for plugin in plugins(&dir)? {
            self.remove_place(&dir, &plugin, name)?;
        }
        self.remove_empty(pod)
    }

    /// Removes a volume's directory and what is mounted on it: the content first, so that no copy of the mount in somebody
    /// else's namespace keeps it.
    fn remove_place(&self, pod: &OwnedFd, plugin: &str, name: &str) -> Result<(), Fault> {
        let of_plugin = match beneath::open_dir(pod, Path::new("volumes").join(plugin)) {
            Ok(of_plugin) => of_plugin,
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => return Err(errno).attempt(|| format!("open volumes/{plugin}")),
        };
        if beneath::is_mounted(&of_plugin, name).attempt(|| format!("look at volume {name}"))? {
            let dir = beneath::open_dir(&of_plugin, name).attempt(|| format!("open volume {name}"))?;
            // Only a file system of the volume's own is emptied; anything else that somebody mounted here is only unmounted.
            if mounts::is_tmpfs(&dir) || mounts::is_hugetlbfs(&dir) {
                beneath::empty_dir(dir.as_fd())?;
            }
            drop(dir);
            failpoint::hit("tear-down.emptied");
            mounts::unmount_all(&of_plugin, name)?;
            failpoint::hit("tear-down.unmounted");
        }
        beneath::remove_tree(&of_plugin, name)
    }

    /// Removes the directories of a pod that has nothing left in them.
    fn remove_empty(&self, pod: PodUid) -> Result<(), Fault> {
        let _held = self.directories();
        let pods = self.open_pods()?;
        let pod = pod.to_string();
        let Ok(dir) = beneath::open_dir(&pods, &pod) else { return Ok(()) };
        for plugin in plugins(&dir)? {
            remove_if_empty(&dir, &format!("volumes/{plugin}"))?;
        }
        for inner in ["volumes", "nodefold/volumes", "nodefold"] {
            remove_if_empty(&dir, inner)?;
        }
        remove_if_empty(&pods, &pod)
    }

    /// Takes down what an earlier life of the agent left half-done. To be called before anything is set up.
    pub fn recover(&self) -> Result<(), Fault> {
        for (pod, dirs) in self.all_pods()? {
            remove_drafts(&dirs.records)?;
            for name in record::volumes(&dirs.records)? {
                if let Some(record) = record::read(&dirs.records, &name)?
                    && !record.ready
                {
                    let volume = VolumeId { name: name.as_str().into(), generation: record.generation };
                    self.tear_down(pod, &volume)?;
                }
            }
            // It may have died before its first record, or after its last.
            self.remove_empty(pod)?;
        }
        Ok(())
    }

    fn all_pods(&self) -> Result<Vec<(PodUid, PodDirs)>, Fault> {
        let pods = self.open_pods()?;
        let mut found = Vec::new();
        for name in beneath::names(&pods).attempt(|| "list the pods' directory")? {
            let Some(uid) = name.to_str().ok().and_then(layout::pod_of_dir) else { continue };
            match self.pod(uid)? {
                Some(dirs) => found.push((uid, dirs)),
                None => self.remove_empty(uid)?,
            }
        }
        Ok(found)
    }

    /// Every volume that is on the host, with the life that its record names; 0 where there is none.
    pub fn observe(&self) -> Result<Vec<SeenMount>, Fault> {
        let mut seen = Vec::new();
        let pods = self.open_pods()?;
        for name in beneath::names(&pods).attempt(|| "list the pods' directory")? {
            let Some(pod) = name.to_str().ok().and_then(layout::pod_of_dir) else { continue };
            let mut names = Vec::new();
            if let Some(dirs) = self.pod(pod)? {
                for name in record::volumes(&dirs.records)? {
                    let Some(record) = record::read(&dirs.records, &name)? else { continue };
                    if record.ready {
                        let volume = VolumeId { name: name.as_str().into(), generation: record.generation };
                        seen.push(SeenMount { pod, volume });
                    }
                    names.push(name);
                }
            }
            let dir = beneath::open_dir(&pods, pod.to_string())
                .attempt(|| format!("open the directory of {pod}"))?;
            for plugin in plugins(&dir)? {
                let of_plugin = beneath::open_dir(&dir, Path::new("volumes").join(&plugin))
                    .attempt(|| format!("open volumes/{plugin}"))?;
                for name in beneath::names(&of_plugin).attempt(|| format!("list volumes/{plugin}"))? {
                    let name = name.to_string_lossy();
                    if !names.iter().any(|known| *known == *name) {
                        let volume = VolumeId { name: Name::from(&*name), generation: 0 };
                        seen.push(SeenMount { pod, volume });
                    }
                }
            }
        }
        Ok(seen)
    }

    /// The volumes whose containers write to a disk, with what each may take up.
    pub fn on_disk(&self) -> Result<Vec<(PodUid, VolumeId, Option<u64>)>, Fault> {
        let mut found = Vec::new();
        for (pod, dirs) in self.all_pods()? {
            for name in record::volumes(&dirs.records)? {
                let Some(record) = record::read(&dirs.records, &name)? else { continue };
                if record.ready && record.plugin.as_deref() == Some(EMPTY_DIR) {
                    let volume = VolumeId { name: name.as_str().into(), generation: record.generation };
                    found.push((pod, volume, record.size_limit));
                }
            }
        }
        Ok(found)
    }

    /// What an emptyDir takes up of the disk; `None`: it is not there, or in memory.
    pub fn usage_of(&self, pod: PodUid, volume: &VolumeId) -> Result<Option<u64>, Fault> {
        match self.empty_dir(pod, volume)? {
            Some(dir) if !mounts::is_tmpfs(&dir) && !mounts::is_hugetlbfs(&dir) => {
                usage::of_tree(&dir).map(Some)
            }
            Some(_) | None => Ok(None),
        }
    }

    /// An emptyDir that is set up, open.
    pub fn empty_dir(&self, pod: PodUid, volume: &VolumeId) -> Result<Option<OwnedFd>, Fault> {
        let Some(dirs) = self.pod(pod)? else { return Ok(None) };
        let path = Path::new("volumes").join(EMPTY_DIR).join(&*volume.name);
        match beneath::open_dir(&dirs.pod, path) {
            Ok(dir) => Ok(Some(dir)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno).attempt(|| format!("open volume {}", volume.name)),
        }
    }

    /// The names of a pod's volumes that are on the host in any form, whole or not.
    pub fn names(&self, pod: PodUid) -> Result<Vec<Name>, Fault> {
        let mut names: Vec<Name> =
            self.observe()?.into_iter().filter(|seen| seen.pod == pod).map(|seen| seen.volume.name).collect();
        if let Some(dirs) = self.pod(pod)? {
            names.extend(record::volumes(&dirs.records)?.iter().map(|name| Name::from(name.as_str())));
        }
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// A mount of a volume for one container: a copy of all of it or of what lies at a subPath, read-only where asked, not
    /// attached anywhere yet.
    pub fn mount_for(
        &self,
        pod: PodUid,
        volume: &VolumeId,
        spec: &Volume,
        mount: &VolumeMount,
        (sub_path, propagation): (Option<&str>, Propagation),
    ) -> Result<OwnedFd, Fault> {
        let place = self.place(pod, volume, spec)?;
        let place = match sub_path {
            Some(path) if !path.is_empty() => {
                let may_make = !matches!(spec.source, VolumeSource::Image { .. });
                sub_place(&place, path, may_make)?
            }
            Some(_) | None => place,
        };
        let clone = mounts::clone_with(&place, propagation)
            .map_err(|fault| fault.of(&format!("volume {}", volume.name)))?;
        let rest = nodefold_k8s::blob_to_json(&mount.rest);
        let read_only = mount.read_only || is_read_only_by_kind(&spec.source);
        if matches!(spec.source, VolumeSource::Image { .. }) {
            // Nobody runs a program of it, opens a device or gains anything by it.
            let quiet = libc::MOUNT_ATTR_NOEXEC | libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_NOSUID;
            crate::sys::mount_setattr(&clone, libc::MOUNT_ATTR_RDONLY | quiet, 0, true)
                .attempt(|| format!("make the mount of image volume {} read-only", volume.name))?;
        } else if read_only {
            let recursive = matches!(rest["recursiveReadOnly"].as_str(), Some("Enabled" | "IfPossible"));
            crate::sys::mount_setattr(&clone, libc::MOUNT_ATTR_RDONLY, 0, recursive)
                .attempt(|| format!("make the mount of volume {} read-only", volume.name))?;
        }
        Ok(clone)
    }

    /// Where a volume is, open as a place to copy a mount from.
    fn place(&self, pod: PodUid, volume: &VolumeId, spec: &Volume) -> Result<OwnedFd, Fault> {
        let missing = || Fault::refused(format!("cannot find volume \"{}\"", volume.name));
        let dirs = self.pod(pod)?.ok_or_else(missing)?;
        let record = record::read(&dirs.records, &volume.name)?.ok_or_else(missing)?;
        if !record.ready || record.generation != volume.generation {
            return Err(missing());
        }
        match (&record.plugin, &record.image) {
            (_, Some(image)) => beneath::open_root(&image.root),
            (Some(plugin), None) => {
                let path = Path::new("volumes").join(plugin).join(&*volume.name);
                beneath::open_dir(&dirs.pod, path).attempt(|| format!("open volume {}", volume.name))
            }
            (None, None) => {
                let path = host_path::path(spec);
                mounts::place(&path).attempt(|| format!("open {}", path.display()))
            }
        }
    }
}

/// `sizeLimit`, of the one kind that has it.
fn size_limit(source: &VolumeSource) -> Option<u64> {
    match source {
        VolumeSource::EmptyDir { size_limit, .. } => *size_limit,
        VolumeSource::ConfigMap(_)
        | VolumeSource::Secret(_)
        | VolumeSource::DownwardApi
        | VolumeSource::Projected(_)
        | VolumeSource::Image { .. }
        | VolumeSource::HostPath
        | VolumeSource::Unsupported { .. } => None,
    }
}

/// configMap, secret and their like are read-only to containers whatever the mount says (kubelet-volumes §2.1).
fn is_read_only_by_kind(source: &VolumeSource) -> bool {
    match source {
        VolumeSource::ConfigMap(_)
        | VolumeSource::Secret(_)
        | VolumeSource::DownwardApi
        | VolumeSource::Projected(_)
        | VolumeSource::Image { .. } => true,
        VolumeSource::EmptyDir { .. } | VolumeSource::HostPath | VolumeSource::Unsupported { .. } => false,
    }
}

/// What lies at a subPath of a volume, made as a directory if it is missing. Links are followed only within the volume.
fn sub_place(volume: &OwnedFd, path: &str, may_make: bool) -> Result<OwnedFd, Fault> {
    let refused = |why: &str| Fault::refused(format!("subPath {path:?} {why}"));
    let is_inside =
        Path::new(path).components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
    if !is_inside {
        return Err(refused("must be relative and stay inside its volume"));
    }
    let resolve = rustix::fs::ResolveFlags::BENEATH | rustix::fs::ResolveFlags::NO_MAGICLINKS;
    let open = || rustix::fs::openat2(volume, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve);
    match open() {
        Ok(place) => Ok(place),
        Err(Errno::NOENT) if may_make => {
            let mode = fstat(volume).attempt(|| "look at the volume")?.st_mode & 0o777;
            beneath::make_dirs(volume, path, Mode::from_raw_mode(mode))
                .attempt(|| format!("make subPath {path}"))
        }
        Err(Errno::XDEV) => Err(refused("leads out of its volume")),
        Err(errno) => Err(errno).attempt(|| format!("open subPath {path}")),
    }
}

/// Mount points inside a volume of objects for other volumes that a container mounts below it: their mounts could not make
/// them, since it is read-only there (§2.6).
fn nested_mount_points(dir: &OwnedFd, wanted: &Wanted<'_>) -> Result<(), Fault> {
    let PodSpec { init_containers, containers, ephemeral_containers, .. } = wanted.allocated;
    for container in containers.iter().chain(init_containers).chain(ephemeral_containers) {
        let outer = container.mounts.iter().filter(|mount| mount.name == wanted.volume.name);
        for outer in outer {
            for inner in &container.mounts {
                let Ok(below) = Path::new(&*inner.mount_path).strip_prefix(&*outer.mount_path) else {
                    continue;
                };
                if below.as_os_str().is_empty() || inner.mount_path == outer.mount_path {
                    continue;
                }
                let below: PathBuf = below.components().collect();
                beneath::make_dirs(dir, &below, Mode::from_raw_mode(0o755))
                    .attempt(|| format!("make the mount point {}", inner.mount_path))?;
            }
        }
    }
    Ok(())
}

fn fs_group(spec: &PodSpec) -> Option<u32> {
    let rest = nodefold_k8s::blob_to_json(&spec.rest);
    rest["securityContext"]["fsGroup"].as_u64().and_then(|group| u32::try_from(group).ok())
}

/// The volume's directory is there, if it has one.
fn is_in_place(dirs: &PodDirs, plugin: Option<&str>, name: &str) -> Result<bool, Fault> {
    let Some(plugin) = plugin else { return Ok(true) };
    match beneath::open_dir(&dirs.pod, Path::new("volumes").join(plugin).join(name)) {
        Ok(_) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(errno).attempt(|| format!("look for the directory of volume {name}")),
    }
}

/// The plugins that have a directory in a pod's.
fn plugins(pod: &OwnedFd) -> Result<Vec<String>, Fault> {
    match beneath::open_dir(pod, "volumes") {
        Ok(volumes) => {
            let names = beneath::names(&volumes).attempt(|| "list a pod's volumes")?;
            Ok(names.iter().map(|name| name.to_string_lossy().into_owned()).collect())
        }
        Err(Errno::NOENT) => Ok(Vec::new()),
        Err(errno) => Err(errno).attempt(|| "open a pod's volumes"),
    }
}

fn remove_if_empty(dir: &OwnedFd, path: &str) -> Result<(), Fault> {
    let (parent, name) = path.rsplit_once('/').unwrap_or((".", path));
    let parent = match beneath::open_dir(dir, parent) {
        Ok(parent) => parent,
        Err(Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(errno).attempt(|| format!("open {parent}")),
    };
    match unlinkat(&parent, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
        Err(errno) => Err(errno).attempt(|| format!("remove the empty directory {path}")),
    }
}
