//! YAML and JSON text to JSON values with places. One reader for both: JSON is YAML's flow style.
//!
//! Plain scalars are read as `sigs.k8s.io/yaml` reads them, since manifests are written for it: `yes`, `no`,
//! `on` and `off` are booleans (YAML 1.1), `0644` is octal, `1_000` is a number, a timestamp is a string. `y`
//! and `n` alone stay strings. What that library does silently and nobody wants is an error here: a duplicate
//! key, a plain key that YAML 1.1 would turn into `true`, `.nan`.

use crate::document::{Document, InputError};
use crate::spans::{NodeId, Place, Spans};
use granit_parser::{ErrorKind, Event, Marker, Options, Parser, ScalarStyle, StrInput, Tag};
use serde_json::{Map, Number, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A document nested deeper is refused: no manifest is, and recursion must end.
pub const MAX_DEPTH: usize = 100;
/// So is one with more values, aliases expanded.
pub const MAX_NODES: usize = 1_000_000;
/// And one with more bytes of keys and scalars, aliases expanded (the API server itself takes 3 MiB).
pub const MAX_BYTES: usize = 16 << 20;

/// What a subtree costs when an alias repeats it.
#[derive(Copy, Clone, Default)]
struct Cost {
    nodes: usize,
    bytes: usize,
}

/// A value read, its node in the spans and its cost.
struct Read {
    value: Value,
    node: NodeId,
    /// A plain scalar's text, which is what it means as a key.
    plain: Option<String>,
}

struct Reader<'t> {
    file: &'t str,
    parser: Parser<'t, StrInput<'t>>,
    spans: Spans,
    anchors: BTreeMap<usize, Anchored>,
    spent: Cost,
}

struct Anchored {
    value: Value,
    node: NodeId,
    cost: Cost,
}

