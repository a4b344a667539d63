//! Labels and annotations.

use std::collections::BTreeMap;

use super::Transformer;
use crate::{
    context::Context,
    error::{Error, Result},
    fields::{Create, Route},
    kustomization::model::FieldSpec,
    meter::Meter,
    node::{Kind, Node, Tag},
    resource::Resource,
    resource_map::ResourceMap,
};

/// Sets labels at every place of its field specs.
pub(crate) struct Labels {
    pub labels: BTreeMap<String, String>,
    pub specs: Vec<FieldSpec>,
}

/// Sets annotations at every place of its field specs.
pub(crate) struct Annotations {
    pub annotations: BTreeMap<String, String>,
    pub specs: Vec<FieldSpec>,
}

impl Transformer for Labels {
    fn transform(&self, objects: &mut ResourceMap, context: &mut Context<'_>) -> Result<()> {
        set_all(objects, &self.labels, &self.specs, &context.meter)
    }
}

impl Transformer for Annotations {
    fn transform(&self, objects: &mut ResourceMap, context: &mut Context<'_>) -> Result<()> {
        set_all(objects, &self.annotations, &self.specs, &context.meter)
    }
}

const CREATE: Create = Create { kind: Kind::Map, tag: Tag::Map };

fn set_all(
    objects: &mut ResourceMap,
    pairs: &BTreeMap<String, String>,
    specs: &[FieldSpec],
    meter: &Meter,
) -> Result<()> {
    let routes = Route::all(specs);
    for resource in &mut objects.list {
        for (key, value) in pairs {
            meter.check(key.len() + value.len())?;
            set_pair(resource, key, value, &routes).map_err(Error::transform)?;
        }
        resource.touched |= !pairs.is_empty();
    }
    Ok(())
}

/// The nodes that one key adds to one object are one node in kustomize.
fn set_pair(resource: &mut Resource, key: &str, value: &str, routes: &[Route<'_>]) -> Result<(), String> {
    let group = resource.new_group();
    for route in routes {
        route.apply(&mut resource.node, Some(CREATE), &mut |node| {
            node.set_in_group(key, Node::tagged(value, Tag::Str), group)
        })?;
    }
    Ok(())
}
