//! `helm template`, from chart and options to output.

use std::{collections::BTreeMap, fmt::Write, sync::OnceLock};

use tiphys_gocompat::{glob::path_match, strconv::quote, unicode::is_space};

use crate::{
    Chart, Compat, HelmError, Hook, HookEvent, Manifest, RenderOptions, TemplateOutput,
    capabilities::Capabilities,
    dependencies, engine,
    log_text::log_text,
    origins::Trace,
    release::{Examined, Examiner, sort_manifests, split_manifests},
    schema,
    semver::is_compatible,
    values::{Warnings, coalesce_values, user_values},
};

/// The longest release name.
const MAX_NAME: usize = 53;

/// Renders a chart as `helm template` does.
///
/// # Errors
/// What `helm template` prints after `Error: `, see [`HelmError`].
pub fn template(chart: &Chart, options: &RenderOptions) -> Result<TemplateOutput, HelmError> {
    let mut warnings = Warnings::new();
    let output = template_with_warnings(chart, options, &mut warnings)?;
    Ok(TemplateOutput { warnings, ..output })
}

/// What is wrong with the options whatever the chart: Helm looks at them before it reads a chart.
///
/// # Errors
/// The version of Kubernetes or values do not parse.
pub fn check_options(options: &RenderOptions) -> Result<(), HelmError> {
    Capabilities::from_options(options)?;
    user_values(&options.values, options.compat).map(drop)
}

/// As [`template`], adding what Helm logs to `warnings`, also if it fails.
///
/// # Errors
/// As [`template`].
pub fn template_with_warnings(
    chart: &Chart,
    options: &RenderOptions,
    warnings: &mut Vec<String>,
) -> Result<TemplateOutput, HelmError> {
    let compat = options.compat;
    let capabilities = Capabilities::from_options(options)?;
    let given = user_values(&options.values, compat)?;
    warnings.extend(load_warnings(chart));
    let mut output = TemplateOutput::default();
    check_installable(chart)?;
    warnings.extend(deprecation(chart, compat));
    check_dependencies(chart, compat)?;
    check_name(&options.release_name, compat, warnings)?;
    let mut chart = chart.clone();
    dependencies::process(&mut chart, &given, compat, warnings)?;
    let values = coalesce_values(&chart, &given, compat, warnings)?;
    if !options.skip_schema_validation {
        let loader = options.schemas.as_deref();
        schema::validate(&chart, &values, loader, compat, warnings).map_err(HelmError::Schema)?;
    }
    let wanted = &chart.metadata.kube_version;
    if !wanted.is_empty() && !is_compatible(wanted, &capabilities.kube_version.normalized) {
        let version = &capabilities.kube_version.version;
        return Err(HelmError::KubeVersion(format!(
            "chart requires kubeVersion: {wanted} which is incompatible with Kubernetes {version}"
        )));
    }
    let mut trace = options.origins.then(|| Trace::new(&chart, &values, &options.values, compat));
    let notes = format!("{}/templates/NOTES.txt", chart.name());
    let mut files = Examiner::new(compat);
    engine::render(&chart, &values, &capabilities, options, trace.as_mut(), |path, rendered| {
        if !engine::is_notes(&path) {
            files.add(path, rendered);
        } else if path == notes {
            output.notes = rendered.into_text();
        }
    })?;
    let mut files = files.finish();
    let sorted = sort_manifests(&mut files, compat, warnings).map_err(|(template, reason)| {
        HelmError::InvalidYaml { template, reason, rendered: unsorted(&files) }
    })?;
    if options.include_crds {
        collect_crds(&chart, chart.name(), &mut output.crds)?;
    }
    output.manifests = sorted.manifests;
    output.hooks = sorted.hooks;
    if options.no_hooks {
        output.hooks.clear();
    } else if options.skip_tests {
        output.hooks.retain(|hook| !hook.events.contains(&HookEvent::Test));
    }
    output.trace = trace;
    output.stdout = print(&output, options)?;
    Ok(output)
}

fn load_warnings(chart: &Chart) -> Vec<String> {
    let mut warnings = chart.warnings.clone();
    chart.dependencies.iter().for_each(|subchart| warnings.extend(load_warnings(subchart)));
    warnings
}

/// What Helm logs of a chart before it looks whether its dependencies are there.
pub fn chart_warnings(chart: &Chart, compat: Compat) -> Vec<String> {
    let mut warnings = load_warnings(chart);
    warnings.extend(deprecation(chart, compat));
    warnings
}

fn deprecation(chart: &Chart, compat: Compat) -> Option<String> {
    let text = match compat {
        Compat::Helm4 => "level=WARN msg=\"this chart is deprecated\"",
        Compat::Helm3 => "WARNING: This chart is deprecated",
    };
    chart.metadata.deprecated.then(|| text.to_owned())
}

