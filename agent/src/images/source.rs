//! Where an image is imported from: an OCI layout in a directory, or a tar of one (`oci-archive`, `docker-archive`), plain or
//! compressed. Files come out by name; nothing is written but a decompressed copy of an archive, which has no name.

use crate::beneath;
use crate::fault::{Attempt, Fault};
use flate2::read::MultiGzDecoder;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::os::unix::fs::FileExt;
use std::path::{Component, Path};

/// A manifest or configuration longer than this is none.
const LONGEST_DOCUMENT: u64 = 8 << 20;
/// So many links from one file of an archive to another are followed.
const MOST_LINKS: usize = 8;

/// An open source.
pub enum Source {
    /// A directory.
    Layout(OwnedFd),
    /// A tar: where each file begins, and how long it is.
    Archive {
        /// The tar.
        file: File,
        /// Its files.
        files: BTreeMap<String, Place>,
    },
}

/// A file of a source, and its length.
pub type Opened<'a> = (Box<dyn Read + 'a>, u64);

/// What an archive has under a name.
pub enum Place {
    /// A file.
    File {
        /// Where it begins.
        at: u64,
        /// Its length.
        length: u64,
    },
    /// A link to another name: older `docker save` writes a layer once and links to it.
    Link(String),
}

impl Source {
    /// Opens a source. `scratch`: where a compressed archive may be unpacked to, without a name.
    pub fn open(path: &Path, scratch: &Path) -> Result<Source, Fault> {
        let shown = || format!("open {}", path.display());
        if path.is_dir() {
            return beneath::open_root(path).map(Source::Layout);
        }
        let file = File::open(path).attempt(shown)?;
        let mut reader = BufReader::new(&file);
        let kind = Compression::of(reader.fill_buf().attempt(shown)?);
        drop(reader);
        let mut file = file;
        file.rewind().attempt(shown)?;
        let file = match kind {
            Compression::None => file,
            Compression::Gzip | Compression::Zstd => {
                let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
                let copy = rustix::fs::open(scratch, flags, Mode::from_raw_mode(0o600));
                let mut copy = File::from(copy.attempt(|| format!("make a file in {}", scratch.display()))?);
                std::io::copy(&mut decompressed(file, kind), &mut copy)
                    .attempt(|| format!("decompress {}", path.display()))?;
                copy
            }
        };
        let files = index(&file).attempt(|| format!("read {} as a tar", path.display()))?;
        Ok(Source::Archive { file, files })
    }

    /// A file by name, and its length; `None`: there is none.
    pub fn open_file(&self, name: &str) -> Result<Option<Opened<'_>>, Fault> {
        match self {
            Source::Layout(dir) => match beneath::open(dir, name, OFlags::RDONLY | OFlags::NONBLOCK) {
                Ok(file) => {
                    let file = File::from(file);
                    let found = file.metadata().attempt(|| format!("look at {name}"))?;
                    if !found.is_file() {
                        return Err(Fault::refused(format!("{name} is not a file")));
                    }
                    Ok(Some((Box::new(file), found.len())))
                }
                Err(Errno::NOENT) => Ok(None),
                Err(errno) => Err(errno).attempt(|| format!("open {name}")),
            },
            Source::Archive { file, files } => {
                let mut name = name.to_owned();
                for _ in 0..MOST_LINKS {
                    match files.get(&name) {
                        Some(Place::File { at, length }) => {
                            let part = Part { file, at: *at, left: *length };
                            return Ok(Some((Box::new(part), *length)));
                        }
                        Some(Place::Link(to)) => name.clone_from(to),
                        None => return Ok(None),
                    }
                }
                Err(Fault::refused(format!("{name}: links in the archive lead in a circle")))
            }
        }
    }

    /// A document by name, whole.
    pub fn document(&self, name: &str) -> Result<Option<Vec<u8>>, Fault> {
        let Some((file, length)) = self.open_file(name)? else { return Ok(None) };
        if length > LONGEST_DOCUMENT {
            return Err(Fault::refused(format!(
                "{name} has {length} bytes: that is no document of an image"
            )));
        }
        let mut bytes = Vec::new();
        file.take(LONGEST_DOCUMENT).read_to_end(&mut bytes).attempt(|| format!("read {name}"))?;
        Ok(Some(bytes))
    }
}

/// A part of a file, read without moving anybody's position.
struct Part<'a> {
    file: &'a File,
    at: u64,
    left: u64,
}

