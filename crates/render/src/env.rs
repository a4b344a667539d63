//! The build environment (Argo CD user guide, "Build Environment").

use std::collections::BTreeMap;

use tiphys_helm::generic_version;
use tiphys_model::{Application, ApplicationSource};

use crate::{Context, RenderError};

/// Variables that sources may use as `$NAME` or `${NAME}`.
#[derive(Clone, Debug, Default)]
pub(crate) struct BuildEnv(pub BTreeMap<String, String>);

/// The version of Kubernetes that tools are told: without what vendors append, as Argo CD tells it
/// (repo-server, `parseKubeVersion`).
pub(crate) fn kube_version(text: &str) -> Result<String, RenderError> {
    generic_version(text)
        .map_err(|error| RenderError::new(format!("could not parse kubernetes version {text}: {error}")))
}

impl BuildEnv {
    pub(crate) fn new(
        app: &Application,
        source: &ApplicationSource,
        revision: &str,
        context: &Context<'_>,
    ) -> Result<Self, RenderError> {
        let short = |length: usize| revision.get(..length).unwrap_or(revision).to_owned();
        let variables = [
            ("ARGOCD_APP_NAME", app.instance_name(context.engine_namespace)),
            ("ARGOCD_APP_NAMESPACE", app.spec.destination.namespace.clone()),
            ("ARGOCD_APP_PROJECT_NAME", app.project().to_owned()),
            ("ARGOCD_APP_REVISION", revision.to_owned()),
            ("ARGOCD_APP_REVISION_SHORT", short(7)),
            ("ARGOCD_APP_REVISION_SHORT_8", short(8)),
            ("ARGOCD_APP_SOURCE_REPO_URL", source.repo_url.clone()),
            ("ARGOCD_APP_SOURCE_PATH", source.path.clone()),
            ("ARGOCD_APP_SOURCE_TARGET_REVISION", source.target_revision.clone()),
            ("KUBE_VERSION", kube_version(context.kube_version)?),
            ("KUBE_API_VERSIONS", context.api_versions.join(",")),
        ];
        Ok(Self(variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()))
    }

    /// Whether there is a variable of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Replaces `$NAME` and `${NAME}`; `$$` is a dollar sign; an unknown variable is empty.
    pub(crate) fn expand(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            out.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix('$') {
                out.push('$');
                rest = after;
                continue;
            }
            let (name, after) = variable(rest);
            match name {
                Some(name) => out.push_str(self.0.get(name).map(String::as_str).unwrap_or_default()),
                None => out.push('$'),
            }
            rest = after;
        }
        out.push_str(rest);
        out
    }
}

/// Whether a source mentions a variable that holds the revision. Variables are expanded nowhere else.
pub(crate) fn names_revision(source: &ApplicationSource) -> bool {
    serde_json::to_string(source).is_ok_and(|text| text.contains("ARGOCD_APP_REVISION"))
}

/// The variable that a text after a dollar sign begins with, and the rest.
fn variable(text: &str) -> (Option<&str>, &str) {
    if let Some(braced) = text.strip_prefix('{') {
        return match braced.split_once('}') {
            Some((name, rest)) => (Some(name), rest),
            None => (None, text),
        };
    }
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    if end == 0 { (None, text) } else { (Some(&text[..end]), &text[end..]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expands_variables_and_keeps_dollars() {
        let env = BuildEnv(BTreeMap::from([("ARGOCD_APP_NAME".to_owned(), "shop".to_owned())]));
        for (text, expected) in [
            ("values-$ARGOCD_APP_NAME.yaml", "values-shop.yaml"),
            ("${ARGOCD_APP_NAME}-x", "shop-x"),
            ("$$5 $ {", "$5 $ {"),
            ("$UNKNOWN!", "!"),
            ("${open", "${open"),
        ] {
            assert_eq!(env.expand(text), expected, "{text}");
        }
    }
}
