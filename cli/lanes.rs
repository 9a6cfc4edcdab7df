//! The picture at the end: time runs to the right, one row per pod, container incarnation and volume, a glyph per
//! phase, and below it who did what from outside.

use crate::axis::Axis;
use crate::lives::{Life, Lives, Moment};
use crate::names::{Names, clock};
use crate::paint::{Kind, Phase, Tone, paint};
use anstyle::{AnsiColor, Style};
use nodefold_core::time::Time;

/// Names are cut to this width.
const WIDEST_NAME: usize = 28;
/// A chart narrower than this says nothing.
const NARROWEST_CHART: usize = 24;
/// So many deeds are told; `a` to `z` name them.
const MOST_DEEDS: usize = 26;

/// A cell: what is in it, and its style.
#[derive(Copy, Clone)]
struct Cell {
    glyph: char,
    style: Style,
}

/// Draws all lives, `width` columns wide.
pub fn draw(lives: &Lives, names: &Names, width: usize) -> Vec<String> {
    let Some((first, last)) = lives.span else { return Vec::new() };
    let rows = lives.by_pod();
    if rows.is_empty() {
        return Vec::new();
    }
    let labels: Vec<String> = rows.iter().map(|life| label(life, names)).collect();
    let name_width = labels.iter().map(|l| l.chars().count()).max().unwrap_or(0).min(WIDEST_NAME);
    let chart_width = width.saturating_sub(name_width + 2).max(NARROWEST_CHART);

    let mut moments = vec![first, last];
    moments.extend(rows.iter().flat_map(|life| life.phases.iter().map(|(at, _)| *at)));
    moments.extend(rows.iter().flat_map(|life| life.moments.iter().map(|(at, _)| *at)));
    moments.extend(lives.deeds.iter().map(|deed| deed.at));
    let axis = Axis::through(moments, chart_width);

    let margin = " ".repeat(name_width + 2);
    let quiet = Tone::Quiet.style();
    let (ticks, line) = axis.draw(first);
    let mut out = vec![format!("{margin}{}", paint(quiet, ticks)), format!("{margin}{}", paint(quiet, line))];
    for (life, label) in rows.iter().zip(&labels) {
        let name: String = label.chars().take(name_width).collect();
        let style = if life.lane.kind() == Kind::Pod { Tone::Step.style() } else { Style::new() };
        let padding = " ".repeat(name_width - name.chars().count());
        out.push(
            format!("{}{padding}  {}", paint(style, name), row(life, &axis, last)).trim_end().to_owned(),
        );
    }
    let deeds = deeds(lives, &axis);
    if !deeds.is_empty() {
        out.push(format!("{margin}{}", paint(Tone::Step.style(), deeds)));
    }
    out.extend(legend(&rows, width));
    out.extend(lives.deeds.iter().take(MOST_DEEDS).zip('a'..='z').map(|(deed, letter)| {
        let at = paint(quiet, format!("{:>10}", clock(deed.at, first)));
        format!("{at}  {} {}", paint(Tone::Step.style(), letter), deed.what)
    }));
    if lives.deeds.len() > MOST_DEEDS {
        out.push(format!("{:>10}  … and {} more", "", lives.deeds.len() - MOST_DEEDS));
    }
    out
}

fn label(life: &Life, names: &Names) -> String {
    let name = life.lane.own_name(names);
    match life.lane.kind() {
        Kind::Pod => name,
        Kind::Container => format!("  {name}"),
        Kind::Volume => format!("  ({name})"),
    }
}

/// One life, cell by cell.
fn row(life: &Life, axis: &Axis, end: Time) -> String {
    let mut cells = vec![Cell { glyph: ' ', style: Style::new() }; axis.width()];
    let kind = life.lane.kind();
    let mut hidden = Vec::new();
    for (i, (from, phase)) in life.phases.iter().enumerate() {
        let cell = Cell { glyph: phase.fill(kind), style: phase.style() };
        let until = life.phases.get(i + 1).map(|(at, _)| *at);
        let start = axis.column(*from);
        let stop = until.map_or(axis.column(end) + 1, |until| axis.column(until));
        cells[start..stop.max(start)].fill(cell);
        if start == stop && until.is_some_and(|until| until > *from) {
            hidden.push((start, *phase, cell));
        }
    }
    // A phase too short for a column of its own shows if nobody should miss it.
    for (column, phase, cell) in hidden {
        if matches!(phase, Phase::Failing | Phase::Unknown) {
            cells[column] = cell;
        }
    }
    for (at, moment) in &life.moments {
        cells[axis.column(*at)] = match moment {
            Moment::Succeeded => Cell { glyph: '✓', style: AnsiColor::Green.on_default() },
            Moment::Failed => Cell { glyph: '✗', style: Tone::Bad.style() },
            Moment::Restarted => Cell { glyph: '↻', style: AnsiColor::Yellow.on_default() },
        };
    }
    // Neighbours of one style are painted at once: fewer escape codes.
    let mut out = String::new();
    for chunk in cells.chunk_by(|a, b| a.style == b.style) {
        let text: String = chunk.iter().map(|cell| cell.glyph).collect();
        out.push_str(&paint(chunk[0].style, text));
    }
    out
}

/// The row of letters that say when somebody acted; of several in one column, the first.
fn deeds(lives: &Lives, axis: &Axis) -> String {
    let mut row = vec![' '; axis.width()];
    for (deed, letter) in lives.deeds.iter().take(MOST_DEEDS).zip('a'..='z') {
        let column = axis.column(deed.at);
        if row[column] == ' ' {
            row[column] = letter;
        }
    }
    row.into_iter().collect::<String>().trim_end().to_owned()
}

