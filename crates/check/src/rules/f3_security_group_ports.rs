//! # Security groups keep nodes from reaching each other
//!
//! Where a repository creates its own nodes and puts control plane and workers into different security
//! groups, the groups have to let through what Kubernetes and the network plugin send between nodes: the API
//! server (6443), the kubelet (10250), Calico's BGP (179) or VXLAN (4789/udp) and Typha (5473), VXLAN of
//! Cilium and flannel (8472/udp), etcd among control-plane nodes (2379-2380). A port that is missing in one
//! direction shows on some nodes only.
//!
//! People see: `Failed to connect to typha endpoint 10.0.3.88:5473 (i/o timeout)`, `calico-node` 0/1 on one
//! node, `dial tcp 10.0.1.5:10250: i/o timeout` from `kubectl logs`.
//!
//! ## Bad
//! A group for workers that admits 10250 from the control plane, and no rule for 5473.
//! ## Good
//! One group for all nodes whose rule is `self = true`, or a rule for each port in both directions.
//!
//! ## When to suppress
//! Where the nodes have a further group that the repository does not create.

use std::collections::BTreeMap;

use tiphys_diag::Severity;
use tiphys_graph::{
    Survey,
    network::detect,
    tools::{
        Component, What,
        terraform::{Block, Expression, Reference, Value},
    },
};

use crate::{Context, Finding, Report, Rule};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "F3-security-group-ports",
    incident: "F3",
    severity: Severity::Error,
    title: "security groups keep nodes from reaching each other",
    page: page!("f3_security_group_ports.rs"),
    check,
};

/// What nodes send to each other.
struct Wanted {
    /// Ways to send it, of which one is enough: protocol and port.
    ways: &'static [(&'static str, u16)],
    /// What it is.
    name: &'static str,
    /// Whether workers send it to the control plane.
    to_control: bool,
    /// Whether the control plane sends it to workers.
    to_workers: bool,
}

const API: Wanted =
    Wanted { ways: &[("tcp", 6443)], name: "the API server", to_control: true, to_workers: false };
const KUBELET: Wanted =
    Wanted { ways: &[("tcp", 10250)], name: "the kubelet", to_control: false, to_workers: true };
const TYPHA: Wanted =
    Wanted { ways: &[("tcp", 5473)], name: "Calico's Typha", to_control: true, to_workers: true };
const CALICO: Wanted = Wanted {
    ways: &[("udp", 4789), ("tcp", 179)],
    name: "Calico's VXLAN or BGP",
    to_control: true,
    to_workers: true,
};
const VXLAN: Wanted =
    Wanted { ways: &[("udp", 8472)], name: "the VXLAN of pods", to_control: true, to_workers: true };

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    if survey.tools().terraform.resources("aws_security_group").count() < 2 || !is_unmanaged(survey) {
        return;
    }
    let (wanted, is_cluster) = (required_ports(survey), has_installer(survey) || installs_network(survey));
    for blocks in survey.tools().terraform.modules().into_values() {
        let groups: BTreeMap<&str, &Block> = blocks
            .iter()
            .filter(|block| block.is_resource("aws_security_group"))
            .filter_map(|block| Some((block.labels.get(1)?.as_str(), *block)))
            .collect();
        let named = |words: &[&str]| -> Vec<&str> {
            groups.keys().copied().filter(|name| words.iter().any(|word| name.contains(word))).collect()
        };
        let (control, workers) = (named(&["master", "control"]), named(&["worker", "agent", "minion"]));
        let shared = groups.iter().any(|(name, group)| {
            !control.contains(name)
                && !workers.contains(name)
                && group.children("ingress").any(|rule| rule.get("self").is_some())
        });
        let ([control], false, false) = (control.as_slice(), workers.is_empty(), shared) else { continue };
        for worker in workers {
            if is_cluster {
                judge(&groups, &blocks, (control, worker), &wanted, report);
            }
        }
    }
}

/// What the installers of clusters on machines of one's own are called by.
const INSTALLERS: [&str; 7] =
    ["kubeadm init", "kubeadm join", "kubespray", "get.k3s.io", "K3S_URL", "rke2-server", "rke2-agent"];

