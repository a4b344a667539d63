//! Kustomizations whose generator decrypts Secrets (KSOPS). The program and the key are not at hand, but the
//! files that it decrypts say what the Secrets are called and how they are annotated: they are read in its
//! place.

use std::sync::Arc;

use tiphys_value::{ObjectExt, Value, json};
use tiphys_vfs::{base_name, join, parent};

/// Reads a file of the repository, if it is there.
pub(super) type FileReader<'a> = dyn Fn(&str) -> Option<Arc<[u8]>> + 'a;

/// A kustomization in which the encrypted files stand among the resources in place of the generators that
/// decrypt them; `None` if it has no such generator.
pub(super) fn without_generators(read: &FileReader<'_>, path: &str, bytes: &[u8]) -> Option<Arc<[u8]>> {
    if !tiphys_kustomize::FILE_NAMES.contains(&base_name(path)) {
        return None;
    }
    let text = std::str::from_utf8(bytes).ok().filter(|text| text.contains("generators:"))?;
    let mut content: Value = tiphys_yaml::from_yaml(text).ok()?;
    let folder = parent(path).unwrap_or_default().to_owned();
    let (mut kept, mut files) = (Vec::new(), Vec::new());
    for entry in content.get("generators")?.as_array()? {
        match entry.as_str().and_then(|name| decrypted(read, &folder, name)) {
            Some(found) => files.extend(found),
            None => kept.push(entry.clone()),
        }
    }
    if files.is_empty() {
        return None;
    }
    let (over, files): (Vec<String>, Vec<String>) =
        files.into_iter().partition(|file| is_over_another(read, &folder, file));
    let map = content.as_object_mut()?;
    map.insert("generators".to_owned(), Value::Array(kept));
    let mut add = |field: &str, entries: Vec<Value>| {
        let list = map.entry(field).or_insert_with(|| json!([]));
        list.as_array_mut().map(|list| list.extend(entries))
    };
    add("resources", files.into_iter().map(Value::from).collect())?;
    if !over.is_empty() {
        add("patches", over.into_iter().map(|path| json!({"path": path})).collect())?;
    }
    Some(content.to_string().into_bytes().into())
}

/// The files that a generator decrypts, if it does nothing else.
fn decrypted(read: &FileReader<'_>, folder: &str, name: &str) -> Option<Vec<String>> {
    let bytes = read(&join(folder, name).ok()?)?;
    let generator: Value = tiphys_yaml::from_yaml(std::str::from_utf8(&bytes).ok()?).ok()?;
    if generator.kind() != "ksops" {
        return None;
    }
    let listed = generator.get("files").and_then(Value::as_array)?.iter().filter_map(Value::as_str);
    let listed: Vec<String> = listed.map(str::to_owned).collect();
    let names_all = listed.iter().all(|file| !hides_its_name(read, folder, file));
    names_all.then_some(listed)
}

/// Whether a file is encrypted as a whole, names and kinds too, so that nobody knows what it becomes.
fn hides_its_name(read: &FileReader<'_>, folder: &str, file: &str) -> bool {
    const ENCRYPTED: &str = "ENC[";
    let text = join(folder, file).ok().and_then(|path| read(&path));
    let text = text.as_deref().and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default();
    // As SOPS writes it: at the left, or one level below `metadata`.
    text.lines().any(|line| {
        let is_identity =
            |key: &str| matches!(key.trim_start(), "apiVersion" | "kind" | "name" | "namespace");
        let indent = line.len() - line.trim_start().len();
        line.split_once(": ")
            .is_some_and(|(key, value)| indent <= 4 && is_identity(key) && value.starts_with(ENCRYPTED))
    })
}

/// Whether an encrypted object says that it is merged into, or replaces, one that is there already.
fn is_over_another(read: &FileReader<'_>, folder: &str, file: &str) -> bool {
    const BEHAVIOR: &str = "kustomize.config.k8s.io/behavior";
    let object = || -> Option<Value> {
        let bytes = read(&join(folder, file).ok()?)?;
        tiphys_yaml::from_yaml(std::str::from_utf8(&bytes).ok()?).ok()
    };
    object().is_some_and(|object| matches!(object.annotation(BEHAVIOR), Some("merge" | "replace")))
}

#[cfg(test)]
mod tests {
    use tiphys_vfs::{FileTree as _, MemTree};

    use super::without_generators;

    #[test]
    fn encrypted_files_stand_for_what_they_become() {
        let generator =
            "apiVersion: viaduct.ai/v1\nkind: ksops\nmetadata: {name: g}\nfiles: [./token.enc.yaml]\n";
        let tree =
            MemTree::from_files([("web/secrets.yaml", generator), ("web/other.yaml", "kind: Other\n")]);
        let text = "resources: [a.yaml]\ngenerators: [secrets.yaml, other.yaml]\n";
        let secret = |path: &str| tree.read(path).ok();
        let read = without_generators(&secret, "web/kustomization.yaml", text.as_bytes()).expect("it is one");
        assert_eq!(
            std::str::from_utf8(&read).expect("text"),
            r#"{"generators":["other.yaml"],"resources":["a.yaml","./token.enc.yaml"]}"#
        );
        let merged =
            "kind: Secret\nmetadata: {name: a, annotations: {kustomize.config.k8s.io/behavior: merge}}\n";
        let read = |path: &str| match path {
            "web/token.enc.yaml" => Some(merged.as_bytes().into()),
            path => secret(path),
        };
        let over = without_generators(&read, "web/kustomization.yaml", text.as_bytes()).expect("it is one");
        assert_eq!(
            std::str::from_utf8(&over).expect("text"),
            r#"{"generators":["other.yaml"],"patches":[{"path":"./token.enc.yaml"}],"resources":["a.yaml"]}"#
        );
        let hidden = "kind: Secret\nmetadata:\n    name: ENC[AES256_GCM,data:a,iv:b,tag:c,type:str]\n";
        let read = |path: &str| match path {
            "web/token.enc.yaml" => Some(hidden.as_bytes().into()),
            path => secret(path),
        };
        assert!(without_generators(&read, "web/kustomization.yaml", text.as_bytes()).is_none());
        assert!(without_generators(&secret, "web/all.yaml", text.as_bytes()).is_none());
        assert!(without_generators(&secret, "web/kustomization.yaml", b"generators: [other.yaml]").is_none());
    }
}
