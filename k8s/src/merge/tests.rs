//! Each merge rule with a patch that shows it. Expectations follow apimachinery 0.36.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::strategic_merge_pod;
use serde_json::{Map, Value, json};

/// Wraps main containers named so into a pod.
fn named(names: &[&str]) -> Value {
    let containers: Vec<Value> = names.iter().map(|n| json!({"name": n, "image": "i"})).collect();
    json!({"spec": {"containers": containers}})
}

fn names(pod: &Value, list: &str, key: &str) -> Vec<String> {
    pod["spec"][list]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e[key].as_str().map_or_else(|| e[key].to_string(), str::to_owned))
        .collect()
}

#[test]
fn order_of_merged_containers() {
    struct Row {
        what: &'static str,
        stored: &'static [&'static str],
        patch: Value,
        order: Option<Value>,
        then: &'static [&'static str],
    }
    let n = |name: &str| json!({"name": name});
    let del = |name: &str| json!({"name": name, "$patch": "delete"});
    let rows = [
        Row {
            what: "new first",
            stored: &["a", "b"],
            patch: json!([n("c")]),
            order: None,
            then: &["c", "a", "b"],
        },
        Row {
            what: "named ones keep the patch's order",
            stored: &["a", "b", "c"],
            patch: json!([n("c"), n("a")]),
            order: None,
            then: &["b", "c", "a"],
        },
        Row {
            what: "a stored one stays before the named one that was stored after it",
            stored: &["a", "b", "c"],
            patch: json!([n("b"), n("x")]),
            order: None,
            then: &["a", "b", "x", "c"],
        },
        Row {
            what: "delete and add",
            stored: &["a", "b"],
            patch: json!([del("a"), n("x")]),
            order: None,
            then: &["x", "b"],
        },
        Row {
            what: "delete and re-add is new",
            stored: &["a", "b"],
            patch: json!([del("b"), n("b")]),
            order: None,
            then: &["b", "a"],
        },
        Row {
            what: "delete what isn't there",
            stored: &["a"],
            patch: json!([del("z")]),
            order: None,
            then: &["a"],
        },
        Row {
            what: "$setElementOrder alone",
            stored: &["a", "b", "c"],
            patch: Value::Null,
            order: Some(json!([n("c"), n("a")])),
            then: &["b", "c", "a"],
        },
        Row {
            what: "$setElementOrder with an addition",
            stored: &["a", "srv"],
            patch: json!([n("new")]),
            order: Some(json!([n("a"), n("new")])),
            then: &["a", "new", "srv"],
        },
        Row {
            what: "$setElementOrder with as many deletions: the new one counts as stored last",
            stored: &["a", "gone", "srv"],
            patch: json!([n("new"), del("gone")]),
            order: Some(json!([n("a"), n("new")])),
            then: &["a", "srv", "new"],
        },
        Row {
            what: "$patch: replace drops the stored ones",
            stored: &["a", "b"],
            patch: json!([n("x"), {"$patch": "replace"}]),
            order: None,
            then: &["x"],
        },
    ];
    for row in rows {
        let mut spec = Map::new();
        if !row.patch.is_null() {
            spec.insert("containers".into(), row.patch.clone());
        }
        if let Some(order) = &row.order {
            spec.insert("$setElementOrder/containers".into(), order.clone());
        }
        let merged = strategic_merge_pod(&named(row.stored), &json!({"spec": spec})).unwrap();
        assert_eq!(names(&merged, "containers", "name"), row.then, "{}", row.what);
    }
}

#[test]
fn each_list_merges_by_its_own_key() {
    let rows: &[(&str, &str, &str)] = &[
        ("containers", "name", "a"),
        ("initContainers", "name", "a"),
        ("ephemeralContainers", "name", "a"),
        ("volumes", "name", "a"),
        ("imagePullSecrets", "name", "a"),
        ("resourceClaims", "name", "a"),
        ("schedulingGates", "name", "a"),
        ("hostAliases", "ip", "10.0.0.1"),
        ("topologySpreadConstraints", "topologyKey", "zone"),
    ];
    for (list, key, id) in rows {
        let stored = json!({"spec": {*list: [{*key: "other"}, {*key: id, "kept": 1}]}});
        let merged = strategic_merge_pod(&stored, &json!({"spec": {*list: [{*key: id, "set": 2}]}})).unwrap();
        let want = json!([{*key: "other"}, {*key: id, "kept": 1, "set": 2}]);
        assert_eq!(merged["spec"][*list], want, "{list}");
    }
    let in_container: &[(&str, &str, Value)] = &[
        ("ports", "containerPort", json!(80)),
        ("env", "name", json!("A")),
        ("volumeMounts", "mountPath", json!("/a")),
        ("volumeDevices", "devicePath", json!("/dev/a")),
    ];
    for (list, key, id) in in_container {
        let container = |entry: Value| json!({"spec": {"containers": [{"name": "c", *list: [entry]}]}});
        let stored = container(json!({*key: id, "kept": 1}));
        let merged = strategic_merge_pod(&stored, &container(json!({*key: id, "set": 2}))).unwrap();
        assert_eq!(merged, container(json!({*key: id, "kept": 1, "set": 2})), "{list}");
    }
    for (list, key) in
        [("conditions", "type"), ("podIPs", "ip"), ("hostIPs", "ip"), ("volumeStatuses", "name")]
    {
        let stored = json!({"status": {list: [{key: "x", "kept": 1}]}});
        let merged =
            strategic_merge_pod(&stored, &json!({"status": {list: [{key: "x", "set": 2}]}})).unwrap();
        assert_eq!(merged["status"][list], json!([{key: "x", "kept": 1, "set": 2}]), "{list}");
    }
}

