//! Writes a state into a folder or an archive that `--from` reads again, without credentials.
//!
//! Files are for their owner alone, are always new, and follow no links: what is there already is left as it
//! is.

use std::{
    collections::BTreeMap,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use jiff::Timestamp;
use serde_json::{Value, json};
use tiphys_doctor::{Case, Event, Unreadable};
use tiphys_value::ObjectExt as _;

use super::{
    mask::{mask_object, mask_text},
    private_files::{new_file, new_folder},
};

/// Kind and API version of the object that says when and where the state was saved.
pub(crate) const ABOUT: (&str, &str) = ("tiphys.dev/v1alpha1", "ClusterDump");
/// The longest part of a file's name that comes from an object's.
const NAME: usize = 200;

/// Where the state is from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    /// Address of the API server.
    pub server: String,
    /// Version of Kubernetes.
    pub version: String,
}

/// Whether a path is that of an archive.
pub(crate) fn is_archive(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase());
    name.is_some_and(|name| name.ends_with(".tar.gz") || name.ends_with(".tgz"))
}

/// Refuses a place where something is, before a cluster is read for it.
///
/// # Errors
/// Something is there.
pub(crate) fn check_new(place: &Path) -> anyhow::Result<()> {
    match place.symlink_metadata() {
        Ok(_) => bail!("{} exists already: name a new folder or file", place.display()),
        Err(_) => Ok(()),
    }
}

/// Writes a state. Returns how many files that are.
///
/// # Errors
/// The place exists already, or cannot be written.
pub(crate) fn save(case: &Case, source: &Source, place: &Path) -> anyhow::Result<usize> {
    let files = files(case, source);
    let count = files.len();
    let cannot = || format!("cannot save to {}", place.display());
    if is_archive(place) {
        write_archive(place, files).with_context(cannot)?;
    } else {
        write_folder(place, files).with_context(cannot)?;
    }
    Ok(count)
}

/// Takes out of a state what [`save`] said about it: when it was saved, and what could not be seen.
pub(crate) fn take_about(case: &mut Case) -> Source {
    let mut source = Source::default();
    let (about, objects): (Vec<Value>, Vec<Value>) = std::mem::take(&mut case.objects)
        .into_iter()
        .partition(|object| object.api_version() == ABOUT.0 && object.kind() == ABOUT.1);
    case.objects = objects;
    for about in about {
        let saved: Option<Timestamp> = about.str_at(&["savedAt"]).and_then(|time| time.parse().ok());
        case.at = case.at.max(saved);
        let text = |value: &Value, key: &str| value.str_at(&[key]).unwrap_or_default().to_owned();
        let not_seen = about.at(&["notSeen"]).and_then(Value::as_array).into_iter().flatten();
        case.unreadable
            .extend(not_seen.map(|it| Unreadable { what: text(it, "what"), why: text(it, "why") }));
        let listed = about.at(&["listed"]).and_then(Value::as_array).into_iter().flatten();
        case.listed.extend(listed.filter_map(Value::as_str).map(str::to_owned));
        let in_part = about.at(&["inPart"]).and_then(Value::as_array).into_iter().flatten();
        case.in_part.extend(in_part.filter_map(Value::as_str).map(str::to_owned));
        source = Source { server: text(&about, "server"), version: text(&about, "kubernetesVersion") };
    }
    source
}

/// The files of a state by their paths.
fn files(case: &Case, source: &Source) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut by_file: BTreeMap<PathBuf, Vec<Value>> = BTreeMap::new();
    for object in &case.objects {
        by_file.entry(file_of_kind(object)).or_default().push(masked(object.clone()));
    }
    let events: Vec<Value> =
        case.events.iter().enumerate().map(|(at, event)| masked(event_object(at, event))).collect();
    if !events.is_empty() {
        by_file.entry("events.json".into()).or_default().extend(events);
    }
    let mut files: BTreeMap<PathBuf, Vec<u8>> =
        by_file.into_iter().map(|(path, objects)| (path, list(&objects))).collect();
    files.insert("about.json".into(), format!("{:#}\n", about(case, source)).into_bytes());
    for log in &case.logs {
        let previous = if log.previous { ".previous" } else { "" };
        let name =
            format!("{}_{}_{}{previous}.log", part(&log.namespace), part(&log.pod), part(&log.container));
        files.insert(Path::new("logs").join(name), mask_text(&log.text).into_owned().into_bytes());
    }
    for note in &case.host_notes {
        let name = format!("{}_{}.txt", part(&note.node), part(&note.service));
        files.insert(Path::new("host").join(name), mask_text(&note.text).into_owned().into_bytes());
    }
    files
}

fn masked(mut object: Value) -> Value {
    mask_object(&mut object);
    object
}

/// What is known of the state as a whole.
fn about(case: &Case, source: &Source) -> Value {
    let not_seen =
        case.unreadable.iter().map(|it| json!({"what": mask_text(&it.what), "why": mask_text(&it.why)}));
    json!({
        "apiVersion": ABOUT.0,
        "kind": ABOUT.1,
        "metadata": {"name": "about"},
        "savedAt": case.now().map(|time| time.to_string()),
        "server": mask_text(&source.server),
        "kubernetesVersion": source.version,
        "savedBy": format!("tiphys {}", env!("CARGO_PKG_VERSION")),
        "listed": case.listed,
        "inPart": case.in_part,
        "notSeen": not_seen.collect::<Vec<_>>(),
    })
}

/// The file that the objects of a kind are in: `deployment.apps.json`.
fn file_of_kind(object: &Value) -> PathBuf {
    let kind = object.gvk();
    let group = if kind.group.is_empty() { String::new() } else { format!(".{}", part(&kind.group)) };
    format!("{}{group}.json", part(&kind.kind.to_ascii_lowercase())).into()
}

