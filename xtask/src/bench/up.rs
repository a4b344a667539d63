//! `cargo xtask bench up`: the example platform from start to green, as a whole process.

use std::{fmt::Write as _, fs, path::PathBuf, process::Command};

use anyhow::Context;

use super::{publish, table, take_turns};

/// Options of the suite.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The binary to measure, built with `cargo build --release`.
    #[arg(long, default_value = "target/release/tiphys")]
    tiphys: PathBuf,
    /// Counted runs.
    #[arg(long, default_value_t = 7)]
    runs: usize,
}

const REPORT: &str = "docs/benchmarks/up.md";
const EXAMPLE: &str = "examples/storefront";

/// Measures and writes the report.
///
/// # Errors
/// The program is missing or fails, the report cannot be written.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let tiphys = args.tiphys.canonicalize().with_context(|| args.tiphys.display().to_string())?;
    let state = tempfile::tempdir()?;
    let once = |with_state: bool| {
        let mut command = Command::new(&tiphys);
        command.args(["up", EXAMPLE, "--once", "--timeout", "120s"]);
        if with_state {
            // A folder that holds the last run's state would have nothing left to do.
            let _ = fs::remove_dir_all(state.path().join("state"));
            command.arg("--state").arg(state.path().join("state"));
        }
        command
    };
    let in_memory = || once(false);
    let durable = || once(true);
    let measured = take_turns(args.runs, &[("in memory", &in_memory), ("with --state", &durable)])?;
    let mut report = String::from(
        "# The example platform\n\nMade by `cargo xtask bench up`. Whole processes, medians.\n\n",
    );
    writeln!(
        report,
        "`tiphys up {EXAMPLE} --once`: 13 Applications in nine waves until all are Synced and Healthy. Most of the time is \
         that of the simulated cluster: a pod takes 300 ms to become Ready, a Job's pod 800 ms to end.\n\n{}",
        table(&measured)
    )?;
    publish(REPORT, &report)
}
