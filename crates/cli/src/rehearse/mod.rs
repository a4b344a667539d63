//! `tiphys rehearse`: a repository, or a change of it, is played under virtual time.

mod args;
mod causes;
mod changed_values;
mod cron_trial;
mod earlier_installs;
mod effect_lines;
mod effects;
mod fault_file;
mod fault_play;
mod fault_sweep;
mod found;
mod held_rollouts;
mod held_windows;
mod html;
mod left_behind;
mod lost_volumes;
mod markdown;
mod network_rules;
mod play;
mod repair;
mod report;
mod save;
mod silent_effects;
mod stable_hash;
mod story_locations;
mod strict_world;
mod subject;
mod text;
mod timeline;
mod unmasked;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use tiphys_apiserver::{ResourceId, Snapshot};
use tiphys_cause::Cause as Id;
use tiphys_diag::sanitize;
use tiphys_schema::LabelSelector;
use tiphys_stage::{
    causes::Cause,
    fault::{RefusedEviction, Timed},
    mechanism::Mechanism,
    story::Story,
};
use tiphys_value::{ObjectExt, ResourceKey, Value};

use crate::{
    exit::{Reported, WrongUse},
    output::json_text,
};
pub(crate) use args::Args;
use args::Output;
use effects::Effects;
use fault_play::FaultPlay;
use found::Found;
use play::{Played, Rules};
use report::{Change, Difference, Ended, Report, VERSION};
use subject::{Subject, on_virtual_time};

/// Plays and tells.
///
/// # Errors
/// It does not end green (exit code 1), or the rehearsal could not run (exit code 2).
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let could_not_run = |error: anyhow::Error| match error.is::<WrongUse>() {
        true => error,
        false => WrongUse(format!("{error:#}")).into(),
    };
    let subject = Subject::open(args, rules(args)).map_err(could_not_run)?;
    if let Some(most) = args.explore {
        let exploration = fault_sweep::explore(&subject, rules(args), most).map_err(could_not_run)?;
        let text = match args.output {
            Output::Text => sanitize::terminal(&text::write_exploration(&exploration)).into_owned(),
            Output::Json => json_text(&serde_json::to_value(&exploration)?),
            Output::Markdown => markdown::write_exploration(&exploration),
            Output::Html => html::write_exploration(&exploration),
        };
        crate::output::write(text.as_bytes())?;
        let is_survived = exploration.ranking.iter().all(|one| one.is_survived);
        return if is_survived && exploration.without_faults.red.is_empty() {
            Ok(())
        } else {
            Err(Reported.into())
        };
    }
    let report = rehearse(args, &subject).map_err(could_not_run)?;
    let text = match args.output {
        Output::Text => sanitize::terminal(&text::write(&report)).into_owned(),
        Output::Json => json_text(&serde_json::to_value(&report)?),
        Output::Markdown => markdown::write(&report),
        Output::Html => html::write(&report),
    };
    crate::output::write(text.as_bytes())?;
    if report.is_green { Ok(()) } else { Err(Reported.into()) }
}

fn rules(args: &Args) -> Rules {
    Rules {
        argo_cd: args.argo_cd,
        seed: args.seed,
        until: args.until,
        stand_ins: args.stand_ins,
        sync_all: args.sync_all,
        only_end: false,
    }
}

fn rehearse(args: &Args, subject: &Subject) -> anyhow::Result<Report> {
    let rules = rules(args);
    let mut faults = args.faults.clone();
    if let Some(file) = &args.fault_file {
        faults.extend(fault_file::read(file)?);
    }
    let brought = subject.base(rules)?;
    let FaultPlay { faults, without: without_faults, played } =
        FaultPlay::run(subject, brought.as_ref(), rules, faults)?;
    let differences = match args.argo_cd {
        true => Some(differences(subject, rules, &faults, &played)?),
        false => None,
    };
    let mut hidden = match faults.is_empty() {
        true => hidden_causes(brought.as_ref(), &played, subject)?,
        false => {
            let end = played.home.server().snapshot();
            played.refused_evictions.iter().map(|refused| blocked_drain(refused, &end)).collect()
        }
    };
    let change = brought.map(|brought| {
        let mut effects = Effects::between(&brought.story, &played.story);
        effects.leave_out_created(subject.found().map_or(&[], |found| &found.absent));
        let (was, is) = (brought.home.server().snapshot(), played.home.server().snapshot());
        silent_effects::add_stale_readers(&mut effects, &is);
        held_rollouts::add(&mut effects, &is);
        if let Some(before) = subject.before() {
            left_behind::add(&mut effects, (before, &subject.plan), &is);
        }
        story_locations::add_to_effects(
            &mut effects,
            subject.before().unwrap_or(&subject.plan),
            &subject.plan,
        );
        lost_volumes::add(&mut effects, (&was, &is));
        changed_values::add(&mut effects, (&was, &is), (subject.before(), &subject.plan));
        let (base, head) = subject.names.clone();
        Change { base, head, before: Ended::from_story(&brought.story), effects }
    });
    let mut story = played.story;
    if subject.found().is_some_and(Found::hides_pods) {
        story.outages.clear();
    }
    let broken = hidden.iter().flat_map(|cause| cause.objects.clone()).collect::<Vec<_>>();
    story.causes.append(&mut hidden);
    if let Some(change) = &change {
        let was_red = |app: &String| change.before.red.contains(app);
        let is_old = |cause: &Cause| !cause.applications.is_empty() && cause.applications.iter().all(was_red);
        // What was so before comes last.
        story.causes.sort_by_key(is_old);
    }
    story_locations::add(&mut story, subject.before(), &subject.plan);
    if let Some(folder) = &args.save {
        save::save(&played.home, folder)?;
    }
    repair::add(&mut story, &subject.plan, &subject.known.flows, &played.home);
    let too_long = args.max_unavailable.map(|most| away_for_longer(&story, most)).unwrap_or_default();
    Ok(Report {
        version: VERSION,
        is_green: story.is_green()
            && change.as_ref().is_none_or(|change| change.effects.turned_red.is_empty())
            && too_long.is_empty()
            && broken.is_empty(),
        rules: if args.argo_cd { "argo-cd" } else { "tiphys" },
        seed: args.seed,
        faults: fault_texts(&faults),
        without_faults,
        too_long_unavailable: too_long,
        hidden: broken,
        change,
        differences,
        notices: subject.notices(),
        places: story_locations::of_applications(&subject.plan),
        story,
    })
}

