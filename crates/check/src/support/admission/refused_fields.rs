//! What is refused of an object, field by field.

use std::collections::HashSet;

use tiphys_value::{FieldPath, Value};

/// One thing that is refused.
pub(crate) struct AdmissionRefusal {
    /// The field; it may be missing.
    pub field: FieldPath,
    /// What is said of it.
    pub message: String,
}

/// Collects what is refused.
#[derive(Default)]
pub(super) struct Refusals(pub Vec<AdmissionRefusal>);

impl Refusals {
    /// Refuses a field.
    pub(super) fn add(&mut self, field: FieldPath, message: impl Into<String>) {
        self.0.push(AdmissionRefusal { field, message: message.into() });
    }

    /// Refuses a list that is longer than it may be.
    pub(super) fn longer(&mut self, list: &[Value], most: usize, field: &FieldPath) {
        if list.len() > most {
            self.add(field.clone(), format!("Too many: {}: must have at most {most} items", list.len()));
        }
    }

    /// Refuses the second of two items that have one text; items without one are passed over.
    pub(super) fn repeated<'v>(
        &mut self,
        items: impl Iterator<Item = (FieldPath, &'v str)>,
        message: impl Fn(&str) -> String,
    ) {
        let mut known = HashSet::new();
        for (field, text) in items.filter(|(_, text)| !text.is_empty()) {
            if !known.insert(text) {
                self.add(field, message(text));
            }
        }
    }
}
