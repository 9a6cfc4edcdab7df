//! Strategic-merge patch of a v1.Pod, as an API server of Kubernetes 1.36 does it, order of lists included.
//!
//! Owns what a patch's directives mean (`$patch`, `$setElementOrder`, `$retainKeys`,
//! `$deleteFromPrimitiveList`, a null) and which lists of a pod merge by which key: the struct tags of
//! v1.Pod, plus `status.volumeStatuses`, which KEP-6395 declares a list-map by name. A list without such a
//! tag is replaced as a whole. Validates nothing else.
//!
//! Order within a merged list, which decides the indices in field paths: entries of the patch keep the
//! patch's order (or that of `$setElementOrder`), stored entries keep theirs; the two are interleaved so that
//! a stored entry comes first only before an entry of the patch that was stored after it. An entry that only
//! the patch has thus comes before the stored ones that the patch doesn't name.

use serde_json::{Map, Value};

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const SET_ELEMENT_ORDER: &str = "$setElementOrder/";
const DELETE_FROM_PRIMITIVE_LIST: &str = "$deleteFromPrimitiveList/";

/// Why a patch can't be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// Stored object or patch is no JSON object.
    #[error("the {what} is not an object; give a JSON object shaped like a Pod")]
    NotAnObject {
        /// "stored pod" or "patch".
        what: &'static str,
    },
    /// A list entry lacks the field that says which entry it is.
    #[error("{path}: entry has no {key:?}, by which this list is merged; add it")]
    NoMergeKey {
        /// The list.
        path: String,
        /// Its merge key.
        key: String,
    },
    /// `$patch` says something else than what is allowed there.
    #[error("{path}: unknown $patch directive {directive}; use \"delete\" or \"replace\"")]
    BadDirective {
        /// Where.
        path: String,
        /// What it says, as JSON.
        directive: String,
    },
    /// Entries of different JSON types, or lists within a list.
    #[error("{path}: entries of one list must all be objects or all be scalars")]
    MixedList {
        /// The list.
        path: String,
    },
    /// A directive whose value has the wrong type.
    #[error("{path}: {directive} must be {expected}")]
    BadDirectiveValue {
        /// Where.
        path: String,
        /// Which directive.
        directive: String,
        /// What it must be.
        expected: &'static str,
    },
    /// The patch's list has entries that `$setElementOrder` lacks, or in another order.
    #[error(
        "{path}: the patch's entries aren't in the order of $setElementOrder; list every entry there, in order"
    )]
    OrderMismatch {
        /// The list.
        path: String,
    },
    /// The patch sets a field that its `$retainKeys` doesn't list.
    #[error("{path}: {field:?} is set but not listed in $retainKeys; list every field that the patch sets")]
    NotRetained {
        /// The object.
        path: String,
        /// The field.
        field: String,
    },
}

impl MergeError {
    /// The HTTP status with which an API server answers such a patch.
    pub const fn http_code(&self) -> u16 {
        match self {
            MergeError::NotAnObject { .. }
            | MergeError::BadDirectiveValue { .. }
            | MergeError::OrderMismatch { .. }
            | MergeError::NotRetained { .. } => 400,
            MergeError::NoMergeKey { .. }
            | MergeError::BadDirective { .. }
            | MergeError::MixedList { .. } => 422,
        }
    }
}

/// Applies a strategic-merge patch to a stored pod.
///
/// What the directives leave behind in entries that are taken over unmerged (an API server drops them when it
/// decodes the result into a Pod) is dropped here too, and so are nulls.
pub fn strategic_merge_pod(stored: &Value, patch: &Value) -> Result<Value, MergeError> {
    let stored = stored.as_object().ok_or(MergeError::NotAnObject { what: "stored pod" })?;
    let patch = patch.as_object().ok_or(MergeError::NotAnObject { what: "patch" })?;
    let mut merged = Value::Object(merge_object(stored.clone(), patch.clone(), Shape::Pod, "")?);
    drop_leftovers(&mut merged);
    Ok(merged)
}

/// The objects of a pod that have lists which merge.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Shape {
    Pod,
    Meta,
    Spec,
    Status,
    Container,
    /// Any other: its lists are replaced as a whole.
    Plain,
}

