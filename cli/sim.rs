//! `nodefold sim`: hunts with many seeds at once, and says what broke, how fast it went and what it never reached.

use crate::args;
use crate::ending::{Ending, Unusable};
use crate::out::Out;
use crate::paint::{Tone, paint};
use crate::sabotage;
use anyhow::Result;
use crossbeam_channel::{Receiver, Sender, bounded};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use nodefold_core::codec;
use nodefold_harness::swarm::{ALL_KINDS, Coverage, Kind, SeedReport, SwarmOptions, Totals, run_seed};
use serde_json::{Value, json};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How many seeds are run if nobody says.
const SEEDS: u64 = 1000;

/// Hunts.
pub fn sim(args: &args::Sim, out: &mut Out) -> Result<Ending> {
    if let Some(name) = &args.sabotage {
        return sabotage::sabotage(args, name, out);
    }
    let options =
        SwarmOptions { only: kinds(&args.only)?, without: kinds(&args.without)?, ..SwarmOptions::default() };
    let seeds = seeds(args)?;
    let limit = args.time.as_deref().map(time).transpose()?;
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = args.jobs.unwrap_or(available).max(1);
    let mut hunt = Hunt::new(args, &seeds, limit);
    std::panic::set_hook(Box::new(|_| {}));
    std::thread::scope(|scope| {
        // A worker never waits for a seed, and at the end none runs that nobody waits for.
        let (give, take): (Sender<u64>, Receiver<u64>) = bounded(jobs * 2);
        let (tell, hear) = bounded(jobs * 2);
        for _ in 0..jobs {
            let (take, tell, options) = (take.clone(), tell.clone(), &options);
            scope.spawn(move || {
                for seed in take {
                    if tell.send(run_seed(seed, options)).is_err() {
                        return;
                    }
                }
            });
        }
        drop((take, tell));
        let mut ahead = 0;
        for seed in seeds.clone() {
            if limit.is_some_and(|limit| hunt.bar.elapsed() >= limit) || give.send(seed).is_err() {
                break;
            }
            ahead += 1;
            while let Ok(report) = hear.try_recv() {
                ahead -= 1;
                hunt.hear(report, out);
            }
            // As many on their way as both channels hold: nobody ever blocks for good.
            if ahead > jobs * 3
                && let Ok(report) = hear.recv()
            {
                ahead -= 1;
                hunt.hear(report, out);
            }
        }
        drop(give);
        for report in hear {
            hunt.hear(report, out);
        }
    });
    let _ = std::panic::take_hook();
    hunt.tell_end(out)
}

fn kinds(names: &[String]) -> Result<Vec<Kind>> {
    let known = |name: &String| {
        Kind::named(name).ok_or_else(|| {
            let names: Vec<&str> = ALL_KINDS.iter().map(|kind| kind.name()).collect();
            Unusable::new(format!("unknown fault or action {name:?}"), format!("use: {}", names.join(", ")))
        })
    };
    Ok(names.iter().map(known).collect::<Result<_, _>>()?)
}

/// `1000` are the first thousand; `20..30` are ten.
pub fn seeds(args: &args::Sim) -> Result<Range<u64>> {
    if let Some(seed) = args.seed {
        return Ok(seed..seed.saturating_add(1));
    }
    let wrong = |text: &str| Unusable::new(format!("{text:?} is no range of seeds"), "write 1000, or 20..30");
    Ok(match args.seeds.as_deref().map(|text| (text, text.split_once(".."))) {
        None if args.time.is_some() => 0..u64::MAX,
        None => 0..SEEDS,
        Some((text, None)) => 0..text.parse().map_err(|_| wrong(text))?,
        Some((text, Some((from, to)))) => {
            let (from, to) = (from.parse().map_err(|_| wrong(text))?, to.parse().map_err(|_| wrong(text))?);
            if to <= from {
                return Err(wrong(text).into());
            }
            from..to
        }
    })
}

fn time(text: &str) -> Result<Duration> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let seconds = match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => 0,
    };
    match number.parse::<u64>() {
        Ok(number) if seconds > 0 => Ok(Duration::from_secs(number.saturating_mul(seconds))),
        Ok(_) | Err(_) => {
            Err(Unusable::new(format!("{text:?} is no length of time"), "write 60s, 5m or 1h").into())
        }
    }
}

/// A hunt under way.
struct Hunt {
    bar: ProgressBar,
    json: bool,
    dir: PathBuf,
    seeds: u64,
    broken: u64,
    totals: Totals,
    coverage: Coverage,
    /// Of all seeds together, in whatever order they end.
    digest: u128,
    failed_to_save: Option<anyhow::Error>,
}

