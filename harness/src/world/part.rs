//! A part of the world that forks share until one of them changes it, with the hash of what it looks like for as long as
//! it stays so: taken once for all that share it. Owns no rule; whoever asks for it to be changed has it copied where it
//! is shared.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

/// See the file's head.
#[derive(Clone, Debug, Default)]
pub(super) struct Part<T>(Arc<Looked<T>>);

/// A value, and the hash of what it looks like once somebody asked.
#[derive(Debug, Default)]
struct Looked<T> {
    value: T,
    hash: OnceLock<u128>,
}

impl<T: Clone> Clone for Looked<T> {
    /// A copy is made to be changed.
    fn clone(&self) -> Looked<T> {
        Looked { value: self.value.clone(), hash: OnceLock::new() }
    }
}

impl<T> Part<T> {
    /// One that nobody shares yet.
    pub(super) fn new(value: T) -> Part<T> {
        Part(Arc::new(Looked { value, hash: OnceLock::new() }))
    }

    /// The hash of what it looks like: taken anew only after a change.
    pub(super) fn hash(&self, look: impl FnOnce(&T) -> u128) -> u128 {
        *self.0.hash.get_or_init(|| look(&self.0.value))
    }

    /// Where it is in memory.
    pub(super) fn place(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// The two are one and the same.
    pub(super) fn is(&self, other: &Part<T>) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T: Clone> Part<T> {
    /// The value alone.
    pub(super) fn into_inner(self) -> T {
        Arc::unwrap_or_clone(self.0).value
    }
}

impl<T> Deref for Part<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.value
    }
}

impl<T: Clone> DerefMut for Part<T> {
    fn deref_mut(&mut self) -> &mut T {
        let looked = Arc::make_mut(&mut self.0);
        looked.hash.take();
        &mut looked.value
    }
}

impl<'a, T> IntoIterator for &'a Part<T>
where
    &'a T: IntoIterator,
{
    type Item = <&'a T as IntoIterator>::Item;
    type IntoIter = <&'a T as IntoIterator>::IntoIter;

    fn into_iter(self) -> Self::IntoIter {
        (&self.0.value).into_iter()
    }
}
