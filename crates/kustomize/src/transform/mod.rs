//! The builtin transformers.

mod hash;
mod images;
mod labels;
mod names;
mod namespace;
mod patches;
mod replacements;
mod replicas;
mod sort;
mod structured;
mod value_add;

use tiphys_value::Location;

use crate::{
    context::Context,
    error::Result,
    provenance::{Provenance, add_transformation},
    resource_map::ResourceMap,
};

pub(crate) use hash::add_hashes;
pub(crate) use images::{ImageTag, split_image};
pub(crate) use labels::{Annotations, Labels};
pub(crate) use names::{Affix, Affixes};
pub(crate) use namespace::{NamespaceTransformer, SubjectMode};
pub(crate) use patches::{JsonPatches, PatchText, Patches, StrategicPatches};
pub(crate) use replacements::Replacements;
pub(crate) use replicas::Replicas;
pub(crate) use sort::sort;
pub(crate) use value_add::{ValueAdd, ValueAddTarget};

/// Changes the objects of a build.
pub(crate) trait Transformer {
    /// Runs over all objects; marks as touched what it may have changed.
    ///
    /// # Errors
    /// In kustomize's words.
    fn transform(&self, objects: &mut ResourceMap, context: &mut Context<'_>) -> Result<()>;
}

/// A transformer with what configured it.
pub(crate) struct Configured<'a> {
    pub transformer: Box<dyn Transformer + 'a>,
    pub provenance: Option<Provenance>,
    /// Its number as a writer of origins.
    pub writer: u32,
    /// Where it is configured.
    pub location: Location,
}

impl Configured<'_> {
    /// Runs the transformer, then records origins and annotations.
    ///
    /// # Errors
    /// Those of the transformer.
    pub(crate) fn run(&self, objects: &mut ResourceMap, context: &mut Context<'_>) -> Result<()> {
        context.check_time().map_err(|error| error.located_at(Some(self.location.clone())))?;
        self.transformer
            .transform(objects, context)
            .map_err(|error| error.located_at(Some(self.location.clone())))?;
        context.take_notes(&self.location);
        finish(objects, context, self.writer, &self.location);
        if let Some(provenance) = &self.provenance {
            for resource in &mut objects.list {
                add_transformation(&mut resource.node, provenance).map_err(crate::Error::transform)?;
            }
            finish(objects, context, self.writer, &self.location);
        }
        objects.drop_empties();
        context.check_objects(objects.list.len())
    }
}

/// Brings shared nodes in line and records who wrote what, in objects that were touched.
pub(crate) fn finish(objects: &mut ResourceMap, context: &mut Context<'_>, writer: u32, location: &Location) {
    for resource in objects.list.iter_mut().filter(|resource| resource.touched) {
        resource.touched = false;
        resource.sync();
        context.tracker.stamp(&mut resource.node, writer, location.line, location.column);
    }
}
