//! What can be seen of an Application although a part of it is out of reach: the sources that can be had, of
//! a chart whose dependencies cannot the templates that ask for none of them, and of a kustomization what it
//! takes from here.

use std::{collections::BTreeSet, sync::Arc};

use tiphys_kustomize::FILE_NAMES;
use tiphys_model::{Application, ApplicationSource};
use tiphys_render::{Cause, RenderError, Subject};
use tiphys_value::{RenderedObject, Value};

use super::{
    attempt::{Attempt, attempt, is_fixed, is_open},
    chart_dependencies::is_of_chart,
    input::Input,
    local_sources::Here,
    names::THIS_REPOSITORY,
    rendering::Touched,
};

/// What was seen of an Application.
#[derive(Default)]
pub(super) struct Part {
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
pub(super) fn render_in_part(application: &Application, input: &Input<'_>) -> Part {
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

/// What a kustomization that does not build makes without the entries at fault; nothing where these are not
/// its resources, generators and components.
pub(super) fn without_faults(application: &Value, input: &Input<'_>) -> Vec<Arc<RenderedObject>> {
    let Ok(application) = Application::from_value(application) else { return Vec::new() };
    let here = Here::without_faults(input);
    let rendered = attempt(&application, input, &here).result;
    rendered.map(|it| it.objects.into_iter().map(Arc::new).collect()).unwrap_or_default()
}

/// Whether a source of an Application is a kustomization of this repository, which may name what is out of
/// reach.
pub(super) fn is_kustomized(application: &Application, input: &Input<'_>) -> bool {
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
    if referred.iter().any(|it| is_fixed(&it.target_revision)) {
        return None;
    }
    let mut alone = application.clone();
    alone.spec.source = None;
    alone.spec.sources = std::iter::once(chart).chain(referred).collect();
    let here = Here::with_stand_ins(input);
    let Attempt { result, missed, .. } = attempt(&alone, input, &here);
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
            let Attempt { result, read, missed, touched } = attempt(alone, input, &here);
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
                Err(error) if here.gave_nothing() => {
                    let own = has_own_fault(alone, source, &error, input).then_some(error);
                    self.fault = self.fault.take().or(own);
                    let here = Here::without_faults(input);
                    let Attempt { result, read, .. } = attempt(alone, input, &here);
                    if let Ok(rendered) = result {
                        self.objects.extend(rendered.objects.into_iter().map(Arc::new));
                        self.seen.extend(read.iter().cloned());
                    }
                    self.read.extend(read);
                    return;
                }
                Err(error) => match failing_template(&error) {
                    Some(_) if left_out.len() == MOST_LEFT_OUT => return,
                    Some(name) if left_out.insert(name.clone()) => {}
                    _ => {
                        let is_ours = source.chart.is_empty() && !is_open(&error, alone);
                        self.fault = self.fault.take().or(is_ours.then_some(error));
                        return;
                    }
                },
            }
        }
    }
}

/// Whether a fault has nothing to do with what is out of reach: the kustomization at fault, which is below
/// that of the source, does not build by itself either and takes nothing from elsewhere.
fn has_own_fault(
    alone: &Application,
    source: &ApplicationSource,
    error: &RenderError,
    input: &Input<'_>,
) -> bool {
    if is_open(error, alone) {
        return false;
    }
    let Some(place) = error.place() else { return false };
    let folder = tiphys_vfs::parent(&place.file).unwrap_or_default();
    let own = tiphys_vfs::normalize(&source.path).unwrap_or_default();
    let below = ApplicationSource { path: folder.to_owned(), ..source.clone() };
    if folder == own || !is_kustomization(&below, input) {
        return false;
    }
    let mut part = alone.clone();
    part.spec.sources = Vec::new();
    part.spec.source = Some(below);
    let here = Here::partly(input, BTreeSet::new());
    let Attempt { result, missed, .. } = attempt(&part, input, &here);
    let is_same = |other: &RenderError| other.place() == error.place();
    missed.is_empty() && !here.gave_nothing() && result.is_err_and(|other| is_same(&other))
}

/// A chart of which more templates fail shows nothing.
const MOST_LEFT_OUT: usize = 50;

/// The template that a rendering failed in, as a path in its chart; none if it does not even parse.
fn failing_template(error: &RenderError) -> Option<String> {
    let Some(Subject::Template { name, is_syntax: false, .. }) = error.subject() else { return None };
    let at = name.find("/templates/")?;
    Some(name[at + 1..].to_owned())
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
}
