//! # A pod waits for an object that nothing makes
//!
//! A pod starts only when every ConfigMap, Secret and volume claim that it names is there, and is not even
//! created without its ServiceAccount. A name that nothing in the repository makes, not even through a
//! custom resource, is most often a slip, a wrong namespace, or an object that was renamed.
//!
//! Secrets are often made by hand; one is told only if its name is nearly that of another one, if it exists
//! in another namespace, if the repository makes it for the same workload of another environment, if all
//! others that the cluster's pods need are made in the repository, or if it is the only one that its
//! Application lacks, and the only one that its Application makes is asked for by nothing.
//!
//! People see: `CreateContainerConfigError: configmap "settings" not found`, `MountVolume.SetUp failed …
//! configmap "settings" not found`, `error looking up service account shop/web`, `persistentvolumeclaim
//! "data" not found`.
//!
//! ## Bad
//! ```yaml
//! envFrom: [{configMapRef: {name: web-setings}}]
//! ```
//! ## Good
//! ```yaml
//! envFrom: [{configMapRef: {name: web-settings}}]
//! ```
//! ## When to suppress
//! Where the object is made by hand or by a program, in every cluster.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_diag::{Severity, similar_names};
use tiphys_graph::{
    App, Object, Owner, Survey,
    edges::{EdgeKind, Target},
};
use tiphys_value::Value;

use crate::{
    Context, Finding, Report, Rule,
    support::{
        cluster::Cluster,
        dedup::Once,
        made_secrets::{COPIERS, made_secret},
        placeholders,
        pod_references::{Reference, of_pod},
        pods::{Pod, list, text},
        scripted_objects::{is_scripted, is_spoken_of},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E2-dangling-reference",
    incident: "E2",
    severity: Severity::Warning,
    title: "a pod waits for an object that nothing makes",
    page: page!("e2_dangling_reference.rs"),
    check,
};

/// ConfigMaps that every namespace of some clusters has.
const EVERYWHERE: [&str; 5] = [
    "kube-root-ca.crt",
    "openshift-service-ca.crt",
    "istio-ca-root-cert",
    "istio",
    "linkerd-identity-trust-roots",
];

/// How many Secrets of a cluster's pods the repository has to make, for each that it does not.
const ENOUGH: usize = 5;

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for cluster in context.clusters() {
        let counted = SecretCount::in_cluster(cluster);
        for pod in &cluster.pods {
            let namespace = pod.object.key.namespace.as_str();
            let is_hidden = cluster.is_partly_hidden(namespace);
            if is_hidden && (namespace.is_empty() || cluster.has_open_names(namespace)) {
                continue;
            }
            for reference in of_pod(pod) {
                let hint = missing(context, cluster, pod, &reference, &counted).map(|hint| match hint {
                    Hint::None => exception(cluster, pod, &reference).map_or(hint, Hint::Exception),
                    hint => hint,
                });
                // What is not seen may bring anything, but hardly what somebody else brings elsewhere.
                let counts = |hint: &Hint<'_>| {
                    let is_own = matches!(hint, Hint::Similar(it) if it.owner == pod.object.owner);
                    !is_hidden
                        || is_own
                        || matches!(hint, Hint::Exception(_) | Hint::Unclaimed(_))
                        || matches!(hint, Hint::Elsewhere(_) | Hint::NotListed(_) | Hint::Alone(_))
                            && !is_named_after_hidden(context, cluster, &reference)
                };
                if let Some(hint) = hint.filter(counts) {
                    let key = format!("{} {}", reference.kind, reference.name);
                    once.add_by(key, finding(context, pod, &reference, hint));
                }
            }
        }
    }
    once.report(report);
}

/// Whether an object may be called after an Application or a release that was not seen: it may make it.
fn is_named_after_hidden(context: &Context<'_>, cluster: &Cluster<'_>, reference: &Reference<'_>) -> bool {
    let hidden = context.survey.apps.iter().filter(|app| !app.is_rendered() && cluster.is_filled_by(app));
    hidden
        .flat_map(|app| {
            let charts = app.application.spec.effective_sources().iter().map(|it| it.chart.clone()).collect();
            let mut names: Vec<String> = charts;
            names.push(app.name().to_owned());
            names
        })
        .any(|name| !name.is_empty() && (reference.name.contains(&name) || name.contains(reference.name)))
}

