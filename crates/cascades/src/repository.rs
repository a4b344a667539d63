//! Repositories that cascades are made of, and what their programs need of each other.

use std::path::Path;

use tiphys_value::{ObjectExt as _, Value};

use crate::tree::Tree;

/// What a program needs of another.
#[derive(Clone, Debug)]
pub struct Need {
    /// Namespace of the program and of the Service.
    pub namespace: String,
    /// The workload.
    pub workload: String,
    /// The Service; empty for the API server.
    pub service: String,
    /// Its port.
    pub port: u16,
}

/// A repository.
#[derive(Clone, Debug)]
pub struct Repository {
    /// Its name in tables.
    pub name: String,
    /// Its files.
    pub tree: Tree,
    /// How its programs behave: rules of the world.
    pub rules: Value,
    /// What its programs need.
    pub needs: Vec<Need>,
    /// The DaemonSet that is the pods' network: namespace and name.
    pub network: Option<(String, String)>,
}

impl Repository {
    /// A folder with plain Applications at its top or in `apps`.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(name: &str, folder: &Path) -> std::io::Result<Self> {
        Ok(Self {
            name: name.to_owned(),
            tree: Tree::read(folder)?,
            rules: Value::Null,
            needs: Vec::new(),
            network: None,
        })
    }

    /// The Applications, sets and projects that a person would apply by hand.
    #[must_use]
    pub fn roots(tree: &Tree) -> Vec<Value> {
        let is_root = |object: &Value| object.api_version().starts_with("argoproj.io/");
        let at = |is_at: &dyn Fn(&str) -> bool| -> Vec<Value> {
            tree.objects()
                .filter(|(file, object)| is_at(file) && is_root(object))
                .map(|(_, object)| object.clone())
                .collect()
        };
        let top = at(&|file| !file.contains('/'));
        let mut roots = if top.is_empty() { at(&|file| file.starts_with("apps/")) } else { top };
        roots.sort_by_key(|root| root.kind() != "AppProject");
        roots
    }
}
