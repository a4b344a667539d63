//! What can be seen of an Application although a part of it is out of reach: the sources that can be had, of
//! a chart whose dependencies cannot the templates that ask for none of them, and of a kustomization what it
//! takes from here.

use std::{
    collections::BTreeSet,
    sync::{Arc, LazyLock},
};

use regex::Regex;
use tiphys_helm::{Chart, ChartFile};
use tiphys_kustomize::FILE_NAMES;
use tiphys_model::{Application, ApplicationSource};
use tiphys_render::{Cause, RenderError, Subject};
use tiphys_value::RenderedObject;

use super::{
    Input,
    incremental::Touched,
    local_sources::{Here, THIS_REPOSITORY},
    render_cache::{self, Attempt},
};

/// What was seen of an Application.
#[derive(Default)]
pub struct Part {
    pub objects: Vec<Arc<RenderedObject>>,
    /// The files that the objects were made from.
    pub seen: BTreeSet<Arc<str>>,
    /// The files that were read.
    pub read: BTreeSet<Arc<str>>,
    pub touched: Touched,
    /// A fault that has nothing to do with what is out of reach.
    pub fault: Option<RenderError>,
}

/// Looks at each source by itself, with those that only are referred to.
pub fn render_in_part(application: &Application, input: &Input<'_>) -> Part {
    let sources = application.spec.effective_sources();
    let mut part = Part::default();
    for (at, source) in sources.iter().enumerate().filter(|(_, source)| !source.is_reference_only()) {
        let mut alone = application.clone();
        if sources.len() > 1 {
            alone.spec.source = None;
            alone.spec.sources = beside(&sources, at);
        }
        part.add(source, &alone, input);
        part.fault = part.fault.take().or_else(|| values_fault(application, &sources, source, input));
    }
    part
}

/// Whether a source of an Application is a kustomization of this repository, which may name what is out of
/// reach.
pub fn is_kustomized(application: &Application, input: &Input<'_>) -> bool {
    application.spec.effective_sources().iter().any(|source| is_kustomization(source, input))
}

fn is_kustomization(source: &ApplicationSource, input: &Input<'_>) -> bool {
    let is_there = |name| tiphys_vfs::join(&source.path, name).is_ok_and(|path| input.tree.is_file(&path));
    let is_here = source.repo_url == THIS_REPOSITORY || (input.is_given)(&source.repo_url);
    source.chart.is_empty() && is_here && FILE_NAMES.into_iter().any(is_there)
}

/// The fault of the values files that a chart out of reach is given from this repository: no source has the
/// `ref`, or the file is not there.
fn values_fault(
    application: &Application,
    sources: &[ApplicationSource],
    source: &ApplicationSource,
    input: &Input<'_>,
) -> Option<RenderError> {
    let mut chart = source.clone();
    let helm = chart.helm.as_mut().filter(|_| !source.chart.is_empty())?;
    // What begins otherwise is a file of the chart's own.
    helm.value_files.retain(|entry| entry.starts_with('$'));
    if helm.value_files.is_empty() {
        return None;
    }
    let referred = sources.iter().filter(|it| !it.reference.is_empty());
    let referred = referred.map(|it| ApplicationSource {
        path: String::new(),
        chart: String::new(),
        helm: None,
        kustomize: None,
        directory: None,
        plugin: None,
        ..it.clone()
    });
    let referred: Vec<ApplicationSource> = referred.collect();
    if referred.iter().any(|it| render_cache::is_fixed(&it.target_revision)) {
        return None;
    }
    let mut alone = application.clone();
    alone.spec.source = None;
    alone.spec.sources = std::iter::once(chart).chain(referred).collect();
    let here = Here::with_stand_ins(input);
    let Attempt { result, missed, .. } = render_cache::attempt(&alone, input, &here);
    let error = result.err().filter(|_| missed.is_empty())?;
    // What else may be wrong with them depends on the chart.
    let is_theirs = error.cause() == Cause::Missing || error.subject() == Some(&Subject::Reference);
    is_theirs.then_some(error)
}

/// A source, and those that it may refer to.
fn beside(sources: &[ApplicationSource], at: usize) -> Vec<ApplicationSource> {
    let others = sources.iter().enumerate();
    others.filter(|(index, it)| *index == at || it.is_reference_only()).map(|(_, it)| it.clone()).collect()
}

impl Part {
    fn add(&mut self, source: &ApplicationSource, alone: &Application, input: &Input<'_>) {
        let is_out_of_reach = |missed: &[(String, String)]| missed.iter().any(|(what, _)| !is_of_chart(what));
        let mut left_out: BTreeSet<String> = BTreeSet::new();
        // Each round leaves out one more template, so that this ends.
        loop {
            let here = Here::partly(input, left_out.clone());
            let Attempt { result, read, missed, touched } = render_cache::attempt(alone, input, &here);
            self.touched.paths.extend(touched.paths);
            self.touched.addresses.extend(touched.addresses);
            self.read.extend(read.iter().cloned());
            match result {
                Ok(rendered) => {
                    self.objects.extend(rendered.objects.into_iter().map(Arc::new));
                    self.seen.extend(read);
                    return;
                }
                Err(_) if is_out_of_reach(&missed) => return,
                // What does not build without the rest may well build with it.
                Err(_) if here.gave_nothing() => return,
                Err(error) => match failing_template(&error) {
                    Some(_) if left_out.len() == MOST_LEFT_OUT => return,
                    Some(name) if left_out.insert(name.clone()) => {}
                    _ => {
                        let is_ours = source.chart.is_empty() && !render_cache::is_open(&error, alone);
                        self.fault = self.fault.take().or(is_ours.then_some(error));
                        return;
                    }
                },
            }
        }
    }
}

