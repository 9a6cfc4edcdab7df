//! `nodefold view`: reads, judges, draws, and writes what was asked for.

use super::{Picture, of_journal, of_trace, page, perfetto};
use crate::args;
use crate::ending::{Ending, Unusable};
use crate::judge::{names, read};
use crate::out::Out;
use crate::paint::{Tone, paint};
use anyhow::{Context, Result};
use nodefold_replay::{Options, is_journal, judge, lines_of, read_files};
use std::fs;
use std::path::{Path, PathBuf};

/// So many bytes of each line are kept.
const RAW: usize = 1200;

/// Draws what a node left behind.
pub fn view(args: &args::View, out: &mut Out) -> Result<Ending> {
    let picture = picture(&args.files, args.year, out)?;
    if let Some(path) = &args.html {
        let page = page::write(&picture)?;
        write(path, &page, out)?;
    }
    if let Some(path) = &args.perfetto {
        write(path, &perfetto::write(&picture).to_string(), out)?;
    }
    let of_pods = picture.lanes.iter().filter(|l| l.kind == super::LaneKind::Pod).count();
    let findings = match picture.findings.len() {
        0 => "clean".to_owned(),
        1 => "1 finding".to_owned(),
        n => format!("{n} findings"),
    };
    out.line(paint(
        Tone::Quiet.style(),
        format!(
            "{of_pods} pods, {} lanes, {} entries, {findings}",
            picture.lanes.len(),
            picture.entries.len()
        ),
    ));
    Ok(Ending::Good)
}

/// Draws a journal into a page: what `nodefold run --html` ends with.
pub fn write_page_of_journal(journal: &Path, title: &str, to: &Path) -> Result<()> {
    let picture = Picture { title: title.to_owned(), ..read_journal(journal)? };
    keep(to, &page::write(&picture)?)
}

/// The picture of a journal.
pub fn read_journal(journal: &Path) -> Result<Picture> {
    let files = [journal.to_owned()];
    let trace = read_files(&files, &Options::default(), &mut |_| {})?;
    of_journal::draw(journal, &trace, &judge(&trace), title(&files))
}

fn picture(files: &[PathBuf], year: Option<i32>, out: &Out) -> Result<Picture> {
    let trace = read(files, year, out)?;
    if !trace.is_recognised() {
        let what = format!("nothing recognisable in {}", names(files));
        let remedy =
            "give a journal, kubelet or runtime logs, API watches or lists, audit logs, mount tables";
        return Err(Unusable::new(what, remedy).into());
    }
    let report = judge(&trace);
    if let [journal] = files
        && is_journal(journal)
    {
        return of_journal::draw(journal, &trace, &report, title(files));
    }
    let mut picture = of_trace::draw(&trace, &report, title(files));
    let lines = lines_of(files, &of_trace::places(&picture), RAW)?;
    for entry in &mut picture.entries {
        entry.raw = lines.get(&(entry.file, entry.line)).cloned();
    }
    Ok(picture)
}

/// The inputs by their names alone, or by their directory if they have it in common and are many.
fn title(files: &[PathBuf]) -> String {
    let name = |path: &Path| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    match files {
        [one] => name(one),
        [first, ..] if files.len() > 3 && files.iter().all(|f| f.parent() == first.parent()) => {
            let dir = first.parent().filter(|p| p.file_name().is_some());
            dir.map_or_else(|| format!("{} and {} more", name(first), files.len() - 1), name)
        }
        _ => files.iter().map(|f| name(f)).collect::<Vec<_>>().join(", "),
    }
}

fn keep(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("{} can't be written", path.display()))
}

fn write(path: &Path, text: &str, out: &mut Out) -> Result<()> {
    keep(path, text)?;
    out.line(format!("{} ({:.1} MB)", path.display(), text.len() as f64 / 1e6));
    Ok(())
}
