//! C13: the QoS class, which a change may not move.

use serde_json::Value;
use std::collections::BTreeMap;

/// The class in the status; the one of the stored spec, if the status says none.
pub(super) fn stored(pod: &Value) -> String {
    match pod["status"]["qosClass"].as_str() {
        Some(told) if !told.is_empty() => told.to_owned(),
        Some(_) | None => class(&pod["spec"]).to_owned(),
    }
}

/// The class of a spec: pod-level resources alone if there are any, else those of all containers but ephemeral ones.
pub(super) fn class(spec: &Value) -> &'static str {
    let whole = [spec["resources"].clone()];
    let pod_level = spec["resources"].as_object().is_some_and(|r| !r.is_empty());
    let lists = ["containers", "initContainers"];
    let each: Vec<Value> = match pod_level {
        true => whole.to_vec(),
        false => lists
            .iter()
            .flat_map(|list| spec[list].as_array().into_iter().flatten())
            .map(|container| container["resources"].clone())
            .collect(),
    };
    let mut sums: BTreeMap<(&str, &str), u128> = BTreeMap::new();
    let mut all_limited = true;
    for resources in &each {
        for name in ["cpu", "memory"] {
            for amounts in ["requests", "limits"] {
                let amount = milli(&resources[amounts][name]);
                *sums.entry((amounts, name)).or_default() += amount;
                all_limited &= amounts == "requests" || amount > 0;
            }
        }
    }
    let sum = |amounts, name| sums.get(&(amounts, name)).copied().unwrap_or(0);
    if sums.values().all(|amount| *amount == 0) {
        "BestEffort"
    } else if all_limited
        && ["cpu", "memory"].iter().all(|name| sum("requests", *name) == sum("limits", *name))
    {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// A quantity in thousandths. What can't be read is nothing: the rules of any pod refuse it.
fn milli(quantity: &Value) -> u128 {
    let text = match quantity {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return 0,
    };
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, suffix) = text.split_at(split);
    let (times, over): (u128, u128) = match suffix {
        "n" => (1, 1_000_000),
        "u" => (1, 1000),
        "m" => (1, 1),
        "k" => (1_000_000, 1),
        "M" => (1_000_000_000, 1),
        "G" => (1_000_000_000_000, 1),
        "T" => (1_000_000_000_000_000, 1),
        "Ki" => (1000 << 10, 1),
        "Mi" => (1000 << 20, 1),
        "Gi" => (1000 << 30, 1),
        "Ti" => (1000 << 40, 1),
        _ => (1000, 1),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let scale = 10u128.saturating_pow(fraction.len() as u32);
    let number = format!("{whole}{fraction}").parse::<u128>().unwrap_or(0);
    number.saturating_mul(times) / scale / over
}