/// A node that cannot be drained.
fn blocked_drain(refused: &RefusedEviction, end: &Snapshot) -> Cause {
    let node = ResourceKey::new("", "Node", "", &refused.node);
    let text = format!("{}: {}", text::object_name(&refused.pod), refused.why);
    let budgets = budgets_of(&refused.pod, end);
    let mechanism = Mechanism { id: Id::ScaleBudget, objects: budgets.clone() };
    let cause = Cause::of_object(node, Some(mechanism), text, "cannot be drained");
    Cause { sources: budgets.into_iter().collect(), ..cause }
}

/// The disruption budgets of a pod.
fn budgets_of(pod: &ResourceKey, snapshot: &Snapshot) -> Vec<ResourceKey> {
    let found = snapshot.get(&ResourceId::new("", "pods"), &pod.namespace, &pod.name);
    let Some(labels) = found.and_then(|pod| pod.value().at(&["metadata", "labels"])) else {
        return Vec::new();
    };
    let budgets = snapshot.list(&ResourceId::new("policy", "poddisruptionbudgets"), Some(&pod.namespace));
    let selects = |budget: &&Value| {
        let selector = LabelSelector::from_object(&budget["spec"]["selector"]).ok().flatten();
        selector.is_some_and(|selector| selector.matches(labels))
    };
    budgets.map(|budget| budget.value()).filter(selects).map(ObjectExt::resource_key).collect()
}

/// What is broken at the end and was not before, and no Application shows.
fn hidden_causes(brought: Option<&Played>, played: &Played, subject: &Subject) -> anyhow::Result<Vec<Cause>> {
    let mut all = on_virtual_time(cron_trial::failures(&played.home, &played.tracking))?;
    let is = played.home.server().snapshot();
    let Some(before) = brought else {
        all.extend(silent_effects::of_bring_up(&is, &subject.plan, &played.story));
        return Ok(all);
    };
    if !all.is_empty() {
        let known = on_virtual_time(cron_trial::failures(&before.home, &before.tracking))?;
        all.retain(|new| !known.iter().any(|old| old.objects == new.objects));
    }
    let was = before.home.server().snapshot();
    let plans = (subject.before(), &subject.plan);
    all.extend(silent_effects::of_change((&was, &is), plans, &played.story));
    all.extend(silent_effects::refused_workloads(&played.story, before.home.server(), played.home.server()));
    Ok(all)
}

/// The faults as they were written, each once: one may be of several webhooks.
fn fault_texts(faults: &[Timed]) -> Vec<String> {
    let mut texts: Vec<String> = faults.iter().map(|fault| fault.text.clone()).collect();
    texts.dedup();
    texts
}

/// What had been there and was away for longer.
fn away_for_longer(story: &Story, most: Duration) -> Vec<ResourceKey> {
    let most = u64::try_from(most.as_millis()).unwrap_or(u64::MAX);
    let long = story.outages.iter().filter(|one| one.to_ms.is_none_or(|to| to - one.from_ms > most));
    let keys: BTreeSet<ResourceKey> = long.map(|one| one.object.clone()).collect();
    keys.into_iter().collect()
}

/// The Applications that end otherwise by Tiphys' own rules.
fn differences(
    subject: &Subject,
    rules: Rules,
    faults: &[Timed],
    played: &Played,
) -> anyhow::Result<Vec<Difference>> {
    let (_, other) = subject.play(Rules { argo_cd: false, ..rules }, faults)?;
    let ends = |played: &Played| -> BTreeMap<(String, String), (String, bool)> {
        let all = played.story.applications.iter();
        all.map(|app| ((app.namespace.clone(), app.name.clone()), (app.state.clone(), app.is_green)))
            .collect()
    };
    let (by_argo_cd, by_tiphys) = (ends(played), ends(&other));
    let absent = || ("is not there".to_owned(), false);
    let keys: BTreeSet<_> = by_argo_cd.keys().chain(by_tiphys.keys()).collect();
    let mut all = Vec::new();
    for key in keys {
        let one = by_argo_cd.get(key).cloned().unwrap_or_else(absent);
        let other = by_tiphys.get(key).cloned().unwrap_or_else(absent);
        if one.1 != other.1 {
            all.push(Difference { application: key.1.clone(), argo_cd: one.0, tiphys: other.0 });
        }
    }
    Ok(all)
}
