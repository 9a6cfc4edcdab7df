//! Which users and groups there are in this process' user namespace: all of the host's, or in a rootless node those that its user
//! was given.

use crate::fault::{Attempt, Fault};
use std::fs;
use std::ops::Range;

/// Every id but the last, which means none.
const ALL: Range<u64> = 0..u32::MAX as u64;

/// The ids of a user namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ids {
    users: Vec<Range<u64>>,
    groups: Vec<Range<u64>>,
    /// Whether a process there may choose its supplementary groups.
    pub sets_groups: bool,
}

impl Ids {
    /// Those that there are here.
    pub fn here() -> Result<Ids, Fault> {
        let read = |file: &str| {
            let path = format!("/proc/self/{file}");
            fs::read_to_string(&path).attempt(|| format!("read {path}"))
        };
        let sets_groups = read("setgroups")?.trim() == "allow";
        Ok(Ids { users: ranges(&read("uid_map")?)?, groups: ranges(&read("gid_map")?)?, sets_groups })
    }

    /// All of the host's: this is no namespace of somebody's own.
    pub fn are_the_hosts(&self) -> bool {
        self.users == [ALL] && self.groups == [ALL]
    }

    /// There is more than one user and one group.
    pub fn are_several(&self) -> bool {
        let several = |ranges: &[Range<u64>]| ranges.iter().map(|ids| ids.end - ids.start).sum::<u64>() > 1;
        several(&self.users) && several(&self.groups)
    }

    /// Why a user can't be had, if it can't.
    pub fn user(&self, what: &str, id: u32) -> Result<(), String> {
        has(&self.users, id).then_some(()).ok_or_else(|| lacking(what, id))
    }

    /// Why a group can't be had, if it can't.
    pub fn group(&self, what: &str, id: u32) -> Result<(), String> {
        has(&self.groups, id).then_some(()).ok_or_else(|| lacking(what, id))
    }
}

fn has(ranges: &[Range<u64>], id: u32) -> bool {
    ranges.iter().any(|ids| ids.contains(&u64::from(id)))
}

fn lacking(what: &str, id: u32) -> String {
    format!(
        "{what} {id} is none of the ids that this rootless node has: give its user more in /etc/subuid and /etc/subgid (`nodefold doctor` says which it has)"
    )
}

/// The first numbers and lengths of a map.
fn ranges(map: &str) -> Result<Vec<Range<u64>>, Fault> {
    let line = |line: &str| {
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [inside, _, length] = numbers.as_slice() else { return None };
        Some(*inside..inside.saturating_add(*length))
    };
    let all: Option<Vec<Range<u64>>> = map.lines().map(line).collect();
    all.ok_or_else(|| Fault::refused(format!("{map:?} is no map of ids")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(map: &str) -> Ids {
        let ranges = ranges(map).expect("a map");
        Ids { users: ranges.clone(), groups: ranges, sets_groups: true }
    }

    #[test]
    fn a_map_says_which_ids_there_are() {
        let host = ids("         0          0 4294967295\n");
        assert!(host.are_the_hosts() && host.are_several());
        assert_eq!(host.user("user", 4_294_967_294), Ok(()));
        let one = ids("0 1000 1\n");
        assert!(!one.are_the_hosts() && !one.are_several());
        assert_eq!(one.user("user", 0), Ok(()));
        assert!(one.group("fsGroup", 1).expect_err("not there").contains("fsGroup 1"));
        let many = ids("0 1000 1\n1 100000 65536\n");
        assert!(
            many.are_several() && many.user("user", 65_536).is_ok() && many.user("user", 65_537).is_err()
        );
        assert!(ranges("nonsense").is_err());
    }
}
