//! Images from layouts and archives: what of their layers is shown, what is refused, and that nothing is made outside.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod oci;

use nodefold_agent::images::{Images, Store};
use nodefold_agent::layout::Layout;
use nodefold_core::spec::PullPolicy;
use oci::Entry::{Dir, File, Link, Owned, Symlink};
use serde_json::json;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

struct Place {
    directory: tempfile::TempDir,
    store: Store,
}

impl Place {
    fn new() -> Place {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("layout")).unwrap();
        let store = Store::at(Layout::at(directory.path().join("node")));
        Place { directory, store }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Imports a layout of these layers; its root file system.
    fn import(&self, layers: &[Vec<u8>]) -> Result<PathBuf, String> {
        oci::layout(&self.path("layout"), Some("x:1"), json!({}), layers);
        self.store.import(&self.path("layout"), None).map_err(|fault| fault.message)?;
        Ok(self.store.find("x:1").unwrap().unwrap().root)
    }

    /// What lies in the store but whole images.
    fn litter(&self) -> Vec<String> {
        let names = fs::read_dir(self.path("node/images")).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| !name.starts_with("sha256-") && name != "lock" && name != "names.json").collect()
    }
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn layers_lie_over_each_other_and_hide_what_is_below() {
    let place = Place::new();
    let below = oci::tar_of(&[
        Dir("d"),
        File("d/a", b"1", 0o644),
        File("d/b", b"1", 0o644),
        Dir("opaque"),
        File("opaque/old", b"1", 0o644),
        Dir("opaque/kept"),
        File("opaque/kept/old", b"1", 0o644),
        Dir("whole"),
        File("whole/x", b"", 0o644),
        File("was-file", b"1", 0o644),
        Symlink("usr-lib", "usr/lib"),
        Dir("usr"),
        Dir("usr/lib"),
    ]);
    let above = oci::tar_of(&[
        File("d/a", b"2", 0o4755),
        File("d/.wh.b", b"", 0o644),
        File(".wh.whole", b"", 0o644),
        // What this layer itself has stays, whichever comes first.
        Dir("opaque/kept"),
        File("opaque/kept/new", b"2", 0o644),
        File("opaque/.wh..wh..opq", b"", 0o644),
        File("opaque/new", b"2", 0o644),
        Dir("was-file"),
        Link("d/again", "d/a"),
        Link("link-to-link", "usr-lib"),
        File("usr-lib/so", b"2", 0o644),
        Owned("owned", b"", 1234),
        File("made/for/it", b"", 0o644),
    ]);
    let root = place.import(&[below, above]).unwrap();
    assert_eq!(names(&root.join("d")), ["a", "again"]);
    assert_eq!(fs::read(root.join("d/again")).unwrap(), b"2");
    let file = fs::metadata(root.join("d/a")).unwrap();
    assert_eq!((file.mode() & 0o7777, file.nlink(), file.mtime()), (0o4755, 2, 1_700_000_000));
    assert_eq!(names(&root.join("opaque")), ["kept", "new"]);
    assert_eq!(names(&root.join("opaque/kept")), ["new"]);
    assert!(!root.join("whole").exists() && root.join("was-file").is_dir());
    assert_eq!(
        names(&root.join("usr/lib")),
        ["so"],
        "a link to a directory leads there, as it would in a container"
    );
    assert_eq!(fs::read_link(root.join("link-to-link")).unwrap(), Path::new("usr/lib"));
    assert_eq!(fs::metadata(root.join("owned")).unwrap().uid(), 1234);
    assert_eq!(place.litter(), Vec::<String>::new());
}

#[test]
fn nothing_is_made_outside_whatever_a_layer_says() {
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().display().to_string();
    fs::write(outside.path().join("keep"), "me").unwrap();
    for (name, entries) in [
        ("up", vec![File("../up", b"x", 0o644)]),
        ("inner up", vec![Dir("a"), File("a/../../up", b"x", 0o644)]),
        ("hard link up", vec![Link("l", "../../../etc/passwd")]),
        ("whiteout up", vec![File("a/.wh...", b"", 0o644)]),
    ] {
        let place = Place::new();
        let refused = place.import(&[oci::tar_of(&entries)]).unwrap_err();
        assert!(refused.contains("leads out") || refused.contains("hides nothing"), "{name}: {refused}");
        assert_eq!(place.litter(), Vec::<String>::new(), "{name}");
        assert_eq!(place.store.list().unwrap(), [], "{name}");
    }
    // A link out of the root means a place inside it.
    let place = Place::new();
    let link = [Symlink("out", &target), File("out/planted", b"x", 0o644), File("/absolute", b"x", 0o644)];
    let refused = place.import(&[oci::tar_of(&link)]);
    let absolute = [File("/absolute", b"x", 0o644)];
    let root = place.import(&[oci::tar_of(&absolute)]).unwrap();
    assert_eq!(names(&root), ["absolute"]);
    assert_eq!(names(outside.path()), ["keep"], "{refused:?}");
    let over = [Symlink("keep", &format!("{target}/keep")), File("keep", b"x", 0o644)];
    let root = place.import(&[oci::tar_of(&over)]).unwrap();
    assert_eq!(fs::read(root.join("keep")).unwrap(), b"x", "a link is replaced, not written through");
    assert_eq!(fs::read_to_string(outside.path().join("keep")).unwrap(), "me");
}

