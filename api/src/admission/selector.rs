//! Label selectors (`metav1.LabelSelector`), read from manifests.

use crate::validate::names::{is_label_value, is_qualified_name};
use crate::view::{at, list, text};
use serde_json::Value;
use std::collections::BTreeMap;

/// A selector; the empty one selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    requirements: Vec<(String, Operator)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Operator {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    DoesNotExist,
}

impl Selector {
    /// Reads a selector; an absent one is empty. What can't be read is told in words.
    pub fn read(value: &Value) -> Result<Selector, String> {
        let mut requirements = Vec::new();
        for (key, wanted) in at(value, "matchLabels").as_object().into_iter().flatten() {
            let wanted = wanted.as_str().filter(|v| is_label_value(v));
            let wanted = wanted.ok_or_else(|| format!("matchLabels[{key}] is no label value"))?;
            requirements.push((key.clone(), Operator::In(vec![wanted.to_owned()])));
        }
        for (i, requirement) in list(value, "matchExpressions").iter().enumerate() {
            let values: Vec<String> =
                list(requirement, "values").iter().filter_map(Value::as_str).map(str::to_owned).collect();
            let operator = match (text(requirement, "operator"), values.is_empty()) {
                ("In", false) => Operator::In(values),
                ("NotIn", false) => Operator::NotIn(values),
                ("Exists", true) => Operator::Exists,
                ("DoesNotExist", true) => Operator::DoesNotExist,
                ("In" | "NotIn", true) => return Err(format!("matchExpressions[{i}] has no values")),
                ("Exists" | "DoesNotExist", false) => {
                    return Err(format!("matchExpressions[{i}] may have no values"));
                }
                (other, _) => {
                    return Err(format!("matchExpressions[{i}].operator {other:?} is no operator"));
                }
            };
            requirements.push((text(requirement, "key").to_owned(), operator));
        }
        match requirements.iter().find(|(key, _)| !is_qualified_name(key)) {
            Some((key, _)) => Err(format!("{key:?} is no label key")),
            None => Ok(Selector { requirements }),
        }
    }

    /// It selects everything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// These labels are selected.
    pub fn selects(&self, labels: &BTreeMap<&str, &str>) -> bool {
        self.requirements.iter().all(|(key, operator)| {
            let value = labels.get(key.as_str());
            let is_among = |values: &[String]| value.is_some_and(|v| values.iter().any(|w| w == v));
            match operator {
                Operator::In(values) => is_among(values),
                Operator::NotIn(values) => !is_among(values),
                Operator::Exists => value.is_some(),
                Operator::DoesNotExist => value.is_none(),
            }
        })
    }
}

/// An object's labels.
pub fn labels(object: &Value) -> BTreeMap<&str, &str> {
    let stated = at(at(object, "metadata"), "labels").as_object().into_iter().flatten();
    stated.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_operator_selects_what_it_says() {
        let labels = BTreeMap::from([("app", "web"), ("tier", "front")]);
        let expression = |key: &str, operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        for (selector, selected) in [
            (json!({}), true),
            (json!(null), true),
            (json!({"matchLabels": {"app": "web", "tier": "front"}}), true),
            (json!({"matchLabels": {"app": "db"}}), false),
            (expression("app", "In", &["db", "web"]), true),
            (expression("app", "NotIn", &["web"]), false),
            (expression("none", "NotIn", &["web"]), true),
            (expression("tier", "Exists", &[]), true),
            (expression("tier", "DoesNotExist", &[]), false),
        ] {
            let read = Selector::read(&selector).expect("a selector");
            assert_eq!(read.selects(&labels), selected, "{selector}");
        }
        for wrong in [
            expression("app", "Is", &["web"]),
            expression("app", "In", &[]),
            expression("app", "Exists", &["web"]),
            expression("a b", "Exists", &[]),
            json!({"matchLabels": {"app": "a b"}}),
        ] {
            assert!(Selector::read(&wrong).is_err(), "{wrong}");
        }
    }
}
