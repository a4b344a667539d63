//! `tiphys up`: the embedded cluster, the engine on it, and what is told of both.

pub(crate) mod app_rows;
mod argocd;
mod args;
pub(crate) mod bootstrap;
pub(crate) mod brought;
mod change_watch;
pub(crate) mod extra_clusters;
mod field_manager;
mod placeholder_issuers;
pub(crate) mod placeholder_kinds;
mod placeholder_nodes;
mod placeholder_platform;
mod placeholder_secrets;
pub(crate) mod placeholders;
pub(crate) mod plan;
pub(crate) mod progress;
pub(crate) mod quiescence;
mod reason;
mod report;
pub(crate) mod service_network;
mod set_rollouts;
mod signals;
mod some_names;
pub(crate) mod sync_requests;
mod table;
pub(crate) mod twin;
mod unhealthy_causes;
mod wait_messages;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use tiphys_appset::ClusterInfo;
use tiphys_cluster::{Cluster, LiveCache};
use tiphys_controller::{Controller, Destinations, Settings};
use tiphys_graph::{MAX_APPLICATIONS, Owner, Survey};
use tiphys_source::Checkout;
use tiphys_value::{GroupKind, Value};
use tokio::{
    sync::broadcast::error::RecvError,
    task::block_in_place,
    time::{Instant, MissedTickBehavior, interval, sleep_until},
};

use crate::{
    ENGINE_NAMESPACE,
    exit::Reported,
    local_clusters::{Purpose, Registration, Served},
    repository::{self, Repository},
    settings,
};
use app_rows::Row;
pub(crate) use args::Args;
use args::Output;
use bootstrap::ByHand;
use brought::Brought;
use change_watch::{Commits, Edits};
use extra_clusters::Clusters;
pub(crate) use extra_clusters::kubeconfig_for;
use field_manager::FIELD_MANAGER;
pub(crate) use field_manager::apply_options;
use placeholders::Placeholders;
use plan::{Plan, Request, Start, brings_settings, installed, is_led_to, prepare};
use progress::{Progress, rows_of};
use quiescence::Stillness;
use report::Reporter;
pub(crate) use signals::Signals;
use some_names::some_of;
use twin::Twin;
pub(crate) use twin::listen_error;

/// How often what has changed is told.
const TELL: Duration = Duration::from_millis(100);

/// How often it is looked whether anything still moves.
const LOOK: Duration = Duration::from_secs(1);

/// How long nothing may be able to become green before `--once` gives up ahead of its timeout.
const STUCK: Duration = Duration::from_secs(1);

