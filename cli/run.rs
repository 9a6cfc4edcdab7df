//! `nodefold run`: plays scenarios on a simulated node or on this host, shows what happens and how it ended.

use crate::args::{self, BackendKind};
use crate::ending::{Ending, Unusable};
use crate::journal::RunJournal;
use crate::json;
use crate::linux;
use crate::names::{Names, clock};
use crate::out::Out;
use crate::paint::{Tone, paint};
use crate::picture;
use crate::view::{Form, View};
use anyhow::Result;
use nodefold_core::time::Time;
use nodefold_harness::log::LogError;
use nodefold_harness::world::BEGINNING;
use nodefold_harness::{Observer, Outcome, Record, RunOptions, Scenario, Verdict, node_config};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Runs all of them. Nothing runs if one of the files can't be read.
pub fn run(args: &args::Run, out: &mut Out) -> Result<Ending> {
    let mut scenarios = Vec::new();
    let mut unusable = 0;
    for file in &args.scenarios {
        match read(file) {
            Ok(scenario) => scenarios.push(scenario),
            Err(error) => {
                unusable += 1;
                out.complain(format!("{} {error}", paint(Tone::Bad.style(), "error:")));
            }
        }
    }
    if unusable > 0 {
        return Ok(Ending::Unusable);
    }
    let directories = directories(args, &scenarios)?;
    let pages = pages(args, &scenarios)?;
    let standing = match args.backend {
        BackendKind::Simulated => None,
        BackendKind::Linux => Some(linux::Standing::take(out)?),
    };
    let mut worst = Ending::Good;
    let mut held = 0;
    for ((scenario, directory), page) in scenarios.iter().zip(&directories).zip(&pages) {
        // A page is drawn from a journal, so one is kept for it.
        let lent = match (directory, page) {
            (None, Some(_)) => Some(tempfile::TempDir::new()?),
            (Some(_), _) | (None, None) => None,
        };
        let lent_dir = lent.as_ref().map(|dir| dir.path().join("journal"));
        let kept = directory.as_deref().or(lent_dir.as_deref());
        let ending = play(scenario, kept, (args, standing.as_ref()), out)?;
        if let (Some(journal), Some(page)) = (kept, page) {
            picture::write_page_of_journal(journal, &scenario.name, page)?;
            if !args.json {
                out.line(paint(Tone::Quiet.style(), format!("  page in {}", page.display())));
            }
        }
        held += usize::from(ending == Ending::Good);
        worst = worst.max(ending);
    }
    if scenarios.len() > 1 && !args.json {
        let tone = if worst == Ending::Good { Tone::Good } else { Tone::Bad };
        out.line(paint(tone.style(), format!("{held} of {} scenarios hold", scenarios.len())));
    }
    Ok(worst)
}

/// A scenario's file; `-` is standard input.
fn read(file: &Path) -> Result<Scenario> {
    let (name, bytes) = if file == Path::new("-") {
        let mut bytes = Vec::new();
        ("standard input".to_owned(), std::io::stdin().read_to_end(&mut bytes).map(|_| bytes))
    } else {
        (file.display().to_string(), std::fs::read(file))
    };
    let bytes = bytes.map_err(|error| {
        Unusable::new(
            format!("{name}: {error}"),
            "name a scenario file, as in examples/, or `-` for standard input",
        )
    })?;
    let text = std::str::from_utf8(&bytes).map_err(|error| {
        let line = 1 + bytes.iter().take(error.valid_up_to()).filter(|byte| **byte == b'\n').count();
        Unusable::new(format!("{name}:{line}: this is not UTF-8"), "save the file as UTF-8")
    })?;
    Ok(Scenario::parse(text, &name)?)
}

