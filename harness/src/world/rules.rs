//! `hold`, `release` and `fail`: which operations hang and which go wrong. Rules belong to the world, so they outlive an
//! agent.

use super::inflight::OpKind;
use nodefold_core::event::{ErrorClass, OpError};
use std::fmt;

/// An operation as scenario files name it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// A volume's mount.
    Mount,
    /// A volume's unmount.
    Unmount,
    /// A volume's refresh.
    Refresh,
    /// An image pull.
    Pull,
    /// Making the sandbox.
    Sandbox,
    /// Making a container.
    Create,
    /// Starting it.
    Start,
    /// Stopping or killing it.
    Stop,
    /// Removing it.
    Remove,
    /// Changing its resources, or the pod's.
    Resize,
    /// Delivery of changes to the agent.
    Watch,
    /// The node's status writes.
    Status,
}

/// What a rule of an operation may name besides the pod.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// A volume.
    Volume,
    /// A container.
    Container,
    /// Nothing.
    PodOnly,
}

impl Operation {
    /// All of them, in the order of the scenario files' own description.
    pub const ALL: [Operation; 12] = [
        Operation::Mount,
        Operation::Unmount,
        Operation::Refresh,
        Operation::Pull,
        Operation::Sandbox,
        Operation::Create,
        Operation::Start,
        Operation::Stop,
        Operation::Remove,
        Operation::Resize,
        Operation::Watch,
        Operation::Status,
    ];

    /// As a scenario file spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Mount => "mount",
            Operation::Unmount => "unmount",
            Operation::Refresh => "refresh",
            Operation::Pull => "pull",
            Operation::Sandbox => "sandbox",
            Operation::Create => "create",
            Operation::Start => "start",
            Operation::Stop => "stop",
            Operation::Remove => "remove",
            Operation::Resize => "resize",
            Operation::Watch => "watch",
            Operation::Status => "status",
        }
    }

    /// What a rule may narrow it down to.
    pub const fn target(self) -> TargetKind {
        match self {
            Operation::Mount | Operation::Unmount | Operation::Refresh => TargetKind::Volume,
            Operation::Pull
            | Operation::Create
            | Operation::Start
            | Operation::Stop
            | Operation::Remove
            | Operation::Resize => TargetKind::Container,
            Operation::Sandbox | Operation::Watch | Operation::Status => TargetKind::PodOnly,
        }
    }

    /// The operation that covers a kind; `None` for what no rule reaches. Stopping a sandbox stops what is in it, and
    /// removing one removes it, so those go with `stop` and `remove`.
    pub const fn covering(kind: OpKind) -> Option<Operation> {
        match kind {
            OpKind::Mount => Some(Operation::Mount),
            OpKind::Unmount => Some(Operation::Unmount),
            OpKind::Refresh => Some(Operation::Refresh),
            OpKind::Pull => Some(Operation::Pull),
            OpKind::CreateSandbox => Some(Operation::Sandbox),
            OpKind::Create => Some(Operation::Create),
            OpKind::Start => Some(Operation::Start),
            OpKind::Stop | OpKind::Kill | OpKind::StopSandbox => Some(Operation::Stop),
            OpKind::Remove | OpKind::RemoveSandbox => Some(Operation::Remove),
            OpKind::Resize | OpKind::ResizePod => Some(Operation::Resize),
            // All that the node writes about a pod at the API, but for the last word.
            OpKind::Status | OpKind::CreateMirror | OpKind::DeleteMirror => Some(Operation::Status),
            OpKind::PostStart
            | OpKind::PreStop
            | OpKind::ObserveMounts
            | OpKind::ObserveRuntime
            | OpKind::Release => None,
        }
    }
}

/// Which operations a rule is about. What is not named is not narrowed down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// Which operation.
    pub operation: Operation,
    /// In which pod: namespace and name.
    pub pod: Option<(String, String)>,
    /// To which container or volume, by name.
    pub target: Option<String>,
}

