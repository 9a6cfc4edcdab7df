//! One seed: draws its profile, plays safety mode and liveness mode, and keeps the history of what was done.

use super::chance::{Chance, Xoshiro};
use super::coverage::Coverage;
use super::kind::Kind;
use super::player::{Broken, Player, Totals};
use super::profile::Profile;
use super::{faults, users};
use crate::brain::Brain;
use crate::history::History;
use crate::log::{self, FactLog, InMemory};
use crate::scenario::Verb;
use crate::world::{Answers, Choice, Enabled};
use nodefold_api::Api;
use nodefold_core::time::{Nanos, Time};
use nodefold_core::{Config, Digest, Node};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Makes the brain that a world drives. Workers share it.
pub type BrainOf = Arc<dyn Fn(&Config) -> Box<dyn Brain> + Send + Sync>;

/// Makes the log that an agent writes: of which node, and whether that node has the real journal.
pub type LogOf = Arc<dyn Fn(&Config, bool) -> Box<dyn FactLog> + Send + Sync>;

/// What a world drives, and what drives it: the parts that a hunt may be about.
#[derive(Clone)]
pub struct Driven {
    /// What decides.
    pub brain: BrainOf,
    /// Where its facts are made durable, and whether that is to be the real journal.
    pub log: LogOf,
    /// Who answers requests to the API.
    pub answers: Answers,
    /// Its steps are compared with the specification.
    pub refined: bool,
}

impl Default for Driven {
    fn default() -> Driven {
        Driven {
            brain: Arc::new(|config| Box::new(Node::new(config.clone()))),
            log: Arc::new(log::of),
            answers: Api::apply,
            refined: true,
        }
    }
}

impl Driven {
    /// Another brain. A journal keeps the production core's state only, so its facts are kept in memory.
    pub fn by(brain: BrainOf) -> Driven {
        let log: LogOf = Arc::new(|_, _| Box::<InMemory>::default());
        Driven { brain, log, ..Driven::default() }
    }
}

/// How to hunt.
#[derive(Clone)]
pub struct SwarmOptions {
    /// What is hunted.
    pub driven: Driven,
    /// No other faults than these; empty: all.
    pub only: Vec<Kind>,
    /// None of these.
    pub without: Vec<Kind>,
    /// The oracles judge.
    pub oracles: bool,
}

impl Default for SwarmOptions {
    fn default() -> SwarmOptions {
        SwarmOptions { driven: Driven::default(), only: Vec::new(), without: Vec::new(), oracles: true }
    }
}

/// How a seed went.
#[derive(Clone, Debug)]
pub struct SeedReport {
    /// The seed.
    pub seed: u64,
    /// Its profile, in a line.
    pub profile: String,
    /// The digest at the end.
    pub digest: Digest,
    /// How much happened.
    pub totals: Totals,
    /// What was reached.
    pub coverage: Coverage,
    /// What happened.
    pub history: History,
    /// What broke, first things first; nothing, if all is well.
    pub broken: Vec<Broken>,
}

/// Runs one seed from beginning to end.
pub fn run_seed(seed: u64, options: &SwarmOptions) -> SeedReport {
    let mut chance = Xoshiro::new(seed);
    let profile = Profile::draw(&mut chance, &options.only, &options.without);
    play(seed, &mut chance, &profile, options)
}

/// Plays a profile with decisions from any source.
pub fn play(seed: u64, chance: &mut dyn Chance, profile: &Profile, options: &SwarmOptions) -> SeedReport {
    let mut history = Recorder::new(profile);
    let mut player = Player::new(&profile.node, &options.driven, options.oracles);
    player.trust_names(profile.trusting);
    // A panic is a find like any other: what led to it must be told.
    let played = catch_unwind(AssertUnwindSafe(|| {
        player.begin();
        history.now = player.world().now();
        safety(&mut player, chance, profile, &mut history);
        if player.broken.is_empty() {
            history.verb(Verb::Heal);
            player.perform(&Verb::Heal);
        }
        player.finish();
        player.digest()
    }));
    let digest = played.unwrap_or_else(|panic| {
        let what = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("of unknown kind");
        let at = player.world().now().since(crate::world::BEGINNING);
        player.broken.push(Broken { invariant: "panic".into(), what: format!("panic: {what}"), at });
        if history.is_in_step {
            // The choice that it panicked in is part of the story.
            history.step(&player);
        }
        Digest(0)
    });
    history.flush();
    SeedReport {
        seed,
        profile: profile.to_string(),
        digest,
        totals: player.totals,
        coverage: player.coverage,
        history: history.history,
        broken: player.broken,
    }
}

