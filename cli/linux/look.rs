//! Looks at a node on this host from outside, and takes it down.

use crate::args;
use crate::ending::{Ending, Unusable};
use crate::out::Out;
use crate::paint::{Tone, paint};
use anyhow::Result;
use nodefold_agent::layout::Layout;
use nodefold_agent::pod::join::{self, Task};
use nodefold_agent::{cleanup as cleaner, doctor as physician, runtime};
use nodefold_core::ids::PodUid;
use serde_json::{Value, json};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

fn layout(data: &Path) -> Result<Layout> {
    Ok(Layout::at(std::path::absolute(data)?))
}

/// The pods that a node has published.
fn published(layout: &Layout) -> Result<Vec<Value>> {
    let dir = layout.data().join("status");
    let mut pods = Vec::new();
    for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
        if entry.path().extension().is_none_or(|e| e != "json") {
            continue;
        }
        match fs::read(entry.path()) {
            Ok(bytes) => pods.push(serde_json::from_slice(&bytes)?),
            // The node goes on meanwhile: this pod was released since the directory was listed.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    pods.sort_by_key(|pod: &Value| full_name(pod));
    Ok(pods)
}

fn full_name(pod: &Value) -> String {
    let part = |name: &str| pod["metadata"][name].as_str().unwrap_or("").to_owned();
    format!("{}/{}", part("namespace"), part("name"))
}

/// `nodefold ps`
pub fn ps(args: &args::Ps, out: &mut Out) -> Result<Ending> {
    let layout = layout(&args.data)?;
    for pod in published(&layout)? {
        if args.json {
            out.line(pod.to_string());
            continue;
        }
        let status = &pod["status"];
        let lists = ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"];
        let containers: Vec<&Value> =
            lists.iter().flat_map(|list| status[list].as_array().into_iter().flatten()).collect();
        let ready = containers.iter().filter(|c| c["ready"] == true).count();
        let phase = status["phase"].as_str().unwrap_or("?");
        out.line(format!("{}  {phase}  {ready}/{} ready", full_name(&pod), containers.len()));
        for container in containers {
            let state = container["state"].as_object().and_then(|state| state.iter().next());
            let (word, detail) = state
                .map_or(("unknown", ""), |(word, of)| (word.as_str(), of["reason"].as_str().unwrap_or("")));
            let name = container["name"].as_str().unwrap_or("");
            let restarts = container["restartCount"].as_u64().unwrap_or(0);
            let text = format!("  {name:<20} {word:<11} {detail}  {restarts} restarts");
            out.line(text.trim_end());
        }
    }
    Ok(Ending::Good)
}

/// A published pod, by its name.
fn find(layout: &Layout, name: &str) -> Result<Value> {
    let wanted = if name.contains('/') { name.to_owned() } else { format!("default/{name}") };
    let pods = published(layout)?;
    let names: Vec<String> = pods.iter().map(full_name).collect();
    pods.into_iter().find(|pod| full_name(pod) == wanted).ok_or_else(|| {
        let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        Unusable::new(format!("{}: no pod {wanted}", layout.data().display()), format!("there are: {there}"))
            .into()
    })
}

/// `nodefold logs`
pub fn logs(args: &args::Logs, out: &mut Out) -> Result<Ending> {
    let layout = layout(&args.data)?;
    let pod = find(&layout, &args.pod)?;
    let uid = pod["metadata"]["uid"].as_str().unwrap_or("");
    let of_pod = layout.logs().join("pods").join(format!("{}_{uid}", full_name(&pod).replace('/', "_")));
    let names = |dir: &Path| -> Vec<String> {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    };
    let there = names(&of_pod);
    let container = match (&args.container, there.as_slice()) {
        (Some(container), _) => container.clone(),
        (None, [only]) => only.clone(),
        (None, several) => {
            let what = format!("{} has {} containers with logs", full_name(&pod), several.len());
            return Err(Unusable::new(what, format!("name one of: {}", several.join(", "))).into());
        }
    };
    let mut files: Vec<(Vec<u32>, PathBuf)> = names(&of_pod.join(&container))
        .into_iter()
        .map(|file| {
            let life = file.split('.').filter_map(|part| part.parse().ok()).collect();
            (life, of_pod.join(&container).join(file))
        })
        .collect();
    files.sort();
    let Some((_, newest)) = files.pop() else {
        let what = format!("{}: no container {container} with a log", full_name(&pod));
        return Err(Unusable::new(what, format!("there are: {}", there.join(", "))).into());
    };
    for line in String::from_utf8_lossy(&fs::read(newest)?).lines() {
        let text = if args.raw { line } else { line.splitn(4, ' ').nth(3).unwrap_or("") };
        out.line(text);
    }
    Ok(Ending::Good)
}

/// `nodefold exec`
pub fn exec(args: &args::Exec, _out: &mut Out) -> Result<Ending> {
    let layout = layout(&args.data)?;
    let pod = find(&layout, &args.pod)?;
    let uid = pod["metadata"]["uid"].as_str().and_then(PodUid::parse_uuid);
    let uid = uid.ok_or_else(|| Unusable::new(format!("{}: no uid", full_name(&pod)), ""))?;
    let task = Task::Run(args.command.clone());
    let errand = runtime::errand_from_outside(&layout, uid, &args.container, task)
        .and_then(|errand| join::run(&errand))
        .map_err(|fault| Unusable::new(fault, ""))?;
    // The program's own exit code is this command's.
    std::process::exit(errand)
}

/// `nodefold cleanup`
pub fn cleanup(args: &args::Cleanup, out: &mut Out) -> Result<Ending> {
    let layout = layout(&args.data)?;
    cleaner::clean_up(&layout, args.images).map_err(|fault| Unusable::new(fault, "then run it again"))?;
    let left = cleaner::left_behind(&layout).map_err(|fault| Unusable::new(fault, ""))?;
    if left.is_empty() {
        out.line(format!("nothing of the node in {} is left on this host", layout.data().display()));
        return Ok(Ending::Good);
    }
    for one in &left {
        out.line(format!("left: {one}"));
    }
    Ok(Ending::Broken)
}

/// `nodefold doctor`
pub fn doctor(args: &args::Doctor, out: &mut Out) -> Result<Ending> {
    let (mode, findings) = physician::examine();
    if args.json {
        let findings: Vec<Value> = findings
            .iter()
            .map(|f| json!({"what": f.what, "there": f.there, "needed": f.needed, "detail": f.detail}))
            .collect();
        out.line(json!({"mode": mode.name(), "findings": findings}).to_string());
    } else {
        for finding in &findings {
            let (tone, sign) = match (finding.there, finding.needed) {
                (true, _) => (Tone::Good, '✓'),
                (false, false) => (Tone::Quiet, '–'),
                (false, true) => (Tone::Bad, '✗'),
            };
            out.line(format!("{} {}: {}", paint(tone.style(), sign), finding.what, finding.detail));
        }
        out.line(format!("mode: {}", mode.name()));
    }
    Ok(if mode == physician::Mode::None { Ending::Broken } else { Ending::Good })
}
