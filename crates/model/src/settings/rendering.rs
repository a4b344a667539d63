//! What `argocd-cm` says of the renderers: `kustomize.*`, `helm.*`, `jsonnet.*`.

use std::collections::BTreeMap;

use super::Reader;

/// Settings of the renderers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderSettings {
    /// Settings of Kustomize.
    pub kustomize: KustomizeSettings,
    /// `helm.enable`: whether a chart is taken for one.
    pub helm_enabled: bool,
    /// `helm.valuesFileSchemes`: schemes of addresses that values files may have.
    pub helm_values_schemes: Vec<String>,
    /// `jsonnet.enable`.
    pub jsonnet_enabled: bool,
}

/// Settings of Kustomize.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KustomizeSettings {
    /// `kustomize.enable`: whether a kustomization is taken for one.
    pub enabled: bool,
    /// `kustomize.buildOptions`: flags of `kustomize build`.
    pub build_options: String,
    /// `kustomize.buildOptions.<version>`: flags where an Application asks for that version.
    pub build_options_by_version: BTreeMap<String, String>,
    /// `kustomize.path.<version>` and `kustomize.version.<version>`: programs that Argo CD would run. The
    /// renderer is built in, so that none is.
    pub versions: Vec<String>,
}

impl KustomizeSettings {
    /// The flags for an Application that asks for a version; empty asks for none.
    pub fn options_for(&self, version: &str) -> &str {
        self.build_options_by_version.get(version).unwrap_or(&self.build_options)
    }
}

pub(super) fn read(reader: &mut Reader<'_>) -> RenderSettings {
    let mut kustomize = KustomizeSettings {
        enabled: reader.flag("kustomize.enable", true),
        build_options: reader.text("kustomize.buildOptions").unwrap_or_default(),
        build_options_by_version: BTreeMap::new(),
        versions: Vec::new(),
    };
    for key in reader.keys("kustomize.buildOptions.") {
        let version = key.trim_start_matches("kustomize.buildOptions.").to_owned();
        kustomize.build_options_by_version.insert(version, reader.text(&key).unwrap_or_default());
    }
    for prefix in ["kustomize.path.", "kustomize.version."] {
        kustomize.versions.extend(reader.keys(prefix).iter().map(|key| key.replacen(prefix, "", 1)));
    }
    let schemes = reader.data.contains_key("helm.valuesFileSchemes");
    let given = reader.list("helm.valuesFileSchemes");
    RenderSettings {
        kustomize,
        helm_enabled: reader.flag("helm.enable", true),
        helm_values_schemes: if schemes { given } else { vec!["https".into(), "http".into()] },
        jsonnet_enabled: reader.flag("jsonnet.enable", true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::ArgoSettings;

    #[test]
    fn options_by_version_come_first() {
        let pairs = [
            ("kustomize.buildOptions", "--enable-helm"),
            ("kustomize.buildOptions.v5.0.0", "--load-restrictor LoadRestrictionsNone"),
            ("kustomize.path.v5.0.0", "/bin/kustomize5"),
            ("helm.valuesFileSchemes", ""),
        ];
        let map = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let rendering = ArgoSettings::read(&map, &BTreeMap::new()).rendering;
        assert_eq!(rendering.kustomize.options_for(""), "--enable-helm");
        assert_eq!(rendering.kustomize.options_for("v5.0.0"), "--load-restrictor LoadRestrictionsNone");
        assert_eq!(rendering.kustomize.versions, ["v5.0.0"]);
        assert!(rendering.helm_values_schemes.is_empty(), "an empty list allows none");
    }
}
