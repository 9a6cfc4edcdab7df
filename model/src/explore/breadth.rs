//! Breadth first: layer by layer, each in blocks. The states of a block are expanded by all threads at once; what they
//! found is then numbered in order by one, so that numbers depend on nothing but the graph.

use super::graph::Graph;
use super::visited::{Visited, identity};
use super::{Found, Options, Progress, Report, World, Wrong, advance, selected};

/// States expanded between two numberings.
const BLOCK: usize = 1 << 12;

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

    /// The steps to the state that was found last: one of those farthest from the beginning.
    pub fn farthest(&self) -> Vec<u16> {
        path(&self.parents, &self.choices, self.parents.len() - 1)
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

/// No state has this number.
const UNKNOWN: u32 = u32::MAX;

/// Where a step leads: a state that had a number when it was taken, or one of those that its share found.
enum Target {
    Known(u32),
    Found(u32),
}

/// A step out of a state, for the graph.
struct Step {
    to: Target,
    nth: u16,
    fault: bool,
}

/// A state that had no number when its share came to it.
struct New<W> {
    world: W,
    key: u128,
    /// By which state of the share it was found, and by which of its choices.
    by: u32,
    nth: u16,
    settled: bool,
}

/// What came of expanding a share of a block: filled again for each block, so that neither a state nor a block costs memory of
/// its own.
struct Expanded<W> {
    states: u32,
    generated: u64,
    /// What was found, each once, in order; `seen` has their keys.
    found: Vec<New<W>>,
    seen: Visited,
    /// Where a graph is kept: the steps, and for each state of the share how many there are up to its last.
    steps: Vec<Step>,
    ends: Vec<u32>,
    /// The first state of the share from which a step broke something: which state, which step and what.
    broken: Option<(u32, u16, String)>,
}

struct Search<W> {
    visited: Visited,
    /// How each state was found first: from which one ([`UNKNOWN`]: it is the beginning), by which choice.
    parents: Vec<u32>,
    choices: Vec<u16>,
    graph: Graph,
    generated: u64,
    settled: u64,
    /// States not yet expanded, in order of their numbers.
    queue: std::collections::VecDeque<W>,
    expanded: u32,
    layer_end: u32,
    depth: u32,
    found: Option<Found>,
    /// Of the share that is numbered: which number each state that it found has.
    numbers: Vec<u32>,
}

/// Explores everything, or until `go_on` says no: then the checkpoint can be resumed from.
pub fn breadth_first<W: World>(
    beginning: &W,
    options: Options,
    go_on: &mut dyn FnMut(&Progress) -> bool,
) -> (Report, Option<Checkpoint>) {
    let mut search = Search {
        visited: Visited::new(),
        parents: vec![UNKNOWN],
        choices: vec![0],
        graph: Graph::default(),
        generated: 0,
        settled: u64::from(beginning.is_settled()),
        queue: [beginning.clone()].into(),
        expanded: 0,
        layer_end: 1,
        depth: 0,
        found: None,
        numbers: Vec::new(),
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
    if from.keys.first().is_none_or(|key| *key != identity(beginning.key())) {
        return Err("the checkpoint is of another beginning".to_owned());
    }
    let mut search = Search {
        visited,
        parents: from.parents,
        choices: from.choices,
        graph: from.graph,
        generated: from.generated,
        settled: from.settled,
        queue: Default::default(),
        expanded: from.expanded,
        layer_end: from.layer_end,
        depth: from.depth,
        found: None,
        numbers: Vec::new(),
    };
    for number in from.expanded..from.keys.len() as u32 {
        let mut world = beginning.clone();
        let mut choices = Vec::new();
        for nth in search.path(number) {
            world.choices(&mut choices);
            let choice = choices.get(usize::from(nth)).cloned();
            let choice = choice.ok_or("the checkpoint's paths no longer exist")?;
            advance(&mut world, &choice, options.reduce, &mut choices, |_| {})?;
        }
        if identity(world.key()) != from.keys[number as usize] {
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
        let mut block: Vec<W> = Vec::new();
        let mut shares: Vec<Expanded<W>> = (0..options.jobs.max(1)).map(|_| Expanded::new()).collect();
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
            block.clear();
            block.extend(self.queue.drain(..in_layer.min(BLOCK)));
            expand(&mut block, &mut shares, &self.visited, options);
            for share in &mut shares {
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
    fn number(&mut self, share: &mut Expanded<W>, keep_graph: bool) {
        let first = self.expanded;
        self.expanded += share.states;
        self.generated += share.generated;
        if let (Some((state, nth, what)), None) = (share.broken.take(), &self.found) {
            let path = [self.path(first + state), vec![nth]].concat();
            self.found = Some(Found { what: Wrong::Broken(what), path });
        }
        self.numbers.clear();
        for New { world, key, by, nth, settled } in share.found.drain(..) {
            // Another share of the block may have found it first.
            let (number, new) = self.visited.insert(key);
            self.numbers.push(number);
            if new {
                self.parents.push(first + by);
                self.choices.push(nth);
                self.settled += u64::from(settled);
                self.queue.push_back(world);
                if keep_graph {
                    self.graph.state(settled);
                }
            }
        }
        let mut steps = share.steps.drain(..);
        let mut begin = 0;
        for end in share.ends.drain(..) {
            for Step { to, nth, fault } in steps.by_ref().take((end - begin) as usize) {
                let target = match to {
                    Target::Known(number) => number,
                    Target::Found(place) => self.numbers[place as usize],
                };
                self.graph.edge(target, nth, fault);
            }
            begin = end;
            self.graph.end_of_edges();
        }
    }

    /// The steps from the beginning to a state.
    fn path(&self, state: u32) -> Vec<u16> {
        path(&self.parents, &self.choices, state as usize)
    }

    fn progress(&self) -> Progress {
        Progress {
            states: self.visited.len() as u64,
            generated: self.generated,
            queue: self.queue.len() as u64,
            depth: self.depth,
            bytes: self.visited.bytes() + self.parents.len() as u64 * 6 + self.graph.bytes(),
        }
    }

    fn report(&self, complete: bool) -> Report {
        let complete = complete && !matches!(self.found, Some(Found { what: Wrong::Broken(_), .. }));
        Report { progress: self.progress(), settled: self.settled, complete, found: self.found.clone() }
    }

    fn checkpoint(self) -> Checkpoint {
        Checkpoint {
            keys: self.visited.in_order(),
            parents: self.parents,
            choices: self.choices,
            expanded: self.expanded,
            generated: self.generated,
            settled: self.settled,
            layer_end: self.layer_end,
            depth: self.depth,
            graph: self.graph,
        }
    }
}

fn path(parents: &[u32], choices: &[u16], mut state: usize) -> Vec<u16> {
    let mut path = Vec::new();
    while parents[state] != UNKNOWN {
        path.push(choices[state]);
        state = parents[state] as usize;
    }
    path.reverse();
    path
}

impl<W> Expanded<W> {
    fn new() -> Expanded<W> {
        Expanded {
            states: 0,
            generated: 0,
            found: Vec::new(),
            seen: Visited::new(),
            steps: Vec::new(),
            ends: Vec::new(),
            broken: None,
        }
    }
}

/// Expands a block's states on all threads; the shares are in the block's order.
fn expand<W: World>(block: &mut [W], shares: &mut [Expanded<W>], visited: &Visited, options: Options) {
    let jobs = if block.len() < 64 { 1 } else { shares.len() };
    for share in &mut *shares {
        (share.states, share.generated) = (0, 0);
    }
    let parts = block.chunks_mut(block.len().div_ceil(jobs)).zip(shares);
    if jobs == 1 {
        parts.for_each(|(part, share)| expand_share(part, share, visited, options));
        return;
    }
    // What panics in a thread panics here when the scope ends.
    std::thread::scope(|scope| {
        for (part, share) in parts {
            scope.spawn(move || expand_share(part, share, visited, options));
        }
    });
}

fn expand_share<W: World>(share: &mut [W], out: &mut Expanded<W>, visited: &Visited, options: Options) {
    let (mut choices, mut along, mut keys, mut known) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut nexts: Vec<(W, u16)> = Vec::new();
    out.seen.clear();
    for world in share {
        world.choices(&mut choices);
        let mut broken = None;
        for number in selected(world, &choices, options.reduce) {
            let nth = u16::try_from(number).unwrap_or(u16::MAX);
            let mut next = world.clone();
            if let Err(what) = advance(&mut next, &choices[number], options.reduce, &mut along, |_| {}) {
                broken = Some((out.states, nth, what));
                break;
            }
            keys.push(next.key());
            nexts.push((next, nth));
        }
        // Looked up together, none waits for another's memory.
        known.extend(keys.iter().map(|key| visited.get(*key)));
        for (((next, nth), key), known) in nexts.drain(..).zip(keys.drain(..)).zip(known.drain(..)) {
            let to = match known.map(Target::Known).or_else(|| out.seen.get(key).map(Target::Found)) {
                Some(to) => to,
                None => {
                    // A state is judged when it is new.
                    if let Some(what) = next.broken() {
                        broken = Some((out.states, nth, what));
                        break;
                    }
                    let settled = next.is_settled();
                    out.found.push(New { world: next, key, by: out.states, nth, settled });
                    Target::Found(out.seen.insert(key).0)
                }
            };
            out.generated += 1;
            if options.liveness {
                out.steps.push(Step { to, nth, fault: world.is_fault(&choices[usize::from(nth)]) });
            }
        }
        if let Some(broken) = broken {
            out.broken.get_or_insert(broken);
        }
        out.states += 1;
        if options.liveness {
            out.ends.push(out.steps.len() as u32);
        }
    }
}
