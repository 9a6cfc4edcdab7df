//! `node:` and `set:`: what a node is like.

use super::reader::{Reader, did_you_mean};
use nodefold_core::config::{FeatureGates, NodeFacts};
use nodefold_core::ids::Name;
use nodefold_core::resources::{ResourceList, ResourceName};
use nodefold_k8s::InputError;

/// The node that a scenario runs on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSpec {
    /// Allocatable, labels and gates.
    pub facts: NodeFacts,
    /// Images present; `None`: all, and any pull succeeds.
    pub images: Option<Vec<String>>,
    /// Its agent writes the real journal, on a simulated disk.
    pub journal: bool,
}

/// A change to it. Allocatable, labels and gates change where they are named (a null label goes); images are replaced.
#[derive(Clone, Debug, Default)]
pub struct NodeChange {
    /// New amounts.
    pub allocatable: ResourceList,
    /// New labels; `None`: the label goes.
    pub labels: Vec<(Name, Option<Name>)>,
    /// `DynamicContainers`.
    pub dynamic_containers: Option<bool>,
    /// `DynamicNodeLocalEphemeralVolumes`.
    pub dynamic_volumes: Option<bool>,
    /// The images from now on.
    pub images: Option<Vec<String>>,
}

const KEYS: [&str; 4] = ["allocatable", "labels", "featureGates", "images"];
const NODE_KEYS: [&str; 5] = ["allocatable", "labels", "featureGates", "images", "journal"];
const GATES: [&str; 2] = ["DynamicContainers", "DynamicNodeLocalEphemeralVolumes"];

impl NodeSpec {
    /// Reads `node:`.
    pub fn read(field: &Reader<'_>) -> Result<NodeSpec, InputError> {
        field.only(&NODE_KEYS)?;
        let change = NodeChange::read_fields(field)?;
        let journal = field.get("journal")?.map(|on| on.boolean()).transpose()?.unwrap_or_default();
        let mut facts = NodeFacts { gates: FeatureGates::default(), ..NodeFacts::default() };
        change.apply(&mut facts);
        Ok(NodeSpec { facts, images: change.images, journal })
    }
}

impl NodeChange {
    /// Reads `set:`.
    pub fn read(field: &Reader<'_>) -> Result<NodeChange, InputError> {
        if field.mapping()?.is_empty() {
            return Err(field.error("nothing to set", format!("name one of: {}", KEYS.join(", "))));
        }
        field.only(&KEYS)?;
        NodeChange::read_fields(field)
    }

    fn read_fields(field: &Reader<'_>) -> Result<NodeChange, InputError> {
        let mut change = NodeChange::default();
        if let Some(allocatable) = field.get("allocatable")? {
            for (name, amount) in allocatable.entries()? {
                let resource = ResourceName::parse(name);
                let units = units(&amount, &resource)?;
                change.allocatable.set(resource, units);
            }
        }
        if let Some(labels) = field.get("labels")? {
            for (key, value) in labels.entries()? {
                let value = if value.value.is_null() { None } else { Some(value.string()?.into()) };
                change.labels.push((key.into(), value));
            }
        }
        if let Some(gates) = field.get("featureGates")? {
            for (name, on) in gates.entries()? {
                match name {
                    "DynamicContainers" => change.dynamic_containers = Some(on.boolean()?),
                    "DynamicNodeLocalEphemeralVolumes" => change.dynamic_volumes = Some(on.boolean()?),
                    _ => {
                        return Err(
                            on.error(format!("unknown feature gate {name:?}"), did_you_mean(name, &GATES))
                        );
                    }
                }
            }
        }
        change.images = field.get("images")?.map(|images| images.strings()).transpose()?;
        Ok(change)
    }

    /// Changes the node's facts.
    pub fn apply(&self, facts: &mut NodeFacts) {
        for (name, amount) in self.allocatable.iter() {
            facts.allocatable.set(name.clone(), *amount);
        }
        for (key, value) in &self.labels {
            facts.labels.retain(|(k, _)| k != key);
            if let Some(value) = value {
                facts.labels.push((key.clone(), value.clone()));
            }
        }
        facts.labels.sort();
        if let Some(on) = self.dynamic_containers {
            facts.gates.dynamic_containers = on;
        }
        if let Some(on) = self.dynamic_volumes {
            facts.gates.dynamic_volumes = on;
        }
    }

    /// It changes more than the images.
    pub fn changes_facts(&self) -> bool {
        !self.allocatable.is_empty()
            || !self.labels.is_empty()
            || self.dynamic_containers.is_some()
            || self.dynamic_volumes.is_some()
    }
}

/// A quantity in the core's units.
fn units(field: &Reader<'_>, resource: &ResourceName) -> Result<u64, InputError> {
    let text = field.string()?;
    let quantity = nodefold_k8s::quantity::parse(&text).map_err(|error| {
        field.error(format!("{text:?} is no quantity: {error}"), "write 2, 500m, 4Gi, ...")
    })?;
    Ok(match resource {
        ResourceName::Cpu => quantity.milli(),
        ResourceName::Memory
        | ResourceName::EphemeralStorage
        | ResourceName::Pods
        | ResourceName::Other(_) => quantity.units(),
    })
}
