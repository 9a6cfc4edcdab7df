//! Kubernetes' CEL libraries, by the examples of its documentation and of cel-go's; and what is said of an expression that needs more.

use super::*;
use nodefold_api::{ApiEvent, Body, Request};

/// A policy over every change of a pod that checks all of these.
fn checking(expressions: &[&str]) -> World {
    let validations: Vec<Value> = expressions.iter().map(|e| json!({"expression": e})).collect();
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods", "pods/*"]});
    let policy = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"}, "spec": {"matchConstraints": {"resourceRules": [rule]}, "validations": validations}});
    let binding = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}});
    let mut world = world_with(ApiConfig::default(), plain(), &[]);
    for manifest in [policy, binding] {
        assert!(world.create_any(manifest).is_ok());
    }
    world
}

fn hold(expressions: &[&str]) {
    let answer = checking(expressions).dynamic(new_container());
    assert!(answer.is_ok(), "{answer:?}");
}

fn fail(expression: &str, told: &str) {
    let status = refusal(checking(&[expression]).dynamic(new_container()));
    assert!(status.message.contains("resulted in error"), "{expression}: {}", status.message);
    assert!(status.message.contains(told), "{expression}: {}", status.message);
}

#[test]
fn urls() {
    hold(&[
        "url('https://example.com:80/').getHost() == 'example.com:80'",
        "url('https://example.com/path with spaces/').getEscapedPath() == '/path%20with%20spaces/'",
        "url('https://example.com/path').getScheme() == 'https'",
        "url('/absolute-path').getScheme() == ''",
        "url('https://[::1]:80/').getHost() == '[::1]:80'",
        "url('https://[::1]:80/').getHostname() == '::1'",
        "url('https://user:pass@example.com:80/path?query=val').getHostname() == 'example.com'",
        "url('https://example.com/').getPort() == ''",
        "url('https://example.com:80/').getPort() == '80'",
        "url('https://example.com/path?k1=a&k2=b&k2=c').getQuery() == {'k1': ['a'], 'k2': ['b', 'c']}",
        "url('https://example.com/path?key with spaces=value with spaces').getQuery() == {'key with spaces': ['value with spaces']}",
        "url('https://example.com/path?').getQuery() == {}",
        "url('/path').getHost() == '' && url('/path').getHostname() == ''",
        "url('https://example.com/a%2Fb').getEscapedPath() == '/a%2Fb'",
        "url('HTTPS://example.com/a') == url('https://example.com/a')",
        "isURL('https://user:pass@example.com:80/path?query=val#fragment')",
        "isURL('/absolute-path')",
        "!isURL('https://a:b:c/')",
        "!isURL('../relative-path')",
        "!isURL('https://example.com/%zz')",
        "!isURL('')",
        "!isURL('https://exa mple.com/')",
    ]);
    fail("url('../relative').getHost() == ''", "URL parse error during conversion from string");
}

#[test]
fn addresses_and_networks() {
    hold(&[
        "isIP('127.0.0.1') && isIP('::1') && isIP('2001:db8::abcd')",
        "!isIP('127.0.0.256') && !isIP(':::1') && !isIP('fe80::1%eth0') && !isIP('::ffff:1.2.3.4') && !isIP('01.2.3.4')",
        "ip('127.0.0.1') == ip('127.0.0.1') && ip('2001:db8::abcd') == ip('2001:DB8::ABCD')",
        "ip.isCanonical('127.0.0.1') && ip.isCanonical('2001:db8::abcd') && !ip.isCanonical('2001:DB8::ABCD')",
        "!ip.isCanonical('2001:db8:0:0:0:0:0:abcd')",
        "ip('127.0.0.1').family() == 4 && ip('::1').family() == 6",
        "ip('0.0.0.0').isUnspecified() && ip('::').isUnspecified() && !ip('127.0.0.1').isUnspecified()",
        "ip('127.0.0.1').isLoopback() && ip('::1').isLoopback() && !ip('1.2.3.4').isLoopback()",
        "ip('224.0.0.1').isLinkLocalMulticast() && !ip('224.0.1.1').isLinkLocalMulticast() && ip('ff02::1').isLinkLocalMulticast()",
        "ip('169.254.169.254').isLinkLocalUnicast() && !ip('192.168.0.1').isLinkLocalUnicast() && ip('fe80::1').isLinkLocalUnicast()",
        "ip('192.168.0.1').isGlobalUnicast() && !ip('255.255.255.255').isGlobalUnicast() && ip('2001:db8::abcd').isGlobalUnicast()",
        "!ip('ff00::1').isGlobalUnicast()",
        "string(ip('192.168.0.1')) == '192.168.0.1'",
        "isCIDR('192.168.0.0/16') && isCIDR('::1/128') && !isCIDR('192.168.0.0/33') && !isCIDR('::1/129') && !isCIDR('1.2.3.4')",
        "cidr('192.168.0.0/24').containsIP(ip('192.168.0.1')) && !cidr('192.168.0.0/24').containsIP(ip('192.168.1.1'))",
        "cidr('192.168.0.0/24').containsIP('192.168.0.1') && !cidr('192.168.0.0/24').containsIP('::1')",
        "cidr('192.168.0.0/16').containsCIDR(cidr('192.168.10.0/24')) && !cidr('192.168.1.0/24').containsCIDR('192.168.2.0/24')",
        "cidr('192.168.0.0/16').containsCIDR('192.168.0.0/16') && !cidr('192.168.0.0/24').containsCIDR('192.168.0.0/16')",
        "cidr('192.168.0.0/24').ip() == ip('192.168.0.0')",
        "cidr('192.168.0.1/24').masked() == cidr('192.168.0.0/24') && cidr('1.2.3.4/0').masked() == cidr('0.0.0.0/0')",
        "cidr('192.168.0.0/16').prefixLength() == 16 && cidr('::1/80').prefixLength() == 80",
        "string(cidr('192.168.0.1/24')) == '192.168.0.1/24'",
        "cidr('2001:db8::/32').containsIP('2001:db8:ffff::1') && cidr('::/0').containsCIDR('fe80::/10')",
    ]);
    fail("ip('nonsense').family() == 4", "parse error during conversion from string");
    fail("cidr('1.2.3.4/99').prefixLength() == 4", "network address");
}

#[test]
fn quantities_versions_and_expressions() {
    hold(&[
        "quantity('500000G').isInteger() && !quantity('50k').isInteger() == false && quantity('50k').asInteger() == 50000",
        "quantity('150Mi').isGreaterThan(quantity('100Mi')) && quantity('50k').isLessThan(quantity('1M'))",
        "quantity('200M').compareTo(quantity('0.2G')) == 0 && quantity('50k').add(20) == quantity('50020')",
        "quantity('50k').sub(quantity('10k')).sub(-5) == quantity('40005') && quantity('-3').sign() == -1",
        "isQuantity('1.3Gi') && !isQuantity('1.3GI') && !isQuantity('')",
        "isSemver('1.0.0') && !isSemver('v1.0') && !isSemver('hello') && !isSemver('200K')",
        "isSemver('v1.0', true) && semver('v01.01', true) == semver('1.1.0') && !isSemver('v1.0', false)",
        "semver('1.2.3').compareTo(semver('1.2.3')) == 0 && semver('1.2.3').compareTo(semver('2.0.0')) == -1",
        "semver('1.2.3').isGreaterThan(semver('1.2.0')) && semver('1.9.0').isLessThan(semver('1.10.0'))",
        "semver('1.2.3').major() == 1 && semver('1.2.3').minor() == 2 && semver('1.2.3').patch() == 3",
        "semver('1.0.0-alpha').isLessThan(semver('1.0.0')) && semver('1.0.0+x') == semver('1.0.0+y')",
        "'abc 123'.find('[0-9]+') == '123' && 'abc'.find('[0-9]+') == ''",
        "'123 abc 456'.findAll('[0-9]+') == ['123', '456'] && '1 2 3'.findAll('[0-9]', 2) == ['1', '2'] && 'a'.findAll('b') == []",
    ]);
    fail("semver('1.0') == semver('1.0.0')", "semver");
}

#[test]
fn lists_and_sets() {
    hold(&[
        "[1, 3].isSorted() && ['a', 'b', 'c'].isSorted() && [2.0, 1.0].isSorted() == false && [].isSorted()",
        "[1, 3].sum() == 4 && [1.0, 3.0].sum() == 4.0 && [].sum() == 0 && [1u, 2u].sum() == 3u",
        "[1, 3].min() == 1 && [1, 3].max() == 3 && ['b', 'a'].min() == 'a'",
        "[1, 2, 2, 3].indexOf(2) == 1 && ['a', 'b', 'b', 'c'].lastIndexOf('b') == 2 && [1].indexOf(9) == -1",
        "[duration('1s'), duration('1m1s')].sum() == duration('62s')",
        "sets.contains([], []) && !sets.contains([], [1]) && sets.contains([1, 2, 3, 4], [2, 3])",
        "sets.equivalent([], []) && sets.equivalent([1], [1, 1]) && sets.equivalent([1, 2, 3], [3u, 2.0, 1])",
        "!sets.intersects([1], []) && sets.intersects([1], [1, 2]) && sets.intersects([[1], [2, 3]], [[1, 2], [2, 3.0]])",
        "object.spec.containers.map(c, c.name).isSorted() == false",
        "sets.contains(object.spec.containers.map(c, c.name), ['app'])",
    ]);
    fail("[].min() == 1", "min called on empty list");
    fail("[1, 'a'].isSorted()", "no matching overload");
}

#[test]
fn formats() {
    hold(&[
        "!format.dns1123Label().validate('my-label-name').hasValue()",
        "format.dns1123Label().validate('contains a space').value()[0].startsWith('a lowercase RFC 1123 label must consist')",
        "format.dns1123Label().validate('must-be-less-than-64-characters-long-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa').hasValue()",
        "!format.dns1123Subdomain().validate('apiextensions.k8s.io').hasValue() && format.dns1123Subdomain().validate('a..b').hasValue()",
        "!format.qualifiedName().validate('apiextensions.k8s.io/v1beta1').hasValue() && format.qualifiedName().validate('a/b/c').hasValue()",
        "!format.dns1123LabelPrefix().validate('my-label-prefix-').hasValue() && format.dns1123LabelPrefix().validate('-a').hasValue()",
        "!format.dns1123SubdomainPrefix().validate('mysubdomain.prefix.-').hasValue()",
        "!format.dns1035LabelPrefix().validate('my-label-prefix-').hasValue() && format.dns1035Label().validate('1a').hasValue()",
        "!format.labelValue().validate('my-cool-label-Value').hasValue() && format.labelValue().validate('a b').hasValue()",
        "!format.uri().validate('http://example.com').hasValue() && format.uri().validate('relative').hasValue()",
        "!format.uuid().validate('123e4567-e89b-12d3-a456-426614174000').hasValue() && format.uuid().validate('x').hasValue()",
        "!format.byte().validate('aGVsbG8=').hasValue() && format.byte().validate('%').hasValue()",
        "!format.date().validate('2021-01-01').hasValue() && format.date().validate('2021-13-01').hasValue()",
        "!format.datetime().validate('2021-01-01T00:00:00Z').hasValue() && format.datetime().validate('2021-01-01').hasValue()",
        "format.named('dns1123Label').hasValue() && !format.named('unknown').hasValue()",
        "!format.named('dns1123Label').value().validate('name').hasValue()",
    ]);
}

#[test]
fn optional_values_times_and_keys() {
    hold(&[
        "object.?spec.?nothing.orValue('none') == 'none' && object.spec.?containers[?0].?name.orValue('') == 'new'",
        "[?object.?nothing, ?object.metadata.?name] == ['web'] && {?'a': object.?nothing} == {}",
        "optional.of(1).hasValue() && !optional.none().hasValue() && optional.ofNonZeroValue('').hasValue() == false",
        "timestamp(object.metadata.creationTimestamp) < timestamp('2200-01-01T00:00:00Z')",
        "duration('1h') > duration('59m') && timestamp('2026-01-02T00:00:00Z').getFullYear() == 2026",
        "jsonpatch.escapeKey('k8s.io/my~label') == 'k8s.io~1my~0label'",
        "'TacoCat'.lowerAscii() == 'tacocat' && 'a,b'.split(',') == ['a', 'b'] && '%d'.format([3]) == '3'",
        "math.greatest(1, 2) == 2 && [3, 1].sort() == [1, 3] && [[1], [2]].flatten() == [1, 2]",
    ]);
}

#[test]
fn roles_answer_the_authorizer() {
    let expressions = [
        "authorizer.group('').resource('pods').subresource('dynamic').namespace('default').name('web').check('patch').allowed()",
        "!authorizer.group('').resource('pods').namespace('other').check('patch').allowed()",
        "authorizer.requestResource.check('patch').allowed() && !authorizer.requestResource.check('delete').allowed()",
        "authorizer.requestResource.check('patch').reason().contains('RoleBinding')",
        "!authorizer.requestResource.check('patch').errored() && authorizer.requestResource.check('patch').error() == ''",
        "authorizer.path('/version').check('get').allowed() && !authorizer.path('/metrics').check('get').allowed()",
        "authorizer.serviceAccount('default', 'robot').group('').resource('secrets').namespace('default').check('get').allowed()",
        "!authorizer.group('').resource('secrets').namespace('default').check('get').allowed()",
        "authorizer.group('').resource('pods').subresource('dynamic').namespace('default').fieldSelector('a=b').check('patch').allowed()",
    ];
    let role = |name: &str, resource: &str, verb: &str| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name, "namespace": "default"},
            "rules": [{"apiGroups": [""], "resources": [resource], "verbs": [verb]}]})
    };
    let binding = |name: &str, subject: Value| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": name, "namespace": "default"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}, "subjects": [subject]})
    };
    let mut world = checking(&expressions);
    for manifest in [
        role("patcher", "pods/dynamic", "patch"),
        binding("patcher", json!({"kind": "Group", "name": "devs"})),
        role("reader", "secrets", "get"),
        binding("reader", json!({"kind": "ServiceAccount", "name": "robot", "namespace": "default"})),
    ] {
        assert!(world.create_any(manifest).is_ok());
    }
    // By a group that the user's name doesn't tell.
    let body = Body::StrategicMerge(new_container());
    let request = Request::Dynamic { namespace: "default".into(), name: "web".into(), body };
    let mut event = ApiEvent::new(world.now, request, "jane");
    event.user.groups.push("devs".into());
    event.user.extra.insert("scopes".into(), vec!["all".into()]);
    assert_eq!(ApiEvent::from_bytes(&event.to_bytes()).expect("its own bytes"), event);
    let answer = world.api.apply(&event);
    assert!(answer.is_ok(), "{answer:?}");
    let mut stranger = event.clone();
    stranger.user = nodefold_api::admission::attributes::User::named("jane");
    let told = String::from_utf8(stranger.to_bytes()).expect("JSON");
    assert!(told.contains("\"user\":\"jane\""), "a name that says everything is all that is written: {told}");
}

#[test]
fn groups_uid_and_extra_are_seen_by_policies() {
    let mut world = checking(&[
        "'devs' in request.userInfo.groups && request.userInfo.uid == 'u-7' && request.userInfo.extra['scopes'] == ['all']",
    ]);
    let body = Body::StrategicMerge(new_container());
    let request = Request::Dynamic { namespace: "default".into(), name: "web".into(), body };
    let mut event = ApiEvent::new(world.now, request, "jane");
    event.user.groups.push("devs".into());
    event.user.uid = "u-7".into();
    event.user.extra.insert("scopes".into(), vec!["all".into()]);
    let answer = world.api.apply(&event);
    assert!(answer.is_ok(), "{answer:?}");
}

#[test]
fn what_an_expression_needs_and_nobody_has_is_told_loudly() {
    for (expression, lacking) in [
        ("[1].transformList(i, x, i) == [0]", "doesn't have: "),
        ("nobodyHasThis(object)", "doesn't have: nobodyHasThis"),
        ("acme.Thing{a: 1} == null", "doesn't have: objects of type acme.Thing"),
        ("object.spec.", "compilation failed"),
    ] {
        fail(expression, lacking);
    }
}
