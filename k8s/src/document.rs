//! Files of manifests: YAML (any number of documents) or JSON, and errors that name file, line and remedy.

use crate::problem::FieldProblem;
use crate::spans::Spans;
use core::fmt;
use serde_json::Value;

/// One document of a file.
#[derive(Clone, Debug)]
pub struct Document {
    /// What it says.
    pub value: Value,
    /// Where it says it.
    pub spans: Spans,
}

/// Input that can't be used: where, why, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct InputError {
    /// The file, as it was named.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
    /// The field, empty if it isn't about one.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: ", self.file, self.line, self.column)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        if !self.remedy.is_empty() {
            write!(f, " ({})", self.remedy)?;
        }
        Ok(())
    }
}

/// Reads every document of a text; `file` is only named in errors. Empty documents are left out.
///
/// ```
/// let documents = nodefold_k8s::parse_documents("a: 1\n---\nb: [x]\n", "two.yaml")?;
/// assert_eq!(documents[1].value["b"][0], "x");
/// assert_eq!(documents[1].spans.nearest("b[0]").line, 3);
/// # Ok::<(), nodefold_k8s::InputError>(())
/// ```
pub fn parse_documents(text: &str, file: &str) -> Result<Vec<Document>, InputError> {
    crate::yaml::read(text, file)
}

impl Document {
    /// A problem of one of its fields, with its place.
    ///
    /// `at` is where the object stands in the document (empty: it is the document), so that a manifest inside a
    /// scenario's step can be told of too.
    pub fn locate(&self, file: &str, at: &str, problem: &FieldProblem) -> InputError {
        let path = match (at.is_empty(), problem.path.is_empty()) {
            (true, _) => problem.path.clone(),
            (false, true) => at.to_owned(),
            (false, false) if problem.path.starts_with('[') => format!("{at}{}", problem.path),
            (false, false) => format!("{at}.{}", problem.path),
        };
        let place = self.spans.nearest(&path);
        InputError {
            file: file.to_owned(),
            line: place.line,
            column: place.column,
            path,
            message: problem.message.clone(),
            remedy: problem.remedy.clone(),
        }
    }
}
