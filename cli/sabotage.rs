//! `nodefold sim --sabotage`: whether the hunt catches a node that is wrong in one historical way, by which invariant, and how
//! soon. What is printed is measured.

use crate::args;
use crate::ending::{Ending, Unusable};
use crate::out::Out;
use crate::paint::{Tone, paint};
use crate::sim::{save, seeds};
use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget};
use nodefold_harness::shrink::shrink;
use nodefold_harness::{BEGINNINGS, Hunted, Saboteur, WITHIN};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Seeds after which a saboteur counts as escaped, unless `--seeds` says otherwise.
const LIMIT: u64 = 2000;
/// A shrunk story has no more steps.
const SHORT: usize = 15;
/// Longest time for one story's shrinking.
const SHRINKING: Duration = Duration::from_secs(20);

/// How the hunts of one saboteur went.
struct Measured {
    saboteur: &'static Saboteur,
    /// What caught it, one entry for each start; empty: it escaped.
    caught_by: Vec<String>,
    /// What else was broken on the way, of what it may break as well.
    also: BTreeSet<String>,
    /// Median seeds.
    seeds: u64,
    /// Median time.
    took: Duration,
    /// Steps of the shrunk story of the first start.
    shrunk: Option<usize>,
    /// The shrunk story.
    story: Option<String>,
    /// What was violated first.
    what: String,
}

impl Measured {
    /// Every start ended in a violation of the invariant that it stands for.
    fn is_right(&self) -> bool {
        self.caught_by.iter().all(|by| *by == self.saboteur.breaks.to_string())
    }

    /// It came soon, and its story is short.
    fn is_soon_and_short(&self) -> bool {
        self.seeds <= WITHIN && self.shrunk.is_some_and(|steps| steps <= SHORT)
    }

    /// The invariants that caught it, each once.
    fn by(&self) -> String {
        let mut by: Vec<&str> =
            self.caught_by.iter().map(|by| if by.is_empty() { "escaped" } else { by.as_str() }).collect();
        by.sort_unstable();
        by.dedup();
        by.join(" ")
    }
}

/// Hunts one saboteur, or all of them.
pub fn sabotage(args: &args::Sim, name: &str, out: &mut Out) -> Result<Ending> {
    let range = seeds(args)?;
    let limit = if args.seeds.is_some() { range.end - range.start } else { LIMIT };
    let start = if args.seeds.is_some() { range.start } else { 0 };
    let all = name == "all";
    let hunted: Vec<&'static Saboteur> = if all {
        Saboteur::all().collect()
    } else {
        let unknown = || {
            let names: Vec<&str> = Saboteur::all().map(|s| s.name).collect();
            Unusable::new(format!("unknown saboteur {name:?}"), format!("use: all, {}", names.join(", ")))
        };
        vec![Saboteur::named(name).ok_or_else(unknown)?]
    };
    let bar = ProgressBar::new(hunted.len() as u64);
    bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(4));
    let jobs = args.jobs.unwrap_or(std::thread::available_parallelism().map_or(1, usize::from)).max(1);
    let next = AtomicUsize::new(0);
    let measured: Mutex<Vec<(usize, Measured)>> = Mutex::new(Vec::new());
    std::panic::set_hook(Box::new(|_| {}));
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(hunted.len()) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(saboteur) = hunted.get(at) else { return };
                    let one =
                        measure(saboteur, start, limit, if all { &BEGINNINGS } else { &BEGINNINGS[..1] });
                    measured.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((at, one));
                    bar.inc(1);
                }
            });
        }
    });
    let _ = std::panic::take_hook();
    bar.finish_and_clear();
    let mut measured = measured.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    measured.sort_by_key(|(at, _)| *at);
    let dir = args.out.clone().unwrap_or_else(|| PathBuf::from("nodefold-found"));
    for (_, one) in &measured {
        if let Some(story) = &one.story {
            save(&dir.join(format!("{}.yaml", one.saboteur.name)), story)?;
        }
    }
    if !args.json && all {
        out.line(format!(
            "{:<42} {:<14} {:<6} {:<10} {:>6} {:>8} {:>6}  also",
            "saboteur", "races", "breaks", "caught by", "seeds", "ms", "steps"
        ));
    }
    for (_, one) in &measured {
        out.line(if args.json { json_of(one).to_string() } else { line_of(one, all) });
    }
    let right = measured.iter().filter(|(_, one)| one.is_right()).count();
    let kept = measured.iter().filter(|(_, one)| one.is_soon_and_short()).count();
    let good = right == measured.len() && kept == measured.len();
    if !args.json && all {
        let (tone, sign) = if good { (Tone::Good, '✓') } else { (Tone::Bad, '✗') };
        let text = format!(
            "{sign} {right} of {} caught by the invariant that they break; {kept} within {WITHIN} seeds and {SHORT} steps",
            measured.len()
        );
        out.line(paint(tone.style(), text));
    }
    // One saboteur must end in a violation, as any broken node does; the table is good if every one did, in the right one, soon
    // and in few words.
    Ok(match (all, good) {
        (true, true) => Ending::Good,
        (true, false) => Ending::Broken,
        (false, _) if measured.iter().all(|(_, one)| one.what.is_empty()) => Ending::Good,
        (false, _) => Ending::Broken,
    })
}

