//! What the health checks that the repository sets for Applications really say, found out by running them
//! on Applications in the states that matter.

use tiphys_diag::Span;
use tiphys_health::{HealthSettings, Rules};
use tiphys_model::{HealthCode, names};
use tiphys_value::{GroupVersionKind, Value, json};

use super::Settings;
use crate::{EnvironmentId, Survey};

/// What a health check says of Applications. Without one Argo CD does not assess their health at all
/// (since 1.8), and no operation waits for a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationHealth {
    /// Where it stands.
    pub span: Span,
    /// Key in `argocd-cm` that it stands at.
    pub key: String,
    /// It is not Healthy while the operation runs and later waves are missing, whatever the objects'
    /// health.
    pub waits_for_operation: bool,
    /// It is not Healthy while the operation runs, even if everything is Synced.
    pub waits_for_end: bool,
    /// It is not Healthy while one of the Application's objects is Progressing.
    pub waits_for_content: bool,
    /// It is not Healthy after an operation failed and objects are missing.
    pub waits_after_failure: bool,
    /// It is Missing or Unknown before the operation has applied anything, which does not count for the
    /// health of an Application that renders this one.
    pub ignored_while_missing: bool,
}

/// The health checks for Applications, by environment.
#[derive(Clone, Debug, Default)]
pub struct HealthFacts {
    by_environment: Vec<Vec<ApplicationHealth>>,
    /// Patterns of kinds whose health the repository customises.
    customized: Vec<String>,
}

impl HealthFacts {
    /// Runs what a repository sets.
    pub fn from_survey(survey: &Survey, settings: &Settings) -> Self {
        let mut customized = Vec::new();
        for setting in &settings.all {
            let read = setting.read();
            let with_lua = read.customizations.iter().filter(|(_, entry)| !entry.health_lua.is_empty());
            customized.extend(with_lua.map(|(pattern, _)| pattern.to_owned()));
        }
        let all = (0..survey.environments.len()).map(EnvironmentId).map(|environment| {
            let of = settings.of_environment(survey, environment);
            of.filter_map(|setting| application_health(survey, setting)).collect()
        });
        Self { by_environment: all.collect(), customized }
    }

    /// What is said of Applications in an environment. Where several checks are found, and it is not known
    /// which of them is in force, it is what all of them say.
    pub fn of_applications(&self, environment: EnvironmentId) -> Option<ApplicationHealth> {
        let mut checks = self.by_environment.get(environment.0)?.iter();
        let mut common = checks.next()?.clone();
        for check in checks {
            common.waits_for_operation &= check.waits_for_operation;
            common.waits_for_end &= check.waits_for_end;
            common.waits_for_content &= check.waits_for_content;
            common.waits_after_failure &= check.waits_after_failure;
            common.ignored_while_missing |= check.ignored_while_missing;
        }
        Some(common)
    }

    /// Whether the repository may change how the health of a kind is judged.
    pub fn is_customized(&self, kind: &GroupVersionKind) -> bool {
        let key =
            if kind.group.is_empty() { kind.kind.clone() } else { format!("{}/{}", kind.group, kind.kind) };
        self.customized.iter().any(|pattern| *pattern == key || tiphys_model::glob::matches(pattern, &key))
    }
}

fn application_health(survey: &Survey, setting: &super::Setting) -> Option<ApplicationHealth> {
    let customizations = setting.read().customizations;
    let kind = GroupVersionKind::from_api_version(names::API_VERSION, "Application");
    let entry = customizations.health_of(&kind)?;
    let key = entry.health_key.clone();
    let rules = Rules::new(HealthSettings { compat: true, ..HealthSettings::default() }, customizations);
    // A script that does not run makes no claim: its kind is Unknown, and that is a rule of its own.
    let code = |status: Value| {
        let judged = rules.judge(&probe(status));
        judged.health.filter(|_| judged.fault.is_none()).map(|health| health.status)
    };
    let waits = |status: Value| code(status).is_some_and(|code| code != HealthCode::Healthy);
    let state = |health: &str, sync: &str, phase: &str| {
        json!({"health": {"status": health}, "sync": {"status": sync, "revision": "0123456789"},
            "reconciledAt": "2026-01-01T00:00:00Z", "operationState": {"phase": phase, "message": ""}})
    };
    // A check that never says Healthy would wait for ever in every order; it is not what is asked here.
    if waits(state("Healthy", "Synced", "Succeeded")) {
        return None;
    }
    let span = setting.span(&survey.files, &key, "argoproj.io/Application");
    Some(ApplicationHealth {
        span,
        key,
        waits_for_operation: waits(state("Healthy", "OutOfSync", "Running")),
        waits_for_end: waits(state("Healthy", "Synced", "Running")),
        waits_for_content: waits(state("Progressing", "Synced", "Succeeded"))
            && waits(state("Progressing", "OutOfSync", "Running")),
        waits_after_failure: waits(state("Healthy", "OutOfSync", "Failed")),
        ignored_while_missing: matches!(
            code(state("Missing", "OutOfSync", "Running")),
            Some(HealthCode::Missing | HealthCode::Unknown)
        ),
    })
}

/// An Application in a state.
fn probe(status: Value) -> Value {
    json!({
        "apiVersion": names::API_VERSION, "kind": "Application",
        "metadata": {"name": "probe", "namespace": "argocd", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"project": "default", "source": {"repoURL": "", "path": "."}, "destination": {},
            "syncPolicy": {"automated": {"prune": true, "selfHeal": true}}},
        "status": status,
    })
}