/// Whether no cloud is seen to run the control plane.
fn is_unmanaged(survey: &Survey) -> bool {
    const CONTROL_PLANES: [&str; 3] =
        ["aws_eks_cluster", "google_container_cluster", "azurerm_kubernetes_cluster"];
    let terraform = &survey.tools().terraform;
    detect(survey).is_managed != Some(true)
        && CONTROL_PLANES.iter().all(|kind| terraform.resources(kind).next().is_none())
}

/// Whether the repository installs a network for pods.
fn installs_network(survey: &Survey) -> bool {
    const NETWORKS: [&str; 5] = ["calico", "canal", "cilium", "flannel", "weave"];
    let is_network =
        |component: &Component| NETWORKS.iter().any(|name| component.name.eq_ignore_ascii_case(name));
    let charts = survey.apps.iter().flat_map(|app| app.application.spec.effective_sources());
    survey.tools().writers.iter().filter_map(|writer| writer.component()).any(is_network)
        || charts.filter_map(|source| Component::of_chart(&source.chart)).any(is_network)
}

/// Whether the repository runs kubeadm or its like.
fn has_installer(survey: &Survey) -> bool {
    let files = &survey.files;
    files.ending(&[".tf", ".sh", ".yml", ".yaml", ".tpl", ".tftpl"]).any(|path| {
        let is_place = path.ends_with(".tf")
            || path.ends_with(".sh")
            || path.contains("ansible")
            || path.contains("playbook")
            || path.contains("terraform");
        is_place && files.text(path).is_some_and(|text| INSTALLERS.iter().any(|mark| text.contains(mark)))
    })
}

/// What the nodes send, by the plugins that the repository installs.
fn required_ports(survey: &Survey) -> Vec<&'static Wanted> {
    let writers = &survey.tools().writers;
    let installs = |name: &str| {
        writers.iter().any(|writer| writer.component().is_some_and(|component| component.name == name))
    };
    let has_typha = writers.iter().any(|writer| match &writer.what {
        What::Address(address) => address.contains("tigera-operator") || address.contains("typha"),
        What::Release { chart, .. } => chart.contains("tigera-operator"),
        _ => false,
    }) || survey.apps.iter().any(|app| {
        let spec = &app.application.spec;
        spec.source.iter().chain(&spec.sources).any(|source| source.chart == "tigera-operator")
    }) || survey.objects.iter().any(|object| object.key.group == "operator.tigera.io");
    let mut all = vec![&API, &KUBELET];
    if has_typha {
        all.push(&TYPHA);
    }
    if has_typha || installs("calico") {
        all.push(&CALICO);
    } else if installs("flannel") {
        all.push(&VXLAN);
    }
    all
}

fn judge(
    groups: &BTreeMap<&str, &Block>,
    blocks: &[&Block],
    (control, worker): (&str, &str),
    wanted: &[&Wanted],
    report: &mut Report,
) {
    for (from, to, is_to_control) in [(worker, control, true), (control, worker, false)] {
        let group = groups[to];
        let missing: Vec<&&Wanted> = wanted
            .iter()
            .filter(|it| if is_to_control { it.to_control } else { it.to_workers })
            .filter(|it| {
                !it.ways.iter().any(|(protocol, port)| admits(group, to, from, blocks, (*protocol, *port)))
            })
            .collect();
        if missing.is_empty() {
            continue;
        }
        let ports: Vec<String> = missing.iter().map(|it| format!("{} ({})", ways(it), it.name)).collect();
        let message = format!(
            "aws_security_group.{to} does not admit {} from aws_security_group.{from}",
            ports.join(", ")
        );
        let diagnostic = RULE
            .diagnostic(message)
            .at(group.span.clone(), "neither a rule here nor one of its own resources is for it")
            .see(groups[from].span.clone(), "these nodes send it")
            .because("nodes of different groups reach each other only at the ports that the receiving group names")
            .help(format!("add a rule to {to} with source {from} for each of the ports, or put all nodes into one group whose rule is `self = true`"));
        report.add(Finding::new(RULE.incident, diagnostic).likely());
    }
}

fn ways(wanted: &Wanted) -> String {
    let all: Vec<String> = wanted.ways.iter().map(|(protocol, port)| format!("{port}/{protocol}")).collect();
    all.join(" or ")
}

