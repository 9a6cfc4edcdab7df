//! Scenario files: what a story says, read whole and checked before anything runs. Unknown verbs, keys and values are
//! errors that name the line and the remedy.

mod budget;
mod duration;
mod expectation;
mod fault;
mod node;
mod pattern;
mod reader;
mod step;
mod write;

pub use budget::Budget;
pub use expectation::{Check, Expectation, ExpectedCause};
pub use node::{NodeChange, NodeSpec};
pub use pattern::{CommandPattern, VERBS};
pub use step::{Crash, DeleteTarget, PodRef, Step, Used, Verb};
pub use write::{flow, to_text};

use nodefold_k8s::InputError;
use reader::Reader;

/// A story of steps and expectations.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The file it came from, as it was named.
    pub file: String,
    /// Its name.
    pub name: String,
    /// What it is about, in a sentence.
    pub about: String,
    /// The node it runs on.
    pub node: NodeSpec,
    /// Operations take no time of their own, as in an exhaustive search.
    pub instant: bool,
    /// The API server has no rules about names in flight (C4, C5, W3–W5).
    pub trusting: bool,
    /// What may go wrong when it is checked exhaustively.
    pub check: Budget,
    /// What happens, in order.
    pub steps: Vec<Step>,
}

impl Scenario {
    /// Reads one. `file` is only named in errors.
    pub fn parse(text: &str, file: &str) -> Result<Scenario, InputError> {
        let documents = nodefold_k8s::parse_documents(text, file)?;
        let document = match documents.as_slice() {
            [one] => one,
            [] => {
                return Err(whole_file(file, "the file holds no document", "write a scenario with `steps:`"));
            }
            [_, more, ..] => {
                let mut error =
                    whole_file(file, "the file holds more than one document", "one file is one scenario");
                error.line = more.spans.nearest("").line;
                return Err(error);
            }
        };
        let root = Reader::new(document, file);
        root.only_and_own(&["name", "about", "node", "instant", "trusting", "check", "steps"])?;
        let steps = root.require("steps", "a scenario is a list of steps, each with one verb")?;
        let items = steps.items()?;
        let steps: Vec<Step> =
            items.iter().enumerate().map(|(i, item)| Step::read(i, item)).collect::<Result<_, _>>()?;
        for (step, item) in steps.iter().zip(&items) {
            names_pods_of(&steps, step, item)?;
        }
        let stem = file.rsplit('/').next().unwrap_or(file).trim_end_matches(".yaml").trim_end_matches(".yml");
        Ok(Scenario {
            file: file.to_owned(),
            name: root.optional_string("name")?.unwrap_or_else(|| stem.to_owned()),
            about: root.optional_string("about")?.unwrap_or_default(),
            node: match root.get("node")? {
                Some(node) => NodeSpec::read(&node)?,
                None => NodeSpec::default(),
            },
            instant: match root.get("instant")? {
                Some(word) => word.boolean()?,
                None => false,
            },
            trusting: match root.get("trusting")? {
                Some(word) => word.boolean()?,
                None => false,
            },
            check: match root.get("check")? {
                Some(budget) => Budget::read(&budget)?,
                None => Budget::default(),
            },
            steps,
        })
    }

    /// The steps whose verbs only a simulated world can do: what a real backend must refuse, with exit status 2.
    pub fn simulation_only(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| step.verb.is_simulation_only())
    }
}

/// `never` holds of whatever is misspelt: the pods of its commands, and of `order`'s, are created somewhere in the story.
fn names_pods_of(steps: &[Step], step: &Step, item: &Reader<'_>) -> Result<(), InputError> {
    let Verb::Expect(expectation) = &step.verb else { return Ok(()) };
    let created: Vec<&str> = steps
        .iter()
        .filter_map(|step| if let Verb::Create(object) = &step.verb { Some(object) } else { None })
        .filter(|object| object["kind"] == "Pod")
        .filter_map(|object| object["metadata"]["name"].as_str())
        .collect();
    let mut patterns = expectation.checks.iter().flat_map(|check| {
        if let Check::Order(patterns) | Check::Never(patterns) = check { patterns.as_slice() } else { &[] }
    });
    // A part of a story, without any, is about pods made elsewhere.
    match patterns.find(|p| !created.is_empty() && !p.pod.is_empty() && !created.contains(&p.pod.as_str())) {
        Some(stranger) => Err(item.error(
            format!("`{stranger}` is about a pod that no step creates"),
            reader::did_you_mean(&stranger.pod, &created),
        )),
        None => Ok(()),
    }
}

fn whole_file(file: &str, message: &str, remedy: &str) -> InputError {
    InputError {
        file: file.to_owned(),
        line: 1,
        column: 1,
        path: String::new(),
        message: message.to_owned(),
        remedy: remedy.to_owned(),
    }
}

#[cfg(test)]
mod tests;
