//! Programs of this workspace that commands of xtask run. They are built apart, so that xtask is built
//! without what they are made of.

use std::process::Command;

use anyhow::bail;

/// What is handed on to a program.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Arguments of the program; `--help` behind `--` tells which.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

/// Builds a program, optimised, and runs it.
///
/// # Errors
/// It does not build, or fails.
pub(crate) fn run(package: &str, program: &str, args: &Args) -> anyhow::Result<()> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["run", "--quiet", "--release", "--package", package, "--bin", program, "--"]);
    if !command.args(&args.rest).status()?.success() {
        bail!("{program} failed");
    }
    Ok(())
}
