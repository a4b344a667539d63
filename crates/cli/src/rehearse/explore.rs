//! One play for every single fault of every component.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tiphys_stage::{
    fault::{Fault, Timed},
    story::{Outcome, Story},
};

use super::{
    Subject,
    play::{Played, Rules},
    report::{Ended, Exploration, Ranked, VERSION},
    targets,
};

/// How long each fault lasts.
const LASTS: Duration = Duration::from_secs(10 * 60);

/// Plays them all, several at a time.
///
/// # Errors
/// A play could not run.
pub fn explore(subject: &Subject, rules: Rules, most: usize) -> anyhow::Result<Exploration> {
    let (brought, played) = subject.play(rules, &[])?;
    let without_faults = Ended::of(&played.story);
    let mut faults = targets(brought.as_ref(), &played).faults();
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

/// A fault from the beginning on. Nodes are lost, and the engine dies, in the midst of the work.
fn timed(text: String, fault: Fault, without: &Ended) -> Timed {
    match fault {
        Fault::Kill => Timed {
            text,
            fault,
            start: Duration::from_millis(without.took_ms / 2),
            duration: Some(Duration::from_secs(10)),
        },
        Fault::Node(_) => {
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
            let played = subject.again(brought, rules, std::slice::from_ref(fault))?;
            let one = ranked_one(fault, &played.story, without);
            ranked.lock().unwrap_or_else(PoisonError::into_inner).push(one);
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
    Ok(ranked.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn ranked_one(fault: &Timed, story: &Story, without: &Ended) -> Ranked {
    let end = story.moments.last().map_or(0, |moment| moment.at_ms);
    let unavailable =
        story.outages.iter().map(|one| one.to_ms.unwrap_or(end).saturating_sub(one.from_ms)).max();
    Ranked {
        fault: fault.text.clone(),
        ended: Ended::of(story),
        later_ms: story.took_ms.saturating_sub(without.took_ms),
        unavailable_ms: unavailable.unwrap_or_default(),
        cause: story.causes.first().map(|cause| cause.text.clone()),
    }
}
