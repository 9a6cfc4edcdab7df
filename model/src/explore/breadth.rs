//! Breadth first: layer by layer, each in blocks. The states of a block are expanded by all threads at once; what they
//! found is then numbered in order by one, so that numbers depend on nothing but the graph.

use super::graph::Graph;
use super::visited::Visited;
use super::{Found, Options, Progress, Report, World, Wrong, selected};

/// States expanded between two numberings.
const BLOCK: usize = 1 << 13;

/// How a state was found first.
#[derive(Copy, Clone)]
struct Link {
    parent: u32,
    nth: u16,
}

/// A search that was stopped between two blocks, to be gone on with later: `keys`, `parents` and `choices` by state number,
/// and what was counted.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub struct Checkpoint {
    keys: Vec<u128>,
    parents: Vec<u32>,
    choices: Vec<u16>,
    expanded: u32,
    generated: u64,
    settled: u64,
    layer_end: u32,
    depth: u32,
    graph: Graph,
}

impl Checkpoint {
    /// Its bytes, to be kept in a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // Larger than what a record may be: a search is no record.
        let encoded = bincode::encode_into_std_write(self, &mut bytes, bincode::config::standard());
        assert!(encoded.is_ok(), "encoding into memory can't fail: {encoded:?}");
        bytes
    }

    /// Reads them again.
    pub fn from_bytes(bytes: &[u8]) -> Result<Checkpoint, String> {
        let decoded = bincode::decode_from_slice(bytes, bincode::config::standard());
        match decoded {
            Ok((checkpoint, read)) if read == bytes.len() => Ok(checkpoint),
            Ok(_) => Err("it is no checkpoint: it goes on after its end".to_owned()),
            Err(error) => Err(format!("it is no checkpoint: {error}")),
        }
    }
}

/// A step out of a state.
struct Step<W> {
    nth: u16,
    key: u128,
    fault: bool,
    settled: bool,
    /// None: known already.
    world: Option<W>,
}

/// What came of expanding one state.
struct Expanded<W> {
    steps: Vec<Step<W>>,
    broken: Option<(u16, String)>,
}

struct Search<W> {
    visited: Visited,
    links: Vec<Link>,
    graph: Graph,
    generated: u64,
    settled: u64,
    /// States not yet expanded, in order of their numbers.
    queue: std::collections::VecDeque<W>,
    expanded: u32,
    layer_end: u32,
    depth: u32,
    found: Option<Found>,
}

/// Explores everything, or until `go_on` says no: then the checkpoint can be resumed from.
pub fn breadth_first<W: World>(
    beginning: &W,
    options: Options,
    go_on: &mut dyn FnMut(&Progress) -> bool,
) -> (Report, Option<Checkpoint>) {
    let mut search = Search {
        visited: Visited::new(),
        links: vec![Link { parent: u32::MAX, nth: 0 }],
        graph: Graph::default(),
        generated: 0,
        settled: u64::from(beginning.is_settled()),
        queue: [beginning.clone()].into(),
        expanded: 0,
        layer_end: 1,
        depth: 0,
        found: None,
    };
    search.visited.insert(beginning.key());
    search.graph.state(beginning.is_settled());
    search.run(options, go_on)
}

/// Goes on from a checkpoint: the states that were not expanded yet are made again by taking their paths.
pub fn resume<W: World>(
    beginning: &W,
    from: Checkpoint,
    options: Options,
    go_on: &mut dyn FnMut(&Progress) -> bool,
) -> Result<(Report, Option<Checkpoint>), String> {
    let mut visited = Visited::new();
    for key in &from.keys {
        visited.insert(*key);
    }
    if from.keys.first().is_none_or(|key| *key != beginning.key().max(1)) {
        return Err("the checkpoint is of another beginning".to_owned());
    }
    let links: Vec<Link> = from
        .parents
        .iter()
        .zip(&from.choices)
        .map(|(parent, nth)| Link { parent: *parent, nth: *nth })
        .collect();
    let mut search = Search {
        visited,
        links,
        graph: from.graph,
        generated: from.generated,
        settled: from.settled,
        queue: Default::default(),
        expanded: from.expanded,
        layer_end: from.layer_end,
        depth: from.depth,
        found: None,
    };
    for number in from.expanded..from.keys.len() as u32 {
        let mut world = beginning.clone();
        let mut choices = Vec::new();
        for nth in search.path(number) {
            world.choices(&mut choices);
            let choice = choices.get(usize::from(nth)).ok_or("the checkpoint's paths no longer exist")?;
            world.take(choice)?;
        }
        if world.key().max(1) != from.keys[number as usize] {
            return Err("the checkpoint's paths lead elsewhere now".to_owned());
        }
        search.queue.push_back(world);
    }
    Ok(search.run(options, go_on))
}

