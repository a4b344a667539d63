//! What tasks write to the cluster.

use std::{collections::HashMap, sync::Arc};

use tiphys_render::manifest;
use tiphys_value::{GroupVersionKind, ObjectExt, ResourceKey};
use tiphys_vfs::parent;
use tiphys_yaml::{Node, Profile, to_value};

use super::{Ansible, Task};
use crate::{
    Files,
    tools::{Action, Script, Tool, What, Writer, commands, text_lines::node_span},
};

impl Ansible {
    /// What the tasks write to the cluster.
    pub fn writers(&self, files: &Files) -> Vec<Writer> {
        let mut found = Vec::new();
        for (path, file) in &self.files {
            let downloads = self.downloads(&file.tasks);
            for task in &file.tasks {
                let reader = Reader { ansible: self, files, path, task, downloads: &downloads };
                found.extend(reader.writers());
            }
        }
        found
    }

    /// The addresses of the files that tasks download.
    fn downloads(&self, tasks: &[Task]) -> HashMap<String, String> {
        let fetches = tasks.iter().filter(|task| task.module() == "get_url");
        fetches
            .filter_map(|task| {
                Some((
                    self.variables.expand(task.argument("dest")?),
                    self.variables.expand(task.argument("url")?),
                ))
            })
            .collect()
    }
}

struct Reader<'a> {
    ansible: &'a Ansible,
    files: &'a Files,
    path: &'a Arc<str>,
    task: &'a Task,
    downloads: &'a HashMap<String, String>,
}

impl Reader<'_> {
    fn writers(&self) -> Vec<Writer> {
        match self.task.module() {
            "k8s" | "kubernetes" => self.objects(),
            "helm" => self.release().into_iter().collect(),
            "shell" | "command" | "raw" | "script" => self.lines(),
            _ => Vec::new(),
        }
    }

    fn writer(&self, action: Action, what: What, namespace: Option<String>) -> Writer {
        let span = node_span(self.files, self.path, &self.task.key);
        Writer { tool: Tool::Ansible, action, what, is_by_kubectl: false, namespace, span }
    }

    fn argument(&self, name: &str) -> Option<String> {
        self.task.argument(name).map(|value| self.ansible.variables.expand(value))
    }

    fn action(&self, name: &str) -> Action {
        match self.argument(name).as_deref() {
            Some("absent") => Action::Delete,
            Some("patched") => Action::Patch,
            _ => Action::Apply,
        }
    }

    fn objects(&self) -> Vec<Writer> {
        let (action, namespace) = (self.action("state"), self.argument("namespace"));
        let mut found = Vec::new();
        if let Some(source) = self.argument("src") {
            found.extend(self.source(&source));
        }
        if let Some(definition) =
            self.task.arguments.get("definition").or_else(|| self.task.arguments.get("resource_definition"))
        {
            found.extend(self.defined(definition).into_iter().map(What::Object));
        }
        if let (Some(kind), Some(name), true) =
            (self.argument("kind"), self.argument("name"), found.is_empty())
        {
            let api_version = self.argument("api_version").unwrap_or_default();
            let group = GroupVersionKind::from_api_version(&api_version, kind.clone()).group;
            found.push(What::Object(ResourceKey::new(
                group,
                kind,
                namespace.clone().unwrap_or_default(),
                name,
            )));
        }
        found.into_iter().map(|what| self.writer(action, what, namespace.clone())).collect()
    }

    /// What `src` means: an address, a file that was downloaded, or a file of the repository.
    fn source(&self, source: &str) -> Option<What> {
        if source.starts_with("http") {
            return Some(What::Address(source.to_owned()));
        }
        if let Some(address) = self.downloads.get(source) {
            return Some(What::Address(address.clone()));
        }
        commands::path(self.files, &self.folders(), source)
    }

    fn defined(&self, definition: &Node) -> Vec<ResourceKey> {
        if let Some(text) = definition.as_str() {
            let objects = manifest::parse_objects("definition", text, true).unwrap_or_default();
            return objects.iter().map(|object| object.value.resource_key()).collect();
        }
        let items = definition.items().unwrap_or_else(|| std::slice::from_ref(definition));
        let values = items.iter().filter_map(|item| to_value(item, Profile::Go3).ok());
        values.filter(|value| !value.kind().is_empty()).map(|value| value.resource_key()).collect()
    }

    fn release(&self) -> Option<Writer> {
        let chart = self.argument("chart_ref").unwrap_or_default();
        let name = self.argument("name").or_else(|| self.argument("release_name"))?;
        let state =
            if self.task.arguments.get("release_state").is_some() { "release_state" } else { "state" };
        let namespace = self.argument("release_namespace").or_else(|| self.argument("namespace"));
        let repository = self.argument("chart_repo_url").unwrap_or_default();
        Some(self.writer(self.action(state), What::Release { name, chart, repository }, namespace))
    }

    fn lines(&self) -> Vec<Writer> {
        let free = self.task.arguments.as_str().map(|_| &self.task.arguments);
        let Some(node) = free
            .or_else(|| self.task.arguments.get("cmd").or_else(|| self.task.arguments.get("_raw_params")))
        else {
            return Vec::new();
        };
        let Some(mut script) = Script::of_node(self.path, node) else { return Vec::new() };
        for (file, address) in self.downloads {
            script.text = self.ansible.variables.expand(&script.text).replace(file.as_str(), address);
        }
        let setting = commands::Setting {
            files: self.files,
            tool: Tool::Ansible,
            variables: &self.ansible.variables,
            folders: self.folders(),
        };
        commands::writers(&script, &setting)
    }

    /// Folders that a path of a task may be meant from.
    fn folders(&self) -> Vec<String> {
        let own = parent(self.path).unwrap_or_default();
        let above = parent(own).unwrap_or_default();
        let mut folders = vec![own.to_owned(), above.to_owned()];
        folders.extend(
            ["files", "templates"]
                .map(|name| if above.is_empty() { name.to_owned() } else { format!("{above}/{name}") }),
        );
        folders.extend([parent(above).unwrap_or_default().to_owned(), String::new()]);
        folders
    }
}
