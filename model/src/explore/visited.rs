//! Known states by key, each with its number: open addressing in one flat array, sixteen bytes a place, so that a look-up
//! reads one line of the cache.

/// See the file's head. A place holds the upper 96 bits of a key and, in the lower 32, its state's number from 1 on; a free
/// place holds nothing.
pub(super) struct Visited {
    places: Vec<u128>,
    len: usize,
}

const FREE: u128 = 0;

/// Bits of a place that are a state's number.
const NUMBER: u32 = u32::BITS;

/// What of a key is kept, and so tells states apart.
pub(super) fn identity(key: u128) -> u128 {
    key >> NUMBER << NUMBER
}

fn number(place: u128) -> u32 {
    place as u32 - 1
}

impl Visited {
    pub(super) fn new() -> Visited {
        Visited { places: vec![FREE; 1 << 10], len: 0 }
    }

    /// Forgets all of them, and keeps its memory.
    pub(super) fn clear(&mut self) {
        self.places.fill(FREE);
        self.len = 0;
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn bytes(&self) -> u64 {
        size_of_val(&self.places[..]) as u64
    }

    /// The number of the state with this key.
    pub(super) fn get(&self, key: u128) -> Option<u32> {
        let place = self.places[self.place(key)];
        (place != FREE).then(|| number(place))
    }

    /// Gives the state the next number, unless it has one: its number, and whether it is new.
    pub(super) fn insert(&mut self, key: u128) -> (u32, bool) {
        let mut at = self.place(key);
        if self.places[at] != FREE {
            return (number(self.places[at]), false);
        }
        if self.len * 4 >= self.places.len() * 3 {
            self.grow();
            at = self.place(key);
        }
        self.len += 1;
        assert!(self.len < u32::MAX as usize, "a search holds fewer than 2³² states");
        self.places[at] = identity(key) | self.len as u128;
        (number(self.places[at]), true)
    }

    /// Where the key is, or the free place where it would go.
    fn place(&self, key: u128) -> usize {
        let mask = self.places.len() - 1;
        let mut at = (key >> 64) as usize & mask;
        while self.places[at] != FREE && identity(self.places[at] ^ key) != 0 {
            at = (at + 1) & mask;
        }
        at
    }

    fn grow(&mut self) {
        let doubled = vec![FREE; self.places.len() * 2];
        for place in std::mem::replace(&mut self.places, doubled).into_iter().filter(|p| *p != FREE) {
            let at = self.place(place);
            self.places[at] = place;
        }
    }

    /// What is kept of all keys, by number.
    pub(super) fn in_order(&self) -> Vec<u128> {
        let mut keys = vec![FREE; self.len];
        for place in self.places.iter().filter(|place| **place != FREE) {
            keys[number(*place) as usize] = identity(*place);
        }
        keys
    }
}
