//! What controllers make from objects, by their published conventions.

use tiphys_value::{FieldPath, ObjectExt, ResourceKey, Value};

use super::{edge::EdgeKind, out::Out, path::path};
use crate::ObjectId;

/// What becomes of an object that a controller would make and that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreationPolicy {
    /// The controller makes it and owns it.
    Owned,
    /// The controller makes it, and leaves it behind.
    Orphaned,
    /// The controller only writes into what is there.
    Merged,
}

/// An object that a controller makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Product {
    /// What it is made from.
    pub from: ObjectId,
    /// What is made.
    pub key: ResourceKey,
    /// The field that names it.
    pub field: FieldPath,
    /// What becomes of one that is there already.
    pub policy: CreationPolicy,
}

/// The products of an object; their edges are added.
pub(super) fn add(out: &mut Out<'_, '_>) -> Vec<Product> {
    let found = products(out);
    for product in &found {
        out.add(EdgeKind::Produces, product.key.clone(), product.field.clone(), false);
    }
    found
}

/// A kind that makes one Secret: group, kind, the field with its name; the object's own name if empty.
const SECRETS: [(&str, &str, &[&str]); 9] = [
    ("cert-manager.io", "Certificate", &["spec", "secretName"]),
    ("bitnami.com", "SealedSecret", &["spec", "template", "metadata", "name"]),
    ("onepassword.com", "OnePasswordItem", &["metadata", "name"]),
    ("secrets.hashicorp.com", "VaultStaticSecret", &["spec", "destination", "name"]),
    ("secrets.hashicorp.com", "VaultDynamicSecret", &["spec", "destination", "name"]),
    ("secrets.infisical.com", "InfisicalSecret", &["spec", "managedSecretReference", "secretName"]),
    ("secrets.doppler.com", "DopplerSecret", &["spec", "managedSecret", "name"]),
    ("spv.no", "AzureKeyVaultSecret", &["spec", "output", "secret", "name"]),
    ("k8s.bitwarden.com", "BitwardenSecret", &["spec", "secretName"]),
];

fn products(out: &Out<'_, '_>) -> Vec<Product> {
    let (object, key) = (out.object.value(), &out.object.key);
    let make =
        |to: ResourceKey, field: FieldPath, policy| Product { from: out.object.id, key: to, field, policy };
    let secret = |name: &str| out.near("", "Secret", name);
    if let Some((.., keys)) = SECRETS.iter().find(|(group, kind, _)| key.group == *group && key.kind == *kind)
    {
        let name = object.str_at(keys).unwrap_or(&key.name);
        return vec![make(secret(name), path(keys), CreationPolicy::Owned)];
    }
    match (key.group.as_str(), key.kind.as_str()) {
        ("external-secrets.io", "ExternalSecret") => {
            let name = object.str_at(&["spec", "target", "name"]).unwrap_or(&key.name);
            let policy = match object.str_at(&["spec", "target", "creationPolicy"]) {
                None | Some("Owner") => CreationPolicy::Owned,
                Some("Merge") => CreationPolicy::Merged,
                Some("Orphan") => CreationPolicy::Orphaned,
                Some(_) => return Vec::new(),
            };
            vec![make(secret(name), path(&["spec", "target"]), policy)]
        }
        ("networking.k8s.io", "Ingress") if asks_for_certificate(object) => tls_secrets(object)
            .map(|(at, name)| {
                make(secret(name), path(&["spec", "tls"]).index(at).key("secretName"), CreationPolicy::Owned)
            })
            .collect(),
        ("postgresql.cnpg.io", "Cluster") => ["app", "superuser", "ca"]
            .iter()
            .map(|role| {
                make(
                    secret(&format!("{}-{role}", key.name)),
                    path(&["metadata", "name"]),
                    CreationPolicy::Owned,
                )
            })
            .collect(),
        ("operator.tekton.dev", "TektonConfig") => {
            let keys = ["spec", "targetNamespace"];
            let name = object.str_at(&keys).into_iter();
            name.map(|name| make(namespace(name), path(&keys), CreationPolicy::Owned)).collect()
        }
        ("operator.tigera.io", "Installation") => {
            vec![make(namespace("calico-system"), path(&["kind"]), CreationPolicy::Owned)]
        }
        _ => Vec::new(),
    }
}

fn namespace(name: &str) -> ResourceKey {
    ResourceKey::new("", "Namespace", "", name)
}

fn asks_for_certificate(ingress: &Value) -> bool {
    ["cert-manager.io/cluster-issuer", "cert-manager.io/issuer", "kubernetes.io/tls-acme"]
        .iter()
        .any(|key| ingress.annotation(key).is_some())
}

fn tls_secrets(ingress: &Value) -> impl Iterator<Item = (usize, &str)> {
    let tls = ingress.at(&["spec", "tls"]).and_then(Value::as_array).into_iter().flatten();
    tls.enumerate().filter_map(|(at, entry)| Some((at, entry.str_at(&["secretName"])?)))
}
