//! Plays a plan on a stage.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use tiphys_cluster::Cluster;
use tiphys_controller::{Destinations, Settings};
use tiphys_model::{Tracking, names};
use tiphys_stage::{
    Ending, Next, Recorder, Site, SiteOptions, Stage, Still, Watcher,
    fault::{Injector, RefusedEviction, Timed},
    found,
    story::{Outcome, Story},
};
use tiphys_value::ResourceKey;
use tiphys_world::Behaviours;

use super::{
    earlier_installs::EarlierInstall, found::Found, held_windows::next_opening, network_rules,
    repair::CutFlow, strict_world,
};
use crate::{
    ENGINE_NAMESPACE,
    up::{
        app_rows::{self, Row, SeenRows},
        bootstrap::{Install, without_settings},
        brought::Brought,
        extra_clusters::Beside,
        placeholder_kinds::When,
        placeholders::Placeholders,
        plan::{Plan, brings_settings, installed, is_led_to},
        progress::{Progress, rows_of},
        quiescence::Stillness,
        service_network, sync_requests,
    },
};

/// How many pods a rehearsal makes at most: hours are played with all of them.
const MOST_PODS: usize = 1_000;

/// How long nothing may move before that is the end: longer than the longest pause of a kubelet or of the
/// engine. It costs nothing where time is virtual.
const QUIET: Duration = Duration::from_secs(6 * 60);
/// How long a pod takes to start whose image is known to nobody, and how long a Job runs: about what they
/// take on a real cluster, since time is virtual.
const POD_START: Duration = Duration::from_secs(2);
const JOB_RUN: Duration = Duration::from_secs(5);
/// How long the engine gathers changes before it looks at an Application where only the end counts. On a real
/// cluster looks take time, in which changes gather by themselves.
const GATHER_FOR_END: Duration = Duration::from_secs(2);
/// The zones of a cluster that is brought up, one for each node.
pub(super) const ZONES: [&str; 3] = ["a", "b", "c"];
/// How long nothing may have moved when time is up for that to be the end, though programs run and are not
/// ready.
const AT_REST: Duration = Duration::from_secs(30 * 60);
/// How long after the last fault is over that may begin.
const RECOVERY: Duration = Duration::from_secs(10 * 60);
/// How long all has to be well before that is the end: a program may give up after a while.
const STEADY: Duration = Duration::from_secs(2 * 60);

/// How it is played.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// By Argo CD's rules.
    pub argo_cd: bool,
    /// Draws uids and names.
    pub seed: u64,
    /// How much virtual time passes at most.
    pub until: Duration,
    /// What stands in.
    pub stand_ins: When,
    /// Whether somebody syncs what nobody else would.
    pub sync_all: bool,
    /// Whether only the end counts, as of the state before a change: the engine then gathers changes for
    /// longer before it looks, which takes a third of the looks.
    pub only_end: bool,
}

/// How a play ended: its story, and the clusters as they are then.
pub(super) struct Played {
    /// What happened.
    pub story: Story,
    /// The engine's own cluster.
    pub home: Still,
    /// Those beside it, by the address that stands for each.
    pub beside: Vec<(String, Still)>,
    placeholders: Placeholders,
    /// What did not work in a cluster that was found, and goes on not working.
    observed: Behaviours,
    /// How objects are marked as those of Applications.
    pub tracking: Tracking,
    /// What kept nodes from being drained.
    pub refused_evictions: Vec<RefusedEviction>,
}

/// What of the world a repository tells.
#[derive(Default)]
pub(super) struct WorldKnowledge {
    /// Registries, and what network policies cut off, as rules.
    pub rules: Behaviours,
    /// What network policies cut off, as causes.
    pub flows: Vec<CutFlow>,
    /// The same as rules, which hold while the policies are there.
    cut: Behaviours,
}

impl WorldKnowledge {
    /// What a repository tells.
    pub(super) fn from_plan(plan: &Plan, rules: Rules) -> Self {
        let cut = network_rules::cut_off(plan);
        let mut known = strict_world::registries(plan, rules.seed);
        known.extend(cut.rules.clone());
        known.extend(Behaviours::builtin());
        known.extend(strict_world::command_lines(plan));
        known.extend(strict_world::webhooks(plan));
        Self { rules: known, flows: cut.flows, cut: cut.rules }
    }
}

