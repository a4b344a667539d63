//! The emitter's state machine: documents and block collections.

use super::{
    EmitOptions, SequenceIndent,
    analyze::Analysis,
    events::{Event, Kind},
};
use crate::Style;

/// What go-yaml's two emitters do differently.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Go2,
    Go3,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Root,
    DocumentEnd,
    FlowSequenceFirstItem,
    FlowSequenceTrailItem,
    FlowSequenceItem,
    FlowMappingFirstKey,
    FlowMappingTrailKey,
    FlowMappingKey,
    FlowMappingSimpleValue,
    FlowMappingValue,
    BlockSequenceFirstItem,
    BlockSequenceItem,
    BlockMappingFirstKey,
    BlockMappingKey,
    BlockMappingSimpleValue,
    BlockMappingValue,
}

/// Where a node stands.
#[derive(Clone, Copy, Default)]
pub(super) struct Context {
    pub mapping: bool,
    pub simple_key: bool,
}

pub(super) struct Emitter<'a> {
    pub out: String,
    pub dialect: Dialect,
    pub best_indent: i32,
    compact: bool,
    /// Columns after which text is folded.
    pub best_width: usize,
    pub indent: i32,
    indents: Vec<i32>,
    pub state: State,
    pub states: Vec<State>,
    pub column: usize,
    /// The last character was a blank or a break, or nothing.
    pub whitespace: bool,
    /// The line has only blanks and `-`, `?`, `:` yet.
    pub indention: bool,
    pub flow_level: usize,
    pub context: Context,
    /// An empty line is due if the next content stands at this indentation.
    pub foot_indent: i32,
    pub head_comment: &'a str,
    pub line_comment: &'a str,
    pub foot_comment: &'a str,
    pub tail_comment: &'a str,
    pub key_line_comment: &'a str,
    documents: usize,
}

impl<'a> Emitter<'a> {
    /// go-yaml v3.
    pub(super) fn go3(options: EmitOptions) -> Self {
        let mut emitter = Self::new(Dialect::Go3);
        if (2..=9).contains(&options.indent) {
            emitter.best_indent = options.indent as i32;
        }
        emitter.compact = options.sequence_indent == SequenceIndent::Compact;
        emitter.best_width = usize::MAX;
        emitter
    }

    /// go-yaml v2.
    pub(super) fn go2() -> Self {
        Self::new(Dialect::Go2)
    }

    fn new(dialect: Dialect) -> Self {
        Self {
            out: String::new(),
            dialect,
            best_indent: 2,
            compact: false,
            best_width: 80,
            indent: -1,
            indents: Vec::new(),
            state: State::Root,
            states: Vec::new(),
            column: 0,
            whitespace: true,
            indention: true,
            flow_level: 0,
            context: Context::default(),
            foot_indent: -1,
            head_comment: "",
            line_comment: "",
            foot_comment: "",
            tail_comment: "",
            key_line_comment: "",
            documents: 0,
        }
    }

    /// What was written.
    pub(super) fn finish(self) -> String {
        self.out
    }

    pub(super) fn begin_document(&mut self, head: &'a str) {
        if !head.is_empty() {
            self.head_comment = head;
        }
        if self.documents > 0 {
            self.write_indent();
            self.write_indicator("---", true, false, false);
            if self.dialect == Dialect::Go3 {
                self.write_indent();
            }
        }
        self.documents += 1;
        if !self.head_comment.is_empty() {
            self.process_head_comment();
            self.put_break();
        }
        self.state = State::Root;
    }

    pub(super) fn end_document(&mut self, foot: &'a str) {
        if !foot.is_empty() {
            self.foot_comment = foot;
        }
        self.foot_indent = 0;
        self.process_foot_comment();
        self.foot_indent = -1;
        self.write_indent();
    }

