//! What an Application renders to, kept until something that it was made from changes: a commit that leaves
//! all files alone that were read is no change.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tiphys_cluster::Discovery;
use tiphys_helm::Questions;
use tiphys_model::{Application, SourceType};
use tiphys_render::{Cause, RenderError, Rendered};
use tiphys_source::Footprint;
use tiphys_value::{ObjectExt, Value};
use tokio::time::Instant;

use crate::{
    Checkouts, Refresh, checkouts::RepositoryRead, project_objects::or_default, source_integrity::Integrity,
    targets::Targets,
};

/// How many times in a row a limit of the kernel ends a rendering until it is set aside.
const ENDS: u32 = 2;
/// For how long that is.
const SET_ASIDE: Duration = Duration::from_secs(600);

/// What an Application renders to.
#[derive(Clone)]
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
    pub(crate) fn revision(&self) -> &str {
        self.revisions.first().map(String::as_str).unwrap_or_default()
    }

    /// Whether two renderings yield the very same objects, whatever their revisions.
    pub(crate) fn has_the_targets_of(&self, other: &Self) -> bool {
        match (&self.targets, &other.targets) {
            (Ok(a), Ok(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }

    /// Whether it reads a repository at a revision that meant a commit then.
    pub(crate) fn read(&self, url: &str, revision: &str, commit: &str) -> bool {
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
    pub(crate) fn may_pass(&self) -> bool {
        self.targets.as_ref().is_err_and(RenderError::is_transient)
    }

    /// Whether two renderings were made for the same spec.
    pub(crate) fn is_for_the_spec_of(&self, other: &Self) -> bool {
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

    /// Whether it still serves a look, if it was made from the same.
    pub(crate) fn serves(&self, inputs: &Value, level: Refresh, fresh_for: Duration) -> bool {
        let is_old = self.made_at.elapsed() >= fresh_for;
        let may_differ = match (&self.targets, level) {
            (_, Refresh::Hard) => true,
            (Err(_), Refresh::Poll | Refresh::Sources) => true,
            (Err(error), Refresh::LiveState) => error.is_transient() && is_old,
            (Ok(_), Refresh::Poll | Refresh::Sources) => self.reads_remotes && is_old,
            (Ok(_), Refresh::LiveState) => false,
        };
        !may_differ && self.is_made_from(inputs)
    }

    /// Whether it was made from this, see [`inputs`].
    pub(crate) fn is_made_from(&self, inputs: &Value) -> bool {
        self.inputs == *inputs
    }

    /// Whether something was read that changes without notice, and that so long ago.
    pub(crate) fn is_older_than(&self, age: Duration) -> bool {
        self.reads_remotes && self.rendered_at.elapsed() >= age
    }

    /// Whether limits of the kernel ended it again and again, and the last time was a moment ago.
    pub(crate) fn is_set_aside(&self) -> bool {
        self.ends >= ENDS && self.rendered_at.elapsed() < SET_ASIDE
    }

    /// A rendering of which nothing is known but why there is none.
    pub(crate) fn failed(error: RenderError) -> Self {
        let now = Instant::now();
        Self {
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
            made_at: now,
            rendered_at: now,
            ends: 0,
        }
    }

    /// What became of an Application's sources, with what was read of them.
    pub(crate) fn new(
        inputs: Value,
        discovery: Arc<Discovery>,
        checkouts: &Checkouts<'_>,
        rendered: Result<Rendered, RenderError>,
    ) -> Self {
        let footprint = checkouts.footprint();
        let reads_remotes = checkouts.reads_remotes();
        let rendered = match rendered {
            Ok(rendered) => rendered,
            Err(error) => {
                return Self { inputs, discovery, footprint, reads_remotes, ..Self::failed(error) };
            }
        };
        let sources = rendered.sources.iter();
        let revisions: Vec<String> =
            sources.clone().map(|source| checkouts.describe(&source.revision, &footprint)).collect();
        let mut warnings = rendered.warnings;
        warnings.extend(checkouts.warnings());
        let names_revision = sources.clone().any(|source| source.names_revision);
        let objects: Vec<Value> = rendered.objects.into_iter().map(|object| object.value).collect();
        // Of what was fetched beside the repositories only what came of it is known.
        let read = checkouts.identity().unwrap_or_else(|| Value::from(objects.clone()).to_string());
        let named = if names_revision { revisions.join(" ") } else { String::new() };
        let now = Instant::now();
        Self {
            inputs,
            discovery,
            footprint,
            reads_remotes,
            warnings,
            source_types: sources.clone().filter_map(|source| source.source_type).collect(),
            asked_versions: sources.flat_map(|source| source.asked_versions.clone()).collect(),
            reads: if names_revision { None } else { checkouts.reads() },
            identity: digest(&format!("{named}\n{read}")),
            targets: Ok(Arc::new(Targets::new(objects.into_iter()))),
            revisions,
            made_at: now,
            rendered_at: now,
            ends: 0,
        }
    }

    /// The same as it is true today: `stands` says which commit a revision means now, if all that was read
    /// stands there as it was. `None` if it has to be rendered again.
    pub(crate) fn confirmed(
        &self,
        mut stands: impl FnMut(&RepositoryRead) -> Option<String>,
    ) -> Option<Self> {
        let mut same = Self { made_at: Instant::now(), ends: 0, ..self.clone() };
        let mut commits: BTreeMap<String, String> = BTreeMap::new();
        for read in same.reads.iter_mut().flatten() {
            let commit = stands(read)?;
            let named = commits.entry(read.commit.clone()).or_insert_with(|| commit.clone());
            if *named != commit {
                // Two branches that were at one commit have parted.
                return None;
            }
            read.commit = commit;
        }
        for revision in &mut same.revisions {
            if let Some(now) = commits.get(revision) {
                revision.clone_from(now);
            }
        }
        Some(same)
    }

    /// The same after `last`: it knows how many like it in a row a limit has ended, and says so once it is
    /// set aside.
    pub(crate) fn after(mut self, last: Option<&Self>) -> Self {
        let is_ended =
            |rendering: &Self| rendering.targets.as_ref().is_err_and(|error| error.cause() == Cause::Ended);
        if !is_ended(&self) {
            return self;
        }
        self.ends = last.filter(|last| is_ended(last)).map_or(0, |last| last.ends) + 1;
        if self.ends >= ENDS
            && let Err(error) = self.targets
        {
            let minutes = SET_ASIDE.as_secs() / 60;
            self.targets = Err(error.noting(&format!(
                "this was so {} times in a row: the next attempt is in {minutes} minutes, or when the spec changes, a push is told of, or a hard refresh is asked for",
                self.ends
            )));
        }
        self
    }
}

/// What of an Application its rendering depends on.
pub(crate) fn inputs(app: &Application, integrity: &Integrity) -> Value {
    let mut spec = serde_json::to_value(&app.spec).unwrap_or_default();
    if let Value::Object(spec) = &mut spec {
        spec.remove("syncPolicy");
        spec.remove("ignoreDifferences");
        spec.remove("info");
        spec.insert("integrity".to_owned(), integrity.inputs());
    }
    spec
}

fn digest(text: &str) -> String {
    let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes());
    data_encoding::HEXLOWER.encode(&hash.as_ref()[..16])
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
        let failed = Rendering::failed;
        let first = failed(ended()).after(None);
        assert_eq!((first.ends, told(&first)), (1, "needed more than 64 MiB".to_owned()));
        let second = failed(ended()).after(Some(&first));
        assert_eq!(second.ends, 2);
        assert!(told(&second).contains("the next attempt is in 10 minutes"), "{}", told(&second));
        let between = failed(other()).after(Some(&second));
        assert_eq!(between.ends, 0);
        assert_eq!(failed(ended()).after(Some(&between)).ends, 1, "not in a row");
    }
}
