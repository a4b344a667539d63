//! From files to charts.

use std::{collections::BTreeMap, sync::Arc};

use tiphys_vfs::{FileTree, is_lfs_pointer};

use super::{
    Chart, ChartFile,
    archive::{MAX_CHART_SIZE, unpack},
    decode::{Field, is_field, mapping},
    links::named_path,
    metadata::{Lock, Metadata},
    walk::{Lazily, chart_files},
};
use crate::{
    Compat, HelmError,
    engine::TemplateCache,
    log_text::log_text,
    values::{Defaults, Table, read_values},
};

/// How deep subcharts may nest.
const MAX_SUBCHART_DEPTH: usize = 32;
/// How many charts a chart may consist of, at all depths, and of how many files. The largest in use have some
/// 150 charts and 5,000 files.
const MAX_CHARTS: usize = 2000;
const MAX_FILES: usize = 100_000;

/// Loads a folder or an archive.
pub(crate) fn load(
    tree: &dyn FileTree,
    path: &str,
    compat: Compat,
    mut lazily: Option<Lazily>,
) -> Result<Chart, HelmError> {
    let path = tiphys_vfs::normalize(path)?;
    if tree.is_file(&path) {
        return load_archive(&tree.read(&path)?, &path, compat);
    }
    // Helm 3 reads the whole folder before it looks for Chart.yaml.
    let walked = match compat {
        Compat::Helm3 => Some(chart_files(tree, &path, compat, lazily.as_mut())?),
        Compat::Helm4 => None,
    };
    let chart_yaml = if path.is_empty() { "Chart.yaml".to_owned() } else { format!("{path}/Chart.yaml") };
    let text = tree.read(&chart_yaml).map_err(|error| {
        if error.is_not_found() {
            let chart_yaml = named_path(tree, &chart_yaml);
            let text = match compat {
                Compat::Helm4 => format!(
                    "unable to detect chart at {chart_yaml}: open {chart_yaml}: no such file or directory"
                ),
                Compat::Helm3 => "Chart.yaml file is missing".to_owned(),
            };
            return HelmError::Load(text);
        }
        error.into()
    })?;
    check_api_version(&text, compat)?;
    let walked = match walked {
        Some(walked) => walked,
        None => chart_files(tree, &path, compat, lazily.as_mut())?,
    };
    let mut chart = Loader::new(compat).chart(walked.files, &path, 0)?;
    chart.warnings.splice(0..0, walked.warnings);
    if let Some(parser) = lazily.and_then(|lazily| lazily.parser) {
        chart.cache = Arc::new(TemplateCache::with_parser(parser));
    }
    Ok(chart)
}

/// Loads a packaged chart.
pub(crate) fn load_archive(bytes: &[u8], name: &str, compat: Compat) -> Result<Chart, HelmError> {
    if !bytes.starts_with(b"\x1F\x8B\x08") {
        return Err(HelmError::Load(format!("file '{name}' does not appear to be a gzipped archive")));
    }
    let mut loader = Loader::new(compat);
    let files = unpack(bytes, &mut loader.budget)?;
    if let Some(file) = files.iter().find(|file| &*file.name == "Chart.yaml") {
        check_api_version(file.data()?, compat)?;
    } else if compat == Compat::Helm4 {
        return Err(HelmError::Load("unable to detect chart version, no Chart.yaml found".to_owned()));
    }
    loader.chart(files, name, 0)
}

fn check_api_version(text: &[u8], compat: Compat) -> Result<(), HelmError> {
    // Helm 3 knows one kind of chart and does not look.
    if compat == Compat::Helm3 {
        return Ok(());
    }
    let mut version = String::new();
    let wrap = |error| HelmError::Load(format!("cannot load Chart.yaml: {error}"));
    for (key, value) in &mapping(text, "loader.chartBase").map_err(wrap)? {
        if is_field(key, "apiVersion") {
            Field { path: "chartBase.apiVersion" }.string(value, &mut version).map_err(wrap)?;
        }
    }
    match version.as_str() {
        "" | "v1" | "v2" => Ok(()),
        "v3" => Err(HelmError::Load("invalid chart apiVersion".to_owned())),
        _ => Err(HelmError::Load("unsupported chart version".to_owned())),
    }
}

struct Loader {
    compat: Compat,
    /// Bytes that archives may still unpack to, over all levels.
    budget: u64,
    /// Charts and files so far, over all levels.
    charts: usize,
    files: usize,
}

