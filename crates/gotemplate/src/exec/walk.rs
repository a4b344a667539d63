//! Statements.

use super::{Context, Frame, Run, Slot, Variable, site};
use crate::parse::{Branch, Call, List, Node, Pipe, Quoted};
use crate::{Limit, Value, format};
use std::ops::Range;

/// How a list of nodes ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Normal,
    Break,
    Continue,
}

impl Context<'_> {
    pub(super) fn walk_list<'t>(&mut self, frame: &Frame<'t>, dot: &Slot, list: List) -> Run<Flow> {
        for node in frame.tree.source.nodes(list) {
            match self.walk(frame, dot, node)? {
                Flow::Normal => {}
                jump => return Ok(jump),
            }
        }
        Ok(Flow::Normal)
    }

    fn walk<'t>(&mut self, frame: &Frame<'t>, dot: &Slot, node: &'t Node) -> Run<Flow> {
        frame.set_node(Quoted::Node(node));
        self.step(frame)?;
        match node {
            Node::Text { from, to } => self.text(frame, *from, *to)?,
            Node::Action { start, pipe } => {
                frame.start.set(*start);
                self.action(frame, dot, node, frame.parts.pipe(*pipe))?;
            }
            Node::If(branch) => return self.branch(frame, dot, frame.tree.source.branch(*branch), false),
            Node::With(branch) => return self.branch(frame, dot, frame.tree.source.branch(*branch), true),
            Node::Range(branch) => return self.range(frame, dot, frame.tree.source.branch(*branch)),
            Node::Template { start, call } => {
                frame.start.set(*start);
                self.call(frame, dot, frame.parts.call(*call))?;
            }
            Node::Break { .. } => return Ok(Flow::Break),
            Node::Continue { .. } => return Ok(Flow::Continue),
        }
        Ok(Flow::Normal)
    }

    fn text(&mut self, frame: &Frame<'_>, from: u32, to: u32) -> Run<()> {
        let before = self.out.len();
        self.out.push_str(&frame.tree.text()[from as usize..to as usize]);
        if let Some(tracer) = &mut self.tracer {
            tracer.text(site(frame.tree, from), before..self.out.len());
        }
        self.wrote(frame, before)
    }

    fn action<'t>(&mut self, frame: &Frame<'t>, dot: &Slot, node: &'t Node, pipe: &'t Pipe) -> Run<()> {
        if let Some(text) = frame.parts.literal(pipe)
            && text.len() <= self.env.limits.output
        {
            let before = self.out.len();
            self.out.push_str(text);
            if let Some(tracer) = &mut self.tracer {
                tracer.action(site(frame.tree, frame.pos(Quoted::Pipe(pipe))), before..self.out.len(), &[]);
            }
            return self.wrote(frame, before);
        }
        let mark = self.reads.len();
        let slot = self.pipeline(frame, dot, pipe)?;
        if !pipe.variables.is_empty() {
            return Ok(());
        }
        frame.set_node(Quoted::Node(node));
        let before = self.out.len();
        self.weigh(frame, &slot.value, false)?;
        format::append(&mut self.out, &slot.value);
        if let Some(tracer) = &mut self.tracer {
            tracer.action(
                site(frame.tree, frame.pos(Quoted::Pipe(pipe))),
                before..self.out.len(),
                &self.reads[mark..],
            );
        }
        self.forget_reads(mark);
        self.wrote(frame, before)
    }

    fn branch<'t>(&mut self, frame: &Frame<'t>, dot: &Slot, branch: &'t Branch, with: bool) -> Run<Flow> {
        let scope = self.variables.len();
        let mark = self.reads.len();
        frame.start.set(branch.start);
        let slot = self.pipeline(frame, dot, frame.parts.pipe(branch.pipe))?;
        let taken = slot.value.truth();
        let list = if taken { Some(branch.list) } else { branch.else_list };
        let mut flow = Flow::Normal;
        if let Some(list) = list {
            self.enter_control(frame, branch, mark..self.reads.len());
            let dot = if taken && with { &slot } else { dot };
            flow = self.deeper(|context| context.walk_list(frame, dot, list))?;
            self.leave_control();
        }
        self.forget_reads(mark);
        self.variables.truncate(scope);
        Ok(flow)
    }

    /// Drops reads that no action around can have use for.
    fn forget_reads(&mut self, mark: usize) {
        if self.depth == 1 {
            self.reads.truncate(mark);
        }
    }

    fn enter_control(&mut self, frame: &Frame<'_>, branch: &Branch, reads: Range<usize>) {
        if let Some(tracer) = &mut self.tracer {
            let pos = branch.start + frame.parts.pipe(branch.pipe).pos;
            tracer.enter_control(site(frame.tree, pos), &self.reads[reads]);
        }
    }

    fn leave_control(&mut self) {
        if let Some(tracer) = &mut self.tracer {
            tracer.leave_control();
        }
    }

    fn range<'t>(&mut self, frame: &Frame<'t>, dot: &Slot, branch: &'t Branch) -> Run<Flow> {
        let scope = self.variables.len();
        let mark = self.reads.len();
        frame.start.set(branch.start);
        let over = self.pipeline(frame, dot, frame.parts.pipe(branch.pipe))?;
        let reads = mark..self.reads.len();
        let body = Round { branch, reads: reads.clone(), inner: self.variables.len() };
        let ran = self.rounds(frame, &body, &over, &over.value)?;
        let mut flow = Flow::Normal;
        if !ran && let Some(list) = branch.else_list {
            self.enter_control(frame, branch, reads);
            flow = self.walk_list(frame, dot, list)?;
            self.leave_control();
        }
        self.forget_reads(mark);
        self.variables.truncate(scope);
        Ok(flow)
    }

    /// Runs the body for each element; false if there was none.
    fn rounds<'t>(&mut self, frame: &Frame<'t>, body: &Round<'t>, over: &Slot, value: &Value) -> Run<bool> {
        match value {
            Value::List(list) => {
                let boxed = list.list_type().holds_any();
                let mut at = 0;
                while let Some(item) = list.get(at) {
                    let origin = nonzero(list.origin_of(at), over.origin);
                    let item = Slot { value: item, boxed, origin };
                    if self.round(frame, body, Value::Int(at as i64), item)? {
                        break;
                    }
                    at += 1;
                }
                Ok(at > 0 || !list.is_empty())
            }
            Value::Map(map) => {
                let (boxed, whole) = (map.map_type().holds_any(), nonzero(map.origin(), over.origin));
                let entries = map.snapshot();
                let ran = !entries.is_empty();
                for entry in entries {
                    let item = Slot { value: entry.value, boxed, origin: nonzero(entry.origin, whole) };
                    if self.round(frame, body, Value::String(entry.key), item)? {
                        break;
                    }
                }
                Ok(ran)
            }
            Value::Int(count) => self.count(frame, body, over, *count, Value::Int),
            Value::Int64(count) => self.count(frame, body, over, *count, Value::Int64),
            Value::Uint8(count) => {
                self.count(frame, body, over, i64::from(*count), |at| Value::Uint8(at as u8))
            }
            Value::Uint64(count) => {
                let count = i64::try_from(*count).unwrap_or(i64::MAX);
                self.count(frame, body, over, count, |at| Value::Uint64(at as u64))
            }
            Value::Bytes(bytes) => {
                for (at, byte) in bytes.iter().enumerate() {
                    let item = Slot { origin: over.origin, ..Slot::new(Value::Uint8(*byte)) };
                    if self.round(frame, body, Value::Int(at as i64), item)? {
                        break;
                    }
                }
                Ok(!bytes.is_empty())
            }
            Value::NoValue | Value::Nil => Ok(false),
            Value::Object(object) => match object.content() {
                Some(content) => self.rounds(frame, body, over, &content),
                None => self.not_iterable(frame, value),
            },
            Value::Bool(_) | Value::Float64(_) | Value::String(_) => self.not_iterable(frame, value),
        }
    }

    fn not_iterable<T>(&self, frame: &Frame<'_>, value: &Value) -> Run<T> {
        let shown = format::sprint(std::slice::from_ref(value));
        self.error(frame, format!("range can't iterate over {shown}"))
    }

    fn count<'t>(
        &mut self,
        frame: &Frame<'t>,
        body: &Round<'t>,
        over: &Slot,
        count: i64,
        number: impl Fn(i64) -> Value,
    ) -> Run<bool> {
        if frame.parts.declared_variables(frame.parts.pipe(body.branch.pipe)).len() > 1 {
            return self.error(frame, format!("can't use {count} to iterate over more than one variable"));
        }
        for at in 0..count {
            let item = Slot { origin: over.origin, ..Slot::new(number(at)) };
            if self.round(frame, body, Value::NoValue, item)? {
                break;
            }
        }
        Ok(count > 0)
    }

    /// One round; true if the loop ends with it.
    fn round<'t>(&mut self, frame: &Frame<'t>, body: &Round<'t>, index: Value, item: Slot) -> Run<bool> {
        let pipe = frame.parts.pipe(body.branch.pipe);
        let top = self.variables.len();
        match (frame.parts.declared_variables(pipe), pipe.assign) {
            ([], _) => {}
            ([element], true) => self.assign(frame, element.id, item.clone())?,
            ([_], false) => self.variables[top - 1].slot = item.clone(),
            ([first, second, ..], true) => {
                self.assign(frame, first.id, Slot { origin: item.origin, ..Slot::new(index) })?;
                self.assign(frame, second.id, item.clone())?;
            }
            (_, false) => {
                self.variables[top - 1].slot = item.clone();
                self.variables[top - 2].slot = Slot { origin: item.origin, ..Slot::new(index) };
            }
        }
        self.step(frame)?;
        self.enter_control(frame, body.branch, body.reads.clone());
        let list = body.branch.list;
        let flow = self.deeper(|context| context.walk_list(frame, &item, list))?;
        self.leave_control();
        self.variables.truncate(body.inner);
        Ok(flow == Flow::Break)
    }

    fn call<'t>(&mut self, frame: &Frame<'t>, dot: &Slot, call: &'t Call) -> Run<()> {
        let Some(tree) = self.set.get(&call.name).cloned() else {
            let name = tiphys_gocompat::strconv::quote(&call.name);
            return self.error(frame, format!("template {name} not defined"));
        };
        if self.depth >= self.env.limits.depth {
            return self.depth_error(frame);
        }
        let data = match call.pipe {
            Some(pipe) => self.pipeline(frame, dot, frame.parts.pipe(pipe))?,
            None => Slot::default(),
        };
        let before = self.out.len();
        let attempt = match self.recall(&tree, &data.value) {
            Ok(output) => {
                self.out.push_str(&output);
                return self.wrote(frame, before);
            }
            Err(attempt) => attempt,
        };
        self.call.pos = frame.start.get() + call.pos;
        self.execute_tree(&tree, data, false)?;
        if let Some(attempt) = attempt {
            self.env.memo.keep(attempt, &self.out[before..]);
        }
        Ok(())
    }

    pub(super) fn depth_error<T>(&self, frame: &Frame<'_>) -> Run<T> {
        let message = format!("exceeded maximum template depth ({})", self.env.limits.depth);
        self.error_with_limit(frame, &message, Some(Limit::Depth))
    }

    /// Declares or assigns the pipeline's variables.
    pub(super) fn set_variables<'t>(&mut self, frame: &Frame<'t>, pipe: &'t Pipe, slot: &Slot) -> Run<()> {
        for variable in frame.parts.declared_variables(pipe) {
            if pipe.assign {
                self.assign(frame, variable.id, slot.clone())?;
            } else {
                self.variables.push(Variable { id: variable.id, slot: slot.clone() });
            }
        }
        Ok(())
    }

    fn assign(&mut self, frame: &Frame<'_>, id: u32, slot: Slot) -> Run<()> {
        match self.variables[frame.base..].iter_mut().rev().find(|variable| variable.id == id) {
            Some(variable) => {
                variable.slot = slot;
                Ok(())
            }
            None => {
                let name = frame.parts.variable(id);
                self.error(frame, format!("undefined variable: {name}"))
            }
        }
    }
}

/// What the rounds of a `range` share.
struct Round<'t> {
    branch: &'t Branch,
    /// The reads of the pipeline.
    reads: Range<usize>,
    /// Number of variables outside the body.
    inner: usize,
}

pub(super) fn nonzero(first: u32, second: u32) -> u32 {
    if first != 0 { first } else { second }
}
