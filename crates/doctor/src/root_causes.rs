//! From findings to roots: the deepest fault on each path stays, what lies above it becomes its consequence.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tiphys_cause::Cause;
use tiphys_value::ObjectExt as _;

use crate::{
    Consequence, Diagnosis, Object, Root, RuledOut, Unexplained,
    cluster::{Cluster, is_workload, pods},
    dependencies::upstream,
    finding::{Finding, clipped},
    symptoms::Symptoms,
};

/// Kinds that have no life of their own: who breaks one of them explains every fault that is found about it.
const CARRIERS: &[&str] = &[
    "Secret",
    "ConfigMap",
    "PersistentVolumeClaim",
    "StorageClass",
    "Service",
    "Node",
    "APIService",
    "CustomResourceDefinition",
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "Certificate",
    "Ingress",
];

/// Causes of which the object is what is not there.
const MISSING: &[Cause] =
    &[Cause::ApiCrdMissing, Cause::ServiceMissing, Cause::ConfigMissing, Cause::VolumeClaimMissing];

/// How far upstream a fault is followed.
const FARTHEST: usize = 6;

/// Puts findings and symptoms together.
pub(crate) fn resolve(cluster: &Cluster<'_>, red: &Symptoms, findings: Vec<Finding>) -> Diagnosis {
    let mut findings = merged(findings);
    let links = links(&findings);
    let mut ruled_out = drop_shallow(cluster, &mut findings);
    let parents = parents(cluster, red, &links, &findings);
    let mut downstream: BTreeMap<usize, Vec<(Object, String)>> = BTreeMap::new();
    let mut is_root = vec![true; findings.len()];
    let roots_of = roots_of(&findings, &parents);
    for (at, root) in roots_of.into_iter().enumerate() {
        if root == at {
            continue;
        }
        is_root[at] = false;
        let finding = &findings[at];
        let below = format!("it follows from {}", findings[root].object);
        ruled_out.push(RuledOut { cause: Some(finding.cause), object: finding.object.clone(), why: below });
        let list = downstream.entry(root).or_default();
        list.push((finding.object.clone(), finding.summary.clone()));
        list.extend(finding.suffers.iter().cloned());
    }
    let explained: BTreeSet<Object> = asserted(&findings);
    let mut roots = Vec::new();
    for (at, finding) in findings.into_iter().enumerate().filter(|(at, _)| is_root[*at]) {
        let is_open =
            CARRIED.contains(&finding.cause) && rests_on_unexplained(cluster, red, &finding, &explained);
        // What it rests on comes before it, as long as neither is sure.
        let confidence = if is_open { finding.confidence.min(0.4) } else { finding.confidence };
        let finding = Finding { confidence, ..finding };
        let mut suffers = finding.suffers.clone();
        suffers.extend(downstream.remove(&at).unwrap_or_default());
        roots.push((finding, suffers));
    }
    let mut explained = BTreeSet::new();
    let consequences = spread(cluster, red, &roots, &mut explained);
    let consequences = widen(red, &roots, consequences);
    let mut causes: Vec<Root> = Vec::new();
    for ((finding, _), consequences) in roots.into_iter().zip(consequences) {
        if finding.is_asserted() {
            explained.insert(finding.object.clone());
            explained.extend(consequences.iter().map(|consequence| consequence.object.clone()));
        }
        causes.push(root(with_command(cluster, finding), consequences));
    }
    causes.sort_by(|one, two| {
        let rank = |root: &Root| (root.confidence * 50.0).round();
        rank(two)
            .total_cmp(&rank(one))
            .then(two.consequences.len().cmp(&one.consequences.len()))
            .then(one.object.cmp(&two.object))
    });
    let unexplained = red
        .iter()
        .filter(|(object, _)| !explained.contains(object) && !is_covered(cluster, object, &explained));
    let unexplained = unexplained
        .map(|(object, symptom)| Unexplained { object: object.clone(), symptom: clipped(symptom) })
        .collect();
    Diagnosis { causes, ruled_out, unexplained, not_seen: Vec::new(), now: cluster.now }
}

