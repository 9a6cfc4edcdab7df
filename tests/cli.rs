//! The program as people start it: exit statuses, what it says when something does not hold, and what it writes where.
#![allow(clippy::expect_used, reason = "a test that can't go on fails")]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const STORY: &str = "\
name: one-pod
about: A pod lives and dies.
steps:
- create:
    apiVersion: v1
    kind: Pod
    metadata: {name: web}
    spec:
      terminationGracePeriodSeconds: 2
      containers:
      - {name: app, image: busybox:1, volumeMounts: [{name: scratch, mountPath: /s}]}
      volumes: [{name: scratch, emptyDir: {}}]
- settle: 1m
- mark: up
- expect: {pod: web, status: {phase: PHASE}}
- advance: 40s
- exit: {pod: web, container: app, code: 3}
- advance: 30s
- delete: {pod: web}
- settle: 1m
- expect: {pod: web, gone: true}
";

/// A directory of its own for each test.
struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Place {
        Place { dir: TempDir::new().expect("a temporary directory") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The story with a right expectation, or a wrong one.
    fn story(&self, phase: &str) -> PathBuf {
        self.file("story.yaml", &STORY.replace("PHASE", phase))
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        std::fs::write(self.path(name), text).expect("write a file");
        self.path(name)
    }

    /// The journal of a run of the story.
    fn journal(&self) -> PathBuf {
        let journal = self.path("journal");
        let ran = nodefold(&[Path::new("run"), &self.story("Running"), Path::new("--journal"), &journal]);
        assert_eq!(status(&ran), 0, "{}", both(&ran));
        journal
    }
}

fn nodefold<A: AsRef<std::ffi::OsStr>>(args: &[A]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nodefold")).args(args).output().expect("start nodefold")
}

fn of_journal(verb: &str, journal: &Path, more: &[&str]) -> Output {
    let mut args = vec![verb.as_ref(), journal.as_os_str()];
    args.extend(more.iter().map(std::ffi::OsStr::new));
    nodefold(&args)
}

fn status(output: &Output) -> i32 {
    output.status.code().expect("an exit status")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

fn both(output: &Output) -> String {
    stdout(output) + &stderr(output)
}

/// Every line of the output as JSON.
fn json_lines(output: &Output) -> Vec<Value> {
    stdout(output).lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// The digest that a line names last.
fn digest(text: &str) -> &str {
    let at = text.rfind("digest ").unwrap_or_else(|| panic!("no digest in {text}"));
    text[at + 7..].split_whitespace().next().unwrap_or_default()
}

#[test]
fn a_story_that_holds_exits_with_0_and_shows_the_lives_in_it() {
    let place = Place::new();
    let ran = nodefold(&[Path::new("run"), &place.story("Running")]);
    let text = both(&ran);
    assert_eq!(status(&ran), 0, "{text}");
    assert!(text.contains("✓ one-pod holds"), "{text}");
    assert!(text.contains("web/app#0.0  Running"), "the timeline tells of the container:\n{text}");
    let row = |name: &str| {
        text.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_default().to_owned()
    };
    assert!(row("app").contains('█') && row("app").contains('✗') && row("app").contains('↻'), "{text}");
    assert!(row("(scratch)").contains('▄'), "{text}");
}

#[test]
fn an_expectation_that_does_not_hold_exits_with_1_and_says_why() {
    let place = Place::new();
    let ran = nodefold(&[Path::new("run"), &place.story("Succeeded")]);
    let text = stdout(&ran);
    assert_eq!(status(&ran), 1, "{}", both(&ran));
    for part in
        ["story.yaml:15", "expected", "Succeeded", "actual", "Running", "because", "✗ one-pod does not hold"]
    {
        assert!(text.contains(part), "{part:?} is missing:\n{text}");
    }
    assert!(text.contains("web/app#0.0  Running"), "the timeline up to there is shown:\n{text}");
    assert!(!text.contains("exit app"), "nothing runs after it:\n{text}");
}

#[test]
fn a_quiet_run_tells_the_timeline_only_of_what_fails() {
    let place = Place::new();
    let good = nodefold(&[Path::new("run"), Path::new("--quiet"), &place.story("Running")]);
    assert_eq!((status(&good), stdout(&good).lines().count()), (0, 1), "{}", both(&good));
    let bad = nodefold(&[Path::new("run"), Path::new("--quiet"), &place.story("Failed")]);
    assert_eq!(status(&bad), 1);
    assert!(stdout(&bad).contains("web/app#0.0  Running"), "{}", both(&bad));
}

#[test]
fn input_that_cannot_be_used_exits_with_2_and_names_file_line_and_remedy() {
    let place = Place::new();
    let misspelt = place.file("misspelt.yaml", "name: x\nsteps:\n- settle: 1m\n- expct: {accepted: true}\n");
    let ran = nodefold(&[Path::new("run"), &misspelt, &place.story("Running")]);
    assert_eq!(status(&ran), 2, "{}", both(&ran));
    let text = stderr(&ran);
    assert!(text.contains("misspelt.yaml:4") && text.contains("expect"), "{text}");
    assert_eq!(stdout(&ran), "", "nothing runs if one file can't be read");

    let missing = nodefold(&[Path::new("run"), &place.path("no-such.yaml")]);
    assert_eq!(status(&missing), 2);
    assert!(stderr(&missing).contains("no-such.yaml"), "{}", stderr(&missing));

    let no_journal = of_journal("replay", &place.path("nowhere"), &[]);
    assert_eq!(status(&no_journal), 2);
    assert!(stderr(&no_journal).contains("nowhere"), "{}", stderr(&no_journal));
    assert_eq!(status(&nodefold(&["fly"])), 2);

    let latin = place.path("latin.yaml");
    std::fs::write(&latin, b"name: x\nabout: \"na\xefve\"\nsteps: []\n").expect("a file");
    let latin = nodefold(&[Path::new("run"), &latin]);
    assert_eq!(status(&latin), 2);
    assert!(stderr(&latin).contains("latin.yaml:2: this is not UTF-8"), "{}", stderr(&latin));

    let no_seeds = nodefold(&["sim", "--seeds", "5..2"]);
    assert_eq!(status(&no_seeds), 2);
    assert!(stderr(&no_seeds).contains("\"5..2\" is no range of seeds"), "{}", stderr(&no_seeds));
}

#[test]
fn a_story_may_come_from_standard_input() {
    let place = Place::new();
    let story = std::fs::File::open(place.story("Running")).expect("a story");
    let mut run = Command::new(env!("CARGO_BIN_EXE_nodefold"));
    let ran = run.args(["run", "-", "-q"]).stdin(story).output().expect("start nodefold");
    assert_eq!(status(&ran), 0, "{}", both(&ran));
}

#[test]
fn the_worst_of_several_scenarios_counts() {
    let place = Place::new();
    let good = place.story("Running");
    let bad = place.file("bad.yaml", &STORY.replace("one-pod", "bad").replace("PHASE", "Failed"));
    let ran = nodefold(&[Path::new("run"), Path::new("-q"), &bad, &good]);
    assert_eq!(status(&ran), 1, "{}", both(&ran));
    assert!(stdout(&ran).contains("1 of 2 scenarios hold"), "{}", stdout(&ran));
}

#[test]
fn json_output_is_one_object_a_line_that_tells_all() {
    let place = Place::new();
    let ran = nodefold(&[Path::new("run"), Path::new("--json"), &place.story("Running")]);
    assert_eq!(status(&ran), 0);
    let records = json_lines(&ran);
    let of = |kind: &str| records.iter().filter(|r| r["record"] == kind).count();
    for kind in [
        "scenarioBegan",
        "stepBegan",
        "podNamed",
        "requested",
        "fact",
        "command",
        "transition",
        "expectation",
    ] {
        assert!(of(kind) > 0, "no {kind}");
    }
    let exit = records.iter().find(|r| r["fact"] == "ContainerExited").expect("the exit");
    assert_eq!((&exit["pod"], &exit["exitCode"]), (&Value::from("default/web"), &Value::from(3)));
    let outcome = records.last().expect("an outcome");
    assert_eq!((&outcome["record"], &outcome["verdict"]), (&Value::from("outcome"), &Value::from("passed")));
    assert_eq!(outcome["counts"]["facts"], of("fact"));

    let failed = nodefold(&[Path::new("run"), Path::new("--json"), &place.story("Failed")]);
    assert_eq!(status(&failed), 1);
    let outcome = json_lines(&failed).pop().expect("an outcome");
    assert_eq!(
        (&outcome["verdict"], &outcome["line"]),
        (&Value::from("expectationFailed"), &Value::from(15))
    );
}

#[test]
fn secrets_are_told_by_name_only_and_never_reach_the_journal() {
    let place = Place::new();
    let story = "name: s\nsteps:\n- create: {apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: \
                 {token: swordfish}}\n- settle: 1s\n";
    let journal = place.path("journal");
    let story = place.file("secret.yaml", story);
    let args = [Path::new("run"), Path::new("--json"), &story, Path::new("--journal"), &journal];
    let ran = nodefold(&args);
    assert_eq!(status(&ran), 0, "{}", both(&ran));
    let encoded = "c3dvcmRmaXNo";
    assert!(stdout(&ran).contains("token"));
    assert!(!stdout(&ran).contains("swordfish") && !stdout(&ran).contains(encoded), "{}", stdout(&ran));
    for entry in std::fs::read_dir(&journal).expect("the journal's directory") {
        let bytes = std::fs::read(entry.expect("a file").path()).expect("its bytes");
        let holds = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        assert!(!holds("swordfish") && !holds(encoded));
    }
    let log = of_journal("log", &journal, &["--json"]);
    assert!(stdout(&log).contains("token") && !stdout(&log).contains("swordfish"), "{}", stdout(&log));
}

#[test]
fn nothing_that_is_piped_has_escape_codes() {
    let place = Place::new();
    let journal = place.journal();
    let outputs = [
        nodefold(&[Path::new("run"), &place.story("Failed")]),
        of_journal("replay", &journal, &["-v"]),
        of_journal("replay", &journal, &["--at", "20s", "--pod", "web"]),
        of_journal("log", &journal, &[]),
        of_journal("verify", &journal, &[]),
    ];
    for output in outputs {
        assert!(!both(&output).contains('\u{1b}'), "{}", both(&output));
        assert!(!stdout(&output).is_empty(), "{}", both(&output));
    }
}

#[test]
fn replay_agrees_with_the_run_on_the_digest() {
    let place = Place::new();
    let journal = place.path("j");
    let ran = nodefold(&[Path::new("run"), &place.story("Running"), Path::new("--journal"), &journal]);
    assert_eq!(status(&ran), 0, "{}", both(&ran));
    let lived = stdout(&ran);
    let lived = digest(&lived);
    assert_eq!(lived.len(), 32);
    for verb in
        [("replay", &["--verify"][..]), ("replay", &[][..]), ("verify", &[][..]), ("snapshot", &[][..])]
    {
        let again = of_journal(verb.0, &journal, verb.1);
        assert_eq!(status(&again), 0, "{verb:?}: {}", both(&again));
        assert_eq!(digest(&stdout(&again)), lived, "{verb:?}");
    }
    let verified = json_lines(&of_journal("verify", &journal, &["--json"])).remove(0);
    assert_eq!((&verified["equal"], &verified["digest"]), (&Value::from(true), &Value::from(lived)));
    assert!(verified["digestsEqual"].as_u64() > Some(10), "{verified}");
}

#[test]
fn what_an_agent_did_before_it_died_is_in_the_journal_once() {
    let place = Place::new();
    let story =
        STORY.replace("PHASE", "Running").replace("- advance: 40s\n", "- crash: agent\n- advance: 40s\n");
    let journal = place.path("j");
    let story = place.file("crash.yaml", &story);
    let ran = nodefold(&[Path::new("run"), &story, Path::new("--journal"), &journal]);
    assert_eq!(status(&ran), 0, "{}", both(&ran));
    let verified = of_journal("verify", &journal, &[]);
    assert_eq!(status(&verified), 0, "{}", both(&verified));
    assert_eq!(digest(&stdout(&verified)), digest(&stdout(&ran)));
    let log = json_lines(&of_journal("log", &journal, &["--json"]));
    let of = |key: &str, value: &str| log.iter().filter(|r| r[key] == value).count();
    assert_eq!((of("fact", "AgentStarted"), of("mark", "crash")), (2, 1));
    let asked =
        |what: &str| log.iter().filter(|r| r["what"].as_str().is_some_and(|w| w.starts_with(what))).count();
    assert_eq!((asked("create Pod"), asked("delete Pod")), (1, 1));
}

#[test]
fn a_second_run_does_not_touch_the_journal_of_the_first() {
    let place = Place::new();
    let journal = place.journal();
    let again = nodefold(&[Path::new("run"), &place.story("Running"), Path::new("--journal"), &journal]);
    assert_eq!(status(&again), 2, "{}", both(&again));
    assert!(stderr(&again).contains("already holds a journal"), "{}", stderr(&again));
    assert_eq!(status(&of_journal("verify", &journal, &[])), 0);
}

#[test]
fn several_scenarios_keep_a_journal_each() {
    let place = Place::new();
    let other = place.file("other.yaml", &STORY.replace("one-pod", "other").replace("PHASE", "Running"));
    let all = place.path("all");
    let args =
        [Path::new("run"), Path::new("-q"), &place.story("Running"), &other, Path::new("--journal"), &all];
    assert_eq!(status(&nodefold(&args)), 0);
    for name in ["one-pod", "other"] {
        assert_eq!(status(&of_journal("verify", &all.join(name), &[])), 0, "{name}");
    }
}

#[test]
fn a_pod_is_shown_at_any_moment_in_kubernetes_own_yaml() {
    let place = Place::new();
    let journal = place.journal();
    let shown = of_journal("replay", &journal, &["--at", "30s", "--pod", "default/web"]);
    let text = stdout(&shown);
    assert_eq!(status(&shown), 0, "{}", both(&shown));
    let documents = nodefold_k8s::parse_documents(&text, "shown").expect("YAML");
    let [desired, allocated, status_document] = documents.as_slice() else {
        panic!("three documents: {text}")
    };
    for document in [desired, allocated, status_document] {
        assert_eq!(document.value["kind"], "Pod");
        assert_eq!(document.value["metadata"]["name"], "web");
    }
    assert_eq!(desired.value["spec"]["volumes"][0]["name"], "scratch");
    assert_eq!(allocated.value["spec"]["containers"][0]["image"], "busybox:1");
    assert_eq!(status_document.value["status"]["phase"], "Running");

    let json =
        json_lines(&of_journal("replay", &journal, &["--at", "30s", "--pod", "web", "--json"])).remove(0);
    assert_eq!(json["desired"], desired.value);
    assert_eq!(json["status"], status_document.value);
}

#[test]
fn the_same_moment_can_be_named_by_record_and_by_time() {
    let place = Place::new();
    let journal = place.journal();
    let by_time =
        json_lines(&of_journal("replay", &journal, &["--at", "30s", "--pod", "web", "--json"])).remove(0);
    let record = by_time["number"].to_string();
    let by_record =
        json_lines(&of_journal("replay", &journal, &["--at", &record, "--pod", "web", "--json"])).remove(0);
    assert_eq!(by_time["status"], by_record["status"]);
    let wrong = of_journal("replay", &journal, &["--at", "soon"]);
    assert_eq!(status(&wrong), 2);
    assert!(stderr(&wrong).contains("write a record's number"), "{}", stderr(&wrong));
}

#[test]
fn a_pod_that_is_gone_says_when_it_was_there() {
    let place = Place::new();
    let journal = place.journal();
    let gone = of_journal("replay", &journal, &["--pod", "web"]);
    assert_eq!(status(&gone), 2, "{}", both(&gone));
    let hint = stderr(&gone);
    let at = hint.rsplit("--at ").next().expect("a hint").trim();
    assert_eq!(status(&of_journal("replay", &journal, &["--pod", "web", "--at", at])), 0, "{hint}");
    let never = of_journal("replay", &journal, &["--pod", "wbe"]);
    assert!(status(&never) == 2 && stderr(&never).contains("default/web"), "{}", both(&never));
}

#[test]
fn the_log_shows_facts_requests_notes_and_batches_and_can_be_narrowed() {
    let place = Place::new();
    let journal = place.journal();
    let all = json_lines(&of_journal("log", &journal, &["--json"]));
    let of = |kind: &str| all.iter().filter(|r| r["record"] == kind).count();
    for kind in ["header", "fact", "request", "note", "batchEnd", "snapshot"] {
        assert!(of(kind) > 0, "no {kind}");
    }
    let numbers: Vec<u64> = all.iter().filter_map(|r| r["number"].as_u64()).collect();
    assert_eq!(numbers, (1..=all.len() as u64).collect::<Vec<_>>(), "every record, in order");

    let of_pod = json_lines(&of_journal("log", &journal, &["--json", "--pod", "web"]));
    assert!(of_pod.len() < all.len() && of_pod.iter().any(|r| r["record"] == "request"));
    assert!(of_pod.iter().filter(|r| r["record"] == "fact").all(|r| r["pod"] == "default/web"));

    let stranger = of_journal("log", &journal, &["--pod", "wbe"]);
    assert_eq!(status(&stranger), 2);
    assert!(stderr(&stranger).contains("the pods of this journal are: default/web"), "{}", stderr(&stranger));

    let since = json_lines(&of_journal("log", &journal, &["--json", "--since", "60s"]));
    assert!(!since.is_empty() && since.iter().all(|r| r["seconds"].as_f64() >= Some(60.0)));
    let lines = stdout(&of_journal("log", &journal, &[]));
    assert_eq!(lines.lines().count(), all.len());
    assert!(lines.contains("create Pod default/web") && lines.contains("ContainerExited"), "{lines}");
}

#[test]
fn a_replay_tells_the_same_lives_as_the_run() {
    let place = Place::new();
    let journal = place.path("j");
    let ran =
        stdout(&nodefold(&[Path::new("run"), &place.story("Running"), Path::new("--journal"), &journal]));
    let again = stdout(&of_journal("replay", &journal, &[]));
    let rows = |text: &str| -> Vec<String> {
        text.lines().filter(|line| line.contains(['█', '▄', '━'])).map(str::to_owned).collect()
    };
    assert!(rows(&ran).len() >= 3, "{ran}");
    assert_eq!(rows(&ran), rows(&again));
}

#[test]
fn damage_is_reported_with_its_place() {
    let place = Place::new();
    let journal = place.journal();
    let segment = std::fs::read_dir(&journal)
        .expect("the journal's directory")
        .map(|entry| entry.expect("a file").path())
        .find(|path| path.extension().is_some_and(|e| e == "seg"))
        .expect("a segment");
    let mut bytes = std::fs::read(&segment).expect("its bytes");
    bytes[700] ^= 1;
    std::fs::write(&segment, bytes).expect("write it");
    let verified = of_journal("verify", &journal, &[]);
    assert_eq!(status(&verified), 2, "{}", both(&verified));
    assert!(
        stderr(&verified).contains("offset") && stderr(&verified).contains(".seg"),
        "{}",
        stderr(&verified)
    );
}

#[test]
fn a_journal_of_another_node_is_found_out_by_verification() {
    use nodefold_core::{Commands, Config, Event, Fact, Node, time::Time};
    use nodefold_journal::{Files, Options, Writer};
    let place = Place::new();
    let journal = place.path("journal");
    // A node that swaps writes a journal that says it does not: its fold is another one's.
    let mut written = Node::new(Config { swap: true, ..Config::default() });
    let mut writer =
        Writer::create(Files::at(&journal), Options::default(), &Config::default(), &mut written)
            .expect("begin a journal");
    let mut out = Commands::default();
    for at in 1..4 {
        let event = Event { at: Time(at), fact: Fact::AgentStarted { boot_id: 7 } };
        writer.append(&event).expect("append");
        writer.commit(&mut written).expect("commit");
        written.apply(&event, &mut out);
        writer.commands_given(&out.commands);
        out.clear();
    }
    writer.stop(&mut written).expect("stop");
    let verified = of_journal("replay", &journal, &["--verify"]);
    assert_eq!(status(&verified), 1, "{}", both(&verified));
    assert!(
        stdout(&verified).contains("✗ batch 1") && stdout(&verified).contains("differs"),
        "{}",
        stdout(&verified)
    );
    let told = json_lines(&of_journal("verify", &journal, &["--json"])).remove(0);
    assert_eq!((&told["equal"], &told["difference"]["batch"]), (&Value::from(false), &Value::from(1)));
}

#[test]
fn the_examples_hold() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&examples)
        .expect("examples/")
        .map(|entry| entry.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|e| e == "yaml"))
        .collect();
    files.sort();
    assert!(files.len() >= 8, "{files:?}");
    let mut args = vec![PathBuf::from("run"), PathBuf::from("--quiet")];
    args.extend(files);
    let ran = nodefold(&args);
    assert_eq!(status(&ran), 0, "{}", both(&ran));
}

