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
struct Step {
    key: u128,
    /// The number of the state that it leads to; [`UNKNOWN`]: it was not known when the step was taken.
    known: u32,
    nth: u16,
    fault: bool,
    settled: bool,
}

/// No state has this number.
const UNKNOWN: u32 = u32::MAX;

/// What came of expanding a share of a block: flat, so that a state costs no memory of its own.
struct Expanded<W> {
    /// For each state of the share, how many steps were taken up to its last.
    generated: Vec<u32>,
    /// For each state of the share, how many of `steps` there are up to its last.
    ends: Vec<u32>,
    /// The steps; where no graph is kept, only those to states that were not known.
    steps: Vec<Step>,
    /// Where those lead that were not known, in order.
    worlds: Vec<W>,
    /// The first state of the share from which a step broke something: which state, which step and what.
    broken: Option<(usize, u16, String)>,
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
            for share in expand(&mut block, &self.visited, options) {
                self.number(share, options.liveness);
            }
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

    /// Numbers what a share's states led to, in order.
    fn number(&mut self, share: Expanded<W>, keep_graph: bool) {
        let Expanded { generated, ends, steps, worlds, broken } = share;
        self.generated += generated.last().map_or(0, |steps| u64::from(*steps));
        if let (Some((nth, step, what)), None) = (broken, &self.found) {
            let mut path = self.path(self.expanded + nth as u32);
            path.push(step);
            self.found = Some(Found { what: Wrong::Broken(what), path });
        }
        let (mut steps, mut worlds) = (steps.into_iter(), worlds.into_iter());
        let mut begin = 0;
        for end in ends {
            let parent = self.expanded;
            self.expanded += 1;
            for step in steps.by_ref().take((end - begin) as usize) {
                let mut number = step.known;
                if number == UNKNOWN {
                    let new;
                    (number, new) = self.visited.insert(step.key);
                    let world = worlds.next();
                    if new {
                        self.links.push(Link { parent, nth: step.nth });
                        self.settled += u64::from(step.settled);
                        if keep_graph {
                            self.graph.state(step.settled);
                        }
                        self.queue.extend(world);
                    }
                }
                if keep_graph {
                    self.graph.edge(number, step.nth, step.fault);
                }
            }
            begin = end;
            if keep_graph {
                self.graph.end_of_edges();
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

/// Expands a block's states on all threads; the shares are in the block's order.
fn expand<W: World>(block: &mut [W], visited: &Visited, options: Options) -> Vec<Expanded<W>> {
    let share = block.len().div_ceil(options.jobs.max(1)).max(1);
    if options.jobs <= 1 || block.len() < 64 {
        return vec![expand_share(block, visited, options)];
    }
    std::thread::scope(|scope| {
        let parts: Vec<_> = block
            .chunks_mut(share)
            .map(|part| scope.spawn(move || expand_share(part, visited, options)))
            .collect();
        let joined = parts.into_iter().map(|part| match part.join() {
            Ok(expanded) => expanded,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect()
    })
}

fn expand_share<W: World>(share: &mut [W], visited: &Visited, options: Options) -> Expanded<W> {
    let mut out = Expanded {
        generated: Vec::with_capacity(share.len()),
        ends: Vec::with_capacity(share.len()),
        steps: Vec::new(),
        worlds: Vec::new(),
        broken: None,
    };
    let mut choices = Vec::new();
    let mut generated = 0;
    for (nth, world) in share.iter().enumerate() {
        world.choices(&mut choices);
        for number in selected(world, &choices, options.reduce) {
            let choice = &choices[number];
            let taken = u16::try_from(number).unwrap_or(u16::MAX);
            let mut next = world.clone();
            if let Err(what) = next.take(choice) {
                out.broken.get_or_insert((nth, taken, what));
                break;
            }
            let key = next.key();
            let known = visited.get(key);
            // A state is judged when it is new; one that is known was.
            if let (None, Some(what)) = (known, next.broken()) {
                out.broken.get_or_insert((nth, taken, what));
                break;
            }
            generated += 1;
            if known.is_some() && !options.liveness {
                continue;
            }
            let settled = known.is_none() && next.is_settled();
            let fault = world.is_fault(choice);
            out.steps.push(Step { key, known: known.unwrap_or(UNKNOWN), nth: taken, fault, settled });
            if known.is_none() {
                out.worlds.push(next);
            }
        }
        out.generated.push(generated);
        out.ends.push(out.steps.len() as u32);
    }
    out
}
