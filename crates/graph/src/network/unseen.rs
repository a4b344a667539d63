//! The pods that charts out of reach are known to make.

use tiphys_model::{ApplicationSource, HelmSource};
use tiphys_network::{Controller, Pod};

use crate::{App, Outcome};

/// The pod that an Application is known to make though its chart could not be had.
pub(super) fn controller(app: &App) -> Option<Pod> {
    if !matches!(app.outcome, Outcome::Unseen(_) | Outcome::Failed(_)) {
        return None;
    }
    let spec = &app.application.spec;
    let source = spec
        .source
        .iter()
        .chain(&spec.sources)
        .find(|source| Controller::of_chart(&source.chart).is_some())?;
    let controller = Controller::of_chart(&source.chart)?;
    let release = source.helm.as_ref().map(|helm| helm.release_name.as_str()).filter(|name| !name.is_empty());
    let release = release.unwrap_or(app.name());
    let namespace = spec.destination.namespace.clone();
    let labels = [("app.kubernetes.io/name", controller.label), ("app.kubernetes.io/instance", release)];
    Some(Pod {
        has_token: true,
        uses_host_network: controller.name == "ingress-nginx" && may_use_host_network(source),
        controller: Some(controller),
        ..Pod::foreseen(
            format!("the pods of chart {} in {namespace}", source.chart),
            &namespace,
            labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        )
    })
}

/// The Prometheus that an Application is known to make though its chart could not be had.
pub(super) fn prometheus(app: &App) -> Option<Pod> {
    let spec = &app.application.spec;
    let mut sources = spec.source.iter().chain(&spec.sources);
    let namespace = &spec.destination.namespace;
    let is_unseen = matches!(app.outcome, Outcome::Unseen(_) | Outcome::Failed(_));
    // As an agent its pods are called otherwise.
    let is_agent = |source: &ApplicationSource| {
        source.helm.as_ref().is_some_and(|helm| own_values(helm).contains("agentMode"))
    };
    (is_unseen && sources.any(|source| source.chart == "kube-prometheus-stack" && !is_agent(source)))
        .then(|| pod_by_name_label(format!("Prometheus in {namespace}"), namespace, "prometheus"))
}

/// The controller of Ingresses that an Application is known to make though its chart could not be had, where
/// its pods have addresses of their own.
pub(super) fn gateway(app: &App) -> Option<Pod> {
    let spec = &app.application.spec;
    let is_unseen = matches!(app.outcome, Outcome::Unseen(_) | Outcome::Failed(_));
    let mut sources = spec.source.iter().chain(&spec.sources);
    let source = sources.find(|source| source.chart == "traefik").filter(|_| is_unseen)?;
    let namespace = &spec.destination.namespace;
    let title = format!("the pods of chart {} in {namespace}", source.chart);
    Some(Pod {
        uses_host_network: may_use_host_network(source),
        ..pod_by_name_label(title, namespace, "traefik")
    })
}

/// Pods of a chart, known by labels that the chart gives them whatever its values are.
struct KnownPods {
    chart: &'static str,
    /// A part of the address that the chart is published under.
    owner: &'static str,
    /// Their labels; `{}` stands for the release's name, `{istio}` for it without `istio-`.
    labels: &'static [(&'static str, &'static str)],
    /// The ports at which the API server calls them, as the chart registers them.
    webhooks: &'static [u16],
}

macro_rules! known_pods {
    ($($chart:literal $owner:literal [$($label:literal = $value:literal),*] $webhooks:expr;)*) => {
        const KNOWN_PODS: &[KnownPods] = &[$(KnownPods {
            chart: $chart,
            owner: $owner,
            labels: &[$(($label, $value)),*],
            webhooks: $webhooks,
        }),*];
    };
}

