//! The numbered rules that a `/dynamic` request is held to, in a few words each, for an account of what was checked. Rules
//! that another one makes (C10, M1, M2, W8, W9) are told as that one.

/// Number and what it asks for, in the order of api-side §1.
pub(super) const DYNAMIC: [(&str, &str); 84] = [
    ("P1", "the pod isn't being deleted"),
    ("P2", "the pod's phase is Running"),
    ("P3", "the pod is initialized"),
    ("P4", "the pod is bound to a node"),
    ("P5", "the pod isn't a static one's mirror"),
    ("P6", "the pod isn't a windows pod"),
    ("P7", "the node reports resources, so it can resize"),
    ("C1", "a container is left"),
    ("C2", "container names are unique"),
    ("C3", "no init or ephemeral container has an added name"),
    ("C4", "no container status has an added name"),
    ("C5", "no removal of an added name is in flight"),
    ("C6", "init containers stay"),
    ("C7", "ephemeral containers stay"),
    ("C8", "no added container is privileged"),
    ("C9", "no added container has a host port"),
    ("C11", "claims exist and stay"),
    ("C12", "only cpu and memory come and go"),
    ("C13", "the QoS class stays"),
    ("C14", "no more containers than allowed"),
    ("M3", "amounts don't disappear"),
    ("M4", "only cpu and memory change"),
    ("M5", "resizePolicy stays"),
    ("M6", "mounts change only under RestartContainer"),
    ("M7", "nothing else of a container that stays changes"),
    ("M8", "activeDeadlineSeconds only shrinks"),
    ("M9", "tolerations are only added"),
    ("M10", "scheduling gates are only removed"),
    ("M12", "the rest of the spec stays"),
    ("M13", "pod-level resources stay, unless their gate is on"),
    ("M14", "metadata that only the server writes stays"),
    ("W1", "an added volume is one of the five sources"),
    ("W2", "volume names are unique"),
    ("W3", "no volume status has an added name"),
    ("W4", "no running container mounts an added name"),
    ("W5", "no removal of an added volume's name is in flight"),
    ("W6", "sources of volumes that stay don't change"),
    ("W7", "a removed volume is one of the five sources"),
    ("W10", "file keys are in an emptyDir"),
    ("W11", "mounts of init containers stay"),
    ("W12", "volumes and mounts stay while their gate is off"),
    ("D3", "dynamicVolumePolicy stays"),
    ("D4", "dynamicVolumePolicy is one that exists"),
    ("D5", "RestartContainer only where restarts are allowed"),
    ("S1", "names are labels"),
    ("S2", "images are named, without spaces around (M1, M2)"),
    ("S3", "imagePullPolicy is one that exists"),
    ("S4", "terminationMessagePolicy is one that exists"),
    ("S5", "ports are well formed"),
    ("S6", "host ports don't clash"),
    ("S7", "variables are named"),
    ("S8", "a variable has one source"),
    ("S9", "envFrom has one source each"),
    ("S10", "mounts have name and path"),
    ("S11", "mounts name a volume (C10, W8, W9)"),
    ("S12", "mount paths are unique"),
    ("S13", "mounts and devices don't clash"),
    ("S14", "sub-paths stay inside"),
    ("S15", "subPath or subPathExpr, not both"),
    ("S16", "mountPropagation is one that exists"),
    ("S17", "Bidirectional only for privileged containers"),
    ("S18", "recursiveReadOnly fits"),
    ("S19", "a volume has one source"),
    ("S20", "sizeLimit isn't negative"),
    ("S21", "secrets and configMaps are named"),
    ("S22", "modes are permission bits"),
    ("S23", "files have keys, and paths inside"),
    ("S24", "a projected source is of one kind"),
    ("S25", "projected paths are unique"),
    ("S26", "a token lives ten minutes to 2^32 seconds"),
    ("S27", "a token has a path inside"),
    ("S28", "a token needs a service account"),
    ("S29", "a trust bundle is named one way"),
    ("S30", "a pod certificate is well formed"),
    ("S31", "an image volume has a reference"),
    ("S32", "resources are well formed"),
    ("S33", "containers fit the pod's requests"),
    ("S34", "no container's limit is above the pod's"),
    ("S35", "probes are well formed"),
    ("S36", "hooks are well formed"),
    ("S37", "restart policies and rules are well formed"),
    ("S38", "security contexts are well formed"),
    ("S39", "privileged only where the server allows it"),
    ("S40", "no windows options on a linux pod"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_rule_is_told_once() {
        let numbers: BTreeSet<&str> = DYNAMIC.iter().map(|(rule, _)| *rule).collect();
        assert_eq!(numbers.len(), DYNAMIC.len());
        // What /dynamic can break: all but rules of other endpoints and of status writes, and those told as another's.
        for number in 1..=40 {
            assert!(numbers.contains(format!("S{number}").as_str()), "S{number}");
        }
        for other in
            ["C10", "C15", "M1", "M2", "M11", "M15", "W8", "W9", "W13", "D1", "D2", "D6", "D7", "S41", "P8"]
        {
            assert!(!numbers.contains(other), "{other}");
        }
    }
}