fn root(finding: Finding, consequences: Vec<Consequence>) -> Root {
    Root {
        sufferers: finding.suffers.iter().map(|(object, _)| object.clone()).collect(),
        cause: finding.cause,
        object: finding.object,
        confidence: finding.confidence,
        summary: clipped(&finding.summary),
        field: finding.field,
        since: finding.since,
        evidence: finding.evidence,
        remedy: finding.remedy,
        consequences,
        proof: None,
        written: None,
    }
}

/// Gives a remedy that is only told a command by which one sees what is at fault.
fn with_command(cluster: &Cluster<'_>, mut finding: Finding) -> Finding {
    if finding.remedy.commands.is_empty() && finding.remedy.patch.is_none() {
        let command = match cluster.live(&finding.object) {
            Some(_) => finding.object.kubectl("describe"),
            None => Object { name: String::new(), ..finding.object.clone() }.kubectl("get").trim().to_owned(),
        };
        finding.remedy.commands.push(command);
    }
    finding
}

/// Causes that say that something does not serve: why is told by the workload that should.
const CARRIED: &[Cause] = &[
    Cause::NodeUninitialized,
    Cause::ScaleMetricsDown,
    Cause::ApiAggregatedDown,
    Cause::OperatorSecretStore,
    Cause::AdmitWebhookDown,
    Cause::AdmitWebhookTls,
    Cause::ApiConversionWebhook,
    Cause::DeleteFinalizer,
    Cause::VolumeMount,
    Cause::VolumeProvisioner,
    Cause::ImageRegistryUnreachable,
    // A program may end because of what it calls, where why that does not serve is not known.
    Cause::RunExits,
];

/// The objects that an asserted finding is about or breaks.
fn asserted(findings: &[Finding]) -> BTreeSet<Object> {
    let sure = findings.iter().filter(|finding| finding.is_asserted());
    sure.flat_map(|finding| finding.suffers.iter().map(|(object, _)| object).chain([&finding.object]))
        .cloned()
        .collect()
}

/// Whether a workload that a finding rests on is red, and nothing is known about it.
fn rests_on_unexplained(
    cluster: &Cluster<'_>,
    red: &Symptoms,
    finding: &Finding,
    explained: &BTreeSet<Object>,
) -> bool {
    let pods_of = |service: &Object| {
        let live = cluster.live(service).filter(|_| service.kind == "Service");
        let behind = |it| cluster.pods_of(it).into_iter().chain(cluster.workloads_of(it));
        live.into_iter().flat_map(behind).map(Object::from_live).collect::<Vec<_>>()
    };
    let behind = |object: &Object| {
        let routed = if object.kind == "Ingress" { upstream(cluster, object) } else { Vec::new() };
        routed.iter().chain([object]).flat_map(pods_of).collect::<Vec<_>>()
    };
    let below = finding.upstream.iter().flat_map(|object| behind(object).into_iter().chain([object.clone()]));
    below.filter(|it| is_workload(&it.kind) || it.kind == "Pod").any(|it| {
        let members = family(cluster, &it);
        members.iter().any(|member| red.contains_key(member))
            && !members.iter().any(|member| explained.contains(member))
    })
}

/// Findings of one cause about one object are one.
fn merged(findings: Vec<Finding>) -> Vec<Finding> {
    let mut places: BTreeMap<(Cause, Object), usize> = BTreeMap::new();
    let mut kept: Vec<Finding> = Vec::new();
    for finding in findings {
        match places.get(&(finding.cause, finding.object.clone())) {
            Some(at) => kept[*at].merge(finding),
            None => {
                places.insert((finding.cause, finding.object.clone()), kept.len());
                kept.push(finding);
            }
        }
    }
    kept
}