/// Runs until interrupted, or with `--once` until done.
///
/// # Errors
/// Nothing to run, the cluster cannot start, or not green in time.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let started = Instant::now();
    let mut reporter = Reporter::new(args.output == Output::Json, started.into_std());
    let opened = tokio::task::spawn_blocking({
        let args = args.clone();
        move || prepare(&request(&args))
    });
    let mut signals = Signals::new()?;
    let Plan {
        repository, survey, clusters: declared, roots, projects, argo_settings, notices, apart, ..
    } = tokio::select! {
        plan = opened => plan??,
        () = signals.wait() => return Ok(()),
    };
    reporter.plan(&survey);
    notices.iter().for_each(|notice| reporter.notice(notice));
    let exists = args.state.as_ref().is_some_and(|folder| folder.exists());
    let network = service_network::chosen(args.service_cluster_ip_range, exists, repository.tree.as_ref());
    network.told.iter().for_each(|told| reporter.notice(told));
    let folder = repository.root.clone();
    let purpose = Purpose {
        place: args.place.clone(),
        environment: args.environment.clone().or_else(|| args.path.clone()).unwrap_or_default(),
        served: folder.map(|folder| Served { folder, by_revision: args.respect_revisions }),
    };
    let registration = Arc::new(Registration::open(purpose, args.kubeconfig.as_deref())?);
    let twin = Twin::start(args, network.range, &registration).await?;
    reporter.cluster(&twin.address, &registration.kubeconfig(), twin.ready_in);
    let install =
        bootstrap::Install { cluster: &twin.cluster, projects: &projects, settings: argo_settings.as_ref() };
    install.definitions().await?;
    let refused = install.applications(&roots).await?;
    let mut clusters = Clusters::beside(registration.clone());
    for destination in &apart {
        let told = clusters.provide(args, &twin.cluster, destination).await?;
        told.iter().for_each(|text| reporter.notice(text));
    }
    let settings = Settings {
        namespace: ENGINE_NAMESPACE.into(),
        destinations: match (args.respect_destinations, apart.is_empty()) {
            (true, _) => Destinations::InCluster,
            (false, true) => Destinations::AllHere,
            (false, false) => Destinations::Apart,
        },
        opener: Some(clusters.opener()),
        pass_out_of_reach: args.stand_ins != placeholder_kinds::When::Never,
        ..settings::by_rules_of(args.argo_cd)
    };
    let controller =
        Controller::start(twin.cluster.clone(), repository.repositories.clone(), settings).await?;
    let controller = Arc::new(controller);
    if !args.once
        && let Err(error) = argocd::provide(&twin, controller.clone()).await
    {
        reporter.notice(&format!("argocd --core will not find what it looks for: {error:#}"));
    }
    let edits = if args.once { Edits::none() } else { Edits::watch(&repository, &mut reporter) };
    let commits = Commits::poll(&repository, args);
    let installed = installed(&roots, &projects);
    let placeholders = Placeholders::new(args.stand_ins, Brought::from_survey(&survey));
    let mut session = Session {
        args,
        controller,
        twin,
        clusters: (!apart.is_empty()).then_some(clusters),
        repository,
        survey,
        declared,
        edits,
        commits,
        installed,
        argo_settings,
        refused: app_rows::refused(&refused),
        seen: app_rows::SeenRows::default(),
        asked: BTreeSet::new(),
        reporter,
        started,
        was_green: false,
        stuck_since: None,
        stillness: Stillness::with_quiet(if args.once {
            quiescence::QUIET
        } else {
            quiescence::QUIET_FOR_A_PERSON
        }),
        has_said_why: false,
        placeholders,
        unattended: BTreeSet::new(),
    };
    session.stay(&mut signals).await
}

/// Whether edited files hold what is to be run, or held some of it: Applications, or what a chart or
/// kustomization makes some of.
fn may_declare(repository: &Repository, survey: &Survey, edits: &[String]) -> bool {
    const MARKS: [&str; 2] = ["argoproj.io/", tiphys_model::settings::CONFIG_MAP];
    let mut read: BTreeSet<&str> = BTreeSet::new();
    for root in &survey.roots {
        read.insert(&root.declared.location.file);
        let of_unit = root.unit.map(|id| &survey.units[id.0].objects).into_iter().flatten();
        read.extend(of_unit.flat_map(|id| survey.object(*id).read.iter().map(AsRef::as_ref)));
    }
    let others = survey.others.iter().chain(&survey.settings.config_maps);
    read.extend(others.map(|it| it.location.file.as_ref()));
    let folders: BTreeSet<&str> =
        survey.units.iter().filter(|unit| !unit.objects.is_empty()).map(|unit| unit.path.as_str()).collect();
    let speaks = |text: &str| MARKS.iter().any(|mark| text.contains(mark));
    let declared = |path: &str| {
        survey.objects.iter().any(|object| {
            matches!(object.owner, Owner::App(_))
                && object.rendered.location.file.as_ref() == path
                && object.value()["apiVersion"] == tiphys_model::names::API_VERSION
        })
    };
    edits.iter().any(|path| {
        let now = repository.tree.read(path).ok();
        path.is_empty()
            || read.contains(path.as_str())
            || tiphys_vfs::parent(path).is_some_and(|folder| folders.contains(folder))
            || declared(path)
            || now.is_some_and(|bytes| speaks(&String::from_utf8_lossy(&bytes)))
    })
}

