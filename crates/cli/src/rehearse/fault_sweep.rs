//! One play for every single fault of every component.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use parking_lot::Mutex;
use tiphys_stage::{
    fault::{Fault, Timed},
    story::{Outcome, Story},
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
    let all: Vec<Timed> =
        faults.into_iter().map(|(text, fault)| timed(text, fault, &without_faults)).collect();
    let mut ranking = play_all(subject, brought.as_ref(), rules, &all, &without_faults)?;
    ranking.sort_by(|a, b| {
        let rank = |one: &Ranked| {
            (
                one.ended.outcome == Outcome::Green,
                std::cmp::Reverse((one.ended.red.len(), one.unavailable_ms, one.later_ms)),
            )
        };
        (rank(a), &a.fault).cmp(&(rank(b), &b.fault))
    });
    let lasts_ms = u64::try_from(LASTS.as_millis()).unwrap_or(u64::MAX);
    Ok(Exploration { version: VERSION, without_faults, lasts_ms, ranking, left_out })
}

/// A fault from the beginning on. Nodes are lost, and the engine dies, during the work.
fn timed(text: String, fault: Fault, without: &Ended) -> Timed {
    match fault {
        Fault::Kill => Timed {
            text,
            fault,
            start: Duration::from_millis(without.took_ms / 2),
            duration: Some(Duration::from_secs(10)),
        },
        Fault::Node(_) | Fault::Zone(_) => {
            let start = Duration::from_millis(without.took_ms / 2);
            Timed { text, fault, start, duration: Some(LASTS) }
        }
        _ => Timed { text, fault, start: Duration::ZERO, duration: Some(LASTS) },
    }
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
    let Played { mut story, home, .. } = played;
    repair::add(&mut story, &subject.plan, &subject.known.flows, &home);
    let end = story.moments.last().map_or(0, |moment| moment.at_ms);
    let unavailable =
        story.outages.iter().map(|one| one.to_ms.unwrap_or(end).saturating_sub(one.from_ms)).max();
    let cause = story.causes.first();
    Ranked {
        fault: fault.text.clone(),
        ended: Ended::from_story(&story),
        later_ms: story.took_ms.saturating_sub(without.took_ms),
        unavailable_ms: unavailable.unwrap_or_default(),
        story: story_lines(&story),
        cause: cause.map(|cause| cause.text.clone()),
        mechanism: cause.and_then(|cause| cause.mechanism.clone()),
        repair: cause.and_then(|cause| cause.repair.clone()),
    }
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
    lines.truncate(LINES);
    lines
}
