//! Flow collections.

use super::{
    events::{Event, Kind},
    state::{Context, Dialect, Emitter, State, is_simple_key},
};

impl<'a> Emitter<'a> {
    fn open_flow(&mut self, bracket: &str) {
        self.write_indicator(bracket, true, true, false);
        self.increase_indent(true, false, false);
        self.flow_level += 1;
    }

    fn close_flow(&mut self, bracket: &str) {
        self.write_indicator(bracket, false, false, false);
        self.process_line_comment();
        self.process_foot_comment();
        self.pop_state();
    }

    /// The comma before a member and where the member starts.
    fn separate(&mut self, first: bool, trail: bool) {
        if !first && !trail {
            self.write_indicator(",", false, false, false);
        }
        self.process_head_comment();
        if self.column == 0 && self.dialect == Dialect::Go3 || self.column > self.best_width {
            self.write_indent();
        }
    }

    /// Comments behind a member come after its comma.
    fn end_member(&mut self) {
        if self.has_trailing_comments() {
            self.write_indicator(",", false, false, false);
        }
        self.process_line_comment();
        self.process_foot_comment();
    }

    pub(super) fn flow_sequence_item(&mut self, event: &Event<'a>, first: bool, trail: bool) {
        if first {
            self.open_flow("[");
        }
        if event.kind == Kind::SequenceEnd {
            self.flow_level -= 1;
            self.decrease_indent();
            if self.column == 0 && self.dialect == Dialect::Go3 {
                self.write_indent();
            }
            self.close_flow("]");
            return;
        }
        self.separate(first, trail);
        let next =
            if self.has_trailing_comments() { State::FlowSequenceTrailItem } else { State::FlowSequenceItem };
        self.states.push(next);
        self.emit_node(event, Context::default());
        self.end_member();
    }

    pub(super) fn flow_mapping_key(&mut self, event: &Event<'a>, first: bool, trail: bool) {
        if first {
            self.open_flow("{");
        }
        if event.kind == Kind::MappingEnd {
            let comments = !self.head_comment.is_empty()
                || !self.foot_comment.is_empty()
                || !self.tail_comment.is_empty();
            if comments && !first && !trail {
                self.write_indicator(",", false, false, false);
            }
            self.process_head_comment();
            self.flow_level -= 1;
            self.decrease_indent();
            self.close_flow("}");
            return;
        }
        self.separate(first, trail);
        let simple = is_simple_key(event);
        if !simple {
            self.write_indicator("?", true, false, false);
        }
        self.states.push(if simple { State::FlowMappingSimpleValue } else { State::FlowMappingValue });
        self.emit_node(event, Context { mapping: true, simple_key: simple });
    }

    pub(super) fn flow_mapping_value(&mut self, event: &Event<'a>, simple: bool) {
        if !simple && self.column > self.best_width {
            self.write_indent();
        }
        self.write_indicator(":", !simple, false, false);
        let next =
            if self.has_trailing_comments() { State::FlowMappingTrailKey } else { State::FlowMappingKey };
        self.states.push(next);
        self.emit_node(event, Context { mapping: true, simple_key: false });
        self.end_member();
    }
}
