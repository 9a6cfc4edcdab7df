//! Every numbered row P, C, M, W and D of `reference/api-side.md` §1: a request that passes and one that is refused
//! with exactly this field and reason.

mod support;

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
    expected: Expected,
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
        expected: OK,
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
        Row { ask: Ask::Create, expected, ..self }
    }
    fn dynamic(self, patch: Value, expected: Expected) -> Row {
        Row { ask: Ask::Dynamic(json!({"spec": patch})), expected, ..self }
    }
    fn whole(self, change: fn(&mut Value), expected: Expected) -> Row {
        Row { ask: Ask::Whole(change), expected, ..self }
    }
    fn resize(self, patch: Value, expected: Expected) -> Row {
        Row { ask: Ask::Resize(json!({"spec": patch})), expected, ..self }
    }
    fn ephemeral(self, patch: Value, expected: Expected) -> Row {
        Row { ask: Ask::Ephemeral(json!({"spec": patch})), expected, ..self }
    }
    fn update(self, change: fn(&mut Value), expected: Expected) -> Row {
        Row { ask: Ask::Update(change), expected, ..self }
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
        }
    }
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

fn preconditions() -> Vec<Row> {
    let add = || adding(json!({}));
    let add_volume = || json!({"volumes": [{"name": "n", "emptyDir": {}}]});
    let remount =
        || json!({"containers": [{"name": "app", "volumeMounts": [{"name": "w", "mountPath": "/w"}]}]});
    let both: Expected = &[("spec.containers", FORBIDDEN), ("spec.volumes", FORBIDDEN)];
    let containers: Expected = &[("spec.containers", FORBIDDEN)];
    let windows = json!({"os": {"name": "windows"}, "containers": [app()]});
    let mirror = json!({"annotations": {"kubernetes.io/config.mirror": "x"}});
    vec![
        row("P1", "not deleting").dynamic(add(), OK),
        row("P1", "deleting, container").deleted().dynamic(add(), containers),
        row("P1", "deleting, volume").deleted().dynamic(add_volume(), &[("spec.volumes", FORBIDDEN)]),
        row("P1", "deleting, both").deleted().dynamic(with(add(), add_volume()), both),
        row("P1", "deleting, mounts")
            .spec(mounting(Some("RestartContainer")))
            .deleted()
            .dynamic(remount(), containers),
        row("P1", "deleting, but only an image")
            .deleted()
            .dynamic(json!({"containers": [{"name": "app", "image": "i:2"}]}), OK),
        row("P2", "Running").dynamic(add_volume(), OK),
        row("P2", "Pending").status(|s| s["phase"] = json!("Pending")).dynamic(add(), containers),
        row("P2", "Succeeded")
            .status(|s| s["phase"] = json!("Succeeded"))
            .dynamic(add_volume(), &[("spec.volumes", FORBIDDEN)]),
        row("P3", "initialized").dynamic(add(), OK),
        row("P3", "condition False")
            .status(|s| s["conditions"] = json!([{"type": "Initialized", "status": "False"}]))
            .dynamic(add(), containers),
        row("P3", "no condition").status(|s| s["conditions"] = json!([])).dynamic(add(), containers),
        row("P4", "bound").dynamic(add(), OK),
        row("P4", "not bound")
            .config(|c| c.node_name = "".into())
            .dynamic(add(), &[("spec.nodeName", FORBIDDEN)]),
        row("P5", "another annotation").metadata(json!({"annotations": {"a": "b"}})).dynamic(add(), OK),
        row("P5", "mirror, dynamic").metadata(mirror.clone()).dynamic(add(), &[("", FORBIDDEN)]),
        row("P5", "mirror, resize")
            .spec(spec(json!([with(app(), requests("1"))])))
            .metadata(mirror.clone())
            .resize(spec(json!([with(app(), requests("2"))])), &[("", FORBIDDEN)]),
        row("P5", "mirror, ephemeral")
            .metadata(mirror)
            .ephemeral(json!({"ephemeralContainers": [c("e")]}), &[("", FORBIDDEN)]),
        row("P6", "linux")
            .spec(with(spec(json!([app()])), json!({"os": {"name": "linux"}})))
            .dynamic(add(), OK),
        row("P6", "windows").spec(windows).dynamic(add(), &[("", FORBIDDEN)]),
        row("P7", "nothing runs, nobody knows")
            .status(|s| s["containerStatuses"] = json!([{"name": "app", "state": {"waiting": {}}}]))
            .dynamic(add(), OK),
        row("P7", "the first that runs has no resources")
            .status(|s| s["containerStatuses"] = json!([{"name": "app", "state": {"running": {}}}]))
            .dynamic(add(), &[("spec", FORBIDDEN)]),
    ]
}