    /// Takes one event.
    pub(super) fn event(&mut self, event: Event<'a>) {
        let take = |slot: &mut &'a str, comment: &'a str| {
            if !comment.is_empty() {
                *slot = comment;
            }
        };
        take(&mut self.head_comment, event.head);
        take(&mut self.line_comment, event.line);
        take(&mut self.foot_comment, event.foot);
        take(&mut self.tail_comment, event.tail);
        match self.state {
            State::Root => self.root(&event),
            State::DocumentEnd => {}
            State::FlowSequenceFirstItem => self.flow_sequence_item(&event, true, false),
            State::FlowSequenceTrailItem => self.flow_sequence_item(&event, false, true),
            State::FlowSequenceItem => self.flow_sequence_item(&event, false, false),
            State::FlowMappingFirstKey => self.flow_mapping_key(&event, true, false),
            State::FlowMappingTrailKey => self.flow_mapping_key(&event, false, true),
            State::FlowMappingKey => self.flow_mapping_key(&event, false, false),
            State::FlowMappingSimpleValue => self.flow_mapping_value(&event, true),
            State::FlowMappingValue => self.flow_mapping_value(&event, false),
            State::BlockSequenceFirstItem => self.block_sequence_item(&event, true),
            State::BlockSequenceItem => self.block_sequence_item(&event, false),
            State::BlockMappingFirstKey => self.block_mapping_key(&event, true),
            State::BlockMappingKey => self.block_mapping_key(&event, false),
            State::BlockMappingSimpleValue => self.block_mapping_value(&event, true),
            State::BlockMappingValue => self.block_mapping_value(&event, false),
        }
    }

    fn root(&mut self, event: &Event<'a>) {
        self.states.push(State::DocumentEnd);
        self.process_head_comment();
        self.emit_node(event, Context::default());
        self.process_line_comment();
        self.process_foot_comment();
    }

    pub(super) fn increase_indent(&mut self, flow: bool, indentless: bool, compact: bool) {
        self.indents.push(self.indent);
        if self.indent < 0 {
            self.indent = if flow { self.best_indent } else { 0 };
        } else if indentless {
        } else if self.dialect == Dialect::Go2 {
            self.indent += self.best_indent;
        } else if self.states.last() == Some(&State::BlockSequenceItem) {
            // The first key stands behind `- `, whatever the indentation is otherwise.
            self.indent += 2;
        } else {
            self.indent = self.best_indent * ((self.indent + self.best_indent) / self.best_indent);
            if compact {
                self.indent -= 2;
            }
        }
    }

    pub(super) fn decrease_indent(&mut self) {
        self.indent = self.indents.pop().unwrap_or(-1);
    }

    pub(super) fn pop_state(&mut self) {
        self.state = self.states.pop().unwrap_or(State::DocumentEnd);
    }

    fn block_sequence_item(&mut self, event: &Event<'a>, first: bool) {
        if first {
            match self.dialect {
                Dialect::Go2 => {
                    let indentless = self.context.mapping && !self.indention;
                    self.increase_indent(false, indentless, false);
                }
                Dialect::Go3 => {
                    let compact =
                        self.context.mapping && (self.column == 0 || !self.indention) && self.compact;
                    self.increase_indent(false, false, compact);
                }
            }
        }
        if event.kind == Kind::SequenceEnd {
            self.decrease_indent();
            self.pop_state();
            return;
        }
        self.process_head_comment();
        self.write_indent();
        self.write_indicator("-", true, false, true);
        self.states.push(State::BlockSequenceItem);
        self.emit_node(event, Context::default());
        self.process_line_comment();
        self.process_foot_comment();
    }

    fn block_mapping_key(&mut self, event: &Event<'a>, first: bool) {
        if first {
            self.increase_indent(false, false, false);
        }
        self.process_head_comment();
        if event.kind == Kind::MappingEnd {
            self.decrease_indent();
            self.pop_state();
            return;
        }
        self.write_indent();
        if !self.line_comment.is_empty() {
            self.key_line_comment = std::mem::take(&mut self.line_comment);
        }
        if is_simple_key(event) {
            self.states.push(State::BlockMappingSimpleValue);
            self.emit_node(event, Context { mapping: true, simple_key: true });
        } else {
            self.write_indicator("?", true, false, true);
            self.states.push(State::BlockMappingValue);
            self.emit_node(event, Context { mapping: true, simple_key: false });
        }
    }

    fn block_mapping_value(&mut self, event: &Event<'a>, simple: bool) {
        if simple {
            self.write_indicator(":", false, false, false);
        } else {
            self.write_indent();
            self.write_indicator(":", true, false, true);
        }
        if !self.key_line_comment.is_empty() {
            match event.kind {
                Kind::Scalar(..) if self.line_comment.is_empty() => {
                    self.line_comment = std::mem::take(&mut self.key_line_comment);
                }
                Kind::MappingStart { flow: false, .. } | Kind::SequenceStart { flow: false, .. } => {
                    std::mem::swap(&mut self.line_comment, &mut self.key_line_comment);
                    self.process_line_comment();
                    std::mem::swap(&mut self.line_comment, &mut self.key_line_comment);
                }
                _ => {}
            }
        }
        self.states.push(State::BlockMappingKey);
        self.emit_node(event, Context { mapping: true, simple_key: false });
        self.process_line_comment();
        self.process_foot_comment();
    }

