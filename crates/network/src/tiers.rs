//! The order in which policies are asked: tier by tier, and what becomes of a packet that no rule of a tier
//! matches.

use crate::{
    calico::{ADMIN, BASELINE, DEFAULT_TIER, ORDINARY},
    flow::Flow,
    network::Network,
    plugin::Cni,
    policy::{Action, Layer, Policy, TierPosition},
    tri_state::Tri,
};

/// Policies that are asked together.
struct Tier {
    /// Positions in [`Network::policies`], in their order.
    policies: Vec<usize>,
    /// Whether what is restricted by none of its rules goes on.
    passes: bool,
    /// Whether only the rules that drop are asked, or only the others.
    asks: Asks,
    /// Whether its place among the others is not known.
    is_doubtful: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Asks {
    All,
    Denials,
    Others,
}

/// What may become of a packet.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Whether it may pass.
    pub may_pass: bool,
    /// Whether it may be dropped.
    pub may_drop: bool,
    /// The policies that drop it, if it is dropped.
    pub by: Vec<usize>,
    /// Whether a rule drops it, not the lack of one.
    pub is_by_rule: bool,
}

impl Outcome {
    /// Whether it passes.
    pub(crate) fn passes(&self) -> Tri {
        match (self.may_pass, self.may_drop) {
            (true, false) => Tri::Yes,
            (false, true) => Tri::No,
            _ => Tri::Maybe,
        }
    }

    fn drop(&mut self, by: Vec<usize>, is_by_rule: bool) {
        if !self.may_drop {
            (self.by, self.is_by_rule) = (by, is_by_rule);
        }
        self.may_drop = true;
    }
}

/// What one tier says.
enum Said {
    /// It decided.
    Decided,
    /// The next one is asked.
    GoesOn,
}

impl Network {
    /// What becomes of a flow under one CNI, tier by tier.
    pub(crate) fn outcome(&self, flow: &Flow, cni: Cni) -> Outcome {
        let mut outcome = Outcome::default();
        for tier in self.tiers(cni) {
            if let Said::Decided = self.ask(&tier, flow, cni, &mut outcome) {
                return outcome;
            }
        }
        outcome.may_pass = true;
        outcome
    }

    fn ask(&self, tier: &Tier, flow: &Flow, cni: Cni, outcome: &mut Outcome) -> Said {
        let pod = &self.pods[flow.pod];
        let (mut restricting, mut is_restricted, mut may_go_on) = (Vec::new(), Tri::No, false);
        for at in &tier.policies {
            let policy = &self.policies[*at];
            let mut selected = self.restricts(policy, pod, flow.direction).min(enforced(policy, cni));
            if tier.is_doubtful {
                selected = selected.min(Tri::Maybe);
            }
            if selected == Tri::No {
                continue;
            }
            if !policy.leaves_open.contains(&flow.direction) {
                is_restricted = is_restricted.max(selected);
                restricting.push(*at);
            }
            for rule in policy.rules(flow.direction) {
                let is_asked = match tier.asks {
                    Asks::All => true,
                    Asks::Denials => rule.action == Action::Deny,
                    Asks::Others => rule.action != Action::Deny,
                };
                let matched =
                    if is_asked { selected.min(self.matches(policy, rule, flow, cni)) } else { Tri::No };
                if matched == Tri::No {
                    continue;
                }
                match rule.action {
                    Action::Allow => outcome.may_pass = true,
                    Action::Deny => outcome.drop(vec![*at], true),
                    Action::Pass => may_go_on = true,
                }
                if matched == Tri::Yes {
                    return if may_go_on { Said::GoesOn } else { Said::Decided };
                }
            }
        }
        if tier.passes || is_restricted == Tri::No {
            return Said::GoesOn;
        }
        outcome.drop(restricting, false);
        if is_restricted == Tri::Yes && !may_go_on { Said::Decided } else { Said::GoesOn }
    }

