//! Generated repositories: a root with children in waves, what they render, and a health check for
//! Applications.

use std::fmt::Write as _;

use proptest::prelude::*;
use tiphys_vfs::MemTree;

/// One object of a child.
#[derive(Clone, Debug)]
pub(super) enum Item {
    /// Works by itself.
    Settings,
    /// Runs once the secret of a number is there.
    Workload(u8),
    /// A hook of one of [`PHASES`] that needs the secret of a number.
    Hook(usize, u8),
    /// The secret of a number.
    Secret(u8),
    /// The definition of a kind.
    Definition,
    /// An object of that kind.
    Resource,
    /// A webhook that is asked about every ConfigMap.
    Webhook,
    /// What answers it: once the secret of a number is there, or by itself.
    Backend(Option<u8>),
}

/// When hooks run.
const PHASES: [&str; 3] = ["PreSync", "Sync", "PostSync"];

/// A child: who renders it, its wave there and its objects with theirs.
#[derive(Clone, Debug)]
pub(super) struct Child {
    /// An earlier child (modulo how many there are, and the root), if any.
    pub parent: usize,
    pub wave: i64,
    pub items: Vec<(i64, Item)>,
}

/// A repository.
#[derive(Clone, Debug)]
pub(super) struct Repository {
    /// The root renders itself.
    pub renders_itself: bool,
    /// Which of [`CHECKS`] is set.
    pub check: usize,
    pub children: Vec<Child>,
}

/// Health checks for Applications: none, what Argo CD found, that and Synced, not while it runs.
pub(super) const CHECKS: [&str; 4] = [
    "",
    "hs = {status = \"Progressing\"}\nif obj.status ~= nil and obj.status.health ~= nil then\n  hs.status = obj.status.health.status\nend\nreturn hs\n",
    "hs = {status = \"Progressing\"}\nif obj.status ~= nil and obj.status.sync ~= nil and obj.status.sync.status == \"Synced\" then\n  if obj.status.health ~= nil then hs.status = obj.status.health.status end\nend\nreturn hs\n",
    "hs = {status = \"Progressing\"}\nif obj.status ~= nil and obj.status.operationState ~= nil and obj.status.operationState.phase == \"Succeeded\" then\n  hs.status = \"Healthy\"\nend\nreturn hs\n",
];

fn item() -> impl Strategy<Value = Item> {
    prop_oneof![
        1 => Just(Item::Settings),
        3 => (0u8..3).prop_map(Item::Workload),
        2 => (0..PHASES.len(), 0u8..3).prop_map(|(phase, secret)| Item::Hook(phase, secret)),
        3 => (0u8..3).prop_map(Item::Secret),
        1 => Just(Item::Definition),
        1 => Just(Item::Resource),
    ]
}

/// Any repository.
pub(super) fn repository() -> impl Strategy<Value = Repository> {
    let parent = prop_oneof![3 => Just(0), 1 => 1usize..4];
    let child = (parent, 0i64..3, prop::collection::vec((0i64..3, item()), 1..4))
        .prop_map(|(parent, wave, items)| Child { parent, wave, items });
    let asking = prop::option::weighted(0.4, prop::collection::vec((0usize..3, 0i64..3), 3));
    (prop::bool::weighted(0.3), 0..CHECKS.len(), prop::collection::vec(child, 1..4), asking, 0u8..3).prop_map(
        |(renders_itself, check, mut children, asking, secret)| {
            // A webhook, what it is asked about, and what answers.
            let items = [Item::Webhook, Item::Settings, Item::Backend(Some(secret))];
            for ((child, wave), item) in asking.into_iter().flatten().zip(items) {
                let at = child % children.len();
                children[at].items.push((wave, item));
            }
            let mut repository = Repository { renders_itself, check, children };
            repository.make_unique();
            repository
        },
    )
}

impl Repository {
    /// Leaves every secret and the definition with one maker: two owners of one object are another matter.
    fn make_unique(&mut self) {
        let (mut secrets, mut defined) = ([false; 3], false);
        for (_, item) in self.children.iter_mut().flat_map(|child| &mut child.items) {
            let twice = match item {
                Item::Secret(number) => std::mem::replace(&mut secrets[usize::from(*number)], true),
                Item::Definition => std::mem::replace(&mut defined, true),
                _ => false,
            };
            if twice {
                *item = Item::Settings;
            }
        }
        // What nothing brings comes from outside, and says nothing about the order.
        for (_, item) in self.children.iter_mut().flat_map(|child| &mut child.items) {
            if let Item::Backend(secret) = item {
                *secret = secret.filter(|number| secrets[usize::from(*number)]);
            }
            let missing = match item {
                Item::Workload(number) | Item::Hook(_, number) => !secrets[usize::from(*number)],
                Item::Resource => !defined,
                _ => false,
            };
            if missing {
                *item = Item::Settings;
            }
        }
    }

    /// Whether a webhook is among the objects.
    pub(super) fn has_webhook(&self) -> bool {
        self.children.iter().flat_map(|child| &child.items).any(|(_, item)| matches!(item, Item::Webhook))
    }

    /// Whether a child renders another.
    pub(super) fn is_nested(&self) -> bool {
        self.children.iter().enumerate().any(|(at, child)| child.parent % (at + 1) > 0)
    }