/// Whether a group lets a packet of another group in. What is not written out clearly is taken to let it in.
fn admits(group: &Block, to: &str, from: &str, blocks: &[&Block], sent: (&str, u16)) -> bool {
    let inline = group.children("ingress").any(|rule| covers(rule, blocks, sent) && is_from(rule, from));
    let own = blocks.iter().filter(|block| {
        block.is_resource("aws_vpc_security_group_ingress_rule")
            || (block.is_resource("aws_security_group_rule") && block.str("type") != Some("egress"))
    });
    inline
        || group.get("ingress").is_some()
        || own.into_iter().any(|rule| {
            let target = rule.get("security_group_id").map(|it| it.references.as_slice()).unwrap_or_default();
            let is_target = target.is_empty() || target.iter().any(|it| names(it, to) || !is_group(it));
            is_target && covers(rule, blocks, sent) && is_from(rule, from)
        })
}

fn is_group(reference: &Reference) -> bool {
    reference.path.first().is_some_and(|kind| kind == "aws_security_group")
}

fn names(reference: &Reference, group: &str) -> bool {
    is_group(reference) && reference.path.get(1).is_some_and(|name| name == group)
}

/// Whether a rule is for a protocol and port; of a rule `for_each`, whether one of them is.
fn covers(rule: &Block, blocks: &[&Block], (protocol, port): (&str, u16)) -> bool {
    let named = rule.get("protocol").or(rule.get("ip_protocol"));
    match named.map(|it| &it.value) {
        Some(Value::String(name)) if name == "-1" || name == "all" => return true,
        Some(Value::String(name)) if name != protocol => return false,
        Some(Value::Number(number)) if *number < 0.0 => return true,
        _ => {}
    }
    let (Some(first), Some(last)) = (numbers(rule, "from_port", blocks), numbers(rule, "to_port", blocks))
    else {
        return true;
    };
    let each = first.len().max(last.len());
    let (first, last) = (first.into_iter().cycle(), last.into_iter().cycle());
    first.zip(last).take(each).any(|(first, last)| (first..=last).contains(&f64::from(port)))
}

/// The number that an attribute is, or those that it is for each value of `for_each`; `None` if nobody can
/// tell.
fn numbers(rule: &Block, attribute: &str, blocks: &[&Block]) -> Option<Vec<f64>> {
    let expression = rule.get(attribute)?;
    if let Some(number) = expression.as_number() {
        return Some(vec![number]);
    }
    let [reference] = expression.references.as_slice() else { return None };
    let ["each", "value", inner @ ..] = &reference.path.iter().map(String::as_str).collect::<Vec<_>>()[..]
    else {
        return None;
    };
    let of = rule.get("for_each")?;
    let local = match of.references.as_slice() {
        [it] if matches!(it.path.as_slice(), [scope, _] if scope == "local") => it.path.get(1),
        _ => None,
    };
    let mut locals = blocks.iter().filter(|block| block.kind == "locals");
    let of = local.map_or(Some(of), |name| locals.find_map(|block| block.get(name)))?;
    let Value::Object(pairs) = &of.value else { return None };
    let number = |(_, value): &(String, Expression)| {
        inner.iter().try_fold(value, |value, key| value.get(key))?.as_number()
    };
    pairs.iter().map(number).collect::<Option<Vec<f64>>>().filter(|all| !all.is_empty())
}

/// Whether a rule is for packets of a group: it names the group, or addresses.
fn is_from(rule: &Block, group: &str) -> bool {
    const ADDRESSES: [&str; 6] =
        ["cidr_blocks", "ipv6_cidr_blocks", "cidr_ipv4", "cidr_ipv6", "prefix_list_ids", "prefix_list_id"];
    if ADDRESSES.iter().any(|key| {
        rule.get(key).is_some_and(|it| !matches!(&it.value, Value::List(items) if items.is_empty()))
    }) {
        return true;
    }
    ["security_groups", "source_security_group_id", "referenced_security_group_id"].iter().any(|key| {
        rule.get(key).is_some_and(|it| {
            it.references.is_empty() || it.references.iter().any(|it| names(it, group) || !is_group(it))
        })
    })
}