/// The files of a chart, sorted by what they are.
#[derive(Default)]
struct Parts {
    metadata: Option<Metadata>,
    lock: Option<Lock>,
    values: Table,
    values_text: Option<Arc<[u8]>>,
    schema: Option<Arc<[u8]>>,
    templates: Vec<ChartFile>,
    files: Vec<ChartFile>,
    subcharts: BTreeMap<String, Vec<ChartFile>>,
    warnings: Vec<String>,
}

impl Loader {
    fn new(compat: Compat) -> Self {
        Self { compat, budget: MAX_CHART_SIZE, charts: 0, files: 0 }
    }

    /// Counts a chart and its files: archives within archives multiply.
    fn count(&mut self, files: usize, location: &str) -> Result<(), HelmError> {
        self.charts += 1;
        self.files += files;
        let limit = if self.charts > MAX_CHARTS {
            format!("{MAX_CHARTS} charts")
        } else if self.files > MAX_FILES {
            format!("{MAX_FILES} files")
        } else {
            return Ok(());
        };
        Err(HelmError::Limit(format!(
            "the chart has more than {limit} with its subcharts, counted up to {location}: a limit of Tiphys"
        )))
    }

    fn chart(&mut self, files: Vec<ChartFile>, location: &str, depth: usize) -> Result<Chart, HelmError> {
        self.count(files.len(), location)?;
        if depth > MAX_SUBCHART_DEPTH {
            let text = format!("subcharts in {location} nest deeper than the limit of {MAX_SUBCHART_DEPTH}");
            return Err(HelmError::Limit(text));
        }
        let mut parts = self.parts(files)?;
        let Some(mut metadata) = parts.metadata.take() else {
            return Err(HelmError::Load("Chart.yaml file is missing".to_owned()));
        };
        metadata.validate().map_err(HelmError::Load)?;
        let mut dependencies = Vec::new();
        for (name, files) in parts.subcharts {
            if let Some(subchart) = self.subchart(&name, files, &metadata.name, location, depth)? {
                dependencies.push(subchart);
            }
        }
        let values: Arc<Defaults> = Arc::new(parts.values.into());
        Ok(Chart {
            metadata,
            lock: parts.lock,
            templates: Arc::new(parts.templates),
            files: Arc::new(parts.files),
            schema: parts.schema,
            dependencies,
            own_values: values.clone(),
            values,
            values_text: parts.values_text,
            location: Arc::from(location),
            warnings: parts.warnings,
            cache: Arc::default(),
            merge_cache: Arc::default(),
            schema_cache: Arc::default(),
        })
    }

    fn parts(&self, files: Vec<ChartFile>) -> Result<Parts, HelmError> {
        let mut parts = Parts::default();
        for file in files.iter().filter(|file| &*file.name == "Chart.yaml") {
            let metadata = parts.metadata.get_or_insert_default();
            let read = metadata.read(file.data()?);
            read.map_err(|error| cannot_load("Chart.yaml", &error, self.compat))?;
            if metadata.api_version.is_empty() {
                "v1".clone_into(&mut metadata.api_version);
            }
        }
        for file in files {
            self.sort_file(&mut parts, file)?;
        }
        Ok(parts)
    }

    fn sort_file(&self, parts: &mut Parts, file: ChartFile) -> Result<(), HelmError> {
        match &*file.name {
            "Chart.yaml" => {}
            "Chart.lock" => {
                let lock = Lock::read(file.data()?);
                parts.lock = Some(lock.map_err(|error| cannot_load("Chart.lock", &error, self.compat))?);
            }
            "values.yaml" => {
                parts.values = read_values(file.data()?, self.compat)
                    .map_err(|error| cannot_load("values.yaml", &error, self.compat))?;
                parts.values_text = Some(file.data()?.clone());
            }
            "values.schema.json" => parts.schema = Some(file.data()?.clone()),
            "requirements.yaml" | "requirements.lock" => requirements(parts, file, self.compat)?,
            name if name.starts_with("templates/") => parts.templates.push(file),
            name => match name.strip_prefix("charts/") {
                Some(rest) if !rest.ends_with(".prov") => {
                    let (folder, _) = rest.split_once('/').unwrap_or((rest, ""));
                    parts.subcharts.entry(folder.to_owned()).or_default().push(file.with_name(rest));
                }
                _ => parts.files.push(file),
            },
        }
        Ok(())
    }

