//! `cargo xtask docs`: writes `docs/cli.md`, `docs/rules/` and the manual pages.

use std::process::Command;

use anyhow::{Context, ensure};

use crate::oracles::workspace_root;

/// Runs the program that writes them; it lives beside the command line, so that this one need not
/// be built with everything that the command line is made of.
///
/// # Errors
/// It cannot be built or run.
pub(crate) fn run() -> anyhow::Result<()> {
    let status = Command::new(env!("CARGO"))
        .current_dir(workspace_root())
        .args(["run", "--quiet", "--package", "tiphys-cli", "--example", "docs", "--", "docs"])
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "writing the documentation failed");
    println!("wrote docs/cli.md, docs/rules/ and docs/man/");
    Ok(())
}
