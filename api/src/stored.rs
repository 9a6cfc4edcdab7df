//! What an API server stores, taken apart to be kept and put together again: a fold that goes on from it is the fold of
//! everything before. The objects themselves are kept by whoever keeps the rest; they say themselves which they are.

use crate::hold::Holds;
use crate::store::Key;
use crate::{Api, ApiConfig, key, view};
use nodefold_core::config::FeatureGates;
use nodefold_core::ids::Name;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// All that `Api` knows besides its configuration and the objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    version: u64,
    gates: FeatureGates,
    digest: u128,
    held: Vec<Held>,
}

/// Names that are in flight in an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Held {
    kind: Name,
    namespace: Name,
    name: Name,
    holds: Holds,
}

impl Api {
    /// All of it but the objects.
    pub fn stored(&self) -> Stored {
        let held = self.store.all().filter(|(_, entry)| !entry.holds.is_empty());
        let held = held.map(|(key, entry)| Held {
            kind: key.kind.clone(),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            holds: entry.holds.clone(),
        });
        Stored {
            version: self.resource_version(),
            gates: self.gates(),
            digest: self.digest().0,
            held: held.collect(),
        }
    }

    /// One that stores exactly what was stored then, or why these objects are not those. What happened before is not told to
    /// watches: they begin at its version.
    pub fn from_stored(
        config: ApiConfig,
        stored: &Stored,
        objects: impl IntoIterator<Item = Arc<Value>>,
    ) -> Result<Api, String> {
        let mut api = Api::new(config);
        api.config.gates = stored.gates;
        let of = |held: &Held| Key {
            kind: held.kind.clone(),
            namespace: held.namespace.clone(),
            name: held.name.clone(),
        };
        let mut held: BTreeMap<Key, &Holds> =
            stored.held.iter().map(|held| (of(held), &held.holds)).collect();
        for object in objects {
            let metadata = view::at(&object, "metadata");
            let (namespace, name) = (view::text(metadata, "namespace"), view::text(metadata, "name"));
            let key = key(view::text(&object, "kind"), namespace, name);
            let holds = held.remove(&key).cloned().unwrap_or_default();
            api.store.restore(key, object, holds);
        }
        api.store.go_on_from(stored.version);
        let digest = api.digest().0;
        if digest != stored.digest || !held.is_empty() {
            return Err(format!(
                "the objects have the digest {digest:032x}, {:032x} was kept",
                stored.digest
            ));
        }
        Ok(api)
    }
}
