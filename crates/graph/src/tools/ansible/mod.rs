//! Playbooks and task files: what each file is, what it includes, and what its tasks do.

mod tasks;
mod writers;

use std::{collections::BTreeMap, sync::Arc};

use tiphys_diag::Span;
use tiphys_vfs::{join, parent};
use tiphys_yaml::{Node, Profile, parse_documents};

use super::{Variables, text_lines::node_span};
use crate::Files;

pub use tasks::{Task, is_task};

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A list of plays.
    Playbook,
    /// A list of tasks.
    Tasks,
    /// Plays and tasks in one list, or neither.
    Unclear,
}

/// How a file uses another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// `import_playbook`.
    Playbook,
    /// `import_tasks` or `include_tasks`.
    Tasks,
    /// The old `include`, which is either.
    Either,
}

/// One file's use of another one.
#[derive(Clone, Debug)]
pub struct Include {
    /// How.
    pub usage: Use,
    /// The word that does it, such as `ansible.builtin.import_tasks`.
    pub keyword: String,
    /// The file as it is named.
    pub target: String,
    /// The file that it means; `None` if it cannot be found.
    pub file: Option<Arc<str>>,
    /// Whether the name depends on variables that the repository does not settle.
    pub is_open: bool,
    /// Where it stands.
    pub span: Span,
}

/// A file of Ansible.
#[derive(Clone, Debug)]
pub struct AnsibleFile {
    /// What it is.
    pub shape: Shape,
    /// The items of its list: plays or tasks.
    pub items: Vec<Node>,
    /// Its tasks, those inside of plays and blocks too.
    pub tasks: Vec<Task>,
    /// The files that it uses.
    pub includes: Vec<Include>,
}

/// The Ansible files of a repository.
#[derive(Debug, Default)]
pub struct Ansible {
    /// Each file by its path.
    pub files: BTreeMap<Arc<str>, AnsibleFile>,
    /// Variables that have one value throughout.
    pub variables: Variables,
}

impl Ansible {
    /// Reads the playbooks and task files.
    pub fn from_files(files: &Files) -> Self {
        let mut found = Self::default();
        for path in files.ending(&[".yml", ".yaml"]) {
            if is_variables(path) {
                note_variables(files, path, &mut found.variables);
                continue;
            }
            let Some(text) = files.text(path).filter(|text| is_candidate(path, text)) else { continue };
            let Ok(documents) = parse_documents(&text, Profile::Go3) else { continue };
            let Some(items) =
                documents.into_iter().next().and_then(|it| it.root.items().map(<[Node]>::to_vec))
            else {
                continue;
            };
            for item in &items {
                note_pairs(item.get("vars"), &mut found.variables);
            }
            let shape = shape(&items);
            let tasks = tasks::of_items(path, &items);
            found.files.insert(path.clone(), AnsibleFile { shape, items, tasks, includes: Vec::new() });
        }
        let includes: Vec<_> = found
            .files
            .iter()
            .map(|(path, file)| (path.clone(), found.includes(files, path, file)))
            .collect();
        for (path, includes) in includes {
            if let Some(file) = found.files.get_mut(&path) {
                file.includes = includes;
            }
        }
        found
    }

    /// The place of a node of one of its files.
    pub fn span(&self, files: &Files, file: &Arc<str>, node: &Node) -> Span {
        node_span(files, file, node)
    }

    fn includes(&self, files: &Files, path: &Arc<str>, file: &AnsibleFile) -> Vec<Include> {
        let plays = file.items.iter().filter_map(|item| playbook_include(item));
        let tasks = file.tasks.iter().filter_map(|task| {
            let usage = match task.module() {
                "import_tasks" | "include_tasks" => Use::Tasks,
                "include" => Use::Either,
                _ => return None,
            };
            let target = task.text().or_else(|| task.argument("file"))?;
            Some((usage, task.keyword.as_str(), target, &task.key))
        });
        let all = plays.chain(tasks);
        all.map(|(usage, keyword, named, node)| {
            let target = self.variables.expand(named.split_whitespace().next().unwrap_or(named));
            let is_open = target.contains("{{");
            let file = if is_open { None } else { resolve(files, path, &target) };
            let span = node_span(files, path, node);
            Include { usage, keyword: keyword.to_owned(), target, file, is_open, span }
        })
        .collect()
    }
}