impl Scope {
    /// An operation is in it. `target` is empty for an operation that is about the whole pod.
    pub fn covers(&self, operation: Operation, namespace: &str, pod: &str, target: &str) -> bool {
        self.operation == operation
            && self.pod.as_ref().is_none_or(|(ns, name)| ns == namespace && name == pod)
            && self.target.as_ref().is_none_or(|name| name == target)
    }

    /// Everything in the other is also in this one.
    fn contains(&self, other: &Scope) -> bool {
        self.operation == other.operation
            && self.pod.as_ref().is_none_or(|pod| other.pod.as_ref() == Some(pod))
            && self.target.as_ref().is_none_or(|target| other.target.as_ref() == Some(target))
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.operation.name())?;
        if let Some((namespace, name)) = &self.pod {
            write!(f, " {namespace}/{name}")?;
        }
        match &self.target {
            Some(target) => write!(f, " {target}"),
            None => Ok(()),
        }
    }
}

/// How operations in a scope go wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// How often from now; `None`: until released.
    pub times: Option<u32>,
    /// What the agent is told.
    pub error: String,
    /// What that says about the effect. `Uncertain`: reported as failed, but done.
    pub class: ErrorClass,
}

impl Failure {
    /// As the agent hears it.
    pub fn as_error(&self) -> OpError {
        OpError { class: self.class, reason: None, message: self.error.as_str().into() }
    }
}

/// A scope, less what was released of it.
#[derive(Clone, Debug)]
pub struct Area {
    scope: Scope,
    released: Vec<Scope>,
}

impl Area {
    fn of(scope: Scope) -> Area {
        Area { scope, released: Vec::new() }
    }

    fn covers(&self, operation: Operation, namespace: &str, pod: &str, target: &str) -> bool {
        let in_it = |scope: &Scope| scope.covers(operation, namespace, pod, target);
        in_it(&self.scope) && !self.released.iter().any(in_it)
    }

    /// Takes the scope out of it. `None`: nothing of it was in it; `Some(true)`: nothing is left.
    fn release(&mut self, scope: &Scope) -> Option<bool> {
        if scope.contains(&self.scope) {
            return Some(true);
        }
        let is_new =
            self.scope.contains(scope) && !self.released.iter().any(|released| released.contains(scope));
        is_new.then(|| {
            self.released.push(scope.clone());
            false
        })
    }
}

impl fmt::Display for Area {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.scope)?;
        self.released.iter().try_for_each(|scope| write!(f, " (but not {scope})"))
    }
}

/// All rules in force.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    holds: Vec<Area>,
    failures: Vec<(Area, Failure)>,
}

impl Rules {
    /// There are none.
    pub(super) fn are_none(&self) -> bool {
        self.holds.is_empty() && self.failures.is_empty()
    }

    /// Operations in this scope hang from now on.
    pub fn hold(&mut self, scope: Scope) {
        match self.holds.iter_mut().find(|held| held.scope == scope) {
            Some(held) => held.released.clear(),
            None => self.holds.push(Area::of(scope)),
        }
    }

    /// Operations in this scope go wrong from now on.
    pub fn fail(&mut self, scope: Scope, failure: Failure) {
        self.failures.push((Area::of(scope), failure));
    }

    /// Ends every hold of what is in the scope, or, where nothing is held, every failure. A wider one goes on for the rest. How many it
    /// was about.
    pub fn release(&mut self, scope: &Scope) -> usize {
        fn end<T>(areas: &mut Vec<T>, area: fn(&mut T) -> &mut Area, scope: &Scope) -> usize {
            let mut released = 0;
            areas.retain_mut(|entry| {
                let left = area(entry).release(scope);
                released += usize::from(left.is_some());
                left != Some(true)
            });
            released
        }
        match end(&mut self.holds, |held| held, scope) {
            0 => end(&mut self.failures, |(area, _)| area, scope),
            released => released,
        }
    }