/// `judge` tells by its status what it found, and writes one object when asked.
#[test]
fn judge_ends_as_it_found() {
    let place = Place::new();
    let logs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/node-logs");
    let judge = |file: &Path, more: &[&str]| {
        let mut args = vec![Path::new("judge"), file];
        args.extend(more.iter().map(Path::new));
        nodefold(&args)
    };
    let clean = judge(&logs.join("03-hyperkube-status-truncated.log"), &[]);
    assert_eq!(clean.status.code(), Some(0), "{clean:?}");
    let found = judge(&logs.join("11-device-in-use-loop-v17.log"), &["--json"]);
    assert_eq!(found.status.code(), Some(1), "{found:?}");
    let object: Value = serde_json::from_slice(&found.stdout).expect("one object");
    assert_eq!(object["findings"][0]["kind"], "device-unmount-blocked");
    assert_eq!(object["findings"][0]["evidence"][0]["line"], 1);
    assert!(object["coverage"]["files"][0]["lines"].is_u64() && object["notes"].is_array());
    let nothing = judge(&place.file("notes.txt", "milk\neggs\n"), &[]);
    assert_eq!(nothing.status.code(), Some(2), "{nothing:?}");
}

/// What another node left behind folds like a journal of our own, and is judged like one.
#[test]
fn an_import_can_be_verified_and_judged() {
    let place = Place::new();
    let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/01-volumes-basic");
    let journal = place.path("imported");
    let imported = nodefold(&[
        Path::new("import"),
        &recording.join("kubelet.log.gz"),
        &recording.join("watch.jsonl.gz"),
        Path::new("--out"),
        &journal,
    ]);
    assert_eq!(imported.status.code(), Some(0), "{imported:?}");
    let verified = nodefold(&[Path::new("verify"), &journal]);
    assert_eq!(verified.status.code(), Some(0), "{verified:?}");
    let judged = nodefold(&[Path::new("judge"), &journal]);
    assert_eq!(judged.status.code(), Some(0), "{judged:?}");
}

