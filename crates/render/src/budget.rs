//! What the objects of one Application may take, whatever renders them: a few files may mean more than any
//! memory holds.

use std::cell::Cell;

use tiphys_value::{Budget, RenderedObject, origin_bytes, value_bytes};

use crate::RenderError;

/// Bytes of memory of all objects. The largest Applications in use take a tenth.
const MAX_BYTES: u64 = 512 << 20;
/// How many objects there may be. The largest Applications in use have some 3,000, and a status lists each of
/// them.
const MAX_OBJECTS: usize = 16_000;

/// Counts the objects of one Application.
pub(crate) struct ObjectBudget {
    /// The memory of the objects.
    pub memory: Budget,
    /// Whether it is noted where each field came from.
    origins: bool,
    objects: Cell<usize>,
}

impl ObjectBudget {
    /// A budget for objects with or without origins.
    pub fn new(origins: bool) -> Self {
        Self { memory: Budget::new(MAX_BYTES), origins, objects: Cell::new(0) }
    }

    /// Counts the memory of objects, and hands them on.
    ///
    /// # Errors
    /// They are too large, with the file that they come from.
    pub fn count(
        &self,
        objects: Vec<RenderedObject>,
        file: &str,
    ) -> Result<Vec<RenderedObject>, RenderError> {
        for object in &objects {
            let places = if self.origins { origin_bytes(&object.value) } else { 0 };
            let bytes = value_bytes(&object.value).saturating_add(places);
            self.memory.take(bytes).map_err(|_| self.exceeded_error(file))?;
        }
        Ok(objects)
    }

    /// Counts objects by their number.
    ///
    /// # Errors
    /// They are too many.
    pub fn count_objects(&self, count: usize, folder: &str) -> Result<(), RenderError> {
        self.objects.set(self.objects.get() + count);
        if self.objects.get() <= MAX_OBJECTS {
            return Ok(());
        }
        Err(RenderError::new(format!(
            "the Application has {} objects, counted up to {folder}, and at most {MAX_OBJECTS} are taken: \
             split it into several Applications",
            self.objects.get()
        )))
    }

    /// The error of objects that take too much memory.
    pub fn exceeded_error(&self, file: &str) -> RenderError {
        RenderError::new(format!(
            "the objects of the Application take more than {} MiB of memory, counted up to {file}: \
             write less (aliases and dense lists multiply), or split it into several Applications",
            MAX_BYTES >> 20
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::parse_objects;

    #[test]
    fn memory_is_counted_over_all_files_and_objects_over_all_sources() {
        let budget = ObjectBudget::new(false);
        let large = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {{k: {}}}\n",
            "x".repeat(30 << 20)
        );
        let file = |name: &str| budget.count(parse_objects(name, &large, false)?, name);
        let fault = (0..40).map(|at| file(&format!("{at}.yaml"))).find_map(Result::err).expect("too much");
        assert!(fault.to_string().contains("more than 512 MiB of memory, counted up to 17.yaml"), "{fault}");
        assert!(budget.count_objects(MAX_OBJECTS, "a").is_ok());
        let fault = budget.count_objects(1, "b").unwrap_err().to_string();
        assert!(fault.contains("16001 objects, counted up to b"), "{fault}");
    }
}
