//! `tiphys up`: the embedded cluster, the engine on it, and what is told of both.

mod argocd;
mod args;
mod by_hand;
mod causes;
mod clusters;
mod follow;
mod install;
mod issuers;
mod network;
mod nodes;
mod presupposed;
mod report;
mod rollouts;
mod rows;
mod settle;
mod signals;
mod stand_ins;
mod standing;
mod sync;
mod table;
mod twin;
mod waits;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use tiphys_cluster::ApplyOptions;
use tiphys_controller::{AppKey, Controller, Destinations, Settings};
use tiphys_health::HealthSettings;
use tiphys_model::Destination;
use tiphys_source::Checkout;
use tiphys_value::{GroupKind, ObjectExt as _, ResourceKey, Value};
use tiphys_vfs::is_below;
use tokio::{
    sync::broadcast::error::RecvError,
    task::block_in_place,
    time::{Instant, MissedTickBehavior, interval, sleep_until},
};

use crate::{
    ENGINE_NAMESPACE,
    exit::{Reported, WrongUse},
    local_clusters::{Purpose, Registration, Served},
    repository::{Catalogue, Choice, Found, Given, Repository, Scope, choose},
};
pub use args::Args;
use args::Output;
use clusters::Clusters;
pub use clusters::kubeconfig_for;
use follow::{Commits, Edits};
use presupposed::Presupposed;
use report::Reporter;
use rows::Row;
use settle::Stillness;
pub(crate) use signals::Signals;
use twin::Twin;
pub(crate) use twin::listen_error;

/// Who owns the fields of what is put into a cluster here.
const FIELD_MANAGER: &str = "tiphys-up";

/// How often what has changed is told.
const TELL: Duration = Duration::from_millis(100);

/// How often it is looked whether anything still moves.
const LOOK: Duration = Duration::from_secs(1);

/// How long nothing may be able to become green before `--once` gives up ahead of its timeout.
const STUCK: Duration = Duration::from_secs(1);

/// How something is put into a cluster, whoever owned its fields before.
pub(crate) fn apply_options() -> ApplyOptions {
    ApplyOptions { field_manager: FIELD_MANAGER.into(), force: true, dry_run: false, validate: false }
}

/// Runs until interrupted, or with `--once` until done.
///
/// # Errors
/// Nothing to run, the cluster cannot start, or not green in time.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    let started = Instant::now();
    let mut reporter = Reporter::new(args.output == Output::Json, started.into_std());
    let opened = tokio::task::spawn_blocking({
        let args = args.clone();
        move || prepare(&args)
    });
    let mut signals = Signals::new()?;
    let Plan { repository, roots, projects, argo_settings, notices, apart, rendered_classes } = tokio::select! {
        plan = opened => plan??,
        () = signals.wait() => return Ok(()),
    };
    notices.iter().for_each(|notice| reporter.notice(notice));
    let network = network::chosen(args, repository.tree.as_ref());
    network.told.iter().for_each(|told| reporter.notice(told));
    let folder = repository.root.clone();
    let purpose = Purpose {
        place: args.place.clone(),
        environment: args.path.clone().unwrap_or_default(),
        served: folder.map(|folder| Served { folder, by_revision: args.respect_revisions }),
    };
    let registration = Arc::new(Registration::open(purpose, args.kubeconfig.as_deref())?);
    let twin = Twin::start(args, network.range, &registration).await?;
    reporter.cluster(&twin.address, &registration.kubeconfig(), twin.ready_in);
    let install =
        install::Install { cluster: &twin.cluster, projects: &projects, settings: argo_settings.as_ref() };
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
        health: HealthSettings { attended: Some(twin::attended()), ..HealthSettings::default() },
        pass_out_of_reach: args.stand_ins != stand_ins::When::Never,
        ..Settings::default()
    };
    let controller =
        Controller::start(twin.cluster.clone(), repository.repositories.clone(), settings).await?;
    let controller = Arc::new(controller);
    if !args.once
        && let Err(error) = argocd::provide(&twin, controller.clone()).await
    {
        reporter.notice(&format!("argocd --core will not find what it looks for: {error:#}"));
    }
    let edits = if args.once { Edits::none() } else { Edits::of(&repository, &mut reporter) };
    let commits = Commits::of(&repository, args);
    let installed = installed(&roots, &projects);
    let mut session = Session {
        args,
        controller,
        twin,
        clusters: (!apart.is_empty()).then_some(clusters),
        repository,
        edits,
        commits,
        installed,
        argo_settings,
        refused: rows::refused(&refused),
        asked: BTreeSet::new(),
        reporter,
        started,
        was_green: false,
        stuck_since: None,
        stillness: Stillness::new(),
        stood_in: BTreeSet::new(),
        stood_in_namespaces: BTreeSet::new(),
        stood_in_projects: BTreeSet::new(),
        stood_in_issuers: BTreeSet::new(),
        has_argo_kinds: BTreeSet::new(),
        presupposed: Vec::new(),
        rendered_classes,
        has_said_why: false,
        passed: BTreeSet::new(),
        unattended: BTreeSet::new(),
    };
    session.stay(&mut signals).await
}

