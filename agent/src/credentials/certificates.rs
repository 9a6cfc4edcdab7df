//! Pods' own certificates, from files that somebody puts there: the node has no signer. The file for a pod of a signer is
//! `certificates/<signer>/<namespace>/<pod>.pem` in the node's directory: its key, then its chain.

use crate::beneath;
use crate::fault::{Attempt, Fault};
use rustix::fs::OFlags;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Longer than any key with its chain.
const LONGEST: u64 = 1 << 20;

/// The certificates of a node.
pub struct Certificates {
    directory: PathBuf,
}

/// A key with its chain, in PEM.
#[derive(Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The private key.
    pub key: String,
    /// The certificates, the pod's own first.
    pub chain: String,
}

impl Certificates {
    /// Those below a node's directory.
    pub fn at(directory: impl Into<PathBuf>) -> Certificates {
        Certificates { directory: directory.into() }
    }

    /// A pod's certificate by a signer (`example.com/name`).
    pub fn get(&self, signer: &str, namespace: &str, pod: &str) -> Result<Certificate, Fault> {
        let path = Path::new("certificates").join(signer).join(namespace).join(format!("{pod}.pem"));
        let missing = |why: &str| {
            Fault::transient(format!(
                "this node signs no certificates, and {} {why}",
                self.directory.join(&path).display()
            ))
        };
        let root = beneath::open_root(&self.directory)?;
        let file = beneath::open(&root, &path, OFlags::RDONLY | OFlags::NONBLOCK)
            .map_err(|_| missing("can't be read"))?;
        let mut text = String::new();
        File::from(file)
            .take(LONGEST)
            .read_to_string(&mut text)
            .attempt(|| format!("read {}", path.display()))?;
        read(&text).ok_or_else(|| missing("has no private key followed by certificates in PEM"))
    }
}

fn read(text: &str) -> Option<Certificate> {
    let (mut key, mut chain) = (None, String::new());
    let mut rest = text;
    while let Some(begin) = rest.find("-----BEGIN ") {
        rest = &rest[begin..];
        let label = rest["-----BEGIN ".len()..].split("-----").next()?;
        let end_line = format!("-----END {label}-----");
        let end = rest.find(&end_line)? + end_line.len();
        let block = format!("{}\n", &rest[..end]);
        match label {
            "CERTIFICATE" => chain.push_str(&block),
            label if label.ends_with("PRIVATE KEY") && key.is_none() => key = Some(block),
            _ => return None,
        }
        rest = &rest[end..];
    }
    Some(Certificate { key: key?, chain: Some(chain).filter(|chain| !chain.is_empty())? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_and_its_chain_are_told_apart() {
        let block =
            |label: &str, text: &str| format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n");
        let (key, own, above) =
            (block("PRIVATE KEY", "k"), block("CERTIFICATE", "a"), block("CERTIFICATE", "b"));
        let found = read(&format!("a comment\n{key}\n{own}{above}")).expect("both");
        assert_eq!(found, Certificate { key: key.clone(), chain: format!("{own}{above}") });
        assert_eq!(read(&own), None, "no key");
        assert_eq!(read(&key), None, "no certificate");
        assert_eq!(read(&format!("{key}{}", block("X509 CRL", "c"))), None);
        assert_eq!(read(key.trim_end_matches("PRIVATE KEY-----\n")), None, "a torn block");
    }
}
