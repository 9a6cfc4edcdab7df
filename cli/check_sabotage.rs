//! `nodefold check --sabotage`: in which scope exploration finds a node that is wrong in one historical way, by which
//! invariant and how short a story; and whether the specification finds it by itself.

use crate::args;
use crate::check::find;
use crate::ending::{Ending, Unusable};
use crate::out::Out;
use crate::paint::{Tone, paint};
use anyhow::Result;
use nodefold_harness::Saboteur;
use nodefold_harness::check::{Caught, NAMED, Scope, catch};
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How a saboteur fared.
struct Fared {
    saboteur: &'static Saboteur,
    /// Found by the oracles.
    oracles: Option<Caught>,
    /// Found by the specification alone.
    refinement: Option<Caught>,
}

/// Explores one saboteur, or all of them.
pub fn sabotage(args: &args::Check, name: &str, out: &mut Out) -> Result<Ending> {
    let scopes: Vec<Scope> = match &args.scope {
        Some(one) => vec![find(one)?],
        None => NAMED.iter().map(|(name, _)| find(name)).collect::<Result<_>>()?,
    };
    let saboteurs: Vec<&'static Saboteur> = if name == "all" {
        Saboteur::all().collect()
    } else {
        let unknown = || {
            let names: Vec<&str> = Saboteur::all().map(|s| s.name).collect();
            Unusable::new(format!("unknown saboteur {name:?}"), format!("use: all, {}", names.join(", ")))
        };
        let one = Saboteur::named(name).ok_or_else(unknown)?;
        if one.needs_a_disk() {
            let remedy = format!("hunt it: `nodefold sim --sabotage {name}`");
            return Err(Unusable::new(
                format!("{name} is about a disk, and what is explored has none"),
                remedy,
            )
            .into());
        }
        vec![one]
    };
    let fared = explore(&saboteurs, &scopes, args);
    if let ([one], Some(file)) = (&fared[..], &args.counterexample)
        && let Some(caught) = one.oracles.as_ref().or(one.refinement.as_ref())
    {
        std::fs::write(file, &caught.story)
            .map_err(|error| Unusable::new(format!("{}: {error}", file.display()), ""))?;
    }
    if !args.json && fared.len() > 1 {
        out.line(format!(
            "{:<42} {:<7} {:<10} {:<17} {:>5} {:>7}  {}",
            "saboteur", "breaks", "found by", "in scope", "steps", "states", "by the specification alone"
        ));
    }
    for one in &fared {
        out.line(if args.json { json_of(one).to_string() } else { line_of(one) });
        if let ([_], false) = (&fared[..], args.json) {
            for caught in [&one.oracles, &one.refinement].into_iter().flatten() {
                out.line(format!("  {}: {}", caught.scope, caught.what));
            }
        }
    }
    let found = fared.iter().filter(|one| one.oracles.is_some() || one.refinement.is_some()).count();
    if !args.json && fared.len() > 1 {
        let alone = fared.iter().filter(|one| one.refinement.is_some()).count();
        out.line(format!("{found} of {} found, {alone} by the specification alone", fared.len()));
    }
    // A saboteur that is found is a broken node; the table is only shown.
    Ok(if name != "all" && found > 0 { Ending::Broken } else { Ending::Good })
}

/// Each saboteur on one thread, several at once; the results are in the saboteurs' order.
fn explore(saboteurs: &[&'static Saboteur], scopes: &[Scope], args: &args::Check) -> Vec<Fared> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    // The core's own assertions find some of them.
    std::panic::set_hook(Box::new(|_| {}));
    std::thread::scope(|scope| {
        for _ in 0..args.jobs.clamp(1, saboteurs.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(saboteur) = saboteurs.get(at) else { return };
                    let caught = |judged| {
                        let none = saboteur.needs_a_disk();
                        (!none).then(|| catch(saboteur, scopes, args.states, args.reduce, judged)).flatten()
                    };
                    let (oracles, refinement) = (caught(true), caught(false));
                    let fared = Fared { saboteur, oracles, refinement };
                    done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((at, fared));
                }
            });
        }
    });
    drop(std::panic::take_hook());
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, fared)| fared).collect()
}

fn line_of(one: &Fared) -> String {
    let breaks = one.saboteur.breaks.to_string();
    let right = one.oracles.as_ref().is_some_and(|caught| caught.by == breaks);
    let tone = if right { Tone::Good } else { Tone::Step };
    let (by, scope, steps, states) = match &one.oracles {
        Some(c) => (c.by.as_str(), c.scope.as_str(), c.steps.to_string(), c.states.to_string()),
        None => ("-", "-", "-".to_owned(), "-".to_owned()),
    };
    let alone = match &one.refinement {
        None if one.saboteur.needs_a_disk() => "not explored: it needs a disk".to_owned(),
        Some(caught) => format!("{} in {}, {} steps", caught.by, caught.scope, caught.steps),
        None => "-".to_owned(),
    };
    let by = paint(tone.style(), format!("{by:<10}"));
    format!("{:<42} {breaks:<7} {by} {scope:<17} {steps:>5} {states:>7}  {alone}", one.saboteur.name)
}

fn json_of(one: &Fared) -> Value {
    let caught = |caught: &Option<Caught>| {
        caught.as_ref().map(|c| {
            json!({
                "by": c.by, "scope": c.scope, "steps": c.steps, "states": c.states, "what": c.what,
                "scenario": c.story,
            })
        })
    };
    json!({
        "object": "checkedSaboteur", "name": one.saboteur.name, "about": one.saboteur.about,
        "breaks": one.saboteur.breaks.to_string(), "oracles": caught(&one.oracles),
        "specification": caught(&one.refinement),
    })
}
