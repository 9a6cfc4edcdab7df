//! Where a run's decisions come from: a seeded generator here, a fuzzer's bytes elsewhere. Integers only, so that a seed
//! means the same run on every machine.

/// A source of decisions.
pub trait Chance {
    /// A number below `bound`; 0 if the bound is 0 or nothing is left to decide with.
    fn below(&mut self, bound: u64) -> u64;

    /// Nothing is left to decide with, so a run may as well end.
    fn is_spent(&self) -> bool {
        false
    }

    /// True this often in that many times.
    fn once_in(&mut self, often: u64, times: u64) -> bool {
        self.below(times) < often
    }

    /// A number from the one to the other, both included.
    fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }
}

impl dyn Chance + '_ {
    /// One of them, if there is any.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.below(from.len() as u64) as usize)
    }
}

/// xoshiro256++ (Blackman and Vigna), seeded by splitmix64: in the tree, so that no upgrade re-deals the seeds.
#[derive(Clone, Debug)]
pub struct Xoshiro {
    state: [u64; 4],
}

impl Xoshiro {
    /// The generator of a seed.
    pub fn new(seed: u64) -> Xoshiro {
        let mut mixed = seed;
        let mut next = || {
            mixed = mixed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        Xoshiro { state: [next(), next(), next(), next()] }
    }

    fn next(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }
}

impl Chance for Xoshiro {
    /// The high half of a wide product: no floats, and no bias that matters at these bounds.
    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_xoshiro256_plus_plus() {
        // The first numbers of the reference program for the state 1, 2, 3, 4.
        let mut generator = Xoshiro { state: [1, 2, 3, 4] };
        let first: Vec<u64> = (0..4).map(|_| generator.next()).collect();
        assert_eq!(first, [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386]);
    }

    #[test]
    fn bounds_hold_and_every_number_comes() {
        let mut generator = Xoshiro::new(7);
        let mut seen = [false; 6];
        for _ in 0..200 {
            seen[generator.below(6) as usize] = true;
        }
        assert_eq!(seen, [true; 6]);
        assert_eq!(generator.below(0), 0);
        assert!((0..100).all(|_| (3..=5).contains(&generator.between(3, 5))));
    }
}
