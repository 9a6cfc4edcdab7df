//! A list that is empty in most records and specs, and takes a pointer's room while it is.

use alloc::boxed::Box;
use alloc::vec::Vec;
use bincode::de::{BorrowDecode, BorrowDecoder, Decode, Decoder};
use bincode::enc::{Encode, Encoder};
use bincode::error::{DecodeError, EncodeError};
use core::ops::{Deref, DerefMut};

/// See the file's head. Used as a `Vec` is.
#[derive(Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(from = "Vec<T>", into = "Vec<T>"))]
#[cfg_attr(
    feature = "serde",
    serde(bound(serialize = "T: Clone + serde::Serialize", deserialize = "T: serde::Deserialize<'de>"))
)]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
#[expect(clippy::box_collection, reason = "a list that is empty is to take a pointer, not three words")]
pub struct Few<T>(Option<Box<Vec<T>>>);

impl<T> Few<T> {
    fn vec(&mut self) -> &mut Vec<T> {
        self.0.get_or_insert_default()
    }
    /// Adds one at the end.
    pub fn push(&mut self, item: T) {
        self.vec().push(item);
    }
    /// Adds one in that place.
    pub fn insert(&mut self, at: usize, item: T) {
        self.vec().insert(at, item);
    }
    /// Takes the one in that place out.
    pub fn remove(&mut self, at: usize) -> T {
        self.vec().remove(at)
    }
    /// Keeps those for which it holds.
    pub fn retain(&mut self, keep: impl FnMut(&T) -> bool) {
        if let Some(list) = &mut self.0 {
            list.retain(keep);
        }
    }
    /// Forgets all.
    pub fn clear(&mut self) {
        self.0 = None;
    }
}

impl<T> Default for Few<T> {
    fn default() -> Few<T> {
        Few(None)
    }
}

impl<T> Deref for Few<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        self.0.as_deref().map_or(&[], Vec::as_slice)
    }
}

impl<T> DerefMut for Few<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.0.as_deref_mut().map_or(&mut [], Vec::as_mut_slice)
    }
}

impl<T: core::fmt::Debug> core::fmt::Debug for Few<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Debug::fmt(&**self, f)
    }
}

impl<T: PartialEq> PartialEq for Few<T> {
    fn eq(&self, other: &Few<T>) -> bool {
        **self == **other
    }
}

impl<T: Eq> Eq for Few<T> {}

impl<T> Extend<T> for Few<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        items.into_iter().for_each(|item| self.push(item));
    }
}

impl<T> FromIterator<T> for Few<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Few<T> {
        items.into_iter().collect::<Vec<T>>().into()
    }
}

impl<T> IntoIterator for Few<T> {
    type Item = T;
    type IntoIter = alloc::vec::IntoIter<T>;
    fn into_iter(self) -> Self::IntoIter {
        Vec::from(self).into_iter()
    }
}

impl<'a, T> IntoIterator for &'a Few<T> {
    type Item = &'a T;
    type IntoIter = core::slice::Iter<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T> IntoIterator for &'a mut Few<T> {
    type Item = &'a mut T;
    type IntoIter = core::slice::IterMut<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl<T> From<Few<T>> for Vec<T> {
    fn from(few: Few<T>) -> Vec<T> {
        few.0.map_or_else(Vec::new, |list| *list)
    }
}

impl<T> From<Vec<T>> for Few<T> {
    fn from(list: Vec<T>) -> Few<T> {
        Few((!list.is_empty()).then(|| Box::new(list)))
    }
}

impl<T: PartialEq, const N: usize> PartialEq<[T; N]> for Few<T> {
    fn eq(&self, other: &[T; N]) -> bool {
        **self == *other
    }
}

impl<C, T: Decode<C> + 'static> Decode<C> for Few<T> {
    fn decode<D: Decoder<Context = C>>(decoder: &mut D) -> Result<Few<T>, DecodeError> {
        Vec::decode(decoder).map(Few::from)
    }
}

impl<'de, C, T: Decode<C> + 'static> BorrowDecode<'de, C> for Few<T> {
    fn borrow_decode<D: BorrowDecoder<'de, Context = C>>(decoder: &mut D) -> Result<Few<T>, DecodeError> {
        Few::decode(decoder)
    }
}

// The bytes of a list, whether it is empty or not.
impl<T: Encode + 'static> Encode for Few<T> {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        (**self).encode(encoder)
    }
}
