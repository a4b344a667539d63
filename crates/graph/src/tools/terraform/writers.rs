//! What Terraform writes to the cluster.

use tiphys_diag::Span;
use tiphys_render::manifest;
use tiphys_value::{GroupVersionKind, ObjectExt, ResourceKey};
use tiphys_vfs::parent;

use super::{Block, Expression, Terraform, Value};
use crate::{
    Files,
    tools::{Action, Script, Tool, Variables, What, Writer, commands},
};

impl Terraform {
    /// Helm releases, objects and manifests among the resources.
    pub fn writers(&self) -> Vec<Writer> {
        let resources = self.blocks().filter(|block| block.kind == "resource");
        let modules = self.blocks().filter(|block| block.kind == "module");
        resources.flat_map(writers).chain(modules.flat_map(add_ons)).collect()
    }

    /// What the commands of `local-exec` provisioners write to the cluster. They run where Terraform does: in
    /// the folder of the module that is applied, most often.
    pub fn provisioners(&self, files: &Files) -> Vec<Writer> {
        let mut found = Vec::new();
        for (file, blocks) in &self.files {
            let folder = parent(file).unwrap_or_default();
            let provisioners = blocks.iter().flat_map(|block| block.children("provisioner"));
            for provisioner in provisioners.filter(|it| it.labels.iter().any(|label| label == "local-exec")) {
                let Some(command) = provisioner.get("command") else { continue };
                let Some(text) = command.as_str() else { continue };
                let line = command.span.start.line;
                let script = Script { file: file.clone(), line, text: text.to_owned(), is_literal: false };
                let setting = commands::Setting {
                    files,
                    tool: Tool::Terraform,
                    variables: &Variables::default(),
                    folders: vec![folder.to_owned(), String::new()],
                };
                found.extend(commands::writers(&script, &setting));
            }
        }
        found
    }
}

/// What installs one of EKS's add-ons, which are named like their charts but for a few.
fn add_on(name: &str, block: &Block, span: &Span) -> Writer {
    let chart = match name {
        "vpc-cni" => "aws-vpc-cni",
        other => other,
    };
    let what = What::Release { name: name.to_owned(), chart: chart.to_owned(), repository: String::new() };
    let namespace = block.str("namespace").map(str::to_owned);
    Writer {
        tool: Tool::Terraform,
        action: Action::Apply,
        what,
        is_by_kubectl: false,
        namespace,
        span: span.clone(),
    }
}

/// The add-ons that a much used module installs: those of EKS that it lists, and those that it switches on.
fn add_ons(block: &Block) -> Vec<Writer> {
    let source = block.str("source").unwrap_or_default();
    let listed: &[&str] = match source {
        _ if source.contains("eks-blueprints-addons") => &["eks_addons"],
        _ if source.starts_with("terraform-aws-modules/eks/aws") => &["cluster_addons", "addons"],
        _ => return Vec::new(),
    };
    let lists = listed.iter().filter_map(|name| block.get(name));
    let of_list = lists.flat_map(|list| match &list.value {
        Value::Object(pairs) => pairs.iter().map(|(name, it)| add_on(name, block, &it.span)).collect(),
        _ => Vec::new(),
    });
    // Told to make nothing in the cluster, it leaves that to an engine.
    let installs = block.get("create_kubernetes_resources").is_none_or(|it| it.as_bool() == Some(true));
    let switched = block.attributes.iter().filter_map(|it| {
        let name = it.name.trim().strip_prefix("enable_").filter(|_| installs)?;
        (it.expression.as_bool() == Some(true))
            .then(|| add_on(&name.replace('_', "-"), block, &it.expression.span))
    });
    of_list.chain(switched).collect()
}

fn writers(block: &Block) -> Vec<Writer> {
    let Some(kind) = block.labels.first() else { return Vec::new() };
    let writer = |what, namespace: Option<&str>| Writer {
        tool: Tool::Terraform,
        action: Action::Apply,
        what,
        is_by_kubectl: false,
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
        "aws_eks_addon" => {
            block.str("addon_name").map(|name| add_on(name, block, &block.span)).into_iter().collect()
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
