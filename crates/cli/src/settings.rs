//! The settings that a command works under: those of an installation's ConfigMaps, from files.

use std::path::Path;

use tiphys_health::{HealthSettings, Rules};
use tiphys_model::{ArgoSettings, Clock, settings};
use tiphys_sync::{AutoSettings, SyncSettings};
use tiphys_value::ObjectExt;

use crate::{dump, exit::WrongUse, up::twin};

/// Reads `argocd-cm`, and `argocd-cmd-params-cm` if it is there too, from a file; without one the
/// defaults hold. What cannot be used of it is said on stderr.
///
/// # Errors
/// The file cannot be read, or does not hold `argocd-cm`.
pub(crate) fn read(file: Option<&Path>) -> anyhow::Result<ArgoSettings> {
    let Some(file) = file else { return Ok(ArgoSettings::default()) };
    let objects = dump::read(file).map_err(|error| WrongUse(format!("{error:#}")))?;
    let named = |name| objects.iter().find(|o| o.kind() == "ConfigMap" && o.name() == name);
    let Some(config) = named(settings::CONFIG_MAP) else {
        return Err(WrongUse(format!("{} holds no ConfigMap argocd-cm", file.display())).into());
    };
    let settings = ArgoSettings::from_objects(Some(config), named(settings::PARAMS_CONFIG_MAP));
    for fault in &settings.faults {
        eprintln!("warning: {fault}");
    }
    Ok(settings)
}

/// How the engine works on the embedded cluster: by Argo CD's rules, or by its own.
pub(crate) fn by_rules_of(argo_cd: bool) -> tiphys_controller::Settings {
    tiphys_controller::Settings {
        sync: if argo_cd { SyncSettings::compat() } else { SyncSettings::default() },
        auto: AutoSettings { compat: argo_cd, ..AutoSettings::default() },
        health: HealthSettings { compat: argo_cd, attended: Some(twin::attended()) },
        ..tiphys_controller::Settings::default()
    }
}

/// The rules of health under settings; scripts that do not parse are said on stderr.
pub(crate) fn rules(settings: &ArgoSettings, compat: bool) -> Rules {
    let rules =
        Rules::new(HealthSettings { compat, ..HealthSettings::default() }, settings.customizations.clone());
    for fault in rules.faults() {
        eprintln!("warning: {fault}");
    }
    rules.with_clock(Clock::default())
}
