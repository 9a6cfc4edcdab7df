//! A host for one test: a mount namespace that nothing leaks out of, and directories that go with it.
#![allow(dead_code, clippy::unwrap_used)]

use nodefold_agent::credentials::{Certificates, LocalKey, Tokens};
use nodefold_agent::fault::Fault;
use nodefold_agent::images::Images;
use nodefold_agent::layout::Layout;
use nodefold_agent::mounts::Propagation;
use nodefold_agent::objects::Objects;
use nodefold_agent::volumes::{SetUp, Sources, Volumes, Wanted};
use nodefold_core::ids::{PodUid, Source, VolumeId};
use nodefold_core::resources::ResourceList;
use nodefold_core::spec::Pod;
use nodefold_core::time::Time;
use rustix::fd::OwnedFd;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub mod private_mounts {
    //! The mount namespace of a test's thread.

    use rustix::mount::{MountPropagationFlags, mount_change};
    use rustix::thread::UnshareFlags;

    /// This thread (and those that it starts) mounts for itself from now on.
    pub fn enter() {
        nodefold_agent::sys::unshare(UnshareFlags::NEWNS)
            .expect("these tests need root: CAP_SYS_ADMIN to make a mount namespace");
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).unwrap();
    }

    /// The kernel knows hugetlbfs.
    pub fn hugetlbfs_is_known() -> bool {
        std::fs::read_to_string("/proc/filesystems").unwrap().contains("hugetlbfs")
    }
}

pub struct Host {
    directory: tempfile::TempDir,
    pub layout: Layout,
    pub objects: Objects,
    pub volumes: Volumes,
}

impl Host {
    pub fn new() -> Host {
        private_mounts::enter();
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("outside")).unwrap();
        let layout = Layout::at(directory.path().join("node"));
        let objects = Objects::default();
        fs::create_dir_all(layout.data()).unwrap();
        let sources = Sources {
            objects: objects.clone(),
            images: Arc::new(Images::new(&layout, Default::default())),
            tokens: Tokens::of(Arc::new(LocalKey::at(directory.path().join("outside")))),
            certificates: Certificates::at(directory.path().join("outside")),
        };
        let volumes = Volumes::new(layout.clone(), sources, "node".into(), ResourceList::default()).unwrap();
        Host { directory, layout, objects, volumes }
    }

    /// A directory that is not the node's.
    pub fn outside(&self) -> PathBuf {
        self.directory.path().join("outside")
    }

    pub fn objects(&self, objects: &[Value]) {
        for object in objects {
            self.objects.put(nodefold_k8s::object_ref(object).unwrap(), Arc::new(object.clone()));
        }
    }

    /// The configMap of that name does not exist any more.
    pub fn forget(&self, name: &str) {
        self.objects.forget(&nodefold_k8s::object_ref(&configmap(name, &[])).unwrap());
    }

    pub fn pod(&self, volumes: &str) -> Pod {
        self.pod_of(&format!("{{containers: [{{name: app, image: x}}], volumes: {volumes}}}"))
    }

    pub fn pod_with(&self, volumes: &str, security: &str) -> Pod {
        let containers = "[{name: app, image: x}]";
        self.pod_of(&format!("{{containers: {containers}, securityContext: {security}, volumes: {volumes}}}"))
    }

    /// A pod with this spec.
    pub fn pod_of(&self, spec: &str) -> Pod {
        let text = format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: web, namespace: default, uid: 11111111-2222-4333-8444-555555555555, labels: {{app: x}}}}, spec: {spec}}}"
        );
        let documents = nodefold_k8s::parse_documents(&text, "pod.yaml").unwrap();
        let mut value = documents[0].value.clone();
        nodefold_k8s::default_pod(&mut value);
        nodefold_k8s::pod_from_json(&value, Source::Api).unwrap()
    }

    pub fn set_up(&self, pod: &Pod, name: &str) -> Result<SetUp, Fault> {
        self.set_up_as(pod, &VolumeId { name: name.into(), generation: 0 })
    }

    pub fn set_up_as(&self, pod: &Pod, volume: &VolumeId) -> Result<SetUp, Fault> {
        self.volumes.set_up(&wanted(pod, volume))
    }

    /// A refresh so many seconds after the first moment.
    pub fn refresh_after(&self, pod: &Pod, name: &str, seconds: u64) -> Result<Option<Time>, Fault> {
        let volume = VolumeId { name: name.into(), generation: 0 };
        let mut wanted = wanted(pod, &volume);
        wanted.now = wanted.now.after(nodefold_core::time::Nanos::secs(seconds));
        self.volumes.refresh(&wanted)
    }

    pub fn refresh(&self, pod: &Pod, name: &str) -> Result<Option<Time>, Fault> {
        self.volumes.refresh(&wanted(pod, &VolumeId { name: name.into(), generation: 0 }))
    }

    pub fn tear_down(&self, pod: &Pod, name: &str) -> Result<(), Fault> {
        self.volumes.tear_down(pod.uid, &VolumeId { name: name.into(), generation: 0 })
    }

    pub fn mount_for(&self, pod: &Pod, name: &str, sub_path: Option<&str>) -> Result<OwnedFd, Fault> {
        let mount = nodefold_core::spec::VolumeMount {
            name: name.into(),
            mount_path: "/at".into(),
            read_only: false,
            rest: nodefold_core::spec::Blob::default(),
        };
        let id = VolumeId { name: name.into(), generation: 0 };
        self.volumes.mount_for(
            pod.uid,
            &id,
            pod.spec.volume(name).unwrap(),
            &mount,
            (sub_path, Propagation::None),
        )
    }

    pub fn pod_dir(&self, pod: &Pod) -> PathBuf {
        self.layout.pods().join(PodUid::to_string(&pod.uid))
    }

    pub fn volume_dir(&self, pod: &Pod, plugin: &str, name: &str) -> PathBuf {
        self.pod_dir(pod).join(format!("volumes/kubernetes.io~{plugin}")).join(name)
    }

    pub fn is_mounted(&self, path: &Path) -> bool {
        self.mounts().iter().any(|mount| Path::new(mount) == path)
    }

    /// What is mounted below the test's directory.
    pub fn mounts(&self) -> Vec<String> {
        let below = self.directory.path().display().to_string();
        fs::read_to_string("/proc/thread-self/mountinfo")
            .unwrap()
            .lines()
            .filter_map(|line| line.split(' ').nth(4))
            .filter(|place| place.starts_with(&below))
            .map(str::to_owned)
            .collect()
    }

    pub fn tmpfs_size(&self, path: &Path) -> u64 {
        let found = rustix::fs::statfs(path).unwrap();
        found.f_blocks * found.f_bsize as u64
    }

    /// Files of the test's directory, on the disk below whatever is mounted, that hold this text.
    pub fn found_on_disk(&self, text: &str) -> Vec<String> {
        let device = {
            use std::os::unix::fs::MetadataExt;
            fs::metadata(self.directory.path()).unwrap().dev()
        };
        let mut found = Vec::new();
        walk(self.directory.path(), &mut |path, metadata| {
            use std::os::unix::fs::MetadataExt;
            if metadata.is_file() && metadata.dev() == device {
                let bytes = fs::read(path).unwrap();
                if bytes.windows(text.len()).any(|window| window == text.as_bytes()) {
                    found.push(path.display().to_string());
                }
            }
        });
        found
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        for mount in self.mounts().iter().rev() {
            let _ = rustix::mount::unmount(mount.as_str(), rustix::mount::UnmountFlags::DETACH);
        }
    }
}