/// Takes off what only says that something is red where something better is known about it.
fn drop_shallow(cluster: &Cluster<'_>, findings: &mut Vec<Finding>) -> Vec<RuledOut> {
    let deep: BTreeSet<Object> = findings
        .iter()
        .filter(|finding| !finding.is_shallow && finding.is_asserted())
        .flat_map(|finding| {
            finding.suffers.iter().map(|(object, _)| object.clone()).chain([finding.object.clone()])
        })
        .flat_map(|object| family(cluster, &object))
        .collect();
    let mut ruled_out = Vec::new();
    findings.retain(|finding| {
        let is_known =
            finding.is_shallow && family(cluster, &finding.object).iter().any(|object| deep.contains(object));
        if is_known {
            let why = "something better is known about it".to_owned();
            ruled_out.push(RuledOut { cause: Some(finding.cause), object: finding.object.clone(), why });
        }
        !is_known
    });
    ruled_out
}

/// A workload with its pods, or a pod with its workload.
fn family(cluster: &Cluster<'_>, object: &Object) -> Vec<Object> {
    let mut found = vec![object.clone()];
    if object.kind == "Pod"
        && let Some(live) = cluster.live(object)
    {
        found.push(cluster.workload(live));
    }
    if is_workload(&object.kind) {
        if let Some(live) = cluster.live(object) {
            found.push(cluster.workload(live));
        }
        found.extend(pods::of_workload(cluster, object).into_iter().map(Object::from_live));
    }
    found
}

/// What findings say lies below objects, shallow findings too.
fn links(findings: &[Finding]) -> BTreeMap<Object, Vec<Object>> {
    let mut links: BTreeMap<Object, Vec<Object>> = BTreeMap::new();
    for finding in findings.iter().filter(|finding| !finding.upstream.is_empty()) {
        for object in finding.suffers.iter().map(|(object, _)| object).chain([&finding.object]) {
            links.entry(object.clone()).or_default().extend(finding.upstream.iter().cloned());
        }
    }
    links
}

/// For each finding those that lie below it.
fn parents(
    cluster: &Cluster<'_>,
    red: &Symptoms,
    links: &BTreeMap<Object, Vec<Object>>,
    findings: &[Finding],
) -> Vec<Vec<usize>> {
    let mut about: BTreeMap<Object, Vec<usize>> = BTreeMap::new();
    for (at, finding) in findings.iter().enumerate().filter(|(_, finding)| finding.is_asserted()) {
        for object in finding.suffers.iter().map(|(object, _)| object).chain([&finding.object]) {
            about.entry(object.clone()).or_default().push(at);
        }
    }
    let search = |at: usize| {
        let start = &findings[at];
        let mut open: VecDeque<(Object, usize)> =
            start.upstream.iter().map(|object| (object.clone(), 0)).collect();
        let mut seen: BTreeSet<Object> = start.upstream.iter().cloned().collect();
        let mut found = Vec::new();
        if CARRIERS.contains(&start.object.kind.as_str()) {
            let above = about.get(&start.object).into_iter().flatten().copied();
            found.extend(above.filter(|other| {
                *other != at
                    && findings[*other].object != start.object
                    && !needs(findings[*other].cause, start.cause)
            }));
        }
        if MISSING.contains(&start.cause) {
            // What is not there may not have got in: who refused it tells why.
            let refused = about.get(&start.object).into_iter().flatten().copied();
            found.extend(refused.filter(|other| {
                let other = &findings[*other];
                other.object == start.object && other.cause.area() == "admit"
            }));
        }
        while let Some((object, steps)) = open.pop_front() {
            let here = about.get(&object).into_iter().flatten().copied().filter(|other| *other != at);
            let here: Vec<usize> = here.filter(|other| !found.contains(other)).collect();
            if !here.is_empty() {
                found.extend(here);
                continue;
            }
            // A pod that is well carries no fault of its node or its configuration.
            let is_well =
                object.kind == "Pod" && cluster.live(&object).is_some() && !red.contains_key(&object);
            if steps >= FARTHEST || is_well {
                continue;
            }
            for next in upstream(cluster, &object)
                .into_iter()
                .chain(links.get(&object).into_iter().flatten().cloned())
            {
                if seen.insert(next.clone()) {
                    open.push_back((next, steps + 1));
                }
            }
        }
        found
    };
    (0..findings.len()).map(search).collect()
}

/// Whether what is at fault by one cause runs on what is at fault by another: a network plugin on a runtime.
fn needs(above: Cause, below: Cause) -> bool {
    above == Cause::NetCniDown && matches!(below, Cause::NodeRuntime | Cause::NodePressure)
}

