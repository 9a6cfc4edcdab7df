//! The kinds of findings, spelled as node-logs §5 spells them; where that list has no word, one of ours in its manner.

use nodefold_model::Invariant;

macro_rules! kinds {
    ($($(#[doc = $doc:literal])* $name:ident = $spelled:literal, $invariant:expr, $race:literal, $meaning:literal;)*) => {
        /// What is wrong.
        #[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind { $($(#[doc = $doc])* $name,)* }

        impl Kind {
            /// Every kind.
            pub const ALL: &'static [Kind] = &[$(Kind::$name,)*];
            /// As reports spell it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Kind::$name => $spelled,)* }
            }
            /// The invariant that it breaks, if it is one of the numbered.
            pub const fn invariant(self) -> Option<Invariant> {
                match self { $(Kind::$name => $invariant,)* }
            }
            /// Where such a thing was seen before: B and V numbers are the race tables' (kubelet-pods §6,
            /// kubelet-volumes §5), N numbers the public reports' of node-logs §3.
            pub const fn race(self) -> &'static str {
                match self { $(Kind::$name => $race,)* }
            }
            /// What it means, in one sentence.
            pub const fn meaning(self) -> &'static str {
                match self { $(Kind::$name => $meaning,)* }
            }
        }
    };
}

use Invariant::{L1, L2, L3, L4, S1, S2, S6, S7, S8, S10, S12, S13, S14, S15};

