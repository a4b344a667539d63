//! YAML exactly as the Go tools of Kubernetes read and write it.
//!
//! Two dialects matter: go-yaml v2 behind `sigs.k8s.io/yaml` (kubectl, Helm, the API server) and
//! go-yaml v3 behind kyaml (Kustomize). Both descend from libyaml; they differ in how scalars are
//! typed, in how text is laid out, and in v3 keeping comments. [`Profile`] names them.

mod convert;
mod emit;
mod error;
mod node;
mod split;

pub use convert::{from_value, from_yaml, from_yaml_strict, to_value, to_yaml, yaml_to_json};
pub use emit::{EmitOptions, SequenceIndent, emit, emit_documents};
pub use error::{Error, ErrorKind, Position};
pub use node::{Comments, Content, Document, Kind, Node, Span, Style};
pub use split::{split_helm_manifests, split_kubernetes_documents};

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
    let _ = (text, profile);
    Err(Error::new(ErrorKind::Syntax, "yaml: not wired yet".to_owned()))
}

/// The first document of a stream, as go-yaml's `Unmarshal` reads it (what follows is not even
/// scanned); `None` for an empty stream.
///
/// # Errors
/// The first syntax error, with go-yaml's text.
pub fn parse_first(text: &str, profile: Profile) -> Result<Option<Document>, Error> {
    Ok(parse_documents(text, profile)?.into_iter().next())
}
