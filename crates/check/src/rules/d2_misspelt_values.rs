//! # Values with a field that pods do not have
//!
//! Charts hand `tolerations`, `resources`, `env`, probes, security contexts and affinities of their values on
//! to pods as they are. A field that is misspelt there is not the chart's to refuse: the API server drops it
//! or refuses the object, and the pod stays where no taint is tolerated, or runs without the limits that it
//! was to have. An annotation that stands beside `annotations:` instead of below it is read by nobody.
//!
//! People see: pods `Pending` with `untolerated taint`, or `strict decoding error: unknown field
//! "spec.template.spec.tolerations[0].affect"`.
//!
//! ## Bad
//! ```yaml
//! tolerations:
//!   - key: node-role.kubernetes.io/control-plane
//!     affect: NoSchedule
//! ```
//! ## Good
//! ```yaml
//! tolerations:
//!   - key: node-role.kubernetes.io/control-plane
//!     effect: NoSchedule
//! ```
//! ## When to suppress
//! Where the chart gives the field a meaning of its own.

use tiphys_diag::{Diagnostic, Severity, Span, similar_names};
use tiphys_graph::Object;
use tiphys_schema::Quantity;
use tiphys_value::{FieldPath, Location, Map, Value};
use tiphys_vfs::base_name;
use tiphys_yaml::Profile;

use crate::{
    Context, Finding, Report, Rule,
    support::{
        dedup::Once,
        field_paths::{keys, place},
        pod_shapes, unrendered_files, unused_files,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-misspelt-values",
    incident: "D2",
    severity: Severity::Warning,
    title: "values with a field that pods do not have",
    page: page!("d2_misspelt_values.rs"),
    check,
};

const OF_TOLERATION: [&str; 5] = ["key", "operator", "value", "effect", "tolerationSeconds"];
const OF_RESOURCES: [&str; 3] = ["limits", "requests", "claims"];

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    let survey = context.survey;
    for object in survey.objects.iter().filter(|it| !unrendered_files::may_be_a_patch(survey, it)) {
        let found = match (object.key.group.as_str(), object.key.kind.as_str()) {
            ("helm.toolkit.fluxcd.io", "HelmRelease") => vec![keys(&["spec", "values"])],
            ("argoproj.io", "Application") => of_application(object),
            _ => continue,
        };
        for root in found {
            let Some(values) = root.get(object.value()) else { continue };
            let of = format!("the values of {}", object.title());
            match values {
                Value::String(text) => {
                    let Ok(inner) = tiphys_yaml::from_yaml(text) else { continue };
                    let at = |_: &FieldPath| survey.span(object, &root);
                    let found = slips_of(&inner, &FieldPath::default(), &of, &at);
                    found.into_iter().for_each(|(key, it)| once.add(&key, it.into_finding(context, object)));
                }
                values => {
                    let at = |path: &FieldPath| survey.span(object, path);
                    let found = slips_of(values, &root, &of, &at);
                    found.into_iter().for_each(|(key, it)| once.add(&key, it.into_finding(context, object)));
                }
            }
        }
    }
    for path in survey.files.ending(&[".yaml", ".yml"]) {
        let stem = base_name(path).trim_end_matches(".yaml").trim_end_matches(".yml");
        let is_meant = stem.starts_with("values") || stem.ends_with("values");
        if !is_meant || path.contains("/templates/") || unused_files::is_in_unused_folder(path) {
            continue;
        }
        let (Some(text), Some(values)) = (survey.files.text(path), survey.files.value(path)) else {
            continue;
        };
        let Ok(Some(document)) = tiphys_yaml::parse_first(&text, Profile::Go2) else { continue };
        let at = |field: &FieldPath| {
            let start = place(&document.root, field);
            survey.files.span(&Location::new(path.clone(), start.line, start.column))
        };
        for (key, slip) in slips_of(&values, &FieldPath::default(), &format!("the values in {path}"), &at) {
            once.add(&key, slip.plain());
        }
    }
    once.report(report);
}

/// What is told of a slip.
struct Slip {
    diagnostic: Diagnostic,
    /// The word that is wrong, and the one that is meant.
    respelling: Option<(String, String)>,
}

impl Slip {
    fn into_finding(self, context: &Context<'_>, object: &Object) -> Finding {
        self.respelt(|diagnostic| RULE.finding(context, object, diagnostic))
    }

    fn plain(self) -> Finding {
        self.respelt(|diagnostic| Finding::new(RULE.incident, diagnostic))
    }

    fn respelt(self, finding: impl FnOnce(Diagnostic) -> Finding) -> Finding {
        let finding = finding(self.diagnostic).likely();
        match &self.respelling {
            Some((wrong, meant)) => finding.with_spelling(wrong, meant),
            None => finding,
        }
    }
}

