//! # A resource of Cilium whose feature is switched off
//!
//! Cilium brings the definitions of all its kinds, and looks at some of them only if a feature is switched
//! on: announcements of addresses, the control plane of BGP, gateways for egress. Without it the API server
//! takes the resource, and nothing is done with it.
//!
//! People see: a Service of type LoadBalancer with an address that nobody answers for, a peer that never
//! comes up, traffic that leaves by the wrong address; no event and no status.
//!
//! ## Bad
//! ```yaml
//! kind: CiliumL2AnnouncementPolicy          # values of the chart: {kubeProxyReplacement: true}
//! ```
//! ## Good
//! ```yaml
//! l2announcements: {enabled: true}          # among the values of the chart
//! ```
//! ## When to suppress
//! Where the feature is switched on by what is not in the repository.

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_value::Value;

use crate::{
    Context, Report, Rule,
    support::{chart_uses::ChartUse, dedup::Once, unrendered_files},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "F4-feature-off",
    incident: "F4",
    severity: Severity::Warning,
    title: "a resource of Cilium whose feature is switched off",
    page: page!("f4_feature_off.rs"),
    check,
};

/// Kinds by how they begin, each with the value of Cilium's chart that switches their feature on, which is
/// off by default, and with the option that does so elsewhere (Cilium,
/// `install/kubernetes/cilium/values.yaml`).
const FEATURES: [(&str, &[&str], &str); 4] = [
    ("CiliumBGP", &["bgpControlPlane", "enabled"], "enable-bgp-control-plane"),
    ("CiliumEgressGatewayPolicy", &["egressGateway", "enabled"], "enable-ipv4-egress-gateway"),
    ("CiliumL2AnnouncementPolicy", &["l2announcements", "enabled"], "enable-l2-announcements"),
    ("CiliumLocalRedirectPolicy", &["localRedirectPolicy"], "enable-local-redirect-policy"),
];

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let mut once = Once::default();
    for object in survey.objects.iter().filter(|it| it.key.group == "cilium.io") {
        let Some((_, path, option)) = FEATURES.iter().find(|(kind, ..)| object.key.kind.starts_with(kind))
        else {
            continue;
        };
        let is_part = unrendered_files::is_from_unused_chart(survey, object)
            || unrendered_files::may_be_a_patch(survey, object);
        if is_part || object.environment.is_none() {
            continue;
        }
        let Some(used) = installation(context, object) else { continue };
        if is_on(used, path) || is_spoken_of_elsewhere(context, path[0], option) {
            continue;
        }
        let value = path.join(".");
        let diagnostic = RULE
            .diagnostic(format!(
                "{} does nothing: {} leaves {value} of chart cilium off",
                object.title(),
                used.by
            ))
            .at(survey.start(object), "nothing looks at this")
            .see(used.span.clone(), "installed here")
            .because(
                "Cilium watches this kind only where the feature is switched on, which it is not by default",
            )
            .help(format!("set {value}: true among the values of the chart"));
        let what = format!("{} {value}", used.by);
        once.add_by(what, RULE.finding(context, object, diagnostic).likely());
    }
    once.report(report);
}

/// What installs Cilium where an object lives, if that is one chart whose values are all seen.
fn installation<'a>(context: &'a Context<'_>, object: &Object) -> Option<&'a ChartUse> {
    let mut all = context.chart_uses().iter().filter(|it| it.chart == "cilium");
    let only = all.next().filter(|_| all.next().is_none())?;
    let release = only.release.as_ref()?;
    (!only.has_hidden_values && release.scope == object.world()).then_some(only)
}

/// Whether values switch a feature on, or say of it what is not plain.
fn is_on(used: &ChartUse, path: &[&str]) -> bool {
    let says_no = |value: &Value| *value == Value::Bool(false) || value["enabled"] == Value::Bool(false);
    // A switch that stands alone has become a section of its own.
    let section = path[0].replace("Policy", "Policies");
    let said = used.value(path).or_else(|| used.value(&[section.as_str()]));
    said.is_some_and(|value| !says_no(value))
}

/// Whether a file that installs things speaks of a feature: a bootstrap may have switched it on.
fn is_spoken_of_elsewhere(context: &Context<'_>, section: &str, option: &str) -> bool {
    const INSTALLS: [&str; 12] = [
        ".yaml", ".yml", ".sh", ".tf", ".hcl", ".j2", ".jinja", ".gotmpl", ".tmpl", ".nix", "Makefile",
        "justfile",
    ];
    let switches = [format!("{section}.enabled=true"), format!("{section}=true"), option.to_owned()];
    let says = |text: &str| {
        let mut lines = text.lines().map(str::trim).skip_while(|line| !line.starts_with(section)).take(2);
        let is_set = lines.next().is_some_and(|line| line.ends_with("true"))
            || lines.next().is_some_and(|line| line == "enabled: true");
        is_set || switches.iter().any(|switch| text.contains(switch.as_str()))
    };
    let mut files = context.survey.files.ending(&INSTALLS);
    files
        .any(|path| context.survey.files.text(path).is_some_and(|text| text.contains(section) && says(&text)))
}