/// Brings a repository up in a cluster in which nothing is but what other tools installed. Must be called on
/// a runtime of virtual time.
///
/// # Errors
/// The cluster cannot be set up.
pub(super) async fn bring_up(
    (plan, known): (&Plan, &WorldKnowledge),
    installed: &[EarlierInstall],
    rules: Rules,
    faults: Vec<Timed>,
) -> anyhow::Result<Played> {
    let chosen = service_network::chosen(None, false, plan.repository.tree.as_ref());
    let world = tiphys_world::Settings {
        pod_start: POD_START,
        job_run: JOB_RUN,
        behaviours: known.rules.clone(),
        zones: ZONES.map(str::to_owned).into(),
        most_pods: MOST_PODS,
        ..Default::default()
    };
    let options = SiteOptions { seed: rules.seed, service_network: chosen.range, is_isolated: true, world };
    let site = Site::fresh(options.clone())?;
    let mut placeholders = Vec::from_iter(chosen.told);
    let mut stage = Stage::new(site, &plan.repository.repositories, settings(plan, rules));
    let mut recorder = stage.recorder();
    let home = stage.site().cluster();
    let install = Install { cluster: &home, projects: &plan.projects, settings: plan.argo_settings.as_ref() };
    install.definitions().await?;
    // The Secrets of clusters are kept there.
    install.stand_ins(&BTreeSet::from([ENGINE_NAMESPACE.to_owned()]), &BTreeSet::new()).await?;
    for earlier in installed {
        placeholders.extend(earlier.provide(&home).await?);
    }
    for beside in plan.apart.iter().filter_map(Beside::for_destination) {
        let options = SiteOptions { seed: rules.seed.wrapping_add(1), ..options.clone() };
        placeholders.push(add_beside(&mut stage, &mut recorder, &beside, options).await?);
    }
    play(
        stage,
        &recorder,
        plan,
        rules,
        Placeholders::new(rules.stand_ins, Brought::from_survey(&plan.survey)),
        faults,
        placeholders,
    )
    .await
}

/// Puts a cluster beside the engine's own, and returns what is to be told of it.
async fn add_beside(
    stage: &mut Stage,
    recorder: &mut Recorder,
    beside: &Beside,
    options: SiteOptions,
) -> anyhow::Result<String> {
    let site = Site::fresh(options)?;
    recorder.also(site.server().clone());
    stage.put_beside(&beside.server, site);
    beside.declare(&stage.site().cluster()).await?;
    Ok(beside.notice())
}

/// Plays another state of the repository on clusters as they are. Must be called on a runtime of virtual
/// time.
///
/// # Errors
/// The cluster cannot be set up.
pub(super) async fn go_on(
    before: &Played,
    was: Option<(&Plan, &WorldKnowledge)>,
    (plan, known): (&Plan, &WorldKnowledge),
    rules: Rules,
    faults: Vec<Timed>,
) -> anyhow::Result<Played> {
    let mut world = strict_world::networks(&before.home.server().snapshot());
    world.extend(before.observed.clone());
    // What policies cut off before, until they are gone.
    world.extend(was.map(|(_, known)| known.cut.clone()).unwrap_or_default());
    world.extend(known.rules.clone());
    let site = before.home.with_rules(world).resume()?;
    let mut stage = Stage::new(site, &plan.repository.repositories, settings(plan, rules));
    for (server, still) in &before.beside {
        stage.put_beside(server, still.resume()?);
    }
    let mut recorder = stage.recorder();
    let mut notices = Vec::new();
    let is_new = |beside: &Beside| !before.beside.iter().any(|(server, _)| *server == beside.server);
    for beside in plan.apart.iter().filter_map(Beside::for_destination).filter(is_new) {
        let options =
            SiteOptions { seed: rules.seed.wrapping_add(1), is_isolated: true, ..SiteOptions::default() };
        notices.push(add_beside(&mut stage, &mut recorder, &beside, options).await?);
    }
    let cluster = stage.site().cluster();
    if let Some((was, _)) = was {
        remove_what_is_gone(&cluster, was, plan).await?;
    }
    // Settings that nothing states any more are those of nobody.
    let had = was.and_then(|(was, _)| was.argo_settings.clone()).filter(|_| plan.argo_settings.is_none());
    if let Some(had) = had.filter(|_| !brings_settings(&plan.survey)) {
        let install = Install { cluster: &cluster, projects: &[], settings: Some(&without_settings(had)) };
        install.applications(&[]).await?;
    }
    play(stage, &recorder, plan, rules, before.placeholders.clone(), faults, notices).await
}

