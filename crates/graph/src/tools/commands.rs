//! What `kubectl` and `helm` do when a script calls them.

use std::collections::HashMap;

use tiphys_render::manifest;
use tiphys_value::{ObjectExt, ResourceKey};
use tiphys_vfs::{EntryKind, join};

use super::{Action, Command, Script, Tool, Variables, What, Writer, parse_shell};
use crate::Files;

/// Where a script runs.
pub(super) struct Setting<'a> {
    /// The files of the repository.
    pub files: &'a Files,
    /// The tool that runs it.
    pub tool: Tool,
    /// What is known of its variables.
    pub variables: &'a Variables,
    /// Folders that relative paths may be meant from.
    pub folders: Vec<String>,
}

/// What a command does, before its place is known.
struct Write {
    action: Action,
    what: What,
    namespace: Option<String>,
}

/// What a script writes to the cluster.
pub(super) fn writers(script: &Script, setting: &Setting<'_>) -> Vec<Writer> {
    if !["kubectl", "helm", "oc "].iter().any(|program| script.text.contains(program)) {
        return Vec::new();
    }
    let mut variables = setting.variables.clone();
    let mut downloads = HashMap::new();
    let mut found = Vec::new();
    let mut before: Vec<String> = Vec::new();
    for command in parse_shell(&script.text) {
        let words = assignments(&command.words, &mut variables);
        let words: Vec<String> = words.iter().map(|word| variables.expand(word)).collect();
        note_download(&words, &mut downloads);
        let called = Called {
            words: &words,
            command: &command,
            before: &before,
            downloads: &downloads,
            setting,
            script,
        };
        for write in called.writes() {
            let span = script.span(setting.files, command.line);
            let Write { action, what, namespace } = write;
            let is_by_kubectl = !matches!(what, What::Release { .. });
            found.push(Writer { tool: setting.tool, action, what, is_by_kubectl, namespace, span });
        }
        before = words;
    }
    found
}

/// Notes `NAME=value` words before the program, and returns the words from the program on.
fn assignments<'a>(words: &'a [String], variables: &mut Variables) -> &'a [String] {
    let mut rest = words;
    while let Some((name, value)) = rest.first().and_then(|word| word.split_once('=')) {
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            break;
        }
        variables.add(name, value);
        rest = &rest[1..];
    }
    match rest.first().map(String::as_str) {
        Some("export" | "local" | "readonly" | "declare") => assignments(&rest[1..], variables),
        Some("command" | "env" | "k3s" | "microk8s" | "minikube") => &rest[1..],
        _ => rest,
    }
}

/// Notes which address a file was downloaded from.
fn note_download(words: &[String], downloads: &mut HashMap<String, String>) {
    let Some(("curl" | "wget", rest)) = words.split_first().map(|(program, rest)| (program.as_str(), rest))
    else {
        return;
    };
    let Some(address) = rest.iter().find(|word| is_address(word)) else { return };
    let target = rest.iter().position(|word| matches!(word.as_str(), "-o" | "-O" | "--output"));
    let named =
        target.and_then(|at| rest.get(at + 1)).filter(|word| !is_address(word) && !word.starts_with('-'));
    let base = address.rsplit('/').next().unwrap_or_default();
    downloads.insert(named.map_or(base, String::as_str).to_owned(), address.clone());
}

fn is_address(word: &str) -> bool {
    word.starts_with("https://") || word.starts_with("http://")
}

struct Called<'a> {
    words: &'a [String],
    command: &'a Command,
    before: &'a [String],
    downloads: &'a HashMap<String, String>,
    setting: &'a Setting<'a>,
    script: &'a Script,
}

