//! One try to render an Application from some sources.

use std::{collections::BTreeSet, sync::Arc};

use tiphys_model::{Application, Tracking};
use tiphys_render::{Cause, Context, RenderError, Rendered, render};

use super::{
    input::Input,
    kinds::is_namespaced,
    local_sources::Here,
    names::{ENGINE_NAMESPACE, THIS_REPOSITORY},
    rendering::Touched,
};

/// Whether a source is read at a tag or commit, so that what the repository holds now says little.
fn asks_for_a_fixed_revision(application: &Application) -> bool {
    application.spec.effective_sources().iter().any(|source| is_fixed(&source.target_revision))
}

/// Whether a revision is a version or a commit.
pub(super) fn is_fixed(revision: &str) -> bool {
    let digits = revision.trim_start_matches('v');
    let is_version = digits.starts_with(|c: char| c.is_ascii_digit()) && digits.contains('.');
    let is_commit = revision.len() >= 7 && revision.chars().all(|c| c.is_ascii_hexdigit());
    is_version || is_commit
}

/// What came of rendering an Application.
pub(super) struct Attempt {
    pub result: Result<Rendered, RenderError>,
    pub read: BTreeSet<Arc<str>>,
    pub missed: Vec<(String, String)>,
    pub touched: Touched,
}

/// Renders an Application from some sources.
pub(super) fn attempt(application: &Application, input: &Input<'_>, here: &Here<'_>) -> Attempt {
    let tracking = Tracking::default();
    let context = Context {
        sources: here,
        kube_version: input.kube_version,
        api_versions: &[],
        tracking: &tracking,
        engine_namespace: ENGINE_NAMESPACE,
        is_namespaced: &is_namespaced,
        // What charts and kustomizations declare is told of with its place.
        origins: input.options.origins || is_unit(application),
        mock_secrets: true,
        now: input.options.now,
    };
    let result = render(application, &context);
    Attempt { result, read: here.read(), missed: here.missed(), touched: here.touched() }
}

/// Whether what an Application lacks may be in a revision that is not looked at.
pub(super) fn may_be_elsewhere(error: &RenderError, application: &Application) -> bool {
    error.cause() == Cause::Missing && asks_for_a_fixed_revision(application)
}

/// Whether an error says nothing of the repository.
pub(super) fn is_open(error: &RenderError, application: &Application) -> bool {
    error.is_transient() || error.cause() == Cause::Unsupported || may_be_elsewhere(error, application)
}

/// Whether an Application stands for a chart or kustomization that nothing reaches.
fn is_unit(application: &Application) -> bool {
    application.spec.effective_sources().iter().any(|source| source.repo_url == THIS_REPOSITORY)
}
