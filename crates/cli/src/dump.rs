//! Reading what `kubectl get -o yaml|json`, `kubectl cluster-info dump` and collectors like must-gather wrote.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use serde_json::Value;
use tiphys_value::ObjectExt;

/// Folders inside a dump deeper than this are no dump.
const MAX_DEPTH: usize = 32;
/// What surrounds the logs in a dump that is one text.
const LOGS: (&str, &str) = ("==== START logs for", "==== END logs for");

/// What a dump holds.
#[derive(Debug, Default)]
pub struct Dump {
    /// The objects; lists are taken apart.
    pub objects: Vec<Value>,
    /// The files of a folder that hold something else, and what is wrong with them.
    pub skipped: Vec<String>,
}

/// The objects of files: a file, a folder, or `-` for the standard input. Lists are taken apart.
///
/// # Errors
/// It cannot be read, holds text that is neither YAML nor JSON, or no object at all.
pub fn read(place: &Path) -> anyhow::Result<Vec<Value>> {
    let dump = read_dump(place)?;
    match dump.skipped.into_iter().next() {
        Some(why) => bail!(why),
        None => Ok(dump.objects),
    }
}

/// As [`read`], but what collectors put into a folder beside objects is left out and named.
///
/// # Errors
/// As [`read`]; in a folder, only that it holds no object at all.
pub fn read_dump(place: &Path) -> anyhow::Result<Dump> {
    let Dump { mut objects, mut skipped } = Dump::default();
    let is_folder = place.is_dir();
    if place == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("cannot read the standard input")?;
        parse(&text, &mut objects).context("the standard input")?;
    } else {
        for file in files(place)? {
            let shown = file.display();
            let bytes = std::fs::read(&file).with_context(|| format!("cannot read {shown}"))?;
            let before = objects.len();
            let parsed = String::from_utf8(bytes)
                .context("no text")
                .and_then(|text| parse(&text, &mut objects))
                .with_context(|| shown.to_string());
            match parsed {
                Err(why) if is_folder => {
                    objects.truncate(before);
                    skipped.push(format!("{why:#}"));
                }
                other => other?,
            }
        }
    }
    if objects.is_empty() {
        bail!(
            "{} holds no Kubernetes object; make a dump with `kubectl get KINDS -A -o yaml` or `kubectl cluster-info dump -A --output-directory DIR`",
            place.display()
        );
    }
    Ok(Dump { objects, skipped })
}

/// The files of a dump in order of their paths; logs and other files of a folder are left out.
fn files(place: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    if place.is_dir() {
        collect(place, 0, &mut found)?;
        found.sort();
    } else {
        found.push(place.to_owned());
    }
    Ok(found)
}

fn collect(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if depth > MAX_DEPTH {
        bail!("{} is nested too deep for a dump", folder.display());
    }
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot read {}", folder.display()))?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        let extension = path.extension().and_then(|extension| extension.to_str());
        if kind.is_dir() {
            collect(&path, depth + 1, found)?;
        } else if kind.is_file() && matches!(extension, Some("json" | "yaml" | "yml")) {
            found.push(path);
        }
    }
    Ok(())
}

/// Adds the objects of a text to the others.
fn parse(text: &str, objects: &mut Vec<Value>) -> anyhow::Result<()> {
    if text.trim_start().starts_with('{') {
        let text = without_logs(text);
        for value in serde_json::Deserializer::from_str(&text).into_iter::<Value>() {
            take_apart(value.context("no valid JSON")?, objects)?;
        }
        return Ok(());
    }
    let documents = tiphys_yaml::split_kubernetes_documents(text).context("no valid YAML")?;
    for (offset, document) in documents {
        let value = tiphys_yaml::from_yaml(document)
            .with_context(|| format!("no valid YAML in the document that starts at byte {offset}"))?;
        if !value.is_null() {
            take_apart(value, objects)?;
        }
    }
    Ok(())
}

/// A dump on the standard output has the logs of containers between its JSON texts.
fn without_logs(text: &str) -> String {
    let mut inside = false;
    let mut kept = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        if line.starts_with(LOGS.0) {
            inside = true;
        } else if line.starts_with(LOGS.1) {
            inside = false;
        } else if !inside {
            kept.push_str(line);
        }
    }
    kept
}

/// Adds an object, or the items of a list; items of typed lists get the kind that the list is of.
fn take_apart(mut value: Value, objects: &mut Vec<Value>) -> anyhow::Result<()> {
    let (kind, api_version) = (value.kind().to_owned(), value.api_version().to_owned());
    if kind.is_empty() || api_version.is_empty() {
        bail!("an object without apiVersion or kind: this is no dump of a cluster");
    }
    let items = match value.get_mut("items") {
        Some(Value::Array(items)) if kind.ends_with("List") => std::mem::take(items),
        Some(Value::Null) if kind.ends_with("List") => Vec::new(),
        _ => {
            objects.push(value);
            return Ok(());
        }
    };
    let of = kind.strip_suffix("List").unwrap_or_default();
    for mut item in items {
        if let (Some(root), false) = (item.as_object_mut(), of.is_empty()) {
            root.entry("apiVersion").or_insert_with(|| api_version.as_str().into());
            root.entry("kind").or_insert_with(|| of.into());
        }
        objects.push(item);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let mut objects = Vec::new();
        parse(text, &mut objects).unwrap();
        objects.iter().map(|o| format!("{}/{}", o.kind(), o.name())).collect()
    }

    #[test]
    fn lists_and_streams() {
        let yaml = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: a}}\n---\napiVersion: v1\nkind: Node\nmetadata: {name: n1}\n";
        assert_eq!(names(yaml), ["Pod/a", "Node/n1"]);
        let dump = "{\"kind\":\"NodeList\",\"apiVersion\":\"v1\",\"items\":[{\"metadata\":{\"name\":\"n\"}}]}\n==== START logs for container c of pod a/b ====\nnot json\n==== END logs for container c of pod a/b ====\n{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"items\":null}\n";
        assert_eq!(names(dump), ["Node/n"]);
    }

    #[test]
    fn what_is_no_dump_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.yaml");
        for (text, why) in [("a: 1\n", "no dump"), ("", "no Kubernetes object"), ("{\"a\":", "JSON")] {
            std::fs::write(&file, text).unwrap();
            let error = read(&file).unwrap_err();
            assert!(format!("{error:#}").contains(why), "{error:#}");
        }
        assert!(read(Path::new("/nonexistent/dump")).is_err());
    }

    #[test]
    fn what_else_a_collector_left_in_a_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("must-gather/image/namespaces/shop/pods/web/c/c/logs");
        std::fs::create_dir_all(&deep).unwrap();
        let write = |path: &Path, text: &[u8]| std::fs::write(path, text).unwrap();
        write(&deep.join("current.log"), b"{ not read");
        write(&deep.join("values.yaml"), b"a: b: c");
        write(&deep.join("x.json"), &[0xff, 0xfe]);
        let pod = b"apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\n";
        write(&folder.path().join("must-gather/image/namespaces/shop/pods.yaml"), pod);
        assert!(read(folder.path()).is_err());
        let dump = read_dump(folder.path()).unwrap();
        assert_eq!(dump.objects.len(), 1);
        assert_eq!(dump.skipped.len(), 2, "{:?}", dump.skipped);
        assert!(dump.skipped.iter().any(|why| why.contains("values.yaml")));
    }
}
