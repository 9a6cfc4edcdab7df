//! The history folded from records as the node's loop writes them.
#![allow(clippy::unwrap_used)]

use super::archive::Archive;
use super::*;
use serde_json::json;

const POD: PodUid = PodUid(7);

fn at(seconds: u64) -> Time {
    Time(1_767_225_600_000_000_000 + seconds * 1_000_000_000)
}

fn life(name: &str, attempt: u32) -> ContainerId {
    ContainerId { name: name.into(), incarnation: 0, attempt }
}

fn fold(history: &mut History, seconds: u64, what: What) -> Vec<Changed> {
    let entry = Entry { at: at(seconds), what };
    let read = Entry::from_bytes(&entry.to_bytes()).unwrap();
    assert_eq!(read, entry);
    history.fold(&read)
}

fn asked(history: &mut History, seconds: u64, by: &str, generation: u64, names: &[&str]) {
    let containers: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
    let pod = json!({"metadata": {"namespace": "default", "name": "web", "generation": generation, "uid": POD.to_string()},
        "spec": {"containers": containers, "volumes": [{"name": "v"}]}});
    let what = history.asked(by, &pod).unwrap();
    fold(history, seconds, what);
    assert_eq!(history.asked(by, &pod), None, "a generation is asked for once");
}

fn started(history: &mut History, seconds: u64, container: ContainerId) {
    let what = What::Started { pod: POD, container, image: "busybox:1".into(), since: at(seconds) };
    fold(history, seconds, what);
}

fn ended(history: &mut History, seconds: u64, container: ContainerId, code: i32) -> Vec<Changed> {
    let exit =
        Exit { code, signal: None, reason: "Error".into(), started_at: None, finished_at: at(seconds) };
    fold(history, seconds, What::Ended { pod: POD, container, exit })
}

fn allocated(history: &mut History, seconds: u64, generation: u64) -> Vec<Changed> {
    let spec = json!({"containers": [], "volumes": []});
    fold(history, seconds, What::Allocated { pod: POD, generation, revision: seconds, spec })
}

/// jane's pod gets a container of joe's; its own crashes and comes again; the pod goes.
fn story(kept: usize) -> History {
    let mut history = History::new(kept);
    asked(&mut history, 0, "jane", 1, &["app"]);
    assert_eq!(allocated(&mut history, 0, 1)[0].change, ChangeType::Added);
    fold(
        &mut history,
        1,
        What::Mounted {
            pod: POD,
            volume: VolumeId { name: "v".into(), generation: 0 },
            source: "emptyDir".into(),
        },
    );
    started(&mut history, 1, life("app", 0));
    asked(&mut history, 5, "joe", 2, &["app", "tool"]);
    let changed = allocated(&mut history, 5, 2);
    assert_eq!(changed[0].change, ChangeType::Modified);
    assert_eq!(changed[0].old.as_ref().unwrap()["spec"]["generation"], 1);
    started(&mut history, 6, life("tool", 0));
    assert_eq!(ended(&mut history, 9, life("app", 0), 3)[0].object["status"]["exitCode"], 3);
    started(&mut history, 10, life("app", 1));
    history
}

fn names(history: &History, kind: Kind, when: When) -> Vec<String> {
    let word = |object: &Value| match kind {
        Kind::ContainerRun => {
            format!("{}.{}", object["spec"]["container"].as_str().unwrap(), object["spec"]["attempt"])
        }
        Kind::VolumeRun => object["spec"]["volume"].as_str().unwrap().to_owned(),
        Kind::Allocation => object["spec"]["generation"].to_string(),
    };
    history.list(kind, when).map(|object| word(&object)).collect()
}

