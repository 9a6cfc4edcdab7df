//! A watch as it is sent: frames, one line each; selections that objects enter and leave; bookmarks; the end.

use super::failure::Failure;
use super::render::Form;
use super::resource::Resource;
use super::selection::Selection;
use super::watch::{First, Subscription, WatchEvent, frame};
use bytes::{Bytes, BytesMut};
use nodefold_api::ChangeType;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

/// Between two bookmarks.
const BOOKMARKS: Duration = Duration::from_secs(60);

/// After a change was sent, more are waited for so long.
const GATHERED: Duration = Duration::from_millis(20);
/// No more changes than this are taken at once.
const MOST: usize = 256;
/// No more bytes than this are put together.
const PIECE: usize = 64 << 10;

/// How a watch is sent.
pub struct Watching {
    /// What it gets.
    pub selection: Selection,
    /// As what.
    pub form: Form,
    /// Of which kind.
    pub resource: &'static Resource,
    /// It wants bookmarks.
    pub bookmarks: bool,
    /// It ends after this time.
    pub ends_after: Duration,
}

impl Watching {
    /// Sends until the client goes, the time is over, or it can't keep up. What comes shortly after a change that was sent is sent
    /// together: to wake a connection costs more than a frame.
    pub async fn send(self, mut from: Subscription, out: mpsc::Sender<Bytes>) {
        let ends = Instant::now() + self.ends_after;
        let mut version = from.version;
        let mut columns_told = false;
        let first = std::mem::take(&mut from.first);
        let first = first.into_iter().filter_map(|first| match first {
            First::There(object) => {
                self.selection.takes(&object).then(|| self.framed("ADDED", &object, &mut columns_told))
            }
            First::Changed(event) => self.of_event(&event, &mut columns_told),
        });
        if !together(first, &out).await {
            return;
        }
        if from.marked && out.send(self.bookmark(version, true)).await.is_err() {
            return;
        }
        let mut bookmark_due = Instant::now() + BOOKMARKS;
        let mut events = Vec::new();
        loop {
            tokio::select! {
                taken = from.queue.recv_many(&mut events, MOST) => {
                    if taken == 0 {
                        // Cut off because it did not read, or the node ends.
                        if from.is_behind() {
                            let gone = Failure::new(410, "Expired", "the watch could not keep up: list anew");
                            out.send(frame("ERROR", &gone.status)).await.ok();
                        }
                        return;
                    }
                    version = events.last().map_or(version, |event| event.version);
                    let frames = events.drain(..).filter_map(|event| self.of_event(&event, &mut columns_told));
                    if !together(frames, &out).await {
                        return;
                    }
                    sleep(GATHERED).await;
                }
                () = sleep_until(bookmark_due), if self.bookmarks => {
                    bookmark_due = Instant::now() + BOOKMARKS;
                    if out.send(self.bookmark(version, false)).await.is_err() {
                        return;
                    }
                }
                () = sleep_until(ends) => return,
                () = out.closed() => return,
            }
        }
    }

    /// What a change is to this watch: an object that enters its selection is added, one that leaves it is deleted.
    fn of_event(&self, event: &Arc<WatchEvent>, columns_told: &mut bool) -> Option<Bytes> {
        let was = event.old.as_ref().is_some_and(|old| self.selection.takes(old));
        let is = self.selection.takes(&event.object);
        let kind = match (event.change, was, is) {
            (ChangeType::Added | ChangeType::Modified, false, true) => "ADDED",
            (ChangeType::Added | ChangeType::Modified, true, true) => "MODIFIED",
            (ChangeType::Added | ChangeType::Modified, true, false) | (ChangeType::Deleted, true, _) => {
                "DELETED"
            }
            (ChangeType::Added | ChangeType::Modified | ChangeType::Deleted, false, _) => return None,
        };
        if self.form == Form::Plain && kind == event.change.as_str() {
            return Some(event.frame());
        }
        Some(self.framed(kind, &event.object, columns_told))
    }

    fn framed(&self, kind: &str, object: &Value, columns_told: &mut bool) -> Bytes {
        let mut shown = self.form.one(object);
        if matches!(self.form, Form::Table { .. }) {
            if *columns_told {
                shown["columnDefinitions"] = Value::Null;
            }
            *columns_told = true;
        }
        frame(kind, &shown)
    }

    fn bookmark(&self, version: u64, ends_first: bool) -> Bytes {
        let mut metadata = json!({"resourceVersion": version.to_string(), "creationTimestamp": null});
        if ends_first {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let object = match self.form {
            Form::Table { .. } => json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1",
                "metadata": {"resourceVersion": version.to_string()}, "columnDefinitions": null, "rows": []}),
            Form::Plain | Form::Metadata { .. } => json!({
                "kind": self.resource.kind, "apiVersion": self.resource.api_version(), "metadata": metadata}),
        };
        frame("BOOKMARK", &object)
    }
}

/// Sends frames in pieces; whether the client is there still.
async fn together(frames: impl Iterator<Item = Bytes>, out: &mpsc::Sender<Bytes>) -> bool {
    let mut frames = frames.peekable();
    while let Some(first) = frames.next() {
        let piece = match frames.peek() {
            None => first,
            Some(_) => {
                let mut piece = BytesMut::from(&first[..]);
                while let Some(next) = frames.next_if(|next| piece.len() + next.len() <= PIECE) {
                    piece.extend_from_slice(&next);
                }
                piece.freeze()
            }
        };
        if out.send(piece).await.is_err() {
            return false;
        }
    }
    true
}
