//! Discovery: which groups, versions and resources there are; aggregated for whoever asks for that, else piece by piece.

use super::resource::{RESOURCES, Resource, groups};
use serde_json::{Value, json};

/// The media type of aggregated discovery.
pub const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// What is switched off is not there.
pub struct Discovery {
    /// Parts of pods that are not served.
    pub without: Vec<String>,
}

impl Discovery {
    /// `/api` and `/apis`, aggregated.
    pub fn aggregated(&self, core: bool) -> Value {
        let of = |group: &str, version: &str| {
            let resources: Vec<Value> = in_version(group, version).map(|r| self.described(r)).collect();
            let name = if group.is_empty() { json!({}) } else { json!({"name": group}) };
            json!({"metadata": name, "versions": [
                {"version": version, "resources": resources, "freshness": "Current"}]})
        };
        let items: Vec<Value> = if core {
            vec![of("", "v1")]
        } else {
            groups().into_iter().map(|(group, version)| of(group, version)).collect()
        };
        json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {}, "items": items})
    }

    fn described(&self, resource: &Resource) -> Value {
        let kind = |kind: &str| json!({"group": resource.group, "version": resource.version, "kind": kind});
        let mut described = json!({
            "resource": resource.plural,
            "responseKind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
            "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
            "singularResource": resource.singular,
            "verbs": resource.verbs,
        });
        if !resource.short.is_empty() {
            described["shortNames"] = json!(resource.short);
        }
        if !resource.categories.is_empty() {
            described["categories"] = json!(resource.categories);
        }
        let parts: Vec<Value> = self
            .parts(resource)
            .map(|part| json!({"subresource": part.name, "responseKind": kind(part.kind), "verbs": part.verbs}))
            .collect();
        if !parts.is_empty() {
            described["subresources"] = Value::Array(parts);
        }
        described
    }

    fn parts<'a>(
        &'a self,
        resource: &'a Resource,
    ) -> impl Iterator<Item = &'static super::resource::Subresource> + 'a {
        let parts = resource.subresources.iter();
        parts.filter(|part| !self.without.iter().any(|off| off == part.name))
    }

    /// `/api`.
    pub fn core_versions(&self) -> Value {
        json!({"kind": "APIVersions", "versions": ["v1"],
            "serverAddressByClientCIDRs": []})
    }

    /// `/apis`.
    pub fn group_list(&self) -> Value {
        let groups: Vec<Value> = groups().into_iter().map(|(group, _)| group_of(group)).collect();
        json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
    }

    /// `/apis/GROUP`.
    pub fn group(&self, group: &str) -> Value {
        let mut described = group_of(group);
        described["kind"] = json!("APIGroup");
        described["apiVersion"] = json!("v1");
        described
    }

    /// `/api/v1`, `/apis/GROUP/VERSION`.
    pub fn resources(&self, group: &str, version: &str) -> Value {
        let mut resources = Vec::new();
        for resource in in_version(group, version) {
            let mut described = json!({"name": resource.plural, "singularName": resource.singular,
                "namespaced": resource.namespaced, "kind": resource.kind, "verbs": resource.verbs});
            if !resource.short.is_empty() {
                described["shortNames"] = json!(resource.short);
            }
            if !resource.categories.is_empty() {
                described["categories"] = json!(resource.categories);
            }
            resources.push(described);
            for part in self.parts(resource) {
                resources
                    .push(json!({"name": format!("{}/{}", resource.plural, part.name), "singularName": "",
                    "namespaced": resource.namespaced, "kind": part.kind, "verbs": part.verbs}));
            }
        }
        let of = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": of, "resources": resources})
    }
}

fn in_version(group: &str, version: &str) -> impl Iterator<Item = &'static Resource> {
    RESOURCES.iter().filter(move |r| r.group == group && r.version == version)
}

fn group_of(group: &str) -> Value {
    let versions: Vec<Value> = groups()
        .into_iter()
        .filter(|(g, _)| *g == group)
        .map(|(group, version)| json!({"groupVersion": format!("{group}/{version}"), "version": version}))
        .collect();
    json!({"name": group, "versions": versions, "preferredVersion": versions.first()})
}
