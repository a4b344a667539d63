//! The config management plugins that whoever calls the program allows.

use std::{path::Path, sync::OnceLock};

use anyhow::Context as _;
use tiphys_source::{Plugin, Plugins};

use crate::exit::WrongUse;

/// Set once, from the command line.
static ALLOWED: OnceLock<Plugins> = OnceLock::new();

/// Allows plugins for the rest of the process: each is `NAME=COMMAND`, or a file with a ConfigManagementPlugin.
///
/// # Errors
/// One of them is neither.
pub fn allow(given: &[String]) -> anyhow::Result<()> {
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
    // A second call in one process, as tests may make, changes nothing.
    let _ = ALLOWED.set(all);
    Ok(())
}

/// The plugins that are allowed.
pub fn allowed() -> Plugins {
    ALLOWED.get().cloned().unwrap_or_default()
}
