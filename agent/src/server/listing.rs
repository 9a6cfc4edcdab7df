//! Long lists in pages: a list that was cut is held for a while, so that its next pages are of the same moment. A token says that
//! moment as well, so that the list can be made again when it is held no longer, by another life of the server too.

use super::failure::Failure;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nodefold_core::time::Nanos;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use xxhash_rust::xxh3::xxh3_64;

/// So many lists are held.
const MOST: usize = 100;
/// A list is held so long, as etcd keeps what a page is made from.
const HELD: Nanos = Nanos::secs(300);

/// Lists of which not all was asked for yet.
pub struct Listings {
    held: Mutex<BTreeMap<u64, Held>>,
    /// The next one's number. Those of an earlier life of the server are none of this one's.
    first: u64,
}

struct Held {
    items: Arc<[Arc<Value>]>,
    /// When it was made, by a clock that is never set.
    since: Nanos,
}

impl Held {
    fn is_held(&self, now: Nanos) -> bool {
        now.0.saturating_sub(self.since.0) < HELD.0
    }
}

/// A part of a list.
#[derive(Clone, Debug)]
pub struct Page {
    /// The objects.
    pub items: Vec<Arc<Value>>,
    /// The version that all pages are of.
    pub version: u64,
    /// How to ask for the next page, and how many are left.
    pub rest: Option<(String, usize)>,
}

/// What a token comes to.
#[derive(Debug)]
pub enum GoOn {
    /// The next page.
    Page(Page),
    /// The list is not held: it is to be made again as of that version, and to go on from that object.
    Again {
        /// The version.
        version: u64,
        /// So many objects were on the pages before.
        from: usize,
    },
}

impl Listings {
    /// None yet. `seed` differs from that of any server before.
    pub fn new(seed: u64) -> Listings {
        Listings { held: Mutex::default(), first: seed }
    }

    /// A page of a list, from that object on. `of` says what was listed.
    pub fn begin(
        &self,
        of: &str,
        items: Vec<Arc<Value>>,
        version: u64,
        from: usize,
        limit: usize,
        now: Nanos,
    ) -> Page {
        let end = end_of(items.len(), from, limit);
        if end == items.len() {
            return Page { items: items[from.min(end)..].to_vec(), version, rest: None };
        }
        let (page, left) = (items[from..end].to_vec(), items.len() - end);
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|_, list| list.is_held(now));
        while held.len() >= MOST {
            held.pop_first();
        }
        let number = held.last_key_value().map_or(self.first, |(last, _)| last + 1);
        held.insert(number, Held { items: items.into(), since: now });
        let token = Token { number, version, from: end, of: xxh3_64(of.as_bytes()) };
        Page { items: page, version, rest: Some((token.text(), left)) }
    }

    /// The page that a token means, if its list is held still.
    pub fn go_on(&self, of: &str, given: &str, limit: usize, now: Nanos) -> Result<GoOn, Failure> {
        let bad = || Failure::bad_request(format!("continue key is not valid: {given:?}"));
        let token = Token::read(given).filter(|token| token.of == xxh3_64(of.as_bytes())).ok_or_else(bad)?;
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let (from, version) = (token.from, token.version);
        let Some(list) = held.get(&token.number).filter(|list| list.is_held(now)) else {
            return Ok(GoOn::Again { version, from });
        };
        if from > list.items.len() {
            return Err(bad());
        }
        let end = end_of(list.items.len(), from, limit);
        let left = list.items.len() - end;
        let rest = (left > 0).then(|| (Token { from: end, ..token }.text(), left));
        Ok(GoOn::Page(Page { items: list.items[from..end].to_vec(), version, rest }))
    }
}

fn end_of(length: usize, from: usize, limit: usize) -> usize {
    if limit == 0 { length } else { from.saturating_add(limit).min(length) }
}

/// What a `continue` says.
#[derive(Copy, Clone)]
struct Token {
    number: u64,
    version: u64,
    from: usize,
    of: u64,
}

impl Token {
    fn text(self) -> String {
        let Token { number, version, from, of } = self;
        URL_SAFE_NO_PAD.encode(format!("{number}.{version}.{from}.{of}"))
    }

    fn read(given: &str) -> Option<Token> {
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(given).ok()?).ok()?;
        let mut numbers = text.split('.');
        let mut next = || numbers.next()?.parse::<u64>().ok();
        let (number, version, from, of) = (next()?, next()?, usize::try_from(next()?).ok()?, next()?);
        numbers.next().is_none().then_some(Token { number, version, from, of })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    const NOW: Nanos = Nanos::secs(1_000);

    #[test]
    fn pages_are_of_one_moment_and_do_not_last() {
        let listings = Listings::new(7);
        let items: Vec<Arc<Value>> = (0..5).map(|n| Arc::new(json!(n))).collect();
        let numbers = |page: &Page| page.items.iter().map(|item| item.as_u64().unwrap()).collect::<Vec<_>>();
        let go_on = |token: &str, limit: usize| match listings.go_on("pods", token, limit, NOW).unwrap() {
            GoOn::Page(page) => page,
            again @ GoOn::Again { .. } => panic!("{again:?}"),
        };
        let first = listings.begin("pods", items.clone(), 9, 0, 2, NOW);
        let (next, left) = first.rest.clone().unwrap();
        assert_eq!((numbers(&first), left), (vec![0, 1], 3));
        let second = go_on(&next, 2);
        assert_eq!((numbers(&second), second.version), (vec![2, 3], 9));
        let (last, left) = second.rest.clone().unwrap();
        assert_eq!(left, 1);
        let third = go_on(&last, 0);
        assert_eq!((numbers(&third), third.rest.is_none()), (vec![4], true));
        assert_eq!(listings.go_on("secrets", &next, 2, NOW).unwrap_err().code, 400, "another list's");
        assert_eq!(listings.go_on("pods", "?", 2, NOW).unwrap_err().code, 400);
        let again = |listings: &Listings, now: Nanos| {
            let went_on = listings.go_on("pods", &next, 2, now).unwrap();
            assert!(matches!(went_on, GoOn::Again { version: 9, from: 2 }), "{went_on:?}");
        };
        again(&listings, Nanos::secs(1_300));
        again(&Listings::new(8), NOW);
        for _ in 0..MOST {
            listings.begin("pods", items.clone(), 9, 0, 2, NOW);
        }
        again(&listings, NOW);
        let made_again = listings.begin("pods", items.clone(), 9, 2, 2, NOW);
        assert_eq!((numbers(&made_again), made_again.rest.unwrap().1), (vec![2, 3], 1));
        let beyond = listings.begin("pods", items.clone(), 9, 7, 2, NOW);
        assert_eq!((beyond.items.len(), beyond.rest.is_none()), (0, true));
        let whole = listings.begin("pods", items, 9, 0, 5, NOW);
        assert_eq!((whole.items.len(), whole.rest.is_none()), (5, true));
    }
}
