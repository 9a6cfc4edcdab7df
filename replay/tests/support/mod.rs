//! The recordings of a real node that tests read: decompressed files by name.
#![allow(dead_code, reason = "each test file uses what it needs")]

use nodefold_replay::{Moment, Options, SECOND, Trace, read_texts};
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// The files of a recording.
pub const FILES: [&str; 6] =
    ["kubelet.log", "watch.jsonl", "audit.jsonl", "events.jsonl", "containerd-events.log", "mounts.jsonl"];

/// A recording: its files' texts.
#[derive(Clone)]
pub struct Recording {
    /// Its name.
    pub name: String,
    /// Its files.
    pub files: Vec<(String, String)>,
}

impl Recording {
    /// Reads one by its directory's name.
    pub fn open(name: &str) -> Recording {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/recordings").join(name);
        let files = FILES
            .iter()
            .map(|file| {
                let packed = File::open(dir.join(format!("{file}.gz"))).expect("a file of the recording");
                let mut text = String::new();
                flate2::read::GzDecoder::new(packed).read_to_string(&mut text).expect("gzip");
                ((*file).to_owned(), text)
            })
            .collect();
        Recording { name: name.to_owned(), files }
    }

    /// All of them.
    pub fn all() -> Vec<Recording> {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/recordings");
        let mut names: Vec<String> = fs::read_dir(dir)
            .expect("recordings")
            .map(|e| e.expect("an entry"))
            .filter(|e| e.path().is_dir())
            .map(|e| e.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        assert_eq!(names.len(), 11);
        names.iter().map(|n| Recording::open(n)).collect()
    }

    /// One file's text.
    pub fn text(&self, file: &str) -> &str {
        &self.files.iter().find(|(f, _)| f == file).expect("a file").1
    }

    /// Replaces one file's text.
    pub fn set(&mut self, file: &str, text: String) {
        self.files.iter_mut().find(|(f, _)| f == file).expect("a file").1 = text;
    }

    /// The trace of some of its files.
    pub fn trace(&self, files: &[&str]) -> Trace {
        let now = Moment(1_796_086_800 * SECOND);
        let texts = self.files.iter().filter(|(f, _)| files.contains(&f.as_str()));
        read_texts(texts.map(|(f, t)| (f.as_str(), t.as_bytes())), &Options { year: None, now })
    }
}
