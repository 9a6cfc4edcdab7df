//! The bytes of secrets (S13): in files of their own that can be forgotten, since the journal can't. `Api` holds sealed
//! objects; whoever may read a secret gets its values from here.

use crate::fault::{Attempt, Fault};
use crate::{beneath, volumes};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The vault.
pub struct Vault {
    dir: PathBuf,
    opened: OwnedFd,
    /// By namespace and name.
    known: BTreeMap<(String, String), Kept>,
}

#[derive(Clone, PartialEq)]
struct Kept {
    data: Value,
    applied: Value,
}

impl Vault {
    /// Opens the directory, or makes it, for this user alone.
    pub fn open(dir: &Path) -> Result<Vault, Fault> {
        fs::create_dir_all(dir).attempt(|| format!("make {}", dir.display()))?;
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700))
            .attempt(|| format!("close {} to others", dir.display()))?;
        let mut known = BTreeMap::new();
        for entry in fs::read_dir(dir).attempt(|| format!("list {}", dir.display()))?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some((namespace, secret)) = name.strip_suffix(".json").and_then(|n| n.split_once('_')) else {
                continue;
            };
            let bytes = fs::read(entry.path()).attempt(|| format!("read {name}"))?;
            let kept: Value = serde_json::from_slice(&bytes)
                .map_err(|error| Fault::refused(format!("{name} in {}: {error}", dir.display())))?;
            let kept = Kept { data: kept["data"].clone(), applied: kept["applied"].clone() };
            known.insert((namespace.to_owned(), secret.to_owned()), kept);
        }
        let opened = beneath::open_root(dir)?;
        Ok(Vault { dir: dir.to_owned(), opened, known })
    }

    /// Keeps a secret's bytes. `whole` is the object as it was sent, with its defaults.
    pub fn put(&mut self, whole: &Value) -> Result<(), Fault> {
        let place = place(whole);
        let applied = whole["metadata"]["annotations"][LAST_APPLIED].clone();
        let kept = Kept { data: whole["data"].clone(), applied };
        if self.known.get(&place) == Some(&kept) {
            return Ok(());
        }
        let text = json!({"data": kept.data, "applied": kept.applied}).to_string();
        volumes::write_whole(&self.opened, &file(&place), text.as_bytes())?;
        self.known.insert(place, kept);
        Ok(())
    }

    /// Forgets a secret's bytes.
    pub fn forget(&mut self, secret: &Value) {
        let place = place(secret);
        if self.known.remove(&place).is_some() {
            // One that can't be removed now is replaced by the next secret of its name, and never read otherwise.
            fs::remove_file(self.dir.join(file(&place))).ok();
        }
    }

    /// A stored object with its bytes in place, if it is a secret.
    pub fn unsealed(&self, stored: &Arc<Value>) -> Arc<Value> {
        if stored["kind"] != "Secret" {
            return stored.clone();
        }
        let mut whole = Value::clone(stored);
        let Some(kept) = self.known.get(&place(stored)) else {
            // Its bytes are gone: what is left says nothing.
            whole["data"] = Value::Object(Map::new());
            return Arc::new(whole);
        };
        if !kept.data.is_null() {
            whole["data"] = kept.data.clone();
        }
        if !whole["metadata"]["annotations"][LAST_APPLIED].is_null() {
            whole["metadata"]["annotations"][LAST_APPLIED] = kept.applied.clone();
        }
        Arc::new(whole)
    }
}

fn place(secret: &Value) -> (String, String) {
    let text = |field: &str| secret["metadata"][field].as_str().unwrap_or_default().to_owned();
    let namespace = Some(text("namespace")).filter(|n| !n.is_empty()).unwrap_or_else(|| "default".to_owned());
    (namespace, text("name"))
}

/// Neither a namespace nor a name has an underscore.
fn file((namespace, name): &(String, String)) -> String {
    format!("{namespace}_{name}.json")
}
