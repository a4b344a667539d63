//! Charts named by `helmCharts`, rendered by the injected inflator.

use std::sync::Arc;

use serde_json::Value;
use tiphys_value::Location;
use tiphys_vfs::FileTree;

use crate::{
    context::Context,
    error::{Context as _, Error, ErrorKind, Result},
    kustomization::model::{HelmChart, HelmGlobals},
    loader::Loader,
    merge::Merger,
    meter::Meter,
    node::{Node, from_json, to_json},
    options::ChartRequest,
    origins::Tracker,
    provenance::join_clean,
    reader::{Text, parse_plain, read_objects},
    resource::Resource,
};

/// A chart to render.
#[derive(Clone, Debug, Default)]
pub(crate) struct HelmGenerator {
    pub chart: HelmChart,
    pub globals: HelmGlobals,
}

const MERGE_OPTIONS: [&str; 3] = ["merge", "override", "replace"];

impl HelmGenerator {
    /// Checks the configuration as kustomize does before anything is rendered.
    ///
    /// # Errors
    /// Helm is not enabled, no name, an unknown `valuesMerge`, values files that are missing.
    pub(crate) fn check(&self, loader: &Loader<'_>, context: &Context<'_>) -> Result<()> {
        if !context.options.enable_helm {
            return Err(Error::new(ErrorKind::Unsupported, "must specify --enable-helm").advise(
                "add it to `kustomize.buildOptions` of argocd-cm, or to the command; the chart is rendered without running helm",
            ));
        }
        if self.chart.name.is_empty() {
            return Err(Error::transform("chart name cannot be empty"));
        }
        for file in &self.chart.additional_values_files {
            loader.load(file).context(|| "could not load additionalValuesFile")?;
        }
        let merge = self.chart.values_merge.as_str();
        if !merge.is_empty() && !MERGE_OPTIONS.contains(&merge) {
            return Err(Error::transform(format!(
                "valuesMerge must be one of [{}]",
                MERGE_OPTIONS.join(" ")
            )));
        }
        Ok(())
    }

    /// The configuration as kustomize hands it to its plugin: what is empty is left out.
    pub(crate) fn config(&self) -> String {
        let parts = [serde_json::to_value(&self.globals), serde_json::to_value(&self.chart)];
        let fields = parts.into_iter().flatten().filter_map(|part| match part {
            Value::Object(fields) => Some(fields),
            _ => None,
        });
        let config = fields.flatten().filter(|(_, value)| !is_empty(value));
        tiphys_yaml::to_yaml(&config.collect::<serde_json::Map<_, _>>().into())
    }

    /// The folder that holds the chart's, as the kustomization names it.
    fn chart_home(&self) -> String {
        let home = &self.globals.chart_home;
        let home = if home.is_empty() { "charts" } else { home };
        let pulled = !self.chart.version.is_empty() && !self.chart.repo.is_empty();
        if pulled {
            join_clean(home, &format!("{}-{}", self.chart.name, self.chart.version))
        } else {
            home.to_owned()
        }
    }
}

/// What Go's `omitempty` leaves out.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

/// Renders a chart.
///
/// # Errors
/// Values that cannot be read or merged, no inflator, and those of the inflator.
pub(crate) fn inflate(
    generator: &HelmGenerator,
    loader: &Loader<'_>,
    location: &Location,
    writer: u32,
    context: &mut Context<'_>,
) -> Result<Vec<Resource>> {
    let chart = &generator.chart;
    let Some(inflator) = context.options.chart_inflator.clone() else {
        let message = format!("helmCharts: cannot render chart '{}': no chart renderer", chart.name);
        return Err(Error::new(ErrorKind::Unsupported, message));
    };
    let mut request = request(generator, context);
    let fail = |message: String| Error::transform(message).located_at(Some(location.clone()));
    let found = Found::find_or_pull(generator, loader, context)
        .map_err(|error| error.located_at(Some(location.clone())))?;
    let base = match chart.values_merge.as_str() {
        "replace" if !chart.values_inline.is_empty() => String::new(),
        _ if chart.values_file.is_empty() => found.own_values(generator, loader)?,
        _ => String::from_utf8_lossy(&loader.load(&chart.values_file)?).into_owned(),
    };
    request.values.push(merged_values(chart, base, &context.meter)?);
    for file in &chart.additional_values_files {
        request.values.push(String::from_utf8_lossy(&loader.load(file)?).into_owned());
    }
    let inflated =
        context.meter.waited().during(|| inflator.inflate(found.tree(loader), &found.folder, &request));
    let text = inflated.map_err(fail)?;
    let source = Text { text: &text, file: &location.file, line_offset: 0, writer };
    let nodes = read_objects(context, source)?;
    let make = |mut node: Node| {
        context.tracker.place(&mut node, writer, location.line, location.column);
        let mut resource = Resource::new(node, location.clone(), &context.schemas);
        resource.from_helm = true;
        resource
    };
    Ok(nodes.into_iter().map(make).collect())
}