/// Reads all documents of a text; empty ones are left out.
#[expect(clippy::wildcard_enum_match_arm, reason = "the parser's enum, which may grow")]
pub(crate) fn read(text: &str, file: &str) -> Result<Vec<Document>, InputError> {
    let mut options = Options::default();
    options.set_emit_comments(false);
    options.block_scalar_eof_without_line_feed = true; // as libyaml and so Kubernetes
    let parser = Parser::new_from_str_with_options(text, options);
    let mut reader =
        Reader { file, parser, spans: Spans::default(), anchors: BTreeMap::new(), spent: Cost::default() };
    let mut documents = Vec::new();
    while let Some((event, place)) = reader.next_event()? {
        match event {
            Event::DocumentStart(..) => {
                if let Some(document) = reader.document()? {
                    documents.push(document);
                }
            }
            Event::StreamStart | Event::DocumentEnd => {}
            Event::StreamEnd => break,
            other => return Err(reader.unexpected(&other, place)),
        }
    }
    Ok(documents)
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the parser's enum, which may grow")]
impl<'t> Reader<'t> {
    fn next_event(&mut self) -> Result<Option<(Event<'t>, Place)>, InputError> {
        match self.parser.next_event() {
            None => Ok(None),
            Some(Ok((event, span))) => Ok(Some((event, place(&span.start)))),
            Some(Err(error)) if matches!(error.kind(), ErrorKind::RecursionLimitExceeded) => {
                Err(self.too_deep(place(error.marker())))
            }
            Some(Err(error)) => Err(self.error(
                place(error.marker()),
                error.info(),
                "check the indentation, quotes and brackets around this place",
            )),
        }
    }

    fn needed_event(&mut self, near: Place) -> Result<(Event<'t>, Place), InputError> {
        match self.next_event()? {
            Some(event) => Ok(event),
            None => Err(self.error(near, "the document ends within a value", "complete or remove it")),
        }
    }

    fn document(&mut self) -> Result<Option<Document>, InputError> {
        self.spans = Spans::default();
        self.anchors.clear();
        self.spent = Cost::default();
        let (event, place) = self.needed_event(Place { line: 1, column: 1 })?;
        if matches!(event, Event::DocumentEnd) {
            return Ok(None);
        }
        let read = self.value(event, place, 0)?;
        if read.value.is_null() {
            return Ok(None);
        }
        let spans = std::mem::take(&mut self.spans).rooted_at(read.node);
        Ok(Some(Document { value: read.value, spans }))
    }

    fn value(&mut self, event: Event<'t>, place: Place, depth: usize) -> Result<Read, InputError> {
        if depth > MAX_DEPTH {
            return Err(self.too_deep(place));
        }
        let before = self.spent;
        let (anchor, read) = match event {
            Event::Scalar(text, style, anchor, tag) => (anchor, self.scalar(text, style, tag, place)?),
            Event::SequenceStart(_, anchor, tag) => {
                self.refuse_tag(tag.as_deref(), "seq", place)?;
                (anchor, self.sequence(place, depth)?)
            }
            Event::MappingStart(_, anchor, tag) => {
                self.refuse_tag(tag.as_deref(), "map", place)?;
                (anchor, self.mapping(place, depth)?)
            }
            Event::Alias(id) => return self.alias(id, place),
            other => return Err(self.unexpected(&other, place)),
        };
        if anchor != 0 {
            let cost =
                Cost { nodes: self.spent.nodes - before.nodes, bytes: self.spent.bytes - before.bytes };
            self.anchors.insert(anchor, Anchored { value: read.value.clone(), node: read.node, cost });
        }
        Ok(read)
    }

    fn sequence(&mut self, place: Place, depth: usize) -> Result<Read, InputError> {
        self.spend(Cost { nodes: 1, bytes: 0 }, place)?;
        let node = self.spans.add(place);
        let mut items = Vec::new();
        loop {
            let (event, at) = self.needed_event(place)?;
            if matches!(event, Event::SequenceEnd) {
                return Ok(Read { value: Value::Array(items), node, plain: None });
            }
            let item = self.value(event, at, depth + 1)?;
            self.spans.set_child(node, &items.len().to_string(), item.node);
            items.push(item.value);
        }
    }

    fn mapping(&mut self, place: Place, depth: usize) -> Result<Read, InputError> {
        self.spend(Cost { nodes: 1, bytes: 0 }, place)?;
        let node = self.spans.add(place);
        let mut fields = Map::new();
        let mut merged: Vec<Read> = Vec::new();
        loop {
            let (event, at) = self.needed_event(place)?;
            if matches!(event, Event::MappingEnd) {
                break;
            }
            let read_key = self.value(event, at, depth + 1)?;
            let is_merge = read_key.plain.as_deref() == Some("<<");
            let key = self.key(read_key, at)?;
            let (event, value_at) = self.needed_event(at)?;
            let read = self.value(event, value_at, depth + 1)?;
            if is_merge {
                merged.extend(self.merged(read, at)?);
                continue;
            }
            if fields.contains_key(&key) {
                let first = self.spans.child(node, &key).map_or(place, |n| self.spans.place(n));
                return Err(self.error(
                    at,
                    format!("the key {key:?} is given twice, first in line {}", first.line),
                    "remove one of them",
                ));
            }
            self.spans.move_to(read.node, at);
            self.spans.set_child(node, &key, read.node);
            fields.insert(key, read.value);
        }
        // A merge gives only what the mapping itself does not; of several, the first wins.
        for read in merged {
            let Value::Object(more) = read.value else { continue };
            for (key, value) in more {
                if !fields.contains_key(&key) {
                    if let Some(child) = self.spans.child(read.node, &key) {
                        self.spans.set_child(node, &key, child);
                    }
                    fields.insert(key, value);
                }
            }
        }
        Ok(Read { value: Value::Object(fields), node, plain: None })
    }

    /// The mappings that a merge key names.
    fn merged(&self, read: Read, at: Place) -> Result<Vec<Read>, InputError> {
        let refused = || self.error(at, "<< takes a mapping or a list of mappings", "name one with *anchor");
        match read.value {
            Value::Object(_) => Ok(vec![read]),
            Value::Array(items) => items
                .into_iter()
                .enumerate()
                .map(|(i, value)| match (value.is_object(), self.spans.child(read.node, &i.to_string())) {
                    (true, Some(node)) => Ok(Read { value, node, plain: None }),
                    _ => Err(refused()),
                })
                .collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Err(refused()),
        }
    }

    fn key(&self, read: Read, at: Place) -> Result<String, InputError> {
        match (read.value, read.plain) {
            (Value::String(text), _) => Ok(text),
            (Value::Number(_), Some(plain)) => Ok(plain),
            (Value::Bool(value), Some(plain)) if plain == value.to_string() => Ok(plain),
            (Value::Bool(value), Some(plain)) => Err(self.error(
                at,
                format!("the key {plain} means {value} in Kubernetes' YAML"),
                format!("quote it: \"{plain}\""),
            )),
            (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_), _) => {
                Err(self.error(at, "a key must be a string", "quote it, or write the mapping as key: value"))
            }
        }
    }

    fn scalar(
        &mut self,
        text: Cow<'t, str>,
        style: ScalarStyle,
        tag: Option<Cow<'t, Tag>>,
        place: Place,
    ) -> Result<Read, InputError> {
        self.spend(Cost { nodes: 1, bytes: text.len() }, place)?;
        let node = self.spans.add(place);
        let is_plain = matches!(style, ScalarStyle::Plain);
        let value = match tag.as_deref() {
            None if is_plain => plain(&text),
            None => Ok(Value::String(text.to_string())),
            Some(tag) => tagged(&text, tag),
        };
        match value {
            Ok(value) => Ok(Read { value, node, plain: is_plain.then(|| text.into_owned()) }),
            Err(message) => Err(self.error(place, message, "quote it if it is meant as text")),
        }
    }

    fn alias(&mut self, id: usize, place: Place) -> Result<Read, InputError> {
        let Some(anchored) = self.anchors.get(&id) else {
            return Err(self.error(
                place,
                "this alias names a value that is not complete here",
                "an alias can't be used inside the value that it names",
            ));
        };
        let (cost, node) = (anchored.cost, anchored.node);
        self.spend(cost, place)?;
        let value = self.anchors[&id].value.clone();
        Ok(Read { value, node: self.spans.share(node), plain: None })
    }

    fn spend(&mut self, cost: Cost, place: Place) -> Result<(), InputError> {
        self.spent.nodes = self.spent.nodes.saturating_add(cost.nodes);
        self.spent.bytes = self.spent.bytes.saturating_add(cost.bytes);
        if self.spent.nodes > MAX_NODES || self.spent.bytes > MAX_BYTES {
            return Err(self.error(
                place,
                format!(
                    "the document has more than {MAX_NODES} values or {MAX_BYTES} bytes, aliases expanded"
                ),
                "split it, or use fewer aliases",
            ));
        }
        Ok(())
    }

    fn refuse_tag(&self, tag: Option<&Tag>, expected: &str, place: Place) -> Result<(), InputError> {
        match tag {
            Some(tag) if tag.core_suffix() != Some(expected) => Err(self.error(
                place,
                format!("the tag {} is not supported here", tag.original()),
                "remove it",
            )),
            Some(_) | None => Ok(()),
        }
    }

    fn too_deep(&self, place: Place) -> InputError {
        let message = format!("more than {MAX_DEPTH} levels of nesting");
        self.error(place, message, "no Kubernetes object is this deep: check the file")
    }

    fn unexpected(&self, event: &Event<'_>, place: Place) -> InputError {
        self.error(place, format!("unexpected {event:?}"), "check the structure around this place")
    }

    fn error(&self, place: Place, message: impl Into<String>, remedy: impl Into<String>) -> InputError {
        InputError {
            file: self.file.to_owned(),
            line: place.line,
            column: place.column,
            path: String::new(),
            message: message.into(),
            remedy: remedy.into(),
        }
    }
}

