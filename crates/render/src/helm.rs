//! Helm sources (Argo CD user guide, "Helm"). From weak to strong: the chart's values.yaml, value
//! files in order, `values`, `valuesObject` (in place of `values`), file parameters and parameters.

use std::sync::Arc;

use tiphys_helm::{Chart, FixedClock, HelmError, RenderOptions, ValuesSource};
use tiphys_model::{HelmParameter, HelmSource};
use tiphys_vfs::{FileTree, join};

use crate::{Cause, Job, RenderError, Yield, glob};

/// Renders the chart of the source's folder.
pub(crate) fn render(job: &Job<'_>) -> Result<Yield, RenderError> {
    let tree = job.set.tree(job.index).as_ref();
    let helm = job.source.helm.clone().unwrap_or_default();
    let mut chart = Chart::load(tree, &job.source.path).map_err(helm_error)?;
    job.context.sources.complete(&mut chart, tree)?;
    let options = options(job, &helm)?;
    let output = tiphys_helm::template(&chart, &options).map_err(helm_error)?;
    // Versions that the source itself gives do not depend on the cluster.
    let asked_versions =
        if helm.api_versions.is_empty() { options.questions.asked() } else { Default::default() };
    Ok(Yield { objects: output.objects(), warnings: output.warnings, asked_versions, ..Yield::default() })
}

fn helm_error(error: HelmError) -> RenderError {
    let cause = match error {
        HelmError::Unsupported(_) => Cause::Unsupported,
        _ => Cause::Other,
    };
    RenderError::new(error.to_string()).caused_by(cause)
}

fn options(job: &Job<'_>, helm: &HelmSource) -> Result<RenderOptions, RenderError> {
    let destination = &job.app.spec.destination.namespace;
    let cluster = job.context;
    Ok(RenderOptions {
        release_name: some_or(&helm.release_name, &job.app.metadata.name).to_owned(),
        namespace: some_or(&helm.namespace, destination).to_owned(),
        values: values(job, helm)?,
        kube_version: Some(some_or(&helm.kube_version, cluster.kube_version).to_owned())
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
        // Nor may the time: it stands still at the Application's creation.
        clock: job.app.metadata.creation_timestamp.map(|time| FixedClock(time.timestamp())),
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
    for parameter in &helm.parameters {
        all.push(set(parameter, job));
    }
    for parameter in &helm.file_parameters {
        let path = expanded(job, &parameter.path);
        let (tree, path) = locate(job, &path)?;
        let bytes = tree.read(&path).map_err(|e| RenderError::new(e.to_string()))?;
        all.push(ValuesSource::SetFile(format!("{}={path}", parameter.name), vec![(path, bytes)]));
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
        if c == ',' && before.is_some_and(|b| b != '\\') {
            out.push('\\');
        }
        out.push(c);
        before = Some(c);
    }
    out
}

/// The value files in order. Globs stand for their matches in path order; a file that is also named
/// by itself keeps the place where it is named.
fn value_files(job: &Job<'_>, helm: &HelmSource) -> Result<Vec<ValuesSource>, RenderError> {
    let mut wanted: Vec<(Arc<dyn FileTree>, String, String)> = Vec::new();
    let named: Vec<String> = helm.value_files.iter().map(|entry| expanded(job, entry)).collect();
    for entry in &named {
        if entry.starts_with("http://") || entry.starts_with("https://") {
            let text = format!("value file {entry}: fetching value files by URL is not supported");
            return Err(RenderError::new(text).caused_by(Cause::Unsupported));
        }
        let (tree, path) = locate(job, entry)?;
        let matches = if glob::is_glob(&path) { expand(tree.as_ref(), &path)? } else { vec![path.clone()] };
        if matches.is_empty() && !helm.ignore_missing_value_files {
            let text = format!("value files {entry}: no file matches");
            return Err(RenderError::new(text).caused_by(Cause::Missing));
        }
        for found in matches {
            let is_named = |other: &String| {
                locate(job, other).is_ok_and(|(of, path)| Arc::ptr_eq(&of, &tree) && path == found)
            };
            let explicit = found != path && named.iter().any(is_named);
            let known = wanted.iter().any(|(have, path, _)| Arc::ptr_eq(have, &tree) && *path == found);
            if !explicit && !known {
                wanted.push((tree.clone(), found, entry.clone()));
            }
        }
    }
    let mut files = Vec::new();
    for (tree, path, entry) in wanted {
        match tree.read(&path) {
            Ok(bytes) => files.push(ValuesSource::File(path, bytes)),
            Err(error) if error.is_not_found() && helm.ignore_missing_value_files => {}
            Err(error) => {
                let cause = if error.is_not_found() { Cause::Missing } else { Cause::Other };
                return Err(RenderError::new(format!("value file {entry}: {error}")).caused_by(cause));
            }
        }
    }
    Ok(files)
}

/// A values file as it is named, with variables replaced. `$name/…` is a reference to a source, unless `name` is a
/// variable: as one it would be empty, and the rest a file of this repository.
fn expanded(job: &Job<'_>, entry: &str) -> String {
    let reference = entry.strip_prefix('$').and_then(|rest| rest.split_once('/'));
    match reference {
        Some((name, path)) if job.set.has_reference(name) || !job.env.has(name) => {
            format!("${name}/{}", job.env.expand(path))
        }
        _ => job.env.expand(entry),
    }
}

/// The files that match a glob, in path order.
fn expand(tree: &dyn FileTree, pattern: &str) -> Result<Vec<String>, RenderError> {
    let fixed = pattern.split('/').take_while(|step| !glob::is_glob(step)).collect::<Vec<_>>().join("/");
    if !tree.is_dir(&fixed) {
        return Ok(Vec::new());
    }
    let files = tiphys_vfs::walk(tree, &fixed).map_err(|e| RenderError::new(e.to_string()))?;
    Ok(files.into_iter().filter(|file| glob::matches(pattern, file, true)).collect())
}

/// The tree and path that an entry names: `$ref/path` in another source, `/path` from the root of
/// the repository, else from the source's folder.
fn locate(job: &Job<'_>, entry: &str) -> Result<(Arc<dyn FileTree>, String), RenderError> {
    let outside = |_| RenderError::new(format!("value file {entry}: it leads outside the repository"));
    if let Some(rest) = entry.strip_prefix('$') {
        let (name, path) = rest.split_once('/').unwrap_or((rest, ""));
        return Ok((job.set.referred(name)?.clone(), join("", path).map_err(outside)?));
    }
    let base = if entry.starts_with('/') { "" } else { job.source.path.as_str() };
    Ok((job.set.tree(job.index).clone(), join(base, entry).map_err(outside)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_of_parameters_do_not_separate() {
        for (value, expected) in [("a,b", "a\\,b"), ("a\\,b", "a\\,b"), ("{a,b}", "{a,b}"), (",a", ",a")] {
            assert_eq!(escape_commas(value), expected);
        }
    }
}
