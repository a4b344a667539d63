//! What an Application renders to, kept until something that it was made from changes: a commit that leaves
//! all files alone that were read is no change.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tiphys_cluster::Discovery;
use tiphys_helm::Questions;
use tiphys_model::{Application, SourceType};
use tiphys_render::{Cause, Context, RenderError, Rendered, render, render_given};
use tiphys_source::Footprint;
use tiphys_value::{GroupVersionKind, ObjectExt, Value};
use tokio::time::Instant;

use crate::{
    AppKey, Checkouts, Refresh,
    blocking::blocking,
    checkouts::RepositoryRead,
    destinations::ConnectedCluster,
    engine::Engine,
    project_policy::or_default,
    source_integrity::{Asked, Integrity},
    targets::Targets,
};

/// How many times in a row a limit of the kernel ends a rendering until it is set aside.
const ENDS: u32 = 2;
/// For how long that is.
const SET_ASIDE: Duration = Duration::from_secs(600);

/// What an Application renders to.
pub(crate) struct Rendering {
    /// What of the Application it was made from.
    inputs: Value,
    /// The objects, or why there are none.
    pub targets: Result<Arc<Targets>, RenderError>,
    /// One for each source.
    pub revisions: Vec<String>,
    /// A text that differs whenever what was read differs; empty if there are no objects.
    pub identity: String,
    /// Tools of the sources.
    pub source_types: Vec<SourceType>,
    /// What is odd but no fault.
    pub warnings: Vec<String>,
    /// What was read of the working tree.
    pub footprint: Footprint,
    /// Whether anything else was read, which changes without notice.
    pub reads_remotes: bool,
    /// What was read of repositories, if nothing else was read of remotes and no object says the revision.
    reads: Option<Vec<RepositoryRead>>,
    /// What the cluster served.
    discovery: Arc<Discovery>,
    /// What was asked of that, with the answers.
    asked_versions: BTreeMap<String, bool>,
    made_at: Instant,
    /// When it was rendered; it may have been found to be still true since.
    rendered_at: Instant,
    /// How many times in a row a limit of the kernel has ended it.
    ends: u32,
}

impl Rendering {
    /// The first revision.
    pub fn revision(&self) -> &str {
        self.revisions.first().map(String::as_str).unwrap_or_default()
    }

