//! Images on the node, and what a pull of one gives.

use super::latency;
use nodefold_core::codec;
use nodefold_core::event::{ErrorClass, OpError};
use nodefold_core::ids::Name;
use nodefold_core::spec::PullPolicy;
use nodefold_core::time::Nanos;
use std::collections::BTreeSet;

/// The images of the node.
#[derive(Clone, Debug, Default)]
pub struct Images {
    /// Those present, or `None`: every image is present and any pull succeeds.
    present: Option<BTreeSet<String>>,
}

/// What became of a pull.
pub struct Pulled {
    /// The image's digest.
    pub image_id: Name,
    /// Nothing had to be pulled.
    pub already_present: bool,
}

impl Images {
    /// Only these are present, and no registry has any other; `None`: all.
    pub fn set(&mut self, present: Option<Vec<String>>) {
        self.present = present.map(|images| images.into_iter().collect());
    }

    fn has(&self, reference: &str) -> bool {
        self.present.as_ref().is_none_or(|images| images.contains(reference))
    }

    /// Has an image present, or says with Kubernetes' words why it can't be had.
    pub fn pull(&self, reference: &str, policy: PullPolicy) -> Result<Pulled, OpError> {
        let refuse = |reason: Option<&str>, message: String| OpError {
            class: ErrorClass::Final,
            reason: reason.map(Name::from),
            message: message.into(),
        };
        if !is_valid_reference(reference) {
            let message = format!(
                "Failed to apply default image tag \"{reference}\": couldn't parse image name \"{reference}\": \
                 invalid reference format"
            );
            return Err(refuse(Some("InvalidImageName"), message));
        }
        let present = self.has(reference);
        match policy {
            PullPolicy::Never if !present => {
                let message =
                    format!("Container image \"{reference}\" is not present with pull policy of Never");
                Err(refuse(Some("ErrImageNeverPull"), message))
            }
            PullPolicy::Always | PullPolicy::IfNotPresent if !present => {
                let message = format!(
                    "failed to pull and unpack image \"{reference}\": failed to resolve reference \
                     \"{reference}\": {reference}: not found"
                );
                Err(refuse(None, message))
            }
            PullPolicy::Always => Ok(Pulled { image_id: image_id(reference), already_present: false }),
            PullPolicy::IfNotPresent | PullPolicy::Never => {
                Ok(Pulled { image_id: image_id(reference), already_present: true })
            }
        }
    }

    /// How long that takes: nothing to speak of, or a conversation with the registry.
    pub fn pull_time(&self, reference: &str, policy: PullPolicy, local: Nanos) -> Nanos {
        match policy {
            PullPolicy::Never => local,
            PullPolicy::IfNotPresent if self.has(reference) => local,
            PullPolicy::Always if self.has(reference) => latency::REGISTRY_CHECK,
            PullPolicy::Always | PullPolicy::IfNotPresent => latency::REGISTRY_REFUSAL,
        }
    }
}

/// A digest for an image that never had bytes: the same for the same reference.
fn image_id(reference: &str) -> Name {
    let half = codec::hash(&reference.to_owned()).0;
    format!("sha256:{half:032x}{:032x}", half.rotate_left(64)).into()
}

/// Lower-case repository, no blanks: enough to tell a typing error from a reference.
fn is_valid_reference(reference: &str) -> bool {
    let (without_digest, _) = reference.split_once('@').unwrap_or((reference, ""));
    let repository = match without_digest.rsplit_once(':') {
        Some((before, tag)) if !tag.contains('/') => before,
        _ => without_digest,
    };
    !repository.is_empty()
        && !repository.ends_with('/')
        && repository.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "./-_:".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(result: Result<Pulled, OpError>) -> OpError {
        match result {
            Ok(_) => panic!("the pull should have failed"),
            Err(error) => error,
        }
    }

    #[test]
    fn without_a_list_everything_is_present() {
        let images = Images::default();
        let pulled =
            images.pull("registry.local/busybox:1", PullPolicy::IfNotPresent).map(|p| p.already_present);
        assert!(matches!(pulled, Ok(true)));
        let asked = images.pull("registry.local/busybox:1", PullPolicy::Always).map(|p| p.already_present);
        assert!(matches!(asked, Ok(false)), "Always asks the registry");
    }

    #[test]
    fn an_absent_image_is_refused_in_the_words_of_its_policy() {
        let mut images = Images::default();
        images.set(Some(vec!["a:1".into()]));
        assert!(images.pull("a:1", PullPolicy::Never).is_ok());
        let never = error(images.pull("b:1", PullPolicy::Never));
        assert_eq!(never.reason.as_deref(), Some("ErrImageNeverPull"));
        let pull = error(images.pull("b:1", PullPolicy::IfNotPresent));
        assert_eq!(pull.reason, None);
        assert!(pull.message.contains("not found"), "{}", pull.message);
    }

    #[test]
    fn a_reference_that_is_none_is_an_invalid_name() {
        for bad in ["", "Registry.local/App:1", "a b", "repo/"] {
            let refused = error(Images::default().pull(bad, PullPolicy::IfNotPresent));
            assert_eq!(refused.reason.as_deref(), Some("InvalidImageName"), "{bad:?}");
        }
        for good in ["x", "a:1", "registry:5000/team/app:v1.2", "app@sha256:ab"] {
            assert!(Images::default().pull(good, PullPolicy::IfNotPresent).is_ok(), "{good:?}");
        }
    }
}
