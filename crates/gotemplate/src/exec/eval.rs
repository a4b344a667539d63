//! Pipelines, commands and their arguments.

use super::{Context, Frame, Run, Slot};
use crate::parse::{Command, Number, Operand, Pipe, Quoted, Variable};
use crate::value::ListType;
use crate::{List, Map, MapType, Type, Value};

impl Context<'_> {
    pub(super) fn pipeline<'t>(&mut self, frame: &Frame<'t>, dot: &Slot, pipe: &'t Pipe) -> Run<Slot> {
        frame.set_node(Quoted::Pipe(pipe));
        let mark = self.reads.len();
        let (first, others) =
            frame.parts.commands(pipe).split_first().expect("the parser makes no empty pipeline");
        self.pipeline_mark = mark;
        let mut slot = self.command(frame, dot, first, None)?;
        self.stage(&mut slot, mark);
        for command in others {
            self.pipeline_mark = mark;
            slot = self.command(frame, dot, command, Some(slot))?;
            self.stage(&mut slot, mark);
        }
        if !pipe.variables.is_empty() {
            self.set_variables(frame, pipe, &slot)?;
        }
        Ok(slot)
    }

    /// What a command of a pipeline gives is an argument, or the pipeline's value.
    fn stage(&mut self, slot: &mut Slot, mark: usize) {
        slot.boxed = false;
        if matches!(slot.value, Value::Nil) {
            slot.value = Value::NoValue;
        }
        if self.tracer.is_some() && slot.origin == 0 {
            slot.origin = self.origin_since(mark.min(self.reads.len()));
        }
    }

    fn command<'t>(
        &mut self,
        frame: &Frame<'t>,
        dot: &Slot,
        command: &'t Command,
        last: Option<Slot>,
    ) -> Run<Slot> {
        let (first, args) =
            frame.parts.args(command).split_first().expect("the parser makes no empty command");
        match first {
            Operand::Field { names, .. } => {
                frame.set_node(Quoted::Operand(first));
                return self.fields(frame, dot, dot.clone(), *names, args, last);
            }
            Operand::Chain { base, names, .. } => {
                frame.set_node(Quoted::Operand(first));
                let receiver = self.chain_base(frame, dot, first, frame.parts.operand(*base))?;
                return self.fields(frame, dot, receiver, *names, args, last);
            }
            Operand::Function { function, .. } => {
                frame.set_node(Quoted::Operand(first));
                return self.function(
                    frame,
                    dot,
                    frame.functions.by_id(*function),
                    Quoted::Command(command),
                    args,
                    last,
                );
            }
            Operand::Pipe { pipe, .. } => {
                self.not_a_function(frame, first, args, &last)?;
                return self.nested_pipeline(frame, dot, frame.parts.pipe(*pipe));
            }
            Operand::Variable(variable) => {
                frame.set_node(Quoted::Operand(first));
                let slot = self.variable(frame, variable)?;
                if variable.fields.is_empty() {
                    self.not_a_function(frame, first, args, &last)?;
                    self.read(slot.origin);
                    return Ok(slot);
                }
                return self.fields(frame, dot, slot, variable.fields, args, last);
            }
            _ => {}
        }
        frame.set_node(Quoted::Operand(first));
        self.not_a_function(frame, first, args, &last)?;
        match first {
            Operand::Nil { .. } => self.error(frame, "nil is not a command"),
            _ => self.literal(frame, dot, first),
        }
    }

    /// A parenthesised pipeline.
    pub(super) fn nested_pipeline<'t>(&mut self, frame: &Frame<'t>, dot: &Slot, pipe: &'t Pipe) -> Run<Slot> {
        self.deeper(|context| context.pipeline(frame, dot, pipe))
    }

    fn not_a_function<'t>(
        &self,
        frame: &Frame<'t>,
        first: &'t Operand,
        args: &[Operand],
        last: &Option<Slot>,
    ) -> Run<()> {
        if args.is_empty() && last.is_none() {
            return Ok(());
        }
        let shown = frame.quote(Quoted::Operand(first));
        self.error(frame, format!("can't give argument to non-function {shown}"))
    }

    /// The value before the fields of `(pipeline).Field`.
    fn chain_base<'t>(
        &mut self,
        frame: &Frame<'t>,
        dot: &Slot,
        chain: &'t Operand,
        base: &'t Operand,
    ) -> Run<Slot> {
        frame.set_node(Quoted::Operand(base));
        match base {
            Operand::Pipe { pipe, .. } => self.nested_pipeline(frame, dot, frame.parts.pipe(*pipe)),
            Operand::Function { function, .. } => {
                self.function(frame, dot, frame.functions.by_id(*function), Quoted::Operand(base), &[], None)
            }
            _ => {
                let shown = frame.quote(Quoted::Operand(chain));
                self.error(frame, format!("indirection through explicit nil in {shown}"))
            }
        }
    }

    fn variable(&self, frame: &Frame<'_>, variable: &Variable) -> Run<Slot> {
        match self.variables[frame.base..].iter().rev().find(|known| known.id == variable.id) {
            Some(known) => Ok(known.slot.clone()),
            None => {
                let name = frame.parts.variable(variable.id);
                self.error(frame, format!("undefined variable: {name}"))
            }
        }
    }

    /// Dot or a literal whose type its text decides.
    fn literal<'t>(&mut self, frame: &Frame<'t>, dot: &Slot, operand: &'t Operand) -> Run<Slot> {
        Ok(match operand {
            Operand::Dot { .. } => {
                self.read(dot.origin);
                dot.clone()
            }
            Operand::Bool { value, .. } => Slot::new(Value::Bool(*value)),
            Operand::String { text, .. } => Slot::new(Value::String(frame.parts.string(*text).clone())),
            Operand::Number { number, .. } => {
                Slot::new(self.constant(frame, operand, frame.parts.number(*number))?)
            }
            _ => Slot::default(),
        })
    }

    fn constant<'t>(&self, frame: &Frame<'t>, operand: &'t Operand, number: &Number) -> Run<Value> {
        frame.set_node(Quoted::Operand(operand));
        let text = &number.text;
        if number.complex {
            return self.error(frame, format!("complex constant {text} is not supported"));
        }
        let hex = text.len() > 2
            && (text.starts_with("0x") || text.starts_with("0X"))
            && !text.contains(['p', 'P']);
        let like_float = !hex && !text.starts_with('\'') && text.contains(['.', 'e', 'E', 'p', 'P']);
        match (number.float, number.int) {
            (Some(float), _) if like_float => Ok(Value::Float64(float)),
            (_, Some(int)) => Ok(Value::Int(int)),
            _ => self.error(frame, format!("{text} overflows int")),
        }
    }

    /// Evaluates an argument for a parameter of a type.
    pub(super) fn argument<'t>(
        &mut self,
        frame: &Frame<'t>,
        dot: &Slot,
        kind: Type,
        operand: &'t Operand,
    ) -> Run<Slot> {
        frame.set_node(Quoted::Operand(operand));
        let slot = match operand {
            Operand::Dot { .. } => {
                self.read(dot.origin);
                dot.clone()
            }
            Operand::Nil { .. } => return self.nil_argument(frame, kind),
            Operand::Field { names, .. } => self.fields(frame, dot, dot.clone(), *names, &[], None)?,
            Operand::Variable(variable) => {
                let slot = self.variable(frame, variable)?;
                if variable.fields.is_empty() {
                    self.read(slot.origin);
                    slot
                } else {
                    self.fields(frame, dot, slot, variable.fields, &[], None)?
                }
            }
            Operand::Pipe { pipe, .. } => self.nested_pipeline(frame, dot, frame.parts.pipe(*pipe))?,
            Operand::Function { function, .. } => self.function(
                frame,
                dot,
                frame.functions.by_id(*function),
                Quoted::Operand(operand),
                &[],
                None,
            )?,
            Operand::Chain { base, names, .. } => {
                let receiver = self.chain_base(frame, dot, operand, frame.parts.operand(*base))?;
                self.fields(frame, dot, receiver, *names, &[], None)?
            }
            literal => return self.typed_literal(frame, dot, kind, literal),
        };
        self.validate(frame, slot, kind)
    }

    fn nil_argument(&self, frame: &Frame<'_>, kind: Type) -> Run<Slot> {
        match nil_of(kind) {
            Some(value) => Ok(Slot::new(value)),
            None => self.error(frame, format!("cannot assign nil to {}", kind.name())),
        }
    }

    /// A literal for a parameter whose type may decide what the literal is.
    fn typed_literal<'t>(
        &mut self,
        frame: &Frame<'t>,
        dot: &Slot,
        kind: Type,
        operand: &'t Operand,
    ) -> Run<Slot> {
        let number = match operand {
            Operand::Number { number, .. } => Some(frame.parts.number(*number)),
            _ => None,
        };
        let (value, expected) = match kind {
            Type::Any | Type::Reflect => return self.literal(frame, dot, operand),
            Type::Bool => match operand {
                Operand::Bool { value, .. } => (Some(Value::Bool(*value)), "bool"),
                _ => (None, "bool"),
            },
            Type::String => match operand {
                Operand::String { text, .. } => {
                    (Some(Value::String(frame.parts.string(*text).clone())), "string")
                }
                _ => (None, "string"),
            },
            Type::Int => (number.and_then(|number| number.int).map(Value::Int), "integer"),
            Type::Int64 => (number.and_then(|number| number.int).map(Value::Int64), "integer"),
            Type::Uint32 => {
                let value = number.and_then(|number| number.uint);
                (value.map(|value| Value::Uint64(value & 0xFFFF_FFFF)), "unsigned integer")
            }
            Type::Float64 => (number.and_then(|number| number.float).map(Value::Float64), "float"),
            Type::Map | Type::List | Type::Named(_) => {
                let shown = frame.quote(Quoted::Operand(operand));
                return self.error(frame, format!("can't handle {shown} for arg of type {}", kind.name()));
            }
        };
        match value {
            Some(value) => Ok(Slot::new(value)),
            None => {
                let shown = frame.quote(Quoted::Operand(operand));
                self.error(frame, format!("expected {expected}; found {shown}"))
            }
        }
    }

    /// Checks that a value may be given for a parameter.
    pub(super) fn validate(&self, frame: &Frame<'_>, mut slot: Slot, kind: Type) -> Run<Slot> {
        match slot.value {
            Value::NoValue => match nil_of(kind) {
                Some(value) => slot.value = value,
                None => return self.error(frame, format!("invalid value; expected {}", kind.name())),
            },
            Value::Nil if !matches!(kind, Type::Any | Type::Reflect) => {
                let expected = kind.name();
                return self
                    .error(frame, format!("wrong type for value; expected {expected}; got interface {{}}"));
            }
            _ if !kind.accepts(&slot.value) => {
                let (expected, got) = (kind.name(), slot.value.type_name());
                return self.error(frame, format!("wrong type for value; expected {expected}; got {got}"));
            }
            _ => {}
        }
        Ok(slot)
    }
}

/// The zero value of a type that can be nil.
fn nil_of(kind: Type) -> Option<Value> {
    match kind {
        Type::Any => Some(Value::Nil),
        Type::Reflect => Some(Value::NoValue),
        Type::Map => Some(Value::Map(Map::nil(MapType::Any))),
        Type::List => Some(Value::List(List::nil(ListType::Any))),
        _ if kind.can_be_nil() => Some(Value::Nil),
        _ => None,
    }
}
