//! The lives of things, gathered while a run goes on: one per pod, container incarnation and volume, each a list of
//! phases with the time of their beginning. A chart and a live timeline are both drawn from these.

use crate::names::Names;
use crate::paint::{Kind, Phase};
use nodefold_core::command::{Subject, Transition};
use nodefold_core::event::{Event, Fact};
use nodefold_core::ids::{Name, PodUid, VolumeId};
use nodefold_core::time::Time;
use nodefold_harness::Record;

/// One thing that lives, drawn as a lane. Restarts of a container stay in its lane: they are attempts of one
/// incarnation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// A pod.
    Pod(PodUid),
    /// A container's incarnation.
    Container(PodUid, Name, u32),
    /// A volume.
    Volume(PodUid, VolumeId),
}

impl Lane {
    /// The lane that a transition belongs to; a sandbox has none of its own.
    pub fn of(transition: &Transition) -> Option<Lane> {
        let pod = transition.pod;
        match &transition.subject {
            Subject::Pod => Some(Lane::Pod(pod)),
            Subject::Sandbox(_) => None,
            Subject::Container(id) => Some(Lane::Container(pod, id.name.clone(), id.incarnation)),
            Subject::Volume(id) => Some(Lane::Volume(pod, id.clone())),
        }
    }

    /// What kind of thing it is.
    pub fn kind(&self) -> Kind {
        match self {
            Lane::Pod(_) => Kind::Pod,
            Lane::Container(..) => Kind::Container,
            Lane::Volume(..) => Kind::Volume,
        }
    }

    /// Its pod.
    pub fn pod(&self) -> PodUid {
        match self {
            Lane::Pod(pod) | Lane::Container(pod, ..) | Lane::Volume(pod, _) => *pod,
        }
    }

    /// Its name in its pod, its later lives told apart.
    pub fn own_name(&self, names: &Names) -> String {
        let numbered = |name: &str, life: u32| match life {
            0 => name.to_owned(),
            n => format!("{name}#{n}"),
        };
        match self {
            Lane::Pod(pod) => names.short(*pod),
            Lane::Container(_, name, incarnation) => numbered(name, *incarnation),
            Lane::Volume(_, id) => numbered(&id.name, id.generation),
        }
    }
}

/// A moment in a life that is worth a glyph of its own.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Moment {
    /// A process ended well.
    Succeeded,
    /// It did not.
    Failed,
    /// It runs again.
    Restarted,
}

/// One life.
#[derive(Clone, Debug)]
pub struct Life {
    /// Whose.
    pub lane: Lane,
    /// Its phases, each from its time on.
    pub phases: Vec<(Time, Phase)>,
    /// Its moments.
    pub moments: Vec<(Time, Moment)>,
}

/// Somebody acted.
#[derive(Clone, Debug)]
pub struct Deed {
    /// When.
    pub at: Time,
    /// What, in a line.
    pub what: String,
}

/// All lives of a run so far.
#[derive(Debug, Default)]
pub struct Lives {
    /// What lived, in the order of birth.
    pub lives: Vec<Life>,
    /// What was done from outside.
    pub deeds: Vec<Deed>,
    /// The first and the last moment.
    pub span: Option<(Time, Time)>,
}

impl Lives {
    /// The next record.
    pub fn record(&mut self, record: &Record) {
        match record {
            Record::Transition { at, transition } => self.moved(*at, transition),
            Record::Fact { event, .. } => self.fact(event),
            Record::StepBegan { verb, title, at, .. } => {
                self.pass(*at);
                if is_deed(verb) {
                    self.deeds.push(Deed { at: *at, what: title.clone() });
                }
            }
            Record::ScenarioBegan { at, .. } | Record::StepEnded { at, .. } => self.pass(*at),
            Record::PodNamed { .. }
            | Record::Requested { .. }
            | Record::Command { .. }
            | Record::ProcessEnded { .. }
            | Record::Crashed { .. }
            | Record::Held { .. }
            | Record::Marked { .. }
            | Record::Expectation { .. }
            | Record::InvariantBroken { .. } => {}
        }
    }

    fn pass(&mut self, at: Time) {
        let (first, last) = self.span.unwrap_or((at, at));
        self.span = Some((first.min(at), last.max(at)));
    }

    fn moved(&mut self, at: Time, transition: &Transition) {
        self.pass(at);
        let Some(lane) = Lane::of(transition) else { return };
        let phase = Phase::of_label(&transition.to);
        let attempt = match &transition.subject {
            Subject::Container(id) => id.attempt,
            Subject::Pod | Subject::Sandbox(_) | Subject::Volume(_) => 0,
        };
        if let (Lane::Pod(pod), Phase::Gone) = (&lane, phase) {
            self.end_all_of(*pod, at);
        }
        let life = self.life(lane);
        if phase == Phase::Up && attempt > 0 && life.phases.last().is_none_or(|(_, p)| *p != Phase::Up) {
            life.moments.push((at, Moment::Restarted));
        }
        life.phases.push((at, phase));
    }

    /// A pod takes along whatever was still remembered of it.
    fn end_all_of(&mut self, pod: PodUid, at: Time) {
        for life in self.lives.iter_mut().filter(|life| life.lane.pod() == pod) {
            if life.phases.last().is_some_and(|(_, phase)| *phase != Phase::Gone) {
                life.phases.push((at, Phase::Gone));
            }
        }
    }

    fn fact(&mut self, event: &Event) {
        self.pass(event.at);
        if let Fact::ContainerExited { pod, container, exit } = &event.fact {
            let lane = Lane::Container(*pod, container.name.clone(), container.incarnation);
            let moment = if exit.code == 0 { Moment::Succeeded } else { Moment::Failed };
            self.life(lane).moments.push((event.at, moment));
        }
    }

    /// The life in that lane: the one under way, or a new one.
    fn life(&mut self, lane: Lane) -> &mut Life {
        let at = match self.lives.iter().rposition(|life| life.lane == lane) {
            Some(at) => at,
            None => {
                self.lives.push(Life { lane, phases: Vec::new(), moments: Vec::new() });
                self.lives.len() - 1
            }
        };
        &mut self.lives[at]
    }

    /// All lives as a chart lists them: each pod, then its containers, then its volumes, by birth.
    pub fn by_pod(&self) -> Vec<&Life> {
        let mut pods: Vec<PodUid> = Vec::new();
        for life in &self.lives {
            if !pods.contains(&life.lane.pod()) {
                pods.push(life.lane.pod());
            }
        }
        let mut ordered = Vec::new();
        for pod in pods {
            for kind in [Kind::Pod, Kind::Container, Kind::Volume] {
                let of_kind = |life: &&Life| life.lane.pod() == pod && life.lane.kind() == kind;
                ordered.extend(self.lives.iter().filter(of_kind));
            }
        }
        ordered
    }
}

/// Steps that change something from outside; the others let time pass, name a moment or look.
fn is_deed(verb: &str) -> bool {
    !matches!(verb, "advance" | "settle" | "mark" | "expect")
}
