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
use nodefold_core::Node;
use nodefold_core::event::Fact;
use nodefold_core::ids::PodUid;
use nodefold_core::time::Time;
use nodefold_journal::{Cut, Entry, Files, Position, Reader, Record, Storage, beginning};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Shows the records. Each is read once, and with `--since` none of an earlier segment.
pub fn log(args: &args::Log, out: &mut Out) -> Result<Ending> {
    let storage = Files::at(&args.journal);
    let asked = Asked {
        since: args.since.as_deref(),
        pod: args.pod.as_deref().map(PodName::parse).transpose()?,
        json: args.json,
    };
    if let Some(cut) = show(&storage, &asked, &mut |line| out.line(line))? {
        out.complain(format!("{} {cut}", paint(Tone::Warning.style(), "not shown:")));
    }
    Ok(Ending::Good)
}

/// What is to be shown.
struct Asked<'a> {
    since: Option<&'a str>,
    pod: Option<PodName>,
    json: bool,
}

/// Shows the records line by line. What follows the last whole batch, if anything.
fn show(storage: &Arc<dyn Storage>, asked: &Asked<'_>, line: &mut dyn FnMut(String)) -> Result<Option<Cut>> {
    let beginning = beginning(storage)?;
    let since = asked.since.map(|text| place::parse(text, beginning)).transpose()?;
    let mut names = Names::default();
    let mut reader = match since {
        Some(since) => from_segment_of(storage, since, &mut names)?,
        None => Reader::open(storage)?,
    };
    let mut shown = 0_u64;
    // That a fact is not folded is said at the beginning of the batch after its own, and is part of how facts are numbered.
    let (mut held, mut skipped): (Vec<Entry>, BTreeSet<u64>) = (Vec::new(), BTreeSet::new());
    loop {
        let entry = reader.next().transpose()?;
        let ends_what_is_held = match (&entry, held.first()) {
            (None, _) => true,
            (Some(entry), Some(first)) => {
                entry.batch != first.batch && may_follow_what_is_skipped(&entry.record)
            }
            (Some(_), None) => false,
        };
        if ends_what_is_held {
            for entry in held.drain(..) {
                learn(&entry.record, &mut names);
                let early = match since {
                    Some(Position::Record(record)) => entry.number < record,
                    Some(Position::Time(at)) => entry.at < at,
                    None => false,
                };
                let is_about = |pod: &PodName| is_about(&entry.record, pod, &names);
                if early || !asked.pod.as_ref().is_none_or(is_about) {
                    continue;
                }
                shown += 1;
                let facts = entry.facts - skipped.range(..=entry.number).count() as u64;
                line(if asked.json {
                    entry_json(&entry, facts, &names, beginning).to_string()
                } else {
                    entry_line(&entry, facts, &names, beginning)
                });
            }
            skipped.clear();
        }
        let Some(entry) = entry else { break };
        if let Record::Skipped(record) = &entry.record
            && held.first().is_some_and(|first| first.number <= record.record)
        {
            skipped.insert(record.record);
        }
        held.push(entry);
    }
    if let Some(pod) = asked.pod.as_ref().filter(|_| shown == 0)
        && names.lives_of(&pod.namespace, &pod.name).next().is_none()
    {
        let since = asked.since.map(|since| format!(" since {since}")).unwrap_or_default();
        return Err(Unusable::new(
            format!("no record is about a pod {pod}{since}"),
            format!("the pods of this journal are: {}", names.listed()),
        )
        .into());
    }
    Ok(reader.cut().cloned())
}

/// A reader that begins with the segment that holds the place; and the names of the pods that lived when it began, out of the
/// state that was written then.
fn from_segment_of(storage: &Arc<dyn Storage>, since: Position, names: &mut Names) -> Result<Reader> {
    let reader = Reader::open_before(storage, since)?;
    if reader.is_at_the_first_segment() {
        return Ok(reader);
    }
    // A state of another version's layout can't be read, and then only the whole journal has the names.
    let Some(node) = reader.state_before::<Node>() else { return Ok(Reader::open(storage)?) };
    for uid in node.pods() {
        if let Some(pod) = node.desired(uid) {
            names.learn(uid, &pod.namespace, &pod.name);
        }
    }
    Ok(reader)
}

/// What is skipped is said before anything else of a batch; a segment's own records may come before that.
fn may_follow_what_is_skipped(record: &Record) -> bool {
    match record {
        Record::Fact(_) | Record::Foreign(_) | Record::Note(_) => true,
        Record::Header(_) | Record::BatchEnd(_) | Record::Snapshot(_) | Record::Skipped(_) => false,
    }
}

