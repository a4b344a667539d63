//! Kustomize sources (Argo CD user guide, "Kustomize"): the options of the Application are an edit
//! of the kustomization, made in memory.

use serde_json::Value;
use tiphys_kustomize::{BuildOptions, ErrorKind, Overlay};
use tiphys_model::{KustomizePatch, KustomizeSource};

use crate::{Cause, Job, RenderError, Yield, build_flags, env};

/// Builds the kustomization of the source's folder.
pub(crate) fn render(job: &Job<'_>) -> Result<Yield, RenderError> {
    let given = job.source.kustomize.as_ref();
    let version = given.map(|options| options.version.as_str()).unwrap_or_default();
    let mut options = BuildOptions {
        overlay: job.source.kustomize.as_ref().map(|options| overlay(options, job)).transpose()?,
        origins: job.context.origins,
        remote_loader: job.context.sources.remote_loader(),
        function_runner: job.context.sources.functions(),
        partial: job.context.sources.builds_parts(),
        skips_faults: job.context.sources.skips_faults(),
        ..build_flags::parse(job.context.sources.kustomize_options(version))?
    };
    if options.enable_helm {
        charts_see(&mut options, given, job)?;
    }
    let tree = job.set.tree(job.index).as_ref();
    let built = tiphys_kustomize::build(tree, &job.source.path, &options).map_err(|error| {
        let place = error.location().map(|at| format!("{at}: ")).unwrap_or_default();
        let advice: String = error.advice().iter().map(|advice| format!("; {advice}")).collect();
        RenderError::new(format!("{place}{error}{advice}"))
            .caused_by(cause(&error))
            .with_location(error.location())
            .missing(error.missing_path())
    })?;
    let warnings = built.warnings().to_vec();
    // Prefixes, labels and replacements multiply what the files hold.
    let objects = job.budget.count(built.into_objects(), &job.source.path)?;
    Ok(Yield { warnings, objects, ..Yield::default() })
}

/// Charts see the versions of the source, or else of the cluster.
fn charts_see(
    options: &mut BuildOptions,
    given: Option<&KustomizeSource>,
    job: &Job<'_>,
) -> Result<(), RenderError> {
    let kube_version = given.map(|given| given.kube_version.as_str()).filter(|version| !version.is_empty());
    let kube_version = env::kube_version(kube_version.unwrap_or(job.context.kube_version))?;
    // These follow the build options on the command line, where the last version of Kubernetes wins.
    if !kube_version.is_empty() {
        options.helm_kube_version = Some(kube_version);
    }
    let api_versions =
        given.map(|given| given.api_versions.as_slice()).filter(|versions| !versions.is_empty());
    options.helm_api_versions.extend_from_slice(api_versions.unwrap_or(job.context.api_versions));
    Ok(())
}

fn cause(error: &tiphys_kustomize::Error) -> Cause {
    match error.kind() {
        ErrorKind::Restricted => Cause::LoadRestricted,
        ErrorKind::Unsupported | ErrorKind::Remote | ErrorKind::Http | ErrorKind::Timeout => {
            Cause::Unsupported
        }
        _ => Cause::Other,
    }
}

fn overlay(options: &KustomizeSource, job: &Job<'_>) -> Result<Overlay, RenderError> {
    Ok(Overlay {
        name_prefix: options.name_prefix.clone(),
        name_suffix: options.name_suffix.clone(),
        images: options.images.clone(),
        replicas: options
            .replicas
            .iter()
            .map(|replica| Ok((replica.name.clone(), count(&replica.count)?)))
            .collect::<Result<_, RenderError>>()?,
        common_labels: options.common_labels.clone(),
        force_common_labels: options.force_common_labels,
        label_without_selector: options.label_without_selector,
        label_include_templates: options.label_include_templates,
        common_annotations: options.common_annotations.clone(),
        force_common_annotations: options.force_common_annotations,
        common_annotations_envsubst: options.common_annotations_envsubst,
        namespace: options.namespace.clone(),
        patches: options.patches.iter().map(patch).collect(),
        components: options.components.clone(),
        ignore_missing_components: options.ignore_missing_components,
        env: job.env.0.clone(),
    })
}

fn patch(patch: &KustomizePatch) -> Value {
    serde_json::to_value(patch).unwrap_or_default()
}

/// A replica count: a whole number or its text.
fn count(value: &Value) -> Result<i64, RenderError> {
    value
        .as_i64()
        .or_else(|| value.as_str()?.parse().ok())
        .ok_or_else(|| RenderError::new(format!("kustomize.replicas: {value} is no whole number")))
}