/// Where a chart is: in the kustomization's tree, or in one of its own that was pulled.
struct Found {
    pulled: Option<Arc<dyn FileTree>>,
    /// The chart's folder in its tree.
    folder: String,
}

impl Found {
    /// Looks where `helm pull` would put the chart, and pulls it if it is not there.
    fn find_or_pull(generator: &HelmGenerator, loader: &Loader<'_>, context: &Context<'_>) -> Result<Self> {
        let chart = &generator.chart;
        let folder = join_clean(&loader.file_name(&generator.chart_home()), &chart.name);
        if loader.tree().is_dir(&folder) {
            return Ok(Self { pulled: None, folder });
        }
        if chart.repo.is_empty() {
            return Err(Error::transform("no repo specified for pull, no chart found at ''")
                .advise(format!("expected the chart in {folder}, or set `repo`")));
        }
        let Some(remote) = &context.options.remote_loader else { return Err(not_pulled(chart, &folder)) };
        let version = if chart.version.is_empty() && chart.devel { ">0.0.0-0" } else { &chart.version };
        let pull = || remote.chart(&chart.repo, &chart.name, version);
        let pulled = context.meter.waited().during(pull).map_err(|error| {
            let message =
                format!("helmCharts: cannot pull chart '{}' of {}: {error}", chart.name, chart.repo);
            Error::new(ErrorKind::Remote, message)
                .advise(format!("or pull it into {folder} (`helm pull --untar`) and commit it"))
        })?;
        Ok(Self { pulled: Some(pulled), folder: String::new() })
    }

    fn tree<'a>(&'a self, loader: &'a Loader<'_>) -> &'a dyn FileTree {
        self.pulled.as_deref().unwrap_or_else(|| loader.tree())
    }

    /// The text of the chart's values.yaml.
    fn own_values(&self, generator: &HelmGenerator, loader: &Loader<'_>) -> Result<String> {
        let bytes = match &self.pulled {
            Some(tree) => tree.read("values.yaml").map_err(|error| {
                Error::transform(format!("chart '{}': values.yaml: {}", generator.chart.name, error.kind))
            })?,
            None => loader.load(&join_clean(
                &generator.chart_home(),
                &format!("{}/values.yaml", generator.chart.name),
            ))?,
        };
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn not_pulled(chart: &HelmChart, folder: &str) -> Error {
    let message = format!(
        "helmCharts: chart '{}' of {} is not in the tree at '{folder}', and nothing is fetched",
        chart.name, chart.repo
    );
    Error::new(ErrorKind::Unsupported, message)
        .advise(format!("pull it there (`helm pull --untar`) and commit it: expected a folder {folder}"))
}

fn request(generator: &HelmGenerator, context: &Context<'_>) -> ChartRequest {
    let (chart, options) = (&generator.chart, context.options);
    let own_versions = &chart.api_versions;
    ChartRequest {
        name: chart.name.clone(),
        release_name: chart.release_name.clone(),
        namespace: chart.namespace.clone(),
        name_template: chart.name_template.clone(),
        values: Vec::new(),
        include_crds: chart.include_crds,
        skip_hooks: chart.skip_hooks,
        skip_tests: chart.skip_tests,
        api_versions: if own_versions.is_empty() {
            options.helm_api_versions.clone()
        } else {
            own_versions.clone()
        },
        kube_version: match (&chart.kube_version, &options.helm_kube_version) {
            (own, Some(given)) if own.is_empty() => given.clone(),
            (own, _) => own.clone(),
        },
    }
}

/// Values of the file, of the kustomization, or both, as `valuesMerge` says.
fn merged_values(chart: &HelmChart, base: String, meter: &Meter) -> Result<String> {
    if chart.values_inline.is_empty() {
        return Ok(base);
    }
    let inline = Value::Object(chart.values_inline.clone());
    if chart.values_merge == "replace" {
        return Ok(tiphys_yaml::to_yaml(&inline));
    }
    let parse = || {
        parse_plain(&base)
            .map_err(|error| Error::transform(format!("could not parse values file into rnode: {error}")))
    };
    let file = parse()?.unwrap_or_else(|| Node::map(Vec::new()));
    let inline = from_json(&inline);
    let (mut target, patch) = if chart.values_merge == "merge" { (inline, file) } else { (file, inline) };
    let mut tracker = Tracker::new(false);
    let mut merger = Merger { schemas: None, tracker: &mut tracker, meter, depth: 0 };
    let merged = merger.merge(&mut target, patch).and_then(|_| to_json(&target));
    merged
        .map(|value| tiphys_yaml::to_yaml(&value))
        .map_err(|error| Error::transform(format!("could not merge values: {error}")))
}
