//! From an Application to its rendering: the last one where it still serves, one that is seen to be still
//! true, or a new one.

use std::{sync::Arc, time::Duration};

use tiphys_model::Application;
use tiphys_render::{Context, RenderError, Rendered, render, render_given};
use tiphys_source::Footprint;
use tiphys_value::GroupVersionKind;
use tokio::task::JoinError;

use super::report::{Look, Report};
use crate::{
    AppKey, Checkouts, Refresh,
    app_state::AppMemory,
    blocking::blocking,
    checkouts::RepositoryRead,
    destinations::ConnectedCluster,
    home::Home,
    metrics::Count,
    rendering::{Rendering, inputs},
    source_integrity::{Asked, Integrity},
    sources::{GATHER_EDITS, Sources},
};

/// Renders Applications.
pub(crate) struct Renderer {
    home: Arc<Home>,
    sources: Arc<Sources>,
    apps: Arc<AppMemory>,
}

impl Renderer {
    pub(crate) fn new(home: Arc<Home>, sources: Arc<Sources>, apps: Arc<AppMemory>) -> Self {
        Self { home, sources, apps }
    }

    /// The rendering of an Application: the last one if it still serves.
    pub(crate) async fn rendering(
        &self,
        key: &AppKey,
        app: &Application,
        level: Refresh,
        cluster: &Arc<ConnectedCluster>,
        report: &mut Report,
    ) -> Arc<Rendering> {
        let level = self.due_level(key, level);
        let integrity = self.sources.integrity_of(&self.home, app);
        let wanted = inputs(app, &integrity);
        let moved = self.apps.has_moved(key);
        let served = cluster.cache.cluster().discovery();
        if !moved
            && let Some(known) = self.apps.known_rendering(key)
            && known.is_answered_by(&served)
            && known.serves(&wanted, level, self.home.installation().refresh)
        {
            return known;
        }
        if level != Refresh::Hard
            && let Some(known) = self.apps.known_rendering(key)
            && known.is_made_from(&wanted)
            && known.is_answered_by(&served)
            && let Some(same) = self.ask_again(known, integrity, report).await
        {
            let same = Arc::new(same);
            self.apps.remember(key, same.clone());
            report.counts.push(Count::Rendered { anew: false });
            return same;
        }
        if level == Refresh::Hard {
            self.sources.expire(app);
        }
        let edits = self.sources.edits();
        let made = self.render(app, cluster, report).await;
        let made = Arc::new(made.after(self.apps.known_rendering(key).as_deref()));
        self.apps.remember(key, made.clone());
        if self.sources.edits() != edits && made.footprint != Footprint::default() {
            self.apps.drop_rendering(key);
            report.looks.push(Look { key: key.clone(), level: Refresh::Sources, wait: GATHER_EDITS });
        }
        made
    }

    /// Whether an Application is left alone for a while because limits of the kernel ended its rendering
    /// again and again: what takes all of a worker's time and memory every few minutes is taken from the
    /// others. News that somebody brings, a change of its spec and a hard refresh still count.
    pub(crate) fn is_set_aside(&self, key: &AppKey) -> bool {
        self.apps.known_rendering(key).is_some_and(|known| known.is_set_aside())
    }

    /// The level of a look: a hard one if `timeout.hard.reconciliation` has passed since the Application was
    /// rendered.
    pub(crate) fn due_level(&self, key: &AppKey, level: Refresh) -> Refresh {
        let every = self.home.installation().argo.reconciliation.hard;
        let known = self.apps.known_rendering(key).filter(|_| !every.is_zero() && level == Refresh::Sources);
        if known.is_some_and(|known| known.is_older_than(every)) { Refresh::Hard } else { level }
    }

    /// When the sources of an Application are asked for news. Remote repositories tell nobody of new commits;
    /// they are asked at intervals that differ from Application to Application, or only when somebody asks if
    /// the interval is zero. What could not be had is asked for sooner.
    pub(crate) fn next_poll(&self, key: &AppKey, rendering: &Rendering) -> Option<Look> {
        let installation = self.home.installation();
        let (interval, hard) = (installation.refresh, installation.argo.reconciliation.hard);
        let shortest = [interval, hard].into_iter().filter(|interval| !interval.is_zero()).min();
        let spread: u32 =
            key.name.bytes().fold(7_u32, |sum, byte| sum.wrapping_mul(31) ^ u32::from(byte)) % 1000;
        let poll = |wait: Duration| Look { key: key.clone(), level: Refresh::Poll, wait };
        if rendering.may_pass() {
            let pause = self.apps.pause_after_failures(key, shortest.unwrap_or_default());
            return Some(poll(pause + pause / 4 * spread / 1000));
        }
        let interval = shortest.filter(|_| rendering.reads_remotes)?;
        let jitter = installation.argo.reconciliation.jitter.unwrap_or(interval / 4);
        Some(poll(interval + jitter * spread / 1000))
    }

