//! From an accepted `/dynamic` request to the first instruction of the container that it adds, with a configMap volume and a
//! memory emptyDir and every fact durable before it counts: one at a time, in bursts, a thousand in a row, with loaded
//! cores; beside it, in the same run, the floor (clone and exec), runc, crun and containerd.
//! `cargo bench --bench linux -- [samples]`, as root; of 300 samples follow 1,000 adds in a row and ten bursts, of fewer fewer.
//! `-- 300 alone`: the one-at-a-time figures only. What can't be measured is said, and is a failure at the end.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods)]

#[path = "linux/node.rs"]
mod node;
#[path = "linux/others.rs"]
mod others;

use node::{Moment, Node, add, remove};
use nodefold_agent::clock;
use nodefold_agent::layout::Layout;
use nodefold_core::event::Fact;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The first adds fill caches.
const WARM_UP: usize = 20;

fn row(what: &str, mut samples: Vec<u64>) -> f64 {
    samples.sort_unstable();
    let at = |share: usize| samples[(samples.len() - 1) * share / 1000] as f64 / 1e6;
    println!(
        "{what:<58} n {:>4}  min {:>7.3}  p50 {:>7.3}  p90 {:>7.3}  p99 {:>7.3} ms",
        samples.len(),
        at(0),
        at(500),
        at(900),
        at(990)
    );
    at(500)
}

/// What one add and removal took, in nanoseconds.
struct Round {
    started: u64,
    /// From the command to start to the first instruction: the container was parked before.
    parked: u64,
    gone: u64,
    commits: u64,
    durable: u64,
    moments: Vec<Moment>,
}

fn round(node: &mut Node, number: usize) -> Round {
    node.moments.clear();
    let before = node.commits();
    let from = clock::monotonic().0;
    node.dynamic(add(number..number + 1));
    node.moments.push(Moment { at: clock::monotonic().0, what: "request accepted".into() });
    node.until(1, |fact| matches!(fact, Fact::ContainerStarted { .. }));
    let after = node.commits();
    let first = node.first_instruction(&format!("tool-{number}"));
    let let_go = node.moments.iter().find(|moment| moment.what == "do start").unwrap().at;
    let mut moments: Vec<Moment> = std::mem::take(&mut node.moments);
    moments.push(Moment { at: first, what: "first instruction".into() });
    moments.retain(|moment| moment.at <= first);
    moments.iter_mut().for_each(|moment| moment.at -= from);
    let removed = clock::monotonic().0;
    node.dynamic(remove(number..number + 1));
    let last = format!("m{number}");
    let at =
        node.until(1, |fact| matches!(fact, Fact::VolumeUnmounted { volume, .. } if *volume.name == *last));
    Round {
        started: first - from,
        parked: first.saturating_sub(let_go),
        gone: at - removed,
        commits: after.0 - before.0,
        durable: after.1 - before.1,
        moments,
    }
}

/// The medians of when each thing was first known, in order: where the time goes.
fn tell_steps(rounds: &[Round]) {
    let mut steps: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for round in rounds {
        let mut seen: Vec<&str> = Vec::new();
        for moment in &round.moments {
            if !seen.contains(&&*moment.what) {
                seen.push(&moment.what);
                steps.entry(&moment.what).or_default().push(moment.at);
            }
        }
    }
    let mut medians: Vec<(u64, &str)> = Vec::new();
    for (what, mut at) in steps {
        at.sort_unstable();
        if at.len() * 2 > rounds.len() {
            medians.push((at[at.len() / 2], what));
        }
    }
    medians.sort_unstable();
    for (at, what) in medians {
        println!("    {:>7.3} ms  {what}", at as f64 / 1e6);
    }
}

/// What this process holds: resident KiB, descriptors, lines of the mount table.
fn held() -> [u64; 3] {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let resident = line.trim().trim_end_matches(" kB").parse().unwrap();
    let descriptors = fs::read_dir("/proc/self/fd").unwrap().count() as u64;
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap().lines().count() as u64;
    [resident, descriptors, mounts]
}

fn burst(node: &mut Node, from: usize, count: usize) -> u64 {
    let numbers = from..from + count;
    let since = clock::monotonic().0;
    node.dynamic(add(numbers.clone()));
    node.until(count, |fact| matches!(fact, Fact::ContainerStarted { .. }));
    let last = numbers.clone().map(|n| node.first_instruction(&format!("tool-{n}"))).max().unwrap();
    node.dynamic(remove(numbers));
    node.until(2 * count, |fact| matches!(fact, Fact::VolumeUnmounted { .. }));
    last - since
}

/// Something that keeps a processor busy until it is dropped.
struct Hog(Child);

impl Drop for Hog {
    fn drop(&mut self) {
        drop(self.0.kill().and_then(|()| self.0.wait()));
    }
}

