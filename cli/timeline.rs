//! The live timeline: simulated time on the left, a lane per pod, container and volume, and what happened on the
//! right. Each lane is a thread in the colour of its phase that begins with the thing and ends with it, so that the
//! picture only ever grows downwards, as a terminal does.

use crate::lives::Lane;
use crate::names::clock;
use crate::paint::{Phase, Tone, paint};
use crate::story::Line;
use nodefold_core::ids::PodUid;
use nodefold_core::time::Time;

/// More lanes at once are not told apart any more; what has none is told in words.
const MOST_LANES: usize = 24;
/// A line is never cut to less.
const NARROWEST: usize = 40;

/// The lanes that are alive, each in its place.
#[derive(Debug, Default)]
pub struct Timeline {
    places: Vec<Option<(Lane, Phase)>>,
    beginning: Time,
    width: usize,
    before: String,
}

impl Timeline {
    /// A timeline that begins at a moment, in a terminal of that width.
    pub fn from(beginning: Time, width: usize) -> Timeline {
        Timeline { places: Vec::new(), beginning, width, before: String::new() }
    }

    /// The next line as a terminal shows it.
    pub fn draw(&mut self, line: &Line) -> Vec<String> {
        let place = line.lane.as_ref().and_then(|(lane, phase)| self.place(lane, *phase));
        if let Some((Lane::Pod(pod), Some(Phase::Gone))) = &line.lane {
            self.end_all_of(*pod);
        }
        let threads = self.threads(place);
        // What happens at one moment is told under one time.
        let now = clock(line.at, self.beginning);
        let time = if now == self.before { "" } else { &now };
        let time = paint(Tone::Quiet.style(), format!("{time:>10}"));
        self.before = now;
        let mut pieces = self.fitted(line).into_iter();
        let first = pieces.next().unwrap_or_default();
        let mut out = vec![format!("{time}  {threads} {}", paint(line.tone.style(), first))];
        for piece in pieces {
            let piece = paint(line.tone.style(), piece);
            out.push(format!("{:>10}  {}   {piece}", "", self.threads(None)));
        }
        for more in &line.more {
            out.push(format!("{:>10}  {}   {more}", "", self.threads(None)));
        }
        for slot in &mut self.places {
            if matches!(slot, Some((_, Phase::Gone))) {
                *slot = None;
            }
        }
        while matches!(self.places.last(), Some(None)) {
            self.places.pop();
        }
        out
    }

    /// What holds is told in one line, however much was expected; everything else is told whole, beside the threads.
    fn fitted(&self, line: &Line) -> Vec<String> {
        let room = self.width.saturating_sub(13 + 2 * self.places.len()).max(NARROWEST);
        let mut letters: Vec<char> = line.text.chars().collect();
        if letters.len() <= room {
            return vec![line.text.clone()];
        }
        if line.tone == Tone::Good {
            letters.truncate(room - 1);
            letters.push('…');
            return vec![letters.into_iter().collect()];
        }
        let mut pieces = Vec::new();
        let mut rest = letters.as_slice();
        // What follows the first piece stands two columns further in.
        let mut room = room;
        while rest.len() > room {
            let space = rest[..room].iter().rposition(|letter| *letter == ' ').filter(|at| *at > room / 2);
            let (piece, left) = rest.split_at(space.unwrap_or(room));
            pieces.push(piece.iter().collect());
            rest = if space.is_some() { &left[1..] } else { left };
            room = self.width.saturating_sub(15 + 2 * self.places.len()).max(NARROWEST);
        }
        pieces.push(rest.iter().collect());
        pieces
    }

    /// The next line as a pipe gets it.
    pub fn plain(&self, line: &Line) -> Vec<String> {
        let mut out = vec![format!("{:>10}  {}", clock(line.at, self.beginning), line.text)];
        out.extend(line.more.iter().map(|more| format!("{:>10}    {more}", "")));
        out
    }

