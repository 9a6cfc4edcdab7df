//! What is wrong with a field of an object, said so that it can be put right.

use core::fmt;

/// One field that can't be used as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct FieldProblem {
    /// Where, as Kubernetes writes paths: `spec.containers[0].resources.requests[cpu]`.
    pub path: String,
    /// What kind of problem.
    pub reason: ProblemReason,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
}

/// The kinds of problem.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProblemReason {
    /// The object's kind has no such field.
    UnknownField,
    /// The value has the wrong JSON type.
    WrongType,
    /// The field must be given.
    Required,
    /// The value's form is wrong.
    Invalid,
    /// The value is none of those that the field allows.
    NotSupported,
}

impl fmt::Display for FieldProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "(document)" } else { &self.path };
        write!(f, "{path}: {}", self.message)?;
        if !self.remedy.is_empty() {
            write!(f, " ({})", self.remedy)?;
        }
        Ok(())
    }
}

impl FieldProblem {
    pub(crate) fn new(
        path: impl Into<String>,
        reason: ProblemReason,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> FieldProblem {
        FieldProblem { path: path.into(), reason, message: message.into(), remedy: remedy.into() }
    }

    /// A field that must be given.
    pub(crate) fn required(path: impl Into<String>, remedy: impl Into<String>) -> FieldProblem {
        FieldProblem::new(path, ProblemReason::Required, "a value is required", remedy)
    }

    /// A value that is none of the `allowed` ones.
    pub(crate) fn not_supported(path: impl Into<String>, got: &str, allowed: &[&str]) -> FieldProblem {
        FieldProblem::new(
            path,
            ProblemReason::NotSupported,
            format!("unsupported value {got:?}"),
            format!("use one of: {}", allowed.join(", ")),
        )
    }
}

/// Appends a struct field to a path.
pub(crate) fn field(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Appends a list index to a path.
pub(crate) fn index(path: &str, i: usize) -> String {
    format!("{path}[{i}]")
}

/// Appends a map key to a path.
pub(crate) fn key(path: &str, name: &str) -> String {
    format!("{path}[{name}]")
}
