//! Logs of containers that mean no good: lines without end, bytes that are no text, more than can be rotated, and what a
//! container puts where its logs are.

use crate::node::{Node, nodefold};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

fn said(node: &Node, pod: &str, container: &str) -> Vec<u8> {
    let output = nodefold(&["logs", "--data", &node.data(), pod, container]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn ended(node: &Node, pod: &str, container: &str) -> bool {
    node.container(pod, container).is_some_and(|c| c["state"]["terminated"].is_object())
}

#[test]
fn what_a_container_says_is_told_byte_by_byte() {
    let mut node = Node::new();
    node.write(
        "says.yaml",
        r#"
apiVersion: v1
kind: Pod
metadata: {name: says}
spec:
  restartPolicy: Never
  containers:
  - name: app
    image: registry.local/busybox:1
    command:
    - sh
    - -c
    - |
      head -c 3000000 /dev/zero | tr '\0' x
      echo
      for i in $(seq 0 255); do printf "\\$(printf %o $i)"; done
      printf '\n\033[31mred\r\n\n16384:'
      head -c 16378 /dev/zero | tr '\0' y
      printf '\nthe end'
"#,
    );
    node.start();
    node.until("it has ended", |node| ended(node, "says", "app"));
    let mut wanted = vec![b'x'; 3_000_000];
    wanted.push(b'\n');
    wanted.extend(0..=255_u8);
    wanted.extend(b"\n\x1b[31mred\r\n\n16384:");
    wanted.extend([b'y'; 16_378]);
    wanted.extend(b"\nthe end\n");
    let told = said(&node, "says", "app");
    assert_eq!(told.len(), wanted.len());
    assert!(told == wanted, "some byte is another");
    node.end();
}

fn files(node: &Node, pod: &str, container: &str) -> BTreeMap<String, u64> {
    let pods = fs::read_dir(node.layout.logs().join("pods")).unwrap();
    let mut of_pod: Vec<PathBuf> = pods.map(|entry| entry.unwrap().path()).collect();
    of_pod.retain(|path| path.to_string_lossy().contains(&format!("_{pod}_")));
    let entries = fs::read_dir(of_pod[0].join(container)).unwrap().flatten();
    entries
        .filter_map(|entry| Some((entry.file_name().into_string().unwrap(), entry.metadata().ok()?.len())))
        .collect()
}

#[test]
fn one_that_writes_faster_than_its_log_is_rotated_starves_nobody() {
    let mut node = Node::new();
    node.agent_args(&["--housekeeping", "100ms", "--log-max-size", "20Ki", "--log-max-files", "3"]);
    node.write(
        "both.yaml",
        r#"
apiVersion: v1
kind: Pod
metadata: {name: both}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: loud
    image: registry.local/busybox:1
    command: [sh, -c, "yes 'a line of text' | head -n 1500000; touch /tmp/done; sleep 1000"]
  - name: quiet
    image: registry.local/busybox:1
    command: [sh, -c, "i=0; while true; do echo $i; i=$((i+1)); sleep 0.1; done"]
"#,
    );
    node.start();
    node.until_running("both", "loud");
    let lines = |node: &Node| {
        let told = String::from_utf8(said(node, "both", "quiet")).unwrap();
        let lines: Vec<u32> = told.lines().map(|line| line.parse().unwrap()).collect();
        assert!(
            lines.windows(2).all(|pair| pair[1] == pair[0] + 1),
            "a line of the quiet one is lost: {told}"
        );
        lines.last().copied().unwrap_or(0)
    };
    let mut most = 0;
    let mut heard = 0;
    while !node.exec("both", "loud", &["test", "-e", "/tmp/done"]).status.success() {
        most = most.max(files(&node, "both", "loud").len());
        let now = lines(&node);
        heard += u32::from(now > 0);
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    assert!(heard > 0, "the quiet one is heard while the loud one writes");
    // A file that is being compressed is there twice, or half.
    assert!((2..=5).contains(&most), "{most} files");
    node.until("it is rotated once more", |node| {
        let files = files(node, "both", "loud");
        files.len() <= 3 && files.get("0.0.log").is_some_and(|size| *size <= 20 << 10)
    });
    let before = lines(&node);
    node.until("the quiet one goes on", |node| lines(node) > before + 3);
    let kept = said(&node, "both", "loud");
    let kept = String::from_utf8(kept).unwrap();
    assert!(kept.lines().count() > 100 && kept.lines().all(|line| line == "a line of text"));
    node.remove("both.yaml");
    node.end();
}

#[test]
fn what_a_container_puts_where_logs_are_is_neither_followed_nor_waited_for() {
    let mut node = Node::new();
    node.agent_args(&["--housekeeping", "100ms", "--log-max-size", "1Ki", "--log-max-files", "3"]);
    let outside = node.directory().join("outside");
    let notes = node.directory().join("notes");
    fs::create_dir(&outside).unwrap();
    fs::create_dir(&notes).unwrap();
    let victim = outside.join("victim");
    fs::write(&victim, "2026-01-01T00:00:00.5Z stdout F hidden\n").unwrap();
    let logs = node.layout.logs();
    fs::create_dir_all(&logs).unwrap();
    // The first life of each plants something where the log of its next one will be, and where its own is.
    let container = |name: &str, plant: &str| {
        format!(
            r#"
  - name: {name}
    image: registry.local/busybox:1
    terminationMessagePolicy: FallbackToLogsOnError
    volumeMounts: [{{name: logs, mountPath: /logs}}, {{name: notes, mountPath: /notes}}]
    command:
    - sh
    - -c
    - |
      cd /logs/pods/*_plants_*/{name}
      if ! test -e /notes/{name}; then
        touch /notes/{name}
        echo first of {name}
        {plant}
        exit 1
      fi
      mkfifo 0.1.log.20200101-000000
      mkdir -p 0.1.log.20200101-000001/inner
      ln -s {victim} 0.1.log.20200101-000002
      ln -s {victim} 0.1.log.20200101-000002.gz
      while true; do echo {name} goes on and on and on and on and on; sleep 0.02; done"#,
            victim = victim.display(),
        )
    };
    let link = format!("ln -s {} 0.1.log; rm 0.0.log; ln -s {} 0.0.log", victim.display(), victim.display());
    let containers = [
        container("link", &link),
        container("fifo", "mkfifo 0.1.log"),
        container("dir", &format!("mkdir -p 0.1.log/inner; ln -s {} ../next", outside.display())),
    ];
    node.write(
        "plants.yaml",
        &format!(
            r#"
apiVersion: v1
kind: Pod
metadata: {{name: plants}}
spec:
  terminationGracePeriodSeconds: 1
  volumes: [{{name: logs, hostPath: {{path: {logs}}}}}, {{name: notes, hostPath: {{path: {notes}}}}}]
  containers:{containers}
  - {{name: other, image: 'registry.local/busybox:1', command: [sh, -c, "echo next; sleep 1000"]}}
"#,
            logs = logs.display(),
            notes = notes.display(),
            containers = containers.concat(),
        ),
    );
    node.start();
    for name in ["link", "fifo", "dir"] {
        node.until(&format!("{name} is in its second life"), |node| {
            node.container("plants", name)
                .is_some_and(|c| c["restartCount"] == 1 && c["state"]["running"].is_object())
        });
        let status = node.container("plants", name).unwrap();
        let words = status["lastState"]["terminated"]["message"].as_str().unwrap_or_default().to_owned();
        let wanted = if name == "link" { String::new() } else { format!("first of {name}\n") };
        assert_eq!(words, wanted, "last words are of a log, and of no link: {status}");
        node.until(&format!("the log of {name} is rotated in spite of what lies there"), |node| {
            let files = files(node, "plants", name);
            files.keys().filter(|file| file.starts_with("0.1.log.")).count() >= 1
                && !files.keys().any(|file| file.contains(".2020"))
        });
        let told = String::from_utf8(said(&node, "plants", name)).unwrap();
        assert!(told.contains("goes on and on") && !told.contains("hidden"), "{told}");
    }
    assert_eq!(said(&node, "plants", "other"), b"next\n");
    // A log that is no file any more is not read, and the node does not hang on it.
    let plant = "cd /logs/pods/*_plants_*/other && rm 0.0.log && mkfifo 0.0.log";
    assert!(node.exec("plants", "link", &["sh", "-c", plant]).status.success());
    let output = Command::new("timeout")
        .args(["10", env!("CARGO_BIN_EXE_nodefold"), "logs", "--data", &node.data(), "plants", "other"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    node.end_with(|| {
        assert_eq!(fs::read_to_string(&victim).unwrap(), "2026-01-01T00:00:00.5Z stdout F hidden\n");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    });
}
