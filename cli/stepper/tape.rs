//! The journal as a list of moments: each record that tells something, what it made the node do, and what was found there.

use crate::picture::{self, Picture};
use anyhow::Result;
use nodefold_core::Node;
use nodefold_core::time::Time;
use nodefold_journal::{Files, Position, Storage, replay};
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// So many folded nodes are kept at hand.
const KEPT: usize = 32;

/// A record that tells something.
#[derive(Clone, Debug, Default)]
pub struct Moment {
    /// Its number.
    pub record: u64,
    /// When, in microseconds since the beginning.
    pub at: i64,
    /// What it says.
    pub text: String,
    /// Whom it is about: a pod's name, or nothing for the node.
    pub pod: Option<String>,
    /// `fact`, `note` or `request`.
    pub who: &'static str,
    /// It tells of something that went wrong.
    pub bad: bool,
    /// It moves nothing on.
    pub quiet: bool,
    /// What the node asked for because of it.
    pub consequences: Vec<String>,
    /// What was found here, or expected and not so.
    pub findings: Vec<String>,
}

/// A journal that can be wound to any moment.
pub struct Tape {
    /// Its name.
    pub title: String,
    /// Its moments, in order.
    pub moments: Vec<Moment>,
    /// When it begins.
    pub beginning: Time,
    storage: Arc<dyn Storage>,
    kept: BTreeMap<u64, Rc<Node>>,
}

impl Tape {
    /// Reads a journal and judges it.
    pub fn read(journal: &Path, beginning: Time) -> Result<Tape> {
        let picture = picture::read_journal(journal)?;
        Ok(Tape {
            title: journal.display().to_string(),
            moments: moments(&picture),
            beginning,
            storage: Files::at(journal),
            kept: BTreeMap::new(),
        })
    }

    /// The node as it was after a record. Folded from the nearest snapshot before it.
    pub fn node(&mut self, record: u64) -> Result<Rc<Node>> {
        if let Some(node) = self.kept.get(&record) {
            return Ok(node.clone());
        }
        let folded = replay::<Node>(&self.storage, Some(Position::Record(record)))?;
        let node = Rc::new(folded.fold);
        if self.kept.len() >= KEPT {
            // The one farthest away is needed last.
            let far = self.kept.keys().copied().max_by_key(|r| r.abs_diff(record));
            far.and_then(|far| self.kept.remove(&far));
        }
        self.kept.insert(record, node.clone());
        Ok(node)
    }
}

/// Entries of one record are one moment.
fn moments(picture: &Picture) -> Vec<Moment> {
    let mut all: Vec<Moment> = Vec::new();
    for entry in &picture.entries {
        if let Some(last) = all.last_mut()
            && last.record == entry.line
        {
            last.consequences.push(entry.text.clone());
            continue;
        }
        let lane = &picture.lanes[entry.lane as usize];
        let missed = entry.bad && entry.who == "note";
        all.push(Moment {
            record: entry.line,
            at: entry.at.unwrap_or(0),
            text: entry.text.clone(),
            pod: lane.pod.map(|pod| picture.lanes[pod as usize].name.clone()),
            who: entry.who,
            bad: entry.bad,
            quiet: entry.quiet,
            consequences: Vec::new(),
            findings: if missed { vec![entry.text.clone()] } else { Vec::new() },
        });
    }
    for finding in &picture.findings {
        let record = finding.evidence.iter().map(|e| picture.entries[*e as usize].line).max();
        let place = record.and_then(|record| all.iter_mut().find(|m| m.record == record));
        if let Some(moment) = place {
            let invariant = finding.invariant.as_deref().unwrap_or_default();
            moment.findings.push(format!("{} {invariant}: {}", finding.kind, finding.explanation));
        }
    }
    all
}