/// What the signs mean, broken between two meanings where a line is full.
fn legend(rows: &[&Life], width: usize) -> Vec<String> {
    let mut parts = Vec::new();
    for phase in Phase::ALL {
        let mut glyphs = String::new();
        for kind in [Kind::Pod, Kind::Container, Kind::Volume] {
            let is_there =
                |life: &&Life| life.lane.kind() == kind && life.phases.iter().any(|(_, p)| *p == phase);
            let glyph = phase.fill(kind);
            if rows.iter().any(is_there) && glyph != ' ' && !glyphs.contains(glyph) {
                glyphs.push(glyph);
            }
        }
        if !glyphs.is_empty() {
            parts.push(format!("{} {}", paint(phase.style(), glyphs), phase.meaning()));
        }
    }
    let had = |moment: Moment| rows.iter().any(|life| life.moments.iter().any(|(_, m)| *m == moment));
    let of_moment = [
        (Moment::Succeeded, "✓ exited with 0"),
        (Moment::Failed, "✗ exited otherwise"),
        (Moment::Restarted, "↻ restarted"),
    ];
    parts.extend(of_moment.iter().filter(|(moment, _)| had(*moment)).map(|(_, text)| (*text).to_owned()));
    parts.push("(volume)".to_owned());
    parts.push(paint(Tone::Quiet.style(), "time is not to scale"));
    let mut lines = vec![String::new()];
    let mut used = 0;
    for part in parts {
        let wide = 2 + anstream::adapter::strip_str(&part).to_string().chars().count();
        if used > 0 && used + wide > width {
            lines.push(String::new());
            used = 0;
        }
        used += wide;
        if let Some(line) = lines.last_mut() {
            line.push_str("  ");
            line.push_str(&part);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lives::{Deed, Lane};
    use nodefold_core::ids::{PodUid, VolumeId};
    use nodefold_core::time::Nanos;

    fn at(millis: u64) -> Time {
        Time(1_000_000_000).after(Nanos::millis(millis))
    }

    /// A pod with a container that fails once and is started again, and a volume that can't be mounted at first.
    fn lives() -> (Lives, Names) {
        let pod = PodUid(7);
        let mut names = Names::default();
        names.learn(pod, "default", "web");
        let life = |lane, phases: &[(u64, Phase)], moments: &[(u64, Moment)]| Life {
            lane,
            phases: phases.iter().map(|(millis, phase)| (at(*millis), *phase)).collect(),
            moments: moments.iter().map(|(millis, moment)| (at(*millis), *moment)).collect(),
        };
        let app = [
            (0, Phase::Waiting),
            (200, Phase::Coming),
            (300, Phase::Up),
            (500, Phase::Over),
            (600, Phase::Up),
        ];
        let volume = VolumeId { name: "data".into(), generation: 1 };
        let data = [(0, Phase::Coming), (50, Phase::Failing), (100, Phase::Up), (800, Phase::Gone)];
        let lives = vec![
            life(Lane::Pod(pod), &[(0, Phase::Up)], &[]),
            life(Lane::Volume(pod, volume), &data, &[]),
            life(
                Lane::Container(pod, "app".into(), 0),
                &app,
                &[(500, Moment::Failed), (600, Moment::Restarted)],
            ),
        ];
        let deeds = vec![Deed { at: at(0), what: "create Pod web".into() }];
        (Lives { lives, deeds, span: Some((at(0), at(1000))) }, names)
    }

    fn drawn(width: usize) -> Vec<String> {
        let (lives, names) = lives();
        draw(&lives, &names, width)
            .iter()
            .map(|line| anstream::adapter::strip_str(line).to_string())
            .collect()
    }

    #[test]
    fn each_life_is_a_row_in_which_its_phases_follow_each_other() {
        let picture = drawn(80);
        let row = |name: &str| {
            let row =
                picture.iter().find(|line| line.trim_start().starts_with(name)).cloned().unwrap_or_default();
            let mut glyphs: Vec<char> = row.replacen(name, "", 1).trim().chars().collect();
            glyphs.dedup();
            glyphs.into_iter().collect::<String>()
        };
        assert_eq!(row("web"), "━");
        assert_eq!(row("app"), "·░█✗╌↻█");
        assert_eq!(row("(data#1)"), "░!▄");
        let order: Vec<usize> = ["web", "  app", "  (data#1)"]
            .iter()
            .filter_map(|name| picture.iter().position(|line| line.starts_with(name)))
            .collect();
        assert!(order.len() == 3 && order.is_sorted(), "{picture:#?}");
    }

    #[test]
    fn a_picture_is_as_wide_as_the_terminal_and_no_life_is_lost_in_a_narrow_one() {
        for width in [40, 80, 160] {
            let picture = drawn(width);
            assert!(picture.iter().all(|line| line.chars().count() <= width), "{width}: {picture:#?}");
            assert!(picture.iter().any(|line| line.contains('✗') && line.contains('↻')), "{picture:#?}");
        }
    }

    #[test]
    fn the_legend_tells_what_is_there_and_deeds_have_letters() {
        let text = drawn(80).join("\n");
        assert!(text.contains("! in error") && !text.contains("? unknown"), "{text}");
        assert!(text.contains("0.000s  a create Pod web"), "{text}");
        assert!(draw(&Lives::default(), &Names::default(), 80).is_empty());
    }
}
