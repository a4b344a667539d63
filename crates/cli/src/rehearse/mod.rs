//! `tiphys rehearse`: a repository, or a change of it, is played under virtual time.

mod args;
mod effects;
mod explore;
mod markdown;
mod places;
mod play;
mod reach;
mod report;
mod strict;
mod text;

use std::{collections::BTreeMap, future::Future, path::Path, time::Duration};

use tiphys_stage::{
    fault::{Targets, Timed},
    story::Story,
    virtual_runtime,
};
use tiphys_world::Behaviours;

use crate::{
    exit::{Reported, WrongUse},
    up::plan::{Plan, Request, prepare},
};
pub use args::Args;
use args::Output;
use effects::Effects;
use play::{Played, Rules, bring_up, go_on, known_of};
use report::{Change, Difference, Ended, Report, VERSION};

/// Plays and tells.
///
/// # Errors
/// It does not end green (exit code 1), or the rehearsal could not run (exit code 2).
pub fn run(args: &Args) -> anyhow::Result<()> {
    let could_not_run = |error: anyhow::Error| match error.is::<WrongUse>() {
        true => error,
        false => WrongUse(format!("{error:#}")).into(),
    };
    let subject = Subject::open(args).map_err(could_not_run)?;
    if let Some(most) = args.explore {
        let exploration = explore::explore(&subject, rules(args), most).map_err(could_not_run)?;
        let text = match args.output {
            Output::Text => text::write_exploration(&exploration),
            Output::Json => format!("{:#}\n", serde_json::to_value(&exploration)?),
            Output::Markdown => markdown::write_exploration(&exploration),
        };
        crate::output::write(text.as_bytes())?;
        let is_survived = exploration.ranking.iter().all(|one| one.ended.red.is_empty());
        return if is_survived && exploration.without_faults.red.is_empty() {
            Ok(())
        } else {
            Err(Reported.into())
        };
    }
    let report = rehearse(args, &subject).map_err(could_not_run)?;
    let text = match args.output {
        Output::Text => text::write(&report),
        Output::Json => format!("{:#}\n", serde_json::to_value(&report)?),
        Output::Markdown => markdown::write(&report),
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
    }
}

/// What is rehearsed.
struct Subject {
    /// The state before, if a change is rehearsed.
    before: Option<Plan>,
    /// The state that is played in the end.
    plan: Plan,
    /// What the two are called.
    names: (String, String),
    /// What of the world the states tell: the one before, and the one that is played in the end.
    known: (Behaviours, Behaviours),
}

impl Subject {
    fn open(args: &Args) -> anyhow::Result<Self> {
        let request = Request {
            place: &args.place,
            revision: args.revision.as_deref(),
            path: args.path.as_deref(),
            environment: args.environment.as_deref(),
            respect_revisions: false,
            respect_destinations: false,
            clusters: args.clusters.as_deref(),
            offline: args.offline,
        };
        let Some(range) = &args.diff else {
            let plan = bounded(prepare(&request)?)?;
            let known = (Behaviours::default(), known_of(&plan, rules(args)));
            return Ok(Self { before: None, plan, names: Default::default(), known });
        };
        let base = range.before(&args.place)?;
        let before = bounded(prepare(&Request { revision: Some(&base), ..request })?)?;
        let plan = bounded(prepare(&Request { revision: range.new.as_deref(), ..request })?)?;
        let present = if Path::new(&args.place).exists() { "the files as they are" } else { "HEAD" };
        let head = range.new.clone().unwrap_or_else(|| present.to_owned());
        let known = (known_of(&before, rules(args)), known_of(&plan, rules(args)));
        Ok(Self { before: Some(before), plan, names: (base, head), known })
    }

    /// Brings it up, and plays the change if there is one. Returns both ends, that of the change last.
    fn play(&self, rules: Rules, faults: &[Timed]) -> anyhow::Result<(Option<Played>, Played)> {
        let Some(before) = &self.before else {
            return Ok((None, on_virtual_time(bring_up(&self.plan, &self.known.1, rules, faults.to_vec()))?));
        };
        let brought = on_virtual_time(bring_up(before, &self.known.0, rules, Vec::new()))?;
        let changed = self.change(&brought, rules, faults)?;
        Ok((Some(brought), changed))
    }

