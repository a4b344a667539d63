//! Parsing templates while the rest of the chart is still being read.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
};

use rustc_hash::FxHashMap;
use tiphys_gotemplate::{Functions, Nameless};

use super::functions;

/// Bytes of templates that are worth a thread.
const WORTH_A_THREAD: usize = 128 << 10;

/// Templates that were parsed ahead, by the address of their bytes.
pub(super) type ParsedAhead = FxHashMap<usize, Nameless>;

/// Takes templates as they are read and parses them on a thread of its own, if they are worth one. Names are given
/// later, when it is clear which subcharts are enabled and what they are called.
pub(crate) struct Ahead {
    shared: Arc<Shared>,
    worker: Option<JoinHandle<()>>,
    bytes: usize,
}

struct Shared {
    functions: Arc<Functions>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Arc<[u8]>>,
    parsed: ParsedAhead,
    closed: bool,
}

impl Ahead {
    pub(crate) fn new() -> Self {
        let (state, changed) = (Mutex::default(), Condvar::new());
        let shared = Shared { functions: functions::table(), state, changed };
        Self { shared: Arc::new(shared), worker: None, bytes: 0 }
    }

    /// Takes a template.
    pub(crate) fn add(&mut self, data: &Arc<[u8]>) {
        self.bytes += data.len();
        self.shared.lock().waiting.push_back(data.clone());
        if self.bytes < WORTH_A_THREAD {
            return;
        }
        match &self.worker {
            Some(_) => self.shared.changed.notify_one(),
            None => {
                let shared = self.shared.clone();
                self.worker = thread::Builder::new().spawn(move || shared.work()).ok();
            }
        }
    }

    /// Ends the work, with help from this thread, and hands it out. Templates for which `wanted` does not hold are not
    /// parsed any more; nor are any if there were too few for a thread.
    pub(super) fn finish(mut self, wanted: impl Fn(usize) -> bool) -> ParsedAhead {
        let Some(worker) = self.worker.take() else { return ParsedAhead::default() };
        let mut state = self.shared.lock();
        state.waiting.retain(|data| wanted(address(data)));
        state.closed = true;
        drop(state);
        self.shared.changed.notify_one();
        while let Some(data) = { self.shared.lock().waiting.pop_back() } {
            self.shared.parse(&data);
        }
        // What a thread that panicked has not parsed is parsed again by whoever needs it.
        let _ = worker.join();
        std::mem::take(&mut self.shared.lock().parsed)
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.closed = true;
        state.waiting.clear();
        drop(state);
        self.shared.changed.notify_one();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        reserve(ROOM);
        loop {
            let mut state = self.lock();
            let data = loop {
                match state.waiting.pop_front() {
                    Some(data) => break data,
                    None if state.closed => return,
                    None => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                }
            };
            drop(state);
            self.parse(&data);
        }
    }

    fn parse(&self, data: &Arc<[u8]>) {
        let text = tiphys_gocompat::rawstr::encode(data);
        if let Some(parsed) = Nameless::parse(&text, &self.functions) {
            self.lock().parsed.insert(address(data), parsed);
        }
    }
}

fn address(data: &Arc<[u8]>) -> usize {
    data.as_ptr() as usize
}

/// Memory that a thread asks for at once.
const ROOM: usize = 8 << 20;

/// Makes glibc's allocator get a thread's memory from the system in one piece, in place of page by page, each time with
/// all other threads of the process held up: what is freed at the end of a heap stays there for what comes next, once
/// a greater piece has been freed. Nothing is touched, so nothing is used; other allocators take no notice.
fn reserve(bytes: usize) {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(2 * bytes)));
    drop(std::hint::black_box(Vec::<u8>::with_capacity(bytes)));
}
