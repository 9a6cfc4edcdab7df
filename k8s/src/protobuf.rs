//! Objects in Kubernetes' protobuf, read into the JSON that they stand for: by the fields' types (`schema.rs`) and by their numbers
//! (`schema/numbers.json`, as Kubernetes' `generated.proto` files have them; `2.19` is field 19 of the message in field 2, whose
//! fields JSON shows as the outer one's own). Owns the wire format; may not judge what it reads.

use crate::schema::{Type, schema};
use crate::time;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nodefold_core::time::Time;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Bytes that are no protobuf, or not of that kind.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("these bytes are no message of that kind")]
pub struct Garbled;

/// The object of that kind that a message says; `None` if nobody knows the kind's fields or their numbers.
pub fn from_protobuf(api_version: &str, kind: &str, message: &[u8]) -> Option<Result<Value, Garbled>> {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let room = match group.split('.').next() {
        Some("") | None => "core",
        Some(first) => first,
    };
    let name = format!("io.k8s.api.{room}.v1.{kind}");
    let (Some(Type::Object(fields)), Some(places)) = (schema().named(&name), NUMBERS.get(&name)) else {
        return None;
    };
    let mut object = Map::new();
    object.insert("apiVersion".to_owned(), api_version.into());
    object.insert("kind".to_owned(), kind.into());
    Some(fill(&mut object, fields, places, message).map(|()| Value::Object(object)))
}

/// Where the fields of a message go.
type Places = BTreeMap<u32, Place>;

enum Place {
    /// The JSON field of that name.
    Field(String),
    /// A message whose fields are the outer object's own.
    Inside(Places),
}

/// By the types' full names.
static NUMBERS: LazyLock<BTreeMap<String, Places>> = LazyLock::new(|| {
    let read: BTreeMap<String, BTreeMap<String, String>> =
        serde_json::from_str(include_str!("../schema/numbers.json")).unwrap_or_default();
    read.into_iter().map(|(name, fields)| (name, places(&fields))).collect()
});

fn places(fields: &BTreeMap<String, String>) -> Places {
    let mut places = Places::new();
    for (field, path) in fields {
        let mut into = &mut places;
        let mut numbers = path.split('.').filter_map(|number| number.parse().ok()).peekable();
        while let Some(number) = numbers.next() {
            if numbers.peek().is_none() {
                into.insert(number, Place::Field(field.clone()));
                break;
            }
            let inside = into.entry(number).or_insert_with(|| Place::Inside(Places::new()));
            match inside {
                Place::Inside(inner) => into = inner,
                Place::Field(_) => break,
            }
        }
    }
    places
}

/// Numbers that Go leaves out of JSON when they are 0, and writes to the wire all the same: 0 is "not given", which defaults fill.
const ZERO_IS_ABSENT: [&str; 9] = [
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
    "hostPort",
    "generation",
    "observedGeneration",
    "weight",
];

fn fill(
    into: &mut Map<String, Value>,
    fields: &'static BTreeMap<String, Type>,
    places: &Places,
    message: &[u8],
) -> Result<(), Garbled> {
    let mut rest = message;
    while !rest.is_empty() {
        let (number, got) = next(&mut rest)?;
        match places.get(&number) {
            // A field of a later version.
            None => {}
            Some(Place::Inside(inner)) => fill(into, fields, inner, got.bytes()?)?,
            Some(Place::Field(name)) => {
                if let Some(of) = fields.get(name) {
                    field(into, name, of, &got)?;
                }
            }
        }
    }
    Ok(())
}

/// One field, or one more entry of it.
fn field(
    into: &mut Map<String, Value>,
    name: &str,
    of: &'static Type,
    got: &Wire<'_>,
) -> Result<(), Garbled> {
    match schema().resolve(of) {
        Type::List(entries) => {
            let list = into.entry(name).or_insert_with(|| Value::Array(Vec::new()));
            let list = list.as_array_mut().ok_or(Garbled)?;
            match (schema().resolve(entries), got) {
                // Numbers may come packed.
                (Type::Integer32 | Type::Integer64, Wire::Bytes(packed)) => {
                    let mut rest = *packed;
                    while !rest.is_empty() {
                        list.push(signed(varint(&mut rest)?).into());
                    }
                }
                _ => list.push(value(entries, got)?),
            }
        }
        Type::Map(values) => {
            let (key, entry) = entry(values, got.bytes()?)?;
            let map = into.entry(name).or_insert_with(|| Value::Object(Map::new()));
            map.as_object_mut().ok_or(Garbled)?.insert(key, entry);
        }
        Type::Object(_)
        | Type::Text
        | Type::Base64
        | Type::Timestamp
        | Type::Amount
        | Type::IntegerOrText
        | Type::Integer32
        | Type::Integer64
        | Type::Flag
        | Type::Anything
        | Type::Named(_) => {
            let value = value(of, got)?;
            let is_absent = match &value {
                Value::Null => true,
                Value::String(text) => text.is_empty(),
                Value::Number(number) => number.as_i64() == Some(0) && ZERO_IS_ABSENT.contains(&name),
                Value::Bool(_) | Value::Array(_) | Value::Object(_) => false,
            };
            if !is_absent {
                into.insert(name.to_owned(), value);
            }
        }
    }
    Ok(())
}

