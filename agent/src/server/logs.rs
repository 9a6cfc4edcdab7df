//! Containers' logs, as `kubectl logs` asks for them: files in the runtimes' own form, one for each life of a container.

use super::ask::LogPlace;
use super::failure::Failure;
use super::query::Query;
use crate::beneath;
use bytes::Bytes;
use jiff::Timestamp;
use std::collections::VecDeque;
use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::mpsc;

/// Between two looks at a file that is followed.
const LOOK: Duration = Duration::from_millis(100);
/// No line is longer; the rest of one counts as the next.
const LONGEST_LINE: usize = 256 * 1024;

/// Which lines are wanted, and how.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Go on with what comes.
    pub follow: bool,
    /// The life before this one.
    pub previous: bool,
    tail: Option<usize>,
    since: Option<Timestamp>,
    timestamps: bool,
    bytes: Option<usize>,
    /// Only these streams (its output, its errors), and before each piece the number of its own.
    streams: Option<[bool; 2]>,
}

impl Wanted {
    /// Reads `PodLogOptions`.
    pub fn read(query: &Query, now: Timestamp) -> Result<Wanted, Failure> {
        let number = |name| query.number(name).map(|n| n.map(|n| usize::try_from(n).unwrap_or(usize::MAX)));
        let since = match (query.text("sinceTime"), query.number("sinceSeconds")?) {
            ("", None) => None,
            ("", Some(seconds)) => {
                let seconds = i64::try_from(seconds).unwrap_or(i64::MAX / 1_000_000_000).min(1 << 32);
                now.checked_sub(jiff::SignedDuration::from_secs(seconds)).ok()
            }
            (text, _) => Some(
                text.parse()
                    .map_err(|_| Failure::bad_request(format!("sinceTime: {text:?} is no RFC 3339 time")))?,
            ),
        };
        Ok(Wanted {
            follow: query.flag("follow"),
            previous: query.flag("previous"),
            tail: number("tailLines")?,
            since,
            timestamps: query.flag("timestamps"),
            bytes: number("limitBytes")?,
            streams: None,
        })
    }

    /// What comes from now on, of these streams (its output, its errors), each piece with the number of its own before it.
    pub fn from_now_on(streams: [bool; 2]) -> Wanted {
        Wanted { follow: true, tail: Some(0), streams: Some(streams), ..Wanted::default() }
    }
}

/// The file of the life that is meant.
pub async fn file(place: &LogPlace, previous: bool) -> Result<Option<PathBuf>, Failure> {
    let mut lives = lives(place).await;
    let current = lives.pop();
    let shown = format!("container {:?} in pod {:?}", &*place.container, &*place.pod);
    match (previous, current, &place.waiting) {
        (true, _, _) => match lives.pop() {
            Some((_, path)) => Ok(Some(path)),
            None => Err(Failure::bad_request(format!("previous terminated {shown} not found"))),
        },
        (false, Some((_, path)), _) => Ok(Some(path)),
        (false, None, Some(reason)) => {
            let what = format!("{shown} is waiting to start: {reason}");
            Err(Failure::bad_request(what))
        }
        (false, None, None) => Ok(None),
    }
}

/// The lives that left a log, oldest first.
async fn lives(place: &LogPlace) -> Vec<(Vec<u64>, PathBuf)> {
    let mut found = Vec::new();
    let Ok(mut entries) = tokio::fs::read_dir(&place.dir).await else { return found };
    while let Ok(Some(entry)) = entries.next_entry().await {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(life) = name.strip_suffix(".log") else { continue };
        let life: Vec<u64> = life.split('.').filter_map(|part| part.parse().ok()).collect();
        found.push((life, entry.path()));
    }
    found.sort();
    found
}

