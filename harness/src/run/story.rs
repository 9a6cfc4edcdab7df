//! What has happened so far, as expectations ask for it: commands and Kubernetes events since the last mark, the answer
//! to the last request, and what the oracles found. It listens to the same records as everyone else.

use super::Counts;
use crate::record::{Observer, Record};
use crate::scenario::PodRef;
use nodefold_core::Config;
use nodefold_core::command::{Action, TraceEntry};
use nodefold_core::ids::{ContainerId, Name, PodUid};
use nodefold_core::time::Time;
use nodefold_model::Oracles;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A command as people name it.
#[derive(Clone, Debug)]
pub struct Given {
    /// When.
    pub at: Time,
    /// `mount`, `stop`, ...
    pub verb: &'static str,
    /// The pod's namespace; empty for the node's.
    pub namespace: String,
    /// The pod's name; empty for the node's.
    pub pod: String,
    /// The container or volume; empty for what is about the pod.
    pub thing: String,
}

impl std::fmt::Display for Given {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.pod.is_empty(), self.thing.is_empty()) {
            (true, _) => write!(f, "{}", self.verb),
            (false, true) => write!(f, "{} {}", self.verb, self.pod),
            (false, false) => write!(f, "{} {}/{}", self.verb, self.pod, self.thing),
        }
    }
}

/// A named moment.
#[derive(Clone, Debug, Default)]
pub struct Moment {
    /// When.
    pub at: Time,
    /// The newest instance of each container then.
    pub instances: BTreeMap<(PodUid, Name), ContainerId>,
    /// Which pod had each name then.
    pub pods: BTreeMap<PodRef, PodUid>,
}

/// The story so far.
pub struct Story<'o> {
    observer: &'o mut dyn Observer,
    /// When it began.
    began: Time,
    oracles: Oracles,
    names: BTreeMap<PodUid, PodRef>,
    commands: Vec<Given>,
    commands_at_mark: usize,
    events: Vec<Value>,
    events_at_mark: usize,
    marks: BTreeMap<String, Moment>,
    last_mark: Option<String>,
    /// How much of everything.
    pub counts: Counts,
    /// What the oracles and the world's physics found.
    pub violations: Vec<String>,
}

impl<'o> Story<'o> {
    /// A story that has not begun.
    pub fn new(observer: &'o mut dyn Observer, config: &Config, began: Time) -> Story<'o> {
        Story {
            observer,
            began,
            oracles: Oracles::new(config),
            names: BTreeMap::new(),
            commands: Vec::new(),
            commands_at_mark: 0,
            events: Vec::new(),
            events_at_mark: 0,
            marks: BTreeMap::new(),
            last_mark: None,
            counts: Counts::default(),
            violations: Vec::new(),
        }
    }

    /// Everything before this moment was told.
    pub fn tell_time(&mut self, now: Time) {
        self.observer.time(now);
    }

    /// The next record.
    pub fn tell(&mut self, record: Record) {
        self.observer.record(&record);
        match record {
            Record::PodNamed { pod, namespace, name } => {
                self.names.insert(pod, PodRef { namespace, name });
            }
            Record::Fact { event, .. } => {
                self.counts.facts += 1;
                let at = event.at;
                self.judge(at, &TraceEntry::Fact(event));
            }
            Record::Command { at, command } => {
                self.counts.commands += 1;
                self.remember(at, &command);
                self.judge(at, &TraceEntry::Command { at, command });
            }
            Record::Transition { .. } => self.counts.transitions += 1,
            Record::Requested { .. } => self.counts.requests += 1,
            Record::InvariantBroken { violation, .. } => self.violations.push(violation),
            Record::ScenarioBegan { .. }
            | Record::StepBegan { .. }
            | Record::StepEnded { .. }
            | Record::ProcessEnded { .. }
            | Record::Crashed { .. }
            | Record::Held { .. }
            | Record::Marked { .. }
            | Record::Expectation { .. } => {}
        }
    }

    fn remember(&mut self, at: Time, command: &nodefold_core::Command) {
        let (namespace, pod) = match self.names.get(&command.pod) {
            Some(name) => (name.namespace.clone(), name.name.clone()),
            None if command.pod == PodUid(0) => (String::new(), String::new()),
            None => (String::new(), command.pod.to_string()),
        };
        if let Action::RecordEvent(event) = &command.action {
            let mut object = json!({
                "type": if event.warning { "Warning" } else { "Normal" },
                "reason": &*event.reason,
                "message": &*event.message,
                "namespace": namespace,
                "pod": pod,
            });
            if let Some(container) = &event.container {
                object["container"] = json!(&**container);
            }
            self.events.push(object);
        }
        let thing = command.action.about().name().to_owned();
        self.commands.push(Given { at, verb: command.action.verb(), namespace, pod, thing });
    }

    fn judge(&mut self, at: Time, entry: &TraceEntry) {
        self.oracles.observe(entry);
        self.tell_violations(at);
    }

    /// Faults stop.
    pub fn heal(&mut self, at: Time) {
        self.oracles.heal(at);
    }

    /// The node had time enough to come to rest: what must hold by now (L1–L5), and nothing of the ended is left on the
    /// host.
    pub fn judge_the_end(&mut self, now: Time, leftovers: &[String]) {
        self.oracles.at_rest(now);
        self.tell_violations(now);
        for left in leftovers {
            self.tell(Record::InvariantBroken {
                at: now,
                violation: format!("L2: {left} is still on the host, and its pod is not"),
            });
        }
    }

    /// No more will come: what the oracles keep for the end of a batch is judged too.
    pub fn finish(&mut self, at: Time) {
        self.oracles.finish();
        self.tell_violations(at);
    }

    fn tell_violations(&mut self, at: Time) {
        for violation in self.oracles.take_violations() {
            let violation = violation.to_string();
            self.observer.record(&Record::InvariantBroken { at, violation: violation.clone() });
            self.violations.push(violation);
        }
    }

    /// Gives this moment a name.
    pub fn mark(&mut self, name: &str, moment: Moment) {
        self.commands_at_mark = self.commands.len();
        self.events_at_mark = self.events.len();
        self.last_mark = Some(name.to_owned());
        self.tell(Record::Marked { at: moment.at, name: name.into() });
        self.marks.insert(name.to_owned(), moment);
    }

    /// The moment of that name.
    pub fn moment(&self, name: &str) -> Option<&Moment> {
        self.marks.get(name)
    }

    /// The names of all marks.
    pub fn marks(&self) -> impl Iterator<Item = &str> {
        self.marks.keys().map(String::as_str)
    }

    /// `since mark X`, for messages.
    pub fn since(&self) -> String {
        match &self.last_mark {
            Some(name) => format!("since mark {name}"),
            None => "since the beginning".into(),
        }
    }

    /// A moment as people read it: seconds since the story began.
    pub fn clock(&self, at: Time) -> String {
        let since = at.since(self.began).0 / 1_000_000;
        format!("{}.{:03}s", since / 1000, since % 1000)
    }

    /// Commands since the last mark.
    pub fn commands(&self) -> &[Given] {
        &self.commands[self.commands_at_mark..]
    }

    /// Kubernetes events since the last mark.
    pub fn events(&self) -> &[Value] {
        &self.events[self.events_at_mark..]
    }
}