/// What happens to a list.
#[derive(Copy, Clone, PartialEq, Eq)]
enum ListRule {
    /// Entries are objects, matched by this field.
    MergeBy(&'static str),
    /// Entries are scalars; the union.
    Union,
    /// The patch's list replaces the stored one.
    Replace,
}

/// The shape of the object (or of the list's entries) in a field.
fn shape_of(parent: Shape, field: &str) -> Shape {
    match (parent, field) {
        (Shape::Pod, "metadata") => Shape::Meta,
        (Shape::Pod, "spec") => Shape::Spec,
        (Shape::Pod, "status") => Shape::Status,
        (Shape::Spec, "containers" | "initContainers" | "ephemeralContainers") => Shape::Container,
        _ => Shape::Plain,
    }
}

/// The struct tags `patchStrategy` and `patchMergeKey` of v1.Pod and what it consists of.
fn list_rule(parent: Shape, field: &str) -> ListRule {
    match (parent, field) {
        (Shape::Meta, "finalizers") => ListRule::Union,
        (Shape::Meta, "ownerReferences") => ListRule::MergeBy("uid"),
        (
            Shape::Spec,
            "containers"
            | "initContainers"
            | "ephemeralContainers"
            | "volumes"
            | "imagePullSecrets"
            | "resourceClaims"
            | "schedulingGates",
        ) => ListRule::MergeBy("name"),
        (Shape::Spec, "hostAliases") => ListRule::MergeBy("ip"),
        (Shape::Spec, "topologySpreadConstraints") => ListRule::MergeBy("topologyKey"),
        (Shape::Container, "ports") => ListRule::MergeBy("containerPort"),
        (Shape::Container, "env") => ListRule::MergeBy("name"),
        (Shape::Container, "volumeMounts") => ListRule::MergeBy("mountPath"),
        (Shape::Container, "volumeDevices") => ListRule::MergeBy("devicePath"),
        (Shape::Status, "conditions") => ListRule::MergeBy("type"),
        (Shape::Status, "podIPs" | "hostIPs") => ListRule::MergeBy("ip"),
        (Shape::Status, "resourceClaimStatuses" | "volumeStatuses") => ListRule::MergeBy("name"),
        _ => ListRule::Replace,
    }
}

fn child_path(path: &str, field: &str) -> String {
    if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") }
}

fn merge_object(
    mut original: Map<String, Value>,
    mut patch: Map<String, Value>,
    shape: Shape,
    path: &str,
) -> Result<Map<String, Value>, MergeError> {
    if let Some(directive) = patch.shift_remove(PATCH) {
        return match directive.as_str() {
            Some("replace") => Ok(patch),
            Some("delete") => Ok(Map::new()),
            _ => Err(MergeError::BadDirective { path: path.to_owned(), directive: directive.to_string() }),
        };
    }
    retain_keys(&mut original, &mut patch, path)?;
    merge_ordered_lists(&mut original, &mut patch, shape, path)?;

    for (key, value) in patch {
        let (field, deleting) = match key.strip_prefix(DELETE_FROM_PRIMITIVE_LIST) {
            Some(field) => (field, true),
            None => (key.as_str(), false),
        };
        if value.is_null() {
            original.shift_remove(field);
            continue;
        }
        let at = child_path(path, field);
        match (original.get_mut(field), value) {
            (Some(Value::Object(slot)), Value::Object(value)) if !deleting => {
                *slot = merge_object(std::mem::take(slot), value, shape_of(shape, field), &at)?;
            }
            (Some(Value::Array(slot)), Value::Array(value)) => {
                let stored = std::mem::take(slot);
                *slot = if deleting {
                    without(stored, &value, &at)?
                } else {
                    merge_list(stored, value, list_rule(shape, field), shape_of(shape, field), &at)?.list
                };
            }
            (_, _) if deleting => {}
            // Not stored, or of another type: the patch's value, freed of nulls and of whatever a directive
            // marks.
            (_, value) => match undirected(value) {
                Some(value) => {
                    original.insert(field.to_owned(), value);
                }
                None => {
                    original.shift_remove(field);
                }
            },
        }
    }
    Ok(original)
}

/// `$retainKeys`: what it doesn't list is dropped from the stored object (a volume's former source).
fn retain_keys(
    original: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
    path: &str,
) -> Result<(), MergeError> {
    let Some(directive) = patch.shift_remove(RETAIN_KEYS) else { return Ok(()) };
    let Value::Array(keep) = directive else {
        return Err(MergeError::BadDirectiveValue {
            path: path.to_owned(),
            directive: RETAIN_KEYS.to_owned(),
            expected: "a list of field names",
        });
    };
    let kept = |field: &str| keep.iter().any(|k| k.as_str() == Some(field));
    let is_directive =
        |field: &str| field.starts_with(DELETE_FROM_PRIMITIVE_LIST) || field.starts_with(SET_ELEMENT_ORDER);
    if let Some((field, _)) = patch.iter().find(|(f, v)| !v.is_null() && !is_directive(f) && !kept(f)) {
        return Err(MergeError::NotRetained { path: path.to_owned(), field: field.clone() });
    }
    original.retain(|field, _| kept(field));
    Ok(())
}

/// `$setElementOrder/<list>` together with the list that it orders.
fn merge_ordered_lists(
    original: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
    shape: Shape,
    path: &str,
) -> Result<(), MergeError> {
    let directives: Vec<String> =
        patch.keys().filter(|k| k.starts_with(SET_ELEMENT_ORDER)).cloned().collect();
    for directive in directives {
        let field = directive[SET_ELEMENT_ORDER.len()..].to_owned();
        let at = child_path(path, &field);
        let list = |value: Option<Value>, of: &str| match value {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list)),
            Some(_) => Err(MergeError::BadDirectiveValue {
                path: at.clone(),
                directive: of.to_owned(),
                expected: "a list",
            }),
        };
        let order = list(patch.shift_remove(&directive), &directive)?.unwrap_or_default();
        let stored = list(original.get(&field).cloned(), "the stored value")?;
        let patched = list(patch.shift_remove(&field), "the patch's value")?;
        let rule = list_rule(shape, &field);
        if let Some(patched) = &patched {
            check_order(patched, &order, rule, &at)?;
        }
        let Merged { list, live_order } = match (stored, patched) {
            (None, None) => continue,
            (Some(stored), None) => Merged { live_order: stored.clone(), list: stored },
            (None, Some(patched)) => {
                let list = patched.into_iter().filter_map(undirected).collect();
                Merged { list, live_order: Vec::new() }
            }
            (Some(stored), Some(patched)) => merge_list(stored, patched, rule, shape_of(shape, &field), &at)?,
        };
        original.insert(field, Value::Array(in_order(list, &order, &live_order, rule, &at)?));
    }
    Ok(())
}

