//! # A probe names a variable that its command does not get
//!
//! The command of a probe is no shell. The kubelet fills in `$(NAME)` with the value that stands beside the
//! name in the container; for a variable from a Secret, a ConfigMap or a field that is an empty text, and the
//! probe asks for something else than is meant.
//!
//! People see: `Readiness probe failed`, though the same command works in a shell of the container; `NOAUTH
//! Authentication required` in the log of Redis.
//!
//! ## Bad
//! ```yaml
//! env: [{name: DB_USER, valueFrom: {secretKeyRef: {name: db, key: user}}}]
//! readinessProbe: {exec: {command: [pg_isready, -U, $(DB_USER)]}}
//! ```
//! ## Good
//! ```yaml
//! readinessProbe: {exec: {command: [sh, -c, 'pg_isready -U "$DB_USER"']}}
//! ```
//! ## When to suppress
//! Where the command takes the text as it is.

use std::sync::LazyLock;

use regex::Regex;
use tiphys_diag::Severity;
use tiphys_value::{ObjectExt, Value};

use crate::{
    Context, Report, Rule,
    support::{
        dedup::Once,
        pods::{self, list, text},
        unrendered_files,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E6-probe-variable",
    incident: "E6",
    severity: Severity::Warning,
    title: "a probe names a variable that its command does not get",
    page: page!("e6_probe_variable.rs"),
    check,
};

/// A variable as commands name it.
static VARIABLE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\$\(([A-Za-z_][A-Za-z0-9_]*)\)$").expect("the pattern is well formed"));

fn check(context: &Context<'_>, report: &mut Report) {
    const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];
    let survey = context.survey;
    let mut once = Once::default();
    for object in survey.objects.iter().filter(|it| !unrendered_files::may_be_a_patch(survey, it)) {
        let Some(pod) = pods::pod_of(object) else { continue };
        for container in pod.containers() {
            for probe in PROBES {
                let command = container.value.at(&[probe, "exec", "command"]).and_then(Value::as_array);
                for (at, word) in command.into_iter().flatten().enumerate() {
                    let name =
                        word.as_str().and_then(|word| VARIABLE.captures(word)).map(|it| it[1].to_owned());
                    let Some(name) = name.filter(|name| is_from_elsewhere(container.value, name)) else {
                        continue;
                    };
                    let path = container.path.key(probe).key("exec").key("command").index(at);
                    let diagnostic = RULE
                        .diagnostic(format!(
                            "the {probe} of {} gets an empty text for $({name})",
                            object.title()
                        ))
                        .at(survey.span(object, &path), "empty in a probe")
                        .because(
                            "the kubelet fills in values that stand in the container, and this one comes from elsewhere",
                        )
                        .help(format!("run it in a shell: `sh -c` and \"${name}\""));
                    once.add_by(object.title(), RULE.finding(context, object, diagnostic).likely());
                }
            }
        }
    }
    once.report(report);
}

/// Whether a variable of a container has its value from a Secret, a ConfigMap or a field.
fn is_from_elsewhere(container: &Value, name: &str) -> bool {
    list(container, "env").iter().any(|it| text(it, "name") == name && it.get("valueFrom").is_some())
}
