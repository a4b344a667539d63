//! `tiphys up [PATH | GIT_URL]`.

use crate::up;

pub(crate) use crate::up::Args;

/// How much stack a thread of the engine has: it renders, and follows templates, overlays and imports as deep
/// as repositories nest them.
const STACK: usize = 16 << 20;

/// Runs until interrupted, or with `--once` until done.
///
/// # Errors
/// Nothing to run, the cluster cannot start, or not green in time.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().thread_stack_size(STACK).build()?;
    let result = runtime.block_on(up::run(args));
    // A rendering that still runs on a thread of its own must not hold the exit.
    runtime.shutdown_background();
    result
}
