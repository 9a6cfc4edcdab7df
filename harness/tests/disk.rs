//! The real journal on a simulated disk: what it acknowledged survives every death, and a disk that does not keep its word is
//! found out.
#![allow(clippy::unwrap_used)]

use nodefold_core::config::NodeFacts;
use nodefold_core::event::Fact;
use nodefold_core::time::Time;
use nodefold_core::{Commands, Config, Event, Node};
use nodefold_harness::brain::production;
use nodefold_harness::log::{FactLog, OnDisk};
use nodefold_harness::scenario::Verb;
use nodefold_harness::swarm::{Profile, SwarmOptions, Xoshiro, play};
use nodefold_harness::world::{CrashPoint, Fault};
use nodefold_harness::{Brain, Scenario};

/// An agent as far as its log knows it.
struct Agent {
    log: OnDisk,
    brain: Box<dyn Brain>,
    acknowledged: Vec<Event>,
}

impl Agent {
    fn new(log: OnDisk) -> Agent {
        Agent { log, brain: Box::new(Node::new(Config::default())), acknowledged: Vec::new() }
    }

    /// A fact that nobody told before, of more than one sector now and then.
    fn next(&self) -> Event {
        let n = self.acknowledged.len() as u64 + 1;
        let label = "x".repeat((n * 331 % 1500) as usize);
        let labels = vec![("label".into(), label.as_str().into())];
        Event { at: Time(n), fact: Fact::NodeChanged(NodeFacts { labels, ..NodeFacts::default() }) }
    }

    fn fold(&mut self, event: Event) {
        let mut out = Commands::default();
        self.brain.apply(&event, &mut out);
        self.log.commands_given(&out.commands);
        self.acknowledged.push(event);
    }

    fn live(&mut self, facts: usize) {
        for _ in 0..facts {
            let event = self.next();
            self.log.fact(&event, &mut *self.brain).unwrap();
            self.fold(event);
        }
    }

    /// What the next agent finds must be what this one acknowledged.
    fn recover(&mut self, when: &str) {
        let digest = self.brain.digest();
        self.brain = self.log.recover(&production(Config::default())).unwrap();
        assert_eq!(self.log.durable().unwrap(), self.acknowledged, "{when}");
        assert_eq!(self.brain.digest(), digest, "{when}");
    }
}

#[test]
fn what_was_acknowledged_survives_every_death() {
    let (mut survived, mut lost) = (0, 0);
    for keep in 0..300 {
        let mut agent = Agent::new(OnDisk::new(&Config::default()));
        // Some have only begun, others have sealed segments behind them.
        agent.live((keep % 11 * keep % 90) as usize);
        for again in 0..3 {
            let event = agent.next();
            if agent.log.torn(&event, &mut *agent.brain, keep * 3 + again).unwrap() {
                agent.fold(event);
                survived += 1;
            } else {
                lost += 1;
            }
            agent.recover(&format!("death {again} of {keep}"));
        }
        agent.live(2);
        agent.log.lose_power();
        agent.recover(&format!("power lost after {keep}"));
        agent.log.close(&mut *agent.brain).unwrap();
    }
    assert!(survived > 100 && lost > 100, "{survived} survived, {lost} lost");
}

#[test]
fn a_full_disk_costs_the_agent_its_life_and_nothing_else() {
    let mut agent = Agent::new(OnDisk::new(&Config::default()));
    agent.live(20);
    for fill in 0..4 {
        let mut fitted = 0;
        loop {
            let event = agent.next();
            if !agent.log.without_room(&event, &mut *agent.brain).unwrap() {
                break;
            }
            agent.fold(event);
            fitted += 1;
            assert!(fitted < 1000, "a full disk takes no more than was set aside");
        }
        agent.recover(&format!("full {fill}"));
        agent.live(30);
    }
    agent.log.lose_power();
    agent.recover("at the end");
}

#[test]
fn a_journal_that_never_syncs_is_found_out() {
    let mut agent = Agent::new(OnDisk::that_never_syncs(&Config::default()));
    agent.live(5);
    agent.log.lose_power();
    let recovered = agent.log.recover(&production(Config::default()));
    let kept = recovered.ok().and_then(|_| agent.log.durable().ok()).unwrap_or_default();
    assert!(kept.len() < agent.acknowledged.len());
}

#[test]
fn a_journal_that_syncs_again_and_believes_it_is_found_out() {
    let lost = |log: OnDisk, keep: u64| {
        let mut agent = Agent::new(log);
        agent.live(5);
        let event = agent.next();
        if agent.log.torn(&event, &mut *agent.brain, keep).unwrap() {
            agent.fold(event);
        }
        let recovered = agent.log.recover(&production(Config::default()));
        let kept = recovered.ok().and_then(|_| agent.log.durable().ok()).unwrap_or_default();
        kept != agent.acknowledged
    };
    let found = (0..200).filter(|keep| lost(OnDisk::that_retries_syncs(&Config::default()), *keep)).count();
    assert!(found > 2, "{found}");
    assert_eq!((0..200).find(|keep| lost(OnDisk::new(&Config::default()), *keep)), None);
}

#[test]
fn the_swarm_runs_on_it_and_is_clean() {
    let mut torn = 0;
    for seed in 0..24 {
        let mut chance = Xoshiro::new(seed);
        let mut profile = Profile::draw(&mut chance, &[], &[]);
        profile.node.journal = true;
        let report = play(seed, &mut chance, &profile, &SwarmOptions::default());
        assert!(report.broken.is_empty(), "seed {seed}: {:?}", report.broken);
        let text = report.history.to_text("on a disk", "");
        assert!(
            Scenario::parse(&text, "on-a-disk.yaml").unwrap().node.journal,
            "seed {seed}: the history says so"
        );
        let unsynced = |verb: &&Verb| matches!(verb, Verb::Fault(Fault::Crash(CrashPoint::Unsynced(_))));
        torn += report.history.steps.iter().filter(unsynced).count();
    }
    assert!(torn > 0, "some agents died while they made a fact durable");
}
