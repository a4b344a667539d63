//! What templates are told about the cluster and about Helm.

use crate::{Compat, HelmError, Questions, RenderOptions};
use tiphys_gocompat::strconv::{parse_uint, quote};

/// The API versions that Helm 4.2.4 knows without a cluster: those of client-go 0.36.
const API_VERSIONS: &[&str] = &[
    "v1",
    "admissionregistration.k8s.io/v1",
    "admissionregistration.k8s.io/v1alpha1",
    "admissionregistration.k8s.io/v1beta1",
    "internal.apiserver.k8s.io/v1alpha1",
    "apps/v1",
    "apps/v1beta1",
    "apps/v1beta2",
    "authentication.k8s.io/v1",
    "authentication.k8s.io/v1alpha1",
    "authentication.k8s.io/v1beta1",
    "authorization.k8s.io/v1",
    "authorization.k8s.io/v1beta1",
    "autoscaling/v1",
    "autoscaling/v2",
    "batch/v1",
    "batch/v1beta1",
    "certificates.k8s.io/v1",
    "certificates.k8s.io/v1beta1",
    "certificates.k8s.io/v1alpha1",
    "coordination.k8s.io/v1alpha2",
    "coordination.k8s.io/v1beta1",
    "coordination.k8s.io/v1",
    "discovery.k8s.io/v1",
    "discovery.k8s.io/v1beta1",
    "events.k8s.io/v1",
    "events.k8s.io/v1beta1",
    "extensions/v1beta1",
    "flowcontrol.apiserver.k8s.io/v1",
    "flowcontrol.apiserver.k8s.io/v1beta1",
    "flowcontrol.apiserver.k8s.io/v1beta2",
    "flowcontrol.apiserver.k8s.io/v1beta3",
    "networking.k8s.io/v1",
    "networking.k8s.io/v1beta1",
    "node.k8s.io/v1",
    "node.k8s.io/v1alpha1",
    "node.k8s.io/v1beta1",
    "policy/v1",
    "policy/v1beta1",
    "rbac.authorization.k8s.io/v1",
    "rbac.authorization.k8s.io/v1beta1",
    "rbac.authorization.k8s.io/v1alpha1",
    "resource.k8s.io/v1",
    "resource.k8s.io/v1beta2",
    "resource.k8s.io/v1beta1",
    "resource.k8s.io/v1alpha3",
    "scheduling.k8s.io/v1alpha2",
    "scheduling.k8s.io/v1beta1",
    "scheduling.k8s.io/v1",
    "storage.k8s.io/v1beta1",
    "storage.k8s.io/v1",
    "storage.k8s.io/v1alpha1",
    "storagemigration.k8s.io/v1beta1",
    "apiextensions.k8s.io/v1beta1",
    "apiextensions.k8s.io/v1",
];

/// The Kubernetes version that templates see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KubeVersion {
    /// As given, with `v`.
    pub(crate) version: String,
    /// `vMAJOR.MINOR.PATCH`, for constraints.
    pub(crate) normalized: String,
    pub(crate) major: String,
    pub(crate) minor: String,
}

/// `.Capabilities`.
#[derive(Clone, Debug)]
pub(crate) struct Capabilities {
    pub(crate) kube_version: KubeVersion,
    /// The built-in ones, then what was given.
    pub(crate) api_versions: Vec<String>,
    /// How many are built in.
    pub(crate) built_in: usize,
    pub(crate) questions: Questions,
    pub(crate) helm_version: &'static str,
    /// Missing in Helm 3.
    pub(crate) kube_client_version: Option<&'static str>,
}

/// The Go release that the oracles are built with, as `.Capabilities.HelmVersion.GoVersion` shows.
pub(crate) const GO_VERSION: &str = "go1.26.8";

impl Capabilities {
    /// What the options ask for, or what the cluster is whose capabilities they hold.
    ///
    /// # Errors
    /// As [`Capabilities::new`].
    pub(crate) fn from_options(options: &RenderOptions) -> Result<Self, HelmError> {
        let mut capabilities = match &options.served {
            Some(served) => Self {
                api_versions: served.api_versions.clone(),
                built_in: 0,
                ..Self::new(Some(&served.kube_version), &[], options.compat)?
            },
            None => Self::new(options.kube_version.as_deref(), &options.api_versions, options.compat)?,
        };
        capabilities.questions = options.questions.clone();
        Ok(capabilities)
    }

    /// Helm's defaults with the Kubernetes version and API versions that were asked for.
    ///
    /// # Errors
    /// The Kubernetes version is malformed.
    pub(crate) fn new(
        kube_version: Option<&str>,
        api_versions: &[String],
        compat: Compat,
    ) -> Result<Self, HelmError> {
        let default = if compat == Compat::Helm3 { "v1.34.0" } else { "v1.36.0" };
        let wanted = kube_version.filter(|it| !it.is_empty());
        let kube_version = KubeVersion::parse(wanted.unwrap_or(default), compat).map_err(|error| {
            HelmError::Option(format!("invalid kube version '{}': {error}", wanted.unwrap_or_default()))
        })?;
        let mut known = default_api_versions(compat);
        let built_in = known.len();
        known.extend(api_versions.iter().cloned());
        let (helm_version, kube_client_version) = match compat {
            Compat::Helm4 => ("v4.2.4", Some("v1.36")),
            Compat::Helm3 => ("v3.19.5", None),
        };
        let questions = Questions::default();
        Ok(Self { kube_version, api_versions: known, built_in, questions, helm_version, kube_client_version })
    }
}

