//! The built-in resources: facts of Kubernetes 1.36's discovery documents, one resource a line.

use std::sync::{Arc, LazyLock};

use tiphys_value::GroupVersionKind;

use super::{Resource, Subresource};
use crate::{KubernetesVersion, kinds, store::ResourceId};

/// `group version plural kind scope singular short-names categories verbs`; an indented line is a
/// subresource of the line above: `/name group version kind verbs`. `-` stands for nothing.
const TABLE: &str = include_str!("builtin.txt");

static RESOURCES: LazyLock<Vec<Arc<Resource>>> =
    LazyLock::new(|| parse(TABLE).into_iter().map(Arc::new).collect());

/// Which minor versions serve what.
const SINCE: &str = include_str!("since.txt");

/// Which minor versions still serve what.
const UNTIL: &str = include_str!("until.txt");

/// The built-in resources of a Kubernetes minor version, in discovery order.
pub(super) fn resources(version: KubernetesVersion) -> Vec<Arc<Resource>> {
    let mut all = present(version);
    for line in UNTIL.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        let last: u16 = words.next().and_then(|minor| minor.parse().ok()).unwrap_or(0);
        let (Some(group), Some(former), Some(plural)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        if last < version.minor() {
            continue;
        }
        let of = |resource: &Arc<Resource>| resource.group() == group && resource.plural == plural;
        let Some(mut own) = all.iter().find(|resource| of(resource)).map(|found| found.built_in_copy())
        else {
            continue;
        };
        own.gvk.version = former.into();
        own.subresources.iter_mut().for_each(|sub| sub.gvk.version = former.into());
        // Behind the rest of its group, whose newest version is the preferred one.
        let end = all.iter().rposition(|resource| resource.group() == group).map_or(all.len(), |at| at + 1);
        all.insert(end, Arc::new(own));
    }
    all
}

/// The resources of the table that a minor version has.
fn present(version: KubernetesVersion) -> Vec<Arc<Resource>> {
    let later: Vec<(&str, &str)> = SINCE.lines().filter_map(|line| newer_than(line, version)).collect();
    if later.is_empty() {
        return RESOURCES.clone();
    }
    let is_later = |group: &str, name: &str| {
        let group = if group.is_empty() { "core" } else { group };
        later.contains(&(group, name))
    };
    let served = RESOURCES.iter().filter(|resource| !is_later(resource.group(), &resource.plural));
    let trimmed = served.map(|resource| {
        let path = |sub: &Subresource| format!("{}/{}", resource.plural, sub.name);
        if !resource.subresources.iter().any(|sub| is_later(resource.group(), &path(sub))) {
            return Arc::clone(resource);
        }
        let mut own = resource.built_in_copy();
        own.subresources.retain(|sub| !is_later(resource.group(), &path(sub)));
        Arc::new(own)
    });
    trimmed.collect()
}

/// Group and name of a line about something that comes after a version.
fn newer_than(line: &str, version: KubernetesVersion) -> Option<(&str, &str)> {
    let mut words = line.split_whitespace();
    let minor: u16 = words.next()?.parse().ok()?;
    (minor > version.minor()).then_some((words.next()?, words.next()?))
}

fn parse(table: &str) -> Vec<Resource> {
    let mut resources: Vec<Resource> = Vec::new();
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [name, group, version, kind, verbs] => {
                if let (Some(parent), Some(name)) = (resources.last_mut(), name.strip_prefix('/')) {
                    let version = if *version == "-" { parent.gvk.version.as_str() } else { version };
                    let group = if *version != parent.gvk.version || *group != "-" {
                        absent(group)
                    } else {
                        &parent.gvk.group
                    };
                    let gvk = GroupVersionKind::new(group, version, *kind);
                    parent.subresources.push(Subresource { name: name.into(), gvk, verbs: list(verbs) });
                }
            }
            [group, version, plural, kind, scope, singular, short, categories, verbs] => {
                let group = if *group == "core" { "" } else { group };
                resources.push(Resource {
                    id: storage_id(group, plural),
                    gvk: GroupVersionKind::new(group, *version, *kind),
                    plural: (*plural).into(),
                    singular: (*singular).into(),
                    list_kind: format!("{kind}List"),
                    short_names: list(short),
                    categories: list(categories),
                    namespaced: *scope == "N",
                    verbs: list(verbs),
                    subresources: Vec::new(),
                    storage_version: if *plural == "horizontalpodautoscalers" { "v2" } else { version }
                        .into(),
                    kind: kinds::built_in(group, plural),
                    custom: None,
                });
            }
            _ => {}
        }
    }
    resources
}

/// Events are one resource in two groups.
fn storage_id(group: &str, plural: &str) -> ResourceId {
    match (group, plural) {
        ("events.k8s.io", "events") => ResourceId::new("", "events"),
        _ => ResourceId::new(group, plural),
    }
}

fn absent(word: &str) -> &str {
    if word == "-" { "" } else { word }
}

fn list(word: &str) -> Vec<String> {
    absent(word).split(',').filter(|w| !w.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_line_of_the_table() {
        let lines = TABLE.lines().filter(|line| !line.starts_with('#')).count();
        let read: usize =
            resources(KubernetesVersion::default()).iter().map(|r| 1 + r.subresources.len()).sum();
        assert_eq!(read, lines);
    }

    #[test]
    fn older_versions_serve_less() {
        let of = |text: &str| resources(text.parse().unwrap());
        let has = |version: &str, plural: &str| of(version).iter().any(|r| r.plural == plural);
        assert!(has("1.34", "resourceclaims") && !has("1.33", "resourceclaims"));
        assert!(has("1.33", "servicecidrs") && !has("1.30", "servicecidrs"));
        let pods = |version: &str| {
            of(version).iter().find(|r| r.plural == "pods").unwrap().subresource("resize").is_some()
        };
        assert!(pods("1.33") && !pods("1.32"));
        // Every line names something that the newest version serves.
        let named = SINCE.lines().filter(|line| !line.starts_with('#')).count();
        let count = |resources: Vec<Arc<Resource>>| -> usize {
            resources.iter().map(|r| 1 + r.subresources.len()).sum()
        };
        assert!(count(of("1.36")) - count(present("1.30".parse().unwrap())) >= named);
        let flow = |version: &str| {
            let all = of(version);
            let versions = all.iter().filter(|r| r.plural == "flowschemas").map(|r| r.gvk.version.clone());
            versions.collect::<Vec<_>>()
        };
        assert_eq!(
            (flow("1.31"), flow("1.32")),
            (vec!["v1".into(), "v1beta3".into()], vec!["v1".to_owned()])
        );
    }

    #[test]
    fn subresources_have_their_own_kinds() {
        let all = resources(KubernetesVersion::default());
        let pods = all.iter().find(|r| r.plural == "pods").unwrap();
        let of = |name: &str| pods.subresource(name).unwrap().gvk.to_string();
        assert_eq!(of("eviction"), "policy/v1, Kind=Eviction");
        assert_eq!(of("status"), "/v1, Kind=Pod");
    }
}
