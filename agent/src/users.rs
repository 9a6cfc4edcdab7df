//! Which ids the user namespaces of pods have on the host: a kubelet's choice. Each pod has a range of its own, aligned to its
//! length, of what /etc/subuid and /etc/subgid give to the user `kubelet`, or else of what a kubelet takes without them.

use crate::fault::{Attempt, Fault};
use crate::pod::plan::UserIds;
use std::path::Path;

/// For whom /etc/subuid says which ids pods may have.
const USER: &str = "kubelet";
/// Without a word there, the ranges after the first, which the host's own users are in; as many as a kubelet has pods.
const BUILT_IN: Ranges = Ranges { first: UserIds::LENGTH, count: 110 };

/// Ranges one after another.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Ranges {
    first: u32,
    count: u32,
}

/// The first range of ids that is not among those taken.
pub fn free<'a>(taken: impl Iterator<Item = &'a UserIds>) -> Result<UserIds, Fault> {
    let (uids, gids) = (read(Path::new("/etc/subuid"))?, read(Path::new("/etc/subgid"))?);
    free_of(ranges(&uids, &gids)?, &taken.copied().collect::<Vec<_>>())
}

fn read(path: &Path) -> Result<String, Fault> {
    match std::fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        read => read.attempt(|| format!("read {}", path.display())),
    }
}

fn free_of(ranges: Ranges, taken: &[UserIds]) -> Result<UserIds, Fault> {
    let all = (0..ranges.count).map(|n| UserIds { first: ranges.first + n * UserIds::LENGTH });
    let mut free = all.filter(|ids| !taken.contains(ids));
    free.next().ok_or_else(|| {
        Fault::transient(format!(
            "each of the {} ranges of ids for user namespaces is some pod's: give the user {USER} more in /etc/subuid and /etc/subgid",
            ranges.count
        ))
    })
}

fn ranges(subuid: &str, subgid: &str) -> Result<Ranges, Fault> {
    let refused = |why: &str| Err(Fault::refused(format!("/etc/subuid and /etc/subgid: {why}")));
    match (of_user(subuid)?.as_slice(), of_user(subgid)?.as_slice()) {
        ([], []) => Ok(BUILT_IN),
        ([uids], [gids]) if uids == gids => {
            let (first, length) = *uids;
            let last = first.checked_add(length);
            if first == 0 || first % UserIds::LENGTH != 0 || length % UserIds::LENGTH != 0 || last.is_none() {
                return refused(&format!(
                    "{USER}'s ids must begin after 0, and begin and end at multiples of {}",
                    UserIds::LENGTH
                ));
            }
            Ok(Ranges { first, count: length / UserIds::LENGTH })
        }
        (_, _) => refused(&format!("{USER} must have one range of ids, the same in both")),
    }
}

/// What a file of subordinate ids gives the user.
fn of_user(text: &str) -> Result<Vec<(u32, u32)>, Fault> {
    let mut found = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.trim().split(':').collect();
        let [USER, first, length] = fields.as_slice() else { continue };
        match (first.parse(), length.parse()) {
            (Ok(first), Ok(length)) => found.push((first, length)),
            (_, _) => return Err(Fault::refused(format!("/etc/subuid, /etc/subgid: {line:?} is no range"))),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_get_ranges_of_their_own_from_where_the_files_say() {
        let given = "root:1:5\nkubelet:131072:131072\n";
        let two = ranges(given, given).expect("a range");
        assert_eq!(two, Ranges { first: 131_072, count: 2 });
        let first = free_of(two, &[]).expect("the first");
        let second = free_of(two, &[first]).expect("the second");
        assert_eq!((first.first, second.first), (131_072, 196_608));
        let none = free_of(two, &[second, first]).expect_err("both are taken");
        assert!(none.message.contains("2 ranges"), "{none}");
        assert_eq!(free_of(two, &[second]), Ok(first));
        assert_eq!(ranges("root:1:5", ""), Ok(BUILT_IN));
    }

    #[test]
    fn a_file_that_can_not_be_followed_is_refused() {
        for (uids, gids) in [
            ("kubelet:65536:65536", ""),
            ("kubelet:65536:65536", "kubelet:65536:131072"),
            ("kubelet:65537:65536", "kubelet:65537:65536"),
            ("kubelet:65536:65535", "kubelet:65536:65535"),
            ("kubelet:0:65536", "kubelet:0:65536"),
            ("kubelet:65536:65536\nkubelet:131072:65536", "kubelet:65536:65536\nkubelet:131072:65536"),
            ("kubelet:4294901760:131072", "kubelet:4294901760:131072"),
            ("kubelet:x:65536", "kubelet:x:65536"),
        ] {
            assert!(ranges(uids, gids).is_err(), "{uids} {gids}");
        }
    }
}
