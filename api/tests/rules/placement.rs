//! Where a pod may run, how it is spread and how it finds others: fields, types and messages as Kubernetes tells them. The sheet
//! has no numbers for these.

use super::*;

const LABEL: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const KEY: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

fn told(field: &str, value: Value) -> Vec<String> {
    let mut fields = json!({});
    fields[field] = value;
    let answer = World::new(ApiConfig::default()).create(pod(with(spec(json!([app()])), fields)));
    let causes = answer.causes().iter();
    causes.map(|c| format!("{} {}: {}", c.reason.as_str(), c.field, c.message)).collect()
}

fn none() -> Vec<String> {
    Vec::new()
}

#[test]
fn affinity_to_nodes() {
    let required = |term: Value| json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": term}}});
    let one = |operator: &str, values: Value| {
        required(json!([{"matchExpressions": [{"key": "zone", "operator": operator, "values": values}]}]))
    };
    let path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
    for (operator, values) in [
        ("In", json!(["a"])),
        ("NotIn", json!(["a", "b"])),
        ("Exists", json!([])),
        ("DoesNotExist", json!([])),
        ("Gt", json!(["1"])),
        ("Lt", json!(["9"])),
    ] {
        assert_eq!(told("affinity", one(operator, values)), none(), "{operator}");
    }
    assert_eq!(
        told("affinity", required(json!([]))),
        [format!("FieldValueRequired {path}: Required value: must have at least one node selector term")]
    );
    let at = format!("{path}[0].matchExpressions[0]");
    for (operator, values, expected) in [
        (
            "In",
            json!([]),
            format!(
                "FieldValueRequired {at}.values: Required value: must be specified when `operator` is 'In' or 'NotIn'"
            ),
        ),
        (
            "Exists",
            json!(["a"]),
            format!(
                "FieldValueForbidden {at}.values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            ),
        ),
        (
            "Gt",
            json!(["1", "2"]),
            format!(
                "FieldValueRequired {at}.values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'"
            ),
        ),
        (
            "Near",
            json!(["a"]),
            format!(
                "FieldValueInvalid {at}.operator: Invalid value: \"Near\": not a valid selector operator"
            ),
        ),
        ("In", json!(["a", "-"]), format!("FieldValueInvalid {at}.values[1]: Invalid value: \"-\": {LABEL}")),
    ] {
        assert_eq!(told("affinity", one(operator, values)), [expected]);
    }
    let fields = required(json!([{"matchFields": [
        {"key": "metadata.name", "operator": "In", "values": ["N"]},
        {"key": "metadata.uid", "operator": "Exists"},
        {"key": "metadata.name", "operator": "NotIn", "values": []}]}]));
    let at = format!("{path}[0].matchFields");
    assert_eq!(
        told("affinity", fields),
        [
            format!("FieldValueInvalid {at}[0].values[0]: Invalid value: \"N\": {SUBDOMAIN}"),
            format!(
                "FieldValueInvalid {at}[1].operator: Invalid value: \"Exists\": not a valid selector operator"
            ),
            format!(
                "FieldValueInvalid {at}[1].key: Invalid value: \"metadata.uid\": not a valid field selector key"
            ),
            format!(
                "FieldValueRequired {at}[2].values: Required value: must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            ),
        ]
    );
    let preferred = json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 0, "preference": {"matchExpressions": [{"key": "a b", "operator": "In", "values": ["-"]}]}},
        {"weight": 100, "preference": {}}]}});
    let at = "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]";
    assert_eq!(
        told("affinity", preferred),
        [
            format!("FieldValueInvalid {at}.weight: Invalid value: 0: must be in the range 1-100"),
            format!(
                "FieldValueInvalid {at}.preference.matchExpressions[0].key: Invalid value: \"a b\": {KEY}"
            ),
        ]
    );
}

#[test]
fn affinity_to_pods() {
    for kind in ["podAffinity", "podAntiAffinity"] {
        let mut good = json!({});
        good[kind] = json!({"requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "zone", "matchLabelKeys": ["v"]}]});
        assert_eq!(told("affinity", good), none());
        let mut bad = json!({});
        bad[kind] = json!({"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 101, "podAffinityTerm": {
            "labelSelector": {"matchLabels": {"a": "-"}, "matchExpressions": [{"key": "k", "operator": "In"}]},
            "namespaces": ["n.s"], "matchLabelKeys": ["x"], "mismatchLabelKeys": ["x"]}}]});
        let at = format!("spec.affinity.{kind}.preferredDuringSchedulingIgnoredDuringExecution[0]");
        let term = format!("{at}.podAffinityTerm");
        let expected = [
            format!("FieldValueInvalid {at}.weight: Invalid value: 101: must be in the range 1-100"),
            format!("FieldValueInvalid {term}.labelSelector.matchLabels: Invalid value: \"-\": {LABEL}"),
            format!(
                "FieldValueRequired {term}.labelSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"
            ),
        ];
        let found = told("affinity", bad);
        assert_eq!(found[..3], expected);
        assert!(
            found[3].starts_with(&format!("FieldValueInvalid {term}.namespace: Invalid value: \"n.s\": ")),
            "{found:?}"
        );
        let rest = [
            format!(
                "FieldValueInvalid {term}.matchLabelKeys[0]: Invalid value: \"x\": exists in both matchLabelKeys and mismatchLabelKeys"
            ),
            format!("FieldValueRequired {term}.topologyKey: Required value: can not be empty"),
            format!("FieldValueInvalid {term}.topologyKey: Invalid value: \"\": name part must be non-empty"),
            format!("FieldValueInvalid {term}.topologyKey: Invalid value: \"\": {KEY}"),
        ];
        assert_eq!(found[4..], rest);
        let mut unselected = json!({});
        unselected[kind] = json!({"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", "matchLabelKeys": ["v"]}]});
        let field =
            format!("spec.affinity.{kind}.requiredDuringSchedulingIgnoredDuringExecution[0].matchLabelKeys");
        assert_eq!(
            told("affinity", unselected),
            [format!(
                "FieldValueForbidden {field}: Forbidden: must not be specified when labelSelector is not set"
            )]
        );
    }
}

