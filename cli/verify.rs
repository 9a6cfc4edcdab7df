//! `nodefold verify` and `replay --verify`: folds a journal from its start and compares everything that it recorded.

use crate::ending::Ending;
use crate::json;
use crate::names::{Names, clock};
use crate::out::Out;
use crate::paint::{Tone, paint};
use anyhow::Result;
use nodefold_core::Node;
use nodefold_core::event::Fact;
use nodefold_journal::{
    Difference, Differs, FieldDifference, Files, PodDifference, Reader, Record, Report, Storage,
};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

/// Verifies a journal.
pub fn verify(dir: &Path, as_json: bool, out: &mut Out) -> Result<Ending> {
    let storage = Files::at(dir);
    let beginning = nodefold_journal::beginning(&storage)?;
    let report = nodefold_journal::verify::<Node>(&storage)?.report;
    let names = names(&storage)?;
    let ending = if report.difference.is_none() { Ending::Good } else { Ending::Broken };
    if as_json {
        let object = json::object("verification", Some(report.at), beginning);
        out.line(json::with(object, report_json(&report, &names)));
        return Ok(ending);
    }
    out.line(format!(
        "{} records in {} batches, {} facts, up to {}",
        report.records,
        report.batches,
        report.events,
        clock(report.at, beginning)
    ));
    out.line(format!(
        "compared: {} digests, {} command hashes, {} snapshots; the chain of batches is whole",
        report.digests_equal, report.commands_equal, report.snapshots_equal
    ));
    let warning = Tone::Warning.style();
    for record in &report.taken_over {
        out.line(paint(warning, format!("after record {record} another version took over from a snapshot")));
    }
    for refused in &report.refused {
        out.line(paint(warning, format!("snapshot not used: {}: {}", refused.file, refused.reason)));
    }
    for skipped in &report.skipped {
        out.line(paint(warning, format!("record {} is not folded: {}", skipped.record, skipped.reason)));
    }
    if let Some(cut) = &report.cut {
        out.line(paint(warning, format!("to be cut: {cut}")));
    } else if !report.clean_stop {
        out.line(paint(warning, "it ends without a clean stop: the last batch's facts are folded, but nothing recorded confirms them"));
    }
    match &report.difference {
        None => out.line(paint(Tone::Good.style(), format!("✓ all equal, digest {:032x}", report.digest.0))),
        Some(difference) => out.lines(different(difference, &names, clock(difference.at, beginning))),
    }
    Ok(ending)
}

/// Where the fold first differs: the batch, the pods, the fields.
fn different(difference: &Difference, names: &Names, at: String) -> Vec<String> {
    let (first, last) = difference.records;
    let what = match &difference.what {
        Differs::State { recorded, folded } => {
            format!("the state differs: recorded {:032x}, folded {:032x}", recorded.0, folded.0)
        }
        Differs::Events { recorded, folded } => {
            format!("the number of facts differs: recorded {recorded}, folded {folded}")
        }
        Differs::Commands { recorded, folded } => {
            format!("it would decide otherwise: commands recorded {recorded:032x}, folded {folded:032x}")
        }
    };
    let head = format!("✗ batch {}, after records {first} to {last}, {at}: {what}", difference.batch);
    let mut out =
        vec![paint(Tone::Bad.style(), head), format!("  written by nodefold {}", difference.software)];
    for pod in &difference.pods {
        out.push(format!("  pod {}{}", names.short(pod.pod), pod_digests(pod)));
        out.extend(pod.fields.iter().map(field));
    }
    if !difference.node.is_empty() {
        out.push("  the node apart from its pods".to_owned());
        out.extend(difference.node.iter().map(field));
    }
    match (difference.snapshot, difference.pods.is_empty()) {
        (Some(record), _) => out.push(format!("  fields as of the snapshot after record {record}")),
        (None, false) => out.push("  no snapshot comes after it, so the fields can't be told".to_owned()),
        (None, true) => out.push("  it is in no pod, but in what the node keeps beside them".to_owned()),
    }
    out
}

fn field(field: &FieldDifference) -> String {
    let show = |value: &Option<String>| value.as_deref().unwrap_or("nothing").to_owned();
    format!("    {}: recorded {}, folded {}", field.path, show(&field.recorded), show(&field.folded))
}

fn field_json(field: &FieldDifference) -> Value {
    json!({"path": field.path, "recorded": field.recorded, "folded": field.folded})
}

fn pod_digests(pod: &PodDifference) -> String {
    match (pod.recorded, pod.folded) {
        (Some(recorded), Some(folded)) => format!(": recorded {:032x}, folded {:032x}", recorded.0, folded.0),
        (Some(_), None) => ": touched as recorded, not touched now".to_owned(),
        (None, Some(_)) => ": not touched as recorded, touched now".to_owned(),
        (None, None) => String::new(),
    }
}

/// All pods of a journal by name.
pub fn names(storage: &Arc<dyn Storage>) -> Result<Names> {
    let mut names = Names::default();
    for entry in Reader::open(storage)? {
        if let Record::Fact(event) = entry?.record
            && let Fact::PodApplied(pod) = event.fact
        {
            names.learn_pod(&pod);
        }
    }
    Ok(names)
}

fn report_json(report: &Report, names: &Names) -> Value {
    let refused: Vec<Value> =
        report.refused.iter().map(|r| json!({"file": r.file, "reason": r.reason})).collect();
    let skipped: Vec<Value> =
        report.skipped.iter().map(|s| json!({"number": s.record, "reason": s.reason})).collect();
    json!({
        "records": report.records,
        "batches": report.batches,
        "facts": report.events,
        "digest": format!("{:032x}", report.digest.0),
        "digestsEqual": report.digests_equal,
        "commandsEqual": report.commands_equal,
        "snapshotsEqual": report.snapshots_equal,
        "takenOver": report.taken_over,
        "refusedSnapshots": refused,
        "skipped": skipped,
        "cut": report.cut.as_ref().map(ToString::to_string),
        "cleanStop": report.clean_stop,
        "equal": report.difference.is_none(),
        "difference": report.difference.as_ref().map(|difference| difference_json(difference, names)),
    })
}

fn difference_json(difference: &Difference, names: &Names) -> Value {
    let (kind, recorded, folded) = match &difference.what {
        Differs::State { recorded, folded } => {
            ("state", format!("{:032x}", recorded.0), format!("{:032x}", folded.0))
        }
        Differs::Events { recorded, folded } => ("facts", recorded.to_string(), folded.to_string()),
        Differs::Commands { recorded, folded } => {
            ("commands", format!("{recorded:032x}"), format!("{folded:032x}"))
        }
    };
    let pods: Vec<Value> = difference
        .pods
        .iter()
        .map(|pod| {
            let fields: Vec<Value> = pod.fields.iter().map(field_json).collect();
            json::with(json::pod(Some(pod.pod), names), json!({"fields": fields}))
        })
        .collect();
    json!({
        "batch": difference.batch,
        "firstRecord": difference.records.0,
        "lastRecord": difference.records.1,
        "kind": kind,
        "recorded": recorded,
        "folded": folded,
        "pods": pods,
        "node": difference.node.iter().map(field_json).collect::<Vec<_>>(),
        "fieldsOfSnapshot": difference.snapshot,
    })
}