fn place(marker: &Marker) -> Place {
    Place { line: marker.line(), column: marker.col() + 1 }
}

fn tagged(text: &str, tag: &Tag) -> Result<Value, String> {
    let refused = || Err(format!("{text:?} is no {}", tag.original()));
    match (tag.core_suffix(), plain(text)) {
        (Some("str"), _) => Ok(Value::String(text.to_owned())),
        (Some("null"), Ok(value @ Value::Null)) => Ok(value),
        (Some("bool"), Ok(value @ Value::Bool(_))) => Ok(value),
        (Some("int"), Ok(Value::Number(number))) if !number.is_f64() => Ok(Value::Number(number)),
        (Some("float"), Ok(value @ Value::Number(_))) => Ok(value),
        (Some("null" | "bool" | "int" | "float"), _) => refused(),
        (Some(_) | None, _) => Err(format!("the tag {} is not supported", tag.original())),
    }
}

/// What a plain scalar means.
fn plain(text: &str) -> Result<Value, String> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => {
            return Ok(Value::Bool(true));
        }
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => {
            return Ok(Value::Bool(false));
        }
        ".nan" | ".NaN" | ".NAN" | ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" | "-.inf"
        | "-.Inf" | "-.INF" => return Err(format!("{text} is no JSON number")),
        _ => {}
    }
    if text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        let digits = text.replace('_', "");
        if let Some(number) = integer(&digits).or_else(|| float(&digits)) {
            return Ok(Value::Number(number));
        }
    }
    Ok(Value::String(text.to_owned()))
}

/// An integer as Go reads one with base 0: `0x`, `0o`, `0b`, and a leading `0` for octal.
fn integer(text: &str) -> Option<Number> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let lower = unsigned.to_ascii_lowercase();
    let (radix, digits) = if let Some(hex) = lower.strip_prefix("0x") {
        (16, hex)
    } else if let Some(octal) = lower.strip_prefix("0o") {
        (8, octal)
    } else if let Some(binary) = lower.strip_prefix("0b") {
        (2, binary)
    } else if lower.len() > 1 && lower.starts_with('0') {
        (8, &lower[1..])
    } else {
        (10, lower.as_str())
    };
    if !digits.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return None; // a second sign
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if negative {
        0i64.checked_sub_unsigned(magnitude).map(Number::from)
    } else {
        Some(Number::from(magnitude))
    }
}

/// A decimal fraction or exponent. One without a fraction is an integer, as Go's JSON writes it.
fn float(text: &str) -> Option<Number> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(e) => (&unsigned[..e], Some(&unsigned[e + 1..])),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let exponent_ok = exponent.is_none_or(|e| {
        let e = e.strip_prefix(['+', '-']).unwrap_or(e);
        !e.is_empty() && all_digits(e)
    });
    if (whole.is_empty() && fraction.is_empty())
        || !all_digits(whole)
        || !all_digits(fraction)
        || !exponent_ok
    {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        return Some(Number::from(value as i64));
    }
    Number::from_f64(value)
}
