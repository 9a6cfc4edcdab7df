//! `nodefold history`: what ran, was mounted and was allocated, as a served node's journal tells it, and who asked for it.

use crate::args;
use crate::ending::Ending;
use crate::out::Out;
use anyhow::Result;
use nodefold_agent::clock;
use nodefold_agent::server::history::{Kind, Past, When, when};
use nodefold_k8s::time;
use serde_json::Value;

/// Tells it, oldest first.
pub fn history(args: &args::History, out: &mut Out) -> Result<Ending> {
    let when = match (&args.at, &args.ago, &args.as_of) {
        (Some(at), _, _) => When::At(time::parse(at)?),
        (_, Some(ago), _) => When::At(when::ago(ago, clock::now()).map_err(anyhow::Error::msg)?),
        (_, _, Some(then)) => When::AsOf(time::parse(then)?),
        (None, None, None) => args.revision.map_or(When::Now, When::Revision),
    };
    // The journal is there, and it is one: a directory that is none is no node without a history.
    for object in Past::of_journal(&args.journal, args.what.kind(), when)? {
        if args.json {
            out.line(object.to_string());
        } else {
            out.line(line(&object, args.what.kind()));
        }
    }
    Ok(Ending::Good)
}

fn line(object: &Value, kind: Kind) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let (spec, status) = (&object["spec"], &object["status"]);
    let pod = format!("{}/{}", text(&object["metadata"]["namespace"]), text(&spec["pod"]));
    let by = text(&spec["askedBy"]);
    match kind {
        Kind::ContainerRun => {
            let ended = match status["exitCode"].as_i64() {
                Some(code) => format!("{}  {code} {}", text(&status["finishedAt"]), text(&status["reason"])),
                None => "runs".to_owned(),
            };
            let (began, container) = (text(&status["startedAt"]), text(&spec["container"]));
            let life = format!("{}.{}", spec["incarnation"], spec["attempt"]);
            format!("{began}  {pod}/{container}#{life}  asked by {by}  {ended}")
        }
        Kind::VolumeRun => {
            let ended = match status["unmountedAt"].as_str() {
                Some(at) => at.to_owned(),
                None => "mounted".to_owned(),
            };
            let (began, volume) = (text(&status["mountedAt"]), text(&spec["volume"]));
            let (life, source) = (&spec["generation"], text(&spec["source"]));
            format!("{began}  {pod}/{volume}#{life}  {source}  asked by {by}  {ended}")
        }
        Kind::Allocation => {
            let names = |field: &str| {
                let names = spec[field].as_array().into_iter().flatten();
                names.map(|one| text(&one["name"])).collect::<Vec<_>>().join(",")
            };
            let (began, generation) = (text(&status["allocatedAt"]), &spec["generation"]);
            let (containers, volumes) = (names("containers"), names("volumes"));
            format!("{began}  {pod}  generation {generation}  [{containers}] [{volumes}]  asked by {by}")
        }
    }
}
