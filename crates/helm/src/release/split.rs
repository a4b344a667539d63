//! Splitting rendered files into documents.

use tiphys_yaml::{split_helm_manifests, split_helm3_manifests};

use crate::Compat;

/// The documents of a rendered file, blank ones left out. Helm 4 keeps the white space behind a
/// document, Helm 3 trims it; they differ in what they take for a separator.
pub(crate) fn split_manifests(text: &str, compat: Compat) -> Vec<&str> {
    let documents = match compat {
        Compat::Helm4 => split_helm_manifests(text),
        Compat::Helm3 => split_helm3_manifests(text),
    };
    documents.into_iter().map(|(_, document)| document).collect()
}
