//! A text put into fields, or into one step of paths in them.

use super::{NamespaceTransformer, SubjectMode, Transformer};
use crate::{
    context::Context,
    error::{Error, Result},
    kustomization::model::Selector,
    node::{Kind, Node, lookup_create},
    provenance::join_clean,
    resource_map::ResourceMap,
    selector::Matcher,
};

/// One place to write.
pub(crate) struct ValueAddTarget {
    pub selector: Option<Selector>,
    pub field_path: String,
    /// From 1; 0 replaces the whole field.
    pub position: usize,
}

/// The transformer.
pub(crate) struct ValueAdd {
    pub value: String,
    pub targets: Vec<ValueAddTarget>,
}

impl Transformer for ValueAdd {
    fn transform(&self, objects: &mut ResourceMap, _: &mut Context<'_>) -> Result<()> {
        for target in &self.targets {
            let selected = match &target.selector {
                Some(selector) => Matcher::new(selector)?.select(objects)?,
                None => vec![true; objects.list.len()],
            };
            for (resource, _) in objects.list.iter_mut().zip(selected).filter(|(_, selected)| *selected) {
                resource.touched = true;
                let scoped = resource.is_cluster_scoped();
                self.apply(&mut resource.node, target, scoped).map_err(Error::transform)?;
            }
        }
        Ok(())
    }
}

impl ValueAdd {
    fn apply(&self, node: &mut Node, target: &ValueAddTarget, cluster_scoped: bool) -> Result<(), String> {
        if target.field_path == "metadata/namespace" {
            let setter = NamespaceTransformer {
                namespace: self.value.clone(),
                specs: Vec::new(),
                unset_only: false,
                subjects: SubjectMode::DefaultOnly,
            };
            return setter.apply(node, cluster_scoped);
        }
        let mut steps: Vec<String> = Vec::new();
        for step in target.field_path.split('/') {
            match steps.last_mut() {
                Some(last) if last.ends_with('\\') => {
                    last.pop();
                    last.push('/');
                    last.push_str(step);
                }
                _ => steps.push(step.to_owned()),
            }
        }
        let Some(field) = lookup_create(node, &steps, Kind::Scalar)? else { return Ok(()) };
        field.expect(Kind::Scalar)?;
        let value = match target.position {
            0 => self.value.clone(),
            position => insert_step(field.value(), position - 1, &self.value),
        };
        if value.is_empty() {
            return Ok(());
        }
        field.set_scalar(Node::scalar(value))
    }
}

/// Puts a step into a path, at a position counted from 0 or at the end.
fn insert_step(path: &str, position: usize, step: &str) -> String {
    if step.is_empty() {
        return path.to_owned();
    }
    let absolute = path.starts_with('/');
    let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    parts.insert(position.min(parts.len()), step);
    let joined = parts.join("/");
    join_clean("", &if absolute { format!("/{joined}") } else { joined })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inserts_a_step() {
        assert_eq!(insert_step("projects/x", 0, "v"), "v/projects/x");
        assert_eq!(insert_step("projects/x", 1, "v"), "projects/v/x");
        assert_eq!(insert_step("/a/b", 98, "v"), "/a/b/v");
        assert_eq!(insert_step("", 0, "v"), "v");
    }
}
