//! Episodes that are remembered no longer: in a file of each kind beside the journal, in blocks in the order of their ends. A block's
//! head says of which times and versions it is, so that whoever asks for a moment reads only blocks that may have it. All of it
//! follows from the journal: what is missing is written again from there.
//!
//! ```text
//! KIND.past    blocks, one after the other
//! block        checksum (xxh3-64 of the rest of the head), hash (xxh3-64 of the packed episodes), began, ended, born, version,
//!              length (u32), packed length (u32); then the episodes as JSON, packed with LZ4
//! ```

use super::{Episode, History, Kind, When};
use crate::fault::{Attempt, Fault};
use nodefold_core::time::Time;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// So many episodes are in a block.
pub const BLOCK: usize = 1_000;
/// Bytes of a block's head.
const HEAD: usize = 56;
/// No block is longer than this when it is unpacked.
const LONGEST: usize = 64 << 20;

/// All files.
#[derive(Clone, Debug, Default)]
pub struct Archive {
    shelves: BTreeMap<Kind, Shelf>,
}

#[derive(Clone, Debug)]
struct Shelf {
    path: PathBuf,
    file: Arc<File>,
    blocks: Vec<Block>,
    end: u64,
}

/// Where a block is, and what it is about.
#[derive(Copy, Clone, Debug)]
struct Block {
    at: u64,
    hash: u64,
    length: usize,
    packed: usize,
    /// The earliest beginning.
    began: Time,
    /// The latest end.
    ended: Time,
    /// The first version that began one.
    born: u64,
    /// The last version that ended one.
    version: u64,
}

/// Blocks that may have what is asked for.
#[derive(Clone, Debug)]
pub struct Excerpt {
    path: PathBuf,
    file: Arc<File>,
    blocks: Vec<Block>,
}

impl Archive {
    /// Those of a directory, to go on with. What a crash left of a block is cut.
    pub fn open(dir: &Path) -> Result<Archive, Fault> {
        let mut archive = Archive::default();
        for kind in Kind::ALL {
            let path = path(dir, kind);
            let mut options = OpenOptions::new();
            let file = options.read(true).write(true).create(true).truncate(false).open(&path);
            let shelf = Shelf::read(file.attempt(|| format!("open {}", path.display()))?, path)?;
            shelf.file.set_len(shelf.end).attempt(|| format!("cut {}", shelf.path.display()))?;
            archive.shelves.insert(kind, shelf);
        }
        Ok(archive)
    }

    /// Those of a directory, to read. Somebody may be going on with them.
    pub fn look(dir: &Path) -> Result<Archive, Fault> {
        let mut archive = Archive::default();
        for kind in Kind::ALL {
            let path = path(dir, kind);
            match File::open(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                file => {
                    let file = file.attempt(|| format!("open {}", path.display()))?;
                    archive.shelves.insert(kind, Shelf::read(file, path)?);
                }
            }
        }
        Ok(archive)
    }

    /// The last version that ended an episode which is here.
    fn through(&self, kind: Kind) -> u64 {
        self.shelves.get(&kind).and_then(|shelf| shelf.blocks.last()).map_or(0, |block| block.version)
    }

    /// It has all that this history has forgotten.
    pub fn covers(&self, history: &History) -> bool {
        Kind::ALL.into_iter().all(|kind| self.through(kind) >= history.forgotten(kind))
    }

    /// Takes what this history remembers no longer.
    pub fn take(&mut self, history: &mut History) -> Result<(), Fault> {
        for kind in Kind::ALL {
            while let Some(episodes) = history.overflow(kind, BLOCK) {
                self.put(kind, &episodes)?;
            }
        }
        Ok(())
    }

    /// Adds a block. One that is here already is not added again: a history that is folded again forgets the same again.
    fn put(&mut self, kind: Kind, episodes: &[Episode]) -> Result<(), Fault> {
        let through = self.through(kind);
        let Some(shelf) = self.shelves.get_mut(&kind) else { return Ok(()) };
        let ends = || episodes.iter().filter_map(|episode| episode.ended);
        let version = ends().map(|(_, version)| version).max().unwrap_or_default();
        if version <= through {
            return Ok(());
        }
        let text = serde_json::to_vec(episodes)
            .map_err(|error| Fault::refused(format!("write episodes as JSON: {error}")))?;
        let packed = lz4_flex::block::compress(&text);
        let block = Block {
            at: shelf.end,
            hash: xxh3_64(&packed),
            length: text.len(),
            packed: packed.len(),
            began: episodes.iter().map(|episode| episode.began).min().unwrap_or_default(),
            ended: ends().map(|(at, _)| at).max().unwrap_or_default(),
            born: episodes.iter().map(|episode| episode.born).min().unwrap_or_default(),
            version,
        };
        let mut bytes = block.head().to_vec();
        bytes.extend_from_slice(&packed);
        shelf
            .file
            .write_all_at(&bytes, shelf.end)
            .attempt(|| format!("write {} bytes to {}", bytes.len(), shelf.path.display()))?;
        shelf.end += bytes.len() as u64;
        shelf.blocks.push(block);
        Ok(())
    }