kinds! {
    /// Teardown under a running container.
    UnmountedWhileRunning = "volume-unmounted-while-container-running", Some(S1), "V1, V2, B15 (N1, N2)",
        "a volume was taken down while a container that mounts it still ran: the container writes into nothing, or its data is gone";
    /// Teardown before a start.
    UnmountedBeforeStart = "volume-unmounted-before-container-start", Some(S2), "B14 (N3)",
        "a volume was taken down and then a container that mounts it was started: it fails, or runs without its data";
    /// A start without its volume.
    StartWithoutVolume = "container-start-without-volume", Some(S2), "B14 (N4, N5)",
        "a container was started although a volume that it mounts was not there";
    /// A container made for a pod that ends.
    CreatedAfterDelete = "container-created-after-delete", Some(S7), "B14 (N3)",
        "a container was made although the node had already seen that its pod is deleted";
    /// A pod that doesn't go.
    StuckTerminating = "pod-stuck-terminating", Some(L3), "B7, V24 (N16, N17, N34)",
        "the pod's end was asked for and its grace is long over, but the node can't let it go";
    /// Unmounts fail and fail.
    UnmountFailed = "volume-unmount-failed", Some(L2), "V9 (N17-N20)",
        "a volume can't be taken down: something holds it, or what is needed to take it down is lost";
    /// Unstaging fails.
    DeviceUnmountBlocked = "device-unmount-blocked", Some(L2), "V14 (N31-N33)",
        "the node-wide mount or the device behind a volume can't be released, so it can't be used elsewhere";
    /// A directory that stays.
    OrphanedPodDir = "orphaned-pod-dir", Some(S13), "V10 (N23-N27)",
        "the directory of a pod that is gone can't be removed, because something of its volumes is left in it";
    /// A volume that a restart forgot.
    ReconstructionFailed = "reconstruction-failed", Some(L2), "V3 (N28, N29)",
        "after a restart a volume on disk could not be taken up again, so nothing will take it down properly";
    /// A mount that nobody owns.
    VolumeOrphaned = "volume-orphaned", Some(S13), "V3, V10 (N28, N29)",
        "the pod is gone while its volume is still mounted, and nothing tracks the volume any more";
    /// A leftover taken for a volume.
    ReconstructionArtifact = "reconstruction-artifact", Some(S13), "V3 (N21, N22)",
        "a directory that a failed removal had renamed was taken for a volume of its own";
    /// A static pod that can't replace the former.
    StaticReplacementBlocked = "static-pod-replacement-blocked", Some(L1), "B6 (N6-N8)",
        "the new life of a static pod waits for the former one, which never ends";
    /// A static pod that came again and was not started.
    UidReuseNotRestarted = "uid-reuse-not-restarted", Some(L1), "B6 (N9)",
        "a static pod came back with the UID that was still ending and was never started again";
    /// Two at once.
    DuplicateContainer = "duplicate-container", Some(S6), "B27, B9 (N10)",
        "two instances of one container name were alive at once, on the same data";
    /// A pod that waits for volumes in vain.
    VolumeWaitStuck = "volume-wait-stuck", Some(L1), "V27 (N7, N38)",
        "the pod waits for volumes that were not mounted in time, and nothing in view will mount them";
    /// A stop that takes too long.
    GraceExceeded = "grace-period-exceeded", Some(S15), "B20, B24 (N44)",
        "a container's stop took longer than its grace allows";
    /// A grace below zero.
    InvalidGrace = "invalid-grace-period", Some(S15), "B24",
        "a stop was asked for with a negative grace, which a runtime may take for no limit at all";
    /// A terminal phase told late.
    TerminalStatusLate = "terminal-status-late", Some(S14), "B13, B22 (N44)",
        "all containers had ended, but the pod's terminal phase was told much later";
    /// A stop that never returns.
    RuntimeStopStalled = "runtime-stop-stalled", Some(L2), "(N41, N42)",
        "the runtime did not answer a stop in time: what waits behind it is blocked too";
    /// A sandbox that stays.
    SandboxLeak = "sandbox-leak", Some(L2), "B7 (N13, N14)",
        "the runtime still has a sandbox that no pod needs";
    /// A container of nobody's.
    UnknownPodContainer = "container-of-unknown-pod", Some(S8), "B7 (N15)",
        "a container runs for a pod that is gone from its source";
    /// A state file that can't be read.
    CheckpointCorrupt = "checkpoint-corrupt", None, "(N40)",
        "a state file of the kubelet can't be read, and the kubelet refuses to start with it";
    /// A panic.
    KubeletCrash = "kubelet-crash", None, "(N40)",
        "the kubelet ended by a panic: what happened until its next start nobody watched";
    /// A driver that forgot.
    DriverStateMismatch = "driver-state-mismatch", Some(S13), "V9 (N39)",
        "a volume was reported gone, but its mount is still there";
    /// A stop that needs what it stops.
    RestartDelayed = "restart-delayed", Some(L1), "(N12)",
        "a static pod's restart waited for an API that needs that very pod";
    /// Staging what is staged.
    RestageAfterRestart = "restage-after-restart", Some(S12), "V7 (N35)",
        "after a restart a device was staged again on a path where it was already mounted";
    /// Mounts without end.
    MountLoop = "mount-loop", Some(L4), "V28 (N36)",
        "the same volume is mounted again and again without an unmount between";
    /// An error without a back-off.
    LogFlood = "log-flood", Some(L4), "V23 (N30)",
        "the same failure is tried again without any back-off and floods the log";
    /// Many sandboxes at once.
    SandboxChangedBurst = "sandbox-changed", Some(L4), "(N43)",
        "many pods' sandboxes were found changed within a minute: a runtime's restart restarts the whole node's pods";
    /// A release before the end.
    ReleasedWhileRunning = "pod-released-while-container-running", Some(S8), "B28, B7",
        "the pod was released although nothing shows that one of its containers had ended";
    /// An exit that the kubelet never saw.
    ExitLost = "exit-lost", Some(S14), "B28, B34",
        "the runtime says that a container ended, but the kubelet never noticed";
    /// A phase that went back.
    IllegalTransition = "illegal-phase-transition", Some(S10), "B10, B12",
        "a pod's phase was to go back from a terminal one";
    /// What the oracles say of nodefold's own journal.
    InvariantBroken = "invariant-broken", None, "",
        "the oracles of the numbered invariants say so of the journal's own facts and commands";
    /// What the program itself calls impossible.
    ProgrammerError = "programmer-error", None, "",
        "the kubelet met a state that its authors had ruled out";
}