/// What is known of an object that nothing makes.
enum Hint<'a> {
    /// It is nearly called like this one.
    Similar(&'a Object),
    /// A file beside the pod's has it, which nothing renders.
    NotListed(&'a Object),
    /// It exists, but elsewhere.
    Elsewhere(&'a Object),
    /// This makes it for the same workload of another environment.
    OfSibling(&'a Object),
    /// It is a Secret, and the repository makes so many others that pods need.
    Alone(usize),
    /// It is a Secret, and this makes one beside it that nothing asks for.
    Unclaimed(&'a Object),
    /// All others of its kind that the pod names, so many, come with the pod.
    Exception(usize),
    /// Nothing.
    None,
}

/// How many others of a kind a pod names, where all of them come with the pod.
fn exception(cluster: &Cluster<'_>, pod: &Pod<'_>, reference: &Reference<'_>) -> Option<usize> {
    const ENOUGH_OTHERS: usize = 3;
    let namespace = pod.object.key.namespace.as_str();
    let all = of_pod(pod);
    let others: BTreeMap<&str, &Reference<'_>> = all
        .iter()
        .filter(|it| it.kind == reference.kind && it.name != reference.name)
        .map(|it| (it.name, it))
        .collect();
    let comes_along = |it: &&&Reference<'_>| {
        cluster.find(&it.key(namespace)).is_some_and(|object| object.owner == pod.object.owner)
    };
    let count = others.values().filter(comes_along).count();
    (count == others.len() && count >= ENOUGH_OTHERS).then_some(count)
}

/// Whether nothing makes an object, and what may have been meant; `None` if it is there, or that cannot be
/// told.
fn missing<'a>(
    context: &Context<'a>,
    cluster: &Cluster<'a>,
    pod: &Pod<'_>,
    reference: &Reference<'_>,
    counted: &SecretCount,
) -> Option<Hint<'a>> {
    let namespace = pod.object.key.namespace.as_str();
    let name = reference.name;
    if cluster.find(&reference.key(namespace)).is_some()
        || EVERYWHERE.contains(&name)
        || placeholders::is_in(name)
        || is_claim_of_template(pod, reference)
    {
        return None;
    }
    if cluster.may_be_made(namespace, name) {
        // A release whose name it begins with may make it; but hardly what somebody makes himself elsewhere.
        let is_mentioned = cluster.is_mentioned(namespace, name);
        return (!is_mentioned).then(|| made_elsewhere(context, cluster, reference)).flatten();
    }
    let same_kind = || {
        let objects = cluster.objects.iter().copied();
        objects.filter(|object| object.key.kind == reference.kind && object.key.group.is_empty())
    };
    let beside = same_kind().filter(|object| object.key.namespace == namespace);
    let nearest = similar_names::nearest_slip(name, beside.map(|object| object.key.name.as_str()));
    if let Some(nearest) = nearest {
        return cluster.core(reference.kind, namespace, nearest).map(Hint::Similar);
    }
    if let Some(other) = same_kind().find(|object| object.key.name == name) {
        return (!is_copied(other)).then_some(Hint::Elsewhere(other));
    }
    let unreached = context.survey.objects.iter().find(|object| {
        object.key.kind == reference.kind && object.key.name == name && matches!(object.owner, Owner::Unit(_))
    });
    if let Some(other) = unreached {
        let is_beside = other.folder() == pod.object.folder();
        return (is_beside && !is_form(&other.rendered.location.file)).then_some(Hint::NotListed(other));
    }
    if let Some(other) = made_for_sibling(context, cluster, pod, reference) {
        return (!is_copied(other) && !is_scripted(context, name)).then_some(Hint::OfSibling(other));
    }
    if let Some(other) = unclaimed(cluster, pod, reference) {
        let may_be_made = is_scripted(context, name) || is_spoken_of(context, name);
        return (!may_be_made).then_some(Hint::Unclaimed(other));
    }
    if reference.kind == "Secret" && counted.tells() && !cluster.has_operated_pods(namespace) {
        let may_be_made =
            is_scripted(context, name) || is_spoken_of(context, name) || makes_secrets(cluster, pod);
        return (!may_be_made).then_some(Hint::Alone(counted.made));
    }
    // Nobody keeps the Secrets of a cluster in Git as they are, and operators and scripts make things too.
    let is_doubtful =
        reference.kind == "Secret" || cluster.has_operated_pods(namespace) || is_scripted(context, name);
    (!is_doubtful).then_some(Hint::None)
}

/// The one Secret or ConfigMap of a name, where it stands as a manifest in another namespace, and no line of
/// any file says how another is made.
fn made_elsewhere<'a>(
    context: &Context<'_>,
    cluster: &Cluster<'a>,
    reference: &Reference<'_>,
) -> Option<Hint<'a>> {
    let is_one = |it: &&Object| {
        it.key.name == reference.name && it.key.kind == reference.kind && it.key.group.is_empty()
    };
    let mut all = cluster.objects.iter().copied().filter(is_one);
    let only = all.next().filter(|_| all.next().is_none())?;
    const MAKES: [&str; 4] = ["create", "apply", "copy", "kubectl"];
    let makes = |line: &str| line.contains(reference.name) && MAKES.iter().any(|word| line.contains(word));
    let may_come = is_copied(only)
        || context.survey.files.any_text(|text| text.contains(reference.name) && text.lines().any(makes));
    (matches!(reference.kind, "Secret" | "ConfigMap") && !may_come).then_some(Hint::Elsewhere(only))
}

