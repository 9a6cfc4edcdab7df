//! Threads for work that may take long: as many as there is work at once, so that slow work never blocks fast work, and
//! none that idles for long.

use crossbeam_channel::{Receiver, Sender, unbounded};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// So long an idle thread waits for more.
const IDLE: Duration = Duration::from_secs(5);

type Job = Box<dyn FnOnce() + Send>;

/// The threads.
pub struct Workers {
    jobs: Sender<Job>,
    taken: Receiver<Job>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    counts: Mutex<Counts>,
    quiet: Condvar,
}

#[derive(Default)]
struct Counts {
    /// Threads that wait for a job.
    idle: usize,
    /// Jobs that no thread has taken yet.
    queued: usize,
    /// Jobs under way.
    running: usize,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Workers {
    fn default() -> Workers {
        let (jobs, taken) = unbounded();
        Workers { jobs, taken, shared: Arc::default() }
    }
}

impl Workers {
    /// Does it on some thread, at once.
    pub fn run(&self, job: impl FnOnce() + Send + 'static) {
        let needs_thread = {
            let mut counts = self.shared.lock();
            counts.queued += 1;
            counts.queued > counts.idle
        };
        self.jobs.send(Box::new(job)).ok();
        if needs_thread {
            let (taken, shared) = (self.taken.clone(), self.shared.clone());
            let spawned =
                std::thread::Builder::new().name("worker".into()).spawn(move || work(&taken, &shared));
            // Without a new thread the job waits for one that there is; without any, it is done here.
            if spawned.is_err()
                && self.shared.lock().running == 0
                && let Ok(job) = self.taken.try_recv()
            {
                self.shared.lock().queued -= 1;
                job();
            }
        }
    }

    /// Waits until nothing is queued or under way.
    pub fn wait(&self) {
        let mut counts = self.shared.lock();
        while counts.queued > 0 || counts.running > 0 {
            counts = self.shared.quiet.wait(counts).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn work(taken: &Receiver<Job>, shared: &Shared) {
    loop {
        shared.lock().idle += 1;
        let job = taken.recv_timeout(IDLE);
        let mut counts = shared.lock();
        counts.idle -= 1;
        let Ok(job) = job else { return };
        counts.queued -= 1;
        counts.running += 1;
        drop(counts);
        job();
        let mut counts = shared.lock();
        counts.running -= 1;
        if counts.queued == 0 && counts.running == 0 {
            shared.quiet.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossbeam_channel::bounded;

    #[test]
    fn a_slow_job_holds_nobody_up() {
        let workers = Workers::default();
        let (release, held) = bounded::<()>(0);
        let (done, seen) = unbounded();
        for _ in 0..8 {
            let held = held.clone();
            workers.run(move || {
                held.recv().ok();
            });
        }
        workers.run(move || done.send(()).expect("the test listens"));
        seen.recv_timeout(Duration::from_secs(10)).expect("the fast one is done while eight hang");
        drop(release);
        workers.wait();
    }
}
