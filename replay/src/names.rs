//! The names that inputs say, each kept once and called by a number: a log says the same UIDs, ids and errors again and again.
//!
//! Owns how a name becomes a number and back. Knows nothing of what is named.

use crate::evidence::Name;
use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;
use std::num::NonZeroU32;

/// A name by its number.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sym(NonZeroU32);

impl Sym {
    /// None is before it.
    pub const FIRST: Sym = Sym(NonZeroU32::MIN);
    /// None is after it.
    pub const LAST: Sym = Sym(NonZeroU32::MAX);

    fn place(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// All names of some inputs.
#[derive(Default)]
pub struct Names {
    all: Vec<Name>,
    table: HashTable<Sym>,
    /// Keyed anew for each run, so that no input can be made to collide. Nothing is ever iterated in its order.
    hasher: DefaultHashBuilder,
}

impl std::fmt::Debug for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} names", self.all.len())
    }
}

impl Names {
    /// The number of a name, its own if it is new.
    pub fn sym(&mut self, name: &Name) -> Sym {
        let hash = self.hasher.hash_one(name.as_bytes());
        if let Some(known) = self.table.find(hash, |s| self.all[s.place()] == *name) {
            return *known;
        }
        self.all.push(name.clone());
        // Four thousand million different names fill hundreds of gigabytes before their numbers run out.
        let number = u32::try_from(self.all.len()).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MAX);
        let new = Sym(number);
        let (all, hasher) = (&self.all, &self.hasher);
        self.table.insert_unique(hash, new, |s| hasher.hash_one(all[s.place()].as_bytes()));
        new
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The number of a name that is known.
    pub fn find(&self, name: &Name) -> Option<Sym> {
        let hash = self.hasher.hash_one(name.as_bytes());
        self.table.find(hash, |s| self.all[s.place()] == *name).copied()
    }

    /// The name of a number.
    pub fn get(&self, sym: Sym) -> &Name {
        &self.all[sym.place()]
    }

    /// One room for a text that is said again and again. What lies in the value itself needs none.
    pub fn share(&mut self, name: &mut Name) {
        if name.len() > size_of::<Name>() {
            let sym = self.sym(name);
            *name = self.get(sym).clone();
        }
    }

    /// Takes in what another input says: what its numbers are called here.
    pub fn absorb(&mut self, other: &Names) -> Renamed {
        Renamed(other.all.iter().map(|name| self.sym(name)).collect())
    }
}

/// What the numbers of one input are called in another's.
pub struct Renamed(Vec<Sym>);

impl Renamed {
    /// The other number of a number.
    pub fn of(&self, sym: Sym) -> Sym {
        self.0[sym.place()]
    }
}

/// Something of each of some names.
pub struct BySym<T>(Vec<Option<T>>);

impl<T> Default for BySym<T> {
    fn default() -> BySym<T> {
        BySym(Vec::new())
    }
}

impl<T> BySym<T> {
    /// What there is of a name.
    pub fn get(&self, sym: Sym) -> Option<&T> {
        self.0.get(sym.place()).and_then(Option::as_ref)
    }

    /// The room of a name.
    pub fn room(&mut self, sym: Sym) -> &mut Option<T> {
        if self.0.len() <= sym.place() {
            self.0.resize_with(sym.place() + 1, || None);
        }
        &mut self.0[sym.place()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_number_whoever_says_it() {
        let (mut one, mut other) = (Names::default(), Names::default());
        let long = Name::from("0b7b1c58-7e0c-4d5e-8d0a-2f1b7f0c9a11");
        let web = one.sym(&"web".into());
        assert_eq!(one.sym(&long), one.sym(&Name::from(long.to_string())));
        assert_ne!(web, one.sym(&long));
        let there = other.sym(&long);
        let renamed = one.absorb(&other);
        assert_eq!(one.get(renamed.of(there)), &long);
        assert_eq!(one.find(&"never said".into()), None);
        let mut of = BySym::default();
        *of.room(renamed.of(there)) = Some(7);
        assert_eq!((of.get(renamed.of(there)), of.get(web)), (Some(&7), None));
    }
}
