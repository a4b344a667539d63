//! Schema of Application.

use serde_json::Value;

use super::schema::*;

/// The schema of the whole kind.
pub(super) fn schema() -> Value {
    root(&[("spec!", spec()), ("status", status()), ("operation", operation())])
}

/// `spec`; ApplicationSets have one in their template.
pub(super) fn spec() -> Value {
    object(&[
        ("destination!", destination()),
        ("project!", string()),
        ("source", source()),
        ("sources", list(source())),
        ("sourceHydrator", hydrator()),
        ("syncPolicy", sync_policy()),
        ("ignoreDifferences", list(ignore_difference())),
        ("info", list(object(&[("name!", string()), ("value!", string())]))),
        ("revisionHistoryLimit", int64()),
    ])
}

pub(super) fn destination() -> Value {
    object(&[("name", string()), ("namespace", string()), ("server", string())])
}

fn ignore_difference() -> Value {
    object(&[
        ("group", string()),
        ("kind!", string()),
        ("name", string()),
        ("namespace", string()),
        ("jsonPointers", strings()),
        ("jqPathExpressions", strings()),
        ("managedFieldsManagers", strings()),
    ])
}

fn sync_policy() -> Value {
    let automated = object(&[
        ("prune", boolean()),
        ("selfHeal", boolean()),
        ("allowEmpty", boolean()),
        ("enabled", boolean()),
    ]);
    let metadata = object(&[("labels", string_map()), ("annotations", string_map())]);
    object(&[
        ("automated", automated),
        ("syncOptions", strings()),
        ("retry", retry()),
        ("managedNamespaceMetadata", metadata),
    ])
}

fn retry() -> Value {
    let backoff = object(&[("duration", string()), ("factor", int64()), ("maxDuration", string())]);
    object(&[("limit", int64()), ("backoff", backoff), ("refresh", boolean())])
}

fn hydrator() -> Value {
    let sync = object(&[("targetBranch!", string()), ("path!", string()), ("repoURL", string())]);
    object(&[
        ("drySource!", dry_source()),
        ("syncSource!", sync),
        ("hydrateTo", object(&[("targetBranch!", string())])),
    ])
}

fn dry_source() -> Value {
    object(&[
        ("repoURL!", string()),
        ("path!", string()),
        ("targetRevision!", string()),
        ("helm", helm()),
        ("kustomize", kustomize()),
        ("directory", directory()),
        ("plugin", plugin()),
    ])
}

fn source() -> Value {
    object(&[
        ("repoURL!", string()),
        ("path", string()),
        ("targetRevision", string()),
        ("chart", string()),
        ("ref", string()),
        ("name", string()),
        ("tagPrefix", string()),
        ("helm", helm()),
        ("kustomize", kustomize()),
        ("directory", directory()),
        ("plugin", plugin()),
    ])
}

fn helm() -> Value {
    let parameter = object(&[("name", string()), ("value", string()), ("forceString", boolean())]);
    object(&[
        ("valueFiles", strings()),
        ("parameters", list(parameter)),
        ("fileParameters", list(object(&[("name", string()), ("path", string())]))),
        ("releaseName", string()),
        ("values", string()),
        ("valuesObject", any_object()),
        ("version", string()),
        ("passCredentials", boolean()),
        ("ignoreMissingValueFiles", boolean()),
        ("skipCrds", boolean()),
        ("skipTests", boolean()),
        ("skipSchemaValidation", boolean()),
        ("namespace", string()),
        ("kubeVersion", string()),
        ("apiVersions", strings()),
    ])
}

fn kustomize() -> Value {
    let target = object(&[
        ("group", string()),
        ("version", string()),
        ("kind", string()),
        ("name", string()),
        ("namespace", string()),
        ("labelSelector", string()),
        ("annotationSelector", string()),
    ]);
    let patch =
        object(&[("path", string()), ("patch", string()), ("target", target), ("options", map(boolean()))]);
    object(&[
        ("namePrefix", string()),
        ("nameSuffix", string()),
        ("images", strings()),
        ("replicas", list(object(&[("name!", string()), ("count!", int_or_string())]))),
        ("commonLabels", string_map()),
        ("commonAnnotations", string_map()),
        ("forceCommonLabels", boolean()),
        ("forceCommonAnnotations", boolean()),
        ("commonAnnotationsEnvsubst", boolean()),
        ("labelWithoutSelector", boolean()),
        ("labelIncludeTemplates", boolean()),
        ("namespace", string()),
        ("patches", list(patch)),
        ("components", strings()),
        ("ignoreMissingComponents", boolean()),
        ("version", string()),
        ("kubeVersion", string()),
        ("apiVersions", strings()),
    ])
}

fn directory() -> Value {
    let variable = || list(object(&[("name!", string()), ("value!", string()), ("code", boolean())]));
    object(&[
        ("recurse", boolean()),
        ("include", string()),
        ("exclude", string()),
        ("disableExtensionFilter", boolean()),
        ("jsonnet", object(&[("extVars", variable()), ("tlas", variable()), ("libs", strings())])),
    ])
}

fn plugin() -> Value {
    let parameter =
        object(&[("name", string()), ("string", string()), ("map", string_map()), ("array", strings())]);
    object(&[
        ("name", string()),
        ("env", list(object(&[("name!", string()), ("value!", string())]))),
        ("parameters", list(parameter)),
    ])
}

fn operation() -> Value {
    let strategy = || object(&[("force", boolean())]);
    let resource =
        object(&[("group", string()), ("kind!", string()), ("name!", string()), ("namespace", string())]);
    let sync = object(&[
        ("revision", string()),
        ("revisions", strings()),
        ("prune", boolean()),
        ("dryRun", boolean()),
        ("syncStrategy", object(&[("apply", strategy()), ("hook", strategy())])),
        ("resources", list(resource)),
        ("source", source()),
        ("sources", list(source())),
        ("manifests", strings()),
        ("syncOptions", strings()),
        ("autoHealAttemptsCount", int64()),
    ]);
    object(&[
        ("sync", sync),
        ("initiatedBy", object(&[("username", string()), ("automated", boolean())])),
        ("info", list(object(&[("name!", string()), ("value!", string())]))),
        ("retry", retry()),
    ])
}

/// The status is the engine's to write; what later versions add is kept.
fn status() -> Value {
    let condition = object(&[("type!", string()), ("message!", string()), ("lastTransitionTime", time())]);
    let sync = open_object(&[
        ("status!", string()),
        ("revision", string()),
        ("revisions", strings()),
        ("comparedTo", any_object()),
    ]);
    open_object(&[
        ("sync", sync),
        ("health", open_object(&[("status", string()), ("lastTransitionTime", time())])),
        ("resources", list(any_object())),
        ("history", list(any_object())),
        ("conditions", list(condition)),
        ("reconciledAt", time()),
        ("observedAt", time()),
        ("operationState", any_object()),
        ("sourceType", string()),
        ("sourceTypes", strings()),
        ("resourceHealthSource", string()),
        ("controllerNamespace", string()),
        ("sourceHydrator", any_object()),
        ("summary", any_object()),
        ("tiphys", any_object()),
    ])
}