// From the charts' templates as of 2026-11.
known_pods! {
    "aws-load-balancer-controller" "aws.github.io"
        ["app.kubernetes.io/name" = "aws-load-balancer-controller", "app.kubernetes.io/instance" = "{}"] &[9443];
    "cert-manager" "jetstack"
        ["app.kubernetes.io/name" = "webhook", "app.kubernetes.io/component" = "webhook", "app.kubernetes.io/instance" = "{}"] &[10250];
    "cloudnative-pg" "cloudnative-pg"
        ["app.kubernetes.io/name" = "cloudnative-pg", "app.kubernetes.io/instance" = "{}"] &[9443];
    "dragonfly-operator" "dragonfly" ["app.kubernetes.io/name" = "dragonfly-operator"] &[];
    "eck-operator" "elastic" ["app.kubernetes.io/name" = "elastic-operator"] &[9443];
    "external-secrets" "external-secrets"
        ["app.kubernetes.io/name" = "external-secrets-webhook", "app.kubernetes.io/instance" = "{}"] &[10250];
    "gateway" "istio" ["app" = "{}", "istio" = "{istio}"] &[];
    "gateway-helm" "envoyproxy" ["control-plane" = "envoy-gateway", "app.kubernetes.io/instance" = "{}"] &[];
    "ingress-nginx" "ingress-nginx"
        ["app.kubernetes.io/name" = "ingress-nginx", "app.kubernetes.io/component" = "controller", "app.kubernetes.io/instance" = "{}"] &[8443];
    "istiod" "istio" ["app" = "istiod", "istio" = "pilot"] &[15017];
    "keda" "keda"
        ["app.kubernetes.io/name" = "keda-operator-metrics-apiserver", "app" = "keda-operator-metrics-apiserver"] &[6443];
    "kyverno" "kyverno"
        ["app.kubernetes.io/component" = "admission-controller", "app.kubernetes.io/instance" = "{}"] &[9443];
    "metrics-server" "metrics-server"
        ["app.kubernetes.io/name" = "metrics-server", "app.kubernetes.io/instance" = "{}"] &[10250];
    "opentelemetry-operator" "open-telemetry" ["app.kubernetes.io/name" = "opentelemetry-operator"] &[9443];
    "postgres-operator" "zalando" ["app.kubernetes.io/name" = "postgres-operator"] &[];
    "redis-operator" "ot-container-kit" ["app.kubernetes.io/name" = "redis-operator"] &[];
}

/// The pods that the charts of an Application are known to make though they could not be had. Of a release
/// whose values speak of the node's network, of ports or of switching its webhook off, nothing is known.
pub(super) fn known_pods(app: &App) -> Vec<Pod> {
    const DECIDING: [&str; 6] =
        ["hostNetwork", "securePort", "webhookPort", "webhook.enabled", "admissionWebhooks", "hostPort"];
    if !matches!(app.outcome, Outcome::Unseen(_) | Outcome::Failed(_)) {
        return Vec::new();
    }
    let spec = &app.application.spec;
    let namespace = &spec.destination.namespace;
    let mut found = Vec::new();
    for source in spec.source.iter().chain(&spec.sources) {
        let Some(known) = KNOWN_PODS
            .iter()
            .find(|it| it.chart == source.chart && source.repo_url.to_ascii_lowercase().contains(it.owner))
        else {
            continue;
        };
        let values = values_text(source);
        let is_certain = values.is_some_and(|values| {
            !DECIDING.iter().any(|word| values.contains(word)) && !switches_off_webhook(&values)
        });
        if namespace.is_empty() || !is_certain {
            continue;
        }
        let release = source.helm.as_ref().map(|helm| helm.release_name.as_str());
        let release = release.filter(|name| !name.is_empty()).unwrap_or(app.name());
        let filled = |text: &str| {
            let short = release.strip_prefix("istio-").unwrap_or(release);
            text.replace("{istio}", short).replace("{}", release)
        };
        let labels = known.labels.iter().map(|(key, value)| ((*key).to_owned(), filled(value)));
        let title = format!("the pods of chart {} in {namespace}", source.chart);
        found.push(Pod {
            webhooks: known.webhooks.to_vec(),
            ..Pod::foreseen(title, namespace, labels.collect())
        });
    }
    found
}

/// The values that stand in a source itself, as text.
fn own_values(helm: &HelmSource) -> String {
    helm.values_object.as_ref().map_or_else(|| helm.values.clone(), ToString::to_string)
}

/// The values that a source gives its chart, as text; `None` where some are in files.
fn values_text(source: &ApplicationSource) -> Option<String> {
    let Some(helm) = &source.helm else { return Some(String::new()) };
    let parameters = helm.parameters.iter().map(|it| format!("{}={}\n", it.name, it.value));
    helm.value_files.is_empty().then(|| own_values(helm) + &parameters.collect::<String>())
}

/// Whether values have a section for a webhook, or for labels, that may change what is known.
fn switches_off_webhook(values: &str) -> bool {
    ["webhook:", "\"webhook\":", "abels", "nameOverride"].iter().any(|word| values.contains(word))
}

/// Whether the values of a chart speak of the node's network, or are in files that are not looked at.
fn may_use_host_network(source: &ApplicationSource) -> bool {
    source.helm.as_ref().is_some_and(|helm| {
        own_values(helm).contains("hostNetwork")
            || !helm.value_files.is_empty()
            || helm.parameters.iter().any(|it| it.name.contains("hostNetwork"))
    })
}

/// Pods of which only the label that tells what they run is known.
fn pod_by_name_label(title: String, namespace: &str, name: &str) -> Pod {
    Pod::foreseen(title, namespace, [("app.kubernetes.io/name".to_owned(), name.to_owned())].into())
}
