//! What can be particular of a kind.

use jiff::Timestamp;
use tiphys_schema::ErrorList;
use tiphys_value::{Value, json};

use crate::auth::User;

/// What `metadata.generation` counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generation {
    /// There is none.
    None,
    /// It is 1 and stays so.
    Once,
    /// Changes of everything but metadata and status.
    Spec,
    /// The same, and changes of a part of the metadata.
    SpecAnd(&'static str),
}

/// What a name has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameRule {
    /// A DNS subdomain.
    Subdomain,
    /// A DNS label.
    Label,
    /// Whatever the path of a URL can hold.
    PathSegment,
    /// An IP address in its canonical form.
    Address,
}

/// What a write of the status may change beside it, and what it owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StatusWrite {
    /// The parts of `metadata` that it may change.
    pub metadata: &'static [&'static str],
    /// The fields that it does not own.
    pub ignored: &'static [&'static str],
}

impl StatusWrite {
    /// Annotations, labels and finalizers.
    pub(super) const WITH_METADATA: Self =
        Self { metadata: &["managedFields", "annotations", "labels", "finalizers"], ignored: &["spec"] };
    /// Nothing of the metadata.
    pub(super) const ALONE: Self = Self { metadata: &["managedFields"], ignored: &["spec", "metadata"] };
}

/// What is known of a kind. Functions get the object, and where there is one the stored one.
#[derive(Debug)]
pub(crate) struct Kind {
    /// API group; empty for the core one.
    pub group: &'static str,
    /// The name in paths.
    pub plural: &'static str,
    /// What names have to be.
    pub name: NameRule,
    /// Whether a finalizer without a domain may have any name.
    pub has_free_finalizers: bool,
    /// What `metadata.generation` counts.
    pub generation: Generation,
    /// The status of a new object, where the kind has one.
    pub first_status: fn() -> Value,
    /// Whether whoever creates an object may say its status.
    pub says_own_status: bool,
    /// What a write of the status may do.
    pub status_write: StatusWrite,
    /// The fields that a write through a subresource, or through none, does not own; `None` for the usual
    /// ones.
    pub unowned: fn(Option<&str>) -> Option<&'static [&'static str]>,
    /// The fields beside name and namespace by which it can be selected.
    pub selectable: &'static [&'static str],
    /// Under what a real server keeps the objects, as its messages show; `None` for the plural.
    pub stored_as: Option<&'static str>,
    /// Whether an update has to name the version that it replaces.
    pub is_updated_by_version: bool,
    /// Whether an update of what is not there creates it.
    pub is_created_by_update: bool,
    /// Whether its deletion answers with the object even when it is gone at once.
    pub is_returned_when_deleted: bool,
    /// Whether its dependents stay unless a request says otherwise.
    pub orphans_dependents: bool,
    /// Whether it holds other objects, which go before it does.
    pub holds_objects: bool,
    /// Whether its last state says that it was being deleted, even when it goes at once.
    pub is_marked_before_gone: bool,
    /// The finalizer that keeps it while it is in use.
    pub protection: Option<&'static str>,
    /// What every answer about one of its versions warns of (deprecation guide of Kubernetes).
    pub deprecation: fn(&str) -> Option<&'static str>,
    /// What a deletion warns of that does not say what becomes of dependents.
    pub deletion_warning: Option<&'static str>,
    /// Where the template of its pods is; empty for the object itself.
    pub pod_template: Option<&'static [&'static str]>,
    /// What the server fills in before the owners of fields are recorded. Says whether `metadata.labels` are
    /// those of the template.
    pub before_record: fn(&mut Value) -> bool,
    /// What the server sets in a new object.
    pub on_create: fn(&mut Value, Timestamp),
    /// What it sets of who asks.
    pub on_request: fn(&mut Value, &User),
    /// What follows from what admission made of a new object.
    pub after_admission: fn(&mut Value),
    /// What an update leaves as it is.
    pub on_update: fn(&mut Value, &Value),
    /// What is counted of changes; the stored object is the second one.
    pub count: fn(&mut Value, Option<&Value>),
    /// What whoever replaces an object is taken to have written. Says whether that was missing.
    pub assume: fn(&mut Value) -> bool,
    /// Takes away what was assumed.
    pub forget_assumed: fn(&mut Value),
    /// What deletion changes in the object.
    pub on_delete: fn(&mut Value),
    /// How long an object gets to end, in seconds, if the request does not say it; `None` if it gets no time.
    pub grace: fn(&Value) -> Option<i64>,
    /// Whether something beside finalizers holds an object that is being deleted.
    pub is_held: fn(&Value) -> bool,
    /// Why an object of this name may not be deleted.
    pub undeletable: fn(&str) -> Option<&'static str>,
    /// Validation in place of the schema's, by subresource; `None` goes on with the usual one.
    pub validate: fn(Option<&str>, &Value, Option<&Value>) -> Option<ErrorList>,
}

/// A kind of which nothing is particular.
pub(super) const PLAIN: Kind = Kind {
    group: "",
    plural: "",
    name: NameRule::Subdomain,
    has_free_finalizers: false,
    generation: Generation::None,
    first_status: || json!({}),
    says_own_status: false,
    status_write: StatusWrite::WITH_METADATA,
    unowned: |_| None,
    selectable: &[],
    stored_as: None,
    is_updated_by_version: false,
    is_created_by_update: false,
    is_returned_when_deleted: false,
    orphans_dependents: false,
    holds_objects: false,
    is_marked_before_gone: false,
    protection: None,
    deprecation: |_| None,
    deletion_warning: None,
    pod_template: None,
    before_record: |_| false,
    on_create: |_, _| {},
    on_request: |_, _| {},
    after_admission: |_| {},
    on_update: |_, _| {},
    count: |_, _| {},
    assume: |_| false,
    forget_assumed: |_| {},
    on_delete: |_| {},
    grace: |_| None,
    is_held: |_| false,
    undeletable: |_| None,
    validate: |_, _, _| None,
};
