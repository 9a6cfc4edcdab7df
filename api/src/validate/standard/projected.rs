//! S24–S27, S29, S30: what a projected volume gathers, and the downward API's files.

use super::paths::{local_and_free, mode};
use super::volumes::key_to_path;
use super::{env, is_set};
use crate::validate::Errors;
use crate::validate::names::{is_dns_subdomain, is_qualified_name};
use crate::view::{at, list, name, text};
use serde_json::Value;
use std::collections::BTreeSet;

const DUPLICATE: &str = "conflicting duplicate paths";

pub(super) fn volume(of: &Value, path: &str, errors: &mut Errors) {
    mode(at(of, "defaultMode"), &format!("{path}.defaultMode"), errors);
    // S25: paths of all sources, `path` itself being where a clash is told.
    let mut taken = BTreeSet::new();
    for (k, source) in list(of, "sources").iter().enumerate() {
        let at_source = format!("{path}.sources[{k}]");
        for kind in ["secret", "configMap"] {
            if is_set(source, kind) {
                keys(at(source, kind), path, &format!("{at_source}.{kind}"), &mut taken, errors);
            }
        }
        for file in list(at(source, "downwardAPI"), "items") {
            downward_file(file, &format!("{at_source}.downwardAPI"), errors);
            take(&mut taken, text(file, "path"), text(file, "path"), path, errors);
        }
        if is_set(source, "serviceAccountToken") {
            token(at(source, "serviceAccountToken"), path, &at_source, errors);
        }
        if is_set(source, "clusterTrustBundle") {
            let bundle = at(source, "clusterTrustBundle");
            trust_bundle(bundle, &format!("{at_source}.clusterTrustBundle"), errors);
            take(&mut taken, text(bundle, "path"), text(bundle, "path"), path, errors);
        }
        if is_set(source, "podCertificate") {
            let certificate = at(source, "podCertificate");
            pod_certificate(certificate, &format!("{at_source}.podCertificate"), errors);
            for field in CERTIFICATE_PATHS {
                take(&mut taken, text(certificate, field), text(certificate, field), path, errors);
            }
        }
        let kinds = ["secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle"];
        let kinds = kinds.into_iter().chain(["podCertificate"]).filter(|kind| is_set(source, kind)).count();
        if kinds > 1 {
            errors.of("S24").forbidden(at_source, "may not specify more than 1 volume type per source");
        }
    }
}

/// A path is taken once; a clash is told with `who`'s name.
fn take<'p>(taken: &mut BTreeSet<&'p str>, target: &'p str, who: &str, path: &str, errors: &mut Errors) {
    if !target.is_empty() && !taken.insert(target) {
        errors.of("S25").invalid(path, &Value::from(who), DUPLICATE);
    }
}

fn keys<'p>(of: &'p Value, path: &str, at_kind: &str, taken: &mut BTreeSet<&'p str>, errors: &mut Errors) {
    if name(of).is_empty() {
        errors.of("S21").required(format!("{at_kind}.name"), "");
    }
    for (k, item) in list(of, "items").iter().enumerate() {
        key_to_path(item, &format!("{at_kind}.items[{k}]"), errors);
        take(taken, text(item, "path"), name(of), path, errors);
    }
}

/// S26, S27. Kubernetes tells of the token's path at the volume's.
fn token(of: &Value, path: &str, at_source: &str, errors: &mut Errors) {
    let seconds = at(of, "expirationSeconds");
    let field = || format!("{at_source}.serviceAccountToken.expirationSeconds");
    if seconds.as_i64().is_some_and(|s| s < 600) {
        errors.of("S26").invalid(field(), seconds, "may not specify a duration less than 10 minutes");
    }
    if seconds.as_i64().is_some_and(|s| s > 1 << 32) {
        errors.of("S26").invalid(field(), seconds, "may not specify a duration larger than 2^32 seconds");
    }
    errors.judge("S27");
    match text(of, "path") {
        "" => errors.required(format!("{path}.path"), ""),
        target => local_and_free(target, &format!("{path}.path"), errors),
    }
}