#[test]
fn who_asked_for_what_and_when_it_ran() {
    let history = story(100);
    let runs: Vec<Value> = history.list(Kind::ContainerRun, When::Now).collect();
    let by: Vec<&str> = runs.iter().map(|run| run["spec"]["askedBy"].as_str().unwrap()).collect();
    assert_eq!(by, ["jane", "joe", "jane"]);
    let runs = |when| names(&history, Kind::ContainerRun, when);
    assert_eq!(runs(When::At(at(7))), ["app.0", "tool.0"]);
    assert_eq!(runs(When::At(at(9))), ["tool.0"]);
    assert_eq!(runs(When::AsOf(at(9))), ["app.0", "tool.0"]);
    let then: Vec<Value> = history.list(Kind::ContainerRun, When::AsOf(at(8))).collect();
    assert_eq!(then[0]["status"]["exitCode"], Value::Null, "nobody knew how it would end");
    let allocations = |when| names(&history, Kind::Allocation, when);
    assert_eq!(allocations(When::Now), ["2"]);
    assert_eq!(allocations(When::At(at(3))), ["1"]);
    assert_eq!(allocations(When::AsOf(at(3))), ["1"]);
    let now = history.get(Kind::Allocation, "default", "web").unwrap();
    assert_eq!((&now["spec"]["askedBy"], &now["status"]["revision"]), (&json!("joe"), &json!(5)));
    let volume = history.list(Kind::VolumeRun, When::Now).next().unwrap();
    assert_eq!((&volume["spec"]["askedBy"], &volume["spec"]["source"]), (&json!("jane"), &json!("emptyDir")));
}

/// Every version that was, asked for later, is what was listed then.
#[test]
fn any_version_can_be_asked_for() {
    let mut history = story(100);
    let kinds = [Kind::ContainerRun, Kind::VolumeRun, Kind::Allocation];
    let all = |history: &History, when: When| -> Vec<Vec<Value>> {
        kinds.iter().map(|kind| history.list(*kind, when).collect()).collect()
    };
    let mut seen = vec![(history.version(), all(&history, When::Now))];
    ended(&mut history, 12, life("tool", 0), 0);
    seen.push((history.version(), all(&history, When::Now)));
    ended(&mut history, 13, life("app", 1), 0);
    fold(
        &mut history,
        14,
        What::Unmounted { pod: POD, volume: VolumeId { name: "v".into(), generation: 0 } },
    );
    let gone = fold(&mut history, 15, What::Left { pod: POD });
    assert_eq!(gone[0].change, ChangeType::Deleted);
    seen.push((history.version(), all(&history, When::Now)));
    for (version, then) in seen {
        assert_eq!(all(&history, When::Revision(version)), then, "version {version}");
    }
    assert!(!history.knows(POD));
    assert_eq!(names(&history, Kind::Allocation, When::Now), Vec::<String>::new());
}

#[test]
fn what_is_forgotten_is_known_to_be() {
    let mut history = story(1);
    assert!(history.remembers(Kind::ContainerRun, When::Now));
    ended(&mut history, 12, life("tool", 0), 0);
    let left = history.overflow(Kind::ContainerRun, 1).unwrap();
    assert_eq!((left.len(), left[0].ended.unwrap().0), (1, at(9)));
    assert_eq!(history.overflow(Kind::ContainerRun, 1), None, "one is to be remembered");
    assert_eq!(names(&history, Kind::ContainerRun, When::Now), ["tool.0", "app.1"]);
    assert!(!history.remembers(Kind::ContainerRun, When::Now));
    assert!(!history.remembers(Kind::ContainerRun, When::At(at(8))));
    assert!(history.remembers(Kind::ContainerRun, When::At(at(9))), "what it forgot had ended by then");
    assert!(history.remembers(Kind::Allocation, When::Now));
    assert!(history.remembers(Kind::VolumeRun, When::Now));
}

#[test]
fn every_field_that_is_told_is_explained() {
    let mut history = story(100);
    ended(&mut history, 12, life("tool", 0), 0);
    let schemas = super::schema::schemas();
    for kind in [Kind::ContainerRun, Kind::VolumeRun, Kind::Allocation] {
        for object in history.list(kind, When::At(at(7))) {
            for (part, word) in [("spec", "Spec"), ("status", "Status")] {
                let name = format!("io.k8s.api.history.v1alpha1.{}{word}", kind.as_str());
                let known = &schemas[&name]["properties"];
                let told = object[part].as_object().unwrap();
                let unexplained: Vec<&String> = told.keys().filter(|field| known[*field].is_null()).collect();
                assert!(unexplained.is_empty(), "{name}: {unexplained:?}");
            }
        }
    }
}

