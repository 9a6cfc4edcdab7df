//! A piece of an input, read before it is known what stands before it.
//!
//! A record begins anew on most lines, so a piece that begins with one can be read by another processor while the pieces before
//! it still are. What was read ahead counts only if nothing before the piece could have been read into it; else the piece is
//! read again, in its turn. So the result is that of reading line by line, whoever reads.

use super::Importer;
use crate::input::Piece;
use crate::klog;
use crate::wrapper;

/// A piece that was read ahead: its importer, and what its first record says.
pub struct Ahead {
    importer: Importer,
    /// The process of the first record.
    pid: u64,
    /// Its host was named.
    hosted: bool,
}

impl Importer {
    /// Reads a piece as if nothing stood before it. `None`: it doesn't begin with a record, so it has to wait for its turn.
    pub fn read_ahead(piece: &Piece) -> Option<Ahead> {
        let mut importer = Importer::new();
        (importer.widest, importer.at_widest, importer.previous_width) = piece.widths;
        let mut ahead: Option<(u64, bool)> = None;
        piece.lines(&mut |line| {
            if line.number == piece.first {
                importer.line(&line);
                ahead = importer.begins_with(line.text);
            } else if ahead.is_some() {
                importer.line(&line);
            }
        });
        ahead.map(|(pid, hosted)| Ahead { importer, pid, hosted })
    }

    /// The process that a first line's record names, and whether it names a host. The header must stand in the line as it is:
    /// others take what they lack from the records before them.
    fn begins_with(&self, line: &[u8]) -> Option<(u64, bool)> {
        let coloured = line.first() == Some(&0x1b) || line.ends_with(b"m") || line.starts_with(b"`");
        if coloured || self.sink.recognised == 0 {
            return None;
        }
        let header = klog::header(line).or_else(|| klog::header(wrapper::strip(line).rest))?;
        (header.stamp.is_some() && self.last == header.stamp)
            .then(|| (self.last_pid, self.last_host.is_some()))
    }

    /// Takes the next piece: as it was read ahead, if that is what reading it now would come to.
    pub fn piece(&mut self, piece: &Piece, ahead: Option<Ahead>) {
        match ahead.filter(|ahead| self.is_done_before(ahead)) {
            Some(ahead) => self.take_in(ahead),
            None => piece.lines(&mut |line| self.line(&line)),
        }
    }

    /// Whether nothing that is open here goes on in a piece.
    fn is_done_before(&self, ahead: &Ahead) -> bool {
        let ends = |open: &super::OpenRecord| open.pid() == ahead.pid || open.line_count() == 1;
        let next = &ahead.importer;
        !self.document.is_open()
            && self.export.is_none()
            && self.table.is_none()
            && self.partial.is_empty()
            && self.mounts.is_empty()
            && self.described.is_empty()
            // What is behind something unknown can't be read without knowing what.
            && self.shape.is_empty()
            && !self.in_panic
            && !self.kubelet_unit
            && self.open.as_ref().is_none_or(ends)
            && (ahead.hosted || self.last_host.is_none())
            && self.sink.reach.len() + next.sink.reach.len() + 1 < Importer::MOST_PROCESSES
    }

