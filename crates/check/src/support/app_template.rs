//! What the chart app-template makes of its values.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_graph::{Object, Survey};
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
    if services.iter().any(|(_, service)| is_renamed(service)) {
        return None;
    }
    let mut names: BTreeSet<String> = BTreeSet::new();
    // Since version 4 each of several has its own ending, but for one that is called as the release is.
    let is_called_so = |(name, _): &(&str, &Value)| ends_so(release, name);
    if services.len() == 1 || services.iter().any(is_called_so) || major < 4 && !services.is_empty() {
        names.insert(release.to_owned());
    }
    // The only one is called as the release; of several, old versions call the first so, too.
    if services.len() > 1 {
        let long = services.iter().filter(|(name, _)| !ends_so(release, name));
        names.extend(long.map(|(name, _)| format!("{release}-{name}").to_lowercase()));
    }
    Some(names)
}

/// The names of what a release makes under a key of its values; `None` where something else decides on them,
/// and before version 4, which made them otherwise. `is_made` says which of the parts it makes.
pub(crate) fn part_names(
    release: &str,
    values: &Value,
    version: &str,
    key: &str,
    is_made: &dyn Fn(&Value) -> bool,
) -> Option<BTreeSet<String>> {
    let is_open = ["fullnameOverride", "nameOverride", "alwaysAppendIdentifierToResourceName"]
        .iter()
        .any(|key| values.get(*key).is_some() || values.at(&["global", key]).is_some());
    let parts: Vec<(&str, &Value)> =
        enabled(values, key).into_iter().filter(|(_, part)| is_made(part)).collect();
    let is_renamed = parts.iter().any(|(_, part)| is_renamed(part));
    if major(version)? < 4 || is_open || is_renamed || release.contains('$') {
        return None;
    }
    let of_several = |(part, _): &(&str, &Value)| match ends_so(release, part) {
        true => release.to_owned(),
        false => format!("{release}-{part}"),
    };
    Some(match parts.as_slice() {
        [_] => [release.to_owned()].into(),
        parts => parts.iter().map(of_several).collect(),
    })
}

/// Whether a part says how it is called.
fn is_renamed(part: &Value) -> bool {
    ["forceRename", "nameOverride", "prefix", "suffix"].iter().any(|key| part.get(*key).is_some())
}

/// Whether a release ends as a part is called: it is not given the ending again.
fn ends_so(release: &str, part: &str) -> bool {
    release == part || release.ends_with(&format!("-{part}"))
}

/// Whether a volume among the values makes a claim.
pub(crate) fn makes_claim(volume: &Value) -> bool {
    let of_type = volume.get("type").and_then(Value::as_str).unwrap_or_default();
    let is_claim = matches!(of_type, "" | "persistentVolumeClaim" | "pvc");
    is_claim && volume.get("existingClaim").is_none_or(Value::is_null)
}

/// The versions of the artifacts that are called app-template, by the name and namespace of their source.
pub(crate) fn oci_versions(survey: &Survey) -> BTreeMap<(&str, &str), &str> {
    let sources = survey.objects.iter().filter(|it| it.key.kind == "OCIRepository");
    let of_chart = sources
        .filter(|it| it.value().str_at(&["spec", "url"]).is_some_and(|url| url.ends_with("/app-template")));
    of_chart
        .filter_map(|it| {
            let key = (it.key.namespace.as_str(), it.key.name.as_str());
            Some((key, it.value().str_at(&["spec", "ref", "tag"])?))
        })
        .collect()
}

/// The version of the chart that a release takes, if it takes this one, and all of its values are seen.
pub(crate) fn version_of<'a>(
    release: &'a Object,
    versions: &BTreeMap<(&str, &str), &'a str>,
) -> Option<&'a str> {
    let spec = &release.value()["spec"];
    if spec.get("valuesFrom").is_some()
        || spec.get("postRenderers").is_some()
        || spec.get("targetNamespace").is_some()
    {
        return None;
    }
    match spec.at(&["chart", "spec"]) {
        Some(chart) if chart["chart"] == "app-template" => chart.str_at(&["version"]),
        Some(_) => None,
        None => {
            let reference = spec.get("chartRef")?;
            let namespace = reference.str_at(&["namespace"]).unwrap_or(&release.key.namespace);
            versions.get(&(namespace, reference.str_at(&["name"])?)).copied()
        }
    }
}

/// The name of a release.
pub(crate) fn release_name(release: &Object) -> &str {
    release.value().str_at(&["spec", "releaseName"]).unwrap_or(&release.key.name)
}

#[cfg(test)]
mod tests {
    use tiphys_value::json;

    use super::{makes_claim, part_names, service_names};

    #[test]
    fn what_there_is_one_of_is_called_as_its_release() {
        let of = |values, version| part_names("web", &values, version, "persistence", &makes_claim);
        let one = json!({"persistence": {"data": {"size": "1Gi"}, "tmp": {"type": "emptyDir"}}});
        assert_eq!(of(one.clone(), "4.0.1"), Some(["web".to_owned()].into()));
        assert_eq!(of(one, "3.7.0"), None);
        let two = json!({"persistence": {"data": {}, "logs": {}, "old": {"existingClaim": "x"}}});
        assert_eq!(of(two, "4.0.1"), Some(["web-data", "web-logs"].map(str::to_owned).into()));
        assert_eq!(of(json!({"persistence": {"data": {"suffix": "x"}}}), "4.0.1"), None);
    }

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