    /// Plays the change on a state that was brought up, or brings up anew if there is no change.
    fn again(&self, brought: Option<&Played>, rules: Rules, faults: &[Timed]) -> anyhow::Result<Played> {
        match brought {
            Some(brought) => self.change(brought, rules, faults),
            None => on_virtual_time(bring_up(&self.plan, &self.known.1, rules, faults.to_vec())),
        }
    }

    fn change(&self, brought: &Played, rules: Rules, faults: &[Timed]) -> anyhow::Result<Played> {
        let before = self.before.as_ref().unwrap_or(&self.plan);
        on_virtual_time(go_on(brought, before, (&self.plan, &self.known.1), rules, faults.to_vec()))
    }
}

/// How many Applications are played at most: more take minutes.
const MOST: usize = 2000;

/// A plan, unless it is too large.
fn bounded(plan: Plan) -> Result<Plan, WrongUse> {
    match plan.catalogue.entries.len() {
        0..=MOST => Ok(plan),
        count => Err(WrongUse(format!(
            "the repository has {count} Applications, and a rehearsal takes {MOST} at most; narrow it with --path or --environment"
        ))),
    }
}

/// Does it on a runtime whose time is virtual.
fn on_virtual_time<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = virtual_runtime()?;
    runtime.block_on(work)
}

/// What may fail of what was played.
fn targets(brought: Option<&Played>, played: &Played) -> Targets {
    let mut all = Targets::default();
    for end in brought.into_iter().chain([played]) {
        all.extend(Targets::of(&end.home.server().snapshot()));
        for (_, beside) in &end.beside {
            all.extend(Targets::of(&beside.server().snapshot()));
        }
    }
    all
}

fn rehearse(args: &Args, subject: &Subject) -> anyhow::Result<Report> {
    let rules = rules(args);
    let (brought, mut played) = subject.play(rules, &[])?;
    let mut without_faults = None;
    if !args.faults.is_empty() {
        let targets = targets(brought.as_ref(), &played);
        for fault in &args.faults {
            targets.check(fault).map_err(WrongUse)?;
        }
        without_faults = Some(Ended::of(&played.story));
        played = subject.again(brought.as_ref(), rules, &args.faults)?;
    }
    let differences = match args.argo_cd {
        true => Some(differences(subject, rules, &args.faults, &played)?),
        false => None,
    };
    let change = brought.map(|brought| {
        let mut effects = Effects::of(&brought.story, &played.story);
        places::add_to_effects(&mut effects, subject.before.as_ref().unwrap_or(&subject.plan), &subject.plan);
        let (base, head) = subject.names.clone();
        Change { base, head, before: Ended::of(&brought.story), effects }
    });
    let mut story = played.story;
    places::add(&mut story, &subject.plan);
    Ok(Report {
        version: VERSION,
        is_green: story.is_green()
            && change.as_ref().is_none_or(|change| change.effects.turned_red.is_empty())
            && args.max_unavailable.is_none_or(|most| !is_away_for_longer(&story, most)),
        rules: if args.argo_cd { "argo-cd" } else { "tiphys" },
        seed: args.seed,
        faults: args.faults.iter().map(|fault| fault.text.clone()).collect(),
        without_faults,
        change,
        differences,
        notices: subject.plan.notices.clone(),
        places: places::of_applications(&subject.plan),
        story,
    })
}

/// Whether anything that had been there was away for longer.
fn is_away_for_longer(story: &Story, most: Duration) -> bool {
    let most = u64::try_from(most.as_millis()).unwrap_or(u64::MAX);
    story.outages.iter().any(|one| one.to_ms.is_none_or(|to| to - one.from_ms > most))
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
    let keys: std::collections::BTreeSet<_> = by_argo_cd.keys().chain(by_tiphys.keys()).collect();
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
