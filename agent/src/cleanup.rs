//! Taking everything of a node off its host: processes, mounts, control groups, directories. For the end of a run, and for
//! what an agent left that nobody will start again. It asks neither journal nor shims.

use crate::beneath;
use crate::cgroups::Cgroups;
use crate::credentials::{Certificates, LocalKey, Tokens};
use crate::fault::{Attempt, Fault};
use crate::images::Images;
use crate::layout::Layout;
use crate::mounts;
use crate::objects::Objects;
use crate::pod::found;
use crate::volumes::{Sources, Volumes};
use nodefold_core::resources::ResourceList;
use rustix::event::{PollFd, Timespec, poll};
use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

/// So often a killed group is looked at before it is given up (each look waits for the kernel's notice of a change).
const MOST_LOOKS: u32 = 200;
const LOOK_AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Takes everything of a node down, and with `images` its unpacked images, too. The journal stays.
pub fn clean_up(layout: &Layout, images: bool) -> Result<(), Fault> {
    let cgroups = Cgroups::detect(layout.cgroup_name())?;
    for pod in cgroups.pods() {
        cgroups.kill(&pod)?;
        wait_until_empty(&cgroups, &pod)?;
        remove_patiently(&cgroups, &pod)?;
    }
    cgroups.remove_own()?;
    // With their shims end containers that no group has. Where one has them, nothing is left to be found.
    found::end_all(&layout.run())?;
    let Ok(data) = beneath::open_root(layout.data()) else { return Ok(()) };
    if layout.pods().exists() {
        // Nothing is set up any more: the sources are never asked.
        let sources = Sources {
            objects: Objects::default(),
            images: Arc::new(Images::new(layout, BTreeMap::new())),
            tokens: Tokens::of(Arc::new(LocalKey::at(layout.data()))),
            certificates: Certificates::at(layout.data()),
        };
        let volumes = Volumes::new(layout.clone(), sources, "".into(), ResourceList::default())?;
        volumes.recover()?;
        for seen in volumes.observe()? {
            volumes.tear_down(seen.pod, &seen.volume)?;
        }
        // Nothing of ours is mounted there any more: what is, stops this.
        beneath::remove_tree(&data, "pods")?;
    }
    mounts::unmount_all(&data, "run")?;
    for dir in ["run", "logs"] {
        beneath::remove_tree(&data, dir)?;
    }
    if images {
        beneath::remove_tree(&data, "images")?;
    }
    Ok(())
}

/// What is left of a node on its host, in words: nothing, after `clean_up`.
pub fn left_behind(layout: &Layout) -> Result<Vec<String>, Fault> {
    let mut left = Vec::new();
    let cgroups = Cgroups::detect(layout.cgroup_name())?;
    left.extend(cgroups.left().iter().map(|path| format!("cgroup {}", path.display())));
    let mounts = fs::read_to_string("/proc/thread-self/mountinfo").attempt(|| "read the mount table")?;
    let data = layout.data().display().to_string();
    let below =
        mounts.lines().filter_map(|line| line.split(' ').nth(4)).filter(|place| place.starts_with(&data));
    left.extend(below.map(|place| format!("mount {place}")));
    for dir in ["pods", "run", "logs"] {
        let path = layout.data().join(dir);
        if path.exists() {
            left.push(format!("directory {}", path.display()));
        }
    }
    let shims = found::shims(&layout.run())?;
    left.extend(shims.iter().map(|(pid, _)| format!("process {pid} (a pod's shim)")));
    Ok(left)
}

fn wait_until_empty(cgroups: &Cgroups, pod: &str) -> Result<(), Fault> {
    for _ in 0..MOST_LOOKS {
        if !cgroups.is_populated(pod) {
            return Ok(());
        }
        pause();
    }
    Err(Fault::transient(format!("processes of {pod} do not end, though killed")))
}

/// A group of version 1 stays busy until its last process is reaped, a moment after it has ended.
fn remove_patiently(cgroups: &Cgroups, pod: &str) -> Result<(), Fault> {
    let mut last = Ok(());
    for _ in 0..MOST_LOOKS {
        last = cgroups.remove(pod);
        if last.is_ok() {
            break;
        }
        pause();
    }
    last
}

/// Lets a moment pass: the kernel has no notice for what is waited for.
fn pause() {
    let nothing: &mut [PollFd<'_>] = &mut [];
    let _: Result<usize, rustix::io::Errno> = poll(nothing, Some(&LOOK_AGAIN));
}