fn hogs() -> Vec<Hog> {
    let one = || Command::new("sh").args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn().unwrap();
    (0..4).map(|_| Hog(one())).collect()
}

fn build(source: &str, out: &Path, flags: &[&str]) {
    let source = format!("{}/benches/linux/{source}", env!("CARGO_MANIFEST_DIR"));
    let built = Command::new("cc").arg("-O2").args(flags).arg("-o").arg(out).arg(source).status().unwrap();
    assert!(built.success());
}

fn main() {
    let samples: usize = std::env::args().filter_map(|a| a.parse().ok()).next().unwrap_or(300);
    let alone = std::env::args().any(|a| a == "alone");
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    fs::create_dir_all(image.join("etc")).unwrap();
    for dir in ["proc", "dev", "sys"] {
        fs::create_dir_all(image.join(dir)).unwrap();
    }
    let payload = image.join("payload");
    build("payload.c", &payload, &["-static", "-nostdlib", "-fno-stack-protector", "-fno-builtin"]);
    let (floor, hide) = (directory.path().join("floor"), directory.path().join("hide"));
    build("floor.c", &floor, &[]);
    build("hide.c", &hide, &[]);

    let floor = Command::new(&floor).arg(&payload).arg(samples.to_string()).output().unwrap();
    let floor: Vec<u64> =
        String::from_utf8(floor.stdout).unwrap().lines().map(|l| l.parse().unwrap()).collect();
    let floor = row("floor: clone into pid and mount ns, exec", floor);

    let mut node = Node::new(Layout::at(directory.path().join("node")), &image);
    node::begin(&mut node);
    let mut next = 0;
    let mut rounds = |node: &mut Node, count: usize| -> Vec<Round> {
        let done = (next..next + count).map(|number| round(node, number)).collect();
        next += count;
        done
    };
    rounds(&mut node, WARM_UP);
    let done = rounds(&mut node, samples);
    let all = |of: fn(&Round) -> u64| done.iter().map(of).collect::<Vec<u64>>();
    let ours = row("nodefold: request accepted -> first instruction", all(|round| round.started));
    println!("  {:.1} times the floor at the median", ours / floor);
    tell_steps(&done);
    row("  of it, making facts durable", all(|round| round.durable));
    println!(
        "  in {:.1} batches a round",
        all(|round| round.commits).iter().sum::<u64>() as f64 / done.len() as f64
    );
    row("nodefold: parked, start -> first instruction", all(|round| round.parked));
    row("nodefold: removal accepted -> volumes gone", all(|round| round.gone));
    if alone {
        return node.end();
    }

    let in_a_row = samples * 10 / 3;
    let before = held();
    let many = rounds(&mut node, in_a_row);
    let after = held();
    let fifth = in_a_row / 5;
    for (what, part) in [("first", &many[..fifth]), ("last", &many[in_a_row - fifth..])] {
        let what = format!("nodefold: the {what} fifth of {in_a_row} adds in a row");
        row(&what, part.iter().map(|round| round.started).collect());
    }
    for (what, (before, after)) in
        ["KiB resident", "descriptors", "mounts"].iter().zip(before.iter().zip(after))
    {
        println!("  {what}: {before} before them, {after} after");
    }
    {
        let _hogs = hogs();
        let loaded = rounds(&mut node, samples.div_ceil(3));
        row("nodefold, four busy loops beside", loaded.iter().map(|round| round.started).collect());
        row("  of it, parked start", loaded.iter().map(|round| round.parked).collect());
    }
    for count in [50, 100] {
        let times = (0..samples.div_ceil(30))
            .map(|i| burst(&mut node, 100_000 + 1000 * count + i * count, count))
            .collect();
        row(&format!("nodefold: {count} added at once -> the last one's first instruction"), times);
    }
    node.end();

    let fewer = samples.min(100);
    let mut not_measured = Vec::new();
    let mut beside = |what: &str, times: Result<Vec<u64>, String>| match times {
        Ok(times) => println!("  {:.1} times nodefold's median", row(what, times) / ours),
        Err(why) => not_measured.push(format!("{what}: can't run here: {why}")),
    };
    let oci = |before, runtime| others::oci(before, runtime, directory.path(), &image, fewer);
    beside("runc run -d (no volumes, no journal)", oci(None, "runc"));
    beside("crun run -d, cgroup2 hidden from it (no volumes, no journal)", oci(Some(&*hide), "crun"));
    let containerd = others::Containerd::start(directory.path())
        .and_then(|containerd| containerd.run(directory.path(), &image, fewer));
    beside("containerd: ctr run -d, the client's start with it (not CRI: no crictl in Debian)", containerd);
    assert!(not_measured.is_empty(), "{}", not_measured.join("\n"));
}
