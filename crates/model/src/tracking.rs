//! Which Application an object belongs to: by annotation, by label, or by both
//! (Argo CD docs, "Resource Tracking").

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tiphys_value::{FieldPath, ObjectExt, ResourceKey};

use crate::names;

/// `application.resourceTrackingMethod`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TrackingMethod {
    /// By annotation.
    #[default]
    #[serde(rename = "annotation")]
    Annotation,
    /// By label.
    #[serde(rename = "label")]
    Label,
    /// By annotation; the label is written too, for other tools.
    #[serde(rename = "annotation+label")]
    AnnotationAndLabel,
}

impl TrackingMethod {
    /// Reads the setting; an empty text is the default, another unknown text is none.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "" | "annotation" => Some(Self::Annotation),
            "label" => Some(Self::Label),
            "annotation+label" => Some(Self::AnnotationAndLabel),
            _ => None,
        }
    }
}

/// How objects are marked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tracking {
    /// Method.
    pub method: TrackingMethod,
    /// Key of the label.
    pub label_key: String,
    /// Identity of the engine, if several share a cluster.
    pub installation_id: String,
}

impl Default for Tracking {
    fn default() -> Self {
        Self {
            method: TrackingMethod::default(),
            label_key: names::DEFAULT_INSTANCE_LABEL.into(),
            installation_id: String::new(),
        }
    }
}

/// A tracking annotation taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrackingId {
    /// Instance name of the Application.
    pub app: String,
    /// The object that was marked.
    pub key: ResourceKey,
}

impl TrackingId {
    /// Reads `<app>:<group>/<kind>:<namespace>/<name>`. The name may hold colons (RBAC).
    pub fn parse(text: &str) -> Option<Self> {
        let (app, rest) = text.split_once(':')?;
        let (group_kind, rest) = rest.split_once(':')?;
        let (group, kind) = group_kind.split_once('/').filter(|(_, kind)| !kind.contains('/'))?;
        let (namespace, name) = rest.split_once('/').filter(|(_, name)| !name.contains('/'))?;
        Some(Self { app: app.into(), key: ResourceKey::new(group, kind, namespace, name) })
    }
}

impl std::fmt::Display for TrackingId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ResourceKey { group, kind, namespace, name } = &self.key;
        write!(f, "{}:{group}/{kind}:{namespace}/{name}", self.app)
    }
}

impl Tracking {
    /// Marks an object as part of an Application. `namespace` is the namespace that goes into the mark:
    /// that of the object, or the destination's where the object has none.
    pub fn mark(&self, object: &mut Value, app: &str, namespace: &str) {
        if self.method != TrackingMethod::Annotation {
            let value = match self.method {
                TrackingMethod::AnnotationAndLabel => truncate_label(app),
                _ => app,
            };
            set(object, "labels", &self.label_key, value);
        }
        if self.method != TrackingMethod::Label {
            let own = object.resource_key();
            let namespace = if own.namespace.is_empty() { namespace } else { &own.namespace };
            let key = ResourceKey::new(&own.group, &own.kind, namespace, &own.name);
            let id = TrackingId { app: app.into(), key }.to_string();
            set(object, "annotations", names::TRACKING_ID, &id);
            if !self.installation_id.is_empty() {
                set(object, "annotations", names::INSTALLATION_ID, &self.installation_id);
            } else if let Some(Value::Object(annotations)) = object.pointer_mut("/metadata/annotations") {
                // A manifest that was taken from another engine's cluster has its mark.
                annotations.remove(names::INSTALLATION_ID);
            }
        }
    }

    /// The fields that a mark consists of.
    pub fn fields(&self) -> Vec<FieldPath> {
        let metadata = |part: &str, key: &str| FieldPath::default().key("metadata").key(part).key(key);
        let label = (self.method != TrackingMethod::Annotation).then(|| metadata("labels", &self.label_key));
        let id = (self.method != TrackingMethod::Label).then(|| metadata("annotations", names::TRACKING_ID));
        let installation = id
            .as_ref()
            .filter(|_| !self.installation_id.is_empty())
            .map(|_| metadata("annotations", names::INSTALLATION_ID));
        label.into_iter().chain(id).chain(installation).collect()
    }

