//! Name prefixes and suffixes.

use super::Transformer;
use crate::{
    context::Context,
    error::{Error, Result},
    fields::{Create, Route},
    kustomization::model::FieldSpec,
    meter::Meter,
    node::{Kind, Node, Tag},
    resid::Gvk,
    resource::Resource,
    resource_map::ResourceMap,
};

/// At which end of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Affix {
    Prefix,
    Suffix,
}

/// Puts a text before or after names.
pub(crate) struct Affixes {
    pub end: Affix,
    pub text: String,
    pub specs: Vec<FieldSpec>,
}

const CREATE: Create = Create { kind: Kind::Scalar, tag: Tag::Str };

impl Transformer for Affixes {
    fn transform(&self, objects: &mut ResourceMap, context: &mut Context<'_>) -> Result<()> {
        let routes = Route::all(&self.specs);
        for resource in &mut objects.list {
            let gvk = original_gvk(resource);
            if !keeps_its_name(&gvk) {
                self.rename(resource, &gvk, &routes, &context.meter).map_err(Error::transform)?;
            }
        }
        Ok(())
    }
}

fn original_gvk(resource: &Resource) -> Gvk {
    let kind = resource.earlier.first().map_or(resource.node.object_kind(), |earlier| earlier.kind.as_str());
    Gvk::new(resource.node.api_version(), kind)
}

/// Kinds whose name means something elsewhere.
fn keeps_its_name(gvk: &Gvk) -> bool {
    match gvk.kind.as_str() {
        "CustomResourceDefinition" | "Namespace" => true,
        "APIService" => gvk.group == "apiregistration.k8s.io",
        _ => false,
    }
}

impl Affixes {
    fn rename(
        &self,
        resource: &mut Resource,
        gvk: &Gvk,
        routes: &[Route<'_>],
        meter: &Meter,
    ) -> Result<(), String> {
        for route in routes.iter().filter(|route| gvk.is_selected_by(&route.spec().gvk)) {
            if route.spec().path == "metadata/name" && !self.text.is_empty() {
                let list = match self.end {
                    Affix::Prefix => &mut resource.prefixes,
                    Affix::Suffix => &mut resource.suffixes,
                };
                list.push(self.text.as_str().into());
                resource.remember_id();
            }
            resource.touched = true;
            route.apply(&mut resource.node, Some(CREATE), &mut |node| {
                let name = match self.end {
                    Affix::Prefix => format!("{}{}", self.text, node.value()),
                    Affix::Suffix => format!("{}{}", node.value(), self.text),
                };
                meter.take(name.len())?;
                node.set_scalar(Node::scalar(name))
            })?;
        }
        Ok(())
    }
}
