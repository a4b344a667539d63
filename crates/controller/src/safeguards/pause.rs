//! What is on hold: objects that bear a time, and objects that their Application names (incident B5).

use std::collections::BTreeMap;

use jiff::Timestamp;
use tiphys_model::{
    Application, Condition, ConditionType, names,
    pause::{Until, paused_resources},
};
use tiphys_sync::LiveObject;
use tiphys_value::{ObjectExt, ResourceKey};

/// The objects to which nothing is synced now, with until when.
pub(crate) fn paused(
    app: &Application,
    live: &BTreeMap<ResourceKey, LiveObject>,
    now: Timestamp,
) -> BTreeMap<ResourceKey, Until> {
    let own = live.iter().filter_map(|(key, live)| {
        Some((key.clone(), Until::read(live.object.annotation(names::PAUSED_UNTIL)?)))
    });
    own.chain(paused_resources(app).flatten()).filter(|(_, until)| !until.is_over(now)).collect()
}

/// What is told of the objects on hold, and of those that an Application's list means to name.
pub(crate) fn conditions(app: &Application, paused: &BTreeMap<ResourceKey, Until>) -> Vec<Condition> {
    let paused = paused.iter().map(|(key, until)| format!("nothing is synced to {key} until {until}"));
    let unreadable = paused_resources(app).filter_map(Result::err).map(|text| {
        format!(
            "{}: {text:?} puts nothing on hold: it is no group/Kind/namespace/name=time",
            names::PAUSED_RESOURCES
        )
    });
    paused.chain(unreadable).map(|text| Condition::new(ConditionType::Paused, text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    #[test]
    fn entries_hold_until_their_time() {
        let list = "apps/Deployment/n/web=2026-01-02T00:00:00Z, /ConfigMap/n/c=2026-01-01T00:00:00Z, odd, \
            /Secret/n/s=tomorrow";
        let app = Application::from_value(&json!({"metadata": {"name": "a", "annotations": {
            "tiphys.dev/paused-resources": list}}}))
        .expect("valid");
        let now: Timestamp = "2026-01-01T12:00:00Z".parse().expect("valid");
        let held = paused(&app, &BTreeMap::new(), now);
        assert_eq!(held.keys().map(|key| key.name.as_str()).collect::<Vec<_>>(), ["s", "web"]);
        let told: Vec<String> = conditions(&app, &held).into_iter().map(|it| it.message).collect();
        assert!(
            told[0].ends_with("somebody writes a time: \"tomorrow\" is none (such as 2027-01-31T18:00:00Z)")
        );
        assert!(told[2].starts_with("tiphys.dev/paused-resources: \"odd\" puts nothing on hold"), "{told:?}");
    }
}
