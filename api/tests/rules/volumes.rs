//! W1–W13: the set of volumes.

use super::*;

pub fn rows() -> Vec<Row> {
    let volume = |source: Value| json!({"volumes": [with(json!({"name": "n"}), source)]});
    let at_first: Expected = &[("spec.volumes[0]", FORBIDDEN)];
    let name_taken: Expected = &[("spec.volumes[0].name", DUPLICATE)];
    let unmounted = || with(spec(json!([app()])), json!({"volumes": [{"name": "v", "emptyDir": {}}]}));
    let file_key = |volume: &str| {
        json!({"env": [{"name": "A",
        "valueFrom": {"fileKeyRef": {"volumeName": volume, "path": "p", "key": "k"}}}]})
    };
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
