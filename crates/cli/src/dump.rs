//! Reading what `kubectl get -o yaml|json`, `kubectl cluster-info dump` and collectors like must-gather
//! wrote.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap},
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use serde_json::Value;
use tiphys_value::{Budget, JsonError, ObjectExt, RenderLimits, json_stream_within};

/// Folders inside a dump deeper than this are no dump.
const MAX_DEPTH: usize = 32;
/// More of a file is not read, nor of the standard input.
const MAX_BYTES: u64 = 128 << 20;
/// What surrounds the logs in a dump that is one text.
const LOGS: (&str, &str) = ("==== START logs for", "==== END logs for");

/// What a dump holds.
#[derive(Debug, Default)]
pub(crate) struct Dump {
    /// The objects; lists are taken apart.
    pub objects: Vec<Value>,
    /// The files of a folder that hold something else, and what is wrong with them.
    pub skipped: Vec<String>,
    /// The objects that stood there more than once, as `Kind namespace/name`; the newest of each counts.
    pub repeated: Vec<String>,
}

/// The objects of files: a file, a folder, or `-` for the standard input. Lists are taken apart.
///
/// # Errors
/// It cannot be read, holds text that is neither YAML nor JSON, or no object at all.
pub(crate) fn read(place: &Path) -> anyhow::Result<Vec<Value>> {
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
pub(crate) fn read_dump(place: &Path) -> anyhow::Result<Dump> {
    let (mut objects, mut skipped) = (Vec::new(), Vec::new());
    let is_folder = place.is_dir();
    let budget = Budget::of_saved_state();
    if place == Path::new("-") {
        let bytes = read_bounded(std::io::stdin()).context("cannot read the standard input")?;
        let text = decoded(bytes).context("the standard input")?;
        parse(&plain(&text), &mut objects, &budget).context("the standard input")?;
    } else {
        for file in files(place)? {
            let shown = file.display();
            let bytes = File::open(&file).map_err(Into::into).and_then(read_bounded);
            let bytes = bytes.with_context(|| format!("cannot read {shown}"))?;
            let before = objects.len();
            let parsed = decoded(bytes)
                .and_then(|text| parse(&plain(&text), &mut objects, &budget))
                .with_context(|| shown.to_string());
            match parsed {
                // Of what is known in part nobody can say what it lacks.
                Err(why) if budget.remaining_bytes() == 0 => {
                    bail!("{why:#}: save fewer kinds, or raise {}", RenderLimits::FLAGS[0])
                }
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
    let repeated = drop_repeated(&mut objects);
    Ok(Dump { objects, skipped, repeated })
}

/// All bytes, if they are not more than a file may have.
fn read_bounded(from: impl std::io::Read) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        bail!("it is larger than {} MiB: save kinds in files of their own", MAX_BYTES >> 20);
    }
    Ok(bytes)
}

/// Keeps the newest of the objects that stand there more than once; returns what those are.
fn drop_repeated(objects: &mut Vec<Value>) -> Vec<String> {
    type Key = (String, String, String, String);
    let key = |object: &Value| -> Key {
        let group = object.gvk().group;
        (group, object.kind().into(), object.namespace().into(), object.name().into())
    };
    let version = |object: &Value| object.resource_version().parse::<u64>().unwrap_or(0);
    let mut newest: HashMap<Key, usize> = HashMap::new();
    let mut repeated = BTreeSet::new();
    let mut kept: Vec<bool> = vec![true; objects.len()];
    for (at, object) in objects.iter().enumerate().filter(|(_, object)| !object.name().is_empty()) {
        let Some(before) = newest.insert(key(object), at) else { continue };
        let older = if version(&objects[before]) > version(object) { at } else { before };
        kept[older] = false;
        if older == at {
            newest.insert(key(object), before);
        }
        let place = if object.namespace().is_empty() { "" } else { "/" };
        repeated.insert(format!("{} {}{place}{}", object.kind(), object.namespace(), object.name()));
    }
    let mut at = 0;
    objects.retain(|_| {
        at += 1;
        kept[at - 1]
    });
    repeated.into_iter().collect()
}

/// Text in UTF-8, or in UTF-16 as shells on Windows redirect it.
fn decoded(bytes: Vec<u8>) -> anyhow::Result<String> {
    let pairs = |of: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes[2..].chunks_exact(2).map(|pair| of([pair[0], pair[1]])).collect();
        String::from_utf16(&units).context("no text in UTF-16")
    };
    match bytes.as_slice() {
        [0xff, 0xfe, ..] => pairs(u16::from_le_bytes),
        [0xfe, 0xff, ..] => pairs(u16::from_be_bytes),
        _ => String::from_utf8(bytes).context("no text"),
    }
}

/// A text without a byte order mark, Windows' line ends, and what kubectl says before it starts.
fn plain(text: &str) -> Cow<'_, str> {
    const SAID: [&str; 4] = ["Warning: ", "Error from server", "error: ", "No resources found"];
    let mut rest = text.trim_start_matches('\u{feff}');
    while SAID.iter().any(|start| rest.starts_with(start)) {
        rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
    }
    if rest.contains("\r\n") { Cow::Owned(rest.replace("\r\n", "\n")) } else { Cow::Borrowed(rest) }
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
fn parse(text: &str, objects: &mut Vec<Value>, budget: &Budget) -> anyhow::Result<()> {
    // Between JSON texts nothing stands but blanks; where `---` does, they are documents of YAML in that
    // notation.
    let json = text.trim_start().starts_with('{').then(|| without_logs(text));
    if let Some(text) = json.filter(|text| !text.lines().any(|line| line.starts_with("---"))) {
        for value in json_stream_within(&text, budget) {
            let value = value.map_err(|error| match error {
                JsonError::Budget(error) => error.into(),
                JsonError::Syntax(error) if error.is_eof() => {
                    anyhow::anyhow!("the JSON ends in the middle of an object: the dump is cut off")
                }
                JsonError::Syntax(error) => anyhow::Error::from(error).context("no valid JSON"),
            })?;
            take_apart(value, 0, objects)?;
        }
        return Ok(());
    }
    let documents = tiphys_yaml::split_kubernetes_documents(text).context("no valid YAML")?;
    for (offset, document) in documents {
        let value = tiphys_yaml::from_yaml_within(document, budget)
            .with_context(|| format!("no valid YAML in the document that starts at byte {offset}"))?;
        if !value.is_null() {
            take_apart(value, 0, objects)?;
        }
    }
    Ok(())
}

/// A dump on the standard output has the logs of containers between its JSON texts.
fn without_logs(text: &str) -> Cow<'_, str> {
    if !text.contains(LOGS.0) {
        return Cow::Borrowed(text);
    }
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
    Cow::Owned(kept)
}

