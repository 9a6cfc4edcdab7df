//! Long lists in pages: a list that was cut is held for a while, so that its next pages are of the same moment. Whoever comes too
//! late is told to list anew (410).

use super::failure::Failure;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nodefold_core::time::Nanos;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

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
    of: String,
    items: Arc<[Arc<Value>]>,
    version: u64,
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

impl Listings {
    /// None yet. `seed` differs from that of any server before.
    pub fn new(seed: u64) -> Listings {
        Listings { held: Mutex::default(), first: seed }
    }

    /// The first page of a list. `of` says what was listed.
    pub fn begin(&self, of: String, items: Vec<Arc<Value>>, version: u64, limit: usize, now: Nanos) -> Page {
        if limit == 0 || items.len() <= limit {
            return Page { items, version, rest: None };
        }
        let page = items[..limit].to_vec();
        let left = items.len() - limit;
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|_, list| list.is_held(now));
        while held.len() >= MOST {
            held.pop_first();
        }
        let number = held.last_key_value().map_or(self.first, |(last, _)| last + 1);
        held.insert(number, Held { of, items: items.into(), version, since: now });
        Page { items: page, version, rest: Some((token(number, limit), left)) }
    }

    /// The page that a token means.
    pub fn go_on(&self, of: &str, given: &str, limit: usize, now: Nanos) -> Result<Page, Failure> {
        let bad = || Failure::bad_request(format!("continue key is not valid: {given:?}"));
        let text = URL_SAFE_NO_PAD.decode(given).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let text = text.ok_or_else(bad)?;
        let (number, from) = text.split_once('.').ok_or_else(bad)?;
        let (number, from): (u64, usize) =
            (number.parse().map_err(|_| bad())?, from.parse().map_err(|_| bad())?);
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let list = held.get(&number).filter(|list| list.is_held(now));
        let list = list.ok_or_else(Failure::stale_continue)?;
        if list.of != of || from > list.items.len() {
            return Err(bad());
        }
        let end = if limit == 0 { list.items.len() } else { (from + limit).min(list.items.len()) };
        let left = list.items.len() - end;
        let rest = (left > 0).then(|| (token(number, end), left));
        Ok(Page { items: list.items[from..end].to_vec(), version: list.version, rest })
    }
}

fn token(number: u64, from: usize) -> String {
    URL_SAFE_NO_PAD.encode(format!("{number}.{from}"))
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
        let first = listings.begin("pods".into(), items.clone(), 9, 2, NOW);
        let (next, left) = first.rest.clone().unwrap();
        assert_eq!((numbers(&first), left), (vec![0, 1], 3));
        let second = listings.go_on("pods", &next, 2, NOW).unwrap();
        assert_eq!((numbers(&second), second.version), (vec![2, 3], 9));
        let (last, left) = second.rest.clone().unwrap();
        assert_eq!(left, 1);
        let third = listings.go_on("pods", &last, 0, NOW).unwrap();
        assert_eq!((numbers(&third), third.rest.is_none()), (vec![4], true));
        assert_eq!(listings.go_on("secrets", &next, 2, NOW).unwrap_err().code, 400, "another list's");
        assert_eq!(listings.go_on("pods", "?", 2, NOW).unwrap_err().code, 400);
        let late = Nanos::secs(1_300);
        assert_eq!(listings.go_on("pods", &next, 2, late).unwrap_err().code, 410, "held no longer");
        assert_eq!(Listings::new(8).go_on("pods", &next, 2, NOW).unwrap_err().code, 410, "another server's");
        for _ in 0..MOST {
            listings.begin("pods".into(), items.clone(), 9, 2, NOW);
        }
        assert_eq!(listings.go_on("pods", &next, 2, NOW).unwrap_err().code, 410, "too many came after it");
        let whole = listings.begin("pods".into(), items, 9, 5, NOW);
        assert_eq!((whole.items.len(), whole.rest.is_none()), (5, true));
    }
}
