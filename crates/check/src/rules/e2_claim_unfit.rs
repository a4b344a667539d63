//! # A claim names a volume that does not fit it
//!
//! A claim with `volumeName` waits for that one volume, and is bound only if the volume is large enough, has
//! the claim's class, all of its access modes and its volume mode, and is not kept for another claim. The two
//! are mostly in two files, of which one is changed.
//!
//! People see: `Cannot bind to requested volume "media": requested PV is too small`, `storageClassName does
//! not match`, `incompatible accessMode`; the pod is `Pending`: `pod has unbound immediate
//! PersistentVolumeClaims`.
//!
//! ## Bad
//! ```yaml
//! # PersistentVolume media
//! capacity: {storage: 10Gi}
//! # PersistentVolumeClaim
//! volumeName: media
//! resources: {requests: {storage: 50Gi}}
//! ```
//! ## Good
//! ```yaml
//! capacity: {storage: 50Gi}
//! ```
//! ## When to suppress
//! Where the volume of that name that the cluster has is another one.

use std::str::FromStr;

use tiphys_diag::Severity;
use tiphys_graph::{Object, Owner};
use tiphys_schema::Quantity;
use tiphys_value::{FieldPath, ObjectExt, Value};

use crate::{
    Context, Report, Rule,
    support::{
        dedup::Once,
        field_paths::keys,
        placeholders,
        pods::{list, text},
        unrendered_files,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E2-claim-unfit",
    incident: "E2",
    severity: Severity::Warning,
    title: "a claim names a volume that does not fit it",
    page: page!("e2_claim_unfit.rs"),
    check,
};

/// Why a claim is not bound, and where both say so.
struct Misfit {
    /// In the words of the volume controller.
    reason: &'static str,
    in_claim: FieldPath,
    in_volume: FieldPath,
}

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let of_core = |kind: &'static str| {
        survey.objects.iter().filter(move |it| it.key.kind == kind && it.key.group.is_empty())
    };
    let mut once = Once::default();
    for claim in of_core("PersistentVolumeClaim") {
        let name = claim.value().str_at(&["spec", "volumeName"]).unwrap_or_default();
        let is_open = |it: &Object| {
            placeholders::has_placeholder(it.value()) || unrendered_files::may_be_a_patch(survey, it)
        };
        if name.is_empty() || is_open(claim) {
            continue;
        }
        let mut volumes =
            of_core("PersistentVolume").filter(|it| it.key.name == name && are_together(it, claim));
        let Some(volume) = volumes.next().filter(|it| volumes.next().is_none() && !is_open(it)) else {
            continue;
        };
        let Some(misfit) = misfit(claim, volume) else { continue };
        let what = format!("{} cannot be bound to PersistentVolume/{name}: {}", claim.title(), misfit.reason);
        let diagnostic = RULE
            .diagnostic(what.clone())
            .at(survey.span(claim, &misfit.in_claim), "asked for here")
            .see(survey.span(volume, &misfit.in_volume), "what the volume has")
            .because(
                "a claim that names its volume waits for that one alone, and its pods wait for the claim",
            );
        once.add(&what, RULE.finding(context, claim, diagnostic).likely());
    }
    once.report(report);
}

/// Whether two objects come into one cluster, as far as anything tells.
fn are_together(volume: &Object, claim: &Object) -> bool {
    match (&volume.owner, &claim.owner) {
        (Owner::App(_), Owner::App(_)) => volume.world() == claim.world(),
        _ => volume.owner == claim.owner || volume.folder() == claim.folder(),
    }
}

fn misfit(claim: &Object, volume: &Object) -> Option<Misfit> {
    let (wants, has) = (&claim.value()["spec"], &volume.value()["spec"]);
    let spec = |steps: &[&str]| keys(&[&["spec"], steps].concat());
    // A claim without a class has the cluster's default one, unless it says so; a volume without one has
    // none.
    let class = wants.get("storageClassName").and_then(Value::as_str);
    if class.is_some_and(|class| class != text(has, "storageClassName")) {
        let path = spec(&["storageClassName"]);
        let reason = "storageClassName does not match";
        return Some(Misfit { reason, in_claim: path.clone(), in_volume: path });
    }
    let amount = |of: &Value, path: &[&str]| {
        let value = of.at(path)?;
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Quantity::from_str(&text).ok()
    };
    const WANTED: [&str; 3] = ["resources", "requests", "storage"];
    const GIVEN: [&str; 2] = ["capacity", "storage"];
    if let (Some(wanted), Some(given)) = (amount(wants, &WANTED), amount(has, &GIVEN))
        && given.minus(&wanted).signum() < 0
    {
        let reason = "requested PV is too small";
        return Some(Misfit { reason, in_claim: spec(&WANTED), in_volume: spec(&GIVEN) });
    }
    let modes = list(has, "accessModes");
    if !modes.is_empty() && list(wants, "accessModes").iter().any(|mode| !modes.contains(mode)) {
        let path = spec(&["accessModes"]);
        return Some(Misfit { reason: "incompatible accessMode", in_claim: path.clone(), in_volume: path });
    }
    let mode = |of: &Value| of.get("volumeMode").and_then(Value::as_str).unwrap_or("Filesystem").to_owned();
    if mode(wants) != mode(has) {
        let path = spec(&["volumeMode"]);
        return Some(Misfit { reason: "incompatible volumeMode", in_claim: path.clone(), in_volume: path });
    }
    let kept = has.str_at(&["claimRef", "name"]).unwrap_or_default();
    (!kept.is_empty() && kept != claim.key.name).then(|| Misfit {
        reason: "volume already bound to a different claim",
        in_claim: keys(&["metadata", "name"]),
        in_volume: spec(&["claimRef", "name"]),
    })
}
