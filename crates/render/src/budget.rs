//! What the objects of one Application may take, whatever renders them: a few files may mean more than any
//! memory holds.

use std::cell::Cell;

use tiphys_value::{Budget, ObjectExt as _, RenderLimits, RenderedObject, origin_bytes, value_bytes};

use crate::RenderError;

/// What an object takes in memory with what is noted of it, in bytes, about. Whoever keeps objects finds them
/// by their names, and has these some times more.
#[must_use]
pub fn object_bytes(object: &RenderedObject) -> u64 {
    const KEYS: u64 = 6;
    let name = object.value.name().len() + object.value.namespace().len();
    value_bytes(&object.value) + origin_bytes(&object.value) + KEYS * name as u64
}

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
    pub(crate) fn new(origins: bool) -> Self {
        Self { memory: Budget::new(RenderLimits::current().memory), origins, objects: Cell::new(0) }
    }

    /// Counts the memory of objects, and hands them on.
    ///
    /// # Errors
    /// They are too large, with the file that they come from.
    pub(crate) fn count(
        &self,
        objects: Vec<RenderedObject>,
        file: &str,
    ) -> Result<Vec<RenderedObject>, RenderError> {
        for object in &objects {
            let places = if self.origins { 0 } else { origin_bytes(&object.value) };
            let bytes = object_bytes(object).saturating_sub(places);
            self.memory.take(bytes).map_err(|_| self.exceeded_error(file))?;
        }
        Ok(objects)
    }

    /// Counts objects by their number.
    ///
    /// # Errors
    /// They are too many.
    pub(crate) fn count_objects(&self, count: usize, folder: &str) -> Result<(), RenderError> {
        self.objects.set(self.objects.get() + count);
        let most = RenderLimits::current().objects;
        if self.objects.get() <= most {
            return Ok(());
        }
        let [.., flag] = RenderLimits::FLAGS;
        Err(RenderError::new(format!(
            "the Application has {} objects, counted up to {folder}, and at most {most} are taken: \
             split it into several Applications, or raise the limit by {flag}",
            self.objects.get()
        )))
    }

    /// The error of objects that take too much memory.
    pub(crate) fn exceeded_error(&self, file: &str) -> RenderError {
        let [flag, ..] = RenderLimits::FLAGS;
        RenderError::new(format!(
            "the objects of the Application take more than {} MiB of memory, counted up to {file}: write less \
             (aliases and dense lists multiply), split it into several Applications, or raise the limit by {flag}",
            RenderLimits::current().memory >> 20
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
        assert!(fault.to_string().contains("more than 256 MiB of memory, counted up to 8.yaml"), "{fault}");
        assert!(budget.count_objects(RenderLimits::DEFAULT.objects, "a").is_ok());
        let fault = budget.count_objects(1, "b").unwrap_err().to_string();
        assert!(fault.contains("16001 objects, counted up to b"), "{fault}");
    }
}
