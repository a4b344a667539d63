//! A rehearsal for people.

use std::{collections::BTreeMap, fmt::Write as _};

use tiphys_render::out_of_reach;
use tiphys_stage::{
    causes::Cause,
    outage::Outage,
    story::{Outcome, Story},
};
use tiphys_value::ResourceKey;

use super::{
    causes::{cause_lines, grouped, repair_lines},
    effect_lines::effect_lines,
    effects::{Effects, waits},
    report::{Change, Ended, Exploration, Ranked, Report},
    timeline,
};
use crate::output::one_line;

/// How many names a line has.
pub(super) const NAMED: usize = 6;
/// How many objects of an Application are told of.
pub(super) const OBJECTS: usize = 12;
/// How many causes are told.
const CAUSES: usize = 12;
/// How long a reason is.
const LONG: usize = 400;
/// What is away for less is not told of, in milliseconds.
const BRIEF: u64 = 1000;

/// Virtual time: `0.3s`, `48s`, `3m12s`, `2h05m`.
pub(super) fn time(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..10 if ms % 1000 >= 100 => format!("{seconds}.{}s", ms % 1000 / 100),
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Names, the first of many.
pub(super) fn some_of(names: &[String], most: usize) -> String {
    match names.len().saturating_sub(most) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names[..most].join(", ")),
    }
}

/// An object: `Deployment shop/web`.
pub(super) fn object_name(key: &ResourceKey) -> String {
    let place = if key.namespace.is_empty() { String::new() } else { format!("{}/", key.namespace) };
    format!("{} {place}{}", key.kind, key.name)
}

/// The same with the namespace left out where all the world is in one.
pub(super) fn short_name(key: &ResourceKey) -> String {
    if is_application(key) { format!("Application {}", key.name) } else { object_name(key) }
}

/// Whether it is an Application.
pub(super) fn is_application(key: &ResourceKey) -> bool {
    key.kind == "Application" && key.group == tiphys_model::names::GROUP
}

/// The first line of all: how it ends.
pub(super) fn verdict(report: &Report) -> String {
    let end = format!("{}{}", ended(&Ended::from_story(&report.story)), unfetched(&report.story));
    let long: Vec<String> = report.too_long_unavailable.iter().map(object_name).collect();
    match &report.change {
        _ if !long.is_empty() => format!("unavailable for too long: {}; {end}", some_of(&long, NAMED)),
        _ if !report.hidden.is_empty() => format!("{}; {end}", some_of(&hidden(report), NAMED)),
        None => end,
        Some(change) if change.effects.is_nothing() && report.story.is_green() => {
            format!(
                "this change does nothing: no object of any Application is created, changed or deleted ({end})"
            )
        }
        Some(change) if !change.effects.turned_red.is_empty() => {
            format!("this change turns {} red: {end}", some_of(&change.effects.turned_red, NAMED))
        }
        Some(change) => {
            let red = Ended::from_story(&report.story).red;
            let (as_before, new): (Vec<String>, Vec<String>) =
                red.into_iter().partition(|name| change.before.red.contains(name));
            let what = match change.effects.touched() {
                _ if change.effects.is_nothing() => "does nothing that can be played".to_owned(),
                1 => "touches 1 Application".to_owned(),
                count => format!("touches {count} Applications"),
            };
            match (new.is_empty(), as_before.len()) {
                (false, _) => format!("this change adds what is not green: {}; {end}", some_of(&new, NAMED)),
                (true, 0) => format!("this change {what}: {end}"),
                (true, red) => format!(
                    "this change {what} and turns nothing red; as before, {red} of {} Applications are not Synced and Healthy",
                    report.story.applications.len()
                ),
            }
        }
    }
}

/// How many Applications are not green because their sources are out of reach: of these, nothing is known.
fn unfetched(story: &Story) -> String {
    let waits = waits(story);
    let wait = |name: &String| waits.get(name)?.first().and_then(|it| out_of_reach(&it.wait));
    let count = story.applications.iter().filter(|app| !app.is_green && wait(&app.name).is_some()).count();
    match count {
        0 => String::new(),
        1 => " (nothing is known of 1, whose source cannot be fetched)".to_owned(),
        _ => format!(" (nothing is known of {count}, whose sources cannot be fetched)"),
    }
}