/// Adds an object, or the items of a list, which may be lists; items of typed lists get the kind that the
/// list is of.
fn take_apart(mut value: Value, depth: usize, objects: &mut Vec<Value>) -> anyhow::Result<()> {
    if depth > MAX_DEPTH {
        bail!("lists are nested too deep for a dump");
    }
    // As `tiphys render app -o json` and `jq -s` write them.
    if let Value::Array(items) = value {
        return items.into_iter().try_for_each(|item| take_apart(item, depth + 1, objects));
    }
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
        if item.is_null() {
            continue;
        }
        take_apart(item, depth + 1, objects)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let mut objects = Vec::new();
        parse(text, &mut objects, &Budget::of_text()).unwrap();
        objects.iter().map(|o| format!("{}/{}", o.kind(), o.name())).collect()
    }

    #[test]
    fn lists_and_streams() {
        let yaml = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: a}}\n---\napiVersion: v1\nkind: Node\nmetadata: {name: n1}\n";
        assert_eq!(names(yaml), ["Pod/a", "Node/n1"]);
        let dump = "{\"kind\":\"NodeList\",\"apiVersion\":\"v1\",\"items\":[{\"metadata\":{\"name\":\"n\"}}]}\n==== START logs for container c of pod a/b ====\nnot json\n==== END logs for container c of pod a/b ====\n{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"items\":null}\n";
        assert_eq!(names(dump), ["Node/n"]);
        let documents = "{apiVersion: v1, kind: Node, metadata: {name: a}}\n---\n{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"b\"}}\n";
        assert_eq!(names(documents), ["Node/a", "Node/b"]);
        let array = "[{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"a\"}}]";
        assert_eq!(names(array), ["Node/a"]);
    }

    #[test]
    fn lists_of_lists_and_what_windows_makes_of_a_text() {
        let nested = "{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"items\":[{\"metadata\":{\"name\":\"a\"}}]},null]}";
        assert_eq!(names(nested), ["Pod/a"]);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.yaml");
        let text = "Warning: v1 ComponentStatus is deprecated in v1.19+\r\napiVersion: v1\r\nkind: Node\r\nmetadata:\r\n  name: one\r\n";
        let units: Vec<u8> =
            [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
        for bytes in [text.as_bytes().to_vec(), format!("\u{feff}{text}").into_bytes(), units] {
            std::fs::write(&file, bytes).unwrap();
            let objects = read(&file).unwrap();
            assert_eq!((objects.len(), objects[0].name()), (1, "one"));
        }
    }

    #[test]
    fn of_what_stands_there_twice_the_newest_counts() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.yaml");
        let node = |version: u32, label: &str| {
            format!(
                "---\napiVersion: v1\nkind: Node\nmetadata: {{name: one, resourceVersion: '{version}', labels: {{l: {label}}}}}\n"
            )
        };
        std::fs::write(&file, format!("{}{}{}", node(7, "old"), node(9, "new"), node(8, "between"))).unwrap();
        let dump = read_dump(&file).unwrap();
        assert_eq!(dump.objects.len(), 1);
        assert_eq!(dump.objects[0]["metadata"]["labels"]["l"], "new");
        assert_eq!(dump.repeated, ["Node one"]);
    }

    #[test]
    fn what_is_no_dump_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.yaml");
        for (text, why) in [("a: 1\n", "no dump"), ("", "no Kubernetes object"), ("{\"a\":", "cut off")] {
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
        write(&deep.join("x.json"), &[0xff, 0x00]);
        let pod = b"apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\n";
        write(&folder.path().join("must-gather/image/namespaces/shop/pods.yaml"), pod);
        assert!(read(folder.path()).is_err());
        let dump = read_dump(folder.path()).unwrap();
        assert_eq!(dump.objects.len(), 1);
        assert_eq!(dump.skipped.len(), 2, "{:?}", dump.skipped);
        assert!(dump.skipped.iter().any(|why| why.contains("values.yaml")));
    }
}
