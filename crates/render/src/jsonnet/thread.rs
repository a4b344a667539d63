//! Evaluation in a thread of this process, which nothing can end.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
};

use tiphys_vfs::FileTree;

use super::{STACK_BYTES, evaluation::Task, time, too_slow};
use crate::RenderError;

/// How many evaluations that took too long may still be at work.
const MOST_RUNAWAYS: usize = 4;

static RUNAWAYS: AtomicUsize = AtomicUsize::new(0);

pub(super) fn run(task: Task, tree: Arc<dyn FileTree>) -> Result<String, RenderError> {
    let path = task.path.clone();
    let fail = |why: &str| Err(RenderError::new(format!("{path}: {why}")));
    if RUNAWAYS.load(Ordering::Relaxed) >= MOST_RUNAWAYS {
        return fail("not evaluated, because others that took too long are still at work");
    }
    let (give, take) = mpsc::channel();
    let named = thread::Builder::new().name("jsonnet".into()).stack_size(STACK_BYTES);
    let spawned = named.spawn(move || {
        let done = task.run(&tree);
        if give.send(done).is_err() {
            RUNAWAYS.fetch_sub(1, Ordering::Relaxed);
        }
    });
    if let Err(error) = spawned {
        return fail(&format!("no thread to evaluate it: {error}"));
    }
    match take.recv_timeout(time()) {
        Ok(done) => done,
        Err(mpsc::RecvTimeoutError::Timeout) => {
            RUNAWAYS.fetch_add(1, Ordering::Relaxed);
            Err(too_slow(&path))
        }
        Err(mpsc::RecvTimeoutError::Disconnected) => fail("evaluating it broke off"),
    }
}
