//! Long texts that a pod's spec says more than once (a token's mount path, an image, equal rests of containers) are kept
//! once. Short ones lie in the value itself.

use nodefold_core::ids::Name;
use nodefold_core::spec::PodSpec;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Shares them, in what was just read and nobody else holds.
pub(crate) fn texts(spec: &mut PodSpec) {
    let mut known = BTreeSet::new();
    let mut share = |text: &mut Name| match known.get(&**text) {
        Some(same) => *text = Name::clone(same),
        None => {
            known.insert(text.clone());
        }
    };
    let PodSpec { init_containers, containers, ephemeral_containers, volumes, .. } = spec;
    for volume in volumes.iter_mut().filter_map(Arc::get_mut) {
        share(&mut volume.name);
        share(&mut volume.rest.0);
    }
    let all = init_containers.iter_mut().chain(containers).chain(ephemeral_containers);
    for container in all.filter_map(Arc::get_mut) {
        share(&mut container.image);
        share(&mut container.rest.0);
        for mount in &mut container.mounts {
            share(&mut mount.name);
            share(&mut mount.mount_path);
            share(&mut mount.rest.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_kept_once() {
        let mount = serde_json::json!({"name": "kube-api-access-x7k2p", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"});
        let container = |name: &str| serde_json::json!({"name": name, "image": "registry.local/busybox:1", "volumeMounts": [mount]});
        let object = serde_json::json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "default", "uid": "00000000-0000-0000-0000-000000000001"},
            "spec": {
                "containers": [container("a"), container("b")],
                "volumes": [{"name": "kube-api-access-x7k2p", "emptyDir": {}}],
            },
        });
        let pod = crate::pod_from_json(&object, nodefold_core::ids::Source::Api).expect("a pod");
        let [a, b] = &pod.spec.containers[..] else { panic!("two containers") };
        let same = |one: &Name, other: &Name| std::ptr::eq(one.as_ptr(), other.as_ptr());
        assert!(same(&a.image, &b.image));
        assert!(same(&a.mounts[0].mount_path, &b.mounts[0].mount_path));
        assert!(same(&a.mounts[0].name, &b.mounts[0].name));
        assert!(same(&a.mounts[0].name, &pod.spec.volumes[0].name));
    }
}