/// The one object of a pod's Application that makes a Secret which nothing asks for, where this is the one
/// Secret that its pods lack.
fn unclaimed<'a>(cluster: &Cluster<'a>, pod: &Pod<'_>, reference: &Reference<'_>) -> Option<&'a Object> {
    if reference.kind != "Secret" {
        return None;
    }
    let (owner, namespace) = (pod.object.owner, pod.object.key.namespace.as_str());
    let is_beside = |it: &&'a Object| it.owner == owner && it.key.namespace == namespace;
    let beside: Vec<&Object> = cluster.objects.iter().copied().filter(is_beside).collect();
    let is_asked_for = |maker: &Object, name: &str| {
        let others = cluster.objects.iter().filter(|it| it.key.namespace == namespace);
        others
            .filter(|it| it.id != maker.id && it.key.name != name)
            .any(|it| it.value().to_string().contains(name))
    };
    let makers: Vec<_> = beside.into_iter().filter_map(|it| Some((it, made_secret(it.value())?))).collect();
    // To look through all objects takes long, and is for nothing where no name is like it.
    if !makers.iter().any(|(_, name)| have_common_word(name, reference.name)) {
        return None;
    }
    let mut unasked =
        makers.into_iter().filter(|(maker, name)| !placeholders::is_in(name) && !is_asked_for(maker, name));
    let (only, _) = unasked
        .next()
        .filter(|_| unasked.next().is_none())
        .filter(|(_, name)| have_common_word(name, reference.name))?;
    let own = cluster.pods.iter().filter(|it| it.object.owner == owner);
    let is_lacking = |it: &Reference<'_>| {
        it.kind == "Secret" && it.name != reference.name && cluster.find(&it.key(namespace)).is_none()
    };
    let lacks_others =
        own.flat_map(of_pod).any(|it| is_lacking(&it) && !cluster.may_be_made(namespace, it.name));
    (!lacks_others).then_some(only)
}

/// Whether two names of Secrets have a word in common that says whose they are.
fn have_common_word(one: &str, other: &str) -> bool {
    const SHORTEST: usize = 4;
    const OF_ANY: [&str; 10] = [
        "auth",
        "config",
        "credential",
        "credentials",
        "keys",
        "password",
        "secret",
        "secrets",
        "token",
        "tokens",
    ];
    let words = |name: &str| -> BTreeSet<String> {
        let words = name.split(['-', '_', '.']).filter(|it| it.len() >= SHORTEST && !OF_ANY.contains(it));
        words.map(str::to_owned).collect()
    };
    !words(one).is_disjoint(&words(other))
}

