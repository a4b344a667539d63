//! Services of type LoadBalancer get an address.

use serde_json::json;
use tiphys_value::ObjectExt;

use crate::{
    Change, Controller, Key, Outcome, View, Write,
    controller::Context,
    object::{resources, with_status},
};

/// Gives load balancers an address.
pub struct ServiceController;

impl Controller for ServiceController {
    fn name(&self) -> &'static str {
        "service"
    }

    fn keys(&self, change: &Change, _: &View<'_>) -> Vec<Key> {
        (change.resource == resources::services()).then(|| Key::of(&change.object)).into_iter().collect()
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        let Some(service) = context.view.get(&resources::services(), key) else { return Outcome::done() };
        if service.str_at(&["spec", "type"]) != Some("LoadBalancer") || service.is_terminating() {
            return Outcome::done();
        }
        let address = load_balancer_address(service.uid());
        let status = json!({"loadBalancer": {"ingress": [{"ip": address, "ipMode": "VIP"}]}});
        let updated = with_status(&service, status);
        updated
            .map(|object| Write::UpdateStatus { resource: resources::services(), object }.into())
            .unwrap_or_default()
    }
}

/// An address of the documentation range 203.0.113.0/24 that depends on the uid alone.
pub fn load_balancer_address(uid: &str) -> String {
    let hash = uid.bytes().fold(7u8, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte));
    format!("203.0.113.{}", hash.clamp(1, 254))
}
