//! S19–S31: what volumes are made of. Rows add the volume `n` to the running pod, `spec.volumes[0]` of the result.

use super::*;

pub fn rows() -> Vec<Row> {
    [simple(), files(), projected(), credentials()].into_iter().flatten().collect()
}

const AT: &str = "spec.volumes[0]";

fn adds(
    id: &'static str,
    what: &'static str,
    source: Value,
    field: &str,
    reason: Option<&'static str>,
) -> Row {
    let patch = json!({"volumes": [with(json!({"name": "n"}), source)]});
    let expected = reason.into_iter().map(|r| (format!("{AT}{field}"), r)).collect();
    row(id, what).dynamic(patch, &[]).causes(expected)
}

fn good(id: &'static str, what: &'static str, source: Value) -> Row {
    adds(id, what, source, "", None)
}

fn simple() -> Vec<Row> {
    let two = json!({"emptyDir": {}, "secret": {"secretName": "s"}});
    let image = |more: Value| json!({"image": with(json!({"reference": "i:1"}), more)});
    vec![
        good("S19", "one source", json!({"emptyDir": {}})),
        good("S19", "none is defaulted to emptyDir", json!({})),
        adds("S19", "two, the later one told", two, ".secret", Some(FORBIDDEN)),
        good("S20", "a limit, any medium", json!({"emptyDir": {"sizeLimit": "1Gi", "medium": "Disk"}})),
        adds(
            "S20",
            "a negative limit",
            json!({"emptyDir": {"sizeLimit": "-1"}}),
            ".emptyDir.sizeLimit",
            Some(FORBIDDEN),
        ),
        good("S21", "a secret's name", json!({"secret": {"secretName": "s"}})),
        adds("S21", "none", json!({"secret": {}}), ".secret.secretName", Some(REQUIRED)),
        good("S21", "a configMap's name", json!({"configMap": {"name": "c"}})),
        adds("S21", "none", json!({"configMap": {"name": ""}}), ".configMap.name", Some(REQUIRED)),
        good("S31", "a reference", image(json!({"pullPolicy": "Never"}))),
        adds("S31", "none", json!({"image": {"pullPolicy": "Never"}}), ".image.reference", Some(REQUIRED)),
        adds(
            "S31",
            "another policy",
            image(json!({"pullPolicy": "Once"})),
            ".image.pullPolicy",
            Some(NOT_SUPPORTED),
        ),
        row("S31", "a subPath of an image (accepted since 1.33)").dynamic(
            with(
                adding(json!({"volumeMounts": [{"name": "n", "mountPath": "/n", "subPath": "a"}]})),
                json!({"volumes": [with(json!({"name": "n"}), image(json!({})))]}),
            ),
            &[],
        ),
    ]
}

fn files() -> Vec<Row> {
    let secret = |more: Value| json!({"secret": with(json!({"secretName": "s"}), more)});
    let item = |item: Value| json!({"configMap": {"name": "c", "items": [item]}});
    vec![
        good(
            "S22",
            "modes",
            secret(json!({"defaultMode": 0o777, "items": [{"key": "k", "path": "p", "mode": 0}]})),
        ),
        adds(
            "S22",
            "too large",
            secret(json!({"defaultMode": 0o1000})),
            ".secret.defaultMode",
            Some(INVALID),
        ),
        adds(
            "S22",
            "negative",
            json!({"projected": {"defaultMode": -1}}),
            ".projected.defaultMode",
            Some(INVALID),
        ),
        adds(
            "S22",
            "an item's",
            item(json!({"key": "k", "path": "p", "mode": 0o1777})),
            ".configMap.items[0].mode",
            Some(INVALID),
        ),
        good("S23", "a path below", item(json!({"key": "k", "path": "a/..b"}))),
        adds("S23", "no key", item(json!({"path": "p"})), ".configMap.items[0].key", Some(REQUIRED)),
        adds("S23", "no path", item(json!({"key": "k"})), ".configMap.items[0].path", Some(REQUIRED)),
        adds(
            "S23",
            "absolute",
            item(json!({"key": "k", "path": "/p"})),
            ".configMap.items[0].path",
            Some(INVALID),
        ),
        adds(
            "S23",
            "upwards",
            item(json!({"key": "k", "path": "a/../p"})),
            ".configMap.items[0].path",
            Some(INVALID),
        ),
        adds(
            "S23",
            "begins with ..",
            item(json!({"key": "k", "path": "..p"})),
            ".configMap.items[0].path",
            Some(INVALID),
        ),
    ]
}

