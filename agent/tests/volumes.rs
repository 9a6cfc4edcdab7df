//! Volumes on a real host, as root: each test in a mount namespace and a directory of its own.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

mod host;

use host::{Host, configmap, files_under, private_mounts, secret};
use nodefold_agent::volumes::Volumes;
use nodefold_core::event::ErrorClass;
use nodefold_core::ids::VolumeId;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn what_is_on_disk_is_what_a_kubelet_leaves_there() {
    let host = Host::new();
    host.objects(&[configmap("cfg", &[("mode", "fast"), ("size", "1")]), secret("sec", &[("token", "abc")])]);
    let pod = host.pod(
        "[{name: cfg, configMap: {name: cfg}}, {name: scratch, emptyDir: {}}, {name: mem, emptyDir: {medium: Memory, sizeLimit: 16Mi}},
          {name: sec, secret: {secretName: sec}},
          {name: proj, projected: {sources: [{configMap: {name: cfg}}, {downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}]}}]",
    );
    for name in ["cfg", "scratch", "mem", "sec", "proj"] {
        host.set_up(&pod, name).unwrap();
    }
    // As recordings/01-volumes-basic/host-files.txt has it.
    let at = |path: &str| host.pod_dir(&pod).join("volumes").join(path);
    assert_eq!(mode(&at("kubernetes.io~configmap")), 0o755);
    assert_eq!(mode(&at("kubernetes.io~configmap/cfg")), 0o777);
    assert_eq!(mode(&at("kubernetes.io~empty-dir/scratch")), 0o777);
    for tmpfs in ["kubernetes.io~empty-dir/mem", "kubernetes.io~secret/sec", "kubernetes.io~projected/proj"] {
        assert_eq!(mode(&at(tmpfs)), 0o1777, "{tmpfs}");
        assert!(host.is_mounted(&at(tmpfs)), "{tmpfs}");
    }
    assert_eq!(host.tmpfs_size(&at("kubernetes.io~empty-dir/mem")), 16 << 20);
    let cfg = at("kubernetes.io~configmap/cfg");
    let data = fs::read_link(cfg.join("..data")).unwrap();
    assert!(data.to_str().unwrap().starts_with("..20"), "{data:?}");
    assert_eq!(mode(&cfg.join(&data)), 0o755);
    assert_eq!(fs::read_link(cfg.join("mode")).unwrap(), Path::new("..data/mode"));
    assert_eq!(fs::read_to_string(cfg.join("mode")).unwrap(), "fast");
    assert_eq!(mode(&cfg.join(&data).join("mode")), 0o644);
    assert_eq!(fs::read_to_string(at("kubernetes.io~projected/proj/labels")).unwrap(), "app=\"x\"");
    assert_eq!(host.volumes.observe().unwrap().len(), 5);
    for name in ["cfg", "scratch", "mem", "sec", "proj"] {
        host.tear_down(&pod, name).unwrap();
        host.tear_down(&pod, name).unwrap();
    }
    assert_eq!(files_under(host.layout.data()), Vec::<String>::new());
    assert_eq!(host.mounts(), Vec::<String>::new());
}