/// The use of another playbook that an item of a playbook is.
fn playbook_include(item: &Node) -> Option<(Use, &str, &str, &Node)> {
    let (key, value) = item
        .pairs()?
        .iter()
        .find(|(key, _)| key.as_str().is_some_and(|key| key.rsplit('.').next() == Some("import_playbook")))?;
    Some((Use::Playbook, key.as_str()?, value.as_str()?, key))
}

/// Where Ansible looks for an included file: beside the file that names it, in the role's task
/// folder, and beside the playbooks.
fn resolve(files: &Files, path: &str, target: &str) -> Option<Arc<str>> {
    let mut folder = parent(path).unwrap_or_default();
    let mut folders = vec![folder.to_owned()];
    loop {
        for inner in ["tasks", "playbooks", "handlers"] {
            folders.push(if folder.is_empty() { inner.to_owned() } else { format!("{folder}/{inner}") });
        }
        folders.push(folder.to_owned());
        match parent(folder) {
            Some(above) if above != folder => folder = above,
            _ => break,
        }
    }
    let strip = target.rsplit_once("}}/").map_or(target, |(_, rest)| rest);
    folders
        .iter()
        .filter_map(|folder| join(folder, strip).ok())
        .find(|path| files.contains(path))
        .map(Into::into)
}

/// What a list is.
fn shape(items: &[Node]) -> Shape {
    let has = |item: &Node, names: &[&str]| {
        item.pairs().unwrap_or_default().iter().any(|(key, _)| {
            key.as_str().is_some_and(|key| names.contains(&key.rsplit('.').next().unwrap_or(key)))
        })
    };
    let plays = items.iter().filter(|item| has(item, &["hosts", "import_playbook"])).count();
    let tasks = items.iter().filter(|item| !has(item, &["hosts"]) && tasks::is_task(item)).count();
    match (plays, tasks) {
        (1.., 0) => Shape::Playbook,
        (0, 1..) => Shape::Tasks,
        _ => Shape::Unclear,
    }
}

/// Whether a file may be a playbook or a list of tasks: a list in a folder of Ansible's, or one that has
/// plays.
fn is_candidate(path: &str, text: &str) -> bool {
    const FOLDERS: [&str; 6] = ["ansible", "playbooks", "playbook", "roles", "tasks", "handlers"];
    let first = text.lines().map(str::trim_end).find(|line| {
        !line.is_empty()
            && !line.trim_start().starts_with('#')
            && !line.starts_with("---")
            && !line.starts_with('%')
    });
    if !first.is_some_and(|line| line.trim_start().starts_with("- ") || line.trim() == "-") {
        return false;
    }
    let folder = parent(path).unwrap_or_default();
    if path.starts_with(".github/") || folder.split('/').any(|step| step == "templates") {
        return false;
    }
    folder.split('/').any(|step| FOLDERS.contains(&step))
        || text.contains("import_playbook:")
        || (text.contains("hosts:") && (text.contains("tasks:") || text.contains("roles:")))
}

/// Whether a file holds variables: of groups, hosts and roles.
fn is_variables(path: &str) -> bool {
    const FOLDERS: [&str; 4] = ["group_vars", "host_vars", "defaults", "vars"];
    parent(path).unwrap_or_default().split('/').any(|step| FOLDERS.contains(&step))
}

fn note_variables(files: &Files, path: &str, variables: &mut Variables) {
    let Some(text) = files.text(path) else { return };
    for document in parse_documents(&text, Profile::Go3).unwrap_or_default() {
        note_pairs(Some(&document.root), variables);
    }
}

fn note_pairs(mapping: Option<&Node>, variables: &mut Variables) {
    for (key, value) in mapping.and_then(Node::pairs).unwrap_or_default() {
        if let (Some(key), Some(value)) = (key.as_str(), value.as_str()) {
            variables.add(key, value);
        }
    }
}
