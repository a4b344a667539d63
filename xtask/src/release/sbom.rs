//! The bill of materials of the binaries in CycloneDX's JSON form: every crate that is compiled into one of
//! them on some platform, from `cargo metadata`.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::archive::sha256;
use crate::oracles::workspace_root;

/// The package whose binary is described.
const ROOT: &str = "tiphys-cli";

/// The bill for what the workspace locks.
///
/// # Errors
/// Cargo does not say what the workspace consists of.
pub(super) fn of_workspace() -> anyhow::Result<Value> {
    let output = Command::new(env!("CARGO"))
        .current_dir(workspace_root())
        .args(["metadata", "--format-version", "1", "--locked"])
        .output()
        .context("cannot run cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let lock = std::fs::read_to_string(workspace_root().join("Cargo.lock"))?;
    bill(&serde_json::from_slice(&output.stdout)?, &checksums(&lock))
}

/// The checksums of crates that come from a registry, by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let mut found = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let field = |name: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
            line.map(|value| value.trim_matches('"').to_owned())
        };
        if let (Some(name), Some(version), Some(sum)) = (field("name"), field("version"), field("checksum")) {
            found.insert((name, version), sum);
        }
    }
    found
}

/// The bill for what `cargo metadata` says.
fn bill(metadata: &Value, checksums: &BTreeMap<(String, String), String>) -> anyhow::Result<Value> {
    let packages = packages(metadata)?;
    let edges = edges(metadata)?;
    let root = packages.iter().find(|(_, package)| package["name"] == ROOT);
    let (root, _) = root.with_context(|| format!("the workspace has no package {ROOT}"))?;
    let used = reachable(root, &edges);
    let reference = |id: &str| packages.get(id).map(purl).unwrap_or_default();
    let libraries = used.iter().filter(|id| *id != root).filter_map(|id| packages.get(id.as_str()));
    let mut components: Vec<Value> = libraries.map(|package| component(package, checksums)).collect();
    components.sort_by_key(|component| component["bom-ref"].to_string());
    let mut dependencies: Vec<Value> = used
        .iter()
        .map(|id| {
            let below: BTreeSet<String> =
                edges.get(id).into_iter().flatten().map(|id| reference(id)).collect();
            json!({"ref": reference(id), "dependsOn": below})
        })
        .collect();
    dependencies.sort_by_key(|dependency| dependency["ref"].to_string());
    let mut subject = component(packages[root], checksums);
    subject["type"] = "application".into();
    subject["name"] = "tiphys".into();
    let content = json!({"components": components, "dependencies": dependencies, "subject": subject});
    Ok(json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": serial_number(&content),
        "version": 1,
        "metadata": {"component": subject},
        "components": components,
        "dependencies": dependencies,
    }))
}

fn packages(metadata: &Value) -> anyhow::Result<BTreeMap<&str, &Value>> {
    let packages = metadata["packages"].as_array().context("cargo metadata lists packages")?;
    Ok(packages.iter().filter_map(|package| Some((package["id"].as_str()?, package))).collect())
}

/// What every package is compiled with: dependencies of the build count, those of tests do not.
fn edges(metadata: &Value) -> anyhow::Result<BTreeMap<String, BTreeSet<String>>> {
    let nodes = metadata["resolve"]["nodes"].as_array().context("cargo metadata resolves dependencies")?;
    let is_compiled = |dependency: &&Value| {
        dependency["dep_kinds"].as_array().into_iter().flatten().any(|kind| kind["kind"] != "dev")
    };
    let below = |node: &Value| {
        let all = node["deps"].as_array().into_iter().flatten().filter(is_compiled);
        all.filter_map(|dependency| Some(dependency["pkg"].as_str()?.to_owned())).collect()
    };
    Ok(nodes.iter().filter_map(|node| Some((node["id"].as_str()?.to_owned(), below(node)))).collect())
}

fn reachable(root: &str, edges: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    let mut found = BTreeSet::from([root.to_owned()]);
    let mut next = vec![root.to_owned()];
    while let Some(id) = next.pop() {
        let below = edges.get(&id).into_iter().flatten();
        next.extend(below.filter(|id| found.insert((*id).clone())).cloned().collect::<Vec<_>>());
    }
    found
}