/// Deletes roots and projects that are in the repository no more.
async fn remove_what_is_gone(cluster: &Cluster, was: &Plan, plan: &Plan) -> anyhow::Result<()> {
    let install = Install { cluster, projects: &plan.projects, settings: plan.argo_settings.as_ref() };
    let present = installed(&plan.roots, &plan.projects);
    for (key, gone) in installed(&was.roots, &was.projects) {
        if !present.contains_key(&key) && !is_led_to(&gone, &plan.survey) {
            install.remove(&gone).await?;
        }
    }
    Ok(())
}

async fn play(
    mut stage: Stage,
    recorder: &Recorder,
    plan: &Plan,
    rules: Rules,
    placeholders: Placeholders,
    faults: Vec<Timed>,
    notices: Vec<String>,
) -> anyhow::Result<Played> {
    let home = stage.site().cluster();
    let install = Install { cluster: &home, projects: &plan.projects, settings: plan.argo_settings.as_ref() };
    let refused = app_rows::refused(&install.applications(&plan.roots).await?);
    let mut director = Director {
        rules,
        refused,
        seen: SeenRows::default(),
        placeholders,
        stillness: Stillness::with_quiet(QUIET),
        injector: Injector::new(faults),
        notices,
        asked: BTreeSet::new(),
        outcome: Outcome::TimeUp,
        fault: None,
    };
    stage.start().await?;
    stage.play(rules.until, &mut director).await;
    if let Some(fault) = director.fault {
        return Err(fault);
    }
    let still_for = director.stillness.still_for();
    // A program that runs and is not ready may be on its way, but not for ever.
    let outcome = match director.outcome {
        Outcome::TimeUp if still_for >= AT_REST => Outcome::Standstill,
        outcome => outcome,
    };
    let ending = Ending {
        outcome,
        still_since_ms: millis(stage.elapsed().saturating_sub(still_for)),
        placeholders: director.notices,
        namespace: ENGINE_NAMESPACE.to_owned(),
        refused: director.refused.iter().map(refusal).collect(),
        api_fault: director.injector.present_api_fault().cloned(),
    };
    let story = stage.story(&recorder.record(), ending);
    stage.kill();
    let beside = stage.beside().map(|(server, site)| (server.to_owned(), site.still())).collect();
    let observed = Behaviours::default();
    let refused_evictions = director.injector.refused_evictions().cloned().collect();
    let placeholders = director.placeholders;
    let tracking = settings(plan, rules).tracking;
    Ok(Played {
        story,
        home: stage.site().still(),
        beside,
        placeholders,
        observed,
        tracking,
        refused_evictions,
    })
}

/// A cluster as it was found, in which nothing has happened yet. Must be called on a runtime of virtual time.
///
/// # Errors
/// The cluster cannot be set up.
pub(super) async fn stand_still(
    saved: &Found,
    plan: &Plan,
    known: &WorldKnowledge,
    rules: Rules,
) -> anyhow::Result<Played> {
    let observed = found::observed(&saved.objects);
    let world = tiphys_world::Settings {
        pod_start: POD_START,
        job_run: JOB_RUN,
        behaviours: known.rules.clone(),
        ..Default::default()
    };
    let seed = rules.seed ^ saved.fingerprint();
    let options = SiteOptions { seed, service_network: None, is_isolated: true, world };
    let (site, imported) = Site::found(saved.objects.clone(), saved.saved_at, options)?;
    // Nodes that the dump does not have are made ready.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let stage = Stage::new(site, &plan.repository.repositories, settings(plan, rules));
    let recorder = stage.recorder();
    let ending = |outcome| Ending {
        outcome,
        still_since_ms: 0,
        placeholders: left_out(&imported.refused),
        namespace: ENGINE_NAMESPACE.to_owned(),
        refused: Vec::new(),
        api_fault: None,
    };
    let mut story = stage.story(&recorder.record(), ending(Outcome::Standstill));
    if story.applications.iter().all(|app| app.is_green) {
        story = stage.story(&recorder.record(), ending(Outcome::Green));
    }
    let placeholders = Placeholders::new(rules.stand_ins, Brought::from_survey(&plan.survey))
        .with_whole(saved.whole_kinds());
    let tracking = settings(plan, rules).tracking;
    Ok(Played {
        story,
        home: stage.site().still(),
        beside: Vec::new(),
        placeholders,
        observed,
        tracking,
        refused_evictions: Vec::new(),
    })
}

