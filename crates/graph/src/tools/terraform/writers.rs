//! What Terraform writes to the cluster.

use tiphys_render::manifest;
use tiphys_value::{GroupVersionKind, ObjectExt, ResourceKey};

use super::{Block, Expression, Terraform};
use crate::tools::{Action, Tool, What, Writer};

impl Terraform {
    /// Helm releases, objects and manifests among the resources.
    pub fn writers(&self) -> Vec<Writer> {
        let resources = self.blocks().filter(|block| block.kind == "resource");
        resources.flat_map(writers).collect()
    }
}

fn writers(block: &Block) -> Vec<Writer> {
    let Some(kind) = block.labels.first() else { return Vec::new() };
    let writer = |what, namespace: Option<&str>| Writer {
        tool: Tool::Terraform,
        action: Action::Apply,
        what,
        namespace: namespace.map(str::to_owned),
        span: block.span.clone(),
    };
    match kind.as_str() {
        "helm_release" => {
            let text = |name: &str| block.str(name).unwrap_or_default().to_owned();
            let what =
                What::Release { name: text("name"), chart: text("chart"), repository: text("repository") };
            vec![writer(what, block.str("namespace"))]
        }
        "kubectl_manifest" | "k8s_manifest" => {
            let text = block.str("yaml_body").or_else(|| block.str("content")).unwrap_or_default();
            let objects = manifest::parse_objects("manifest", text, true).unwrap_or_default();
            let keys = objects.iter().map(|object| object.value.resource_key());
            keys.map(|key| writer(What::Object(key), None)).collect()
        }
        "kubernetes_manifest" => {
            let key = block.get("manifest").and_then(manifest_key);
            key.map(|key| writer(What::Object(key), None)).into_iter().collect()
        }
        _ => match kind.strip_prefix("kubernetes_") {
            Some(resource) => {
                let key = typed_key(block, resource);
                key.map(|key| writer(What::Object(key), None)).into_iter().collect()
            }
            None => Vec::new(),
        },
    }
}

/// The key of an object that is written as an HCL object.
fn manifest_key(manifest: &Expression) -> Option<ResourceKey> {
    let metadata = manifest.get("metadata")?;
    let gvk = GroupVersionKind::from_api_version(
        manifest.get("apiVersion")?.as_str()?,
        manifest.get("kind")?.as_str()?,
    );
    let namespace = metadata.get("namespace").and_then(Expression::as_str).unwrap_or_default();
    Some(ResourceKey::new(gvk.group, gvk.kind, namespace, metadata.get("name")?.as_str()?))
}

/// The key of a `kubernetes_config_map_v1` and its like.
fn typed_key(block: &Block, resource: &str) -> Option<ResourceKey> {
    let metadata = block.children("metadata").next()?;
    let name = metadata.str("name")?;
    let plain = match resource.rsplit_once('_') {
        Some((plain, version))
            if version.starts_with('v') && version[1..].starts_with(|c: char| c.is_ascii_digit()) =>
        {
            plain
        }
        _ => resource,
    };
    let kind: String = plain.split('_').map(capitalised).collect();
    Some(ResourceKey::new(String::new(), kind, metadata.str("namespace").unwrap_or_default(), name))
}

fn capitalised(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