#[test]
fn items_modes_optional_objects_and_later_sources() {
    let host = Host::new();
    host.objects(&[configmap("c", &[("a", "1"), ("b", "2")]), secret("s", &[("k", "secret")])]);
    let pod = host.pod(
        "[{name: items, configMap: {name: c, defaultMode: 256, items: [{key: a, path: x/y}, {key: b, path: z, mode: 420}]}},
          {name: none, configMap: {name: absent, optional: true}},
          {name: skip, secret: {secretName: s, optional: true, items: [{key: nope, path: p}, {key: k, path: q}]}},
          {name: clash, projected: {defaultMode: 288, sources: [{configMap: {name: c, items: [{key: a, path: f}]}}, {secret: {name: s, items: [{key: k, path: f}]}}]}},
          {name: missing, configMap: {name: absent}},
          {name: nokey, secret: {secretName: s, items: [{key: nope, path: p}]}},
          {name: escape, configMap: {name: c, items: [{key: a, path: ../up}]}},
          {name: both, projected: {sources: [{configMap: {name: no1}}, {secret: {name: no2}}]}}]",
    );
    for name in ["items", "none", "skip", "clash"] {
        host.set_up(&pod, name).unwrap();
    }
    let items = host.volume_dir(&pod, "configmap", "items");
    assert_eq!(fs::read_to_string(items.join("x/y")).unwrap(), "1");
    assert_eq!(mode(&items.join("..data/x/y")), 0o400);
    assert_eq!(mode(&items.join("..data/z")), 0o644);
    assert!(!items.join("a").exists());
    assert_eq!(
        files_under(&host.volume_dir(&pod, "configmap", "none")).len(),
        2,
        "..data and what it points to"
    );
    let clash = host.volume_dir(&pod, "projected", "clash");
    assert_eq!(fs::read_to_string(clash.join("f")).unwrap(), "secret", "the later source wins");
    let before = files_under(host.layout.data());
    for (name, told) in [
        ("missing", "configmap \"absent\" not found"),
        ("nokey", "references non-existent secret key: nope"),
        ("escape", ".."),
        ("both", "[configmap \"no1\" not found, secret \"no2\" not found]"),
    ] {
        let fault = host.set_up(&pod, name).unwrap_err();
        assert_eq!(fault.class, ErrorClass::Final, "{name}");
        assert!(fault.message.contains(told), "{name}: {}", fault.message);
    }
    assert_eq!(files_under(host.layout.data()), before, "a content that can't be had leaves nothing");
}

#[test]
fn a_refresh_swaps_at_once_and_keeps_what_did_not_change() {
    let host = Host::new();
    host.objects(&[configmap("c", &[("a", "1"), ("old", "x")])]);
    let pod = host.pod("[{name: v, configMap: {name: c}}]");
    host.set_up(&pod, "v").unwrap();
    let dir = host.volume_dir(&pod, "configmap", "v");
    let first = fs::read_link(dir.join("..data")).unwrap();
    host.refresh(&pod, "v").unwrap();
    assert_eq!(fs::read_link(dir.join("..data")).unwrap(), first, "nothing changed: the same content");
    // A reader that holds the former content open keeps a whole view of it while the new one is swapped in.
    host.objects(&[configmap("c", &[("a", "2"), ("new", "y")])]);
    host.refresh(&pod, "v").unwrap();
    assert_ne!(fs::read_link(dir.join("..data")).unwrap(), first);
    assert_eq!(fs::read_to_string(dir.join("a")).unwrap(), "2");
    assert_eq!(fs::read_to_string(dir.join("new")).unwrap(), "y");
    assert!(fs::symlink_metadata(dir.join("old")).is_err(), "a key that went has no link");
    assert!(!dir.join(&first).exists(), "the former content is gone");
    // The object goes: the refresh fails and the content stays (I6).
    host.forget("c");
    let fault = host.refresh(&pod, "v").unwrap_err();
    assert_eq!(fault.class, ErrorClass::Final);
    assert_eq!(fs::read_to_string(dir.join("a")).unwrap(), "2");
}

