//! A fuzzer's bytes as the source of decisions: a finite one, and a run ends with it (harness sheet H7). When nothing is
//! left, every decision is the least one.

use arbitrary::Unstructured;
use nodefold_harness::swarm::Chance;

/// The bytes that decide.
pub struct Bytes<'a>(Unstructured<'a>);

impl<'a> Bytes<'a> {
    /// All of them are left.
    pub fn new(data: &'a [u8]) -> Bytes<'a> {
        Bytes(Unstructured::new(data))
    }

    /// One of them.
    pub fn one_of<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// The next ones as they are: so many, or all that are left.
    pub fn take(&mut self, most: usize) -> &'a [u8] {
        let count = most.min(self.0.len());
        self.0.bytes(count).unwrap_or_default()
    }

    /// Small mostly, absurd at times.
    pub fn number(&mut self) -> u64 {
        match self.below(256) {
            small @ 0..=223 => small % 8,
            large @ 224..=239 => 1 << ((large - 224) * 4),
            240..=247 => self.below(1 << 16),
            248..=251 => u64::MAX,
            252..=253 => u64::MAX - 1,
            _ => i64::MAX as u64,
        }
    }
}

impl Chance for Bytes<'_> {
    fn below(&mut self, bound: u64) -> u64 {
        match bound.checked_sub(1) {
            // Out of bytes, or a bound of one: the least.
            Some(most) => self.0.int_in_range(0..=most).unwrap_or(0),
            None => 0,
        }
    }

    fn is_spent(&self) -> bool {
        self.0.is_empty()
    }
}
