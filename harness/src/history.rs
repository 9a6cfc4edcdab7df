//! Histories: the typed list of what happened in a run, kept as text that every later version can run again. A history is a
//! scenario without expectations; steps that find nothing to do are skipped, which is what lets it shrink.

use crate::scenario::{NodeSpec, Scenario, Verb, to_text};
use crate::swarm::{Broken, Driven, Player};
use nodefold_core::Digest;
use nodefold_k8s::InputError;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What happened.
#[derive(Clone, Debug)]
pub struct History {
    /// The node.
    pub node: NodeSpec,
    /// The API server leaves names in flight to the node to keep apart.
    pub trusting: bool,
    /// The steps, in order.
    pub steps: Vec<Verb>,
}

/// How a replay went.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// What broke.
    pub broken: Vec<Broken>,
    /// Steps that found something to do, by their place.
    pub done: Vec<bool>,
    /// The digest at the end; 0 after a panic.
    pub digest: Digest,
}

impl History {
    /// Reads a history, or any scenario's steps. `file` is only named in errors.
    pub fn parse(text: &str, file: &str) -> Result<History, InputError> {
        let scenario = Scenario::parse(text, file)?;
        Ok(History {
            node: scenario.node,
            trusting: scenario.trusting,
            steps: scenario
                .steps
                .into_iter()
                .map(|step| step.verb)
                .filter(|verb| !matches!(verb, Verb::Expect(_) | Verb::Mark(_)))
                .collect(),
        })
    }

    /// Its text.
    pub fn to_text(&self, name: &str, about: &str) -> String {
        let text = to_text(name, about, &self.node, &self.steps);
        if self.trusting { text.replacen("steps:\n", "trusting: true\nsteps:\n", 1) } else { text }
    }
}

/// Plays it on a new world, up to the first thing that breaks.
pub fn replay(history: &History, driven: &Driven) -> Replayed {
    let mut player = Player::new(&history.node, driven, true);
    player.trust_names(history.trusting);
    let mut done = Vec::new();
    let played = catch_unwind(AssertUnwindSafe(|| {
        player.begin();
        for verb in &history.steps {
            if !player.broken.is_empty() {
                break;
            }
            done.push(player.perform(verb));
        }
        player.finish();
        player.digest()
    }));
    let digest = played.unwrap_or_else(|_| {
        let at = player.world().now().since(crate::world::BEGINNING);
        player.broken.push(Broken { invariant: "panic".into(), what: "the core panicked".into(), at });
        Digest(0)
    });
    Replayed { broken: player.broken, done, digest }
}
