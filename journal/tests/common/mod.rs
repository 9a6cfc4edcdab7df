//! A small reducer in `Node`'s place, with bugs on request, and journals made of it.

#![allow(dead_code, reason = "each test uses its part")]

use nodefold_core::command::{Action, Cause, Command, Commands, Rule};
use nodefold_core::event::{OpError, UsageOf};
use nodefold_core::ids::{ContainerId, EventSeq, OpId, PodUid, Source, VolumeId};
use nodefold_core::time::{Nanos, Time};
use nodefold_core::{Config, Digest, Event, Fact, codec};
use nodefold_journal::{Fold, Memory, Options, Writer};
use std::collections::{BTreeMap, BTreeSet};

/// Counts, per pod, how many facts there were and hashes them. `WRONG` is the number of an event that it miscounts.
pub struct Counting<const WRONG: u64> {
    config: Config,
    events: u64,
    pods: BTreeMap<u128, (u64, u128)>,
    touched: BTreeSet<u128>,
}

pub type Right = Counting<0>;

/// A pod on whose removal the fold panics.
pub const FATAL: PodUid = PodUid(0xdead);

impl<const WRONG: u64> Fold for Counting<WRONG> {
    const LAYOUT: &'static str = "counting 1";

    fn begin(config: &Config) -> Self {
        Counting { config: config.clone(), events: 0, pods: BTreeMap::new(), touched: BTreeSet::new() }
    }

    fn apply(&mut self, event: &Event, out: &mut Commands) {
        assert!(event.fact != Fact::PodRemoved { pod: FATAL }, "a planted panic");
        self.events += 1;
        let pod = event.fact.pod().unwrap_or(PodUid(0));
        let entry = self.pods.entry(pod.0).or_default();
        entry.0 += if self.events == WRONG { 2 } else { 1 };
        entry.1 = codec::hash(&(entry.1, event)).0;
        self.touched.insert(pod.0);
        let grace = Nanos(entry.0);
        let container = ContainerId { name: "c".into(), incarnation: 0, attempt: 0 };
        out.commands.push(Command {
            op: OpId(self.events),
            pod,
            cause: Cause { event: EventSeq(self.events), rule: Rule::Told },
            action: Action::StopContainer { container, grace },
        });
    }

    fn skip(&mut self, event: &Event) {
        let entry = self.pods.entry(0).or_default();
        entry.1 = codec::hash(&(entry.1, "skipped", event)).0;
        self.touched.insert(0);
    }

    fn digest(&mut self) -> Digest {
        self.pods.iter().fold(Digest(u128::from(self.events)), |sum, (uid, pod)| {
            Digest(sum.0.wrapping_add(codec::hash(&(uid, pod)).0))
        })
    }

    fn take_touched(&mut self) -> Vec<(PodUid, Digest)> {
        let touched = std::mem::take(&mut self.touched);
        touched.into_iter().map(|uid| (PodUid(uid), codec::hash(&(uid, self.pods[&uid])))).collect()
    }

    fn event_count(&self) -> EventSeq {
        EventSeq(self.events)
    }

    fn to_snapshot(&self) -> Vec<u8> {
        let pods: Vec<(u128, (u64, u128))> = self.pods.iter().map(|(uid, pod)| (*uid, *pod)).collect();
        let mut out = Vec::new();
        codec::encode(&(&self.config, self.events, pods), &mut out);
        out
    }

    fn from_snapshot(bytes: &[u8]) -> Result<Self, String> {
        type State = (Config, u64, Vec<(u128, (u64, u128))>);
        let (config, events, pods): State = codec::decode(bytes).map_err(|e| e.to_string())?;
        Ok(Counting { config, events, pods: pods.into_iter().collect(), touched: BTreeSet::new() })
    }