/// An entry of a map: its key in field 1, its value in field 2.
fn entry(values: &'static Type, message: &[u8]) -> Result<(String, Value), Garbled> {
    let (mut key, mut held) = (String::new(), None);
    let mut rest = message;
    while !rest.is_empty() {
        match next(&mut rest)? {
            (1, got) => key = got.text()?,
            (2, got) => held = Some(value(values, &got)?),
            (_, _) => {}
        }
    }
    Ok((key, held.unwrap_or_else(|| "".into())))
}

fn value(of: &'static Type, got: &Wire<'_>) -> Result<Value, Garbled> {
    Ok(match schema().resolve(of) {
        Type::Object(fields) => {
            let mut object = Map::new();
            // Every message has a name.
            if let Type::Named(name) = of
                && let Some(places) = NUMBERS.get(name)
            {
                fill(&mut object, fields, places, got.bytes()?)?;
            }
            Value::Object(object)
        }
        Type::Text => got.text()?.into(),
        Type::Base64 => STANDARD.encode(got.bytes()?).into(),
        Type::Amount => inner(got, 1)?.map(|amount| amount.text()).transpose()?.into(),
        Type::Timestamp => match inner(got, 1)? {
            Some(seconds) => {
                let seconds = u64::try_from(signed(seconds.number()?)).map_err(|_| Garbled)?;
                time::format(Time(seconds.checked_mul(1_000_000_000).ok_or(Garbled)?)).into()
            }
            None => Value::Null,
        },
        Type::IntegerOrText => match inner(got, 1)?.map(|kind| kind.number()).transpose()? {
            Some(1) => inner(got, 3)?.map(|text| text.text()).transpose()?.into(),
            Some(_) | None => signed(inner(got, 2)?.map_or(Ok(0), |number| number.number())?).into(),
        },
        Type::Integer32 | Type::Integer64 => signed(got.number()?).into(),
        Type::Flag => (got.number()? != 0).into(),
        // `FieldsV1`: JSON, in field 1.
        Type::Anything => match inner(got, 1)? {
            Some(json) => serde_json::from_slice(json.bytes()?).map_err(|_| Garbled)?,
            None => Value::Null,
        },
        // Lists of lists and maps of maps there are none, and a name that names nothing holds anything.
        Type::List(_) | Type::Map(_) | Type::Named(_) => return Err(Garbled),
    })
}

/// The last field of that number in a message.
fn inner<'m>(message: &Wire<'m>, wanted: u32) -> Result<Option<Wire<'m>>, Garbled> {
    let (mut rest, mut found) = (message.bytes()?, None);
    while !rest.is_empty() {
        let (number, got) = next(&mut rest)?;
        if number == wanted {
            found = Some(got);
        }
    }
    Ok(found)
}

/// A field's content on the wire.
enum Wire<'m> {
    Number(u64),
    Bytes(&'m [u8]),
    /// Of a fixed length: no field of Kubernetes' is.
    Fixed,
}

impl<'m> Wire<'m> {
    fn bytes(&self) -> Result<&'m [u8], Garbled> {
        match self {
            Wire::Bytes(bytes) => Ok(bytes),
            Wire::Number(_) | Wire::Fixed => Err(Garbled),
        }
    }

    fn text(&self) -> Result<String, Garbled> {
        std::str::from_utf8(self.bytes()?).map(str::to_owned).map_err(|_| Garbled)
    }

    fn number(&self) -> Result<u64, Garbled> {
        match self {
            Wire::Number(number) => Ok(*number),
            Wire::Bytes(_) | Wire::Fixed => Err(Garbled),
        }
    }
}

