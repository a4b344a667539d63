//! What `argocd-cmd-params-cm` says of ApplicationSets (Argo CD docs, "argocd-cmd-params-cm.yaml" and
//! "Controlling Resource Modification").

use std::{borrow::Cow, time::Duration};

use serde_json::{Value, json};
use tiphys_value::ObjectExt;

use super::Reader;
use crate::glob;

/// Flags of the ApplicationSet controller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetParams {
    /// `applicationsetcontroller.policy`: the `applicationsSync` of every set, if one is given.
    pub policy: Option<String>,
    /// `applicationsetcontroller.enable.policy.override`: a set's own `applicationsSync` comes before that;
    /// where no policy is given it always counts.
    pub policy_override: bool,
    /// `applicationsetcontroller.namespaces`: globs of namespaces that may hold sets beside the engine's own.
    pub namespaces: Vec<String>,
    /// `applicationsetcontroller.global.preserved.annotations`: those of Applications that no set takes away.
    pub preserved_annotations: Vec<String>,
    /// `applicationsetcontroller.global.preserved.labels`.
    pub preserved_labels: Vec<String>,
    /// `applicationsetcontroller.requeue.after`: how often repositories are asked again, unless the generator
    /// says.
    pub requeue_after: Option<Duration>,
    /// `applicationsetcontroller.enable.new.git.file.globbing`: patterns of the Git generator's files mean
    /// what they mean in lists of value files, and not what Git takes them for.
    pub new_git_file_globbing: bool,
    /// `reposerver.include.hidden.directories`: patterns of the Git generator's directories mean hidden ones,
    /// too.
    pub include_hidden_directories: bool,
}

impl SetParams {
    /// A set as it counts under these flags: with the policy that is in force, and with all that is to be
    /// preserved.
    pub fn in_force<'a>(&self, set: &'a Value) -> Cow<'a, Value> {
        let own = set.str_at(&["spec", "syncPolicy", "applicationsSync"]).filter(|own| !own.is_empty());
        let policy = self.policy.as_ref().filter(|_| own.is_none() || !self.policy_override);
        let preserved = [("annotations", &self.preserved_annotations), ("labels", &self.preserved_labels)];
        let is_plain = policy.is_none() && preserved.iter().all(|(_, keys)| keys.is_empty());
        if is_plain || !set["spec"].is_object() {
            return Cow::Borrowed(set);
        }
        let mut set = set.clone();
        let spec = &mut set["spec"];
        if let Some(policy) = policy {
            object_in(spec, "syncPolicy")["applicationsSync"] = json!(policy);
        }
        for (field, keys) in preserved.into_iter().filter(|(_, keys)| !keys.is_empty()) {
            let list = &mut object_in(spec, "preservedFields")[field];
            let own = list.as_array().cloned().unwrap_or_default();
            *list = own.into_iter().chain(keys.iter().map(|key| json!(key))).collect();
        }
        Cow::Owned(set)
    }
}

fn object_in<'a>(map: &'a mut Value, field: &str) -> &'a mut Value {
    let inner = &mut map[field];
    if !inner.is_object() {
        *inner = json!({});
    }
    inner
}

pub(super) fn read(reader: &mut Reader<'_>) -> SetParams {
    let policy = reader.text("applicationsetcontroller.policy");
    let known = ["sync", "create-only", "create-update", "create-delete"];
    if let Some(policy) = policy.as_deref().filter(|policy| !known.contains(policy)) {
        let message = format!("{policy:?} is none of {}: no set is carried out", known.join(", "));
        reader.fault("applicationsetcontroller.policy", message);
    }
    let policy_override = reader.flag("applicationsetcontroller.enable.policy.override", policy.is_none());
    let params = SetParams {
        policy_override,
        namespaces: reader.list("applicationsetcontroller.namespaces"),
        preserved_annotations: reader.list("applicationsetcontroller.global.preserved.annotations"),
        preserved_labels: reader.list("applicationsetcontroller.global.preserved.labels"),
        requeue_after: reader.optional_duration("applicationsetcontroller.requeue.after"),
        new_git_file_globbing: reader.flag("applicationsetcontroller.enable.new.git.file.globbing", false),
        include_hidden_directories: reader.flag("reposerver.include.hidden.directories", false),
        policy,
    };
    for fault in params.namespaces.iter().filter_map(|pattern| glob::regex_fault(pattern)) {
        reader.fault("applicationsetcontroller.namespaces", fault);
    }
    params
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::settings::ArgoSettings;

    fn sets(pairs: &[(&str, &str)]) -> SetParams {
        let key = |key: &str| format!("applicationsetcontroller.{key}");
        let map = pairs.iter().map(|(name, value)| (key(name), (*value).to_owned())).collect();
        ArgoSettings::read(&BTreeMap::new(), &map).sets
    }

    fn policy_of(params: &SetParams, own: Option<&str>) -> Value {
        let set = json!({"spec": {"syncPolicy": {"applicationsSync": own}}});
        params.in_force(&set)["spec"]["syncPolicy"]["applicationsSync"].clone()
    }

    #[test]
    fn the_policy_of_the_controller_counts_unless_sets_may_say_otherwise() {
        let bound = sets(&[("policy", "create-only")]);
        assert_eq!(policy_of(&bound, Some("sync")), "create-only");
        assert_eq!(policy_of(&bound, None), "create-only");
        let free = sets(&[("policy", "create-only"), ("enable.policy.override", "true")]);
        assert_eq!(policy_of(&free, Some("sync")), "sync");
        assert_eq!(policy_of(&free, None), "create-only");
        assert_eq!(policy_of(&sets(&[]), Some("create-update")), "create-update");
        assert_eq!(policy_of(&sets(&[("enable.policy.override", "false")]), Some("sync")), "sync");
    }

    #[test]
    fn what_is_preserved_everywhere_is_added_to_what_a_set_preserves() {
        let params = sets(&[("global.preserved.labels", "tier, team"), ("requeue.after", "10m")]);
        assert_eq!(params.requeue_after, Some(Duration::from_secs(600)));
        let set = json!({"spec": {"preservedFields": {"labels": ["own"], "annotations": ["note"]}}});
        let expected = json!({"labels": ["own", "tier", "team"], "annotations": ["note"]});
        assert_eq!(params.in_force(&set)["spec"]["preservedFields"], expected);
        assert_eq!(params.in_force(&json!({"spec": {}}))["spec"]["preservedFields"]["labels"][0], "tier");
    }
}
