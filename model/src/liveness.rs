//! Quiet at the end: what must hold of a trace once faults stopped and time enough has passed (L1–L5).
//!
//! Judged over the same view of the world as the safety oracles, without a second fold. Root causes come first: a storm
//! or a wait without an end also keeps pods from being released, and is told before that.

mod visible;
mod waits;

use crate::invariant::{Invariant, Violation};
use crate::world_view::WorldView;
use crate::world_view::operations::Lane;
use crate::world_view::pod::PodView;
use crate::world_view::volume::Host;
use nodefold_core::about::About;
use nodefold_core::command::{Action, Command, Subject};
use nodefold_core::config::Timing;
use nodefold_core::event::Fact;
use nodefold_core::ids::{Name, PodUid, VolumeId};
use nodefold_core::status::ConditionKind;
use nodefold_core::time::{Nanos, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// More commands of one kind for one container or volume within a minute are a timer storm. Retries at their shortest
/// delay, doubled each time, come to seven.
pub const COMMANDS_PER_MINUTE: usize = 20;

/// As many statuses of one pod within a minute are a storm, not the steps of its containers.
pub const STATUSES_PER_MINUTE: usize = 60;

/// Things of one pod remembered before the old ones are forgotten.
const THINGS_KEPT: usize = 64;

/// Kinds of commands remembered before those of a minute ago are forgotten.
const DEEDS_KEPT: usize = 512;

/// A removed volume that nobody holds is asked to go at once; the node may have to wake for it.
const LET_GO_WITHIN: Nanos = Nanos::secs(10);

const MINUTE: Nanos = Nanos::secs(60);

/// What a command is about, over all its lives: a storm may make a new instance each time.
type Deed = (PodUid, Option<Thing>, &'static str);

/// A container or a volume by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Thing {
    Container(Name),
    Volume(Name),
}

/// What is remembered of commands for the end.
#[derive(Clone, Debug)]
pub(crate) struct Quiet {
    /// Faults stopped then.
    healed: Option<Time>,
    timing: Timing,
    /// Commands since then, by what they are about: the records of the latest ones and their times.
    recent: BTreeMap<Deed, VecDeque<(usize, Time)>>,
    /// By pod: when something was last commanded about a thing, or about the pod itself.
    latest: BTreeMap<PodUid, BTreeMap<Option<Thing>, Time>>,
    stormed: bool,
    /// Removed volumes that nobody holds, and since when no unmount of them is commanded.
    let_go: BTreeMap<(PodUid, VolumeId), Time>,
    /// Pods that the latest fact and its commands were about.
    touched: BTreeSet<PodUid>,
    /// The latest fact was the node's own waking, and its time.
    woke: Option<Time>,
    /// The agent has seen the mount table since it started.
    mounts_seen: bool,
    /// And all that the runtime has.
    runtime_seen: bool,
}

impl Quiet {
    pub(crate) fn new(timing: Timing) -> Quiet {
        Quiet {
            healed: None,
            timing,
            recent: BTreeMap::new(),
            latest: BTreeMap::new(),
            stormed: false,
            let_go: BTreeMap::new(),
            touched: BTreeSet::new(),
            woke: None,
            mounts_seen: false,
            runtime_seen: false,
        }
    }

    /// How many things are remembered.
    pub(crate) fn remembered(&self) -> usize {
        self.latest.values().map(BTreeMap::len).sum::<usize>()
            + self.recent.values().map(VecDeque::len).sum::<usize>()
            + self.let_go.len()
    }

    /// Faults stop now.
    pub(crate) fn heal(&mut self, at: Time) {
        self.healed = Some(at);
        self.recent.clear();
    }

    /// The agent started: what it tries, it tries anew.
    pub(crate) fn agent_started(&mut self) {
        self.recent.clear();
        self.mounts_seen = false;
        self.runtime_seen = false;
    }

    /// A fact is told: whose batch of commands ended before it is judged, and what it is about is looked at when its own ends.
    pub(crate) fn fact(&mut self, world: &WorldView, fact: &Fact, at: Time) -> Vec<Violation> {
        let found = self.kept_on(world);
        self.touched.clear();
        self.touched.extend(fact.pod());
        self.woke = matches!(fact, Fact::Tick).then_some(at);
        self.mounts_seen |= matches!(fact, Fact::MountsObserved { .. });
        self.runtime_seen |= matches!(fact, Fact::RuntimeObserved { complete: true, .. });
        found
    }

    /// L2 as it goes: what keeps trying never comes to rest, so that a removed volume which nobody holds must be asked to go
    /// while the node is awake. A first unmount waits for nothing.
    fn kept_on(&mut self, world: &WorldView) -> Vec<Violation> {
        let mut found = Vec::new();
        // Before it has looked around, an agent waits, though a reboot may prove that nothing runs.
        if !self.runtime_seen || !self.mounts_seen {
            self.let_go.clear();
            return found;
        }
        self.let_go.retain(|(uid, id), _| world.pods.get(uid).is_some_and(|pod| is_kept_on(pod, id)));
        let now = world.now;
        for pod in self.touched.iter().filter_map(|uid| world.pods.get(uid)) {
            for volume in pod.volumes.iter().filter(|v| is_kept_on(pod, &v.id)) {
                self.let_go.entry((pod.uid, volume.id.clone())).or_insert(now);
            }
        }
        let Some(awake) = self.woke else { return found };
        let overdue = |since: &Time| since.after(LET_GO_WITHIN) <= awake;
        while let Some((uid, id)) =
            self.let_go.iter().find(|(_, since)| overdue(since)).map(|(k, _)| k.clone())
        {
            let since = self.let_go.remove(&(uid, id.clone()));
            let volume = world.pods.get(&uid).and_then(|pod| pod.volume(&id));
            let evidence = volume.into_iter().flat_map(|v| v.removed).collect();
            let explanation = format!(
                "nobody holds removed volume {id} for {}, and no unmount of it is commanded",
                awake.since(since.unwrap_or(awake))
            );
            let subject = Some(Subject::Volume(id));
            found.push(Violation {
                invariant: Invariant::L2,
                pod: uid,
                subject,
                at: awake,
                explanation,
                evidence,
            });
        }
        found
    }

    /// A pod was forgotten.
    pub(crate) fn forget(&mut self, pod: PodUid) {
        self.latest.remove(&pod);
        self.recent.retain(|(of, ..), _| *of != pod);
    }

    /// Only these pods are still remembered by anyone.
    pub(crate) fn keep(&mut self, kept: impl Fn(PodUid) -> bool) {
        self.latest.retain(|pod, _| kept(*pod));
        self.recent.retain(|(pod, ..), _| *pod == PodUid(0) || kept(*pod));
    }

    /// Something was commanded about a thing (or about the pod itself) so lately that a retry may still come.
    fn tried_lately(&self, pod: PodUid, thing: &Option<Thing>, now: Time) -> bool {
        let latest = self.latest.get(&pod).and_then(|things| things.get(thing));
        latest.is_some_and(|at| at.after(self.longest_delay()).after(MINUTE) > now)
    }

    /// L4 as it happens: more commands than any back-off allows.
    pub(crate) fn command(
        &mut self,
        world: &WorldView,
        command: &Command,
        at: Time,
        index: usize,
    ) -> Option<Violation> {
        // What is told to people costs the node nothing and needs no operation.
        if matches!(command.action, Action::RecordEvent(_)) {
            return None;
        }
        self.touched.insert(command.pod);
        let thing = match command.action.about() {
            About::Container(container) => Some(Thing::Container(container.name.clone())),
            About::Volume(volume) => Some(Thing::Volume(volume.name.clone())),
            About::Node | About::Pod | About::Sandbox(_) => None,
        };
        if command.pod != PodUid(0) {
            let stale = |then: Time| then.after(self.longest_delay()).after(MINUTE) <= at;
            let crowded = self.latest.get(&command.pod).is_some_and(|things| things.len() >= THINGS_KEPT);
            let old: Vec<Option<Thing>> = match self.latest.get(&command.pod).filter(|_| crowded) {
                Some(things) => things.iter().filter(|(_, at)| stale(**at)).map(|(t, _)| t.clone()).collect(),
                None => Vec::new(),
            };
            let things = self.latest.entry(command.pod).or_default();
            things.retain(|thing, _| !old.contains(thing));
            things.insert(thing.clone(), at);
        }
        let verb = command.action.verb();
        // What has a back-off keeps it whatever goes wrong; the rest counts once faults are over.
        if self.healed.is_none() && !backs_off(&command.action) {
            return None;
        }
        if self.healed.is_none() && self.recent.len() > DEEDS_KEPT {
            let late = |commands: &VecDeque<(usize, Time)>| {
                commands.back().is_some_and(|(_, latest)| latest.after(MINUTE) > at)
            };
            self.recent.retain(|_, commands| late(commands));
        }
        let recent = self.recent.entry((command.pod, thing, verb)).or_default();
        recent.push_back((index, at));
        // A status tells each step of each container, a few at a time.
        let is_status = matches!(command.action, Action::PublishStatus { .. });
        let most = if is_status { STATUSES_PER_MINUTE } else { COMMANDS_PER_MINUTE };
        if recent.len() <= most {
            return None;
        }
        let (first, since) = recent.pop_front()?;
        // A new definition doesn't wait for the old one's back-off.
        let wished = world.pods.get(&command.pod).is_some_and(|pod| pod.applied_index > first);
        if self.stormed || wished || since.after(MINUTE) <= at {
            return None;
        }
        self.stormed = true;
        Some(Violation {
            invariant: Invariant::L4,
            pod: command.pod,
            subject: Some(subject_of(command)),
            at,
            explanation: format!("more than {most} commands \"{verb}\" within one minute"),
            evidence: vec![first, index],
        })
    }

    /// Judges the end.
    pub(crate) fn judge(&self, world: &WorldView, now: Time) -> Vec<Violation> {
        let healed = self.healed.unwrap_or(Time(0));
        let mut found = self.goes_on(world, healed, now);
        for pod in world.pods.values() {
            let mut end = AtTheEnd { pod, world, quiet: self, healed, now, found: &mut found };
            end.operations_completed();
            end.removed_is_gone();
            end.deleted_is_released();
            end.waits_can_end();
            end.wish_is_visible();
        }
        // Root causes first, whichever pod shows them.
        found.sort_by_key(|violation| rank(violation.invariant));
        found
    }

    /// The longest that anything waits before it is tried again.
    fn longest_delay(&self) -> Nanos {
        let t = &self.timing;
        let delays = [
            t.crash_backoff_max,
            t.pull_backoff_max,
            t.volume_backoff_max,
            t.retry_backoff_max,
            t.allocation_retry,
        ];
        delays.into_iter().fold(Nanos::ZERO, |longest, delay| longest.max(delay))
    }

    /// L4, the livelock: the same commands come round again and again, though slower than a storm. Once faults have been
    /// over for the longest delay twice, everything that is still tried has reached it: within a third such time a
    /// thing's command comes once, or twice at the edges.
    fn goes_on(&self, world: &WorldView, healed: Time, now: Time) -> Vec<Violation> {
        let longest = self.longest_delay();
        let (settled, window) = (Nanos(longest.0 * 2), longest);
        if healed.after(settled).after(window) > now {
            return Vec::new();
        }
        let mut found = Vec::new();
        for ((pod, thing, verb), recent) in &self.recent {
            let within: Vec<usize> =
                recent.iter().filter(|(_, at)| at.after(window) > now).map(|(index, _)| *index).collect();
            // Volumes have a delay of their own; a status tells each of a few steps of each try.
            let retries = match (thing, *verb) {
                // A credential is renewed once a minute at most.
                (Some(Thing::Volume(_)), "refresh") => window.0 / MINUTE.0 + 1,
                (Some(Thing::Volume(_)), _) => window.0 / self.timing.volume_backoff_max.0.max(1) + 1,
                (None, _) => (window.0 / self.timing.retry_backoff_max.0.max(1) + 1) * 2,
                (Some(Thing::Container(_)), _) => window.0 / self.timing.retry_backoff_max.0.max(1) + 1,
            };
            let (Some(first), Some(last)) = (within.first(), within.last()) else { continue };
            if within.len() as u64 > retries && world.pods.contains_key(pod) {
                found.push(Violation {
                    invariant: Invariant::L4,
                    pod: *pod,
                    subject: Some(Subject::Pod),
                    at: now,
                    explanation: format!(
                        "faults stopped {} ago, and \"{verb}\" was commanded {} more times within the last {window}",
                        now.since(healed),
                        within.len()
                    ),
                    evidence: vec![*first, *last],
                });
            }
        }
        found
    }
}

/// A removed volume that is whole on the host, that no container holds or may hold, and that was never asked to go.
fn is_kept_on(pod: &PodView, id: &VolumeId) -> bool {
    let Some(volume) = pod.volume(id) else { return false };
    let held = pod.containers.iter().any(|c| c.may_run() && c.may_hold(id));
    let busy = pod.in_flight.iter().any(|o| o.lane == Lane::Volume(id.clone()));
    let known = volume.host == Host::Ready && volume.removed.is_some() && volume.unmount.is_none();
    known && !held && !busy && pod.termination.is_none() && pod.left_source.is_none()
}

/// Whether repeating the action costs a delay that doubles.
fn backs_off(action: &Action) -> bool {
    match action {
        Action::MountVolume { .. }
        | Action::UnmountVolume { .. }
        | Action::PullImage { .. }
        | Action::CreateSandbox { .. }
        | Action::CreateContainer { .. }
        | Action::StartContainer { .. } => true,
        Action::RefreshVolume { .. }
        | Action::StopSandbox { .. }
        | Action::RemoveSandbox { .. }
        | Action::StopContainer { .. }
        | Action::KillContainer { .. }
        | Action::RemoveContainer { .. }
        | Action::ResizeContainer { .. }
        | Action::ResizePod { .. }
        | Action::RunHook { .. }
        | Action::StartProbe { .. }
        | Action::StopProbe { .. }
        | Action::ObserveMounts
        | Action::ObserveRuntime
        | Action::PublishStatus { .. }
        | Action::RecordEvent(_)
        | Action::ReleasePod
        | Action::CreateMirror { .. }
        | Action::DeleteMirror { .. } => false,
    }
}

/// A livelock or a wait without a producer explains why something isn't gone, and that why something isn't shown.
fn rank(invariant: Invariant) -> usize {
    let order = [Invariant::L4, Invariant::L5, Invariant::L2, Invariant::L3, Invariant::L1];
    order.iter().position(|i| *i == invariant).unwrap_or(order.len())
}

fn subject_of(command: &Command) -> Subject {
    match command.action.about() {
        About::Container(container) => Subject::Container(container.clone()),
        About::Volume(volume) => Subject::Volume(volume.clone()),
        About::Node | About::Pod | About::Sandbox(_) => Subject::Pod,
    }
}

/// One pod at the end.
struct AtTheEnd<'a> {
    pod: &'a PodView,
    world: &'a WorldView,
    quiet: &'a Quiet,
    healed: Time,
    now: Time,
    found: &'a mut Vec<Violation>,
}

