//! Every form of one diagnosis: what a reader needs is there, and what others wrote does no harm.

use tiphys_doctor::{
    Cause, Change, Consequence, Evidence, Object, Remedy, RuledOut, Unexplained, Unreadable, Written,
};

use super::*;
use serde_json::json;

/// A name that turns a terminal red, ends HTML, and is a command.
const HOSTILE: &str =
    "\x1b[31mred</h2><script>alert(1)</script>\u{202e}$(reboot)`id`](http://evil)@all\u{9b}2J";

fn time(text: &str) -> Option<Timestamp> {
    Some(text.parse().unwrap())
}

fn diagnosis(name: &str) -> Diagnosis {
    let consequence = |kind: &str, namespace: &str, name: &str| Consequence {
        object: Object::new(kind, namespace, name),
        symptom: "is not ready".to_owned(),
    };
    let root = Root {
        cause: Cause::ConfigMissing,
        object: Object::new("Secret", "shop", name),
        confidence: 0.97,
        summary: format!("Secret shop/{name} is absent, and Deployment web needs it"),
        field: Some("spec.template.spec.containers[0].env[0]".to_owned()),
        since: time("2026-03-10T07:38:00Z"),
        evidence: vec![Evidence {
            source: "Pod shop/web-1, status.containerStatuses".to_owned(),
            text: format!("secret \"{name}\" not found\nnext line, DB_PASSWORD=hunter2"),
        }],
        remedy: Remedy {
            text: "create the Secret".to_owned(),
            commands: vec![
                format!("kubectl -n shop get secret {name}"),
                "kubectl -n shop get events --field-selector involvedObject.name=web-1".to_owned(),
            ],
            patch: Some(json!({"spec": {"password": "hunter2", "name": name}})),
        },
        sufferers: Vec::new(),
        consequences: vec![
            consequence("Pod", "shop", "web-1"),
            consequence("Pod", "shop", "web-2"),
            consequence("Application", "argocd", name),
        ],
        proof: None,
        written: Some(Written {
            object: Object::new("Deployment", "shop", "web"),
            by: "Application shop".to_owned(),
            file: "shop/web.yaml".to_owned(),
            line: 17,
            changes: vec![Change {
                commit: "0123456789abcdef0123".to_owned(),
                at: time("2026-03-10T07:30:00Z"),
                author: "Ada".to_owned(),
                subject: format!("web: a new key {name}"),
            }],
        }),
    };
    let possible = Root {
        cause: Cause::ExternalDown,
        object: Object::new("Service", "shop", "mail"),
        confidence: 0.4,
        sufferers: Vec::new(),
        consequences: Vec::new(),
        ..root.clone()
    };
    Diagnosis {
        causes: vec![root, possible],
        ruled_out: vec![RuledOut {
            cause: Some(Cause::NodeNotReady),
            object: Object::new("Node", "", "n1"),
            why: "it is ready again".to_owned(),
        }],
        unexplained: vec![Unexplained {
            object: Object::new("Pod", "pay", name),
            symptom: "ends with 3".to_owned(),
        }],
        not_seen: vec!["GET /apis/metrics.k8s.io/v1beta1: it does not answer".to_owned()],
        now: time("2026-03-10T09:00:00Z"),
    }
}

fn report(name: &str) -> Report {
    let place = DiagnosedCluster {
        name: "https://10.0.0.1:6443".to_owned(),
        context: Some("prod".to_owned()),
        version: "v1.30.2".to_owned(),
        scope: vec!["namespace shop".to_owned()],
    };
    Report::new(&diagnosis(name), &Case::default(), &place)
}

#[test]
fn the_first_line_says_whether_and_where() {
    let text = text(&report("db"), false);
    let first = "1 cause found, 1 possible cause, 1 symptom not explained in https://10.0.0.1:6443 (context prod, Kubernetes v1.30.2), namespace shop\n";
    assert!(text.starts_with(first), "{text}");
    let well = Report::new(
        &Diagnosis::default(),
        &Case::default(),
        &DiagnosedCluster { name: "dump".into(), ..DiagnosedCluster::default() },
    );
    assert_eq!((well.level, well.verdict.as_str()), (Level::Well, "Nothing is wrong in dump"));
    let blind =
        Case { unreadable: vec![Unreadable { what: "x".into(), why: "y".into() }], ..Case::default() };
    let partly = Report::new(&Diagnosis::default(), &blind, &DiagnosedCluster::default());
    assert!(partly.verdict.starts_with("Nothing is wrong in what could be seen"), "{}", partly.verdict);
}

