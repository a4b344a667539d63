//! `cargo xtask tidy`: the layers of ARCHITECTURE.md, held against what the crates really use.

use std::{collections::BTreeMap, fs, process::Command};

use anyhow::{Context, bail};

/// The layer of every crate. A crate may use crates of lower layers and of its own.
const LAYERS: &[(&str, u8)] = &[
    ("tiphys-diag", 0),
    ("tiphys-yaml", 0),
    ("tiphys-value", 0),
    ("tiphys-gocompat", 0),
    ("tiphys-vfs", 0),
    ("tiphys-cause", 1),
    ("tiphys-schema", 1),
    ("tiphys-merge", 1),
    ("tiphys-expr", 1),
    ("tiphys-gotemplate", 2),
    ("tiphys-helm", 2),
    ("tiphys-kustomize", 2),
    ("tiphys-render", 2),
    ("tiphys-model", 2),
    ("tiphys-appset", 3),
    ("tiphys-diff", 3),
    ("tiphys-health", 3),
    ("tiphys-network", 3),
    ("tiphys-policy", 3),
    ("tiphys-graph", 3),
    ("tiphys-sync", 3),
    ("tiphys-check", 3),
    ("tiphys-identity", 4),
    ("tiphys-source", 4),
    ("tiphys-tls", 4),
    ("tiphys-apiserver", 4),
    ("tiphys-doctor", 4),
    ("tiphys-worker", 4),
    ("tiphys-world", 4),
    ("tiphys-cluster", 4),
    ("tiphys-controller", 5),
    ("tiphys-argocd", 5),
    ("tiphys-stage", 5),
    ("tiphys-cascades", 5),
    ("tiphys-fuzz", 5),
    ("tiphys-cli", 5),
    ("xtask", 5),
    ("tiphys-oracles", 5),
];

/// Crates that only machinery with IO may use, so that everything below stays a function of its
/// input and builds in seconds.
const IO_ONLY: &[&str] = &["tokio", "hyper", "reqwest", "kube", "gix", "rustls", "notify", "redb"];

/// Volatile or slow crates and the only crates of ours that may use them.
const WRAPPED: &[(&str, &[&str])] = &[
    ("kube", &["tiphys-cluster"]),
    ("gix", &["tiphys-source"]),
    ("mlua", &["tiphys-health"]),
    ("aws-config", &["tiphys-identity"]),
];

/// Checks every normal dependency of every workspace crate.
///
/// # Errors
/// Names each edge that goes up, and each crate without a layer.
pub(crate) fn run() -> anyhow::Result<()> {
    let mut faults = faults(&edges()?);
    faults.extend(unbanned()?);
    if faults.is_empty() {
        println!("tidy: every crate keeps to its layer");
        return Ok(());
    }
    bail!("{}", faults.join("\n"))
}

/// The direct normal dependencies of every workspace crate.
fn edges() -> anyhow::Result<BTreeMap<String, Vec<String>>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .output()
        .context("cannot run cargo metadata")?;
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists packages")?;
    Ok(packages.iter().map(|package| (text(&package["name"]), normal_dependencies(package))).collect())
}

/// What turns the bans of `clippy.toml` on.
const BANS: &str = "#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]";

/// The crates of layers 0 to 3 in which files, processes, the clock and the environment are not banned.
fn unbanned() -> anyhow::Result<Vec<String>> {
    let mut faults = Vec::new();
    for (name, _) in LAYERS.iter().filter(|(_, layer)| *layer < 4) {
        let root = format!("crates/{}/src/lib.rs", name.trim_start_matches("tiphys-"));
        let text = fs::read_to_string(&root).with_context(|| root.clone())?;
        if !text.lines().any(|line| line == BANS) {
            faults.push(format!("{root} has to begin with {BANS}"));
        }
    }
    Ok(faults)
}

fn normal_dependencies(package: &serde_json::Value) -> Vec<String> {
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    dependencies.filter(|d| d["kind"].is_null()).map(|d| text(&d["name"])).collect()
}

fn text(value: &serde_json::Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn faults(edges: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let layers: BTreeMap<_, _> = LAYERS.iter().copied().collect();
    let mut faults = Vec::new();
    for (user, used) in edges {
        let Some(&layer) = layers.get(user.as_str()) else {
            faults.push(format!("{user} has no layer in xtask/src/tidy.rs"));
            continue;
        };
        for used in used {
            if layers.get(used.as_str()).is_some_and(|&below| below > layer) {
                faults.push(format!("{user} (layer {layer}) must not use {used} of a higher layer"));
            }
            if layer < 4 && IO_ONLY.contains(&used.as_str()) {
                faults.push(format!("{user} (layer {layer}) must not use {used}: it does IO"));
            }
            let owners = WRAPPED.iter().find(|(wrapped, _)| wrapped == used);
            if owners.is_some_and(|(_, owners)| !owners.contains(&user.as_str())) {
                faults.push(format!("{user} must not use {used} directly: it has a crate of its own"));
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer_faults(user: &str, used: &str) -> Vec<String> {
        faults(&BTreeMap::from([(user.to_owned(), vec![used.to_owned()])]))
    }

    #[test]
    fn the_workspace_keeps_to_its_layers() {
        assert_eq!(faults(&edges().unwrap()), Vec::<String>::new());
    }

    #[test]
    fn an_edge_up_io_below_layer_four_and_unwrapped_crates_are_faults() {
        assert_eq!(layer_faults("tiphys-yaml", "tiphys-helm").len(), 1);
        assert_eq!(layer_faults("tiphys-sync", "tokio").len(), 1);
        assert_eq!(layer_faults("tiphys-controller", "kube").len(), 1);
        assert_eq!(layer_faults("tiphys-helm", "tiphys-yaml").len(), 0);
        assert_eq!(layer_faults("tiphys-unheard-of", "serde").len(), 1);
    }
}