    /// A node's properties and, for a scalar, its text; what a collection holds follows by its state.
    pub(super) fn emit_node(&mut self, event: &Event<'a>, context: Context) {
        self.context = context;
        match event.kind {
            Kind::Alias(name) => {
                self.write_indicator("*", true, false, false);
                self.write_text(name);
                self.pop_state();
            }
            Kind::Scalar(text, style) => {
                let analysis = Analysis::from_text(text, self.dialect == Dialect::Go3);
                let style = self.select_style(style, &analysis, text);
                self.process_properties(event);
                self.increase_indent(true, false, false);
                self.write_scalar(text, style);
                self.decrease_indent();
                self.pop_state();
            }
            Kind::SequenceStart { flow, empty } => {
                self.process_properties(event);
                let flow = self.flow_level > 0 || flow || empty;
                self.state = if flow { State::FlowSequenceFirstItem } else { State::BlockSequenceFirstItem };
            }
            Kind::MappingStart { flow, empty } => {
                self.process_properties(event);
                let flow = self.flow_level > 0 || flow || empty;
                self.state = if flow { State::FlowMappingFirstKey } else { State::BlockMappingFirstKey };
            }
            Kind::SequenceEnd | Kind::MappingEnd => {}
        }
    }

    /// The style in which a scalar can be written where it stands.
    fn select_style(&self, wanted: Style, analysis: &Analysis, text: &str) -> Style {
        let mut style = wanted;
        if self.context.simple_key && analysis.multiline {
            style = Style::DoubleQuoted;
        }
        if style == Style::Plain {
            let allowed = if self.flow_level > 0 { analysis.flow_plain } else { analysis.block_plain };
            if !allowed || text.is_empty() && (self.flow_level > 0 || self.context.simple_key) {
                style = Style::SingleQuoted;
            }
        }
        if style == Style::SingleQuoted && !analysis.single_quoted {
            style = Style::DoubleQuoted;
        }
        let is_block = matches!(style, Style::Literal | Style::Folded);
        if is_block && (!analysis.block || self.flow_level > 0 || self.context.simple_key) {
            style = Style::DoubleQuoted;
        }
        style
    }

    fn process_properties(&mut self, event: &Event<'a>) {
        if !event.anchor.is_empty() {
            self.write_indicator("&", true, false, false);
            self.write_text(event.anchor);
        }
        if event.tag.is_empty() {
            return;
        }
        match split_tag(&event.tag) {
            Some((handle, suffix)) => {
                if !self.whitespace {
                    self.push_char(' ');
                }
                self.write_text(handle);
                self.write_tag_content(suffix);
            }
            None => {
                self.write_indicator("!<", true, false, false);
                self.write_tag_content(&event.tag);
                self.write_indicator(">", false, false, false);
            }
        }
    }

    fn write_tag_content(&mut self, text: &str) {
        for byte in text.bytes() {
            if crate::chars::is_alpha(byte) || b";/?:@&=+$,_.~*'()[]".contains(&byte) {
                self.push_char(char::from(byte));
            } else {
                self.write_text(&format!("%{byte:02X}"));
            }
        }
        self.whitespace = false;
        self.indention = false;
    }
}

/// Handle and rest of a tag in long form.
fn split_tag(tag: &str) -> Option<(&'static str, &str)> {
    if let Some(suffix) = tag.strip_prefix('!') {
        return Some(("!", suffix));
    }
    tag.strip_prefix("tag:yaml.org,2002:").map(|suffix| ("!!", suffix))
}

/// Whether a key can do without `?`.
pub(super) fn is_simple_key(event: &Event<'_>) -> bool {
    let own = match event.kind {
        Kind::Alias(name) => return name.len() <= 128,
        Kind::Scalar(text, _) if text.chars().any(crate::chars::is_break_char) => return false,
        Kind::Scalar(text, _) => text.len(),
        Kind::SequenceStart { empty, .. } | Kind::MappingStart { empty, .. } if empty => 0,
        _ => return false,
    };
    let tag = match split_tag(&event.tag) {
        Some((handle, suffix)) => handle.len() + suffix.len(),
        None => event.tag.len(),
    };
    event.anchor.len() + tag + own <= 128
}
