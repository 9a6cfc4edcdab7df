//! One key for places that differ only by which of several pods is which (DESIGN §7). Owns the choice of pods that count as
//! alike, and of the one renaming that a place is looked at by; what is renamed where is the world's (`world/canonical.rs`).
//!
//! Pods are *alike* if nothing that may still come prefers one: the rest of the story names none of them and asks for no
//! room, no rule or fault of the world names anybody, and no decision of the node weighs one against another: UIDs decide
//! ties between pods that contend for room (`core/src/allocate`), so all pods have to ask for none. Then a renaming of
//! alike pods takes a place to one that goes on the same, renamed. The key is the least of the place's keys under all
//! renamings; those are few, since a pod's own state tells most of them apart: pods are sorted by it, and only what is
//! equal there is tried in each order. Where that would still be too many orders, one is taken as it comes: then some places
//! that are alike count twice, and none that differ count once.
//!
//! Containers and volumes of one pod are never alike: their order in the spec decides in which order they are begun and
//! shown.

use crate::scenario::{PodRef, Verb};
use crate::world::{Renaming, World};
use nodefold_core::ids::PodUid;

/// More orders of pods than these are not tried.
const MOST_ORDERS: usize = 720;

/// The pods that are alike before the rest of the story; fewer than two: none.
pub(super) fn alike(world: &World, rest: &[Verb]) -> Vec<PodUid> {
    let mut named = Vec::new();
    if !rest.iter().all(|verb| is_indifferent(verb, &mut named)) {
        return Vec::new();
    }
    let mut pods = world.alike();
    pods.retain(|uid| !world.server().name(*uid).is_none_or(|name| named.contains(&name)));
    pods
}

/// Whether a verb leaves pods that it does not name alike. Those that it names go to `named`.
fn is_indifferent<'a>(verb: &'a Verb, named: &mut Vec<&'a PodRef>) -> bool {
    match verb {
        Verb::Exit { pod, .. } | Verb::Probe { pod, .. } => {
            named.push(pod);
            true
        }
        // Of objects that pods refer to; a pod of that name would be named.
        Verb::Create(object) | Verb::Update(object) => object["kind"] != "Pod",
        Verb::Delete(target) => target.kind != "Pod",
        Verb::Crash(_) | Verb::Mark(_) => true,
        Verb::Dynamic(..)
        | Verb::Resize(..)
        | Verb::Ephemeral(..)
        | Verb::Status(..)
        | Verb::Advance(_)
        | Verb::Settle(_)
        | Verb::Usage { .. }
        | Verb::Hold(_)
        | Verb::Release(_)
        | Verb::Fail(..)
        | Verb::Set(_)
        | Verb::Step(_)
        | Verb::Choose(_)
        | Verb::Fault(_)
        | Verb::Heal
        | Verb::Expect(_) => false,
    }
}

/// The renamings under which a place is looked at.
pub(super) fn renamings(world: &World, alike: Vec<PodUid>) -> Vec<Renaming> {
    let mut sorted: Vec<(Option<u128>, PodUid)> =
        alike.iter().map(|pod| (world.canonical_of(*pod), *pod)).collect();
    sorted.sort();
    let equal: Vec<Vec<PodUid>> = sorted
        .chunk_by(|(one, _), (other, _)| one == other)
        .map(|equal| equal.iter().map(|(_, pod)| *pod).collect())
        .collect();
    let orders = equal
        .iter()
        .fold(1usize, |orders, equal| (1..=equal.len()).fold(orders, |orders, of| orders.saturating_mul(of)));
    let mut all = vec![Vec::new()];
    for equal in &equal {
        let each = if orders > MOST_ORDERS { vec![equal.clone()] } else { permutations(equal) };
        all = all.iter().flat_map(|before| each.iter().map(|more| [&before[..], more].concat())).collect();
    }
    let renaming = |order: Vec<PodUid>| Renaming(order.into_iter().zip(alike.iter().copied()).collect());
    all.into_iter().map(renaming).collect()
}

fn permutations(pods: &[PodUid]) -> Vec<Vec<PodUid>> {
    let Some((first, rest)) = pods.split_first() else { return vec![Vec::new()] };
    let mut all = Vec::new();
    for order in permutations(rest) {
        for at in 0..=order.len() {
            let mut more = order.clone();
            more.insert(at, *first);
            all.push(more);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_orders_are_tried_each_once() {
        let orders = permutations(&[PodUid(1), PodUid(2), PodUid(3), PodUid(4)]);
        let different: std::collections::BTreeSet<&Vec<PodUid>> = orders.iter().collect();
        assert_eq!((orders.len(), different.len()), (24, 24));
    }
}
