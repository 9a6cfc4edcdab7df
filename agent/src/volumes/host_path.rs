//! hostPath: nothing of this node's own, only a path and what must lie there (kubelet-volumes §2.6).

use crate::fault::{Attempt, Fault};
use nodefold_core::spec::Volume;
use rustix::fs::{Access, access};
use rustix::io::Errno;
use std::fs::{self, FileType};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

/// The path of the host.
pub fn path(spec: &Volume) -> PathBuf {
    let manifest = nodefold_k8s::blob_to_json(&spec.rest);
    PathBuf::from(manifest["hostPath"]["path"].as_str().unwrap_or(""))
}

/// Checks that what the type promises is there; makes it for the types that say so.
pub fn check(spec: &Volume) -> Result<(), Fault> {
    let path = path(spec);
    let shown = path.display();
    if !path.is_absolute() || path.components().any(|c| c == Component::ParentDir) {
        return Err(Fault::refused(format!(
            "hostPath {shown}: the path must be absolute and without \"..\""
        )));
    }
    let manifest = nodefold_k8s::blob_to_json(&spec.rest);
    let wanted = manifest["hostPath"]["type"].as_str().unwrap_or("");
    let is = |right: fn(&FileType) -> bool, what: &str| match fs::metadata(&path) {
        Ok(found) if right(&found.file_type()) => Ok(()),
        Ok(_) | Err(_) => Err(Fault::refused(format!("hostPath type check failed: {shown} is not a {what}"))),
    };
    // Root may see everything.
    if access(&path, Access::EXISTS) == Err(Errno::ACCESS)
        || (path.exists() && access(&path, Access::READ_OK) == Err(Errno::ACCESS))
    {
        return Err(Fault::refused(format!(
            "hostPath {shown} can't be had of a rootless node: its user may not read it"
        )));
    }
    match wanted {
        "" => Ok(()),
        "DirectoryOrCreate" => {
            make_directory(&path)?;
            is(FileType::is_dir, "directory")
        }
        "FileOrCreate" => {
            make_file(&path)?;
            is(FileType::is_file, "file")
        }
        "Directory" => is(FileType::is_dir, "directory"),
        "File" => is(FileType::is_file, "file"),
        "Socket" => is(FileTypeExt::is_socket, "socket"),
        "CharDevice" => is(FileTypeExt::is_char_device, "character device"),
        "BlockDevice" => is(FileTypeExt::is_block_device, "block device"),
        other => Err(Fault::refused(format!("hostPath {shown}: {other:?} is no type"))),
    }
}

fn make_directory(path: &Path) -> Result<(), Fault> {
    if fs::symlink_metadata(path).is_ok() {
        return Ok(());
    }
    fs::create_dir_all(path).attempt(|| format!("make {}", path.display()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
        .attempt(|| format!("open up {}", path.display()))
}

/// Its parents are not made.
fn make_file(path: &Path) -> Result<(), Fault> {
    let made = fs::OpenOptions::new().write(true).create_new(true).mode(0o644).open(path);
    match made {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error).attempt(|| format!("make {}", path.display())),
    }
}
