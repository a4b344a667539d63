//! Every folder of `tests/cases` holds a saved state and what its diagnosis must be.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use serde_json::Value;
use tiphys_doctor::{Case, Diagnosis, Root, diagnose};

/// A root that is asserted.
const ASSERTED: f64 = 0.5;

fn folders() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders
}

fn words(value: &Value) -> Vec<String> {
    let items = value.as_array().into_iter().flatten();
    items.map(|item| item.as_str().unwrap().to_owned()).collect()
}

/// Whether a root is the expected one; `A|B` allows either object.
fn is_expected(root: &Root, expected: &Value) -> bool {
    let objects = expected["object"].as_str().unwrap();
    root.cause.id() == expected["cause"].as_str().unwrap()
        && objects.split('|').any(|object| root.object.to_string() == object)
}

/// What is wrong with a diagnosis.
fn faults(diagnosis: &Diagnosis, expected: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let asserted: Vec<&Root> = diagnosis.causes.iter().filter(|root| root.confidence >= ASSERTED).collect();
    let wanted = expected["roots"].as_array().cloned().unwrap_or_default();
    for root in &asserted {
        if !wanted.iter().any(|wanted| is_expected(root, wanted)) {
            faults.push(format!("false root {} {}: {}", root.cause, root.object, root.summary));
        }
    }
    for wanted in &wanted {
        let Some(root) = asserted.iter().find(|root| is_expected(root, wanted)) else {
            faults.push(format!("missing root {wanted}"));
            continue;
        };
        let text = serde_json::to_string(root).unwrap();
        faults.extend(
            words(&wanted["says"])
                .iter()
                .filter(|word| !text.contains(*word))
                .map(|word| format!("it does not say {word}: {text}")),
        );
        if root.evidence.is_empty() || root.remedy.text.is_empty() {
            faults.push(format!("no evidence or no remedy: {text}"));
        }
    }
    let below: BTreeSet<String> =
        asserted.iter().flat_map(|root| &root.consequences).map(|it| it.object.to_string()).collect();
    faults.extend(
        words(&expected["consequences"])
            .iter()
            .filter(|it| !below.contains(*it))
            .map(|it| format!("{it} is no consequence")),
    );
    for object in words(&expected["not_roots"]) {
        if diagnosis.causes.iter().take(3).any(|root| root.object.to_string() == object) {
            faults.push(format!("{object} is named as a root"));
        }
    }
    faults
}

#[test]
fn every_case_has_its_roots_and_no_others() {
    let mut failed = Vec::new();
    for folder in folders() {
        let case = Case::read(&[folder.join("dump")]).unwrap();
        let text = std::fs::read_to_string(folder.join("expect.yaml")).unwrap();
        let expected = tiphys_yaml::from_yaml(&text).unwrap();
        let faults = faults(&diagnose(&case), &expected);
        if !faults.is_empty() {
            let name = folder.file_name().unwrap().to_string_lossy().into_owned();
            failed.push(format!(
                "{name} ({}):\n  {}",
                expected["why"].as_str().unwrap(),
                faults.join("\n  ")
            ));
        }
    }
    assert!(failed.is_empty(), "{} cases:\n{}", failed.len(), failed.join("\n"));
}

/// What is left out of a dump leads to no wrong root: at worst to none.
#[test]
fn a_case_without_events_and_logs_names_no_object_that_is_well() {
    for folder in folders() {
        let mut case = Case::read(&[folder.join("dump")]).unwrap();
        let text = std::fs::read_to_string(folder.join("expect.yaml")).unwrap();
        let expected = tiphys_yaml::from_yaml(&text).unwrap();
        if !expected["roots"].as_array().is_some_and(Vec::is_empty) {
            continue;
        }
        case.logs.clear();
        case.events.clear();
        let diagnosis = diagnose(&case);
        let false_roots: Vec<&Root> = diagnosis
            .causes
            .iter()
            .filter(|root| root.confidence >= ASSERTED && root.cause.id() != "run/exits")
            .collect();
        assert!(false_roots.is_empty(), "{}: {false_roots:?}", folder.display());
    }
}