    /// The instance name of the Application that a live object bears the mark of, if any. An annotation of
    /// another form is nobody's mark.
    pub fn owner(&self, object: &Value) -> Option<String> {
        if self.method == TrackingMethod::Label {
            return object.label(&self.label_key).filter(|value| !value.is_empty()).map(str::to_owned);
        }
        if !self.installation_id.is_empty()
            && object.annotation(names::INSTALLATION_ID) != Some(self.installation_id.as_str())
        {
            return None;
        }
        TrackingId::parse(object.annotation(names::TRACKING_ID)?).map(|id| id.app)
    }

    /// The live object as it is compared with its target: what was marked by the label alone, as Argo CD did
    /// before it marked by annotation, counts as marked like its target. `None` if it is to be compared as it
    /// is.
    pub fn align_tracking(&self, target: &Value, live: &Value) -> Option<Value> {
        let is_definition = live.kind() == "CustomResourceDefinition";
        let has_label = |object: &Value| object.label(&self.label_key).is_some_and(|value| !value.is_empty());
        if self.method == TrackingMethod::Label || is_definition || !has_label(live) {
            return None;
        }
        let mut aligned = live.clone();
        let mark =
            target.annotation(names::TRACKING_ID).filter(|_| live.annotation(names::TRACKING_ID).is_none());
        if let Some(mark) = mark {
            set(&mut aligned, "annotations", names::TRACKING_ID, mark);
        }
        if !has_label(target)
            && let Some(Value::Object(labels)) = aligned.pointer_mut("/metadata/labels")
        {
            labels.remove(&self.label_key);
        }
        Some(aligned)
    }

    /// Whether the mark names the object that bears it. A mark copied from another object (by an
    /// operator that copies annotations) does not; labels cannot tell.
    pub fn is_self_referencing(&self, object: &Value) -> bool {
        if self.method == TrackingMethod::Label {
            return true;
        }
        let Some(id) = object.annotation(names::TRACKING_ID).and_then(TrackingId::parse) else { return true };
        let own = object.resource_key();
        let same_group = own.group == id.key.group || moved_group(&own.group, &id.key.group);
        let same_namespace = own.namespace.is_empty() || own.namespace == id.key.namespace;
        same_group && own.kind == id.key.kind && own.name == id.key.name && same_namespace
    }
}

/// Groups between which the API server serves the same objects.
fn moved_group(a: &str, b: &str) -> bool {
    let moved = ["extensions", "networking.k8s.io", "apps"];
    a != b && moved.contains(&a) && moved.contains(&b) && (a == "extensions" || b == "extensions")
}

/// A label value: at most 63 characters; where some are cut off, it ends in a letter or digit.
fn truncate_label(value: &str) -> &str {
    let Some((end, _)) = value.char_indices().nth(63) else { return value };
    value[..end].trim_end_matches(|c: char| !c.is_ascii_alphanumeric())
}

