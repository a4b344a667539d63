//! Routes of Traefik that name what is not there. They have no status: their controller leaves such a route
//! out and says so in its log only, so that they are evaluated here.

use tiphys_cause::Cause;
use tiphys_value::{ObjectExt as _, Value};

use crate::{Object, cluster::items, finding::Finding, search_context::Look};

/// Seconds in which what is applied together may still come.
const SETTLED: i64 = 120;

pub(crate) fn find(look: &Look<'_>) -> Vec<Finding> {
    let routes = ["IngressRoute", "IngressRouteTCP"].iter().flat_map(|kind| look.cluster.all(kind).iter());
    let settled = routes.filter(|route| look.cluster.age(route) > SETTLED && !route.is_terminating());
    settled
        .filter_map(|route| missing_middleware(look, route).or_else(|| missing_service(look, route)))
        .collect()
}

/// A name of Traefik's that says itself from where it comes is not one of the cluster.
fn is_of_provider(name: &str) -> bool {
    name.contains('@')
}

/// A middleware that a route names and that does not exist.
fn missing_middleware(look: &Look<'_>, route: &Value) -> Option<Finding> {
    let kind = if route.kind() == "IngressRoute" { "Middleware" } else { "MiddlewareTCP" };
    if !look.cluster.has_kind(kind) {
        return None;
    }
    let named = items(route, &["spec", "routes"]).flat_map(|it| items(it, &["middlewares"]));
    let mut named = named.filter_map(|it| {
        let namespace = it.str_at(&["namespace"]).unwrap_or(route.namespace());
        Some(Object::new(kind, namespace, it.str_at(&["name"])?))
    });
    let absent = named.find(|it| !is_of_provider(&it.name) && look.cluster.live(it).is_none())?;
    let object = Object::from_live(route);
    let summary =
        format!("{object} names {absent}, which does not exist: its controller leaves the route out");
    Some(
        Finding::new(Cause::EdgeRouteRefused, object.clone(), 0.85, summary)
            .field("spec.routes.middlewares")
            .evidence(object.to_string(), format!("middlewares: {}", absent.name))
            .remedy(
                format!("Make {absent}, or take it off the route."),
                &[format!("kubectl -n {} get {}", absent.namespace, kind.to_lowercase())],
            ),
    )
}

/// A Service that a route leads to and that does not exist.
fn missing_service(look: &Look<'_>, route: &Value) -> Option<Finding> {
    if !look.cluster.knows_services() {
        return None;
    }
    let named = items(route, &["spec", "routes"]).flat_map(|it| items(it, &["services"]));
    let mut named = named.filter_map(|it| {
        let is_service = it.str_at(&["kind"]).is_none_or(|kind| kind == "Service");
        let namespace = it.str_at(&["namespace"]).unwrap_or(route.namespace());
        is_service.then_some(Object::new("Service", namespace, it.str_at(&["name"])?))
    });
    let absent = named.find(|it| {
        let is_seen = look.cluster.all("Service").iter().any(|service| service.namespace() == it.namespace);
        is_seen && !is_of_provider(&it.name) && look.cluster.live(it).is_none()
    })?;
    let object = Object::from_live(route);
    let summary = format!("{object} leads to {absent}, which does not exist");
    Some(
        Finding::new(Cause::EdgeBackend, object.clone(), 0.85, summary)
            .field("spec.routes.services")
            .evidence(object.to_string(), format!("services: {}", absent.name))
            .remedy(format!("Make {absent}, or correct the route."), &[])
            .below(absent),
    )
}
