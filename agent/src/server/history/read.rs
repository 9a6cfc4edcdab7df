//! The history as it is read: what is remembered and what is in the archive together; by the server, and by whoever has the
//! journal's directory alone.

use super::archive::{Archive, Excerpt};
use super::image::HISTORY_FORM;
use super::{Entry, HISTORY_STREAM, History, Kind, When};
use crate::fault::Fault;
use nodefold_journal::{Files, Position, Reader, Record, Storage, kept};
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// What is asked for and not remembered: what is, and where the rest of it may be.
#[derive(Clone, Debug)]
pub struct Past {
    kind: Kind,
    namespace: String,
    name: Option<String>,
    when: When,
    /// The history's version that is answered.
    pub version: u64,
    remembered: Vec<(u64, Value)>,
    rest: Option<Excerpt>,
}

impl Past {
    /// The objects of a kind as of then; in this namespace, if it is named.
    pub fn list(history: &History, archive: &Archive, kind: Kind, namespace: &str, when: When) -> Past {
        let in_place = |object: &Value| namespace.is_empty() || object["metadata"]["namespace"] == *namespace;
        let remembered = history.listed(kind, when).filter(|(_, object)| in_place(object)).collect();
        let rest = archive.excerpt(history, kind, when);
        let (namespace, version) = (namespace.to_owned(), history.version());
        Past { kind, namespace, name: None, when, version, remembered, rest }
    }

    /// The object of that name, which is not remembered.
    pub fn get(history: &History, archive: &Archive, kind: Kind, namespace: &str, name: &str) -> Past {
        let rest = archive.excerpt(history, kind, When::Now);
        let (namespace, name, version) = (namespace.to_owned(), Some(name.to_owned()), history.version());
        Past { kind, namespace, name, when: When::Now, version, remembered: Vec::new(), rest }
    }

    /// The name that is asked for.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// Reads it, oldest first.
    pub fn read(self) -> Result<Vec<Arc<Value>>, Fault> {
        let Past { kind, namespace, name, when, mut remembered, rest, .. } = self;
        let take = |mut episodes: Vec<super::Episode>| match &name {
            Some(name) => {
                episodes.sort_unstable_by_key(|episode| episode.born);
                let newest = episodes.iter().rev().find(|episode| episode.is_named(kind, &namespace, name));
                remembered.extend(newest.map(|episode| (episode.born, episode.object(episode.ended))));
                newest.is_some()
            }
            None => {
                let there =
                    episodes.iter().filter(|e| namespace.is_empty() || *e.place.namespace == *namespace);
                remembered.extend(there.filter_map(|e| Some((e.born, e.shown(kind, when)?))));
                false
            }
        };
        rest.map_or(Ok(()), |rest| rest.each(take))?;
        remembered.sort_unstable_by_key(|(born, _)| *born);
        Ok(remembered.into_iter().map(|(_, object)| Arc::new(object)).collect())
    }

    /// The objects of a kind as of then, from a journal's directory alone.
    pub fn of_journal(journal: &Path, kind: Kind, when: When) -> Result<Vec<Arc<Value>>, Fault> {
        let storage = Files::at(journal);
        let wrong = |error: nodefold_journal::Error| Fault::refused(error.to_string());
        let (found, _) = kept(&storage, HISTORY_STREAM, HISTORY_FORM).map_err(wrong)?;
        // What can't be read is as good as nothing kept.
        let image = found.and_then(|found| {
            let image: Remembered = serde_json::from_slice(&found.bytes).ok()?;
            Some((image.history.restored(usize::MAX), found.records))
        });
        let archive = Archive::look(journal)?;
        let (mut history, records) = match image {
            Some((history, records)) if archive.covers(&history) => (history, records),
            Some(_) | None => (History::new(usize::MAX), 0),
        };
        fold(&storage, &mut history, records).map_err(wrong)?;
        Past::list(&history, &archive, kind, "", when).read()
    }
}

/// As much of the document as is asked of a journal.
#[derive(Deserialize)]
struct Remembered {
    history: History,
}

fn fold(
    storage: &Arc<dyn Storage>,
    history: &mut History,
    after: u64,
) -> Result<(), nodefold_journal::Error> {
    for entry in Reader::open_at(storage, Position::Record(after + 1))? {
        if let Record::Foreign(foreign) = entry?.record
            && foreign.stream == HISTORY_STREAM
            // A record of another version of this program that can't be read says nothing to this one.
            && let Ok(entry) = Entry::from_bytes(&foreign.bytes)
        {
            history.fold(&entry);
        }
    }
    Ok(())
}
