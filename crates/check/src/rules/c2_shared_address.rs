//! # Two Services want one address and do not share it
//!
//! A Service of type LoadBalancer may name the address that it wants. MetalLB and Cilium give an address to
//! one Service alone, unless all that want it name one key for sharing; and then each port of it once.
//!
//! People see: `EXTERNAL-IP <pending>`, `can't change sharing key for "shop/web", address also in use by …`,
//! `Failed to allocate IP … the IP is already allocated to another Service`.
//!
//! ## Bad
//! ```yaml
//! annotations: {metallb.io/loadBalancerIPs: 10.0.0.40}        # of Service web, and of Service mail
//! ```
//! ## Good
//! ```yaml
//! annotations: {metallb.io/loadBalancerIPs: 10.0.0.40, metallb.io/allow-shared-ip: edge}   # of both
//! ```
//! ## When to suppress
//! Where only one of the two is there at a time.

use std::collections::BTreeMap;

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_value::{FieldPath, ObjectExt, Value};

use crate::{
    Context, Report, Rule,
    support::{
        dedup::Once,
        field_paths::keys,
        placeholders,
        pods::{list, text},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-shared-address",
    incident: "C2",
    severity: Severity::Warning,
    title: "two Services want one address and do not share it",
    page: page!("c2_shared_address.rs"),
    check,
};

/// The annotations for addresses and for the key of those who share one, of each load balancer (MetalLB docs,
/// "Usage"; Cilium docs, "LoadBalancer IP Address Management").
const LOAD_BALANCERS: [(&str, &[&str], &[&str]); 2] = [
    (
        "MetalLB",
        &["metallb.io/loadBalancerIPs", "metallb.universe.tf/loadBalancerIPs"],
        &["metallb.io/allow-shared-ip", "metallb.universe.tf/allow-shared-ip"],
    ),
    (
        "Cilium",
        &["lbipam.cilium.io/ips", "io.cilium/lb-ipam-ips"],
        &["lbipam.cilium.io/sharing-key", "io.cilium/lb-ipam-sharing-key"],
    ),
];

/// A Service that wants an address.
struct Wish<'a> {
    object: &'a Object,
    path: FieldPath,
    key: &'a str,
}

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let mut once = Once::default();
    for cluster in context.clusters() {
        let mut taken: BTreeMap<(&str, &str), Wish<'_>> = BTreeMap::new();
        for object in &cluster.objects {
            for (who, address, wish) in wishes(object) {
                let Some(first) = taken.get(&(who, address)) else {
                    taken.insert((who, address), wish);
                    continue;
                };
                let Some(why) = clash(first, &wish) else { continue };
                let what = format!(
                    "{} and {} both want the address {address}",
                    first.object.title(),
                    object.title()
                );
                let diagnostic = RULE
                    .diagnostic(what.clone())
                    .at(survey.span(object, &wish.path), "taken already")
                    .see(survey.span(first.object, &first.path), "this one has it")
                    .because(format!("{why}; {who} leaves the second without an address"))
                    .help(format!("give one of them another address, or both one key: {}", sharing_key(who)));
                once.add(&what, RULE.finding(context, object, diagnostic));
            }
        }
    }
    once.report(report);
}

/// The addresses that a Service wants, each with who gives it.
fn wishes(object: &Object) -> Vec<(&'static str, &str, Wish<'_>)> {
    let is_service = object.key.kind == "Service" && object.key.group.is_empty();
    if !is_service || text(&object.value()["spec"], "type") != "LoadBalancer" {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (who, addresses, sharing) in LOAD_BALANCERS {
        let first = |names: &[&'static str]| {
            names.iter().find_map(|name| Some((*name, object.value().annotation(name)?)))
        };
        let Some((name, wanted)) = first(addresses) else { continue };
        let key = first(sharing).map_or("", |(_, key)| key);
        for address in
            wanted.split(',').map(str::trim).filter(|it| !it.is_empty() && !placeholders::is_in(it))
        {
            let path = keys(&["metadata", "annotations"]).key(name);
            found.push((who, address, Wish { object, path, key }));
        }
    }
    found
}

/// Why two Services cannot have one address.
fn clash(first: &Wish<'_>, second: &Wish<'_>) -> Option<String> {
    if first.object.key == second.object.key || [first, second].iter().any(|it| placeholders::is_in(it.key)) {
        return None;
    }
    if first.key.is_empty() || first.key != second.key {
        return Some("an address is shared only by those that name one key for it".to_owned());
    }
    let ports = ports(first.object);
    let twice = self::ports(second.object).into_iter().find(|port| ports.contains(port))?;
    Some(format!("both listen on port {} of {}", twice.0, twice.1))
}

fn ports(object: &Object) -> Vec<(i64, &str)> {
    let ports = list(&object.value()["spec"], "ports").iter();
    ports
        .filter_map(|port| {
            let protocol = port.get("protocol").and_then(Value::as_str).unwrap_or("TCP");
            Some((port.get("port")?.as_i64()?, protocol))
        })
        .collect()
}

/// The annotation with the key of those who share an address.
fn sharing_key(who: &str) -> &'static str {
    let of = LOAD_BALANCERS.iter().find(|(name, ..)| *name == who);
    of.map_or("", |(_, _, sharing)| sharing[0])
}
