//! What ran here, what was mounted, what was allocated, and who asked: folded from the records that the node's loop writes
//! beside its facts (`record.rs`), live and by whoever reads a journal alone. What has ended is remembered up to a number;
//! what was before that is read from blocks beside the journal.
//!
//! | file | owns |
//! |---|---|
//! | `record.rs` | what is written |
//! | `archive.rs` | what is remembered no longer |
//! | `derive.rs` | what is new in the node's state |
//! | `image.rs` | what is kept beside the journal |
//! | `object.rs`, `schema.rs` | episodes as Kubernetes objects, and what their fields mean |
//! | `when.rs` | as of when it is asked for |

pub(super) mod archive;
pub mod derive;
pub(super) mod image;
mod object;
mod read;
pub mod record;
pub(super) mod schema;
pub mod when;

pub use read::Past;
pub use record::{Entry, HISTORY_STREAM, What};
pub use when::When;

use nodefold_api::ChangeType;
use nodefold_core::command::Subject;
use nodefold_core::event::Exit;
use nodefold_core::ids::{ContainerId, Name, PodUid, VolumeId};
use nodefold_core::time::Time;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Who asked for which generation is remembered for so many generations of a pod that are not allocated.
const GENERATIONS: usize = 64;

/// What there is a history of.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Kind {
    /// Lives of containers.
    ContainerRun,
    /// Lives of volumes.
    VolumeRun,
    /// What was allocated to pods.
    Allocation,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 3] = [Kind::ContainerRun, Kind::VolumeRun, Kind::Allocation];

    /// The kind of that name.
    pub fn named(kind: &str) -> Option<Kind> {
        match kind {
            "ContainerRun" => Some(Kind::ContainerRun),
            "VolumeRun" => Some(Kind::VolumeRun),
            "Allocation" => Some(Kind::Allocation),
            _ => None,
        }
    }

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::ContainerRun => "ContainerRun",
            Kind::VolumeRun => "VolumeRun",
            Kind::Allocation => "Allocation",
        }
    }

    const fn of(detail: &Detail) -> Kind {
        match detail {
            Detail::Container { .. } => Kind::ContainerRun,
            Detail::Volume { .. } => Kind::VolumeRun,
            Detail::Allocation { .. } => Kind::Allocation,
        }
    }
}

/// A pod by name.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Place {
    namespace: Name,
    name: Name,
}

/// Who asked for something, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Asked {
    by: Name,
    at: Time,
}

/// Something that began, and has ended or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Episode {
    pod: PodUid,
    place: Arc<Place>,
    began: Time,
    /// The version that its beginning made.
    born: u64,
    /// When it ended, and the version that this made.
    ended: Option<(Time, u64)>,
    asked: Option<Asked>,
    detail: Detail,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Detail {
    Container { id: ContainerId, image: Name, exit: Option<Exit> },
    Volume { id: VolumeId, source: Name },
    Allocation { generation: u64, revision: u64, spec: Arc<Value> },
}

/// A pod that is here, or asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Known {
    place: Arc<Place>,
    containers: BTreeMap<Name, Wanted>,
    volumes: BTreeMap<Name, Wanted>,
    generations: BTreeMap<u64, Asked>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Wanted {
    asked: Asked,
    /// It is wanted still; otherwise it was until the request before.
    still: bool,
    /// The newest life of it that has ended.
    ended: Option<(u32, u32)>,
}

/// All of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Shelf {
    /// By the version that began them.
    episodes: BTreeMap<u64, Episode>,
    /// Those that have ended, in that order.
    #[serde(skip)]
    ended: VecDeque<u64>,
    /// Of what is not remembered any more: the latest end.
    forgotten: Option<(Time, u64)>,
}

/// The history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct History {
    #[serde(skip)]
    kept: usize,
    version: u64,
    shelves: BTreeMap<Kind, Shelf>,
    #[serde(skip)]
    open: BTreeMap<PodUid, BTreeMap<Subject, u64>>,
    pods: BTreeMap<PodUid, Known>,
}

/// A change as watchers see it.
#[derive(Debug)]
pub struct Changed {
    /// The history's version that it made.
    pub version: u64,
    /// Of what.
    pub kind: Kind,
    /// What happened.
    pub change: ChangeType,
    /// The object after it; before it, if deleted.
    pub object: Value,
    /// The object before it.
    pub old: Option<Value>,
}