/// S29.
fn trust_bundle(of: &Value, path: &str, errors: &mut Errors) {
    errors.judge("S29");
    match (at(of, "name").as_str(), at(of, "signerName").as_str()) {
        (Some(_), Some(_)) => {
            errors.of("S29").invalid(path, of, "only one of name and signerName may be used")
        }
        (Some(bundle), None) => {
            let field = format!("{path}.name");
            if bundle.is_empty() {
                errors.of("S29").required(field.as_str(), "must be a valid object name");
            } else if !bundle.split(':').all(is_dns_subdomain) {
                errors.of("S29").invalid(field, &Value::from(bundle), "not a valid clustertrustbundlename");
            }
            if is_set(of, "labelSelector") {
                let detail = "labelSelector must be unset if name is specified";
                errors.of("S29").invalid(format!("{path}.labelSelector"), at(of, "labelSelector"), detail);
            }
        }
        (None, Some(signer)) => signer_name(signer, path, errors),
        (None, None) => errors.of("S29").required(path, "either name or signerName must be specified"),
    }
    if text(of, "path").is_empty() {
        errors.of("S29").required(format!("{path}.path"), "");
    }
    local_and_free(text(of, "path"), &format!("{path}.path"), errors);
}

fn signer_name(signer: &str, path: &str, errors: &mut Errors) {
    let field = format!("{path}.signerName");
    if signer.is_empty() {
        errors.required(field, "must be a valid signer name");
    } else if !signer.contains('/') || !is_qualified_name(signer) {
        let detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        errors.invalid(field, &Value::from(signer), detail);
    }
}

const KEY_TYPES: [&str; 6] = ["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];
const CERTIFICATE_PATHS: [&str; 3] = ["credentialBundlePath", "keyPath", "certificateChainPath"];
/// A certificate lives an hour at least, and 91 days at most.
const CERTIFICATE_SECONDS: std::ops::RangeInclusive<i64> = 3600..=91 * 86_400;

/// S30.
fn pod_certificate(of: &Value, path: &str, errors: &mut Errors) {
    errors.judge("S30");
    signer_name(text(of, "signerName"), path, errors);
    super::one_of(at(of, "keyType"), format!("{path}.keyType"), &KEY_TYPES, errors);
    let seconds = at(of, "maxExpirationSeconds");
    if seconds.as_i64().is_some_and(|s| s < *CERTIFICATE_SECONDS.start()) {
        let detail = "if provided, maxExpirationSeconds must be >= 3600";
        errors.of("S30").invalid(format!("{path}.maxExpirationSeconds"), seconds, detail);
    }
    if seconds.as_i64().is_some_and(|s| s > *CERTIFICATE_SECONDS.end()) {
        let detail = "if provided, maxExpirationSeconds must be <= 7862400";
        errors.of("S30").invalid(format!("{path}.maxExpirationSeconds"), seconds, detail);
    }
    if CERTIFICATE_PATHS.into_iter().all(|field| text(of, field).is_empty()) {
        let detail = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath";
        errors.of("S30").required(path, detail);
    }
    for field in CERTIFICATE_PATHS {
        local_and_free(text(of, field), &format!("{path}.{field}"), errors);
    }
}

const FILE_FIELDS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

/// A file of the downward API: of a volume by that name, or of a projected source.
pub(super) fn downward_file(file: &Value, path: &str, errors: &mut Errors) {
    errors.judge("S23");
    if text(file, "path").is_empty() {
        errors.required(format!("{path}.path"), "");
    }
    local_and_free(text(file, "path"), &format!("{path}.path"), errors);
    match (is_set(file, "fieldRef"), is_set(file, "resourceFieldRef")) {
        (true, both) => {
            env::field_ref(at(file, "fieldRef"), &FILE_FIELDS, &format!("{path}.fieldRef"), errors);
            if both {
                let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
                errors.invalid(path, &Value::from("resource"), detail);
            }
        }
        (false, true) => {
            let reference = at(file, "resourceFieldRef");
            env::resource_field_ref(reference, true, &format!("{path}.resourceFieldRef"), errors);
        }
        (false, false) => errors.required(path, "one of fieldRef and resourceFieldRef is required"),
    }
    mode(at(file, "mode"), &format!("{path}.mode"), errors);
}
