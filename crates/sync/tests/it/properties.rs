//! Over generated sets of objects, health and faults: every operation ends, or waits for a person; nothing
//! outside the inventory is ever deleted; a restart at any step changes nothing.

use proptest::prelude::*;
use tiphys_model::{HealthCode, OperationPhase, RetryStrategy};
use tiphys_sync::WaitKind;
use tiphys_value::ObjectExt;

use crate::support::*;

#[derive(Clone, Debug)]
struct Spec {
    kind: &'static str,
    wave: i64,
    hook: Option<&'static str>,
    policy: Option<&'static str>,
    health: HealthCode,
    fault: u8,
    /// 0 only a target, 1 a target that exists, 2 an extra, 3 an extra that is held.
    place: u8,
    confirm: bool,
}

fn spec() -> impl Strategy<Value = Spec> {
    let kinds = ["ConfigMap", "Deployment", "Job", "Service", "Widget", "Gadget", "CustomResourceDefinition"];
    let hooks = prop_oneof![
        6 => Just(None),
        1 => Just(Some("PreSync")),
        1 => Just(Some("Sync")),
        1 => Just(Some("PostSync")),
        1 => Just(Some("SyncFail")),
        1 => Just(Some("PreSync,PostSync")),
    ];
    let policies = prop_oneof![
        2 => Just(None),
        1 => Just(Some("HookSucceeded")),
        1 => Just(Some("HookFailed,BeforeHookCreation")),
    ];
    let health = prop_oneof![
        5 => Just(HealthCode::Healthy),
        2 => Just(HealthCode::Progressing),
        1 => Just(HealthCode::Degraded),
        1 => Just(HealthCode::Suspended),
    ];
    let fault = prop_oneof![8 => Just(0u8), 1 => Just(1u8), 1 => Just(2u8)];
    let place = prop_oneof![4 => Just(0u8), 2 => Just(1u8), 2 => Just(2u8), 1 => Just(3u8)];
    (
        proptest::sample::select(kinds.to_vec()),
        -2i64..4,
        hooks,
        policies,
        health,
        fault,
        place,
        prop::bool::weighted(0.05),
    )
        .prop_map(|(kind, wave, hook, policy, health, fault, place, confirm)| Spec {
            kind,
            wave,
            hook,
            policy,
            health,
            fault,
            place,
            confirm,
        })
}

fn build(specs: &[Spec], retries: i64) -> Sim {
    let (mut targets, mut existing) = (Vec::new(), Vec::new());
    let mut sim = Sim::new(Vec::new());
    for (at, spec) in specs.iter().enumerate() {
        let name = format!("o{at}");
        let wave = spec.wave.to_string();
        let mut annotations = vec![(WAVE, wave.as_str())];
        annotations.extend(spec.hook.filter(|_| spec.place < 2).map(|hook| (HOOK, hook)));
        annotations.extend(spec.policy.map(|policy| (POLICY, policy)));
        annotations.extend(spec.confirm.then_some((OPTIONS, "Prune=confirm")));
        let value = object(spec.kind, &name, &annotations);
        if spec.place > 0 {
            existing.push((value.clone(), spec.place >= 2));
        }
        if spec.place < 2 {
            targets.push(std::sync::Arc::new(value));
        }
        if spec.place == 3 {
            sim.sticky.insert(name.clone());
        }
        sim.health.insert(name.clone(), spec.health);
        match spec.fault {
            1 => drop(sim.faults.insert(name, blocked_by_webhook())),
            2 => drop(sim.faults.insert(name, invalid())),
            _ => {}
        }
    }
    sim.targets = targets;
    for (value, extra) in existing {
        sim.existing(value, extra);
    }
    sim.settings.blocked_deadline = std::time::Duration::from_secs(300);
    sim.settings.deletion_deadline = std::time::Duration::from_secs(300);
    sim.operation().retry = RetryStrategy { limit: retries, ..RetryStrategy::default() };
    sim
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_operation_ends_or_waits_for_a_person(specs in prop::collection::vec(spec(), 0..14), retries in 0i64..3) {
        let mut sim = build(&specs, retries);
        let ended = sim.run();
        let waits_for_person = sim.state.waits().iter().any(|wait| wait.kind == WaitKind::PruneConfirmation);
        prop_assert!(ended || waits_for_person, "{:?}", sim.state);
    }

    #[test]
    fn nothing_outside_the_inventory_is_deleted(specs in prop::collection::vec(spec(), 0..14)) {
        let mut sim = build(&specs, 1);
        let foreign = object("ConfigMap", "foreign", &[]);
        sim.existing(foreign.clone(), false);
        let hooks: std::collections::BTreeSet<_> = specs.iter().enumerate()
            .filter(|(_, spec)| spec.hook.is_some() && spec.place < 2)
            .map(|(at, _)| format!("o{at}"))
            .collect();
        let extras: std::collections::BTreeSet<_> =
            sim.prunable.iter().map(|key| key.name.clone()).collect();
        sim.run();
        prop_assert!(sim.live.contains_key(&foreign.resource_key()));
        for line in sim.log.iter().filter(|line| line.starts_with("delete")) {
            let name = line.rsplit('/').next().unwrap_or_default();
            prop_assert!(hooks.contains(name) || extras.contains(name), "{line}");
        }
    }

    #[test]
    fn waves_are_kept(specs in prop::collection::vec(spec(), 0..14)) {
        let mut sim = build(&specs, 0);
        sim.run();
        let plain = |name: &str| {
            let at: usize = name.trim_start_matches('o').parse().ok()?;
            let spec = specs.get(at)?;
            // Definitions adopt the wave of what needs them.
            (spec.hook.is_none() && spec.kind != "CustomResourceDefinition" && spec.place < 2).then_some(spec.wave)
        };
        let waves: Vec<i64> =
            sim.log.iter().filter(|line| line.starts_with("apply")).filter_map(|line| plain(line.rsplit('/').next()?)).collect();
        prop_assert!(waves.is_sorted(), "{waves:?} {:?}", sim.log);
    }

    #[test]
    fn a_success_has_applied_every_target(specs in prop::collection::vec(spec(), 0..14)) {
        let mut sim = build(&specs, 0);
        if sim.run() && sim.state.shown.phase == OperationPhase::Succeeded {
            for target in sim.targets.iter().filter(|target| target.annotation(HOOK).is_none()) {
                let name = target.name();
                prop_assert!(sim.order().contains(&name), "{name} {:?}", sim.log);
            }
        }
    }
}
