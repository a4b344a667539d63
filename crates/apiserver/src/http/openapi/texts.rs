//! What the fields are for that every object has.

/// `apiVersion`.
pub(super) const API_VERSION: &str =
    "APIVersion defines by which group and version's schema the object is written.";
/// `kind`.
pub(super) const KIND: &str = "Kind says what the object is, such as Deployment; it never changes.";
/// `metadata` of an object.
pub(super) const METADATA: &str =
    "Standard object's metadata: what it is called, to whom it belongs, and what is noted about it.";
/// `metadata` of a list.
pub(super) const LIST_METADATA: &str = "Of which state of the cluster the list is, and how it goes on.";

/// Fields of metadata, and what they are for.
const METADATA_FIELDS: [(&str, &str); 15] = [
    (
        "annotations",
        "Annotations are notes of people and programs under names of their own; nothing is selected by them.",
    ),
    (
        "creationTimestamp",
        "CreationTimestamp is a timestamp: when the server made the object. Set by the server.",
    ),
    ("deletionGracePeriodSeconds", "How many seconds the object was given to end. Set by the server."),
    (
        "deletionTimestamp",
        "When the object is to be gone: it has been deleted, and something still holds it. Set by the server.",
    ),
    ("finalizers", "Who must be done before a deleted object goes; each takes its own entry away."),
    ("generateName", "How the name begins if the server is to make one up."),
    ("generation", "Counts the changes of what is wanted. Set by the server."),
    ("labels", "Labels are names and values by which objects are found and grouped, such as by selectors."),
    ("managedFields", "Which field was set by whom; kept for server-side apply."),
    ("name", "What the object is called: unique among its kind in its namespace."),
    ("namespace", "The namespace in which the object lives; empty if its kind has none."),
    ("ownerReferences", "To which objects this one belongs; it goes when all of them are gone."),
    ("resourceVersion", "Of which state of the object this is; a write that names another one is refused."),
    ("selfLink", "No longer set."),
    ("uid", "Distinguishes the object from all others that ever had its name. Set by the server."),
];

/// What a field of a named type is for, if it is one that every object has.
pub(super) fn of(type_name: &str, has_kind: bool, field: &str) -> Option<&'static str> {
    if type_name.ends_with(".meta.v1.ObjectMeta") {
        return METADATA_FIELDS.iter().find(|(name, _)| *name == field).map(|(_, text)| *text);
    }
    match field {
        _ if !has_kind => None,
        "apiVersion" => Some(API_VERSION),
        "kind" => Some(KIND),
        "metadata" if type_name.ends_with("List") => Some(LIST_METADATA),
        "metadata" => Some(METADATA),
        "spec" => Some("What the object is to be."),
        "status" => Some("What the object was last seen to be. Set by the system."),
        _ => None,
    }
}
