//! Observing a render, for origins.
//!
//! Map entries, list items and variables carry an [`OriginId`]; `0` is unknown. The caller gives ids to the
//! values it passes in. While a [`Tracer`] is present, the executor collects the ids that are read and passes
//! them on through variables, `with`, `range`, `dict`, `list` and the like.

use crate::OriginId;
use std::ops::Range;

/// A place in a parsed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site<'t> {
    /// Name of the executing template (a file's name, or that of a `define`).
    pub template: &'t str,
    /// Name of the parsed text: the file.
    pub file: &'t str,
    /// Byte offset of the node in the parsed text.
    pub offset: usize,
}

/// A part of a text, and where what it says came from.
pub type Part = (Range<usize>, OriginId);

/// Called by the executor; every method has an empty default.
pub trait Tracer {
    /// One id that stands for all of the ids (which may repeat). Of no ids it stands for what no value made.
    fn union(&mut self, ids: &[OriginId]) -> OriginId;

    /// The origin of a table that was read from a text, of the origins of its values.
    fn table(&mut self, entries: &[(&str, OriginId)]) -> OriginId {
        let ids: Vec<OriginId> = entries.iter().map(|(_, origin)| *origin).collect();
        self.union(&ids)
    }

    /// The origin of a list that was read from a text, of the origins of its items.
    fn list(&mut self, items: &[OriginId]) -> OriginId {
        self.union(items)
    }

    /// Literal text was written to the current buffer.
    fn text(&mut self, _site: Site<'_>, _output: Range<usize>) {}

    /// The action at `site` wrote a value to the current buffer; `reads` made the value, including what
    /// templates included below have read.
    fn action(&mut self, _site: Site<'_>, _output: Range<usize>, _reads: &[OriginId]) {}

    /// The body of an `if`, `with` or `range` begins; `reads` decided that.
    fn enter_control(&mut self, _site: Site<'_>, _reads: &[OriginId]) {}

    /// The body of an `if`, `with` or `range` (or one round of it) ended.
    fn leave_control(&mut self) {}

    /// Whether an origin is one step below another one: a key of that table, an item of that list.
    fn is_step(&self, _below: OriginId, _above: OriginId) -> bool {
        false
    }

    /// The origin of a key that a table with this origin does not have.
    fn missing(&mut self, table: OriginId, _key: &str) -> OriginId {
        table
    }

    /// A function made a text whose parts came from different values; it may be printed by the action at
    /// `site`.
    fn text_made(&mut self, _site: Site<'_>, _text: &str, _parts: &[Part]) {}

    /// The parts of a text that is about to be read or executed, in their order, if more is known of it than
    /// `whole`.
    fn parts(&mut self, _text: &str, _whole: OriginId) -> Vec<Part> {
        Vec::new()
    }

    /// The text with these parts is executed as a template of this file's name.
    fn enter_text(&mut self, _file: &str, _parts: Vec<Part>) {}

    /// The text has been executed.
    fn leave_text(&mut self) {}

    /// A template begins. With `own_buffer` (as for `include`) its output goes to a new buffer, whose ranges
    /// start at 0; else (as for `template`) it goes on in the current one. `call` is missing for the
    /// outermost.
    fn enter_template(&mut self, _name: &str, _call: Option<Site<'_>>, _own_buffer: bool) {}

    /// The template ended; `output` is the content of its own buffer, if it had one.
    fn leave_template(&mut self, _output: Option<&str>) {}
}
