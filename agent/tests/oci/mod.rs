//! Images made for a test: layers from lists of entries, and a layout or an archive around them.
#![allow(dead_code, clippy::unwrap_used)]

use flate2::Compression;
use flate2::write::GzEncoder;
use nodefold_agent::images::digest_of;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::Path;
use tar::{Builder, EntryType, Header};

/// An entry of a layer.
pub enum Entry<'a> {
    Dir(&'a str),
    File(&'a str, &'a [u8], u32),
    Owned(&'a str, &'a [u8], u64),
    Link(&'a str, &'a str),
    Symlink(&'a str, &'a str),
}

/// A layer as a tar. Names go in as they are, however wrong.
pub fn tar_of(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for entry in entries {
        let (name, kind, bytes, mode, uid, target): (&str, _, &[u8], _, _, _) = match entry {
            Entry::Dir(name) => (name, EntryType::Directory, &[], 0o755, 0, None),
            Entry::File(name, bytes, mode) => (name, EntryType::Regular, bytes, *mode, 0, None),
            Entry::Owned(name, bytes, uid) => (name, EntryType::Regular, bytes, 0o644, *uid, None),
            Entry::Link(name, to) => (name, EntryType::Link, &[], 0o644, 0, Some(*to)),
            Entry::Symlink(name, to) => (name, EntryType::Symlink, &[], 0o777, 0, Some(*to)),
        };
        let mut header = Header::new_gnu();
        let fields = header.as_gnu_mut().unwrap();
        fields.name[..name.len()].copy_from_slice(name.as_bytes());
        if let Some(target) = target {
            fields.linkname[..target.len()].copy_from_slice(target.as_bytes());
        }
        header.set_entry_type(kind);
        header.set_size(bytes.len() as u64);
        header.set_mode(mode);
        header.set_uid(uid);
        header.set_gid(uid);
        header.set_mtime(1_700_000_000);
        header.set_cksum();
        builder.append(&header, bytes).unwrap();
    }
    builder.into_inner().unwrap()
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

/// Writes an OCI layout: layers as tars, each compressed another way.
pub fn layout(dir: &Path, name: Option<&str>, config: Value, layers: &[Vec<u8>]) {
    let blobs = dir.join("blobs/sha256");
    fs::create_dir_all(&blobs).unwrap();
    let put = |bytes: &[u8]| {
        let digest = digest_of(bytes);
        fs::write(blobs.join(digest.trim_start_matches("sha256:")), bytes).unwrap();
        json!({"digest": digest, "size": bytes.len()})
    };
    let packed: Vec<Value> = layers
        .iter()
        .enumerate()
        .map(|(i, layer)| match i % 3 {
            0 => put(&gzip(layer)),
            1 => put(&zstd(layer)),
            _ => put(layer),
        })
        .collect();
    let diff_ids: Vec<String> = layers.iter().map(|layer| digest_of(layer)).collect();
    let config = json!({"architecture": "amd64", "os": "linux", "config": config, "rootfs": {"type": "layers", "diff_ids": diff_ids}});
    let config = put(config.to_string().as_bytes());
    let manifest = json!({"schemaVersion": 2, "config": config, "layers": packed});
    let mut manifest = put(manifest.to_string().as_bytes());
    manifest["mediaType"] = json!("application/vnd.oci.image.manifest.v1+json");
    if let Some(name) = name {
        manifest["annotations"] = json!({"io.containerd.image.name": name});
    }
    fs::write(dir.join("oci-layout"), "{\"imageLayoutVersion\":\"1.0.0\"}").unwrap();
    fs::write(dir.join("index.json"), json!({"schemaVersion": 2, "manifests": [manifest]}).to_string())
        .unwrap();
}

/// A directory as a tar.
pub fn archive(dir: &Path) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    builder.append_dir_all(".", dir).unwrap();
    builder.into_inner().unwrap()
}

/// What `docker save` writes: no digests but in names, a layer that is a link to another one's.
pub fn docker_archive(name: &str, config: Value, layers: &[Vec<u8>]) -> Vec<u8> {
    let diff_ids: Vec<String> = layers.iter().map(|layer| digest_of(layer)).collect();
    let config = json!({"config": config, "rootfs": {"type": "layers", "diff_ids": diff_ids}}).to_string();
    let mut builder = Builder::new(Vec::new());
    let mut put = |name: &str, bytes: &[u8]| {
        let mut header = Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        builder.append_data(&mut header, name, bytes).unwrap();
    };
    for (i, layer) in layers.iter().enumerate() {
        put(&format!("real/{i}.tar"), layer);
    }
    put("config.json", config.as_bytes());
    let files: Vec<String> = (0..layers.len()).map(|i| format!("{i}/layer.tar")).collect();
    put(
        "manifest.json",
        json!([{"Config": "config.json", "RepoTags": [name], "Layers": files}]).to_string().as_bytes(),
    );
    for i in 0..layers.len() {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Symlink);
        header.set_size(0);
        builder.append_link(&mut header, format!("{i}/layer.tar"), format!("../real/{i}.tar")).unwrap();
    }
    builder.into_inner().unwrap()
}
