//! Services of type LoadBalancer get an address.

use std::time::Duration;

use serde_json::json;
use tiphys_value::ObjectExt;

use super::workload::unready_of;
use crate::{
    Change, Controller, Event, Key, Outcome, Reporter, View, Write,
    behaviour::load_balancer_image,
    controller::Context,
    object::{resources, status_of, with_status},
};

/// How long until a Service without an address is looked at again though nothing that it waits for has
/// changed.
const RETRY: Duration = Duration::from_secs(5 * 60);

/// Gives load balancers an address.
pub(super) struct ServiceController;

impl Controller for ServiceController {
    fn name(&self) -> &'static str {
        "service"
    }

    fn keys(&self, change: &Change, _: &View<'_>) -> Vec<Key> {
        (change.resource == resources::services())
            .then(|| Key::from_object(&change.object))
            .into_iter()
            .collect()
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        let Some(service) = context.view.get(&resources::services(), key) else { return Outcome::done() };
        let is_other = service.str_at(&["spec", "loadBalancerClass"]).is_some_and(|class| !class.is_empty());
        if service.is_terminating() || is_other {
            return Outcome::done();
        }
        let mut status = status_of(&service);
        let is_balanced = service.str_at(&["spec", "type"]) == Some("LoadBalancer");
        let has_address = service.at(&["status", "loadBalancer", "ingress"]).is_some();
        // Without any pod that gives load balancers an address a cloud does it.
        if is_balanced
            && !has_address
            && let Some(awaited) = unready_of(context.view, load_balancer_image)
        {
            return Outcome::after(RETRY).until([awaited]);
        }
        let address = load_balancer_address(service.uid());
        let ingress =
            if is_balanced { json!({"ingress": [{"ip": address, "ipMode": "VIP"}]}) } else { json!({}) };
        status.insert("loadBalancer".into(), ingress);
        let Some(object) = with_status(&service, status.into()) else { return Outcome::done() };
        let mut writes = Vec::new();
        if is_balanced {
            for (reason, message) in [
                ("EnsuringLoadBalancer", "Ensuring load balancer"),
                ("EnsuredLoadBalancer", "Ensured load balancer"),
            ] {
                writes.push(
                    Event::normal(&service, Reporter::Controller("service-controller"), reason, message)
                        .into(),
                );
            }
        }
        writes.push(Write::UpdateStatus { resource: resources::services(), object });
        writes.into()
    }
}

/// An address of the documentation range 203.0.113.0/24 that depends on the uid alone.
pub(super) fn load_balancer_address(uid: &str) -> String {
    let hash = uid.bytes().fold(7u8, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte));
    format!("203.0.113.{}", hash.clamp(1, 254))
}
