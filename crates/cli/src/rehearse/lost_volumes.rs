//! What becomes of the data of claims that a change deletes.

use tiphys_apiserver::{ResourceId, Snapshot};
use tiphys_value::ObjectExt;

use super::effects::{Effect, Effects};

/// Adds to each claim that was deleted whether its volume is gone, too.
pub(super) fn add(effects: &mut Effects, (was, is): (&Snapshot, &Snapshot)) {
    for one in effects.applications.values_mut().flat_map(|app| &mut app.objects) {
        let is_gone = matches!(one.effect, Effect::Deleted | Effect::Replaced);
        if !is_gone || one.object.kind != "PersistentVolumeClaim" {
            continue;
        }
        let id = ResourceId::new("", "persistentvolumeclaims");
        let claim = was.get(&id, &one.object.namespace, &one.object.name);
        let volume = claim.and_then(|claim| claim.value().str_at(&["spec", "volumeName"]));
        let there = |name: &str| is.get(&ResourceId::new("", "persistentvolumes"), "", name).is_some();
        one.loses_data = volume.map(|name| !there(name));
    }
}
