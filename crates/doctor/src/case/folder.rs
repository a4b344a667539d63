//! Reading a case from files: objects, events, logs, notes of nodes. Whatever a collector left beside them is
//! skipped.

use std::{
    io::{Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use super::{Case, Unreadable, log_paths, objects};

/// Folders inside of a dump deeper than this are no dump.
const MAX_DEPTH: usize = 32;
/// More of a file of objects is not read.
const MAX_OBJECTS: u64 = 1 << 30;
/// Of a log only the end counts.
pub(super) const TAIL: u64 = 128 << 10;
/// Of all logs together, so that a dump with a million of them fits into memory.
const MAX_LOGS: usize = 256 << 20;
/// More sentences about files that cannot be read help nobody.
const MAX_UNREADABLE: usize = 100;

/// Why no case could be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A path that was named cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// Nothing in the paths is an object of a cluster.
    #[error("no Kubernetes object in {paths}: save some with `kubectl get KINDS -A -o yaml`")]
    Empty {
        /// The paths that were looked at.
        paths: String,
    },
}

impl Case {
    /// Reads folders and files. What is no object, event or log is left out and named in `unreadable`.
    ///
    /// # Errors
    /// A path cannot be read, or nothing in the paths is an object.
    pub fn read(paths: &[PathBuf]) -> Result<Self, ReadError> {
        let mut case = Self::default();
        for path in paths {
            let fault = |error| ReadError::Path { path: path.clone(), error };
            if path.is_dir() {
                let mut files = Vec::new();
                collect(path, 0, &mut files, &mut case).map_err(fault)?;
                files.sort();
                for file in files {
                    if let Err(error) = case.read_file(&file, path) {
                        case.note(&file.display().to_string(), &error.to_string());
                    }
                }
                case.at = case.at.or_else(|| time_beside(path));
            } else {
                case.read_file(path, path.parent().unwrap_or(path)).map_err(fault)?;
            }
        }
        case.drop_repeated();
        if case.objects.is_empty() && case.events.is_empty() {
            let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            return Err(ReadError::Empty { paths: paths.join(", ") });
        }
        Ok(case)
    }

    fn read_file(&mut self, file: &Path, root: &Path) -> std::io::Result<()> {
        let relative = file.strip_prefix(root).unwrap_or(file);
        let steps: Vec<&str> = relative.iter().filter_map(|step| step.to_str()).collect();
        let name = steps.last().copied().unwrap_or_default();
        if let Some(note) = log_paths::host_note(&steps) {
            self.host_notes.push(super::HostNote { text: tail(file)?, ..note });
        } else if let Some(log) = log_paths::log(&steps) {
            let held: usize = self.logs.iter().map(|log| log.text.len()).sum();
            if held < MAX_LOGS {
                self.logs.push(super::Log { text: tail(file)?, ..log });
            }
        } else if log_paths::holds_objects(name)
            || relative.as_os_str().is_empty()
            || steps.len() <= 1 && !name.contains('.')
        {
            if std::fs::metadata(file)?.len() > MAX_OBJECTS {
                self.note(&file.display().to_string(), "the file is too large");
                return Ok(());
            }
            let text = objects::decoded(&std::fs::read(file)?);
            if name == "now" || name == "now.txt" {
                self.at = self.at.or_else(|| text.trim().parse().ok());
                return Ok(());
            }
            for why in objects::parse(&text, self) {
                self.note(&file.display().to_string(), &why);
            }
        } else if name == "logs.txt" {
            objects::parse_marked_logs(&objects::decoded(tail(file)?.as_bytes()), self);
        }
        Ok(())
    }

    /// Notes what could not be read.
    pub(super) fn note(&mut self, what: &str, why: &str) {
        if self.unreadable.len() < MAX_UNREADABLE {
            self.unreadable.push(Unreadable { what: what.to_owned(), why: why.to_owned() });
        }
    }
}

/// The time in the file `now` that stands beside a folder.
fn time_beside(folder: &Path) -> Option<jiff::Timestamp> {
    let text = std::fs::read_to_string(folder.canonicalize().ok()?.parent()?.join("now")).ok()?;
    text.trim().parse().ok()
}

fn collect(folder: &Path, depth: usize, files: &mut Vec<PathBuf>, case: &mut Case) -> std::io::Result<()> {
    if depth > MAX_DEPTH {
        case.note(&folder.display().to_string(), "it is nested too deep for a dump");
        return Ok(());
    }
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_dir() {
            if let Err(error) = collect(&path, depth + 1, files, case) {
                case.note(&path.display().to_string(), &error.to_string());
            }
        } else if kind.is_file() {
            files.push(path);
        }
    }
    Ok(())
}

/// The end of a file, as text.
fn tail(file: &Path) -> std::io::Result<String> {
    let mut open = std::fs::File::open(file)?;
    let length = open.metadata()?.len();
    if length > TAIL {
        open.seek(SeekFrom::Start(length - TAIL))?;
    }
    let mut bytes = Vec::new();
    open.take(TAIL).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
