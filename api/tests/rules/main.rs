//! Every numbered row P, C, M, W, D and S of `reference/api-side.md` §1: a request that passes and one that is
//! refused with exactly this field and reason.

mod behaviour;
mod containers;
mod kept;
mod order;
mod placement;
mod policies;
mod preconditions;
mod sources;
mod standard;
#[path = "../support/mod.rs"]
mod support;
mod volumes;

use nodefold_api::{ApiConfig, Response};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use support::{World, causes, pod, running};

const REQUIRED: &str = "FieldValueRequired";
const INVALID: &str = "FieldValueInvalid";
const DUPLICATE: &str = "FieldValueDuplicate";
const FORBIDDEN: &str = "FieldValueForbidden";
const NOT_FOUND: &str = "FieldValueNotFound";
const NOT_SUPPORTED: &str = "FieldValueNotSupported";
const TOO_MANY: &str = "FieldValueTooMany";
const TOO_LONG: &str = "FieldValueTooLong";

type Expected = &'static [(&'static str, &'static str)];
const OK: Expected = &[];

/// What is asked of the running pod.
enum Ask {
    Nothing,
    Create,
    Dynamic(Value),
    Whole(fn(&mut Value)),
    Resize(Value),
    Ephemeral(Value),
    Update(fn(&mut Value)),
    /// The node's next status write, changed from the one before.
    Status(fn(&mut Value)),
}

struct Row {
    id: &'static str,
    what: &'static str,
    spec: Value,
    metadata: Value,
    config: fn(&mut ApiConfig),
    before: Vec<Value>,
    status: fn(&mut Value),
    deleted: bool,
    volumes_gate_off: bool,
    ask: Ask,
    expected: Vec<(String, &'static str)>,
}

/// A row about a plain running pod: one container `app` without anything.
fn row(id: &'static str, what: &'static str) -> Row {
    Row {
        id,
        what,
        spec: spec(json!([app()])),
        metadata: json!({}),
        config: |_| {},
        before: Vec::new(),
        status: |_| {},
        deleted: false,
        volumes_gate_off: false,
        ask: Ask::Nothing,
        expected: Vec::new(),
    }
}

impl Row {
    fn spec(self, spec: Value) -> Row {
        Row { spec, ..self }
    }
    fn metadata(self, metadata: Value) -> Row {
        Row { metadata, ..self }
    }
    fn config(self, config: fn(&mut ApiConfig)) -> Row {
        Row { config, ..self }
    }
    /// Accepted `/dynamic` changes after the status was reported.
    fn before(self, before: Vec<Value>) -> Row {
        Row { before, ..self }
    }
    fn status(self, status: fn(&mut Value)) -> Row {
        Row { status, ..self }
    }
    fn deleted(self) -> Row {
        Row { deleted: true, ..self }
    }
    fn volumes_gate_off(self) -> Row {
        Row { volumes_gate_off: true, ..self }
    }
    fn create(self, expected: Expected) -> Row {
        Row { ask: Ask::Create, expected: owned(expected), ..self }
    }
    fn dynamic(self, patch: Value, expected: Expected) -> Row {
        Row { ask: Ask::Dynamic(json!({"spec": patch})), expected: owned(expected), ..self }
    }
    fn whole(self, change: fn(&mut Value), expected: Expected) -> Row {
        Row { ask: Ask::Whole(change), expected: owned(expected), ..self }
    }
    fn resize(self, patch: Value, expected: Expected) -> Row {
        Row { ask: Ask::Resize(json!({"spec": patch})), expected: owned(expected), ..self }
    }
    fn ephemeral(self, patch: Value, expected: Expected) -> Row {
        Row { ask: Ask::Ephemeral(json!({"spec": patch})), expected: owned(expected), ..self }
    }
    fn update(self, change: fn(&mut Value), expected: Expected) -> Row {
        Row { ask: Ask::Update(change), expected: owned(expected), ..self }
    }

