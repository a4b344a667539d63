//! The pods that charts out of reach are known to make.

use tiphys_model::ApplicationSource;
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
        source.helm.as_ref().is_some_and(|helm| {
            let values = helm.values_object.as_ref().map_or_else(|| helm.values.clone(), ToString::to_string);
            values.contains("agentMode")
        })
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

/// Whether the values of a chart speak of the node's network, or are in files that are not looked at.
fn may_use_host_network(source: &ApplicationSource) -> bool {
    source.helm.as_ref().is_some_and(|helm| {
        let values = helm.values_object.as_ref().map_or_else(|| helm.values.clone(), ToString::to_string);
        values.contains("hostNetwork")
            || !helm.value_files.is_empty()
            || helm.parameters.iter().any(|it| it.name.contains("hostNetwork"))
    })
}

/// Pods of which only the label that tells what they run is known.
fn pod_by_name_label(title: String, namespace: &str, name: &str) -> Pod {
    Pod::foreseen(title, namespace, [("app.kubernetes.io/name".to_owned(), name.to_owned())].into())
}