    /// Goes on from where a piece ends.
    fn take_in(&mut self, ahead: Ahead) {
        self.close();
        if self.last_pid != ahead.pid {
            self.note_reach();
        }
        let Importer {
            sink,
            open,
            room: _,
            place: _,
            document,
            export,
            table,
            described,
            mounts,
            partial,
            in_panic,
            kubelet_unit,
            last,
            last_pid,
            last_host,
            shape,
            widest,
            at_widest,
            previous_width,
            full,
            hosts: _,
            plain: _,
            in_document,
        } = ahead.importer;
        self.sink.absorb(sink);
        self.open = open;
        self.document = document;
        self.export = export;
        self.table = table;
        self.described = described;
        self.mounts = mounts;
        self.shape = shape;
        self.partial = partial;
        (self.in_panic, self.kubelet_unit, self.in_document) = (in_panic, kubelet_unit, in_document);
        (self.last, self.last_pid, self.last_host) = (last, last_pid, last_host);
        (self.widest, self.at_widest, self.previous_width, self.full) =
            (widest, at_widest, previous_width, full);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Sink;
    use crate::input::Lines;
    use std::fs::{self, File};
    use std::io::{Cursor, Read};
    use std::path::Path;

    /// Reads a text in pieces of some size, and says how many of them were taken as they were read ahead.
    fn read(text: &[u8], each: usize, ahead: bool) -> (Sink, usize) {
        let mut importer = Importer::new();
        let mut lines = Lines::in_pieces_of(each, Box::new(Cursor::new(text.to_vec())));
        let mut taken = 0;
        while let Some(piece) = lines.piece().expect("from memory") {
            let ahead = Importer::read_ahead(&piece).filter(|_| ahead);
            taken += usize::from(ahead.as_ref().is_some_and(|ahead| importer.is_done_before(ahead)));
            importer.piece(&piece, ahead);
        }
        importer.finish();
        (importer.sink, taken)
    }

    /// All that a sink has. Names get their numbers in the order in which they are said, so these are the same, too.
    fn all(sink: &Sink) -> Vec<String> {
        let name = |sym: Option<_>| sym.map_or("", |sym| &**sink.names.get(sym));
        let drafts = sink.drafts.iter().map(|k| {
            let about = &k.about;
            let names = [about.uid, about.pod, about.id, about.container, about.volume, about.host].map(name);
            format!("{k:?} {names:?}")
        });
        let Sink { drafts: _, names: _, skipped, recognised, years, zones, verbosity, reach, remarks } = sink;
        let counted = format!("{skipped:?} {recognised} {verbosity}");
        drafts.chain([counted, format!("{years:?} {zones:?} {reach:?} {remarks:?}")]).collect()
    }

    /// How many pieces of a text were read ahead, of whatever sizes; the result is always that of reading line by line.
    fn same(name: &str, text: &[u8]) -> usize {
        let (serial, _) = read(text, 1 << 20, false);
        let serial = all(&serial);
        let mut taken = 0;
        for each in [90, 700, 4096, 30_000] {
            let (sink, ahead) = read(text, each, true);
            assert!(all(&sink) == serial, "{name} in pieces of {each}");
            taken += ahead;
        }
        taken
    }

    #[test]
    fn what_is_read_ahead_is_what_is_read_in_turn() {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests");
        let mut log = Vec::new();
        let packed = File::open(tests.join("recordings/01-volumes-basic/kubelet.log.gz")).expect("a log");
        flate2::read::GzDecoder::new(packed).read_to_end(&mut log).expect("gzip");
        log.truncate(400_000);
        assert!(same("a log", &log) > 500, "most pieces begin with a record");
        let lines: Vec<&[u8]> = log.split(|b| *b == b'\n').collect();
        let journald: Vec<u8> =
            lines.iter().flat_map(|l| [b"Nov 30 18:43:05 node kubelet[7]: ", *l, b"\n"].concat()).collect();
        assert!(same("behind journald", &journald) > 500, "most pieces begin with a record");
        // Whatever else there is, strewn between records: pieces begin anywhere in it.
        let mut odd: Vec<Vec<u8>> = fs::read_dir(tests.join("node-logs"))
            .expect("fragments")
            .map(|entry| fs::read(entry.expect("an entry").path()).expect("a fragment"))
            .collect();
        odd.sort();
        odd.extend(
            [
                "panic: no\n\ngoroutine 1 [running]:\nmain.main()\n\t/a/b.go:3 +0x1",
                "{\n \"kind\": \"Pod\",\n \"metadata\": {\n  \"name\": \"a\"\n }\n}",
                "E1130 18:43:05.000001     999 a.go:3] Operation for \"{v}\" failed.\nOutput: x\n with error: exit status 1",
                "{\"at\":\"2026-11-30T18:43:05Z\",\"mountinfo\":[]}",
                "CONTAINER           IMAGE               CREATED             STATE               NAME",
                "● kubelet.service - kubelet: The Kubernetes Node Agent",
                "2024-12-20T04:51:19.752570988Z stderr P begun and",
            ]
            .map(|text| text.as_bytes().to_vec()),
        );
        for (i, odd) in odd.iter().enumerate() {
            let mut text = Vec::new();
            for (n, line) in lines.iter().take(400).enumerate() {
                text.extend_from_slice(line);
                text.push(b'\n');
                if n % 29 == 0 {
                    text.extend_from_slice(&odd[..odd.len().min(3000)]);
                    text.push(b'\n');
                }
            }
            same(&format!("strewn with {i}"), &text);
        }
    }
}
