//! YAML exactly as the Go tools of Kubernetes read and write it.
//!
//! Two dialects matter: go-yaml v2 behind `sigs.k8s.io/yaml` (kubectl, Helm, the API server) and
//! go-yaml v3 behind kyaml (Kustomize). Both descend from libyaml; they differ in how scalars are
//! typed, in how text is laid out, and in v3 keeping comments. [`Profile`] names them.
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod alias;
mod chars;
mod compose;
mod convert;
mod decode;
mod emit;
mod encoding;
mod error;
mod fast_path;
mod node;
mod number;
mod parser;
mod resolve;
mod scanner;
mod sort;
mod split;

pub use convert::{
    field_text, from_value, from_yaml, from_yaml_entries, from_yaml_for_fields, from_yaml_strict,
    from_yaml_within, plain_value, through_json, to_value, to_value_within, to_yaml, try_to_yaml,
    yaml_to_json,
};
pub use emit::{EmitOptions, SequenceIndent, emit, emit_documents, string_style};
pub use encoding::decode_text;
pub use error::{Error, ErrorKind, Position};
pub use fast_path::{Make, read_simple};
pub use node::{Comments, Content, Document, Kind, Node, Span, Style};
pub use number::go_float;
pub use parser::{Event, EventKind, Events, Properties};
pub use resolve::{Scalar, resolve};
pub use sort::sort_keys;
pub use split::{split_helm_manifests, split_helm3_manifests, split_kubernetes_documents};

use compose::Composer;
use tiphys_value::Budget;

/// The largest text that is read, in bytes.
pub const MAX_SIZE: usize = 1 << 30;

/// Which go-yaml reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Profile {
    /// go-yaml v2: `yes`, `on`, `0777`, `1_000` are typed scalars; comments are dropped.
    Go2,
    /// go-yaml v3: YAML 1.2 booleans, comments kept on nodes.
    Go3,
}

/// Every document of a stream as a node tree.
///
/// # Errors
/// The first syntax error, with go-yaml's text.
pub fn parse_documents(text: &str, profile: Profile) -> Result<Vec<Document>, Error> {
    parse_documents_within(text, profile, &Budget::of_text())
}

/// As [`parse_documents`], within a budget that others may share.
///
/// # Errors
/// The first syntax error, with go-yaml's text, or [`ErrorKind::Budget`].
pub fn parse_documents_within(text: &str, profile: Profile, budget: &Budget) -> Result<Vec<Document>, Error> {
    check_size(text)?;
    let mut composer = Composer::new(text, profile, budget);
    let mut documents = Vec::new();
    while let Some(document) = composer.next_document()? {
        documents.push(document);
    }
    Ok(documents)
}

/// The first document of a stream, as go-yaml's `Unmarshal` reads it (what follows is not even
/// scanned); `None` for an empty stream.
///
/// # Errors
/// The first syntax error, with go-yaml's text.
pub fn parse_first(text: &str, profile: Profile) -> Result<Option<Document>, Error> {
    parse_first_within(text, profile, &Budget::of_document())
}

/// As [`parse_first`], within a budget that others may share.
///
/// # Errors
/// The first syntax error, with go-yaml's text, or [`ErrorKind::Budget`].
pub fn parse_first_within(text: &str, profile: Profile, budget: &Budget) -> Result<Option<Document>, Error> {
    check_size(text)?;
    Composer::new(text, profile, budget).next_document()
}

/// Offsets are 32 bits wide.
fn check_size(text: &str) -> Result<(), Error> {
    if text.len() > MAX_SIZE {
        return Err(Error::new(ErrorKind::Limit, format!("yaml: input is larger than {MAX_SIZE} bytes")));
    }
    Ok(())
}
