//! C1–C15: the set of containers.

use super::*;

pub fn rows() -> Vec<Row> {
    let init = |name: &str| with(spec(json!([app()])), json!({"initContainers": [c("i1"), c(name)]}));
    let claims = || json!({"resourceClaims": [{"name": "gpu", "resourceClaimName": "g"}]});
    let burstable = || spec(json!([with(app(), requests("1")), c("b")]));
    let guaranteed = json!({"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}});
    vec![
        row("C1", "one is left").spec(two()).dynamic(removing("b"), OK),
        row("C1", "none is left").dynamic(removing("app"), &[("spec.containers", REQUIRED)]),
        row("C2", "two new names").dynamic(json!({"containers": [c("x"), c("y")]}), OK),
        row("C2", "twice the same").whole(
            |p| p["spec"]["containers"] = json!([app(), c("x"), c("x")]),
            &[("spec.containers[2].name", DUPLICATE)],
        ),
        row("C3", "another name than an init container's").spec(init("i2")).dynamic(adding(json!({})), OK),
        row("C3", "an init container's name")
            .spec(init("new"))
            .status(|s| s["initContainerStatuses"] = json!([]))
            .dynamic(adding(json!({})), &[("spec.initContainers[1].name", DUPLICATE)]),
        row("C3", "an init container's name, and its status's").spec(init("new")).dynamic(
            adding(json!({})),
            &[("spec.containers[0].name", DUPLICATE), ("spec.initContainers[1].name", DUPLICATE)],
        ),
        row("C4", "kept names are exempt").dynamic(adding(json!({})), OK),
        row("C4", "in containerStatuses")
            .status(|s| {
                s["containerStatuses"] = json!([{"name": "new", "state": {"terminated": {"exitCode": 0}}}])
            })
            .dynamic(adding(json!({})), &[("spec.containers[0].name", DUPLICATE)]),
        row("C4", "in initContainerStatuses")
            .status(|s| s["initContainerStatuses"] = json!([{"name": "new"}]))
            .dynamic(adding(json!({})), &[("spec.containers[0].name", DUPLICATE)]),
        row("C4", "in ephemeralContainerStatuses")
            .status(|s| s["ephemeralContainerStatuses"] = json!([{"name": "new"}]))
            .dynamic(adding(json!({})), &[("spec.containers[0].name", DUPLICATE)]),
        row("C5", "another was removed")
            .spec(two())
            .before(vec![removing("b")])
            .dynamic(adding(json!({})), OK),
        row("C5", "removed, not observed")
            .before(vec![adding(json!({})), removing("new")])
            .dynamic(adding(json!({"image": "other"})), &[("spec.containers[0].name", DUPLICATE)]),
        row("C6", "init containers as they are")
            .spec(init("i2"))
            .whole(|p| p["metadata"]["labels"] = json!({"a": "b"}), OK),
        row("C6", "added")
            .spec(init("i2"))
            .dynamic(json!({"initContainers": [c("i3")]}), &[("spec.initContainers", FORBIDDEN)]),
        row("C6", "removed").spec(init("i2")).dynamic(
            json!({"initContainers": [{"name": "i1", "$patch": "delete"}]}),
            &[("spec.initContainers", FORBIDDEN)],
        ),
        row("C6", "reordered").spec(init("i2")).whole(
            |p| p["spec"]["initContainers"].as_array_mut().into_iter().for_each(|l| l.reverse()),
            &[("spec.initContainers", FORBIDDEN)],
        ),
        row("C7", "none, as before").dynamic(adding(json!({})), OK),
        row("C7", "added")
            .dynamic(json!({"ephemeralContainers": [c("e")]}), &[("spec.ephemeralContainers", FORBIDDEN)]),
        row("C8", "not privileged").dynamic(adding(json!({"securityContext": {"privileged": false}})), OK),
        row("C8", "privileged").dynamic(
            adding(json!({"securityContext": {"privileged": true}})),
            &[("spec.containers[0].securityContext.privileged", FORBIDDEN)],
        ),
        row("C8", "a kept one may be")
            .spec(spec(json!([with(app(), json!({"securityContext": {"privileged": true}}))])))
            .dynamic(adding(json!({})), OK),
        row("C9", "a container port").dynamic(adding(json!({"ports": [{"containerPort": 80}]})), OK),
        row("C9", "a host port").dynamic(
            adding(json!({"ports": [{"containerPort": 80}, {"containerPort": 81, "hostPort": 81}]})),
            &[("spec.containers[0].ports[1].hostPort", FORBIDDEN)],
        ),
        row("C9", "host network makes any port one")
            .spec(with(spec(json!([app()])), json!({"hostNetwork": true})))
            .dynamic(
                adding(json!({"ports": [{"containerPort": 80}]})),
                &[("spec.containers[0].ports[0].hostPort", FORBIDDEN)],
            ),
        row("C10", "an existing volume").spec(mounting(None)).dynamic(adding(mount("v", "/v")), OK),
        row("C10", "a volume of the same request")
            .dynamic(with(adding(mount("n", "/n")), json!({"volumes": [{"name": "n", "emptyDir": {}}]})), OK),
        row("C10", "no such volume")
            .dynamic(adding(mount("n", "/n")), &[("spec.containers[0].volumeMounts[0].name", NOT_FOUND)]),
        row("C11", "an existing claim")
            .spec(with(spec(json!([app()])), claims()))
            .dynamic(adding(json!({"resources": {"claims": [{"name": "gpu"}]}})), OK),
        row("C11", "no such claim").dynamic(
            adding(json!({"resources": {"claims": [{"name": "gpu"}]}})),
            &[("spec.containers[0].resources.claims[0]", NOT_FOUND)],
        ),
        row("C11", "a new claim").dynamic(claims(), &[("spec.resourceClaims", FORBIDDEN)]),
        row("C12", "cpu and memory")
            .spec(burstable())
            .dynamic(adding(json!({"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}})), OK),
        row("C12", "others").spec(burstable()).dynamic(
            adding(json!({"resources": {"requests": {"cpu": "1", "ephemeral-storage": "1Gi"},
                "limits": {"hugepages-2Mi": "2Mi"}}})),
            &[
                ("spec.containers[0].resources.requests[ephemeral-storage]", FORBIDDEN),
                ("spec.containers[0].resources.requests[hugepages-2Mi]", FORBIDDEN),
            ],
        ),
        row("C12", "removal of one that holds another")
            .spec(spec(json!([
                app(),
                with(c("gpu"), json!({"resources": {"limits": {"example.com/gpu": "1"}}}))
            ])))
            .dynamic(removing("gpu"), &[("spec.containers", FORBIDDEN)]),
        row("C13", "Burstable stays").spec(burstable()).dynamic(adding(requests("2")), OK),
        row("C13", "BestEffort becomes Burstable").dynamic(adding(requests("1")), &[("spec", INVALID)]),
        row("C13", "removal makes BestEffort")
            .spec(spec(json!([c("b"), with(app(), requests("1"))])))
            .dynamic(removing("app"), &[("spec", INVALID)]),
        row("C13", "Guaranteed gets one without resources")
            .spec(spec(json!([with(app(), guaranteed.clone())])))
            .dynamic(adding(json!({})), &[("spec", INVALID)]),
        row("C13", "an envelope never flips")
            .spec(with(spec(json!([app()])), guaranteed))
            .dynamic(adding(json!({})), OK),
        row("C14", "within the cap").config(|c| c.max_containers = Some(2)).dynamic(adding(json!({})), OK),
        row("C14", "beyond it")
            .config(|c| c.max_containers = Some(1))
            .dynamic(adding(json!({})), &[("spec.containers", TOO_MANY)]),
        row("C15", "reordered")
            .spec(two())
            .whole(|p| p["spec"]["containers"].as_array_mut().into_iter().for_each(|l| l.reverse()), OK),
    ]
}
