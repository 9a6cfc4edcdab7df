//! The graph of a finished search, and the traps in it: states from which nothing settled can be reached once faults stop.

/// Steps of states in order of their numbers: where each state's steps begin, where each leads, by which choice, and
/// whether it is a fault.
#[derive(Clone, Debug, Default, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub(super) struct Graph {
    begins: Vec<u64>,
    targets: Vec<u32>,
    choices: Vec<u16>,
    settled: Vec<bool>,
}

/// Bit of `choices` that marks a fault.
const FAULT: u16 = 1 << 15;

/// A trap.
pub(super) struct Trap {
    /// The first trapped state.
    pub(super) state: u32,
    /// The way from there to where the cycle begins, or to the dead end.
    pub(super) way: Vec<u16>,
    /// The cycle; none: a dead end.
    pub(super) cycle: Option<Vec<u16>>,
}

impl Graph {
    pub(super) fn state(&mut self, settled: bool) {
        self.settled.push(settled);
    }

    pub(super) fn edge(&mut self, target: u32, nth: u16, fault: bool) {
        self.targets.push(target);
        self.choices.push(nth | if fault { FAULT } else { 0 });
    }

    /// The edges of the next state are complete.
    pub(super) fn end_of_edges(&mut self) {
        self.begins.push(self.targets.len() as u64);
    }

    pub(super) fn bytes(&self) -> u64 {
        self.targets.len() as u64 * 6 + self.begins.len() as u64 * 9
    }

    /// The faultless steps out of a state.
    fn steps(&self, state: usize) -> impl Iterator<Item = (u32, u16)> + '_ {
        let begin = if state == 0 { 0 } else { self.begins[state - 1] as usize };
        let end = self.begins[state] as usize;
        (begin..end)
            .filter(|edge| self.choices[*edge] & FAULT == 0)
            .map(|edge| (self.targets[edge], self.choices[edge] & !FAULT))
    }

    /// The first state from which no settled one can be reached without faults.
    pub(super) fn trap(&self) -> Option<Trap> {
        let escapes = self.escaping();
        let state = escapes.iter().position(|escapes| !escapes)?;
        // Every step out of a trapped state leads to a trapped one, so any walk ends in a cycle or nowhere.
        let mut order: Vec<usize> = vec![state];
        let mut way = Vec::new();
        loop {
            let here = order[order.len() - 1];
            let Some((next, nth)) = self.steps(here).next() else {
                return Some(Trap { state: state as u32, way, cycle: None });
            };
            way.push(nth);
            if let Some(begin) = order.iter().position(|s| *s == next as usize) {
                let cycle = way.split_off(begin);
                return Some(Trap { state: state as u32, way, cycle: Some(cycle) });
            }
            order.push(next as usize);
        }
    }

    /// Which states can reach a settled one: backwards from the settled ones.
    fn escaping(&self) -> Vec<bool> {
        let count = self.begins.len();
        let mut into = vec![0u32; count + 1];
        for state in 0..count {
            self.steps(state).for_each(|(target, _)| into[target as usize + 1] += 1);
        }
        for i in 1..into.len() {
            into[i] += into[i - 1];
        }
        let mut sources = vec![0u32; into[count] as usize];
        let mut filled = into.clone();
        for state in 0..count {
            for (target, _) in self.steps(state) {
                sources[filled[target as usize] as usize] = state as u32;
                filled[target as usize] += 1;
            }
        }
        let mut escapes = self.settled[..count].to_vec();
        let mut reached: Vec<usize> = (0..count).filter(|state| escapes[*state]).collect();
        while let Some(state) = reached.pop() {
            for edge in into[state]..into[state + 1] {
                let source = sources[edge as usize] as usize;
                if !std::mem::replace(&mut escapes[source], true) {
                    reached.push(source);
                }
            }
        }
        escapes
    }
}