/// What is not well though no Application shows it: `CronJob shop/backup fails when it runs`.
fn hidden(report: &Report) -> Vec<String> {
    let is_hidden = |cause: &&Cause| cause.objects.iter().any(|key| report.hidden.contains(key));
    let causes = report.story.causes.iter().filter(is_hidden);
    let lines = causes.flat_map(|cause| cause.objects.iter().map(|key| (object_name(key), &cause.state)));
    lines.map(|(object, state)| format!("{object} {state}")).collect()
}

/// How a play ended, in words.
pub(super) fn ended(ended: &Ended) -> String {
    let all = ended.applications;
    let red = ended.red.len();
    let took = time(ended.took_ms);
    let never = match ended.not_begun.len() {
        0 => String::new(),
        1 => "; 1 more never begins".to_owned(),
        more => format!("; {more} more never begin"),
    };
    match ended.outcome {
        Outcome::Green if all == 1 => {
            format!("ends green after {took}: the Application is Synced and Healthy")
        }
        Outcome::Standstill if all == 0 => {
            format!("does not end green: nothing moves after {took}, and there is no Application")
        }
        Outcome::TimeUp if all == 0 => {
            "does not end green: there is no Application when time is up".to_owned()
        }
        Outcome::Standstill | Outcome::TimeUp if red == 0 => format!(
            "is not settled: {} Synced and Healthy when time is up, and that has not lasted yet; give --until more{never}",
            if all == 1 { "the Application is".to_owned() } else { format!("all {all} Applications are") }
        ),
        Outcome::Green => format!("ends green after {took}: all {all} Applications are Synced and Healthy"),
        Outcome::Standstill => format!(
            "does not end green: nothing moves after {took}, and {red} of {all} Applications are not Synced and Healthy{never}"
        ),
        Outcome::TimeUp => format!(
            "does not end green: {red} of {all} Applications are not Synced and Healthy when time is up, and something still moves{never}"
        ),
    }
}

/// Everything that a person needs.
pub(super) fn write(report: &Report) -> String {
    let mut text = format!("{}\n", verdict(report));
    summary(report, &mut text);
    if let Some(change) = &report.change {
        effects(change, &mut text);
    } else {
        timeline::write(&report.story, &mut text);
    }
    outages(&report.story, &mut text);
    causes(report, &mut text);
    assumed(report, &mut text);
    text
}

fn summary(report: &Report, text: &mut String) {
    let mut line = |told: String| {
        let _ = writeln!(text, "{told}");
    };
    if let Some(repair) = report.story.causes.iter().find_map(|cause| cause.repair.as_ref()) {
        let place = repair.place.as_ref().map(|place| format!("   {place}")).unwrap_or_default();
        line(format!("smallest repair: {}{place}", repair.text));
    }
    if report.rules == "argo-cd" {
        line("by Argo CD's rules".to_owned());
    }
    if !report.faults.is_empty() {
        line(format!("with {}", report.faults.join(", ")));
    }
    if let Some(without) = &report.without_faults {
        line(format!("without: {}", ended(without)));
    }
    for difference in report.differences.iter().flatten() {
        line(format!(
            "{}: by Argo CD's rules {}; by Tiphys' rules {}",
            difference.application, difference.argo_cd, difference.tiphys
        ));
    }
    if let Some(change) = &report.change {
        line(format!("{} → {}; before: {}", change.base, change.head, ended(&change.before)));
    }
}