#[test]
fn the_text_has_everything_in_the_order_of_reading() {
    let text = text(&report("db"), false);
    let mut rest = text.as_str();
    for part in [
        "1. Secret shop/db config/missing  (97 %)",
        "what      Secret shop/db is absent, and Deployment web needs it",
        "field     spec.template.spec.containers[0].env[0]",
        "since     2026-03-10T07:38:00Z (1h22m ago)",
        "written   shop/web.yaml:17 (Deployment shop/web, delivered by Application shop)",
        "changed by 0123456789ab of Ada: web: a new key",
        "evidence  “secret \"db\" not found next line, DB_PASSWORD=***”",
        "Pod shop/web-1, status.containerStatuses",
        "breaks    Applications: Application argocd/db: is not ready",
        "namespace shop: 2 Pods",
        "remedy    create the Secret",
        "$ kubectl -n shop get secret db",
        "merge patch of Secret shop/db:",
        "not proved",
        "2. Service shop/mail external/down  (40 %, possible)",
        "Considered and ruled out",
        "Node n1: it is ready again",
        "Not explained",
        "Pod pay/db: ends with 3",
        "Could not be seen",
        "GET /apis/metrics.k8s.io/v1beta1: it does not answer",
    ] {
        let at = rest
            .find(part)
            .unwrap_or_else(|| panic!("{part:?} is missing, or not in its place, in:\n{text}"));
        rest = &rest[at + part.len()..];
    }
    assert!(!text.contains('\x1b'));
    assert!(super::text(&report("db"), true).contains("\x1b[1;31m1 cause found"));
}

#[test]
fn nothing_hostile_reaches_a_terminal_a_page_or_a_channel() {
    let report = report(HOSTILE);
    let text = text(&report, false);
    assert!(!text.chars().any(|c| c != '\n' && sanitize::is_obeyed(c)), "{text:?}");
    assert!(!text.contains("$ kubectl -n shop get secret"), "a command with a hostile name is shown: {text}");
    assert!(text.contains("1 command not shown"), "{text}");

    let page = html(&report);
    assert!(!page.contains("<script") && !page.contains("</h2><"), "{page}");
    assert!(page.contains("&lt;script&gt;") && !page.chars().any(|c| c != '\n' && sanitize::is_obeyed(c)));

    let markdown = markdown(&report);
    let outside_of_code: String = markdown.split("```").step_by(2).collect();
    assert!(!outside_of_code.contains("<script") && !outside_of_code.contains("](http:"), "{markdown}");
    assert!(!outside_of_code.contains("@all") && !markdown.contains('\x1b'), "{markdown}");

    let value = json(&diagnosis(HOSTILE), &report, &DiagnosedCluster::default()).unwrap();
    let printed = visible_json(&value);
    assert!(!printed.chars().any(|c| c != '\n' && sanitize::is_obeyed(c)));
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&printed).unwrap()["causes"][0]["object"]["name"],
        HOSTILE
    );
}

#[test]
fn no_form_holds_a_credential() {
    let report = report("db");
    let value = json(&diagnosis("db"), &report, &DiagnosedCluster::default()).unwrap();
    for form in [text(&report, false), markdown(&report), html(&report), visible_json(&value)] {
        assert!(!form.contains("hunter2"), "{form}");
    }
}

#[test]
fn the_json_keeps_the_contract() {
    let value = json(
        &diagnosis("db"),
        &report("db"),
        &DiagnosedCluster { name: "x".into(), ..DiagnosedCluster::default() },
    )
    .unwrap();
    let cause = &value["causes"][0];
    assert_eq!(cause["cause"], "config/missing");
    assert_eq!(cause["object"], json!({"kind": "Secret", "namespace": "shop", "name": "db"}));
    assert_eq!(cause["confidence"], 0.97);
    assert_eq!(cause["consequences"][0]["object"]["kind"], "Pod");
    assert_eq!(
        (&value["version"], &value["verdict"], &value["cluster"]["name"]),
        (&json!(1), &json!("wrong"), &json!("x"))
    );
}

#[test]
fn the_page_is_whole_and_asks_for_nothing() {
    let page = html(&report("db"));
    for part in [
        "<!doctype html>",
        "name=\"viewport\"",
        "default-src 'none'",
        "prefers-color-scheme: dark",
        "<details>",
        "id=\"cause-2\"",
        "</html>",
    ] {
        assert!(page.contains(part), "{part} is missing");
    }
    for part in ["<script", " src=", "url(", "@import", "http-equiv=\"refresh\"", " on"] {
        let markup: String = page
            .split('<')
            .filter_map(|part| part.split_once('>'))
            .map(|(tag, _)| format!("<{tag}>"))
            .collect();
        assert!(!markup.contains(part), "{part} in the page");
    }
}

#[test]
fn a_report_is_the_same_as_long_as_nothing_changes() {
    let later = Diagnosis { now: time("2026-03-10T09:30:00Z"), ..diagnosis("db") };
    let later = Report::new(&later, &Case::default(), &DiagnosedCluster::default());
    assert_eq!(report("db").identity(), later.identity());
    assert_ne!(report("db").identity(), report("other").identity());
}