/// Whether a role that comes with a pod lets somebody make Secrets: a program may make its own.
fn makes_secrets(cluster: &Cluster<'_>, pod: &Pod<'_>) -> bool {
    let has = |rule: &Value, field: &str, word: &str| {
        list(rule, field).iter().any(|it| it.as_str().is_some_and(|it| it == word || it == "*"))
    };
    let makes = |role: &Object| {
        let mut rules = list(role.value(), "rules").iter();
        rules.any(|rule| has(rule, "resources", "secrets") && has(rule, "verbs", "create"))
    };
    let roles = cluster.objects.iter().filter(|it| matches!(it.key.kind.as_str(), "Role" | "ClusterRole"));
    roles.filter(|it| it.owner == pod.object.owner).any(|role| makes(role))
}

/// How many of the Secrets that the pods of a cluster need are made in the repository, and how many are not.
struct SecretCount {
    made: usize,
    lacking: usize,
}

impl SecretCount {
    fn in_cluster(cluster: &Cluster<'_>) -> Self {
        let mut all = BTreeMap::new();
        for pod in &cluster.pods {
            let namespace = pod.object.key.namespace.as_str();
            for it in of_pod(pod).iter().filter(|it| it.kind == "Secret" && !placeholders::is_in(it.name)) {
                let is_made =
                    || cluster.find(&it.key(namespace)).is_some() || cluster.may_be_made(namespace, it.name);
                all.entry((namespace, it.name)).or_insert_with(is_made);
            }
        }
        let made = all.values().filter(|is_made| **is_made).count();
        Self { made, lacking: all.len() - made }
    }

    /// Whether one that is not made is an exception.
    fn tells(&self) -> bool {
        self.made >= ENOUGH * self.lacking
    }
}

/// What makes an object for the same workload of another environment, where this one's Secrets are in Git,
/// too.
fn made_for_sibling<'a>(
    context: &Context<'a>,
    cluster: &Cluster<'a>,
    pod: &Pod<'_>,
    reference: &Reference<'_>,
) -> Option<&'a Object> {
    if !matches!(reference.kind, "Secret" | "ConfigMap") {
        return None;
    }
    let (key, survey) = (&pod.object.key, context.survey);
    let is_other = |it: &&Object| {
        it.key.kind == key.kind
            && it.key.name == key.name
            && it.environment.is_some()
            && (it.world() != pod.object.world() || it.key.namespace != key.namespace)
    };
    let others = survey.objects.iter().filter(is_other);
    let mut made = others.map(|other| maker(context, other, reference));
    let first = made.clone().flatten().next()?;
    // If all of several siblings have it made, this one is an exception, whatever else its cluster has.
    const SEVERAL: usize = 2;
    let is_exception = made.all(|maker| maker.is_some()) && siblings(survey, pod) >= SEVERAL;
    // That goes through the whole cluster, and few objects are made for a sibling.
    (is_exception || keeps(context, cluster, reference.kind)).then_some(first)
}

/// In how many other places the workload runs.
fn siblings(survey: &Survey, pod: &Pod<'_>) -> usize {
    let key = &pod.object.key;
    let is_other =
        |it: &&Object| it.key.kind == key.kind && it.key.name == key.name && it.environment.is_some();
    let places = survey.objects.iter().filter(is_other).map(|it| (it.world(), it.key.namespace.as_str()));
    places.collect::<BTreeSet<_>>().len().saturating_sub(1)
}

/// Whether the Applications of a cluster bring objects of a kind, themselves or through a controller.
fn keeps(context: &Context<'_>, cluster: &Cluster<'_>, kind: &str) -> bool {
    cluster.objects.iter().any(|it| {
        it.key.kind == kind && it.key.group.is_empty()
            || context.analyses().edges.from(it.id).iter().any(|edge| {
                edge.kind == EdgeKind::Produces && matches!(&edge.to, Target::Named(key) if key.kind == kind)
            })
    })
}