#[test]
fn case_50_what_a_crash_between_two_steps_left_is_repaired() {
    let host = Host::new();
    host.objects(&[configmap("c", &[("a", "1"), ("b", "2")])]);
    let pod = host.pod("[{name: v, configMap: {name: c}}]");
    host.set_up(&pod, "v").unwrap();
    let dir = host.volume_dir(&pod, "configmap", "v");
    // After step 5: a leaked directory; after 8: an unswapped link; between 9 and 10: links are missing; between 10 and 11:
    // a dangling one.
    fs::create_dir(dir.join("..2020_01_01_00_00_00.1")).unwrap();
    fs::write(dir.join("..2020_01_01_00_00_00.1/a"), "half").unwrap();
    symlink("..2020_01_01_00_00_00.1", dir.join("..data_tmp")).unwrap();
    fs::remove_file(dir.join("a")).unwrap();
    symlink("..data/gone", dir.join("gone")).unwrap();
    host.refresh(&pod, "v").unwrap();
    let names: Vec<String> =
        fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(names.len(), 4, "{names:?}");
    assert_eq!(fs::read_to_string(dir.join("a")).unwrap(), "1");
    // An agent that died inside a first set-up: its record says so, and the next agent takes it down.
    let record = host.pod_dir(&pod).join("nodefold/volumes/v.json");
    let text = fs::read_to_string(&record).unwrap();
    fs::write(&record, text.replace("true", "false")).unwrap();
    assert_eq!(host.volumes.observe().unwrap(), [], "what is not whole is not seen as set up");
    host.volumes.recover().unwrap();
    assert_eq!(files_under(host.layout.data()), Vec::<String>::new());
    host.set_up(&pod, "v").unwrap();
    assert_eq!(host.volumes.observe().unwrap().len(), 1);
    host.tear_down(&pod, "v").unwrap();
    // Before its first record, and before its first directory for records.
    for made in ["nodefold/volumes", "volumes/kubernetes.io~configmap"] {
        fs::create_dir_all(host.pod_dir(&pod).join(made)).unwrap();
        host.volumes.recover().unwrap();
        assert_eq!(files_under(host.layout.data()), Vec::<String>::new());
    }
}

#[test]
fn another_life_of_a_name_waits_until_the_former_is_gone() {
    let host = Host::new();
    let pod = host.pod("[{name: v, emptyDir: {}}]");
    host.set_up(&pod, "v").unwrap();
    let second = VolumeId { name: "v".into(), generation: 1 };
    let fault = host.set_up_as(&pod, &second).unwrap_err();
    assert_eq!(fault.class, ErrorClass::Transient);
    host.volumes.tear_down(pod.uid, &second).unwrap();
    assert_eq!(host.volumes.observe().unwrap().len(), 1, "the unmount of another life leaves it");
    host.tear_down(&pod, "v").unwrap();
    host.set_up_as(&pod, &second).unwrap();
}

#[test]
fn teardown_touches_nothing_outside_whatever_a_container_planted() {
    let host = Host::new();
    let outside = host.outside();
    fs::write(outside.join("keep"), "me").unwrap();
    fs::create_dir(outside.join("dir")).unwrap();
    fs::write(outside.join("dir/keep"), "me").unwrap();
    let pod = host.pod("[{name: v, emptyDir: {}}, {name: m, emptyDir: {medium: Memory}}]");
    for name in ["v", "m"] {
        host.set_up(&pod, name).unwrap();
        let dir = host.volume_dir(&pod, "empty-dir", name);
        symlink(&outside, dir.join("link")).unwrap();
        symlink("../../../../../../../..", dir.join("up")).unwrap();
        fs::create_dir(dir.join("d")).unwrap();
        symlink(outside.join("dir"), dir.join("d/inner")).unwrap();
        host::mkfifo(&dir.join("fifo"));
        drop(std::os::unix::net::UnixListener::bind(dir.join("s")).unwrap());
        fs::set_permissions(dir.join("d"), fs::Permissions::from_mode(0o0)).unwrap();
        host.volumes.observe().unwrap();
        host.tear_down(&pod, name).unwrap();
    }
    assert_eq!(fs::read_to_string(outside.join("keep")).unwrap(), "me");
    assert_eq!(fs::read_to_string(outside.join("dir/keep")).unwrap(), "me");
    assert_eq!(files_under(host.layout.data()), Vec::<String>::new());
}