/// What is to be run.
struct Plan {
    repository: Repository,
    roots: Vec<Found>,
    projects: Vec<Found>,
    /// Argo CD's settings, if no Application brings them.
    argo_settings: Option<Value>,
    notices: Vec<String>,
    /// Clusters that cannot be one with the engine's own.
    apart: Vec<Destination>,
    rendered_classes: BTreeSet<(String, String)>,
}

/// Opens the repository and decides what to run.
fn prepare(args: &Args) -> anyhow::Result<Plan> {
    let mut repository = Repository::open(&Given {
        place: &args.place,
        revision: args.revision.as_deref(),
        path: args.path.as_deref(),
        respect_revisions: args.respect_revisions,
        offline: args.offline,
    })
    .map_err(|error| WrongUse(format!("{error:#}")))?;
    if let Some(file) = &args.clusters {
        repository.scan.more_clusters = crate::clusters::read(file)?;
    }
    repository.look_into_units();
    let catalogue = Catalogue::build(&repository.scan, &repository.repositories, Scope::default());
    let roots = catalogue.roots(&repository.scan);
    if roots.is_empty() {
        return Err(WrongUse(nothing_found(&repository)).into());
    }
    let mut clashes = Vec::new();
    let roots: Vec<Found> = match choose(roots, &catalogue) {
        Choice::Run(roots, passed_over) => {
            clashes.extend(passed_over.iter().map(|(first, second)| clash(first, second)));
            roots.into_iter().cloned().collect()
        }
        Choice::Ask(environments) => return Err(WrongUse(ask(&environments)).into()),
    };
    let mut projects = catalogue.unrendered_others(&repository.scan);
    projects.extend(repository.scan.more_clusters.iter().map(install::cluster_secret));
    let undeclared = undeclared(&catalogue, &repository);
    let argo_settings = install::settings(&repository.scan, &catalogue);
    let mut notices = repository.notices.clone();
    notices.extend(repository.told_left_out());
    notices.extend(clashes);
    notices.extend(repository.scan.faults.iter().map(|fault| fault.trim_end().to_owned()));
    notices.extend(ignored_revisions(args, &repository));
    if !undeclared.is_empty() {
        let names: Vec<&str> = undeclared.iter().map(|found| found.object.name()).collect();
        notices.push(format!(
            "the repository declares no AppProject; these are taken to allow everything: {}",
            names.join(", ")
        ));
    }
    projects.extend(undeclared);
    let apart = if args.respect_destinations { Vec::new() } else { catalogue.clusters_apart() };
    let rendered_classes = catalogue.rendered_classes();
    Ok(Plan { repository, roots, projects, argo_settings, notices, apart, rendered_classes })
}

/// The projects that somebody has to have made by other means.
fn undeclared(catalogue: &Catalogue, repository: &Repository) -> Vec<Found> {
    let names = catalogue.undeclared_projects(&repository.scan).into_iter();
    let found = |name| Found { file: "AppProject".to_owned(), line: 1, object: install::open_project(name) };
    names.map(found).collect()
}

