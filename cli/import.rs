//! `nodefold import`: a journal of a node that never ran nodefold. The core follows what the node left behind, and the facts
//! are written down as it was given them.

use crate::args;
use crate::ending::{Ending, Unusable};
use crate::judge::read;
use crate::out::Out;
use crate::paint::{Tone, paint};
use anyhow::Result;
use nodefold_core::Node;
use nodefold_core::command::Commands;
use nodefold_journal::{Files, Options, Writer};
use nodefold_replay::{Followed, follow};
use serde_json::json;

/// Facts that become durable together: an import is repeated, not recovered.
const BATCH: usize = 1000;

/// Reads, follows, writes.
pub fn import(args: &args::Import, out: &mut Out) -> Result<Ending> {
    let trace = read(&args.files, args.year, out)?;
    let Followed { config, events, partings, without_spec } = follow(&trace);
    if events.is_empty() {
        let files: Vec<String> = args.files.iter().map(|f| f.display().to_string()).collect();
        let what = format!("no fact to import in {}", files.join(", "));
        return Err(Unusable::new(what, "give logs, watches or audit logs that tell of pods").into());
    }
    let storage = Files::at(&args.out);
    let options = Options { sync: false, ..Options::default() };
    let mut node = Node::new(config.clone());
    let mut writer = Writer::create(storage, options, &config, &mut node)?;
    let mut commands = Commands::default();
    for batch in events.chunks(BATCH) {
        for event in batch {
            writer.append(event)?;
        }
        writer.commit(&mut node)?;
        for event in batch {
            commands.clear();
            node.apply(event, &mut commands);
            writer.commands_given(&commands.commands);
        }
    }
    writer.stop(&mut node)?;
    let dir = args.out.display();
    if args.json {
        out.line(json!({"journal": dir.to_string(), "facts": events.len(), "pods": trace.pod_count(),
                        "pods_without_spec": without_spec, "partings": partings.len()}));
        return Ok(Ending::Good);
    }
    out.line(format!("{} facts of {} pods in {dir}", events.len(), trace.pod_count()));
    if without_spec > 0 {
        let text = format!(
            "of {without_spec} pods the evidence has no spec: theirs is made up from what happened to them"
        );
        out.line(paint(Tone::Quiet.style(), text));
    }
    out.line(paint(
        Tone::Quiet.style(),
        format!("look at it with nodefold replay {dir}, or nodefold log {dir}"),
    ));
    Ok(Ending::Good)
}
