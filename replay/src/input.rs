//! Files and streams as lines: decompressed by content, in bounded memory. Knows nothing of what lines mean.

use flate2::read::MultiGzDecoder;
use memchr::memchr;
use ruzstd::decoding::StreamingDecoder;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// No record of any known writer is longer; what follows is not read.
pub const LONGEST_LINE: usize = 16 << 20;
const CHUNK: usize = 1 << 20;

/// Opens a file, or standard input for `-`.
pub fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(io::stdin()));
    }
    Ok(Box::new(File::open(path)?))
}

/// Decompresses gzip and zstd, told by their first bytes.
pub fn decompress(mut reader: Box<dyn Read>) -> io::Result<Box<dyn Read>> {
    let mut magic = [0u8; 4];
    let mut have = 0;
    while have < magic.len() {
        match reader.read(&mut magic[have..])? {
            0 => break,
            n => have += n,
        }
    }
    let whole = io::Cursor::new(magic[..have].to_vec()).chain(reader);
    if magic.starts_with(&[0x1f, 0x8b]) {
        return Ok(Box::new(MultiGzDecoder::new(whole)));
    }
    if magic == [0x28, 0xb5, 0x2f, 0xfd] {
        let decoder = StreamingDecoder::new(whole).map_err(io::Error::other)?;
        return Ok(Box::new(decoder));
    }
    Ok(Box::new(whole))
}

/// A stream of lines.
pub struct Lines {
    reader: Box<dyn Read>,
    buffer: Vec<u8>,
    filled: usize,
    number: u64,
    bytes: u64,
    skipping: bool,
    ended: bool,
}

/// A line as it was read.
pub struct Line<'a> {
    /// From 1.
    pub number: u64,
    /// Without its end.
    pub text: &'a [u8],
    /// It was longer than any record: the rest is not here.
    pub too_long: bool,
}

impl Lines {
    /// Lines of a reader.
    pub fn new(reader: Box<dyn Read>) -> Lines {
        Lines {
            reader,
            buffer: vec![0; CHUNK],
            filled: 0,
            number: 0,
            bytes: 0,
            skipping: false,
            ended: false,
        }
    }

    /// How many bytes were read, decompressed.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads a piece and hands over its lines. False: that was all.
    pub fn pump(&mut self, each: &mut dyn FnMut(Line<'_>)) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        if self.filled == self.buffer.len() {
            // A line longer than the buffer: grow, up to what a record may have.
            let size = self.buffer.len() * 2;
            self.buffer.resize(size, 0);
        }
        let read = self.reader.read(&mut self.buffer[self.filled..]);
        let n = match read {
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(true),
            Err(error) => {
                // A broken stream ends here; what it had is used.
                self.ended = true;
                self.last(each);
                return Err(error);
            }
        };
        self.bytes += n as u64;
        if n == 0 {
            self.ended = true;
            self.last(each);
            return Ok(false);
        }
        let searched = self.filled;
        self.filled += n;
        let mut start = 0;
        let mut from = searched;
        while let Some(at) = memchr(b'\n', &self.buffer[from..self.filled]) {
            let end = from + at;
            self.number += 1;
            if self.skipping {
                self.skipping = false;
            } else {
                each(Line { number: self.number, text: trim_cr(&self.buffer[start..end]), too_long: false });
            }
            start = end + 1;
            from = start;
        }
        self.buffer.copy_within(start..self.filled, 0);
        self.filled -= start;
        if self.filled >= LONGEST_LINE {
            if !self.skipping {
                let text = &self.buffer[..LONGEST_LINE];
                each(Line { number: self.number + 1, text, too_long: true });
            }
            self.skipping = true;
            self.filled = 0;
        }
        Ok(true)
    }

    fn last(&mut self, each: &mut dyn FnMut(Line<'_>)) {
        if self.filled > 0 && !self.skipping {
            self.number += 1;
            each(Line { number: self.number, text: trim_cr(&self.buffer[..self.filled]), too_long: false });
        }
        self.filled = 0;
    }
}

fn trim_cr(text: &[u8]) -> &[u8] {
    text.strip_suffix(b"\r").unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(reader: Box<dyn Read>) -> Vec<(u64, Vec<u8>, bool)> {
        let mut lines = Lines::new(reader);
        let mut out = Vec::new();
        while lines.pump(&mut |l| out.push((l.number, l.text.to_vec(), l.too_long))).expect("readable") {}
        out
    }

    #[test]
    fn lines_of_any_length_and_end() {
        let text = b"a\r\n\nb".to_vec();
        let got = lines(Box::new(io::Cursor::new(text)));
        assert_eq!(got, [(1, b"a".to_vec(), false), (2, vec![], false), (3, b"b".to_vec(), false)]);
        let long = [vec![b'x'; LONGEST_LINE + 5 * CHUNK], b"\nnext\n".to_vec()].concat();
        let got = lines(Box::new(io::Cursor::new(long)));
        assert_eq!(got.len(), 2);
        assert!(got[0].2 && got[0].1.len() == LONGEST_LINE);
        assert_eq!(got[1], (2, b"next".to_vec(), false));
    }

    #[test]
    fn compression_is_told_by_content() {
        use flate2::{Compression, write::GzEncoder};
        use std::io::Write;
        let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
        gz.write_all(b"one\ntwo").expect("in memory");
        let gz = gz.finish().expect("in memory");
        let both = [gz.clone(), gz].concat();
        let got = lines(decompress(Box::new(io::Cursor::new(both))).expect("gzip"));
        assert_eq!(got.len(), 3, "members of one file follow each other");
        let zst =
            ruzstd::encoding::compress_to_vec(&b"one\ntwo"[..], ruzstd::encoding::CompressionLevel::Fastest);
        let got = lines(decompress(Box::new(io::Cursor::new(zst))).expect("zstd"));
        assert_eq!(got[1].1, b"two");
        assert!(lines(decompress(Box::new(io::Cursor::new(b"I".to_vec()))).expect("plain")).len() == 1);
    }
}