impl AtTheEnd<'_> {
    fn report(&mut self, invariant: Invariant, subject: Subject, explanation: String, evidence: &[usize]) {
        let mut evidence = evidence.to_vec();
        evidence.sort_unstable();
        evidence.dedup();
        let (pod, at) = (self.pod.uid, self.now);
        self.found.push(Violation { invariant, pod, subject: Some(subject), at, explanation, evidence });
    }

    /// The pod's object is deleted, or gone from its source.
    fn is_leaving(&self) -> bool {
        let deleted = self.pod.applied.as_ref().is_some_and(|p| p.deletion.is_some());
        deleted || self.pod.left_source.is_some()
    }

    /// The node says that it has allocated what is wished: it has seen that generation, and nothing pends.
    fn says_allocated(&self) -> bool {
        let (Some(applied), Some((_, status))) = (&self.pod.applied, &self.pod.published) else {
            return false;
        };
        let pends = status.conditions.iter().any(|c| c.kind == ConditionKind::PodResizePending && c.status);
        status.observed_generation >= applied.generation && !pends
    }

    /// L2. A pod that leaves is L3's to judge.
    fn removed_is_gone(&mut self) {
        let pod = self.pod;
        if self.is_leaving() {
            return;
        }
        // A removal is shown by a command, or by the node's own word that it allocated a wish without the thing.
        let wish = pod.applied.as_ref().filter(|_| self.says_allocated() && pod.termination.is_none());
        for volume in pod.volumes.iter().filter(|v| v.may_be_on_host()) {
            let unwished =
                wish.filter(|p| p.spec.volume(&volume.id.name).is_none()).map(|_| pod.applied_index);
            if let Some(removed) = volume.removed.or(unwished) {
                let explanation = format!("removed volume {} is still {}", volume.id, volume.host_in_words());
                let evidence = [removed, volume.host_index];
                self.report(Invariant::L2, Subject::Volume(volume.id.clone()), explanation, &evidence);
            }
        }
        for container in pod.containers.iter().filter(|c| c.may_run()) {
            let unwished = wish.filter(|p| !names(&p.spec).any(|name| *name == container.id.name));
            if let Some(removed) = container.removed.or(unwished.map(|_| pod.applied_index)) {
                let explanation =
                    format!("removed container {} is still {}", container.id, container.life_in_words());
                let evidence = [removed, container.proof()];
                self.report(Invariant::L2, Subject::Container(container.id.clone()), explanation, &evidence);
            }
        }
    }

    /// L3. A pod whose object is gone is forgotten by the view only once nothing of it lives.
    fn deleted_is_released(&mut self) {
        let pod = self.pod;
        if let Some(termination) = pod.termination
            && self.is_leaving()
        {
            let explanation = match (pod.running(), pod.released) {
                (Some(running), _) => {
                    format!(
                        "the deleted pod is not released: container {} is {}",
                        running.id,
                        running.life_in_words()
                    )
                }
                (None, None) => "the deleted pod is not released, and nothing of it runs".to_owned(),
                (None, Some(_)) => "the deleted pod's release was commanded and has not happened".to_owned(),
            };
            self.report(Invariant::L3, Subject::Pod, explanation, &[termination.index]);
        }
    }
}

/// The names of a spec's containers of all kinds.
fn names(spec: &nodefold_core::spec::PodSpec) -> impl Iterator<Item = &Name> {
    spec.init_containers
        .iter()
        .chain(&spec.containers)
        .chain(&spec.ephemeral_containers)
        .map(|container| &container.name)
}
