//! `index.yaml` of a chart repository.

use std::collections::BTreeMap;

use tiphys_gocompat::semver::{Constraints, Version};
use tiphys_yaml::field_text;

/// One version of a chart in an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    pub version: String,
    pub urls: Vec<String>,
    /// SHA-256 of the archive in hexadecimal; empty if the index does not say.
    pub digest: String,
}

/// The charts of a repository, newest version first.
#[derive(Debug)]
pub(crate) struct Index {
    charts: BTreeMap<String, Vec<IndexEntry>>,
}

impl Index {
    /// Reads an index as Helm does: entries without valid version are left out.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let value = tiphys_yaml::from_yaml_for_fields(text).map_err(|e| e.to_string())?;
        if value.get("apiVersion").and_then(|v| v.as_str()).is_none_or(str::is_empty) {
            return Err("no API version specified".to_owned());
        }
        let mut charts = BTreeMap::new();
        let entries = value.get("entries").and_then(|v| v.as_object());
        for (name, versions) in entries.into_iter().flatten() {
            let mut found: Vec<(Version, IndexEntry)> =
                versions.as_array().into_iter().flatten().filter_map(read_entry).collect();
            found.sort_by(|a, b| b.0.cmp(&a.0));
            charts.insert(name.clone(), found.into_iter().map(|(_, entry)| entry).collect());
        }
        Ok(Self { charts })
    }

    /// The entry for an exact version, else the newest that satisfies a constraint; an empty version
    /// means the newest release. Errors say what there is instead.
    pub(super) fn find(&self, name: &str, version: &str) -> Result<&IndexEntry, String> {
        let Some(entries) = self.charts.get(name) else {
            return Err(format!("; it has no chart of that name{}", self.similar(name)));
        };
        if let Some(exact) = entries.iter().find(|entry| !version.is_empty() && entry.version == version) {
            return Ok(exact);
        }
        let versions = entries.iter().map(|entry| entry.version.as_str());
        match newest_matching(versions, version) {
            Some(at) => Ok(&entries[at]),
            None if entries.is_empty() => Err("; it lists no version of that chart".to_owned()),
            None => {
                let some: Vec<&str> = entries.iter().take(5).map(|entry| entry.version.as_str()).collect();
                Err(format!("; its newest versions are {}", some.join(", ")))
            }
        }
    }

    fn similar(&self, name: &str) -> String {
        let mut names: Vec<&str> = self.charts.keys().map(String::as_str).collect();
        names.retain(|known| known.contains(name) || name.contains(known));
        names.truncate(5);
        if names.is_empty() { String::new() } else { format!(", but {}", names.join(", ")) }
    }
}

/// The first of the versions, which are sorted from the newest, that satisfies a constraint.
pub(crate) fn newest_matching<'a>(
    versions: impl Iterator<Item = &'a str>,
    constraint: &str,
) -> Option<usize> {
    let text = if constraint.is_empty() { "*" } else { constraint };
    let constraint = Constraints::parse(text).ok()?;
    let mut versions = versions.enumerate();
    versions
        .find(|(_, version)| Version::parse(version).is_ok_and(|version| constraint.check(&version)))
        .map(|(at, _)| at)
}

fn read_entry(value: &serde_json::Value) -> Option<(Version, IndexEntry)> {
    let text = |key| value.get(key).and_then(field_text).unwrap_or_default();
    let version = text("version");
    let parsed = Version::parse(&version).ok()?;
    let urls = value.get("urls").and_then(|v| v.as_array()).into_iter().flatten();
    let urls = urls.filter_map(|url| url.as_str().map(str::to_owned)).collect();
    let digest = text("digest").trim_start_matches("sha256:").to_lowercase();
    Some((parsed, IndexEntry { version: version.into_owned(), urls, digest }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const INDEX: &str = "
apiVersion: v1
entries:
  web:
  - {version: 1.2.0, urls: [web-1.2.0.tgz]}
  - {version: 1.10.0, urls: [web-1.10.0.tgz], digest: 'SHA256'}
  - {version: 2.0.0-rc.1, urls: [web-2.tgz]}
  - {version: not-a-version, urls: [x.tgz]}
  - {version: 0.50, urls: [web-0.5.tgz]}
  web-extras: []
";

    #[test]
    fn versions_are_found_newest_first_without_prereleases() {
        let index = Index::parse(INDEX).expect("is an index");
        let version = |wanted| index.find("web", wanted).map(|entry| entry.version.as_str());
        assert_eq!(version(""), Ok("1.10.0"));
        assert_eq!(version("~1.2"), Ok("1.2.0"));
        assert_eq!(version("^1"), Ok("1.10.0"));
        assert_eq!(version("2.0.0-rc.1"), Ok("2.0.0-rc.1"));
        // What YAML takes for a number is the text that Helm makes of it.
        assert_eq!(version("<1"), Ok("0.5"));
        assert_eq!(version(">1.10.0-0"), Ok("2.0.0-rc.1"));
    }

    #[test]
    fn what_is_missing_is_named_with_what_is_there() {
        let index = Index::parse(INDEX).expect("is an index");
        let error = index.find("web", "^3").expect_err("has no 3");
        assert_eq!(error, "; its newest versions are 2.0.0-rc.1, 1.10.0, 1.2.0, 0.5");
        let error = index.find("web-extra", "").expect_err("has no such chart");
        assert_eq!(error, "; it has no chart of that name, but web, web-extras");
        let error = index.find("web-extras", "").expect_err("has no version");
        assert_eq!(error, "; it lists no version of that chart");
        assert_eq!(Index::parse("entries: {}").expect_err("no version"), "no API version specified");
    }
}
