//! Helm sources (Argo CD user guide, "Helm"). From weak to strong: the chart's values.yaml, value
//! files in order, `values`, `valuesObject` (in place of `values`), file parameters and parameters.

mod value_files;

use std::sync::Arc;

use self::value_files::{expand_variables, locate, value_files};
use crate::{Cause, Job, RenderError, Subject, Yield, env::kube_version};
use tiphys_helm::{Chart, FixedClock, HelmError, RenderOptions, ValuesSource};
use tiphys_model::{HelmParameter, HelmSource};

/// Renders the chart of the source's folder.
pub(crate) fn render(job: &Job<'_>) -> Result<Yield, RenderError> {
    let tree = job.set.tree(job.index);
    let helm = job.source.helm.clone().unwrap_or_default();
    if !matches!(helm.version.as_str(), "" | "v3" | "v4") {
        return Err(RenderError::new(format!("helm version '{}' is not supported", helm.version)));
    }
    let mut chart = Chart::load_lazily(tree, &job.source.path).map_err(helm_error)?;
    job.context.sources.complete(&mut chart, tree.as_ref(), helm.pass_credentials)?;
    let options = options(job, &helm)?;
    let output = tiphys_helm::template(&chart, &options).map_err(helm_error)?;
    // Versions that the source itself gives do not depend on the cluster.
    let asked_versions =
        if helm.api_versions.is_empty() { options.questions.answers() } else { Default::default() };
    let objects =
        output.objects_within(&job.budget.memory).map_err(|_| job.budget.exceeded_error(&job.source.path))?;
    Ok(Yield { objects, warnings: output.warnings, asked_versions, ..Yield::default() })
}

fn helm_error(error: HelmError) -> RenderError {
    let cause = match &error {
        HelmError::Unsupported(_) | HelmError::KeptElsewhere(_) => Cause::Unsupported,
        _ => Cause::Other,
    };
    let told = RenderError::new(error.to_string()).caused_by(cause);
    let Some((name, line)) = error.template() else { return told };
    let is_syntax = matches!(&error, HelmError::Template(error) if error.is_syntax);
    let line = u32::try_from(line).unwrap_or_default();
    told.about(Subject::Template { name: name.to_owned(), line, is_syntax })
}

fn options(job: &Job<'_>, helm: &HelmSource) -> Result<RenderOptions, RenderError> {
    // Without a namespace Argo CD names none to helm, which takes this one.
    let destination = some_or(&job.app.spec.destination.namespace, "default");
    let cluster = job.context;
    Ok(RenderOptions {
        release_name: some_or(&helm.release_name, &job.app.metadata.name).to_owned(),
        namespace: some_or(&helm.namespace, destination).to_owned(),
        values: values(job, helm)?,
        kube_version: Some(kube_version(some_or(&helm.kube_version, cluster.kube_version))?)
            .filter(|v| !v.is_empty()),
        api_versions: if helm.api_versions.is_empty() {
            cluster.api_versions.to_vec()
        } else {
            helm.api_versions.clone()
        },
        include_crds: !helm.skip_crds,
        skip_tests: helm.skip_tests,
        skip_schema_validation: helm.skip_schema_validation,
        origins: cluster.origins,
        // Random values must not change from one look to the next.
        seed: Some(format!("{}/{}#{}", job.app.metadata.namespace, job.app.metadata.name, job.index)),
        mock_secrets: cluster.mock_secrets,
        // Nor may the time: it stands still at the Application's creation.
        clock: job
            .app
            .metadata
            .creation_timestamp
            .map(|time| time.timestamp())
            .or(cluster.now)
            .map(FixedClock),
        ..RenderOptions::default()
    })
}

fn some_or<'a>(text: &'a str, otherwise: &'a str) -> &'a str {
    if text.is_empty() { otherwise } else { text }
}

fn values(job: &Job<'_>, helm: &HelmSource) -> Result<Vec<ValuesSource>, RenderError> {
    let mut all = value_files(job, helm)?;
    if let Some(object) = &helm.values_object {
        let text = tiphys_yaml::to_yaml(object);
        all.push(ValuesSource::File("spec.source.helm.valuesObject".into(), text.into_bytes().into()));
    } else if !helm.values.is_empty() {
        let bytes: Arc<[u8]> = helm.values.as_bytes().into();
        all.push(ValuesSource::File("spec.source.helm.values".into(), bytes));
    }
    // Argo CD gives helm all `--set` before all `--set-string`.
    let (texts, plain): (Vec<_>, Vec<_>) =
        helm.parameters.iter().partition(|parameter| parameter.force_string);
    all.extend(plain.into_iter().chain(texts).map(|parameter| set(parameter, job)));
    for parameter in &helm.file_parameters {
        let path = expand_variables(job, &parameter.path);
        let (tree, path) = locate(job, &path)?;
        let bytes = tree.read(&path).map_err(|e| RenderError::new(e.to_string()))?;
        all.push(ValuesSource::SetFile(format!("{}={path}", parameter.name), vec![(path, Ok(bytes))]));
    }
    Ok(all)
}

/// A parameter as a `--set`. Its value is one text, so commas do not separate.
fn set(parameter: &HelmParameter, job: &Job<'_>) -> ValuesSource {
    let value = escape_commas(&job.env.expand(&parameter.value));
    let text = format!("{}={value}", parameter.name);
    if parameter.force_string { ValuesSource::SetString(text) } else { ValuesSource::Set(text) }
}

/// Puts a backslash before commas that have none, unless the value is a `{list}`.
fn escape_commas(value: &str) -> String {
    if value.starts_with('{') && value.ends_with('}') {
        return value.to_owned();
    }
    let mut out = String::with_capacity(value.len());
    let mut before = None;
    for c in value.chars() {
        if c == ',' && before != Some('\\') {
            out.push('\\');
        }
        out.push(c);
        before = Some(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_of_parameters_do_not_separate() {
        for (value, expected) in [("a,b", "a\\,b"), ("a\\,b", "a\\,b"), ("{a,b}", "{a,b}"), (",a", "\\,a")] {
            assert_eq!(escape_commas(value), expected);
        }
    }
}