#[test]
fn nothing_is_deleted_through_a_mount() {
    let host = Host::new();
    let outside = host.outside();
    fs::write(outside.join("keep"), "me").unwrap();
    let pod = host.pod("[{name: v, emptyDir: {}}]");
    host.set_up(&pod, "v").unwrap();
    let dir = host.volume_dir(&pod, "empty-dir", "v");
    fs::create_dir_all(dir.join("a/b")).unwrap();
    fs::write(dir.join("a/file"), "").unwrap();
    rustix::mount::mount_bind(&outside, dir.join("a/b")).unwrap();
    rustix::mount::mount_bind(outside.join("keep"), dir.join("a/file")).unwrap();
    let fault = host.tear_down(&pod, "v").unwrap_err();
    assert_eq!(fault.class, ErrorClass::Transient);
    assert!(fault.message.contains("mounted"), "{}", fault.message);
    assert_eq!(fs::read_to_string(outside.join("keep")).unwrap(), "me");
    rustix::mount::unmount(dir.join("a/b"), rustix::mount::UnmountFlags::empty()).unwrap();
    rustix::mount::unmount(dir.join("a/file"), rustix::mount::UnmountFlags::empty()).unwrap();
    host.tear_down(&pod, "v").unwrap();
    assert_eq!(fs::read_to_string(outside.join("keep")).unwrap(), "me");
    // The whole volume bind-mounted over: unmounted, not emptied.
    host.set_up(&pod, "v").unwrap();
    rustix::mount::mount_bind(&outside, &dir).unwrap();
    host.tear_down(&pod, "v").unwrap();
    assert_eq!(fs::read_to_string(outside.join("keep")).unwrap(), "me");
    assert_eq!(host.mounts(), Vec::<String>::new());
}

#[test]
fn trees_of_any_depth_and_width_go() {
    let host = Host::new();
    let pod = host.pod("[{name: v, emptyDir: {}}]");
    host.set_up(&pod, "v").unwrap();
    let dir = host.volume_dir(&pod, "empty-dir", "v");
    // Far deeper than a path may be long, and than there may be descriptors.
    host::dig(&dir, 6000);
    for i in 0..3000 {
        fs::write(dir.join(format!("file-{i}")), "").unwrap();
    }
    host.tear_down(&pod, "v").unwrap();
    assert_eq!(files_under(host.layout.data()), Vec::<String>::new());
}

#[test]
fn a_secrets_bytes_are_gone_after_teardown() {
    let host = Host::new();
    const NEEDLE: &str = "needle-5d1c0c1e-in-no-haystack";
    host.objects(&[secret("s", &[("token", NEEDLE)])]);
    let pod = host.pod("[{name: v, secret: {secretName: s}}]");
    host.set_up(&pod, "v").unwrap();
    let dir = host.volume_dir(&pod, "secret", "v");
    assert_eq!(fs::read_to_string(dir.join("token")).unwrap(), NEEDLE);
    assert_eq!(host.found_on_disk(NEEDLE), Vec::<String>::new(), "it is on no disk while it is mounted");
    // Somebody's copy of the mount, as another mount namespace has one: it must not keep the bytes.
    let copy = host.outside().join("copy");
    fs::create_dir(&copy).unwrap();
    rustix::mount::mount_bind(&dir, &copy).unwrap();
    host.tear_down(&pod, "v").unwrap();
    assert_eq!(files_under(&copy), Vec::<String>::new());
    rustix::mount::unmount(&copy, rustix::mount::UnmountFlags::empty()).unwrap();
    assert_eq!(host.mounts(), Vec::<String>::new());
    assert_eq!(host.found_on_disk(NEEDLE), Vec::<String>::new());
}

