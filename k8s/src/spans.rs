//! Where each field of a document stands in its text.

use std::collections::BTreeMap;

/// A place in a text.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

/// The places of a document's fields. A field's place is that of its key, an entry's that of its first
/// character.
#[derive(Clone, Debug)]
pub struct Spans {
    nodes: Vec<Node>,
    root: NodeId,
}

/// A node of the document. Aliased subtrees are shared, so that spans stay as large as the text.
pub(crate) type NodeId = usize;

#[derive(Clone, Debug)]
struct Node {
    place: Place,
    children: BTreeMap<String, NodeId>,
}

impl Default for Spans {
    fn default() -> Spans {
        let root = Node { place: Place { line: 1, column: 1 }, children: BTreeMap::new() };
        Spans { nodes: vec![root], root: 0 }
    }
}

impl Spans {
    /// The place of the field at `path` (`spec.containers[0].image`, `metadata.labels[a.b/c]`; a map's key
    /// may be written either way).
    pub fn find(&self, path: &str) -> Option<Place> {
        let (node, unread) = self.walk(path);
        unread.is_empty().then(|| self.nodes[node].place)
    }

    /// The place of the field at `path` or else of the nearest field around it: for a field that is missing.
    pub fn nearest(&self, path: &str) -> Place {
        self.nodes[self.walk(path).0].place
    }

    /// Follows a path as far as the document goes: the last node and what of the path is left.
    fn walk<'p>(&self, path: &'p str) -> (NodeId, &'p str) {
        let (mut node, mut unread) = (self.root, path);
        while !unread.is_empty() {
            match self.nodes[node]
                .children
                .iter()
                .find_map(|(name, &child)| Some((child, step(unread, name)?)))
            {
                Some((child, rest)) => (node, unread) = (child, rest),
                None => break,
            }
        }
        (node, unread)
    }

    pub(crate) fn add(&mut self, place: Place) -> NodeId {
        self.nodes.push(Node { place, children: BTreeMap::new() });
        self.nodes.len() - 1
    }

    pub(crate) fn move_to(&mut self, node: NodeId, place: Place) {
        self.nodes[node].place = place;
    }

    pub(crate) fn place(&self, node: NodeId) -> Place {
        self.nodes[node].place
    }

    pub(crate) fn set_child(&mut self, parent: NodeId, name: &str, child: NodeId) {
        self.nodes[parent].children.insert(name.to_owned(), child);
    }

    pub(crate) fn child(&self, parent: NodeId, name: &str) -> Option<NodeId> {
        self.nodes[parent].children.get(name).copied()
    }

    /// A node of its own that shares its children with `node`: how an alias repeats what it names.
    pub(crate) fn share(&mut self, node: NodeId) -> NodeId {
        self.nodes.push(self.nodes[node].clone());
        self.nodes.len() - 1
    }

    pub(crate) fn rooted_at(mut self, root: NodeId) -> Spans {
        self.root = root;
        self
    }
}

/// What is left of a path after the step `name`, written `.name` or `[name]` (`name` at the very beginning).
fn step<'p>(path: &'p str, name: &str) -> Option<&'p str> {
    if let Some(inside) = path.strip_prefix('[') {
        return inside.strip_prefix(name)?.strip_prefix(']');
    }
    let rest = path.strip_prefix('.').unwrap_or(path).strip_prefix(name)?;
    (rest.is_empty() || rest.starts_with(['.', '['])).then_some(rest)
}
