//! Load: watchers beside writers. Nothing is lost or reordered for any watcher. Numbers grow with NODEFOLD_LONG.

use super::client::{Watch, ask, create};
use super::node::Node;
use serde_json::{Value, json};
use std::time::Instant;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[test]
fn every_watcher_sees_every_change_in_order() {
    let long = std::env::var_os("NODEFOLD_LONG").is_some();
    let (watchers, writers, each) = if long { (100, 4, 100) } else { (20, 4, 50) };
    let node = Node::start(&[]);
    let watch = format!("{MAPS}?watch=true");
    let total = writers * each;
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let opened: Vec<Watch> = (0..watchers).map(|_| Watch::open(&node, &watch)).collect();
        let seen: Vec<_> = opened
            .into_iter()
            .map(|watch| {
                scope.spawn(move || watch.take(total).map(|event| version(&event)).collect::<Vec<u64>>())
            })
            .collect();
        for writer in 0..writers {
            let node = &node;
            scope.spawn(move || {
                for n in 0..each {
                    let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
                        "metadata": {"name": format!("m-{writer}-{n}")}, "data": {"n": n.to_string()}});
                    assert_eq!(create(node, MAPS, &map).code, 201);
                }
            });
        }
        let first: Vec<u64> = {
            let mut all = seen.into_iter().map(|watcher| watcher.join().unwrap());
            let first = all.next().unwrap();
            for other in all {
                assert_eq!(other, first);
            }
            first
        };
        assert_eq!(first.len(), total);
        assert!(first.windows(2).all(|pair| pair[0] < pair[1]), "in the store's order");
    });
    let seconds = begun.elapsed().as_secs_f64();
    let metrics = ask(&node, "GET", "/metrics", &[], b"").body;
    println!(
        "{watchers} watchers, {writers} writers: {:.0} creations/s, {:.0} events/s",
        total as f64 / seconds,
        (total * watchers) as f64 / seconds
    );
    assert!(metrics.contains("apiserver_terminated_watchers_total 0"), "nobody was cut off");
}

fn version(event: &Value) -> u64 {
    assert_eq!(event["type"], "ADDED");
    event["object"]["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}
