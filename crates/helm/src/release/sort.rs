//! From rendered files to hooks and manifests in install order.

use std::{collections::BTreeMap, sync::OnceLock};

use tiphys_gocompat::strconv::quote;

use super::{
    order::compare_kinds,
    parallel_reader::{Document, Examined},
};
use crate::{Compat, Hook, HookEvent, Manifest, log_text::log_text, values::Warnings};

const HOOK: &str = "helm.sh/hook";
const HOOK_WEIGHT: &str = "helm.sh/hook-weight";

/// Hooks and other documents, each in install order; documents of one kind keep the order of their
/// files' paths.
#[derive(Debug, Default)]
pub(crate) struct Sorted {
    pub(crate) hooks: Vec<Hook>,
    pub(crate) manifests: Vec<Manifest>,
}

/// Sorts the documents of rendered files.
///
/// # Errors
/// A document that is no YAML: its file, and Helm's text.
pub(crate) fn sort_manifests(
    files: &mut BTreeMap<String, Examined>,
    compat: Compat,
    warnings: &mut Warnings,
) -> Result<Sorted, (String, String)> {
    let mut sorted = Sorted::default();
    for (path, file) in files {
        for document in std::mem::take(&mut file.documents) {
            let document =
                document.map_err(|error| (path.clone(), format!("YAML parse error on {path}: {error}")))?;
            add(&mut sorted, path, document, compat, warnings);
        }
    }
    sorted.hooks.sort_by(|a, b| compare_kinds(&a.manifest.kind, &b.manifest.kind, compat));
    sorted.manifests.sort_by(|a, b| compare_kinds(&a.kind, &b.kind, compat));
    Ok(sorted)
}

fn add(
    sorted: &mut Sorted,
    path: &str,
    Document { content, head }: Document,
    compat: Compat,
    warnings: &mut Warnings,
) {
    let manifest = Manifest { path: path.to_owned(), content, kind: head.kind, value: OnceLock::new() };
    let Some(types) = head.annotations.get(HOOK) else {
        sorted.manifests.push(manifest);
        return;
    };
    let events: Option<Vec<HookEvent>> =
        types.split(',').map(|name| HookEvent::from_name(&name.trim().to_lowercase())).collect();
    let Some(events) = events else {
        warnings.push(match compat {
            Compat::Helm4 => {
                format!("level=INFO msg=\"skipping unknown hooks\" hookTypes={}", log_text(types))
            }
            Compat::Helm3 => format!("manifest_sorter.go:199: info: skipping unknown hook: {}", quote(types)),
        });
        return;
    };
    let weight = head.annotations.get(HOOK_WEIGHT).and_then(|it| it.parse().ok()).unwrap_or_default();
    sorted.hooks.push(Hook { manifest, events, weight });
}