/// Sends the lines until there are no more, the reader has gone, or what writes them has ended.
pub async fn send<F: Future<Output = bool>>(
    path: PathBuf,
    place: LogPlace,
    wanted: Wanted,
    out: mpsc::Sender<Bytes>,
    mut ended: impl FnMut() -> F,
) {
    // What a container that is shown the logs put there is not followed.
    let opened = match (path.parent(), path.file_name()) {
        (Some(dir), Some(name)) => {
            beneath::open_root(dir).ok().and_then(|dir| beneath::open_file(dir, name).ok())
        }
        (_, _) => None,
    };
    let Some(file) = opened else { return };
    let file = tokio::fs::File::from_std(file.into());
    let mut reader = BufReader::new(file);
    let mut left = wanted.bytes.unwrap_or(usize::MAX);
    let mut last: VecDeque<Vec<u8>> = VecDeque::new();
    let mut partial = Vec::new();
    let mut over = wanted.previous;
    let mut tailing = wanted.tail.is_some();
    loop {
        let mut line = std::mem::take(&mut partial);
        let read = read_line(&mut reader, &mut line).await;
        if read && line.ends_with(b"\n") {
            let Some(text) = told(&line, &wanted) else { continue };
            if tailing {
                last.push_back(text);
                if last.len() > wanted.tail.unwrap_or(0) {
                    last.pop_front();
                }
            } else if !give(&out, text, &mut left).await {
                return;
            }
            continue;
        }
        // What is half written comes again with its rest.
        partial = line;
        for text in std::mem::take(&mut last) {
            if !give(&out, text, &mut left).await {
                return;
            }
        }
        tailing = false;
        if !wanted.follow || over {
            return;
        }
        // Once more after its end: what it wrote last may have come meanwhile.
        let newer = lives(&place).await.last().is_some_and(|(_, newest)| *newest != path);
        over = newer || ended().await;
        if !over {
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = out.closed() => return,
            }
        }
    }
}

/// Reads up to a line's end, or up to the longest line's. False: nothing was there.
async fn read_line(reader: &mut BufReader<tokio::fs::File>, line: &mut Vec<u8>) -> bool {
    loop {
        let Ok(there) = reader.fill_buf().await else { return false };
        if there.is_empty() {
            return false;
        }
        let upto = there.iter().position(|byte| *byte == b'\n').map_or(there.len(), |at| at + 1);
        line.extend_from_slice(&there[..upto]);
        let ends = there[upto - 1] == b'\n';
        reader.consume(upto);
        if ends {
            return true;
        }
        if line.len() >= LONGEST_LINE {
            line.push(b'\n');
            return true;
        }
    }
}

/// What of a line `2026-01-01T00:00:00.5Z stdout F text` is shown; none if it is too old.
fn told(line: &[u8], wanted: &Wanted) -> Option<Vec<u8>> {
    let mut parts = line.splitn(4, |byte| *byte == b' ');
    let (stamp, stream, tag, text) = (parts.next()?, parts.next()?, parts.next()?, parts.next());
    let text = text.unwrap_or(b"\n");
    if let Some(since) = wanted.since {
        let at: Timestamp = std::str::from_utf8(stamp).ok()?.parse().ok()?;
        if at < since {
            return None;
        }
    }
    let mut shown = Vec::with_capacity(line.len());
    if let Some([outputs, errors]) = wanted.streams {
        let (number, is_wanted) = if stream == b"stderr" { (2, errors) } else { (1, outputs) };
        if !is_wanted {
            return None;
        }
        shown.push(number);
    }
    if wanted.timestamps {
        shown.extend_from_slice(stamp);
        shown.push(b' ');
    }
    // A part of a line goes on in the next.
    let whole = !tag.starts_with(b"P");
    shown.extend_from_slice(if whole { text } else { text.strip_suffix(b"\n").unwrap_or(text) });
    Some(shown)
}

async fn give(out: &mpsc::Sender<Bytes>, mut text: Vec<u8>, left: &mut usize) -> bool {
    text.truncate(*left);
    *left -= text.len();
    out.send(Bytes::from(text)).await.is_ok() && *left > 0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn lines_are_shown_as_they_were_written() {
        let plain = Wanted::default();
        let line = b"2026-01-01T00:00:00.5Z stdout F hello  world\n";
        assert_eq!(told(line, &plain).unwrap(), b"hello  world\n");
        let stamped = Wanted { timestamps: true, ..Wanted::default() };
        assert_eq!(told(line, &stamped).unwrap(), b"2026-01-01T00:00:00.5Z hello  world\n");
        assert_eq!(told(b"2026-01-01T00:00:00.5Z stdout P half\n", &plain).unwrap(), b"half");
        assert_eq!(told(b"2026-01-01T00:00:00.5Z stdout F \n", &plain).unwrap(), b"\n");
        let late = Wanted { since: Some("2026-01-01T00:00:01Z".parse().unwrap()), ..Wanted::default() };
        assert_eq!(told(line, &late), None);
        assert_eq!(told(b"garbage\n", &plain), None);
        let errors = Wanted::from_now_on([false, true]);
        assert_eq!(told(line, &errors), None);
        assert_eq!(told(b"2026-01-01T00:00:00.5Z stderr F no\n", &errors).unwrap(), b"\x02no\n");
    }
}
