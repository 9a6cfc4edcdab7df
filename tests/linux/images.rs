//! Containers and volumes from imported images, as a user has them.

use crate::node::{Node, nodefold};
use crate::oci::{self, Entry};
use serde_json::json;
use std::fs;

/// An image of the host's busybox that says how it wants to be run.
fn busybox_archive(node: &Node) -> String {
    let busybox = fs::read("/bin/busybox").unwrap();
    let mut entries = vec![
        Entry::Dir("bin"),
        Entry::File("bin/busybox", &busybox, 0o755),
        Entry::Dir("etc"),
        Entry::File("etc/passwd", b"root:x:0:0::/root:/bin/sh\nweb:x:33:44::/srv:/bin/sh\n", 0o644),
        Entry::File("etc/group", b"more:x:55:web\n", 0o644),
        Entry::Dir("data"),
        Entry::File("data/file", b"from the image", 0o644),
    ];
    entries.extend(["sh", "id", "cat", "sleep", "echo", "pwd", "env", "touch"].map(|name| {
        Entry::Symlink(
            // Names live as long as the program.
            Box::leak(format!("bin/{name}").into_boxed_str()),
            "busybox",
        )
    }));
    let config = json!({
        "Entrypoint": ["/bin/sh", "-c"], "Cmd": ["echo image says $GREETING; id; pwd; echo $HOME; exec sleep 1000"],
        "Env": ["PATH=/bin", "GREETING=hello"], "User": "web", "WorkingDir": "/work", "StopSignal": "SIGKILL",
    });
    let directory = node.directory().join("image");
    oci::layout(&directory, Some("registry.local/own:1"), config, &[oci::tar_of(&entries)]);
    let file = node.directory().join("image.tar.gz");
    fs::write(&file, oci::gzip(&oci::archive(&directory))).unwrap();
    file.display().to_string()
}

#[test]
fn containers_and_volumes_come_from_an_imported_image_and_hold_it() {
    let mut node = Node::new();
    let archive = busybox_archive(&node);
    let data = node.data();
    let image = |args: &[&str]| {
        let output = nodefold(&[&["image", "--data", &data], args].concat());
        let text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.code(), text)
    };
    assert_eq!(image(&["import", &archive]).0, Some(0));
    node.write(
        "own.yaml",
        "apiVersion: v1
kind: Pod
metadata: {name: own}
spec:
  terminationGracePeriodSeconds: 30
  volumes: [{name: img, image: {reference: 'registry.local/own:1', pullPolicy: Never}}]
  containers:
  - {name: image, image: 'registry.local/own:1', imagePullPolicy: Never}
  - name: own
    image: registry.local/own:1
    imagePullPolicy: Never
    args: ['cat /img/data/file; echo; cat /only/file; echo; touch /img/x || echo read-only; /img/bin/busybox true || echo noexec; exec sleep 1000']
    securityContext: {runAsUser: 0}
    volumeMounts: [{name: img, mountPath: /img}, {name: img, mountPath: /only, subPath: data}]
",
    );
    node.start();
    node.until_running("own", "image");
    node.until_running("own", "own");
    node.until("both have spoken", |node| {
        node.logs("own", "image").lines().count() == 4 && node.logs("own", "own").contains("noexec")
    });
    assert_eq!(
        node.logs("own", "image"),
        "image says hello\nuid=33(web) gid=44 groups=44,55(more)\n/work\n/srv\n"
    );
    let own = node.logs("own", "own");
    assert_eq!(own.matches("from the image\n").count(), 2, "{own}");
    assert!(own.contains("read-only\n"), "{own}");
    let (_, listed) = image(&["ls"]);
    assert!(
        listed.contains("container image.0.0 of pod") && listed.contains("volume img of pod"),
        "{listed}"
    );
    let (code, told) = image(&["rm", "registry.local/own:1"]);
    assert!(code == Some(2) && told.contains("in use by"), "{told}");
    // The next agent finds the volume's image held as before.
    node.kill();
    node.start();
    node.until("the digest is in the status", |node| {
        node.pods().iter().any(|pod| pod.to_string().contains("imageID\":\"sha256:"))
    });
    node.remove("own.yaml");
    node.until("the pod is gone", |node| node.pods().is_empty());
    assert_eq!(image(&["rm", "registry.local/own:1"]).0, Some(0));
    assert_eq!(image(&["ls", "--json"]), (Some(0), String::new()));
    node.end();
}