/// What of a dump the cluster does not know, each reason once.
fn left_out(refused: &[(String, String)]) -> Vec<String> {
    let mut by_reason: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (object, why) in refused {
        by_reason.entry(why).or_default().push(object.clone());
    }
    let told = by_reason
        .into_iter()
        .map(|(why, objects)| format!("left out of the dump: {} ({why})", super::text::some_of(&objects, 4)));
    told.collect()
}

/// What the cluster did not take, and why.
fn refusal(row: &Row) -> (ResourceKey, String) {
    let kind = if row.is_set { "ApplicationSet" } else { "Application" };
    let key = ResourceKey::new(names::GROUP, kind, &row.namespace, &row.name);
    (key, row.reasons.first().map(ToString::to_string).unwrap_or_default())
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn settings(plan: &Plan, rules: Rules) -> Settings {
    let by_rules = crate::settings::by_rules_of(rules.argo_cd);
    Settings {
        namespace: ENGINE_NAMESPACE.into(),
        destinations: if plan.apart.is_empty() { Destinations::AllHere } else { Destinations::Apart },
        pass_out_of_reach: rules.stand_ins != When::Never,
        gather_live: if rules.only_end { GATHER_FOR_END } else { by_rules.gather_live },
        ..by_rules
    }
}

/// Puts placeholders and faults on the stage, and says when it is over.
struct Director {
    rules: Rules,
    refused: Vec<Row>,
    seen: SeenRows,
    placeholders: Placeholders,
    stillness: Stillness,
    injector: Injector,
    notices: Vec<String>,
    /// What was asked to be synced: namespace, name and revision.
    asked: BTreeSet<(String, String, String)>,
    outcome: Outcome,
    fault: Option<anyhow::Error>,
}

impl Watcher for Director {
    async fn next_step(&mut self, stage: &mut Stage) -> Next {
        match self.step(stage).await {
            Ok(next) => next,
            Err(error) => {
                self.fault = Some(error);
                Next::End
            }
        }
    }
}

impl Director {
    async fn step(&mut self, stage: &mut Stage) -> anyhow::Result<Next> {
        let has_changed = self.injector.apply(stage).await?;
        let elapsed = stage.elapsed();
        let next_fault = self.injector.next_after(elapsed).map(|at| at.saturating_sub(elapsed));
        // A dead engine says nothing, and comes back with the end of its fault.
        let Some(controller) = stage.engine() else { return Ok(Next::Wait(next_fault)) };
        let now = stage.site().now();
        let rows = rows_of(controller, &self.refused, &mut self.seen);
        if has_changed {
            // What a fault hits has not moved yet.
            self.stillness.reset_timer();
        }
        self.stillness.observe(&rows, now);
        if self.rules.sync_all {
            self.sync_all(&rows, &stage.site().cluster()).await?;
        }
        let progress = Progress { controller, rows: &rows, now, syncs_all: self.rules.sync_all };
        let told = self.placeholders.stand_in(progress, &mut self.stillness).await;
        self.notices.extend(told);
        if next_fault.is_none() {
            if progress.is_green() && self.stillness.still_for() >= STEADY {
                self.outcome = Outcome::Green;
                return Ok(Next::End);
            }
            let has_recovered = self.injector.last_end().is_none_or(|end| elapsed >= end + RECOVERY);
            if has_recovered && progress.has_seen_all() && self.stillness.is_quiet(&controller.caches()) {
                let left = self.rules.until.saturating_sub(elapsed);
                if let Some(opens) = next_opening(&stage.site().server().snapshot(), now, left) {
                    self.stillness.reset_timer();
                    return Ok(Next::Wait(Some(opens)));
                }
                self.outcome = Outcome::Standstill;
                return Ok(Next::End);
            }
        }
        let steady = STEADY.checked_sub(self.stillness.still_for()).filter(|left| !left.is_zero());
        let due = [next_fault, steady, self.stillness.next_look()].into_iter().flatten().min();
        Ok(Next::Wait(Some(due.unwrap_or(QUIET))))
    }

    async fn sync_all(&mut self, rows: &[Row], cluster: &Cluster) -> anyhow::Result<()> {
        for row in rows.iter().filter(|row| row.waits_for_a_person()) {
            if self.asked.insert((row.namespace.clone(), row.name.clone(), row.revision.clone())) {
                sync_requests::ask(cluster, row).await?;
            }
        }
        Ok(())
    }
}