#[test]
fn other_lists_are_replaced() {
    let stored = json!({"spec": {"tolerations": [{"key": "a"}], "containers": [
        {"name": "c", "command": ["x", "y"], "envFrom": [{"prefix": "p"}]}]}});
    let patch = json!({"spec": {"tolerations": [{"key": "b"}], "containers": [
        {"name": "c", "command": ["z"], "envFrom": []}]}});
    assert_eq!(strategic_merge_pod(&stored, &patch).unwrap(), patch);
}

#[test]
fn nulls_delete_and_objects_merge() {
    let stored =
        json!({"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {"x": 1, "affinity": {"p": {}}}});
    let patch = json!({"metadata": {"labels": {"a": null, "c": "3", "none": null}},
        "spec": {"x": null, "affinity": {"$patch": "replace", "q": {"r": null}}, "new": {"s": null,
            "t": 1}}});
    let want = json!({"metadata": {"labels": {"b": "2", "c": "3"}},
        "spec": {"affinity": {"q": {}}, "new": {"t": 1}}});
    assert_eq!(strategic_merge_pod(&stored, &patch).unwrap(), want);
    let emptied =
        strategic_merge_pod(&stored, &json!({"metadata": {"labels": {"$patch": "delete"}}})).unwrap();
    assert_eq!(emptied["metadata"]["labels"], json!({}));
}

#[test]
fn a_list_that_was_not_stored_takes_only_what_no_directive_marks() {
    let stored = named(&["a"]);
    let patch = json!({"spec": {"volumes": [{"name": "gone", "$patch": "delete"}, {"name": "v",
        "emptyDir": {}}]}});
    let merged = strategic_merge_pod(&stored, &patch).unwrap();
    assert_eq!(merged["spec"]["volumes"], json!([{"name": "v", "emptyDir": {}}]));
}

#[test]
fn a_new_entry_is_taken_as_it_is_and_its_directives_are_dropped_in_decoding() {
    let patch = json!({"spec": {"containers": [{"name": "n", "volumeMounts": [
        {"mountPath": "/a", "name": "a", "$patch": "delete"}], "stdin": null, "$retainKeys": ["name"]}]}});
    let merged = strategic_merge_pod(&named(&["a"]), &patch).unwrap();
    let want = json!({"name": "n", "volumeMounts": [{"mountPath": "/a", "name": "a"}]});
    assert_eq!(merged["spec"]["containers"][0], want);
}

#[test]
fn retain_keys_drops_the_former_source_of_a_volume() {
    let stored = json!({"spec": {"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}});
    let patch = json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}, "$retainKeys": ["name",
        "emptyDir"]}]}});
    let merged = strategic_merge_pod(&stored, &patch).unwrap();
    assert_eq!(merged["spec"]["volumes"], json!([{"name": "v", "emptyDir": {}}]));
    let without = json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}});
    let both = strategic_merge_pod(&stored, &without).unwrap();
    assert_eq!(
        both["spec"]["volumes"],
        json!([{"name": "v", "secret": {"secretName": "s"}, "emptyDir": {}}])
    );
}

#[test]
fn primitive_lists_unite_and_delete() {
    let stored = json!({"metadata": {"finalizers": ["x", "y"]}});
    let merge =
        |patch: Value| strategic_merge_pod(&stored, &json!({"metadata": patch})).unwrap()["metadata"].clone();
    assert_eq!(merge(json!({"finalizers": ["z", "x"]}))["finalizers"], json!(["z", "x", "y"]));
    assert_eq!(merge(json!({"$deleteFromPrimitiveList/finalizers": ["x"]}))["finalizers"], json!(["y"]));
    let ordered = json!({"$setElementOrder/finalizers": ["y", "z"], "finalizers": ["z"],
        "$deleteFromPrimitiveList/finalizers": ["x"]});
    assert_eq!(merge(ordered)["finalizers"], json!(["y", "z"]));
}

#[test]
fn unusable_patches_say_why() {
    let stored = json!({"metadata": {"finalizers": ["f"]},
        "spec": {"containers": [{"name": "a"}], "volumes": [{"name": "v"}], "tolerations": [{"key": "t"}]}});
    let rows: &[(Value, u16, &str)] = &[
        (json!({"spec": {"containers": [{"image": "i"}]}}), 422, "spec.containers: entry has no \"name\""),
        (
            json!({"spec": {"containers": [{"name": "a", "$patch": "merge"}]}}),
            422,
            "unknown $patch directive",
        ),
        (json!({"spec": {"$patch": "no"}}), 422, "unknown $patch directive"),
        (json!({"spec": {"containers": ["a"]}}), 422, "all be objects"),
        (json!({"metadata": {"finalizers": [{}]}}), 422, "all be scalars"),
        (
            json!({"spec": {"$setElementOrder/containers": [{"name": "b"}], "containers": [{"name": "a"}]}}),
            400,
            "aren't in the order of $setElementOrder",
        ),
        (json!({"spec": {"$setElementOrder/containers": 1}}), 400, "must be a list"),
        (json!({"spec": {"$setElementOrder/tolerations": [{"key": "t"}]}}), 422, "entry has no"),
        (
            json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}, "$retainKeys": ["name"]}]}}),
            400,
            "emptyDir",
        ),
        (
            json!({"spec": {"volumes": [{"name": "v", "$retainKeys": {}}]}}),
            400,
            "must be a list of field names",
        ),
        (json!([]), 400, "the patch is not an object"),
    ];
    for (patch, code, message) in rows {
        let error = strategic_merge_pod(&stored, patch).unwrap_err();
        assert_eq!(error.http_code(), *code, "{patch}");
        assert!(error.to_string().contains(message), "{patch}: {error}");
    }
}