/// What is told of two Applications of one name, of which one runs.
fn clash(first: &Found, second: &Found) -> String {
    format!(
        "two {}s are named {:?}: {} runs, {} does not; rename one, or narrow the search with {}",
        first.object.kind(),
        first.object.name(),
        first.place(),
        second.place(),
        narrower(&first.file, &second.file),
    )
}

/// The flags that tell two files apart.
fn narrower(first: &str, second: &str) -> String {
    let ways = [(first, second), (second, first)];
    let parting =
        ways.iter().filter_map(|(one, other)| tiphys_graph::survey::environment_parting(one, other));
    // A folder that holds both does not tell them apart.
    let parting = parting.filter(|folder| ![first, second].iter().all(|file| is_below(file, folder)));
    let flags: Vec<String> = parting.map(|folder| format!("--path {folder}")).collect();
    if flags.is_empty() { "--path".to_owned() } else { flags.join(" or ") }
}

fn nothing_found(repository: &Repository) -> String {
    let place =
        if repository.folder.is_empty() { "the repository".to_owned() } else { repository.folder.clone() };
    let mut text = format!(
        "no Application found in {place}: looked through {} YAML and JSON files for kind: Application and ApplicationSet of argoproj.io/v1alpha1",
        repository.scan.files
    );
    for (engine, count) in repository.of_other_engines() {
        let (files, hold) = if count == 1 { ("file", "holds") } else { ("files", "hold") };
        text.push_str(&format!(
            "\n{count} {files} {hold} objects of {engine}, which is another engine: tiphys runs Argo CD's Applications"
        ));
    }
    for fault in &repository.scan.faults {
        text.push_str("\n\n");
        text.push_str(fault.trim_end());
    }
    text
}

fn ask(environments: &std::collections::BTreeMap<String, Vec<&Found>>) -> String {
    let mut text = String::from("there are several environments side by side; choose one:");
    for (folder, roots) in environments {
        let names: BTreeSet<&str> = roots.iter().map(|root| root.object.name()).collect();
        let names: Vec<&str> = names.into_iter().collect();
        text.push_str(&format!("\n  --path {folder}   ({})", some_of(&names)));
    }
    text
}

/// Names of a list, the first of it if it is long.
fn some_of<T: std::borrow::Borrow<str>>(names: &[T]) -> String {
    const NAMED: usize = 6;
    match names.len().saturating_sub(NAMED) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names[..NAMED].join(", ")),
    }
}

/// Says once that target revisions of this repository do not count.
fn ignored_revisions(args: &Args, repository: &Repository) -> Option<String> {
    if args.respect_revisions {
        return None;
    }
    let mut revisions = repository.scan.target_revisions(&repository.repositories);
    revisions.retain(|revision| !revision.is_empty() && revision != "HEAD");
    if revisions.is_empty() {
        return None;
    }
    let shown: Vec<String> = revisions.into_iter().collect();
    let what = args
        .revision
        .as_deref()
        .map_or_else(|| "the files as they are".to_owned(), |rev| format!("revision {rev}"));
    Some(format!(
        "this repository is served from {what}, whatever targetRevision says ({}); --respect-revisions takes the commits",
        shown.join(", ")
    ))
}

