//! Years, zones and slips: how the stamps of several files become moments of one line of time (node-logs §1.8).
//!
//! What the files say themselves comes first; what is assumed is told in notes.

use crate::evidence::{Name, Witness};
use crate::kept::Kept;
use crate::names::Names;
use crate::stamp::{Moment, SECOND, Stamp};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher;

const HALF_HOUR: i64 = 1800 * SECOND;
const QUARTER: i64 = 900 * SECOND;
/// So many ids of a file are compared with those of others: zones differ by quarters of an hour, a few would do.
const MOST_IDS: usize = 1 << 12;

/// What was learnt or assumed of one file's clock.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    /// The year of stamps that have none, by month.
    years: [i32; 13],
    /// Seconds east of Greenwich of stamps that have no zone.
    pub offset: i32,
    /// Nanoseconds that the writer's own stamps are usually ahead of the collector's.
    lead: i64,
    /// Times of the collector alone are in the collector's zone.
    has_lead: bool,
}

/// What the drafts of one file tell of its clock, whatever becomes of them later.
#[derive(Default)]
pub struct Heard {
    /// Years and months that its stamps have themselves.
    dated: BTreeSet<(i32, u8)>,
    /// Some stamps have no year, no zone, a zone.
    yearless: bool,
    bare: bool,
    zoned: bool,
    /// The months of stamps that have no year, by bit.
    months: u16,
    /// How far the writer's stamps are from the collector's, to the half hour.
    leads: BTreeMap<i64, u32>,
    /// How far the collector is ahead of writers that tell their zone.
    behind_collector: BTreeMap<i64, u32>,
    /// How far the writer is ahead of a collector that tells its zone.
    before_collector: BTreeMap<i64, u32>,
    /// When an id was first spoken of without a zone, and by the runtime with one. Nothing is decided by the order of these.
    first_bare: Sample<Stamp>,
    first_zoned: Sample<Moment>,
}

/// Something of some ids. Which ones is told by the ids themselves, so that two files have the same, however many there are.
struct Sample<T> {
    of: hashbrown::HashMap<Name, T>,
    /// Of so many ids one is looked at, less one.
    mask: u64,
}

impl<T> Default for Sample<T> {
    fn default() -> Sample<T> {
        Sample { of: hashbrown::HashMap::new(), mask: 0 }
    }
}

impl<T: Copy> Sample<T> {
    fn hash(id: &Name) -> u64 {
        let mut hasher = std::hash::DefaultHasher::new();
        hasher.write(id.as_bytes());
        hasher.finish()
    }

    /// Notes something of an id, if it is one that is looked at: what there was, and what is new, make what there is.
    fn note(&mut self, id: &Name, new: T, both: impl Fn(T, T) -> T) {
        if Sample::<T>::hash(id) & self.mask != 0 {
            return;
        }
        let there = self.of.entry_ref(id).or_insert(new);
        *there = both(*there, new);
        if self.of.len() > MOST_IDS {
            self.mask = self.mask << 1 | 1;
            let mask = self.mask;
            self.of.retain(|id, _| Sample::<T>::hash(id) & mask == 0);
        }
    }
}

