//! A log on disk: each fact is a batch of the journal, durable before its commands are executed. Requests to the API
//! stand beside the facts as events of another reducer, sealed: no secret's bytes reach the disk (S13).

use super::{FactLog, LogError};
use nodefold_api::ApiEvent;
use nodefold_core::command::Command;
use nodefold_core::event::Event;
use nodefold_core::{Config, Node};
use nodefold_journal::{Options, Storage, Writer, resume};
use std::sync::Arc;

/// The stream of the API's events in a journal.
pub const API_STREAM: &str = "api";

/// A log in a journal.
pub struct Journalled {
    storage: Arc<dyn Storage>,
    options: Options,
    seal_key: [u8; 32],
    writer: Option<Writer>,
}

impl Journalled {
    /// Begins a journal of a node with this configuration. `seal_key` keys the digests that stand for secrets' bytes.
    pub fn create(
        storage: Arc<dyn Storage>,
        options: Options,
        config: &Config,
        seal_key: [u8; 32],
    ) -> Result<Journalled, LogError> {
        let mut node = Node::new(config.clone());
        let writer = Writer::create(storage.clone(), options.clone(), config, &mut node).map_err(told)?;
        Ok(Journalled { storage, options, seal_key, writer: Some(writer) })
    }

    fn writer(&mut self) -> Result<&mut Writer, LogError> {
        self.writer.as_mut().ok_or_else(|| LogError("it was closed".into()))
    }
}

fn told(error: nodefold_journal::Error) -> LogError {
    LogError(error.to_string())
}

impl FactLog for Journalled {
    fn fact(&mut self, event: &Event, before: &mut Node) -> Result<(), LogError> {
        let writer = self.writer()?;
        writer.append(event).map_err(told)?;
        writer.commit(before).map(|_| ()).map_err(told)
    }

    fn commands_given(&mut self, commands: &[Command]) {
        if let Some(writer) = &mut self.writer {
            writer.commands_given(commands);
        }
    }

    fn request(&mut self, event: &ApiEvent) -> Result<(), LogError> {
        let bytes = event.sealed(&self.seal_key).to_bytes();
        self.writer()?.append_foreign(event.at, API_STREAM, &bytes).map_err(told)
    }

    /// A dead agent's writer is gone, with whatever it had not made durable.
    fn recover(&mut self) -> Result<Node, LogError> {
        self.writer = None;
        let resumed = resume::<Node>(self.storage.clone(), self.options.clone()).map_err(told)?;
        if let Some(difference) = resumed.difference() {
            return Err(LogError(format!("it folds otherwise than it was written: {difference}")));
        }
        self.writer = Some(resumed.writer);
        Ok(resumed.fold)
    }

    fn close(&mut self, node: &mut Node) -> Result<(), LogError> {
        match self.writer.take() {
            Some(writer) => writer.stop(node).map(|_| ()).map_err(told),
            None => Ok(()),
        }
    }
}
