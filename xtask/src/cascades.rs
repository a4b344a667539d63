//! `cargo xtask cascades`: generated cascades, each of which doctor has to name.
//!
//! They are played by a program of their own, so that this one is built without the engine.

use std::process::Command;

use anyhow::bail;

/// What is handed on; `--help` behind `--` tells.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many, `--seed S`, `--misses FOLDER`, `--only TEXT`, `--thin COPIES`, `--flux`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

/// Plays them.
///
/// # Errors
/// The program does not build, or fails.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["run", "--quiet", "--release", "--package", "tiphys-cascades", "--bin", "cascades", "--"]);
    if !command.args(&args.rest).status()?.success() {
        bail!("cascades failed");
    }
    Ok(())
}
