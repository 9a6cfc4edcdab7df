//! What an image's documents say: index, manifest and configuration of OCI, and the manifest of `docker save`. The few fields
//! that a node needs; each document is checked against the digest that named it.

use super::source::Source;
use crate::fault::Fault;
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::collections::BTreeMap;

/// Indexes in indexes, deeper than anybody has them.
const DEEPEST: usize = 4;

/// An image of a source.
#[derive(Debug)]
pub struct Found {
    /// Its manifest's digest; of `docker save` without OCI's documents, its configuration's.
    pub id: String,
    /// The names that the source gives it.
    pub names: Vec<String>,
    /// Its configuration.
    pub config: Config,
    /// Its layers, lowest first.
    pub layers: Vec<Layer>,
}

/// A layer.
#[derive(Debug)]
pub struct Layer {
    /// Its file in the source.
    pub file: String,
    /// That file's digest, where a manifest says it.
    pub digest: Option<String>,
    /// The digest of what it unpacks to.
    pub diff_id: String,
}

/// An image's configuration.
#[derive(Debug, Default, Deserialize)]
pub struct Config {
    /// How to run it.
    #[serde(default)]
    pub config: Option<RunConfig>,
    rootfs: RootFs,
}

#[derive(Debug, Default, Deserialize)]
struct RootFs {
    #[serde(default)]
    diff_ids: Vec<String>,
}

/// How to run an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct RunConfig {
    /// As whom: a user or uid, and perhaps a group.
    pub user: Option<String>,
    /// `NAME=value`.
    pub env: Option<Vec<String>>,
    /// What runs.
    pub entrypoint: Option<Vec<String>>,
    /// Its arguments, or what runs where there is no entry point.
    pub cmd: Option<Vec<String>>,
    /// Where it begins.
    pub working_dir: Option<String>,
    /// How it wants to be asked to end.
    pub stop_signal: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Index {
    #[serde(default)]
    manifests: Vec<Descriptor>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    #[serde(default)]
    media_type: String,
    digest: String,
    #[serde(default)]
    platform: Option<Platform>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
struct Platform {
    os: String,
    architecture: String,
}

#[derive(Debug, Deserialize)]
struct Manifest {
    config: Descriptor,
    #[serde(default)]
    layers: Vec<Descriptor>,
}

/// An entry of `manifest.json`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Saved {
    config: String,
    #[serde(default)]
    repo_tags: Option<Vec<String>>,
    layers: Vec<String>,
}

/// The images of a source.
pub fn images(source: &Source) -> Result<Vec<Found>, Fault> {
    if let Some(index) = document::<Index>(source, "index.json")? {
        let mut found: Vec<Found> = Vec::new();
        for descriptor in of_this_machine(index.manifests) {
            oci(source, descriptor, 0, &mut found)?;
        }
        // One image under two names is listed twice.
        found.sort_by(|a, b| a.id.cmp(&b.id));
        found.dedup_by(|again, first| {
            let same = again.id == first.id;
            if same {
                first.names.append(&mut again.names);
            }
            same
        });
        return Ok(found);
    }
    if let Some(saved) = document::<Vec<Saved>>(source, "manifest.json")? {
        return saved.into_iter().map(|saved| docker(source, saved)).collect();
    }
    Err(Fault::refused(
        "neither index.json (an OCI layout or archive) nor manifest.json (docker save) is in it",
    ))
}

/// Those for this machine, where platforms are told; attestations and the like are for none.
fn of_this_machine(descriptors: Vec<Descriptor>) -> Vec<Descriptor> {
    let here = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let fits = |descriptor: &Descriptor| {
        descriptor
            .platform
            .as_ref()
            .is_none_or(|platform| platform.os == "linux" && platform.architecture == here)
    };
    descriptors.into_iter().filter(fits).collect()
}

