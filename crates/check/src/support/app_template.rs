//! What the chart app-template makes of its values.

use std::collections::BTreeSet;

use tiphys_value::{ObjectExt, Value};

/// The major version of the chart; `None` if that is not written.
pub(crate) fn major(version: &str) -> Option<u64> {
    version.trim_start_matches('v').split('.').next()?.parse().ok()
}

/// The parts under a name among the values that are not switched off.
pub(crate) fn enabled<'v>(values: &'v Value, name: &str) -> Vec<(&'v str, &'v Value)> {
    let parts = values.get(name).and_then(Value::as_object).into_iter().flatten();
    let parts = parts.map(|(name, part)| (name.as_str(), part));
    parts.filter(|(_, part)| part.is_object() && part.get("enabled") != Some(&Value::Bool(false))).collect()
}

/// The names of the Services of a release; `None` where something else decides on them than the release's
/// name and the names of the services among the values.
pub(crate) fn service_names(release: &str, values: &Value, version: &str) -> Option<BTreeSet<String>> {
    let major = major(version)?;
    let is_open = ["fullnameOverride", "nameOverride"]
        .iter()
        .any(|key| values.get(*key).is_some() || values.at(&["global", key]).is_some());
    let always = values.at(&["global", "alwaysAppendIdentifierToResourceName"]).is_some();
    // Before version 2 the names of services were made otherwise.
    if major < 2 || is_open || always || release.contains('$') {
        return None;
    }
    let services = enabled(values, "service");
    let renames = ["forceRename", "nameOverride", "prefix", "suffix"];
    if services.iter().any(|(_, service)| renames.iter().any(|key| service.get(*key).is_some())) {
        return None;
    }
    let mut names: BTreeSet<String> = BTreeSet::new();
    // Since version 4 each of several has its own ending.
    if services.len() == 1 || major < 4 && !services.is_empty() {
        names.insert(release.to_owned());
    }
    // The only one is called as the release; of several, old versions call the first so, too.
    if services.len() > 1 {
        // One that ends so already is not given the ending again.
        let long =
            services.iter().filter(|(name, _)| release != *name && !release.ends_with(&format!("-{name}")));
        names.extend(long.map(|(name, _)| format!("{release}-{name}").to_lowercase()));
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use tiphys_value::json;

    use super::service_names;

    #[test]
    fn one_service_is_called_as_its_release() {
        let of = |values, version| service_names("web", &values, version);
        let one = json!({"service": {"app": {}}});
        assert_eq!(of(one.clone(), "3.5.1"), Some(["web".to_owned()].into()));
        assert_eq!(of(one, "1.5.1"), None);
        let two = json!({"service": {"app": {}, "db": {}, "old": {"enabled": false}}});
        assert_eq!(of(two.clone(), "3.0.0"), Some(["web", "web-app", "web-db"].map(str::to_owned).into()));
        assert_eq!(of(two, "4.0.0"), Some(["web-app", "web-db"].map(str::to_owned).into()));
        assert_eq!(of(json!({"service": {"app": {"suffix": "x"}}}), "4.0.0"), None);
        assert_eq!(of(json!({"fullnameOverride": "x"}), "4.0.0"), None);
    }
}