/// Safety mode: things happen, and in between, more often when it hurts, users ask and things go wrong.
fn safety(player: &mut Player, chance: &mut dyn Chance, profile: &Profile, history: &mut Recorder) {
    let mut enabled = Vec::new();
    intervene(Kind::Create, player, chance, profile, history, &mut enabled);
    let mut again = false;
    for _ in 0..profile.steps {
        if !player.broken.is_empty() || chance.is_spent() {
            return;
        }
        // One intervention makes the next likelier: races want company.
        let recovers = player.world().is_recovering();
        let close = player.is_delicate || again || recovers;
        let calm = if close { profile.calm.div_ceil(4) } else { profile.calm };
        again = chance.once_in(1, calm + 1);
        if again {
            let weights = if recovers { &profile.in_recovery } else { &profile.weights };
            if let Some(kind) = draw(chance, weights) {
                intervene(kind, player, chance, profile, history, &mut enabled);
            }
        } else {
            natural(player, chance, history);
        }
    }
}

fn draw(chance: &mut dyn Chance, weights: &[(Kind, u64)]) -> Option<Kind> {
    let mut drawn = chance.below(weights.iter().map(|(_, weight)| weight).sum());
    for (kind, weight) in weights {
        match drawn.checked_sub(*weight) {
            Some(rest) => drawn = rest,
            None => return Some(*kind),
        }
    }
    None
}

/// The next thing happens by itself. Long sleeps are cut now and then, and a world in which nothing is about to happen is
/// given time, so that users come at all moments.
fn natural(player: &mut Player, chance: &mut dyn Chance, history: &mut Recorder) {
    let due = player.world().next_due();
    let sleeps = due.is_none_or(|due| due.since(player.world().now()) > Nanos::secs(5));
    if sleeps && (due.is_none() || chance.once_in(1, 2)) {
        let pause = Verb::Advance(Nanos::millis(chance.between(1, 4000)));
        history.verb(pause.clone());
        player.perform(&pause);
        history.now = player.world().now();
        return;
    }
    history.is_in_step = true;
    player.natural();
    history.is_in_step = false;
    history.step(player);
}

fn intervene(
    kind: Kind,
    player: &mut Player,
    chance: &mut dyn Chance,
    profile: &Profile,
    history: &mut Recorder,
    enabled: &mut Vec<Enabled>,
) {
    let world = player.world();
    let asked = kind.is_action() && kind != Kind::Finish;
    let mut verbs = Vec::new();
    if asked || matches!(kind, Kind::ObjectChanged | Kind::ObjectDeleted) {
        // What users do may have to stop something; that which is slow to stop is where races are.
        let slow = [Kind::StopSlow, Kind::StopIgnored].map(|kind| (kind, profile.weight(kind)));
        let asked = users::ask(kind, chance, profile, world.server());
        if kind.stops()
            && chance.once_in(slow.iter().map(|(_, weight)| weight).sum(), 48)
            && let Some(slow) = draw(chance, &slow)
        {
            verbs.extend(faults::slow_stop(slow, chance, world, &asked));
        }
        verbs.extend(asked);
    } else {
        world.enabled(enabled);
        // What is far away is not hurried: only races are.
        let horizon = world.now().after(Nanos::secs(3));
        enabled.retain(|e| e.due <= horizon || matches!(e.choice, Choice::AgentStarts));
        verbs = faults::strike(kind, chance, world, enabled);
    }
    for verb in verbs {
        history.verb(verb.clone());
        player.perform(&verb);
        history.now = player.world().now();
        if !player.broken.is_empty() {
            return;
        }
    }
}

/// Writes the history down: what was done, and in between the time that passed and the choices that came by themselves.
struct Recorder {
    history: History,
    /// The time after what was written down last.
    now: Time,
    /// The last moment after which everything due had happened, if choices were taken up to it.
    whole: Option<Time>,
    /// The choices taken since that moment.
    since: u32,
    /// The moment of the last choice.
    last: Time,
    /// A choice in its natural order is being taken.
    is_in_step: bool,
}

impl Recorder {
    fn new(profile: &Profile) -> Recorder {
        let history = History { node: profile.node.clone(), trusting: profile.trusting, steps: Vec::new() };
        Recorder { history, now: Time(0), whole: None, since: 0, last: Time(0), is_in_step: false }
    }

    /// A choice was taken in its natural order.
    fn step(&mut self, player: &Player) {
        let now = player.world().now();
        if self.since == 0 {
            self.last = now;
        }
        if now > self.last {
            self.whole = Some(self.last);
            self.since = 0;
            self.last = now;
        }
        self.since += 1;
    }

    /// A step is about to be done.
    fn verb(&mut self, verb: Verb) {
        self.flush();
        self.history.steps.push(verb);
    }

    fn flush(&mut self) {
        if self.since == 0 {
            return;
        }
        if let Some(whole) = self.whole.take() {
            self.history.steps.push(Verb::Advance(whole.since(self.now)));
        }
        self.history.steps.push(Verb::Step(self.since));
        self.since = 0;
    }
}
