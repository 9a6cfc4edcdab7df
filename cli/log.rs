//! `nodefold log`: a journal's records as they are, without folding anything.

use crate::args;
use crate::ending::{Ending, Unusable};
use crate::facts;
use crate::journal::API_STREAM;
use crate::json;
use crate::names::{Names, clock};
use crate::out::Out;
use crate::paint::{Tone, paint};
use crate::place;
use crate::pods::PodName;
use crate::requests;
use anyhow::Result;
use nodefold_agent::server::history::HISTORY_STREAM;
use nodefold_api::ApiEvent;
use nodefold_core::event::Fact;
use nodefold_core::ids::PodUid;
use nodefold_core::time::Time;
use nodefold_journal::{Entry, Files, Position, Reader, Record, Storage};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Shows the records.
pub fn log(args: &args::Log, out: &mut Out) -> Result<Ending> {
    let storage = Files::at(&args.journal);
    let beginning = place::beginning(&storage)?;
    let since = match &args.since {
        Some(text) => Some(place::parse(text, beginning)?),
        None => None,
    };
    let known = Known::of(&storage)?;
    let pod = match &args.pod {
        Some(text) => Some(PodName::parse(text)?),
        None => None,
    };
    let uids: BTreeSet<PodUid> =
        pod.iter().flat_map(|pod| known.names.lives_of(&pod.namespace, &pod.name)).collect();
    let (mut facts, mut shown) = (0, 0_u64);
    let mut reader = Reader::open(&storage)?;
    for entry in reader.by_ref() {
        let entry = entry?;
        if matches!(entry.record, Record::Fact(_)) && !known.skipped.contains(&entry.number) {
            facts += 1;
        }
        let is_early = match since {
            Some(Position::Record(record)) => entry.number < record,
            Some(Position::Time(at)) => entry.at < at,
            None => false,
        };
        if is_early || pod.as_ref().is_some_and(|pod| !is_about(&entry.record, pod, &uids)) {
            continue;
        }
        shown += 1;
        if args.json {
            out.line(entry_json(&entry, facts, &known.names, beginning));
        } else {
            out.line(entry_line(&entry, facts, &known.names, beginning));
        }
    }
    if let Some(cut) = reader.cut() {
        out.complain(format!("{} {cut}", paint(Tone::Warning.style(), "not shown:")));
    }
    if let Some(pod) = pod.filter(|_| shown == 0 && uids.is_empty()) {
        let known = known.names.listed();
        return Err(Unusable::new(
            format!("no record is about a pod {pod}"),
            format!("the pods of this journal are: {known}"),
        )
        .into());
    }
    Ok(Ending::Good)
}

/// What must be known of a whole journal to show a part of it.
struct Known {
    names: Names,
    /// Facts that the fold leaves out: they have no number in it.
    skipped: BTreeSet<u64>,
}

impl Known {
    fn of(storage: &Arc<dyn Storage>) -> Result<Known> {
        let mut known = Known { names: Names::default(), skipped: BTreeSet::new() };
        for entry in Reader::open(storage)? {
            match entry?.record {
                Record::Fact(event) => {
                    if let Fact::PodApplied(pod) = &event.fact {
                        known.names.learn_pod(pod);
                    }
                }
                Record::Skipped(skipped) => {
                    known.skipped.insert(skipped.record);
                }
                Record::Header(_)
                | Record::Foreign(_)
                | Record::BatchEnd(_)
                | Record::Snapshot(_)
                | Record::Note(_) => {}
            }
        }
        Ok(known)
    }
}

/// A record is about a pod: a fact about it, or a request about an object of its name.
fn is_about(record: &Record, pod: &PodName, uids: &BTreeSet<PodUid>) -> bool {
    match record {
        Record::Fact(event) => event.fact.pod().is_some_and(|uid| uids.contains(&uid)),
        Record::Foreign(foreign) if foreign.stream == HISTORY_STREAM => {
            let entry = requests::happened(&foreign.stream, &foreign.bytes);
            entry.is_some_and(|entry| uids.contains(&entry.pod()))
        }
        Record::Foreign(foreign) => match requests::audited(&foreign.stream, &foreign.bytes) {
            Some(record) => {
                let object = &record["object"];
                object["resource"] == "pods"
                    && object["namespace"] == *pod.namespace
                    && object["name"] == *pod.name
            }
            None => ApiEvent::from_bytes(&foreign.bytes).is_ok_and(|event| {
                let object = requests::asked(&event).object;
                object.is_some_and(|(namespace, name)| namespace == pod.namespace && name == pod.name)
            }),
        },
        Record::Header(_)
        | Record::BatchEnd(_)
        | Record::Snapshot(_)
        | Record::Skipped(_)
        | Record::Note(_) => false,
    }
}