/// A chart of which more templates fail shows nothing.
const MOST_LEFT_OUT: usize = 50;

/// What [`Here`] calls the dependencies of a chart.
pub fn dependencies_of(chart: &Chart) -> String {
    format!("{DEPENDENCIES}{}", chart.name())
}

const DEPENDENCIES: &str = "dependencies of chart ";

/// Whether what is missed is dependencies of a chart.
pub fn is_of_chart(missed: &str) -> bool {
    missed.starts_with(DEPENDENCIES)
}

/// The template that a rendering failed in, as a path in its chart; none if it does not even parse.
fn failing_template(error: &RenderError) -> Option<String> {
    let Some(Subject::Template { name, is_syntax: false, .. }) = error.subject() else { return None };
    let at = name.find("/templates/")?;
    Some(name[at + 1..].to_owned())
}

/// Takes from a chart the dependencies that it lacks, the templates that ask for them, and those of some
/// names.
pub fn reduce(chart: &mut Chart, left_out: &BTreeSet<String>) {
    let missing: Vec<String> = chart
        .missing_dependencies()
        .iter()
        .flat_map(|it| [it.name.clone(), it.alias.clone()])
        .filter(|name| !name.is_empty())
        .collect();
    let missed: Vec<_> = chart.missing_dependencies().into_iter().cloned().collect();
    chart.metadata.dependencies.retain(|wanted| !missed.contains(wanted));
    let texts: Vec<(&ChartFile, String)> = chart
        .templates
        .iter()
        .map(|file| {
            let bytes = file.data().map(|data| data.to_vec()).unwrap_or_default();
            (file, String::from_utf8_lossy(&bytes).into_owned())
        })
        .collect();
    let mut tainted: BTreeSet<usize> = BTreeSet::new();
    let mut names: BTreeSet<String> = BTreeSet::new();
    loop {
        let before = tainted.len();
        for (at, (file, text)) in texts.iter().enumerate() {
            if tainted.contains(&at) || !(asks_for(text, &missing) || includes(text, &names)) {
                continue;
            }
            tainted.insert(at);
            if file.name.rsplit('/').next().is_some_and(|base| base.starts_with('_')) {
                names.extend(DEFINED.captures_iter(text).map(|found| found[1].to_owned()));
            }
        }
        if tainted.len() == before {
            break;
        }
    }
    let is_partial = |file: &ChartFile| file.name.rsplit('/').next().is_some_and(|it| it.starts_with('_'));
    let kept = texts.iter().enumerate().filter(|(at, (file, _))| {
        // What is defined there is not rendered by itself.
        (is_partial(file) || !tainted.contains(at)) && !left_out.contains(file.name.as_ref())
    });
    chart.templates = Arc::new(kept.map(|(_, (file, _))| (*file).clone()).collect());
}

/// The names of templates that a text defines.
static DEFINED: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"define\s+"([^"]+)""#).expect("the expression is right"));

/// Whether a template includes one of some names.
fn includes(text: &str, names: &BTreeSet<String>) -> bool {
    names.iter().any(|name| text.contains(&format!("\"{name}\"")))
}

/// Whether a template looks at the values of charts, whose own defaults nobody knows, or at the charts
/// themselves.
fn asks_for(text: &str, charts: &[String]) -> bool {
    let values = |name: &str| {
        let path = format!(".Values.{name}");
        let is_whole = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        text.match_indices(&path).any(|(at, _)| is_whole(&text[at + path.len()..]))
    };
    text.contains(".Subcharts")
        || charts
            .iter()
            .any(|name| values(name) || (text.contains(".Values") && text.contains(&format!("\"{name}\""))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_at_fault_is_named() {
        let failed = |name: &str, is_syntax| {
            let subject = Subject::Template { name: name.to_owned(), line: 3, is_syntax };
            failing_template(&RenderError::new("no").about(subject))
        };
        assert_eq!(failed("web/templates/a/b.yaml", false).as_deref(), Some("templates/a/b.yaml"));
        assert_eq!(failed("web/templates/a/b.yaml", true), None);
        assert_eq!(failing_template(&RenderError::new("value file x: cannot read")), None);
    }

    #[test]
    fn values_of_a_chart_are_told_from_values_that_begin_alike() {
        let charts = ["db".to_owned()];
        for (text, expected) in [
            ("{{ .Values.db.host }}", true),
            ("{{ index .Values \"db\" \"host\" }}", true),
            ("{{ .Values.dbName }}", false),
            ("{{ .Values.web.db }}", false),
        ] {
            assert_eq!(asks_for(text, &charts), expected, "{text}");
        }
    }
}
