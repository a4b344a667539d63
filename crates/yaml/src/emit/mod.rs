//! Writing YAML: libyaml's emitter as go-yaml v2 and v3 maintain it.

mod analyze;
mod comments;
mod document;
mod events;
mod flow;
mod quoted;
mod scalars;
mod simple;
mod state;
mod value;

use crate::{Document, Node};
use state::Emitter;

pub use value::string_style;
pub(crate) use value::{emit_value, value_to_node};

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
    /// Columns per level, 2 to 9; anything else means 2.
    pub indent: usize,
    /// Sequences below mappings.
    pub sequence_indent: SequenceIndent,
}

impl EmitOptions {
    /// kyaml's `yaml.Marshal` and Kustomize's output: two columns, compact sequences.
    pub const KYAML: Self = Self { indent: 2, sequence_indent: SequenceIndent::Compact };
    /// kyaml with `WideSequenceStyle`; also Helm's `toYamlPretty`.
    pub const KYAML_WIDE: Self = Self { indent: 2, sequence_indent: SequenceIndent::Wide };
    /// go-yaml v3's own `yaml.Marshal`: four columns, wide sequences.
    pub const GO3: Self = Self { indent: 4, sequence_indent: SequenceIndent::Wide };
}

/// One node as a document, as go-yaml v3 writes it: with a final newline and without `---`.
pub fn emit(node: &Node, options: EmitOptions) -> String {
    let mut emitter = Emitter::go3(options);
    emitter.document("", node, "");
    emitter.finish()
}

/// Documents with their comments, as go-yaml v3's encoder writes them one after the other: each but
/// the first behind `---`.
pub fn emit_documents(documents: &[Document], options: EmitOptions) -> String {
    let mut emitter = Emitter::go3(options);
    for document in documents {
        emitter.document(&document.head_comment, &document.root, &document.foot_comment);
    }
    emitter.finish()
}
