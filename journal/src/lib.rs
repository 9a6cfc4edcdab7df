//! The log on disk: append, recover, snapshot, seek, verify.
//!
//! A journal is a directory of segments. A segment holds records, each with a checksum, in batches. A batch is durable
//! as a whole (one write, one `fdatasync`), and its end tells what the fold was *before* it, so that a later fold of the
//! same records can be compared with the one that lived. Facts are made durable first, then folded, and only then are
//! the commands executed that they caused (write-ahead).
//!
//! ```
//! use nodefold_core::{Config, Event, Fact, Node, command::Commands, time::Time};
//! use nodefold_journal::{Memory, Options, Writer, verify};
//!
//! let storage = Memory::new().storage(); // or Files::at("/var/lib/nodefold")
//! let mut node = Node::new(Config::default());
//! let mut journal = Writer::create(storage.clone(), Options::default(), &Config::default(), &mut node)?;
//! let event = Event { at: Time(1), fact: Fact::AgentStarted { boot_id: 7 } };
//! journal.append(&event)?;
//! journal.commit(&mut node)?; // durable: now it may be folded
//! let mut out = Commands::default();
//! node.apply(&event, &mut out);
//! journal.commands_given(&out.commands); // now they may be executed
//! journal.stop(&mut node)?;
//! assert_eq!(verify::<Node>(&storage)?.report.digest, node.digest());
//! # Ok::<(), nodefold_journal::Error>(())
//! ```
//!
//! # The bytes
//!
//! All numbers are little-endian. Bodies are `nodefold_core::codec` (fixed-size integers, lengths as u64).
//!
//! ```text
//! directory
//!   LOCK                          held by the one writer
//!   00000000000000000001.segz     records from 1 on, sealed and compressed
//!   00000000000000104862.seg      records from 104862 on, zero-filled ahead
//!   00000000000000104861.snap     the state after record 104861
//!   00000000000000104861.state    the same for other versions; the two newest are kept
//!   00000000000000104861.api.kept the state that the records of a foreign stream up to there make; the two newest are kept
//!   *.tmp                         being made; a crash leaves it, recovery removes it
//!
//! segment (.seg)
//!   0         8         12      16            32              40             48       56       88     120        128
//!   +---------+---------+-------+-------------+---------------+--------------+--------+--------+------+----------+--
//!   | nodefold| format  | form  | journal id  | first record  | first batch  | since  | chain  | 0    | checksum | batches, zeros
//!   +---------+---------+-------+-------------+---------------+--------------+--------+--------+------+----------+--
//!    8 bytes   u32 = 3   u32     u128          u64             u64            u64 ns   32       32     xxh3-64 of 0..120
//!    form 0: raw; 1: compressed. since, chain: the latest time and the chain before the segment.
//!
//! batch: records, the last of them a BatchEnd. Its first header never crosses a 512-byte sector: zeros fill the gap.
//!
//! record
//!   0              4          8        10         12          16
//!   +--------------+----------+--------+----------+-----------+------------------+
//!   | checksum     | length   | kind   | version  | index     | body             |
//!   +--------------+----------+--------+----------+-----------+------------------+
//!    low half of    u32, of    u16      u16, of    u32, in     length - 16 bytes
//!    the xxh3-64    the whole           the kind   its batch,
//!    of 4..length,                                 from 0
//!    seeded with
//!    the journal id's halves, xor-ed
//!
//!   kind 1 Header    software, layout, config        first in every segment, which is of one version therefore
//!        2 Fact      Event
//!        3 Foreign   at, stream, bytes               another reducer's event
//!        4 BatchEnd  batch, first record, records, at, events, digest, commands, touched pods, chain
//!        5 Snapshot  records, layout, digest
//!        6 Skipped   record, reason                  `apply` panics on that record
//!        7 Note      at, mark, text
//!
//!   chain = blake3(the batch as it is on disk, but 0 for its BatchEnd's checksum, and the chain before for its chain;
//!                  if that is more than 16 KiB, zeros up to a multiple of 4 KiB)
//!
//! compressed segment (.segz): the segment header, then blocks of 256 KiB, the last one empty
//!   0             8            16             24         28            32
//!   +-------------+------------+--------------+----------+-------------+----------------+
//!   | checksum    | raw offset | first record | raw len  | packed len  | LZ4 block      |
//!   +-------------+------------+--------------+----------+-------------+----------------+
//!    xxh3-64 of     u64          u64            u32        u32
//!    the rest, seeded as above
//!
//! snapshot (.snap)
//!   0          8         12          16            16+n        24+n
//!   +----------+---------+-----------+-------------+-----------+-----------------+
//!   | nfldsnap | format  | head len  | head        | checksum  | state (rkyv)    |
//!   +----------+---------+-----------+-------------+-----------+-----------------+
//!    8 bytes    u32 = 1   u32 = n                   xxh3-64     as long as, and with the xxh3-128 that the head says
//!                                                   of the rest before it
//!
//! portable state (.state): as a snapshot, but `nfldstat`, and the state is
//!   0            8
//!   +------------+-------------------------------------------+
//!   | raw length | LZ4 block: nodefold_core::portable as JSON |
//!   +------------+-------------------------------------------+
//!    u64
//! ```
//!
//! kept state of a stream (.STREAM.kept): as a snapshot, but `nfldside`, the layout is the stream's own, and the state is
//! blocks of up to 256 KiB: raw length (u32), packed length (u32), LZ4 block
//!
//! # What is a tear and what is damage
//!
//! A crash leaves of the last batch some sectors, and zeros for the others. That is cut, and [`Report::cut`] says what
//! it was. A batch's place was zeros and durable before, and a segment exists only with its first batch whole; so
//! everything else that does not check was whole once. It is [`Error::Damaged`], with file, offset and record, and
//! nothing is changed or skipped.
//!
//! # Versions
//!
//! A record of an unknown kind or of a newer version is an error that names it, never a skip. A segment is of one
//! version of nodefold. [`verify`] compares the recorded digests where this version wrote, and the hash of the commands
//! given out everywhere. A version with another layout goes on from the newest portable state that it can read: what was
//! decided stands, and only what came after it is folded.

mod batch;
mod beside;
mod command_hash;
mod compress;
mod difference;
mod error;
mod fold;
mod frame;
mod log;
pub mod portable;
mod reader;
mod record;
mod replay;
mod resume;
mod segment;
mod snapshot;
mod storage;
mod tail;
mod writer;

pub use beside::{Kept, Mark, kept};
pub use command_hash::CommandHash;
pub use difference::{Difference, Differs, FieldDifference, PodDifference};
pub use error::{Damage, Error};
pub use fold::Fold;
pub use log::Position;
pub use reader::{Entry, Reader, beginning};
pub use record::{BatchEnd, Foreign, Header, Kind, Note, Record, Skipped, SnapshotMark};
pub use replay::{Replayed, Report, Step, replay, replay_each, verify};
pub use resume::{Resumed, resume};
pub use snapshot::{Refused, SnapshotHead};
pub use storage::{Fault, Files, LockGuard, Memory, Storage, StorageFile};
pub use tail::Cut;
pub use writer::{Committed, Options, SOFTWARE, Writer};
