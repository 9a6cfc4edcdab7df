//! Load: watchers beside writers, and a kill in the middle. Nothing is lost or reordered for any watcher, memory stays flat.
//! Numbers grow with NODEFOLD_LONG: 200 watchers and 500 requests a second for a minute (issue 7, what it must show 5).

use super::client::{Watch, ask, create, request, try_ask, try_watch};
use super::node::{LONG, Node};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, RwLock};
use std::time::{Duration, Instant};
use xxhash_rust::xxh3::xxh3_64;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const WRITERS: u64 = 4;
/// Each writer goes round so many objects: creates, changes, deletes.
const OBJECTS: u64 = 20;

/// Events by their bytes: the version, and whether it is the last one.
type Read = RwLock<BTreeMap<u64, (u64, bool)>>;

struct Size {
    watchers: usize,
    /// Of all writers together, a second.
    rate: u64,
    /// Of each half: before the kill, after it.
    half: Duration,
}

#[test]
fn every_watcher_sees_every_change_in_order() {
    let long = std::env::var_os("NODEFOLD_LONG").is_some();
    let size = if long {
        Size { watchers: 200, rate: 500, half: Duration::from_secs(30) }
    } else {
        Size { watchers: 20, rate: 100, half: Duration::from_secs(3) }
    };
    let node = RwLock::new(Node::start(&[]));
    let writing = AtomicBool::new(true);
    let (acknowledged, answered) = (Mutex::new(Vec::new()), AtomicU64::new(0));
    let (mut memory, mut longest) = (Vec::new(), Vec::new());
    let read = Read::default();
    std::thread::scope(|scope| {
        let watchers: Vec<_> = (0..size.watchers).map(|_| scope.spawn(|| follow(&node, &read))).collect();
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (node, writing, acknowledged, answered) = (&node, &writing, &acknowledged, &answered);
                let pause = Duration::from_micros(1_000_000 * WRITERS / size.rate);
                scope.spawn(move || write(writer, node, pause, writing, acknowledged, answered))
            })
            .collect();
        let half = |memory: &mut Vec<u64>| {
            let begun = Instant::now();
            while begun.elapsed() < size.half {
                std::thread::sleep(Duration::from_millis(500));
                memory.push(node.read().unwrap().memory());
            }
        };
        half(&mut memory);
        let died = Instant::now();
        {
            let mut node = node.write().unwrap();
            node.kill();
            node.begin();
        }
        println!("killed and back in {:?}", died.elapsed());
        let first = std::mem::take(&mut memory);
        half(&mut memory);
        println!("memory in KiB before the kill {first:?}, after it {memory:?}");
        writing.store(false, Ordering::SeqCst);
        longest.extend(writers.into_iter().map(|writer| writer.join().unwrap()));
        // What comes last ends the watchers.
        let end = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "end"}});
        assert_eq!(create(&node.read().unwrap(), MAPS, &end).code, 201);
        let mut all = watchers.into_iter().map(|watcher| watcher.join().unwrap());
        let (first, mut resumed) = all.next().unwrap();
        for (other, times) in all {
            assert_eq!(other, first, "every watcher saw the same");
            resumed += times;
        }
        assert!(first.windows(2).all(|pair| pair[0] < pair[1]), "in the store's order");
        let acknowledged = acknowledged.lock().unwrap();
        let lost: Vec<&u64> =
            acknowledged.iter().filter(|version| first.binary_search(version).is_err()).collect();
        assert!(lost.is_empty(), "acknowledged and not told: {lost:?}");
        assert!(resumed >= size.watchers, "each went on once from its version: {resumed}");
        let requests = answered.load(Ordering::SeqCst) as f64 / (2.0 * size.half.as_secs_f64());
        println!(
            "{} watchers, {} changes each, {requests:.0} requests/s answered, the slowest took {:?}",
            size.watchers,
            first.len(),
            longest.iter().max().unwrap()
        );
        assert!(requests > size.rate as f64 * 0.5, "the writers were held up: {requests:.0} requests/s");
    });
    let metrics = ask(&node.read().unwrap(), "GET", "/metrics", &[], b"").body;
    assert!(metrics.contains("apiserver_terminated_watchers_total 0"), "nobody was cut off");
    // Flat: in the second life everything that is kept for watchers is there from the start.
    let third = memory.len() / 3;
    let mean = |some: &[u64]| some.iter().sum::<u64>() as f64 / some.len().max(1) as f64;
    let (early, late) = (mean(&memory[third..2 * third]), mean(&memory[2 * third..]));
    assert!(late < early * 1.2 + 8_192.0, "memory grows: {early:.0} KiB, then {late:.0} KiB");
}

/// Creates, changes and deletes; how long the slowest took. What is not answered is no loss if it is not there.
fn write(
    writer: u64,
    node: &RwLock<Node>,
    pause: Duration,
    writing: &AtomicBool,
    acknowledged: &Mutex<Vec<u64>>,
    answered: &AtomicU64,
) -> Duration {
    let mut slowest = Duration::ZERO;
    let begun = Instant::now();
    let mut due = begun;
    let mut n = 0;
    while writing.load(Ordering::SeqCst) {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        due += pause;
        let name = format!("m-{writer}-{}", n / 3 % OBJECTS);
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"n": n.to_string()}});
        let (method, path, body) = match n % 3 {
            0 => ("POST", MAPS.to_owned(), map.to_string()),
            1 => ("PUT", format!("{MAPS}/{name}"), map.to_string()),
            _ => ("DELETE", format!("{MAPS}/{name}"), String::new()),
        };
        let asked = Instant::now();
        // While it is down, everybody waits for it here.
        let node = node.read().unwrap();
        let answer =
            try_ask(&node, &request(method, &path, &[("Content-Type", "application/json")], body.as_bytes()));
        if let Some(answer) = answer.filter(|answer| answer.code < 300) {
            slowest = slowest.max(asked.elapsed());
            answered.fetch_add(1, Ordering::SeqCst);
            if method != "DELETE" {
                acknowledged.lock().unwrap().push(version(&answer.json()));
            }
        }
        n += 1;
    }
    slowest
}

/// The versions that a watcher is told, up to the last; and how often it went on from one.
fn follow(node: &RwLock<Node>, read: &Read) -> (Vec<u64>, usize) {
    let begun = Instant::now();
    let (mut seen, mut resumed) = (Vec::new(), 0);
    loop {
        let from = seen.last().map_or("0".to_owned(), u64::to_string);
        // From the first version on: what there was is told as changes.
        let path = format!("{MAPS}?watch=true&resourceVersion={}", if from == "0" { "1" } else { &from });
        let mut watch: Option<Watch> = try_watch(&node.read().unwrap(), &path);
        while let Some(line) = watch.as_mut().and_then(Watch::line) {
            // All are sent the same bytes: one of them reads them, so that the load is the server's.
            let hash = xxh3_64(&line);
            let known = read.read().unwrap().get(&hash).copied();
            let (version, is_end) = known.unwrap_or_else(|| {
                let event: Value = serde_json::from_slice(&line).unwrap();
                assert_ne!(event["type"], "ERROR", "{event}");
                let told = (version(&event["object"]), event["object"]["metadata"]["name"] == "end");
                read.write().unwrap().insert(hash, told);
                told
            });
            seen.push(version);
            if is_end {
                return (seen, resumed);
            }
        }
        assert!(begun.elapsed() < 3 * LONG, "a watcher never sees the end");
        resumed += 1;
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"]
        .as_str()
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(|| panic!("{object}"))
}