    /// Forgets what ended after that version: of a log whose end was lost.
    pub fn cut(&mut self, version: u64) -> Result<(), Fault> {
        for shelf in self.shelves.values_mut() {
            let stay = shelf.blocks.partition_point(|block| block.version <= version);
            if let Some(first) = shelf.blocks.get(stay) {
                shelf.end = first.at;
                shelf.blocks.truncate(stay);
                shelf.file.set_len(shelf.end).attempt(|| format!("cut {}", shelf.path.display()))?;
            }
        }
        Ok(())
    }

    /// Makes it durable, on any thread.
    pub fn files(&self) -> Vec<Arc<File>> {
        self.shelves.values().map(|shelf| shelf.file.clone()).collect()
    }

    /// The blocks that may have what this history has forgotten and what is asked for.
    pub fn excerpt(&self, history: &History, kind: Kind, when: When) -> Option<Excerpt> {
        let shelf = self.shelves.get(&kind)?;
        let until = history.forgotten(kind);
        let may_have = |block: &Block| match when {
            When::Now => true,
            When::At(at) => block.began <= at && at < block.ended,
            When::AsOf(at) => block.began <= at,
            When::Revision(version) => block.born <= version,
        };
        let blocks = shelf.blocks.iter().filter(|block| block.version <= until && may_have(block));
        Some(Excerpt {
            path: shelf.path.clone(),
            file: shelf.file.clone(),
            blocks: blocks.copied().collect(),
        })
    }
}

impl Shelf {
    /// Reads the heads alone.
    fn read(file: File, path: PathBuf) -> Result<Shelf, Fault> {
        let length = file.metadata().attempt(|| format!("look at {}", path.display()))?.len();
        let mut shelf = Shelf { path, file: Arc::new(file), blocks: Vec::new(), end: 0 };
        let mut head = [0; HEAD];
        while shelf.end + HEAD as u64 <= length {
            let read = shelf.file.read_exact_at(&mut head, shelf.end);
            read.attempt(|| format!("read {}", shelf.path.display()))?;
            let Some(block) = Block::read(&head, shelf.end) else { break };
            if block.after() > length {
                break;
            }
            shelf.end = block.after();
            shelf.blocks.push(block);
        }
        Ok(shelf)
    }
}

impl Block {
    fn after(&self) -> u64 {
        self.at + (HEAD + self.packed) as u64
    }

    fn head(&self) -> [u8; HEAD] {
        let mut head = [0; HEAD];
        let numbers = [self.hash, self.began.0, self.ended.0, self.born, self.version];
        for (place, number) in head[8..48].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        head[48..52].copy_from_slice(&(self.length as u32).to_le_bytes());
        head[52..].copy_from_slice(&(self.packed as u32).to_le_bytes());
        let checksum = xxh3_64(&head[8..]);
        head[..8].copy_from_slice(&checksum.to_le_bytes());
        head
    }

    fn read(head: &[u8; HEAD], at: u64) -> Option<Block> {
        let number = |at: usize, bytes: usize| {
            head[at..at + bytes].iter().rev().fold(0u64, |number, byte| number << 8 | u64::from(*byte))
        };
        let (length, packed) = (number(48, 4) as usize, number(52, 4) as usize);
        let is_whole = number(0, 8) == xxh3_64(&head[8..]) && length <= LONGEST;
        is_whole.then(|| Block {
            at,
            hash: number(8, 8),
            began: Time(number(16, 8)),
            ended: Time(number(24, 8)),
            born: number(32, 8),
            version: number(40, 8),
            length,
            packed,
        })
    }
}

impl Excerpt {
    #[cfg(test)]
    pub(super) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Its episodes, the newest block first, until one is enough.
    pub(super) fn each(&self, mut enough: impl FnMut(Vec<Episode>) -> bool) -> Result<(), Fault> {
        for block in self.blocks.iter().rev() {
            if enough(self.block(block)?) {
                break;
            }
        }
        Ok(())
    }

    fn block(&self, block: &Block) -> Result<Vec<Episode>, Fault> {
        let wrong = |what: &str| {
            Fault::refused(format!(
                "{} at {}: {what}; end the agent, remove the file and start it again: it is written again from the journal",
                self.path.display(),
                block.at
            ))
        };
        let mut packed = vec![0; block.packed];
        self.file
            .read_exact_at(&mut packed, block.at + HEAD as u64)
            .attempt(|| format!("read {}", self.path.display()))?;
        if xxh3_64(&packed) != block.hash {
            return Err(wrong("a block does not match its checksum"));
        }
        let text = lz4_flex::block::decompress(&packed, block.length).map_err(|e| wrong(&e.to_string()))?;
        serde_json::from_slice(&text).map_err(|e| wrong(&e.to_string()))
    }
}

fn path(dir: &Path, kind: Kind) -> PathBuf {
    dir.join(format!("{}.past", kind.as_str()))
}
