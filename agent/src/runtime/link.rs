//! The agent's end of a shim's socket: requests out, answers to whoever waits, exits to whoever keeps them.

use crate::fault::{Attempt, Fault};
use crate::mounts;
use crate::pod::plan::ExitRecord;
use crate::pod::shim::SOCKET;
use crate::pod::wire::{self, Answer, Ask, Request, Tell};
use crossbeam_channel::bounded;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A shim answers in well under a millisecond; one that does not by then is stuck.
const LONGEST_ANSWER: Duration = Duration::from_secs(20);

/// What came of a request: an answer with its descriptors, or nothing because the shim is gone.
pub type Reply = Option<(Answer, Vec<OwnedFd>)>;
type Waiter = Box<dyn FnOnce(Reply) + Send>;

/// A connection.
pub struct Link {
    socket: OwnedFd,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    closed: bool,
    asked: u64,
    waiters: BTreeMap<u64, Waiter>,
}

impl Link {
    /// Connects to the shim of a sandbox's directory. `exited` hears of every exit and `closed` of the shim's end, both on a
    /// thread of the link's own, in the order in which the shim told.
    pub fn connect(
        dir: &OwnedFd,
        exited: impl Fn(String, ExitRecord) + Send + 'static,
        closed: impl FnOnce() + Send + 'static,
    ) -> Result<Arc<Link>, Fault> {
        let open = || -> Result<OwnedFd, rustix::io::Errno> {
            let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
            connect(&socket, &SocketAddrUnix::new(mounts::path_in(dir, SOCKET))?)?;
            Ok(socket)
        };
        let socket = open().attempt(|| "connect to the pod's shim")?;
        let link = Arc::new(Link { socket, waiting: Mutex::new(Waiting::default()) });
        let reader = link.clone();
        let read = move || {
            reader.read(exited);
            reader.close();
            closed();
        };
        std::thread::Builder::new().name("shim link".into()).spawn(read).attempt(|| "start a thread")?;
        Ok(link)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, exited: impl Fn(String, ExitRecord)) {
        // An undecodable message ends the connection like a hang-up: what it said is asked for anew.
        while let Ok(Some((tell, descriptors))) = wire::receive::<Tell>(&self.socket) {
            match tell {
                Tell::Answer { number, answer } => {
                    let waiter = self.lock().waiters.remove(&number);
                    if let Some(waiter) = waiter {
                        waiter(Some((answer, descriptors)));
                    }
                }
                Tell::Exited { id, record } => exited(id, record),
            }
        }
    }

    fn close(&self) {
        let waiters = {
            let mut waiting = self.lock();
            waiting.closed = true;
            std::mem::take(&mut waiting.waiters)
        };
        for (_, waiter) in waiters {
            waiter(None);
        }
    }

    /// The shim is gone.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Lets go of the shim: the reader ends.
    pub fn hang_up(&self) {
        rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both).ok();
    }

    /// Asks, and calls back with the answer, on the link's thread, before anything that the shim tells later is handled.
    pub fn ask(&self, ask: Ask, descriptors: &[OwnedFd], answered: impl FnOnce(Reply) + Send + 'static) {
        let number = {
            let mut waiting = self.lock();
            if waiting.closed {
                drop(waiting);
                return answered(None);
            }
            waiting.asked += 1;
            let number = waiting.asked;
            waiting.waiters.insert(number, Box::new(answered));
            number
        };
        let descriptors: Vec<BorrowedFd<'_>> = descriptors.iter().map(AsFd::as_fd).collect();
        if wire::send(&self.socket, &Request { number, ask }, &descriptors).is_err() {
            let waiter = self.lock().waiters.remove(&number);
            if let Some(waiter) = waiter {
                waiter(None);
            }
        }
    }

    /// Asks, and waits for the answer.
    pub fn call(&self, ask: Ask, descriptors: &[OwnedFd]) -> Result<(Answer, Vec<OwnedFd>), Fault> {
        let (send, receive) = bounded(1);
        self.ask(ask, descriptors, move |reply| {
            send.send(reply).ok();
        });
        match receive.recv_timeout(LONGEST_ANSWER) {
            Ok(Some((Answer::Refused(why), _))) => Err(Fault::refused(why)),
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => Err(Fault::uncertain("the pod's shim is gone")),
            Err(_) => Err(Fault::uncertain("the pod's shim does not answer")),
        }
    }
}
