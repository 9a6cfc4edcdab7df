//! Known states by key, each with its number: open addressing in two flat arrays, twenty bytes a place.

/// See the file's head.
pub(super) struct Visited {
    keys: Vec<u128>,
    numbers: Vec<u32>,
    len: usize,
}

/// No state has this key: one that has is given another.
const EMPTY: u128 = 0;

impl Visited {
    pub(super) fn new() -> Visited {
        let places = 1 << 10;
        Visited { keys: vec![EMPTY; places], numbers: vec![0; places], len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn bytes(&self) -> u64 {
        self.keys.len() as u64 * 20
    }

    /// The number of the state with this key.
    pub(super) fn get(&self, key: u128) -> Option<u32> {
        let key = key.max(1);
        let place = self.place(key);
        (self.keys[place] == key).then(|| self.numbers[place])
    }

    /// Gives the state the next number, unless it has one: its number, and whether it is new.
    pub(super) fn insert(&mut self, key: u128) -> (u32, bool) {
        let key = key.max(1);
        let mut place = self.place(key);
        if self.keys[place] == key {
            return (self.numbers[place], false);
        }
        if self.len * 3 >= self.keys.len() * 2 {
            self.grow();
            place = self.place(key);
        }
        let number = u32::try_from(self.len).unwrap_or(u32::MAX);
        assert!(number < u32::MAX, "a search holds fewer than 2³² states");
        self.keys[place] = key;
        self.numbers[place] = number;
        self.len += 1;
        (number, true)
    }

    /// The place of the key, or the free one where it would go.
    fn place(&self, key: u128) -> usize {
        let mask = self.keys.len() - 1;
        let mut place = (key ^ key >> 64) as usize & mask;
        while self.keys[place] != EMPTY && self.keys[place] != key {
            place = (place + 1) & mask;
        }
        place
    }

    fn grow(&mut self) {
        let places = self.keys.len() * 2;
        let keys = std::mem::replace(&mut self.keys, vec![EMPTY; places]);
        let numbers = std::mem::replace(&mut self.numbers, vec![0; places]);
        for (key, number) in keys.into_iter().zip(numbers).filter(|(key, _)| *key != EMPTY) {
            let place = self.place(key);
            self.keys[place] = key;
            self.numbers[place] = number;
        }
    }

    /// All keys, by number.
    pub(super) fn in_order(&self) -> Vec<u128> {
        let mut keys = vec![EMPTY; self.len];
        for (key, number) in self.keys.iter().zip(&self.numbers).filter(|(key, _)| **key != EMPTY) {
            keys[*number as usize] = *key;
        }
        keys
    }
}
