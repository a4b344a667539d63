//! KRM functions and exec plugins of kustomizations, for those who allow them. A repository can only ask for
//! one that is allowed; each runs in a copy of the kustomization's folder, without a shell, without this
//! process's environment.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Component, Path, PathBuf},
    time::Duration,
};

use tiphys_kustomize::{FunctionCall, FunctionOutput, FunctionProgram, FunctionRunner};

use crate::program::{self, Failure, Program, go_status, unpack};

/// Beginnings of names of variables by which a program can be made to run code of others.
const LOADING: [&str; 28] = [
    "LD_", "DYLD_", "GLIBC_", "GCONV_", "MALLOC_", "PATH", "HOME", "IFS", "ENV", "BASH", "SHELL", "PS4",
    "PROMPT", "PYTHON", "PERL", "RUBY", "NODE_", "JAVA", "JDK_", "_JAVA", "LUA_", "PHP", "R_", "DOTNET",
    "COR", "GIT_", "TMP", "TIPHYS",
];

/// Why a function is not one that can be allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FunctionError(String);

/// One function that is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Allowed {
    /// `exec.path`, an image, or `apiVersion/Kind`, as configurations name it.
    name: String,
    /// The program and its first arguments.
    words: Vec<String>,
}

/// The functions that are allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Functions(Vec<Allowed>);

impl Functions {
    /// Allows a function: `EXECUTABLE`, as a function's annotation names it or as the path at which kustomize
    /// would look for an exec plugin, or `NAME=COMMAND`, where the name is that of an image, of an
    /// executable, or `apiVersion/Kind` of an exec plugin, and the command a program with arguments,
    /// separated by spaces. Relative paths of commands count from the folder `here`; a relative executable is
    /// a file of the repository.
    ///
    /// # Errors
    /// Name or command are empty.
    pub fn allow(&mut self, given: &str, here: &Path) -> Result<(), FunctionError> {
        let (name, words) = match given.split_once('=') {
            None => (given.trim(), vec![given.trim().to_owned()]),
            Some((name, command)) => {
                let mut words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
                if let Some(program) = words.first_mut().filter(|program| program.contains('/')) {
                    *program = here.join(&*program).to_string_lossy().into_owned();
                }
                (name.trim(), words)
            }
        };
        if name.is_empty() || words.first().is_none_or(String::is_empty) {
            return Err(FunctionError("a function is allowed as EXECUTABLE or as NAME=COMMAND".to_owned()));
        }
        self.0.retain(|known| known.name != name);
        self.0.push(Allowed { name: name.to_owned(), words });
        Ok(())
    }

    /// Whether none is allowed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn allowed_for(&self, program: &FunctionProgram) -> Option<&Allowed> {
        self.0.iter().find(|allowed| match program {
            FunctionProgram::Executable(name) | FunctionProgram::Image(name) => allowed.name == *name,
            FunctionProgram::Plugin { api_version, kind } => {
                let by_name = allowed.name == format!("{api_version}/{kind}");
                by_name || stands_at_home_of(&allowed.name, api_version, kind)
            }
        })
    }

    fn run_within(&self, call: &FunctionCall<'_>, time: Duration) -> Result<FunctionOutput, String> {
        let allowed = self.allowed_for(call.program).ok_or("the function is not allowed")?;
        let copy = tempfile::tempdir().map_err(|error| format!("no folder for the function: {error}"))?;
        // Some programs take the folder's name for something.
        let name = Some(tiphys_vfs::base_name(call.folder)).filter(|name| !name.is_empty() && *name != ".");
        let folder = copy.path().join("in").join(name.unwrap_or("repository"));
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        unpack(call.tree, call.folder, &folder)?;
        let mut words = allowed.words.clone();
        own_program(&mut words[0], &folder, call)?;
        let mut env = environment(call)?;
        if let Some(config) = call.config_file {
            let file = copy.path().join("config.yaml");
            fs::write(&file, config).map_err(|error| error.to_string())?;
            words.push(file.to_string_lossy().into_owned());
            env.insert("KUSTOMIZE_PLUGIN_CONFIG_ROOT".into(), folder.to_string_lossy().into_owned());
        }
        words.extend(call.args.iter().cloned());
        let run =
            Program { words: &words, folder: &folder, home: copy.path(), env: &env, input: call.input, time };
        match run.run() {
            Ok(done) => Ok(FunctionOutput {
                failure: go_status(done.status),
                output: done.output,
                complaints: done.complaints,
            }),
            Err(Failure::Start { why, .. }) => Err(start_text(&allowed.words[0], &why)),
            Err(other) => Err(other.to_string()),
        }
    }
}

impl FunctionRunner for Functions {
    fn find(&self, program: &FunctionProgram) -> Option<String> {
        self.allowed_for(program).map(|allowed| allowed.words[0].clone())
    }

    fn run(&self, call: &FunctionCall<'_>) -> Result<FunctionOutput, String> {
        self.run_within(call, program::TIME)
    }
}

/// Whether a path is where kustomize would look for an exec plugin, below some home of plugins.
fn stands_at_home_of(path: &str, api_version: &str, kind: &str) -> bool {
    let place = PathBuf::from(api_version).join(kind.to_lowercase()).join(kind);
    let path = Path::new(path);
    path.is_absolute()
        && path.ends_with(&place)
        && !place.components().any(|part| part == Component::ParentDir)
}

/// Finds a program that is a file of the repository, and lets it be run.
fn own_program(program: &mut String, folder: &Path, call: &FunctionCall<'_>) -> Result<(), String> {
    let path = Path::new(program.as_str());
    if !program.contains('/') || path.is_absolute() {
        return Ok(());
    }
    if call.is_remote {
        return Err(format!("{program:?} is a file of a remote base: what is fetched is never run"));
    }
    if path.components().any(|part| part == Component::ParentDir) {
        return Err(format!(
            "{program:?} leads out of the kustomization's folder: what stands there is never run"
        ));
    }
    let file = folder.join(path);
    if let Ok(known) = fs::metadata(&file) {
        let mut permissions = known.permissions();
        permissions.set_mode(0o700);
        fs::set_permissions(&file, permissions).map_err(|error| error.to_string())?;
    }
    *program = file.to_string_lossy().into_owned();
    Ok(())
}

/// The variables that a configuration sets, which may not make the program run other code.
fn environment(call: &FunctionCall<'_>) -> Result<BTreeMap<String, String>, String> {
    for (name, _) in call.env {
        let upper = name.to_uppercase();
        let is_odd = name.is_empty() || name.contains(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        if is_odd || LOADING.iter().any(|start| upper.starts_with(start)) || upper.ends_with("OPTIONS") {
            return Err(format!("a repository may not set the variable {name:?} of a function"));
        }
    }
    Ok(call.env.iter().cloned().collect())
}

/// Why a program could not be started, as Go says it.
fn start_text(program: &str, why: &std::io::Error) -> String {
    match why.kind() {
        std::io::ErrorKind::NotFound if !program.contains('/') => {
            format!("exec: {program:?}: executable file not found in $PATH")
        }
        std::io::ErrorKind::NotFound => format!("fork/exec {program}: no such file or directory"),
        std::io::ErrorKind::PermissionDenied => format!("fork/exec {program}: permission denied"),
        _ => format!("fork/exec {program}: {why}"),
    }
}

#[cfg(test)]
mod tests;
