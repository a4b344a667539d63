//! Which Services a repository brings, and of which it is sure that nobody does.

use std::collections::BTreeSet;

use tiphys_graph::Outcome;
use tiphys_value::{ObjectExt, ResourceKey, Value};

use crate::up::plan::Plan;

/// Whether every Application renders, so that nothing comes from what was not seen.
pub(in crate::rehearse) fn is_whole(plan: &Plan) -> bool {
    let is_seen = |outcome: &Outcome| matches!(outcome, Outcome::Rendered | Outcome::Duplicate(_));
    plan.survey.apps.iter().all(|app| is_seen(&app.outcome))
}

/// The Services of a repository, and what else may bring some.
pub(in crate::rehearse) struct KnownServices {
    services: BTreeSet<ResourceKey>,
    /// Namespace and name of custom resources: operators make Services whose names begin with theirs.
    custom: BTreeSet<(String, String)>,
    is_whole: bool,
}

impl KnownServices {
    pub(in crate::rehearse) fn from_plan(plan: &Plan) -> Self {
        let is_custom = |object: &&Value| {
            let group = object.gvk().group;
            group.contains('.') && !group.ends_with(".k8s.io")
        };
        let objects = || plan.rendered().map(|object| &object.value);
        let services = objects().filter(|object| object.kind() == "Service");
        let custom = objects().filter(is_custom);
        Self {
            services: services.map(ObjectExt::resource_key).collect(),
            custom: custom.map(|it| (it.namespace().to_owned(), it.name().to_owned())).collect(),
            is_whole: is_whole(plan),
        }
    }

    /// Whether the repository brings a Service.
    pub(in crate::rehearse) fn has(&self, namespace: &str, name: &str) -> bool {
        self.services.contains(&ResourceKey::new("", "Service", namespace, name))
    }

    /// Whether it brings any in a namespace.
    pub(in crate::rehearse) fn has_some_in(&self, namespace: &str) -> bool {
        self.services.iter().any(|it| it.namespace == namespace)
    }

    /// Whether nobody brings a Service: all that the repository brings is known, and no operator makes it.
    pub(in crate::rehearse) fn is_surely_absent(&self, namespace: &str, name: &str) -> bool {
        let may_be_made =
            self.custom.iter().any(|(at, prefix)| at == namespace && name.starts_with(prefix.as_str()));
        self.is_whole && !may_be_made && !self.has(namespace, name)
    }
}
