//! How the kubelet writes pods, containers and volumes, era by era (node-logs §1.3, §2.3).

use crate::evidence::{PodHint, VolumeHint};
use crate::scan::{self, is_uid, name};

/// `ns/p` of the structured eras, or a JSON reference `{"name":"p","namespace":"ns"}`. Cut: only the beginning is known.
pub fn pod_ref(text: &[u8], cut: bool) -> PodHint {
    let text = scan::trim(text);
    if text.starts_with(b"{") {
        let field =
            |key: &[u8]| scan::after(text, key).and_then(|t| scan::between(t, b"\"", b"\"")).map(name);
        return PodHint { uid: None, namespace: field(b"\"namespace\":"), name: field(b"\"name\":"), cut };
    }
    match scan::until(text, b'/') {
        Some((ns, pod)) if !ns.is_empty() && !pod.is_empty() => {
            PodHint { uid: None, namespace: Some(name(ns)), name: Some(name(pod)), cut }
        }
        Some(_) => PodHint::default(),
        None if text.is_empty() => PodHint::default(),
        None => PodHint { uid: None, namespace: None, name: Some(name(text)), cut },
    }
}

/// `name_namespace(uid)` of era A.
pub fn pod_text(text: &[u8]) -> PodHint {
    let (full, uid) = match scan::until(text, b'(') {
        Some((full, rest)) => (full, rest.split(|b| *b == b')').next().filter(|u| is_uid(u)).map(name)),
        None => (text, None),
    };
    // Neither a pod's nor a namespace's name holds an underscore.
    match scan::until(full, b'_') {
        Some((pod, ns)) => PodHint { uid, namespace: Some(name(ns)), name: Some(name(pod)), cut: false },
        None => PodHint { uid, namespace: None, name: (!full.is_empty()).then(|| name(full)), cut: false },
    }
}

/// The id without the runtime's prefix: `containerd://f29d…`.
pub fn runtime_id(text: &[u8]) -> &[u8] {
    scan::after(text, b"://").unwrap_or(text)
}

/// The pod and the name in a per-pod unique name `plugin/<uid>-<name>`.
pub fn unique_parts(unique: &[u8]) -> Option<(&[u8], &[u8])> {
    let slash = unique.iter().rposition(|b| *b == b'/')?;
    let tail = &unique[slash + 1..];
    [36, 32].into_iter().find_map(|len| {
        let (uid, rest) = tail.split_at_checked(len)?;
        let spec = rest.strip_prefix(b"-")?;
        (is_uid(uid) && !spec.is_empty()).then_some((uid, spec))
    })
}

/// Whether each pod has a volume of this kind for itself. Up to 1.4 unique names did not say so by the pod's UID.
pub fn has_own_volume(unique: &[u8]) -> bool {
    const KINDS: [&str; 7] =
        ["secret", "configmap", "projected", "empty-dir", "host-path", "downward-api", "git-repo"];
    let kind = unique.strip_prefix(b"kubernetes.io/").and_then(|rest| scan::until(rest, b'/'));
    unique_parts(unique).is_some() || kind.is_some_and(|(kind, _)| KINDS.iter().any(|k| k.as_bytes() == kind))
}

/// Whether somebody made a UID unreadable: `xxxx-xxxx`, `GUID`, `{pod-uid}` (node-logs §1.7). It names nobody.
pub fn is_redacted(text: &[u8]) -> bool {
    let blotted = |b: &u8| matches!(b, b'x' | b'X' | b'*' | b'-' | b'#');
    text.len() >= 4 && text.iter().all(blotted)
        || matches!(text, b"GUID" | b"UID" | b"UUID" | b"pod-uid" | b"REDACTED")
        || matches!((text.first(), text.last()), (Some(b'{' | b'<' | b'['), Some(b'}' | b'>' | b']')))
}

/// `wrapped_NAME.deleting~N` and `NAME.deleting~N`: what a failed removal leaves, tied back to its original.
fn original(spec: &[u8]) -> (&[u8], bool) {
    match scan::before(spec, b".deleting~") {
        Some(head) => {
            let mut head = head;
            while let Some(inner) = head.strip_prefix(b"wrapped_") {
                head = inner;
            }
            (head, true)
        }
        None => (spec, false),
    }
}

/// A volume by what a line says: the name in the spec, the unique name.
pub fn volume(spec: Option<&[u8]>, unique: Option<&[u8]>) -> VolumeHint {
    let from_unique = unique.and_then(unique_parts).map(|(_, spec)| spec);
    let spec = spec.filter(|s| !s.is_empty()).or(from_unique);
    let plugin = unique.and_then(|u| {
        let slash = u.iter().rposition(|b| *b == b'/')?;
        let head = if u.starts_with(b"kubernetes.io/csi/") { &b"kubernetes.io/csi"[..] } else { &u[..slash] };
        Some(name(head))
    });
    let (spec, artifact) = match spec {
        Some(s) => {
            let (s, artifact) = original(s);
            (Some(name(s)), artifact)
        }
        None => (None, false),
    };
    VolumeHint {
        name: spec,
        unique: unique.filter(|u| !u.is_empty()).map(name),
        plugin,
        path: None,
        artifact,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_of_both_eras() {
        let pod = pod_text(b"web-0_default(f301b4a0-fff1-11ea-4b50-700dfae2f67d)");
        assert_eq!((pod.name.as_deref(), pod.namespace.as_deref()), (Some("web-0"), Some("default")));
        assert!(pod.uid.is_some());
        let pod = pod_ref(br#"{"name":"dbgtools","namespace":"uat"}"#, false);
        assert_eq!((pod.name.as_deref(), pod.namespace.as_deref()), (Some("dbgtools"), Some("uat")));
    }

    #[test]
    fn a_unique_name_tells_the_pod_only_for_kinds_of_one_pod() {
        let (uid, spec) =
            unique_parts(b"kubernetes.io/secret/a8e23c0e-37ad-11e7-e993-1faa9d61d28b-tok-h73").expect("x");
        assert_eq!((uid.len(), spec), (36, &b"tok-h73"[..]));
        assert!(unique_parts(b"kubernetes.io/aws-ebs/aws://zz-test-1b/vol-ff7e").is_none());
        assert!(has_own_volume(b"kubernetes.io/secret/default-token-6jqrn"));
        assert!(!has_own_volume(b"kubernetes.io/csi/ebs.csi.aws.com^vol-1"));
    }

    #[test]
    fn what_is_blotted_out_names_nobody() {
        for text in ["xxxx-xxxx-xxxx-xxxx-xxxx", "GUID", "{pod-uid}", "[node IP]", "****"] {
            assert!(is_redacted(text.as_bytes()), "{text}");
        }
        assert!(!is_redacted(b"web-0") && !is_redacted(b"4389375b-acab-11e6-ac07-fa163e411bde"));
    }

    #[test]
    fn a_renamed_directory_is_its_original() {
        let v = volume(Some(b"wrapped_wrapped_tok.deleting~0795"), None);
        assert_eq!((v.name.as_deref(), v.artifact), (Some("tok"), true));
    }
}