impl Heard {
    /// Hears what a draft tells.
    pub fn take(&mut self, draft: &Kept, names: &Names) {
        let (when, received) = (draft.when(), draft.received());
        if let Some(dated) = when.or(received) {
            match dated.year {
                Some(year) => {
                    self.dated.insert((year, dated.month));
                }
                None => self.months |= 1 << dated.month.min(12),
            }
        }
        let Some(when) = when else { return };
        self.yearless |= when.year.is_none();
        self.bare |= when.offset.is_none();
        self.zoned |= when.offset.is_some();
        if let Some(received) = received {
            let count =
                |of: &mut BTreeMap<i64, u32>, ahead, to| *of.entry(rounded(ahead, to)).or_default() += 1;
            let year = when.year.or(received.year).unwrap_or(2000);
            match (when.offset, received.offset) {
                (None, None) => {
                    let ahead = when.moment(2000, 0).since(received.moment(2000, 0));
                    count(&mut self.leads, ahead, HALF_HOUR);
                }
                (Some(_), None) => {
                    let ahead = received.moment(year, 0).since(when.moment(year, 0));
                    count(&mut self.behind_collector, ahead, QUARTER);
                }
                (None, Some(_)) => {
                    let ahead = when.moment(year, 0).since(received.moment(year, 0));
                    count(&mut self.before_collector, ahead, QUARTER);
                }
                (Some(_), Some(_)) => {}
            }
        }
        let Some(id) = draft.about.id.map(|id| names.get(id)) else { return };
        if when.offset.is_none() {
            let at = |stamp: Stamp| stamp.moment(2000, 0);
            self.first_bare.note(id, when, |a, b| if at(b) < at(a) { b } else { a });
        } else if matches!(draft.witness, Witness::Runtime | Witness::RuntimeEvents) {
            self.first_zoned.note(id, when.moment(1970, 0), Moment::min);
        }
    }
}

/// What a file says of years and zones: by its drafts, by dates that it mentions, and by the zones of its retry deadlines.
pub struct Source<'a> {
    /// By its drafts.
    pub heard: &'a Heard,
    /// Years and months that it mentions.
    pub years: &'a [(i32, u8)],
    /// Zones that its retry deadlines are in.
    pub zones: &'a BTreeMap<i32, u32>,
}

