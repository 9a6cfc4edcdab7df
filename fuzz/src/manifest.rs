//! Any text as manifests and as a scenario: never a panic, every error has a place in the text, and what is read can be
//! written and read again.

use nodefold_core::ids::Source;
use nodefold_harness::Scenario;
use nodefold_harness::history::History;
use nodefold_k8s::{
    Document, InputError, canonical, check_fields, default_object, default_pod, parse_documents,
    pod_from_json, pod_to_json, qos_class, quantity, time,
};
use serde_json::Value;

const FILE: &str = "manifest.yaml";

/// Reads a text in every way that a file is read.
pub fn manifest(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    let place = |error: &InputError| {
        // What ends a line is YAML's affair, old Mac's line ends included.
        let lines = 1 + text.chars().filter(|c| "\n\r\u{85}\u{2028}\u{2029}".contains(*c)).count();
        assert!((1..=lines).contains(&error.line) && error.column >= 1, "{error}: of {lines} lines");
        assert!(!error.message.is_empty() && error.file == FILE);
    };
    match parse_documents(text, FILE) {
        Ok(documents) => documents.iter().for_each(|document| one(document, &place)),
        Err(error) => place(&error),
    }
    match Scenario::parse(text, FILE) {
        Ok(_) => scenario(text),
        Err(error) => place(&error),
    }
    for word in text.split_whitespace().take(100) {
        let _ = quantity::parse(word);
        if let Ok(at) = time::parse(word) {
            assert_eq!(time::parse(&time::format(at)), Ok(at.whole_seconds()), "{word}");
        }
    }
}

fn one(document: &Document, place: &dyn Fn(&InputError)) {
    let value = &document.value;
    if value.is_object() || value.is_array() {
        let again = parse_documents(&value.to_string(), FILE).expect("JSON that was read can be read");
        assert_eq!(again.first().map(|d| &d.value), Some(value), "read, written, read");
    }
    for kind in ["Pod", "Secret", "ConfigMap"] {
        check_fields(value, kind).iter().for_each(|problem| place(&document.locate(FILE, "", problem)));
    }
    qos_class(value);
    canonical(value);
    same_twice(value, default_object);
    let mut defaulted = same_twice(value, default_pod);
    // A status is not part of what is written back, and what a stored one says of the QoS class is read.
    defaulted.as_object_mut().map(|fields| fields.remove("status"));
    for source in [Source::File, Source::Api] {
        match pod_from_json(&defaulted, source) {
            Ok(pod) => {
                let written = pod_to_json(&pod, &pod.spec);
                let again = pod_from_json(&written, source);
                assert_eq!(again.as_ref(), Ok(&pod), "read, written, read: {written}");
            }
            Err(problems) => {
                assert!(!problems.is_empty());
                problems.iter().for_each(|problem| place(&document.locate(FILE, "", problem)));
            }
        }
    }
}

/// Defaults are filled in once.
fn same_twice(value: &Value, fill: fn(&mut Value)) -> Value {
    let mut once = value.clone();
    fill(&mut once);
    let mut twice = once.clone();
    fill(&mut twice);
    assert_eq!(once, twice, "defaults of defaults");
    once
}

/// A history's text is what it says.
fn scenario(text: &str) {
    let history = History::parse(text, FILE).expect("a scenario's steps are a history");
    let written = history.to_text("n", "a");
    let again = History::parse(&written, FILE).unwrap_or_else(|error| panic!("{error}\n{written}"));
    assert_eq!(again.to_text("n", "a"), written, "a history, written and read");
}
