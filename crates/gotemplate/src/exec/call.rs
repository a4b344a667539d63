//! Calls of functions and methods.

use super::{Context, Frame, Run, Slot};
use crate::functions::{Function, Special};
use crate::parse::{Operand, Quoted};
use crate::{CallResult, Signature, Type, Value};

impl Context<'_> {
    pub(super) fn function<'t>(
        &mut self,
        frame: &Frame<'t>,
        dot: &Slot,
        function: &Function,
        node: Quoted<'t>,
        args: &'t [Operand],
        last: Option<Slot>,
    ) -> Run<Slot> {
        if matches!(function.special, Special::And | Special::Or) {
            return self.and_or(frame, dot, function, args, last);
        }
        let callee = match (function.special, args.first(), &last) {
            (Special::Call, Some(first), _) => Some(frame.quote(Quoted::Operand(first))),
            (Special::Call, None, Some(last)) => Some(format!("<{} Value>", last.value.type_name())),
            _ => None,
        };
        // The commands before this one have made its last argument, and nothing else.
        let mark = if last.is_some() { self.pipeline_mark } else { self.reads.len() };
        let mut argv = self.arguments(frame, dot, function.name, function.signature, args, last)?;
        if let Some(callee) = callee {
            argv.insert(0, Value::from(callee));
        }
        self.call.pos = frame.pos(node);
        if function.walks {
            frame.meanwhile(node, || {
                argv.iter().try_for_each(|value| self.weigh(frame, value, function.copies))
            })?;
        }
        let result = (function.body)(self, &mut argv);
        self.recycle(argv);
        let mut slot = self.finish_call(frame, node, function.name, result)?;
        let origin = std::mem::take(&mut self.result_origin);
        if origin != 0 {
            // What was read of the arguments beside that has no part in the result.
            self.reads.truncate(mark);
            self.read(origin);
            self.reads.append(&mut self.result_reads);
            slot.origin = origin;
        }
        Ok(slot)
    }

    pub(super) fn finish_call<'t>(
        &mut self,
        frame: &Frame<'t>,
        node: Quoted<'t>,
        name: &str,
        result: CallResult,
    ) -> Run<Slot> {
        match result {
            Ok(value) => {
                self.count_result(frame, node, &value)?;
                Ok(Slot::new(value))
            }
            Err(error) => {
                frame.set_node(node);
                self.error_with_limit(frame, &format!("error calling {name}: {}", error.message), error.limit)
            }
        }
    }

    /// Gives a vector of arguments back for the next call.
    pub(super) fn recycle(&mut self, mut argv: Vec<Value>) {
        argv.clear();
        self.spare.push(argv);
    }

    /// Evaluates and checks the arguments of a call.
    pub(super) fn arguments<'t>(
        &mut self,
        frame: &Frame<'t>,
        dot: &Slot,
        name: &str,
        signature: Signature,
        args: &'t [Operand],
        last: Option<Slot>,
    ) -> Run<Vec<Value>> {
        self.check_count(frame, name, signature, args.len(), last.is_some())?;
        let kind_at = |at: usize| -> Type {
            *signature
                .params
                .get(at)
                .or(signature.params.last())
                .expect("the number of arguments was checked")
        };
        let mut argv = self.spare.pop().unwrap_or_default();
        let traced = self.tracer.is_some();
        let mut origins = Vec::new();
        for (at, operand) in args.iter().enumerate() {
            let mark = self.reads.len();
            let slot = self.argument(frame, dot, kind_at(at), operand)?;
            if traced {
                let mark = mark.min(self.reads.len());
                origins.push(if slot.origin != 0 { slot.origin } else { self.origin_since(mark) });
            }
            argv.push(slot.value);
        }
        if let Some(last) = last {
            let slot = self.validate(frame, last, kind_at(args.len()))?;
            if traced {
                origins.push(slot.origin);
            }
            argv.push(slot.value);
        }
        if traced {
            self.arg_origins = origins;
        }
        Ok(argv)
    }

    fn check_count(
        &self,
        frame: &Frame<'_>,
        name: &str,
        signature: Signature,
        args: usize,
        has_last: bool,
    ) -> Run<()> {
        let given = args + usize::from(has_last);
        let wanted = signature.params.len();
        if signature.variadic {
            if given < wanted - 1 {
                let least = wanted - 1;
                let message = format!("wrong number of args for {name}: want at least {least} got {args}");
                return self.error(frame, message);
            }
        } else if given != wanted {
            return self.error(frame, format!("wrong number of args for {name}: want {wanted} got {given}"));
        }
        Ok(())
    }

    /// `and` and `or` evaluate their arguments only as far as needed.
    fn and_or<'t>(
        &mut self,
        frame: &Frame<'t>,
        dot: &Slot,
        function: &Function,
        args: &'t [Operand],
        last: Option<Slot>,
    ) -> Run<Slot> {
        self.check_count(frame, function.name, function.signature, args.len(), last.is_some())?;
        let stop_at = function.special == Special::Or;
        let mut slot = Slot::default();
        for operand in args {
            slot = self.argument(frame, dot, Type::Reflect, operand)?;
            if slot.value.truth() == stop_at {
                return Ok(slot);
            }
        }
        match last {
            Some(last) => self.validate(frame, last, Type::Reflect),
            None => Ok(slot),
        }
    }
}