#[test]
fn credentials_are_shown_to_their_user_and_renewed_before_they_end() {
    let host = Host::new();
    let outside = host.outside();
    fs::create_dir_all(outside.join("certificates/example.com/signer/default")).unwrap();
    let block = |label: &str| format!("-----BEGIN {label}-----\nx\n-----END {label}-----\n");
    let pem = block("PRIVATE KEY") + &block("CERTIFICATE");
    fs::write(outside.join("certificates/example.com/signer/default/web.pem"), &pem).unwrap();
    let pod = host.pod_of(
        "{serviceAccountName: builder, securityContext: {runAsUser: 1000}, containers: [{name: app, image: x}],
          volumes: [{name: v, projected: {sources: [
            {serviceAccountToken: {path: token, expirationSeconds: 600, audience: vault}},
            {podCertificate: {signerName: example.com/signer, keyType: ED25519, credentialBundlePath: both.pem, keyPath: key.pem}}]}},
          {name: short, projected: {sources: [{serviceAccountToken: {path: token, expirationSeconds: 60}}]}},
          {name: none, projected: {sources: [{podCertificate: {signerName: example.com/other, credentialBundlePath: p}}]}}]}",
    );
    let first = host.set_up(&pod, "v").unwrap().renew_at.unwrap();
    let dir = host.volume_dir(&pod, "projected", "v");
    let token = fs::read_to_string(dir.join("token")).unwrap();
    assert_eq!(token.split('.').count(), 3);
    let file = fs::metadata(dir.join("token")).unwrap();
    assert_eq!((file.mode() & 0o777, file.uid()), (0o600, 1000));
    assert_eq!(fs::read_to_string(dir.join("both.pem")).unwrap(), pem);
    assert_eq!(fs::read_to_string(dir.join("key.pem")).unwrap(), block("PRIVATE KEY"));
    // Before it is due, whatever else is refreshed, the token stays.
    assert_eq!(host.refresh_after(&pod, "v", 400).unwrap(), Some(first));
    assert_eq!(fs::read_to_string(dir.join("token")).unwrap(), token);
    let second = host.refresh_after(&pod, "v", 481).unwrap().unwrap();
    assert_ne!(fs::read_to_string(dir.join("token")).unwrap(), token);
    assert!(second > first);
    assert_eq!(host.found_on_disk(&token), Vec::<String>::new());
    assert!(host.set_up(&pod, "short").unwrap_err().message.contains("10 minutes"));
    let none = host.set_up(&pod, "none").unwrap_err().message;
    assert!(none.contains("certificates/example.com/other/default/web.pem"), "{none}");
    host.tear_down(&pod, "v").unwrap();
    assert_eq!(host.mounts(), Vec::<String>::new());
}

#[test]
fn fs_group_gives_files_to_the_group_and_never_a_links_target() {
    let host = Host::new();
    host.objects(&[configmap("c", &[("a", "1")])]);
    let pod = host.pod_with("[{name: v, configMap: {name: c}}, {name: e, emptyDir: {}}]", "{fsGroup: 4242}");
    host.set_up(&pod, "v").unwrap();
    host.set_up(&pod, "e").unwrap();
    let v = host.volume_dir(&pod, "configmap", "v");
    let e = host.volume_dir(&pod, "empty-dir", "e");
    assert_eq!(fs::metadata(v.join("a")).unwrap().gid(), 4242);
    assert_eq!(mode(&v.join("..data/a")), 0o644);
    assert_eq!((fs::metadata(&e).unwrap().gid(), mode(&e) & 0o2070), (4242, 0o2070));
    // Set up once more, over files that a container planted: they are its own now.
    let target = host.outside().join("t");
    fs::write(&target, "").unwrap();
    symlink(&target, e.join("l")).unwrap();
    host.set_up(&pod, "e").unwrap();
    assert_eq!(fs::metadata(&target).unwrap().gid(), 0);
}

#[test]
fn host_paths_are_checked_by_type() {
    let host = Host::new();
    let at = host.outside().display().to_string();
    fs::write(host.outside().join("file"), "").unwrap();
    let pod = host.pod(&format!(
        "[{{name: dir, hostPath: {{path: {at}, type: Directory}}}}, {{name: notdir, hostPath: {{path: {at}/file, type: Directory}}}},
          {{name: make, hostPath: {{path: {at}/a/b, type: DirectoryOrCreate}}}}, {{name: file, hostPath: {{path: {at}/new, type: FileOrCreate}}}},
          {{name: nul, hostPath: {{path: /dev/null, type: CharDevice}}}}, {{name: up, hostPath: {{path: {at}/../x}}}}]"
    ));
    for name in ["dir", "make", "file", "nul"] {
        host.set_up(&pod, name).unwrap();
    }
    assert_eq!(mode(&host.outside().join("a/b")), 0o755);
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    let fault = host.set_up(&pod, "notdir").unwrap_err();
    assert!(fault.message.contains("hostPath type check failed"), "{}", fault.message);
    assert!(host.set_up(&pod, "up").is_err());
    for name in ["dir", "make", "file", "nul"] {
        host.tear_down(&pod, name).unwrap();
    }
    assert!(host.outside().join("file").exists(), "a hostPath is nobody's to remove");
}

