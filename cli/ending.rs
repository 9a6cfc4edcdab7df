//! How a command ends: the exit status, and input that can't be used.

use std::fmt::{self, Display};

/// What the exit status says. The worst of several counts.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// All is as it should be.
    Good,
    /// An expectation or a recorded digest does not hold, or an invariant broke.
    Broken,
    /// The input can't be used.
    Unusable,
}

impl Ending {
    /// The exit status.
    pub const fn code(self) -> u8 {
        match self {
            Ending::Good => 0,
            Ending::Broken => 1,
            Ending::Unusable => 2,
        }
    }
}

/// Input that can't be used: what is wrong with what, and what to do about it.
#[derive(Debug)]
pub struct Unusable {
    what: String,
    remedy: String,
}

impl Unusable {
    /// Input that can't be used. An empty remedy: the text says it already.
    pub fn new(what: impl Display, remedy: impl Into<String>) -> Unusable {
        Unusable { what: what.to_string(), remedy: remedy.into() }
    }
}

impl Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if !self.remedy.is_empty() {
            write!(f, "; {}", self.remedy)?;
        }
        Ok(())
    }
}

impl std::error::Error for Unusable {}
