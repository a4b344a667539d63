//! Charts that do not stand here: of a chart repository, of a registry, behind an address. What a name means
//! is as in `helm template`.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, bail};
use tiphys_kustomize::RemoteLoader as _;
use tiphys_source::{Access, ChartRequest, Fetcher};

/// Which chart, and where from.
#[derive(Debug, Default, clap::Args)]
pub(super) struct ChartSource {
    /// Chart repository that CHART is the name of a chart in.
    #[arg(long, value_name = "URL")]
    repo: Option<String>,
    /// Version of a chart that is fetched, or a constraint; the newest if none is given.
    #[arg(long, default_value = "")]
    version: String,
    /// Without --version, take a version before its release too, if that is the newest.
    #[arg(long)]
    devel: bool,
    /// File in which `helm repo add` keeps repositories; by default $HELM_REPOSITORY_CONFIG, or where Helm
    /// has it.
    #[arg(long, value_name = "FILE")]
    repository_config: Option<String>,
    /// File in which `helm registry login` keeps logins; by default $HELM_REGISTRY_CONFIG, or where Helm has
    /// it.
    #[arg(long, value_name = "FILE")]
    registry_config: Option<String>,
    #[command(flatten)]
    login: Login,
}

/// How the host of CHART is to be asked, before what Helm's own files say of it.
#[derive(Debug, Default, clap::Args)]
struct Login {
    /// User of the chart repository or registry.
    #[arg(long)]
    username: Option<String>,
    /// Password of that user.
    #[arg(long)]
    password: Option<String>,
    /// Send the login also to other hosts that the repository's index points to.
    #[arg(long)]
    pass_credentials: bool,
    /// Authorities in PEM by which the host's certificate is checked, in place of the system's.
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Client certificate in PEM.
    #[arg(long, value_name = "FILE")]
    cert_file: Option<PathBuf>,
    /// Key of the client certificate in PEM.
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Accept any certificate.
    #[arg(long)]
    insecure_skip_tls_verify: bool,
    /// Speak HTTP to a registry.
    #[arg(long)]
    plain_http: bool,
}

impl Login {
    fn access(&self) -> anyhow::Result<Access> {
        let pem = |file: &Option<PathBuf>| {
            let read = |file: &Path| {
                std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
            };
            file.as_deref().map(read).transpose()
        };
        Ok(Access {
            username: self.username.clone(),
            password: self.password.clone(),
            ca_pem: pem(&self.ca_file)?,
            client_certificate_pem: pem(&self.cert_file)?,
            client_key_pem: pem(&self.key_file)?,
            insecure_skip_verify: self.insecure_skip_tls_verify,
            pass_credentials_all: self.pass_credentials,
            plain_http: self.plain_http,
            ..Access::default()
        })
    }
}

impl ChartSource {
    /// What fetches as Helm's files say.
    pub(super) fn fetcher(&self, offline: bool) -> Arc<Fetcher> {
        Arc::new(self.configured(offline))
    }

    fn configured(&self, offline: bool) -> Fetcher {
        let (repositories, registries) = (self.repository_config.clone(), self.registry_config.clone());
        crate::fetch::configured(offline, move |name| match name {
            "HELM_REPOSITORY_CONFIG" => repositories.clone(),
            "HELM_REGISTRY_CONFIG" => registries.clone(),
            _ => None,
        })
    }

    /// Fetches the archive of a chart that is no file or folder.
    ///
    /// # Errors
    /// There is no such thing, or it cannot be fetched.
    pub(super) fn fetch(&self, chart: &str, offline: bool) -> anyhow::Result<Arc<[u8]>> {
        if chart.starts_with(['/', '.']) {
            bail!("path {chart:?} not found");
        }
        let access = self.login.access()?;
        if self.repo.is_none() && (chart.starts_with("https://") || chart.starts_with("http://")) {
            let body = self.configured(offline).with_access(chart, access).file(chart);
            return body.map(Into::into).with_context(|| format!("cannot fetch {chart}"));
        }
        let request = self.request(chart)?;
        let fetcher = self.configured(offline).with_access(&request.repository, access);
        let fetched = fetcher.chart_archive(&request);
        fetched.map(|fetched| fetched.archive).with_context(|| format!("cannot fetch chart {chart}"))
    }

    fn version(&self) -> &str {
        if self.devel && self.version.is_empty() { ">0.0.0-0" } else { &self.version }
    }

    fn request(&self, chart: &str) -> anyhow::Result<ChartRequest> {
        let (repository, name, version) = match (&self.repo, chart.split_once("://")) {
            (Some(repository), _) => (repository.clone(), chart, self.version()),
            (None, Some(("oci", _))) => {
                let (reference, tag) = tagged(chart);
                (reference.to_owned(), "", if self.version().is_empty() { tag } else { self.version() })
            }
            (None, _) => match chart.split_once('/') {
                Some((alias, name)) => (format!("@{alias}"), name, self.version()),
                None => bail!(
                    "there is no file or folder {chart}; a chart of a repository is named with --repo, or as repo_name/chart if `helm repo add` knows it"
                ),
            },
        };
        Ok(ChartRequest {
            repository,
            name: name.to_owned(),
            version: version.to_owned(),
            pass_credentials: false,
        })
    }
}

/// A reference without its tag, and the tag.
fn tagged(reference: &str) -> (&str, &str) {
    let name = reference.rfind('/').map_or(0, |at| at + 1);
    match reference[name..].split_once(':') {
        Some((last, tag)) => (&reference[..name + last.len()], tag),
        None => (reference, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(chart: &str, repo: Option<&str>, version: &str) -> (String, String, String) {
        let place = ChartSource {
            repo: repo.map(str::to_owned),
            version: version.to_owned(),
            ..ChartSource::default()
        };
        let ChartRequest { repository, name, version, .. } = place.request(chart).unwrap();
        (repository, name, version)
    }

    #[test]
    fn names_mean_what_they_mean_to_helm() {
        let is = |found: (String, String, String), expected: (&str, &str, &str)| {
            assert_eq!((found.0.as_str(), found.1.as_str(), found.2.as_str()), expected);
        };
        is(
            request("web", Some("https://charts.example.com"), "1.2.x"),
            ("https://charts.example.com", "web", "1.2.x"),
        );
        is(request("acme/web", None, ""), ("@acme", "web", ""));
        is(
            request("oci://localhost:5000/charts/web:1.0.0", None, ""),
            ("oci://localhost:5000/charts/web", "", "1.0.0"),
        );
        is(
            request("oci://localhost:5000/charts/web", None, "2.0.0"),
            ("oci://localhost:5000/charts/web", "", "2.0.0"),
        );
        let place = ChartSource::default();
        assert!(place.request("web").unwrap_err().to_string().contains("--repo"));
    }
}
