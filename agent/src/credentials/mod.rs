//! What proves to others who a pod is: tokens of its service account and certificates of its own. Whoever issues tokens is
//! pluggable; built in is a key of the node's own. Nothing here is told to the core but when it wants renewing (S13).

mod certificates;
mod local_key;

pub use certificates::{Certificate, Certificates};
pub use local_key::{ISSUER, LocalKey};

use crate::fault::Fault;
use nodefold_core::ids::PodUid;
use nodefold_core::time::{Nanos, Time};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A token is renewed after this part of its life, in fifths (kubelet-volumes §2.4) ...
const RENEWED_AFTER_FIFTHS: u64 = 4;
/// ... but no later than after a day, however long it lives ...
const RENEWED_WITHIN: Nanos = Nanos::secs(24 * 3600);
/// ... and up to this much earlier, so that pods that began together do not all ask at once.
const JITTER: Nanos = Nanos::secs(10);

/// What a token is asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenRequest {
    /// The namespace of pod and service account.
    pub namespace: String,
    /// The service account.
    pub service_account: String,
    /// For whom; nothing: for the issuer itself.
    pub audience: Option<String>,
    /// How long it is to be valid, in seconds.
    pub seconds: u64,
    /// The pod that it is bound to.
    pub pod: PodUid,
    /// Its name.
    pub pod_name: String,
    /// The node that it is on.
    pub node_name: String,
}

/// Whoever issues tokens.
pub trait Issuer: Send + Sync {
    /// A token, valid from now on for as long as is asked. An error is shown to the pod's owner.
    fn issue(&self, request: &TokenRequest, now: Time) -> Result<String, Fault>;
}

struct Issued {
    token: String,
    renew_at: Time,
    expires_at: Time,
}

/// The tokens that this node's volumes show. They are only in memory, and forgotten with their pod's volumes.
pub struct Tokens {
    issuer: Arc<dyn Issuer>,
    issued: Mutex<BTreeMap<TokenRequest, Issued>>,
}

impl Tokens {
    /// Tokens by this issuer.
    pub fn of(issuer: Arc<dyn Issuer>) -> Tokens {
        Tokens { issuer, issued: Mutex::default() }
    }

    /// A token, and when it is to be renewed: the same one until then. One that can't be renewed is shown for as long as it
    /// is valid, and asked for again a tenth of its life later.
    pub fn get(&self, request: &TokenRequest, now: Time) -> Result<(String, Time), Fault> {
        let mut issued = self.issued.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = issued.get(request)
            && now < known.renew_at
        {
            return Ok((known.token.clone(), known.renew_at));
        }
        let life = Nanos::secs(request.seconds);
        match self.issuer.issue(request, now) {
            Ok(token) => {
                let renew_at = renewal(request, now);
                let expires_at = now.after(life);
                issued.insert(request.clone(), Issued { token: token.clone(), renew_at, expires_at });
                Ok((token, renew_at))
            }
            Err(fault) => match issued.get_mut(request) {
                Some(known) if now < known.expires_at => {
                    known.renew_at = now.after(Nanos(life.0 / 10));
                    Ok((known.token.clone(), known.renew_at))
                }
                Some(_) | None => Err(fault),
            },
        }
    }

    /// Forgets a pod's tokens: one of its volumes goes. Others ask anew.
    pub fn forget(&self, pod: PodUid) {
        self.issued.lock().unwrap_or_else(PoisonError::into_inner).retain(|request, _| request.pod != pod);
    }
}

/// When a token that is issued now is to be renewed.
fn renewal(request: &TokenRequest, now: Time) -> Time {
    let life = Nanos::secs(request.seconds).0 / 5 * RENEWED_AFTER_FIFTHS;
    let latest = life.min(RENEWED_WITHIN.0);
    let text = format!("{}/{}/{:?}", request.pod, request.service_account, request.audience);
    let jitter = xxhash_rust::xxh3::xxh3_64(text.as_bytes()) % JITTER.0.min(latest.max(1));
    now.after(Nanos(latest - jitter))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Issues numbers, until it is told to refuse.
    #[derive(Default)]
    struct Numbers {
        issued: AtomicU64,
        refuses: std::sync::atomic::AtomicBool,
    }

    impl Issuer for Numbers {
        fn issue(&self, _: &TokenRequest, _: Time) -> Result<String, Fault> {
            match self.refuses.load(Ordering::Relaxed) {
                true => Err(Fault::transient("not now")),
                false => Ok(self.issued.fetch_add(1, Ordering::Relaxed).to_string()),
            }
        }
    }

    #[test]
    fn case_54_a_token_is_renewed_at_four_fifths_and_outlives_an_issuer_that_fails() {
        let issuer = Arc::new(Numbers::default());
        let tokens = Tokens::of(issuer.clone());
        let request = TokenRequest {
            namespace: "n".into(),
            service_account: "s".into(),
            audience: None,
            seconds: 1000,
            pod: PodUid(1),
            pod_name: "p".into(),
            node_name: "n".into(),
        };
        let at = |seconds: u64| Time(Nanos::secs(seconds).0);
        let (first, renew_at) = tokens.get(&request, at(0)).expect("issued");
        assert!(renew_at > at(789) && renew_at <= at(800), "{renew_at:?}");
        assert_eq!(tokens.get(&request, at(780)).expect("kept").0, first);
        issuer.refuses.store(true, Ordering::Relaxed);
        let (kept, again) = tokens.get(&request, at(810)).expect("still valid");
        assert_eq!((kept, again), (first.clone(), at(910)));
        assert!(tokens.get(&request, at(1000)).is_err(), "what has expired is not shown");
        issuer.refuses.store(false, Ordering::Relaxed);
        assert_ne!(tokens.get(&request, at(1000)).expect("issued").0, first);
        let day = TokenRequest { seconds: 30 * 24 * 3600, ..request.clone() };
        assert!(tokens.get(&day, at(0)).expect("issued").1 <= at(24 * 3600));
        tokens.forget(PodUid(1));
        assert_ne!(tokens.get(&day, at(1)).expect("issued").0, "2", "a forgotten one is asked for anew");
    }
}
