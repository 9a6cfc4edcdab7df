//! Why something on the host did not work, and what is known about its effect (kubelet-volumes §1.8).

use nodefold_core::event::{ErrorClass, OpError};
use rustix::io::Errno;
use std::fmt::Display;

/// A failed operation on the host. Its message names what was attempted and on what.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// What is known about the effect.
    pub class: ErrorClass,
    /// A waiting reason more exact than the operation's own.
    pub reason: Option<&'static str>,
    /// For people.
    pub message: String,
}

impl Fault {
    /// It did not happen, and that is an answer.
    pub fn refused(message: impl Into<String>) -> Fault {
        Fault { class: ErrorClass::Final, reason: None, message: message.into() }
    }

    /// It could not be tried now.
    pub fn transient(message: impl Into<String>) -> Fault {
        Fault { class: ErrorClass::Transient, reason: None, message: message.into() }
    }

    /// It may have happened, or still happen.
    pub fn uncertain(message: impl Into<String>) -> Fault {
        Fault { class: ErrorClass::Uncertain, reason: None, message: message.into() }
    }

    /// Of what it is told.
    pub fn of(self, what: &str) -> Fault {
        Fault { message: format!("{what}: {}", self.message), ..self }
    }

    /// With a reason as Kubernetes spells it.
    pub fn because(self, reason: &'static str) -> Fault {
        Fault { reason: Some(reason), ..self }
    }

    /// As the core hears of it.
    pub fn into_error(self) -> OpError {
        OpError { class: self.class, reason: self.reason.map(Into::into), message: self.message.into() }
    }
}

/// What a system call's error says about the effect. Lack of a resource passes; a device or server that does not answer
/// leaves the effect open; all else is an answer.
fn class_of(errno: Errno) -> ErrorClass {
    match errno {
        Errno::AGAIN | Errno::BUSY | Errno::INTR | Errno::MFILE | Errno::NFILE | Errno::NOMEM => {
            ErrorClass::Transient
        }
        Errno::IO | Errno::TIMEDOUT | Errno::STALE | Errno::NOTCONN | Errno::HOSTDOWN => {
            ErrorClass::Uncertain
        }
        _ => ErrorClass::Final,
    }
}

/// Says what was attempted when a system call fails.
pub trait Attempt<T> {
    /// `what` is told with the error: "mount the tmpfs".
    fn attempt<D: Display>(self, what: impl FnOnce() -> D) -> Result<T, Fault>;
}

impl<T> Attempt<T> for Result<T, Errno> {
    fn attempt<D: Display>(self, what: impl FnOnce() -> D) -> Result<T, Fault> {
        self.map_err(|errno| Fault {
            class: class_of(errno),
            reason: None,
            message: format!("{}: {}", what(), std::io::Error::from(errno)),
        })
    }
}

impl<T> Attempt<T> for nix::Result<T> {
    fn attempt<D: Display>(self, what: impl FnOnce() -> D) -> Result<T, Fault> {
        self.map_err(std::io::Error::from).attempt(what)
    }
}

impl<T> Attempt<T> for std::io::Result<T> {
    fn attempt<D: Display>(self, what: impl FnOnce() -> D) -> Result<T, Fault> {
        self.map_err(|error| Fault {
            class: error
                .raw_os_error()
                .map_or(ErrorClass::Final, |code| class_of(Errno::from_raw_os_error(code))),
            reason: None,
            message: format!("{}: {error}", what()),
        })
    }
}
