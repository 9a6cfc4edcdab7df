//! `nodefold check`: explores scopes exhaustively and shows how far it is, what it counted and what it found.

use crate::args;
use crate::check_sabotage::sabotage;
use crate::ending::{Ending, Unusable};
use crate::out::Out;
use crate::paint::{Tone, paint};
use anyhow::Result;
use nodefold_harness::check::{Checked, NAMED, Outcome, Scope, Subject, check as explore, named};
use nodefold_model::explore::{Checkpoint, Progress};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// How often a long search says how far it is.
const TOLD_EVERY: Duration = Duration::from_secs(5);

/// Checks one scope, or all that have names.
pub fn check(args: &args::Check, out: &mut Out) -> Result<Ending> {
    if args.list {
        for (name, _) in NAMED {
            let scope = find(name)?;
            out.line(format!("{name:<18} {}", scope.about));
        }
        return Ok(Ending::Good);
    }
    if let Some(name) = &args.sabotage {
        return sabotage(args, name, out);
    }
    let names: Vec<&str> = match &args.scope {
        Some(one) => vec![one],
        None => NAMED.iter().map(|(name, _)| *name).collect(),
    };
    let mut worst = Ending::Good;
    for name in names {
        worst = worst.max(one(&find(name)?, args, out)?);
    }
    Ok(worst)
}

/// A scope by name, or from a file.
pub fn find(name: &str) -> Result<Scope> {
    if let Some(scope) = named(name) {
        return Ok(scope?);
    }
    let text = std::fs::read_to_string(name).map_err(|error| {
        let known: Vec<&str> = NAMED.iter().map(|(name, _)| *name).collect();
        Unusable::new(
            format!("{name}: {error}"),
            format!("name a scenario file, or one of: {}", known.join(", ")),
        )
    })?;
    Ok(Scope::parse(&text, name)?)
}

#[expect(
    clippy::disallowed_methods,
    reason = "a search has a limit and says how fast it is; its results don't depend on it"
)]
fn one(scope: &Scope, args: &args::Check, out: &mut Out) -> Result<Ending> {
    let limit = args.time.as_deref().map(duration).transpose()?;
    let from = args.checkpoint.as_deref().filter(|file| file.exists()).map(read).transpose()?;
    let (jobs, reduce, symmetry, depth_first) =
        (args.jobs.max(1), args.reduce, args.symmetry, args.depth_first);
    let how = Checked { jobs, reduce, symmetry, depth_first };
    let begun = Instant::now();
    let mut told = begun;
    let mut go_on = |progress: &Progress| {
        if told.elapsed() >= TOLD_EVERY {
            told = Instant::now();
            out.complain(line(&scope.name, progress, begun.elapsed()));
        }
        limit.is_none_or(|limit| begun.elapsed() < limit)
    };
    let outcome = explore(scope, &Subject::default(), how, from, &mut go_on)
        .map_err(|why| Unusable::new(format!("{}: {why}", scope.name), ""))?;
    let took = begun.elapsed();
    if let (Some(file), Some(checkpoint)) = (&args.checkpoint, &outcome.checkpoint) {
        write(file, checkpoint)?;
    }
    if let (Some(file), Some((_, story))) = (&args.counterexample, &outcome.found) {
        std::fs::write(file, story)
            .map_err(|error| Unusable::new(format!("{}: {error}", file.display()), ""))?;
    }
    if args.json {
        out.line(as_json(scope, &outcome, took));
    } else {
        tell(scope, &outcome, took, args, out);
    }
    Ok(if outcome.found.is_some() { Ending::Broken } else { Ending::Good })
}

fn tell(scope: &Scope, outcome: &Outcome, took: Duration, args: &args::Check, out: &mut Out) {
    let progress = &outcome.report.progress;
    let (tone, sign, word) = match (&outcome.found, outcome.report.complete) {
        (Some(_), _) => (Tone::Bad, '✗', "is broken"),
        (None, true) => (Tone::Good, '✓', "holds, explored whole"),
        (None, false) => (Tone::Step, '…', "holds as far as it was explored"),
    };
    let head = paint(tone.style(), format!("{sign} {} {word}", scope.name));
    out.line(format!("{head}: {}, {} settled", figures(progress, took), outcome.report.settled));
    if !outcome.report.complete && outcome.found.is_none() {
        out.line(format!("  {} states were found and not expanded", progress.queue));
    }
    if let Some((what, story)) = &outcome.found {
        out.line(format!("  {what}"));
        match &args.counterexample {
            Some(file) => out.line(format!("  the story of it: `nodefold run {}`", file.display())),
            None => out.lines(story.lines()),
        }
    }
}

fn line(name: &str, progress: &Progress, took: Duration) -> String {
    format!("{name}: {}, {} queued", figures(progress, took), progress.queue)
}

fn figures(progress: &Progress, took: Duration) -> String {
    let seconds = took.as_secs_f64().max(0.000_001);
    format!(
        "{} states, {} steps, depth {}, {:.1} s, {:.0} states/s, {} bytes/state",
        progress.states,
        progress.generated,
        progress.depth,
        took.as_secs_f64(),
        progress.states as f64 / seconds,
        progress.bytes / progress.states.max(1),
    )
}

fn as_json(scope: &Scope, outcome: &Outcome, took: Duration) -> Value {
    let progress = &outcome.report.progress;
    let found = outcome.found.as_ref().map(|(what, story)| json!({"what": what, "scenario": story}));
    json!({
        "object": "check", "scope": scope.name, "complete": outcome.report.complete, "states": progress.states,
        "steps": progress.generated, "depth": progress.depth, "queue": progress.queue,
        "settled": outcome.report.settled, "bytes": progress.bytes, "seconds": took.as_secs_f64(), "found": found,
    })
}

fn duration(text: &str) -> Result<Duration> {
    let remedy = "write a number with a unit: 90s, 10m, 1h";
    let unusable = || Unusable::new(format!("--time {text:?} is no time"), remedy);
    let (number, unit) = text.split_at(text.len() - text.chars().last().map_or(0, char::len_utf8));
    let number: u64 = number.parse().map_err(|_| unusable())?;
    let seconds = match unit {
        "s" => number,
        "m" => number.saturating_mul(60),
        "h" => number.saturating_mul(3600),
        _ => return Err(unusable().into()),
    };
    Ok(Duration::from_secs(seconds))
}

fn read(file: &Path) -> Result<Checkpoint> {
    let name = file.display();
    let bytes = std::fs::read(file).map_err(|error| Unusable::new(format!("{name}: {error}"), ""))?;
    let checkpoint = Checkpoint::from_bytes(&bytes)
        .map_err(|error| Unusable::new(format!("{name}: {error}"), "remove it to begin anew"))?;
    Ok(checkpoint)
}

fn write(file: &Path, checkpoint: &Checkpoint) -> Result<()> {
    std::fs::write(file, checkpoint.to_bytes())
        .map_err(|error| Unusable::new(format!("{}: {error}", file.display()), ""))?;
    Ok(())
}
