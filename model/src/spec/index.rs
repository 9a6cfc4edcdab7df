//! A table's rows by the state that they lead from: what a search asks at each of its steps, without reading the whole
//! table. Owns nothing but the order; what a row permits is the table's.

use super::{By, Needs, Row};

/// See the file's head. States are told apart by their number, of which there are at most eight.
pub(super) struct Index {
    all: [Vec<Place>; STATES],
    /// The same without what goes wrong.
    faultless: [Vec<Place>; STATES],
}

/// States of a machine.
const STATES: usize = 8;

/// A row: its number in the table, and what it needs.
#[derive(Copy, Clone)]
pub(super) struct Place {
    pub(super) row: u8,
    needs: Needs,
}

impl Index {
    /// The table's. Crashes are steps of a whole scope, so their rows are left out.
    pub(super) fn new<S>(table: &'static [Row<S>], number: fn(&S) -> u8) -> Index {
        let mut index = Index { all: Default::default(), faultless: Default::default() };
        for (place, row) in table.iter().enumerate().filter(|(_, row)| row.by != By::Crash) {
            let from = usize::from(number(&row.from));
            let place = Place { row: place as u8, needs: row.needs };
            index.all[from].push(place);
            if row.by != By::Fault {
                index.faultless[from].push(place);
            }
        }
        index
    }

    /// Rows from a state whose needs hold, by number.
    pub(super) fn rows(&self, from: u8, so: Needs, faults: bool) -> impl Iterator<Item = u8> + '_ {
        let rows = if faults { &self.all } else { &self.faultless };
        rows[usize::from(from)].iter().filter(move |place| place.needs.hold_in(so)).map(|place| place.row)
    }
}
