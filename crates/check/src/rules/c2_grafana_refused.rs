//! # Grafana refuses an id that it is provisioned with
//!
//! Alert rules, contact points and data sources that Grafana is provisioned with may say their own `uid`. It has
//! at most 40 characters: letters, digits, `-` and `_`. With another one the provisioning ends, and Grafana does
//! not start.
//!
//! People see: `cannot create rule with UID '…': UID is longer than 40 symbols`, `Failed to start grafana`, a pod
//! in CrashLoopBackOff.
//!
//! ## Bad
//! ```yaml
//! groups: [{rules: [{uid: shop-kubernetes-deployment-without-any-replica, condition: C, data: []}]}]
//! ```
//! ## Good
//! ```yaml
//! groups: [{rules: [{uid: shop-deployment-without-replica, condition: C, data: []}]}]
//! ```
//! ## When to suppress
//! Where the file is for another program.

use std::sync::LazyLock;

use regex::Regex;
use tiphys_diag::Severity;
use tiphys_value::Location;

use crate::{
    Context, Finding, Report, Rule,
    support::{placeholders, unused_files},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-grafana-refused",
    incident: "C2",
    severity: Severity::Warning,
    title: "Grafana refuses an id that it is provisioned with",
    page: page!("c2_grafana_refused.rs"),
    check,
};

/// Grafana, `pkg/util/shortid_generator.go`.
const LONGEST: usize = 40;

/// A line that says an id.
static UID: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"^(\s*(?:- )?uid:\s+)(?:"([^"]+)"|'([^']+)'|([^\s"'#\{\[]+))"#).ok());

fn check(context: &Context<'_>, report: &mut Report) {
    let Some(uid) = UID.as_ref() else { return };
    let files = &context.survey.files;
    for path in files.ending(&[".yaml", ".yml"]) {
        let text = files.text(path).unwrap_or_else(|| "".into());
        // The rules of Grafana's own alerts.
        let is_provisioned = text.contains("datasourceUid:") && text.contains("condition:");
        if !is_provisioned || placeholders::is_skeleton(path) || unused_files::is_in_unused_folder(path) {
            continue;
        }
        for (number, line) in (1..).zip(text.lines()) {
            let Some(found) = uid.captures(line) else { continue };
            let id = [2, 3, 4].iter().find_map(|at| found.get(*at)).map_or("", |it| it.as_str());
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
            let count = id.chars().count();
            let is_open = id.contains(['$', '{', '<']) || placeholders::is_in(id);
            if is_open || count <= LONGEST && id.chars().all(is_plain) {
                continue;
            }
            let why = match count > LONGEST {
                true => format!("it has {count} characters, and {LONGEST} are allowed"),
                false => "letters, digits, - and _ are allowed".to_owned(),
            };
            let column = u32::try_from(found[1].chars().count()).unwrap_or_default() + 1;
            let diagnostic = RULE
                .diagnostic(format!("Grafana refuses the uid {id:?}: {why}"))
                .at(files.span(&Location::new(path.clone(), number, column)), "no id for Grafana")
                .because("provisioning ends with an error, and Grafana with it: the pod does not come up")
                .help("give it a shorter one; what Grafana has under another id stays until it is deleted");
            report.add(Finding::new(RULE.incident, diagnostic).likely());
        }
    }
}
