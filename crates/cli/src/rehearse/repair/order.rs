//! Repairs of order: what one Application needs and another one brings too late.

use tiphys_graph::App;
use tiphys_stage::{
    causes::{Cause, Repair},
    mechanism::Mechanism,
};
use tiphys_value::{ObjectExt, ResourceKey, Value, json};

use super::{Ground, object_name, yaml};
use crate::rehearse::text::is_application;

const WAVE: &str = "argocd.argoproj.io/sync-wave";
/// Where Argo CD's settings are, and the one that says how objects are marked.
const SETTINGS: &str = "argocd-cm";
const TRACKING: &str = "application.resourceTrackingMethod";

impl Ground<'_> {
    /// A namespace that is not there: another Application brings it too late, or nobody does.
    pub(super) fn namespace(&self, cause: &Cause, mechanism: &Mechanism) -> Option<Repair> {
        let namespace = mechanism.objects.first()?;
        if let Some(repair) = self.earlier(cause, namespace) {
            return Some(repair);
        }
        let (key, app) = self.application(cause)?;
        let mut options: Vec<Value> = app
            .at(&["spec", "syncPolicy", "syncOptions"])
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        options.retain(|option| option.as_str().is_none_or(|it| !it.starts_with("CreateNamespace=")));
        options.push(json!("CreateNamespace=true"));
        Some(Repair {
            text: format!("let Application {} make its namespace", key.name),
            patch: yaml(&json!({"spec": {"syncPolicy": {"syncOptions": options}}})),
            place: self.place(&key),
            ..Repair::default()
        })
    }

    /// A kind whose definition another Application brings too late.
    pub(super) fn definition(&self, cause: &Cause) -> Option<Repair> {
        let wanted = cause.objects.first()?;
        let is_definition = |object: &Value| {
            object.kind() == "CustomResourceDefinition"
                && object.str_at(&["spec", "group"]) == Some(wanted.group.as_str())
                && object.str_at(&["spec", "names", "kind"]) == Some(wanted.kind.as_str())
        };
        let Some((definition, _)) = self.rendered.iter().find(|(_, (object, _))| is_definition(object))
        else {
            return Some(Repair {
                text: format!("bring the definition of {} ({})", wanted.kind, wanted.group),
                ..Repair::default()
            });
        };
        if let Some(repair) = self.served_version(cause, definition) {
            return Some(repair);
        }
        self.earlier(cause, definition)
    }

    /// A version that the definition of a kind does not serve: no order brings it.
    fn served_version(&self, cause: &Cause, definition: &ResourceKey) -> Option<Repair> {
        let wanted = cause.objects.first()?;
        let (object, _) = self.rendered.get(wanted)?;
        let (definition_object, _) = self.rendered.get(definition)?;
        let versions = definition_object.at(&["spec", "versions"]).and_then(Value::as_array)?;
        let is_served = |version: &&Value| version.get("served") != Some(&Value::Bool(false));
        let served: Vec<&str> =
            versions.iter().filter(is_served).filter_map(|version| version.str_at(&["name"])).collect();
        let asked = object.gvk().version;
        if served.is_empty() || served.contains(&asked.as_str()) {
            return None;
        }
        let newest = served.last().copied().unwrap_or_default();
        Some(Repair {
            text: format!(
                "write apiVersion {}/{newest} in place of {asked}: {} serves {}",
                wanted.group,
                object_name(definition),
                served.join(", ")
            ),
            place: self.place_of(cause),
            ..Repair::default()
        })
    }

    /// The Application that brings an object, put before the one that needs it.
    pub(super) fn earlier(&self, cause: &Cause, needed: &ResourceKey) -> Option<Repair> {
        let (_, brought_by) = self.rendered.get(needed)?;
        let (_, needing) = self.application(cause)?;
        let provider = &self.plan.survey.app((*brought_by)?).declared.value;
        let key = provider.resource_key();
        if key == needing.resource_key() {
            return None;
        }
        let wave = tiphys_model::hook::wave(needing).min(0) - 1;
        Some(Repair {
            text: format!("sync Application {} first: it brings {}", key.name, object_name(needed)),
            patch: yaml(&json!({"metadata": {"annotations": {WAVE: wave.to_string()}}})),
            place: self.place(&key),
            ..Repair::default()
        })
    }

    /// An Application that is an object of itself, or a circle of them.
    pub(super) fn self_wait(&self, mechanism: &Mechanism) -> Option<Repair> {
        let first = mechanism.objects.first()?;
        let by = self.rendered.get(first).and_then(|(_, by)| *by);
        let own = by.map(|id| self.plan.survey.app(id).name());
        let text = if own == Some(first.name.as_str()) {
            format!("take Application {} out of what it renders: it waits for its own health", first.name)
        } else {
            let names: Vec<&str> = mechanism.objects.iter().map(|key| key.name.as_str()).collect();
            format!("break the circle of Applications that wait for each other: {}", names.join(", "))
        };
        Some(Repair { text, place: self.place(first), ..Repair::default() })
    }

    /// Something that left Git before what needs it.
    pub(super) fn still_needed(&self, cause: &Cause, mechanism: &Mechanism) -> Option<Repair> {
        let held = mechanism.objects.first()?;
        Some(Repair {
            text: format!("keep {} in Git until nothing needs it any more", object_name(held)),
            place: self.place_of(cause),
            ..Repair::default()
        })
    }

    /// Applications that nobody syncs by themselves.
    pub(super) fn manual_sync(&self, cause: &Cause) -> Option<Repair> {
        let is_manual = |key: &ResourceKey| {
            let mut apps = self.plan.survey.apps.iter().filter(|app| app.name() == key.name);
            is_application(key) && apps.any(|app| app.application.automated_policy().is_none())
        };
        (!cause.objects.is_empty() && cause.objects.iter().all(is_manual)).then(|| Repair {
            text: "sync it by hand after merging; --sync-all rehearses that".to_owned(),
            place: self.place_of(cause),
            ..Repair::default()
        })
    }

    /// An object that two Applications bring.
    pub(super) fn two_owners(&self, cause: &Cause) -> Option<Repair> {
        let key = cause.objects.iter().find(|key| key.kind == "Application")?;
        let mine = self.objects_of(key);
        let mut others = self.plan.survey.apps.iter().filter(|app| app.name() != key.name);
        let shared = others
            .find_map(|app| Some((app, self.objects_of_app(app).into_iter().find(|it| mine.contains(it))?)));
        let (other, object) = shared?;
        Some(Repair {
            text: format!(
                "leave {} to one of the Applications {} and {}, or give it another name in one",
                object_name(&object),
                key.name,
                other.name()
            ),
            place: self.place(&object),
            ..Repair::default()
        })
    }

    /// Labels are copied by operators, annotations are not.
    pub(super) fn tracking(&self) -> Option<Repair> {
        let settings = self.plan.argo_settings.as_ref();
        let settings = settings.or_else(|| {
            let mut maps = self.rendered.values().map(|(object, _)| *object);
            maps.find(|it| it.kind() == "ConfigMap" && it.name() == SETTINGS)
        })?;
        let method = settings.str_at(&["data", TRACKING])?;
        (method == "label").then(|| Repair {
            text: "track objects by annotation: operators copy the label to what they make".to_owned(),
            patch: yaml(&json!({"data": {TRACKING: "annotation"}})),
            place: self.place(&settings.resource_key()),
            ..Repair::default()
        })
    }

    fn objects_of(&self, app: &ResourceKey) -> Vec<ResourceKey> {
        let apps = self.plan.survey.apps.iter().filter(|it| it.name() == app.name);
        apps.flat_map(|app| self.objects_of_app(app)).collect()
    }

    fn objects_of_app(&self, app: &App) -> Vec<ResourceKey> {
        app.objects.iter().map(|id| self.plan.survey.object(*id).value().resource_key()).collect()
    }
}
