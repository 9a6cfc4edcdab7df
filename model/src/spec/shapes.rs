//! The named scopes of the specification: which versions of which pods are asked for, and what may go wrong meanwhile.

use super::scope::NAMES;

/// What a container is allocated as.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The volume names that it mounts: bit `n` for name `n`.
    pub mounts: u8,
    /// What it takes of the node.
    pub cost: u8,
    /// Definitions of one incarnation differ in image, resources or mounts only.
    pub incarnation: u8,
}

/// One desired version of a pod.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// By container name: the number of its definition.
    pub containers: [Option<u8>; NAMES],
    /// By volume name: the number of its source.
    pub volumes: [Option<u8>; NAMES],
    /// What it takes of the node.
    pub cost: u8,
}

/// A scope.
#[derive(Debug)]
pub struct Shape {
    /// Its name.
    pub name: &'static str,
    /// What it is about.
    pub about: &'static str,
    /// Of each pod its desired versions, in order.
    pub pods: &'static [&'static [Version]],
    /// What containers are made from.
    pub definitions: &'static [Definition],
    /// What the node has.
    pub capacity: u8,
    /// How often the agent or the host dies.
    pub crashes: u8,
    /// The host dies too.
    pub reboots: bool,
    /// Operations fail, and looks find what was lost.
    pub faults: bool,
    /// Pods are deleted, at any moment.
    pub deletes: bool,
    /// Processes end by themselves.
    pub exits: bool,
    /// What ended is started again.
    pub restarts: bool,
    /// Volumes get newer content.
    pub refreshes: bool,
    /// The pods are alike: they may be exchanged.
    pub alike_pods: bool,
    /// The two container names are alike.
    pub alike_containers: bool,
    /// The two volume names are alike.
    pub alike_volumes: bool,
}

const fn defined(mounts: u8, cost: u8, incarnation: u8) -> Definition {
    Definition { mounts, cost, incarnation }
}

const fn version(containers: [Option<u8>; NAMES], volumes: [Option<u8>; NAMES]) -> Version {
    Version { containers, volumes, cost: 0 }
}

const fn costing(containers: [Option<u8>; NAMES], cost: u8) -> Version {
    Version { containers, volumes: [None; NAMES], cost }
}

const PLAIN: Shape = Shape {
    name: "",
    about: "",
    pods: &[],
    definitions: &[],
    capacity: u8::MAX,
    crashes: 0,
    reboots: false,
    faults: false,
    deletes: false,
    exits: false,
    restarts: true,
    refreshes: false,
    alike_pods: false,
    alike_containers: false,
    alike_volumes: false,
};

/// Containers: plain, mounting `a`, mounting `b`.
const MOUNTING: &[Definition] = &[defined(0, 0, 0), defined(1, 0, 0), defined(2, 0, 0), defined(1, 0, 1)];
const ADD: &[Version] =
    &[version([Some(0), None], [None, None]), version([Some(0), Some(1)], [Some(0), None])];
const SWAP: &[Version] =
    &[version([Some(1), None], [Some(0), None]), version([Some(2), None], [None, Some(0)])];
const COLLIDE: &[Version] = &[
    version([Some(1), None], [Some(0), None]),
    version([Some(0), None], [None, None]),
    version([Some(1), None], [Some(1), None]),
];
const SHARED: &[Version] =
    &[version([Some(1), Some(1)], [Some(0), None]), version([Some(0), Some(0)], [None, None])];
const SPENDING: &[Definition] = &[defined(0, 1, 0), defined(0, 2, 0)];
const GROW: &[Version] = &[costing([Some(0), None], 1), costing([Some(0), Some(0)], 2)];

/// All named scopes of the specification.
#[rustfmt::skip]
pub const SHAPES: &[Shape] = &[
    Shape { name: "add-container", about: "a container and its volume are added to a running pod", pods: &[ADD], definitions: MOUNTING, ..PLAIN },
    Shape { name: "swap-volume", about: "a running container's volume is replaced by one of another name", pods: &[SWAP], definitions: MOUNTING, ..PLAIN },
    Shape { name: "collide", about: "a volume name comes back with another source, the middle version perhaps unseen", pods: &[COLLIDE], definitions: MOUNTING, refreshes: true, ..PLAIN },
    Shape { name: "shared-volume", about: "two containers alike give up the volume that they share", pods: &[SHARED], definitions: MOUNTING, exits: true, alike_containers: true, ..PLAIN },
    Shape { name: "transaction", about: "two pods alike want to grow, and the node has room for one", pods: &[GROW, GROW], definitions: SPENDING, capacity: 3, alike_pods: true, ..PLAIN },
    Shape { name: "faults", about: "every operation of a swap may fail", pods: &[SWAP], definitions: MOUNTING, faults: true, ..PLAIN },
    Shape { name: "crash", about: "the agent dies twice during a swap", pods: &[SWAP], definitions: MOUNTING, crashes: 2, ..PLAIN },
    Shape { name: "reboot", about: "the agent or the host dies once during a swap, and pods are deleted", pods: &[SWAP], definitions: MOUNTING, crashes: 1, reboots: true, deletes: true, ..PLAIN },
    Shape { name: "delete-anywhere", about: "a pod is deleted at any point of a collision, and processes end by themselves", pods: &[COLLIDE], definitions: MOUNTING, deletes: true, exits: true, restarts: false, ..PLAIN },
];

/// The scope of that name.
pub fn shape(name: &str) -> Option<&'static Shape> {
    SHAPES.iter().find(|shape| shape.name == name)
}