    fn create_spec(self, spec: Value, expected: Expected) -> Row {
        self.spec(spec).create(expected)
    }
    fn then_status(self, change: fn(&mut Value), expected: Expected) -> Row {
        Row { ask: Ask::Status(change), expected: owned(expected), ..self }
    }
    /// What is expected, where a table computes it.
    fn causes(self, expected: Vec<(String, &'static str)>) -> Row {
        Row { expected, ..self }
    }

    /// Plays the row, giving the last answer.
    fn play(&self) -> Response {
        let mut config = ApiConfig::default();
        (self.config)(&mut config);
        let mut world = World::new(config);
        let mut object = pod(self.spec.clone());
        for (key, value) in self.metadata.as_object().into_iter().flatten() {
            object["metadata"][key] = value.clone();
        }
        let created = world.create(object);
        if matches!(self.ask, Ask::Create) {
            return created;
        }
        assert!(created.is_ok(), "{} {}: not created: {created:?}", self.id, self.what);
        let mut status = running(&world.pod());
        (self.status)(&mut status);
        assert!(world.status(status).is_ok(), "{} {}: status refused", self.id, self.what);
        for patch in &self.before {
            let answer = world.dynamic(json!({"spec": patch}));
            assert!(answer.is_ok(), "{} {}: {answer:?}", self.id, self.what);
        }
        if self.deleted {
            assert!(world.delete(None).is_ok());
        }
        if self.volumes_gate_off {
            world.gates(true, false);
        }
        let before = world.api.digest();
        let answer = self.put(&mut world, created);
        assert!(
            answer.is_ok() || world.api.digest() == before,
            "{} {}: a refusal changes nothing",
            self.id,
            self.what
        );
        if answer.is_ok() {
            // What was accepted is accepted again as it is stored, and is no change then (M15 aside: status is ignored).
            let version = world.api.resource_version();
            let again = world.update(world.pod());
            assert!(again.is_ok(), "{} {}: not again: {again:?}", self.id, self.what);
            assert_eq!(world.api.resource_version(), version, "{} {}", self.id, self.what);
        }
        answer
    }

    /// The request itself.
    fn put(&self, world: &mut World, created: Response) -> Response {
        let mut whole = world.pod();
        match &self.ask {
            Ask::Nothing | Ask::Create => created,
            Ask::Dynamic(patch) => world.dynamic(patch.clone()),
            Ask::Resize(patch) => world.resize(patch.clone()),
            Ask::Ephemeral(patch) => world.ephemeral(patch.clone()),
            Ask::Whole(change) => {
                change(&mut whole);
                world.dynamic_whole(whole)
            }
            Ask::Update(change) => {
                change(&mut whole);
                world.update(whole)
            }
            Ask::Status(change) => {
                let mut status = whole["status"].clone();
                change(&mut status);
                world.status(status)
            }
        }
    }
}

fn owned(expected: Expected) -> Vec<(String, &'static str)> {
    expected.iter().map(|(field, reason)| ((*field).to_owned(), *reason)).collect()
}

fn spec(containers: Value) -> Value {
    json!({"containers": containers})
}

fn app() -> Value {
    json!({"name": "app", "image": "i:1"})
}

fn c(name: &str) -> Value {
    json!({"name": name, "image": "i:1"})
}

fn with(mut value: Value, more: Value) -> Value {
    for (key, field) in more.as_object().into_iter().flatten() {
        value[key] = field.clone();
    }
    value
}

fn adding(more: Value) -> Value {
    json!({"containers": [with(c("new"), more)]})
}

fn removing(name: &str) -> Value {
    json!({"containers": [{"name": name, "$patch": "delete"}]})
}

fn volume_removed(name: &str) -> Value {
    json!({"volumes": [{"name": name, "$patch": "delete"}]})
}

fn two() -> Value {
    spec(json!([app(), c("b")]))
}

fn requests(cpu: &str) -> Value {
    json!({"resources": {"requests": {"cpu": cpu}}})
}

fn mount(name: &str, path: &str) -> Value {
    json!({"volumeMounts": [{"name": name, "mountPath": path}]})
}

/// `app` mounts emptyDir `v` at /v under this policy; emptyDir `w` is there too.
fn mounting(policy: Option<&str>) -> Value {
    let mut container = with(app(), mount("v", "/v"));
    if let Some(policy) = policy {
        container["dynamicVolumePolicy"] = json!({"restartPolicy": policy});
    }
    with(
        spec(json!([container])),
        json!({"volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}]}),
    )
}

fn init_mounting() -> Value {
    with(mounting(None), json!({"initContainers": [with(c("init"), mount("v", "/v"))]}))
}

fn all() -> Vec<Row> {
    let changes =
        [preconditions::rows(), containers::rows(), kept::rows(), volumes::rows(), policies::rows()];
    let any_pod = [standard::rows(), sources::rows(), behaviour::rows()];
    changes.into_iter().chain(any_pod).flatten().collect()
}

#[test]
fn each_row_is_answered_with_exactly_its_causes() {
    let mut wrong = Vec::new();
    for row in all() {
        let answer = row.play();
        let mut expected = row.expected.clone();
        expected.sort();
        let code_fits = match &answer {
            Response::Ok { .. } => row.expected.is_empty(),
            Response::Rejected(status) => status.code == 422 && !row.expected.is_empty(),
        };
        if causes(&answer) != expected || !code_fits {
            wrong.push(format!("{} {}: expected {expected:?}, got {answer:?}", row.id, row.what));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Rules that are another one's doing: what is told names the other.
const ANOTHERS: [(&str, &str); 11] = [
    ("M11", "M12"),
    ("W13", "M12"),
    ("M1", "S2"),
    ("M2", "S2"),
    ("C10", "S11"),
    ("W8", "S11"),
    ("W9", "S11"),
    ("D1", "M6"),
    ("D7", "M6"),
    ("D6", "D4"),
    ("M7", "W13"),
];

#[test]
fn a_refusal_names_the_rule_that_is_broken() {
    let mut wrong = Vec::new();
    for row in all().into_iter().filter(|row| !row.expected.is_empty()) {
        let answer = row.play();
        let told: BTreeSet<&str> = answer.causes().iter().map(|c| &*c.rule).collect();
        let others = ANOTHERS.iter().filter(|(rule, _)| *rule == row.id).map(|(_, other)| *other);
        let named = others.chain([row.id]).any(|rule| told.contains(rule));
        if !named || told.contains("") {
            wrong.push(format!("{} {}: {told:?}", row.id, row.what));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_rule_has_a_row_that_passes_and_one_that_fails() {
    // P8 can't be seen from the API; C15, M15 and S43 only allow, and D2's refusals are D1's.
    let one_sided = ["C15", "M15", "D2", "S43"];
    let rows = all();
    let ids = |passing: bool| -> BTreeSet<String> {
        rows.iter().filter(|r| r.expected.is_empty() == passing).map(|r| r.id.to_owned()).collect()
    };
    let numbered = [("P", 7), ("C", 15), ("M", 15), ("W", 13), ("D", 7), ("S", 43)];
    for (letter, last) in numbered {
        for number in 1..=last {
            let id = format!("{letter}{number}");
            assert!(ids(true).contains(&id), "{id}: no request that passes");
            assert!(ids(false).contains(&id) || one_sided.contains(&id.as_str()), "{id}: no refusal");
        }
    }
}