impl History {
    /// One that remembers so many ended episodes of each kind.
    pub fn new(kept: usize) -> History {
        History {
            kept,
            version: 0,
            shelves: Kind::ALL.into_iter().map(|kind| (kind, Shelf::default())).collect(),
            open: BTreeMap::new(),
            pods: BTreeMap::new(),
        }
    }

    /// How many changes there were.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// A record was written, or is read. What watchers see of it.
    pub fn fold(&mut self, entry: &Entry) -> Vec<Changed> {
        match &entry.what {
            What::Asked { pod, namespace, name, generation, by, containers, volumes } => {
                let asked = Asked { by: by.clone(), at: entry.at };
                let known = self.pods.entry(*pod).or_insert_with(|| Known {
                    place: Arc::new(Place { namespace: namespace.clone(), name: name.clone() }),
                    ..Known::default()
                });
                known.generations.insert(*generation, asked.clone());
                while known.generations.len() > GENERATIONS {
                    known.generations.pop_first();
                }
                want(&mut known.containers, containers, &asked);
                want(&mut known.volumes, volumes, &asked);
                Vec::new()
            }
            What::Allocated { pod, generation, revision, spec } => {
                let before = self.close(*pod, &Subject::Pod, entry.at, None);
                let known = self.pods.entry(*pod).or_default();
                // What was asked for before is allocated with it.
                let asked =
                    known.generations.range(..=*generation).next_back().map(|(_, asked)| asked.clone());
                known.generations = known.generations.split_off(generation);
                let (generation, revision) = (*generation, *revision);
                let detail = Detail::Allocation { generation, revision, spec: Arc::new(spec.clone()) };
                let mut changed = self.begin(*pod, Subject::Pod, entry.at, asked, detail);
                if let Some(before) = before {
                    changed.change = ChangeType::Modified;
                    changed.old = before.old;
                }
                vec![changed]
            }
            What::Started { pod, container, image, since } => {
                let wanted = self.pods.get(pod).and_then(|known| known.containers.get(&container.name));
                let asked = wanted.map(|wanted| wanted.asked.clone());
                let detail = Detail::Container { id: container.clone(), image: image.clone(), exit: None };
                vec![self.begin(*pod, Subject::Container(container.clone()), *since, asked, detail)]
            }
            What::Ended { pod, container, exit } => {
                let wanted =
                    self.pods.get_mut(pod).and_then(|known| known.containers.get_mut(&container.name));
                if let Some(wanted) = wanted {
                    wanted.ended = wanted.ended.max(Some((container.incarnation, container.attempt)));
                }
                let subject = Subject::Container(container.clone());
                self.close(*pod, &subject, exit.finished_at, Some(exit)).into_iter().collect()
            }
            What::Mounted { pod, volume, source } => {
                let wanted = self.pods.get(pod).and_then(|known| known.volumes.get(&volume.name));
                let asked = wanted.map(|wanted| wanted.asked.clone());
                let detail = Detail::Volume { id: volume.clone(), source: source.clone() };
                vec![self.begin(*pod, Subject::Volume(volume.clone()), entry.at, asked, detail)]
            }
            What::Unmounted { pod, volume } => {
                self.close(*pod, &Subject::Volume(volume.clone()), entry.at, None).into_iter().collect()
            }
            What::Left { pod } => {
                self.pods.remove(pod);
                let gone = self.close(*pod, &Subject::Pod, entry.at, None);
                gone.map(|gone| Changed { change: ChangeType::Deleted, ..gone }).into_iter().collect()
            }
        }
    }

    fn begin(
        &mut self,
        pod: PodUid,
        subject: Subject,
        began: Time,
        asked: Option<Asked>,
        detail: Detail,
    ) -> Changed {
        self.version += 1;
        let (kind, born) = (Kind::of(&detail), self.version);
        let place = self.pods.get(&pod).map(|known| known.place.clone()).unwrap_or_default();
        let episode = Episode { pod, place, began, born, ended: None, asked, detail };
        let object = episode.object(None);
        self.open.entry(pod).or_default().insert(subject, born);
        self.shelf(kind).episodes.insert(born, episode);
        Changed { version: born, kind, change: ChangeType::Added, object, old: None }
    }

