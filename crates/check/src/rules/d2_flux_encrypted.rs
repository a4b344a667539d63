//! # Flux builds an encrypted Secret and is not told to decrypt it
//!
//! A Secret that SOPS has encrypted is decrypted by the Kustomization that builds it, if its
//! `spec.decryption` says how. Without it the whole Kustomization fails, and what waits for it waits on.
//!
//! People see: `Secret/shop/login is SOPS encrypted, configuring decryption is required for this secret to be
//! reconciled`.
//!
//! ## Bad
//! ```yaml
//! kind: Kustomization                    # of Flux; apps/shop has a Secret with a key `sops`
//! spec: {path: ./apps/shop, prune: true, interval: 1h, sourceRef: {kind: GitRepository, name: platform}}
//! ```
//! ## Good
//! ```yaml
//! spec:
//!   path: ./apps/shop
//!   decryption: {provider: sops, secretRef: {name: sops-age}}
//! ```
//! ## When to suppress
//! Where the controller is given a key for all of its Kustomizations outside of the repository.

use tiphys_diag::Severity;
use tiphys_graph::{Object, Owner, Survey, UnitKind};
use tiphys_value::ObjectExt;

use crate::{
    Context, Report, Rule,
    support::{
        dedup::Once,
        flux::{Flux, built_folder},
        kustomization_entries, unused_files,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-flux-encrypted",
    incident: "D2",
    severity: Severity::Warning,
    title: "Flux builds an encrypted Secret and is not told to decrypt it",
    page: page!("d2_flux_encrypted.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let secrets: Vec<&Object> = survey.objects.iter().filter(|it| is_encrypted(it)).collect();
    if secrets.is_empty() || has_key_for_all(survey) {
        return;
    }
    let flux = Flux::from_survey(survey);
    let builders: Vec<(&Object, String)> =
        survey.objects.iter().filter_map(|object| Some((object, folder(object)?))).collect();
    let mut once = Once::default();
    for (object, path) in &builders {
        // A patch of a Kustomization above may say it for all below.
        let is_told =
            |it: &Object| it.value()["spec"].get("decryption").is_some() || flux.may_give(it, "decryption");
        let mut same = builders.iter().filter(|(_, other)| other == path);
        let is_aside = unused_files::is_in_unused_folder(&object.rendered.location.file);
        if is_aside || same.any(|(other, _)| is_told(other)) {
            continue;
        }
        let Some(secret) = secrets.iter().find(|secret| builds(survey, path, secret)) else { continue };
        let diagnostic = RULE
            .diagnostic(format!(
                "{} is SOPS encrypted, configuring decryption is required for this secret to be reconciled",
                secret.title()
            ))
            .at(survey.start(object), format!("{} builds {path}, and has no spec.decryption", object.title()))
            .see(survey.start(secret), "encrypted here")
            .because("the controller refuses to apply what it cannot read, and with it everything that the Kustomization builds")
            .help("say spec.decryption with provider sops and the Secret that holds the key");
        once.add(path, RULE.finding(context, object, diagnostic).likely());
    }
    once.report(report);
}

fn is_encrypted(object: &Object) -> bool {
    let is_secret = object.key.kind == "Secret" && object.key.group.is_empty();
    is_secret && object.value().at(&["sops", "mac"]).is_some() && matches!(object.owner, Owner::Unit(_))
}

/// Whether the controller has a key for all Kustomizations (Flux docs, "Global decryption").
fn has_key_for_all(survey: &Survey) -> bool {
    let mut files = survey.files.ending(&[".yaml", ".yml", ".tf", ".sh"]);
    files.any(|path| survey.files.text(path).is_some_and(|text| text.contains("--sops-age-secret")))
}

/// The folder that a Kustomization of Flux builds from a Git repository.
fn folder(object: &Object) -> Option<String> {
    let is_git = object.value().str_at(&["spec", "sourceRef", "kind"]) == Some("GitRepository");
    built_folder(object).filter(|_| is_git)
}

/// Whether a Kustomization of a folder applies an object: the kustomization there renders it, or it lies
/// there and there is none.
fn builds(survey: &Survey, folder: &str, object: &Object) -> bool {
    let Owner::Unit(unit) = object.owner else { return false };
    let unit = &survey.units[unit.0];
    match unit.kind {
        UnitKind::Kustomization => unit.path == folder,
        UnitKind::Manifest => {
            tiphys_vfs::parent(&unit.path) == Some(folder)
                && kustomization_entries::of_folder(&survey.files, folder).next().is_none()
        }
        UnitKind::Chart => false,
    }
}
