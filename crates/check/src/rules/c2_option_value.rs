//! # An option whose value is not understood
//!
//! Argo CD compares sync options as whole texts: `Prune=False`, `CreateNamespace` and `CreateNamespace =
//! true` are none of those that it knows, and are passed over silently. What was to be kept is pruned, and
//! the namespace is not made. A sync wave that is no whole number counts as wave 0. Of two options that
//! contradict each other, such as `Replace=true` and `ServerSideApply=true`, one has no effect.
//!
//! People see: nothing – what the option was for does not happen.
//!
//! ## Bad
//! ```yaml
//! metadata:
//!   annotations:
//!     argocd.argoproj.io/sync-options: Prune=False
//!     argocd.argoproj.io/sync-wave: "1.5"
//! ```
//! ## Good
//! ```yaml
//! metadata:
//!   annotations:
//!     argocd.argoproj.io/sync-options: Prune=false
//!     argocd.argoproj.io/sync-wave: "2"
//! ```
//! ## When to suppress
//! Where a newer version of Argo CD knows the value, or another tool replaces it.

use tiphys_diag::{Severity, similar_names};
use tiphys_graph::Object;
use tiphys_model::{SYNC_OPTIONS, names, options::values_of, pause::Until};
use tiphys_value::{FieldPath, ObjectExt, Value};

use crate::{
    Context, Report, Rule,
    support::{dedup::Once, field_paths::keys, placeholders},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-option-value",
    incident: "C2",
    severity: Severity::Warning,
    title: "an option whose value is not understood",
    page: page!("c2_option_value.rs"),
    check,
};

/// What `tiphys.dev/ownership` may say.
const OWNERSHIP: [&str; 3] = ["adopt", "refuse", "share"];

/// What is wrong with a text, and what to write instead.
struct BadValue {
    what: String,
    effect: &'static str,
    help: String,
    /// The text, and what to write in its place.
    instead: Option<(String, String)>,
}

/// Tells what is wrong with an annotation.
type Judge = fn(&str) -> Vec<BadValue>;

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for object in &context.survey.objects {
        for (annotation, judge) in ANNOTATIONS {
            let text = object.value().annotation(annotation).unwrap_or_default();
            let path = keys(&["metadata", "annotations", annotation]);
            judge(text).into_iter().for_each(|fault| report_value(context, object, &path, fault, &mut once));
        }
        if object.key.group == names::GROUP && object.key.kind == "Application" {
            let path = keys(&["spec", "syncPolicy", "syncOptions"]);
            let listed = path.get(object.value()).and_then(Value::as_array).into_iter().flatten();
            contradictions(context, object, &path, &mut once);
            for (at, option) in listed.enumerate().filter_map(|(at, it)| Some((at, it.as_str()?))) {
                let fault = option_fault(option);
                fault
                    .into_iter()
                    .for_each(|it| report_value(context, object, &path.index(at), it, &mut once));
            }
        }
    }
    once.report(report);
}

/// Sync options of an Application of which one takes the effect of another.
fn contradictions(context: &Context<'_>, object: &Object, path: &FieldPath, once: &mut Once) {
    let list = path.get(object.value()).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let options: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
    let position = |option: &str| options.iter().position(|it| *it == option);
    let prunes = object.value().at(&["spec", "syncPolicy", "automated", "prune"]) == Some(&Value::Bool(true));
    let mut tell = |at: usize, what: String, why: &'static str| {
        let diagnostic = RULE
            .diagnostic(format!("{} has {what}", object.title()))
            .at(context.survey.span(object, &path.index(at)), why)
            .because("options do not add up: the engine goes by one of the two and passes over the other")
            .help("leave one of the two out");
        once.add(&what, RULE.finding(context, object, diagnostic).likely());
    };
    for (at, option) in options.iter().enumerate() {
        let Some(name) = option.strip_suffix("=false") else { continue };
        if position(&format!("{name}=true")).is_some() {
            tell(at, format!("{name}=true and {name}=false"), "both cannot be meant");
        }
    }
    if let (Some(at), Some(_)) = (position("Replace=true"), position("ServerSideApply=true")) {
        let what = "Replace=true and ServerSideApply=true".to_owned();
        tell(at, what, "replaces objects: nothing is applied on the server's side");
    }
    const NAMESPACE_LABELS: [&str; 3] = ["spec", "syncPolicy", "managedNamespaceMetadata"];
    if object.value().at(&NAMESPACE_LABELS).is_some_and(Value::is_object)
        && let Some(at) = position("CreateNamespace=false")
    {
        let what = "managedNamespaceMetadata and CreateNamespace=false".to_owned();
        tell(at, what, "labels and annotations of the namespace are set only with CreateNamespace=true");
    }
    if let Some(at) = position("Prune=false").filter(|_| prunes) {
        tell(at, "automated.prune and Prune=false".to_owned(), "nothing is pruned");
    }
}

