//! Scopes: scenarios to be explored, by name or from a file, and the stories that are told of them.

use super::place::{AT_REST, Place, Step};
use crate::scenario::{Budget, NodeSpec, Scenario, Verb, to_text};
use nodefold_core::time::Nanos;
use nodefold_k8s::InputError;

/// The named scopes.
pub const NAMED: [(&str, &str); 41] = [
    ("add-container", include_str!("scopes/add-container.yaml")),
    ("swap-volume", include_str!("scopes/swap-volume.yaml")),
    ("collide", include_str!("scopes/collide.yaml")),
    ("shared-volume", include_str!("scopes/shared-volume.yaml")),
    ("transaction", include_str!("scopes/transaction.yaml")),
    ("crash", include_str!("scopes/crash.yaml")),
    ("reboot", include_str!("scopes/reboot.yaml")),
    ("delete-anywhere", include_str!("scopes/delete-anywhere.yaml")),
    ("init-and-sidecar", include_str!("scopes/init-and-sidecar.yaml")),
    ("sidecar-end", include_str!("scopes/sidecar-end.yaml")),
    ("uncertain", include_str!("scopes/uncertain.yaml")),
    ("resize", include_str!("scopes/resize.yaml")),
    ("forced-delete", include_str!("scopes/forced-delete.yaml")),
    ("delete-while-mounting", include_str!("scopes/delete-while-mounting.yaml")),
    ("ends-by-itself", include_str!("scopes/ends-by-itself.yaml")),
    ("shorter-grace", include_str!("scopes/shorter-grace.yaml")),
    ("run-once", include_str!("scopes/run-once.yaml")),
    ("once-recovered", include_str!("scopes/once-recovered.yaml")),
    ("init-recovered", include_str!("scopes/init-recovered.yaml")),
    ("recovered", include_str!("scopes/recovered.yaml")),
    ("sidecar-stopped", include_str!("scopes/sidecar-stopped.yaml")),
    ("static-removed", include_str!("scopes/static-removed.yaml")),
    ("static-pod", include_str!("scopes/static-pod.yaml")),
    ("static-replaced", include_str!("scopes/static-replaced.yaml")),
    ("refresh", include_str!("scopes/refresh.yaml")),
    ("unmount-fails", include_str!("scopes/unmount-fails.yaml")),
    ("secret-fails", include_str!("scopes/secret-fails.yaml")),
    ("uncertain-start", include_str!("scopes/uncertain-start.yaml")),
    ("deferred", include_str!("scopes/deferred.yaml")),
    ("room-of-the-former", include_str!("scopes/room-of-the-former.yaml")),
    ("resize-restart", include_str!("scopes/resize-restart.yaml")),
    ("replaced-resize", include_str!("scopes/replaced-resize.yaml")),
    ("exits-again", include_str!("scopes/exits-again.yaml")),
    ("probes", include_str!("scopes/probes.yaml")),
    ("probes-recovered", include_str!("scopes/probes-recovered.yaml")),
    ("changed-before-running", include_str!("scopes/changed-before-running.yaml")),
    ("name-in-use", include_str!("scopes/name-in-use.yaml")),
    ("alike", include_str!("scopes/alike.yaml")),
    ("partial-list", include_str!("scopes/partial-list.yaml")),
    ("late-secret", include_str!("scopes/late-secret.yaml")),
    ("late-image", include_str!("scopes/late-image.yaml")),
];

/// The scope of that name.
pub fn named(name: &str) -> Option<Result<Scope, InputError>> {
    let (_, text) = NAMED.iter().find(|(known, _)| *known == name)?;
    Some(Scope::parse(text, &format!("{name}.yaml")))
}

/// A scope.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Its name.
    pub name: String,
    /// What it is about.
    pub about: String,
    /// The node.
    pub node: NodeSpec,
    /// What is played before.
    pub setup: Vec<Verb>,
    /// What may come at any point, in this order.
    pub steps: Vec<Verb>,
    /// The API server has no rules about names in flight.
    pub trusting: bool,
    /// What may go wrong.
    pub budget: Budget,
}

impl Scope {
    /// Reads one. Of what comes after the mark `check` (or of all, without one), what only waits or looks is left out: a
    /// search waits everywhere.
    pub fn parse(text: &str, file: &str) -> Result<Scope, InputError> {
        let scenario = Scenario::parse(text, file)?;
        let mut verbs: Vec<Verb> = scenario.steps.into_iter().map(|step| step.verb).collect();
        let begins = verbs.iter().position(|verb| matches!(verb, Verb::Mark(name) if name == "check"));
        let mut steps = match begins {
            Some(at) => verbs.split_off(at),
            None => std::mem::take(&mut verbs),
        };
        let looks = |verb: &Verb| {
            matches!(
                verb,
                Verb::Mark(_)
                    | Verb::Expect(_)
                    | Verb::Settle(_)
                    | Verb::Advance(_)
                    | Verb::Step(_)
                    | Verb::Choose(_)
                    | Verb::Heal
            )
        };
        steps.retain(|verb| !looks(verb));
        verbs.retain(|verb| !matches!(verb, Verb::Mark(_) | Verb::Expect(_)));
        Ok(Scope {
            name: scenario.name,
            about: scenario.about,
            node: scenario.node,
            setup: verbs,
            steps,
            trusting: scenario.trusting,
            budget: scenario.check,
        })
    }

    /// A scenario that takes these steps from the scope's beginning.
    pub fn story(&self, beginning: &Place, steps: &[Step], about: &str) -> String {
        let rests = about.starts_with(AT_REST);
        let mut place = beginning.clone();
        let mut verbs = self.setup_verbs();
        for step in steps {
            verbs.extend(place.verb(step));
            if place.do_it(step).is_err() {
                break;
            }
        }
        if rests {
            verbs.push(Verb::Heal);
        }
        self.text(about, &verbs)
    }

    /// A scenario of what comes before the exploring.
    pub(super) fn setup_alone(&self, about: &str) -> String {
        self.text(about, &self.setup_verbs())
    }

    fn setup_verbs(&self) -> Vec<Verb> {
        let settled = |verb: &Verb| [verb.clone(), Verb::Settle(Nanos::secs(60))];
        self.setup.iter().flat_map(settled).collect()
    }

    fn text(&self, about: &str, verbs: &[Verb]) -> String {
        let text = to_text(&format!("{}-counterexample", self.name), about, &self.node, verbs);
        let trusting = if self.trusting { "trusting: true\n" } else { "" };
        text.replacen("steps:\n", &format!("instant: true\n{trusting}steps:\n"), 1)
    }
}