/// The finding at the end of the path from one; itself if nothing lies below, or if the path is a circle.
fn deepest(start: usize, parents: &[Vec<usize>]) -> Option<usize> {
    let (mut at, mut seen) = (start, BTreeSet::from([start]));
    loop {
        let Some(next) = parents.get(at)?.iter().copied().find(|next| !seen.contains(next)) else {
            return Some(at);
        };
        // In a circle the first one that was met stays.
        if parents.get(next)?.contains(&start) && parents.get(next)?.len() == 1 && next > start && at == start
        {
            return Some(start);
        }
        seen.insert(next);
        at = next;
    }
}

/// The root of each finding: itself if nothing lies below it. Of findings that explain each other the surest
/// one is the root: something has to be.
fn roots_of(findings: &[Finding], parents: &[Vec<usize>]) -> Vec<usize> {
    let mut root_of: Vec<usize> = (0..findings.len()).map(|at| deepest(at, parents).unwrap_or(at)).collect();
    for start in 0..findings.len() {
        let (mut at, mut path) = (start, Vec::new());
        while root_of[at] != at && !path.contains(&at) {
            path.push(at);
            at = root_of[at];
        }
        if root_of[at] != at {
            let ring = path.iter().skip_while(|member| **member != at).copied();
            let surest = ring.max_by(|one, two| {
                findings[*one].confidence.total_cmp(&findings[*two].confidence).then(two.cmp(one))
            });
            at = surest.unwrap_or(at);
            root_of[at] = at;
        }
        for member in path {
            root_of[member] = at;
        }
    }
    root_of
}

/// What is red because of each root: what it is told to break, and every red object that depends on that.
fn spread(
    cluster: &Cluster<'_>,
    red: &Symptoms,
    roots: &[(Finding, Vec<(Object, String)>)],
    explained: &mut BTreeSet<Object>,
) -> Vec<Vec<Consequence>> {
    let mut depends: BTreeMap<Object, BTreeSet<Object>> = BTreeMap::new();
    let mut absent: BTreeSet<Object> = BTreeSet::new();
    for object in red.keys() {
        for below in upstream(cluster, object) {
            if matches!(below.kind.as_str(), "Secret" | "ConfigMap") && cluster.live(&below).is_none() {
                absent.insert(below.clone());
            }
            depends.entry(below).or_default().insert(object.clone());
        }
    }
    // What is not there is not red, and carries what keeps it from being made.
    for object in absent.into_iter().take(MOST_ABSENT) {
        for below in upstream(cluster, &object) {
            depends.entry(below).or_default().insert(object.clone());
        }
    }
    // Services and routes are not red themselves, and carry what is red below them.
    for kind in ["Service", "Ingress", "ReplicaSet", "EndpointSlice"] {
        for live in cluster.all(kind) {
            let object = Object::from_live(live);
            for below in upstream(cluster, &object) {
                depends.entry(below).or_default().insert(object.clone());
            }
        }
    }
    let mut found: Vec<Vec<Consequence>> = Vec::new();
    let mut visits = 0;
    for (finding, suffers) in roots {
        let mut told: BTreeMap<Object, String> = suffers.iter().cloned().collect();
        let mut open: Vec<Object> = told.keys().cloned().chain([finding.object.clone()]).collect();
        let mut seen: BTreeSet<Object> = open.iter().cloned().collect();
        let mut owners = Vec::new();
        for object in &open {
            if let Some(live) = cluster.live(object) {
                let top = cluster.workload(live);
                if top != *object {
                    owners.push(top);
                }
            }
        }
        for owner in owners {
            if seen.insert(owner.clone()) {
                open.push(owner);
            }
        }
        while let Some(object) = open.pop() {
            visits += 1;
            for next in depends.get(&object).into_iter().flatten() {
                if visits < MOST_VISITS && seen.insert(next.clone()) {
                    open.push(next.clone());
                }
            }
            if let Some(symptom) = red.get(&object) {
                told.entry(object).or_insert_with(|| symptom.clone());
            }
        }
        told.remove(&finding.object);
        if finding.is_asserted() {
            explained.extend(told.keys().cloned());
        }
        let list =
            told.into_iter().map(|(object, symptom)| Consequence { object, symptom: clipped(&symptom) });
        found.push(list.collect());
    }
    shorten(&mut found);
    found
}

