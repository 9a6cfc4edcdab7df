//! `nodefold replay`: folds a journal again. Shows its timeline and the lives in it, or a pod's state at any moment; in a terminal it
//! is stepped through.

use crate::args;
use crate::ending::{Ending, Unusable};
use crate::journal::API_STREAM;
use crate::json;
use crate::lives::Deed;
use crate::names::{Names, clock};
use crate::out::Out;
use crate::paint::{Tone, paint};
use crate::place;
use crate::pods::{self, PodName};
use crate::requests;
use crate::stepper;
use crate::story::Line;
use crate::verify;
use crate::view::{Form, View};
use crate::yaml;
use anyhow::Result;
use nodefold_api::ApiEvent;
use nodefold_core::Node;
use nodefold_core::event::Fact;
use nodefold_core::ids::PodUid;
use nodefold_core::time::Time;
use nodefold_harness::Record as Told;
use nodefold_journal::{Files, Foreign, Note, Position, Record, Replayed, Step, Storage, replay_each};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::Arc;

/// Folds a journal again.
pub fn replay(args: &args::Replay, out: &mut Out) -> Result<Ending> {
    if args.verify {
        return verify::verify(&args.journal, args.json, out);
    }
    let storage = Files::at(&args.journal);
    let beginning = nodefold_journal::beginning(&storage)?;
    let until = match &args.at {
        Some(text) => Some(place::to_the_end_of(place::parse(text, beginning)?)),
        None => None,
    };
    let is_watched = out.is_terminal && std::io::stdin().is_terminal();
    if is_watched && args.pod.is_none() && !args.lines && !args.json && !args.verbose {
        return stepper::step(&args.journal, until, beginning);
    }
    match &args.pod {
        Some(pod) => show_pod(&storage, &PodName::parse(pod)?, until, beginning, args.json, out),
        None => show_timeline(args, &storage, until, beginning, out),
    }
}

fn show_timeline(
    args: &args::Replay,
    storage: &Arc<dyn Storage>,
    until: Option<Position>,
    beginning: Time,
    out: &mut Out,
) -> Result<Ending> {
    let form = if args.json { Form::Json } else { Form::Lines };
    let mut view = View::new(out, form, args.verbose, beginning);
    let replayed = replay_each::<Node>(storage, until, &mut |step| tell(&mut view, &step))?;
    let Replayed { fold: node, report, .. } = &replayed;
    if args.json {
        let object = json::object("state", Some(report.at), beginning);
        let pods: BTreeMap<String, Option<Value>> =
            node.pods().into_iter().map(|uid| (uid.to_string(), pods::state(node, uid))).collect();
        view.out.line(json::with(
            object,
            json!({"number": report.records, "facts": report.events, "digest": format!("{:032x}", report.digest.0),
                   "pods": pods}),
        ));
        return Ok(Ending::Good);
    }
    view.draw_lanes();
    if !node.pods().is_empty() {
        view.out.lines(pods::table(node));
        view.out.line("");
    }
    for (kind, count) in node.anomalies().counts() {
        view.out.line(paint(Tone::Warning.style(), format!("{count} × {kind:?}")));
    }
    if let Some(cut) = &report.cut {
        view.out.line(paint(Tone::Warning.style(), format!("not folded: {cut}")));
    }
    view.out.line(format!(
        "after record {}, {}: {} facts, digest {:032x}",
        report.records,
        clock(report.at, beginning),
        report.events,
        report.digest.0
    ));
    Ok(Ending::Good)
}

/// Tells the view what a record says and what it made the node do.
fn tell(view: &mut View<'_>, step: &Step<'_, Node>) {
    let at = step.at;
    match step.record {
        Record::Fact(event) => {
            if let Fact::PodApplied(pod) = &event.fact {
                let (namespace, name) = (pod.namespace.to_string(), pod.name.to_string());
                view.record(&Told::PodNamed { pod: pod.uid, namespace, name });
            }
            view.record(&Told::Fact { seq: step.fold.event_count().0, event: event.clone() });
            for transition in &step.commands.transitions {
                view.record(&Told::Transition { at, transition: transition.clone() });
            }
            for command in &step.commands.commands {
                view.record(&Told::Command { at, command: command.clone() });
            }
        }
        Record::Note(note) => tell_note(view, note),
        Record::Foreign(foreign) => tell_request(view, foreign),
        Record::Skipped(skipped) => {
            let text = format!("record {} is not folded: {}", skipped.record, skipped.reason);
            view.line(&Line::new(at, Tone::Bad, text));
        }
        Record::Header(_) | Record::BatchEnd(_) | Record::Snapshot(_) => {}
    }
}