fn entry_line(entry: &Entry, facts: u64, names: &Names, beginning: Time) -> String {
    let (kind, tone, text) = match &entry.record {
        Record::Header(header) => {
            let text =
                format!("nodefold {}, {}, node {}", header.software, header.layout, header.config.node_name);
            ("header", Tone::Quiet, text)
        }
        Record::Fact(event) => {
            let told = facts::told(&event.fact);
            let pod = event.fact.pod().map(|uid| names.short(uid));
            let thing = match (pod, told.subject.is_empty()) {
                (Some(pod), true) => format!("{pod} "),
                (Some(pod), false) => format!("{pod}/{} ", told.subject),
                (None, true) => String::new(),
                (None, false) => format!("{} ", told.subject),
            };
            let op = told.op.map(|op| format!(" (op {})", op.0)).unwrap_or_default();
            let text = if told.text.is_empty() { String::new() } else { format!(": {}", told.text) };
            ("fact", told.tone, format!("#{facts} {thing}{}{op}{text}", event.fact.name()))
        }
        Record::Foreign(foreign) if foreign.stream == API_STREAM => {
            match ApiEvent::from_bytes(&foreign.bytes) {
                Ok(event) => {
                    ("request", Tone::Step, format!("{}: {}", event.user.name, requests::asked(&event).what))
                }
                Err(error) => (
                    "request",
                    Tone::Bad,
                    format!("{} bytes that are no request: {error}", foreign.bytes.len()),
                ),
            }
        }
        Record::Foreign(foreign) => match requests::audited(&foreign.stream, &foreign.bytes) {
            Some(record) => ("audit", Tone::Quiet, requests::audit_line(&record)),
            None => match requests::happened(&foreign.stream, &foreign.bytes) {
                Some(entry) => ("history", Tone::Quiet, entry.line()),
                None => {
                    ("foreign", Tone::Quiet, format!("{} bytes of {}", foreign.bytes.len(), foreign.stream))
                }
            },
        },
        Record::BatchEnd(end) => {
            let text = format!(
                "{} of {} records; before it {} facts, digest {:032x}, {} pods touched",
                end.batch,
                end.records,
                end.events,
                end.digest,
                end.touched.len()
            );
            ("batch", Tone::Quiet, text)
        }
        Record::Snapshot(mark) => {
            ("snapshot", Tone::Quiet, format!("after record {}, digest {:032x}", mark.records, mark.digest))
        }
        Record::Skipped(skipped) => {
            ("skipped", Tone::Bad, format!("record {} is not folded: {}", skipped.record, skipped.reason))
        }
        Record::Note(note) => ("note", Tone::Step, format!("{}: {}", note.mark, note.text)),
    };
    // The header is older than time.
    let at = if entry.at < beginning { String::new() } else { clock(entry.at, beginning) };
    format!("{:>7}  {at:>10}  {kind:<8}  {}", entry.number, paint(tone.style(), text))
}

fn entry_json(entry: &Entry, facts: u64, names: &Names, beginning: Time) -> Value {
    let (kind, fields) = match &entry.record {
        Record::Header(header) => (
            "header",
            json!({"software": header.software, "layout": header.layout, "node": &*header.config.node_name}),
        ),
        Record::Fact(event) => ("fact", json::fact(facts, event, names)),
        Record::Foreign(foreign) => match ApiEvent::from_bytes(&foreign.bytes) {
            Ok(event) if foreign.stream == API_STREAM => (
                "request",
                json!({"user": &*event.user.name, "what": requests::asked(&event).what, "request": requests::to_json(&event.request)}),
            ),
            Ok(_) | Err(_) => match requests::audited(&foreign.stream, &foreign.bytes) {
                Some(record) => ("audit", json!({"audit": record})),
                None => match requests::happened(&foreign.stream, &foreign.bytes) {
                    Some(entry) => ("history", json!({"history": entry})),
                    None => ("foreign", json!({"stream": foreign.stream, "bytes": foreign.bytes.len()})),
                },
            },
        },
        Record::BatchEnd(end) => {
            let touched: Vec<Value> = end
                .touched
                .iter()
                .map(|(uid, digest)| {
                    json::with(json::pod(Some(*uid), names), json!({"digest": format!("{digest:032x}")}))
                })
                .collect();
            (
                "batchEnd",
                json!({
                    "firstRecord": end.first_record, "records": end.records, "factsBefore": end.events,
                    "digestBefore": format!("{:032x}", end.digest),
                    "commandsBefore": format!("{:032x}", end.commands),
                    "touched": touched, "chain": hex(&end.chain),
                }),
            )
        }
        Record::Snapshot(mark) => (
            "snapshot",
            json!({"after": mark.records, "layout": mark.layout, "digest": format!("{:032x}", mark.digest)}),
        ),
        Record::Skipped(skipped) => ("skipped", json!({"skipped": skipped.record, "reason": skipped.reason})),
        Record::Note(note) => ("note", json!({"mark": note.mark, "text": note.text})),
    };
    let at = (entry.at >= beginning).then_some(entry.at);
    let place =
        json!({"number": entry.number, "batch": entry.batch, "file": &*entry.file, "offset": entry.offset});
    json::with(json::with(json::object(kind, at, beginning), place), fields)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