impl<W: World> Search<W> {
    fn run(
        mut self,
        options: Options,
        go_on: &mut dyn FnMut(&Progress) -> bool,
    ) -> (Report, Option<Checkpoint>) {
        while self.found.is_none() && !self.queue.is_empty() {
            if !go_on(&self.progress()) {
                let report = self.report(false);
                return (report, Some(self.checkpoint()));
            }
            if self.expanded == self.layer_end {
                self.depth += 1;
                self.layer_end = self.visited.len() as u32;
            }
            let in_layer = (self.layer_end - self.expanded) as usize;
            let mut block: Vec<W> = self.queue.drain(..in_layer.min(BLOCK)).collect();
            let expanded = expand(&mut block, &self.visited, options);
            self.number(expanded, options.liveness);
        }
        if self.found.is_none() && options.liveness {
            self.found = self.graph.trap().map(|trap| {
                let path = self.path(trap.state);
                let what = match trap.cycle {
                    Some(cycle) => Wrong::Livelock(cycle),
                    None => Wrong::DeadEnd,
                };
                Found { what, path: [path, trap.way].concat() }
            });
        }
        (self.report(self.queue.is_empty()), None)
    }

    /// Numbers what a block's states led to, in order.
    fn number(&mut self, expanded: Vec<Expanded<W>>, keep_graph: bool) {
        for one in expanded {
            let parent = self.expanded;
            self.expanded += 1;
            for step in one.steps {
                self.generated += 1;
                let (number, new) = self.visited.insert(step.key);
                if new {
                    self.links.push(Link { parent, nth: step.nth });
                    self.settled += u64::from(step.settled);
                    if keep_graph {
                        self.graph.state(step.settled);
                    }
                    self.queue.extend(step.world);
                }
                if keep_graph {
                    self.graph.edge(number, step.nth, step.fault);
                }
            }
            if keep_graph {
                self.graph.end_of_edges();
            }
            if let (Some((nth, what)), None) = (one.broken, &self.found) {
                let mut path = self.path(parent);
                path.push(nth);
                self.found = Some(Found { what: Wrong::Broken(what), path });
            }
        }
    }

    /// The steps from the beginning to a state.
    fn path(&self, state: u32) -> Vec<u16> {
        let mut path = Vec::new();
        let mut at = self.links[state as usize];
        while at.parent != u32::MAX {
            path.push(at.nth);
            at = self.links[at.parent as usize];
        }
        path.reverse();
        path
    }

    fn progress(&self) -> Progress {
        Progress {
            states: self.visited.len() as u64,
            generated: self.generated,
            queue: self.queue.len() as u64,
            depth: self.depth,
            bytes: self.visited.bytes() + self.links.len() as u64 * 8 + self.graph.bytes(),
        }
    }

    fn report(&self, complete: bool) -> Report {
        let complete = complete && !matches!(self.found, Some(Found { what: Wrong::Broken(_), .. }));
        Report { progress: self.progress(), settled: self.settled, complete, found: self.found.clone() }
    }

    fn checkpoint(self) -> Checkpoint {
        Checkpoint {
            keys: self.visited.in_order(),
            parents: self.links.iter().map(|l| l.parent).collect(),
            choices: self.links.iter().map(|l| l.nth).collect(),
            expanded: self.expanded,
            generated: self.generated,
            settled: self.settled,
            layer_end: self.layer_end,
            depth: self.depth,
            graph: self.graph,
        }
    }
}

/// Expands a block's states on all threads; the results are in the block's order.
fn expand<W: World>(block: &mut [W], visited: &Visited, options: Options) -> Vec<Expanded<W>> {
    let share = block.len().div_ceil(options.jobs.max(1)).max(1);
    if options.jobs <= 1 || block.len() < 64 {
        return expand_all(block, visited, options);
    }
    std::thread::scope(|scope| {
        let parts: Vec<_> = block
            .chunks_mut(share)
            .map(|part| scope.spawn(move || expand_all(part, visited, options)))
            .collect();
        let joined = parts.into_iter().map(|part| match part.join() {
            Ok(expanded) => expanded,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.flatten().collect()
    })
}

fn expand_all<W: World>(part: &mut [W], visited: &Visited, options: Options) -> Vec<Expanded<W>> {
    let mut choices = Vec::new();
    part.iter().map(|world| expand_one(world, &mut choices, visited, options)).collect()
}

fn expand_one<W: World>(
    world: &W,
    choices: &mut Vec<W::Choice>,
    visited: &Visited,
    options: Options,
) -> Expanded<W> {
    world.choices(choices);
    let range = selected(world, choices, options.reduce);
    let mut steps = Vec::with_capacity(range.len());
    for nth in range {
        let choice = &choices[nth];
        let number = u16::try_from(nth).unwrap_or(u16::MAX);
        let mut next = world.clone();
        if let Err(what) = next.take(choice) {
            return Expanded { steps, broken: Some((number, what)) };
        }
        let key = next.key();
        let fault = world.is_fault(choice);
        let known = visited.get(key).is_some();
        let settled = !known && next.is_settled();
        steps.push(Step { nth: number, key, fault, settled, world: (!known).then_some(next) });
    }
    Expanded { steps, broken: None }
}