/// A text on one line, not too long.
pub(super) fn short(text: &str) -> String {
    let line = one_line(text);
    match line.char_indices().nth(LONG) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

fn effects(change: &Change, text: &mut String) {
    let Effects { applications, turned_red, still_red } = &change.effects;
    if !applications.is_empty() {
        let _ = writeln!(text, "\nwhat the change does:");
    }
    for (name, app) in applications {
        let mark = if turned_red.contains(name) {
            ": turns red"
        } else if still_red.contains(name) {
            ": is not green"
        } else {
            ""
        };
        let _ = writeln!(text, "  {name}{mark}");
        for line in effect_lines(app) {
            let _ = writeln!(text, "    {line}");
        }
    }
    let before: Vec<String> =
        still_red.iter().filter(|name| change.before.red.contains(name)).cloned().collect();
    if !before.is_empty() {
        let _ = writeln!(text, "\nnot green before either: {}", some_of(&before, NAMED));
    }
}

/// What was unavailable, each object once, and when: what still is first, then the longest.
pub(super) fn outages_by_object(story: &Story) -> Vec<(&ResourceKey, String)> {
    let end = story.moments.last().map_or(0, |moment| moment.at_ms).max(story.took_ms);
    let length = |one: &Outage| one.to_ms.unwrap_or(end).saturating_sub(one.from_ms);
    let mut by_object: BTreeMap<&ResourceKey, Vec<&Outage>> = BTreeMap::new();
    for one in story.outages.iter().filter(|one| one.to_ms.is_none() || length(one) >= BRIEF) {
        by_object.entry(&one.object).or_default().push(one);
    }
    let mut all: Vec<(bool, u64, &ResourceKey, String)> = by_object
        .into_iter()
        .map(|(object, outages)| {
            let whole = outages.iter().map(|one| length(one)).sum();
            let (first, last) = (outages[0], outages[outages.len() - 1]);
            let until = last.to_ms.map_or_else(|| "to the end".to_owned(), |to| format!("to {}", time(to)));
            let told = match outages.len() {
                1 if last.to_ms.is_none() => format!("from {} {until}", time(first.from_ms)),
                1 => format!("from {} {until} ({})", time(first.from_ms), time(whole)),
                // Where nothing moves any more, it is away for longer than was played.
                count if last.to_ms.is_none() && story.outcome != Outcome::TimeUp => {
                    format!("{count} times from {} {until}", time(first.from_ms))
                }
                count => {
                    format!("{count} times from {} {until} ({} in all)", time(first.from_ms), time(whole))
                }
            };
            let is_open = last.to_ms.is_none();
            (is_open, whole, object, told)
        })
        .collect();
    all.sort_by_key(|(is_open, whole, object, _)| (std::cmp::Reverse((*is_open, *whole)), *object));
    all.into_iter().map(|(_, _, object, told)| (object, told)).collect()
}

fn outages(story: &Story, text: &mut String) {
    let all = outages_by_object(story);
    if all.is_empty() {
        return;
    }
    let _ = writeln!(text, "\nbecame unavailable:");
    for (object, told) in all.iter().take(OBJECTS) {
        let _ = writeln!(text, "  {}: {told}", object_name(object));
    }
    if all.len() > OBJECTS {
        let _ = writeln!(text, "  and {} more", all.len() - OBJECTS);
    }
}

fn causes(report: &Report, text: &mut String) {
    let all = grouped(&report.story.causes);
    if all.is_empty() {
        return;
    }
    let _ = writeln!(text, "\nwhy:");
    for (at, cause) in all.iter().enumerate().take(CAUSES) {
        let lines = cause_lines(cause);
        let _ = writeln!(text, "  {}. {}", at + 1, lines[0]);
        for line in &lines[1..] {
            let _ = writeln!(text, "     {line}");
        }
    }
    if all.len() > CAUSES {
        let _ = writeln!(text, "  and {} more causes (--output json lists them)", all.len() - CAUSES);
    }
}

/// What is not known, a line each.
pub(super) fn assumed_lines(report: &Report) -> Vec<String> {
    let assumed = &report.story.assumed;
    let mut lines = Vec::new();
    let images = assumed.images.len();
    if images > 0 {
        let what = if images == 1 { "1 image".to_owned() } else { format!("{images} images") };
        lines.push(format!("assumed to exist, to be public and to start: {what} (--output json names them)"));
    }
    if !assumed.unattended.is_empty() {
        let kinds: Vec<String> =
            assumed.unattended.iter().map(|(kind, count)| format!("{kind} ({count})")).collect();
        lines.push(format!(
            "no operator is simulated for {}: these objects count as ready",
            some_of(&kinds, NAMED)
        ));
    }
    let named = [
        ("load balancers that the platform is assumed to make", &assumed.load_balancers),
        ("webhooks outside of the cluster, assumed to allow everything", &assumed.outside_webhooks),
        ("named by custom resources, brought by nothing, and assumed to be there", &assumed.references),
        (
            "policies of which not all is played, assumed to allow everything else and to change nothing",
            &assumed.policies,
        ),
    ];
    let named = named.into_iter().filter(|(_, all)| !all.is_empty());
    lines.extend(named.map(|(what, all)| format!("{what}: {}", some_of(all, NAMED))));
    lines.extend(report.story.placeholders.iter().chain(&report.notices).map(|told| short(told)));
    lines
}

fn assumed(report: &Report, text: &mut String) {
    let lines = assumed_lines(report);
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(text, "\nnot known:");
    for line in lines {
        let _ = writeln!(text, "  {line}");
    }
}

/// When all is green again with a fault.
fn recovered(one: &Ranked) -> String {
    match one.recovery_ms {
        Some(after) => format!("green {} after its end", time(after)),
        None if one.later_ms >= BRIEF => format!("green {} later, while it lasts", time(one.later_ms)),
        None => "green as without".to_owned(),
    }
}

/// What every single fault leads to.
pub(super) fn write_exploration(exploration: &Exploration) -> String {
    let mut text = format!("without a fault: {}\n", ended(&exploration.without_faults));
    let lasts = time(exploration.lasts_ms);
    let (lost, survived): (Vec<_>, Vec<_>) = exploration.ranking.iter().partition(|one| !one.is_survived);
    if !lost.is_empty() {
        let _ = writeln!(text, "\nnot survived, although each lasts only {lasts}:");
    }
    for one in lost {
        let red = match one.ended.red.is_empty() {
            true => String::new(),
            false => format!(": not green are {}", some_of(&one.ended.red, NAMED)),
        };
        let _ = writeln!(text, "  {}{red}", one.fault);
        for line in one.story.iter().take(NAMED) {
            let _ = writeln!(text, "      {line}");
        }
        if let Some(cause) = &one.cause {
            let _ = writeln!(text, "      why: {}", short(cause));
        }
        for line in one.repair.iter().flat_map(repair_lines) {
            let _ = writeln!(text, "      {line}");
        }
    }
    if !survived.is_empty() {
        let _ = writeln!(text, "\nsurvived:");
    }
    for one in survived {
        let away = if one.unavailable_ms >= 1000 {
            format!(", unavailable for {}", time(one.unavailable_ms))
        } else {
            String::new()
        };
        let _ = writeln!(text, "  {}: {}{away}", one.fault, recovered(one));
    }
    if exploration.left_out > 0 {
        let _ = writeln!(text, "\nleft out: {} faults; --explore N takes more", exploration.left_out);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        let all = [0, 940, 48_500, 192_000, 7_500_000].map(time);
        assert_eq!(all, ["0s", "0.9s", "48s", "3m12s", "2h05m"]);
    }

    #[test]
    fn what_is_green_when_time_is_up_is_not_told_as_red() {
        let end = |red: &[&str], not_begun: usize| Ended {
            outcome: Outcome::TimeUp,
            took_ms: 0,
            applications: 4,
            red: red.iter().map(|name| (*name).to_owned()).collect(),
            not_begun: vec!["later".to_owned(); not_begun],
        };
        assert!(ended(&end(&[], 0)).starts_with("is not settled: all 4 Applications are Synced"));
        assert!(ended(&end(&["web"], 2)).ends_with("and something still moves; 2 more never begin"));
    }

    #[test]
    fn of_many_names_the_first_are_told() {
        let names: Vec<String> = (0..4).map(|n| format!("a{n}")).collect();
        assert_eq!(some_of(&names, 4), "a0, a1, a2, a3");
        assert_eq!(some_of(&names, 2), "a0, a1 and 2 more");
    }
}
