//! `nodefold history`: every run of every container that a served node's journal tells of, and who asked for it.

use crate::args;
use crate::ending::Ending;
use crate::out::Out;
use anyhow::Result;
use nodefold_agent::server::API_STREAM;
use nodefold_agent::server::history::{History, ran_at};
use nodefold_api::ApiEvent;
use nodefold_journal::{Files, Reader, Record};
use serde_json::Value;

/// Tells them, oldest first.
pub fn history(args: &args::History, out: &mut Out) -> Result<Ending> {
    let mut history = History::default();
    for entry in Reader::open(&Files::at(&args.journal))? {
        match entry?.record {
            Record::Fact(event) => history.fact(&event),
            Record::Foreign(foreign) if foreign.stream == API_STREAM => {
                history.request(&ApiEvent::from_bytes(&foreign.bytes)?);
            }
            Record::Foreign(_)
            | Record::Header(_)
            | Record::BatchEnd(_)
            | Record::Snapshot(_)
            | Record::Skipped(_)
            | Record::Note(_) => {}
        }
    }
    for run in history.runs() {
        let run = history.object(run);
        if args.at.as_ref().is_some_and(|at| !ran_at(&run, at)) {
            continue;
        }
        if args.json {
            out.line(run.to_string());
            continue;
        }
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        let (spec, status) = (&run["spec"], &run["status"]);
        let ended = match status["exitCode"].as_i64() {
            Some(code) => format!("{}  {code} {}", text(&status["finishedAt"]), text(&status["reason"])),
            None => "runs".to_owned(),
        };
        out.line(format!(
            "{}  {}/{}/{}#{}.{}  asked by {}  {ended}",
            text(&status["startedAt"]),
            text(&run["metadata"]["namespace"]),
            text(&spec["pod"]),
            text(&spec["container"]),
            spec["incarnation"],
            spec["attempt"],
            text(&spec["askedBy"])
        ));
    }
    Ok(Ending::Good)
}