/// Every entry of the patch is named in `order`, in the same order; deletions aside.
fn check_order(patched: &[Value], order: &[Value], rule: ListRule, path: &str) -> Result<(), MergeError> {
    if order.is_empty() {
        return Ok(());
    }
    let mut rest = order.iter();
    for entry in patched.iter().filter(|e| e.get(PATCH).is_none()) {
        let wanted = identity(entry, rule, path)?;
        loop {
            match rest.next() {
                None => return Err(MergeError::OrderMismatch { path: path.to_owned() }),
                Some(named) if identity(named, rule, path)? == wanted => break,
                Some(_) => {}
            }
        }
    }
    Ok(())
}

/// A merged list, and the order in which its stored entries are taken to have been.
struct Merged {
    list: Vec<Value>,
    live_order: Vec<Value>,
}

fn merge_list(
    stored: Vec<Value>,
    patch: Vec<Value>,
    rule: ListRule,
    entries: Shape,
    path: &str,
) -> Result<Merged, MergeError> {
    match rule {
        ListRule::Replace => Ok(Merged { list: patch, live_order: stored }),
        ListRule::Union => {
            uniform(&stored, &patch, false, path)?;
            let mut list = stored.clone();
            for entry in &patch {
                if !list.contains(entry) {
                    list.push(entry.clone());
                }
            }
            Ok(Merged { list: in_order(list, &patch, &stored, rule, path)?, live_order: stored })
        }
        ListRule::MergeBy(key) => {
            uniform(&stored, &patch, true, path)?;
            merge_objects(stored, patch, key, entries, path)
        }
    }
}

fn merge_objects(
    mut stored: Vec<Value>,
    patch: Vec<Value>,
    key: &'static str,
    entries: Shape,
    path: &str,
) -> Result<Merged, MergeError> {
    let rule = ListRule::MergeBy(key);
    let before = stored.len();
    let mut named = Vec::with_capacity(patch.len());
    let mut replace = false;
    for entry in patch {
        match entry.get(PATCH) {
            None => named.push(entry),
            Some(Value::String(directive)) if directive == "delete" => {
                let gone = identity(&entry, rule, path)?.clone();
                stored.retain(|s| s.get(key) != Some(&gone));
            }
            Some(Value::String(directive)) if directive == "replace" => replace = true,
            Some(other) => {
                return Err(MergeError::BadDirective { path: path.to_owned(), directive: other.to_string() });
            }
        }
    }
    if replace {
        return Ok(Merged { live_order: named.clone(), list: named });
    }
    let deleted = before - stored.len();
    let mut merged = stored.clone();
    for entry in &named {
        let id = identity(entry, rule, path)?;
        match (merged.iter_mut().find(|s| s.get(key) == Some(id)), entry) {
            (Some(Value::Object(slot)), Value::Object(entry)) => {
                *slot = merge_object(std::mem::take(slot), entry.clone(), entries, &format!("{path}[{id}]"))?;
            }
            _ => merged.push(entry.clone()),
        }
    }
    // With `$setElementOrder`, an API server orders by a slice in whose place the merge has already worked:
    // the places of deleted entries are taken by as many new ones, which thereby count as stored last.
    let mut live_order = stored.clone();
    live_order.extend(merged[stored.len()..].iter().take(deleted).cloned());
    Ok(Merged { list: in_order(merged, &named, &stored, rule, path)?, live_order })
}

