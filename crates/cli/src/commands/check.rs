//! `tiphys check [PATH | GIT_URL]`.

use tiphys_check::config::select;

use crate::{check, exit::WrongUse, output::say};

pub(crate) use crate::check::Args;

/// Checks and prints.
///
/// # Errors
/// There are findings (exit code 1), or the repository, a file or a name cannot be used (exit code 2).
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(name) = &args.explain {
        let rules = select(name).map_err(|unknown| WrongUse(unknown.to_string()))?;
        let pages = rules.iter().map(|rule| rule.documentation() + "\n\n").collect::<String>();
        return Ok(say(pages.trim_end())?);
    }
    check::run(args)
}
