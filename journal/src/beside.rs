//! States of other reducers: what a foreign stream's records make, in files beside the node's snapshots, so that whoever reads
//! the stream need not begin at the first record. Owns their files; knows nothing of what is in them.
//!
//! A kept state belongs to one place of one log: the batch end that its head names must be there, with its chain. Like a
//! snapshot, one that can't be used is never an error, but why it wasn't is told.

use crate::error::Error;
use crate::frame::u32_at;
use crate::log::{Log, Position};
use crate::reader::Reader;
use crate::record::Record;
use crate::snapshot::{self, Form, Refused, SnapshotHead};
use crate::storage::Storage;
use std::io::{self, Write};
use std::sync::Arc;

/// Bytes in one packed block.
const BLOCK: usize = 256 << 10;
/// Before a block: how long it is, and how long it is packed.
const BLOCK_HEADER: usize = 8;

/// A place in the log: everything up to it is durable.
#[derive(Clone)]
pub struct Mark {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) head: SnapshotHead,
}

/// A state that was kept.
#[derive(Debug)]
pub struct Kept {
    /// It is what the records up to this one make.
    pub records: u64,
    /// What was written.
    pub bytes: Vec<u8>,
}

impl Mark {
    /// Keeps the state that the stream's records up to here make; of its older ones the newest stays, should this one be damaged.
    /// `layout` names the form of what `write` writes. May be called on any thread.
    pub fn keep(
        &self,
        stream: &str,
        layout: &str,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Error> {
        let mut packed = Packed::default();
        let written = write(&mut packed).and_then(|()| packed.flush());
        written.map_err(|e| crate::error::io_error("pack", self.storage.path(stream), 0, e))?;
        let form = Form::Beside(stream);
        let head = SnapshotHead { layout: layout.to_owned(), ..self.head.clone() };
        snapshot::write_one(&*self.storage, form, head, &packed.out)?;
        snapshot::forget_old(&*self.storage, form)
    }
}

/// The newest state of a stream that was kept and can be used, and why newer ones can't.
pub fn kept(
    storage: &Arc<dyn Storage>,
    stream: &str,
    layout: &str,
) -> Result<(Option<Kept>, Vec<Refused>), Error> {
    let log = Log::open(storage.clone())?;
    let form = Form::Beside(stream);
    let mut refused = Vec::new();
    for records in snapshot::there_are(&**storage, form)?.into_iter().rev() {
        match usable(storage, form, records, &log, layout) {
            Ok(bytes) => return Ok((Some(Kept { records, bytes }), refused)),
            Err(reason) => refused.push(Refused { file: storage.path(&form.file(records)), reason }),
        }
    }
    Ok((None, refused))
}

fn usable(
    storage: &Arc<dyn Storage>,
    form: Form<'_>,
    records: u64,
    log: &Log,
    layout: &str,
) -> Result<Vec<u8>, String> {
    let (head, packed) = snapshot::read(&**storage, form, records)?;
    if log.segments.first().is_none_or(|(_, first)| first.id != head.journal) {
        return Err("it belongs to another journal".to_owned());
    }
    if head.layout != layout {
        return Err(format!("its form is {:?}, this program has {layout:?}", head.layout));
    }
    let there = Reader::open_at(storage, Position::Record(records)).map_err(|e| e.to_string())?.next();
    let is_there = match there {
        Some(Ok(entry)) if entry.number == records => {
            matches!(&entry.record, Record::BatchEnd(end) if end.chain == head.chain)
        }
        Some(Ok(_)) | None => false,
        Some(Err(error)) => return Err(error.to_string()),
    };
    if !is_there {
        return Err(format!("the log has another record {records} than the one it was kept at"));
    }
    unpack(&packed)
}

/// Packs what is written to it, block by block, so that it is never whole in memory.
#[derive(Default)]
struct Packed {
    waiting: Vec<u8>,
    out: Vec<u8>,
}

impl Write for Packed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(BLOCK - self.waiting.len());
        self.waiting.extend_from_slice(&bytes[..taken]);
        if self.waiting.len() == BLOCK {
            self.flush()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.waiting.is_empty() {
            let packed = lz4_flex::block::compress(&self.waiting);
            self.out.extend_from_slice(&(self.waiting.len() as u32).to_le_bytes());
            self.out.extend_from_slice(&(packed.len() as u32).to_le_bytes());
            self.out.extend_from_slice(&packed);
            self.waiting.clear();
        }
        Ok(())
    }
}

fn unpack(packed: &[u8]) -> Result<Vec<u8>, String> {
    let (mut out, mut at) = (Vec::new(), 0);
    while at < packed.len() {
        let short = || "it is cut short".to_owned();
        if packed.len() - at < BLOCK_HEADER {
            return Err(short());
        }
        let (length, packed_length) = (u32_at(packed, at) as usize, u32_at(packed, at + 4) as usize);
        let from = at + BLOCK_HEADER;
        let block = packed.get(from..from + packed_length).filter(|_| length <= BLOCK).ok_or_else(short)?;
        out.extend_from_slice(&lz4_flex::block::decompress(block, length).map_err(|e| e.to_string())?);
        at = from + packed_length;
    }
    Ok(out)
}
