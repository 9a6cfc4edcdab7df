//! Functions that Kubernetes adds to CEL, one library a file, by the names and meanings of its documentation.
//!
//! Not there: comprehensions of two variables (`transformList` and its kin, which the crate's parser lacks), cost limits, and types
//! of fields (`object.metadata.creationTimestamp` is a string here, not a timestamp: write `timestamp(...)` around it).

mod authorizer;
mod format;
mod ip;
mod json_patch;
mod lists;
mod quantity;
mod regex;
mod semver;
mod sets;
mod url;

pub(super) use authorizer::Authorizer;

use cel::common::types::{CelList, CelString};
use cel::common::value::Val;
use cel::{DeclarationError, Env};

/// Declares all of them.
pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    quantity::extension(env)?;
    regex::extension(env)?;
    url::extension(env)?;
    ip::extension(env)?;
    semver::extension(env)?;
    format::extension(env)?;
    lists::extension(env)?;
    sets::extension(env)?;
    json_patch::extension(env)?;
    authorizer::extension(env)
}

/// A list of texts.
fn texts(texts: impl Iterator<Item = String>) -> CelList<'static> {
    let boxed = texts.map(|text| Box::new(CelString::from(text)) as Box<dyn Val>);
    CelList::from(boxed.collect::<Vec<_>>())
}

/// A type of its own, whose values only functions look into.
macro_rules! opaque {
    ($name:ident, $type:ident) => {
        impl cel::common::value::Val for $name {
            fn get_type(&self) -> &cel::common::types::Type {
                &$type
            }

            fn cel_type() -> &'static cel::common::types::Type {
                &$type
            }

            fn equals(&self, other: &dyn cel::common::value::Val) -> bool {
                other.downcast_ref::<$name>().is_some_and(|other| other == self)
            }

            fn clone_as_boxed<'v>(&self) -> Box<dyn cel::common::value::Val + 'v>
            where
                Self: 'v,
            {
                Box::new(self.clone())
            }

            fn as_any(&self) -> Option<&dyn std::any::Any> {
                Some(self)
            }
        }

        impl cel::common::value::StaticVal for $name {}
    };
}
use opaque;
