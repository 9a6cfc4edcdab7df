//! A part of a record in which most records have nothing: it takes a pointer's room while all of it is as usual.

use alloc::boxed::Box;
use core::ops::Deref;

/// What is there where nothing was noted.
pub trait Usual: Default + PartialEq + 'static {
    /// The default, to look at.
    const USUAL: &'static Self;
}

/// See the file's head. Equal values are kept equally: what is as usual is never boxed.
#[derive(Default, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct Seldom<T>(Option<Box<T>>);

impl<T: Usual> Seldom<T> {
    /// With this in it.
    pub fn new(value: T) -> Seldom<T> {
        Seldom((value != *T::USUAL).then(|| Box::new(value)))
    }
    /// Changes it.
    pub fn change<R>(&mut self, change: impl FnOnce(&mut T) -> R) -> R {
        match &mut self.0 {
            Some(value) => {
                let result = change(value);
                if **value == *T::USUAL {
                    self.0 = None;
                }
                result
            }
            None => {
                let mut value = T::default();
                let result = change(&mut value);
                *self = Seldom::new(value);
                result
            }
        }
    }
}

impl<T: Usual> Deref for Seldom<T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or(T::USUAL)
    }
}
