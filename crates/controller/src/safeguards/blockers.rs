//! What stands behind a wait for something else's repair: webhook, its backend, and whose that is
//! (incidents A4 and C3).

use tiphys_cluster::LiveCache;
use tiphys_model::{Condition, ConditionType, OperationState, Tracking};
use tiphys_sync::{Blocker, SyncState, WaitKind};
use tiphys_value::{GroupKind, ObjectExt, ResourceKey, Value};

/// The conditions that tell what an operation is blocked by.
pub(crate) fn conditions(
    cache: &LiveCache,
    tracking: &Tracking,
    state: Option<&OperationState>,
) -> Vec<Condition> {
    let Some(state) = state.filter(|state| !state.phase.is_completed()) else { return Vec::new() };
    let state = SyncState::from_operation_state(state.clone());
    let blocked = state.waits().iter().filter(|wait| wait.kind == WaitKind::Blocked);
    let mut messages: Vec<String> = Vec::new();
    for wait in blocked {
        let webhook = match &wait.blocker {
            Some(Blocker::Webhook { name }) => webhook(cache, tracking, name),
            _ => None,
        };
        let message = webhook.unwrap_or_else(|| wait.to_string());
        if !messages.contains(&message) {
            messages.push(message);
        }
    }
    messages.into_iter().map(|message| Condition::new(ConditionType::BlockedBy, message)).collect()
}

/// The webhook of a name, with its backend.
fn webhook(cache: &LiveCache, tracking: &Tracking, name: &str) -> Option<String> {
    for kind in ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"] {
        for object in cache.of_kind(&GroupKind::new("admissionregistration.k8s.io", kind)) {
            let hooks = object.get("webhooks").and_then(Value::as_array).into_iter().flatten();
            let Some(hook) = hooks.into_iter().find(|hook| hook.str_at(&["name"]) == Some(name)) else {
                continue;
            };
            let text = format!("webhook {name} of {kind} {} does not answer", object.name());
            return Some(match backend(cache, tracking, hook) {
                Some(backend) => format!("{text}; it is served by {backend}"),
                None => text,
            });
        }
    }
    None
}

fn backend(cache: &LiveCache, tracking: &Tracking, hook: &Value) -> Option<String> {
    let service = hook.at(&["clientConfig", "service"])?;
    let (namespace, name) = (service.str_at(&["namespace"])?, service.str_at(&["name"])?);
    let key = ResourceKey::new("", "Service", namespace, name);
    let owner = cache.get(&key).map(|service| tracking.owner(&service));
    Some(match owner {
        None => format!("Service {namespace}/{name}, which does not exist"),
        Some(Some(app)) => format!("Service {namespace}/{name} of Application {app}"),
        Some(None) => format!("Service {namespace}/{name}"),
    })
}
