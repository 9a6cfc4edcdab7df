//! What is seen: where one is, the records, what this one did, the state of a stage or a comparison, and the keys.

use super::app::{App, Asked, Sign};
use super::states::Stage;
use super::tape::Moment;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Borders, Clear, Padding, Paragraph, Wrap};

/// Narrower than this, records and state are one above the other.
const WIDE: u16 = 90;

const KEYS: [(&str, &str); 13] = [
    ("→ ←  space", "a record forward, back"),
    ("PgDn PgUp", "twenty"),
    ("Home End", "the first, the last"),
    ("g", "jump to a record (57), a time (2.5s) or an RFC 3339 time"),
    ("f F", "run to the next finding, or back to the one before"),
    ("/ n N", "find a text, the next, the one before"),
    ("Tab 1–5", "the stage: desired, allocated, actuated, actual, published"),
    ("p P", "the next pod, the one before"),
    ("↑ ↓", "scroll the state"),
    ("m", "mark this moment"),
    ("d", "compare the marked moment with this one, or stop comparing"),
    ("?", "these keys"),
    ("q Esc", "quit"),
];

fn quiet() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}
fn bad() -> Style {
    Style::new().fg(Color::Red).add_modifier(Modifier::BOLD)
}
fn strong() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

/// Draws a frame.
pub fn draw(frame: &mut Frame<'_>, app: &mut App) {
    let [head, rule, body, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(3),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    draw_head(frame, app, head);
    draw_rule(frame, app, rule);
    let (left, right) = if body.width >= WIDE {
        let [left, right] = Layout::horizontal([Constraint::Percentage(46), Constraint::Min(20)]).areas(body);
        (left, right)
    } else {
        let [left, right] = Layout::vertical([Constraint::Percentage(45), Constraint::Min(5)]).areas(body);
        (left, right)
    };
    let [records, did] = Layout::vertical([Constraint::Min(3), Constraint::Percentage(34)]).areas(left);
    draw_records(frame, app, records);
    draw_did(frame, app, did);
    draw_state(frame, app, right);
    draw_foot(frame, app, foot);
    if app.help {
        draw_help(frame);
    }
}

fn draw_head(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let found = app.tape.moments.iter().filter(|m| !m.findings.is_empty()).count();
    let place = match app.moment() {
        Some(moment) => format!(
            "record {}, {}  ({} of {})",
            moment.record,
            app.time(moment),
            app.now + 1,
            app.tape.moments.len()
        ),
        None => "no record tells anything".to_owned(),
    };
    let verdict = match found {
        0 => Span::styled("✓ clean", Style::new().fg(Color::Green)),
        1 => Span::styled("✗ 1 finding", bad()),
        n => Span::styled(format!("✗ {n} findings"), bad()),
    };
    let line = Line::from(vec![
        Span::styled(format!(" {} ", app.tape.title), strong()),
        Span::raw("  "),
        Span::raw(place),
        Span::raw("   "),
        verdict,
    ]);
    frame.render_widget(line, area);
}

/// The whole journal as a line: where one is, where something was found, what is marked.
fn draw_rule(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let width = usize::from(area.width.saturating_sub(2));
    let last = app.tape.moments.len().saturating_sub(1).max(1);
    if width == 0 {
        return;
    }
    let column = |i: usize| (i * (width - 1) / last).min(width - 1);
    let mut cells: Vec<(char, Style)> = vec![('─', quiet()); width];
    for cell in &mut cells[..column(app.now)] {
        *cell = ('━', Style::new().fg(Color::Cyan));
    }
    for (i, _) in app.tape.moments.iter().enumerate().filter(|(_, m)| !m.findings.is_empty()) {
        cells[column(i)] = ('◆', bad());
    }
    if let Some(mark) = app.mark {
        cells[column(mark)] = ('⚑', Style::new().fg(Color::Yellow));
    }
    cells[column(app.now)] = ('●', Style::new().fg(Color::Cyan).add_modifier(Modifier::BOLD));
    let mut spans = vec![Span::raw(" ")];
    spans.extend(cells.into_iter().map(|(glyph, style)| Span::styled(glyph.to_string(), style)));
    frame.render_widget(Line::from(spans), area);
}

fn framed(title: Line<'_>) -> Block<'_> {
    Block::new().borders(Borders::ALL).border_type(BorderType::Rounded).border_style(quiet()).title(title)
}

fn draw_records(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let block = framed(Line::from(" records "));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let height = usize::from(inner.height);
    let total = app.tape.moments.len();
    let first = app.now.saturating_sub(height / 2).min(total.saturating_sub(height));
    let lines: Vec<Line<'_>> = app
        .tape
        .moments
        .iter()
        .enumerate()
        .skip(first)
        .take(height)
        .map(|(i, moment)| record_line(app, i, moment, usize::from(inner.width)))
        .collect();
    frame.render_widget(Paragraph::new(lines), inner);
}

fn record_line<'a>(app: &App, i: usize, moment: &'a Moment, width: usize) -> Line<'a> {
    let here = i == app.now;
    let sign = match (moment.findings.is_empty(), app.mark == Some(i), here) {
        (false, _, _) => "◆",
        (true, true, _) => "⚑",
        (true, false, true) => "▶",
        (true, false, false) => " ",
    };
    let tone = match (moment.findings.is_empty(), moment.bad, moment.quiet, moment.who) {
        (false, _, _, _) | (_, true, _, _) => Style::new().fg(Color::Red),
        (_, _, true, _) => quiet(),
        (_, _, _, "note") => Style::new().fg(Color::Cyan),
        (_, _, _, "request") => Style::new().fg(Color::Blue),
        (_, _, _, _) => Style::new(),
    };
    let about = moment.pod.as_deref().map(|pod| format!("{} ", short(pod))).unwrap_or_default();
    let more = match moment.consequences.len() {
        0 => String::new(),
        n => format!("  +{n}"),
    };
    let sign_tone = if moment.findings.is_empty() { Style::new().fg(Color::Yellow) } else { bad() };
    let mut line = Line::from(vec![
        Span::styled(sign, sign_tone),
        Span::styled(format!("{:>5} {:>9} ", moment.record, app.time(moment)), quiet()),
        Span::styled(about, quiet()),
        Span::styled(moment.text.as_str(), tone),
        Span::styled(more, quiet()),
    ]);
    if here {
        // The whole line is lit, not its text alone.
        let rest = width.saturating_sub(line.width());
        line.spans.push(Span::raw(" ".repeat(rest)));
        line = line.style(Style::new().add_modifier(Modifier::REVERSED));
    }
    line
}