/// Learns the clocks of all files together.
pub fn learn(
    sources: &[Source<'_>],
    assumed_year: Option<i32>,
    now: Moment,
    notes: &mut Vec<String>,
) -> Vec<Clock> {
    let today = Stamp::at(now, 0);
    let this_year = today.year.unwrap_or(1970);
    let mut all_years: Vec<(i32, u8)> = sources.iter().flat_map(|s| s.years.iter().copied()).collect();
    all_years.extend(sources.iter().flat_map(|s| &s.heard.dated));
    all_years.sort_unstable();
    all_years.dedup();
    let mut clocks: Vec<Clock> = Vec::new();
    for source in sources {
        let own = if source.years.is_empty() { &all_years[..] } else { source.years };
        let mut clock = Clock::default();
        for (month, year) in clock.years.iter_mut().enumerate().skip(1) {
            *year = match assumed_year {
                Some(year) => year,
                None => year_of(u8::try_from(month).unwrap_or(1), own)
                    .unwrap_or(if month > usize::from(today.month) { this_year - 1 } else { this_year }),
            };
        }
        // The most frequent distance.
        let most = source.heard.leads.iter().max_by_key(|(distance, n)| (**n, -distance.abs()));
        (clock.has_lead, clock.lead) = (most.is_some(), most.map_or(0, |(distance, _)| *distance));
        clocks.push(clock);
    }
    if all_years.is_empty() && assumed_year.is_none() && sources.iter().any(|s| s.heard.yearless) {
        notes.push(format!("no file says which year it is: the last one is assumed that puts nothing into the future (before {}-{:02}-{:02})", this_year, today.month, today.day));
    }
    zones(sources, &mut clocks, notes);
    clocks
}

/// The year of a month, by the mention that is nearest on the calendar.
fn year_of(month: u8, mentions: &[(i32, u8)]) -> Option<i32> {
    let candidates = mentions.iter().map(|(year, mentioned)| {
        let distance = i32::from(month) - i32::from(*mentioned);
        match distance {
            d if d > 6 => (12 - d, year - 1),
            d if d < -6 => (12 + d, year + 1),
            d => (d.abs(), *year),
        }
    });
    candidates.min_by_key(|(distance, _)| *distance).map(|(_, year)| year)
}

fn rounded(value: i64, to: i64) -> i64 {
    (value + to / 2).div_euclid(to) * to
}

/// Zones: told by retry deadlines, by a collector's zone, or by witnesses of the same containers who tell theirs.
fn zones(sources: &[Source<'_>], clocks: &mut [Clock], notes: &mut Vec<String>) {
    let mut assumed = false;
    let zoned = sources.iter().any(|s| s.heard.zoned);
    let utc = |id: &Name| sources.iter().filter_map(|s| s.heard.first_zoned.of.get(id)).min().copied();
    for (source, clock) in sources.iter().zip(clocks) {
        let heard = source.heard;
        if !heard.bare {
            continue;
        }
        if let Some((offset, _)) = source.zones.iter().max_by_key(|(_, n)| **n) {
            clock.offset = *offset;
            continue;
        }
        let mut votes = heard.before_collector.clone();
        // Writers that tell their zone, behind a collector that doesn't: they tell the collector's, and the kubelet's hour is
        // ahead of that by what its own lines are.
        for (ahead, n) in &heard.behind_collector {
            *votes.entry(rounded(ahead.saturating_add(clock.lead), QUARTER)).or_default() += n;
        }
        if votes.is_empty() {
            for (id, local) in &heard.first_bare.of {
                if let Some(utc) = utc(id) {
                    let local = local.moment(clock.years[usize::from(local.month.min(12))], 0);
                    *votes.entry(rounded(local.since(utc), QUARTER)).or_default() += 1;
                }
            }
        }
        let day = 14 * 3600 * SECOND;
        match votes.into_iter().filter(|(v, _)| v.abs() <= day).max_by_key(|(v, n)| (*n, -v.abs())) {
            Some((offset, _)) => clock.offset = i32::try_from(offset / SECOND).unwrap_or(0),
            None => assumed = true,
        }
    }
    if assumed && zoned {
        notes
            .push("a file tells no zone, nor does anything in the others tell it: UTC is assumed".to_owned());
    }
}

impl Clock {
    /// Whether it gives everything that was heard of a file the moment that another one gives it.
    pub fn agrees(&self, other: &Clock, heard: &Heard) -> bool {
        let months = (1..13).filter(|month| heard.months & 1 << month != 0);
        self.offset == other.offset
            && (self.lead, self.has_lead) == (other.lead, other.has_lead)
            && months.into_iter().all(|month| self.years[month] == other.years[month])
    }

    /// The moment of a draft, and whether the writer's clock had slipped.
    pub fn moment(&self, draft: &Kept) -> (Option<Moment>, bool) {
        let year = |s: Stamp| self.years[usize::from(s.month.min(12))];
        let at = |s: Stamp| s.moment(year(s), self.offset);
        match (draft.when(), draft.received()) {
            (Some(when), Some(received)) if when.offset.is_none() && received.offset.is_none() => {
                // A line whose hour disagrees with its collector's as no other does: the collector is right.
                let off =
                    rounded(when.moment(2000, 0).since(received.moment(2000, 0)), HALF_HOUR) - self.lead;
                let year_turn = off.abs() > 300 * 86_400 * SECOND;
                if off != 0 && !year_turn {
                    (Some(at(when).plus(-off)), true)
                } else {
                    (Some(at(when)), false)
                }
            }
            (Some(when), _) if draft.witness == Witness::System && when.offset.is_none() && self.has_lead => {
                (Some(at(when).plus(self.lead)), false)
            }
            (Some(when), _) => (Some(at(when)), false),
            (None, Some(received)) => (Some(at(received)), false),
            (None, None) => (None, false),
        }
    }

    /// A stamp inside this file's payloads.
    pub fn stamp(&self, stamp: Stamp) -> Moment {
        stamp.moment(self.years[usize::from(stamp.month.min(12))], self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_mention_tells_the_year() {
        assert_eq!(year_of(12, &[(2024, 1)]), Some(2023));
        assert_eq!(year_of(1, &[(2023, 12)]), Some(2024));
        assert_eq!(year_of(3, &[(2020, 9), (2024, 3)]), Some(2024));
        assert_eq!(year_of(3, &[]), None);
    }
}
