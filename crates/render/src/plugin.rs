//! Sources that config management plugins render (Argo CD operator manual, "Config Management Plugins"). What
//! a plugin is told and what is made of its output is decided here; who runs it is passed in.

use std::collections::BTreeMap;

use tiphys_model::{ApplicationSource, PluginParameter, PluginSource, SourceType};
use tiphys_vfs::FileTree;

use crate::{Cause, Job, RenderError, Yield, env::BuildEnv, manifest, postprocess};

/// Runs the plugins that are allowed.
pub trait Plugins: Send + Sync {
    /// The name of the plugin for a source (the one that the source names, or with an empty name the one that
    /// finds it), and what it prints. `None` if no plugin finds the source.
    ///
    /// # Errors
    /// It is not allowed, does not support the source, cannot be tried, or fails.
    fn generate(
        &self,
        name: &str,
        tree: &dyn FileTree,
        folder: &str,
        env: &BTreeMap<String, String>,
    ) -> Result<Option<(String, String)>, RenderError>;
}

/// Lets a plugin render a source; `None` if the source neither names one nor is found by one.
pub(crate) fn render(job: &Job<'_>) -> Result<Option<Yield>, RenderError> {
    let asked = match job.source.explicit_type().map_err(RenderError::new)? {
        Some(SourceType::Plugin) => true,
        Some(_) => return Ok(None),
        None => false,
    };
    let Some(plugins) = job.context.sources.plugins() else {
        return if asked { Err(refuse(&job.source)) } else { Ok(None) };
    };
    let options = job.source.plugin.clone().unwrap_or_default();
    let env = environment(&job.env, &options);
    let tree = job.set.tree(job.index).as_ref();
    let folder = job.source.path.as_str();
    let Some((name, text)) = plugins.generate(&options.name, tree, folder, &env)? else {
        return if asked { Err(refuse(&job.source)) } else { Ok(None) };
    };
    let mut objects =
        manifest::parse_objects(&format!("output of plugin {name}"), &text, job.context.origins)?;
    postprocess::expand_lists(&mut objects)?;
    // It is told the revision, and may say it.
    let names_revision = true;
    Ok(Some(Yield { objects, names_revision, source_type: Some(SourceType::Plugin), ..Yield::default() }))
}

/// The variables that a plugin gets: the build environment, the source's own with a prefix, its parameters.
fn environment(build: &BuildEnv, options: &PluginSource) -> BTreeMap<String, String> {
    let mut env = build.0.clone();
    for variable in &options.env {
        env.insert(format!("ARGOCD_ENV_{}", variable.name), build.expand(&variable.value));
    }
    let json = serde_json::to_string(&options.parameters).unwrap_or_default();
    env.insert("ARGOCD_APP_PARAMETERS".into(), json);
    for parameter in &options.parameters {
        env.extend(parameter_variables(parameter));
    }
    env
}

/// `PARAM_<NAME>` and, of lists and maps, `PARAM_<NAME>_<KEY>`.
fn parameter_variables(parameter: &PluginParameter) -> Vec<(String, String)> {
    let name = format!("PARAM_{}", upper(&parameter.name));
    let mut variables = Vec::new();
    variables.extend(parameter.string.clone().map(|value| (name.clone(), value)));
    let items = parameter.array.iter().flatten().enumerate();
    variables.extend(items.map(|(at, value)| (format!("{name}_{at}"), value.clone())));
    let entries = parameter.map.iter().flatten();
    variables.extend(entries.map(|(key, value)| (format!("{name}_{}", upper(key)), value.clone())));
    variables
}

/// A name as that of a variable: upper case, with `_` for what is neither letter nor digit.
fn upper(name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    name.chars().map(letter).collect()
}

/// Plugins run programs, which nobody asked for unless they are allowed.
fn refuse(source: &ApplicationSource) -> RenderError {
    let name = source.plugin.as_ref().map(|plugin| plugin.name.as_str()).unwrap_or_default();
    let name = if name.is_empty() {
        "a config management plugin".into()
    } else {
        format!("config management plugin {name:?}")
    };
    RenderError::new(format!(
        "the source is rendered by {name}; plugins run programs of their own, and none is allowed that is for it: whoever starts Tiphys allows one with --allow-plugin"
    ))
    .caused_by(Cause::Unsupported)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_plugin_gets_its_variables_under_the_usual_names() {
        let build = BuildEnv(BTreeMap::from([("ARGOCD_APP_NAME".to_owned(), "shop".to_owned())]));
        let options: PluginSource = serde_json::from_value(json!({"name": "p",
            "env": [{"name": "FOO", "value": "$ARGOCD_APP_NAME-x"}],
            "parameters": [{"name": "values-files", "array": ["a.yaml", "b.yaml"]}, {"name": "one", "string": "1"},
                {"name": "helm-parameters", "map": {"image.tag": "v1"}}]}))
        .expect("valid");
        let env = environment(&build, &options);
        let rows = [
            ("ARGOCD_APP_NAME", "shop"),
            ("ARGOCD_ENV_FOO", "shop-x"),
            ("PARAM_ONE", "1"),
            ("PARAM_VALUES_FILES_1", "b.yaml"),
            ("PARAM_HELM_PARAMETERS_IMAGE_TAG", "v1"),
        ];
        for (name, value) in rows {
            assert_eq!(env.get(name).map(String::as_str), Some(value), "{name}");
        }
        let parameters: serde_json::Value =
            serde_json::from_str(&env["ARGOCD_APP_PARAMETERS"]).expect("JSON");
        assert_eq!(parameters[1], json!({"name": "one", "string": "1"}));
    }
}