#[test]
fn a_memory_volume_is_as_large_as_the_least_of_its_limits() {
    use nodefold_agent::volumes::memory_size;
    use nodefold_core::resources::{ResourceList, ResourceName};
    let host = Host::new();
    let node = ResourceList::from_pairs([(ResourceName::Memory, 1000)]);
    let with = |limits: &str| host.pod_of(&format!("{{containers: [{limits}]}}")).spec;
    let limited = with(
        "{name: a, image: x, resources: {limits: {memory: \"300\"}}}, {name: b, image: x, resources: {limits: {memory: \"400\"}}}",
    );
    let half = with("{name: a, image: x, resources: {limits: {memory: \"300\"}}}, {name: b, image: x}");
    assert_eq!(memory_size(&limited, &node, None), 700);
    assert_eq!(memory_size(&limited, &node, Some(500)), 500);
    assert_eq!(memory_size(&limited, &node, Some(800)), 700);
    assert_eq!(memory_size(&half, &node, None), 1000, "a container without a limit: the node's memory");
    assert_eq!(memory_size(&half, &ResourceList::default(), Some(5)), 5);
}

#[test]
fn a_mount_for_a_container_is_read_only_where_it_must_be_and_a_sub_path_stays_inside() {
    let host = Host::new();
    host.objects(&[configmap("c", &[("a", "1")])]);
    let pod = host.pod("[{name: v, configMap: {name: c}}, {name: e, emptyDir: {}}]");
    host.set_up(&pod, "v").unwrap();
    host.set_up(&pod, "e").unwrap();
    let place = host.outside().join("at");
    fs::create_dir(&place).unwrap();
    let attached = |name: &str, sub_path: Option<&str>| -> Result<host::Attached, String> {
        let mount = host.mount_for(&pod, name, sub_path).map_err(|fault| fault.message)?;
        Ok(host::Attached::at(mount, &place))
    };
    {
        let _at = attached("v", None).unwrap();
        assert_eq!(fs::read_to_string(place.join("a")).unwrap(), "1");
        let refused = fs::write(place.join("x"), "").unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    }
    {
        let _at = attached("e", Some("made/for/it")).unwrap();
        fs::write(place.join("x"), "").unwrap();
    }
    assert!(host.volume_dir(&pod, "empty-dir", "e").join("made/for/it/x").exists());
    symlink("/etc", host.volume_dir(&pod, "empty-dir", "e").join("out")).unwrap();
    symlink("made", host.volume_dir(&pod, "empty-dir", "e").join("in")).unwrap();
    assert!(attached("e", Some("out")).is_err(), "a link out of the volume");
    assert!(attached("e", Some("../v")).is_err());
    assert!(attached("e", Some("in/for")).is_ok(), "a link that stays inside");
    let _: &Volumes = &host.volumes;
}

#[test]
fn hugepages_need_a_size_that_somebody_requests() {
    let host = Host::new();
    if !private_mounts::hugetlbfs_is_known() {
        panic!("this kernel has no hugetlbfs: the test can't run here");
    }
    let pod = host.pod_of(
        "{containers: [{name: a, image: x, resources: {limits: {hugepages-2Mi: 2Mi, memory: 8Mi}}}],
          volumes: [{name: h, emptyDir: {medium: HugePages}}, {name: g, emptyDir: {medium: HugePages-1Gi}}]}",
    );
    host.set_up(&pod, "h").unwrap();
    assert!(host.is_mounted(&host.volume_dir(&pod, "empty-dir", "h")));
    assert!(host.set_up(&pod, "g").unwrap_err().message.contains("hugepages-1Gi"));
    host.tear_down(&pod, "h").unwrap();
    assert_eq!(host.mounts(), Vec::<String>::new());
}