fn projected() -> Vec<Row> {
    let sources = |sources: Value| json!({"projected": {"sources": sources}});
    let config = |path: &str| json!({"configMap": {"name": "c", "items": [{"key": "k", "path": path}]}});
    let secret = |path: &str| json!({"secret": {"name": "s", "items": [{"key": "k", "path": path}]}});
    let downward = |item: Value| sources(json!([{"downwardAPI": {"items": [item]}}]));
    vec![
        good("S24", "one kind each", sources(json!([config("a"), secret("b")]))),
        adds(
            "S24",
            "two kinds in one",
            sources(json!([config("a"), with(config("b"), secret("c"))])),
            ".projected.sources[1]",
            Some(FORBIDDEN),
        ),
        good("S25", "two paths", sources(json!([config("a"), secret("b")]))),
        adds(
            "S25",
            "twice the same",
            sources(json!([config("a"), secret("a")])),
            ".projected",
            Some(INVALID),
        ),
        good(
            "S24",
            "the pod's labels",
            downward(json!({"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}})),
        ),
        adds(
            "S23",
            "a file of nothing",
            downward(json!({"path": "l"})),
            ".projected.sources[0].downwardAPI",
            Some(REQUIRED),
        ),
    ]
}

fn credentials() -> Vec<Row> {
    let account = || with(spec(json!([app()])), json!({"serviceAccountName": "sa"}));
    let source = |source: Value| json!({"projected": {"sources": [source]}});
    let token = |more: Value| source(json!({"serviceAccountToken": with(json!({"path": "t"}), more)}));
    let bundle = |more: Value| source(json!({"clusterTrustBundle": with(json!({"path": "b"}), more)}));
    let certificate = |more: Value| {
        let good = json!({"signerName": "a.io/b", "keyType": "ED25519", "credentialBundlePath": "c"});
        source(json!({"podCertificate": with(good, more)}))
    };
    let at_token = ".projected.sources[0].serviceAccountToken";
    let at_bundle = ".projected.sources[0].clusterTrustBundle";
    let at_certificate = ".projected.sources[0].podCertificate";
    let below = |field: &str, of: &str| format!("{of}{field}");
    let mut rows = vec![
        good("S26", "an hour", token(json!({"expirationSeconds": 3600}))),
        adds(
            "S26",
            "too short",
            token(json!({"expirationSeconds": 599})),
            &below(".expirationSeconds", at_token),
            Some(INVALID),
        ),
        adds(
            "S26",
            "too long",
            token(json!({"expirationSeconds": 4294967297_i64})),
            &below(".expirationSeconds", at_token),
            Some(INVALID),
        ),
        good("S27", "a path", token(json!({}))),
        adds(
            "S27",
            "none, told at the volume",
            token(json!({"path": ""})),
            ".projected.path",
            Some(REQUIRED),
        ),
        adds("S27", "upwards", token(json!({"path": "../t"})), ".projected.path", Some(INVALID)),
        good("S28", "with an account", token(json!({}))),
        good("S29", "by name", bundle(json!({"name": "a"}))),
        good("S29", "by signer", bundle(json!({"signerName": "a.io/b", "labelSelector": {}}))),
        adds("S29", "neither", bundle(json!({})), at_bundle, Some(REQUIRED)),
        adds("S29", "both", bundle(json!({"name": "a", "signerName": "a.io/b"})), at_bundle, Some(INVALID)),
        adds(
            "S29",
            "a name and a selector",
            bundle(json!({"name": "a", "labelSelector": {}})),
            &below(".labelSelector", at_bundle),
            Some(INVALID),
        ),
        adds(
            "S29",
            "no path",
            bundle(json!({"name": "a", "path": ""})),
            &below(".path", at_bundle),
            Some(REQUIRED),
        ),
        adds(
            "S29",
            "absolute",
            bundle(json!({"name": "a", "path": "/b"})),
            &below(".path", at_bundle),
            Some(INVALID),
        ),
        good("S30", "one file", certificate(json!({"maxExpirationSeconds": 3600}))),
        adds(
            "S30",
            "no signer",
            certificate(json!({"signerName": ""})),
            &below(".signerName", at_certificate),
            Some(REQUIRED),
        ),
        adds(
            "S30",
            "another key",
            certificate(json!({"keyType": "RSA1"})),
            &below(".keyType", at_certificate),
            Some(NOT_SUPPORTED),
        ),
        adds(
            "S30",
            "no key",
            certificate(json!({"keyType": ""})),
            &below(".keyType", at_certificate),
            Some(REQUIRED),
        ),
        adds(
            "S30",
            "too short",
            certificate(json!({"maxExpirationSeconds": 3599})),
            &below(".maxExpirationSeconds", at_certificate),
            Some(INVALID),
        ),
        adds(
            "S30",
            "no file",
            certificate(json!({"credentialBundlePath": ""})),
            at_certificate,
            Some(REQUIRED),
        ),
    ];
    rows = rows.into_iter().map(|r| r.spec(account())).collect();
    rows.push(adds("S28", "without an account", token(json!({})), at_token, Some(FORBIDDEN)));
    rows
}