#[test]
fn a_blob_that_is_not_what_its_digest_says_is_refused_and_leaves_nothing() {
    let place = Place::new();
    oci::layout(&place.path("layout"), Some("x:1"), json!({}), &[oci::tar_of(&[File("a", b"1", 0o644)])]);
    let blobs = place.path("layout/blobs/sha256");
    for blob in names(&blobs) {
        let path = blobs.join(&blob);
        let whole = fs::read(&path).unwrap();
        let mut bytes = whole.clone();
        // A byte that says nothing: white space of a document, the time in gzip's head.
        match bytes[0] {
            b'{' => bytes.push(b' '),
            _ => bytes[4] ^= 1,
        }
        fs::write(&path, &bytes).unwrap();
        let refused = place.store.import(&place.path("layout"), None).unwrap_err();
        assert!(refused.message.contains("damaged or replaced"), "{refused}");
        assert_eq!((place.litter(), place.store.list().unwrap()), (vec![], vec![]));
        fs::write(&path, whole).unwrap();
    }
    place.store.import(&place.path("layout"), None).unwrap();
}

#[test]
fn archives_of_every_kind_are_the_same_image() {
    let layers = [oci::tar_of(&[File("a", b"1", 0o644)]), oci::tar_of(&[File("b", b"2", 0o644)])];
    let place = Place::new();
    oci::layout(&place.path("layout"), Some("registry.local/x:1"), json!({}), &layers);
    let plain = oci::archive(&place.path("layout"));
    let docker = oci::docker_archive("registry.local/x:1", json!({}), &layers);
    for (name, bytes) in [
        ("plain", plain.clone()),
        ("gzip", oci::gzip(&plain)),
        ("zstd", oci::zstd(&plain)),
        ("docker", docker.clone()),
        ("docker-gzip", oci::gzip(&docker)),
    ] {
        let place = Place::new();
        fs::write(place.path(name), bytes).unwrap();
        let imported = place.store.import(&place.path(name), None).unwrap();
        assert_eq!(imported[0].names, ["registry.local/x:1"], "{name}");
        let image = place.store.find("registry.local/x:1").unwrap().unwrap();
        assert_eq!(names(&image.root), ["a", "b"], "{name}");
        let by_digest = format!("registry.local/x@{}", image.id);
        assert_eq!(place.store.find(&by_digest).unwrap().unwrap().root, image.root);
    }
}

#[test]
fn a_named_path_may_be_a_directory_a_layout_or_an_archive_and_is_read_again_when_it_changes() {
    let place = Place::new();
    let layout = Layout::at(place.path("node"));
    fs::create_dir_all(place.path("plain/bin")).unwrap();
    oci::layout(&place.path("layout"), None, json!({}), &[oci::tar_of(&[File("a", b"1", 0o644)])]);
    fs::write(place.path("archive"), oci::archive(&place.path("layout"))).unwrap();
    let named = ["plain", "layout", "archive"].map(|name| (format!("r.local/{name}"), place.path(name)));
    let images = Images::new(&layout, named.into_iter().collect());
    let get = |name: &str| images.get(&format!("r.local/{name}:9"), PullPolicy::Never).unwrap();
    assert!(get("plain").id.starts_with("dir:"));
    assert_eq!(names(&get("layout").root), ["a"]);
    assert_eq!(get("archive").id, get("layout").id);
    fs::remove_dir_all(place.path("layout/blobs")).unwrap();
    assert_eq!(names(&get("layout").root), ["a"], "it is in the store");
    oci::layout(
        &place.path("layout"),
        None,
        json!({"Cmd": ["b"]}),
        &[oci::tar_of(&[File("bb", b"", 0o644)])],
    );
    // The same length and moment would be the same file.
    let index = place.path("layout/index.json");
    fs::write(&index, fs::read_to_string(&index).unwrap() + " ").unwrap();
    let image = get("layout");
    assert_eq!((names(&image.root), image.command), (vec!["bb".to_owned()], vec!["b".to_owned()]));
}

#[test]
fn v39_a_name_goes_before_its_image_and_an_image_in_use_stays() {
    let place = Place::new();
    let layer = oci::tar_of(&[File("a", b"1", 0o644)]);
    oci::layout(&place.path("layout"), None, json!({}), &[layer]);
    assert!(place.store.import(&place.path("layout"), None).unwrap_err().message.contains("--name"));
    for name in ["one", "two:2"] {
        place.store.import(&place.path("layout"), Some(name)).unwrap();
    }
    let listed = place.store.list().unwrap();
    assert_eq!(listed[0].names, ["docker.io/library/one:latest", "docker.io/library/two:2"]);
    assert!(listed[0].bytes > 0);
    assert!(!place.store.remove("one").unwrap(), "another name is left");
    assert!(place.store.find("one").unwrap().is_none() && place.store.find("two:2").unwrap().is_some());
    let records = place.path("node/pods/11111111-2222-4333-8444-555555555555/nodefold/volumes");
    fs::create_dir_all(&records).unwrap();
    let record =
        json!({"generation": 0, "plugin": null, "ready": true, "image": {"id": listed[0].id, "root": "/"}});
    fs::write(records.join("v.json"), record.to_string()).unwrap();
    let refused = place.store.remove("two:2").unwrap_err().message;
    assert!(refused.contains("in use by volume v of pod"), "{refused}");
    assert!(place.store.remove(&listed[0].id).is_err());
    fs::remove_file(records.join("v.json")).unwrap();
    assert!(place.store.remove("two:2").unwrap());
    assert_eq!((place.store.list().unwrap(), place.litter()), (vec![], vec![]));
    assert!(place.store.remove("two:2").unwrap_err().message.contains("no image"));
}

#[test]
fn what_a_dead_import_left_is_swept() {
    let place = Place::new();
    fs::create_dir_all(place.path("node/images/import-1-0/rootfs")).unwrap();
    place.store.sweep().unwrap();
    assert_eq!(place.litter(), Vec::<String>::new());
}
