//! Files and streams as lines: decompressed by content, in bounded memory. Knows nothing of what lines mean.

use flate2::read::MultiGzDecoder;
use memchr::{memchr, memchr_iter};
use ruzstd::decoding::StreamingDecoder;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// No record of any known writer is longer; what follows is not read.
pub const LONGEST_LINE: usize = 16 << 20;
/// How much is read by one processor at a time.
pub const PIECE: usize = 1 << 18;

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

/// A stream of lines, in pieces.
pub struct Lines {
    reader: Box<dyn Read>,
    /// How much a piece has, but for a line that is longer.
    each: usize,
    /// What was read of the next piece.
    rest: Vec<u8>,
    number: u64,
    bytes: u64,
    widths: (usize, u32, usize),
    skipping: bool,
    ended: bool,
    failed: Option<io::Error>,
}

/// Some whole lines that follow each other.
pub struct Piece {
    text: Vec<u8>,
    /// Where each line ends.
    ends: Vec<u32>,
    /// The number of the first line, from 1.
    pub first: u64,
    /// How wide the widest line before it is, how many are so wide, and how wide the one just before it is.
    pub widths: (usize, u32, usize),
    /// It is one line that is longer than any record.
    too_long: bool,
    /// No sign in it is a terminal's.
    plain: bool,
}

/// A line as it was read.
pub struct Line<'a> {
    /// From 1.
    pub number: u64,
    /// Without its end.
    pub text: &'a [u8],
    /// It was longer than any record: the rest is not here.
    pub too_long: bool,
    /// No sign near it is a terminal's.
    pub plain: bool,
}

impl Piece {
    /// Hands over its lines.
    pub fn lines(&self, each: &mut dyn FnMut(Line<'_>)) {
        let mut start = 0;
        for (number, end) in (self.first..).zip(&self.ends) {
            let end = *end as usize;
            let text = if self.too_long { &self.text[start..end] } else { trim_cr(&self.text[start..end]) };
            each(Line { number, text, too_long: self.too_long, plain: self.plain });
            start = end + 1;
        }
    }
}

impl Lines {
    /// Lines of a reader.
    pub fn new(reader: Box<dyn Read>) -> Lines {
        Lines::in_pieces_of(PIECE, reader)
    }

    /// Lines of a reader in pieces of some size.
    pub fn in_pieces_of(each: usize, reader: Box<dyn Read>) -> Lines {
        Lines {
            reader,
            each,
            rest: Vec::new(),
            number: 0,
            bytes: 0,
            widths: (0, 0, 0),
            skipping: false,
            ended: false,
            failed: None,
        }
    }

    /// How many bytes were read, decompressed.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many lines there were, the last one's number.
    pub fn count(&self) -> u64 {
        self.number
    }

    /// Reads the next piece. `None`: that was all. A stream that breaks hands over what it had first.
    pub fn piece(&mut self) -> io::Result<Option<Piece>> {
        loop {
            if !self.ended {
                self.fill();
            }
            if self.skipping {
                // The rest of a line that is too long, up to where the next one begins.
                match memchr(b'\n', &self.rest) {
                    Some(end) => {
                        self.rest.drain(..=end);
                        self.skipping = false;
                        self.number += 1;
                    }
                    None => {
                        self.rest.clear();
                        if self.ended {
                            (self.skipping, self.number) = (false, self.number + 1);
                        }
                    }
                }
                if !self.ended {
                    continue;
                }
            }
            let end = memchr::memrchr(b'\n', &self.rest).map(|at| at + 1);
            let end = if self.ended { Some(self.rest.len()) } else { end };
            match end {
                Some(0) => return self.failed.take().map_or(Ok(None), Err),
                Some(end) => {
                    let rest = self.rest.split_off(end);
                    let text = std::mem::replace(&mut self.rest, rest);
                    return Ok(Some(self.told(text, false)));
                }
                None if self.rest.len() >= LONGEST_LINE => {
                    let mut text = std::mem::take(&mut self.rest);
                    text.truncate(LONGEST_LINE);
                    self.skipping = true;
                    let piece = self.told(text, true);
                    // Its end counts it.
                    self.number -= 1;
                    return Ok(Some(piece));
                }
                None => {}
            }
        }
    }

    /// Reads as much as a piece has, or more of a line that is longer.
    fn fill(&mut self) {
        let had = self.rest.len();
        let want = if had < self.each { self.each } else { (had * 2).min(LONGEST_LINE) };
        self.rest.reserve_exact(want - had);
        let more = (want - had) as u64;
        if let Err(error) = (&mut self.reader).take(more).read_to_end(&mut self.rest) {
            // A broken stream ends here; what it had is used.
            (self.failed, self.ended) = (Some(error), true);
        }
        self.ended |= self.rest.len() < want;
        self.bytes += (self.rest.len() - had) as u64;
    }

    /// A piece, and how many lines of which widths it has.
    fn told(&mut self, text: Vec<u8>, too_long: bool) -> Piece {
        let plain = memchr(0x1b, &text).is_none();
        let mut ends: Vec<u32> = memchr_iter(b'\n', &text).filter_map(|at| u32::try_from(at).ok()).collect();
        if text.last().is_some_and(|b| *b != b'\n') {
            ends.extend(u32::try_from(text.len()));
        }
        let piece = Piece { text, ends, first: self.number + 1, widths: self.widths, too_long, plain };
        let (mut widest, mut at_widest, mut previous) = self.widths;
        let mut number = self.number;
        piece.lines(&mut |line| {
            number = line.number;
            previous = line.text.len();
            match previous.cmp(&widest) {
                std::cmp::Ordering::Greater => (widest, at_widest) = (previous, 1),
                std::cmp::Ordering::Equal => at_widest += 1,
                std::cmp::Ordering::Less => {}
            }
        });
        self.widths = (widest, at_widest, previous);
        self.number = number;
        piece
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
        while let Some(piece) = lines.piece().expect("readable") {
            piece.lines(&mut |l| out.push((l.number, l.text.to_vec(), l.too_long)));
        }
        out
    }

    #[test]
    fn lines_of_any_length_and_end() {
        let text = b"a\r\n\nb".to_vec();
        let got = lines(Box::new(io::Cursor::new(text)));
        assert_eq!(got, [(1, b"a".to_vec(), false), (2, vec![], false), (3, b"b".to_vec(), false)]);
        let long = [vec![b'x'; LONGEST_LINE + 5 * PIECE], b"\nnext\n".to_vec()].concat();
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
