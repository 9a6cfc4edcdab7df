//! A value of any type that serde can read, drawn from bytes: facts and pods of any shape, likely or not. Names are few, so
//! that they meet; numbers are small mostly. Reads nothing that describes itself: core's types need no such.

use super::choices::Bytes;
use nodefold_harness::swarm::Chance;
use serde::de::value::{Error, U32Deserializer};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, MapAccess,
    SeqAccess, VariantAccess, Visitor,
};

/// Names of containers, volumes, objects, images, conditions: any may stand anywhere.
const NAMES: [&str; 12] = [
    "app",
    "log",
    "va",
    "vb",
    "x",
    "default",
    "web",
    "",
    "registry.local/busybox:1",
    "cpu",
    "{}",
    "\u{1F980}\n\0",
];

/// One value.
pub fn drawn<'de, T: Deserialize<'de>>(bytes: &mut Bytes<'_>) -> T {
    match T::deserialize(Drawn { bytes }) {
        Ok(value) => value,
        Err(error) => panic!("a type of the core can't be drawn: {error}"),
    }
}

struct Drawn<'b, 'a> {
    bytes: &'b mut Bytes<'a>,
}

/// What follows in a list, a tuple, a struct or a map: so many more.
struct Elements<'b, 'a> {
    bytes: &'b mut Bytes<'a>,
    left: usize,
}

struct Variant<'b, 'a> {
    bytes: &'b mut Bytes<'a>,
    index: u32,
}

macro_rules! numbers {
    ($($deserialize:ident $visit:ident $number:ty),*) => {
        $(fn $deserialize<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            visitor.$visit(self.bytes.number() as $number)
        })*
    };
}

impl<'de> Deserializer<'de> for Drawn<'_, '_> {
    type Error = Error;

    numbers! {
        deserialize_i8 visit_i8 i8, deserialize_i16 visit_i16 i16, deserialize_i32 visit_i32 i32, deserialize_i64 visit_i64 i64,
        deserialize_u8 visit_u8 u8, deserialize_u16 visit_u16 u16, deserialize_u32 visit_u32 u32, deserialize_u64 visit_u64 u64,
        deserialize_u128 visit_u128 u128, deserialize_i128 visit_i128 i128
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_bool(self.bytes.once_in(1, 2))
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_borrowed_str(self.bytes.one_of(&NAMES))
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        // Nothing is left: nothing, and no recursion without end.
        if self.bytes.below(2) == 0 { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let left = self.bytes.below(4) as usize;
        visitor.visit_seq(Elements { bytes: self.bytes, left })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, left: usize, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(Elements { bytes: self.bytes, left })
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        left: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_tuple(left, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let left = self.bytes.below(4) as usize;
        visitor.visit_map(Elements { bytes: self.bytes, left })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_tuple(fields.len(), visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let index = self.bytes.below(variants.len() as u64) as u32;
        visitor.visit_enum(Variant { bytes: self.bytes, index })
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("it wants to be told its own type"))
    }

    serde::forward_to_deserialize_any! { f32 f64 char bytes byte_buf identifier ignored_any }
}

impl<'de> SeqAccess<'de> for Elements<'_, '_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        seed.deserialize(Drawn { bytes: self.bytes }).map(Some)
    }
}

impl<'de> MapAccess<'de> for Elements<'_, '_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        self.next_element_seed(seed)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(Drawn { bytes: self.bytes })
    }
}

impl<'de, 'b, 'a> EnumAccess<'de> for Variant<'b, 'a> {
    type Error = Error;
    type Variant = Drawn<'b, 'a>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Drawn<'b, 'a>), Error> {
        let index: U32Deserializer<Error> = self.index.into_deserializer();
        Ok((seed.deserialize(index)?, Drawn { bytes: self.bytes }))
    }
}

impl<'de> VariantAccess<'de> for Drawn<'_, '_> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, left: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_tuple(left, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_tuple(fields.len(), visitor)
    }
}
