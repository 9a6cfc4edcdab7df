//! The menu of faults: for a kind, one that strikes something which is there at this moment.

use super::chance::Chance;
use super::kind::Kind;
use super::{manifest, users};
use crate::scenario::{Crash, NodeChange, PodRef, Used, Verb};
use crate::world::{CrashPoint, Enabled, Ending, Fault, OpKey, OpKind, World};
use nodefold_core::event::{ErrorClass, ProbeKind};
use nodefold_core::resources::ResourceName;
use nodefold_core::time::Nanos;

/// What goes wrong, if there is anything for it to strike. `enabled` is what may happen next.
pub fn strike(kind: Kind, chance: &mut dyn Chance, world: &World, enabled: &[Enabled]) -> Vec<Verb> {
    let fail = |chance: &mut dyn Chance, class, done, of: &dyn Fn(OpKind) -> bool| {
        operation(chance, world, |key, has_happened| !has_happened && of(key.kind))
            .map(|operation| Verb::Fault(Fault::Fail { operation, class, done }))
    };
    let any = |kind: OpKind| kind != OpKind::Status;
    let status = |kind: OpKind| kind == OpKind::Status;
    let struck = match kind {
        Kind::FailFinal => fail(chance, ErrorClass::Final, false, &any),
        Kind::FailTransient => fail(chance, ErrorClass::Transient, false, &any),
        Kind::FailUncertain => fail(chance, ErrorClass::Uncertain, false, &any),
        Kind::TimeoutDone => fail(chance, ErrorClass::Uncertain, true, &any),
        Kind::StatusLost => fail(chance, ErrorClass::Transient, false, &status),
        Kind::StatusUncertain => fail(chance, ErrorClass::Uncertain, true, &status),
        Kind::StatusConflict => fail(chance, ErrorClass::Final, false, &status),
        Kind::Slow => operation(chance, world, |_, has_happened| !has_happened)
            .map(|label| Verb::Fault(Fault::Delay { choice: label, by: some_time(chance) })),
        Kind::LateAnswer => operation(chance, world, |_, has_happened| has_happened).map(|label| {
            Verb::Fault(Fault::Delay { choice: format!("answer of {label}"), by: some_time(chance) })
        }),
        Kind::AnswerTwice => operation(chance, world, |_, _| true)
            .map(|operation| Verb::Fault(Fault::Twice { operation, after: some_time(chance) })),
        Kind::AnswerAfterCrash => {
            let Some(operation) = operation(chance, world, |_, has_happened| has_happened) else {
                return Vec::new();
            };
            return vec![Verb::Fault(Fault::Linger { operation }), Verb::Crash(Crash::Agent)];
        }
        Kind::StopSlow | Kind::StopIgnored => slow_stop(kind, chance, world, &[]),
        Kind::Exit => running(chance, world).map(|(pod, container)| {
            let ending = match chance.below(5) {
                0 | 1 => Ending::Code(0),
                2 => Ending::Code(1),
                3 => Ending::Code(chance.between(2, 3) as i32),
                _ => Ending::KILLED,
            };
            Verb::Exit { pod, container, ending }
        }),
        Kind::ExitAgain => {
            let Some((pod, container)) = running(chance, world) else { return Vec::new() };
            let ending = if chance.once_in(1, 4) { Ending::Code(0) } else { Ending::Code(1) };
            let after = Nanos::millis(chance.between(1, 1500));
            return with_time(chance, Verb::Fault(Fault::Dies { pod, container, ending, after }));
        }
        Kind::Finish => {
            let finishing = world.finishing();
            let ending = if chance.once_in(1, 6) { Ending::Code(1) } else { Ending::Code(0) };
            chance.pick(&finishing).cloned().map(|(pod, container)| Verb::Exit { pod, container, ending })
        }
        Kind::Probe => running(chance, world).map(|(pod, container)| {
            let kind = [ProbeKind::Startup, ProbeKind::Liveness, ProbeKind::Readiness];
            let kind = chance.pick(&kind).copied().unwrap_or(ProbeKind::Readiness);
            Verb::Probe { pod, container, kind, passes: chance.once_in(1, 2) }
        }),
        Kind::Usage => running(chance, world).map(|(pod, container)| {
            let on_host = world.server().uid(&pod).map(|uid| world.volumes_on_host(uid)).unwrap_or_default();
            let of = match chance.pick(&on_host) {
                Some(volume) => Used::Volume(volume.to_string()),
                None => Used::Container(container),
            };
            Verb::Usage { pod, of, bytes: (1 << 20) * chance.between(0, 200) }
        }),
        Kind::WatchDelayed => choice(chance, world, enabled, |label| label.starts_with("delivery of"))
            .map(|choice| Verb::Fault(Fault::Delay { choice, by: some_time(chance) })),
        Kind::WatchCoalesced => {
            choice(chance, world, enabled, |label| label.starts_with("delivery of all")).map(Verb::Choose)
        }
        Kind::WatchDisconnected => {
            Some(Verb::Fault(Fault::Disconnect { lasts: Nanos::millis(chance.between(5, 30_000)) }))
        }
        Kind::Forbidden => {
            let watched: Vec<_> = world.server().watched().cloned().collect();
            chance
                .pick(&watched)
                .cloned()
                .map(|object| Verb::Fault(Fault::Forbid { object, lasts: some_time(chance) }))
        }
        Kind::ImageMissing => {
            let present = manifest::images().into_iter().filter(|_| chance.once_in(1, 2)).collect();
            return with_time(
                chance,
                Verb::Set(NodeChange { images: Some(present), ..NodeChange::default() }),
            );
        }
        Kind::ListPartial => operation(chance, world, |key, _| key.kind == OpKind::ObserveRuntime)
            .map(|operation| Verb::Fault(Fault::Partial { operation, leaves_out: chance.below(1 << 16) })),
        Kind::ListFailed => {
            let looks = |kind| matches!(kind, OpKind::ObserveMounts | OpKind::ObserveRuntime);
            fail(chance, ErrorClass::Transient, false, &looks)
        }
        Kind::SandboxDies => running(chance, world)
            .map(|(pod, _)| Verb::Fault(Fault::SandboxDies { pod, with_containers: chance.once_in(2, 3) })),
        Kind::Crash => Some(Verb::Crash(Crash::Agent)),
        Kind::CrashInside | Kind::CrashLoop => {
            // Soon after a start, or wherever the agent is.
            (kind == Kind::CrashInside || world.is_recovering())
                .then(|| Verb::Fault(Fault::Crash(crash(chance))))
        }
        Kind::Reboot => Some(Verb::Crash(Crash::Host)),
        Kind::Capacity => {
            let mut change = NodeChange::default();
            if chance.once_in(1, 2) {
                change.allocatable.set(ResourceName::Cpu, 500 * chance.between(1, 8));
            } else {
                change.allocatable.set(ResourceName::Memory, (256 << 20) * chance.between(1, 8));
            }
            Some(Verb::Set(change))
        }
        Kind::Labels => {
            let value = chance.once_in(2, 3).then(|| "yes".into());
            Some(Verb::Set(NodeChange { labels: vec![("zone".into(), value)], ..NodeChange::default() }))
        }
        Kind::Gates => {
            let mut change = NodeChange::default();
            let on = Some(chance.once_in(2, 3));
            if chance.once_in(1, 2) {
                change.dynamic_containers = on;
            } else {
                change.dynamic_volumes = on;
            }
            Some(Verb::Set(change))
        }
        Kind::ClockForward => Some(Verb::Fault(Fault::ClockForward(some_time(chance)))),
        Kind::ClockBack => Some(Verb::Fault(Fault::ClockBack(some_time(chance)))),
        Kind::DiskFull => {
            Some(Verb::Fault(Fault::DiskFull { lasts: Nanos::millis(chance.between(10, 20_000)) }))
        }
        Kind::Reorder => choice(chance, world, enabled, |_| true).map(Verb::Choose),
        // Users do these.
        Kind::ObjectChanged
        | Kind::ObjectDeleted
        | Kind::ObjectMissing
        | Kind::Create
        | Kind::Dynamic
        | Kind::Resize
        | Kind::Ephemeral
        | Kind::Update
        | Kind::Delete
        | Kind::ForceDelete
        | Kind::Invalid
        | Kind::StaticPod => None,
    };
    struck.into_iter().collect()
}

