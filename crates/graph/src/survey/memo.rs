//! Rendering each Application once, many at a time.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tiphys_model::{Application, SourceType, Tracking};
use tiphys_render::{Cause, Context, render};
use tiphys_value::{RenderedObject, Value};

use crate::parallel;

use super::{
    Input, Outcome,
    here::Here,
    is_namespaced,
    kept::{Renderings, Touched},
};

/// Namespace of the engine, where Applications live that name none: Argo CD's.
pub const ENGINE_NAMESPACE: &str = "argocd";

/// What an Application renders to.
pub struct Rendering {
    pub outcome: Outcome,
    pub objects: Vec<Arc<RenderedObject>>,
    pub tools: Vec<Option<SourceType>>,
    pub read: Arc<BTreeSet<Arc<str>>>,
    pub missed: Vec<(String, String)>,
    pub touched: Touched,
}

/// The renderings by what the Application says.
pub struct Memo<'a> {
    known: Renderings,
    /// Those of an earlier survey that hold for this one.
    kept: &'a Renderings,
}

impl<'a> Memo<'a> {
    /// Knows what was kept.
    pub fn new(kept: &'a Renderings) -> Self {
        Self { known: Renderings::new(), kept }
    }

    /// All that was asked for.
    pub fn into_known(self) -> Renderings {
        self.known
    }

    /// What an Application renders to, if it was asked for before.
    pub fn get(&self, declared: &Value) -> Option<&Arc<Rendering>> {
        self.known.get(&key(declared))
    }

    /// Renders those Applications that are not known yet.
    pub fn render(&mut self, applications: &[&Value], input: &Input<'_>) {
        let mut open: Vec<(String, Application)> = Vec::new();
        let mut seen = BTreeSet::new();
        for declared in applications {
            let key = key(declared);
            if self.known.contains_key(&key) || !seen.insert(key.clone()) {
                continue;
            }
            if let Some(rendering) = self.kept.get(&key) {
                self.known.insert(key, rendering.clone());
                continue;
            }
            if let Ok(application) = Application::from_value(declared) {
                open.push((key, application));
            }
        }
        let done = all(&open, input, self.known.len());
        for ((key, _), rendering) in open.into_iter().zip(done) {
            self.known.insert(key, Arc::new(rendering));
        }
    }
}

/// What decides how an Application renders: everything but its status.
fn key(declared: &Value) -> String {
    let metadata =
        declared.get("metadata").map(|m| (m.get("name"), m.get("namespace"), m.get("annotations")));
    serde_json::to_string(&(metadata, declared.get("spec"))).unwrap_or_default()
}

/// Renders on every processor; the results are in the order of the Applications.
fn all(open: &[(String, Application)], input: &Input<'_>, before: usize) -> Vec<Rendering> {
    let done = AtomicUsize::new(before);
    parallel::each(open, |(_, application)| {
        let rendering = one(application, input);
        (input.progress)(done.fetch_add(1, Ordering::Relaxed) + 1, before + open.len());
        rendering
    })
}

/// Whether a source is read at a tag or commit, so that what the repository holds now says little.
fn asks_for_a_fixed_revision(application: &Application) -> bool {
    let is_fixed = |revision: &str| {
        let digits = revision.trim_start_matches('v');
        let is_version = digits.starts_with(|c: char| c.is_ascii_digit()) && digits.contains('.');
        let is_commit = revision.len() >= 7 && revision.chars().all(|c| c.is_ascii_hexdigit());
        is_version || is_commit
    };
    application.spec.effective_sources().iter().any(|source| is_fixed(&source.target_revision))
}

/// Renders one Application.
pub fn one(application: &Application, input: &Input<'_>) -> Rendering {
    let here = Here::new(input);
    let tracking = Tracking::default();
    let context = Context {
        sources: &here,
        kube_version: input.kube_version,
        api_versions: &[],
        tracking: &tracking,
        engine_namespace: ENGINE_NAMESPACE,
        is_namespaced: &is_namespaced,
        origins: true,
    };
    let result = render(application, &context);
    let (read, missed, touched) = (Arc::new(here.read()), here.missed(), here.touched());
    match result {
        Ok(rendered) => Rendering {
            outcome: Outcome::Rendered,
            objects: rendered.objects.into_iter().map(Arc::new).collect(),
            tools: rendered.sources.into_iter().map(|source| source.source_type).collect(),
            read,
            missed,
            touched,
        },
        Err(error) => {
            let outcome = match missed.first() {
                Some((_, why)) => Outcome::Unseen(why.clone()),
                None if error.is_transient() || error.cause() == Cause::Unsupported => {
                    Outcome::Unseen(error.headline().to_owned())
                }
                None if error.cause() == Cause::Missing && asks_for_a_fixed_revision(application) => {
                    let text = format!("{}; another revision may have it", error.headline());
                    Outcome::Unseen(text)
                }
                None => Outcome::Failed(error),
            };
            Rendering { outcome, objects: Vec::new(), tools: Vec::new(), read, missed, touched }
        }
    }
}