fn text<'a>(package: &'a Value, field: &str) -> &'a str {
    package[field].as_str().unwrap_or_default()
}

fn purl(package: &&Value) -> String {
    // A version may have a plus, which has a meaning of its own in an address.
    format!("pkg:cargo/{}@{}", text(package, "name"), text(package, "version").replace('+', "%2B"))
}

fn component(package: &Value, checksums: &BTreeMap<(String, String), String>) -> Value {
    let (name, version) = (text(package, "name"), text(package, "version"));
    let reference = purl(&package);
    let mut component = json!({"type": "library", "bom-ref": reference, "name": name, "version": version,
        "purl": reference});
    if let Some(license) = package["license"].as_str() {
        // What Cargo took before it took SPDX's expressions.
        component["licenses"] = json!([{"expression": license.replace('/', " OR ")}]);
    }
    if let Some(sum) = checksums.get(&(name.to_owned(), version.to_owned())) {
        component["hashes"] = json!([{"alg": "SHA-256", "content": sum}]);
    }
    if let Some(repository) = package["repository"].as_str() {
        component["externalReferences"] = json!([{"type": "vcs", "url": repository}]);
    }
    component
}

/// A UUID of the content (RFC 9562, version 8), so that the same bill has the same number.
fn serial_number(content: &Value) -> String {
    let digest = sha256(content.to_string().as_bytes());
    let part = |from: usize, to: usize| &digest[from..to];
    format!("urn:uuid:{}-{}-8{}-a{}-{}", part(0, 8), part(8, 12), part(12, 15), part(15, 18), part(18, 30))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, license: &str) -> Value {
        json!({"id": format!("{name}-id"), "name": name, "version": "1.0.0+x", "license": license})
    }

    fn dependency(name: &str, kind: Value) -> Value {
        json!({"pkg": format!("{name}-id"), "dep_kinds": [{"kind": kind}]})
    }

    #[test]
    fn what_is_compiled_in_is_listed_and_tests_are_not() {
        let kinds =
            [dependency("a", Value::Null), dependency("b", "build".into()), dependency("t", "dev".into())];
        let metadata = json!({
            "packages": [package(ROOT, "Apache-2.0"), package("a", "MIT/Apache-2.0"), package("b", "MIT"),
                package("deep", "MIT"), package("t", "MIT"), package("other", "MIT")],
            "resolve": {"nodes": [
                {"id": format!("{ROOT}-id"), "deps": kinds},
                {"id": "a-id", "deps": [dependency("deep", Value::Null)]},
                {"id": "b-id", "deps": []}, {"id": "deep-id", "deps": [dependency("a", Value::Null)]},
                {"id": "t-id", "deps": []}, {"id": "other-id", "deps": []},
            ]},
        });
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0+x\"\nchecksum = \"12ab\"\n";
        let bill = bill(&metadata, &checksums(lock)).unwrap();
        let names: Vec<&str> =
            bill["components"].as_array().unwrap().iter().filter_map(|c| c["name"].as_str()).collect();
        assert_eq!(names, ["a", "b", "deep"]);
        let first = &bill["components"][0];
        assert_eq!(first["purl"], "pkg:cargo/a@1.0.0%2Bx");
        assert_eq!(first["licenses"], json!([{"expression": "MIT OR Apache-2.0"}]));
        assert_eq!(first["hashes"], json!([{"alg": "SHA-256", "content": "12ab"}]));
        let root = bill["dependencies"].as_array().unwrap().iter();
        let root: Vec<&Value> =
            root.filter(|d| d["ref"] == bill["metadata"]["component"]["bom-ref"]).collect();
        assert_eq!(root[0]["dependsOn"], json!(["pkg:cargo/a@1.0.0%2Bx", "pkg:cargo/b@1.0.0%2Bx"]));
        let number = bill["serialNumber"].as_str().unwrap();
        assert_eq!(number.len(), "urn:uuid:".len() + 36, "{number}");
    }

    #[test]
    fn a_workspace_without_the_program_is_told() {
        let metadata = json!({"packages": [], "resolve": {"nodes": []}});
        assert!(bill(&metadata, &BTreeMap::new()).unwrap_err().to_string().contains(ROOT));
    }
}
