//! Work that a second thread does beside this one.

use std::{
    collections::VecDeque,
    sync::Arc,
    thread::{self, JoinHandle},
};

use parking_lot::{Condvar, Mutex, MutexGuard};

/// Does jobs on a thread of its own, once there are enough of them to be worth one; whoever gave them helps
/// at the end.
pub(crate) struct Worker<J, R> {
    shared: Arc<Shared<J, R>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared<J, R> {
    work: Box<Work<J, R>>,
    state: Mutex<State<J, R>>,
    changed: Condvar,
}

type Work<J, R> = dyn Fn(J) -> R + Send + Sync;

struct State<J, R> {
    waiting: VecDeque<J>,
    done: Vec<R>,
    /// Whether the thread waits for a job: to wake one that does not costs as much.
    is_idle: bool,
    is_closed: bool,
}

impl<J: Send + 'static, R: Send + 'static> Worker<J, R> {
    /// A thread that is not started yet.
    pub(crate) fn new(work: impl Fn(J) -> R + Send + Sync + 'static) -> Self {
        let state = State { waiting: VecDeque::new(), done: Vec::new(), is_idle: false, is_closed: false };
        let shared = Shared { work: Box::new(work), state: Mutex::new(state), changed: Condvar::new() };
        Self { shared: Arc::new(shared), thread: None }
    }

    /// Whether the thread runs.
    pub(crate) fn is_started(&self) -> bool {
        self.thread.is_some()
    }

    /// Starts the thread; where the system gives none, all jobs are done at the end.
    pub(crate) fn start(&mut self) {
        if self.thread.is_none() {
            let shared = self.shared.clone();
            self.thread = thread::Builder::new().spawn(move || shared.run()).ok();
        }
    }

    /// Adds a job.
    pub(crate) fn add(&self, job: J) {
        let mut state = self.shared.lock();
        state.waiting.push_back(job);
        let wakes = std::mem::take(&mut state.is_idle);
        drop(state);
        if wakes {
            self.shared.changed.notify_one();
        }
    }

    /// Does the jobs that are wanted and not done yet, the last first, together with the thread; what was
    /// done, in no order.
    pub(crate) fn finish(mut self, wanted: impl FnMut(&J) -> bool) -> Vec<R> {
        self.shared.lock().waiting.retain(wanted);
        self.shared.close();
        let mut done = Vec::new();
        while let Some(job) = { self.shared.lock().waiting.pop_back() } {
            done.push((self.shared.work)(job));
        }
        if let Some(thread) = self.thread.take()
            && let Err(panic) = thread.join()
        {
            std::panic::resume_unwind(panic);
        }
        done.append(&mut self.shared.lock().done);
        done
    }
}

impl<J, R> Drop for Worker<J, R> {
    fn drop(&mut self) {
        self.shared.lock().waiting.clear();
        self.shared.close();
    }
}

impl<J, R> Shared<J, R> {
    fn lock(&self) -> MutexGuard<'_, State<J, R>> {
        self.state.lock()
    }

    /// Lets the thread end when nothing is left to do.
    fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        let wakes = std::mem::take(&mut state.is_idle);
        drop(state);
        if wakes {
            self.changed.notify_one();
        }
    }

    fn run(&self) {
        let mut done = Vec::new();
        while let Some(job) = self.next() {
            done.push((self.work)(job));
        }
        self.lock().done = done;
    }

    fn next(&self) -> Option<J> {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.waiting.pop_front() {
                return Some(job);
            }
            if state.is_closed {
                return None;
            }
            state.is_idle = true;
            self.changed.wait(&mut state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wanted_job_is_done_once_with_and_without_a_thread() {
        for started in [false, true] {
            let mut worker = Worker::new(|job: usize| job * 2);
            for job in 0..1000 {
                if started && job == 10 {
                    worker.start();
                }
                worker.add(job);
            }
            let mut done = worker.finish(|_| true);
            done.sort_unstable();
            assert_eq!(done, (0..1000).map(|job| job * 2).collect::<Vec<_>>());
        }
    }

    #[test]
    fn jobs_that_nobody_wants_are_left_out() {
        let worker = Worker::new(|job: usize| job);
        (0..10).for_each(|job| worker.add(job));
        let mut done = worker.finish(|job| job % 2 == 0);
        done.sort_unstable();
        assert_eq!(done, [0, 2, 4, 6, 8]);
    }

    #[test]
    fn a_thread_that_panics_is_heard_of() {
        let mut worker = Worker::new(|job: usize| assert!(job != 3, "job {job}"));
        worker.start();
        (0..10).for_each(|job| worker.add(job));
        let finished = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| worker.finish(|_| true)));
        assert!(finished.is_err());
    }
}
