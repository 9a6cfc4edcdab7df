//! Manifests from files and directories, as `kubectl apply -f` takes them: YAML or JSON, several documents in a file, Lists
//! unrolled. One with a field that nobody knows is refused: what it says would silently not be done.

use crate::ending::Unusable;
use anyhow::Result;
use nodefold_k8s::{Document, FieldProblem, check_fields, has_known_fields, parse_documents};
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
    let name = file.display().to_string();
    let mut manifests = Vec::new();
    for document in parsed(file)? {
        for (place, manifest) in unrolled(&document.value) {
            if kind(&manifest).is_empty() {
                let what = format!("{name}: a document has no kind");
                return Err(Unusable::new(what, "give apiVersion and kind, or move it elsewhere").into());
            }
            if let Some(problem) = problem_of(&manifest) {
                return Err(Unusable::new(document.locate(&name, &place, &problem), "").into());
            }
            manifests.push(manifest);
        }
    }
    Ok(manifests)
}

/// A document's manifests, each with its place in it. A List as the API prints it (`--raw`) says its items' kind once.
fn unrolled(document: &Value) -> Vec<(String, Value)> {
    let items = document.get("items").and_then(Value::as_array);
    let (Some(items), Some(of)) = (items, kind(document).strip_suffix("List")) else {
        return vec![(String::new(), document.clone())];
    };
    let entries = items.iter().cloned().enumerate().map(|(i, mut item)| {
        if kind(&item).is_empty() && item.is_object() && !of.is_empty() {
            item["apiVersion"] = document["apiVersion"].clone();
            item["kind"] = of.into();
        }
        (format!("items[{i}]"), item)
    });
    entries.collect()
}

/// A field that nobody knows, or of a wrong type, in a kind whose fields are known.
fn problem_of(manifest: &Value) -> Option<FieldProblem> {
    let kind = kind(manifest);
    if has_known_fields(kind) { check_fields(manifest, kind).into_iter().next() } else { None }
}

/// Every document of a file, whatever it is.
pub fn documents(file: &Path) -> Result<Vec<Value>> {
    Ok(parsed(file)?.into_iter().map(|document| document.value).collect())
}

fn parsed(file: &Path) -> Result<Vec<Document>> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file)
        .map_err(|error| Unusable::new(format!("{name}: {error}"), "name a file of YAML or JSON"))?;
    Ok(parse_documents(&text, &name).map_err(|error| Unusable::new(error, ""))?)
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
