//! What a plugin is: a `ConfigManagementPlugin`, or a name and a command.

use serde_json::Value;

use super::PluginError;

/// A program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Command(pub Vec<String>);

/// How a plugin finds the sources that it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Find {
    /// It is only for those that name it.
    Nothing,
    /// `discover.fileName`: a pattern of file names.
    FileName(String),
    /// `discover.find.glob`: a pattern in which `**` stands for any folders.
    Glob(String),
    /// `discover.find.command`: a program that prints something.
    Command(Command),
}

/// A plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plugin {
    name: String,
    pub(super) init: Option<Command>,
    pub(super) generate: Command,
    pub(super) find: Find,
}

impl Plugin {
    /// A plugin that runs one command in the source's folder: a program and arguments, separated by spaces.
    ///
    /// # Errors
    /// Name or command are empty.
    pub fn of_command(name: &str, command: &str) -> Result<Self, PluginError> {
        let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        if name.is_empty() || words.is_empty() {
            return Err(PluginError::new(
                "a plugin is allowed as NAME=COMMAND, or by a file with a ConfigManagementPlugin",
            ));
        }
        Ok(Self { name: name.to_owned(), init: None, generate: Command(words), find: Find::Nothing })
    }

    /// Reads a `ConfigManagementPlugin`.
    ///
    /// # Errors
    /// It is none, or asks for something that is not supported.
    pub fn parse(text: &str) -> Result<Self, PluginError> {
        let value = tiphys_yaml::from_yaml(text)
            .map_err(|error| PluginError::new(format!("not valid YAML: {error}")))?;
        let text_at = |path: &str| value.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        if text_at("/kind") != "ConfigManagementPlugin" {
            return Err(PluginError::new("the file holds no ConfigManagementPlugin"));
        }
        let (plain, version) = (text_at("/metadata/name"), text_at("/spec/version"));
        if plain.is_empty() {
            return Err(PluginError::new("the plugin has no metadata.name"));
        }
        let name = if version.is_empty() { plain } else { format!("{plain}-{version}") };
        let generate = command(value.pointer("/spec/generate"))?
            .ok_or_else(|| PluginError::new(format!("plugin {name:?} has no spec.generate.command")))?;
        if value.pointer("/spec/provideGitCreds").and_then(Value::as_bool) == Some(true) {
            return Err(PluginError::new(format!(
                "plugin {name:?} wants provideGitCreds: credentials of repositories are given to no program"
            )));
        }
        let pattern = |path: &str| Some(text_at(path)).filter(|pattern| !pattern.is_empty());
        let find = match (pattern("/spec/discover/fileName"), pattern("/spec/discover/find/glob")) {
            (Some(name), _) => Find::FileName(name),
            (None, Some(glob)) => Find::Glob(glob),
            (None, None) => {
                command(value.pointer("/spec/discover/find"))?.map_or(Find::Nothing, Find::Command)
            }
        };
        Ok(Self { name, init: command(value.pointer("/spec/init"))?, generate, find })
    }

    /// The name by which sources ask for it: with its version, if it has one.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// `command` with `args`.
fn command(value: Option<&Value>) -> Result<Option<Command>, PluginError> {
    let mut words = Vec::new();
    for key in ["command", "args"] {
        for word in value.and_then(|value| value.get(key)).and_then(Value::as_array).into_iter().flatten() {
            let word = word
                .as_str()
                .ok_or_else(|| PluginError::new(format!("{key} of a plugin must hold texts")))?;
            words.push(word.to_owned());
        }
    }
    Ok((!words.is_empty()).then_some(Command(words)))
}