    /// The files.
    pub(super) fn files(&self) -> Vec<(String, String)> {
        let place = if self.renders_itself { "apps/root.yaml" } else { "bootstrap/root.yaml" };
        let mut files = vec![(place.to_owned(), application("root", "apps", None))];
        if self.check > 0 {
            let mut text = String::from(
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: argocd-cm, namespace: argocd}\ndata:\n  resource.customizations.health.argoproj.io_Application: |\n",
            );
            CHECKS[self.check].lines().for_each(|line| writeln!(text, "    {line}").expect("a string"));
            files.push(("argocd/argocd-cm.yaml".into(), text));
        }
        for (at, child) in self.children.iter().enumerate() {
            let name = format!("child-{at}");
            let folder = match child.parent % (at + 1) {
                0 => "apps".to_owned(),
                parent => format!("child-{}", parent - 1),
            };
            files.push((format!("{folder}/{name}.yaml"), application(&name, &name, Some(child.wave))));
            let objects =
                child.items.iter().enumerate().map(|(number, (wave, item))| object(item, at, number, *wave));
            files.push((format!("{name}/all.yaml"), objects.collect::<Vec<_>>().join("---\n")));
        }
        files
    }

    pub(super) fn tree(&self) -> MemTree {
        let mut tree = MemTree::default();
        for (path, text) in self.files() {
            tree.insert(&path, text.into_bytes()).expect("inside the tree");
        }
        tree
    }

    pub(super) fn text(&self) -> String {
        self.files().iter().map(|(path, text)| format!("# {path}\n{text}\n")).collect()
    }
}

fn application(name: &str, path: &str, wave: Option<i64>) -> String {
    let wave = wave
        .map(|wave| format!("\n  annotations: {{argocd.argoproj.io/sync-wave: \"{wave}\"}}"))
        .unwrap_or_default();
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata:\n  name: {name}\n  namespace: argocd{wave}\nspec:\n  project: default\n  source: {{repoURL: https://git.example.com/a.git, path: {path}}}\n  destination: {{server: https://kubernetes.default.svc, namespace: argocd}}\n  syncPolicy: {{automated: {{}}}}\n"
    )
}

fn object(item: &Item, child: usize, number: usize, wave: i64) -> String {
    let own = format!("{child}-{number}");
    let (kind, name, hook, rest) = match item {
        Item::Settings => ("v1|ConfigMap", format!("settings-{own}"), String::new(), "data: {a: b}".to_owned()),
        Item::Secret(of) => ("v1|Secret", format!("secret-{of}"), String::new(), "stringData: {a: b}".to_owned()),
        Item::Workload(of) => ("apps/v1|Deployment", format!("web-{own}"), String::new(), pods(&format!("secret-{of}"), &own)),
        Item::Hook(phase, of) => (
            "batch/v1|Job",
            format!("job-{own}"),
            format!(", argocd.argoproj.io/hook: {}", PHASES[*phase]),
            pods(&format!("secret-{of}"), &own),
        ),
        Item::Definition => (
            "apiextensions.k8s.io/v1|CustomResourceDefinition",
            "widgets.example.org".to_owned(),
            String::new(),
            "spec: {group: example.org, scope: Namespaced, names: {kind: Widget, plural: widgets}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}".to_owned(),
        ),
        Item::Webhook => (
            "admissionregistration.k8s.io/v1|ValidatingWebhookConfiguration",
            "asks".to_owned(),
            String::new(),
            "webhooks: [{name: asks.example.org, failurePolicy: Fail, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {service: {name: answers, namespace: argocd}}, rules: [{apiGroups: [''], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]}]".to_owned(),
        ),
        Item::Backend(of) => (
            "apps/v1|Deployment",
            "answers".to_owned(),
            String::new(),
            format!(
                "{}\n---\napiVersion: v1\nkind: Service\nmetadata:\n  name: answers\n  annotations: {{argocd.argoproj.io/sync-wave: \"{wave}\"}}\nspec: {{selector: {{app: a{own}}}, ports: [{{port: 443}}]}}",
                pods(&of.map_or_else(String::new, |of| format!("secret-{of}")), &own)
            ),
        ),
        Item::Resource => ("example.org/v1|Widget", format!("widget-{own}"), String::new(), "spec: {}".to_owned()),
    };
    let (version, kind) = kind.split_once('|').expect("both are there");
    format!(
        "apiVersion: {version}\nkind: {kind}\nmetadata:\n  name: {name}\n  annotations: {{argocd.argoproj.io/sync-wave: \"{wave}\"{hook}}}\n{rest}\n"
    )
}

/// A workload's specification; its pods need a secret, if one is named.
fn pods(secret: &str, app: &str) -> String {
    let from = if secret.is_empty() { String::new() } else { format!("{{secretRef: {{name: {secret}}}}}") };
    format!(
        "spec: {{selector: {{matchLabels: {{app: a{app}}}}}, template: {{metadata: {{labels: {{app: a{app}}}}}, spec: {{restartPolicy: Never, containers: [{{name: a, image: a, envFrom: [{from}]}}]}}}}}}"
    )
}
