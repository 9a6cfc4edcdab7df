//! Manifests from files and directories, as `kubectl apply -f` takes them: YAML or JSON, several documents in a file, Lists
//! unrolled.

use crate::ending::Unusable;
use anyhow::Result;
use nodefold_k8s::parse_documents;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Every manifest of a directory and those below it, in the order of the files' names.
pub fn of_directory(dir: &Path) -> Result<Vec<Value>> {
    let mut files = Vec::new();
    gather(dir, &mut files)?;
    files.sort();
    let mut manifests = Vec::new();
    for file in &files {
        manifests.extend(of_file(file)?);
    }
    Ok(manifests)
}

/// Every manifest of a file.
pub fn of_file(file: &Path) -> Result<Vec<Value>> {
    let name = file.display();
    let mut manifests = Vec::new();
    for document in documents(file)? {
        let items = document.get("items").and_then(Value::as_array).cloned();
        let unrolled = match items {
            Some(items) if kind(&document).ends_with("List") => items,
            Some(_) | None => vec![document],
        };
        for manifest in unrolled {
            if kind(&manifest).is_empty() {
                let what = format!("{name}: a document has no kind");
                return Err(Unusable::new(what, "give apiVersion and kind, or move it elsewhere").into());
            }
            manifests.push(manifest);
        }
    }
    Ok(manifests)
}

/// Every document of a file, whatever it is.
pub fn documents(file: &Path) -> Result<Vec<Value>> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file)
        .map_err(|error| Unusable::new(format!("{name}: {error}"), "name a file of YAML or JSON"))?;
    let documents = parse_documents(&text, &name).map_err(|error| Unusable::new(error, ""))?;
    Ok(documents.into_iter().map(|document| document.value).collect())
}

fn kind(manifest: &Value) -> &str {
    manifest.get("kind").and_then(Value::as_str).unwrap_or_default()
}

fn gather(dir: &Path, into: &mut Vec<PathBuf>) -> Result<()> {
    let unreadable = |error: std::io::Error| {
        Unusable::new(format!("{}: {error}", dir.display()), "name a directory of manifests")
    };
    for entry in std::fs::read_dir(dir).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let known = path.extension().is_some_and(|e| e == "yaml" || e == "yml" || e == "json");
        if path.is_dir() {
            gather(&path, into)?;
        } else if known {
            into.push(path);
        }
    }
    Ok(())
}