/// Between ten milliseconds and two minutes, each power of ten as likely.
pub fn some_time(chance: &mut dyn Chance) -> Nanos {
    let scale = [10, 100, 1_000, 10_000][chance.below(4) as usize];
    Nanos::millis(scale * chance.between(1, 12))
}

/// What comes again and again is nothing without the time for it.
fn with_time(chance: &mut dyn Chance, verb: Verb) -> Vec<Verb> {
    let time = chance.once_in(1, 2).then(|| Verb::Advance(Nanos::secs(chance.between(5, 70))));
    [verb].into_iter().chain(time).collect()
}

fn crash(chance: &mut dyn Chance) -> CrashPoint {
    match chance.below(4) {
        0 => CrashPoint::BeforeAppend,
        1 => CrashPoint::Unsynced(chance.below(1 << 16)),
        2 => CrashPoint::AfterAppend,
        _ => CrashPoint::AfterDispatch(chance.between(1, 3) as u32),
    }
}

/// An operation on its way, by its stable name.
fn operation(
    chance: &mut dyn Chance,
    world: &World,
    wanted: impl Fn(&OpKey, bool) -> bool,
) -> Option<String> {
    let found: Vec<&OpKey> =
        world.operations().filter(|(key, done)| wanted(key, *done)).map(|(key, _)| key).collect();
    chance.pick(&found).map(|key| world.label_of_operation(key))
}

/// A choice, by its stable name.
fn choice(
    chance: &mut dyn Chance,
    world: &World,
    enabled: &[Enabled],
    wanted: impl Fn(&str) -> bool,
) -> Option<String> {
    let labels: Vec<String> =
        enabled.iter().map(|e| world.label(&e.choice)).filter(|label| wanted(label)).collect();
    chance.pick(&labels).cloned()
}

/// A process that runs, by its pod's newest name and its container's.
/// Some container takes its time to stop, or does not hear of it; one that is about to be asked, if any is.
pub fn slow_stop(kind: Kind, chance: &mut dyn Chance, world: &World, asked: &[Verb]) -> Option<Verb> {
    let mut found = world.running();
    let concerned =
        |(pod, name): &(PodRef, String)| asked.iter().any(|verb| users::may_stop(verb, pod, name));
    if found.iter().any(concerned) {
        found.retain(concerned);
    }
    let (pod, container) = chance.pick(&found).cloned()?;
    let takes = (kind == Kind::StopSlow).then(|| Nanos::millis(chance.between(200, 40_000)));
    Some(Verb::Fault(Fault::Term { pod, container, takes }))
}

fn running(chance: &mut dyn Chance, world: &World) -> Option<(PodRef, String)> {
    let found = world.running();
    chance.pick(&found).cloned()
}
