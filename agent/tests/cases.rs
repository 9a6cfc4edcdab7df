//! kubelet-volumes' cases that are the executor's, by their number, and the races of its §5 that happen on a disk. The lists
//! of `core/tests/volumes` and `tests/races.rs` count the tests of this file. As root.
#![allow(clippy::unwrap_used)]

mod host;

use host::{Attached, Host, configmap, files_under, secret};
use nodefold_agent::volumes::memory_size;
use nodefold_core::event::ErrorClass;
use nodefold_core::resources::{ResourceList, ResourceName};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn case_38_an_orphans_empty_directories_go_and_what_holds_a_file_is_seen() {
    let host = Host::new();
    let pod = host.pod("[{name: v, emptyDir: {}}]");
    for made in ["", "volumes", "volumes/kubernetes.io~empty-dir", "nodefold/volumes"] {
        fs::create_dir_all(host.pod_dir(&pod).join(made)).unwrap();
        host.volumes.recover().unwrap();
        assert_eq!(files_under(host.layout.data()), Vec::<String>::new(), "{made}");
    }
    // A volume that nobody noted stays until the core, which is told of it, takes it down.
    let dir = host.pod_dir(&pod).join("volumes/kubernetes.io~empty-dir/v");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("kept"), "").unwrap();
    host.volumes.recover().unwrap();
    assert!(dir.join("kept").exists());
    let seen: Vec<_> = host.volumes.observe().unwrap().into_iter().map(|seen| seen.volume.name).collect();
    assert_eq!(seen, ["v".into()]);
    host.tear_down(&pod, "v").unwrap();
    assert_eq!(files_under(host.layout.data()), Vec::<String>::new());
}

#[test]
fn case_41_the_size_of_a_memory_volume() {
    let host = Host::new();
    let node = ResourceList::from_pairs([(ResourceName::Memory, 16)]);
    let with = |resources: &str| {
        host.pod_of(&format!("{{containers: [{{name: a, image: x, resources: {resources}}}]}}")).spec
    };
    let limited = with("{limits: {memory: \"10\"}}");
    let requests = with("{requests: {memory: \"10\"}}");
    for (spec, size_limit, size) in
        [(&limited, Some(1), 1), (&limited, Some(0), 10), (&limited, None, 10), (&requests, None, 16)]
    {
        assert_eq!(memory_size(spec, &node, size_limit), size, "{size_limit:?}");
    }
}

#[test]
fn case_43_huge_pages_of_two_sizes_want_a_medium_that_says_which() {
    let host = Host::new();
    let pod = host.pod_of(
        "{containers: [{name: a, image: x, resources: {limits: {hugepages-2Mi: 2Mi, hugepages-1Gi: 1Gi, memory: 8Mi}}}],
          volumes: [{name: plain, emptyDir: {medium: HugePages}}, {name: sized, emptyDir: {medium: HugePages-2Mi}}]}",
    );
    assert!(host.set_up(&pod, "plain").is_err(), "two sizes, and none is said");
    host.set_up(&pod, "sized").unwrap();
    host.tear_down(&pod, "sized").unwrap();
    assert_eq!(host.mounts(), Vec::<String>::new());
}

#[test]
fn case_44_a_key_that_is_missing_fails_and_leaves_nothing() {
    let host = Host::new();
    host.objects(&[configmap("c", &[("a", "1")])]);
    let pod = host.pod("[{name: v, configMap: {name: c, items: [{key: nope, path: p}]}}]");
    let fault = host.set_up(&pod, "v").unwrap_err();
    assert_eq!(fault.class, ErrorClass::Final);
    assert_eq!(files_under(host.layout.data()), Vec::<String>::new());
    host.tear_down(&pod, "v").unwrap();
}

#[test]
fn case_47_paths_that_lead_elsewhere_are_refused() {
    let host = Host::new();
    host.objects(&[configmap("c", &[("a", "1")])]);
    let set_up = |path: &str| {
        let pod = host
            .pod(&format!("[{{name: v, configMap: {{name: c, items: [{{key: a, path: \"{path}\"}}]}}}}]"));
        let done = host.set_up(&pod, "v").map(|_| ());
        host.tear_down(&pod, "v").unwrap();
        done
    };
    let long = "x".repeat(256);
    let longer = "long/".repeat(1000);
    for path in ["", "/abs", "..", "../up", "a/../b", "a/..", "..name", "..name/x", &*long, &*longer] {
        assert!(set_up(path).is_err(), "{path:?}");
    }
    for path in ["a", "a/b/c", "a..b", ".hidden", "a/..c"] {
        set_up(path).unwrap_or_else(|fault| panic!("{path:?}: {}", fault.message));
    }
}

