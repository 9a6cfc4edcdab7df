//! One volume instance as a trace tells it: whether anything of it may be on the host, and whether it is whole.

use nodefold_core::event::ErrorClass;
use nodefold_core::ids::{OpId, VolumeId};
use nodefold_core::spec::Volume;
use std::sync::Arc;

/// What is known of a volume on the host.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// Nothing of it is there, and it may still be mounted.
    Absent,
    /// A first mount is under way.
    Mounting,
    /// It is mounted, whole.
    Ready,
    /// Something of it may be there: a cut-off or uncertain operation, a reboot, a failed unmount.
    Uncertain,
    /// It was found there; the trace doesn't tell how it came.
    FoundOnly,
    /// Its unmount is under way.
    Unmounting,
    /// It is gone for good.
    Gone,
}

/// A volume instance.
#[derive(Clone, Debug)]
pub struct VolumeView {
    /// Which.
    pub id: VolumeId,
    /// What it is made from, if a mount of it is in the trace.
    pub spec: Option<Arc<Volume>>,
    /// What is known of it.
    pub host: Host,
    /// The record that says so.
    pub host_index: usize,
    /// The latest command on it.
    pub commanded: usize,
    /// An operation may have left something behind, so that a failed mount proves no absence.
    pub touched: bool,
    /// The record that shows its removal allocated.
    pub removed: Option<usize>,
    /// The first desired version without it, or with another source under its name.
    pub changed: Option<usize>,
    /// The first unmount commanded in this life of the mount.
    pub unmount: Option<usize>,
    /// The record since which it may be Pending again: a reboot or an observation that it is lost (S10).
    pub reset: Option<usize>,
    /// The record of its latest successful mount since the latest reset.
    pub mounted: Option<usize>,
    /// The agent's end left this unmount unanswered: only an observation permits to repeat it.
    pub unanswered: Option<usize>,
    /// The operation that wrote to it last, as its answer told: the same answer again is no news (S13).
    pub written_by: Option<OpId>,
}

impl VolumeView {
    /// A volume that record `index` speaks of first.
    pub fn new(id: VolumeId, host: Host, index: usize) -> VolumeView {
        VolumeView {
            id,
            spec: None,
            host,
            host_index: index,
            commanded: index,
            touched: host == Host::FoundOnly,
            removed: None,
            changed: None,
            unmount: None,
            reset: None,
            mounted: None,
            unanswered: None,
            written_by: None,
        }
    }

    /// Whether anything of it may be on the host.
    pub fn may_be_on_host(&self) -> bool {
        match self.host {
            Host::Absent | Host::Gone => false,
            Host::Mounting | Host::Ready | Host::Uncertain | Host::FoundOnly | Host::Unmounting => true,
        }
    }

    /// Whether the trace proves that it isn't whole.
    pub fn provably_not_ready(&self) -> bool {
        match self.host {
            Host::Ready | Host::FoundOnly => false,
            Host::Absent | Host::Mounting | Host::Uncertain | Host::Unmounting | Host::Gone => true,
        }
    }

    /// A state in words.
    pub fn host_in_words(&self) -> &'static str {
        match self.host {
            Host::Absent => "not mounted",
            Host::Mounting => "still being mounted",
            Host::Ready => "mounted",
            Host::Uncertain => "in an uncertain state",
            Host::FoundOnly => "found on the host",
            Host::Unmounting => "being unmounted",
            Host::Gone => "gone",
        }
    }

    fn turn(&mut self, host: Host, index: usize) {
        if self.host != host {
            self.host = host;
            self.host_index = index;
        }
    }

    /// A mount was commanded. A mounted volume stays whole while it is set up again.
    pub fn mount_commanded(&mut self, spec: &Arc<Volume>, index: usize) {
        self.spec = Some(spec.clone());
        self.commanded = index;
        if self.host != Host::Ready {
            self.turn(Host::Mounting, index);
        }
    }

    /// A mount succeeded.
    pub fn mount_succeeded(&mut self, index: usize) {
        self.turn(Host::Ready, index);
        self.touched = true;
        self.mounted = Some(index);
    }

    /// A mount failed. Only a final failure of something never touched proves absence (kubelet-volumes I3), and
    /// what was whole stays whole (I6).
    pub fn mount_failed(&mut self, class: ErrorClass, index: usize) {
        match class {
            ErrorClass::Uncertain => self.touched = true,
            ErrorClass::Final | ErrorClass::Transient => {}
        }
        if self.host == Host::Mounting {
            self.turn(if self.touched { Host::Uncertain } else { Host::Absent }, index);
        }
    }

    /// An unmount was commanded.
    pub fn unmount_commanded(&mut self, index: usize) {
        self.commanded = index;
        self.unmount.get_or_insert(index);
        self.unanswered = None;
        if self.host != Host::Gone {
            self.touched = true;
            self.turn(Host::Unmounting, index);
        }
    }

    /// An unmount failed: a half-done one may have left anything (kubelet-volumes race 14).
    pub fn unmount_failed(&mut self, index: usize) {
        if self.host != Host::Gone {
            self.turn(Host::Uncertain, index);
        }
    }

    /// An unmount succeeded.
    pub fn unmounted(&mut self, index: usize) {
        self.touched = false;
        self.turn(Host::Gone, index);
    }

    /// The agent started again. What was under way is uncertain; after a reboot everything is.
    pub fn agent_started(&mut self, rebooted: bool, index: usize) {
        match self.host {
            Host::Absent | Host::Gone => {}
            Host::Unmounting => {
                self.unanswered = Some(self.commanded);
                self.turn(Host::Uncertain, index);
            }
            Host::Mounting | Host::Uncertain => {
                self.touched = true;
                self.turn(Host::Uncertain, index);
            }
            Host::Ready | Host::FoundOnly => {
                if rebooted {
                    self.turn(Host::Uncertain, index);
                }
            }
        }
        if rebooted {
            self.reset = Some(index);
            self.mounted = None;
        }
    }

    /// The mount table has it.
    pub fn seen(&mut self, index: usize) {
        self.unanswered = None;
        if !self.may_be_on_host() && self.host != Host::Gone {
            self.touched = true;
            self.turn(Host::Uncertain, index);
        }
    }

    /// The mount table, read after the latest command on it, lacks it.
    pub fn missing(&mut self, index: usize) {
        self.unanswered = None;
        self.touched = false;
        if self.may_be_on_host() {
            let over = self.removed.is_some() || self.unmount.is_some();
            self.turn(if over { Host::Gone } else { Host::Absent }, index);
            self.reset = Some(index);
            self.mounted = None;
        }
    }
}
