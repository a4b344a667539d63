//! What is taken to be in the cluster: what something here needs and nothing here makes, and about which no
//! rule says anything. A reader who knows the cluster sees what the silence rests on.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_graph::edges::{EdgeKind, Target};
use tiphys_value::ResourceKey;

use crate::{Context, Finding};

/// What every cluster has.
const EVERYWHERE: [(&str, &str); 2] = [("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")];

/// Kind and names of what is taken to be there: `3 Secrets (a, b, c)`.
pub(crate) fn assumed(context: &Context<'_>, findings: &[Finding]) -> Vec<String> {
    let edges = &context.analyses().edges;
    let mut names: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for edge in edges.all().iter().filter(|edge| !edge.optional && is_need(edge.kind)) {
        let Target::Named(key) = &edge.to else { continue };
        let is_of_app = context.survey.object(edge.from).environment.is_some();
        if is_of_app && !is_everywhere(key) && edges.providers(edge).is_empty() {
            names.entry(&key.kind).or_default().insert(&key.name);
        }
    }
    let is_told = |name: &str| findings.iter().any(|finding| finding.diagnostic.message.contains(name));
    for names in names.values_mut() {
        names.retain(|name| !name.is_empty() && !is_told(name));
    }
    names.iter().filter(|(_, names)| !names.is_empty()).map(|(kind, names)| described(kind, names)).collect()
}

/// Whether what an edge leads to has to be there.
fn is_need(kind: EdgeKind) -> bool {
    matches!(
        kind,
        EdgeKind::Mounts
            | EdgeKind::Env
            | EdgeKind::Pulls
            | EdgeKind::RunsAs
            | EdgeKind::Scales
            | EdgeKind::Routes
            | EdgeKind::Calls
            | EdgeKind::Needs
    )
}

fn is_everywhere(key: &ResourceKey) -> bool {
    EVERYWHERE.contains(&(key.kind.as_str(), key.name.as_str()))
}

fn described(kind: &str, names: &BTreeSet<&str>) -> String {
    const NAMED: usize = 3;
    let first: Vec<&str> = names.iter().take(NAMED).copied().collect();
    let more = names.len().saturating_sub(NAMED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{kind} {}{more}", first.join(", "))
}