#[test]
fn a_state_for_other_versions_is_a_document_that_says_what_it_is() {
    let place = Place::new();
    let (journal, file) = (place.journal(), place.path("state.json"));
    let before: Vec<_> =
        std::fs::read_dir(&journal).expect("a journal").flatten().map(|e| e.path()).collect();
    let wrote = nodefold(&[Path::new("snapshot"), &journal, Path::new("--portable"), &file]);
    assert!(wrote.status.success(), "{}", String::from_utf8_lossy(&wrote.stderr));
    let document: Value =
        serde_json::from_str(&std::fs::read_to_string(&file).expect("it was written")).expect("JSON");
    assert_eq!((&document["kind"], &document["version"]), (&"nodefold.dev/node-state".into(), &1.into()));
    let after: Vec<_> = std::fs::read_dir(&journal).expect("a journal").flatten().map(|e| e.path()).collect();
    assert_eq!(before.len(), after.len(), "the journal stays as it is");
    assert!(
        after.iter().any(|path| path.extension().is_some_and(|e| e == "state")),
        "it keeps one of its own"
    );
}

#[test]
fn a_journal_is_judged_by_the_oracles_alone() {
    // Rules for foreign evidence would take the removed volumes of this swap for volumes in use.
    let place = Place::new();
    let journal = place.path("swap");
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/workspace-swap.yaml");
    let ran = nodefold(&[Path::new("run"), &example, Path::new("--journal"), &journal]);
    assert!(ran.status.success());
    let judged = nodefold(&[Path::new("judge"), &journal]);
    let told = String::from_utf8_lossy(&judged.stdout).into_owned();
    assert_eq!(judged.status.code(), Some(0), "{told}");
    assert!(told.contains("clean"), "{told}");
}
