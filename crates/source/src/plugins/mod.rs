//! Config management plugins (Argo CD operator manual, "Config Management Plugins"). None runs unless whoever
//! started the program allowed it by name: a repository can only ask for one that is allowed.
//!
//! A plugin gets a copy of the repository in a folder of its own, the build environment and nothing else of
//! this process's environment but `PATH`. It is ended with everything it started when its time is over, and
//! what it prints is read up to a limit. No shell is involved.

mod definition;

use std::{collections::BTreeMap, path::Path, time::Duration};

use tiphys_gocompat::glob::{doublestar, path_match};
use tiphys_vfs::FileTree;

use crate::program::{self, Program, unpack, walk};
pub use definition::Plugin;
use definition::{Command, Find};

/// Why a plugin did not do its work, or is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PluginError(String);

impl PluginError {
    fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// What a plugin is to render.
pub struct PluginInput<'a> {
    /// The repository.
    pub tree: &'a dyn FileTree,
    /// The source's folder in it.
    pub folder: &'a str,
    /// The build environment.
    pub env: &'a BTreeMap<String, String>,
}

/// The plugins that are allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plugins(Vec<Plugin>);

impl Plugins {
    /// Allows a plugin, in the place of an earlier one of its name.
    pub fn allow(&mut self, plugin: Plugin) {
        self.0.retain(|known| known.name() != plugin.name());
        self.0.push(plugin);
    }

    /// Whether none is allowed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The plugin for a source: the one that it names, or (with an empty name) the first whose discovery
    /// finds the source. `None` if no discovery does.
    ///
    /// # Errors
    /// The plugin that it names is not allowed or does not support the source, or a discovery cannot be
    /// tried.
    pub fn choose(&self, name: &str, input: &PluginInput<'_>) -> Result<Option<&Plugin>, PluginError> {
        if name.is_empty() {
            for plugin in self.0.iter().filter(|plugin| plugin.find != Find::Nothing) {
                if finds(plugin, input)? {
                    return Ok(Some(plugin));
                }
            }
            return Ok(None);
        }
        let Some(plugin) = self.0.iter().find(|plugin| plugin.name() == name) else {
            let known: Vec<&str> = self.0.iter().map(Plugin::name).collect();
            let known = if known.is_empty() {
                "none is".to_owned()
            } else {
                format!("allowed are {}", known.join(", "))
            };
            return Err(PluginError::new(format!(
                "the source is rendered by config management plugin {name:?}, which is not allowed ({known}); whoever starts Tiphys allows it with --allow-plugin"
            )));
        };
        if plugin.find != Find::Nothing && !finds(plugin, input)? {
            let text = format!(
                "plugin {name:?} does not support the source: its discovery finds nothing in {:?}",
                input.folder
            );
            return Err(PluginError::new(text));
        }
        Ok(Some(plugin))
    }
}

impl Plugin {
    /// What the plugin generates from a source: YAML or JSON.
    ///
    /// # Errors
    /// A program cannot be started, fails, prints too much or takes too long.
    pub fn generate(&self, input: &PluginInput<'_>) -> Result<String, PluginError> {
        let copy = tempfile::tempdir()
            .map_err(|error| PluginError::new(format!("no folder for plugin {:?}: {error}", self.name())))?;
        unpack(input.tree, "", copy.path()).map_err(PluginError)?;
        let folder = copy.path().join(input.folder);
        if let Some(init) = &self.init {
            self.run("init", init, &folder, copy.path(), input.env)?;
        }
        self.run("generate", &self.generate, &folder, copy.path(), input.env)
    }

    fn run(
        &self,
        what: &str,
        command: &Command,
        folder: &Path,
        home: &Path,
        env: &BTreeMap<String, String>,
    ) -> Result<String, PluginError> {
        run_within(command, folder, home, env, program::TIME)
            .map_err(|why| PluginError::new(format!("{what} of plugin {:?}: {why}", self.name())))
    }
}

/// Runs a command in a folder; returns what it prints.
fn run_within(
    Command(words): &Command,
    folder: &Path,
    home: &Path,
    env: &BTreeMap<String, String>,
    time: Duration,
) -> Result<String, String> {
    let program = &words[0];
    let done =
        Program { words, folder, home, env, input: "", time }.run().map_err(|error| error.to_string())?;
    if !done.status.success() {
        let (status, told) = (done.status, done.complaints.trim());
        return Err(format!(
            "{program:?} failed ({status}){}{told}",
            if told.is_empty() { "" } else { ": " }
        ));
    }
    Ok(done.output)
}

/// Whether the discovery of a plugin finds a source.
fn finds(plugin: &Plugin, input: &PluginInput<'_>) -> Result<bool, PluginError> {
    let files = || -> Result<Vec<String>, PluginError> {
        let mut files = Vec::new();
        walk(input.tree, input.folder, &mut |path, _| {
            files.push(path.to_owned());
            Ok(())
        })
        .map_err(PluginError)?;
        let prefix = tiphys_vfs::normalize(input.folder).unwrap_or_default();
        let below = |path: String| match prefix.is_empty() {
            true => path,
            false => path[prefix.len()..].trim_start_matches('/').to_owned(),
        };
        Ok(files.into_iter().map(below).collect())
    };
    match &plugin.find {
        Find::Nothing => Ok(false),
        Find::FileName(pattern) => {
            let pattern = pattern.trim_start_matches("./");
            Ok(files()?.iter().any(|path| path_match(pattern, path) == Ok(true)))
        }
        Find::Glob(pattern) => {
            let pattern = pattern.trim_start_matches("./");
            Ok(files()?.iter().any(|path| doublestar(pattern, path) == Ok(true)))
        }
        Find::Command(command) => {
            let copy = tempfile::tempdir().map_err(|error| PluginError::new(error.to_string()))?;
            unpack(input.tree, "", copy.path()).map_err(PluginError)?;
            let folder = copy.path().join(input.folder);
            let run = run_within(command, &folder, copy.path(), input.env, program::TIME);
            Ok(run.is_ok_and(|out| !out.trim().is_empty()))
        }
    }
}

#[cfg(test)]
mod tests;
