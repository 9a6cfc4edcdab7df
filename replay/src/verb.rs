//! What evidence says: one word per kind of fact that a node's files can hold (node-logs §2, §4).
//!
//! A verb is finer than the core's vocabulary, since a log also tells intentions, waits and decisions; `project`
//! says which of the core's facts and commands each stands for.

macro_rules! verbs {
    ($($(#[doc = $doc:literal])* $name:ident = $phrase:literal,)*) => {
        /// What a line or object says happened.
        #[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Verb { $($(#[doc = $doc])* $name,)* }

        impl Verb {
            /// Every verb.
            pub const ALL: &'static [Verb] = &[$(Verb::$name,)*];
            /// Its name, as `--json` spells it.
            pub const fn name(self) -> &'static str {
                match self { $(Verb::$name => stringify!($name),)* }
            }
            /// The words of a timeline.
            pub const fn phrase(self) -> &'static str {
                match self { $(Verb::$name => $phrase,)* }
            }
        }
    };
}

verbs! {
    // --- the kubelet and its node --------------------------------------------------------------------------------
    /// A kubelet run begins: one of the lines that only a start prints.
    KubeletStarted = "kubelet started",
    /// systemd started the unit.
    ServiceStarted = "kubelet service started",
    /// systemd says that the unit ended.
    ServiceEnded = "kubelet service ended",
    /// The kubelet refused to start.
    KubeletFailed = "kubelet failed to start",
    /// A Go panic or fatal error.
    KubeletPanicked = "kubelet panicked",
    /// A panic that something caught: it is printed, and then either raised again or passed over.
    PanicCaught = "panic caught",
    /// The kubelet found itself on a host that was booted anew.
    NodeRebooted = "node rebooted",
    /// An allocation or resource state store was made.
    StateStoreReady = "allocation state store initialised",
    /// A checkpoint could not be read.
    CheckpointUnreadable = "checkpoint could not be restored",
    /// A checkpoint file's content.
    CheckpointSeen = "checkpoint read",
    /// The sync loop is held up.
    LoopBlocked = "pod synchronisation skipped",
    /// Somebody cut something out of the input here.
    Gap = "gap in the input",
    // --- the pod's source ----------------------------------------------------------------------------------------
    /// `Receiving a new pod`.
    PodReceived = "new pod received",
    /// SyncLoop ADD.
    PodAdded = "pod added",
    /// SyncLoop UPDATE.
    PodUpdated = "pod updated",
    /// SyncLoop RECONCILE.
    PodReconciled = "pod status reconciled",
    /// SyncLoop DELETE.
    DeleteSeen = "pod delete seen",
    /// SyncLoop REMOVE.
    PodRemoved = "pod removed from source",
    /// Another pod of the same name took its place.
    PodRecreated = "pod was deleted and recreated",
    /// An API object as a watch, list or file shows it.
    PodApplied = "pod object",
    /// The API says that the object is gone.
    PodDeleted = "pod object deleted",
    /// Somebody asked the API for something.
    ApiRequest = "API request",
    /// A mirror pod was made, deleted or refused.
    MirrorPod = "mirror pod changed",
    /// Deleting a mirror pod failed.
    MirrorPodFailed = "mirror pod could not be changed",
    // --- the pod's worker ----------------------------------------------------------------------------------------
    /// The pod's first sync.
    FirstSync = "first sync of the pod",
    /// A sync, or one of its stages, begins.
    SyncEntered = "sync entered",
    /// A sync of a pod that ends begins.
    TerminationSynced = "termination sync entered",
    /// The worker takes an update.
    UpdateProcessed = "update processed",
    /// `Pod cannot start yet` or `ever`.
    StartBlocked = "pod cannot start yet",
    /// Asked to restart under the UID that still ends.
    RestartSameUid = "restart with the same UID requested",
    /// Termination began, and why.
    TerminationBegan = "termination began",
    /// Removal was asked for, but the worker isn't done.
    WorkerNotDone = "worker asked to be removed but not fully terminated",
    /// An orphan that nobody asks for any more.
    PodOrphaned = "pod orphaned",
    /// A sync failed.
    SyncFailed = "sync of the pod failed",
    /// A sync was cancelled.
    SyncCancelled = "sync cancelled",
    /// Containers still run though the pod is over.
    ContainersLeft = "pod terminated but containers still running",
    /// Volumes are still there though the pod is over.
    VolumesLeft = "pod terminated but volumes not cleaned up",
    /// An orphan's volumes are not gone yet.
    OrphanVolumesLeft = "orphaned pod, volumes not yet removed",
    /// All containers of the pod are stopped.
    ContainersStopped = "all containers stopped",
    /// The runtime's states after termination.
    PostTermination = "states after termination",
    /// The volumes' directories are cleaned up.
    PathsCleaned = "volume paths cleaned up",
    /// The pod's cgroups are gone.
    CgroupsRemoved = "pod cgroups removed",
    /// The worker is done.
    WorkerStopped = "pod worker stopped",
    /// `… must be killed`.
    KillOrdered = "pod must be killed",
    /// The phase that the kubelet computed.
    PhaseComputed = "phase computed",
    /// Status generated.
    StatusGenerated = "pod status generated",
    /// Something that the program's own author calls impossible.
    ProgrammerError = "programmer error",
    // --- status --------------------------------------------------------------------------------------------------
    /// A status patch went to the API.
    StatusPatched = "status patched",
    /// The status was written.
    StatusWritten = "status updated",
    /// The final delete waits.
    DeletionDelayed = "pod deletion delayed",
    /// SyncTerminatedPod is done.
    TerminationFinished = "termination finished",
    /// The kubelet's own final delete.
    PodReleased = "pod fully terminated",
    /// A phase went back.
    IllegalTransition = "illegal phase transition attempted",
    // --- volumes -------------------------------------------------------------------------------------------------
    /// VerifyControllerAttachedVolume started.
    VerifyStarted = "verify-attached started",
    /// Controller attach succeeded.
    Attached = "volume attached",
    /// WaitForAttach.
    DeviceWaited = "device waited for",
    /// MountDevice succeeded.
    DeviceMounted = "device mounted",
    /// MountVolume started.
    MountStarted = "mount started",
    /// SetUp succeeded.
    Mounted = "mounted",
    /// SetUp, MountDevice or what comes before them failed.
    MountFailed = "mount failed",
    /// The object or claim behind a volume could not be had.
    VolumeUnresolved = "volume could not be resolved",
    /// UnmountVolume started.
    UnmountStarted = "unmount started",
    /// TearDown succeeded.
    Unmounted = "unmounted",
    /// TearDown failed.
    UnmountFailed = "unmount failed",
    /// UnmountDevice started.
    DeviceUnmountStarted = "device unmount started",
    /// UnmountDevice succeeded.
    DeviceUnmounted = "device unmounted",
    /// UnmountDevice failed.
    DeviceUnmountFailed = "device unmount failed",
    /// The path to unmount was not there.
    PathMissing = "device mount path already missing, unmount skipped",
    /// Left the actual state.
    Detached = "volume detached",
    /// Waits for volumes to mount.
    VolumesAwaited = "waiting for volumes to mount",
    /// All are there.
    VolumesReady = "all volumes ready",
    /// Waits for volumes to unmount.
    UnmountAwaited = "waiting for volumes to unmount",
    /// All are gone.
    VolumesUnmounted = "all volumes unmounted",
    /// They did not go in time.
    UnmountTimedOut = "volumes never unmounted, timed out",
    /// All volumes that pods ask for are known after a start.
    DesiredStateReady = "initial desired state populated",
    /// Volumes did not mount in time.
    VolumesTimedOut = "volumes never mounted, timed out",
    /// Wanted.
    VolumeDesired = "volume added to desired state",
    /// Not wanted any more.
    VolumeUndesired = "volume removed from desired state",
    /// Containers still hold the pod's volumes.
    VolumesHeld = "volumes held by containers",
    /// Found on disk, taken up as uncertain.
    Reconstructed = "volume re-added to state from disk",
    /// Found on disk, can't be told what it is.
    ReconstructFailed = "volume could not be reconstructed",
    /// Its mounts are cleaned by force.
    CleanupStarted = "cleanup of mount points started",
    /// Reconstruction is through.
    ReconstructionDone = "volume reconstruction finished",
    /// Volume expanded, or not.
    Expanded = "volume expansion",
    /// `volume paths are still present`, `failed to rmdir()`.
    OrphanDirLeft = "orphaned pod directory can't be removed",
    /// `Cleaned up orphaned …`.
    OrphanDirCleaned = "orphaned pod directory cleaned up",
    /// A mount appeared in the mount table.
    MountSeen = "mount in the mount table",
    /// It went.
    MountGone = "mount gone from the mount table",
    /// A driver says that there is nothing to unpublish.
    DriverNothingToDo = "driver says there is nothing to unpublish",
    // --- sandboxes and containers --------------------------------------------------------------------------------
    /// A sandbox is missing or changed.
    SandboxNeeded = "sandbox needed",
    /// The sandbox changed and goes.
    SandboxChanged = "sandbox changed",
    /// What computePodActions says.
    Planned = "plan",
    /// The runtime made the sandbox.
    SandboxCreated = "sandbox created",
    /// Its task runs.
    SandboxStarted = "sandbox started",
    /// PLEG saw it run.
    SandboxRunning = "sandbox observed running",
    /// PLEG saw it dead.
    SandboxDead = "sandbox observed dead",
    /// Its task ended.
    SandboxExited = "sandbox exited",
    /// Its stop was asked for.
    SandboxStopRequested = "sandbox stop requested",
    /// It is stopped.
    SandboxStopped = "sandbox stopped",
    /// The stop failed.
    SandboxStopFailed = "sandbox stop failed",
    /// It is removed.
    SandboxRemoved = "sandbox removed",
    /// The image is there.
    ImagePulled = "image present",
    /// The container's create was asked for.
    CreateStarted = "container create started",
    /// It is created.
    ContainerCreated = "container created",
    /// It could not be created.
    CreateFailed = "container create failed",
    /// It is started.
    ContainerStarted = "container started",
    /// It could not be started.
    StartFailed = "container start failed",
    /// PLEG or a listing saw it run.
    ContainerRunning = "container observed running",
    /// PLEG or a listing saw it dead.
    ContainerDead = "container observed dead",
    /// It exited, with its code.
    ContainerExited = "container exited",
    /// PLEG says that it is gone.
    ContainerGone = "container gone from the runtime",
    /// A stop was asked for.
    StopRequested = "container stop requested",
    /// Its grace was overridden.
    GraceOverridden = "grace overridden",
    /// The stop call returned.
    StopReturned = "runtime stop call returned",
    /// The stop call failed.
    StopFailed = "container stop failed",
    /// The runtime was told to stop it.
    RuntimeStop = "runtime stop requested",
    /// The signal went out.
    Signalled = "container signalled",
    /// The kubelet finds it not wanted.
    KillPlanned = "container is to be killed",
    /// preStop began.
    HookStarted = "preStop hook started",
    /// preStop ended.
    HookDone = "preStop hook finished",
    /// The topology manager's bookkeeping, no proof of removal.
    RemovalNoted = "container removal bookkeeping",
    /// Removal was asked for.
    RemoveStarted = "container removal started",
    /// It is removed.
    ContainerRemoved = "container removed",
    /// It was gone already.
    RemoveRaced = "container delete: already gone",
    /// PLEG named a container that the status no longer lists.
    ContainerUnknown = "container not in the pod's status",
    /// A runtime call failed.
    RuntimeFailed = "runtime call failed",
    /// A runtime request of no consequence, which shows that the runtime lives.
    RuntimeRequest = "runtime request",
    /// The pod's network goes.
    NetworkTeardown = "network delete started",
    /// An old docker checkpoint was not found.
    SandboxCheckpointMissing = "sandbox checkpoint not found",
    /// A probe's result flipped.
    ProbeResult = "probe result",
    /// Restarting waits for its back-off.
    BackedOff = "back-off restarting container",
    /// The container's definition changed.
    DefinitionChanged = "container definition changed",
    // --- resources, admission, eviction --------------------------------------------------------------------------
    /// The allocation was recorded.
    Allocated = "allocation recorded",
    /// A resize waits or can't be.
    ResizeRefused = "resize not possible now",
    /// The pod was refused.
    AdmissionDenied = "pod admission denied",
    /// The pod was admitted.
    Admitted = "pod admitted",
    /// The node is short of something.
    EvictionBegan = "eviction began",
    /// The pod is evicted.
    Evicted = "pod evicted",
    /// The node shuts down.
    NodeShutdown = "node shutdown",
    /// A Kubernetes Event of no special kind.
    EventSeen = "event",
}
