//! What the agent and a pod's shim say to each other: JSON messages over a SOCK_SEQPACKET socket, descriptors beside them.
//! The shim lives longer than the agent that started it, so an older shim must understand a newer agent: fields are only
//! ever added.

use super::plan::{ExitRecord, Stage};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;

/// The most descriptors that the kernel passes with one message.
pub const MOST_DESCRIPTORS: usize = 253;
/// A message longer than this would not be ours. (Plans travel in a memory file, not in the message.)
const LONGEST_MESSAGE: usize = 128 * 1024;

/// Asked of a shim.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    /// Its answer names it.
    pub number: u64,
    /// What.
    pub ask: Ask,
}

/// What is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Ask {
    /// From now on, tell this connection of exits.
    Subscribe,
    /// All containers, each with its pidfd if it has not ended, in order.
    List,
    /// Build a container up to just before its exec. Descriptors: plan, root, log, then as told, then its mounts.
    Create {
        /// Its name.
        id: String,
        /// A descriptor of its cgroup (v2) follows.
        into_cgroup: bool,
        /// So many open `cgroup.procs` files (v1) follow.
        joins: usize,
        /// A file that counts OOM kills follows.
        counts_oom: bool,
        /// The slot that these groups are: a spare process may be in it.
        #[serde(default)]
        slot: Option<String>,
    },
    /// Prepare a process for a container that nobody asked for yet, in place of the one that there may be. A descriptor of its
    /// cgroup (v2) may follow. For shims whose sandbox says that they know it, as the next.
    Prepare {
        /// Its slot.
        slot: String,
        /// What it makes ahead.
        stage: Stage,
    },
    /// That process is in its cgroups.
    Placed {
        /// Its slot.
        slot: String,
    },
    /// Let it go.
    Start {
        /// Its name.
        id: String,
    },
    /// Go on in another log, whose descriptor comes along. For shims whose sandbox says that they know it.
    Reopen {
        /// Its name.
        id: String,
    },
    /// Forget one that has ended.
    Forget {
        /// Its name.
        id: String,
    },
    /// The pod's user namespace, as a descriptor. For shims whose sandbox says that there is one.
    Users,
    /// End, if every container has.
    Quit,
}

/// Told by a shim to a process that is to be a container.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Order {
    /// It is in its cgroups.
    Placed,
    /// Become this. Descriptors: plan, root, then the plan's mounts.
    Become,
}

/// Told by a shim.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Tell {
    /// The answer to a request.
    Answer {
        /// Which request.
        number: u64,
        /// What came of it.
        answer: Answer,
    },
    /// A container ended. Its record is on disk already.
    Exited {
        /// Its name.
        id: String,
        /// How.
        record: ExitRecord,
    },
}

/// An answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Answer {
    /// Done.
    Done,
    /// Built and parked; its pidfd comes along. Or a process for one, not built yet; without a pidfd.
    Parked {
        /// Its process, in the host's numbers.
        pid: i32,
    },
    /// It runs.
    Running {
        /// Since when, in nanoseconds since the epoch.
        started_at: u64,
    },
    /// All there are. The pidfds of those that live come along, in this order.
    Listed(Vec<Listed>),
    /// It could not be done, and nothing was.
    Refused(String),
}

/// A container as the shim has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Listed {
    /// Its name.
    pub id: String,
    /// Its process.
    pub pid: i32,
    /// Its state.
    pub state: ListedState,
}

/// A container's state as the shim has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ListedState {
    /// Built up to its exec, or on the way there.
    Created,
    /// Running.
    Running {
        /// Since when.
        started_at: u64,
    },
    /// Ended.
    Ended(ExitRecord),
}

/// Sends one message. A peer that is gone is EPIPE, not a signal.
pub fn send<T: Serialize>(
    socket: impl AsFd,
    message: &T,
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), Errno> {
    let bytes = serde_json::to_vec(message).map_err(|_| Errno::INVAL)?;
    if descriptors.len() > MOST_DESCRIPTORS || bytes.len() > LONGEST_MESSAGE {
        return Err(Errno::MSGSIZE);
    }
    let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(descriptors.len()))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::MSGSIZE);
    }
    sendmsg(socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL).map(|_| ())
}

/// Receives one message; `None`: the peer hung up.
pub fn receive<T: DeserializeOwned>(socket: impl AsFd) -> Result<Option<(T, Vec<OwnedFd>)>, Errno> {
    let mut bytes = vec![0; LONGEST_MESSAGE];
    let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let got = recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags)?;
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    if got.bytes == 0 {
        return Ok(None);
    }
    match serde_json::from_slice(&bytes[..got.bytes]) {
        Ok(message) => Ok(Some((message, descriptors))),
        Err(_) => Err(Errno::BADMSG),
    }
}