impl Called<'_> {
    fn writes(&self) -> Vec<Write> {
        let Some(program) = self.words.first() else { return Vec::new() };
        let arguments = Arguments::from_words(&self.words[1..]);
        match program.rsplit('/').next().unwrap_or_default() {
            "kubectl" | "oc" | "k" => self.kubectl(&arguments),
            "helm" | "helm3" => {
                let release = helm(&arguments);
                let values = release.is_some().then(|| self.values_files(&arguments));
                release.into_iter().chain(values.into_iter().flatten()).collect()
            }
            _ => Vec::new(),
        }
    }

    fn kubectl(&self, arguments: &Arguments<'_>) -> Vec<Write> {
        let namespace = arguments.option(&["-n", "--namespace"]);
        if arguments.option(&["--dry-run"]).is_some_and(|value| value != "none") || arguments.has("--dry-run")
        {
            return Vec::new();
        }
        let (action, named) = match arguments.plain.first().copied() {
            Some("apply" | "create" | "replace") => (Action::Apply, None),
            Some("delete") => (Action::Delete, objects(&arguments.plain[1..])),
            Some("patch" | "annotate" | "label" | "scale") => (Action::Patch, objects(&arguments.plain[1..])),
            // `set image KIND/NAME …`
            Some("set") => (Action::Patch, objects(arguments.plain.get(2..).unwrap_or_default())),
            Some("wait" | "get" | "describe" | "logs" | "port-forward") => {
                (Action::Ask, objects(&arguments.plain[1..]))
            }
            // `rollout status KIND/NAME`
            Some("rollout") => (Action::Ask, objects(arguments.plain.get(2..).unwrap_or_default())),
            _ => return Vec::new(),
        };
        let write = |what| Write { action, what, namespace: namespace.map(str::to_owned) };
        let mut found: Vec<Write> = named.into_iter().flatten().map(|key| write(What::Object(key))).collect();
        if action == Action::Ask {
            return found;
        }
        for file in arguments.all(&["-f", "--filename", "-k", "--kustomize"]) {
            found.extend(self.manifests(file).into_iter().map(write));
        }
        if found.is_empty() && arguments.plain.first() == Some(&"create") {
            found.extend(created(&arguments.plain[1..]).map(|key| write(What::Object(key))));
        }
        found
    }

    /// What `-f` means.
    fn manifests(&self, file: &str) -> Vec<What> {
        if file == "-" || file == "/dev/stdin" {
            return self.standard_input();
        }
        if is_address(file) || file.starts_with("github.com/") {
            return vec![What::Address(file.to_owned())];
        }
        let base = file.rsplit('/').next().unwrap_or(file);
        if let Some(address) = self.downloads.get(file).or_else(|| self.downloads.get(base)) {
            return vec![What::Address(address.clone())];
        }
        let found = path(self.setting.files, &self.setting.folders, file);
        found.or_else(|| self.absent(file)).into_iter().collect()
    }

    /// The files with values that a call of `helm` names and that are not there.
    fn values_files(&self, arguments: &Arguments<'_>) -> Vec<Write> {
        let namespace = arguments.option(&["-n", "--namespace"]);
        let named = arguments.all(&["-f", "--values"]);
        let absent = named.filter(|file| path(self.setting.files, &self.setting.folders, file).is_none());
        let what = absent.filter_map(|file| self.absent(file));
        what.map(|what| Write { action: Action::Apply, what, namespace: namespace.map(str::to_owned) })
            .collect()
    }

    /// A file that is not there, where the script does not make it and stays in its folder.
    fn absent(&self, file: &str) -> Option<What> {
        const MAKERS: [&str; 7] = ["cd", "pushd", "chdir", "git clone", "git checkout", "tar", "unzip"];
        const ENDINGS: [&str; 3] = [".yaml", ".yml", ".json"];
        let is_plain = !file.starts_with(['/', '~', '-', '$', '{', '<'])
            && !file.contains(['$', '{', '*', '<', '%', '@', ':', '\n']);
        let is_file = ENDINGS.iter().any(|ending| file.ends_with(ending));
        let text = &self.script.text;
        // Nobody writes a longer one by hand, and each file is looked for in all of it.
        const LONGEST: usize = 64 << 10;
        let is_short = text.len() <= LONGEST;
        let is_made = || text.contains("mktemp") || MAKERS.iter().any(|maker| calls(text, maker));
        if !is_plain || !is_file || !is_short || is_made() {
            return None;
        }
        let base = file.rsplit('/').next().unwrap_or(file);
        // Whatever else speaks of the file may make it, or ask whether it is there.
        let mut others = text.lines().filter(|line| line.contains(base));
        let only = others.next().is_some_and(|line| !line.contains(['>', '[', '|']));
        if !only || others.next().is_some() {
            return None;
        }
        Some(What::Absent { path: file.to_owned(), folders: self.setting.folders.clone() })
    }

    fn standard_input(&self) -> Vec<What> {
        if let Some(text) = &self.command.stdin {
            let objects = manifest::parse_objects("stdin", text, true).unwrap_or_default();
            return objects.iter().map(|object| What::Object(object.value.resource_key())).collect();
        }
        if !self.command.is_piped {
            return Vec::new();
        }
        let arguments = Arguments::from_words(self.before.get(1..).unwrap_or_default());
        match self.before.first().map(String::as_str) {
            Some("curl" | "wget") => {
                let address = self.before.iter().find(|word| is_address(word));
                address.map(|address| What::Address(address.clone())).into_iter().collect()
            }
            Some("kubectl") if arguments.plain.first() == Some(&"create") => {
                created(&arguments.plain[1..]).map(What::Object).into_iter().collect()
            }
            Some("helm") if arguments.plain.first() == Some(&"template") => {
                release(&arguments).into_iter().collect()
            }
            Some("cat" | "envsubst" | "sed" | "kustomize") => {
                let paths = arguments.plain.iter().rev();
                let mut found = paths.filter_map(|it| path(self.setting.files, &self.setting.folders, it));
                found.next().into_iter().collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Whether a script calls a program: the words stand at the beginning of a command. Going to the folder above
/// the script's own leads to the root, most often, which is looked into anyway.
fn calls(text: &str, program: &str) -> bool {
    let starts = |line: &str| {
        line.trim_start().strip_prefix(program).is_some_and(|rest| {
            let is_to_root = program == "cd" && rest.contains("dirname") && rest.trim_end().ends_with("..\"");
            rest.starts_with([' ', '\t']) && !is_to_root
        })
    };
    text.lines().any(|line| line.split(['&', ';', '|', '(']).any(starts))
}

fn helm(arguments: &Arguments<'_>) -> Option<Write> {
    let action = match arguments.plain.first().copied()? {
        "install" | "upgrade" => Action::Apply,
        "uninstall" | "delete" => Action::Delete,
        _ => return None,
    };
    if arguments.has("--dry-run") || arguments.option(&["--dry-run"]).is_some() {
        return None;
    }
    let namespace = arguments.option(&["-n", "--namespace"]).map(str::to_owned);
    Some(Write { action, what: release(arguments)?, namespace })
}

/// `VERB NAME CHART`, or `VERB CHART --generate-name`.
fn release(arguments: &Arguments<'_>) -> Option<What> {
    let (name, chart) = match arguments.plain.as_slice() {
        [_, name, chart, ..] => (*name, *chart),
        [_, chart] if arguments.has("--generate-name") || arguments.has("-g") => ("", *chart),
        [_, name] => (*name, ""),
        _ => return None,
    };
    let repository = arguments.option(&["--repo"]).unwrap_or_default();
    Some(What::Release { name: name.to_owned(), chart: chart.to_owned(), repository: repository.to_owned() })
}

/// The object of `kubectl create KIND NAME`.
fn created(words: &[&str]) -> Option<ResourceKey> {
    let kind = match *words.first()? {
        "namespace" | "ns" => "Namespace",
        "secret" => "Secret",
        "configmap" | "cm" => "ConfigMap",
        "serviceaccount" | "sa" => "ServiceAccount",
        "clusterrolebinding" => "ClusterRoleBinding",
        _ => return None,
    };
    let name = words.get(if kind == "Secret" { 2 } else { 1 })?;
    Some(ResourceKey::new(String::new(), kind, String::new(), *name))
}

/// The objects of `KIND NAME…` or `KIND/NAME…`; the kind as it is written.
fn objects(words: &[&str]) -> Option<Vec<ResourceKey>> {
    let key = |kind: &str, name: &str| ResourceKey::new(String::new(), kind, String::new(), name);
    let words: Vec<&str> = words.iter().copied().filter(|word| !word.contains('=')).collect();
    let (first, rest) = words.split_first()?;
    if first.contains('/') {
        return Some(
            words
                .iter()
                .filter_map(|word| word.split_once('/'))
                .map(|(kind, name)| key(kind, name))
                .collect(),
        );
    }
    Some(rest.iter().take(1).map(|name| key(first, name)).collect())
}

/// A file or folder of the repository that a script names.
pub(super) fn path(files: &Files, folders: &[String], named: &str) -> Option<What> {
    let relative = relative(named)?;
    folders.iter().find_map(|folder| {
        let path = join(folder, relative).ok()?;
        if files.contains(&path) {
            let objects = objects_of(files, &path);
            return Some(What::Path { path, objects });
        }
        if path.is_empty()
            || !matches!(files.tree().kind(&path), Ok(EntryKind::Dir))
            || !files.has_folder(&path)
        {
            return None;
        }
        let inside = format!("{path}/");
        let below = files
            .ending(&[".yaml", ".yml"])
            .filter(|file| file.strip_prefix(inside.as_str()).is_some_and(|rest| !rest.contains('/')));
        let objects = below.flat_map(|file| objects_of(files, file)).collect();
        Some(What::Path { path, objects })
    })
}

/// A path without the variable that stands for the folder it begins with.
fn relative(named: &str) -> Option<&str> {
    let mut rest = named;
    if rest.starts_with('$') || rest.starts_with("{{") {
        let end = match rest {
            _ if rest.starts_with("{{") => rest.find("}}")? + 2,
            _ if rest.starts_with("$(") => rest.rfind(')')? + 1,
            _ if rest.starts_with("${") => rest.find('}')? + 1,
            _ => rest.find('/')?,
        };
        rest = &rest[end..];
    } else if rest.starts_with('/') {
        return None;
    }
    let rest = rest.trim_start_matches('/');
    (!rest.is_empty() && !rest.contains(['$', '{', '*'])).then_some(rest)
}

fn objects_of(files: &Files, path: &str) -> Vec<ResourceKey> {
    let Some(text) = files.text(path) else { return Vec::new() };
    let objects = manifest::parse_objects(path, &text, true).unwrap_or_default();
    objects
        .iter()
        .filter(|object| !object.value.kind().is_empty())
        .map(|object| object.value.resource_key())
        .collect()
}

/// The words after a program, distinguished.
struct Arguments<'a> {
    plain: Vec<&'a str>,
    options: Vec<(&'a str, &'a str)>,
    flags: Vec<&'a str>,
}

/// Options of kubectl and helm that take no value.
const FLAGS: [&str; 26] = [
    "--install",
    "-i",
    "--wait",
    "--atomic",
    "--create-namespace",
    "--force",
    "--debug",
    "--dry-run",
    "--server-side",
    "--force-conflicts",
    "--ignore-not-found",
    "--all",
    "-A",
    "--all-namespaces",
    "--recursive",
    "-R",
    "--overwrite",
    "--generate-name",
    "-g",
    "--reuse-values",
    "--reset-values",
    "--dependency-update",
    "--devel",
    "--skip-crds",
    "--include-crds",
    "--prune",
];

impl<'a> Arguments<'a> {
    fn from_words(words: &'a [String]) -> Self {
        let mut arguments = Self { plain: Vec::new(), options: Vec::new(), flags: Vec::new() };
        let mut words = words.iter().map(String::as_str).peekable();
        while let Some(word) = words.next() {
            if !word.starts_with('-') || word == "-" {
                arguments.plain.push(word);
            } else if let Some((name, value)) = word.split_once('=') {
                arguments.options.push((name, value));
            } else if FLAGS.contains(&word) || words.peek().is_none_or(|next| next.starts_with("--")) {
                arguments.flags.push(word);
            } else if !word.starts_with("--") && word.len() > 2 && word.starts_with("-f") {
                arguments.options.push(("-f", &word[2..]));
            } else if let Some(value) = words.next() {
                arguments.options.push((word, value));
            }
        }
        arguments
    }

    fn option(&self, names: &[&str]) -> Option<&'a str> {
        self.options.iter().find(|(name, _)| names.contains(name)).map(|(_, value)| *value)
    }

    fn all(&self, names: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
        self.options.iter().filter(|(name, _)| names.contains(name)).flat_map(|(_, value)| value.split(','))
    }

    fn has(&self, name: &str) -> bool {
        self.flags.contains(&name)
    }
}
