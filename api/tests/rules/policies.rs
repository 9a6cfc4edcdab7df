//! D1–D7: `dynamicVolumePolicy`.

use super::*;

pub fn rows() -> Vec<Row> {
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