/// A pod's name without its namespace.
fn short(pod: &str) -> &str {
    pod.split_once('/').map_or(pod, |(_, name)| name)
}

fn draw_did(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let block = framed(Line::from(" what it says and did ")).padding(Padding::horizontal(1));
    let Some(moment) = app.moment() else { return frame.render_widget(block, area) };
    let mut lines = vec![Line::styled(moment.text.clone(), strong())];
    lines.extend(moment.findings.iter().map(|f| Line::styled(format!("◆ {f}"), bad())));
    lines.extend(moment.consequences.iter().map(|c| Line::raw(c.clone())));
    if moment.consequences.is_empty() && moment.who == "fact" {
        lines.push(Line::styled("the node asked for nothing", quiet()));
    }
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }).block(block), area);
}

fn draw_state(frame: &mut Frame<'_>, app: &mut App, area: Rect) {
    let pod = app.pod.clone().unwrap_or_else(|| "no pod".to_owned());
    let mut title = vec![Span::styled(format!(" {pod} "), strong())];
    if app.compares {
        let record = |i: usize| app.tape.moments.get(i).map_or(0, |m| m.record);
        let mark = app.mark.unwrap_or(app.now);
        let (from, to) = (record(mark.min(app.now)), record(mark.max(app.now)));
        title.push(Span::raw(format!("record {from} → {to} ")));
    } else {
        for stage in Stage::ALL {
            let style = if stage == app.stage {
                Style::new().fg(Color::Cyan).add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
            } else {
                quiet()
            };
            title.push(Span::styled(stage.name(), style));
            title.push(Span::raw(" "));
        }
    }
    let lines = if app.compares { comparison(app) } else { state(app) };
    let height = usize::from(area.height.saturating_sub(2));
    app.scroll = app.scroll.min(lines.len().saturating_sub(height));
    let mut block = framed(Line::from(title)).padding(Padding::horizontal(1));
    if lines.len() > height {
        let until = (app.scroll + height).min(lines.len());
        block = block.title_bottom(
            Line::styled(format!(" {}–{until} of {} ", app.scroll + 1, lines.len()), quiet()).right_aligned(),
        );
    }
    let shown: Vec<Line<'_>> = lines.into_iter().skip(app.scroll).take(height).collect();
    frame.render_widget(Paragraph::new(shown).block(block), area);
}