/// Of how many objects that are not there their makers are looked for.
const MOST_ABSENT: usize = 200;
/// How often all roots together look at an object. In a cluster each object has a few roots; owners that lead
/// in a circle make each the root of all.
const MOST_VISITS: usize = 1_000_000;
/// How many consequences are told of all roots together, and of each at least.
const MOST_TOLD: (usize, usize) = (50_000, 20);

/// Gives each root its share of what is told, if it is more than anybody reads.
fn shorten(found: &mut [Vec<Consequence>]) {
    if found.iter().map(Vec::len).sum::<usize>() > MOST_TOLD.0 {
        let share = (MOST_TOLD.0 / found.len()).max(MOST_TOLD.1);
        found.iter_mut().for_each(|list| list.truncate(share));
    }
}

/// Causes under which deliveries to the whole cluster do not get on.
const WIDE: &[Cause] = &[
    Cause::NetCniDown,
    Cause::DnsDown,
    Cause::ControlEtcd,
    Cause::ControlControllerDown,
    Cause::ScheduleSchedulerDown,
    Cause::ApiOverload,
];
/// Kinds that deliver to a cluster.
const DELIVERIES: &[&str] = &["Application", "Kustomization", "HelmRelease"];

/// Adds the red deliveries that nothing else explains to a root that hinders them all.
fn widen(
    red: &Symptoms,
    roots: &[(Finding, Vec<(Object, String)>)],
    mut consequences: Vec<Vec<Consequence>>,
) -> Vec<Vec<Consequence>> {
    let wide = roots.iter().position(|(finding, _)| WIDE.contains(&finding.cause) && finding.is_asserted());
    let Some(wide) = wide else { return consequences };
    let told: BTreeSet<Object> = roots
        .iter()
        .map(|(finding, _)| finding.object.clone())
        .chain(consequences.iter().flatten().map(|it| it.object.clone()))
        .collect();
    let open =
        red.iter().filter(|(object, _)| DELIVERIES.contains(&object.kind.as_str()) && !told.contains(object));
    consequences[wide].extend(
        open.map(|(object, symptom)| Consequence { object: object.clone(), symptom: clipped(symptom) }),
    );
    consequences
}

/// Whether what is red hangs together with something that is explained.
fn is_covered(cluster: &Cluster<'_>, object: &Object, explained: &BTreeSet<Object>) -> bool {
    family(cluster, object).iter().any(|member| explained.contains(member))
        || cluster.live(object).is_some_and(|live| live.is_terminating())
        || upstream(cluster, object).iter().any(|below| explained.contains(below))
}

#[cfg(test)]
mod tests {
    use tiphys_value::json;

    use super::MOST_TOLD;
    use crate::{Case, diagnose};

    #[test]
    fn owners_that_lead_in_a_circle_do_not_multiply_what_is_told() {
        const PODS: usize = 400;
        let pod = |at: usize| {
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("p{at}"), "namespace": "shop", "ownerReferences":
                [{"apiVersion": "v1", "kind": "Pod", "name": format!("p{}", (at + 1) % PODS), "controller": true}]},
                "spec": {"containers": [{"name": "c", "image": "nginx:1"}]},
                "status": {"phase": "Pending", "containerStatuses": [{"name": "c", "ready": false, "restartCount": 0, "state":
                    {"waiting": {"reason": "CreateContainerConfigError", "message": format!("configmap \"c{at}\" not found")}}}]}})
        };
        let case = Case { objects: (0..PODS).map(pod).collect(), ..Case::default() };
        let diagnosis = diagnose(&case);
        assert_eq!(diagnosis.causes.len(), PODS);
        let told: usize = diagnosis.causes.iter().map(|root| root.consequences.len()).sum();
        assert!(told <= MOST_TOLD.0, "{told}");
    }
}