    /// The tiers under a CNI.
    fn tiers(&self, cni: Cni) -> Vec<Tier> {
        let known: Vec<usize> = (0..self.policies.len())
            .filter(|at| self.policies[*at].only.is_none_or(|only| only == cni))
            .collect();
        let plain = |policies, asks, passes| Tier { policies, passes, asks, is_doubtful: false };
        if known.iter().all(|at| self.policies[*at].layer == Layer::Ordinary) {
            let mut tiers = Vec::new();
            if cni == Cni::Cilium {
                tiers.push(plain(known.clone(), Asks::Denials, true));
            }
            tiers.push(plain(known, Asks::Others, false));
            return tiers;
        }
        if cni == Cni::Calico {
            return self.calico_tiers(&known);
        }
        let mut admin: Vec<usize> = known.clone();
        admin.retain(|at| matches!(self.policies[*at].layer, Layer::Admin(_)));
        admin.sort_by_key(|at| self.priority(*at));
        let of = |layer: &Layer| -> Vec<usize> {
            known.iter().copied().filter(|at| self.policies[*at].layer == *layer).collect()
        };
        let ordinary = of(&Layer::Ordinary);
        vec![
            plain(admin, Asks::All, true),
            plain(ordinary.clone(), Asks::Denials, true),
            plain(ordinary, Asks::Others, false),
            plain(of(&Layer::Baseline), Asks::All, true),
        ]
    }

    fn priority(&self, at: usize) -> i64 {
        match self.policies[at].layer {
            Layer::Admin(priority) => priority,
            _ => i64::MAX,
        }
    }

    /// Calico has all of them in tiers of its own, sorted by order and name (of one order, those of
    /// Kubernetes only allow, so that their names do not matter).
    fn calico_tiers(&self, known: &[usize]) -> Vec<Tier> {
        /// What Calico gives a policy of a namespace for an order.
        const OF_KUBERNETES: f64 = 1_000.0;
        let place = |at: usize| -> (f64, &str, Option<bool>, f64) {
            match &self.policies[at].layer {
                #[expect(clippy::cast_precision_loss, reason = "priorities are below 1,000")]
                Layer::Admin(priority) => (ADMIN, "kube-admin", Some(true), *priority as f64),
                Layer::Ordinary => (ORDINARY, DEFAULT_TIER, Some(false), OF_KUBERNETES),
                Layer::Baseline => (BASELINE, "kube-baseline", Some(true), 0.0),
                Layer::Calico { tier, order, .. } => match self.calico_tiers.get(tier) {
                    Some(TierPosition { order: of_tier, passes }) => (*of_tier, tier, Some(*passes), *order),
                    None => (f64::INFINITY, tier, None, *order),
                },
            }
        };
        let rank = |at: usize| match &self.policies[at].layer {
            Layer::Calico { rank, .. } => rank.clone(),
            _ => format!("{}/knp.default.", self.policies[at].namespace.as_deref().unwrap_or_default()),
        };
        let mut sorted: Vec<usize> = known.to_vec();
        sorted.sort_by(|one, other| {
            let (a, b) = (place(*one), place(*other));
            let ranks = || rank(*one).cmp(&rank(*other));
            a.0.total_cmp(&b.0).then(a.1.cmp(b.1)).then(a.3.total_cmp(&b.3)).then_with(ranks)
        });
        let mut tiers: Vec<(&str, Tier)> = Vec::new();
        for at in sorted {
            let (_, name, passes, _) = place(at);
            match tiers.last_mut().filter(|(last, _)| *last == name) {
                Some((_, tier)) => tier.policies.push(at),
                None => tiers.push((
                    name,
                    Tier {
                        policies: vec![at],
                        passes: passes.unwrap_or(false),
                        asks: Asks::All,
                        is_doubtful: passes.is_none(),
                    },
                )),
            }
        }
        tiers.into_iter().map(|(_, tier)| tier).collect()
    }
}

/// Whether a CNI enforces a policy: not all of them know those of administrators.
fn enforced(policy: &Policy, cni: Cni) -> Tri {
    match (&policy.layer, cni) {
        (Layer::Ordinary | Layer::Calico { .. }, _) => Tri::Yes,
        (_, Cni::OvnKubernetes | Cni::Calico) => Tri::Yes,
        (_, Cni::Antrea | Cni::Cilium | Cni::KubeRouter) => Tri::Maybe,
        (_, Cni::AwsVpc) => Tri::No,
    }
}
