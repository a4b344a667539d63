//! Schema of ApplicationSet.

use serde_json::Value;

use super::{application, schema::*};

/// The schema of the whole kind.
pub(super) fn schema() -> Value {
    root(&[("spec!", spec()), ("status", any_object())])
}

fn spec() -> Value {
    let ignored =
        object(&[("name", string()), ("jsonPointers", strings()), ("jqPathExpressions", strings())]);
    let policies = one_of(&["create-only", "create-update", "create-delete", "sync"]);
    object(&[
        ("goTemplate", boolean()),
        ("goTemplateOptions", strings()),
        ("generators!", list(generator(Depth::Top))),
        ("template!", template()),
        ("templatePatch", string()),
        ("syncPolicy", object(&[("preserveResourcesOnDeletion", boolean()), ("applicationsSync", policies)])),
        ("strategy", strategy()),
        ("preservedFields", object(&[("annotations", strings()), ("labels", strings())])),
        ("ignoreApplicationDifferences", list(ignored)),
        ("applyNestedSelectors", boolean()),
    ])
}

fn strategy() -> Value {
    let expression = object(&[("key", string()), ("operator", string()), ("values", strings())]);
    let step = object(&[("matchExpressions", list(expression)), ("maxUpdate", int_or_string())]);
    object(&[
        ("type", string()),
        ("rollingSync", object(&[("steps", list(step))])),
        ("deletionOrder", string()),
    ])
}

fn template() -> Value {
    let metadata = object(&[
        ("name", string()),
        ("namespace", string()),
        ("labels", string_map()),
        ("annotations", string_map()),
        ("finalizers", strings()),
    ]);
    object(&[("metadata!", metadata), ("spec!", application::spec())])
}

/// Combinations nest: at the top their children are described, below that they are kept as they are.
#[derive(Clone, Copy, PartialEq)]
enum Depth {
    Top,
    Nested,
}

/// A template that overrides parts of the set's need not be complete.
fn generator(depth: Depth) -> Value {
    let part = any_object;
    let children = || if depth == Depth::Top { list(generator(Depth::Nested)) } else { list(any_object()) };
    let list_of = object(&[("elements", list(anything())), ("elementsYaml", string()), ("template", part())]);
    let clusters = object(&[
        ("selector", label_selector()),
        ("values", string_map()),
        ("flatList", boolean()),
        ("template", part()),
    ]);
    let decision = object(&[
        ("configMapRef!", string()),
        ("name", string()),
        ("requeueAfterSeconds", int64()),
        ("labelSelector", label_selector()),
        ("values", string_map()),
        ("template", part()),
    ]);
    let plugin = object(&[
        ("configMapRef!", object(&[("name!", string())])),
        ("input", object(&[("parameters", map(anything()))])),
        ("requeueAfterSeconds", int64()),
        ("values", string_map()),
        ("template", part()),
    ]);
    object(&[
        ("list", list_of),
        ("clusters", clusters),
        ("git", git()),
        ("scmProvider", any_object()),
        ("pullRequest", any_object()),
        ("clusterDecisionResource", decision),
        ("plugin", plugin),
        ("matrix", object(&[("generators!", children()), ("template", part())])),
        ("merge", object(&[("generators!", children()), ("mergeKeys!", strings()), ("template", part())])),
        ("selector", label_selector()),
    ])
}

fn git() -> Value {
    let path = || list(object(&[("path!", string()), ("exclude", boolean())]));
    object(&[
        ("repoURL!", string()),
        ("revision!", string()),
        ("directories", path()),
        ("files", path()),
        ("requeueAfterSeconds", int64()),
        ("pathParamPrefix", string()),
        ("values", string_map()),
        ("template", any_object()),
    ])
}