/// The next field: its number and its content.
fn next<'m>(rest: &mut &'m [u8]) -> Result<(u32, Wire<'m>), Garbled> {
    let key = varint(rest)?;
    let number = u32::try_from(key >> 3).map_err(|_| Garbled)?;
    let got = match key & 7 {
        0 => Wire::Number(varint(rest)?),
        1 => take(rest, 8).map(|_| Wire::Fixed)?,
        2 => {
            let length = varint(rest)?;
            Wire::Bytes(take(rest, length)?)
        }
        5 => take(rest, 4).map(|_| Wire::Fixed)?,
        _ => return Err(Garbled),
    };
    Ok((number, got))
}

fn take<'m>(rest: &mut &'m [u8], length: u64) -> Result<&'m [u8], Garbled> {
    let length = usize::try_from(length).map_err(|_| Garbled)?;
    let (taken, left) = rest.split_at_checked(length).ok_or(Garbled)?;
    *rest = left;
    Ok(taken)
}

fn varint(rest: &mut &[u8]) -> Result<u64, Garbled> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, left) = rest.split_first().ok_or(Garbled)?;
        *rest = left;
        number |= u64::from(byte & 0x7f).checked_shl(shift).ok_or(Garbled)?;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(Garbled)
}

/// Numbers are two's complements of 64 bits.
fn signed(number: u64) -> i64 {
    i64::from_ne_bytes(number.to_ne_bytes())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    /// A field of bytes: its number, and what it holds.
    fn part(number: u8, holds: &[&[u8]]) -> Vec<u8> {
        let holds = holds.concat();
        let mut bytes = vec![number << 3 | 2, u8::try_from(holds.len()).unwrap()];
        bytes.extend(holds);
        bytes
    }

    #[test]
    fn a_pod_with_what_is_written_unlike_json() {
        let port = [&[0x08, 1][..], &part(3, &[b"http"])].concat(); // IntOrString {type: 1, strVal}
        let get = part(2, &[&part(2, &[&port])]);
        let probe = part(10, &[&part(1, &[&get]), &[0x10, 0, 0x30, 3, 0x38, 0]]);
        let amounts = part(1, &[&part(1, &[b"cpu"]), &part(2, &[&part(1, &[b"500m"])])]);
        let resources = part(8, &[&amounts]);
        let container =
            part(2, &[&part(1, &[b"a"]), &part(2, &[b"i"]), &part(14, &[b""]), &probe, &resources]);
        let volume = part(1, &[&part(1, &[b"v"]), &part(2, &[&part(2, &[&part(1, &[b"Memory"])])])]);
        let labels = part(11, &[&part(1, &[b"k"]), &part(2, &[b""])]);
        let created = part(8, &[&[0x08, 0x80, 0xa3, 0x05]]); // a day
        let metadata = part(1, &[&part(1, &[b"p"]), &labels, &created]);
        let spec = part(2, &[&volume, &container, &[0x58, 1]]); // hostNetwork
        let pod = [metadata, spec, part(3, &[])].concat();
        let read = from_protobuf("v1", "Pod", &pod).unwrap().unwrap();
        let expected = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "p", "labels": {"k": ""}, "creationTimestamp": "1970-01-02T00:00:00Z"},
            "spec": {
                "volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}],
                "containers": [{"name": "a", "image": "i", "resources": {"limits": {"cpu": "500m"}},
                    "livenessProbe": {"httpGet": {"port": "http"}, "failureThreshold": 3, "terminationGracePeriodSeconds": 0}}],
                "hostNetwork": true,
            },
            "status": {},
        });
        assert_eq!(read, expected);
        // Cut anywhere it is no pod, or a shorter one, and never a panic.
        (0..pod.len()).for_each(|end| drop(from_protobuf("v1", "Pod", &pod[..end])));
        assert_eq!(from_protobuf("apps/v1", "Deployment", b""), None);
    }

    #[test]
    fn every_number_is_of_a_field_that_the_schema_has() {
        fn names(places: &Places) -> Vec<&str> {
            let names = places.values().flat_map(|place| match place {
                Place::Field(name) => vec![name.as_str()],
                Place::Inside(inner) => names(inner),
            });
            names.collect()
        }
        assert!(NUMBERS.len() > 200, "{} types", NUMBERS.len());
        for (name, places) in &*NUMBERS {
            let Some(Type::Object(fields)) = schema().named(name) else { panic!("{name} has no fields") };
            for field in names(places) {
                assert!(fields.contains_key(field), "{name} has no field {field}");
            }
        }
    }
}