    /// The place of a lane, which is found for it if it has none.
    fn place(&mut self, lane: &Lane, phase: Option<Phase>) -> Option<usize> {
        let known = self.places.iter().position(|p| matches!(p, Some((l, _)) if l == lane));
        let place = match known {
            Some(place) => place,
            None => {
                let free = self.places.iter().position(Option::is_none).unwrap_or(self.places.len());
                if free >= MOST_LANES {
                    return None;
                }
                if free == self.places.len() {
                    self.places.push(None);
                }
                self.places[free] = Some((lane.clone(), Phase::Waiting));
                free
            }
        };
        if let (Some(phase), Some(Some((_, now)))) = (phase, self.places.get_mut(place)) {
            *now = phase;
        }
        Some(place)
    }

    /// A pod takes along whatever was still remembered of it.
    fn end_all_of(&mut self, pod: PodUid) {
        for (lane, phase) in self.places.iter_mut().flatten() {
            if lane.pod() == pod {
                *phase = Phase::Gone;
            }
        }
    }

    fn threads(&self, here: Option<usize>) -> String {
        let mut out = String::new();
        for (i, slot) in self.places.iter().enumerate() {
            match slot {
                Some((_, phase)) if here == Some(i) => out.push_str(&paint(phase.style(), phase.dot())),
                Some((_, phase)) => out.push_str(&paint(phase.style(), phase.thread())),
                None => out.push(' '),
            }
            out.push(' ');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(lane: u128, phase: Phase) -> Line {
        let lane = Some((Lane::Pod(PodUid(lane)), Some(phase)));
        Line { at: Time(1), lane, tone: Tone::Plain, text: "x".into(), more: Vec::new() }
    }

    fn bare(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn a_lane_keeps_its_place_and_gives_it_up_when_it_ends() {
        let mut timeline = Timeline::from(Time(0), 80);
        timeline.draw(&line(1, Phase::Up));
        assert!(bare(&timeline.draw(&line(2, Phase::Coming))[0]).contains("│ ◔  x"));
        assert!(bare(&timeline.draw(&line(1, Phase::Gone))[0]).contains("╵ ┆  x"));
        assert!(bare(&timeline.draw(&line(3, Phase::Up))[0]).contains("● ┆  x"));
    }

    #[test]
    fn what_holds_is_cut_to_the_width_and_what_does_not_is_told_whole() {
        let mut timeline = Timeline::from(Time(0), 80);
        let long = "x".repeat(200);
        let held = bare(&timeline.draw(&Line::new(Time(1), Tone::Good, long.clone()))[0]);
        assert_eq!(held.chars().count(), 80, "{held}");
        let told = timeline.draw(&Line::new(Time(1), Tone::Bad, long.clone()));
        let told: Vec<String> = told.iter().map(|line| bare(line)).collect();
        assert!(told.iter().all(|line| line.chars().count() <= 80), "{told:#?}");
        assert_eq!(told.concat().matches('x').count(), long.len(), "{told:#?}");
    }

    #[test]
    fn one_moment_is_told_once() {
        let mut timeline = Timeline::from(Time(0), 80);
        let at = |nanos: u64| Line::new(Time(nanos), Tone::Plain, "x".into());
        assert!(bare(&timeline.draw(&at(5_000_001))[0]).contains("0.005s"));
        assert!(!bare(&timeline.draw(&at(5_999_999))[0]).contains("0.005s"));
        assert!(bare(&timeline.draw(&at(6_000_000))[0]).contains("0.006s"));
    }

    #[test]
    fn a_pod_takes_its_containers_along() {
        let mut timeline = Timeline::from(Time(0), 80);
        timeline.draw(&line(1, Phase::Up));
        let app = Lane::Container(PodUid(1), "app".into(), 0);
        timeline.draw(&Line { lane: Some((app, Some(Phase::Over))), ..line(1, Phase::Up) });
        assert!(bare(&timeline.draw(&line(1, Phase::Gone))[0]).contains("╵ ╵  x"));
        assert!(bare(&timeline.draw(&line(2, Phase::Up))[0]).ends_with("  ●  x"));
    }

    #[test]
    fn what_has_no_place_any_more_is_told_in_words() {
        let mut timeline = Timeline::from(Time(0), 80);
        for lane in 0..MOST_LANES as u128 {
            timeline.draw(&line(lane, Phase::Up));
        }
        let drawn = bare(&timeline.draw(&line(99, Phase::Up))[0]);
        assert_eq!(drawn.matches('│').count(), MOST_LANES, "{drawn}");
        assert!(drawn.ends_with(" x"), "{drawn}");
    }
}