impl Hunt {
    fn new(args: &args::Sim, seeds: &Range<u64>, limit: Option<Duration>) -> Hunt {
        let count = seeds.end - seeds.start;
        let bar = if limit.is_some() { ProgressBar::no_length() } else { ProgressBar::new(count) };
        bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(4));
        let shape =
            if limit.is_some() { "{elapsed} {pos} seeds {msg}" } else { "{wide_bar} {pos}/{len} {msg}" };
        if let Ok(style) = ProgressStyle::with_template(shape) {
            bar.set_style(style);
        }
        Hunt {
            bar,
            json: args.json,
            dir: args.out.clone().unwrap_or_else(|| PathBuf::from("nodefold-found")),
            seeds: 0,
            broken: 0,
            totals: Totals::default(),
            coverage: Coverage::default(),
            digest: 0,
            failed_to_save: None,
        }
    }

    fn hear(&mut self, report: SeedReport, out: &mut Out) {
        self.seeds += 1;
        self.totals.add(&report.totals);
        self.coverage.add(&report.coverage);
        self.digest = self.digest.wrapping_add(codec::hash(&(report.seed, report.digest.0)).0);
        self.bar.inc(1);
        let (reached, all) = self.coverage.reached();
        let speed = self.seeds as u128 * 1000 / self.bar.elapsed().as_millis().max(1);
        let simulated = self.totals.simulated / 3_600_000_000_000;
        self.bar.set_message(format!(
            "{speed} seeds/s, {simulated} h simulated, {reached}/{all} pairs, {} broke",
            self.broken
        ));
        if !report.broken.is_empty() {
            self.broken += 1;
            self.tell_broken(&report, out);
        }
    }

    /// One line: build, seed, profile, step, invariant, saved file.
    fn tell_broken(&mut self, report: &SeedReport, out: &mut Out) {
        let Some(broken) = report.broken.first() else { return };
        let file = self.dir.join(format!("seed-{}.yaml", report.seed));
        let about = format!("{} {}", build(), broken.what.lines().next().unwrap_or_default());
        let text = report.history.to_text(&format!("seed-{}", report.seed), &about);
        if let Err(error) = save(&file, &text) {
            self.failed_to_save.get_or_insert(error);
        }
        let choices = report.totals.choices;
        let line = if self.json {
            json!({
                "record": "broken", "build": build(), "seed": report.seed, "profile": report.profile,
                "choice": choices, "steps": report.history.steps.len(), "invariant": broken.invariant,
                "what": broken.what, "history": file.display().to_string(),
            })
            .to_string()
        } else {
            format!(
                "{} {} seed {} ({}) at choice {choices}: {}  {}",
                paint(Tone::Bad.style(), &broken.invariant),
                build(),
                report.seed,
                report.profile,
                broken.what,
                paint(Tone::Quiet.style(), format!("nodefold shrink {}", file.display())),
            )
        };
        self.bar.suspend(|| out.line(line));
    }

    fn tell_end(self, out: &mut Out) -> Result<Ending> {
        self.bar.finish_and_clear();
        if let Some(error) = self.failed_to_save {
            return Err(error);
        }
        let ending = if self.broken == 0 { Ending::Good } else { Ending::Broken };
        let took = self.bar.elapsed();
        let (reached, all) = self.coverage.reached();
        if self.json {
            out.line(self.summary_json(took));
            return Ok(ending);
        }
        for (state, events) in self.coverage.unvisited() {
            out.line(paint(Tone::Quiet.style(), format!("never reached: {state} met {}", events.join(", "))));
        }
        let unused = self.coverage.unused_rules();
        if !unused.is_empty() {
            out.line(paint(Tone::Quiet.style(), format!("never commanded: by {}", unused.join(", "))));
        }
        let totals = &self.totals;
        let per_second = |n: u64| u128::from(n) * 1000 / took.as_millis().max(1);
        let (tone, sign) = if self.broken == 0 { (Tone::Good, '✓') } else { (Tone::Bad, '✗') };
        out.line(format!(
            "{}: {} simulated seconds in {:.1} s, {} choices/s, {} pods of which {} were released, {} crashes, {reached} of \
             {all} pairs, digest {:032x}",
            paint(tone.style(), format!("{sign} {} of {} seeds broke an invariant", self.broken, self.seeds)),
            totals.simulated / 1_000_000_000,
            took.as_secs_f64(),
            per_second(totals.choices),
            totals.pods,
            totals.released,
            totals.crashes,
            self.digest,
        ));
        Ok(ending)
    }

    fn summary_json(&self, took: Duration) -> Value {
        let (reached, all) = self.coverage.reached();
        let unvisited = self.coverage.unvisited().into_iter();
        let unvisited: Vec<Value> =
            unvisited.map(|(state, events)| json!({"state": state, "events": events})).collect();
        json!({
            "record": "hunt", "build": build(), "seeds": self.seeds, "broken": self.broken,
            "totals": self.totals, "milliseconds": took.as_millis() as u64, "digest": format!("{:032x}", self.digest),
            "pairs": {"reached": reached, "all": all, "unvisited": unvisited},
            "unusedRules": self.coverage.unused_rules(),
        })
    }
}

/// Which program it was.
fn build() -> String {
    format!("nodefold {}", nodefold_journal::SOFTWARE)
}

/// Writes a file, and the directories that it is in.
pub fn save(file: &Path, text: &str) -> Result<()> {
    let failed = |error: std::io::Error| {
        Unusable::new(
            format!("{}: {error}", file.display()),
            "name a directory that can be written with --out",
        )
    };
    if let Some(dir) = file.parent() {
        std::fs::create_dir_all(dir).map_err(failed)?;
    }
    std::fs::write(file, text).map_err(failed)?;
    Ok(())
}
