//! `tiphys up [PATH | GIT_URL]`.

use crate::up;

pub(crate) use crate::up::Args;

/// Runs until interrupted, or with `--once` until done.
///
/// # Errors
/// Nothing to run, the cluster cannot start, or not green in time.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(up::run(args));
    // A rendering that still runs on a thread of its own must not hold the exit.
    runtime.shutdown_background();
    result
}
