//! From whichever record on a start goes on, it comes to the same as the fold of everything.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::driver::Folded;
use crate::server::history::{Entry, What};
use crate::server::hub::take_in;
use nodefold_api::{Body, Request};
use nodefold_core::ids::{ContainerId, PodUid};
use nodefold_core::{Config, Node};
use nodefold_journal::{Memory, Options, Position, Reader, Record, Writer, verify};
use serde_json::json;

const KEY: [u8; 32] = [7; 32];
/// Fewer than there are changes, so that the window moves.
const CHANGES: usize = 12;

#[derive(Default)]
struct Heard(Vec<String>);

impl Listener for Heard {
    fn folded(&mut self, _: &Folded) {}
    fn asked(&mut self, _: &str, _: &str, _: u16) {}
    fn told(&mut self, text: &str) {
        self.0.push(text.to_owned());
    }
}

struct Both {
    store: StoreState,
    history: HistoryState,
}

fn open(storage: &Arc<dyn Storage>, vault: &Vault, heard: &mut Heard) -> Both {
    let cache = || WatchCache::new(CHANGES, 10, 10);
    Both {
        store: StoreState::open(storage, ApiConfig::default(), cache(), vault, heard).unwrap(),
        history: HistoryState::open(storage, &Archive::default(), 100, cache(), heard).unwrap(),
    }
}

impl Both {
    fn fold(&mut self, event: &ApiEvent, entries: &[Entry], record: u64, vault: &Vault) {
        self.store.fold(event, record, vault);
        for entry in entries {
            take_in(&mut self.history.history, &mut self.history.past, entry);
        }
    }

    fn keep(&self, mark: &Mark) {
        let StoreState { api, graph, window, at, .. } = &self.store;
        let store = StoreImage::of(api, graph.clone(), window.clone(), *at);
        write_both(mark, &store, &HistoryImage::of(&self.history.history, &self.history.past)).unwrap();
    }

    /// All that anybody can ask of it.
    fn all(&self) -> String {
        let told = |cache: &WatchCache| cache.events().map(|e| format!("{e:?}\n")).collect::<String>();
        let StoreState { api, graph, window, cache, at, .. } = &self.store;
        let now = (api.digest(), api.resource_version(), graph, at, window.objects());
        let caches =
            (told(cache), cache.forgotten(), told(&self.history.past), self.history.past.forgotten());
        format!("{now:?}\n{caches:?}\n{:?}", self.history.history)
    }
}

/// Pods whose containers come and go while their names are held, secrets, deletions, other gates; and what ran.
fn story() -> Vec<(ApiEvent, Vec<Entry>)> {
    let pod = |name: &str| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
            "containers": [{"name": "app", "image": "busybox:1"}],
            "volumes": [{"name": "s", "secret": {"secretName": "s"}}]}})
    };
    let create = |object: Value, uid: u128| Request::Create { object, uid: PodUid(uid) };
    let running = |name: &str, uid: u128, generation: u64| Request::Status {
        namespace: "default".into(),
        name: name.into(),
        uid: PodUid(uid),
        status: json!({"phase": "Running", "observedGeneration": generation}),
    };
    let add = |body: Value| Request::Dynamic {
        namespace: "default".into(),
        name: "web".into(),
        body: Body::StrategicMerge(body),
    };
    let delete = |kind: &str, name: &str| Request::Delete {
        kind: kind.into(),
        namespace: "default".into(),
        name: name.into(),
        grace_seconds: None,
        force: true,
    };
    let secret = |value: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"},
            "stringData": {"k": value}})
    };
    let mut requests = vec![create(secret("one"), 1), create(pod("web"), 2), running("web", 2, 1)];
    for round in 2..6 {
        let tool = json!({"name": "tool", "image": "busybox:1"});
        requests.push(add(json!({"spec": {"containers": [tool]}})));
        requests.push(running("web", 2, 2 * round - 2));
        requests.push(add(json!({"spec": {"containers": [{"name": "tool", "$patch": "delete"}]}})));
        requests.push(create(pod(&format!("p{round}")), 10 + u128::from(round)));
        requests.push(running("web", 2, if round % 2 == 0 { 2 * round - 1 } else { 1 }));
    }
    requests.push(Request::Update { object: secret("two") });
    requests.push(add(json!({"spec": {"volumes": [{"name": "s", "$patch": "delete"}]}})));
    requests.push(delete("Pod", "p3"));
    requests.push(Request::NodeGates(Default::default()));
    requests.push(delete("Secret", "s"));
    requests.push(create(pod("last"), 99));
    let times = (1..).map(|n| Time(1_767_225_600_000_000_000 + n * 1_000_000_000));
    let with_history = requests.into_iter().zip(times).enumerate().map(|(n, (request, at))| {
        let event = ApiEvent::new(at, request, "jane").sealed(&KEY).into_owned();
        let container = ContainerId { name: "tool".into(), incarnation: n as u32 / 2, attempt: 0 };
        let what = if n % 2 == 0 {
            What::Started { pod: PodUid(2), container, image: "busybox:1".into(), since: at }
        } else {
            let exit = nodefold_core::event::Exit {
                code: 0,
                signal: None,
                reason: "Completed".into(),
                started_at: None,
                finished_at: at,
            };
            What::Ended { pod: PodUid(2), container, exit }
        };
        let asked = What::Asked {
            pod: PodUid(2),
            namespace: "default".into(),
            name: "web".into(),
            generation: n as u64 + 1,
            by: "jane".into(),
            containers: vec!["app".into(), "tool".into()],
            volumes: vec![],
        };
        (event, [asked, what].map(|what| Entry { at, what }).to_vec())
    });
    with_history.collect()
}

