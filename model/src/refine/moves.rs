//! Explains a change as permitted moves: each thing's own path through its table, and one order of all of them in which
//! every need holds when its move is made.

use super::Situation;
use super::abstraction::{Container, PodView, Volume};
use crate::spec::allocation::{self, Promise};
use crate::spec::container::{self, Life};
use crate::spec::pod::{self, Pod};
use crate::spec::sandbox::{self, Sandbox};
use crate::spec::*;
use nodefold_core::state::ContainerKind;
use std::collections::VecDeque;
use std::fmt::Debug;

/// No step takes one thing through more rows of its table than this.
const LONGEST: usize = 4;

/// One move, and what it does to the abstract pod.
#[derive(Clone, Debug)]
struct Move {
    by: By,
    needs: Needs,
    what: String,
    effect: Effect,
}

#[derive(Copy, Clone, Debug)]
enum Effect {
    Pod(Pod),
    Allocated,
    Redefined,
    Sandbox(usize, Sandbox),
    VolumePromise(usize, Promise),
    Volume(usize, volume::Volume),
    ContainerPromise(usize, Promise),
    /// The new state of the life, and whether it is the life of the state after.
    Life(usize, Life, bool),
    Doom(usize),
}

/// The pod on its way from before to after: everything that is in either.
struct Work<'a> {
    before: &'a PodView,
    after: &'a PodView,
    now: PodView,
    situation: Situation,
    allocating: bool,
    /// The pod's life ends in this step and another one follows it.
    reborn: bool,
}

/// Explains the change, or says what can't be.
pub(super) fn explain(before: &PodView, after: &PodView, situation: Situation) -> Result<(), String> {
    let pod_way = path(pod::TABLE, before.life, after.life, situation)
        .ok_or_else(|| no_way("the pod", &before.life, &after.life))?;
    let unexplained = match explain_by(&pod_way, before, after, situation) {
        Ok(()) => return Ok(()),
        Err(unexplained) => unexplained,
    };
    // A pod may end for several reasons in one step, and pass through several states: what its parts did tells which.
    let others = ways(pod::TABLE, before.life, after.life, situation);
    let mut others = others.into_iter().filter(|way| *way != pod_way);
    if others.any(|way| explain_by(&way, before, after, situation).is_ok()) {
        Ok(())
    } else {
        Err(unexplained)
    }
}

/// Explains the change, if this is what the pod itself went through.
fn explain_by(
    pod_way: &[&'static Row<Pod>],
    before: &PodView,
    after: &PodView,
    situation: Situation,
) -> Result<(), String> {
    let mut work = Work::new(before, after, situation);
    work.follow(pod_way);
    let lanes = work.lanes(pod_way)?;
    if !situation.timers_first {
        return work.in_order(lanes);
    }
    // Timers fired before the fact: what the node did may have come first.
    work.in_order(lanes.clone()).or_else(|_| {
        let mut work = Work::new(before, after, situation);
        work.follow(pod_way);
        work.in_any_order(lanes)
    })
}

/// The shortest way through a table by those who may have moved in this step: of several, one that needs nothing, since
/// whoever may have moved so is not to be blamed for lacking something; else the table's first.
fn path<S: Copy + PartialEq + Debug>(
    table: &'static [Row<S>],
    from: S,
    to: S,
    situation: Situation,
) -> Option<Vec<&'static Row<S>>> {
    if from == to {
        return Some(Vec::new());
    }
    let mut on_the_way = vec![Vec::new()];
    for _ in 0..LONGEST {
        let (longer, there) = lengthen(table, on_the_way, (from, to), situation);
        let is_free = |way: &&Vec<&Row<S>>| way.iter().all(|row| row.needs == Needs::NONE);
        if let Some(way) = there.iter().find(is_free).or(there.first()) {
            return Some(way.clone());
        }
        on_the_way = longer;
    }
    None
}