/// What the command line asks for.
fn request(args: &Args) -> Request<'_> {
    Request {
        place: &args.place,
        revision: args.revision.as_deref(),
        path: args.path.as_deref(),
        environment: args.environment.as_deref(),
        respect_revisions: args.respect_revisions,
        respect_destinations: args.respect_destinations,
        clusters: args.clusters.as_deref(),
        offline: args.offline,
        most_applications: MAX_APPLICATIONS,
        origins: false,
    }
}

/// Everything that runs.
struct Session<'a> {
    args: &'a Args,
    controller: Arc<Controller>,
    twin: Twin,
    /// The clusters beside it, if there are any.
    clusters: Option<Clusters>,
    repository: Repository,
    /// What it says.
    survey: Survey,
    /// The clusters that it does not declare.
    declared: Vec<ClusterInfo>,
    edits: Edits,
    commits: Commits,
    /// What was put into the cluster, by kind and id.
    installed: BTreeMap<(String, String, String), ByHand>,
    /// Argo CD's settings as they were put into the cluster.
    argo_settings: Option<Value>,
    /// Applications and sets that the cluster did not take.
    refused: Vec<Row>,
    /// The rows of Applications as they were last seen.
    seen: app_rows::SeenRows,
    /// What was asked to be synced, for --sync-all: namespace, name and revision.
    asked: BTreeSet<(String, String, String)>,
    reporter: Reporter,
    started: Instant,
    was_green: bool,
    stuck_since: Option<Instant>,
    stillness: Stillness,
    /// Whether it was said why nothing moves any more, since something moved.
    has_said_why: bool,
    /// What stands in for what is missing.
    placeholders: Placeholders,
    /// The kinds of which it was told that nobody attends to them.
    unattended: BTreeSet<GroupKind>,
}

