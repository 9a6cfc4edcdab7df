//! Who a container runs as, where numbers must be found by names: in the image's own passwd and group files.

use super::unpack::read_inside;
use crate::fault::Fault;
use std::path::Path;

/// A user of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Its number.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Further groups that the image has it in.
    pub groups: Vec<u32>,
    /// Its home.
    pub home: String,
}

/// The user that an image (`root`, its file system) names: `name`, `uid`, either with `:group` or `:gid`. Nothing is root. A
/// number that the image does not know is a user of group 0 without a home.
pub fn user_of(root: &Path, spec: &str) -> Result<User, Fault> {
    let (user, group) = match spec.split_once(':') {
        Some((user, group)) => (user, Some(group).filter(|group| !group.is_empty())),
        None => (spec, None),
    };
    let user = if user.is_empty() { "0" } else { user };
    let number = user.parse::<u32>().ok();
    let passwd = read_inside(root, "etc/passwd")?.unwrap_or_default();
    let known = passwd.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|fields| match number {
        Some(number) => fields.get(2).and_then(|uid| uid.parse().ok()) == Some(number),
        None => fields.first() == Some(&user),
    });
    let field = |at: usize| known.as_ref().and_then(|fields| fields.get(at)).copied();
    let uid = number.or_else(|| field(2)?.parse().ok());
    let uid = uid.ok_or_else(|| {
        Fault::refused(format!("unable to find user {user}: no matching entries in passwd file"))
    })?;
    let groups = read_inside(root, "etc/group")?.unwrap_or_default();
    let groups: Vec<Vec<&str>> = groups.lines().map(|line| line.split(':').collect()).collect();
    let gid_of = |fields: &Vec<&str>| fields.get(2).and_then(|gid| gid.parse::<u32>().ok());
    let gid = match group {
        None => field(3).and_then(|gid| gid.parse().ok()).unwrap_or(0),
        Some(group) => match group.parse() {
            Ok(gid) => gid,
            Err(_) => groups
                .iter()
                .find(|fields| fields.first() == Some(&group))
                .and_then(gid_of)
                .ok_or_else(|| {
                    Fault::refused(format!("unable to find group {group}: no matching entries in group file"))
                })?,
        },
    };
    let name = field(0).unwrap_or("");
    let has = |fields: &&Vec<&str>| {
        !name.is_empty()
            && fields.get(3).is_some_and(|members| members.split(',').any(|member| member == name))
    };
    let mut further: Vec<u32> =
        groups.iter().filter(has).filter_map(gid_of).filter(|group| *group != gid).collect();
    further.dedup();
    let home = field(5).filter(|home| !home.is_empty()).unwrap_or("/").to_owned();
    Ok(User { uid, gid, groups: further, home })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn names_are_looked_up_in_the_image() {
        let root = tempfile::tempdir().expect("a directory");
        fs::create_dir(root.path().join("etc")).expect("etc");
        fs::write(root.path().join("etc/passwd"), "root:x:0:0::/root:/bin/sh\nweb:x:33:34::/srv:/bin/sh\n")
            .expect("passwd");
        fs::write(root.path().join("etc/group"), "root:x:0:\nmail:x:8:web,root\n").expect("group");
        let user = |spec: &str| user_of(root.path(), spec);
        let web = User { uid: 33, gid: 34, groups: vec![8], home: "/srv".into() };
        assert_eq!(user("web").expect("known"), web);
        assert_eq!(user("33").expect("known by number"), web);
        assert_eq!(user("web:mail").expect("known"), User { gid: 8, groups: vec![], ..web });
        let unknown = User { uid: 5, gid: 6, groups: vec![], home: "/".into() };
        assert_eq!(user("5:6").expect("a number"), unknown);
        assert_eq!(user("").expect("root").home, "/root");
        assert!(user("nobody").is_err() && user("web:nobody").is_err());
    }
}
