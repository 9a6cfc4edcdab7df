//! Pods by the names that people gave them, and moments by how long after the beginning they were.

use nodefold_core::ids::PodUid;
use nodefold_core::spec::Pod;
use nodefold_core::time::Time;
use std::collections::{BTreeMap, BTreeSet};

/// Names of pods by UID. A second pod of the same name is told apart: `web`, then `web(2)`.
#[derive(Clone, Debug, Default)]
pub struct Names {
    by_uid: BTreeMap<PodUid, (String, String)>,
    lives: BTreeMap<(String, String), u32>,
    shown: BTreeMap<PodUid, String>,
}

impl Names {
    /// Learns a name.
    pub fn learn(&mut self, uid: PodUid, namespace: &str, name: &str) {
        if self.by_uid.contains_key(&uid) {
            return;
        }
        let key = (namespace.to_owned(), name.to_owned());
        let life = self.lives.entry(key.clone()).or_insert(0);
        *life += 1;
        let mut shown = if namespace == "default" { name.to_owned() } else { format!("{namespace}/{name}") };
        if *life > 1 {
            shown.push_str(&format!("({life})"));
        }
        self.shown.insert(uid, shown);
        self.by_uid.insert(uid, key);
    }

    /// Learns a pod's name.
    pub fn learn_pod(&mut self, pod: &Pod) {
        self.learn(pod.uid, &pod.namespace, &pod.name);
    }

    /// For people: without the namespace if that is `default`.
    pub fn short(&self, uid: PodUid) -> String {
        match self.shown.get(&uid) {
            Some(shown) => shown.clone(),
            None if uid == PodUid(0) => "node".to_owned(),
            None => uid.to_string(),
        }
    }

    /// A text with UIDs of pods replaced by their names.
    pub fn in_text(&self, text: &str) -> String {
        let replace = |text: String, (uid, name): (&PodUid, &String)| text.replace(&uid.to_string(), name);
        self.shown.iter().fold(text.to_owned(), replace)
    }

    /// For programs: `namespace/name`, if it is known.
    pub fn full(&self, uid: PodUid) -> Option<String> {
        self.by_uid.get(&uid).map(|(namespace, name)| format!("{namespace}/{name}"))
    }

    /// The pods of that name, oldest first.
    pub fn lives_of<'a>(&'a self, namespace: &'a str, name: &'a str) -> impl Iterator<Item = PodUid> + 'a {
        let of_name = move |key: &(String, String)| key.0 == namespace && key.1 == name;
        self.by_uid.iter().filter(move |(_, key)| of_name(key)).map(|(uid, _)| *uid)
    }

    /// Whether that is a life of the pod of that name.
    pub fn is_of(&self, uid: PodUid, namespace: &str, name: &str) -> bool {
        self.by_uid.get(&uid).is_some_and(|of| of.0 == namespace && of.1 == name)
    }

    /// All names in a row, for messages.
    pub fn listed(&self) -> String {
        let names: BTreeSet<String> = self.by_uid.values().map(|(ns, name)| format!("{ns}/{name}")).collect();
        if names.is_empty() { "none".into() } else { Vec::from_iter(names).join(", ") }
    }
}

/// How long after the beginning, in seconds: `12.345s`.
pub fn clock(at: Time, beginning: Time) -> String {
    let millis = at.since(beginning).0 / 1_000_000;
    format!("{}.{:03}s", millis / 1000, millis % 1000)
}
