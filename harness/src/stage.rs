//! Where a story is played: the verbs that a scenario needs of whatever surrounds a node. The simulated [`World`] is one
//! stage; a real host is another. What only a simulation can do is reached through [`Stage::simulation`].

use crate::record::Record;
use crate::scenario::{NodeChange, PodRef, Used};
use crate::world::{Chooser, Ending, Server, World, WorldError};
use nodefold_api::{Request, Response};
use nodefold_core::ids::{ContainerId, Name, PodUid};
use nodefold_core::spec::Pod;
use nodefold_core::time::{Nanos, Time};
use nodefold_core::{Digest, Node};
use serde_json::Value;
use std::collections::BTreeMap;

/// What surrounds a node, as a story sees it.
pub trait Stage {
    /// The time.
    fn now(&self) -> Time;
    /// What the node takes for the time, and tells in its trace.
    fn node_now(&self) -> Time;
    /// The API server's side.
    fn server(&self) -> &Server;
    /// The API server's side, to be prepared for a request.
    fn server_mut(&mut self) -> &mut Server;
    /// The production core, if that decides here.
    fn node(&self) -> Option<&Node>;
    /// The node's digest.
    fn digest(&mut self) -> Digest;
    /// Takes what happened since this was asked last.
    fn take_records(&mut self) -> Vec<Record>;
    /// Lets time pass up to a moment.
    fn pass_until(&mut self, moment: Time) -> Result<(), WorldError>;
    /// Lets the next thing happen. False: nothing will, by the moment.
    fn pass_one(&mut self, latest: Time) -> Result<bool, WorldError>;
    /// What keeps the stage from being settled: what is in flight, and what is due within the time.
    fn unsettled(&self, within: Nanos) -> Vec<String>;
    /// A request to the API server.
    fn request(&mut self, user: &str, what: String, request: Request) -> Result<Response, WorldError>;
    /// A manifest file appears or changes on the node.
    fn write_file(&mut self, pod: Pod) -> Result<(), WorldError>;
    /// A manifest file goes. Whether there was one.
    fn remove_file(&mut self, name: &PodRef) -> Result<bool, WorldError>;
    /// A container's process ends so. False: no such process runs.
    fn end_process(&mut self, pod: &PodRef, container: &str, ending: Ending) -> Result<bool, WorldError>;
    /// From now on this takes up so much of the disk. False: no such thing is on the host.
    fn takes_up(&mut self, pod: &PodRef, used: &Used, bytes: u64) -> Result<bool, WorldError>;
    /// The agent dies without warning, and is started again.
    fn crash_agent(&mut self) -> Result<(), WorldError>;
    /// The node's own facts change.
    fn change_node(&mut self, change: &NodeChange) -> Result<(), WorldError>;
    /// The newest instance of every container name there ever was.
    fn instances(&self) -> BTreeMap<(PodUid, Name), ContainerId>;
    /// The names of a pod's volumes that are on the host.
    fn volumes_on_host(&self, pod: PodUid) -> Vec<Name>;
    /// What of a pod is still on the node.
    fn left_of(&self, pod: PodUid) -> Vec<String>;
    /// Ends cleanly.
    fn close(&mut self) -> Result<(), WorldError>;
    /// The simulated world, for what no real host does on demand.
    fn simulation(&mut self) -> Option<&mut World>;

    /// The newest instance of a container, whatever its state.
    fn instance(&self, pod: PodUid, container: &str) -> Option<ContainerId> {
        self.instances().remove(&(pod, Name::from(container)))
    }

    /// What is held, for messages.
    fn holds(&self) -> Vec<String> {
        Vec::new()
    }

    /// What is made to go wrong, for messages.
    fn failing(&self) -> Vec<String> {
        Vec::new()
    }

    /// The status that people see of a pod: what is published, for a static pod in its mirror.
    fn published_status(&self, name: &PodRef) -> Option<Value> {
        self.server().pod(name).map(|pod| pod["status"].clone())
    }
}

/// The simulated world with somebody who picks among its choices.
pub struct Simulation {
    /// The world.
    pub world: World,
    /// Who picks.
    pub chooser: Box<dyn Chooser>,
}

impl Stage for Simulation {
    fn now(&self) -> Time {
        self.world.now()
    }

    fn node_now(&self) -> Time {
        self.world.node_now()
    }

    fn server(&self) -> &Server {
        self.world.server()
    }

    fn server_mut(&mut self) -> &mut Server {
        self.world.server_mut()
    }

    fn node(&self) -> Option<&Node> {
        self.world.brain().node()
    }

    fn digest(&mut self) -> Digest {
        self.world.digest()
    }

    fn take_records(&mut self) -> Vec<Record> {
        self.world.take_records()
    }

    fn pass_until(&mut self, moment: Time) -> Result<(), WorldError> {
        self.world.run_until(moment, &mut *self.chooser)
    }

    fn pass_one(&mut self, latest: Time) -> Result<bool, WorldError> {
        self.world.run_one(latest, &mut *self.chooser)
    }

    fn unsettled(&self, within: Nanos) -> Vec<String> {
        self.world.unsettled(within)
    }

    fn request(&mut self, user: &str, what: String, request: Request) -> Result<Response, WorldError> {
        self.world.request(user, what, request)
    }

    fn write_file(&mut self, pod: Pod) -> Result<(), WorldError> {
        self.world.write_file(pod);
        Ok(())
    }

    fn remove_file(&mut self, name: &PodRef) -> Result<bool, WorldError> {
        Ok(self.world.remove_file(name))
    }

    fn end_process(&mut self, pod: &PodRef, container: &str, ending: Ending) -> Result<bool, WorldError> {
        Ok(self.world.end_process(pod, container, ending))
    }

    fn takes_up(&mut self, pod: &PodRef, used: &Used, bytes: u64) -> Result<bool, WorldError> {
        Ok(self.world.takes_up(pod, used, bytes))
    }

    fn crash_agent(&mut self) -> Result<(), WorldError> {
        self.world.crash_agent();
        Ok(())
    }

    fn change_node(&mut self, change: &NodeChange) -> Result<(), WorldError> {
        self.world.change_node(change)
    }

    fn instances(&self) -> BTreeMap<(PodUid, Name), ContainerId> {
        self.world.instances()
    }

    fn instance(&self, pod: PodUid, container: &str) -> Option<ContainerId> {
        self.world.instance(pod, container).cloned()
    }

    fn volumes_on_host(&self, pod: PodUid) -> Vec<Name> {
        self.world.volumes_on_host(pod)
    }

    fn left_of(&self, pod: PodUid) -> Vec<String> {
        self.world.left_of(pod)
    }

    fn close(&mut self) -> Result<(), WorldError> {
        self.world.close()
    }

    fn simulation(&mut self) -> Option<&mut World> {
        Some(&mut self.world)
    }

    fn holds(&self) -> Vec<String> {
        self.world.holds()
    }

    fn failing(&self) -> Vec<String> {
        self.world.failing()
    }
}
