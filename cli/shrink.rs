//! `nodefold shrink`: the shortest story that breaks the same invariant, told, listed and saved.

use crate::args;
use crate::ending::{Ending, Unusable};
use crate::out::Out;
use crate::paint::{Tone, paint};
use crate::sim::save;
use crate::view::{Form, View};
use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget};
use nodefold_harness::history::History;
use nodefold_harness::scenario::Step;
use nodefold_harness::shrink::shrink as shrink_history;
use nodefold_harness::swarm::SwarmOptions;
use nodefold_harness::world::BEGINNING;
use nodefold_harness::{Observer, Record, RunOptions, Scenario};
use std::time::Duration;

/// Shrinks a history.
pub fn shrink(args: &args::Shrink, out: &mut Out) -> Result<Ending> {
    let name = args.history.display().to_string();
    let text = std::fs::read_to_string(&args.history).map_err(|error| {
        Unusable::new(format!("{name}: {error}"), "name a history, as `nodefold sim` saves it")
    })?;
    let history = History::parse(&text, &name)?;
    let limit = Duration::from_secs(args.seconds);
    let bar = ProgressBar::new_spinner();
    bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(4));
    let mut tries = 0;
    let mut goes_on = || {
        tries += 1;
        bar.set_message(format!("{tries} histories tried"));
        bar.tick();
        bar.elapsed() < limit
    };
    std::panic::set_hook(Box::new(|_| {}));
    let shrunk = shrink_history(&history, &SwarmOptions::default().driven, &mut goes_on);
    let _ = std::panic::take_hook();
    bar.finish_and_clear();
    let Some(shrunk) = shrunk else {
        out.line(paint(Tone::Good.style(), format!("✓ {name} breaks nothing")));
        return Ok(Ending::Good);
    };
    let stem =
        args.history.file_stem().map_or_else(|| "history".into(), |s| s.to_string_lossy().into_owned());
    let file = args.out.clone().unwrap_or_else(|| args.history.with_file_name(format!("{stem}.shrunk.yaml")));
    let about = shrunk.broken.what.lines().next().unwrap_or_default();
    let text = shrunk.history.to_text(&format!("{stem}-shrunk"), about);
    save(&file, &text)?;
    story(&text, &file.display().to_string(), out)?;
    out.line("");
    for (index, verb) in shrunk.history.steps.iter().enumerate() {
        let step = Step::of(index, verb.clone());
        out.line(format!("{:>3}  {}", index + 1, step.title));
    }
    let how = if shrunk.is_minimal { "nothing smaller breaks it" } else { "the time ran out" };
    out.line(format!(
        "{}: from {} to {} steps in {:.1} s and {} tries ({how}); play it with `nodefold run {}`",
        paint(Tone::Bad.style(), format!("✗ {}", shrunk.broken.what)),
        history.steps.len(),
        shrunk.history.steps.len(),
        bar.elapsed().as_secs_f64(),
        shrunk.tried,
        file.display(),
    ));
    Ok(Ending::Broken)
}

/// Tells a story as `nodefold run` does.
fn story(text: &str, file: &str, out: &mut Out) -> Result<()> {
    struct Told<'v, 'o>(&'v mut View<'o>);
    impl Observer for Told<'_, '_> {
        fn record(&mut self, record: &Record) {
            self.0.record(record);
        }
    }
    let scenario = Scenario::parse(text, file)?;
    let mut view = View::new(out, Form::Lines, false, BEGINNING);
    nodefold_harness::run(&scenario, RunOptions::default(), &mut Told(&mut view));
    view.draw_lanes();
    Ok(())
}
