//! What an Application renders to in one line, to tell whether two readings of a repository agree.

use sha2::{Digest as _, Sha256};
use tiphys_model::names;
use tiphys_value::{ObjectExt, Value};

use super::{App, Outcome, Survey};

impl Survey {
    /// The SHA-256 of what an Application renders to, by key and without the mark of the Application; of
    /// nothing if it does not render. What could be rendered of it in part is what only some readings look
    /// at.
    pub fn digest(&self, app: &App) -> String {
        let objects = matches!(app.outcome, Outcome::Rendered).then(|| self.objects_of(app.id));
        let mut objects: Vec<_> = objects.into_iter().flatten().collect();
        objects.sort_by(|a, b| a.key.cmp(&b.key));
        let mut hash = Sha256::new();
        for object in objects {
            let text = unmarked(object.value().clone()).to_string();
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// An object without the engine's mark: that says nothing but which object it is.
pub fn unmarked(mut object: Value) -> Value {
    if object.annotation(names::TRACKING_ID).is_some()
        && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
        && let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut)
    {
        annotations.remove(names::TRACKING_ID);
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
    object
}
