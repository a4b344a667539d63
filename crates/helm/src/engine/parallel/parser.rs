//! Reading and parsing templates on a second thread while the rest of the chart is being looked at.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use parking_lot::{Mutex, MutexGuard};
use rustc_hash::FxHashMap;
use tiphys_gotemplate::{Draft, Nameless, Parsing};
use tiphys_vfs::FileTree;

use super::{super::functions, Worker};
use crate::{ChartFile, HelmError};

/// Bytes of templates that are worth a thread.
const WORTH_A_THREAD: usize = 64 << 10;

/// Templates that are worth one whatever their sizes, which only reading them would tell.
const MANY: usize = 48;

/// Templates that were parsed ahead, by the address of their bytes.
pub(in crate::engine) type ParsedTemplates = FxHashMap<usize, Nameless>;

/// Takes the templates of a chart, reads and parses them on a thread of its own if they are worth one. Names
/// are given later, when it is clear which subcharts are enabled and what they are called.
pub(crate) struct BackgroundParser {
    parsing: Worker<ChartFile, Option<Parsed>>,
    /// What each thread goes on with.
    pool: Arc<Pool>,
    /// Templates that nobody may have read yet.
    left: Vec<ChartFile>,
}

/// A template that was parsed.
struct Parsed {
    address: usize,
    draft: Draft,
    /// Which of the pool parsed it.
    by: usize,
}

/// As many of what parses as there are threads that parse at the same time.
#[derive(Default)]
struct Pool {
    idle: Mutex<Vec<(usize, Parsing)>>,
    made: AtomicUsize,
}

impl Pool {
    fn parse(&self, file: &ChartFile) -> Option<Parsed> {
        // Whoever loads the chart hears of a file that cannot be read.
        let (data, text) = (file.data().ok()?, file.text().ok()?);
        let idle = self.idle().pop();
        let (by, mut parsing) = idle
            .unwrap_or_else(|| (self.made.fetch_add(1, Ordering::Relaxed), Parsing::new(functions::table())));
        let draft = parsing.nameless(text);
        self.idle().push((by, parsing));
        Some(Parsed { address: address(data), draft: draft?, by })
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(usize, Parsing)>> {
        self.idle.lock()
    }

    /// Ends what was parsed.
    fn finish(&self, parsed: impl Iterator<Item = Parsed>) -> ParsedTemplates {
        let finished = std::mem::take(&mut *self.idle()).into_iter();
        let parts: FxHashMap<_, _> = finished.map(|(by, parsing)| (by, parsing.finish())).collect();
        let named =
            |Parsed { address, draft, by }| Some((address, Nameless::new(draft, parts.get(&by)?.clone())));
        parsed.filter_map(named).collect()
    }
}

impl BackgroundParser {
    pub(crate) fn new() -> Self {
        let pool = Arc::<Pool>::default();
        let parse = {
            let pool = pool.clone();
            move |file: ChartFile| pool.parse(&file)
        };
        Self { parsing: Worker::new(parse), pool, left: Vec::new() }
    }

    /// Takes the template at a path of a tree, which is read later.
    pub(crate) fn add(&mut self, name: String, tree: &Arc<dyn FileTree>, path: String) -> ChartFile {
        let file = ChartFile::later(name, tree.clone(), path);
        self.left.push(file.clone());
        self.parsing.add(file.clone());
        if self.left.len() == MANY {
            self.parsing.start();
        }
        file
    }

    /// Reads the templates that the thread has not come to; it is started now if it is worth it by what they
    /// hold.
    ///
    /// # Errors
    /// That of the first template that cannot be read.
    pub(crate) fn read_all(&mut self) -> Result<(), HelmError> {
        let left = std::mem::take(&mut self.left);
        let mut bytes = 0;
        for file in &left {
            if self.parsing.is_started() {
                break;
            }
            bytes += file.data()?.len();
            if bytes >= WORTH_A_THREAD {
                self.parsing.start();
            }
        }
        // From the end, where the thread comes last.
        for file in left.iter().rev() {
            let _ = file.data();
        }
        left.iter().try_for_each(|file| file.data().map(drop))
    }

    /// Ends the work, with help from this thread, and hands it out. Templates for which `wanted` does not
    /// hold are not parsed any more; nor are any if there were too few for a thread.
    pub(in crate::engine) fn finish(self, wanted: impl Fn(usize) -> bool) -> ParsedTemplates {
        if !self.parsing.is_started() {
            return ParsedTemplates::default();
        }
        let is_wanted = |file: &ChartFile| file.data().is_ok_and(|data| wanted(address(data)));
        self.pool.finish(self.parsing.finish(is_wanted).into_iter().flatten())
    }
}

fn address(data: &Arc<[u8]>) -> usize {
    data.as_ptr() as usize
}