    fn describe(&self, pod: Option<PodUid>) -> String {
        #[derive(Debug)]
        struct Seen {
            facts: u64,
            hash: u128,
        }
        match pod {
            Some(pod) => format!("{:#?}", self.pods.get(&pod.0).map(|&(facts, hash)| Seen { facts, hash })),
            None => format!("{:#?}", self.events),
        }
    }
}

/// The nth event of a made-up life: all of different shapes and lengths.
pub fn event(n: u64) -> Event {
    let pod = PodUid(u128::from(n % 3 + 1));
    let volume = VolumeId { name: format!("data-{}", n % 5).into(), generation: n as u32 };
    let container = ContainerId { name: "main".into(), incarnation: 1, attempt: n as u32 };
    let error = OpError {
        class: nodefold_core::event::ErrorClass::Transient,
        reason: None,
        message: "no such device ".repeat(n as usize % 7).into(),
    };
    let op = OpId(n);
    let fact = match n % 8 {
        0 => Fact::Tick,
        1 => Fact::AgentStarted { boot_id: u128::from(n) },
        2 => Fact::VolumeMountFailed { op, pod, volume, error },
        3 => Fact::ContainerStarted { op, pod, container },
        4 => Fact::UsageReported { pod, of: UsageOf::Volume(volume), bytes: n * 4096 },
        5 => Fact::SourceReady { source: Source::Api },
        6 => Fact::PodRemoved { pod },
        _ => Fact::VolumeMounted { op, pod, volume, renew_at: Some(Time(n)), image_digest: None },
    };
    Event { at: Time(n * 1_000_000), fact }
}

/// Small segments and pieces, so that little data makes many of them.
pub fn small() -> Options {
    Options {
        segment_bytes: 4096,
        fill_bytes: 1024,
        compress: false,
        id: 0x1234_5678_9abc,
        ..Options::default()
    }
}

/// A journal and the fold beside it, as an agent drives them.
pub struct Live<F> {
    pub memory: Memory,
    pub writer: Writer,
    pub fold: F,
    pub next: u64,
}

impl<F: Fold> Live<F> {
    pub fn new(options: Options) -> Live<F> {
        Live::on(Memory::new(), options)
    }

    pub fn on(memory: Memory, options: Options) -> Live<F> {
        let config = Config::default();
        let mut fold = F::begin(&config);
        let writer = Writer::create(memory.storage(), options, &config, &mut fold).expect("created");
        Live { memory, writer, fold, next: 1 }
    }

    /// One batch of so many events: appended, committed, folded.
    pub fn batch(&mut self, events: u64) -> Result<nodefold_journal::Committed, nodefold_journal::Error> {
        let events: Vec<Event> = (0..events).map(|i| event(self.next + i)).collect();
        self.batch_of(&events)
    }

    pub fn batch_of(
        &mut self,
        events: &[Event],
    ) -> Result<nodefold_journal::Committed, nodefold_journal::Error> {
        for event in events {
            self.writer.append(event)?;
        }
        let committed = self.writer.commit(&mut self.fold)?;
        let mut out = Commands::default();
        for event in events {
            self.fold.apply(event, &mut out);
        }
        self.writer.commands_given(&out.commands);
        self.next += events.len() as u64;
        Ok(committed)
    }

    pub fn stop(mut self) -> (Memory, Digest) {
        let digest = self.fold.digest();
        self.writer.stop(&mut self.fold).expect("clean stop");
        (self.memory, digest)
    }
}

/// All facts in a journal.
pub fn facts(memory: &Memory) -> Result<Vec<Event>, nodefold_journal::Error> {
    let mut found = Vec::new();
    for entry in nodefold_journal::Reader::open(&memory.storage())? {
        if let nodefold_journal::Record::Fact(event) = entry?.record {
            found.push(event);
        }
    }
    Ok(found)
}

/// The last segment's name.
pub fn last_segment(memory: &Memory) -> String {
    let names = memory.storage().list().expect("list");
    names.into_iter().rfind(|n| n.ends_with(".seg") || n.ends_with(".segz")).expect("a segment")
}
