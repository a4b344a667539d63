//! Origins of values that are written as YAML or JSON, which is YAML too, and of those that are read from it
//! again.

use tiphys_gotemplate::{Context, OriginId, Part, Value};
use tiphys_yaml::{Content, Node, Profile, parse_first};

/// Notes where the parts of a YAML text came from that an argument of the function being called was written
/// as.
pub(super) fn record_origins(ctx: &mut Context<'_>, text: &str, value: &Value, index: usize) {
    let whole = ctx.arg_origin(index);
    // What stands below one value as it was given is found by its path.
    if !ctx.is_traced() || is_below(ctx, value, whole) {
        return;
    }
    let Ok(Some(document)) = parse_first(text, Profile::Go2) else { return };
    let mut parts = Vec::new();
    collect(ctx, &document.root, value, whole, &mut parts);
    ctx.record_origins(text, &parts);
}

/// Whether everything in a value came from where its keys and items lead below an origin.
fn is_below(ctx: &Context<'_>, value: &Value, origin: OriginId) -> bool {
    let item = |value: &Value, own: OriginId| ctx.is_step(own, origin) && is_below(ctx, value, own);
    match value {
        Value::Map(map) => map.entries().iter().all(|entry| item(&entry.value, entry.origin)),
        Value::List(list) => {
            list.items().iter().enumerate().all(|(at, value)| item(value, list.origin_of(at)))
        }
        _ => true,
    }
}

fn collect(ctx: &mut Context<'_>, node: &Node, value: &Value, whole: OriginId, parts: &mut Vec<Part>) {
    let own = |origin: OriginId| if origin == 0 { whole } else { origin };
    match (&node.content, value) {
        (Content::Mapping(pairs), Value::Map(map)) if !pairs.is_empty() => {
            for (key, node) in pairs {
                let Content::Scalar(key) = &key.content else { continue };
                let Some((value, origin)) = map.get_with_origin(key) else { continue };
                collect(ctx, node, &value, own(origin), parts);
            }
        }
        (Content::Sequence(nodes), Value::List(list)) if !nodes.is_empty() => {
            for (at, node) in nodes.iter().enumerate() {
                let Some(value) = list.get(at) else { continue };
                collect(ctx, node, &value, own(list.origin_of(at)), parts);
            }
        }
        _ => {
            let (from, to) = (node.span.start.offset as usize, node.span.end.offset as usize);
            parts.push((from..to.max(from), ctx.union(&[whole])));
        }
    }
}

/// Gives what was read from a YAML text, the argument at an index, the origins of the text's parts.
pub(super) fn read(ctx: &mut Context<'_>, text: &str, value: &Value, index: usize) {
    if !ctx.is_traced() {
        return;
    }
    let parts = ctx.text_parts(text, index);
    if parts.is_empty() {
        return;
    }
    if let Ok(Some(document)) = parse_first(text, Profile::Go2) {
        let whole = ctx.arg_origin(index);
        assign(ctx, &document.root, value, whole, &parts);
    }
}

fn assign(ctx: &mut Context<'_>, node: &Node, value: &Value, whole: OriginId, parts: &[Part]) -> OriginId {
    match (&node.content, value) {
        (Content::Mapping(pairs), Value::Map(map)) => {
            let mut all = Vec::with_capacity(pairs.len());
            for (key, node) in pairs {
                let Content::Scalar(key) = &key.content else { continue };
                let Some(value) = map.get(key) else { continue };
                let origin = assign(ctx, node, &value, whole, parts);
                map.insert_with_origin(key.as_str(), value, origin);
                all.push((key.as_str(), origin));
            }
            let origin = ctx.table_origin(&all);
            map.set_origin(origin);
            origin
        }
        (Content::Sequence(nodes), Value::List(list)) => {
            let mut all = Vec::with_capacity(nodes.len());
            for (at, node) in nodes.iter().enumerate() {
                let Some(value) = list.get(at) else { continue };
                all.push(assign(ctx, node, &value, whole, parts));
            }
            let origin = ctx.list_origin(&all);
            list.set_origin(origin);
            list.set_origins(all);
            origin
        }
        (Content::Scalar(_), _) => {
            let (from, to) = (node.span.start.offset as usize, node.span.end.offset as usize);
            let first = parts.partition_point(|(part, _)| part.end <= from);
            let overlapping = parts[first..].iter().take_while(|(part, _)| part.start < to.max(from + 1));
            let origins: Vec<OriginId> = overlapping.map(|(_, origin)| *origin).collect();
            ctx.union(&origins)
        }
        _ => whole,
    }
}
