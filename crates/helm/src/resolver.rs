//! Dependencies that are not vendored, as `helm dependency build` gets them; the network half
//! stands behind a trait.

use std::fmt::Write;

use sha2::{Digest, Sha256};
use tiphys_gotemplate::{Numbers, Value as GoValue, json};

use crate::{Chart, Dependency, HelmError};

/// A dependency of a chart that has to be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DependencyRequest {
    /// Chart name.
    pub name: String,
    /// Exact version if there is a lock file, else a SemVer constraint.
    pub version: String,
    /// Repository: `file://`, `https://`, `oci://`, `@alias`; empty for a chart that must stand in
    /// `charts/`.
    pub repository: String,
}

/// Fetches what `helm dependency build` would put into `charts/`.
pub trait DependencyResolver {
    /// The chart that satisfies a request of the chart in the folder `base` of its tree.
    ///
    /// # Errors
    /// Not found, not reachable, or a digest that does not match; prints as Helm would.
    fn resolve(&self, request: &DependencyRequest, base: &str) -> Result<Chart, HelmError>;
}

impl Chart {
    /// Fetches the dependencies that `charts/` lacks, in the versions of the lock file if there is
    /// one. Charts that are there stay as they are.
    ///
    /// # Errors
    /// The lock file does not belong to `Chart.yaml`; errors of the resolver.
    pub fn resolve_dependencies(&mut self, resolver: &dyn DependencyResolver) -> Result<(), HelmError> {
        let requests: Vec<_> = self.missing_dependencies().into_iter().map(|it| self.request(it)).collect();
        if requests.is_empty() {
            return Ok(());
        }
        self.check_lock()?;
        for request in requests {
            let fetched = resolver.resolve(&request, &self.location)?;
            if !self.dependencies.iter().any(|chart| {
                chart.name() == fetched.name() && chart.metadata.version == fetched.metadata.version
            }) {
                self.dependencies.push(fetched);
            }
        }
        Ok(())
    }

    fn request(&self, wanted: &Dependency) -> DependencyRequest {
        let locked = self.lock.as_ref().and_then(|lock| {
            lock.dependencies.iter().find(|it| it.name == wanted.name && it.repository == wanted.repository)
        });
        let version = locked.map_or(&wanted.version, |locked| &locked.version);
        DependencyRequest {
            name: wanted.name.clone(),
            version: version.clone(),
            repository: wanted.repository.clone(),
        }
    }

    /// The digest of the lock file is that of the dependencies in `Chart.yaml` and in the lock.
    fn check_lock(&self) -> Result<(), HelmError> {
        let Some(lock) = &self.lock else { return Ok(()) };
        let wanted = list_json(&self.metadata.dependencies);
        let digest = digest(&format!("[{wanted},{}]", list_json(&lock.dependencies)));
        let is_v1 = self.metadata.api_version == "v1";
        // Helm 2 wrote the digest of the dependencies alone.
        let helm2 = || self::digest(&format!("{{\"dependencies\":{wanted}}}"));
        if lock.digest == digest || (is_v1 && lock.digest == helm2()) {
            return Ok(());
        }
        let (lock, file) =
            if is_v1 { ("requirements.lock", "requirements.yaml") } else { ("Chart.lock", "Chart.yaml") };
        Err(HelmError::Load(format!(
            "the lock file ({lock}) is out of sync with the dependencies file ({file}). Please update the dependencies"
        )))
    }
}

fn digest(text: &str) -> String {
    let mut digest = "sha256:".to_owned();
    for byte in Sha256::digest(text) {
        // Writing to a string cannot fail.
        let _ = write!(digest, "{byte:02x}");
    }
    digest
}

/// The JSON of dependencies as Go writes Helm's struct: fields in order, empty ones left out.
fn list_json(dependencies: &[Dependency]) -> String {
    if dependencies.is_empty() {
        return "null".to_owned();
    }
    let items: Vec<_> = dependencies.iter().map(dependency_json).collect();
    format!("[{}]", items.join(","))
}

fn dependency_json(dependency: &Dependency) -> String {
    let text = |text: &str| go_json(&GoValue::string(text));
    let mut fields = vec![format!("\"name\":{}", text(&dependency.name))];
    if !dependency.version.is_empty() {
        fields.push(format!("\"version\":{}", text(&dependency.version)));
    }
    fields.push(format!("\"repository\":{}", text(&dependency.repository)));
    if !dependency.condition.is_empty() {
        fields.push(format!("\"condition\":{}", text(&dependency.condition)));
    }
    if !dependency.tags.is_empty() {
        fields.push(format!("\"tags\":{}", go_json(&GoValue::strings(&dependency.tags))));
    }
    if dependency.enabled {
        fields.push("\"enabled\":true".to_owned());
    }
    if !dependency.import_values.is_empty() {
        let items = dependency.import_values.iter().map(|it| GoValue::from_json(it, Numbers::Float64));
        fields.push(format!("\"import-values\":{}", go_json(&GoValue::list(items.collect()))));
    }
    if !dependency.alias.is_empty() {
        fields.push(format!("\"alias\":{}", text(&dependency.alias)));
    }
    format!("{{{}}}", fields.join(","))
}

fn go_json(value: &GoValue) -> String {
    json::to_string(value, json::Options::default()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use tiphys_vfs::MemTree;

    use super::*;

    const CHART: &str = "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies:\n- name: db\n  version: ^1.0.0\n  repository: https://charts.example.test\n  condition: db.enabled\n  tags: [data]\n";

    struct Shelf(RefCell<Vec<DependencyRequest>>);

    impl DependencyResolver for Shelf {
        fn resolve(&self, request: &DependencyRequest, _base: &str) -> Result<Chart, HelmError> {
            self.0.borrow_mut().push(request.clone());
            let tree = MemTree::from_files([("Chart.yaml", "apiVersion: v2\nname: db\nversion: 1.4.2\n")]);
            Chart::load(&tree, "")
        }
    }

    fn resolve(lock: Option<&str>) -> Result<Vec<String>, String> {
        let mut files = vec![("Chart.yaml", CHART)];
        files.extend(lock.map(|lock| ("Chart.lock", lock)));
        let mut chart = Chart::load(&MemTree::from_files(files), "").unwrap();
        let shelf = Shelf(RefCell::default());
        chart.resolve_dependencies(&shelf).map_err(|error| error.to_string())?;
        assert!(chart.missing_dependencies().is_empty());
        Ok(shelf.0.into_inner().into_iter().map(|it| format!("{} {}", it.name, it.version)).collect())
    }

    #[test]
    fn without_a_lock_the_constraint_is_asked_for() {
        assert_eq!(resolve(None).unwrap(), ["db ^1.0.0"]);
    }

    #[test]
    fn a_lock_gives_the_version_if_its_digest_fits() {
        let json = "[[{\"name\":\"db\",\"version\":\"^1.0.0\",\"repository\":\"https://charts.example.test\",\"condition\":\"db.enabled\",\"tags\":[\"data\"]}],[{\"name\":\"db\",\"version\":\"1.4.2\",\"repository\":\"https://charts.example.test\"}]]";
        let body = "dependencies:\n- name: db\n  version: 1.4.2\n  repository: https://charts.example.test\n";
        let lock = format!("{body}digest: {}\n", digest(json));
        assert_eq!(resolve(Some(&lock)).unwrap(), ["db 1.4.2"]);
        let error = resolve(Some(&format!("{body}digest: sha256:00\n"))).unwrap_err();
        assert!(error.starts_with("the lock file (Chart.lock) is out of sync"), "{error}");
    }
}
