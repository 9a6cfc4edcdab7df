//! Looks at a node on this host from outside, and takes it down.

use crate::args;
use crate::ending::{Ending, Unusable};
use crate::linux::rootless::{self, Namespaces};
use crate::out::Out;
use crate::paint::{Tone, paint};
use anyhow::Result;
use nodefold_agent::fault::Fault;
use nodefold_agent::layout::Layout;
use nodefold_agent::pod::join::{self, Task};
use nodefold_agent::reading::{self, ContainerLog};
use nodefold_agent::{beneath, cleanup as cleaner, clock, doctor as physician, runtime};
use nodefold_core::ids::PodUid;
use nodefold_core::time::Nanos;
use serde_json::{Value, json};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// A log that is followed is looked at this often.
const LOOK_AGAIN: Nanos = Nanos::millis(100);

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
    format!("{}/{}", namespace_of(pod), name_of(pod))
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
    let of_pod = reading::directory(&layout, &namespace_of(&pod), &name_of(&pod), uid);
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
    let none = || {
        let what = format!("{}: no container {container} with such a log", full_name(&pod));
        Unusable::new(what, format!("there are logs of: {}", there.join(", ")))
    };
    // What a container that is shown the logs put there is not followed.
    let open = || {
        let of_pod = beneath::open_root(&of_pod).map_err(|_| none())?;
        beneath::open_dir(of_pod, &container).map_err(|_| none())
    };
    let told = |fault: Fault| Unusable::new(fault, "");
    let mut instances = reading::instances(&open()?).map_err(told)?;
    let newest = instances.pop().ok_or_else(none)?;
    let wanted = if args.previous { instances.pop().ok_or_else(none)? } else { newest };
    let mut log = ContainerLog::at(open()?, wanted.clone());
    loop {
        // Looked at first: what it wrote before it ended is there when its end is.
        let goes_on = args.follow && runs(&layout, uid, &container, &wanted)?;
        for line in log.lines().map_err(told)?.split_inclusive(|byte| *byte == b'\n') {
            out.bytes(if args.raw { line } else { reading::said(line) });
        }
        if !goes_on {
            return Ok(Ending::Good);
        }
        clock::pause(LOOK_AGAIN);
    }
}

/// Whether the instance of this log runs, or waits to, as far as the node has published.
fn runs(layout: &Layout, uid: &str, container: &str, log: &str) -> Result<bool> {
    let pods = published(layout)?;
    let Some(pod) = pods.iter().find(|pod| pod["metadata"]["uid"] == uid) else { return Ok(false) };
    let lists = ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"];
    let mut statuses = lists.iter().flat_map(|list| pod["status"][list].as_array().into_iter().flatten());
    let Some(status) = statuses.find(|status| status["name"] == container) else { return Ok(false) };
    // Another instance's log is there as soon as it is created.
    let dir = reading::directory(layout, &namespace_of(pod), &name_of(pod), uid).join(container);
    let newest =
        beneath::open_root(&dir).and_then(|dir| reading::instances(&dir)).ok().and_then(|mut all| all.pop());
    Ok(newest.as_deref() == Some(log) && status["state"]["terminated"].is_null())
}

fn namespace_of(pod: &Value) -> String {
    pod["metadata"]["namespace"].as_str().unwrap_or("").to_owned()
}

fn name_of(pod: &Value) -> String {
    pod["metadata"]["name"].as_str().unwrap_or("").to_owned()
}

/// `nodefold exec`
pub fn exec(args: &args::Exec, _out: &mut Out) -> Result<Ending> {
    let layout = layout(&args.data)?;
    let _entered = rootless::look(&layout).map_err(|fault| Unusable::new(fault, ""))?;
    let pod = find(&layout, &args.pod)?;
    let uid = pod["metadata"]["uid"].as_str().and_then(PodUid::parse_uuid);
    let uid = uid.ok_or_else(|| Unusable::new(format!("{}: no uid", full_name(&pod)), ""))?;
    let task = Task::Run { args: args.command.clone(), tty: false };
    let errand = runtime::errand_from_outside(&layout, uid, &args.container, task)
        .and_then(|errand| join::run(&errand))
        .map_err(|fault| Unusable::new(fault, ""))?;
    // The program's own exit code is this command's.
    std::process::exit(errand)
}

/// `nodefold cleanup`
pub fn cleanup(args: &args::Cleanup, out: &mut Out) -> Result<Ending> {
    let layout = layout(&args.data)?;
    let entered = rootless::look(&layout).map_err(|fault| Unusable::new(fault, ""))?;
    cleaner::clean_up(&layout, args.images).map_err(|fault| Unusable::new(fault, "then run it again"))?;
    let left = cleaner::left_behind(&layout).map_err(|fault| Unusable::new(fault, ""))?;
    entered.end(&layout).map_err(|fault| Unusable::new(fault, ""))?;
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
    // Where it can have none, it is told what then is missing.
    let namespaces = Namespaces::for_now();
    let (mode, findings) = physician::examine();
    drop(namespaces);
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