#[test]
fn whatever_record_a_start_goes_on_from_it_comes_to_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let vault = Vault::open(dir.path()).unwrap();
    let storage = Memory::new().storage();
    let config = Config::default();
    let mut node = Node::new(config.clone());
    let mut writer = Writer::create(storage.clone(), Options::default(), &config, &mut node).unwrap();
    let mut heard = Heard::default();
    let mut lives = vec![open(&storage, &vault, &mut heard)];
    let mut accepted = 0;
    for (event, entries) in story() {
        accepted += u64::from(lives[0].store.api.explain(&event, None).0.is_ok());
        writer.append_foreign(event.at, API_STREAM, &event.to_bytes()).unwrap();
        assert!(writer.mark().is_none(), "what is not durable is not kept");
        let record = writer.commit(&mut node).unwrap().last_record;
        for life in &mut lives {
            life.fold(&event, &entries, record, &vault);
        }
        lives[0].keep(&writer.mark().unwrap());
        let life = open(&storage, &vault, &mut heard);
        assert_eq!(life.store.records, record);
        assert_eq!(life.all(), lives[0].all(), "as of record {record}");
        lives.push(life);
    }
    assert!(accepted > 20, "the story is about something: {accepted}");
    for (n, life) in lives.iter().enumerate() {
        assert_eq!(life.all(), lives[0].all(), "from the {n}th on");
    }
    assert_eq!(heard.0, [""; 0]);
    let files = storage.list().unwrap();
    assert_eq!(files.iter().filter(|name| name.ends_with(".kept")).count(), 4, "two of each: {files:?}");
    writer.stop(&mut node).unwrap();
    verify::<Node>(&storage).unwrap();
    let records = Reader::open_at(&storage, Position::Record(1)).unwrap();
    assert!(records.map(Result::unwrap).any(|entry| matches!(entry.record, Record::Foreign(_))));
}

/// What can't be used is passed over and told: the newest, then the one before it, then none.
#[test]
fn what_is_damaged_or_of_another_log_is_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let vault = Vault::open(dir.path()).unwrap();
    let disk = Memory::new();
    let storage = disk.storage();
    let (config, other) = (Config::default(), Memory::new().storage());
    let mut nodes = [Node::new(config.clone()), Node::new(config.clone())];
    let mut writer = Writer::create(storage.clone(), Options::default(), &config, &mut nodes[0]).unwrap();
    let mut alike = Writer::create(other.clone(), Options::default(), &config, &mut nodes[1]).unwrap();
    let mut heard = Heard::default();
    let mut both = open(&storage, &vault, &mut heard);
    let mut records = Vec::new();
    for (event, entries) in story().into_iter().take(4) {
        writer.append_foreign(event.at, API_STREAM, &event.to_bytes()).unwrap();
        alike.append_foreign(event.at, "another", b"").unwrap();
        let record = writer.commit(&mut nodes[0]).unwrap().last_record;
        alike.commit(&mut nodes[1]).unwrap();
        both.fold(&event, &entries, record, &vault);
        both.keep(&writer.mark().unwrap());
        records.push(record);
    }
    let name = |record: u64| format!("{record:020}.{API_STREAM}.kept");
    let bytes = storage.read(&name(records[3]), u64::MAX).unwrap();
    // A log with the same id and as many records, but others.
    let mut file = other.create(&name(records[3])).unwrap();
    file.write_at(0, &bytes).unwrap();
    assert_eq!(open(&other, &vault, &mut heard).store.records, 0);
    assert!(heard.0.remove(0).contains("the log has another record"), "{:?}", heard.0);
    for (nth, goes_on_from) in [(3, records[2]), (2, 0)] {
        let mut bytes = storage.read(&name(records[nth]), u64::MAX).unwrap();
        let at = bytes.len() * 2 / 3;
        bytes[at] ^= 1;
        storage.create(&name(records[nth])).unwrap().write_at(0, &bytes).unwrap();
        let opened = open(&storage, &vault, &mut heard);
        assert_eq!(opened.store.records, goes_on_from);
        assert_eq!(opened.history.records, records[3], "each by itself");
        assert!(heard.0.iter().all(|told| told.contains("does not match its checksum")), "{:?}", heard.0);
    }
    assert_eq!(heard.0.len(), 3);
}
