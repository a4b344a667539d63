//! One play for every single fault of every component.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use parking_lot::Mutex;
use tiphys_stage::{
    fault::{Fault, RefusedEviction, Timed},
    story::Story,
};

use super::{
    play::{Played, Rules},
    repair,
    report::{Ended, Exploration, Ranked, VERSION},
    subject::{Subject, targets},
    text::{object_name, outages_by_object, time},
};

/// How long each fault lasts.
const LASTS: Duration = Duration::from_secs(10 * 60);

/// Plays them all, several at a time.
///
/// # Errors
/// A play could not run.
pub(super) fn explore(subject: &Subject, rules: Rules, most: usize) -> anyhow::Result<Exploration> {
    let (brought, played) = subject.play(rules, &[])?;
    let without_faults = Ended::from_story(&played.story);
    let mut faults = targets(brought.as_ref(), &played, &subject.plan).faults();
    let left_out = faults.len().saturating_sub(most);
    faults.truncate(most);
    let is_change = brought.is_some();
    let all: Vec<Timed> =
        faults.into_iter().map(|(text, fault)| timed(text, fault, is_change, &without_faults)).collect();
    let mut ranking = play_all(subject, brought.as_ref(), rules, &all, &without_faults)?;
    ranking.sort_by(|a, b| {
        let rank = |one: &Ranked| {
            (one.is_survived, std::cmp::Reverse((one.ended.red.len(), one.unavailable_ms, one.later_ms)))
        };
        (rank(a), &a.fault).cmp(&(rank(b), &b.fault))
    });
    Ok(Exploration { version: VERSION, without_faults, lasts_ms: millis(LASTS), ranking, left_out })
}

/// How long after all is green nodes are lost, when what is there is brought up.
const AFTER_GREEN: Duration = Duration::from_secs(60);

/// A fault from the beginning on. The engine dies during the work. Nodes are lost during a change; what is
/// brought up loses them when it is there, as nothing can be missed before.
fn timed(text: String, fault: Fault, is_change: bool, without: &Ended) -> Timed {
    let during = Duration::from_millis(without.took_ms / 2);
    let (start, lasts) = match &fault {
        Fault::Kill => (during, Duration::from_secs(10)),
        Fault::Node(_) | Fault::Zone(_) | Fault::Drain(_) if is_change => (during, LASTS),
        Fault::Node(_) | Fault::Zone(_) | Fault::Drain(_) => {
            (Duration::from_millis(without.took_ms) + AFTER_GREEN, LASTS)
        }
        _ => (Duration::ZERO, LASTS),
    };
    Timed { text, fault, start, duration: Some(lasts) }
}

fn play_all(
    subject: &Subject,
    brought: Option<&Played>,
    rules: Rules,
    all: &[Timed],
    without: &Ended,
) -> anyhow::Result<Vec<Ranked>> {
    let next = AtomicUsize::new(0);
    let ranked = Mutex::new(Vec::new());
    let work = || -> anyhow::Result<()> {
        loop {
            let Some(fault) = all.get(next.fetch_add(1, Ordering::SeqCst)) else { return Ok(()) };
            let played = subject.replay(brought, rules, std::slice::from_ref(fault))?;
            let one = ranked_one(subject, fault, played, without);
            ranked.lock().push(one);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(all.len().max(1));
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let own = work();
        let broken_off = |_| Err(anyhow::anyhow!("a play broke off"));
        others
            .into_iter()
            .map(|other| other.join().unwrap_or_else(broken_off))
            .chain([own])
            .collect::<anyhow::Result<()>>()
    })?;
    Ok(ranked.into_inner())
}

fn ranked_one(subject: &Subject, fault: &Timed, played: Played, without: &Ended) -> Ranked {
    let Played { mut story, home, refused_evictions: played_evictions, .. } = played;
    repair::add(&mut story, &subject.plan, &subject.known.flows, &home);
    let end = story.moments.last().map_or(0, |moment| moment.at_ms);
    let unavailable =
        story.outages.iter().map(|one| one.to_ms.unwrap_or(end).saturating_sub(one.from_ms)).max();
    let cause = story.causes.first();
    Ranked {
        fault: fault.text.clone(),
        ended: Ended::from_story(&story),
        is_survived: story.is_green() && played_evictions.is_empty(),
        later_ms: story.took_ms.saturating_sub(without.took_ms.max(millis(fault.start))),
        recovery_ms: recovery(fault, &story),
        unavailable_ms: unavailable.unwrap_or_default(),
        story: eviction_lines(&played_evictions).chain(story_lines(&story)).take(LINES).collect(),
        cause: cause.map(|cause| cause.text.clone()),
        mechanism: cause.and_then(|cause| cause.mechanism.clone()),
        repair: cause.and_then(|cause| cause.repair.clone()),
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// How long after the end of a fault all was green, if it was not before.
fn recovery(fault: &Timed, story: &Story) -> Option<u64> {
    story.took_ms.checked_sub(millis(fault.end()?)).filter(|_| story.is_green())
}

/// How many lines the story of a fault has.
const LINES: usize = 12;

/// What a fault does: who is away from when to when, and which Applications are not well for how long.
fn story_lines(story: &Story) -> Vec<String> {
    let mut lines: Vec<String> = outages_by_object(story)
        .into_iter()
        .map(|(object, told)| format!("{} is unavailable {told}", object_name(object)))
        .collect();
    for app in &story.applications {
        match app.green_ms.filter(|_| app.is_green) {
            Some(at) => lines.push(format!("Application {} is green at {}", app.name, time(at))),
            None => lines.push(format!("Application {} is {} at the end", app.name, app.state)),
        }
    }
    lines
}

/// What keeps a node from being drained.
fn eviction_lines(refused: &[RefusedEviction]) -> impl Iterator<Item = String> {
    refused
        .iter()
        .map(|one| format!("Node {} cannot be drained: {}: {}", one.node, object_name(&one.pod), one.why))
}
