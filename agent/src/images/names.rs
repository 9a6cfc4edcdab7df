//! Names of images: what of one is its repository, and its full form, in which two that mean the same are the same.

/// A reference without its tag and digest.
pub fn repository(reference: &str) -> &str {
    let without_digest = reference.split_once('@').map_or(reference, |(before, _)| before);
    match without_digest.rsplit_once(':') {
        Some((before, tag)) if !tag.contains('/') => before,
        Some(_) | None => without_digest,
    }
}

/// Lower-case repository, no blanks: enough to tell a typing error from a reference.
pub fn is_valid(reference: &str) -> bool {
    let repository = repository(reference);
    !repository.is_empty()
        && !repository.ends_with('/')
        && repository.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "./-_:".contains(c))
}

/// The digest that a reference names.
pub fn digest(reference: &str) -> Option<&str> {
    reference.split_once('@').map(|(_, digest)| digest)
}

/// A reference in full, without its digest: with a registry (docker.io), the `library` that it leaves out, and a tag.
pub fn canonical(reference: &str) -> String {
    let tagged = reference.split_once('@').map_or(reference, |(before, _)| before);
    let repository = repository(reference);
    let tag = tagged[repository.len()..].trim_start_matches(':');
    let tag = if tag.is_empty() { "latest" } else { tag };
    let has_registry = repository
        .split_once('/')
        .is_some_and(|(first, _)| first.contains(['.', ':']) || first == "localhost");
    match (has_registry, repository.contains('/')) {
        (true, _) => format!("{repository}:{tag}"),
        (false, true) => format!("docker.io/{repository}:{tag}"),
        (false, false) => format!("docker.io/library/{repository}:{tag}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_what_is_left_without_tag_and_digest() {
        assert_eq!(repository("registry.local/busybox:1"), "registry.local/busybox");
        assert_eq!(repository("registry:5000/a"), "registry:5000/a");
        assert_eq!(repository("a@sha256:00"), "a");
    }

    #[test]
    fn what_a_name_leaves_out_is_what_docker_means() {
        for (short, full) in [
            ("busybox", "docker.io/library/busybox:latest"),
            ("a/b:1", "docker.io/a/b:1"),
            ("localhost/b", "localhost/b:latest"),
            ("r:5000/b:2@sha256:00", "r:5000/b:2"),
        ] {
            assert_eq!(canonical(short), full);
        }
    }
}
