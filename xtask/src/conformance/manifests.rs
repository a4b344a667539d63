//! The manifests of a folder, created with dry run: defaults, validation and pruning of what people write.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use tiphys_value::ObjectExt;

use super::{
    corpus::{Exchange, Sequence},
    edits,
    generate::KindLookup,
};

/// Files larger than this hold no manifests that people write.
const LARGEST: u64 = 600_000;
/// So many objects of one kind say what there is to say.
const MOST_OF_A_KIND: usize = 400;

/// The definitions of the folder, created; then every object of a kind that is built in or defined there;
/// then lives of some of them, with edits.
///
/// # Errors
/// The folder cannot be read.
pub(super) fn sequences(
    folder: &Path,
    place: &KindLookup<'_>,
    edits: usize,
    edited: usize,
) -> anyhow::Result<Vec<Sequence>> {
    let mut files = Vec::new();
    collect(folder, &mut files)?;
    let mut objects = Vec::new();
    for file in files {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        for (_, document) in tiphys_yaml::split_kubernetes_documents(&text).into_iter().flatten() {
            let object = tiphys_yaml::from_yaml(document).ok();
            objects
                .extend(object.filter(|object| object["metadata"].is_object() && !object.name().is_empty()));
        }
    }
    let (definitions, kinds) = definitions(&objects);
    let mut lives = Vec::new();
    let mut seen = BTreeMap::<(String, String), usize>::new();
    let mut creations = Vec::new();
    for mut object in objects {
        let key = (object.api_version().to_owned(), object.kind().to_owned());
        let Some((plural, namespaced)) = kinds.get(&key).cloned().or_else(|| place(&object)) else {
            continue;
        };
        let count = seen.entry(key).or_default();
        *count += 1;
        if *count > MOST_OF_A_KIND {
            continue;
        }
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("namespace");
            // Nobody is there to remove them.
            metadata.remove("finalizers");
        }
        let root = if object.api_version().contains('/') { "/apis" } else { "/api" };
        let scope = if namespaced { "/namespaces/default" } else { "" };
        let collection = format!("{root}/{}{scope}/{plural}", object.api_version());
        let path = format!("{collection}?dryRun=All&fieldValidation=Ignore");
        creations.push(Exchange::new("POST", path, &object));
        if edits > 0 && *count <= edited {
            if matches!(object.kind(), "PersistentVolume" | "PersistentVolumeClaim" | "Namespace") {
                // What protects these is taken away by nobody, so no name comes back.
                object["metadata"]["name"] = format!("{}-{}", object.name(), creations.len()).into();
            }
            lives.extend(edits::life(&object, &collection, edits, creations.len() as u64));
        }
    }
    Ok(vec![
        Sequence { name: "manifests: definitions".to_owned(), exchanges: definitions },
        Sequence { name: "manifests".to_owned(), exchanges: creations },
        Sequence { name: "edited manifests".to_owned(), exchanges: lives },
    ])
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let mut entries =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<Vec<_>>>()?;
    entries.sort();
    for entry in entries {
        let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // Templates of charts are no manifests yet.
        if entry.is_symlink() || name == ".git" || name == "templates" {
            continue;
        }
        if entry.is_dir() {
            collect(&entry, files)?;
        } else if (name.ends_with(".yaml") || name.ends_with(".yml")) && entry.metadata()?.len() < LARGEST {
            files.push(entry);
        }
    }
    Ok(())
}

/// Kinds by API version and name: plural, and whether in namespaces.
type Kinds = BTreeMap<(String, String), (String, bool)>;

/// Requests that create the definitions (without conversion: nobody converts here), and what they define.
fn definitions(objects: &[Value]) -> (Vec<Exchange>, Kinds) {
    let (mut exchanges, mut kinds) = (BTreeMap::new(), Kinds::new());
    for object in objects
        .iter()
        .filter(|o| o.kind() == "CustomResourceDefinition" && o.api_version() == "apiextensions.k8s.io/v1")
    {
        let names = &object["spec"]["names"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        for version in object["spec"]["versions"].as_array().into_iter().flatten() {
            let api_version = format!("{}/{}", text(&object["spec"]["group"]), text(&version["name"]));
            kinds.insert(
                (api_version, text(&names["kind"])),
                (text(&names["plural"]), object["spec"]["scope"] == "Namespaced"),
            );
        }
        let mut object = object.clone();
        object["metadata"] = json!({"name": object.name()});
        if let Some(spec) = object["spec"].as_object_mut() {
            spec.remove("conversion");
        }
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        exchanges.entry(object.name().to_owned()).or_insert_with(|| Exchange::new("POST", path, &object));
    }
    (exchanges.into_values().collect(), kinds)
}