fn wanted<'a>(pod: &'a Pod, volume: &'a VolumeId) -> Wanted<'a> {
    let spec = pod.spec.volume(&volume.name).expect("the pod has that volume");
    Wanted { volume, spec, pod, allocated: &pod.spec, now: Time(1_767_225_600_123_456_789) }
}

/// A detached mount attached at a path, until dropped.
pub struct Attached(PathBuf);

impl Attached {
    pub fn at(mount: OwnedFd, path: &Path) -> Attached {
        let place = nodefold_agent::mounts::place(path).unwrap();
        nodefold_agent::mounts::attach(mount, place).unwrap();
        Attached(path.to_owned())
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::empty()).unwrap();
    }
}

fn walk(dir: &Path, visit: &mut dyn FnMut(&Path, &fs::Metadata)) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let metadata = fs::symlink_metadata(&path).unwrap();
        visit(&path, &metadata);
        if metadata.is_dir() {
            walk(&path, visit);
        }
    }
}

/// Everything below a directory but the node's own empty `pods`, by path.
pub fn files_under(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    walk(dir, &mut |path, _| {
        let below = path.strip_prefix(dir).unwrap().display().to_string();
        if below != "pods" {
            found.push(below);
        }
    });
    found.sort();
    found
}

pub fn mkfifo(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
}

/// A chain of directories so many deep.
pub fn dig(dir: &Path, depth: usize) {
    use rustix::fs::{Mode, OFlags, mkdirat, open, openat};
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut at = open(dir, flags, Mode::empty()).unwrap();
    for _ in 0..depth {
        mkdirat(&at, "a-directory-with-quite-a-long-name", Mode::from_raw_mode(0o755)).unwrap();
        at = openat(&at, "a-directory-with-quite-a-long-name", flags, Mode::empty()).unwrap();
    }
}

pub fn configmap(name: &str, data: &[(&str, &str)]) -> Value {
    let data: Value = data
        .iter()
        .map(|(key, value)| ((*key).to_owned(), json!(value)))
        .collect::<serde_json::Map<_, _>>()
        .into();
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data})
}

pub fn secret(name: &str, data: &[(&str, &str)]) -> Value {
    let data: Value = data
        .iter()
        .map(|(key, value)| ((*key).to_owned(), json!(value)))
        .collect::<serde_json::Map<_, _>>()
        .into();
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "default"}, "stringData": data})
}
