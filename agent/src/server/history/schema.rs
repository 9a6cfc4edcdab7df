//! The schemas of `history.nodefold.io/v1alpha1`, for `kubectl explain`: what `object.rs` writes, field by field.

use serde_json::{Map, Value, json};

/// A field: its name, its type, what it says.
type Field = (&'static str, &'static str, &'static str);

const OF_ALL: &[Field] = &[
    ("pod", "string", "The pod's name."),
    ("podUID", "string", "The pod's UID: a name may come again."),
    ("askedBy", "string", "The user whose request asked for it."),
    ("askedAt", "time", "When that was."),
];

/// A kind: its name, what it is, what was asked for, what became of it.
type Shape = (&'static str, &'static str, &'static [Field], &'static [Field]);

const SHAPES: [Shape; 3] = [
    (
        "Allocation",
        "What the node has allocated to a pod: the part of its spec that is in force. Selectors of fields: at=TIME, ago=SPAN, asOf=TIME and revision=VERSION tell what was in force then.",
        &[
            ("generation", "integer", "Which generation of the pod's spec is allocated."),
            ("containers", "objects", "The containers, each with its image, resources and mounts."),
            ("volumes", "objects", "The volumes, each with what it is made from."),
        ],
        &[
            ("allocatedAt", "time", "When it was allocated."),
            ("replacedAt", "time", "When the next one took its place, or the pod was gone."),
            ("revision", "integer", "The number of the fact in the node's journal that decided it."),
        ],
    ),
    (
        "ContainerRun",
        "One life of a container: from one start to its end. Selectors of fields: at=TIME and ago=SPAN tell what ran then, asOf=TIME and revision=VERSION what was known then.",
        &[
            ("container", "string", "The container's name."),
            ("incarnation", "integer", "How often that name had been added to the pod before."),
            ("attempt", "integer", "How often this one had been started before."),
            ("image", "string", "Its image."),
        ],
        &[
            ("startedAt", "time", "When it started."),
            ("finishedAt", "time", "When it ended; absent while it runs."),
            ("exitCode", "integer", "Its exit code."),
            ("reason", "string", "Why it ended, in a word."),
            ("signal", "integer", "The signal that ended it."),
        ],
    ),
    (
        "VolumeRun",
        "One life of a volume on the node: from its mount until nothing of it is left. Selectors of fields are those of ContainerRun.",
        &[
            ("volume", "string", "The volume's name."),
            ("generation", "integer", "How often that name had been added to the pod before."),
            ("source", "string", "What it is made from, as a pod's spec names it."),
        ],
        &[
            ("mountedAt", "time", "When it was there."),
            ("unmountedAt", "time", "When nothing of it was left; absent until then."),
        ],
    ),
];

/// All of them, by their full names.
pub fn schemas() -> Map<String, Value> {
    let name = |kind: &str| format!("io.k8s.api.history.v1alpha1.{kind}");
    let mut schemas = Map::new();
    for (kind, description, spec, status) in SHAPES {
        let part =
            |word: &str| json!({"$ref": format!("#/components/schemas/{}", name(&format!("{kind}{word}")))});
        let text = |description: &str| json!({"type": "string", "description": description});
        let whole = json!({"type": "object", "description": description, "properties": {
            "apiVersion": text("The version of this object's schema."),
            "kind": text("The kind of this object."),
            "metadata": {"type": "object", "description": "Standard object's metadata."},
            "spec": {"description": "What was asked for, and by whom.", "allOf": [part("Spec")]},
            "status": {"description": "What became of it.", "allOf": [part("Status")]},
        }});
        schemas.insert(name(kind), whole);
        let spec = OF_ALL.iter().chain(spec);
        schemas.insert(name(&format!("{kind}Spec")), object("What was asked for, and by whom.", spec));
        schemas.insert(name(&format!("{kind}Status")), object("What became of it.", status.iter()));
    }
    schemas
}

fn object<'f>(description: &str, fields: impl Iterator<Item = &'f Field>) -> Value {
    let properties: Map<String, Value> = fields
        .map(|(name, kind, description)| {
            let mut schema = match *kind {
                "time" => json!({"type": "string", "format": "date-time"}),
                "objects" => json!({"type": "array", "items": {"type": "object"}}),
                kind => json!({"type": kind}),
            };
            schema["description"] = json!(description);
            ((*name).to_owned(), schema)
        })
        .collect();
    json!({"type": "object", "description": description, "properties": properties})
}