#[test]
fn cases_48_49_links_for_what_is_first_in_a_path_and_none_for_what_went() {
    let host = Host::new();
    let objects = [configmap("c", &[("k", "1")])];
    host.objects(&objects);
    let volume = |items: &str| host.pod(&format!("[{{name: v, configMap: {{name: c, items: [{items}]}}}}]"));
    let wide = volume(
        "{key: k, path: foo/bar}, {key: k, path: bar/txt}, {key: k, path: x}, {key: k, path: zip/1/2/bar}",
    );
    host.set_up(&wide, "v").unwrap();
    let dir = host.volume_dir(&wide, "configmap", "v");
    let links = || {
        let names = fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut links: Vec<String> = names.filter(|name| !name.starts_with("..")).collect();
        links.sort();
        links
    };
    assert_eq!(links(), ["bar", "foo", "x", "zip"]);
    for name in links() {
        assert_eq!(fs::read_link(dir.join(&name)).unwrap(), Path::new("..data").join(&name));
    }
    let narrow = volume("{key: k, path: foo/bar}");
    host.refresh(&narrow, "v").unwrap();
    assert_eq!(links(), ["foo"]);
    assert!(!dir.join("..data/zip").exists(), "the whole way to it went");
    host.tear_down(&narrow, "v").unwrap();
}

#[test]
fn case_52_the_mode_of_a_token() {
    let host = Host::new();
    let volumes = |mode: &str| {
        format!(
            "volumes: [{{name: v, projected: {{{mode}sources: [{{serviceAccountToken: {{path: token}}}}]}}}}]"
        )
    };
    for (security, default, expected) in [
        ("{}", "", 0o644),
        ("{runAsUser: 1000}", "", 0o600),
        ("{fsGroup: 3000}", "", 0o600),
        ("{}", "defaultMode: 288, ", 0o440),
    ] {
        let pod = host.pod_of(&format!(
            "{{securityContext: {security}, containers: [{{name: app, image: x}}], {}}}",
            volumes(default)
        ));
        host.set_up(&pod, "v").unwrap();
        let token = host.volume_dir(&pod, "projected", "v").join("..data/token");
        // A group gets to read what would be its user's alone.
        let group = if security.contains("fsGroup") { mode(&token) & 0o040 } else { 0 };
        assert_eq!(mode(&token), expected | group, "{security} {default}");
        host.tear_down(&pod, "v").unwrap();
    }
}

#[test]
fn case_56_a_sub_path_never_leads_out_of_its_volume() {
    let host = Host::new();
    let pod = host.pod("[{name: v, emptyDir: {}}]");
    host.set_up(&pod, "v").unwrap();
    let dir = host.volume_dir(&pod, "empty-dir", "v");
    fs::create_dir(dir.join("real")).unwrap();
    symlink("/etc", dir.join("absolute")).unwrap();
    symlink("../../..", dir.join("up")).unwrap();
    symlink("real", dir.join("inside")).unwrap();
    symlink("/proc/self/root", dir.join("magic")).unwrap();
    for path in ["absolute", "absolute/passwd", "up", "magic", "magic/etc", "..", "real/../.."] {
        assert!(host.mount_for(&pod, "v", Some(path)).is_err(), "{path}");
    }
    for path in ["real", "inside", "real/new"] {
        assert!(host.mount_for(&pod, "v", Some(path)).is_ok(), "{path}");
    }
    host.tear_down(&pod, "v").unwrap();
}

#[test]
fn case_58_a_group_owns_files_and_directories_and_no_links_target() {
    let host = Host::new();
    host.objects(&[secret("s", &[("k", "1")])]);
    let pod = host.pod_with(
        "[{name: s, secret: {secretName: s, defaultMode: 256}}, {name: e, emptyDir: {}}]",
        "{fsGroup: 4242}",
    );
    host.set_up(&pod, "s").unwrap();
    host.set_up(&pod, "e").unwrap();
    let file = host.volume_dir(&pod, "secret", "s").join("..data/k");
    assert_eq!((fs::metadata(&file).unwrap().gid(), mode(&file)), (4242, 0o440), "group bits as its owner's");
    let e = host.volume_dir(&pod, "empty-dir", "e");
    assert_eq!((fs::metadata(&e).unwrap().gid(), mode(&e) & 0o2000), (4242, 0o2000), "setgid");
}

