//! What becomes of each Application, ApplicationSet and setting of an installation.

use std::collections::BTreeMap;

use serde::Serialize;
use tiphys_model::Application;
use tiphys_value::{ObjectExt, Value};

use super::{
    differences::row,
    installation::Installation,
    rules::{APPLICATION, Rule, SET, Subject},
    settings,
};

/// What becomes of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Verdict {
    /// Nothing that it uses behaves otherwise.
    Same,
    /// It works, and something that it uses behaves otherwise.
    Differs,
    /// Something that it uses does not work, or only after something was done.
    NotSupported,
}

/// One thing that is not the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Finding {
    pub verdict: Verdict,
    /// The row of the page about differences.
    pub subject: String,
    /// What of it is used here.
    pub used: String,
    /// What Argo CD does.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub argocd: String,
    /// What Tiphys does.
    pub tiphys: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub todo: String,
}

/// An Application or ApplicationSet with what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    pub namespace: String,
    pub name: String,
    pub verdict: Verdict,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// What to wait for before it is taken over.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<String>,
}

/// What to do, one step after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Step {
    pub what: String,
    pub commands: Vec<String>,
}

/// A plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Plan {
    pub namespace: String,
    pub applications: Vec<Entry>,
    pub application_sets: Vec<Entry>,
    pub settings: Vec<Finding>,
    /// What holds for every Application.
    pub everywhere: Vec<Finding>,
    pub steps: Vec<Step>,
    /// What could not be looked at, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_read: Vec<String>,
}

/// Rows that concern every Application, or every automated one, whatever else it uses.
pub(crate) const EVERYWHERE: [&str; 7] = [
    "apply",
    "how long it waits",
    "a failed apply",
    "a failed automated sync of one commit",
    "a newer revision during an operation",
    "an object that another tool looks after (Ansible, Terraform, Pulumi, Flux, kapp, a Helm release, a controller)",
    "pruned objects",
];

impl Plan {
    /// The plan for an installation.
    pub(crate) fn new(installation: &Installation) -> Self {
        let entries = |objects: &[Value], rules: &[Rule]| {
            let mut entries: Vec<Entry> =
                objects.iter().map(|object| entry(object, rules, installation)).collect();
            entries.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
            entries
        };
        Self {
            namespace: installation.namespace.clone(),
            applications: entries(&installation.applications, APPLICATION),
            application_sets: entries(&installation.sets, SET),
            settings: settings::findings(installation),
            everywhere: EVERYWHERE
                .into_iter()
                .map(|subject| Finding::about(Verdict::Differs, subject, "", ""))
                .collect(),
            steps: steps(installation),
            not_read: installation.unread.clone(),
        }
    }

    /// How many Applications have each verdict.
    pub(crate) fn counts(&self) -> BTreeMap<Verdict, usize> {
        let mut counts = BTreeMap::new();
        for entry in &self.applications {
            *counts.entry(entry.verdict).or_default() += 1;
        }
        counts
    }

    /// Whether something that an Application or ApplicationSet uses does not work.
    pub(crate) fn has_unsupported(&self) -> bool {
        let entries = self.applications.iter().chain(&self.application_sets);
        entries.into_iter().any(|entry| entry.verdict == Verdict::NotSupported)
    }
}

impl Finding {
    /// A finding in the words of the page about differences.
    pub(crate) fn about(verdict: Verdict, subject: &str, used: &str, todo: &str) -> Self {
        let row = row(subject);
        Self {
            verdict,
            subject: subject.to_owned(),
            used: used.to_owned(),
            argocd: row.map(|row| row.argocd).unwrap_or_default().to_owned(),
            tiphys: row.map(|row| row.tiphys).unwrap_or_default().to_owned(),
            todo: todo.to_owned(),
        }
    }
}

fn entry(object: &Value, rules: &[Rule], installation: &Installation) -> Entry {
    let project = object.str_at(&["spec", "project"]).unwrap_or_default();
    let subject = Subject { object, project: installation.project(project) };
    let of_rules = rules.iter().filter_map(|rule| {
        let used = (rule.used)(&subject)?;
        Some(Finding::about(rule.verdict, rule.subject, &used, rule.todo))
    });
    let findings: Vec<Finding> = unreadable(object).into_iter().chain(of_rules).collect();
    let verdict = findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::Same);
    let phase = object.str_at(&["status", "operationState", "phase"]).unwrap_or_default();
    let mut before = Vec::new();
    if matches!(phase, "Running" | "Terminating") {
        before.push("an operation is under way: wait for its end, or terminate it".to_owned());
    }
    if object.is_terminating() {
        before.push("it is being deleted: wait until it is gone".to_owned());
    }
    Entry {
        namespace: object.namespace().to_owned(),
        name: object.name().to_owned(),
        verdict,
        findings,
        before,
    }
}

/// What is wrong with an Application whose fields have other types than they should: a dump may hold one
/// though an API server refuses it.
fn unreadable(object: &Value) -> Option<Finding> {
    let stated = object.as_object().filter(|_| object.kind() == "Application")?;
    // What it is to be decides; a status that somebody exported in part is no fault of it.
    let stated: Value = stated
        .iter()
        .filter(|(key, _)| *key != "status")
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let error = Application::from_value(&stated).err()?;
    Some(Finding {
        verdict: Verdict::NotSupported,
        subject: "a specification that cannot be read".to_owned(),
        used: error.to_string(),
        argocd: "shows the Application with an error, and leaves it alone".to_owned(),
        tiphys: "does the same".to_owned(),
        todo: "give the field a value of its type".to_owned(),
    })
}

/// The commands that take an installation over, and back.
fn steps(installation: &Installation) -> Vec<Step> {
    let namespace = &installation.namespace;
    let is_running = |name: &str| {
        let mut known = installation.workloads.iter();
        // What could not be looked at is taken for the usual.
        installation.workloads.is_empty() || known.any(|workload| workload.name() == name)
    };
    let controllers = [
        ("statefulset", "argocd-application-controller"),
        ("deployment", "argocd-applicationset-controller"),
    ];
    let scale = |count: usize| -> Vec<String> {
        let running = controllers.into_iter().filter(|(_, name)| is_running(name));
        running
            .map(|(kind, name)| format!("kubectl -n {namespace} scale {kind}/{name} --replicas={count}"))
            .collect()
    };
    let step = |what: &str, commands: Vec<String>| Step { what: what.to_owned(), commands };
    let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
    let mut stop = scale(0);
    stop.push("kubectl apply --server-side -k deploy/base".to_owned());
    stop.push("kubectl apply --server-side -f deploy/install/rbac.yaml".to_owned());
    let mut back = vec![format!("kubectl -n {namespace} scale deployment/tiphys-controller --replicas=0")];
    back.extend(scale(1));
    vec![
        step(
            "Run Tiphys beside Argo CD. It decides and writes nothing.",
            lines(&["kubectl apply --server-side -k deploy/shadow"]),
        ),
        step(
            "Look at the report every day until you understand each difference.",
            vec![format!("kubectl -n {namespace} logs deploy/tiphys-controller | tiphys shadow report")],
        ),
        step("Stop Argo CD's controllers, and put Tiphys in charge. Argo CD's definitions stay.", stop),
        step("Look at what it does.", lines(&["tiphys app list", "tiphys app get NAME"])),
        step(
            "Take over objects that another tool has, if Tiphys is to have them.",
            lines(&["tiphys app adopt NAME"]),
        ),
        step("To go back, stop Tiphys and start Argo CD. Nothing has to be converted.", back),
    ]
}
