//! A draft as it is kept until all inputs are read: its names by number, its stamps packed. Most of the memory that a log
//! needs is in these.
//!
//! Owns the packing. Decides nothing.

use crate::evidence::{Draft, Payload, StatusSeen, Witness};
use crate::names::{Names, Renamed, Sym};
use crate::stamp::{Moment, Packed, Stamp};
use crate::verb::Verb;

/// What an entry carries besides its verb. Most carry nothing, so it has a room of its own.
#[derive(Clone, Default, PartialEq)]
pub struct Carried(Option<Box<Payload>>);

impl From<Payload> for Carried {
    fn from(payload: Payload) -> Carried {
        Carried((payload != Payload::Nothing).then(|| Box::new(payload)))
    }
}

impl std::ops::Deref for Carried {
    type Target = Payload;
    fn deref(&self) -> &Payload {
        self.0.as_deref().unwrap_or(&Payload::Nothing)
    }
}

impl std::fmt::Debug for Carried {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(&**self, f)
    }
}

/// What a draft is about.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// On which host.
    pub host: Option<Sym>,
    /// The pod's UID.
    pub uid: Option<Sym>,
    /// The pod's namespace.
    pub namespace: Option<Sym>,
    /// The pod's name.
    pub pod: Option<Sym>,
    /// The container's or sandbox' id, maybe only its beginning.
    pub id: Option<Sym>,
    /// The container's name in the spec.
    pub container: Option<Sym>,
    /// Restart count or attempt.
    pub attempt: Option<u32>,
    /// The volume's name in the spec.
    pub volume: Option<Sym>,
    /// Its unique name.
    pub unique: Option<Sym>,
    /// Its plugin.
    pub plugin: Option<Sym>,
    /// Its path on the host.
    pub path: Option<Sym>,
    /// It is a sandbox, a container, or the line doesn't say.
    pub sandbox: Option<bool>,
    /// Only the beginning of the pod's name is here.
    pub name_cut: bool,
    /// The volume's name comes from a directory that a failed removal had renamed.
    pub artifact: bool,
}

/// A draft, packed.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Its moment, once the clocks are known.
    pub at: Moment,
    /// The line, from 1.
    pub line: u64,
    /// The process that wrote it, 0 if not said.
    pub pid: u64,
    when: Packed,
    received: Packed,
    /// What more.
    pub payload: Carried,
    /// What it is about.
    pub about: About,
    /// Its file, once there are several.
    pub file: u32,
    /// What.
    pub verb: Verb,
    /// Who says it.
    pub witness: Witness,
    /// The line is cut.
    pub cut: bool,
    /// The witness has whole seconds only.
    pub coarse: bool,
    /// It has no time of its own.
    pub untimed: bool,
}

// What grows with a log is measured in these: whoever makes one larger should know.
const _: () = assert!(size_of::<Kept>() <= 128);

impl Kept {
    /// Packs a draft.
    pub fn new(draft: Draft, names: &mut Names) -> Kept {
        let Draft {
            when,
            received,
            line,
            witness,
            host,
            pid,
            verb,
            pod,
            container,
            volume,
            mut payload,
            cut,
        } = draft;
        share(&mut payload, names);
        let mut sym = |name: Option<_>| name.map(|name| names.sym(&name));
        let about = About {
            host: sym(host),
            uid: sym(pod.uid),
            namespace: sym(pod.namespace),
            pod: sym(pod.name),
            id: sym(container.id),
            container: sym(container.name),
            attempt: container.attempt,
            volume: sym(volume.name),
            unique: sym(volume.unique),
            plugin: sym(volume.plugin),
            path: sym(volume.path),
            sandbox: container.sandbox,
            name_cut: pod.cut,
            artifact: volume.artifact,
        };
        Kept {
            at: Moment(i64::MAX),
            line,
            pid,
            when: Packed::new(when),
            received: Packed::new(received),
            payload: payload.into(),
            about,
            file: 0,
            verb,
            witness,
            cut,
            coarse: false,
            untimed: false,
        }
    }

    /// When, as written.
    pub fn when(&self) -> Option<Stamp> {
        self.when.stamp()
    }

    /// The wrapper's time.
    pub fn received(&self) -> Option<Stamp> {
        self.received.stamp()
    }

    /// Calls its names by their numbers in another input's.
    pub fn rename(&mut self, renamed: &Renamed) {
        self.about.each(|sym| *sym = renamed.of(*sym));
    }

    /// Says its names, and those in its payload, in a place that has only what somebody says.
    pub fn move_to(&mut self, from: &Names, to: &mut Names) {
        self.about.each(|sym| *sym = to.sym(from.get(*sym)));
        if let Some(payload) = &mut self.payload.0 {
            share(payload, to);
        }
    }
}

impl About {
    fn each(&mut self, each: impl FnMut(&mut Sym)) {
        let about = self;
        [
            &mut about.host,
            &mut about.uid,
            &mut about.namespace,
            &mut about.pod,
            &mut about.id,
            &mut about.container,
            &mut about.volume,
            &mut about.unique,
            &mut about.plugin,
            &mut about.path,
        ]
        .into_iter()
        .flatten()
        .for_each(each);
    }
}

/// The same errors come every two seconds for days, and the same ids with each status.
fn share(payload: &mut Payload, names: &mut Names) {
    match payload {
        Payload::Text(text) | Payload::Retry { error: text, .. } | Payload::Count(_, text) => {
            names.share(text)
        }
        Payload::Other(uid) => names.share(uid),
        Payload::Names(all) => all.iter_mut().for_each(|name| names.share(name)),
        Payload::Status(status) => share_status(status, names),
        Payload::Object(object) => share_status(&mut object.status, names),
        Payload::Nothing | Payload::Grace(_) | Payload::Exit(..) | Payload::Phase { .. } => {}
    }
}

fn share_status(status: &mut StatusSeen, names: &mut Names) {
    status.containers.shrink_to_fit();
    for c in &mut status.containers {
        let last = c.last.as_mut().map(|(id, ..)| id);
        // Ids and names of containers are looked for by their numbers, short ones too.
        for name in [c.name.as_mut(), c.id.as_mut(), last].into_iter().flatten() {
            let sym = names.sym(name);
            name.clone_from(names.get(sym));
        }
        if let Some(reason) = &mut c.reason {
            names.share(reason);
        }
        for name in c.mounts.iter_mut().flatten() {
            names.share(name);
        }
    }
}
