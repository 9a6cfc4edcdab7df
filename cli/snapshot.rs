//! `nodefold snapshot`: writes a snapshot of a journal's state.

use crate::args;
use crate::ending::Ending;
use crate::json;
use crate::out::Out;
use crate::paint::{Tone, paint};
use crate::place;
use anyhow::Result;
use nodefold_core::Node;
use nodefold_journal::{Files, Options, resume};
use serde_json::json;

/// Writes one after the last record, unless the journal ends with one.
pub fn snapshot(args: &args::Journal, out: &mut Out) -> Result<Ending> {
    let storage = Files::at(&args.journal);
    let beginning = place::beginning(&storage)?;
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
