//! Reads a running cluster: every kind that it serves, events, and the logs that matter. Nothing is written.
//!
//! What could not be read is a fact of its own: a request that fails may be the fault that is looked for.

mod kinds;
mod log_choice;
mod logs;
mod missing_rights;
mod operators;
mod progress;
mod trim;

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use clap::ValueEnum;
use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use serde_json::Value;
use tiphys_cluster::{Bounds, Cluster, ClusterError, Cut, Discovery, Extent, Resource, Selection};
use tiphys_doctor::{Case, Event, Unreadable};
use tokio::time::{Instant, timeout, timeout_at};

use missing_rights::Denied;
use progress::Progress;

/// How many requests are under way at a time: a cluster in trouble is not asked for more.
const AT_ONCE: usize = 4;
/// How long the cluster may take to say what it serves.
const DISCOVERY: Duration = Duration::from_secs(20);
/// How long one request may take.
const REQUEST: Duration = Duration::from_secs(15);
/// How long all lists together may take.
const LISTS: Duration = Duration::from_secs(90);
/// How many objects of one kind are read.
const OBJECTS_OF_A_KIND: usize = 50_000;
/// How many bytes of answers are read, of one kind and in all.
const BYTES: (usize, usize) = (128 * 1024 * 1024, 512 * 1024 * 1024);

/// Which logs are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Logs {
    /// Of containers that are not ready or restarted within the last hour, and of the cluster's own
    /// components.
    #[default]
    Auto,
    /// None.
    None,
    /// Of every container.
    All,
}

/// What is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options<'a> {
    /// Where whoever may not list all namespaces reads.
    pub namespace: Option<&'a str>,
    /// Which logs.
    pub logs: Logs,
}

/// What was read.
pub(super) struct Reading {
    /// The state.
    pub case: Case,
    /// The version of Kubernetes; empty if it is not told.
    pub version: String,
}

/// Reads a cluster.
///
/// # Errors
/// It does not answer, or no list at all may be read.
pub(super) async fn read(cluster: &Cluster, options: Options<'_>) -> Result<Reading, ClusterError> {
    let at = Timestamp::now();
    let discovery = timeout(DISCOVERY, cluster.discover()).await;
    let discovery = discovery.unwrap_or_else(|_| {
        Err(ClusterError::Transport(format!(
            "it did not answer within {DISCOVERY:?} which resources it serves"
        )))
    })?;
    let version = timeout(REQUEST, cluster.version()).await.ok().and_then(Result::ok).unwrap_or_default();
    let mut reader = Reader::new(cluster, options);
    reader.note_unavailable(&discovery);
    reader.read_kinds(&discovery).await?;
    let Reader { mut case, mut denied, partly_read, .. } = reader;
    // Kinds of two groups may have one name.
    case.listed.retain(|kind| !partly_read.contains(kind));
    case.at = Some(at);
    logs::read(cluster, options.logs, &mut case, &mut denied).await;
    case.unreadable.extend(denied.unreadable());
    Ok(Reading { case, version })
}

/// Reads the kinds and keeps what they hold.
struct Reader<'a> {
    cluster: &'a Cluster,
    options: Options<'a>,
    deadline: Instant,
    /// Bytes of answers so far.
    bytes: AtomicUsize,
    case: Case,
    denied: Denied,
    /// Kinds that were not read, or not in whole.
    partly_read: BTreeSet<String>,
}

/// Objects as they come. An event takes a tenth of the memory once it is read.
#[derive(Default)]
struct Objects {
    objects: Vec<Value>,
    events: Vec<Event>,
}

impl Objects {
    fn add(&mut self, object: Value) {
        match Event::from_live(&object) {
            Some(event) => self.events.push(event),
            None => self.objects.push(trim::trimmed(object)),
        }
    }
}

/// What came of one kind.
struct KindReading {
    resource: Resource,
    read: Objects,
    result: Result<Extent, ClusterError>,
    /// Of all namespaces, not of the one that was asked for.
    is_everywhere: bool,
}

impl<'a> Reader<'a> {
    fn new(cluster: &'a Cluster, options: Options<'a>) -> Self {
        Self {
            cluster,
            options,
            deadline: Instant::now() + LISTS,
            bytes: AtomicUsize::new(0),
            case: Case::default(),
            denied: Denied::default(),
            partly_read: BTreeSet::new(),
        }
    }

    fn note_unavailable(&mut self, discovery: &Discovery) {
        let unavailable = discovery.unavailable().map(|group| Unreadable {
            what: format!("GET /apis/{group}"),
            why: "the API server does not reach the one behind its APIService".to_owned(),
        });
        self.case.unreadable.extend(unavailable);
    }

