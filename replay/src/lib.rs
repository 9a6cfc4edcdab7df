//! Recordings of any node in, timeline and verdict out.
//!
//! Importers turn what a node left behind (logs of every era, API watches, audit logs, runtime events, mount tables,
//! checkpoints) into one [`Trace`]; the judge says which invariant was broken, when, and from which lines that is known.
//!
//! ```
//! use nodefold_replay::{Options, read_texts};
//!
//! let log = br#"I0316 04:31:21.080604     202 kubelet.go:2474] "SyncLoop ADD" source="api" pods=["ns/app-1"]"#;
//! let trace = read_texts([("kubelet.log", &log[..])], &Options { year: Some(2025), ..Options::default() });
//! assert_eq!(trace.pod_count(), 1);
//! assert_eq!(trace.describe(&trace.entries[0]), "pod added: api");
//! ```

mod api;
mod checkpoint;
mod clock;
mod events_table;
mod evidence;
mod follow;
mod identity;
mod importer;
mod input;
mod judge;
mod kept;
mod klog;
mod mended;
mod merge;
mod mounts;
mod names;
mod over;
mod own;
mod pod_json;
mod read;
mod rolling;
mod runtime;
mod scan;
mod stamp;
mod trace;
mod verb;
mod wrapper;

pub use evidence::{Name, ObjectSeen, Payload, Skipped, StatusOfContainer, StatusSeen, Witness};
pub use follow::{Followed, Parting, Side, follow};
pub use judge::{Finding, Kind, Note, Report, judge, rfc3339};
pub use kept::Carried;
pub use merge::{Imported, Options};
pub use own::is_journal;
pub use read::{Progress, ReadError, judge_files, judge_texts, lines_of, read_files, read_texts};
pub use rolling::WINDOW;
pub use stamp::{Moment, SECOND, Stamp};
pub use trace::{
    Confidence, ContainerIx, ContainerLife, Entry, FileFacts, PodIx, PodLife, Run, Trace, VolumeIx,
    VolumeLife,
};
pub use verb::Verb;
