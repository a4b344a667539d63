//! Writing node trees as go-yaml v3 and kyaml do.

use crate::{Document, Node};

/// How a block sequence below a mapping key is indented.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SequenceIndent {
    /// `- ` stands under the key's first letter (kyaml's default).
    #[default]
    Compact,
    /// `- ` is indented one step deeper.
    Wide,
}

/// Layout of written YAML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmitOptions {
    /// Columns per level, 2 to 9.
    pub indent: usize,
    /// Sequences below mappings.
    pub sequence_indent: SequenceIndent,
}

impl EmitOptions {
    /// kyaml's `yaml.Marshal` and Kustomize's output: two columns, compact sequences.
    pub const KYAML: Self = Self { indent: 2, sequence_indent: SequenceIndent::Compact };
    /// kyaml with `WideSequenceStyle`.
    pub const KYAML_WIDE: Self = Self { indent: 2, sequence_indent: SequenceIndent::Wide };
    /// go-yaml v3's own `yaml.Marshal`: four columns, wide sequences.
    pub const GO3: Self = Self { indent: 4, sequence_indent: SequenceIndent::Wide };
}

/// One node as a document, with a final newline and without `---`.
pub fn emit(node: &Node, options: EmitOptions) -> String {
    let _ = (node, options);
    String::new()
}

/// Documents with their comments, separated by `---`.
pub fn emit_documents(documents: &[Document], options: EmitOptions) -> String {
    let _ = (documents, options);
    String::new()
}