    fn close(&mut self, pod: PodUid, subject: &Subject, at: Time, how: Option<&Exit>) -> Option<Changed> {
        let open = self.open.get_mut(&pod)?;
        let born = open.remove(subject)?;
        if open.is_empty() {
            self.open.remove(&pod);
        }
        let kind = match subject {
            Subject::Container(_) => Kind::ContainerRun,
            Subject::Volume(_) => Kind::VolumeRun,
            Subject::Pod | Subject::Sandbox(_) => Kind::Allocation,
        };
        self.version += 1;
        let version = self.version;
        let shelf = self.shelf(kind);
        let episode = shelf.episodes.get_mut(&born)?;
        let old = episode.object(None);
        episode.ended = Some((at, version));
        if let (Detail::Container { exit, .. }, Some(how)) = (&mut episode.detail, how) {
            *exit = Some(how.clone());
        }
        let object = episode.object(episode.ended);
        shelf.ended.push_back(born);
        Some(Changed { version, kind, change: ChangeType::Modified, object, old: Some(old) })
    }

    /// The oldest `most` that have ended, if there are so many more than are to be remembered; they no longer are.
    fn overflow(&mut self, kind: Kind, most: usize) -> Option<Vec<Episode>> {
        let enough = self.kept.saturating_add(most);
        let shelf = self.shelf(kind);
        if shelf.ended.len() < enough {
            return None;
        }
        let oldest = shelf.ended.drain(..most).collect::<Vec<u64>>();
        let leave: Vec<Episode> = oldest.iter().filter_map(|born| shelf.episodes.remove(born)).collect();
        for (at, version) in leave.iter().filter_map(|episode| episode.ended) {
            let before = shelf.forgotten.unwrap_or((at, version));
            shelf.forgotten = Some((before.0.max(at), before.1.max(version)));
        }
        Some(leave)
    }

    /// The latest version that ended what is no longer remembered.
    fn forgotten(&self, kind: Kind) -> u64 {
        self.shelves.get(&kind).and_then(|shelf| shelf.forgotten).map_or(0, |(_, version)| version)
    }

    fn shelf(&mut self, kind: Kind) -> &mut Shelf {
        self.shelves.entry(kind).or_default()
    }

    /// What a pod's new generation asks for, if it is one that is not known.
    pub fn asked(&self, by: &str, pod: &Value) -> Option<What> {
        let metadata = &pod["metadata"];
        let text = |field: &str| Name::from(metadata[field].as_str().unwrap_or_default());
        let uid = nodefold_k8s::pod_uid(metadata["uid"].as_str()?);
        let generation = metadata["generation"].as_u64().unwrap_or_default();
        let known = self.pods.get(&uid).and_then(|known| known.generations.last_key_value());
        if known.is_some_and(|(newest, _)| *newest >= generation) {
            return None;
        }
        let names = |lists: &[&str]| -> Vec<Name> {
            let entries = lists.iter().flat_map(|list| pod["spec"][*list].as_array().into_iter().flatten());
            entries.filter_map(|entry| entry["name"].as_str()).map(Name::from).collect()
        };
        Some(What::Asked {
            pod: uid,
            namespace: text("namespace"),
            name: text("name"),
            generation,
            by: by.into(),
            containers: names(&["initContainers", "containers", "ephemeralContainers"]),
            volumes: names(&["volumes"]),
        })
    }

    /// What is under way of a pod.
    fn open(&self, pod: PodUid) -> impl Iterator<Item = &Subject> {
        self.open.get(&pod).into_iter().flat_map(BTreeMap::keys)
    }

    fn is_open(&self, pod: PodUid, subject: &Subject) -> bool {
        self.open.get(&pod).is_some_and(|open| open.contains_key(subject))
    }

    /// The generation that was allocated last.
    fn allocated(&self, pod: PodUid) -> Option<u64> {
        let born = self.open.get(&pod)?.get(&Subject::Pod)?;
        match &self.shelves.get(&Kind::Allocation)?.episodes.get(born)?.detail {
            Detail::Allocation { generation, .. } => Some(*generation),
            Detail::Container { .. } | Detail::Volume { .. } => None,
        }
    }