/// Where each scenario's page goes.
fn pages(args: &args::Run, scenarios: &[Scenario]) -> Result<Vec<Option<PathBuf>>> {
    let Some(page) = &args.html else { return Ok(vec![None; scenarios.len()]) };
    if scenarios.len() == 1 {
        return Ok(vec![Some(page.clone())]);
    }
    let stem = page.file_stem().unwrap_or_default().to_string_lossy();
    let mut pages = Vec::new();
    for scenario in scenarios {
        let name = scenario.name.replace(['/', '\0'], "-");
        let one = page.with_file_name(format!("{stem}-{name}.html"));
        if pages.contains(&Some(one.clone())) {
            let what = format!("two scenarios are named {}", scenario.name);
            return Err(
                Unusable::new(what, "their pages need names of their own: run them one by one").into()
            );
        }
        pages.push(Some(one));
    }
    Ok(pages)
}

/// Where each scenario's journal goes.
fn directories(args: &args::Run, scenarios: &[Scenario]) -> Result<Vec<Option<PathBuf>>> {
    let Some(dir) = &args.journal else { return Ok(vec![None; scenarios.len()]) };
    if scenarios.len() == 1 {
        return Ok(vec![Some(dir.clone())]);
    }
    let mut taken = BTreeSet::new();
    let mut directories = Vec::new();
    for scenario in scenarios {
        let name = scenario.name.replace(['/', '\0'], "-");
        if !taken.insert(name.clone()) {
            let what = format!(
                "{}: a second scenario named {name:?}, whose journal would be the first's",
                scenario.file
            );
            return Err(Unusable::new(what, "rename one, or run them one by one").into());
        }
        directories.push(Some(dir.join(name)));
    }
    Ok(directories)
}

/// Tells the view and the journal of each record.
struct Told<'v, 'o> {
    view: &'v mut View<'o>,
    journal: Option<RunJournal>,
    refused: Option<LogError>,
}

impl Observer for Told<'_, '_> {
    fn record(&mut self, record: &Record) {
        self.view.record(record);
        if let Some(journal) = &self.journal
            && let Err(error) = journal.note(record)
        {
            self.refused.get_or_insert(error);
        }
    }

    fn time(&mut self, now: Time) {
        self.view.time(now);
    }
}

fn play(
    scenario: &Scenario,
    directory: Option<&Path>,
    (args, standing): (&args::Run, Option<&linux::Standing>),
    out: &mut Out,
) -> Result<Ending> {
    let is_real = standing.is_some();
    let journal = match directory {
        Some(dir) => Some(RunJournal::create(dir, &node_config(scenario), is_real)?),
        None => None,
    };
    let form = match (args.json, args.quiet) {
        (true, _) => Form::Json,
        (false, true) => Form::KeptBack,
        (false, false) => Form::Lines,
    };
    let began = if is_real { nodefold_agent::clock::now() } else { BEGINNING };
    let mut view = View::new(out, form, args.verbose, began);
    let mut told = Told { view: &mut view, journal: journal.clone(), refused: None };
    let log = journal.map(|journal| Box::new(journal) as _);
    let outcome = match standing {
        None => nodefold_harness::run(scenario, RunOptions { log, ..RunOptions::default() }, &mut told),
        Some(standing) => linux::run(scenario, (args, standing), log, &mut told)?,
    };
    if let Some(error) = told.refused {
        return Err(error.into());
    }
    let ending = match &outcome.verdict {
        Verdict::Passed => Ending::Good,
        Verdict::ExpectationFailed { .. } | Verdict::InvariantBroken { .. } => Ending::Broken,
        Verdict::Unusable { .. } => Ending::Unusable,
    };
    if args.json {
        view.out.line(outcome_json(scenario, &outcome, began));
        return Ok(ending);
    }
    if ending != Ending::Good {
        view.tell_kept();
    }
    if !args.quiet || ending != Ending::Good {
        view.draw_lanes();
    }
    view.out.lines(verdict(scenario, &outcome, &view.teller.names));
    view.out.line(summary(scenario, &outcome, began, is_real));
    if let Some(dir) = directory.filter(|_| args.journal.is_some()) {
        let dir = dir.display();
        view.out.line(paint(
            Tone::Quiet.style(),
            format!("  journal in {dir}: try `nodefold replay {dir} --verify`"),
        ));
    }
    if !args.quiet {
        view.out.line("");
    }
    Ok(ending)
}

