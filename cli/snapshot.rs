//! `nodefold snapshot`: writes a snapshot of a journal's state.

use crate::args;
use crate::ending::Ending;
use crate::json;
use crate::out::Out;
use crate::paint::{Tone, paint};
use anyhow::{Context, Result};
use nodefold_core::Node;
use nodefold_core::time::Time;
use nodefold_journal::{Files, Options, Storage, portable, replay, resume};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

/// Writes one after the last record, unless the journal ends with one.
pub fn snapshot(args: &args::Snapshot, out: &mut Out) -> Result<Ending> {
    let storage = Files::at(&args.journal);
    let beginning = nodefold_journal::beginning(&storage)?;
    if let Some(file) = &args.portable {
        return export(&storage, file, args.json, beginning, out);
    }
    let resumed = resume::<Node>(storage.clone(), Options::default())?;
    let report = &resumed.report;
    if let Some(difference) = resumed.difference() {
        out.complain(format!("{} {difference}", paint(Tone::Bad.style(), "no snapshot was written:")));
        return Ok(Ending::Broken);
    }
    if let Some(cut) = &report.cut {
        out.complain(format!("{} {cut}", paint(Tone::Warning.style(), "cut:")));
    }
    let mut fold = resumed.fold;
    let is_new = !report.clean_stop;
    // After a clean stop, the fold began with the snapshot that it wrote.
    let records = report.from_snapshot.filter(|_| !is_new).unwrap_or(report.records);
    let (at, digest) = (report.at, report.digest);
    // A clean stop writes a snapshot, and a batch that covers it. After another one there is nothing new to tell.
    if is_new {
        resumed.writer.stop(&mut fold)?;
    }
    if args.json {
        let object = json::object("snapshot", Some(at), beginning);
        out.line(json::with(
            object,
            json!({"number": records, "facts": report.events, "digest": format!("{:032x}", digest.0), "new": is_new}),
        ));
        return Ok(Ending::Good);
    }
    let text = format!("record {records}, {} facts, digest {:032x}", report.events, digest.0);
    out.line(if is_new {
        format!("wrote a snapshot of the state after {text}")
    } else {
        format!("the journal ends with a snapshot already: {text}")
    });
    Ok(Ending::Good)
}

/// Writes the state after the last record as a portable document. The journal stays as it is.
fn export(
    storage: &Arc<dyn Storage>,
    file: &Path,
    as_json: bool,
    beginning: Time,
    out: &mut Out,
) -> Result<Ending> {
    let replayed = replay::<Node>(storage, None)?;
    let report = replayed.report;
    if let Some(difference) = &report.difference {
        out.complain(format!("{} {difference}", paint(Tone::Bad.style(), "nothing was written:")));
        return Ok(Ending::Broken);
    }
    if let Some(cut) = &report.cut {
        out.complain(format!("{} {cut}", paint(Tone::Warning.style(), "not included:")));
    }
    let text = portable::to_json(&replayed.fold);
    std::fs::write(file, &text).with_context(|| format!("can't write {}", file.display()))?;
    if as_json {
        let object = json::object("portable", Some(report.at), beginning);
        let told =
            json!({"number": report.records, "facts": report.events, "file": file.display().to_string()});
        out.line(json::with(object, told));
    } else {
        let (records, events) = (report.records, report.events);
        out.line(format!("wrote the state after record {records}, {events} facts, to {}", file.display()));
    }
    Ok(Ending::Good)
}
