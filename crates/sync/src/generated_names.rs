//! Objects whose names are generated (`metadata.generateName`). Each operation makes a new one: there is no
//! live object that a later sync could change.

use serde_json::Value;
use tiphys_model::hook;
use tiphys_value::{ObjectExt, ResourceKey};

/// The letters of generated names, as the API server draws them: no words come of them.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// How many of them a name gets.
const DRAWN: usize = 5;
/// The longest beginning of a name, as the API server cuts it.
const LONGEST: usize = 58;

/// The beginning of the name of an object that has no other and is no hook.
pub fn generated_prefix(object: &Value) -> Option<&str> {
    let prefix = object.str_at(&["metadata", "generateName"]).filter(|prefix| !prefix.is_empty());
    prefix.filter(|_| object.name().is_empty() && !hook::is_hook(object))
}

/// The object with the name that it has in one operation: another engine that goes on with the operation
/// makes no second one. `number` tells several of one beginning apart.
pub(crate) fn with_generated_name(object: &Value, prefix: &str, operation: &str, number: usize) -> Value {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in format!("{operation}/{number}").bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    let mut name = prefix[..prefix.floor_char_boundary(LONGEST)].to_owned();
    for _ in 0..DRAWN {
        name.push(char::from(LETTERS[(hash % LETTERS.len() as u64) as usize]));
        hash /= LETTERS.len() as u64;
    }
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("name".to_owned(), name.into());
    }
    object
}

/// Whether a live object was made for one of the targets.
pub(crate) fn is_made_for(
    live: &Value,
    key: &ResourceKey,
    mut targets: impl Iterator<Item = ResourceKey>,
) -> bool {
    let prefix = live.str_at(&["metadata", "generateName"]).unwrap_or_default();
    targets.any(|target| {
        target.name == prefix
            && target.group_kind() == key.group_kind()
            && (target.namespace.is_empty() || target.namespace == key.namespace)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_name_is_that_of_its_operation() {
        let object = json!({"metadata": {"generateName": "job-"}});
        let name = |operation: &str, number| {
            with_generated_name(&object, "job-", operation, number).name().to_owned()
        };
        assert_eq!(name("a", 0), name("a", 0));
        assert!(name("a", 0) != name("b", 0) && name("a", 0) != name("a", 1));
        assert_eq!(name("a", 0).len(), "job-".len() + DRAWN);
        assert_eq!(with_generated_name(&object, &"x".repeat(70), "a", 0).name().len(), 63);
    }
}
