//! `cargo xtask fuzz`: mutated inputs for what reads untrusted input.
//!
//! They are made by a program of their own, so that this one is built without all those readers.

use std::process::Command;

use anyhow::bail;

/// What is handed on; `--help` behind `--` tells.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Targets (all if none is named), `--seconds N`, `--seed S`, `--slow SECONDS`, `--memory MIB`, `--input FILE`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

/// Makes them.
///
/// # Errors
/// The program does not build, or an input is wrong.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["run", "--quiet", "--release", "--package", "tiphys-fuzz", "--bin", "fuzz", "--"]);
    if !command.args(&args.rest).status()?.success() {
        bail!("an input is wrong, or none could be tried");
    }
    Ok(())
}