/// What did not hold, what is instead, and why. Nothing if all is well.
fn verdict(scenario: &Scenario, outcome: &Outcome, names: &Names) -> Vec<String> {
    let headline = |line: usize, step: usize, what: &str| {
        let title = scenario.steps.get(step).map(|step| step.title.as_str()).unwrap_or_default();
        let place = format!("{}:{line}: {what}", scenario.file);
        vec![format!("{}  {title}", paint(Tone::Bad.style(), place))]
    };
    match &outcome.verdict {
        Verdict::Passed => Vec::new(),
        Verdict::ExpectationFailed { step, line, expected, actual, explanation } => {
            let mut told = headline(*line, *step, "does not hold");
            told.extend(paragraph("expected", expected));
            told.extend(paragraph("actual", actual));
            if !explanation.trim().is_empty() {
                told.extend(paragraph("because", explanation));
            }
            told
        }
        Verdict::InvariantBroken { step, line, violations } => {
            let mut told = headline(*line, *step, "an invariant broke");
            told.extend(violations.iter().map(|violation| format!("  {}", names.in_text(violation))));
            told
        }
        Verdict::Unusable { step, line, error } => {
            let mut told = headline(*line, *step, "can't go on");
            told.extend(paragraph("because", error));
            told
        }
    }
}

/// A word and what follows it; an object is laid out, so that it can be read.
fn paragraph(word: &str, text: &str) -> Vec<String> {
    let laid_out = match serde_json::from_str::<Value>(text) {
        Ok(value @ (Value::Object(_) | Value::Array(_))) => crate::yaml::text(&value),
        Ok(_) | Err(_) => text.trim().to_owned(),
    };
    let word = paint(Tone::Step.style(), format!("{word:>10}"));
    let mut lines = laid_out.trim_end().lines();
    let mut told = vec![format!("{word}  {}", lines.next().unwrap_or("nothing"))];
    told.extend(lines.map(|line| format!("{:>10}  {line}", "")));
    told
}

/// One line that says how it went and how much there was.
fn summary(scenario: &Scenario, outcome: &Outcome, began: Time, is_real: bool) -> String {
    let (tone, sign, word) = match &outcome.verdict {
        Verdict::Passed => (Tone::Good, '✓', "holds"),
        Verdict::ExpectationFailed { .. } => (Tone::Bad, '✗', "does not hold"),
        Verdict::InvariantBroken { .. } => (Tone::Bad, '✗', "broke an invariant"),
        Verdict::Unusable { .. } => (Tone::Bad, '✗', "can't be used"),
    };
    let counts = &outcome.counts;
    let head = paint(tone.style(), format!("{sign} {} {word}", scenario.name));
    format!(
        "{head}: {} of {} steps, {} expectations held, {} {}, {} facts, {} commands, digest {:032x}",
        counts.steps,
        scenario.steps.len(),
        counts.expectations,
        clock(outcome.ended_at, began),
        if is_real { "on this host" } else { "simulated" },
        counts.facts,
        counts.commands,
        outcome.digest.0
    )
}

fn outcome_json(scenario: &Scenario, outcome: &Outcome, began: Time) -> Value {
    let verdict = match &outcome.verdict {
        Verdict::Passed => json!({"verdict": "passed"}),
        Verdict::ExpectationFailed { step, line, expected, actual, explanation } => json!({
            "verdict": "expectationFailed", "step": step, "line": line, "expected": expected, "actual": actual,
            "explanation": explanation,
        }),
        Verdict::InvariantBroken { step, line, violations } => {
            json!({"verdict": "invariantBroken", "step": step, "line": line, "violations": violations})
        }
        Verdict::Unusable { step, line, error } => {
            json!({"verdict": "unusable", "step": step, "line": line, "error": error})
        }
    };
    let object = json::object("outcome", Some(outcome.ended_at), began);
    let object = json::with(object, json!({"scenario": scenario.name, "file": scenario.file}));
    let object = json::with(object, verdict);
    let digests = json!({
        "digest": format!("{:032x}", outcome.digest.0), "apiDigest": format!("{:032x}", outcome.api_digest.0),
    });
    json::with(json::with(object, digests), json!({"counts": outcome.counts}))
}