/// What makes an object that another object refers to, where that lives: itself, or what a controller makes
/// it from.
fn maker<'a>(context: &Context<'a>, by: &Object, reference: &Reference<'_>) -> Option<&'a Object> {
    let (survey, key) = (context.survey, reference.key(&by.key.namespace));
    let edges = &context.analyses().edges;
    let made = edges.products(by, &key).first().map(|product| survey.object(product.from));
    survey.with_key(&key).find(|it| it.lives_with(by)).or(made)
}

/// Whether a file is one that people copy and fill in, by its name: what they make of it is not in Git.
fn is_form(file: &str) -> bool {
    const WORDS: [&str; 6] = ["template", "tmpl", "tpl", "example", "sample", "dist"];
    let name = file.rsplit('/').next().unwrap_or(file);
    name.split(['.', '-', '_']).any(|word| WORDS.contains(&word))
}

/// Whether annotations ask a controller to copy an object into other namespaces.
pub(super) fn is_copied(object: &Object) -> bool {
    let metadata = &object.value()["metadata"];
    let maps = ["annotations", "labels"].into_iter().filter_map(|field| metadata[field].as_object());
    maps.flat_map(|map| map.keys()).any(|key| {
        !key.starts_with("argocd.argoproj.io/")
            && COPIERS.iter().chain(&["sync", "inject"]).any(|mark| key.contains(mark))
    })
}

/// Whether a claim is one that a StatefulSet of this name would make.
fn is_claim_of_template(pod: &Pod<'_>, reference: &Reference<'_>) -> bool {
    reference.kind == "PersistentVolumeClaim"
        && list(&pod.object.value()["spec"], "volumeClaimTemplates")
            .iter()
            .any(|template| text(&template["metadata"], "name") == reference.name)
}

/// Whose an object is: its environment, or its namespace and Application.
fn whose(context: &Context<'_>, object: &Object) -> String {
    let environment = object.environment.map(|id| context.survey.environments[id.0].name.as_str());
    let app = context.survey.app_of(object).map(App::name).unwrap_or_default();
    match environment.filter(|name| !name.is_empty()) {
        Some(environment) => format!("{app} of environment {environment}"),
        None => format!("{app} in {}", object.key.namespace),
    }
}

fn finding(context: &Context<'_>, pod: &Pod<'_>, reference: &Reference<'_>, hint: Hint<'_>) -> Finding {
    let Reference { kind, name, .. } = reference;
    let namespace = &pod.object.key.namespace;
    let mut meant = None;
    let mut diagnostic = RULE
        .diagnostic(format!(
            "{} needs {kind}/{name} in {namespace}, and nothing makes it",
            pod.object.title()
        ))
        .at(context.survey.span(pod.object, &reference.path), "named here")
        .because("the pod does not start before it is there");
    diagnostic = match hint {
        Hint::Similar(other) => {
            meant = Some(other.key.name.as_str());
            diagnostic.see(context.survey.start(other), format!("{} is nearly called so", other.key.name))
        }
        Hint::Elsewhere(other) => diagnostic
            .see(context.survey.start(other), format!("it is in namespace {}", other.key.namespace))
            .help("pods see only the objects of their own namespace: make it there too"),
        Hint::OfSibling(other) => diagnostic
            .see(
                context.survey.start(other),
                format!("made for {}, and not for this one", whose(context, other)),
            )
            .help("make it for this environment, too, or mark the reference as optional"),
        Hint::Alone(made) => diagnostic
            .help(format!("make it as the {made} other Secrets that pods need, or name one of those")),
        Hint::Unclaimed(other) => diagnostic
            .see(context.survey.start(other), "this makes one that nothing asks for")
            .help("name that one, or let it be made under this name"),
        Hint::NotListed(other) => diagnostic
            .see(context.survey.start(other), "it is here, and nothing renders this file")
            .help("name the file among the resources"),
        Hint::Exception(others) => diagnostic
            .help(format!("make it beside the pod, as the {others} others, or take the reference out")),
        Hint::None => diagnostic.help("make it beside the pod, or mark the reference as optional"),
    };
    RULE.finding(context, pod.object, diagnostic).likely().perhaps(name, meant)
}