    async fn read_kinds(&mut self, discovery: &Discovery) -> Result<(), ClusterError> {
        let kinds = kinds::readable(discovery);
        let progress = Progress::new("kinds", kinds.len());
        let this = &*self;
        let readings = stream::iter(kinds).map(|resource| this.read_kind(resource)).buffered(AT_ONCE);
        let readings: Vec<KindReading> = readings.inspect(|_| progress.step()).collect().await;
        let is_blind = readings.iter().all(|reading| reading.result.is_err());
        let mut first_error = None;
        for reading in readings {
            if let Err(error) = &reading.result {
                first_error.get_or_insert_with(|| error.clone());
            }
            self.keep(reading);
        }
        match first_error {
            Some(error) if is_blind => Err(error),
            _ => Ok(()),
        }
    }

    async fn read_kind(&self, resource: Resource) -> KindReading {
        let mut read = Objects::default();
        let mut is_everywhere = true;
        let mut result = self.read_selected(&resource, Selection::default(), &mut read).await;
        let namespace = self.options.namespace.filter(|_| resource.namespaced);
        if let (Err(error), Some(namespace)) = (&result, namespace)
            && error.is_forbidden()
        {
            let selection = Selection { namespace, ..Selection::default() };
            result = self.read_selected(&resource, selection, &mut read).await;
            is_everywhere = false;
        }
        KindReading { resource, read, result, is_everywhere }
    }

    /// Reads what is selected of a kind. Releases of Helm are large, and only their labels are of use.
    async fn read_selected(
        &self,
        resource: &Resource,
        selection: Selection<'_>,
        read: &mut Objects,
    ) -> Result<Extent, ClusterError> {
        if !trim::is_secret(resource) {
            return self.read_list(resource, selection, read).await;
        }
        let others = Selection { fields: "type!=helm.sh/release.v1", ..selection };
        let releases = Selection { fields: "type=helm.sh/release.v1", metadata_only: true, ..selection };
        let extent = match self.read_list(resource, others, read).await {
            // A server that does not know the field cannot leave them out.
            Err(ClusterError::Api { code: 400, .. }) => {
                return self.read_list(resource, selection, read).await;
            }
            extent => extent?,
        };
        let before = read.objects.len();
        let more = self.read_list(resource, releases, read).await?;
        read.objects[before..].iter_mut().for_each(trim::mark_release);
        Ok(Extent { objects: extent.objects + more.objects, bytes: 0, cut: extent.cut.or(more.cut) })
    }

    async fn read_list(
        &self,
        resource: &Resource,
        selection: Selection<'_>,
        read: &mut Objects,
    ) -> Result<Extent, ClusterError> {
        let left = BYTES.1.saturating_sub(self.bytes.load(Ordering::Relaxed));
        let bounds = Bounds { objects: OBJECTS_OF_A_KIND, bytes: BYTES.0.min(left), timeout: REQUEST };
        let take = |object| read.add(object);
        let list = timeout_at(self.deadline, self.cluster.read_list(resource, selection, bounds, take));
        let Ok(list) = list.await else {
            return Err(ClusterError::Transport(format!(
                "{LISTS:?}, the limit for reading all lists, have passed"
            )));
        };
        let extent = list?;
        self.bytes.fetch_add(extent.bytes, Ordering::Relaxed);
        Ok(extent)
    }

    fn keep(&mut self, reading: KindReading) {
        let KindReading { resource, read, result, is_everywhere } = reading;
        let path = || format!("GET {}", resource.path("", ""));
        let is_whole = is_everywhere && result.as_ref().is_ok_and(|extent| extent.cut.is_none());
        let kinds = if is_whole { &mut self.case.listed } else { &mut self.partly_read };
        kinds.insert(resource.gvk.kind.clone());
        match result {
            Ok(Extent { objects, cut: Some(cut), .. }) => {
                self.case.unreadable.push(Unreadable { what: path(), why: cut_words(objects, &cut) });
            }
            Ok(_) => {}
            Err(error) if error.is_forbidden() => self.denied.add(&resource, "list"),
            // The kind went meanwhile, or a server of old lists what it cannot list.
            Err(error) if error.is_not_found() => {}
            Err(error) => self.case.unreadable.push(Unreadable { what: path(), why: refusal(&error) }),
        }
        self.case.objects.extend(read.objects);
        self.case.events.extend(read.events);
    }
}

/// Why a request failed, with the code that the API server gave.
fn refusal(error: &ClusterError) -> String {
    match error {
        ClusterError::Api { code, message, .. } => format!("{message} (HTTP {code})"),
        error => error.to_string(),
    }
}

/// Why a list is not whole.
fn cut_words(read: usize, cut: &Cut) -> String {
    match cut {
        Cut::Bound { remaining: Some(remaining) } => {
            format!("only the first {read} were read, {remaining} more are left")
        }
        Cut::Bound { remaining: None } => format!("only the first {read} were read, more are left"),
        Cut::Failed(why) => format!("only the first {read} were read: {why}"),
    }
}
