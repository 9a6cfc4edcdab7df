//! `kubectl auth can-i` and `whoami`: what the asker may do, by the same roles that decide requests, and who that is.

use super::failure::Failure;
use super::hub::{MASTERS, path_allowed};
use nodefold_api::admission::attributes::User;
use nodefold_api::authorize::rbac::{Ask, Rbac};
use serde_json::{Value, json};

/// Answers a SelfSubjectAccessReview.
pub fn access(user: &User, mut review: Value, decide: impl Fn(&Ask<'_>) -> Result<String, Failure>) -> Value {
    let asked = &review["spec"]["resourceAttributes"];
    let text = |field: &str| asked[field].as_str().unwrap_or_default();
    let ruling = if asked.is_object() {
        let ask = Ask {
            verb: text("verb"),
            group: text("group"),
            resource: text("resource"),
            subresource: text("subresource"),
            namespace: text("namespace"),
            name: text("name"),
        };
        decide(&ask)
    } else {
        let path = &review["spec"]["nonResourceAttributes"];
        let (verb, path) =
            (path["verb"].as_str().unwrap_or_default(), path["path"].as_str().unwrap_or_default());
        path_allowed(user, verb, path)
    };
    review["status"] = match ruling {
        Ok(by) => json!({"allowed": true, "reason": format!("RBAC: allowed by {by}")}),
        // Silence means that nothing allows it; a reason would be an error's.
        Err(_) => json!({"allowed": false}),
    };
    review
}

/// Answers a SelfSubjectReview: who asks, as the server takes them.
pub fn who(user: &User, mut review: Value) -> Value {
    let groups: Vec<&str> = user.groups.iter().map(|group| &**group).collect();
    review["status"] = json!({"userInfo": {"username": &*user.name, "groups": groups}});
    review
}

/// Answers a SelfSubjectRulesReview.
pub fn rules(user: &User, mut review: Value, rbac: &Rbac) -> Value {
    let namespace = review["spec"]["namespace"].as_str().unwrap_or_default().to_owned();
    let all = user.groups.iter().any(|group| &**group == MASTERS);
    let mut rules = rbac.rules_of(user, &namespace);
    if all {
        rules.insert(0, json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}));
    }
    let selves = ["selfsubjectaccessreviews", "selfsubjectrulesreviews"];
    rules.push(json!({"verbs": ["create"], "apiGroups": ["authorization.k8s.io"], "resources": selves}));
    rules.push(json!({"verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"]}));
    let mut paths = vec![json!({"verbs": ["get"], "nonResourceURLs": [
        "/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz", "/version"]})];
    if all {
        paths.insert(0, json!({"verbs": ["*"], "nonResourceURLs": ["*"]}));
    }
    review["status"] = json!({"resourceRules": rules, "nonResourceRules": paths, "incomplete": false});
    review
}
