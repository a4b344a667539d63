//! The files of a repository, those that are manifests as objects, so that a fault can be an edit.

use std::{collections::BTreeMap, fs, io, path::Path};

use tiphys_value::{ObjectExt as _, Value};

/// A file.
#[derive(Clone, Debug)]
enum Content {
    Objects(Vec<Value>),
    Bytes(Vec<u8>),
}

/// The files by their paths.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    files: BTreeMap<String, Content>,
}

impl Tree {
    /// Reads a folder. What is no plain manifest is kept as it is.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(folder: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        tree.collect(folder, folder)?;
        Ok(tree)
    }

    fn collect(&mut self, root: &Path, folder: &Path) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                self.collect(root, &path)?;
                continue;
            }
            let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            let bytes = fs::read(&path)?;
            let content = manifests(&name, &bytes).map_or(Content::Bytes(bytes), Content::Objects);
            self.files.insert(name, content);
        }
        Ok(())
    }

    /// Adds an object to a file.
    pub fn add(&mut self, file: &str, object: Value) {
        let content = self.files.entry(file.to_owned()).or_insert_with(|| Content::Objects(Vec::new()));
        if let Content::Objects(objects) = content {
            objects.push(object);
        }
    }

    /// All objects with their files.
    pub fn objects(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.files.iter().flat_map(|(file, content)| {
            let objects = if let Content::Objects(objects) = content { objects.as_slice() } else { &[] };
            objects.iter().map(move |object| (file.as_str(), object))
        })
    }

    /// The same with one object edited; `None` if it is not in a plain manifest.
    #[must_use]
    pub fn edited(
        &self,
        kind: &str,
        namespace: &str,
        name: &str,
        edit: impl FnOnce(&mut Value),
    ) -> Option<Self> {
        let mut tree = self.clone();
        edit(tree.find(kind, namespace, name)?);
        Some(tree)
    }

    /// The same without one object.
    #[must_use]
    pub fn without(&self, kind: &str, namespace: &str, name: &str) -> Option<Self> {
        let mut tree = self.clone();
        tree.find(kind, namespace, name)?;
        for content in tree.files.values_mut() {
            if let Content::Objects(objects) = content {
                objects.retain(|object| !is_it(object, kind, namespace, name));
            }
        }
        Some(tree)
    }

    fn find(&mut self, kind: &str, namespace: &str, name: &str) -> Option<&mut Value> {
        self.files
            .values_mut()
            .filter_map(|content| if let Content::Objects(objects) = content { Some(objects) } else { None })
            .flatten()
            .find(|object| is_it(object, kind, namespace, name))
    }

    /// The file of an object.
    #[must_use]
    pub fn file_of(&self, kind: &str, namespace: &str, name: &str) -> Option<String> {
        self.objects()
            .find(|(_, object)| is_it(object, kind, namespace, name))
            .map(|(file, _)| file.to_owned())
    }

    /// Writes the files into a folder.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        for (name, content) in &self.files {
            let path = folder.join(name);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            match content {
                Content::Bytes(bytes) => fs::write(path, bytes)?,
                Content::Objects(objects) => {
                    let texts: Vec<String> = objects.iter().map(tiphys_yaml::to_yaml).collect();
                    fs::write(path, texts.join("---\n"))?;
                }
            }
        }
        Ok(())
    }
}

/// Whether an object is the one that is meant. In plain manifests the namespace may be the Application's to
/// say.
fn is_it(object: &Value, kind: &str, namespace: &str, name: &str) -> bool {
    object.kind() == kind
        && object.name() == name
        && (object.namespace() == namespace || object.namespace().is_empty())
}

/// The objects of a file, if it holds nothing else.
fn manifests(name: &str, bytes: &[u8]) -> Option<Vec<Value>> {
    let is_chart = name.contains("templates/") || name.ends_with("Chart.yaml") || name.contains("values");
    let is_kustomization = name.ends_with("kustomization.yaml");
    if is_chart || is_kustomization || !(name.ends_with(".yaml") || name.ends_with(".yml")) {
        return None;
    }
    let text = std::str::from_utf8(bytes).ok()?;
    let mut found = Vec::new();
    for document in format!("\n{text}").split("\n---") {
        let value = tiphys_yaml::from_yaml(document).ok()?;
        match value {
            Value::Null => {}
            value if value.kind().is_empty() || value.name().is_empty() => return None,
            value => found.push(value),
        }
    }
    Some(found)
}
