//! M1–M15: what stays, and the rest of the spec.

use super::*;

pub fn rows() -> Vec<Row> {
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
        row("M1", "another image on the pod itself")
            .update(|p| p["spec"]["containers"][0]["image"] = json!("i:2"), OK),
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
        row("M3", "amounts change, dynamic")
            .spec(stored())
            .dynamic(sized(json!({"cpu": "2"}), json!({"cpu": "3"})), OK),
        row("M3", "amounts change, resize")
            .spec(stored())
            .resize(sized(json!({"memory": "2Gi"}), json!({"memory": "3Gi"})), OK),
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
        row("M4", "changed")
            .spec(sized(json!({"cpu": "1", "ephemeral-storage": "1Gi"}), json!({})))
            .resize(sized(json!({"ephemeral-storage": "2Gi"}), json!({})), spec_forbidden),
        row("M4", "added")
            .spec(stored())
            .dynamic(sized(json!({"ephemeral-storage": "2Gi"}), json!({})), spec_forbidden),
        row("M5", "as it was").spec(stored()).resize(sized(json!({"cpu": "2"}), json!({})), OK),
        row("M5", "changed by resize").spec(stored()).resize(
            spec(json!([with(
                app(),
                json!({"resizePolicy": [{"resourceName": "cpu",
                "restartPolicy": "RestartContainer"}]})
            )])),
            &[("spec.containers[0].resizePolicy", FORBIDDEN)],
        ),
        row("M5", "changed by dynamic").spec(stored()).dynamic(
            spec(json!([with(
                app(),
                json!({"resizePolicy": [{"resourceName": "cpu",
                "restartPolicy": "RestartContainer"}]})
            )])),
            &[("spec.containers[0].resizePolicy", FORBIDDEN)],
        ),
        row("M6", "mounts change under RestartContainer")
            .spec(mounting(Some("RestartContainer")))
            .dynamic(spec(json!([with(json!({"name": "app"}), mount("w", "/w"))])), OK),
        row("M6", "mounts change without").spec(mounting(None)).dynamic(
            spec(json!([with(json!({"name": "app"}), mount("w", "/w"))])),
            &[("spec.containers[0].volumeMounts", FORBIDDEN)],
        ),
        row("M7", "nothing else changes").dynamic(spec(json!([{"name": "app", "image": "i:3"}])), OK),
        row("M7", "a command")
            .dynamic(spec(json!([{"name": "app", "command": ["x"]}])), &[("spec.containers[0]", FORBIDDEN)]),
        row("M7", "a command on the pod itself")
            .update(|p| p["spec"]["containers"][0]["command"] = json!(["x"]), spec_forbidden),
        row("M7", "two fields, told once, at the new index").spec(two()).dynamic(
            json!({"containers": [c("new"), {"name": "b", "env": [{"name": "A", "value": "1"}],
                "tty": true}]}),
            &[("spec.containers[2]", FORBIDDEN)],
        ),
        row("M8", "shrinks").spec(deadline()).dynamic(json!({"activeDeadlineSeconds": 50}), OK),
        row("M8", "appears").update(|p| p["spec"]["activeDeadlineSeconds"] = json!(5), OK),
        row("M8", "grows")
            .spec(deadline())
            .dynamic(json!({"activeDeadlineSeconds": 101}), &[("spec.activeDeadlineSeconds", INVALID)]),
        row("M8", "vanishes")
            .spec(deadline())
            .dynamic(json!({"activeDeadlineSeconds": null}), &[("spec.activeDeadlineSeconds", INVALID)]),
        row("M9", "one more").spec(tolerating()).update(
            |p| {
                p["spec"]["tolerations"] = json!([{"key": "b", "operator": "Exists"}, {"key": "a",
                "operator": "Exists"}])
            },
            OK,
        ),
        row("M9", "one less").spec(tolerating()).dynamic(
            json!({"tolerations": [{"key": "b", "operator": "Exists"}]}),
            &[("spec.tolerations", FORBIDDEN)],
        ),
        row("M10", "one less")
            .spec(gated())
            .update(|p| p["spec"]["schedulingGates"] = json!([{"name": "b"}]), OK),
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
        row("M12", "another field, the pod itself")
            .update(|p| p["spec"]["nodeName"] = json!("other"), spec_forbidden),
        row("M12", "resize ignores what isn't resources")
            .spec(stored())
            .resize(with(sized(json!({"cpu": "2"}), json!({})), json!({"hostNetwork": true})), OK),
        row("M13", "gate off")
            .spec(pod_sized())
            .resize(json!({"resources": {"requests": {"cpu": "2"}}}), &[("spec.resources", FORBIDDEN)]),
        row("M13", "gate on")
            .spec(pod_sized())
            .config(|c| c.pod_level_resize = true)
            .resize(json!({"resources": {"requests": {"cpu": "2"}}}), OK),
        row("M14", "labels").whole(|p| p["metadata"]["labels"] = json!({"a": "b"}), OK),
        row("M14", "a label that is none")
            .whole(|p| p["metadata"]["labels"] = json!({"a": "b c"}), &[("metadata.labels", INVALID)]),
        row("M14", "creation time").whole(
            |p| p["metadata"]["creationTimestamp"] = json!("2001-01-01T00:00:00Z"),
            &[("metadata.creationTimestamp", INVALID)],
        ),
        row("M15", "status in the body is ignored").whole(|p| p["status"] = json!({"phase": "Failed"}), OK),
    ]
}