fn learn(record: &Record, names: &mut Names) {
    if let Record::Fact(event) = record
        && let Fact::PodApplied(pod) = &event.fact
    {
        names.learn_pod(pod);
    }
}

/// A record is about a pod: a fact about it, or a request about an object of its name.
fn is_about(record: &Record, pod: &PodName, names: &Names) -> bool {
    let is_life = |uid: PodUid| names.is_of(uid, &pod.namespace, &pod.name);
    match record {
        Record::Fact(event) => event.fact.pod().is_some_and(is_life),
        Record::Foreign(foreign) if foreign.stream == HISTORY_STREAM => {
            let entry = requests::happened(&foreign.stream, &foreign.bytes);
            entry.is_some_and(|entry| is_life(entry.pod()))
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

#[cfg(test)]
mod tests {
    use super::*;
    use nodefold_core::spec::Pod;
    use nodefold_core::{Commands, Config, Event};
    use nodefold_journal::{Memory, Options, Writer};

    fn applied(uid: u128, name: &str) -> Fact {
        Fact::PodApplied(Arc::new(Pod {
            namespace: "default".into(),
            name: name.into(),
            ..Pod::orphan(PodUid(uid))
        }))
    }

    /// Two pods, then removals and ticks over several small segments.
    fn journal() -> Memory {
        let memory = Memory::new();
        let config = Config::default();
        let mut node = Node::new(config.clone());
        let options =
            Options { segment_bytes: 8192, fill_bytes: 1024, compress: false, ..Options::default() };
        let mut writer = Writer::create(memory.storage(), options, &config, &mut node).expect("created");
        for second in 1..=200_u64 {
            let fact = match second {
                1 => Fact::AgentStarted { boot_id: 1 },
                2 => applied(1, "web"),
                3 => applied(2, "db"),
                n if n % 50 == 0 => Fact::PodRemoved { pod: PodUid(9) },
                n if n % 10 == 0 => applied(1, "web"),
                _ => Fact::Tick,
            };
            let event = Event { at: Time(second * 1_000_000_000), fact };
            writer.append(&event).expect("appended");
            writer.commit(&mut node).expect("committed");
            let mut out = Commands::default();
            node.apply(&event, &mut out);
            writer.commands_given(&out.commands);
        }
        writer.stop(&mut node).expect("stopped");
        memory
    }

    fn lines(memory: &Memory, since: Option<&str>, pod: Option<&str>) -> Result<Vec<String>> {
        let pod = pod.map(PodName::parse).transpose()?;
        let mut lines = Vec::new();
        show(&memory.storage(), &Asked { since, pod, json: false }, &mut |line| lines.push(line))?;
        Ok(lines)
    }

    #[test]
    fn since_a_place_shows_the_same_lines_and_reads_no_earlier_segment() {
        let memory = journal();
        let (all, web) =
            (lines(&memory, None, None).expect("all"), lines(&memory, None, Some("web")).expect("web"));
        let since = |memory: &Memory, pod| lines(memory, Some("170s"), pod).expect("since");
        let (late, late_web) = (since(&memory, None), since(&memory, Some("web")));
        assert!(!late.is_empty() && late.len() < all.len() && all.ends_with(&late));
        assert!(
            !late_web.is_empty() && late_web.len() < web.len() && web.ends_with(&late_web),
            "{late_web:#?}"
        );

        // Of an earlier segment only the header is looked at, and of the first its front.
        let segments: Vec<String> =
            memory.storage().list().expect("names").into_iter().filter(|n| n.ends_with(".seg")).collect();
        assert!(segments.len() > 3, "{segments:?}");
        for name in &segments[1..segments.len() / 2] {
            let mut bytes = memory.bytes(name).expect("a segment");
            bytes[200] ^= 1;
            memory.put(name, bytes);
        }
        assert!(lines(&memory, None, None).is_err());
        assert_eq!((since(&memory, None), since(&memory, Some("web"))), (late, late_web));
    }

    #[test]
    fn a_pod_that_only_the_state_before_knows_is_no_stranger() {
        let memory = journal();
        assert_eq!(lines(&memory, Some("170s"), Some("db")).expect("it lives"), Vec::<String>::new());
        let error = lines(&memory, Some("170s"), Some("dd")).expect_err("a stranger").to_string();
        assert!(error.contains("no record is about a pod default/dd since 170s"), "{error}");
    }
}