/// Everything that runs.
struct Session<'a> {
    args: &'a Args,
    controller: Arc<Controller>,
    twin: Twin,
    /// The clusters beside it, if there are any.
    clusters: Option<Clusters>,
    repository: Repository,
    edits: Edits,
    commits: Commits,
    /// What was put into the cluster, by kind and id.
    installed: BTreeMap<(String, String, String), Found>,
    /// Argo CD's settings as they were put into the cluster.
    argo_settings: Option<Value>,
    /// Applications and sets that the cluster did not take.
    refused: Vec<Row>,
    /// What was asked to be synced, for --sync-all: namespace, name and revision.
    asked: BTreeSet<(String, String, String)>,
    reporter: Reporter,
    started: Instant,
    was_green: bool,
    stuck_since: Option<Instant>,
    stillness: Stillness,
    /// The kinds for which definitions stand in.
    stood_in: BTreeSet<GroupKind>,
    /// The namespaces that stand in.
    stood_in_namespaces: BTreeSet<String>,
    /// The projects that stand in.
    stood_in_projects: BTreeSet<String>,
    /// The issuers that stand in, with the number of their cluster.
    stood_in_issuers: BTreeSet<(usize, ResourceKey)>,
    /// The numbers of the clusters beside the engine's own that were given Argo CD's kinds.
    has_argo_kinds: BTreeSet<usize>,
    /// Classes, volumes and accounts that Applications of the repository render, by kind and name.
    rendered_classes: BTreeSet<(String, String)>,
    /// Whether it was said why nothing moves any more, since something moved.
    has_said_why: bool,
    /// What of real clusters was put in place, in each cluster.
    presupposed: Vec<Presupposed>,
    /// The Applications of which it was told that nobody waits for them.
    passed: BTreeSet<String>,
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
        if self.is_green(rows) {
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
        *stale |= rows.iter().any(|row| !self.has_seen(row));
        let is_over =
            self.has_seen_all(rows) && self.stillness.is_quiet(&self.controller.caches(), self.quiet_for());
        if is_over && self.args.once {
            return Some(Err(self.give_up(rows.to_vec()).await));
        }
        if !self.args.once {
            if is_over && !std::mem::replace(&mut self.has_said_why, true) {
                self.say_why(rows.to_vec()).await;
            }
            self.has_said_why &= self.stillness.is_settled();
        }
        if !self.args.once || !self.is_stuck(rows) {
            self.stuck_since = None;
            return None;
        }
        *stale = true;
        let is_over = self.stuck_since.get_or_insert_with(Instant::now).elapsed() >= STUCK;
        // What stands in for something out of reach is put in place once nothing moves, and moves things again.
        if !is_over || self.is_anything_out_of_reach(rows) && !self.stillness.is_settled() {
            return None;
        }
        Some(Err(self.give_up(rows.to_vec()).await))
    }

    /// How long nothing may move until it is said why: a person who watches hears it soon and sees what comes after; with
    /// `--once` it is the end.
    fn quiet_for(&self) -> Duration {
        if self.args.once { settle::QUIET } else { settle::QUIET_FOR_A_PERSON }
    }

    /// Tells of what is not green, and why; there is nothing more to wait for.
    async fn give_up(&mut self, rows: Vec<Row>) -> anyhow::Error {
        self.say_why(rows).await;
        Reported.into()
    }

    /// Tells of what is not green, and why.
    async fn say_why(&mut self, mut rows: Vec<Row>) {
        rows.iter_mut().filter(|row| !self.has_seen(row)).for_each(Row::tell_of_sources);
        causes::add(&mut rows, &self.sites()).await;
        self.reporter.end(&rows, false);
        if self.args.stand_ins == stand_ins::When::Auto && rows.iter().any(Row::lacks_what_people_make) {
            self.reporter.notice(
                "Secrets and ConfigMaps that pods name and nothing brings are made by hand; --stand-ins always puts some in their place",
            );
        }
        if self.args.stand_ins == stand_ins::When::Auto && rows.iter().any(Row::lacks_a_namespace) {
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

    fn is_anything_out_of_reach(&self, rows: &[Row]) -> bool {
        rows.iter().any(|row| match row.is_set {
            true => row.is_invalid,
            false => row.is_out_of_reach,
        })
    }

    fn has_seen_all(&self, rows: &[Row]) -> bool {
        rows.iter().all(|row| self.has_seen(row))
    }

    /// Whether everything that is not green cannot become green by itself: it does not render, its sources cannot be had
    /// (hosts are asked again after minutes), its spec is invalid, only a person would sync it, its sync has failed
    /// several times, or it waits for such an Application.
    fn is_stuck(&self, rows: &[Row]) -> bool {
        let broken = |row: &Row| {
            row.is_invalid
                || row.is_out_of_reach
                || row.fails_again_and_again()
                || (row.waits_for_a_person() && (!self.args.sync_all || row.phase.is_some()))
                || (!row.is_set && self.controller.is_broken(&key_of(row)))
        };
        let waits_for_broken = |row: &Row| {
            let names: Vec<&str> =
                rows.iter().filter(|row| broken(row)).map(|row| row.name.as_str()).collect();
            let awaited: Vec<_> = row.awaited_applications().collect();
            !awaited.is_empty() && awaited.iter().all(|name| names.contains(name))
        };
        !rows.is_empty()
            && rows.iter().all(|row| self.has_seen(row))
            && rows.iter().filter(|row| !row.is_green()).all(|row| broken(row) || waits_for_broken(row))
    }

    fn rows(&self) -> Vec<Row> {
        let mut rows = rows::of(self.controller.cache());
        for row in rows.iter_mut().filter(|row| !row.is_set) {
            row.is_out_of_reach = self.controller.is_out_of_reach(&key_of(row));
        }
        rows.extend(self.refused.iter().cloned());
        rows
    }

    /// Starts the clusters of destinations that were not known before.
    async fn provide_clusters(&mut self) {
        let Some(clusters) = &mut self.clusters else { return };
        for destination in rows::destinations(self.controller.cache()) {
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
            if let Err(error) = sync::ask(&self.twin.cluster, row).await {
                self.reporter.notice(&format!("{} cannot be synced: {error:#}", row.name));
            }
        }
    }

    fn has_seen(&self, row: &Row) -> bool {
        row.is_set || row.is_refused || self.controller.has_seen(&key_of(row))
    }

    fn is_green(&self, rows: &[Row]) -> bool {
        !rows.is_empty() && rows.iter().all(|row| row.is_green() && self.has_seen(row))
    }

    /// Takes up edits: changed Applications are installed anew, everything else is the engine's.
    async fn take(&mut self, edits: &[String]) {
        if self.repository.may_define_applications(edits) {
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
                return self.reporter.notice(&format!("new commits cannot be asked for: {error:#}"));
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
        let catalogue = block_in_place(|| {
            self.repository.scan_again();
            Catalogue::build(&self.repository.scan, &self.repository.repositories, Scope::default())
        });
        for fault in &self.repository.scan.faults {
            self.reporter.notice(fault.trim_end());
        }
        self.rendered_classes = catalogue.rendered_classes();
        let Choice::Run(roots, _) = choose(catalogue.roots(&self.repository.scan), &catalogue) else {
            return Ok(());
        };
        let roots: Vec<Found> = roots.into_iter().cloned().collect();
        let mut projects = catalogue.unrendered_others(&self.repository.scan);
        projects.extend(self.repository.scan.more_clusters.iter().map(install::cluster_secret));
        projects.extend(undeclared(&catalogue, &self.repository));
        let had = self.argo_settings.take().filter(|_| !catalogue.brings_settings());
        self.argo_settings =
            install::settings(&self.repository.scan, &catalogue).or(had.map(install::without_settings));
        let install = install::Install {
            cluster: &self.twin.cluster,
            projects: &projects,
            settings: self.argo_settings.as_ref(),
        };
        self.refused = rows::refused(&install.applications(&roots).await?);
        let present = installed(&roots, &projects);
        // What a broken file held is not gone.
        if self.repository.scan.faults.is_empty() {
            for (key, gone) in self.installed.iter().filter(|(key, _)| !present.contains_key(*key)) {
                if is_led_to(gone, &catalogue) {
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

/// What is installed, by kind, namespace and name.
fn installed(roots: &[Found], others: &[Found]) -> BTreeMap<(String, String, String), Found> {
    let all = roots.iter().chain(others);
    all.map(|found| {
        let (namespace, name) = found.id();
        ((found.object.kind().to_owned(), namespace, name), found.clone())
    })
    .collect()
}

/// Whether something that is no root any more is rendered by an Application now.
fn is_led_to(found: &Found, catalogue: &Catalogue) -> bool {
    match found.object.kind() {
        "Application" | "ApplicationSet" => catalogue.knows(&found.node()),
        _ => catalogue.renders(found),
    }
}

fn key_of(row: &Row) -> AppKey {
    AppKey { namespace: row.namespace.clone(), name: row.name.clone() }
}
