//! JSON as CEL values.
//!
//! Objects are maps of our own, not the crate's: those iterate in hash order, which differs from run to run, and a
//! decision must not. Ours iterate by key. One thing they can't do: a literal map on the left of `==` never equals one
//! (`{} == object.x`); on the right it does.

use cel::ExecutionError;
use cel::common::traits::{self, Container, Indexer, Iterable, Sizer, Zeroer};
use cel::common::types::{
    CelBool, CelDouble, CelInt, CelList, CelMap, CelNull, CelString, CelUInt, MAP_TYPE, Type,
};
use cel::common::value::{CowVal, StaticVal, Val};
use serde_json::Value;
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The value as CEL sees it.
pub(super) fn to_cel(value: &Value) -> Box<dyn Val> {
    match value {
        Value::Null => Box::new(CelNull),
        Value::Bool(flag) => Box::new(CelBool::from(*flag)),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(int), _) => Box::new(CelInt::from(int)),
            (None, Some(uint)) => Box::new(CelUInt::from(uint)),
            (None, None) => Box::new(CelDouble::from(number.as_f64().unwrap_or(f64::NAN))),
        },
        Value::String(text) => Box::new(CelString::from(text.clone())),
        Value::Array(items) => Box::new(CelList::from(items.iter().map(to_cel).collect::<Vec<_>>())),
        Value::Object(fields) => {
            Box::new(Fields::new(fields.iter().map(|(key, value)| (key.clone(), Ok(to_cel(value))))))
        }
    }
}

/// A field's value, or the error that asking for it gives.
pub(super) type Field = Result<Box<dyn Val>, ExecutionError>;

/// An object's fields, by name; a field may be an error, told when it is asked for.
#[derive(Clone, Debug)]
pub(super) struct Fields(Arc<Entries>);

#[derive(Debug)]
struct Entries {
    keys: Vec<CelString<'static>>,
    by_name: BTreeMap<String, Field>,
}

impl Fields {
    pub fn new(fields: impl Iterator<Item = (String, Field)>) -> Fields {
        let by_name: BTreeMap<_, _> = fields.collect();
        let keys = by_name.keys().map(|key| CelString::from(key.clone())).collect();
        Fields(Arc::new(Entries { keys, by_name }))
    }

    fn find(&self, key: &dyn Val) -> Result<Option<&(dyn Val + 'static)>, ExecutionError> {
        let Some(key) = key.downcast_ref::<CelString>() else { return Ok(None) };
        match self.0.by_name.get(key.inner()) {
            None => Ok(None),
            Some(Ok(value)) => Ok(Some(value.as_ref())),
            Some(Err(error)) => Err(error.clone()),
        }
    }

    /// By name.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Field)> {
        self.0.by_name.iter().map(|(name, value)| (name.as_str(), value))
    }

    fn len(&self) -> i64 {
        i64::try_from(self.0.by_name.len()).unwrap_or(i64::MAX)
    }
}

impl Val for Fields {
    fn get_type(&self) -> &Type {
        <Self as Val>::cel_type()
    }

    fn cel_type() -> &'static Type {
        static TYPE: Type = MAP_TYPE;
        &TYPE
    }

    fn as_container(&self) -> Option<&dyn Container> {
        Some(self)
    }

    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_iterable<'b, 'v>(&'b self) -> Option<&'b (dyn Iterable + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_sizer(&self) -> Option<&dyn Sizer> {
        Some(self)
    }

    fn as_zeroer(&self) -> Option<&dyn Zeroer> {
        Some(self)
    }

    fn equals(&self, other: &dyn Val) -> bool {
        let same_size = |size: i64| size == self.len();
        let all = |find: &dyn Fn(&CelString<'static>) -> bool| self.0.keys.iter().all(find);
        if let Some(other) = other.downcast_ref::<Fields>() {
            same_size(other.len())
                && all(&|key| match (self.find(key), other.find(key)) {
                    (Ok(Some(ours)), Ok(Some(theirs))) => ours.equals(theirs),
                    _ => false,
                })
        } else if let Some(other) = other.downcast_ref::<CelMap<'_>>() {
            same_size(*other.size().inner())
                && all(&|key| match (self.find(key), Indexer::get(other, key)) {
                    (Ok(Some(ours)), Ok(theirs)) => ours.equals(theirs.as_ref()),
                    _ => false,
                })
        } else {
            false
        }
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
    where
        Self: 'v,
    {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for Fields {}

impl Container for Fields {
    fn contains(&self, key: &dyn Val) -> Result<bool, ExecutionError> {
        Ok(key.downcast_ref::<CelString>().is_some_and(|key| self.0.by_name.contains_key(key.inner())))
    }
}

impl Indexer for Fields {
    fn get<'b, 'v>(&'b self, key: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        match self.find(key)? {
            Some(value) => Ok(CowVal::Borrowed(value)),
            None => match key.downcast_ref::<CelString>() {
                Some(key) => Err(ExecutionError::no_such_key(key.inner())),
                None => Err(ExecutionError::no_such_key("a key that is no string")),
            },
        }
    }

    fn steal<'v>(self: Box<Self>, key: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        Indexer::get(&*self, key).map(|value| value.into_owned())
    }
}

impl Iterable for Fields {
    fn iter<'b, 'v>(&'b self) -> Box<dyn traits::Iterator<'b, 'v> + 'b>
    where
        Self: 'v,
    {
        Box::new(Keys(self.0.keys.iter()))
    }
}

struct Keys<'b>(std::slice::Iter<'b, CelString<'static>>);

impl<'b, 'v> traits::Iterator<'b, 'v> for Keys<'b> {
    fn next(&mut self) -> Option<&'b (dyn Val + 'v)> {
        self.0.next().map(|key| key as &(dyn Val + 'v))
    }
}

impl Sizer for Fields {
    fn size(&self) -> CelInt {
        CelInt::from(self.len())
    }
}

impl Zeroer for Fields {
    fn is_zero_value(&self) -> bool {
        self.len() == 0
    }
}
