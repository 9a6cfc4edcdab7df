//! What a container says about its end: the file that it wrote for that (`terminationMessagePath`), or the end of its log.

use super::Runtime;
use super::rotate::log_name;
use crate::beneath;
use crate::pod::plan::{ContainerPlan, ExitRecord};
use nodefold_core::ids::{ContainerId, PodUid};
use nodefold_core::status::{ContainerState, PodStatus, Terminated};
use rustix::fd::OwnedFd;
use rustix::fs::OFlags;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

/// The file in a container's directory that is mounted at its `terminationMessagePath`.
pub const FILE: &str = "termination-log";
/// So much of it is told.
const LONGEST: u64 = 4096;
/// So much of a log is told instead, and so many lines.
const LONGEST_OF_LOG: usize = 2048;
const MOST_LINES: usize = 80;
/// Lines of so many bytes are looked for in a log's end, its lines' heads included.
const LOG_READ: u64 = 64 << 10;

impl Runtime {
    /// What a container said about its end.
    pub(super) fn last_words(
        &self,
        pod: PodUid,
        sandbox: u32,
        id: &ContainerId,
        record: &ExitRecord,
    ) -> String {
        let Ok(dir) = beneath::open_root(&self.container_dir(pod, sandbox, id)) else { return String::new() };
        let file = read(&dir, FILE).unwrap_or_default();
        let plan =
            read(&dir, "plan.json").and_then(|text| serde_json::from_slice::<ContainerPlan>(&text).ok());
        let falls_back = plan.is_some_and(|plan| plan.last_words_from_log);
        if file.is_empty() && falls_back && record.code != 0 {
            let end = self.logs_of(pod, &id.name).iter().find_map(|dir| end_of(dir, &log_name(id)));
            return end.map(|text| tail(&text)).unwrap_or_default();
        }
        let told = &file[..file.len().min(LONGEST as usize)];
        String::from_utf8_lossy(told).into_owned()
    }

    /// Puts into a status what containers said about their ends. It decides nothing, so it is no fact: the core does not know.
    pub fn tell_last_words(&self, pod: PodUid, status: &mut PodStatus) {
        let state = self.lock();
        let words = |terminated: &mut Terminated| {
            let known = terminated.id.as_ref().and_then(|id| state.containers.get(&(pod, id.clone())));
            if let Some(known) = known
                && terminated.message.is_empty()
                && !known.last_words.is_empty()
            {
                terminated.message = known.last_words.as_str().into();
            }
        };
        let PodStatus { init_containers, containers, ephemeral_containers, .. } = status;
        for container in init_containers.iter_mut().chain(containers).chain(ephemeral_containers) {
            if let ContainerState::Terminated(terminated) = &mut container.state {
                words(terminated);
            }
            if let Some(terminated) = &mut container.last_state {
                words(terminated);
            }
        }
    }
}

/// A file of a container's directory. It is a plain file that the container could only write to.
fn read(dir: &OwnedFd, name: &str) -> Option<Vec<u8>> {
    let file = beneath::open(dir, name, OFlags::RDONLY | OFlags::NONBLOCK).ok()?;
    let most = if name == FILE { LONGEST } else { u64::MAX };
    let mut bytes = Vec::new();
    File::from(file).take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn end_of(dir: &OwnedFd, log: &str) -> Option<String> {
    let mut file = File::from(beneath::open_file(dir, log).ok()?);
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_READ))).ok()?;
    let mut bytes = Vec::new();
    file.take(LOG_READ).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The last lines of a log, without their heads.
fn tail(log: &str) -> String {
    let mut text = String::new();
    for line in log.lines() {
        let mut parts = line.splitn(4, ' ').skip(2);
        let (tag, said) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        text.push_str(said);
        if tag == "F" {
            text.push('\n');
        }
    }
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let text: String = lines[lines.len().saturating_sub(MOST_LINES)..].concat();
    let mut from = text.len().saturating_sub(LONGEST_OF_LOG);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    text[from..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_log_is_its_last_lines_and_no_more_bytes_than_are_told() {
        let log: String = (0..100).map(|i| format!("t stdout F line {i}\n")).collect();
        let told = tail(&(log + "t stderr P part \nt stderr F whole\n"));
        assert_eq!(told.lines().count(), 80);
        assert!(told.starts_with("line 21\n") && told.ends_with("line 99\npart whole\n"), "{told}");
        let long = format!("t stdout F {}\n", "é".repeat(4000));
        assert!(tail(&long).len() <= LONGEST_OF_LOG);
    }
}
