//! Going on with a journal after a stop, a crash or a full disk: recover, fold, write.

use crate::difference::Difference;
use crate::error::{Damage, Error, io_error};
use crate::fold::Fold;
use crate::log::Log;
use crate::replay::{Report, from_best_snapshot};
use crate::segment::{self, SegmentName};
use crate::storage::Storage;
use crate::writer::{Options, Resumption, Writer, lock};
use nodefold_core::Config;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A journal that goes on.
pub struct Resumed<F> {
    /// Its writer.
    pub writer: Writer,
    /// The state after everything in it.
    pub fold: F,
    /// What the fold began with.
    pub config: Config,
    /// What was found. A [`Difference`] means that this program folds the tail otherwise than the one that wrote it.
    pub report: Report,
    /// Records on which the fold panicked, twice: they are skipped from now on, and the next commit says so.
    pub newly_skipped: Vec<(u64, String)>,
    /// Unfinished files that a crash left, removed.
    pub removed: Vec<String>,
}

impl<F> Resumed<F> {
    /// The first difference between the record and the fold, if there is one.
    pub fn difference(&self) -> Option<&Difference> {
        self.report.difference.as_ref()
    }
}

/// Recovers a journal, cuts a torn tail (the report says what), folds it from its newest usable snapshot, and opens it
/// for writing. Segments that the snapshot includes are not read: starting must not take longer with age, and
/// [`verify`](crate::verify) reads all of them. A record on which the fold panics twice is skipped; panicking once may be an accident of the machine.
pub fn resume<F: Fold>(storage: Arc<dyn Storage>, options: Options) -> Result<Resumed<F>, Error> {
    let lock = lock(&*storage)?;
    let removed = remove_unfinished(&*storage)?;
    let log = Log::open(storage.clone())?;
    let mut skip = BTreeMap::new();
    let mut panicked_at = None;
    let (replayed, outcome) = loop {
        match from_best_snapshot::<F>(&log, None, &skip) {
            Ok(done) => break done,
            Err(Error::ApplyPanicked { record, message, .. }) if panicked_at == Some(record) => {
                skip.insert(record, message);
            }
            Err(Error::ApplyPanicked { record, .. }) => panicked_at = Some(record),
            Err(e) => return Err(e),
        }
    };
    let Some(end) = outcome.end else {
        return Err(Error::NotAJournal { dir: storage.path("") });
    };
    let report = replayed.report;
    let resumption = Resumption {
        id: log.segments[0].1.id,
        end,
        torn: report.cut.is_some(),
        at: report.at,
        commands: outcome.commands,
        events: report.events,
        config: replayed.config.clone(),
        must_roll: outcome.header.software != options.software || outcome.header.layout != F::LAYOUT,
    };
    let mut writer = Writer::go_on(storage, options, lock, resumption)?;
    for (record, reason) in &skip {
        writer.skip(*record, reason)?;
    }
    Ok(Resumed {
        writer,
        fold: replayed.fold,
        config: replayed.config,
        report,
        newly_skipped: skip.into_iter().collect(),
        removed,
    })
}

/// Removes what a crash left unfinished: temporary files, and one of two forms of a segment that say the same.
fn remove_unfinished(storage: &dyn Storage) -> Result<Vec<String>, Error> {
    let names = storage.list().map_err(|e| io_error("list", storage.path(""), 0, e))?;
    let mut unneeded: Vec<String> = names
        .iter()
        .filter(|n| {
            n.strip_suffix(".tmp").is_some_and(|n| {
                let states = [".snap", ".state", ".kept"];
                SegmentName::parse(n).is_some() || states.iter().any(|ending| n.ends_with(ending))
            })
        })
        .cloned()
        .collect();
    for name in names.iter().filter_map(|n| SegmentName::parse(n)).filter(|n| n.compressed) {
        let raw = SegmentName { compressed: false, ..name };
        if !names.contains(&raw.file()) {
            continue;
        }
        if segment::load(storage, &name)?.bytes != segment::load(storage, &raw)?.bytes {
            return Err(Error::Damaged {
                file: storage.path(&raw.file()),
                offset: 0,
                record: raw.first_record,
                what: Damage::TwoForms,
            });
        }
        unneeded.push(raw.file());
    }
    for name in &unneeded {
        storage.remove(name).map_err(|e| io_error("remove", storage.path(name), 0, e))?;
    }
    if !unneeded.is_empty() {
        storage.sync_dir().map_err(|e| io_error("sync", storage.path(""), 0, e))?;
    }
    Ok(unneeded)
}