impl Session<'_> {
    /// Tells of progress and follows edits until the end.
    async fn stay(&mut self, signals: &mut Signals) -> anyhow::Result<()> {
        let mut changes = self.controller.cache().subscribe();
        let mut ticks = interval(TELL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let deadline = self.started + self.args.timeout;
        let mut stale = true;
        loop {
            tokio::select! {
                change = changes.recv() => {
                    stale |= match change {
                        Ok(change) => matches!(change.key.kind.as_str(), "Application" | "ApplicationSet"),
                        Err(RecvError::Lagged(_)) => true,
                        Err(RecvError::Closed) => return Ok(()),
                    };
                }
                // Nothing ticks while nothing happens.
                _ = ticks.tick(), if stale || self.reporter.is_animated() => {
                    stale = false;
                    self.provide_clusters().await;
                    let rows = self.rows();
                    self.was_green &= !self.reporter.rows(&rows);
                    self.sync_all(&rows).await;
                    self.stand_in(&rows).await;
                    if let Some(end) = self.judge(&rows, &mut stale).await {
                        return end;
                    }
                }
                _ = looks.tick(), if !self.was_green => stale = true,
                edits = self.edits.next() => self.take(&edits).await,
                commit = self.commits.next() => self.move_to(commit).await,
                () = sleep_until(deadline), if self.args.once => {
                    let rows = self.rows();
                    return Err(self.give_up(rows).await);
                }
                () = signals.wait() => {
                    self.reporter.close();
                    return if self.args.once { Err(Reported.into()) } else { Ok(()) };
                }
            }
        }
    }

    /// Whether it is over: with `--once`, when all is green or nothing can become green any more.
    async fn judge(&mut self, rows: &[Row], stale: &mut bool) -> Option<anyhow::Result<()>> {
        if self.progress(rows).is_green() {
            self.stuck_since = None;
            self.tell_of_unattended();
            if self.args.once {
                self.reporter.end(rows, true);
                return Some(Ok(()));
            }
            if !std::mem::replace(&mut self.was_green, true) {
                self.reporter.green(rows);
            }
            return None;
        }
        self.was_green = false;
        // The engine may still be about to look at the last of them.
        *stale |= rows.iter().any(|row| !self.progress(rows).has_seen(row));
        let is_over =
            self.progress(rows).has_seen_all() && self.stillness.is_quiet(&self.controller.caches());
        if is_over && self.args.once {
            return Some(Err(self.give_up(rows.to_vec()).await));
        }
        if !self.args.once {
            if is_over && !std::mem::replace(&mut self.has_said_why, true) {
                self.say_why(rows.to_vec()).await;
            }
            self.has_said_why &= self.stillness.is_settled();
        }
        if !self.args.once || !self.progress(rows).is_stuck() {
            self.stuck_since = None;
            return None;
        }
        *stale = true;
        let is_over = self.stuck_since.get_or_insert_with(Instant::now).elapsed() >= STUCK;
        // What stands in for something out of reach is put in place once nothing moves, and moves things
        // again.
        if !is_over || self.progress(rows).is_anything_out_of_reach() && !self.stillness.is_settled() {
            return None;
        }
        Some(Err(self.give_up(rows.to_vec()).await))
    }

    /// Tells of what is not green, and why; there is nothing more to wait for.
    async fn give_up(&mut self, rows: Vec<Row>) -> anyhow::Error {
        self.say_why(rows).await;
        Reported.into()
    }

    /// Tells of what is not green, and why.
    async fn say_why(&mut self, mut rows: Vec<Row>) {
        let unseen: Vec<bool> = rows.iter().map(|row| !self.progress(&rows).has_seen(row)).collect();
        let unseen = rows.iter_mut().zip(unseen).filter(|(_, unseen)| *unseen);
        unseen.for_each(|(row, _)| row.tell_of_sources());
        unhealthy_causes::add(&mut rows, &self.sites()).await;
        self.reporter.end(&rows, false);
        if self.args.stand_ins == placeholder_kinds::When::Auto
            && rows.iter().any(Row::lacks_what_people_make)
        {
            self.reporter.notice(
                "Secrets and ConfigMaps that pods name and nothing in reach brings are made by hand, or by what is out of reach; --stand-ins always puts some in their place",
            );
        }
        let lacks_a_namespace = rows.iter().any(|row| row.missing_namespaces().next().is_some());
        if self.args.stand_ins == placeholder_kinds::When::Auto && lacks_a_namespace {
            self.reporter.notice(
                "namespaces that nothing brings are made by hand, or by `CreateNamespace=true`; --stand-ins always makes them",
            );
        }
    }

    /// That a custom resource looks done though no operator has seen it is not passed over in silence.
    fn tell_of_unattended(&mut self) {
        let mut kinds = self.controller.unattended();
        kinds.retain(|kind, _| self.unattended.insert(kind.clone()));
        if kinds.is_empty() {
            return;
        }
        let kinds: Vec<String> = kinds
            .into_iter()
            .map(|(kind, count)| format!("{}.{} ({count})", kind.kind, kind.group))
            .collect();
        self.reporter.notice(&format!(
            "the embedded cluster plays no operator for these kinds, so nothing comes of them and their health does not count: {}",
            kinds.join(", ")
        ));
    }

    fn rows(&mut self) -> Vec<Row> {
        rows_of(&self.controller, &self.refused, &mut self.seen)
    }

    fn progress<'r>(&'r self, rows: &'r [Row]) -> Progress<'r> {
        let syncs_all = self.args.sync_all;
        Progress { controller: &self.controller, rows, now: Timestamp::now(), syncs_all }
    }

    /// Puts things in the place of those that are out of reach, once nothing else moves.
    async fn stand_in(&mut self, rows: &[Row]) {
        let now = Timestamp::now();
        self.stillness.observe(rows, now);
        let progress = Progress { controller: &self.controller, rows, now, syncs_all: self.args.sync_all };
        let told = self.placeholders.stand_in(progress, &mut self.stillness).await;
        told.iter().for_each(|text| self.reporter.notice(text));
    }

    /// Every cluster with its live state, the engine's own first.
    fn sites(&self) -> Vec<(Cluster, LiveCache)> {
        placeholders::sites(&self.controller)
    }

    /// Starts the clusters of destinations that were not known before.
    async fn provide_clusters(&mut self) {
        let Some(clusters) = &mut self.clusters else { return };
        for destination in app_rows::destinations(self.controller.cache()) {
            match clusters.provide(self.args, &self.twin.cluster, &destination).await {
                Ok(told) => told.iter().for_each(|text| self.reporter.notice(text)),
                Err(error) => self.reporter.notice(&format!("{error:#}")),
            }
        }
    }

    /// With --sync-all, asks for a sync of what nobody else would: once for each revision.
    async fn sync_all(&mut self, rows: &[Row]) {
        for row in rows.iter().filter(|row| self.args.sync_all && row.waits_for_a_person()) {
            if !self.asked.insert((row.namespace.clone(), row.name.clone(), row.revision.clone())) {
                continue;
            }
            if let Err(error) = sync_requests::ask(&self.twin.cluster, row).await {
                self.reporter.notice(&format!("{} cannot be synced: {error:#}", row.name));
            }
        }
    }

    /// Takes up edits: changed Applications are installed anew, everything else is the engine's.
    async fn take(&mut self, edits: &[String]) {
        if may_declare(&self.repository, &self.survey, edits) {
            match self.rescan().await {
                Ok(()) => {}
                Err(error) => self.reporter.notice(&format!("{error:#}")),
            }
        }
        self.controller.changed(edits);
    }

    /// Takes up a newer commit of a repository that was given by its address.
    async fn move_to(&mut self, commit: anyhow::Result<Checkout>) {
        let checkout = match commit {
            Ok(checkout) => checkout,
            Err(error) => {
                return self.reporter.notice(&format!("cannot ask for new commits: {error:#}"));
            }
        };
        self.commits.know(&checkout.revision);
        self.reporter.notice(&format!("the repository is at {} now", checkout.revision));
        self.repository.move_to(checkout);
        if let Err(error) = self.rescan().await {
            self.reporter.notice(&format!("{error:#}"));
        }
        self.controller.changed(&[String::new()]);
    }

    async fn rescan(&mut self) -> anyhow::Result<()> {
        // What Applications render to may have to be fetched.
        let environment = self.args.environment.as_deref();
        self.survey = block_in_place(|| self.repository.survey(plan::options(), environment, &self.declared));
        let faults = repository::faults(&self.survey);
        faults.iter().for_each(|fault| self.reporter.notice(fault));
        self.placeholders.set_brought(Brought::from_survey(&self.survey));
        if environment.is_none() && self.survey.choices.len() > 1 || self.survey.no_environment.is_some() {
            return Ok(());
        }
        let Start { roots, projects, argo_settings, .. } = Start::from_survey(&self.survey, &self.declared);
        let had = self.argo_settings.take().filter(|_| !brings_settings(&self.survey));
        self.argo_settings = argo_settings.or(had.map(bootstrap::without_settings));
        let install = bootstrap::Install {
            cluster: &self.twin.cluster,
            projects: &projects,
            settings: self.argo_settings.as_ref(),
        };
        self.refused = app_rows::refused(&install.applications(&roots).await?);
        let present = installed(&roots, &projects);
        // What a broken file held is not gone.
        if faults.is_empty() {
            for (key, gone) in self.installed.iter().filter(|(key, _)| !present.contains_key(*key)) {
                if is_led_to(gone, &self.survey) {
                    continue;
                }
                self.reporter
                    .notice(&format!("{} {} is in the repository no more; it is deleted", key.0, key.2));
                install.remove(gone).await?;
            }
            self.installed = present;
        }
        Ok(())
    }
}