fn containers() -> Vec<Row> {
    let init = |name: &str| with(spec(json!([app()])), json!({"initContainers": [c("i1"), c(name)]}));
    let claims = || json!({"resourceClaims": [{"name": "gpu", "resourceClaimName": "g"}]});
    let burstable = || spec(json!([with(app(), requests("1")), c("b")]));
    let guaranteed = json!({"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}});
    vec![
        row("C1", "one is left").spec(two()).dynamic(removing("b"), OK),
        row("C1", "none is left").dynamic(removing("app"), &[("spec.containers", REQUIRED)]),
        row("C2", "two new names").dynamic(json!({"containers": [c("x"), c("y")]}), OK),
        row("C2", "twice the same").whole(
            |p| p["spec"]["containers"] = json!([app(), c("x"), c("x")]),
            &[("spec.containers[2].name", DUPLICATE)],
        ),
        row("C3", "another name than an init container's").spec(init("i2")).dynamic(adding(json!({})), OK),
        row("C3", "an init container's name")
            .spec(init("new"))
            .status(|s| s["initContainerStatuses"] = json!([]))
            .dynamic(adding(json!({})), &[("spec.initContainers[1].name", DUPLICATE)]),
        row("C3", "an init container's name, and its status's").spec(init("new")).dynamic(
            adding(json!({})),
            &[("spec.containers[0].name", DUPLICATE), ("spec.initContainers[1].name", DUPLICATE)],
        ),
        row("C4", "kept names are exempt").dynamic(adding(json!({})), OK),
        row("C4", "in containerStatuses")
            .status(|s| {
                s["containerStatuses"] = json!([{"name": "new", "state": {"terminated": {"exitCode": 0}}}])
            })
            .dynamic(adding(json!({})), &[("spec.containers[0].name", DUPLICATE)]),
        row("C4", "in initContainerStatuses")
            .status(|s| s["initContainerStatuses"] = json!([{"name": "new"}]))
            .dynamic(adding(json!({})), &[("spec.containers[0].name", DUPLICATE)]),
        row("C4", "in ephemeralContainerStatuses")
            .status(|s| s["ephemeralContainerStatuses"] = json!([{"name": "new"}]))
            .dynamic(adding(json!({})), &[("spec.containers[0].name", DUPLICATE)]),
        row("C5", "another was removed")
            .spec(two())
            .before(vec![removing("b")])
            .dynamic(adding(json!({})), OK),
        row("C5", "removed, not observed")
            .before(vec![adding(json!({})), removing("new")])
            .dynamic(adding(json!({"image": "other"})), &[("spec.containers[0].name", DUPLICATE)]),
        row("C6", "init containers as they are")
            .spec(init("i2"))
            .whole(|p| p["metadata"]["labels"] = json!({"a": "b"}), OK),
        row("C6", "added")
            .spec(init("i2"))
            .dynamic(json!({"initContainers": [c("i3")]}), &[("spec.initContainers", FORBIDDEN)]),
        row("C6", "removed").spec(init("i2")).dynamic(
            json!({"initContainers": [{"name": "i1", "$patch": "delete"}]}),
            &[("spec.initContainers", FORBIDDEN)],
        ),
        row("C6", "reordered").spec(init("i2")).whole(
            |p| p["spec"]["initContainers"].as_array_mut().into_iter().for_each(|l| l.reverse()),
            &[("spec.initContainers", FORBIDDEN)],
        ),
        row("C7", "none, as before").dynamic(adding(json!({})), OK),
        row("C7", "added")
            .dynamic(json!({"ephemeralContainers": [c("e")]}), &[("spec.ephemeralContainers", FORBIDDEN)]),
        row("C8", "not privileged").dynamic(adding(json!({"securityContext": {"privileged": false}})), OK),
        row("C8", "privileged").dynamic(
            adding(json!({"securityContext": {"privileged": true}})),
            &[("spec.containers[0].securityContext.privileged", FORBIDDEN)],
        ),
        row("C8", "a kept one may be")
            .spec(spec(json!([with(app(), json!({"securityContext": {"privileged": true}}))])))
            .dynamic(adding(json!({})), OK),
        row("C9", "a container port").dynamic(adding(json!({"ports": [{"containerPort": 80}]})), OK),
        row("C9", "a host port").dynamic(
            adding(json!({"ports": [{"containerPort": 80}, {"containerPort": 81, "hostPort": 81}]})),
            &[("spec.containers[0].ports[1].hostPort", FORBIDDEN)],
        ),
        row("C9", "host network makes any port one")
            .spec(with(spec(json!([app()])), json!({"hostNetwork": true})))
            .dynamic(
                adding(json!({"ports": [{"containerPort": 80}]})),
                &[("spec.containers[0].ports[0].hostPort", FORBIDDEN)],
            ),
        row("C10", "an existing volume").spec(mounting(None)).dynamic(adding(mount("v", "/v")), OK),
        row("C10", "a volume of the same request")
            .dynamic(with(adding(mount("n", "/n")), json!({"volumes": [{"name": "n", "emptyDir": {}}]})), OK),
        row("C10", "no such volume")
            .dynamic(adding(mount("n", "/n")), &[("spec.containers[0].volumeMounts[0].name", NOT_FOUND)]),
        row("C11", "an existing claim")
            .spec(with(spec(json!([app()])), claims()))
            .dynamic(adding(json!({"resources": {"claims": [{"name": "gpu"}]}})), OK),
        row("C11", "no such claim").dynamic(
            adding(json!({"resources": {"claims": [{"name": "gpu"}]}})),
            &[("spec.containers[0].resources.claims[0]", NOT_FOUND)],
        ),
        row("C11", "a new claim").dynamic(claims(), &[("spec.resourceClaims", FORBIDDEN)]),
        row("C12", "cpu and memory")
            .spec(burstable())
            .dynamic(adding(json!({"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}})), OK),
        row("C12", "others").spec(burstable()).dynamic(
            adding(json!({"resources": {"requests": {"cpu": "1", "ephemeral-storage": "1Gi"},
                "limits": {"hugepages-2Mi": "2Mi"}}})),
            &[
                ("spec.containers[0].resources.requests[ephemeral-storage]", FORBIDDEN),
                ("spec.containers[0].resources.requests[hugepages-2Mi]", FORBIDDEN),
            ],
        ),
        row("C12", "removal of one that holds another")
            .spec(spec(json!([
                app(),
                with(c("gpu"), json!({"resources": {"limits": {"example.com/gpu": "1"}}}))
            ])))
            .dynamic(removing("gpu"), &[("spec.containers", FORBIDDEN)]),
        row("C13", "Burstable stays").spec(burstable()).dynamic(adding(requests("2")), OK),
        row("C13", "BestEffort becomes Burstable").dynamic(adding(requests("1")), &[("spec", INVALID)]),
        row("C13", "removal makes BestEffort")
            .spec(spec(json!([c("b"), with(app(), requests("1"))])))
            .dynamic(removing("app"), &[("spec", INVALID)]),
        row("C13", "Guaranteed gets one without resources")
            .spec(spec(json!([with(app(), guaranteed.clone())])))
            .dynamic(adding(json!({})), &[("spec", INVALID)]),
        row("C13", "an envelope never flips")
            .spec(with(spec(json!([app()])), guaranteed))
            .dynamic(adding(json!({})), OK),
        row("C14", "within the cap").config(|c| c.max_containers = Some(2)).dynamic(adding(json!({})), OK),
        row("C14", "beyond it")
            .config(|c| c.max_containers = Some(1))
            .dynamic(adding(json!({})), &[("spec.containers", TOO_MANY)]),
        row("C15", "reordered")
            .spec(two())
            .whole(|p| p["spec"]["containers"].as_array_mut().into_iter().for_each(|l| l.reverse()), OK),
    ]
}

fn kept() -> Vec<Row> {
    let sized = |requests: Value, limits: Value| {
        spec(json!([with(app(), json!({"resources": {"requests": requests, "limits": limits}}))]))
    };
    let stored = || sized(json!({"cpu": "1", "memory": "1Gi"}), json!({"cpu": "2"}));
    let deadline = || with(spec(json!([app()])), json!({"activeDeadlineSeconds": 100}));
    let gated = || with(spec(json!([app()])), json!({"schedulingGates": [{"name": "a"}, {"name": "b"}]}));
    let tolerating =
        || with(spec(json!([app()])), json!({"tolerations": [{"key": "a", "operator": "Exists"}]}));
    let pod_sized = || with(spec(json!([app()])), json!({"resources": {"requests": {"cpu": "1"}}}));
    let spec_forbidden: Expected = &[("spec", FORBIDDEN)];
    vec![
        row("M1", "another image").dynamic(json!({"containers": [{"name": "app", "image": "i:2"}]}), OK),
        row("M1", "another image on the pod itself").update(|p| p["spec"]["containers"][0]["image"] = json!("i:2"), OK),
        row("M1", "no image").dynamic(
            json!({"containers": [{"name": "app", "image": ""}]}),
            &[("spec.containers[0].image", REQUIRED)],
        ),
        row("M1", "no image on the pod itself").update(
            |p| p["spec"]["containers"][0]["image"] = json!(""),
            &[("spec.containers[0].image", REQUIRED)],
        ),
        row("M2", "no spaces").dynamic(json!({"containers": [{"name": "app", "image": "i:2"}]}), OK),
        row("M2", "a space").dynamic(
            json!({"containers": [{"name": "app", "image": "i:2 "}]}),
            &[("spec.containers[0].image", INVALID)],
        ),
        row("M3", "amounts change, dynamic").spec(stored()).dynamic(sized(json!({"cpu": "2"}), json!({"cpu": "3"})), OK),
        row("M3", "amounts change, resize").spec(stored()).resize(sized(json!({"memory": "2Gi"}), json!({"memory": "3Gi"})), OK),
        row("M3", "a request disappears").spec(stored()).resize(
            sized(json!({"memory": null}), json!({})),
            &[("spec.containers[0].resources.requests", FORBIDDEN)],
        ),
        row("M3", "a limit disappears").spec(stored()).dynamic(
            sized(json!({}), json!({"cpu": null})),
            &[("spec.containers[0].resources.limits", FORBIDDEN)],
        ),
        row("M4", "as it was, spelled otherwise")
            .spec(sized(json!({"cpu": "1", "ephemeral-storage": "1Gi"}), json!({})))
            .resize(sized(json!({"cpu": "2", "ephemeral-storage": "1024Mi"}), json!({})), OK),
        row("M4", "changed").spec(sized(json!({"cpu": "1", "ephemeral-storage": "1Gi"}), json!({}))).resize(
            sized(json!({"ephemeral-storage": "2Gi"}), json!({})),
            spec_forbidden,
        ),
        row("M4", "added").spec(stored()).dynamic(sized(json!({"ephemeral-storage": "2Gi"}), json!({})), spec_forbidden),
        row("M5", "as it was").spec(stored()).resize(sized(json!({"cpu": "2"}), json!({})), OK),
        row("M5", "changed by resize").spec(stored()).resize(
            spec(json!([with(app(), json!({"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}))])),
            &[("spec.containers[0].resizePolicy", FORBIDDEN)],
        ),
        row("M5", "changed by dynamic").spec(stored()).dynamic(
            spec(json!([with(app(), json!({"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}))])),
            &[("spec.containers[0].resizePolicy", FORBIDDEN)],
        ),
        row("M6", "mounts change under RestartContainer").spec(mounting(Some("RestartContainer"))).dynamic(
            spec(json!([with(json!({"name": "app"}), mount("w", "/w"))])),
            OK,
        ),
        row("M6", "mounts change without").spec(mounting(None)).dynamic(
            spec(json!([with(json!({"name": "app"}), mount("w", "/w"))])),
            &[("spec.containers[0].volumeMounts", FORBIDDEN)],
        ),
        row("M7", "nothing else changes").dynamic(spec(json!([{"name": "app", "image": "i:3"}])), OK),
        row("M7", "a command").dynamic(
            spec(json!([{"name": "app", "command": ["x"]}])),
            &[("spec.containers[0]", FORBIDDEN)],
        ),
        row("M7", "a command on the pod itself")
            .update(|p| p["spec"]["containers"][0]["command"] = json!(["x"]), spec_forbidden),
        row("M7", "two fields, told once, at the new index").spec(two()).dynamic(
            json!({"containers": [c("new"), {"name": "b", "env": [{"name": "A", "value": "1"}], "tty": true}]}),
            &[("spec.containers[2]", FORBIDDEN)],
        ),
        row("M8", "shrinks").spec(deadline()).dynamic(json!({"activeDeadlineSeconds": 50}), OK),
        row("M8", "appears").update(|p| p["spec"]["activeDeadlineSeconds"] = json!(5), OK),
        row("M8", "grows").spec(deadline()).dynamic(
            json!({"activeDeadlineSeconds": 101}),
            &[("spec.activeDeadlineSeconds", INVALID)],
        ),
        row("M8", "vanishes").spec(deadline()).dynamic(
            json!({"activeDeadlineSeconds": null}),
            &[("spec.activeDeadlineSeconds", INVALID)],
        ),
        row("M9", "one more").spec(tolerating()).update(
            |p| p["spec"]["tolerations"] = json!([{"key": "b", "operator": "Exists"}, {"key": "a", "operator": "Exists"}]),
            OK,
        ),
        row("M9", "one less").spec(tolerating()).dynamic(
            json!({"tolerations": [{"key": "b", "operator": "Exists"}]}),
            &[("spec.tolerations", FORBIDDEN)],
        ),
        row("M10", "one less").spec(gated()).update(|p| p["spec"]["schedulingGates"] = json!([{"name": "b"}]), OK),
        row("M10", "one more").spec(gated()).update(
            |p| p["spec"]["schedulingGates"] = json!([{"name": "a"}, {"name": "c"}]),
            &[("spec.schedulingGates[1].name", FORBIDDEN)],
        ),
        row("M11", "from negative to 1")
            .spec(with(spec(json!([app()])), json!({"terminationGracePeriodSeconds": -1})))
            .dynamic(json!({"terminationGracePeriodSeconds": 1}), OK),
        row("M11", "otherwise").dynamic(json!({"terminationGracePeriodSeconds": 1}), spec_forbidden),
        row("M12", "nothing").dynamic(json!({}), OK),
        row("M12", "another field, dynamic").dynamic(json!({"hostNetwork": true}), spec_forbidden),
        row("M12", "another field, the pod itself").update(|p| p["spec"]["nodeName"] = json!("other"), spec_forbidden),
        row("M12", "resize ignores what isn't resources").spec(stored()).resize(
            with(sized(json!({"cpu": "2"}), json!({})), json!({"hostNetwork": true})),
            OK,
        ),
        row("M13", "gate off").spec(pod_sized()).resize(
            json!({"resources": {"requests": {"cpu": "2"}}}),
            &[("spec.resources", FORBIDDEN)],
        ),
        row("M13", "gate on").spec(pod_sized()).config(|c| c.pod_level_resize = true).resize(
            json!({"resources": {"requests": {"cpu": "2"}}}),
            OK,
        ),
        row("M14", "labels").whole(|p| p["metadata"]["labels"] = json!({"a": "b"}), OK),
        row("M14", "a label that is none").whole(
            |p| p["metadata"]["labels"] = json!({"a": "b c"}),
            &[("metadata.labels", INVALID)],
        ),
        row("M14", "creation time").whole(
            |p| p["metadata"]["creationTimestamp"] = json!("2001-01-01T00:00:00Z"),
            &[("metadata.creationTimestamp", INVALID)],
        ),
        row("M15", "status in the body is ignored").whole(|p| p["status"] = json!({"phase": "Failed"}), OK),
    ]
}

fn volumes() -> Vec<Row> {
    let volume = |source: Value| json!({"volumes": [with(json!({"name": "n"}), source)]});
    let at_first: Expected = &[("spec.volumes[0]", FORBIDDEN)];
    let name_taken: Expected = &[("spec.volumes[0].name", DUPLICATE)];
    let unmounted = || with(spec(json!([app()])), json!({"volumes": [{"name": "v", "emptyDir": {}}]}));
    let file_key = |volume: &str| json!({"env": [{"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": volume, "path": "p", "key": "k"}}}]});
    let mut rows: Vec<Row> = [
        json!({"configMap": {"name": "c"}}),
        json!({"secret": {"secretName": "s"}}),
        json!({"projected": {"sources": [{"downwardAPI": {}}]}}),
        json!({"emptyDir": {}}),
        json!({"image": {"reference": "i:1"}}),
    ]
    .into_iter()
    .map(|source| row("W1", "one of the five").dynamic(volume(source), OK))
    .collect();
    rows.extend(
        [
            json!({"downwardAPI": {}}),
            json!({"hostPath": {"path": "/"}}),
            json!({"persistentVolumeClaim": {"claimName": "c"}}),
            json!({"csi": {"driver": "d"}}),
            json!({"ephemeral": {}}),
            json!({"nfs": {"server": "s", "path": "/"}}),
        ]
        .into_iter()
        .map(|source| row("W1", "another source").dynamic(volume(source), at_first)),
    );
    rows.extend([
        row("W2", "two names")
            .dynamic(json!({"volumes": [{"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {}}]}), OK),
        row("W2", "twice the same").whole(
            |p| p["spec"]["volumes"] = json!([{"name": "a", "emptyDir": {}}, {"name": "a", "emptyDir": {}}]),
            &[("spec.volumes[1].name", DUPLICATE)],
        ),
        row("W3", "free").dynamic(volume(json!({"emptyDir": {}})), OK),
        row("W3", "still unmounting")
            .status(|s| s["volumeStatuses"] = json!([{"name": "n", "hostPhase": "Unmounting"}]))
            .dynamic(volume(json!({"emptyDir": {}})), name_taken),
        row("W4", "mounted by one that has ended")
            .status(|s| {
                s["containerStatuses"] = json!([{"name": "old", "state": {"terminated": {"exitCode": 0}},
                    "volumeMounts": [{"name": "n", "mountPath": "/n"}]}]);
            })
            .dynamic(volume(json!({"emptyDir": {}})), OK),
        row("W4", "mounted by one that runs")
            .status(|s| {
                s["containerStatuses"] = json!([{"name": "old", "state": {"running": {}}, "resources": {},
                    "volumeMounts": [{"name": "n", "mountPath": "/n"}]}]);
            })
            .dynamic(volume(json!({"emptyDir": {}})), name_taken),
        row("W4", "mounted by an ephemeral one that waits")
            .status(|s| {
                s["ephemeralContainerStatuses"] = json!([{"name": "dbg", "state": {"waiting": {}},
                    "volumeMounts": [{"name": "n", "mountPath": "/n"}]}]);
            })
            .dynamic(volume(json!({"emptyDir": {}})), name_taken),
        row("W5", "another was removed")
            .spec(unmounted())
            .before(vec![volume_removed("v")])
            .dynamic(volume(json!({"emptyDir": {}})), OK),
        row("W5", "removed, not observed")
            .before(vec![volume(json!({"emptyDir": {}})), volume_removed("n")])
            .dynamic(volume(json!({"emptyDir": {}})), name_taken),
        row("W6", "reordered")
            .spec(mounting(None))
            .whole(|p| p["spec"]["volumes"].as_array_mut().into_iter().for_each(|l| l.reverse()), OK),
        row("W6", "another source").spec(mounting(None)).whole(
            |p| p["spec"]["volumes"][1] = json!({"name": "w", "emptyDir": {"medium": "Memory"}}),
            &[("spec.volumes[1]", FORBIDDEN)],
        ),
        row("W7", "removal of one of the five").spec(unmounted()).dynamic(volume_removed("v"), OK),
        row("W7", "removal of another")
            .spec(with(spec(json!([app()])), json!({"volumes": [{"name": "h", "hostPath": {"path": "/"}}]})))
            .dynamic(volume_removed("h"), &[("spec.volumes", FORBIDDEN)]),
        row("W8", "its container goes too")
            .spec(with(mounting(None), json!({"containers": [c("b"), with(app(), mount("v", "/v"))]})))
            .dynamic(with(removing("app"), volume_removed("v")), OK),
        row("W8", "still mounted")
            .spec(mounting(None))
            .dynamic(volume_removed("v"), &[("spec.containers[0].volumeMounts[0].name", NOT_FOUND)]),
        row("W9", "no init container mounts it").spec(init_mounting()).dynamic(volume_removed("w"), OK),
        row("W9", "an init container mounts it")
            .spec(with(init_mounting(), json!({"containers": [app()]})))
            .dynamic(volume_removed("v"), &[("spec.initContainers[0].volumeMounts[0].name", NOT_FOUND)]),
        row("W10", "another volume's key")
            .spec(with(mounting(None), json!({"containers": [with(app(), file_key("v"))]})))
            .dynamic(volume_removed("w"), OK),
        row("W10", "the removed volume's key")
            .spec(with(mounting(None), json!({"containers": [with(app(), file_key("v"))]})))
            .dynamic(
                volume_removed("v"),
                &[("spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName", NOT_FOUND)],
            ),
        row("W10", "a key in what is no emptyDir")
            .spec(with(
                spec(json!([app()])),
                json!({"volumes": [{"name": "s", "secret": {"secretName": "s"}}]}),
            ))
            .dynamic(
                adding(file_key("s")),
                &[("spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName", INVALID)],
            ),
        row("W11", "as they were")
            .spec(init_mounting())
            .dynamic(json!({"initContainers": [{"name": "init", "image": "i:2"}]}), OK),
        row("W11", "changed").spec(init_mounting()).dynamic(
            json!({"initContainers": [with(json!({"name": "init"}), mount("w", "/w"))]}),
            &[("spec.initContainers[0].volumeMounts", FORBIDDEN)],
        ),
        row("W12", "gate off, a container with an existing volume")
            .spec(mounting(None))
            .volumes_gate_off()
            .dynamic(adding(mount("v", "/v")), OK),
        row("W12", "gate off, a volume")
            .volumes_gate_off()
            .dynamic(volume(json!({"emptyDir": {}})), &[("spec.volumes", FORBIDDEN)]),
        row("W12", "gate off, mounts").spec(mounting(Some("RestartContainer"))).volumes_gate_off().dynamic(
            spec(json!([with(json!({"name": "app"}), mount("w", "/w"))])),
            &[("spec.containers[0].volumeMounts", FORBIDDEN)],
        ),
        row("W13", "as they were")
            .spec(mounting(None))
            .update(|p| p["spec"]["containers"][0]["image"] = json!("i:2"), OK),
        row("W13", "a volume on the pod itself").update(
            |p| p["spec"]["volumes"] = json!([{"name": "n", "emptyDir": {}}]),
            &[("spec", FORBIDDEN)],
        ),
        row("W13", "mounts on the pod itself").spec(mounting(Some("RestartContainer"))).update(
            |p| p["spec"]["containers"][0]["volumeMounts"] = json!([{"name": "w", "mountPath": "/w"}]),
            &[("spec", FORBIDDEN)],
        ),
    ]);
    rows
}

fn policies() -> Vec<Row> {
    let remount = |name: &str, path: &str| spec(json!([with(json!({"name": "app"}), mount(name, path))]));
    let mounts: Expected = &[("spec.containers[0].volumeMounts", FORBIDDEN)];
    let policy = |value: &str| json!({"dynamicVolumePolicy": {"restartPolicy": value}});
    vec![
        row("D1", "no policy, identical").spec(mounting(None)).dynamic(remount("v", "/v"), OK),
        row("D1", "no policy, changed").spec(mounting(None)).dynamic(remount("w", "/w"), mounts),
        row("D1", "empty policy, changed").spec(mounting(Some(""))).dynamic(remount("w", "/w"), mounts),
        row("D1", "changed while not running is no excuse")
            .spec(mounting(None))
            .status(|s| s["containerStatuses"][0]["state"] = json!({"waiting": {}}))
            .dynamic(remount("w", "/w"), mounts),
        row("D2", "added").spec(mounting(Some("RestartContainer"))).dynamic(remount("w", "/w"), OK),
        row("D2", "edited").spec(mounting(Some("RestartContainer"))).dynamic(remount("w", "/v"), OK),
        row("D2", "removed").spec(mounting(Some("RestartContainer"))).dynamic(
            spec(json!([{"name": "app", "volumeMounts": [{"mountPath": "/v", "$patch": "delete"}]}])),
            OK,
        ),
        row("D3", "as it was").spec(mounting(Some("RestartContainer"))).dynamic(remount("w", "/w"), OK),
        row("D3", "opting in with the same request is void").spec(mounting(None)).dynamic(
            spec(json!([with(with(json!({"name": "app"}), mount("w", "/w")), policy("RestartContainer"))])),
            &[
                ("spec.containers[0].volumeMounts", FORBIDDEN),
                ("spec.containers[0].dynamicVolumePolicy", FORBIDDEN),
            ],
        ),
        row("D3", "opting out").spec(mounting(Some("RestartContainer"))).dynamic(
            spec(json!([with(json!({"name": "app"}), policy(""))])),
            &[("spec.containers[0].dynamicVolumePolicy", FORBIDDEN)],
        ),
        row("D4", "RestartContainer").dynamic(adding(policy("RestartContainer")), OK),
        row("D4", "empty").dynamic(adding(policy("")), OK),
        row("D4", "reserved").dynamic(
            adding(policy("NotRequired")),
            &[("spec.containers[0].dynamicVolumePolicy.restartPolicy", NOT_SUPPORTED)],
        ),
        row("D4", "reserved, on create")
            .spec(mounting(Some("NotRequired")))
            .create(&[("spec.containers[0].dynamicVolumePolicy.restartPolicy", NOT_SUPPORTED)]),
        row("D5", "OnFailure")
            .spec(with(spec(json!([app()])), json!({"restartPolicy": "OnFailure"})))
            .dynamic(adding(policy("RestartContainer")), OK),
        row("D5", "Never").spec(with(spec(json!([app()])), json!({"restartPolicy": "Never"}))).dynamic(
            adding(policy("RestartContainer")),
            &[("spec.containers[0].dynamicVolumePolicy.restartPolicy", INVALID)],
        ),
        row("D6", "gate off: dropped, whatever it says")
            .volumes_gate_off()
            .dynamic(adding(policy("NotRequired")), OK),
        row("D6", "gate off, but in use: judged")
            .spec(mounting(Some("RestartContainer")))
            .volumes_gate_off()
            .dynamic(
                adding(policy("NotRequired")),
                &[("spec.containers[0].dynamicVolumePolicy.restartPolicy", NOT_SUPPORTED)],
            ),
        row("D7", "reordered")
            .spec(with(
                mounting(None),
                json!({"containers": [with(app(), json!({"volumeMounts": [
                {"name": "v", "mountPath": "/1"}, {"name": "w", "mountPath": "/2"}]}))]}),
            ))
            .whole(
                |p| {
                    p["spec"]["containers"][0]["volumeMounts"]
                        .as_array_mut()
                        .into_iter()
                        .for_each(|l| l.reverse())
                },
                OK,
            ),
        row("D7", "swapped")
            .spec(with(
                mounting(None),
                json!({"containers": [with(app(), json!({"volumeMounts": [
                {"name": "v", "mountPath": "/1"}, {"name": "w", "mountPath": "/2"}]}))]}),
            ))
            .whole(
                |p| {
                    p["spec"]["containers"][0]["volumeMounts"] =
                        json!([{"name": "w", "mountPath": "/1"}, {"name": "v", "mountPath": "/2"}]);
                },
                mounts,
            ),
    ]
}

fn all() -> Vec<Row> {
    [preconditions(), containers(), kept(), volumes(), policies()].into_iter().flatten().collect()
}

#[test]
fn each_row_is_answered_with_exactly_its_causes() {
    let mut wrong = Vec::new();
    for row in all() {
        let answer = row.play();
        let mut expected: Vec<_> = row.expected.iter().map(|(f, r)| ((*f).to_owned(), *r)).collect();
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

#[test]
fn every_rule_has_a_row_that_passes_and_one_that_fails() {
    // P8 can't be seen from the API; C15 and M15 only allow, and D2's refusals are D1's.
    let one_sided = ["C15", "M15", "D2"];
    let rows = all();
    let ids = |passing: bool| -> BTreeSet<String> {
        rows.iter().filter(|r| r.expected.is_empty() == passing).map(|r| r.id.to_owned()).collect()
    };
    let numbered = [("P", 7), ("C", 15), ("M", 15), ("W", 13), ("D", 7)];
    for (letter, last) in numbered {
        for number in 1..=last {
            let id = format!("{letter}{number}");
            assert!(ids(true).contains(&id), "{id}: no request that passes");
            assert!(ids(false).contains(&id) || one_sided.contains(&id.as_str()), "{id}: no refusal");
        }
    }
}