/// Ways, each with one more row: those that go on, and those that are there.
#[expect(clippy::type_complexity, reason = "two lists of the same")]
fn lengthen<S: Copy + PartialEq + Debug>(
    table: &'static [Row<S>],
    ways: Vec<Vec<&'static Row<S>>>,
    (from, to): (S, S),
    situation: Situation,
) -> (Vec<Vec<&'static Row<S>>>, Vec<Vec<&'static Row<S>>>) {
    let (mut longer, mut there) = (Vec::new(), Vec::new());
    for way in ways {
        let at = way.last().map_or(from, |row| row.to);
        // What the node has just commanded is not answered in the same step.
        let commanded = !situation.timers_first && way.last().is_some_and(|row| row.by == By::Node);
        let may = |row: &Row<S>| {
            let by_node = matches!(row.by, By::Node | By::Allocation);
            row.from == at && situation.movers.may(row.by, row.act) && (by_node || !commanded)
        };
        for row in table.iter().filter(|row| may(row)) {
            let mut way = way.clone();
            way.push(row);
            if row.to == to { there.push(way) } else { longer.push(way) }
        }
    }
    (longer, there)
}

/// Every way through a table by those who may have moved in this step, the shorter ones first.
fn ways<S: Copy + PartialEq + Debug>(
    table: &'static [Row<S>],
    from: S,
    to: S,
    situation: Situation,
) -> Vec<Vec<&'static Row<S>>> {
    let (mut all, mut on_the_way) = (Vec::new(), vec![Vec::new()]);
    for _ in 0..LONGEST {
        let (longer, there) = lengthen(table, on_the_way, (from, to), situation);
        all.extend(there);
        on_the_way = longer;
    }
    all
}

fn no_way(what: &str, from: &dyn Debug, to: &dyn Debug) -> String {
    format!("{what} went from {from:?} to {to:?}, which no moves of the specification do")
}

