//! Ingresses get the address of their controller's load balancer.

use std::time::Duration;

use serde_json::{Value, json};
use tiphys_value::ObjectExt;

use super::{service::load_balancer_address, workload::unready_pods};
use crate::{
    Awaited, Change, Controller, Event, Key, Outcome, Reporter, View, Write,
    behaviour::{IngressServer, ingress_server},
    controller::Context,
    object::{resources, with_status},
};

/// How long until an Ingress that nobody serves is looked at again though nothing that it waits for has
/// changed.
const RETRY: Duration = Duration::from_secs(5 * 60);

/// What an Ingress waits for that is served by nobody: its class is a slip for another one, or none of the
/// pods of its controller is Ready. A controller without any pod is elsewhere, as those of clouds are.
fn unserved(ingress: &Value, view: &View<'_>) -> Option<Vec<Awaited>> {
    let classes = view.list(&resources::ingress_classes(), None);
    let values: Vec<&Value> = classes.iter().map(|class| class.value()).collect();
    match ingress_server(ingress, &values) {
        IngressServer::Unknown => None,
        IngressServer::Slip(_) => {
            let name = ingress.str_at(&["spec", "ingressClassName"]).unwrap_or_default();
            let key = Key { namespace: String::new(), name: name.to_owned() };
            let group = resources::ingress_classes().group;
            Some(vec![Awaited::Object { group, kind: "IngressClass".to_owned(), key }])
        }
        IngressServer::Pods(image) => unready_pods(image, view).map(|awaited| vec![awaited]),
    }
}

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
        let has_address =
            ingress.at(&["status", "loadBalancer", "ingress"]).and_then(Value::as_array).is_some();
        if let Some(awaited) = unserved(&ingress, context.view).filter(|_| !has_address) {
            return Outcome::after(RETRY).until(awaited);
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