impl Read for Part<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let got = self.file.read_at(&mut buffer[..most], self.at)?;
        self.at += got as u64;
        self.left -= got as u64;
        Ok(got)
    }
}

/// Where everything in a tar is.
fn index(file: &File) -> std::io::Result<BTreeMap<String, Place>> {
    let mut files = BTreeMap::new();
    let length = file.metadata()?.len();
    let mut archive = tar::Archive::new(BufReader::new(Part { file, at: 0, left: length }));
    for entry in archive.entries()? {
        let entry = entry?;
        let name = plain(&entry.path()?);
        let kind = entry.header().entry_type();
        let place = if kind.is_file() {
            Place::File { at: entry.raw_file_position(), length: entry.size() }
        } else if let (true, Some(to)) = (kind.is_symlink() || kind.is_hard_link(), entry.link_name()?) {
            let from = if kind.is_symlink() { Path::new(&name).parent() } else { None };
            Place::Link(plain(&from.unwrap_or(Path::new("")).join(to)))
        } else {
            continue;
        };
        files.insert(name, place);
    }
    Ok(files)
}

/// A path as a plain name: only a key, never opened.
fn plain(path: &Path) -> String {
    let mut names: Vec<&str> = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.extend(name.to_str()),
            Component::ParentDir => {
                names.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    names.join("/")
}

/// How something is compressed, by its first bytes: what a media type says may be wrong.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Compression {
    /// It is not.
    None,
    /// Gzip.
    Gzip,
    /// Zstandard.
    Zstd,
}

impl Compression {
    /// What these first bytes say.
    pub fn of(bytes: &[u8]) -> Compression {
        match bytes {
            [0x1f, 0x8b, ..] => Compression::Gzip,
            // A frame, or one that is to be skipped, as seekable layers begin with.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Compression::Zstd,
            _ => Compression::None,
        }
    }
}

/// What a stream says when it is decompressed.
pub fn decompressed<'a>(read: impl Read + 'a, kind: Compression) -> Box<dyn Read + 'a> {
    match kind {
        Compression::None => Box::new(read),
        Compression::Gzip => Box::new(MultiGzDecoder::new(read)),
        Compression::Zstd => {
            Box::new(Frames { source: BufReader::new(read), decoder: FrameDecoder::new(), inside: false })
        }
    }
}

/// A Zstandard stream of any number of frames: the decoder knows one.
struct Frames<R> {
    source: BufReader<R>,
    decoder: FrameDecoder,
    /// Inside a frame.
    inside: bool,
}

impl<R: Read> Frames<R> {
    /// Enters the next frame. False: there is none.
    fn next(&mut self) -> std::io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let mut skipped = (&mut self.source).take(u64::from(length));
                    std::io::copy(&mut skipped, &mut std::io::sink())?;
                }
                Err(error) => return Err(std::io::Error::other(error.to_string())),
            }
        }
        Ok(false)
    }
}

impl<R: Read> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            if !self.inside && !self.next()? {
                return Ok(0);
            }
            self.inside = true;
            while self.decoder.can_collect() < buffer.len() && !self.decoder.is_finished() {
                let wanted = buffer.len() - self.decoder.can_collect();
                self.decoder
                    .decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBytes(wanted))
                    .map_err(|error| std::io::Error::other(error.to_string()))?;
            }
            match self.decoder.read(buffer)? {
                0 if !buffer.is_empty() => self.inside = false,
                got => return Ok(got),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_a_stream_are_one_and_what_is_to_be_skipped_is() {
        let frame = |text: &[u8]| {
            ruzstd::encoding::compress_to_vec(text, ruzstd::encoding::CompressionLevel::Fastest)
        };
        let mut stream = vec![0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
        stream.extend(frame(b"one "));
        stream.extend(frame(b"two"));
        assert_eq!(Compression::of(&stream), Compression::Zstd);
        let mut text = String::new();
        let mut read = decompressed(stream.as_slice(), Compression::Zstd);
        read.read_to_string(&mut text).expect("it decompresses");
        assert_eq!(text, "one two");
    }

    #[test]
    fn a_name_in_an_archive_never_leaves_it() {
        assert_eq!(plain(Path::new("../../a/./b")), "a/b");
        assert_eq!(plain(Path::new("x/../y/layer.tar")), "y/layer.tar");
    }
}
