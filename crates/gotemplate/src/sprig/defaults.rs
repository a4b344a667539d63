//! Defaults, JSON and control of flow.

use super::{add, add_variadic, fail, text};
use crate::json::{self, Options};
use crate::{CallError, CallResult, Context, Functions, Kind, Type, Value};
use tiphys_value::{VALUE_BYTES, map_bytes};

const ANY: &[Type] = &[Type::Any];

/// Sprig's emptiness: the zero value of the type; structs never.
pub(crate) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(object) if object.kind() != Kind::Named => false,
        other => !other.truth(),
    }
}

pub(super) fn register(f: &mut Functions) {
    add_variadic(f, &["default"], &[Type::Any, Type::Any], |ctx, args| {
        Ok(match args.get(1) {
            Some(given) if !is_empty(given) => {
                ctx.decided_by([1]);
                given.clone()
            }
            _ => args[0].clone(),
        })
    });
    add(f, &["empty"], ANY, |_, args| Ok(is_empty(&args[0]).into()));
    add_variadic(f, &["coalesce"], ANY, |ctx, args| {
        let Some(at) = args.iter().position(|arg| !is_empty(arg)) else { return Ok(Value::Nil) };
        ctx.decided_by(0..=at);
        Ok(args[at].clone())
    });
    add_variadic(f, &["all"], ANY, |_, args| Ok((!args.iter().any(is_empty)).into()));
    add_variadic(f, &["any"], ANY, |_, args| Ok((!args.iter().all(is_empty)).into()));
    add(f, &["ternary"], &[Type::Any, Type::Any, Type::Bool], |ctx, args| {
        let at = usize::from(!args[2].truth());
        ctx.decided_by([at, 2]);
        Ok(args[at].clone())
    });
    add(f, &["fail"], &[Type::String], |_, args| fail(text(args, 0)));
    to_json(f);
    add(f, &["fromJson"], &[Type::String], |ctx, args| {
        claim_json(ctx, text(args, 0))?;
        Ok(json::from_str(text(args, 0)).unwrap_or(Value::Nil))
    });
    add(f, &["mustFromJson"], &[Type::String], |ctx, args| {
        claim_json(ctx, text(args, 0))?;
        Ok(json::from_str(text(args, 0))?)
    });
}

/// Counts what a JSON text may mean, by its brackets and commas, before it is read.
fn claim_json(ctx: &Context<'_>, text: &str) -> Result<(), CallError> {
    let count = |byte| memchr::memchr_iter(byte, text.as_bytes()).count() as u64;
    let values = (count(b',') + 1) * 2 * VALUE_BYTES;
    ctx.claim(values + (count(b'{') + count(b'[')) * map_bytes(1) / 2 + text.len() as u64)
}

fn to_json(f: &mut Functions) {
    const PLAIN: Options = Options { pretty: false, raw_html: false };
    const PRETTY: Options = Options { pretty: true, raw_html: false };
    const RAW: Options = Options { pretty: false, raw_html: true };
    let quiet = |value: &Value, options| -> CallResult {
        Ok(json::to_string(value, options).unwrap_or_default().into())
    };
    add(f, &["toJson"], ANY, move |_, args| quiet(&args[0], PLAIN));
    add(f, &["toPrettyJson"], ANY, move |_, args| quiet(&args[0], PRETTY));
    add(f, &["mustToJson"], ANY, |_, args| Ok(json::to_string(&args[0], PLAIN)?.into()));
    add(f, &["mustToPrettyJson"], ANY, |_, args| Ok(json::to_string(&args[0], PRETTY)?.into()));
    add(f, &["toRawJson", "mustToRawJson"], ANY, |_, args| Ok(json::to_string(&args[0], RAW)?.into()));
}
