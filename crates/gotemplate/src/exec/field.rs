//! Chains of fields and methods.

use super::walk::nonzero;
use super::{Context, Frame, Run, Slot};
use crate::parse::{Name, Operand, Span};
use crate::value::MapType;
use crate::{Map, MissingKey, Signature, Value};
use tiphys_gocompat::strconv;

/// Chains of up to so many fields are followed without holding what stands on the way.
const FEW: usize = 16;

impl Context<'_> {
    /// `.A.B.C`, where the last may be a method with arguments.
    pub(super) fn fields<'t>(
        &mut self,
        frame: &Frame<'t>,
        dot: &Slot,
        mut receiver: Slot,
        names: Span,
        args: &'t [Operand],
        last: Option<Slot>,
    ) -> Run<Slot> {
        if self.tracer.is_none()
            && names.len() <= FEW
            && let (Value::Map(map), [], None) = (&receiver.value, args, &last)
            && let Some((value, boxed)) = map.descend(frame.parts.fields(names))
        {
            return Ok(Slot { value, boxed, origin: 0 });
        }
        let mut names = frame.parts.fields(names);
        let Some(final_name) = names.next_back() else {
            return Ok(receiver);
        };
        for name in names {
            receiver = self.field(frame, dot, receiver, name, &[], None)?;
        }
        let slot = self.field(frame, dot, receiver, final_name, args, last)?;
        self.read(slot.origin);
        Ok(slot)
    }

    fn field<'t>(
        &mut self,
        frame: &Frame<'t>,
        dot: &Slot,
        receiver: Slot,
        field: Name<'_>,
        args: &'t [Operand],
        last: Option<Slot>,
    ) -> Run<Slot> {
        let name = field.text.as_str();
        match &receiver.value {
            Value::Map(map) => {
                if let MapType::Named(methods) = map.map_type()
                    && let Some(signature) = methods.method(name)
                {
                    return self.method(frame, dot, &receiver, name, signature, args, last);
                }
                if !args.is_empty() || last.is_some() {
                    return self.error(frame, format!("{name} is not a method but has arguments"));
                }
                self.key(frame, map, field, receiver.origin)
            }
            Value::NoValue if self.set.missing_key == MissingKey::Error => {
                let key = strconv::quote(name);
                self.error(frame, format!("nil data; no entry for key {key}"))
            }
            Value::NoValue => Ok(Slot { origin: self.missing(receiver.origin, name), ..Slot::default() }),
            Value::Nil => self.error(frame, format!("nil pointer evaluating interface {{}}.{name}")),
            Value::Object(object) => {
                if let Some(signature) = object.method(name) {
                    return self.method(frame, dot, &receiver, name, signature, args, last);
                }
                match object.field(name) {
                    Some(_) if !args.is_empty() || last.is_some() => {
                        self.error(frame, format!("{name} has arguments but cannot be invoked as function"))
                    }
                    Some(value) => Ok(Slot { value, boxed: false, origin: receiver.origin }),
                    None => match object.content() {
                        Some(Value::Map(_)) if !args.is_empty() || last.is_some() => {
                            self.error(frame, format!("{name} is not a method but has arguments"))
                        }
                        Some(Value::Map(map))
                            if self.set.missing_key == MissingKey::Zero
                                && map.get(name).is_none()
                                && let Some(value) = object.missing_entry() =>
                        {
                            Ok(Slot { value, boxed: false, origin: receiver.origin })
                        }
                        Some(Value::Map(map)) => self.key(frame, &map, field, receiver.origin),
                        _ => self.no_field(frame, &receiver, name),
                    },
                }
            }
            _ => self.no_field(frame, &receiver, name),
        }
    }

    fn no_field<T>(&self, frame: &Frame<'_>, receiver: &Slot, name: &str) -> Run<T> {
        let message = format!("can't evaluate field {name} in type {}", receiver.type_name());
        self.missing_field_error(frame, &message)
    }

    fn key(&mut self, frame: &Frame<'_>, map: &Map, field: Name<'_>, whole: u32) -> Run<Slot> {
        let boxed = map.map_type().holds_any();
        let name = field.text.as_str();
        if let Some((value, origin)) = map.get_where_found(field) {
            return Ok(Slot { value, boxed, origin: nonzero(origin, whole) });
        }
        let origin = self.missing(nonzero(map.origin(), whole), name);
        match self.set.missing_key {
            MissingKey::NoValue => Ok(Slot { origin, ..Slot::default() }),
            MissingKey::Zero if boxed => Ok(Slot { value: Value::Nil, boxed, origin }),
            MissingKey::Zero => Ok(Slot { value: Value::string(""), boxed, origin }),
            MissingKey::Error => {
                let key = strconv::quote(name);
                self.missing_field_error(frame, &format!("map has no entry for key {key}"))
            }
        }
    }

    #[allow(clippy::too_many_arguments, reason = "the state of a call")]
    fn method<'t>(
        &mut self,
        frame: &Frame<'t>,
        dot: &Slot,
        receiver: &Slot,
        name: &str,
        signature: Signature,
        args: &'t [Operand],
        last: Option<Slot>,
    ) -> Run<Slot> {
        let node = frame.node.get();
        let argv = self.arguments(frame, dot, name, signature, args, last)?;
        self.call.pos = frame.pos(node);
        let result = match &receiver.value {
            Value::Object(object) => object.call(self.clock(), name, &argv),
            Value::Map(map) => match map.map_type() {
                MapType::Named(methods) => methods.call(map, self.clock(), name, &argv),
                _ => Err(crate::CallError::new(format!("no method {name}"))),
            },
            _ => Err(crate::CallError::new(format!("no method {name}"))),
        };
        self.recycle(argv);
        let slot = self.finish_call(frame, node, name, result)?;
        Ok(Slot { origin: receiver.origin, ..slot })
    }
}