    /// The operation hangs.
    pub fn holds(&self, operation: Operation, namespace: &str, pod: &str, target: &str) -> bool {
        self.holds.iter().any(|area| area.covers(operation, namespace, pod, target))
    }

    /// How the operation goes wrong, if it does; counts as one of the rule's times.
    pub fn take_failure(
        &mut self,
        operation: Operation,
        namespace: &str,
        pod: &str,
        target: &str,
    ) -> Option<Failure> {
        let found =
            self.failures.iter().position(|(area, _)| area.covers(operation, namespace, pod, target))?;
        let failure = self.failures[found].1.clone();
        if let Some(times) = &mut self.failures[found].1.times {
            *times = times.saturating_sub(1);
            if *times == 0 {
                self.failures.remove(found);
            }
        }
        Some(failure)
    }

    /// What is held, for messages.
    pub fn held(&self) -> impl Iterator<Item = &Area> {
        self.holds.iter()
    }

    /// What goes wrong.
    pub fn failing(&self) -> impl Iterator<Item = &(Area, Failure)> {
        self.failures.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(operation: Operation, pod: Option<&str>, target: Option<&str>) -> Scope {
        Scope {
            operation,
            pod: pod.map(|name| ("default".to_owned(), name.to_owned())),
            target: target.map(str::to_owned),
        }
    }

    #[test]
    fn a_hold_covers_what_it_names_and_nothing_else() {
        let mut rules = Rules::default();
        rules.hold(scope(Operation::Mount, Some("web"), Some("slow")));
        assert!(rules.holds(Operation::Mount, "default", "web", "slow"));
        assert!(!rules.holds(Operation::Mount, "default", "web", "quick"));
        assert!(!rules.holds(Operation::Mount, "other", "web", "slow"));
        assert!(!rules.holds(Operation::Unmount, "default", "web", "slow"));
    }

    #[test]
    fn a_release_ends_the_holds_within_its_scope() {
        let mut rules = Rules::default();
        rules.hold(scope(Operation::Stop, Some("web"), Some("a")));
        rules.hold(scope(Operation::Stop, Some("web"), Some("b")));
        assert_eq!(rules.release(&scope(Operation::Stop, Some("web"), Some("c"))), 0);
        assert_eq!(rules.release(&scope(Operation::Stop, Some("web"), None)), 2);
        assert!(!rules.holds(Operation::Stop, "default", "web", "a"));
    }

    #[test]
    fn a_wider_hold_goes_on_for_the_rest() {
        let mut rules = Rules::default();
        rules.hold(scope(Operation::Mount, None, None));
        let quick = scope(Operation::Mount, Some("web"), Some("quick"));
        assert_eq!(rules.release(&quick), 1);
        assert_eq!(rules.release(&quick), 0, "it is released already");
        assert!(!rules.holds(Operation::Mount, "default", "web", "quick"));
        assert!(rules.holds(Operation::Mount, "default", "web", "slow"));
        rules.hold(scope(Operation::Mount, None, None));
        assert!(rules.holds(Operation::Mount, "default", "web", "quick"), "held anew");
        assert_eq!(rules.release(&scope(Operation::Mount, None, None)), 1);
        assert!(rules.are_none());
    }

    #[test]
    fn a_failure_counts_down_and_a_release_ends_the_hold_before_the_failure() {
        let mut rules = Rules::default();
        let both = scope(Operation::Mount, Some("web"), Some("v"));
        rules.hold(both.clone());
        rules.fail(both.clone(), Failure { times: Some(1), error: "no".into(), class: ErrorClass::Final });
        assert_eq!(rules.release(&both), 1);
        assert!(
            rules.take_failure(Operation::Mount, "default", "web", "v").is_some(),
            "held as well, it fails when released"
        );
        assert!(rules.take_failure(Operation::Mount, "default", "web", "v").is_none());
    }
}
