//! Ranges of addresses that MetalLB and Cilium refuse, or can give nothing from (MetalLB,
//! `internal/config/config.go`; Cilium, `operator/pkg/lbipam`).

use std::net::IpAddr;

use tiphys_value::{FieldPath, Value};

use super::refused_fields::Refusals;
use crate::support::{
    field_paths::keys,
    pods::{list, text},
};

/// Looks at a pool of MetalLB.
pub(super) fn check_metallb(kind: &str, spec: &Value, found: &mut Refusals) {
    if kind != "IPAddressPool" {
        return;
    }
    for (at, entry) in list(spec, "addresses").iter().enumerate() {
        let Some(entry) = entry.as_str() else { continue };
        let field = keys(&["spec", "addresses"]).index(at);
        if let Some((first, last)) = entry.split_once('-') {
            range((first.trim(), last.trim()), entry, field, found);
        }
    }
}

/// Looks at a pool of Cilium.
pub(super) fn check_cilium(kind: &str, spec: &Value, found: &mut Refusals) {
    if kind != "CiliumLoadBalancerIPPool" {
        return;
    }
    for (at, block) in list(spec, "blocks").iter().enumerate() {
        let (first, last) = (text(block, "start"), text(block, "stop"));
        if !first.is_empty() && !last.is_empty() {
            let field = keys(&["spec", "blocks"]).index(at).key("stop");
            range((first, last), &format!("{first}-{last}"), field, found);
        }
    }
}

fn range((first, last): (&str, &str), whole: &str, field: FieldPath, found: &mut Refusals) {
    let (Ok(first), Ok(last)) = (first.parse::<IpAddr>(), last.parse::<IpAddr>()) else { return };
    if first.is_ipv4() != last.is_ipv4() {
        found.add(field, format!("invalid IP range \"{whole}\": its ends are of two families"));
    } else if first > last {
        found
            .add(field, format!("invalid IP range \"{whole}\": start IP {first} is after the end IP {last}"));
    }
}
