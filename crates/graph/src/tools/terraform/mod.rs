//! Terraform files: blocks, attributes and references, with their places.

mod parse;
mod value;
mod writers;

use std::{collections::BTreeMap, sync::Arc};

use tiphys_diag::Span;
use tiphys_vfs::parent;

use crate::Files;

pub use value::{Expression, Reference, Value};

/// An attribute: `name = expression`.
#[derive(Clone, Debug)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// What it is set to.
    pub expression: Expression,
}

/// A block: `kind "label" "label" { … }`.
#[derive(Clone, Debug)]
pub struct Block {
    /// The word that it starts with.
    pub kind: String,
    /// Its labels.
    pub labels: Vec<String>,
    /// Its attributes.
    pub attributes: Vec<Attribute>,
    /// The blocks in it; the `content` of a `dynamic` block counts as a block of the dynamic one's label.
    pub blocks: Vec<Block>,
    /// Its first line.
    pub span: Span,
}

impl Block {
    /// The value of an attribute.
    pub fn get(&self, name: &str) -> Option<&Expression> {
        self.attributes.iter().find(|attribute| attribute.name == name).map(|it| &it.expression)
    }

    /// The text of an attribute that is a plain string.
    pub fn str(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    /// The blocks in it of one kind.
    pub fn children<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Block> {
        self.blocks.iter().filter(move |block| block.kind == kind)
    }

    /// Every reference in it, however deep.
    pub fn references(&self) -> Vec<&Reference> {
        let own = self.attributes.iter().flat_map(|attribute| attribute.expression.references.iter());
        own.chain(self.blocks.iter().flat_map(Self::references)).collect()
    }

    /// Whether it is a resource of a type.
    pub fn is_resource(&self, kind: &str) -> bool {
        self.kind == "resource" && self.labels.first().is_some_and(|label| label == kind)
    }

    /// `type.name` of a resource.
    pub fn address(&self) -> String {
        self.labels.join(".")
    }
}

/// A file that Terraform cannot read.
#[derive(Clone, Debug)]
pub struct Unreadable {
    /// Why.
    pub message: String,
    /// Where.
    pub span: Span,
}

/// A file of the module that a function such as `file` or `templatefile` reads.
#[derive(Clone, Debug)]
pub struct FileRead {
    /// The function.
    pub function: String,
    /// The file, from the folder of the module.
    pub path: String,
    /// Where it is called.
    pub span: Span,
}

/// The Terraform files of a repository.
#[derive(Debug, Default)]
pub struct Terraform {
    /// The blocks of each file.
    pub files: BTreeMap<Arc<str>, Vec<Block>>,
    /// The files that functions read, wherever they are sure to be read.
    pub reads: Vec<FileRead>,
    /// The files that cannot be read.
    pub unreadable: Vec<Unreadable>,
}

impl Terraform {
    /// Reads the files that end in `.tf` or `.tfvars`.
    pub fn from_files(files: &Files) -> Self {
        let mut found = Self::default();
        for path in files.ending(&[".tf", ".tfvars"]) {
            let Some(text) = files.text(path) else { continue };
            match parse::text(path, &text) {
                Ok(text) => {
                    found.files.insert(path.clone(), text.blocks);
                    found.reads.extend(text.reads);
                }
                Err(unreadable) => found.unreadable.push(unreadable),
            }
        }
        found
    }

    /// The blocks of each module: a folder.
    pub fn modules(&self) -> BTreeMap<&str, Vec<&Block>> {
        let mut modules: BTreeMap<&str, Vec<&Block>> = BTreeMap::new();
        for (file, blocks) in self.files.iter().filter(|(file, _)| file.ends_with(".tf")) {
            modules.entry(parent(file).unwrap_or_default()).or_default().extend(blocks);
        }
        modules
    }

    /// Every block of every module.
    pub fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.files.values().flatten()
    }

    /// Every resource of a type.
    pub fn resources<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Block> {
        self.blocks().filter(move |block| block.is_resource(kind))
    }
}