fn oci(source: &Source, of: Descriptor, depth: usize, found: &mut Vec<Found>) -> Result<(), Fault> {
    // containerd's own annotation has the whole name; OCI's has one only if it has a repository in it.
    let own = of.annotations.get("io.containerd.image.name");
    let named =
        of.annotations.get("org.opencontainers.image.ref.name").filter(|name| name.contains(['/', ':']));
    let names: Vec<String> = own.or(named).cloned().into_iter().collect();
    if of.media_type.contains("index") || of.media_type.contains("manifest.list") {
        if depth >= DEEPEST {
            return Err(Fault::refused("its indexes are nested too deep"));
        }
        let index: Index = blob(source, &of.digest)?;
        let first = found.len();
        for inner in of_this_machine(index.manifests) {
            oci(source, inner, depth + 1, found)?;
        }
        found[first..].iter_mut().for_each(|image| image.names.extend(names.iter().cloned()));
        return Ok(());
    }
    let manifest: Manifest = blob(source, &of.digest)?;
    let config: Config = blob(source, &manifest.config.digest)?;
    let files = manifest.layers.iter().map(|layer| Ok((file_of(&layer.digest)?, Some(layer.digest.clone()))));
    let layers = layers(files.collect::<Result<_, Fault>>()?, &config)?;
    found.push(Found { id: of.digest, names, config, layers });
    Ok(())
}

fn docker(source: &Source, saved: Saved) -> Result<Found, Fault> {
    let text = source.document(&saved.config)?;
    let text = text.ok_or_else(|| Fault::refused(format!("{} is not in the archive", saved.config)))?;
    let config: Config = parse(&text, &saved.config)?;
    let layers = layers(saved.layers.into_iter().map(|file| (file, None)).collect(), &config)?;
    let names = saved.repo_tags.unwrap_or_default();
    Ok(Found { id: digest_of(&text), names, config, layers })
}

fn layers(files: Vec<(String, Option<String>)>, config: &Config) -> Result<Vec<Layer>, Fault> {
    let diff_ids = &config.rootfs.diff_ids;
    if files.len() != diff_ids.len() {
        return Err(Fault::refused(format!(
            "its manifest has {} layers and its configuration {}",
            files.len(),
            diff_ids.len()
        )));
    }
    let pairs = files.into_iter().zip(diff_ids);
    Ok(pairs.map(|((file, digest), diff_id)| Layer { file, digest, diff_id: diff_id.clone() }).collect())
}

fn document<T: DeserializeOwned>(source: &Source, name: &str) -> Result<Option<T>, Fault> {
    source.document(name)?.map(|text| parse(&text, name)).transpose()
}

/// A document by its digest, which it must have.
fn blob<T: DeserializeOwned>(source: &Source, digest: &str) -> Result<T, Fault> {
    let name = file_of(digest)?;
    let text = source.document(&name)?.ok_or_else(|| Fault::refused(format!("{name} is not there")))?;
    let is = digest_of(&text);
    if is != digest {
        return Err(Fault::refused(format!("{name} has digest {is}: it was damaged or replaced")));
    }
    parse(&text, &name)
}

fn parse<T: DeserializeOwned>(text: &[u8], name: &str) -> Result<T, Fault> {
    serde_json::from_slice(text).map_err(|error| Fault::refused(format!("{name}: {error}")))
}

/// A blob's file in a layout.
fn file_of(digest: &str) -> Result<String, Fault> {
    let hex = hex_of(digest).ok_or_else(|| Fault::refused(format!("{digest:?} is no sha256 digest")))?;
    Ok(format!("blobs/sha256/{hex}"))
}

/// The 64 digits of a `sha256:` digest.
pub fn hex_of(digest: &str) -> Option<&str> {
    let hex = digest.strip_prefix("sha256:")?;
    let is_hex = hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    is_hex.then_some(hex)
}

/// Bytes' digest.
pub fn digest_of(bytes: &[u8]) -> String {
    let mut context = Context::new(&SHA256);
    context.update(bytes);
    finish(context)
}

/// A digest that was counted up, as text.
pub fn finish(context: Context) -> String {
    let digest = context.finish();
    let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}