/// Kinds that people leave out together when they save a state.
const LEFT_OUT: &[&[&str]] = &[
    &["Node", "Lease", "StorageClass", "CSIDriver", "CSINode"],
    &["Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", "ServiceAccount", "Secret", "ConfigMap"],
    &["Service", "EndpointSlice", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"],
    &["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"],
    &["Pod"],
];

/// The ways in which a state is saved in part.
fn thinned(folder: &Path) -> Vec<Case> {
    let read = || Case::read(&[folder.join("dump")]).unwrap();
    let mut without_events = read();
    without_events.events.clear();
    let mut without_logs = read();
    without_logs.logs.clear();
    let without_kinds = LEFT_OUT.iter().map(|kinds| {
        let mut case = read();
        case.objects.retain(|object| !kinds.contains(&object["kind"].as_str().unwrap_or_default()));
        case
    });
    [without_events, without_logs].into_iter().chain(without_kinds).collect()
}

/// What was not saved may hide a root; it makes no other object one, but for a shallower truth now and then.
#[test]
fn thinned_copies_seldom_name_another_root() {
    let (mut copies, mut wrong) = (0, Vec::new());
    for folder in folders() {
        let text = std::fs::read_to_string(folder.join("expect.yaml")).unwrap();
        let expected = tiphys_yaml::from_yaml(&text).unwrap();
        let wanted = expected["roots"].as_array().cloned().unwrap_or_default();
        for case in thinned(&folder) {
            copies += 1;
            let diagnosis = diagnose(&case);
            let roots = diagnosis.causes.into_iter().filter(|root| root.confidence >= ASSERTED);
            let others = roots.filter(|root| !wanted.iter().any(|wanted| is_expected(root, wanted)));
            wrong.extend(others.map(|root| format!("{}: {} {}", folder.display(), root.cause, root.object)));
        }
    }
    assert!(copies > 1000, "only {copies} copies were judged");
    assert!(wrong.len() * 25 < copies, "{} of {copies}:\n{}", wrong.len(), wrong.join("\n"));
}

/// A state as people copy it by hand: no identities, no owners, nothing that controllers keep for themselves.
fn in_few_words(folder: &Path) -> Case {
    let mut case = Case::read(&[folder.join("dump")]).unwrap();
    case.objects.retain(|object| !matches!(object["kind"].as_str(), Some("ReplicaSet" | "EndpointSlice")));
    for object in &mut case.objects {
        let is_pod = object["kind"] == "Pod";
        let Some(fields) = object.as_object_mut() else { continue };
        if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
            for key in ["uid", "managedFields", "resourceVersion"] {
                metadata.remove(key);
            }
            if is_pod {
                metadata.remove("ownerReferences");
            }
        }
        let status = fields.get_mut("status").filter(|_| is_pod).and_then(Value::as_object_mut);
        let status = status.filter(|status| status.contains_key("containerStatuses"));
        status.map(|status| status.remove("conditions"));
    }
    case
}

/// Who writes a state down in few words gets the same roots, but for what only the words left out told.
#[test]
fn cases_told_in_few_words_keep_their_roots() {
    let (mut wanted_roots, mut lost, mut wrong) = (0, Vec::new(), Vec::new());
    for folder in folders() {
        let text = std::fs::read_to_string(folder.join("expect.yaml")).unwrap();
        let expected = tiphys_yaml::from_yaml(&text).unwrap();
        let wanted = expected["roots"].as_array().cloned().unwrap_or_default();
        let roots = diagnose(&in_few_words(&folder)).causes;
        let roots: Vec<&Root> = roots.iter().filter(|root| root.confidence >= ASSERTED).collect();
        wanted_roots += wanted.len();
        let is_lost = |wanted: &&Value| !roots.iter().any(|root| is_expected(root, wanted));
        lost.extend(wanted.iter().filter(is_lost).map(|wanted| format!("{}: {wanted}", folder.display())));
        let others = roots.iter().filter(|root| !wanted.iter().any(|wanted| is_expected(root, wanted)));
        wrong.extend(others.map(|root| format!("{}: {} {}", folder.display(), root.cause, root.object)));
    }
    assert!(lost.len() * 20 < wanted_roots, "{} of {wanted_roots}:\n{}", lost.len(), lost.join("\n"));
    assert!(wrong.len() * 25 < wanted_roots, "{}:\n{}", wrong.len(), wrong.join("\n"));
}

/// The bytes of a dump may be anything.
#[test]
fn hostile_files_are_read_without_panic() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    write("a.yaml", b"apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: [x]}\nstatus: {conditions: 7, phase: {}}\n");
    write("b.json", b"{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"items\":[null,7,{\"metadata\":{\"name\":\"\\u001b[31mx\"}}]}");
    write("c.yaml", &[0xff, 0xfe, 0x00]);
    write("d.yaml", b"a: b: c");
    write("e_f_g.log", &[0xff; 4096]);
    let case = Case::read(&[folder.path().to_owned()]).unwrap();
    assert!(!case.unreadable.is_empty());
    let text = serde_json::to_string(&diagnose(&case)).unwrap();
    assert!(!text.contains("\\u001b"), "{text}");
}

/// Any end of a description, of a table, of a packed file: what stands before is read, the rest is told.
#[test]
fn files_that_are_cut_off_are_read_up_to_there() {
    use std::io::Write as _;
    let folder = tempfile::tempdir().unwrap();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for line in 0..5000 {
        writeln!(packed, "line {line} \u{1b}[31mERROR\u{1b}[0m refused {}", line * 7919 % 104_729).unwrap();
    }
    let packed = packed.finish().unwrap();
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web-1, namespace: shop}\nspec: {containers: [{name: web}]}\n";
    let table = "LAST SEEN   TYPE      REASON   OBJECT      MESSAGE\n2m          Warning   BackOff  pod/web-1   again\n";
    for part in 1..8 {
        let write = |name: &str, bytes: &[u8]| {
            std::fs::write(folder.path().join(name), &bytes[..bytes.len() * part / 7]).unwrap();
        };
        write("shop_web-1_web.log.gz", &packed);
        write("events.txt", table.as_bytes());
        write(
            "pods.txt",
            b"Name:  web-2\nNamespace:  shop\nNode:  n/10.0.0.1\nContainers:\n  web:\n    State:  Waiting\n",
        );
        std::fs::write(folder.path().join("pod.yaml"), pod).unwrap();
        let case = Case::read(&[folder.path().to_owned()]).unwrap();
        assert!(diagnose(&case).causes.iter().all(|root| !root.summary.contains('\u{1b}')));
        if part == 7 {
            assert_eq!(case.events[0].object.namespace, "shop", "found by the pod of that name");
            let text = &case.logs.iter().find(|log| log.pod == "web-1").unwrap().text;
            assert!(text.contains("line 4999 ERROR refused") && !text.contains('\u{1b}'));
        }
    }
}
