//! `kustomize.buildOptions` of `argocd-cm`: flags of `kustomize build`.

use std::sync::Arc;

use tiphys_kustomize::{BuildOptions, LoadRestrictor, Reorder};

use crate::{Cause, HelmCharts, RenderError};

/// Reads flags as a shell would split them at blanks.
///
/// # Errors
/// Names a flag that is not known, or whose value is none.
pub(crate) fn parse(flags: &str) -> Result<BuildOptions, RenderError> {
    let mut options = BuildOptions::default();
    let mut words = flags.split_whitespace();
    while let Some(word) = words.next() {
        let (name, mut value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        match name {
            "--enable-helm" => {
                options.enable_helm = value != Some("false");
                options.chart_inflator = Some(Arc::new(HelmCharts));
            }
            "--enable-managedby-label" => options.managed_by_label = value != Some("false"),
            // Whoever starts Tiphys says which functions may run (`--allow-function`); a kustomization that
            // has another is refused where it has it.
            "--enable-alpha-plugins" | "--enable-exec" | "--enable-star" | "--network" => {}
            "--load-restrictor" => {
                value = value.or_else(|| words.next());
                options.load_restrictor = match value {
                    Some("LoadRestrictionsNone") => LoadRestrictor::None,
                    Some("LoadRestrictionsRootOnly") => LoadRestrictor::RootOnly,
                    other => return Err(fault(name, other.unwrap_or_default())),
                };
            }
            "--helm-api-versions" => {
                value = value.or_else(|| words.next());
                let versions = value.unwrap_or_default().split(',').filter(|version| !version.is_empty());
                options.helm_api_versions.extend(versions.map(str::to_owned));
            }
            "--helm-kube-version" => {
                value = value.or_else(|| words.next());
                options.helm_kube_version = value.map(str::to_owned);
            }
            "--reorder" => {
                value = value.or_else(|| words.next());
                options.reorder = match value {
                    Some("legacy") => Reorder::Legacy,
                    Some("none") => Reorder::None,
                    other => return Err(fault(name, other.unwrap_or_default())),
                };
            }
            // As whom functions run, of which none is, and what is said of a failure.
            "--as-current-user" | "--helm-debug" | "--stack-trace" => {}
            // The renderer is built in; there is no program to choose.
            "--helm-command" if value.is_some() => {}
            "--helm-command" => {
                words.next();
            }
            _ => return Err(fault(word, "")),
        }
    }
    Ok(options)
}

fn fault(name: &str, value: &str) -> RenderError {
    let value = if value.is_empty() { String::new() } else { format!(" {value}") };
    RenderError::new(format!("kustomize.buildOptions: {name}{value} is not supported"))
        .caused_by(Cause::Unsupported)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_in_both_spellings() {
        let options = parse("--enable-helm --load-restrictor LoadRestrictionsNone").unwrap();
        assert!(options.enable_helm && options.load_restrictor == LoadRestrictor::None);
        let options = parse("--load-restrictor=LoadRestrictionsRootOnly --enable-alpha-plugins").unwrap();
        assert!(!options.enable_helm && options.load_restrictor == LoadRestrictor::RootOnly);
        assert_eq!(parse("").unwrap().load_restrictor, LoadRestrictor::default());
    }

    #[test]
    fn versions_for_charts_are_gathered() {
        let options =
            parse("--helm-api-versions a/v1/A --helm-api-versions=b/v1,c/v1 --helm-kube-version 1.31")
                .unwrap();
        assert_eq!(parse("--reorder none --stack-trace").unwrap().reorder, Reorder::None);
        assert_eq!(parse("--reorder=legacy").unwrap().reorder, Reorder::Legacy);
        assert_eq!(options.helm_api_versions, ["a/v1/A", "b/v1", "c/v1"]);
        assert_eq!(options.helm_kube_version.as_deref(), Some("1.31"));
    }

    #[test]
    fn unknown_flags_are_named() {
        assert!(parse("--network-name x").unwrap_err().to_string().contains("--network-name"));
        assert!(parse("--reorder fifo").unwrap_err().to_string().contains("--reorder fifo"));
        assert!(parse("--load-restrictor none").is_err());
    }
}