impl<'a> Work<'a> {
    fn new(before: &'a PodView, after: &'a PodView, situation: Situation) -> Work<'a> {
        let mut now = before.clone();
        for (attempt, _) in &after.sandboxes {
            if !now.sandboxes.iter().any(|(a, _)| a == attempt) {
                now.sandboxes.push((*attempt, Sandbox::None));
            }
        }
        for v in &after.volumes {
            if !now.volumes.iter().any(|w| w.id == v.id) {
                now.volumes.push(Volume {
                    life: volume::Volume::Absent,
                    promise: Promise::None,
                    ..v.clone()
                });
            }
        }
        for c in &after.containers {
            match now.containers.iter_mut().find(|d| is_same(c, d)) {
                Some(known) => {
                    // What the step's facts said of it is known from its beginning.
                    (known.own_cause, known.may_run) = (c.own_cause, c.may_run);
                    known.mounts = c.mounts.clone();
                }
                None => now.containers.push(Container {
                    life: Life::None,
                    promise: Promise::None,
                    doomed: false,
                    leases: None,
                    ..c.clone()
                }),
            }
        }
        now.object_gone |= after.object_gone || situation.object_gone;
        now.told |= after.told;
        now.surplus = after.surplus;
        (now.initialized, now.whole) = (after.initialized, after.whole);
        let allocating = before.allocated != after.allocated && after.life != Pod::Absent;
        Work { before, after, now, situation, allocating, reborn: false }
    }

    /// Where a life ends and another follows, what that one has is allocated to it, though it be the same.
    fn follow(&mut self, pod_way: &[&'static Row<Pod>]) {
        self.reborn = self.after.life != Pod::Absent && pod_way.iter().any(|row| row.to == Pod::Absent);
        self.allocating |= self.reborn && self.after.allocated.is_some();
    }

    /// The moves of each thing, in its own order. Things are in the order of the node's rooms.
    fn lanes(&self, pod_way: &[&'static Row<Pod>]) -> Result<Vec<VecDeque<Move>>, String> {
        let mut lanes = vec![self.allocation_lane()];
        for i in 0..self.now.volumes.len() {
            lanes.push(self.volume_lane(i)?);
        }
        for i in 0..self.now.containers.len() {
            lanes.extend(self.container_lanes(i)?);
        }
        for i in 0..self.now.sandboxes.len() {
            lanes.push(self.sandbox_lane(i)?);
        }
        // First where the world moves it, last where the node concludes.
        let a_move = |row: &&'static Row<Pod>| a_move(row, "the pod", Effect::Pod(row.to));
        lanes.insert(0, pod_way.iter().map(a_move).collect());
        lanes.retain(|lane| !lane.is_empty());
        Ok(lanes)
    }

    fn allocation_lane(&self) -> VecDeque<Move> {
        let admitted = self.before.allocated.is_some() && self.before.life != Pod::Absent;
        let row = allocation::TRANSACTION.iter().find(|row| row.from == admitted);
        row.filter(|_| self.allocating && self.after.allocated.is_some())
            .map(|row| a_move(row, "the pod's spec", Effect::Allocated))
            .into_iter()
            .collect()
    }

    fn promise_moves(
        &self,
        what: &str,
        (from, to): (Promise, Promise),
        so: Needs,
        effect: impl Fn(Promise) -> Effect,
    ) -> Result<Vec<Move>, String> {
        // A promise ends with what it is about, and that has rules of its own; but it is withdrawn before that, unless the
        // pod is over and nothing was allocated.
        let may_withdraw =
            self.after.life == Pod::Active || (self.allocating && self.after.allocated.is_some());
        let to = match to {
            Promise::None if may_withdraw && !self.reborn && from == Promise::Kept => Promise::Removed,
            Promise::None => return Ok(Vec::new()),
            Promise::Kept | Promise::Removed => to,
        };
        let rows: Vec<&Row<Promise>> = allocation::TABLE
            .iter()
            .filter(|r| r.from == from && r.to == to && self.situation.movers.may(r.by, r.act))
            .collect();
        // Where several rows do the same, the one whose needs hold is the one.
        let best = rows.iter().find(|r| r.needs.hold_in(so));
        match (from == to, best.or(rows.first())) {
            (true, _) => Ok(Vec::new()),
            (false, Some(row)) => Ok(vec![a_move(*row, what, effect(row.to))]),
            (false, None) => Err(no_way(what, &from, &to)),
        }
    }

    fn volume_lane(&self, i: usize) -> Result<VecDeque<Move>, String> {
        let was = &self.now.volumes[i];
        let is = self.after.volumes.iter().find(|v| v.id == was.id);
        let (life, promise) = is.map_or((volume::Volume::Absent, Promise::None), |v| (v.life, v.promise));
        let what = format!("volume {}", was.id);
        let so = self.pod_situation().and(self.volume_situation(i));
        let mut lane =
            self.promise_moves(&what, (was.promise, promise), so, |p| Effect::VolumePromise(i, p))?;
        let way = path(volume::TABLE, was.life, life, self.situation)
            .ok_or_else(|| no_way(&what, &was.life, &life))?;
        lane.extend(way.into_iter().map(|row| a_move(row, &what, Effect::Volume(i, row.to))));
        Ok(lane.into())
    }

    fn sandbox_lane(&self, i: usize) -> Result<VecDeque<Move>, String> {
        let (attempt, from) = self.now.sandboxes[i];
        let is = self.after.sandboxes.iter().find(|(a, _)| *a == attempt);
        let to = is.map_or(Sandbox::None, |(_, s)| *s);
        let what = format!("sandbox {attempt}");
        let way = path(sandbox::TABLE, from, to, self.situation).ok_or_else(|| no_way(&what, &from, &to))?;
        Ok(way.into_iter().map(|row| a_move(row, &what, Effect::Sandbox(i, row.to))).collect())
    }

    /// Its promise, its definition, its doom, its life: doom comes before the life's moves that need it.
    fn container_lanes(&self, i: usize) -> Result<Vec<VecDeque<Move>>, String> {
        let was = &self.now.containers[i];
        let is = self.after.containers.iter().find(|c| is_same(c, was));
        let what = format!("container {}#{}", was.name, was.incarnation);
        let promise = is.map_or(Promise::None, |c| c.promise);
        let so = self.pod_situation().and(self.container_situation(i));
        let mut moves =
            self.promise_moves(&what, (was.promise, promise), so, |p| Effect::ContainerPromise(i, p))?;
        let known = self.before.containers.iter().any(|c| is_same(c, was));
        if let Some(is) = is.filter(|is| known && is.definition != was.definition) {
            let needs = ACTIVE.and(ALLOCATING).when(is.kind != ContainerKind::Ephemeral);
            let what = format!("{what}: redefine");
            moves.push(Move { by: By::Allocation, needs, what, effect: Effect::Redefined });
        }
        let (life, attempt, doomed) = is.map_or((Life::None, 0, false), |c| (c.life, c.attempt, c.doomed));
        let another = was.life.may_run() && life.may_run() && was.attempt != attempt;
        let is_new_life = another || !was.life.may_run();
        let way = |from, to| {
            path(container::TABLE, from, to, self.situation).ok_or_else(|| no_way(&what, &from, &to))
        };
        let (first, second) = if another {
            (way(was.life, Life::None)?, way(Life::None, life)?)
        } else {
            (way(was.life, life)?, Vec::new())
        };
        let step = |row: &'static Row<Life>, new| a_move(row, &what, Effect::Life(i, row.to, new));
        let lives: Vec<Move> = first
            .into_iter()
            .map(|row| step(row, is_new_life && !another))
            .chain(second.into_iter().map(|row| step(row, true)))
            .collect();
        let doom = (doomed && (is_new_life || !was.doomed))
            .then(|| a_move(&container::DOOM[0], &what, Effect::Doom(i)));
        if !is_new_life && was.doomed && !doomed && life.may_run() {
            return Err(format!("{what} was told to end, and is to live on"));
        }
        // Facts about the life come first; a life that is to end is told so before it is discarded.
        let facts = lives.iter().take_while(|m| m.by != By::Node).count();
        let mut life_lane: VecDeque<Move> = lives.into();
        if let Some(doom) = doom {
            let at = if is_new_life { life_lane.len() } else { facts };
            life_lane.insert(at, doom);
        }
        Ok(vec![moves.into(), life_lane])
    }

    /// The order of the node's own rooms: a crash, looks, the world's facts, allocation, then what the node does.
    fn in_order(&mut self, mut lanes: Vec<VecDeque<Move>>) -> Result<(), String> {
        const ORDER: [By; 6] = [By::Crash, By::Look, By::World, By::Fault, By::Allocation, By::Node];
        while lanes.iter().any(|lane| !lane.is_empty()) {
            for by in ORDER {
                if by == By::Allocation {
                    self.allocate(&mut lanes)?;
                    continue;
                }
                // The pod's own conclusions come last.
                let (pod, rest): (Vec<usize>, Vec<usize>) = (0..lanes.len())
                    .partition(|i| matches!(lanes[*i].front(), Some(Move { effect: Effect::Pod(_), .. })));
                let order = if by == By::Node { [rest, pod].concat() } else { [pod, rest].concat() };
                for i in order {
                    while let Some(next) = lanes[i].pop_front_if(|m| m.by == by) {
                        self.make(&next)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// A transaction: its parts in any order that works, the pod's own admission or end when nothing else is left to do.
    fn allocate(&mut self, lanes: &mut [VecDeque<Move>]) -> Result<(), String> {
        let by_allocation = |lane: &VecDeque<Move>| lane.front().is_some_and(|m| m.by == By::Allocation);
        loop {
            let ready = |lane: &VecDeque<Move>| {
                by_allocation(lane) && lane.front().is_some_and(|m| self.permits(m).is_ok())
            };
            let of_pod =
                |lane: &VecDeque<Move>| lane.front().is_some_and(|m| matches!(m.effect, Effect::Pod(_)));
            let next = (0..lanes.len()).filter(|i| ready(&lanes[*i])).min_by_key(|i| of_pod(&lanes[*i]));
            let stuck = lanes.iter().position(by_allocation);
            match next.or(stuck).and_then(|i| lanes[i].pop_front()) {
                Some(next) => self.make(&next)?,
                None => return Ok(()),
            }
        }
    }

    /// Any order that works: each move as early as it can be, the node's own before the world's, and the pod's after those of
    /// its parts, since most of them need it as it was.
    fn in_any_order(&mut self, mut lanes: Vec<VecDeque<Move>>) -> Result<(), String> {
        loop {
            let ready = |lane: &VecDeque<Move>| lane.front().is_some_and(|m| self.permits(m).is_ok());
            let rank = |lane: &VecDeque<Move>| {
                lane.front().map(|m| (matches!(m.effect, Effect::Pod(_)), m.by != By::Node))
            };
            let next = (0..lanes.len()).filter(|i| ready(&lanes[*i])).min_by_key(|i| rank(&lanes[*i]));
            match next {
                Some(i) => {
                    if let Some(next) = lanes[i].pop_front() {
                        self.make(&next)?;
                    }
                }
                None => match lanes.iter().find_map(|lane| lane.front()) {
                    Some(stuck) => return self.permits(stuck),
                    None => return Ok(()),
                },
            }
        }
    }

    fn permits(&self, next: &Move) -> Result<(), String> {
        let so = self.pod_situation().and(match next.effect {
            Effect::Volume(i, _) | Effect::VolumePromise(i, _) => self.volume_situation(i),
            Effect::Life(i, ..) | Effect::Doom(i) | Effect::ContainerPromise(i, _) => {
                self.container_situation(i)
            }
            Effect::Pod(_) | Effect::Allocated | Effect::Redefined | Effect::Sandbox(..) => Needs::NONE,
        });
        let missing: Vec<&str> = next.needs.missing_in(so).words().collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(format!("{} is not permitted: it needs \"{}\"", next.what, missing.join("\", \"")))
    }

    fn make(&mut self, next: &Move) -> Result<(), String> {
        self.permits(next)?;
        match next.effect {
            Effect::Pod(life) => self.now.life = life,
            Effect::Allocated => self.now.allocated = self.after.allocated,
            Effect::Redefined => {}
            Effect::Sandbox(i, sandbox) => self.now.sandboxes[i].1 = sandbox,
            Effect::VolumePromise(i, promise) => self.now.volumes[i].promise = promise,
            Effect::Volume(i, life) => self.now.volumes[i].life = life,
            Effect::ContainerPromise(i, promise) => self.now.containers[i].promise = promise,
            Effect::Life(i, life, new) => {
                let container = &mut self.now.containers[i];
                container.life = life;
                if !life.may_run() {
                    container.leases = None;
                    container.doomed = false;
                } else if new {
                    let is = self.after.containers.iter().find(|c| is_same(c, container));
                    container.leases = is.and_then(|c| c.leases.clone());
                }
            }
            Effect::Doom(i) => self.now.containers[i].doomed = true,
        }
        Ok(())
    }

    fn pod_situation(&self) -> Needs {
        let pod = &self.now;
        let live = matches!(pod.life, Pod::Active | Pod::Terminating);
        let main_runs =
            |c: &Container| c.kind == ContainerKind::Main && c.promise == Promise::Kept && c.life.may_run();
        let runs = pod.surplus || pod.containers.iter().any(|c| c.life.may_run());
        let newest =
            pod.sandboxes.iter().filter(|(_, s)| *s != Sandbox::None).max_by_key(|(attempt, _)| *attempt);
        let looking = self.situation.looking || self.before.life == Pod::Absent;
        self.situation
            .seen
            .situation()
            .and(LOOKING.when(looking))
            .and(ACTIVE.when(pod.life == Pod::Active))
            .and(LIVE.when(live))
            .and(NOTHING_RUNS.when(!runs))
            .and(SANDBOX_READY.when(matches!(newest, Some((_, Sandbox::Ready)))))
            .and(SANDBOXES_DOWN.when(pod.sandboxes.iter().all(|(_, s)| s.is_down())))
            .and(VOLUMES_GONE.when(pod.volumes.iter().all(|v| v.life == volume::Volume::Absent)))
            .and(TOLD.when(pod.told))
            .and(OBJECT_GONE.when(pod.object_gone))
            .and(UNADMITTED.when(self.before.allocated.is_none()))
            .and(OUT_OF_TIME.when(self.after.out_of_time))
            .and(PREEMPTED.when(self.after.preempted))
            .and(RUN_OUT.when(!pod.containers.iter().any(main_runs)))
            .and(ALLOCATING.when(self.allocating))
            .and(WHOLE.when(pod.whole || self.situation.images_bypass))
            // The end of the last init container and what may be made after it are one step.
            .and(CREATION_READY.when(self.after.once || self.creation_ready()))
    }

    fn creation_ready(&self) -> bool {
        let pod = &self.now;
        let kept = pod.containers.iter().filter(|c| c.promise == Promise::Kept);
        let names: Vec<&str> = kept.flat_map(|c| c.mounts.each()).map(|m| &*m.name).collect();
        let mut volumes = pod.volumes.iter().filter(|v| v.promise == Promise::Kept);
        volumes.all(|v| v.life.is_set_up() || !names.contains(&&*v.id.name))
    }

    fn volume_situation(&self, i: usize) -> Needs {
        let (pod, volume) = (&self.now, &self.now.volumes[i]);
        let kept = volume.promise == Promise::Kept;
        let admitted = matches!(pod.life, Pod::Active | Pod::Terminating);
        let other = |v: &Volume| v.id.name == volume.id.name && v.id != volume.id && v.life.may_be_there();
        let runs = |c: &Container| c.life.may_run();
        let holds = |c: &Container| c.leases.iter().flat_map(|l| l.iter()).any(|l| *l == volume.id);
        let unknown = pod.surplus || pod.allocated.is_none() && pod.containers.iter().any(runs);
        KEPT.when(kept)
            .and(GOING.when(!kept && admitted || pod.life.has_ended()))
            .and(NAME_FREE.when(!pod.volumes.iter().any(other)))
            .and(UNHELD.when(!unknown && !pod.containers.iter().any(holds)))
    }

    fn container_situation(&self, i: usize) -> Needs {
        let (pod, container) = (&self.now, &self.now.containers[i]);
        let kept = container.promise == Promise::Kept;
        let same_name = |c: &Container| c.name == container.name && c.incarnation != container.incarnation;
        let ready = |name: &str| {
            let mut volumes =
                pod.volumes.iter().filter(|v| v.promise == Promise::Kept && &*v.id.name == name);
            volumes.any(|v| v.life.is_set_up())
        };
        let other_init =
            |(j, c): (usize, &Container)| j != i && c.kind == ContainerKind::Init && c.life.may_run();
        let in_turn = match container.kind {
            ContainerKind::Main => pod.initialized,
            ContainerKind::Init => !pod.containers.iter().enumerate().any(other_init),
            ContainerKind::Sidecar | ContainerKind::Ephemeral => true,
        };
        KEPT.when(kept)
            .and(NAME_FREE.when(!pod.containers.iter().any(|c| same_name(c) && c.life.may_run())))
            .and(VOLUMES_READY.when(container.mounts.each().iter().all(|m| ready(&m.name))))
            .and(IN_TURN.when(in_turn))
            .and(MAY_RUN.when(container.may_run))
            .and(DOOMED.when(container.doomed))
            .and(UNDOOMED.when(!container.doomed))
            .and(OWN_CAUSE.when(container.own_cause))
            .and(EPHEMERAL.when(container.kind == ContainerKind::Ephemeral))
    }
}

fn is_same(a: &Container, b: &Container) -> bool {
    a.incarnation == b.incarnation && a.name == b.name
}

fn a_move<S: Debug>(row: &Row<S>, what: &str, effect: Effect) -> Move {
    Move { by: row.by, needs: row.needs, what: format!("{what}: {}", row.act), effect }
}