/// Helm 3.19 is built with client-go 0.34, which knows some other versions in the same places.
fn default_api_versions(compat: Compat) -> Vec<String> {
    let mut versions = Vec::with_capacity(API_VERSIONS.len() + 2);
    for version in API_VERSIONS {
        match (compat, *version) {
            (Compat::Helm3, "scheduling.k8s.io/v1alpha2") => versions.push("scheduling.k8s.io/v1alpha1"),
            (Compat::Helm3, "storagemigration.k8s.io/v1beta1") => {
                versions.push("storagemigration.k8s.io/v1alpha1");
            }
            (Compat::Helm3, "autoscaling/v2") => {
                versions.extend(["autoscaling/v2", "autoscaling/v2beta1", "autoscaling/v2beta2"]);
            }
            (_, version) => versions.push(version),
        }
    }
    versions.into_iter().map(str::to_owned).collect()
}

/// A version of Kubernetes without what vendors append: `1.33.4` of `v1.33.4-gke.1`. An empty one stays so.
///
/// # Errors
/// It has not two or more numbers, in the words of Kubernetes' `ParseGeneric`.
pub fn generic_version(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Ok(String::new());
    }
    let parsed = KubeVersion::parse(text, Compat::Helm4)?;
    Ok(parsed.normalized.trim_start_matches('v').to_owned())
}

impl KubeVersion {
    /// Reads a version as Kubernetes' `ParseGeneric`: two or more numbers, anything behind them.
    fn parse(text: &str, compat: Compat) -> Result<Self, String> {
        let shown = quote(text);
        let body = text.trim_start();
        let body = body.strip_prefix('v').unwrap_or(body);
        let digits = |part: &str| part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (mut numbers, mut rest) = (Vec::new(), body);
        while digits(rest) > 0 {
            let number = &rest[..digits(rest)];
            numbers.push(number);
            rest = rest[number.len()..].strip_prefix('.').unwrap_or_default();
        }
        match numbers[..] {
            [] => return Err(format!("could not parse {shown} as version")),
            [_] => return Err(format!("illegal version string {shown}")),
            [first, ..] if first.len() > 1 && first.starts_with('0') => {
                return Err(format!("illegal zero-prefixed version component {} in {shown}", quote(first)));
            }
            _ => {}
        }
        let mut parsed = Vec::new();
        for number in numbers {
            let value = parse_uint(number, 10).map_err(|_| {
                let number = quote(number);
                let reason = format!("strconv.ParseUint: parsing {number}: value out of range");
                format!("illegal non-numeric version component {number} in {shown}: {reason}")
            })?;
            parsed.push(value.to_string());
        }
        let normalized = format!("v{}", parsed.join("."));
        let version = match compat {
            Compat::Helm4 if text.starts_with('v') => text.to_owned(),
            Compat::Helm4 => format!("v{text}"),
            Compat::Helm3 => normalized.clone(),
        };
        Ok(Self { version, normalized, major: parsed[0].clone(), minor: parsed[1].clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(text: &str) -> Result<(String, String, String), String> {
        let parsed = KubeVersion::parse(text, Compat::Helm4)?;
        Ok((parsed.version, parsed.normalized, parsed.minor))
    }

    #[test]
    fn keeps_what_vendors_append_but_compares_without_it() {
        let owned = |a: &str, b: &str, c: &str| Ok((a.to_owned(), b.to_owned(), c.to_owned()));
        assert_eq!(versions("1.33.4-gke.1"), owned("v1.33.4-gke.1", "v1.33.4", "33"));
        assert_eq!(versions("v1.28+"), owned("v1.28+", "v1.28", "28"));
        assert_eq!(generic_version("v1.30.2-eks-1552ad0"), Ok("1.30.2".to_owned()));
        assert_eq!(generic_version(""), Ok(String::new()));
        assert_eq!(versions("1.02"), owned("v1.02", "v1.2", "2"));
        for (text, error) in [
            ("1", "illegal version string \"1\""),
            ("x", "could not parse \"x\" as version"),
            ("01.2", "illegal zero-prefixed version component \"01\" in \"01.2\""),
        ] {
            assert_eq!(versions(text), Err(error.to_owned()));
        }
    }

    #[test]
    fn helm_3_knows_other_api_versions() {
        assert_eq!(default_api_versions(Compat::Helm4).len(), 55);
        assert_eq!(default_api_versions(Compat::Helm3).len(), 57);
    }
}
