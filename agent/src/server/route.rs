//! Which request a path means: the routing table. Paths are taken apart before anything else is looked at.

use super::resource::{self, Resource, Subresource};

/// What a path addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// `/healthz`, `/livez`, `/readyz`.
    Health,
    /// `/version`.
    Version,
    /// `/metrics`.
    Metrics,
    /// `/api`.
    CoreVersions,
    /// `/apis`.
    Groups,
    /// `/apis/GROUP`.
    Group(&'static str),
    /// `/api/v1`, `/apis/GROUP/VERSION`.
    Resources(&'static str, &'static str),
    /// `/openapi/v3`.
    OpenApiRoot,
    /// `/openapi/v3/api/v1`, `/openapi/v3/apis/GROUP/VERSION`.
    OpenApi(&'static str, &'static str),
    /// `/openapi/v2`.
    OpenApiOld,
    /// `/allocatedPods`; with a pod's UID or namespace and name (api-side §4.4).
    Allocated(Vec<String>),
    /// All objects of a resource, of one namespace or of all.
    Collection(&'static Resource, Option<String>),
    /// One object.
    Object(&'static Resource, String, String),
    /// A part of one object.
    Part(&'static Resource, &'static Subresource, String, String),
}

/// Why a path means nothing.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum NoRoute {
    /// It can't be one: bad escapes, `..`, empty names (400).
    Malformed,
    /// There is none (404).
    Unknown,
}

/// Takes a path apart.
pub fn route(path: &str) -> Result<Route, NoRoute> {
    let mut parts = Vec::new();
    for part in path.trim_start_matches('/').trim_end_matches('/').split('/') {
        parts.push(decoded(part)?);
    }
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match parts.as_slice() {
        ["healthz" | "livez" | "readyz", ..] => Ok(Route::Health),
        ["version"] => Ok(Route::Version),
        ["metrics"] => Ok(Route::Metrics),
        ["api"] => Ok(Route::CoreVersions),
        ["apis"] => Ok(Route::Groups),
        ["openapi", "v3"] => Ok(Route::OpenApiRoot),
        ["openapi", "v2"] => Ok(Route::OpenApiOld),
        ["openapi", "v3", "api", "v1"] => Ok(Route::OpenApi("", "v1")),
        ["openapi", "v3", "apis", group, version] => {
            known_group(group, version).map(|(g, v)| Route::OpenApi(g, v))
        }
        ["allocatedPods", rest @ ..] if rest.len() <= 2 => {
            Ok(Route::Allocated(rest.iter().map(ToString::to_string).collect()))
        }
        ["api", "v1"] => Ok(Route::Resources("", "v1")),
        ["api", "v1", rest @ ..] => of_resource("", "v1", rest),
        ["apis", group] => {
            let known = resource::groups().into_iter().find(|(g, _)| g == group);
            known.map(|(g, _)| Route::Group(g)).ok_or(NoRoute::Unknown)
        }
        ["apis", group, version] => known_group(group, version).map(|(g, v)| Route::Resources(g, v)),
        ["apis", group, version, rest @ ..] => of_resource(group, version, rest),
        _ => Err(NoRoute::Unknown),
    }
}

fn known_group(group: &str, version: &str) -> Result<(&'static str, &'static str), NoRoute> {
    resource::groups().into_iter().find(|(g, v)| *g == group && *v == version).ok_or(NoRoute::Unknown)
}

fn of_resource(group: &str, version: &str, rest: &[&str]) -> Result<Route, NoRoute> {
    let known = |plural: &str| resource::of_path(group, version, plural).ok_or(NoRoute::Unknown);
    match rest {
        // Not the parts of a namespace: it has none here but what is in it.
        ["namespaces", namespace, plural, rest @ ..] => {
            let of = known(plural)?;
            if !of.namespaced {
                return Err(NoRoute::Unknown);
            }
            in_place(of, Some(namespace), rest)
        }
        [plural, rest @ ..] => {
            let of = known(plural)?;
            if of.namespaced && !rest.is_empty() {
                return Err(NoRoute::Unknown);
            }
            in_place(of, None, rest)
        }
        [] => Err(NoRoute::Unknown),
    }
}

fn in_place(of: &'static Resource, namespace: Option<&str>, rest: &[&str]) -> Result<Route, NoRoute> {
    let place = namespace.unwrap_or_default().to_owned();
    match rest {
        [] => Ok(Route::Collection(of, namespace.map(str::to_owned))),
        [name] => Ok(Route::Object(of, place, (*name).to_owned())),
        [name, part] => match of.subresource(part) {
            Some(part) => Ok(Route::Part(of, part, place, (*name).to_owned())),
            None => Err(NoRoute::Unknown),
        },
        _ => Err(NoRoute::Unknown),
    }
}

/// One part of a path, its escapes read. No name has a slash, and none is a step to another directory.
fn decoded(part: &str) -> Result<String, NoRoute> {
    let text = unescaped(part).ok_or(NoRoute::Malformed)?;
    let bad = text.is_empty() || text == "." || text == ".." || text.contains(['/', '\\', '\0', '%']);
    if bad { Err(NoRoute::Malformed) } else { Ok(text) }
}

/// Reads `%41`; none if it is no UTF-8 or an escape is not whole.
pub fn unescaped(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
            let (high, low) = (digit(bytes.next())?, digit(bytes.next())?);
            out.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            out.push(byte);
        }
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_table() {
        let pods = resource::of_kind("Pod").unwrap();
        let nodes = resource::of_kind("Node").unwrap();
        let of = |path: &str| route(path).unwrap();
        assert_eq!(of("/api/v1/pods"), Route::Collection(pods, None));
        assert_eq!(of("/api/v1/namespaces/a/pods"), Route::Collection(pods, Some("a".into())));
        assert_eq!(of("/api/v1/namespaces/a/pods/b"), Route::Object(pods, "a".into(), "b".into()));
        assert_eq!(of("/api/v1/nodes/n"), Route::Object(nodes, String::new(), "n".into()));
        let dynamic = pods.subresource("dynamic").unwrap();
        let part = Route::Part(pods, dynamic, "a".into(), "b".into());
        assert_eq!(of("/api/v1/namespaces/a/pods/b/dynamic"), part);
        assert_eq!(
            of("/apis/rbac.authorization.k8s.io/v1"),
            Route::Resources("rbac.authorization.k8s.io", "v1")
        );
        assert_eq!(of("/livez/ping"), Route::Health);
    }

    #[test]
    fn what_is_no_name_is_no_path() {
        for bad in [
            "/api/v1/namespaces/../../etc/passwd",
            "/api/v1/namespaces/a/pods/%2e%2e",
            "/api/v1/namespaces/a/pods/b%2flog",
            "/api/v1/namespaces/a/pods/%zz",
            "/api/v1/namespaces//pods",
            "/api/v1/namespaces/a/pods/%252e%252e",
            "/api/v1/namespaces/a/pods/a%00b",
        ] {
            assert_eq!(route(bad), Err(NoRoute::Malformed), "{bad}");
        }
        for unknown in
            ["/", "/nothing", "/api/v2", "/api/v1/pods/x", "/api/v1/namespaces/a/nodes", "/apis/x/v1"]
        {
            assert!(route(unknown).is_err(), "{unknown}");
        }
    }
}
