//! # The value of a variable names another one as a shell would
//!
//! Kubernetes fills in `$(NAME)` in the value of an environment variable; `${NAME}` is left as it is, and the
//! program gets the braces. Some programs fill them in by themselves from their environment: the rule speaks
//! where the container has no variable of this name at all, or where the text is an address with a password.
//!
//! People see: `password authentication failed`, `invalid port "${DB_PORT}"`, `could not parse the URL`.
//!
//! ## Bad
//! ```yaml
//! env:
//!   - {name: DATABASE_URL, value: "postgresql://shop:${DB_PASSWORD}@db:5432/shop"}
//! ```
//! ## Good
//! ```yaml
//! env:
//!   - {name: DB_PASSWORD, valueFrom: {secretKeyRef: {name: db, key: password}}}
//!   - {name: DATABASE_URL, value: "postgresql://shop:$(DB_PASSWORD)@db:5432/shop"}
//! ```
//! ## When to suppress
//! Where the program, or a plugin of the engine, replaces the text.

use std::sync::LazyLock;

use regex::Regex;
use tiphys_diag::Severity;
use tiphys_value::{ObjectExt, Value};

use crate::{
    Context, Report, Rule,
    support::{
        dedup::Once,
        pods::{Container, list, text},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E6-unexpanded-variable",
    incident: "E6",
    severity: Severity::Warning,
    title: "the value of a variable names another one as a shell would",
    page: page!("e6_unexpanded_variable.rs"),
    check,
};

/// A variable in braces inside of an address.
static IN_ADDRESS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^[a-z][a-z0-9+]*://[^\s]*\$\{([A-Z][A-Z0-9_]*)\}").expect("the pattern is well formed")
});
/// Words in the names of variables that programs read which fill in such texts from their environment.
const FILLED_IN: [&str; 7] = ["SPRING", "QUARKUS", "MICRONAUT", "JAVA", "OTEL", "CONFIG", "TEMPLATE"];

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for cluster in context.clusters() {
        for pod in &cluster.pods {
            for container in pod.containers() {
                for (at, name) in unexpanded(&container) {
                    let variable = text(&list(container.value, "env")[at], "name");
                    let what = format!(
                        "{} is given ${{{name}}} in {variable}, which nobody fills in",
                        pod.object.title()
                    );
                    let field = container.path.key("env").index(at).key("value");
                    let diagnostic = RULE
                        .diagnostic(what.clone())
                        .at(context.survey.span(pod.object, &field), format!("the program gets ${{{name}}}"))
                        .because("Kubernetes fills in $(NAME), of a variable that stands before it in the container")
                        .help(format!("give the container {name} before it, and write $({name})"));
                    once.add(&what, RULE.finding(context, pod.object, diagnostic).likely());
                }
            }
        }
    }
    once.report(report);
}

/// The variables of a container with an address that names in braces what the container does not have, each
/// by its place, with that name.
fn unexpanded<'a>(container: &Container<'a>) -> Vec<(usize, &'a str)> {
    let variables = list(container.value, "env");
    let is_whole = list(container.value, "envFrom").is_empty();
    // A shell may fill in what its command is given, and a program what is its own.
    let has_shell = ["command", "args"].iter().any(|key| {
        list(container.value, key)
            .iter()
            .filter_map(Value::as_str)
            .any(|word| word.contains("envsubst") || word.contains("eval"))
    });
    let has = |name: &str| variables.iter().any(|it| text(it, "name") == name);
    let found = variables.iter().enumerate().filter_map(|(at, variable)| {
        let value = variable.str_at(&["value"])?;
        let name = IN_ADDRESS.captures(value)?.get(1)?.as_str();
        let fills_in = FILLED_IN.iter().any(|word| text(variable, "name").contains(word));
        (!fills_in && !has(name)).then_some((at, name))
    });
    if has_shell || !is_whole { Vec::new() } else { found.collect() }
}