#[expect(clippy::disallowed_methods, reason = "how soon it is caught is what is measured")]
fn measure(saboteur: &'static Saboteur, start: u64, limit: u64, beginnings: &[u64]) -> Measured {
    let mut runs: Vec<(u64, Duration)> = Vec::new();
    let mut one = Measured {
        saboteur,
        caught_by: Vec::new(),
        also: BTreeSet::new(),
        seeds: 0,
        took: Duration::ZERO,
        shrunk: None,
        story: None,
        what: String::new(),
    };
    for beginning in beginnings {
        let began = Instant::now();
        let caught = saboteur.caught_from(start + beginning, limit);
        let took = began.elapsed();
        runs.push((caught.as_ref().map_or(limit, |caught| caught.seeds), took));
        one.caught_by.push(caught.as_ref().map(|caught| caught.by.clone()).unwrap_or_default());
        one.also.extend(caught.iter().flat_map(|caught| caught.also.iter().cloned()));
        let (Some(Hunted { report, .. }), None) = (&caught, &one.story) else { continue };
        let Some(broken) = report.broken.first() else { continue };
        one.what.clone_from(&broken.what);
        let began = Instant::now();
        let shrunk = shrink(&report.history, &saboteur.driven(), &mut || began.elapsed() < SHRINKING);
        one.shrunk = shrunk.as_ref().map(|shrunk| shrunk.history.steps.len());
        one.story = shrunk.map(|shrunk| shrunk.history.to_text(saboteur.name, &broken.what));
    }
    runs.sort_unstable();
    if let Some((seeds, _)) = runs.get(runs.len() / 2) {
        one.seeds = *seeds;
    }
    let mut times: Vec<Duration> = runs.iter().map(|(_, took)| *took).collect();
    times.sort_unstable();
    if let Some(took) = times.get(times.len() / 2) {
        one.took = *took;
    }
    one
}

fn line_of(one: &Measured, all: bool) -> String {
    let tone = if one.is_right() { Tone::Good } else { Tone::Bad };
    let steps = one.shrunk.map_or("-".to_owned(), |steps| steps.to_string());
    let races = if one.saboteur.races.is_empty() { "-".to_owned() } else { one.saboteur.races.join(" ") };
    let also: Vec<&str> = one.also.iter().map(String::as_str).collect();
    let line = format!(
        "{:<42} {:<14} {:<6} {} {:>6} {:>8} {:>6}  {}",
        one.saboteur.name,
        races,
        one.saboteur.breaks.to_string(),
        paint(tone.style(), format!("{:<10}", one.by())),
        one.seeds,
        one.took.as_millis(),
        steps,
        also.join(" "),
    );
    let line = line.trim_end();
    if all { line.to_owned() } else { format!("{}\n{line}\n{}", one.saboteur.about, one.what) }
}

fn json_of(one: &Measured) -> Value {
    json!({
        "record": "saboteur", "name": one.saboteur.name, "about": one.saboteur.about, "races": one.saboteur.races,
        "breaks": one.saboteur.breaks.to_string(), "caughtBy": one.caught_by, "also": one.also, "seeds": one.seeds,
        "milliseconds": one.took.as_millis() as u64, "shrunkSteps": one.shrunk, "what": one.what,
    })
}