    fn subchart(
        &mut self,
        name: &str,
        files: Vec<ChartFile>,
        parent: &str,
        location: &str,
        depth: usize,
    ) -> Result<Option<Chart>, HelmError> {
        if name.starts_with(['_', '.']) {
            return Ok(None);
        }
        let location = format!("{location}/charts/{name}");
        let location = location.trim_start_matches('/');
        let loaded = if name.ends_with(".tgz") {
            let file = &files[0];
            if &*file.name != name {
                let file = &file.name;
                return Err(HelmError::Load(format!(
                    "error unpacking subchart tar in {parent}: expected {name}, got {file}"
                )));
            }
            if is_lfs_pointer(file.data()?) {
                return Err(HelmError::KeptElsewhere(format!(
                    "{location} is kept by Git LFS, from which nothing is fetched: what the repository itself has there is a pointer; `git lfs pull` gets the file"
                )));
            }
            unpack(file.data()?, &mut self.budget).and_then(|files| self.chart(files, location, depth + 1))
        } else {
            // Files that stand in charts/ itself belong to no chart.
            let inside = files.into_iter().filter_map(|file| {
                let (_, name) = file.name.split_once('/')?;
                Some(file.with_name(name))
            });
            self.chart(inside.collect(), location, depth + 1)
        };
        loaded.map(Some).map_err(|error| match error {
            HelmError::Load(text) => {
                HelmError::Load(format!("error unpacking subchart {name} in {parent}: {text}"))
            }
            other => other,
        })
    }
}

/// The files by which charts of `apiVersion: v1` name their dependencies.
fn requirements(parts: &mut Parts, file: ChartFile, compat: Compat) -> Result<(), HelmError> {
    let metadata = parts.metadata.get_or_insert_default();
    let is_v1 = metadata.api_version == "v1";
    if &*file.name == "requirements.yaml" {
        if !is_v1 {
            const TEXT: &str = "Warning: Dependencies are handled in Chart.yaml since apiVersion \"v2\". We recommend migrating dependencies to Chart.yaml.";
            parts.warnings.push(match compat {
                Compat::Helm4 => format!("level=INFO msg={}", log_text(TEXT)),
                Compat::Helm3 => format!("load.go:120: {TEXT}"),
            });
        }
        let read = metadata.read(file.data()?);
        read.map_err(|error| cannot_load("requirements.yaml", &error, compat))?;
    } else {
        if !is_v1 {
            const TEXT: &str = "Warning: Dependency locking is handled in Chart.lock since apiVersion \"v2\". We recommend migrating to Chart.lock.";
            parts.warnings.push(match compat {
                Compat::Helm4 => format!("level=INFO msg={}", log_text(TEXT)),
                Compat::Helm3 => format!("load.go:138: {TEXT}"),
            });
        }
        let lock = Lock::read(file.data()?);
        parts.lock = Some(lock.map_err(|error| cannot_load("requirements.lock", &error, compat))?);
    }
    if is_v1 {
        parts.files.push(file);
    }
    Ok(())
}

fn cannot_load(file: &str, error: &str, compat: Compat) -> HelmError {
    // The package of a chart's types was called otherwise in Helm 3.
    let renamed = error.rsplit_once(" type ").filter(|_| compat == Compat::Helm3);
    let error = match renamed {
        Some((reason, kind)) => &format!("{reason} type {}", kind.replace("v2.", "chart.")),
        None => error,
    };
    HelmError::Load(format!("cannot load {file}: {error}"))
}

#[cfg(test)]
mod tests {
    use flate2::{Compression, write::GzEncoder};

    use super::*;

    fn pack(files: &[(String, Vec<u8>)]) -> Vec<u8> {
        let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        for (name, data) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(data.len() as u64);
            builder.append_data(&mut header, name, data.as_slice()).unwrap();
        }
        builder.into_inner().unwrap().finish().unwrap()
    }

    /// A chart that holds the next one so many times, so many levels deep.
    fn nested(levels: usize, times: usize) -> Vec<u8> {
        let mut inner: Option<Vec<u8>> = None;
        for level in 0..levels {
            let head = format!("apiVersion: v2\nname: c{level}\nversion: 1.0.0\n");
            let mut files = vec![(format!("c{level}/Chart.yaml"), head.into_bytes())];
            let inside = inner.iter().flat_map(|inner| (0..times).map(move |at| (at, inner)));
            files.extend(inside.map(|(at, inner)| (format!("c{level}/charts/{at}.tgz"), inner.clone())));
            inner = Some(pack(&files));
        }
        inner.unwrap()
    }

    #[test]
    fn charts_within_charts_are_counted_at_all_levels() {
        let error = load_archive(&nested(8, 8), "c.tgz", Compat::Helm4).unwrap_err();
        assert!(matches!(error, HelmError::Limit(_)), "{error}");
        assert!(error.to_string().contains("more than 2000 charts with its subcharts"), "{error}");
        let chart = load_archive(&nested(3, 4), "c.tgz", Compat::Helm4).unwrap();
        assert_eq!(chart.dependencies.iter().map(|it| it.dependencies.len()).sum::<usize>(), 16);
    }
}
