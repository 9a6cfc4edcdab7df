//! What was done with a request, stage by stage (api-side §0), for whoever asks why.

use crate::response::{Status, StatusReason};

/// A stage of a request, in order.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The route exists.
    Route,
    /// The user may ask this.
    Authorization,
    /// The body can be read, names the stored object, and its defaults are filled in.
    Decoding,
    /// Every handler of pods handles this subresource too (KEP-5972).
    Coverage,
    /// Mutating admission.
    Mutation,
    /// The body's version is the stored one.
    Version,
    /// What only the server writes is restored, the generation moves.
    Preparation,
    /// The numbered rules.
    Validation,
    /// Validating admission.
    Admission,
    /// The object is stored.
    Commit,
}

impl Stage {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Stage::Route => "route",
            Stage::Authorization => "authorization",
            Stage::Decoding => "decoding",
            Stage::Coverage => "coverage",
            Stage::Mutation => "mutation",
            Stage::Version => "version",
            Stage::Preparation => "preparation",
            Stage::Validation => "validation",
            Stage::Admission => "admission",
            Stage::Commit => "commit",
        }
    }
}

/// How a step went.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing against it.
    Passed,
    /// It changed the object.
    Changed,
    /// It didn't apply.
    Skipped,
    /// It goes on, with a warning to the client.
    Warned,
    /// It goes no further.
    Refused,
}

impl Verdict {
    /// In a word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Verdict::Passed => "passed",
            Verdict::Changed => "changed",
            Verdict::Skipped => "skipped",
            Verdict::Warned => "warned",
            Verdict::Refused => "refused",
        }
    }
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Where.
    pub stage: Stage,
    /// Who: a rule's number, a plugin, a handler.
    pub who: String,
    /// How it went.
    pub verdict: Verdict,
    /// In words.
    pub what: String,
}

/// The steps of a request in the order in which they were taken.
#[derive(Clone, Debug, Default)]
pub struct Account {
    steps: Vec<Step>,
    kept: bool,
}

impl Account {
    /// One that keeps what it is told.
    pub fn kept() -> Account {
        Account { steps: Vec::new(), kept: true }
    }

    /// One that forgets it at once, for requests that nobody asks about.
    pub fn forgotten() -> Account {
        Account::default()
    }

    /// The steps.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// A request that was refused without a step that says so gets one: at the stage that such an answer comes from.
    pub(crate) fn close(&mut self, status: &Status) {
        if self.steps.iter().any(|step| step.verdict == Verdict::Refused) {
            return;
        }
        let stage = match status.reason {
            StatusReason::BadRequest
            | StatusReason::NotFound
            | StatusReason::AlreadyExists
            | StatusReason::UnprocessableEntity => Stage::Decoding,
            // Another UID or version.
            StatusReason::Conflict => Stage::Version,
            StatusReason::Invalid => Stage::Validation,
            StatusReason::Unauthorized
            | StatusReason::Forbidden
            | StatusReason::RequestEntityTooLarge
            | StatusReason::InternalError
            | StatusReason::Unknown => Stage::Admission,
        };
        self.tell(stage, Verdict::Refused, || (String::new(), status.message.clone()));
    }

    /// Tells a step. The words are only made if they are kept.
    pub fn tell(&mut self, stage: Stage, verdict: Verdict, words: impl FnOnce() -> (String, String)) {
        if self.kept {
            let (who, what) = words();
            self.steps.push(Step { stage, who, verdict, what });
        }
    }
}
