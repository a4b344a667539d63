//! Ingresses get the address of their controller's load balancer.

use serde_json::json;
use tiphys_value::ObjectExt;

use super::service::load_balancer_address;
use crate::{
    Change, Controller, Event, Key, Outcome, Reporter, View, Write,
    controller::Context,
    object::{resources, with_status},
};

/// Gives Ingresses an address.
pub(super) struct IngressController;

impl Controller for IngressController {
    fn name(&self) -> &'static str {
        "ingress"
    }

    fn keys(&self, change: &Change, _: &View<'_>) -> Vec<Key> {
        (change.resource == resources::ingresses())
            .then(|| Key::from_object(&change.object))
            .into_iter()
            .collect()
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        let Some(ingress) = context.view.get(&resources::ingresses(), key) else { return Outcome::done() };
        if ingress.is_terminating() {
            return Outcome::done();
        }
        let class = ingress.str_at(&["spec", "ingressClassName"]).unwrap_or_default();
        let status = json!({"loadBalancer": {"ingress": [{"ip": load_balancer_address(class)}]}});
        let Some(object) = with_status(&ingress, status) else { return Outcome::done() };
        vec![
            Write::UpdateStatus { resource: resources::ingresses(), object },
            Event::normal(&ingress, Reporter::Controller("ingress-controller"), "Sync", "Scheduled for sync")
                .into(),
        ]
        .into()
    }
}