fn set(object: &mut Value, map: &str, key: &str, value: &str) {
    let Some(object) = object.as_object_mut() else { return };
    let metadata = object.entry("metadata").or_insert_with(|| json!({}));
    let Some(metadata) = metadata.as_object_mut() else { return };
    let entry = metadata.entry(map).or_insert_with(|| json!({}));
    if !entry.is_object() {
        *entry = Value::Object(Map::new());
    }
    if let Some(entry) = entry.as_object_mut() {
        entry.insert(key.into(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(name: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "n"}})
    }

    #[test]
    fn marks_and_reads_back() {
        let mut object = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "system:x"}});
        let tracking = Tracking::default();
        tracking.mark(&mut object, "shop_web", "dest");
        let id = "shop_web:rbac.authorization.k8s.io/ClusterRole:dest/system:x";
        assert_eq!(object.annotation(names::TRACKING_ID), Some(id));
        assert_eq!(tracking.owner(&object).as_deref(), Some("shop_web"));
        assert!(tracking.is_self_referencing(&object));
        assert_eq!(TrackingId::parse(id).map(|id| id.to_string()).as_deref(), Some(id));
    }

    #[test]
    fn an_annotation_of_another_form_marks_nothing() {
        let tracking = Tracking::default();
        for id in [
            "app",
            "app:x",
            "app:/Secret:n",
            "app:v1/Secret/x:n/a",
            "app:/Secret:n/a/b",
            "app:Secret:n/a",
            "",
        ] {
            let mut object = secret("a");
            set(&mut object, "annotations", names::TRACKING_ID, id);
            assert_eq!(tracking.owner(&object), None, "{id}");
        }
    }

    #[test]
    fn a_mark_of_another_installation_is_taken_off() {
        let mut object = secret("a");
        let other = Tracking { installation_id: "other".into(), ..Tracking::default() };
        other.mark(&mut object, "app", "n");
        assert_eq!(object.annotation(names::INSTALLATION_ID), Some("other"));
        Tracking::default().mark(&mut object, "app", "n");
        assert_eq!(object.annotation(names::INSTALLATION_ID), None);
    }

    #[test]
    fn labels_are_cut_only_where_they_are_too_long() {
        assert_eq!(truncate_label("app-"), "app-");
        assert_eq!(truncate_label(&format!("{}-b", "a".repeat(62))), "a".repeat(62));
        assert_eq!(truncate_label(&"a".repeat(63)), "a".repeat(63));
    }

    #[test]
    fn a_copied_mark_names_another_object_unless_it_is_a_label() {
        let mut original = secret("a");
        let tracking = Tracking { method: TrackingMethod::AnnotationAndLabel, ..Tracking::default() };
        tracking.mark(&mut original, "app", "n");
        let mut copy = secret("b");
        copy["metadata"]["annotations"] = original["metadata"]["annotations"].clone();
        copy["metadata"]["labels"] = original["metadata"]["labels"].clone();
        assert!(!tracking.is_self_referencing(&copy));
        assert!(Tracking { method: TrackingMethod::Label, ..tracking }.is_self_referencing(&copy));
    }

    #[test]
    fn what_was_marked_by_the_label_alone_counts_as_marked() {
        let tracking = Tracking::default();
        let labelled = |name: &str| {
            let mut live = secret(name);
            live["metadata"]["labels"] = json!({"app.kubernetes.io/instance": "app"});
            live
        };
        let mut target = secret("a");
        tracking.mark(&mut target, "app", "n");
        let aligned = tracking.align_tracking(&target, &labelled("a")).expect("the label is there");
        assert_eq!(aligned.annotation(names::TRACKING_ID), target.annotation(names::TRACKING_ID));
        assert_eq!(aligned.label("app.kubernetes.io/instance"), None);
        // A chart's own label stays, and so does the mark of another Application.
        let mut target = labelled("a");
        tracking.mark(&mut target, "app", "n");
        let mut live = labelled("a");
        tracking.mark(&mut live, "other", "n");
        assert_eq!(tracking.align_tracking(&target, &live), Some(live));
        assert_eq!(tracking.align_tracking(&target, &secret("a")), None);
        let by_label = Tracking { method: TrackingMethod::Label, ..tracking };
        assert_eq!(by_label.align_tracking(&secret("a"), &labelled("a")), None);
    }

    #[test]
    fn another_installation_owns_nothing_of_ours() {
        let mut object = secret("a");
        Tracking { installation_id: "one".into(), ..Tracking::default() }.mark(&mut object, "app", "n");
        assert_eq!(Tracking { installation_id: "two".into(), ..Tracking::default() }.owner(&object), None);
    }

    #[test]
    fn labels_are_cut_to_what_the_api_accepts() {
        let long = format!("{}-{}", "a".repeat(62), "tail");
        assert_eq!(truncate_label(&long), "a".repeat(62));
    }
}
