//! P1–P7: what the stored pod must be.

use super::*;

pub fn rows() -> Vec<Row> {
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
