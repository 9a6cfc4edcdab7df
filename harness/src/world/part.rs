//! A part of the world that forks share until one of them changes it, with the hash of what it looks like for as long as
//! it stays so. Owns no rule; whoever asks for it to be changed has it copied where it is shared.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

/// See the file's head.
#[derive(Clone, Debug, Default)]
pub(super) struct Part<T> {
    value: Arc<T>,
    hash: OnceLock<u128>,
}

impl<T> Part<T> {
    /// One that nobody shares yet.
    pub(super) fn new(value: T) -> Part<T> {
        Part { value: Arc::new(value), hash: OnceLock::new() }
    }

    /// The hash of what it looks like: taken anew only after a change.
    pub(super) fn hash(&self, look: impl FnOnce(&T) -> u128) -> u128 {
        *self.hash.get_or_init(|| look(&self.value))
    }
}

impl<T> Part<T> {
    /// Where it is in memory.
    pub(super) fn place(&self) -> usize {
        Arc::as_ptr(&self.value).addr()
    }

    /// The two are one and the same.
    pub(super) fn is(&self, other: &Part<T>) -> bool {
        Arc::ptr_eq(&self.value, &other.value)
    }
}

impl<T: Clone> Part<T> {
    /// The value alone.
    pub(super) fn into_inner(self) -> T {
        Arc::unwrap_or_clone(self.value)
    }
}

impl<T> Deref for Part<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: Clone> DerefMut for Part<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.hash = OnceLock::new();
        Arc::make_mut(&mut self.value)
    }
}

impl<'a, T> IntoIterator for &'a Part<T>
where
    &'a T: IntoIterator,
{
    type Item = <&'a T as IntoIterator>::Item;
    type IntoIter = <&'a T as IntoIterator>::IntoIter;

    fn into_iter(self) -> Self::IntoIter {
        (&*self.value).into_iter()
    }
}