fn state(app: &App) -> Vec<Line<'static>> {
    if app.shown.lines.is_empty() {
        let what = match app.pod {
            Some(_) if app.shown.taken > 0 => "nothing any more",
            Some(_) => "nothing yet, or nothing any more",
            None => "no pod was ever known",
        };
        return vec![Line::styled(what, quiet())];
    }
    let of = |(text, new): &(String, bool)| {
        if *new {
            Line::styled(format!("▌{text}"), Style::new().fg(Color::Green))
        } else {
            Line::raw(format!(" {text}"))
        }
    };
    let mut lines: Vec<Line<'static>> = app.shown.lines.iter().map(of).collect();
    let new = app.shown.lines.iter().filter(|(_, new)| *new).count();
    if new + app.shown.taken > 0 && app.now > 0 {
        lines.insert(
            0,
            Line::styled(format!(" # this record: {new} lines new, {} gone", app.shown.taken), quiet()),
        );
    }
    lines
}

fn comparison(app: &App) -> Vec<Line<'static>> {
    let of = |(sign, text): &(Sign, String)| match sign {
        Sign::Same => Line::styled(format!("  {text}"), quiet()),
        Sign::Added => Line::styled(format!("+ {text}"), Style::new().fg(Color::Green)),
        Sign::Removed => Line::styled(format!("- {text}"), Style::new().fg(Color::Red)),
        Sign::Head => Line::styled(text.clone(), strong()),
    };
    app.comparison.iter().map(of).collect()
}

fn draw_foot(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let line = match (&app.typed, &app.message) {
        (Some((asked, text)), _) => {
            let what = match asked {
                Asked::Jump => " jump to (57, 2.5s, 2026-01-01T00:00:01Z): ",
                Asked::Find => " find: ",
            };
            Line::from(vec![Span::styled(what, strong()), Span::raw(text.clone()), Span::raw("▏")])
        }
        (None, Some(message)) => Line::styled(format!(" {message}"), Style::new().fg(Color::Yellow)),
        (None, None) => Line::styled(
            " ← → step  g jump  f finding  / find  Tab stage  p pod  ↑↓ scroll  m mark  d compare  ? keys  q quit",
            quiet(),
        ),
    };
    frame.render_widget(line, area);
}

fn draw_help(frame: &mut Frame<'_>) {
    let area = frame.area();
    let height = u16::try_from(KEYS.len() + 4).unwrap_or(u16::MAX).min(area.height);
    let width = area.width.min(86);
    let at = Rect { x: (area.width - width) / 2, y: (area.height - height) / 2, width, height };
    let lines: Vec<Line<'_>> = KEYS
        .iter()
        .map(|(keys, what)| Line::from(vec![Span::styled(format!("{keys:<12}"), strong()), Span::raw(*what)]))
        .collect();
    let block = framed(Line::from(" keys ")).padding(Padding::uniform(1));
    frame.render_widget(Clear, at);
    frame.render_widget(Paragraph::new(lines).block(block), at);
}