    /// Whether two renderings yield the very same objects, whatever their revisions.
    pub fn has_the_targets_of(&self, other: &Self) -> bool {
        match (&self.targets, &other.targets) {
            (Ok(a), Ok(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }

    /// Whether it reads a repository at a revision that meant a commit then.
    pub fn read(&self, url: &str, revision: &str, commit: &str) -> bool {
        let reads = self.reads.as_deref().unwrap_or_default();
        reads.iter().any(|read| read.url == url && read.revision == revision && read.commit == commit)
    }

    /// What it has to be asked for whether it is still true; `None` if that cannot be asked without
    /// rendering.
    pub(crate) fn asked_for(&self) -> Option<(&str, &[RepositoryRead])> {
        let project = or_default(self.inputs.str_at(&["project"]).unwrap_or_default());
        Some((project, self.reads.as_deref()?)).filter(|_| self.targets.is_ok())
    }

    /// Whether there are no objects for a reason that may pass, such as a host that is down.
    pub fn may_pass(&self) -> bool {
        self.targets.as_ref().is_err_and(RenderError::is_transient)
    }

    /// Whether two renderings were made for the same spec.
    pub fn is_for_the_spec_of(&self, other: &Self) -> bool {
        self.inputs == other.inputs
    }

    /// Whether it would be answered as it was by what a cluster serves now. Why something did not render,
    /// nobody knows: often a chart says that it misses a kind.
    pub(crate) fn is_answered_by(&self, now: &Arc<Discovery>) -> bool {
        let answered = |(version, answer): (&String, &bool)| {
            version != Questions::ALL && now.has_api_version(version) == *answer
        };
        Arc::ptr_eq(&self.discovery, now)
            || (self.targets.is_ok() && self.asked_versions.iter().all(answered))
    }

    fn serves(&self, inputs: &Value, level: Refresh, fresh_for: Duration) -> bool {
        let is_old = self.made_at.elapsed() >= fresh_for;
        let may_differ = match (&self.targets, level) {
            (_, Refresh::Hard) => true,
            (Err(_), Refresh::Poll | Refresh::Sources) => true,
            (Err(error), Refresh::LiveState) => error.is_transient() && is_old,
            (Ok(_), Refresh::Poll | Refresh::Sources) => self.reads_remotes && is_old,
            (Ok(_), Refresh::LiveState) => false,
        };
        !may_differ && self.inputs == *inputs
    }
}

/// What of an Application its rendering depends on.
fn inputs(app: &Application, integrity: &Integrity) -> Value {
    let mut spec = serde_json::to_value(&app.spec).unwrap_or_default();
    if let Value::Object(spec) = &mut spec {
        spec.remove("syncPolicy");
        spec.remove("ignoreDifferences");
        spec.remove("info");
        spec.insert("integrity".to_owned(), integrity.inputs());
    }
    spec
}

impl Engine {
    /// The rendering of an Application: the last one if it still serves.
    pub(crate) async fn rendering(
        self: &Arc<Self>,
        key: &AppKey,
        app: &Application,
        level: Refresh,
        place: &Arc<ConnectedCluster>,
    ) -> Arc<Rendering> {
        let level = self.hardened(key, level);
        let integrity = self.integrity_of(app);
        let wanted = inputs(app, &integrity);
        let moved = self.has_moved(key);
        let served = place.cache.cluster().discovery();
        if !moved
            && let Some(known) = self.known_rendering(key)
            && known.is_answered_by(&served)
            && known.serves(&wanted, level, self.installation().refresh)
        {
            return known;
        }
        if level != Refresh::Hard
            && let Some(known) = self.known_rendering(key)
            && known.inputs == wanted
            && known.is_answered_by(&served)
            && let Some(same) = self.ask_again(known, integrity).await
        {
            let same = Arc::new(same);
            self.remember(key, same.clone());
            self.metrics.rendered(false);
            return same;
        }
        if level == Refresh::Hard {
            self.expire_sources(app);
        }
        let edits = self.edits();
        let made = self.render(app, place).await;
        let made = with_ends(made, self.known_rendering(key).as_deref());
        self.remember(key, made.clone());
        if self.edits() != edits && made.footprint != Footprint::default() {
            self.doubt(key);
        }
        made
    }

    /// Whether an Application is left alone for a while because limits of the kernel ended its rendering
    /// again and again: what takes all of a worker's time and memory every few minutes is taken from the
    /// others. News that somebody brings, a change of its spec and a hard refresh still count.
    pub(crate) fn is_set_aside(&self, key: &AppKey) -> bool {
        let is_recent = |known: &Arc<Rendering>| known.rendered_at.elapsed() < SET_ASIDE;
        self.known_rendering(key).filter(is_recent).is_some_and(|known| known.ends >= ENDS)
    }

    /// The level of a look: a hard one if `timeout.hard.reconciliation` has passed since the Application was
    /// rendered.
    pub(crate) fn hardened(&self, key: &AppKey, level: Refresh) -> Refresh {
        let every = self.installation().argo.reconciliation.hard;
        let known = self.known_rendering(key).filter(|_| !every.is_zero() && level == Refresh::Sources);
        let is_due = known.is_some_and(|known| known.reads_remotes && known.rendered_at.elapsed() >= every);
        if is_due { Refresh::Hard } else { level }
    }

    /// Asks the repositories of a rendering for the commits of today, and whether what was read of them
    /// stands there as it was; `None` if it has to be rendered again.
    async fn ask_again(self: &Arc<Self>, known: Arc<Rendering>, integrity: Integrity) -> Option<Rendering> {
        let engine = self.clone();
        blocking(move || engine.ask_again_now(&known, &integrity)).await.unwrap_or_default()
    }

    fn ask_again_now(&self, known: &Rendering, integrity: &Integrity) -> Option<Rendering> {
        let (project, reads) = known.asked_for()?;
        let targets = known.targets.as_ref().ok()?;
        let mut commits: BTreeMap<&str, String> = BTreeMap::new();
        let mut now = Vec::new();
        for read in reads {
            let checkout = self.repositories.checkout_for(project, &read.url, &read.revision).ok()?;
            if checkout.revision != read.commit {
                self.moved(read);
                if !read.footprint.holds_in(&*checkout.tree) {
                    return None;
                }
                let asked = Asked { url: &read.url, revision: &read.revision, checkout: &checkout };
                integrity.verify(&self.repositories, project, &asked).ok()?;
            }
            let named = commits.entry(&read.commit).or_insert_with(|| checkout.revision.clone());
            if *named != checkout.revision {
                // Two branches that were at one commit have parted.
                return None;
            }
            now.push(RepositoryRead { commit: checkout.revision, ..read.clone() });
        }
        let renamed = |old: &String| commits.get(old.as_str()).unwrap_or(old).clone();
        Some(Rendering {
            inputs: known.inputs.clone(),
            targets: Ok(targets.clone()),
            revisions: known.revisions.iter().map(renamed).collect(),
            identity: known.identity.clone(),
            source_types: known.source_types.clone(),
            warnings: known.warnings.clone(),
            footprint: known.footprint.clone(),
            reads_remotes: known.reads_remotes,
            reads: Some(now),
            discovery: known.discovery.clone(),
            asked_versions: known.asked_versions.clone(),
            made_at: Instant::now(),
            rendered_at: known.rendered_at,
            ends: 0,
        })
    }

    /// The objects that somebody gives in the place of an Application's sources.
    pub(crate) async fn render_given(
        self: &Arc<Self>,
        app: &Application,
        manifests: Vec<String>,
        place: &Arc<ConnectedCluster>,
    ) -> Arc<Rendering> {
        let (engine, app, place) = (self.clone(), app.clone(), place.clone());
        let task = blocking(move || {
            let integrity = engine.integrity_of(&app);
            engine.render_by(&app, &place, |context| {
                integrity.refuse_given(&app)?;
                engine.render_with(&app, Some(&manifests), context)
            })
        });
        broken_off_or(task.await)
    }

    /// Renders an Application for a cluster, on a thread that may block.
    pub(crate) async fn render(
        self: &Arc<Self>,
        app: &Application,
        place: &Arc<ConnectedCluster>,
    ) -> Arc<Rendering> {
        self.metrics.rendered(true);
        let (engine, app, place) = (self.clone(), app.clone(), place.clone());
        let task = blocking(move || {
            engine.render_by(&app, &place, |context| engine.render_with(&app, None, context))
        });
        broken_off_or(task.await)
    }

    /// Renders here, or in a process of its own.
    fn render_with(
        &self,
        app: &Application,
        manifests: Option<&[String]>,
        context: &Context<'_>,
    ) -> Result<Rendered, RenderError> {
        match (&self.settings.renderers, manifests) {
            (Some(renderers), _) => renderers.0.render(app, manifests, context),
            (None, Some(manifests)) => render_given(app, manifests, context),
            (None, None) => render(app, context),
        }
    }

    fn render_by(
        &self,
        app: &Application,
        place: &ConnectedCluster,
        render: impl FnOnce(&Context<'_>) -> Result<Rendered, RenderError>,
    ) -> Rendering {
        let integrity = self.integrity_of(app);
        let checkouts = Checkouts::new(&self.repositories)
            .with_settings(self.installation().argo.rendering.clone())
            .for_project(app.project())
            .demanding(integrity.clone());
        let discovery = place.cache.cluster().discovery();
        let api_versions = discovery.api_versions();
        let is_namespaced = |kind: &GroupVersionKind| discovery.resource(kind).map(|known| known.namespaced);
        let rendered = render(&Context {
            sources: &checkouts,
            kube_version: &place.kube_version,
            api_versions: &api_versions,
            tracking: &self.settings.tracking,
            engine_namespace: &self.settings.namespace,
            is_namespaced: &is_namespaced,
            origins: false,
            mock_secrets: false,
            now: None,
        });
        let footprint = checkouts.footprint();
        let mut made = Rendering {
            inputs: inputs(app, &integrity),
            targets: Ok(Arc::default()),
            revisions: Vec::new(),
            identity: String::new(),
            source_types: Vec::new(),
            warnings: Vec::new(),
            reads_remotes: checkouts.reads_remotes(),
            reads: None,
            asked_versions: BTreeMap::new(),
            discovery: discovery.clone(),
            made_at: Instant::now(),
            rendered_at: Instant::now(),
            ends: 0,
            footprint: Footprint::default(),
        };
        match rendered {
            Ok(rendered) => {
                let described =
                    rendered.sources.iter().map(|source| checkouts.describe(&source.revision, &footprint));
                made.revisions = described.collect();
                made.source_types = rendered.sources.iter().filter_map(|source| source.source_type).collect();
                made.warnings = rendered.warnings;
                made.warnings.extend(checkouts.warnings());
                made.asked_versions =
                    rendered.sources.iter().flat_map(|source| source.asked_versions.clone()).collect();
                let names_revision = rendered.sources.iter().any(|source| source.names_revision);
                made.reads = if names_revision { None } else { checkouts.reads() };
                let objects: Vec<Value> = rendered.objects.into_iter().map(|object| object.value).collect();
                // Of what was fetched beside the repositories only what came of it is known.
                let read = checkouts.identity().unwrap_or_else(|| Value::from(objects.clone()).to_string());
                let named = if names_revision { made.revisions.join(" ") } else { String::new() };
                made.identity = digest(&format!("{named}\n{read}"));
                made.targets = Ok(Arc::new(Targets::new(objects.into_iter())));
            }
            Err(error) => made.targets = Err(error),
        }
        made.footprint = footprint;
        made
    }
}

/// A rendering that knows how many like it a limit has ended, and says so once it is set aside.
fn with_ends(made: Arc<Rendering>, last: Option<&Rendering>) -> Arc<Rendering> {
    let is_ended =
        |rendering: &Rendering| rendering.targets.as_ref().is_err_and(|error| error.cause() == Cause::Ended);
    if !is_ended(&made) {
        return made;
    }
    Arc::try_unwrap(made).map_or_else(
        |shared| shared,
        |mut made| {
            made.ends = last.filter(|last| is_ended(last)).map_or(0, |last| last.ends) + 1;
            if made.ends >= ENDS
                && let Err(error) = made.targets
            {
                let minutes = SET_ASIDE.as_secs() / 60;
                made.targets = Err(error.noting(&format!(
                    "this was so {} times in a row: the next attempt is in {minutes} minutes, or when the spec changes, a push is told of, or a hard refresh is asked for",
                    made.ends
                )));
            }
            Arc::new(made)
        },
    )
}

fn digest(text: &str) -> String {
    let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes());
    data_encoding::HEXLOWER.encode(&hash.as_ref()[..16])
}

/// What a thread rendered, or that it broke off.
fn broken_off_or(made: Result<Rendering, tokio::task::JoinError>) -> Arc<Rendering> {
    Arc::new(made.unwrap_or_else(|error| failed(RenderError::new(format!("rendering broke off: {error}")))))
}

/// A rendering of which nothing is known but why there is none.
fn failed(error: RenderError) -> Rendering {
    Rendering {
        inputs: Value::Null,
        targets: Err(error),
        revisions: Vec::new(),
        identity: String::new(),
        source_types: Vec::new(),
        warnings: Vec::new(),
        footprint: Footprint::default(),
        reads_remotes: false,
        reads: None,
        discovery: Arc::default(),
        asked_versions: BTreeMap::new(),
        made_at: Instant::now(),
        rendered_at: Instant::now(),
        ends: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_in_a_row_are_counted_and_told() {
        let ended = || RenderError::new("needed more than 64 MiB").caused_by(Cause::Ended);
        let other = || RenderError::new("no such file");
        let told =
            |made: &Rendering| made.targets.as_ref().err().map(ToString::to_string).unwrap_or_default();
        let first = with_ends(Arc::new(failed(ended())), None);
        assert_eq!((first.ends, told(&first)), (1, "needed more than 64 MiB".to_owned()));
        let second = with_ends(Arc::new(failed(ended())), Some(&first));
        assert_eq!(second.ends, 2);
        assert!(told(&second).contains("the next attempt is in 10 minutes"), "{}", told(&second));
        let between = with_ends(Arc::new(failed(other())), Some(&second));
        assert_eq!(between.ends, 0);
        assert_eq!(with_ends(Arc::new(failed(ended())), Some(&between)).ends, 1, "not in a row");
    }
}
