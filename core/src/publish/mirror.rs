//! Mirror pods: a static pod has no object at the API, so the node keeps one there that shows it (kubelet-pods §3.7).
//! Owns when one is made and when it goes; whose status it shows is `publish`'s.

use crate::command::{Action, Commands, Rule};
use crate::context::{Touched, Why};
use crate::event::Mirror;
use crate::ids::{Name, OpId, PodUid, Source};
use crate::node::State;
use crate::state::{Lifecycle, PodState, Retry};
use alloc::vec::Vec;

/// Namespace and name: what a mirror pod and its static pod share.
pub type FullName = (Name, Name);

/// What is known of the mirror pod of a name, and what is being done about it.
#[derive(Default, Clone, Debug, PartialEq, Eq, bincode::Encode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct MirrorState {
    /// The object that the API has, as far as this epoch knows.
    pub seen: Option<Mirror>,
    /// An object that shows a life that is over: the next one gets its own, even of the same UID (B6).
    pub outdated: Option<PodUid>,
    /// A create or delete, in flight.
    pub doing: Option<OpId>,
    /// Back-off of refused ones.
    pub retry: Retry,
}

impl MirrorState {
    /// It shows that life of that static pod, and will.
    pub fn shows(&self, pod: PodUid) -> Option<PodUid> {
        let good =
            |mirror: &&Mirror| mirror.of == pod && !mirror.deleting && self.outdated != Some(mirror.uid);
        self.seen.as_ref().filter(good).map(|mirror| mirror.uid)
    }
}

/// What the API should have under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// A mirror of this static pod.
    Of(PodUid),
    /// What is there may stay; nothing new is made.
    Whatever,
    /// Nothing.
    Nothing,
}

/// What is to be done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Rest,
    /// Make one of this static pod.
    Create(PodUid),
    /// Delete this object.
    Delete(PodUid),
}

/// The decision table.
pub fn step(want: Want, state: &MirrorState) -> Step {
    match (want, &state.seen) {
        (Want::Whatever, _) | (Want::Nothing, None) => Step::Rest,
        (Want::Of(pod), None) => Step::Create(pod),
        (Want::Of(pod), Some(_)) if state.shows(pod).is_some() => Step::Rest,
        // Another version's, or being deleted by somebody: it goes, and a new one is made.
        (Want::Of(_) | Want::Nothing, Some(seen)) => Step::Delete(seen.uid),
    }
}

/// The static pod of a name that the API should show: the started one, or one that has ended or was refused while its
/// file is still there.
fn want(state: &State, name: &FullName) -> Want {
    let uids = state.names.get(name).map(Vec::as_slice).unwrap_or_default();
    let of_file = |pod: &&PodState| pod.pod.source == Source::File;
    let pods = || uids.iter().filter_map(|uid| state.pods.get(uid)).map(|pod| &**pod).filter(of_file);
    let shown = pods()
        .find(|pod| pod.is_started())
        .or_else(|| pods().find(|pod| matches!(pod.lifecycle, Lifecycle::Terminated) && !pod.object_gone));
    match shown {
        Some(pod) if !pod.object_gone => Want::Of(pod.pod.uid),
        // Its file is gone: it is shown until it has ended, and not made anew.
        Some(_) => Want::Whatever,
        None => {
            let waits = |uid: PodUid| pods().any(|pod| pod.pod.uid == uid && pod.is_not_ended());
            let of_waiting =
                state.mirrors.get(name).and_then(|m| m.seen.as_ref()).is_some_and(|m| waits(m.of));
            // After the agent's start, of a pod that is not admitted yet.
            if of_waiting { Want::Whatever } else { Want::Nothing }
        }
    }
}

/// Takes the next step about each name. Only once every source has delivered its list: before, an absent mirror may be
/// there, and one that is there may have its file.
pub(crate) fn reconcile(state: &mut State, names: &[FullName], out: &mut Commands) {
    if !state.sources_ready() || !state.config.sources.contains(&Source::Api) {
        return;
    }
    for name in names {
        let want = want(state, name);
        let known = state.mirrors.get(name).cloned().unwrap_or_default();
        if known.doing.is_some() {
            continue;
        }
        let next = step(want, &known);
        if next != Step::Rest
            && let Some(until) = known.retry.until().filter(|until| *until > state.now)
        {
            state.wake_allocator(until, Why::MirrorRetry);
            continue;
        }
        let op = match next {
            Step::Rest => {
                if known.seen.is_none() {
                    state.mirrors.remove(name);
                }
                continue;
            }
            Step::Create(uid) => {
                let Some(pod) = state.pods.get(&uid).map(|pod| pod.pod.arc().clone()) else { continue };
                state.command(out, uid, Rule::MirrorNeeded, Action::CreateMirror { pod })
            }
            Step::Delete(uid) => {
                let (namespace, name) = name.clone();
                state.command(out, uid, Rule::MirrorObsolete, Action::DeleteMirror { namespace, name })
            }
        };
        let record = state.mirrors.entry(name.clone()).or_default();
        record.doing = Some(op);
    }
}

/// Names whose refused create or delete is due again; the others are booked anew, since the wake-up that led here took the
/// place of theirs.
pub(crate) fn retry(state: &mut State, touched: &mut Touched) {
    let waiting: Vec<(FullName, crate::time::Time)> = state
        .mirrors
        .iter()
        .filter(|(_, record)| record.doing.is_none())
        .filter_map(|(name, record)| record.retry.until().map(|until| (name.clone(), until)))
        .collect();
    for (name, until) in waiting {
        if until <= state.now {
            touched.add_mirror(name);
        } else {
            state.wake_allocator(until, Why::MirrorRetry);
        }
    }
}
