//! Text that is handed around: names and sentences. Up to sixteen bytes lie in the value itself, what is longer is shared, so
//! that handing one on copies sixteen bytes and allocates nothing.
//!
//! Owns how text is kept, encoded and archived; a name's bytes in a log are those of any string.

use alloc::string::String;
use core::borrow::Borrow;
use core::fmt;
use core::ops::Deref;
use lean_string::LeanStr;

/// A name as Kubernetes spells it: a container's, a volume's, a namespace's.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Name(LeanStr);

/// A word or sentence that is told: mostly one of our own, which costs nothing.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Word(LeanStr);

/// Names and words are read as any string is.
macro_rules! reads_as_str {
    ($($text:ident),*) => {$(
        impl Deref for $text {
            type Target = str;
            #[inline]
            fn deref(&self) -> &str {
                &self.0
            }
        }
        impl fmt::Debug for $text {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&**self, f)
            }
        }
        impl fmt::Display for $text {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self)
            }
        }
        impl From<String> for $text {
            fn from(text: String) -> $text {
                $text(text.into())
            }
        }
        impl bincode::Encode for $text {
            fn encode<E: bincode::enc::Encoder>(
                &self,
                encoder: &mut E,
            ) -> Result<(), bincode::error::EncodeError> {
                (**self).encode(encoder)
            }
        }
        impl<C> bincode::Decode<C> for $text {
            fn decode<D: bincode::de::Decoder<Context = C>>(
                decoder: &mut D,
            ) -> Result<$text, bincode::error::DecodeError> {
                decode(decoder).map($text)
            }
        }
        bincode::impl_borrow_decode!($text);
    )*};
}

reads_as_str!(Name, Word);

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        self
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        self
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Name {
        Name(text.into())
    }
}

impl From<&'static str> for Word {
    fn from(text: &'static str) -> Word {
        Word(LeanStr::from_static_str(text))
    }
}

impl From<&Name> for Word {
    fn from(text: &Name) -> Word {
        Word(text.0.clone())
    }
}

/// Longer texts are read into memory of their own first.
const SHORT: usize = 16;

fn decode<D: bincode::de::Decoder>(decoder: &mut D) -> Result<LeanStr, bincode::error::DecodeError> {
    use bincode::de::read::Reader;
    use bincode::error::DecodeError;
    let len = <u64 as bincode::Decode<D::Context>>::decode(decoder)?;
    let len = usize::try_from(len).map_err(|_| DecodeError::OutsideUsizeRange(len))?;
    decoder.claim_container_read::<u8>(len)?;
    let read = |bytes: &[u8]| match core::str::from_utf8(bytes) {
        Ok(text) => Ok(LeanStr::from(text)),
        Err(inner) => Err(DecodeError::Utf8 { inner }),
    };
    let mut short = [0; SHORT];
    if let Some(bytes) = short.get_mut(..len) {
        decoder.reader().read(bytes)?;
        return read(bytes);
    }
    let mut long = alloc::vec![0; len];
    decoder.reader().read(&mut long)?;
    read(&long)
}

#[cfg(feature = "rkyv")]
mod archived {
    use super::Name;
    use rkyv::rancor::{Fallible, Source};
    use rkyv::string::{ArchivedString, StringResolver};
    use rkyv::{Archive, Deserialize, Place, Serialize, SerializeUnsized};

    impl Archive for Name {
        type Archived = ArchivedString;
        type Resolver = StringResolver;
        fn resolve(&self, resolver: StringResolver, out: Place<ArchivedString>) {
            ArchivedString::resolve_from_str(self, resolver, out);
        }
    }

    impl<S: Fallible<Error: Source> + ?Sized> Serialize<S> for Name
    where
        str: SerializeUnsized<S>,
    {
        fn serialize(&self, serializer: &mut S) -> Result<StringResolver, S::Error> {
            ArchivedString::serialize_from_str(self, serializer)
        }
    }

    impl<D: Fallible + ?Sized> Deserialize<Name, D> for ArchivedString {
        fn deserialize(&self, _: &mut D) -> Result<Name, D::Error> {
            Ok(Name::from(self.as_str()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_a_string() {
        for text in ["", "app", "sixteen bytes ok", "seventeen bytes !", "über", &"long ".repeat(4000)] {
            let (mut ours, mut strings) = (alloc::vec::Vec::new(), alloc::vec::Vec::new());
            crate::codec::encode(&Name::from(text), &mut ours);
            crate::codec::encode(&String::from(text), &mut strings);
            assert_eq!(ours, strings);
            assert_eq!(&*crate::codec::decode::<Name>(&ours).expect("a name"), text);
            assert_eq!(&*crate::codec::decode::<Word>(&ours).expect("a word"), text);
            for cut in 0..ours.len().min(40) {
                assert!(crate::codec::decode::<Name>(&ours[..cut]).is_err(), "cut at {cut}");
            }
        }
        assert!(crate::codec::decode::<Name>(&[1, 0, 0, 0, 0, 0, 0, 0, 0xff]).is_err(), "no UTF-8");
        let mut huge = alloc::vec![0xff; 8];
        huge.push(b'x');
        assert!(crate::codec::decode::<Name>(&huge).is_err(), "a hostile length");
    }

    #[test]
    fn it_takes_sixteen_bytes_also_where_it_may_be_absent() {
        assert_eq!(size_of::<Option<Name>>(), 16);
        assert_eq!(size_of::<crate::resources::ResourceName>(), 16);
    }
}
