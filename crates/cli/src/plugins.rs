//! The programs of others that whoever calls the program allows: config management plugins and functions.

use std::{path::Path, sync::OnceLock};

use anyhow::Context as _;
use tiphys_source::{Functions, Plugin, Plugins};

use crate::exit::WrongUse;

/// Set once, from the command line.
static ALLOWED: OnceLock<(Plugins, Functions)> = OnceLock::new();

/// Allows programs for the rest of the process. A plugin is `NAME=COMMAND`, or a file with a
/// ConfigManagementPlugin; a function is `EXECUTABLE` or `NAME=COMMAND`.
///
/// # Errors
/// One of them is neither.
pub(crate) fn allow(plugins: &[String], functions: &[String]) -> anyhow::Result<()> {
    let all = (read_plugins(plugins)?, read_functions(functions)?);
    // A second call in one process, as tests may make, changes nothing.
    let _ = ALLOWED.set(all);
    Ok(())
}

fn read_plugins(given: &[String]) -> anyhow::Result<Plugins> {
    let mut all = Plugins::default();
    for one in given {
        let plugin = match one.split_once('=').filter(|_| !Path::new(one).is_file()) {
            Some((name, command)) => Plugin::of_command(name, command),
            None => {
                let text = std::fs::read_to_string(one)
                    .with_context(|| format!("--allow-plugin {one}"))
                    .map_err(|error| WrongUse(format!("{error:#}")))?;
                Plugin::parse(&text)
            }
        };
        all.allow(plugin.map_err(|error| WrongUse(format!("--allow-plugin {one}: {error}")))?);
    }
    Ok(all)
}

fn read_functions(given: &[String]) -> anyhow::Result<Functions> {
    let mut all = Functions::default();
    if given.is_empty() {
        return Ok(all);
    }
    let here = std::env::current_dir().context("--allow-function")?;
    for one in given {
        all.allow(one, &here).map_err(|error| WrongUse(format!("--allow-function {one}: {error}")))?;
    }
    Ok(all)
}

/// The programs that are allowed.
pub(crate) fn allowed() -> (Plugins, Functions) {
    ALLOWED.get().cloned().unwrap_or_default()
}