/// The annotations whose values are judged, each with its judge.
const ANNOTATIONS: [(&str, Judge); 4] = [
    (names::SYNC_OPTIONS, |text| text.split(',').filter_map(|it| option_fault(it.trim())).collect()),
    (names::SYNC_WAVE, |text| wave_fault(text).into_iter().collect()),
    (names::PAUSED_UNTIL, |text| pause_fault(text).into_iter().collect()),
    (names::OWNERSHIP, |text| ownership_fault(text).into_iter().collect()),
];

fn option_fault(option: &str) -> Option<BadValue> {
    let (name, value) = option.split_once('=').unwrap_or((option, ""));
    if !SYNC_OPTIONS.contains(&name.trim()) {
        return None;
    }
    let values = values_of(name.trim());
    if name == name.trim() && values.contains(&value) {
        return None;
    }
    let is_on = |word: &str| matches!(word, "yes" | "on" | "1" | "enabled");
    let is_off = |word: &str| matches!(word, "no" | "off" | "0" | "disabled");
    let said = value.trim().to_ascii_lowercase();
    let meant = values.iter().copied().find(|known| {
        *known == said || *known == "true" && is_on(&said) || *known == "false" && is_off(&said)
    });
    let written = |value: &str| format!("{}={value}", name.trim());
    let instead = meant.map(|meant| (option.to_owned(), written(meant)));
    let help = match meant {
        Some(meant) => format!("write {}", written(meant)),
        None => {
            let all: Vec<String> = values.iter().map(|value| written(value)).collect();
            format!("write one of {}", all.join(", "))
        }
    };
    Some(BadValue { what: format!("option {option:?}"), effect: "passed over without a word", help, instead })
}

fn wave_fault(text: &str) -> Option<BadValue> {
    (!text.is_empty() && text.parse::<i64>().is_err()).then(|| BadValue {
        what: format!("sync wave {text:?}"),
        effect: "no whole number: it counts as if there were none",
        help: "write a whole number, such as \"-1\" or \"5\"".to_owned(),
        instead: None,
    })
}

fn pause_fault(text: &str) -> Option<BadValue> {
    (!text.is_empty() && matches!(Until::read(text), Until::Unreadable(_))).then(|| BadValue {
        what: format!("pause until {text:?}"),
        effect: "no time: nothing is synced until it is one",
        help: "write a time, such as 2027-01-31T18:00:00Z".to_owned(),
        instead: None,
    })
}

fn ownership_fault(text: &str) -> Option<BadValue> {
    (!text.is_empty() && !OWNERSHIP.contains(&text)).then(|| BadValue {
        what: format!("ownership {text:?}"),
        effect: "passed over without a word",
        help: format!("write one of {}", OWNERSHIP.join(", ")),
        instead: similar_names::nearest_slip(text, OWNERSHIP.into_iter())
            .map(|it| (text.to_owned(), it.to_owned())),
    })
}

fn report_value(context: &Context<'_>, object: &Object, path: &FieldPath, fault: BadValue, once: &mut Once) {
    if placeholders::is_in(&fault.what) {
        return;
    }
    let diagnostic = RULE
        .diagnostic(format!("{} has the {}, which is not understood", object.title(), fault.what))
        .at(context.survey.span(object, path), fault.effect)
        .because("nobody validates these texts, and only those that are known to the letter count")
        .help(fault.help);
    let finding = RULE.finding(context, object, diagnostic).likely();
    once.add(
        &fault.what,
        match fault.instead {
            Some((wrong, meant)) => finding.with_spelling(wrong, meant),
            None => finding,
        },
    );
}