/// The slips in values that are at a path, each with what is the same if it is said again.
fn slips_of(
    values: &Value,
    root: &FieldPath,
    of: &str,
    at: &dyn Fn(&FieldPath) -> Span,
) -> Vec<(String, Slip)> {
    let (mut wrong, mut amiss, mut beside) = (Vec::new(), Vec::new(), Vec::new());
    collect(values, root, 0, &mut wrong);
    find_refused(values, root, 0, &mut amiss);
    find_misplaced(values, root, 0, &mut beside);
    let refused = amiss.into_iter().map(|(path, text, why)| {
        let diagnostic = RULE
            .diagnostic(format!("{of} have {text:?}: {why}"))
            .at(at(&path), "the API server refuses it")
            .because("charts hand it on as it is, and the object that gets it is refused");
        (text, Slip { diagnostic, respelling: None })
    });
    let unknown = wrong.into_iter().map(|(path, name, meant)| {
        let diagnostic = RULE
            .diagnostic(format!("{of} have a field {name}: {meant} is meant"))
            .at(at(&path.key(&name)), "pods have no such field")
            .because(
                "charts hand it on as it is: the API server refuses it, or drops it and what it was to say",
            )
            .help(format!("write {meant}"));
        let respelling = Some((name.clone(), meant.to_owned()));
        (name, Slip { diagnostic, respelling })
    });
    let beside = beside.into_iter().map(|(path, field, name)| {
        let diagnostic = RULE
            .diagnostic(format!(
                "{of} have {name} beside {field}, which is empty: it is meant to be one of them"
            ))
            .at(at(&path), format!("stands as far left as {field}"))
            .because("a chart looks for it below, finds nothing there, and reads no field of this name")
            .help("move it two to the right");
        (format!("{field} {name}"), Slip { diagnostic, respelling: None })
    });
    refused.chain(unknown).chain(beside).collect()
}

/// Annotations and labels that stand beside the field that they are meant to be in, which is empty: each with
/// its place, that field and its own name.
fn find_misplaced(
    value: &Value,
    path: &FieldPath,
    depth: usize,
    found: &mut Vec<(FieldPath, String, String)>,
) {
    const MAX_DEPTH: usize = 32;
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(at, item)| find_misplaced(item, &path.index(at), depth + 1, found));
        }
        Value::Object(map) => {
            let empty = map.iter().find(|(name, value)| is_marks(name) && value.is_null());
            // `example.com/name`
            let is_domain = |name: &str| {
                name.split_once('/').is_some_and(|(domain, rest)| domain.contains('.') && !rest.is_empty())
            };
            let inside = map.keys().find(|name| is_domain(name)).filter(|name| map[*name].is_string());
            if let Some(((field, _), name)) = empty.zip(inside) {
                found.push((path.key(name), field.clone(), name.clone()));
            }
            for (field, name) in parts_beside(map) {
                found.push((path.key(name), field.to_owned(), name.to_owned()));
            }
            map.iter().for_each(|(name, inner)| find_misplaced(inner, &path.key(name), depth + 1, found));
        }
        _ => {}
    }
}

/// Fields that are empty, each with one that is always a part of it and stands beside it.
fn parts_beside(map: &Map<String, Value>) -> Vec<(&'static str, &'static str)> {
    const PARTS: [(&str, &[&str]); 3] = [
        ("image", &["repository", "tag"]),
        ("resources", &["limits", "requests"]),
        ("securityContext", &["runAsUser", "runAsNonRoot", "readOnlyRootFilesystem"]),
    ];
    let is_empty = |name: &str| map.get(name).is_some_and(Value::is_null);
    let empty = PARTS.into_iter().filter(|(name, _)| is_empty(name));
    empty
        .filter_map(|(name, parts)| Some((name, *parts.iter().find(|part| map.contains_key(**part))?)))
        .collect()
}

fn of_application(object: &Object) -> Vec<FieldPath> {
    let spec = object.value().get("spec").unwrap_or(&Value::Null);
    let several = spec.get("sources").and_then(Value::as_array).map_or(0, Vec::len);
    let sources = (0..several).map(|at| keys(&["spec", "sources"]).index(at));
    let all = sources.chain([keys(&["spec", "source"])]);
    let helm = all.map(|source| source.key("helm"));
    helm.flat_map(|helm| [helm.key("valuesObject"), helm.key("values")]).collect()
}