    /// Asks the repositories of a rendering for the commits of today, and whether what was read of them
    /// stands there as it was; `None` if it has to be rendered again. Who else read a commit that a revision
    /// has left is to be looked at, too.
    async fn ask_again(
        &self,
        known: Arc<Rendering>,
        integrity: Integrity,
        report: &mut Report,
    ) -> Option<Rendering> {
        let sources = self.sources.clone();
        let asked = blocking(move || confirm(&sources, &known, &integrity)).await;
        let (same, left) = asked.unwrap_or_default();
        for read in &left {
            report.looks.extend(self.apps.readers_of(read).into_iter().map(Look::at_sources));
        }
        same
    }

    /// The objects that somebody gives in the place of an Application's sources.
    pub(crate) async fn render_given(
        &self,
        app: &Application,
        manifests: Vec<String>,
        cluster: &Arc<ConnectedCluster>,
    ) -> Rendering {
        let work = Work::new(self, app, cluster);
        unless_broken_off(blocking(move || work.render_given(&manifests)).await)
    }

    /// Renders an Application for a cluster, on a thread that may block.
    pub(crate) async fn render(
        &self,
        app: &Application,
        cluster: &Arc<ConnectedCluster>,
        report: &mut Report,
    ) -> Rendering {
        report.counts.push(Count::Rendered { anew: true });
        let work = Work::new(self, app, cluster);
        unless_broken_off(blocking(move || work.render_sources()).await)
    }
}

/// A rendering as it is true today, if it is, and what of it was read at commits that revisions have left.
fn confirm(
    sources: &Sources,
    known: &Rendering,
    integrity: &Integrity,
) -> (Option<Rendering>, Vec<RepositoryRead>) {
    let Some((project, _)) = known.asked_for() else { return Default::default() };
    let mut left = Vec::new();
    let same = known.confirmed(|read| {
        let checkout = sources.repositories.checkout_for(project, &read.url, &read.revision).ok()?;
        if checkout.revision != read.commit {
            if sources.note_left(read) {
                left.push(read.clone());
            }
            if !read.footprint.holds_in(&*checkout.tree) {
                return None;
            }
            let asked = Asked { url: &read.url, revision: &read.revision, checkout: &checkout };
            integrity.verify(&sources.repositories, project, &asked).ok()?;
        }
        Some(checkout.revision)
    });
    (same, left)
}

/// One rendering, on whatever thread it is done.
struct Work {
    home: Arc<Home>,
    sources: Arc<Sources>,
    app: Application,
    cluster: Arc<ConnectedCluster>,
}

impl Work {
    fn new(renderer: &Renderer, app: &Application, cluster: &Arc<ConnectedCluster>) -> Self {
        let Renderer { home, sources, .. } = renderer;
        Self { home: home.clone(), sources: sources.clone(), app: app.clone(), cluster: cluster.clone() }
    }

    fn render_sources(&self) -> Rendering {
        self.render_by(|_, context| self.render_here_or_apart(None, context))
    }

    fn render_given(&self, manifests: &[String]) -> Rendering {
        self.render_by(|integrity, context| {
            integrity.refuse_given(&self.app)?;
            self.render_here_or_apart(Some(manifests), context)
        })
    }

    /// Renders here, or in a process of its own.
    fn render_here_or_apart(
        &self,
        manifests: Option<&[String]>,
        context: &Context<'_>,
    ) -> Result<Rendered, RenderError> {
        match (&self.home.settings.renderers, manifests) {
            (Some(renderers), _) => renderers.0.render(&self.app, manifests, context),
            (None, Some(manifests)) => render_given(&self.app, manifests, context),
            (None, None) => render(&self.app, context),
        }
    }

    fn render_by(
        &self,
        render: impl FnOnce(&Integrity, &Context<'_>) -> Result<Rendered, RenderError>,
    ) -> Rendering {
        let Self { home, sources, app, cluster } = self;
        let integrity = sources.integrity_of(home, app);
        let checkouts = Checkouts::new(&sources.repositories)
            .with_settings(home.installation().argo.rendering.clone())
            .for_project(app.project())
            .demanding(integrity.clone());
        let discovery = cluster.cache.cluster().discovery();
        let api_versions = discovery.api_versions();
        let is_namespaced = |kind: &GroupVersionKind| discovery.resource(kind).map(|known| known.namespaced);
        let context = Context {
            sources: &checkouts,
            kube_version: &cluster.kube_version,
            api_versions: &api_versions,
            tracking: &home.settings.tracking,
            engine_namespace: &home.settings.namespace,
            is_namespaced: &is_namespaced,
            origins: false,
            mock_secrets: false,
            now: None,
        };
        let rendered = render(&integrity, &context);
        Rendering::new(inputs(app, &integrity), discovery.clone(), &checkouts, rendered)
    }
}

/// What a thread rendered, or that it broke off.
fn unless_broken_off(made: Result<Rendering, JoinError>) -> Rendering {
    made.unwrap_or_else(|error| Rendering::failed(RenderError::new(format!("rendering broke off: {error}"))))
}