/// Puts the entries that `patch_order` names in that order, the others in `live_order`, and interleaves the
/// two.
fn in_order(
    list: Vec<Value>,
    patch_order: &[Value],
    live_order: &[Value],
    rule: ListRule,
    path: &str,
) -> Result<Vec<Value>, MergeError> {
    for entry in list.iter().chain(patch_order).chain(live_order) {
        identity(entry, rule, path)?;
    }
    let place = |order: &[Value], entry: &Value| order.iter().position(|o| same(o, entry, rule));
    let (mut patched, mut live): (Vec<Value>, Vec<Value>) =
        list.into_iter().partition(|entry| place(patch_order, entry).is_some());
    sort_by_place(&mut patched, |entry| place(patch_order, entry));
    sort_by_place(&mut live, |entry| place(live_order, entry));

    let mut merged = Vec::with_capacity(patched.len() + live.len());
    let (mut patched, mut live) = (patched.into_iter().peekable(), live.into_iter().peekable());
    while let (Some(l), Some(p)) = (live.peek(), patched.peek()) {
        let live_first = match (place(live_order, l), place(live_order, p)) {
            (Some(l), Some(p)) => l < p,
            (None, _) | (_, None) => false,
        };
        merged.extend(if live_first { live.next() } else { patched.next() });
    }
    merged.extend(live);
    merged.extend(patched);
    Ok(merged)
}

/// Sorts as an API server does: by insertion, where an entry without a place goes before whatever is in front
/// of it.
fn sort_by_place(list: &mut [Value], place: impl Fn(&Value) -> Option<usize>) {
    for i in 1..list.len() {
        let mut j = i;
        while j > 0
            && match (place(&list[j]), place(&list[j - 1])) {
                (Some(this), Some(front)) => this < front,
                (None, _) | (_, None) => true,
            }
        {
            list.swap(j, j - 1);
            j -= 1;
        }
    }
}

/// What an entry is matched by: its merge key's value, or itself.
fn identity<'a>(entry: &'a Value, rule: ListRule, path: &str) -> Result<&'a Value, MergeError> {
    match rule {
        ListRule::MergeBy(key) => entry
            .get(key)
            .ok_or_else(|| MergeError::NoMergeKey { path: path.to_owned(), key: key.to_owned() }),
        ListRule::Union => Ok(entry),
        ListRule::Replace if entry.is_object() => {
            Err(MergeError::NoMergeKey { path: path.to_owned(), key: String::new() })
        }
        ListRule::Replace => Ok(entry),
    }
}

fn same(a: &Value, b: &Value, rule: ListRule) -> bool {
    match rule {
        ListRule::MergeBy(key) => a.get(key) == b.get(key),
        ListRule::Union | ListRule::Replace => a == b,
    }
}

/// All entries are objects, or all are scalars.
fn uniform(stored: &[Value], patch: &[Value], objects: bool, path: &str) -> Result<(), MergeError> {
    match stored.iter().chain(patch).all(|e| !e.is_array() && e.is_object() == objects) {
        true => Ok(()),
        false => Err(MergeError::MixedList { path: path.to_owned() }),
    }
}

/// `$deleteFromPrimitiveList`.
fn without(stored: Vec<Value>, gone: &[Value], path: &str) -> Result<Vec<Value>, MergeError> {
    uniform(&stored, gone, false, path)?;
    Ok(stored.into_iter().filter(|entry| !gone.contains(entry)).collect())
}

/// A value of the patch that is taken over as it is: without nulls, and without what carries a `$patch`.
fn undirected(value: Value) -> Option<Value> {
    match value {
        Value::Object(object) if object.contains_key(PATCH) => None,
        Value::Object(object) => Some(Value::Object(
            object
                .into_iter()
                .filter(|(_, v)| !v.is_null())
                .filter_map(|(k, v)| undirected(v).map(|v| (k, v)))
                .collect(),
        )),
        Value::Array(list) => Some(Value::Array(list.into_iter().filter_map(undirected).collect())),
        scalar @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => Some(scalar),
    }
}

fn drop_leftovers(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.retain(|key, value| {
                !value.is_null()
                    && key != PATCH
                    && key != RETAIN_KEYS
                    && !key.starts_with(SET_ELEMENT_ORDER)
                    && !key.starts_with(DELETE_FROM_PRIMITIVE_LIST)
            });
            object.values_mut().for_each(drop_leftovers);
        }
        Value::Array(list) => list.iter_mut().for_each(drop_leftovers),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests;
