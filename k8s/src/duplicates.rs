//! Fields that a JSON text gives twice. Readers of JSON take the last one and say nothing; who wrote the first one should hear of it.

use crate::problem;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeSet;
use std::fmt;

/// Told of one text, at most.
const MOST: usize = 100;

/// Their paths, in order. Of what is no JSON nothing is said: whoever reads it says that.
pub fn duplicate_fields(json: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    let mut reader = serde_json::Deserializer::from_slice(json);
    let read = Walk { path: String::new(), found: &mut found }.deserialize(&mut reader);
    if read.is_ok() { found } else { Vec::new() }
}

struct Walk<'f> {
    path: String,
    found: &'f mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let mut seen = BTreeSet::new();
        while let Some(field) = fields.next_key::<String>()? {
            let path = problem::field(&self.path, &field);
            if !seen.insert(field) && self.found.len() < MOST {
                self.found.push(path.clone());
            }
            fields.next_value_seed(Walk { path, found: &mut *self.found })?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut i = 0;
        loop {
            let walk = Walk { path: problem::index(&self.path, i), found: &mut *self.found };
            if items.next_element_seed(walk)?.is_none() {
                return Ok(());
            }
            i += 1;
        }
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_told_with_its_path_however_deep() {
        let text =
            br#"{"a": 1, "a": {"b": [1, {"c": null, "c": true, "d": "x"}], "b": 2.5}, "e": -1, "e": "y"}"#;
        assert_eq!(duplicate_fields(text), ["a", "a.b[1].c", "a.b", "e"]);
        for text in [&br#"{"a": {"a": {"a": []}}}"#[..], b"[1, 1]", b"{\"a\": 1, \"a\"", b"\xff", b""] {
            assert!(duplicate_fields(text).is_empty());
        }
        let many = format!("{{{}}}", vec!["\"a\": 1"; 1000].join(", "));
        assert_eq!(duplicate_fields(many.as_bytes()).len(), MOST);
        assert!(duplicate_fields(&vec![b'['; 100_000]).is_empty(), "depth is the reader's to limit");
    }
}