/// A part of a file's name that leads nowhere else, whatever the name is that it is made from.
fn part(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '.' { c } else { '-' };
    let name: String = name.chars().take(NAME).map(plain).collect();
    // Neither hidden nor a parent folder.
    match name.strip_prefix('.') {
        Some(rest) => format!("-{rest}"),
        None => name,
    }
}

/// A list with one object a line, so that it can be searched.
fn list(objects: &[Value]) -> Vec<u8> {
    let items: Vec<String> = objects.iter().map(Value::to_string).collect();
    format!("{{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[\n{}\n]}}\n", items.join(",\n"))
        .into_bytes()
}

/// An event as the API has it.
fn event_object(at: usize, event: &Event) -> Value {
    let time = |time: Option<Timestamp>| time.map(|time| time.to_string());
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": format!("event-{at}"), "namespace": event.object.namespace, "creationTimestamp": time(event.first)},
        "involvedObject": {"kind": event.object.kind, "namespace": event.object.namespace, "name": event.object.name, "uid": event.uid},
        "type": event.kind,
        "reason": event.reason,
        "message": event.message,
        "count": event.count,
        "firstTimestamp": time(event.first),
        "lastTimestamp": time(event.last),
        "source": {"component": event.source},
    })
}

fn write_folder(place: &Path, files: BTreeMap<PathBuf, Vec<u8>>) -> anyhow::Result<()> {
    let folder =
        |path: &Path| new_folder(path).with_context(|| format!("cannot make the folder {}", path.display()));
    check_new(place)?;
    folder(place)?;
    for name in ["logs", "host"] {
        if files.keys().any(|path| path.starts_with(name)) {
            folder(&place.join(name))?;
        }
    }
    for (path, bytes) in files {
        let path = place.join(path);
        let written = new_file(&path).and_then(|mut file| file.write_all(&bytes));
        written.with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn write_archive(place: &Path, files: BTreeMap<PathBuf, Vec<u8>>) -> anyhow::Result<()> {
    check_new(place)?;
    let file = new_file(place)?;
    let packed = flate2::write::GzEncoder::new(BufWriter::new(file), flate2::Compression::default());
    let mut archive = tar::Builder::new(packed);
    for (path, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o600);
        archive.append_data(&mut header, Path::new("cluster").join(path), bytes.as_slice())?;
    }
    archive.into_inner()?.finish()?.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_doctor::{HostNote, Log, Object};

    fn case() -> Case {
        let log = Log {
            namespace: "shop".into(),
            pod: "../../web".into(),
            container: "c".into(),
            previous: true,
            text: "password=hunter2\n".into(),
        };
        let event = Event {
            object: Object::new("Pod", "shop", "web"),
            reason: "BackOff".into(),
            message: "no".into(),
            count: 3,
            ..Event::default()
        };
        Case {
            objects: vec![
                json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db"}, "data": {"a": "aHVudGVyMg=="}}),
                json!({"apiVersion": "v1", "kind": "../Odd", "metadata": {"name": "x"}}),
            ],
            events: vec![event],
            logs: vec![log],
            host_notes: vec![HostNote { node: "n1".into(), service: "kubelet".into(), text: "dead".into() }],
            at: Some("2026-03-10T09:00:00Z".parse().unwrap()),
            unreadable: vec![Unreadable { what: "GET /x".into(), why: "down".into() }],
            listed: ["Pod".to_owned()].into(),
            in_part: ["Service".to_owned()].into(),
        }
    }

    #[test]
    fn names_lead_nowhere_else_and_values_are_gone() {
        let files = files(&case(), &Source::default());
        let names: Vec<String> = files.keys().map(|path| path.display().to_string()).collect();
        assert_eq!(
            names,
            [
                "--.-odd.json",
                "about.json",
                "events.json",
                "host/n1_kubelet.txt",
                "logs/shop_-.-..-web_c.previous.log",
                "secret.json"
            ]
            .map(|name| name.replace("--.-odd", &part("../odd")).replace("-.-..-web", &part("../../web")))
        );
        assert!(names.iter().all(|name| !name.split('/').any(|step| step.starts_with('.'))), "{names:?}");
        for (path, bytes) in files {
            let text = String::from_utf8(bytes).unwrap();
            assert!(!text.contains("hunter2") && !text.contains("aHVudGVyMg"), "{}: {text}", path.display());
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_is_there_is_left_and_links_are_not_followed() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("dump");
        save(&case(), &Source::default(), &place).unwrap();
        for entry in [
            place.join("secret.json"),
            place.join("logs").join(format!("shop_{}_c.previous.log", part("../../web"))),
        ] {
            assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(place.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert!(save(&case(), &Source::default(), &place).is_err());
        let (target, link) = (folder.path().join("target"), folder.path().join("x.tar.gz"));
        symlink(&target, &link).unwrap();
        assert!(save(&case(), &Source::default(), &link).is_err() && !target.exists());
    }

    #[test]
    fn what_is_said_about_a_state_is_read_again() {
        let saved =
            about(&case(), &Source { server: "https://u:hunter2@a:6443".into(), version: "v1.30.0".into() });
        let mut read = Case { objects: vec![saved], ..Case::default() };
        let source = take_about(&mut read);
        assert_eq!((source.server.as_str(), source.version.as_str()), ("https://u:***@a:6443", "v1.30.0"));
        assert_eq!((read.at, read.unreadable, read.objects.len()), (case().at, case().unreadable, 0));
        assert_eq!((read.listed, read.in_part), (case().listed, case().in_part));
    }
}