fn tell_note(view: &mut View<'_>, note: &Note) {
    let (tone, sign) = match note.mark.as_str() {
        "scenario" => (Tone::Step, ""),
        "step" | "wait" => (Tone::Step, "▸ "),
        "mark" => (Tone::Step, "⚑ "),
        "held" => (Tone::Good, "✓ "),
        "crash" | "invariant" | "missed" => (Tone::Bad, "✗ "),
        _ => (Tone::Quiet, ""),
    };
    if note.mark == "step" {
        view.lives.deeds.push(Deed { at: note.at, what: note.text.clone() });
    }
    view.line(&Line::new(note.at, tone, format!("{sign}{}", note.text)));
}

fn tell_request(view: &mut View<'_>, foreign: &Foreign) {
    if !view.teller.everything {
        return;
    }
    if let Some((user, what)) = request(foreign) {
        view.line(&Line::new(foreign.at, Tone::Quiet, format!("{user}: {what}")));
    }
}

fn request(foreign: &Foreign) -> Option<(String, String)> {
    if foreign.stream != API_STREAM {
        return None;
    }
    let event = ApiEvent::from_bytes(&foreign.bytes).ok()?;
    Some((event.user.name.to_string(), requests::asked(&event).what))
}

fn show_pod(
    storage: &Arc<dyn Storage>,
    pod: &PodName,
    until: Option<Position>,
    beginning: Time,
    json: bool,
    out: &mut Out,
) -> Result<Ending> {
    let replayed = nodefold_journal::replay::<Node>(storage, until)?;
    let Replayed { fold: node, report, .. } = &replayed;
    let found = node.find_pod(&pod.namespace, &pod.name).and_then(|uid| Some((uid, pods::state(node, uid)?)));
    let Some((uid, state)) = found else {
        return Err(not_there(storage, pod, report.records)?.into());
    };
    if json {
        let object = json::object("pod", Some(report.at), beginning);
        let object = json::with(
            object,
            json!({"number": report.records, "pod": pod.to_string(), "uid": uid.to_string()}),
        );
        out.line(json::with(object, state));
        return Ok(Ending::Good);
    }
    let moment = format!("after record {}, {}", report.records, clock(report.at, beginning));
    for (i, (part, title)) in
        [("desired", "as desired"), ("allocated", "as allocated"), ("status", "its status")]
            .iter()
            .enumerate()
    {
        if i > 0 {
            out.line("---");
        }
        out.line(paint(Tone::Quiet.style(), format!("# {pod}, {title}, {moment}")));
        match state[part].is_null() {
            true => out.line(paint(Tone::Quiet.style(), "# nothing yet")),
            false => out.line(yaml::text(&state[part]).trim_end()),
        }
    }
    Ok(Ending::Good)
}

/// Says when the pod was there, if it ever was.
fn not_there(
    storage: &Arc<dyn Storage>,
    pod: &PodName,
    record: u64,
) -> Result<Unusable, nodefold_journal::Error> {
    let mut names = Names::default();
    let mut present: BTreeMap<PodUid, (u64, u64)> = BTreeMap::new();
    replay_each::<Node>(storage, None, &mut |step: Step<'_, Node>| {
        if let Record::Fact(event) = step.record
            && let Fact::PodApplied(pod) = &event.fact
        {
            names.learn_pod(pod);
        }
        for uid in names.lives_of(&pod.namespace, &pod.name) {
            if step.fold.desired(uid).is_some() {
                present.entry(uid).or_insert((step.number, step.number)).1 = step.number;
            }
        }
    })?;
    let what = format!("the node knows no pod {pod} after record {record}");
    let spans: Vec<String> = present.values().map(|(from, to)| format!("records {from} to {to}")).collect();
    Ok(match present.values().last() {
        Some((_, last)) => {
            Unusable::new(what, format!("it knew it from {}: ask with --at {last}", spans.join(" and from ")))
        }
        None => Unusable::new(what, format!("the pods of this journal are: {}", names.listed())),
    })
}
