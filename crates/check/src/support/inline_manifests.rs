//! Manifests that stand inside of other files.

use tiphys_value::{FieldPath, Segment, Value};
use tiphys_yaml::{Content, Node};

/// The fields that a kind does not have; none if something else is wrong, which placeholders may be to blame
/// for.
pub(crate) fn unknown_fields(ty: tiphys_schema::TypeRef<'_>, value: &mut Value) -> Vec<String> {
    tiphys_schema::decode(ty, value)
        .map_or_else(|_| tiphys_schema::prune_unknown(ty, value), |it| it.unknown_fields)
}

/// Line and column, from 1, of a field's key.
pub(crate) fn position(root: &Node, field: &FieldPath) -> Option<(usize, usize)> {
    let mut node = root;
    let mut place = root.span.start;
    for step in &field.0 {
        (place, node) = match (step, &node.content) {
            (Segment::Key(name), Content::Mapping(pairs)) => {
                let (key, value) = pairs.iter().find(
                    |(key, _)| matches!(&key.content, Content::Scalar(text) if text == name.as_str()),
                )?;
                (key.span.start, value)
            }
            (Segment::Index(index), Content::Sequence(items)) => {
                (items.get(*index)?.span.start, items.get(*index)?)
            }
            _ => return None,
        };
    }
    Some((place.line as usize, place.column as usize))
}
