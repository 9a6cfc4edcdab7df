//! A watch as it is sent: frames, one line each; selections that objects enter and leave; bookmarks; the end.

use super::failure::Failure;
use super::render::Form;
use super::resource::Resource;
use super::selection::Selection;
use super::watch::{First, Subscription, WatchEvent, frame};
use bytes::Bytes;
use nodefold_api::ChangeType;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// Between two bookmarks.
const BOOKMARKS: Duration = Duration::from_secs(60);

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
    /// Sends until the client goes, the time is over, or it can't keep up.
    pub async fn send(self, mut from: Subscription, out: mpsc::Sender<Bytes>) {
        let ends = Instant::now() + self.ends_after;
        let mut version = from.version;
        let mut columns_told = false;
        for first in std::mem::take(&mut from.first) {
            let frame = match first {
                First::There(object) => {
                    self.selection.takes(&object).then(|| self.framed("ADDED", &object, &mut columns_told))
                }
                First::Changed(event) => self.of_event(&event, &mut columns_told),
            };
            if let Some(frame) = frame
                && out.send(frame).await.is_err()
            {
                return;
            }
        }
        if from.marked && out.send(self.bookmark(version, true)).await.is_err() {
            return;
        }
        let mut bookmark_due = Instant::now() + BOOKMARKS;
        loop {
            let frame = tokio::select! {
                event = from.queue.recv() => match event {
                    Some(event) => {
                        version = event.version;
                        self.of_event(&event, &mut columns_told)
                    }
                    None => {
                        // Cut off because it did not read, or the node ends.
                        if from.is_behind() {
                            let gone = Failure::new(410, "Expired", "the watch could not keep up: list anew");
                            out.send(frame("ERROR", &gone.status)).await.ok();
                        }
                        return;
                    }
                },
                () = sleep_until(bookmark_due), if self.bookmarks => {
                    bookmark_due = Instant::now() + BOOKMARKS;
                    Some(self.bookmark(version, false))
                }
                () = sleep_until(ends) => return,
                () = out.closed() => return,
            };
            if let Some(frame) = frame
                && out.send(frame).await.is_err()
            {
                return;
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