/// However few are remembered and wherever the journal's end was lost, all is told as if everything was remembered.
#[test]
fn what_is_not_remembered_is_in_the_archive() {
    let dir = tempfile::tempdir().unwrap();
    let mut archive = Archive::open(dir.path()).unwrap();
    let (mut all, mut few) = (History::new(usize::MAX), History::new(10));
    let mut entries = Vec::new();
    let mut write = |seconds: u64, what: What| entries.push(Entry { at: at(seconds), what });
    let life = |n: u64| ContainerId { name: "tool".into(), incarnation: n as u32, attempt: 0 };
    for n in 0..3_500 {
        let container = life(n);
        write(n, What::Started { pod: POD, container, image: "busybox:1".into(), since: at(n) });
        // One goes on for long.
        if n >= 5 && n != 105 {
            let exit = Exit {
                code: 0,
                signal: None,
                reason: "Completed".into(),
                started_at: None,
                finished_at: at(n),
            };
            write(n, What::Ended { pod: POD, container: life(n - 5), exit });
        }
    }
    for entry in &entries {
        all.fold(entry);
        few.fold(entry);
        archive.take(&mut few).unwrap();
    }
    assert!(few.shelves[&Kind::ContainerRun].episodes.len() < 1_100 && archive.covers(&few));
    let moments =
        [When::Now, When::At(at(7)), When::At(at(3_000)), When::AsOf(at(900)), When::Revision(4_000)];
    let same = |few: &History, archive: &Archive, all: &History| {
        for when in moments {
            let told = Past::list(few, archive, Kind::ContainerRun, "", when).read().unwrap();
            let expected: Vec<Arc<Value>> = all.list(Kind::ContainerRun, when).map(Arc::new).collect();
            assert_eq!(told.len(), expected.len(), "{when:?}");
            assert_eq!(told, expected, "{when:?}");
        }
        let name = all.list(Kind::ContainerRun, When::At(at(7))).next().unwrap()["metadata"]["name"].clone();
        let found = Past::get(few, archive, Kind::ContainerRun, "", name.as_str().unwrap()).read().unwrap();
        assert_eq!((found.len(), &found[0]["metadata"]["name"]), (1, &name));
    };
    same(&few, &archive, &all);
    let few_blocks = archive.excerpt(&few, Kind::ContainerRun, When::At(at(7))).unwrap();
    assert_eq!(few_blocks.blocks(), 1, "the others ended or began at other times");
    assert_eq!(archive.excerpt(&few, Kind::ContainerRun, When::Now).unwrap().blocks(), 3);

    // Another life finds the same, folds the same again, and writes nothing twice; what a crash left of a block is cut.
    let file = dir.path().join("ContainerRun.past");
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, [&whole[..], &whole[..5_000]].concat()).unwrap();
    let mut archive = Archive::open(dir.path()).unwrap();
    let mut again = History::new(10);
    for entry in &entries {
        again.fold(entry);
        archive.take(&mut again).unwrap();
    }
    assert_eq!(again, few);
    same(&again, &archive, &all);
    assert_eq!(std::fs::read(&file).unwrap(), whole);

    // The journal's end was lost, and other things happen then.
    let kept = entries.len() / 2;
    let (mut all, mut few) = (History::new(usize::MAX), History::new(10));
    for entry in &entries[..kept] {
        all.fold(entry);
        few.fold(entry);
        archive.take(&mut few).unwrap();
    }
    archive.cut(few.version()).unwrap();
    for entry in &entries[kept + 700..] {
        all.fold(entry);
        few.fold(entry);
        archive.take(&mut few).unwrap();
    }
    same(&few, &archive, &all);
    let image = serde_json::to_vec(&few).unwrap();
    let read: History = serde_json::from_slice(&image).unwrap();
    assert_eq!(read.restored(10), few);

    // Damage is told, with what to do.
    let mut damaged = std::fs::read(&file).unwrap();
    damaged[200] ^= 1;
    std::fs::write(&file, damaged).unwrap();
    let told = Past::list(&few, &archive, Kind::ContainerRun, "", When::Now).read().unwrap_err().to_string();
    assert!(
        told.contains("ContainerRun.past at 0") && told.contains("written again from the journal"),
        "{told}"
    );
    std::fs::remove_file(&file).unwrap();
    assert!(!Archive::open(dir.path()).unwrap().covers(&few), "what is missing is known to be");
}
