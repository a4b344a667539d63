//! `tiphys completion SHELL`.

use clap_complete::Shell;

/// For which shell.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell; its own documentation says where the script belongs.
    shell: Shell,
}

/// Prints the script on stdout.
///
/// # Errors
/// Stdout cannot be written.
pub(crate) fn run(args: &Args, command: &mut clap::Command) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, command, "tiphys", &mut script);
    Ok(crate::output::write(&script)?)
}
