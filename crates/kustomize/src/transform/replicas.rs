//! Replica counts.

use super::Transformer;
use crate::{
    context::Context,
    error::{Error, ErrorKind, Result},
    fields::{Create, apply},
    kustomization::model::{FieldSpec, Replica},
    name_advice::one_of,
    node::{Kind, Node, Tag},
    resource_map::ResourceMap,
};

/// Sets the count of objects of one name.
pub(crate) struct Replicas {
    pub replica: Replica,
    pub specs: Vec<FieldSpec>,
}

const CREATE: Create = Create { kind: Kind::Scalar, tag: Tag::Int };

impl Transformer for Replicas {
    fn transform(&self, objects: &mut ResourceMap, context: &mut Context<'_>) -> Result<()> {
        let mut found = false;
        for spec in &self.specs {
            let fits =
                |id: &crate::resid::ResId| id.name == self.replica.name && id.gvk.is_selected_by(&spec.gvk);
            for at in objects.find_by_any_id(fits) {
                found = true;
                let resource = &mut objects.list[at];
                resource.touched = true;
                let count = self.replica.count.to_string();
                apply(&mut resource.node, spec, Some(CREATE), &mut |node| {
                    node.set_scalar(Node::tagged(count.as_str(), Tag::Int))
                })
                .map_err(Error::transform)?;
            }
        }
        if found || context.options.partial { Ok(()) } else { Err(self.no_match(objects)) }
    }
}

impl Replicas {
    fn no_match(&self, objects: &ResourceMap) -> Error {
        let kinds: Vec<String> = self.specs.iter().map(|spec| spec.gvk.to_string()).collect();
        let error = Error::new(
            ErrorKind::Transform,
            format!(
                "resource with name {} does not match a config with the following GVK [{}]",
                self.replica.name,
                kinds.join(" ")
            ),
        );
        let scaled =
            objects.list.iter().filter(|r| self.specs.iter().any(|s| r.gvk().is_selected_by(&s.gvk)));
        let mut names: Vec<&str> = scaled.map(|resource| resource.node.name()).collect();
        names.dedup();
        if names.is_empty() { error } else { error.advise(one_of(&self.replica.name, names.into_iter())) }
    }
}