    /// This life of a container that the node knows to have ended was never told.
    fn missed(&self, pod: PodUid, name: &Name, incarnation: u32, attempt: u32) -> bool {
        let wanted = self.pods.get(&pod).and_then(|known| known.containers.get(name));
        wanted.is_some_and(|wanted| wanted.ended < Some((incarnation, attempt)))
    }

    /// The pod is asked for, or something of it is here.
    pub fn knows(&self, pod: PodUid) -> bool {
        self.pods.contains_key(&pod) || self.open.contains_key(&pod)
    }

    /// The pod's namespace and name.
    pub fn place(&self, pod: PodUid) -> Option<(Name, Name)> {
        self.pods.get(&pod).map(|known| (known.place.namespace.clone(), known.place.name.clone()))
    }

    /// All pods of which that is so.
    pub fn pods(&self) -> impl Iterator<Item = PodUid> {
        self.pods.keys().chain(self.open.keys()).copied()
    }

    /// What is asked for is remembered; otherwise the archive has it.
    pub fn remembers(&self, kind: Kind, when: When) -> bool {
        let Some((time, version)) = self.shelves.get(&kind).and_then(|shelf| shelf.forgotten) else {
            return true;
        };
        match (kind, when) {
            // What is allocated is under way.
            (Kind::Allocation, When::Now) => true,
            (_, When::At(at)) | (Kind::Allocation, When::AsOf(at)) => at >= time,
            (Kind::Allocation, When::Revision(at)) => at >= version,
            (Kind::ContainerRun | Kind::VolumeRun, When::Now | When::AsOf(_) | When::Revision(_)) => false,
        }
    }

    /// The objects of a kind as of then, oldest first.
    pub fn list(&self, kind: Kind, when: When) -> impl Iterator<Item = Value> {
        self.listed(kind, when).map(|(_, object)| object)
    }

    /// The same, each with the version that it began with.
    fn listed(&self, kind: Kind, when: When) -> impl Iterator<Item = (u64, Value)> {
        let episodes = self.shelves.get(&kind).into_iter().flat_map(|shelf| shelf.episodes.values());
        episodes.filter_map(move |episode| Some((episode.born, episode.shown(kind, when)?)))
    }

    /// The object of that name: the newest, if a name came again.
    pub fn get(&self, kind: Kind, namespace: &str, name: &str) -> Option<Value> {
        let shelf = self.shelves.get(&kind)?;
        let mut newest = shelf.episodes.values().rev();
        let found = newest.find(|episode| episode.is_named(kind, namespace, name))?;
        Some(found.object(found.ended))
    }
}

/// These are wanted now. What is not any more is remembered until the next request: it may start once more before it goes.
fn want(wanted: &mut BTreeMap<Name, Wanted>, names: &[Name], asked: &Asked) {
    wanted.retain(|_, wanted| wanted.still);
    for one in wanted.values_mut() {
        one.still = false;
    }
    for name in names {
        let new = || Wanted { asked: asked.clone(), still: true, ended: None };
        wanted.entry(name.clone()).or_insert_with(new).still = true;
    }
}

impl Episode {
    fn is_named(&self, kind: Kind, namespace: &str, name: &str) -> bool {
        // What is not allocated any more is no allocation.
        let is_there = kind != Kind::Allocation || self.ended.is_none();
        is_there && &*self.place.namespace == namespace && self.name() == name
    }

    /// The object as of then, if it was there.
    fn shown(&self, kind: Kind, when: When) -> Option<Value> {
        let ended = self.ended;
        let (there, told) = match when {
            When::Now => (true, ended),
            When::At(at) => (self.began <= at && ended.is_none_or(|(end, _)| end > at), ended),
            When::AsOf(at) => (self.began <= at, ended.filter(|(end, _)| *end <= at)),
            When::Revision(at) => (self.born <= at, ended.filter(|(_, version)| *version <= at)),
        };
        // What is not allocated any more is no allocation.
        let is_past = kind == Kind::Allocation && told.is_some() && !matches!(when, When::At(_));
        (there && !is_past).then(|| self.object(told))
    }
}

#[cfg(test)]
mod tests;
