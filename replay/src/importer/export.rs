//! `journalctl -o export`: `KEY=value` lines, an entry ends with a blank one; binary values have a length instead.

use super::Importer;
use super::document::microseconds;
use crate::scan::until;

/// An entry being read.
#[derive(Debug, Default)]
pub struct Export {
    message: Vec<u8>,
    received: Option<String>,
    host: Option<String>,
    ident: String,
    pid: u64,
    line: u64,
    /// The next line begins with eight bytes of length: a binary MESSAGE.
    binary: bool,
    in_binary: bool,
}

fn key(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (key, value) = until(text, b'=')?;
    let named = |b: &u8| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_';
    (!key.is_empty() && key.len() <= 64 && key.iter().all(named)).then_some((key, value))
}

impl Importer {
    /// Takes a line of an export. False: it is none.
    pub(super) fn exported(&mut self, text: &[u8], number: u64) -> bool {
        if text.starts_with(b"__CURSOR=") {
            if let Some(entry) = self.export.take() {
                self.journal_entry(entry);
            }
            self.export = Some(Export { line: number, ..Export::default() });
            return true;
        }
        let Some(entry) = &mut self.export else { return false };
        if text.is_empty() && !entry.in_binary {
            if let Some(entry) = self.export.take() {
                self.journal_entry(entry);
            }
            return true;
        }
        if entry.binary {
            entry.message = text.get(8..).unwrap_or_default().to_vec();
            (entry.binary, entry.in_binary) = (false, true);
            return true;
        }
        let Some((key, value)) = key(text) else {
            if text == b"MESSAGE" {
                entry.binary = true;
            } else if entry.in_binary && entry.message.len() < crate::input::LONGEST_LINE {
                entry.message.push(b'\n');
                entry.message.extend_from_slice(text);
            }
            return true;
        };
        entry.in_binary = false;
        let text = || String::from_utf8_lossy(value).into_owned();
        match key {
            b"MESSAGE" => entry.message = value.to_vec(),
            b"__REALTIME_TIMESTAMP" => entry.received = Some(text()),
            b"_HOSTNAME" => entry.host = Some(text()),
            b"SYSLOG_IDENTIFIER" => entry.ident = text(),
            b"_COMM" if entry.ident.is_empty() => entry.ident = text(),
            b"_PID" => entry.pid = text().parse().unwrap_or(0),
            _ => {}
        }
        true
    }

    /// An entry is whole.
    pub(super) fn journal_entry(&mut self, entry: Export) {
        if entry.message.is_empty() {
            return;
        }
        let received = entry.received.as_deref().and_then(microseconds);
        self.inner(&entry.message, received, entry.host.as_deref(), &entry.ident, entry.pid, entry.line);
    }
}