/// What was noted as set up is looked at all the same.
#[test]
fn v33_a_volume_that_is_noted_and_gone_is_set_up_again() {
    let host = Host::new();
    let pod = host.pod("[{name: v, emptyDir: {}}]");
    host.set_up(&pod, "v").unwrap();
    let dir = host.volume_dir(&pod, "empty-dir", "v");
    fs::remove_dir(&dir).unwrap();
    host.set_up(&pod, "v").unwrap();
    assert!(dir.is_dir());
}

#[test]
fn v34_links_that_a_crash_left_out_are_made_though_the_content_is_equal() {
    let host = Host::new();
    host.objects(&[configmap("c", &[("a", "1"), ("b", "2")])]);
    let pod = host.pod("[{name: v, configMap: {name: c}}]");
    host.set_up(&pod, "v").unwrap();
    let dir = host.volume_dir(&pod, "configmap", "v");
    for key in ["a", "b"] {
        fs::remove_file(dir.join(key)).unwrap();
    }
    host.refresh(&pod, "v").unwrap();
    assert_eq!(
        fs::read_to_string(dir.join("a")).unwrap() + &fs::read_to_string(dir.join("b")).unwrap(),
        "12"
    );
}

#[test]
fn v35_a_new_key_is_never_seen_before_it_can_be_read() {
    let host = Host::new();
    host.objects(&[configmap("c", &[("a", "1")])]);
    let pod = host.pod("[{name: v, configMap: {name: c}}]");
    host.set_up(&pod, "v").unwrap();
    let dir = host.volume_dir(&pod, "configmap", "v");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut dangled = 0;
            let shown = || fs::read_link(dir.join("..data")).unwrap();
            while !over.load(Ordering::Relaxed) {
                for n in 0..50 {
                    let key = dir.join(format!("key-{n}"));
                    let before = shown();
                    // Who had followed the former `..data` when it was taken down finds nothing there, as with a kubelet; a link
                    // that came too early leads nowhere without that.
                    if fs::symlink_metadata(&key).is_ok() && fs::read(&key).is_err() && shown() == before {
                        dangled += 1;
                    }
                }
            }
            dangled
        });
        // Keys are only added, so that whatever is seen can be read from then on.
        for n in 0..50 {
            let keys: Vec<String> = (0..=n).map(|n| format!("key-{n}")).collect();
            let data: Vec<(&str, &str)> = keys.iter().map(|key| (&**key, "x")).collect();
            host.objects(&[configmap("c", &data)]);
            // Each at a time of its own, which is what its directory is called by.
            host.refresh_after(&pod, "v", n + 1).unwrap();
        }
        over.store(true, Ordering::Relaxed);
        assert_eq!(reader.join().unwrap(), 0);
    });
}

#[test]
fn v36_a_container_that_starts_again_gets_the_newest_content_at_its_sub_path() {
    let host = Host::new();
    host.objects(&[configmap("c", &[("a", "1")])]);
    let pod = host.pod("[{name: v, configMap: {name: c}}]");
    host.set_up(&pod, "v").unwrap();
    let place = host.outside().join("at");
    fs::write(&place, "").unwrap();
    let shown = || {
        let mount = host.mount_for(&pod, "v", Some("a")).unwrap();
        let _at = Attached::at(mount, &place);
        fs::read_to_string(&place).unwrap()
    };
    assert_eq!(shown(), "1");
    host.objects(&[configmap("c", &[("a", "2")])]);
    host.refresh(&pod, "v").unwrap();
    assert_eq!(shown(), "2");
}

#[test]
fn v38_a_record_that_a_dying_host_cut_short_holds_nothing_up() {
    for cut in [0, 1, 12] {
        let host = Host::new();
        let pod = host.pod("[{name: v, emptyDir: {}}, {name: w, emptyDir: {}}]");
        host.set_up(&pod, "v").unwrap();
        host.set_up(&pod, "w").unwrap();
        let record = host.pod_dir(&pod).join("nodefold/volumes/v.json");
        let text = fs::read(&record).unwrap();
        fs::write(&record, &text[..cut]).unwrap();
        host.volumes.recover().unwrap();
        assert_eq!(host.volumes.observe().unwrap().len(), 2, "what it left is seen, and the other one too");
        host.set_up(&pod, "v").unwrap();
        for name in ["v", "w"] {
            host.tear_down(&pod, name).unwrap();
        }
        assert_eq!(files_under(host.layout.data()), Vec::<String>::new(), "cut at {cut}");
    }
}