#[test]
fn spread() {
    let good = json!({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 2,
        "nodeAffinityPolicy": "Honor", "nodeTaintsPolicy": "Ignore",
        "labelSelector": {"matchLabels": {"a": "b"}}, "matchLabelKeys": ["v"]});
    assert_eq!(told("topologySpreadConstraints", json!([good])), none());
    let bad = json!({"maxSkew": 0, "whenUnsatisfiable": "Whatever", "minDomains": 0, "nodeTaintsPolicy": "Maybe",
        "labelSelector": {"matchLabels": {"v": "x"}}, "matchLabelKeys": ["v"]});
    let at = "spec.topologySpreadConstraints[1]";
    assert_eq!(
        told("topologySpreadConstraints", json!([good, bad, with(good.clone(), json!({"matchLabelKeys": ["a"]}))])),
        [
            "FieldValueDuplicate spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}: Duplicate value: \"{zone, DoNotSchedule}\"".to_owned(),
            format!("FieldValueInvalid {at}.maxSkew: Invalid value: 0: must be greater than zero"),
            format!("FieldValueRequired {at}.topologyKey: Required value: can not be empty"),
            format!("FieldValueNotSupported {at}.whenUnsatisfiable: Unsupported value: \"Whatever\": supported values: \"DoNotSchedule\", \"ScheduleAnyway\""),
            format!("FieldValueInvalid {at}.minDomains: Invalid value: 0: must be greater than zero"),
            format!("FieldValueInvalid {at}.minDomains: Invalid value: 0: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not Whatever"),
            format!("FieldValueNotSupported {at}.nodeTaintsPolicy: Unsupported value: \"Maybe\": supported values: \"Honor\", \"Ignore\""),
            format!("FieldValueInvalid {at}.matchLabelKeys[0]: Invalid value: \"v\": exists in both matchLabelKeys and labelSelector"),
            "FieldValueInvalid spec.topologySpreadConstraints[2].matchLabelKeys[0]: Invalid value: \"a\": exists in both matchLabelKeys and labelSelector".to_owned(),
        ]
    );
}

#[test]
fn names_of_hosts_and_conditions() {
    let good = json!({"nameservers": ["10.0.0.1", "2001:db8::1"], "searches": ["a.b.", ".", "_tcp.a_b.c"], "options": [{"name": "ndots", "value": "2"}]});
    assert_eq!(told("dnsConfig", good), none());
    let bad = json!({"nameservers": ["1.1.1.1", "x", "1.1.1.1", "1.1.1.1"], "searches": ["A", "b_"], "options": [{"value": "2"}]});
    let ip = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
    assert_eq!(
        told("dnsConfig", bad),
        [
            "FieldValueInvalid spec.dnsConfig.nameservers: Invalid value: [\"1.1.1.1\",\"x\",\"1.1.1.1\",\"1.1.1.1\"]: must not have more than 3 nameservers".to_owned(),
            format!("FieldValueInvalid spec.dnsConfig.nameservers[1]: Invalid value: \"x\": {ip}"),
            format!("FieldValueInvalid spec.dnsConfig.searches[0]: Invalid value: \"A\": {SUBDOMAIN}"),
            format!("FieldValueInvalid spec.dnsConfig.searches[1]: Invalid value: \"b_\": {SUBDOMAIN}"),
            "FieldValueRequired spec.dnsConfig.options[0]: Required value: must not be empty".to_owned(),
        ]
    );
    let many: Vec<String> = (0..33).map(|n| format!("{}{n}", "a".repeat(62))).collect();
    let found = told("dnsConfig", json!({"searches": many}));
    assert!(found[0].ends_with("must not have more than 32 search paths"), "{found:?}");
    assert!(
        found[1].ends_with("must not have more than 2048 characters (including spaces) in the search list"),
        "{found:?}"
    );
    assert_eq!(
        told("dnsPolicy", json!("None")),
        [
            "FieldValueRequired spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"
        ]
    );

    assert_eq!(told("hostAliases", json!([{"ip": "127.0.0.1", "hostnames": ["a", "b.c"]}])), none());
    assert_eq!(
        told("hostAliases", json!([{"ip": "127.0.0.1"}, {"ip": "1.2.3", "hostnames": ["a", "B"]}])),
        [
            format!("FieldValueInvalid spec.hostAliases[1].ip: Invalid value: \"1.2.3\": {ip}"),
            format!("FieldValueInvalid spec.hostAliases[1].hostnames[1]: Invalid value: \"B\": {SUBDOMAIN}"),
        ]
    );
    assert_eq!(told("readinessGates", json!([{"conditionType": "example.com/ready"}])), none());
    assert_eq!(
        told("readinessGates", json!([{"conditionType": "example.com/ready"}, {"conditionType": "a b"}])),
        [format!("FieldValueInvalid spec.readinessGates[1].conditionType: Invalid value: \"a b\": {KEY}")]
    );
}