#[test]
fn usage_and_refresh_look_at_nothing_outside_whatever_a_container_planted() {
    let host = Host::new();
    let outside = host.outside();
    fs::write(outside.join("keep"), "me").unwrap();
    fs::write(outside.join("large"), vec![7; 4 << 20]).unwrap();
    host.objects(&[configmap("c", &[("k", "1")])]);
    let pod = host.pod("[{name: v, emptyDir: {}}, {name: c, configMap: {name: c}}]");
    for name in ["v", "c"] {
        host.set_up(&pod, name).unwrap();
    }
    let plant = |dir: &Path| {
        symlink(&outside, dir.join("link")).unwrap();
        symlink("../../../../../../../..", dir.join("up")).unwrap();
        host::mkfifo(&dir.join("fifo"));
        fs::create_dir(dir.join("mounted")).unwrap();
        rustix::mount::mount_bind(&outside, dir.join("mounted")).unwrap();
        fs::create_dir(dir.join("deep")).unwrap();
        host::dig(&dir.join("deep"), 3000);
    };
    let volume = host.volume_dir(&pod, "empty-dir", "v");
    plant(&volume);
    let used =
        host.volumes.usage_of(pod.uid, &VolumeId { name: "v".into(), generation: 0 }).unwrap().unwrap();
    // A directory takes up a block or so; what is outside would be four megabytes more.
    assert!(used > 0 && used < 16 << 20, "{used}");
    fs::write(outside.join("large"), vec![7; 64 << 20]).unwrap();
    let again =
        host.volumes.usage_of(pod.uid, &VolumeId { name: "v".into(), generation: 0 }).unwrap().unwrap();
    assert_eq!(used, again, "what is outside does not count");
    // A volume of objects is read-only to its containers; somebody got in all the same, and its way in leads outside now.
    let shown = host.volume_dir(&pod, "configmap", "c");
    plant(&shown);
    fs::remove_file(shown.join("..data")).unwrap();
    symlink(&outside, shown.join("..data")).unwrap();
    fs::remove_file(shown.join("k")).unwrap();
    symlink(outside.join("keep"), shown.join("k")).unwrap();
    host.objects(&[configmap("c", &[("k", "2")])]);
    host.refresh(&pod, "c").unwrap();
    assert_eq!(fs::read_to_string(outside.join("keep")).unwrap(), "me");
    assert_eq!(fs::read_to_string(shown.join("k")).unwrap(), "2", "and it shows its own again");
    let mut left: Vec<_> = fs::read_dir(&outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["keep", "large"], "nothing was written outside, and nothing is gone");
    for (dir, name) in [(&volume, "v"), (&shown, "c")] {
        rustix::mount::unmount(dir.join("mounted"), rustix::mount::UnmountFlags::empty()).unwrap();
        host.tear_down(&pod, name).unwrap();
    }
    assert_eq!(fs::read_to_string(outside.join("keep")).unwrap(), "me");
    assert_eq!(host.mounts(), Vec::<String>::new());
}

#[test]
fn a_record_that_was_written_half_keeps_no_directory() {
    let host = Host::new();
    let pod = host.pod("[{name: v, emptyDir: {}}]");
    host.set_up(&pod, "v").unwrap();
    let records = host.pod_dir(&pod).join("nodefold/volumes");
    // An agent died between the draft and its rename: of this volume's record, and of one that never came to be.
    for draft in ["v.json.tmp", "w.json.tmp"] {
        fs::write(records.join(draft), "{").unwrap();
    }
    host.volumes.recover().unwrap();
    host.tear_down(&pod, "v").unwrap();
    assert_eq!(files_under(host.layout.data()), Vec::<String>::new());
    assert!(!host.pod_dir(&pod).exists());
}
