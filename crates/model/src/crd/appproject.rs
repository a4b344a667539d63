//! Schema of AppProject.

use serde_json::Value;

use super::{application, schema::*};

/// The schema of the whole kind.
pub(super) fn schema() -> Value {
    root(&[("spec!", spec()), ("status", any_object())])
}

fn spec() -> Value {
    let kind = || list(object(&[("group!", string()), ("kind!", string()), ("name", string())]));
    let account =
        object(&[("server!", string()), ("namespace", string()), ("defaultServiceAccount!", string())]);
    open_object(&[
        ("sourceRepos", strings()),
        ("destinations", list(application::destination())),
        ("description", string()),
        ("roles", list(role())),
        ("clusterResourceWhitelist", kind()),
        ("clusterResourceBlacklist", kind()),
        ("namespaceResourceWhitelist", kind()),
        ("namespaceResourceBlacklist", kind()),
        ("orphanedResources", orphaned()),
        ("syncWindows", list(window())),
        ("signatureKeys", list(object(&[("keyID!", string())]))),
        ("sourceNamespaces", strings()),
        ("permitOnlyProjectScopedClusters", boolean()),
        ("destinationServiceAccounts", list(account)),
    ])
}

fn role() -> Value {
    let token = object(&[("iat!", int64()), ("exp", int64()), ("id", string())]);
    object(&[
        ("name!", string()),
        ("description", string()),
        ("policies", strings()),
        ("groups", strings()),
        ("jwtTokens", list(token)),
    ])
}

fn orphaned() -> Value {
    let ignored = object(&[("group", string()), ("kind", string()), ("name", string())]);
    object(&[("warn", boolean()), ("ignore", list(ignored))])
}

fn window() -> Value {
    object(&[
        ("kind", string()),
        ("schedule", string()),
        ("duration", string()),
        ("applications", strings()),
        ("namespaces", strings()),
        ("clusters", strings()),
        ("manualSync", boolean()),
        ("timeZone", string()),
        ("andOperator", boolean()),
        ("syncOverrun", boolean()),
        ("description", string()),
    ])
}
