//! A play with faults, beside the same play without them.

use std::time::Duration;

use tiphys_stage::fault::{Fault, Targets, Timed};

use super::{
    play::{Played, Rules},
    report::Ended,
    subject::{Subject, known_targets, source_hosts, targets},
    text,
};
use crate::exit::WrongUse;

/// What was played, with faults if there are any.
pub(super) struct FaultPlay {
    /// The faults, each under the full name of what fails.
    pub faults: Vec<Timed>,
    /// How it ends without them; `None` if there are none.
    pub without: Option<Ended>,
    /// The play with them.
    pub played: Played,
}

impl FaultPlay {
    /// Plays the change on what was brought up, or brings up if there is no change, with faults and without.
    /// Both are played at the same time if it is known before that what is to fail is there.
    ///
    /// # Errors
    /// What is to fail is not there, a fault begins after the end, or a cluster cannot be set up.
    pub(super) fn run(
        subject: &Subject,
        brought: Option<&Played>,
        rules: Rules,
        faults: Vec<Timed>,
    ) -> anyhow::Result<Self> {
        if faults.is_empty() {
            return Ok(Self { faults, without: None, played: subject.replay(brought, rules, &[])? });
        }
        for fault in &faults {
            check_begins(fault, rules.until)?;
        }
        check_hosts(subject, &faults)?;
        let early = known_targets(brought, &subject.plan);
        // Webhooks may be told by other names than their own, which the play without faults shows.
        let is_sure =
            |fault: &Timed| !matches!(fault.fault, Fault::Webhook(..)) && early.check(fault).is_ok();
        let are_sure = faults.iter().all(is_sure);
        let (plain, early) = std::thread::scope(|scope| {
            let play = || subject.replay(brought, rules, &faults);
            let early = are_sure.then(|| scope.spawn(play));
            let plain = subject.replay(brought, rules, &[]);
            let broken_off = |_| Err(anyhow::anyhow!("the play with faults broke off"));
            (plain, early.map(|thread| thread.join().unwrap_or_else(broken_off)))
        });
        let plain = plain?;
        let targets = targets(brought, &plain, &subject.plan);
        for fault in &faults {
            targets.check(fault).map_err(WrongUse)?;
        }
        let faults = targets.with_webhooks_by_name(&faults);
        let played = early.unwrap_or_else(|| subject.replay(brought, rules, &faults))?;
        Ok(Self { faults, without: Some(Ended::from_story(&plain.story)), played })
    }
}

/// Checks that sources are fetched from the hosts that are to fail: no play brings others.
fn check_hosts(subject: &Subject, faults: &[Timed]) -> anyhow::Result<()> {
    let mut hosts = Targets::default();
    hosts.add_hosts(source_hosts(&subject.plan));
    for fault in faults.iter().filter(|fault| matches!(fault.fault, Fault::Git(_))) {
        hosts.check(fault).map_err(WrongUse)?;
    }
    Ok(())
}

/// Checks that a fault begins before the rehearsal ends.
fn check_begins(fault: &Timed, until: Duration) -> anyhow::Result<()> {
    if fault.start < until {
        return Ok(());
    }
    let told = |span: Duration| text::time(u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
    let why = format!(
        "fault {:?} begins at {}, and the rehearsal ends at {}: give --until more",
        fault.text,
        told(fault.start),
        told(until)
    );
    Err(WrongUse(why).into())
}
