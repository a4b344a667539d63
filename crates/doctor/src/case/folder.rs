//! Reading a case from files: objects, events, logs, notes of nodes. Whatever a collector left beside them is
//! skipped.

use std::{
    collections::{BTreeSet, HashMap},
    io::{Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use flate2::read::MultiGzDecoder;
use tiphys_value::{Budget, ObjectExt as _, value_bytes};

use super::{Case, Log, Unreadable, describe, event_tables, log_paths, objects};

/// Folders inside of a dump deeper than this are no dump.
const MAX_DEPTH: usize = 32;
/// More of a file of objects is not read, packed or not.
const MAX_OBJECTS: u64 = 128 << 20;
/// Of a log only the end counts.
pub(super) const TAIL: u64 = 128 << 10;
/// Of all logs together, so that a dump with a million of them fits into memory.
const MAX_LOGS: usize = 128 << 20;
/// More of what a compressed log holds is not read.
const MAX_UNPACKED: u64 = 256 << 20;
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
    #[error("no Kubernetes object in {}: save some with `kubectl get KINDS -A -o yaml`", listed(paths))]
    Empty {
        /// The paths that were looked at.
        paths: Vec<PathBuf>,
    },
}

fn listed(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// The text of a log, and whose it is as its path alone tells.
struct OpenLog {
    steps: Vec<String>,
    told: Option<Log>,
    text: String,
}

/// What is decided when every file was read.
struct Open {
    logs: Vec<OpenLog>,
    /// The bytes of all logs so far.
    held: usize,
    /// The kinds of which objects were lost in broken lists.
    broken: BTreeSet<String>,
    /// What all objects together may take.
    budget: Budget,
    /// Whether the budget ended the reading, so that objects of any kind may be lost.
    is_over_budget: bool,
}

impl Case {
    /// Reads folders and files. What is no object, event or log is left out and named in `unreadable`.
    ///
    /// # Errors
    /// A path cannot be read, or nothing in the paths is an object.
    pub fn read(paths: &[PathBuf]) -> Result<Self, ReadError> {
        let mut case = Self::default();
        let mut open = Open {
            logs: Vec::new(),
            held: 0,
            broken: BTreeSet::new(),
            budget: Budget::of_saved_state(),
            is_over_budget: false,
        };
        for path in paths {
            let fault = |error| ReadError::Path { path: path.clone(), error };
            if path.is_dir() {
                let mut files = Vec::new();
                collect(path, 0, &mut files, &mut case).map_err(fault)?;
                files.sort();
                for file in files {
                    if let Err(error) = case.read_file(&file, path, &mut open) {
                        case.note(&file.display().to_string(), &error.to_string());
                    }
                }
                case.at = case.at.or_else(|| time_beside(path));
            } else {
                case.read_file(path, path.parent().unwrap_or(path), &mut open).map_err(fault)?;
            }
        }
        case.settle_described();
        case.in_part.extend(open.broken);
        if open.is_over_budget {
            case.in_part
                .extend(case.objects.iter().map(|object| object.kind().to_owned()).collect::<Vec<_>>());
        }
        case.drop_repeated();
        case.place_events();
        case.add_told_objects();
        case.assign(open.logs);
        case.add_told_resources();
        if case.objects.is_empty() && case.events.is_empty() {
            return Err(ReadError::Empty { paths: paths.to_vec() });
        }
        Ok(case)
    }

    fn read_file(&mut self, file: &Path, root: &Path, open: &mut Open) -> std::io::Result<()> {
        let relative = file.strip_prefix(root).unwrap_or(file);
        let plain = relative.with_extension("");
        let relative = if is_packed(relative) { plain.as_path() } else { relative };
        let steps: Vec<&str> = relative.iter().filter_map(|step| step.to_str()).collect();
        let name = steps.last().copied().unwrap_or_default();
        if let Some(note) = log_paths::host_note(&steps) {
            if open.held < MAX_LOGS {
                let text = tail(file)?;
                open.held += text.len();
                self.host_notes.push(super::HostNote { text, ..note });
            }
            return Ok(());
        }
        let told = log_paths::log(&steps);
        let is_odd = relative.as_os_str().is_empty() || steps.len() <= 1 && !name.contains('.');
        if told.is_none() && (log_paths::holds_objects(name) || is_odd) {
            return self.read_objects(file, name, open);
        }
        if told.is_none() && !log_paths::is_text(name) {
            return Ok(());
        }
        // People give what kubectl printed any name; the first lines tell what it is.
        let start = start(file)?;
        if objects::starts_as_objects(&start)
            || event_tables::is_table(&start)
            || describe::is_description(&start)
        {
            self.read_objects(file, name, open)
        } else if name == "logs.txt" && start.contains(objects::LOG_START) {
            objects::parse_marked_logs(&objects::decoded(tail(file)?.into_bytes()), self);
            Ok(())
        } else {
            self.read_log(file, steps, told, open)
        }
    }

    /// Reads a file of objects, of descriptions, or of a table of events.
    fn read_objects(&mut self, file: &Path, name: &str, open: &mut Open) -> std::io::Result<()> {
        let shown = file.display().to_string();
        if open.is_over_budget {
            return Ok(());
        }
        let bytes = whole(file)?;
        if bytes.len() as u64 == MAX_OBJECTS {
            let why = format!(
                "only its first {} MiB were read: save kinds in files of their own",
                MAX_OBJECTS >> 20
            );
            self.note(&shown, &why);
        }
        let text = objects::decoded(bytes);
        let faults = if name == "now" || name == "now.txt" {
            self.at = self.at.or_else(|| text.trim().parse().ok());
            Vec::new()
        } else if describe::is_description(&text) {
            let folder = file.parent().and_then(|folder| folder.file_name()).unwrap_or_default();
            let before = self.objects.len();
            let faults = describe::parse(&text, &format!("{}/{name}", folder.to_string_lossy()), self);
            let made = self.objects[before..].iter().map(value_bytes).sum();
            open.is_over_budget |= open.budget.take(made).is_err();
            faults
        } else if event_tables::is_table(&text) {
            self.events.extend(event_tables::parse(&text));
            Vec::new()
        } else {
            let logs_before = self.logs.len();
            let faults = objects::parse(&text, self, &open.budget);
            open.held += self.logs[logs_before..].iter().map(|log| log.text.len()).sum::<usize>();
            if open.held > MAX_LOGS {
                self.logs.truncate(logs_before);
                self.note(&shown, "enough other logs were read");
            }
            open.broken.extend(faults.kinds);
            open.is_over_budget |= faults.is_over_budget;
            faults.texts
        };
        faults.iter().for_each(|why| self.note(&shown, why));
        Ok(())
    }

    fn read_log(
        &mut self,
        file: &Path,
        steps: Vec<&str>,
        told: Option<Log>,
        open: &mut Open,
    ) -> std::io::Result<()> {
        if open.held >= MAX_LOGS {
            self.note(&file.display().to_string(), "enough other logs were read");
            return Ok(());
        }
        let text = objects::without_colours(&tail(file)?);
        open.held += text.len();
        open.logs.push(OpenLog { steps: steps.into_iter().map(str::to_owned).collect(), told, text });
        Ok(())
    }

    /// Gives events of tables without a column for the namespace the one of the only object of that name.
    fn place_events(&mut self) {
        let mut namespaces: HashMap<(&str, &str), Option<&str>> = HashMap::new();
        for object in &self.objects {
            let place = namespaces.entry((object.kind(), object.name()));
            place.and_modify(|known| *known = None).or_insert(Some(object.namespace()));
        }
        for event in self.events.iter_mut().filter(|event| event.object.namespace.is_empty()) {
            let only = namespaces.get(&(event.object.kind.as_str(), event.object.name.as_str()));
            if let Some(namespace) = only.copied().flatten() {
                event.object.namespace = namespace.to_owned();
            }
        }
    }

    /// Gives each log to its pod. A pod that was saved and stands in the path comes before what the usual
    /// layouts would make of it.
    fn assign(&mut self, logs: Vec<OpenLog>) {
        let known = log_paths::KnownPods::new(&self.objects);
        let (mut assigned, mut open) = (Vec::new(), Vec::new());
        for log in logs {
            let steps: Vec<&str> = log.steps.iter().map(String::as_str).collect();
            let found = match log.told {
                Some(told) if known.has(&told) => Some(told),
                told => known.log(&steps).or(told),
            };
            match found {
                Some(found) => assigned.push(Log { text: log.text, ..found }),
                None => open.push(log.steps.join("/")),
            }
        }
        self.logs.extend(assigned);
        for path in open.iter().filter(|path| path.ends_with(".log")) {
            self.note(path, "its path does not tell whose log it is");
        }
    }

    /// Notes what could not be read.
    pub(super) fn note(&mut self, what: &str, why: &str) {
        if self.unreadable.len() < MAX_UNREADABLE {
            self.unreadable.push(Unreadable { what: what.to_owned(), why: why.to_owned() });
        }
    }
}

fn is_packed(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "gz")
}

/// The first [`MAX_OBJECTS`] bytes of a file, or of what it holds if it is packed, as its name says.
fn whole(file: &Path) -> std::io::Result<Vec<u8>> {
    let open = std::fs::File::open(file)?;
    // As many bytes as there are, so that nothing is moved while it grows.
    let size = open.metadata()?.len().min(MAX_OBJECTS);
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    match is_packed(file) {
        true => MultiGzDecoder::new(open).take(MAX_OBJECTS).read_to_end(&mut bytes)?,
        false => open.take(MAX_OBJECTS).read_to_end(&mut bytes)?,
    };
    Ok(bytes)
}

/// The first words of a file.
fn start(file: &Path) -> std::io::Result<String> {
    const LONGEST: u64 = 4096;
    let mut bytes = Vec::new();
    let open = std::fs::File::open(file)?;
    if is_packed(file) {
        MultiGzDecoder::new(open).take(LONGEST).read_to_end(&mut bytes)?;
    } else {
        open.take(LONGEST).read_to_end(&mut bytes)?;
    }
    Ok(objects::decoded(bytes))
}

/// The time in the file `now` that stands beside a folder.
fn time_beside(folder: &Path) -> Option<jiff::Timestamp> {
    const LONGEST: u64 = 256;
    let file = folder.canonicalize().ok()?.parent()?.join("now");
    // It was not named, and may be a pipe or a device that somebody put there.
    if !file.symlink_metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    std::fs::File::open(file).ok()?.take(LONGEST).read_to_string(&mut text).ok()?;
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
    if is_packed(file) {
        return packed_tail(std::fs::File::open(file)?);
    }
    let mut open = std::fs::File::open(file)?;
    let length = open.metadata()?.len();
    if length > TAIL {
        open.seek(SeekFrom::Start(length - TAIL))?;
    }
    let mut bytes = Vec::new();
    open.take(TAIL).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The end of what a compressed file holds. What follows a broken place is lost; what stands before counts.
fn packed_tail(file: std::fs::File) -> std::io::Result<String> {
    let longest = usize::try_from(TAIL).unwrap_or(usize::MAX);
    let mut packed = MultiGzDecoder::new(file).take(MAX_UNPACKED);
    let (mut kept, mut piece) = (Vec::new(), vec![0; longest]);
    loop {
        match packed.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => kept.extend_from_slice(&piece[..count]),
            Err(error) if kept.is_empty() => return Err(error),
            Err(_) => break,
        }
        if kept.len() > 2 * longest {
            kept.drain(..kept.len() - longest);
        }
    }
    kept.drain(..kept.len().saturating_sub(longest));
    Ok(String::from_utf8_lossy(&kept).into_owned())
}
