//! All rules, by incident family. To add one: a file whose module comment says what happens, the message
//! that people will search for, why, a bad and a good example, how to mend it and when to suppress it;
//! a `pub const RULE`; a line here; a folder under `tests/incidents/`.

mod b3_two_owners;

use crate::Rule;

/// Every rule, in the order of the ids.
pub const ALL: &[&Rule] = &[&b3_two_owners::RULE];

/// The rule of an id.
pub fn by_id(id: &str) -> Option<&'static Rule> {
    ALL.iter().copied().find(|rule| rule.id == id)
}