fn check_installable(chart: &Chart) -> Result<(), HelmError> {
    let kind = &chart.metadata.chart_type;
    match kind.as_str() {
        "" | "application" => Ok(()),
        _ => Err(HelmError::Load(format!("{kind} charts are not installable"))),
    }
}

fn check_dependencies(chart: &Chart, compat: Compat) -> Result<(), HelmError> {
    let missing: Vec<_> = chart.missing_dependencies().into_iter().map(|it| it.name.clone()).collect();
    match (missing.is_empty(), compat) {
        (true, _) => Ok(()),
        (false, Compat::Helm4) => Err(HelmError::MissingDependencies(missing)),
        (false, Compat::Helm3) => Err(HelmError::MissingDependencies3(missing)),
    }
}

/// Checks a release name: lower-case labels separated by dots.
fn check_name(name: &str, compat: Compat, warnings: &mut Vec<String>) -> Result<(), HelmError> {
    let is_label = |label: &str| {
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !label.is_empty() && label.chars().all(inner) && !label.starts_with('-') && !label.ends_with('-')
    };
    if !name.is_empty() && name.len() <= MAX_NAME && name.split('.').all(is_label) {
        return Ok(());
    }
    let reason = if name.is_empty() {
        "no name provided".to_owned()
    } else {
        format!(
            "invalid release name, must match regex ^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$ and the length must not be longer than {MAX_NAME}"
        )
    };
    let reason = format!("release name {}: {reason}", quote(name));
    if compat == Compat::Helm3 {
        return Err(HelmError::Option(reason));
    }
    let shown = log_text(&reason);
    warnings.push(format!("level=ERROR msg=\"release name check failed\" error={shown}"));
    Err(HelmError::Option(format!("release name check failed: {reason}")))
}

fn collect_crds(chart: &Chart, path: &str, crds: &mut Vec<Manifest>) -> Result<(), HelmError> {
    for file in chart.crds() {
        crds.push(Manifest {
            path: format!("{path}/{}", file.name),
            content: String::from_utf8_lossy(file.data()?).into_owned().into(),
            kind: "CustomResourceDefinition".to_owned(),
            value: OnceLock::from(tiphys_value::Value::Null),
        });
    }
    for subchart in &chart.dependencies {
        collect_crds(subchart, &format!("{path}/charts/{}", subchart.name()), crds)?;
    }
    Ok(())
}

/// What goes to standard output.
fn print(output: &TemplateOutput, options: &RenderOptions) -> Result<String, HelmError> {
    let all = || output.crds.iter().chain(&output.manifests);
    let hooks = output.hooks.iter().map(|hook| &hook.manifest);
    let mut text = String::with_capacity(all().chain(hooks).map(printed_size).sum());
    for manifest in all() {
        push(&mut text, manifest);
    }
    text.truncate(text.trim_end_matches(is_space).len());
    let blank = text.len() - text.trim_start_matches(is_space).len();
    text.drain(..blank);
    text.push('\n');
    for Hook { manifest, .. } in &output.hooks {
        push(&mut text, manifest);
    }
    if options.show_only.is_empty() { Ok(text) } else { show_only(&text, &options.show_only, options.compat) }
}

/// Files as they were rendered; empty ones are left out. Helm prints them in no order.
fn unsorted(files: &BTreeMap<String, Examined>) -> String {
    let mut text = String::new();
    for (path, Examined { text: content, .. }) in files {
        if !content.trim_matches(is_space).is_empty() {
            let _ = writeln!(text, "---\n# Source: {path}\n{content}");
        }
    }
    text
}

/// What Helm prints around the path and the content of a document.
const AROUND: [&str; 3] = ["---\n# Source: ", "\n", "\n"];

fn push(text: &mut String, manifest: &Manifest) {
    let [before, between, behind] = AROUND;
    let parts: [&str; 5] = [before, &manifest.path, between, &manifest.content, behind];
    parts.iter().for_each(|part| text.push_str(part));
}

fn printed_size(manifest: &Manifest) -> usize {
    AROUND.iter().map(|part| part.len()).sum::<usize>() + manifest.path.len() + manifest.content.len()
}

/// The documents of the files that were asked for, in the order of the request.
fn show_only(text: &str, wanted: &[String], compat: Compat) -> Result<String, HelmError> {
    const SOURCE: &str = "# Source: ";
    let documents = split_manifests(text, compat);
    let mut shown = String::new();
    for pattern in wanted {
        let mut found = false;
        for document in &documents {
            let source = document.find(SOURCE).map(|at| &document[at + SOURCE.len()..]);
            let line = source.and_then(|it| it.lines().next()).unwrap_or_default();
            let Some((_, path)) = line.split_once('/') else { continue };
            if path_match(pattern, path).unwrap_or(false) {
                found = true;
                // Writing to a string cannot fail.
                let _ = write!(shown, "---\n{document}\n");
            }
        }
        if !found {
            return Err(HelmError::Option(format!("could not find template {pattern} in chart")));
        }
    }
    Ok(shown)
}