/// Fields that are misspelt, each with its place and what is meant.
fn collect(
    value: &Value,
    path: &FieldPath,
    depth: usize,
    wrong: &mut Vec<(FieldPath, String, &'static str)>,
) {
    const MAX_DEPTH: usize = 32;
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                collect(item, &path.index(at), depth + 1, wrong);
            }
        }
        Value::Object(map) => {
            for (name, below) in map {
                let path = path.key(name);
                match (name.as_str(), below) {
                    ("tolerations", Value::Array(items)) => {
                        for (at, item) in items.iter().enumerate().filter(|(_, item)| is_toleration(item)) {
                            pod_shapes::misspelt(item, &path.index(at), &OF_TOLERATION, wrong);
                        }
                    }
                    ("resources", Value::Object(_)) if has_quantities(below) => {
                        pod_shapes::misspelt(below, &path, &OF_RESOURCES, wrong);
                    }
                    _ => {
                        pod_shapes::slips(name, below, &path, wrong);
                        collect(below, &path, depth + 1, wrong);
                    }
                }
            }
        }
        _ => {}
    }
}

/// How a volume can be mounted (Kubernetes docs, "Persistent Volumes").
const ACCESS_MODES: [&str; 4] = ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"];

/// Texts that no chart can make right: amounts that are none, access modes that there are not.
fn find_refused(value: &Value, path: &FieldPath, depth: usize, found: &mut Vec<(FieldPath, String, String)>) {
    const MAX_DEPTH: usize = 32;
    if depth > MAX_DEPTH {
        return;
    }
    let below =
        |step: FieldPath, item: &Value, found: &mut Vec<_>| find_refused(item, &step, depth + 1, found);
    match value {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| below(path.index(at), item, found));
        }
        Value::Object(map) => {
            for (name, inner) in map {
                let path = path.key(name);
                match (name.as_str(), inner) {
                    ("accessModes", Value::Array(modes)) => modes_of(modes, &path, found),
                    (name, Value::String(text)) if is_marks(name) && is_one_text(text) => {
                        let why = "it is a text and no field, for want of a blank behind its colon";
                        found.push((path, text.clone(), why.to_owned()));
                    }
                    ("resources", Value::Object(_)) if has_quantities(inner) => {
                        amounts(inner, &path, found);
                    }
                    _ => {
                        pod_shapes::refused(name, inner, &path, found);
                        below(path, inner, found);
                    }
                }
            }
        }
        _ => {}
    }
}

/// Whether a field is one of annotations or labels, by its name.
fn is_marks(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.ends_with("annotations") || name.ends_with("labels")
}

/// Whether a text was meant to be a field and its value: `example.com/name:value`.
fn is_one_text(text: &str) -> bool {
    !text.contains(char::is_whitespace)
        && text.split_once(':').is_some_and(|(name, value)| {
            name.split_once('/').is_some_and(|(domain, _)| domain.contains('.')) && !value.is_empty()
        })
}

fn modes_of(modes: &[Value], path: &FieldPath, found: &mut Vec<(FieldPath, String, String)>) {
    for (at, mode) in modes.iter().enumerate().filter_map(|(at, mode)| Some((at, mode.as_str()?))) {
        let same = ACCESS_MODES.iter().copied().find(|it| it.eq_ignore_ascii_case(mode) && *it != mode);
        // Short forms such as RWO are the chart's.
        let meant = same.or_else(|| similar_names::nearest_slip(mode, ACCESS_MODES.into_iter()));
        if let Some(meant) = meant.filter(|_| !ACCESS_MODES.contains(&mode)) {
            found.push((path.index(at), mode.to_owned(), format!("the access mode is {meant}")));
        }
    }
}

fn amounts(resources: &Value, path: &FieldPath, found: &mut Vec<(FieldPath, String, String)>) {
    for name in ["cpu", "memory"] {
        let text = |kind: &str| {
            let amount = resources.get(kind)?.get(name)?;
            Some(amount.as_str().map_or_else(|| amount.to_string(), str::to_owned))
        };
        let (Some(asked), Some(most)) = (text("requests"), text("limits")) else { continue };
        if let (Ok(of_asked), Ok(of_most)) = (asked.parse::<Quantity>(), most.parse::<Quantity>())
            && of_asked > of_most
        {
            let why = format!("a request must be less than or equal to the limit, which is {most}");
            found.push((path.key("requests").key(name), asked, why));
        }
    }
    for kind in ["limits", "requests"] {
        for (name, amount) in resources.get(kind).and_then(Value::as_object).into_iter().flatten() {
            let Some(text) = amount.as_str().filter(|_| matches!(name.as_str(), "cpu" | "memory")) else {
                continue;
            };
            let is_plain = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '.');
            if is_plain && text.starts_with(|c: char| c.is_ascii_digit()) && text.parse::<Quantity>().is_err()
            {
                let why = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
                found.push((path.key(kind).key(name), text.to_owned(), why.to_owned()));
            }
        }
    }
}

fn is_toleration(item: &Value) -> bool {
    OF_TOLERATION.iter().any(|key| item.get(*key).is_some())
}

/// Whether a field holds amounts of processor time and memory.
fn has_quantities(resources: &Value) -> bool {
    let fields = resources.as_object().into_iter().flat_map(|map| map.values());
    fields.into_iter().any(|it| it.get("cpu").is_some() || it.get("memory").is_some())
}
