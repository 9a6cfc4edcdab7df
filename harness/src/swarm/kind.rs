//! What a swarm may do, each with the name that `--only` and `--without` know it by.

/// A kind of fault or of users' action.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// An operation is refused.
    FailFinal,
    /// An operation is not tried.
    FailTransient,
    /// An operation's connection breaks; it is not done.
    FailUncertain,
    /// An operation times out and was done.
    TimeoutDone,
    /// An operation takes long.
    Slow,
    /// An operation's answer comes late.
    LateAnswer,
    /// An answer comes twice.
    AnswerTwice,
    /// An answer outlives its agent.
    AnswerAfterCrash,
    /// A process takes long over TERM.
    StopSlow,
    /// A process ignores TERM.
    StopIgnored,
    /// A process ends.
    Exit,
    /// A process ends, and so does each that follows it.
    ExitAgain,
    /// A process that has something to finish finishes it.
    Finish,
    /// A probe flips.
    Probe,
    /// A volume or a container takes up space.
    Usage,
    /// A watch delivers late.
    WatchDelayed,
    /// A watch delivers several changes as one.
    WatchCoalesced,
    /// A watch is cut and lists anew.
    WatchDisconnected,
    /// A status write is lost.
    StatusLost,
    /// A status write was done and its answer lost.
    StatusUncertain,
    /// A status write meets a conflict.
    StatusConflict,
    /// The authorizer lags.
    Forbidden,
    /// Secrets and configMaps change.
    ObjectChanged,
    /// Secrets and configMaps go.
    ObjectDeleted,
    /// Secrets and configMaps are there only later.
    ObjectMissing,
    /// Images are absent.
    ImageMissing,
    /// A list of the runtime is partial.
    ListPartial,
    /// A look at the host fails, or comes late.
    ListFailed,
    /// A sandbox dies.
    SandboxDies,
    /// The agent crashes.
    Crash,
    /// The agent crashes while it handles a fact.
    CrashInside,
    /// The agent crashes soon after its start, again and again.
    CrashLoop,
    /// The host reboots.
    Reboot,
    /// Allocatable changes.
    Capacity,
    /// Labels change.
    Labels,
    /// Feature gates change.
    Gates,
    /// The node's clock jumps forward.
    ClockForward,
    /// The node's clock jumps back.
    ClockBack,
    /// The agent's disk is full for a while.
    DiskFull,
    /// Things happen in another order.
    Reorder,
    /// Users create pods.
    Create,
    /// Users change pods through /dynamic.
    Dynamic,
    /// Users resize.
    Resize,
    /// Users add ephemeral containers.
    Ephemeral,
    /// Users update pods: images, labels, deadlines.
    Update,
    /// Users delete pods.
    Delete,
    /// Users delete pods by force.
    ForceDelete,
    /// Users ask for what is not allowed.
    Invalid,
    /// Manifest files come, change and go.
    StaticPod,
}

/// All of them.
pub const ALL: [Kind; 49] = [
    Kind::FailFinal,
    Kind::FailTransient,
    Kind::FailUncertain,
    Kind::TimeoutDone,
    Kind::Slow,
    Kind::LateAnswer,
    Kind::AnswerTwice,
    Kind::AnswerAfterCrash,
    Kind::StopSlow,
    Kind::StopIgnored,
    Kind::Exit,
    Kind::ExitAgain,
    Kind::Probe,
    Kind::Usage,
    Kind::WatchDelayed,
    Kind::WatchCoalesced,
    Kind::WatchDisconnected,
    Kind::StatusLost,
    Kind::StatusUncertain,
    Kind::StatusConflict,
    Kind::Forbidden,
    Kind::ObjectChanged,
    Kind::ObjectDeleted,
    Kind::ObjectMissing,
    Kind::ImageMissing,
    Kind::ListPartial,
    Kind::ListFailed,
    Kind::SandboxDies,
    Kind::Crash,
    Kind::CrashInside,
    Kind::CrashLoop,
    Kind::Reboot,
    Kind::Capacity,
    Kind::Labels,
    Kind::Gates,
    Kind::ClockForward,
    Kind::ClockBack,
    Kind::DiskFull,
    Kind::Reorder,
    Kind::Create,
    Kind::Dynamic,
    Kind::Resize,
    Kind::Ephemeral,
    Kind::Update,
    Kind::Delete,
    Kind::ForceDelete,
    Kind::Invalid,
    Kind::StaticPod,
    Kind::Finish,
];

impl Kind {
    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::FailFinal => "fail-final",
            Kind::FailTransient => "fail-transient",
            Kind::FailUncertain => "fail-uncertain",
            Kind::TimeoutDone => "timeout-done",
            Kind::Slow => "slow",
            Kind::LateAnswer => "late-answer",
            Kind::AnswerTwice => "answer-twice",
            Kind::AnswerAfterCrash => "answer-after-crash",
            Kind::StopSlow => "stop-slow",
            Kind::StopIgnored => "stop-ignored",
            Kind::Exit => "exit",
            Kind::ExitAgain => "exit-again",
            Kind::Finish => "finish",
            Kind::Probe => "probe",
            Kind::Usage => "usage",
            Kind::WatchDelayed => "watch-delayed",
            Kind::WatchCoalesced => "watch-coalesced",
            Kind::WatchDisconnected => "watch-disconnected",
            Kind::StatusLost => "status-lost",
            Kind::StatusUncertain => "status-uncertain",
            Kind::StatusConflict => "status-conflict",
            Kind::Forbidden => "forbidden",
            Kind::ObjectChanged => "object-changed",
            Kind::ObjectDeleted => "object-deleted",
            Kind::ObjectMissing => "object-missing",
            Kind::ImageMissing => "image-missing",
            Kind::ListPartial => "list-partial",
            Kind::ListFailed => "list-failed",
            Kind::SandboxDies => "sandbox-dies",
            Kind::Crash => "crash",
            Kind::CrashInside => "crash-inside",
            Kind::CrashLoop => "crash-loop",
            Kind::Reboot => "reboot",
            Kind::Capacity => "capacity",
            Kind::Labels => "labels",
            Kind::Gates => "gates",
            Kind::ClockForward => "clock-forward",
            Kind::ClockBack => "clock-back",
            Kind::DiskFull => "disk-full",
            Kind::Reorder => "reorder",
            Kind::Create => "create",
            Kind::Dynamic => "dynamic",
            Kind::Resize => "resize",
            Kind::Ephemeral => "ephemeral",
            Kind::Update => "update",
            Kind::Delete => "delete",
            Kind::ForceDelete => "force-delete",
            Kind::Invalid => "invalid",
            Kind::StaticPod => "static-pod",
        }
    }

    /// The kind of that name.
    pub fn named(name: &str) -> Option<Kind> {
        ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Users thereby have something stopped.
    pub const fn stops(self) -> bool {
        matches!(
            self,
            Kind::Delete | Kind::ForceDelete | Kind::Dynamic | Kind::Resize | Kind::Update | Kind::StaticPod
        )
    }

    /// It strikes only while an agent that has just started looks around.
    pub const fn is_in_recovery(self) -> bool {
        matches!(self, Kind::ListPartial | Kind::ListFailed | Kind::CrashLoop)
    }

    /// Users or their processes do it, and it is no fault: `--only` keeps it.
    pub const fn is_action(self) -> bool {
        matches!(
            self,
            Kind::Create
                | Kind::Dynamic
                | Kind::Resize
                | Kind::Ephemeral
                | Kind::Update
                | Kind::Delete
                | Kind::ForceDelete
                | Kind::Invalid
                | Kind::StaticPod
                | Kind::Finish
        )
    }
}
