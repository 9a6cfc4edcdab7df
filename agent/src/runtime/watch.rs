//! The second source of exits, and the clock of stops: one thread that holds a pidfd of every container. When one ends and
//! its shim does not tell, the kernel is asked; when a grace is over, the container is killed.

use crate::clock;
use crate::fault::{Attempt, Fault};
use crate::pod::plan::ExitRecord;
use crate::sys;
use nodefold_core::ids::{ContainerId, PodUid};
use nodefold_core::time::{Nanos, Time};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::pipe::{PipeFlags, pipe_with};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// So long the shim has to tell of an end before the kernel is asked.
const SHIM_TELLS_WITHIN: Nanos = Nanos::millis(500);
/// Orphans are reaped by process 1, lazily (linux-executor §1.4): asked again this often, and given up after that long.
const ASK_AGAIN_AFTER: Nanos = Nanos::millis(50);
const REAPED_WITHIN: Nanos = Nanos::secs(10);

/// A container.
pub type Key = (PodUid, ContainerId);

/// The watch.
pub struct Watch {
    state: Mutex<State>,
    wake: OwnedFd,
}

#[derive(Default)]
struct State {
    watched: BTreeMap<Key, Watched>,
    graces: BTreeMap<Key, Nanos>,
    ended: bool,
}

struct Watched {
    pidfd: Arc<OwnedFd>,
    started_at: Option<u64>,
    /// It has ended, and this is when the kernel is asked how, and until when.
    seen: Option<(Nanos, Nanos)>,
}

/// What the watch tells whoever keeps the containers.
pub enum Noticed {
    /// Its grace is over.
    GraceOver(Key),
    /// It ended, and its shim did not tell.
    Exited(Key, ExitRecord),
}

impl Watch {
    /// Starts the thread. `noticed` is called on it.
    pub fn start(noticed: impl Fn(Noticed) + Send + 'static) -> Result<Arc<Watch>, Fault> {
        let (read, wake) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).attempt(|| "make a pipe")?;
        let watch = Arc::new(Watch { state: Mutex::new(State::default()), wake });
        let thread = watch.clone();
        std::thread::Builder::new()
            .name("watch".into())
            .spawn(move || thread.run(&read, noticed))
            .attempt(|| "start a thread")?;
        Ok(watch)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        // A full pipe wakes it as well.
        rustix::io::write(&self.wake, &[1]).ok();
    }

    /// Watches a container from now on.
    pub fn add(&self, key: Key, pidfd: Arc<OwnedFd>, started_at: Option<u64>) {
        self.lock().watched.insert(key, Watched { pidfd, started_at, seen: None });
        self.wake();
    }

    /// It was let go.
    pub fn started(&self, key: &Key, at: u64) {
        if let Some(watched) = self.lock().watched.get_mut(key) {
            watched.started_at = Some(at);
        }
    }

    /// How it ended is known.
    pub fn forget(&self, key: &Key) {
        let mut state = self.lock();
        state.watched.remove(key);
        state.graces.remove(key);
        drop(state);
        self.wake();
    }

    /// It is killed when this is over, unless an earlier moment was set before (S15).
    pub fn grace(&self, key: Key, grace: Nanos) {
        let deadline = Nanos(clock::monotonic().0.saturating_add(grace.0));
        let mut state = self.lock();
        let earlier = state.graces.get(&key).is_some_and(|known| *known <= deadline);
        if !earlier {
            state.graces.insert(key, deadline);
        }
        drop(state);
        self.wake();
    }

    /// Ends the thread.
    pub fn end(&self) {
        self.lock().ended = true;
        self.wake();
    }

    fn run(&self, woken: &OwnedFd, noticed: impl Fn(Noticed)) {
        loop {
            let (pidfds, timeout) = {
                let state = self.lock();
                if state.ended {
                    return;
                }
                let unseen = state.watched.iter().filter(|(_, watched)| watched.seen.is_none());
                let pidfds: Vec<(Key, Arc<OwnedFd>)> =
                    unseen.map(|(key, watched)| (key.clone(), watched.pidfd.clone())).collect();
                let asks = state.watched.values().filter_map(|watched| watched.seen.map(|(ask, _)| ask));
                (pidfds, asks.chain(state.graces.values().copied()).min())
            };
            let mut fds = vec![PollFd::new(woken, PollFlags::IN)];
            fds.extend(pidfds.iter().map(|(_, pidfd)| PollFd::new(&**pidfd, PollFlags::IN)));
            let wait = timeout.map(|at| clock::timespec(Nanos(at.0.saturating_sub(clock::monotonic().0))));
            if poll(&mut fds, wait.as_ref()).is_err() {
                continue;
            }
            let readable: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
            if readable[0] {
                rustix::io::read(woken, &mut [0; 256]).ok();
            }
            let now = clock::monotonic();
            let mut tell = Vec::new();
            {
                let mut state = self.lock();
                for ((key, _), ended) in pidfds.iter().zip(&readable[1..]) {
                    if *ended && let Some(watched) = state.watched.get_mut(key) {
                        watched.seen =
                            Some((Nanos(now.0 + SHIM_TELLS_WITHIN.0), Nanos(now.0 + REAPED_WITHIN.0)));
                    }
                }
                let over: Vec<Key> =
                    state.graces.iter().filter(|(_, at)| **at <= now).map(|(key, _)| key.clone()).collect();
                for key in over {
                    state.graces.remove(&key);
                    tell.push(Noticed::GraceOver(key));
                }
                for (key, watched) in &mut state.watched {
                    if let Some((ask, until)) = watched.seen
                        && ask <= now
                    {
                        match sys::exit_status_of(&*watched.pidfd) {
                            Some(status) => {
                                tell.push(Noticed::Exited(
                                    key.clone(),
                                    record(Some(status), watched.started_at),
                                ));
                                watched.seen = Some((Nanos(u64::MAX), until));
                            }
                            None if now >= until => {
                                tell.push(Noticed::Exited(key.clone(), record(None, watched.started_at)));
                                watched.seen = Some((Nanos(u64::MAX), until));
                            }
                            None => watched.seen = Some((Nanos(now.0 + ASK_AGAIN_AFTER.0), until)),
                        }
                    }
                }
            }
            tell.into_iter().for_each(&noticed);
        }
    }
}

/// A record of a wait status that nobody but the kernel told; without one, missing evidence is failure (DESIGN §4 rule 8).
fn record(status: Option<i32>, started_at: Option<u64>) -> ExitRecord {
    let Time(finished_at) = clock::now();
    let (code, signal) = match status {
        Some(status) if status & 0x7f == 0 => (status >> 8 & 0xff, None),
        Some(status) => (128 + (status & 0x7f), Some(status & 0x7f)),
        None => (137, None),
    };
    ExitRecord { code, signal, out_of_memory: false, start_error: None, started_at, finished_at }
}
