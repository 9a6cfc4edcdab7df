//! Years, zones and slips: how the stamps of several files become moments of one line of time (node-logs §1.8).
//!
//! What the files say themselves comes first; what is assumed is told in notes.

use crate::evidence::Witness;
use crate::kept::Kept;
use crate::names::Sym;
use crate::stamp::{Moment, SECOND, Stamp};
use std::collections::BTreeMap;

const HALF_HOUR: i64 = 1800 * SECOND;
const QUARTER: i64 = 900 * SECOND;

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

/// A file's drafts and what it says of years and zones.
pub struct Source<'a> {
    /// Its drafts.
    pub drafts: &'a [Kept],
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
    for source in sources {
        let dated = |d: &Kept| d.when().or(d.received()).and_then(|w| w.year.map(|y| (y, w.month)));
        all_years.extend(source.drafts.iter().filter_map(dated));
    }
    all_years.sort_unstable();
    all_years.dedup();
    let mut clocks: Vec<Clock> = Vec::new();
    for source in sources {
        let own: Vec<(i32, u8)> = match assumed_year {
            Some(year) => vec![(year, 7)],
            None if !source.years.is_empty() => source.years.to_vec(),
            None => all_years.clone(),
        };
        let mut clock = Clock::default();
        for (month, year) in clock.years.iter_mut().enumerate().skip(1) {
            *year = match assumed_year {
                Some(year) => year,
                None => year_of(u8::try_from(month).unwrap_or(1), &own)
                    .unwrap_or(if month > usize::from(today.month) { this_year - 1 } else { this_year }),
            };
        }
        clocks.push(clock);
    }
    if all_years.is_empty()
        && assumed_year.is_none()
        && sources.iter().any(|s| s.drafts.iter().any(|d| d.when().is_some_and(|w| w.year.is_none())))
    {
        notes.push(format!("no file says which year it is: the last one is assumed that puts nothing into the future (before {}-{:02}-{:02})", this_year, today.month, today.day));
    }
    for (i, source) in sources.iter().enumerate() {
        clocks[i].lead = lead(source.drafts, &mut clocks[i].has_lead);
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

/// How far the writer's stamps usually are from the collector's, to the half hour: the most frequent distance.
fn lead(drafts: &[Kept], found: &mut bool) -> i64 {
    let mut seen: BTreeMap<i64, u32> = BTreeMap::new();
    for draft in drafts {
        if let (Some(when), Some(received)) = (draft.when(), draft.received())
            && when.offset.is_none()
            && received.offset.is_none()
        {
            let distance = when.moment(2000, 0).since(received.moment(2000, 0));
            *seen.entry(rounded(distance, HALF_HOUR)).or_default() += 1;
        }
    }
    let most = seen.into_iter().max_by_key(|(distance, n)| (*n, -distance.abs()));
    *found = most.is_some();
    most.map_or(0, |(distance, _)| distance)
}

fn rounded(value: i64, to: i64) -> i64 {
    (value + to / 2).div_euclid(to) * to
}

/// Zones: told by retry deadlines, by a collector's zone, or by witnesses of the same containers who tell theirs.
fn zones(sources: &[Source<'_>], clocks: &mut [Clock], notes: &mut Vec<String>) {
    let mut assumed = false;
    let zoned = sources.iter().flat_map(|s| s.drafts).any(|d| d.when().is_some_and(|w| w.offset.is_some()));
    let mut first_zoned: BTreeMap<Sym, Moment> = BTreeMap::new();
    for draft in sources.iter().flat_map(|s| s.drafts) {
        if let (Some(when), Some(id)) = (draft.when(), draft.about.id)
            && when.offset.is_some()
            && matches!(draft.witness, Witness::Runtime | Witness::RuntimeEvents)
        {
            let at = when.moment(1970, 0);
            first_zoned.entry(id).and_modify(|m| *m = at.min(*m)).or_insert(at);
        }
    }
    for (i, source) in sources.iter().enumerate() {
        let bare = source.drafts.iter().any(|d| d.when().is_some_and(|w| w.offset.is_none()));
        if !bare {
            continue;
        }
        if let Some((offset, _)) = source.zones.iter().max_by_key(|(_, n)| **n) {
            clocks[i].offset = *offset;
            continue;
        }
        let mut votes: BTreeMap<i64, u32> = BTreeMap::new();
        let mut first_bare: BTreeMap<Sym, Moment> = BTreeMap::new();
        // Writers that tell their zone, behind a collector that doesn't: they tell the collector's, and the kubelet's hour is
        // ahead of that by what its own lines are.
        for draft in source.drafts {
            if let (Some(when), Some(received)) = (draft.when(), draft.received())
                && when.offset.is_some()
                && received.offset.is_none()
            {
                let year = when.year.unwrap_or(clocks[i].years[usize::from(received.month.min(12))]);
                let ahead =
                    received.moment(year, 0).since(when.moment(year, 0)).saturating_add(clocks[i].lead);
                *votes.entry(rounded(ahead, QUARTER)).or_default() += 1;
            }
        }
        for draft in source.drafts {
            let Some(when) = draft.when().filter(|w| w.offset.is_none()) else { continue };
            let local = when.moment(clocks[i].years[usize::from(when.month.min(12))], 0);
            if let Some(received) = draft.received().filter(|r| r.offset.is_some()) {
                *votes.entry(rounded(local.since(received.moment(1970, 0)), QUARTER)).or_default() += 1;
            }
            if let Some(id) = draft.about.id {
                first_bare.entry(id).and_modify(|m| *m = local.min(*m)).or_insert(local);
            }
        }
        if votes.is_empty() {
            for (id, local) in &first_bare {
                if let Some(utc) = first_zoned.get(id) {
                    *votes.entry(rounded(local.since(*utc), QUARTER)).or_default() += 1;
                }
            }
        }
        let day = 14 * 3600 * SECOND;
        match votes.into_iter().filter(|(v, _)| v.abs() <= day).max_by_key(|(v, n)| (*n, -v.abs())) {
            Some((offset, _)) => clocks[i].offset = i32::try_from(offset / SECOND).unwrap_or(0),
            None => assumed = true,
        }
    }
    if assumed && zoned {
        notes
            .push("a file tells no zone, nor does anything in the others tell it: UTC is assumed".to_owned());
    }
}

impl Clock {
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
