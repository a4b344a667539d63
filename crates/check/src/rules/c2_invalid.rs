//! # An object that the API server refuses
//!
//! Every rendered object is read as the API server reads it: built-in kinds by their types and rules, custom
//! resources by the definitions that are in the repository or its charts, by Argo CD's own, and, where there
//! is none, by the published fields and limits of widely used operators. A value of a wrong type or one that
//! breaks a rule is refused, and with it the sync. An unknown field is refused too where the engine validates
//! (Argo CD does unless `Validate=false`), else it is dropped.
//!
//! People see: `ApplicationSet.argoproj.io "services" is invalid:
//! spec.template.spec.source.kustomize.images[0]: Invalid value: "object":
//! spec.template.spec.source.kustomize.images[0] in body must be of type string: "object"`, `Deployment in
//! version "v1" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct field …`,
//! `strict decoding error: unknown field "spec.replica"`.
//!
//! ## Bad
//! ```yaml
//! kustomize: {images: [{name: shop/web, newTag: v2}]}    # of an Application
//! ```
//! ## Good
//! ```yaml
//! kustomize: {images: [shop/web=shop/web:v2]}
//! ```
//! ## When to suppress
//! Where the cluster has another version of the definition than the repository.

use tiphys_diag::{Severity, similar_names};
use tiphys_graph::{Declaration, Object, Owner, Survey, parallel};
use tiphys_model::names as names_of;
use tiphys_schema::{Catalog, DecodeError, ErrorKind, FieldError, FieldRule, Path, Quantity, TypeRef, names};
use tiphys_value::{FieldPath, GroupVersionKind, ObjectExt, RenderedObject, Segment, Value, json};

use super::c2_schedule;
use crate::{
    Context, Finding, Report, Rule,
    support::{
        admission, crds::Definitions, dedup::Once, field_paths, file_completeness::Extent, flux::Flux,
        flux_levels, mutations::Mutations, placeholders, refusal::RefusalCause, refusal_fixes,
        scalar_fixes::Wanted, unrendered_files,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-invalid",
    incident: "C2",
    severity: Severity::Error,
    title: "an object that the API server refuses",
    page: page!("c2_invalid.rs"),
    check,
};

/// The annotation by which Argo CD's plugin for Vault knows where the values of an object's placeholders are.
const OF_VAULT_PLUGIN: &str = "avp.kubernetes.io/path";

/// What is said where the repository does not hold the definition.
const OF_REFERENCE: &str =
    "the definition is not in the repository: this is by the operator's API reference of August 2026";

/// One fault of an object, as the API server says it.
struct ApiRefusal {
    cause: RefusalCause,
    message: String,
    field: FieldPath,
    severity: Severity,
    help: Option<String>,
    /// A word in the place of one that is not known.
    respelling: Option<(String, String)>,
    /// Whether the cluster's definition may say otherwise.
    is_doubtful: bool,
    /// Whether the definition knows no field at all where this one stands.
    is_of_all: bool,
}

impl ApiRefusal {
    fn downgrade_to_warning(&mut self) {
        self.severity = Severity::Warning;
        self.is_doubtful = true;
        self.help = Some(OF_REFERENCE.to_owned());
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for (object, faults) in judge_all(context) {
        for fault in faults {
            // One field that is wrong in every item of a list is one fault.
            let what: String = fault.message.chars().filter(|c| !c.is_ascii_digit()).collect();
            let file = &object.rendered.location.file;
            if fault.is_of_all {
                // One definition that knows nothing is one fault.
                let GroupVersionKind { group, kind, .. } = object.value().gvk();
                once.add_by(format!("{kind}.{group} keeps nothing"), finding(context, object, &fault));
            } else if matches!(fault.cause, RefusalCause::UnknownField(_)) {
                once.add_by(format!("{file}\n{what}"), finding(context, object, &fault));
            } else if fault
                .cause
                .field_error()
                .is_some_and(|it| it.kind == ErrorKind::Required && it.detail.is_empty())
            {
                // Of what several overlays break, each has a file of its own to be mended.
                let found = finding(context, object, &fault);
                let place = found.diagnostic.primary.as_ref().map_or(file, |label| &label.span.file);
                once.add_by(format!("{place}\n{}\n{what}", object.title()), found);
            } else {
                once.add(&fault.message, finding(context, object, &fault));
            }
        }
    }
    once.report(report);
}

/// The objects that are at fault, in their order.
fn judge_all<'a>(context: &Context<'a>) -> impl Iterator<Item = (&'a Object, Vec<ApiRefusal>)> {
    let (survey, objects, definitions) = (context.survey, &context.survey.objects, context.definitions());
    let completing =
        Completing { flux: Flux::from_survey(survey), mutations: Mutations::from_survey(survey) };
    let judged = parallel::each(objects, |object| faults(survey, object, definitions, &completing));
    objects.iter().zip(judged).filter(|(_, faults)| !faults.is_empty())
}

fn finding(context: &Context<'_>, object: &Object, fault: &ApiRefusal) -> Finding {
    let field = field_paths::nearest(fault.field.clone(), object.value());
    let mut diagnostic = RULE
        .diagnostic(fault.message.clone())
        .at(context.survey.span(object, &field), "")
        .because("the API server answers with this text, and the sync of the Application fails on it");
    diagnostic.severity = fault.severity;
    diagnostic.help.extend(fault.help.clone());
    if let RefusalCause::UnknownField(path) = &fault.cause {
        diagnostic.help.extend(flux_levels::help(context.survey, object, path));
    }
    if matches!(object.owner, Owner::Unit(_)) && !is_root(context, object) {
        diagnostic.severity = diagnostic.severity.min(Severity::Warning);
        diagnostic.mechanism = "the API server answers with this text when it is applied".to_owned();
    }
    let mut finding = RULE.finding(context, object, diagnostic);
    if fault.is_doubtful {
        finding = finding.likely();
    }
    if let Some((wrong, meant)) = &fault.respelling {
        return finding.with_spelling(wrong, meant);
    }
    match refusal_fixes::find(context.survey, object, &fault.field, &fault.cause) {
        Some((description, edits)) => finding.fix(description, edits),
        None => finding,
    }
}

/// Whether an object declares Applications that are followed from it.
fn is_root(context: &Context<'_>, object: &Object) -> bool {
    let is_same = |declared: &RenderedObject| declared.location == object.rendered.location;
    let mut apps = context.survey.apps.iter().filter(|app| app.declaration == Declaration::File);
    object.key.group == names_of::GROUP
        && (apps.any(|app| is_same(&app.declared))
            || context.survey.sets.iter().any(|set| is_same(&set.declared)))
}

/// What adds to objects between the repository and the API server.
struct Completing {
    flux: Flux,
    mutations: Mutations,
}

fn faults(
    survey: &Survey,
    object: &Object,
    definitions: &Definitions<'_>,
    completing: &Completing,
) -> Vec<ApiRefusal> {
    let Completing { flux, mutations } = completing;
    if unrendered_files::may_be_a_patch(survey, object) {
        return Vec::new();
    }
    let gvk = object.value().gvk();
    if let Some(unserved) = unserved(object, &gvk) {
        return vec![unserved];
    }
    let catalog = Catalog::latest();
    let mut faults = match catalog.kind(&gvk).and_then(|_| catalog.type_of(&gvk)) {
        Some(ty) => built_in(object, &gvk, ty),
        None => {
            let mut faults = custom(object, &gvk, definitions);
            let is_known =
                |faults: &[ApiRefusal], field: &FieldPath| faults.iter().any(|it| it.field == *field);
            let of_pods = rollout_pods(object, &gvk).into_iter();
            let of_pods: Vec<ApiRefusal> = of_pods.filter(|it| !is_known(&faults, &it.field)).collect();
            faults.extend(of_pods);
            faults
        }
    };
    if !faults.is_empty() && unrendered_files::is_loose(survey, object) {
        let extent = Extent::judge(survey, object, faults.iter().map(|fault| &fault.cause));
        faults.retain(|fault| extent.keeps_refusal(&fault.cause) && !is_of_variable(&fault.cause));
    }
    if unrendered_files::is_from_unused_chart(survey, object) {
        // Values that everybody has to give are empty in the chart's own.
        faults.retain(|fault| {
            let is_empty = fault.cause.field_error().is_some() && !is_of_selector(&fault.cause);
            !is_empty && !fault.cause.is_base64()
        });
    }
    if !faults.is_empty() && unrendered_files::is_under_unused_chart(survey, object) {
        faults.retain(|fault| {
            let is_empty =
                fault.field.get(object.value()).is_some_and(|value| value == "" || value.is_null());
            !is_empty && !fault.cause.refused_text().is_some_and(unrendered_files::has_empty_part)
        });
    }
    // Argo CD's plugin for Vault puts values in the place of `<name>`.
    if object.value().annotation(OF_VAULT_PLUGIN).is_some() {
        let has_placeholder = |fault: &ApiRefusal| {
            fault.field.get(object.value()).is_some_and(|value| value.to_string().contains('<'))
        };
        faults.retain(|fault| !fault.cause.is_base64() && !has_placeholder(fault));
    }
    if flux.applies(object) {
        // It sets labels of its own, and drops those of other types on the way.
        let is_of_metadata = |cause: &RefusalCause| {
            cause.type_mismatch().is_some_and(|it| it.owner.as_deref() == Some("ObjectMeta"))
        };
        faults.retain(|fault| !is_of_metadata(&fault.cause));
    }
    if !faults.is_empty() {
        let is_filled_in = |field: &FieldPath| flux.completes(object) || mutations.complete(object, field);
        faults.retain(|fault| !fault.cause.is_missing_value() || !is_filled_in(&fault.field));
    }
    if unrendered_files::is_merged_in(survey, object)
        || flux.applies(object) && unrendered_files::is_bare(object)
    {
        faults.retain(|fault| !fault.cause.is_missing_value() && !is_of_selector(&fault.cause));
    }
    // Parameters of an ApplicationSet are texts, and have to be where texts are allowed.
    if !faults.is_empty() && gvk.kind != "ApplicationSet" && placeholders::has_placeholder(object.value()) {
        faults.retain(|fault| is_beside_placeholders(object, fault));
    }
    if object.value().get("sops").is_some() {
        faults.clear();
    }
    faults.retain(|fault| !is_prose(&fault.cause) && !has_variable(&fault.cause));
    // What another tool than an ApplicationSet fills in.
    faults.retain(|fault| {
        !fault.cause.refused_text().is_some_and(|value| !value.contains("{{") && placeholders::is_in(value))
    });
    // What nothing applies as it is may be a patch that says so, or a form that people fill in.
    if object.environment.is_none() {
        let is_directive = |fault: &ApiRefusal| matches!(&fault.cause, RefusalCause::UnknownField(field) if field.ends_with(".$patch"));
        if faults.iter().any(is_directive) {
            faults.clear();
        }
        faults.retain(|fault| !is_stand_in(&fault.cause));
    }
    faults.retain(|fault| !is_gated(survey, fault));
    // What a file calls an Application, a kustomization may complete.
    if unrendered_files::is_loose_file(survey, object) {
        faults.retain(|fault| fault.cause.field_error().is_none_or(|it| it.field != "metadata.name"));
    }
    // Without a spec it is a part of an Application, for a kustomization to fill in.
    if unrendered_files::is_loose_file(survey, object) && object.value().get("spec").is_none() {
        faults.clear();
    }
    faults
}

/// A kind that no API server has: its version is missing, or its name is nearly that of a built-in kind.
fn unserved(object: &Object, gvk: &GroupVersionKind) -> Option<ApiRefusal> {
    let at = |message: String, (field, wrong): (&str, &str), meant: &str| ApiRefusal {
        cause: RefusalCause::UnservedKind,
        message,
        field: FieldPath::default().key(field),
        severity: Severity::Error,
        help: Some(format!("perhaps {meant} is meant")),
        respelling: Some((wrong.to_owned(), meant.to_owned())),
        is_doubtful: false,
        is_of_all: false,
    };
    let (group, version, kind) = (&gvk.group, &gvk.version, &gvk.kind);
    if group.is_empty() && version.is_empty() {
        let keys = object.value().as_object().into_iter().flat_map(|map| map.keys());
        let misspelt = keys
            .map(String::as_str)
            .find(|key| similar_names::nearest_slip(key, ["apiVersion"].into_iter()).is_some())?;
        return Some(at(
            format!("Object 'apiVersion' is missing in {}", object.title()),
            (misspelt, misspelt),
            "apiVersion",
        ));
    }
    let kinds = Catalog::latest().kinds().iter().map(|kind| &kind.gvk);
    let mut beside = kinds.filter(|known| known.group == *group && known.version == *version);
    if beside.clone().any(|known| known.kind == *kind) {
        return None;
    }
    let meant = similar_names::nearest_slip(kind, beside.by_ref().map(|known| known.kind.as_str()))?;
    let api = if group.is_empty() { version.clone() } else { format!("{group}/{version}") };
    Some(at(format!("no matches for kind \"{kind}\" in version \"{api}\""), ("kind", kind), meant))
}

/// Whether a fault stands whatever takes the place of an object's placeholders: a field that is not known, or
/// a value of a wrong type that holds none of them.
fn is_beside_placeholders(object: &Object, fault: &ApiRefusal) -> bool {
    let is_plain = |field: &FieldPath| {
        field.get(object.value()).is_some_and(|value| !placeholders::has_placeholder(value))
    };
    let is_of_field = matches!(fault.cause, RefusalCause::UnknownField(_)) || fault.cause.is_json_type();
    // A placeholder is a text, and what could not be read is none.
    let is_no_text = fault.cause.type_mismatch().is_some_and(|it| it.found != "string");
    // A text with words beside its placeholder stays a text.
    let has_plain_words = |field: &FieldPath| {
        let text = field.get(object.value()).and_then(Value::as_str).filter(|text| !text.contains("{{"));
        text.is_some_and(|text| text.split_whitespace().filter(|word| !placeholders::is_in(word)).count() > 1)
    };
    is_no_text || is_of_field && (is_plain(&fault.field) || has_plain_words(&fault.field))
}

/// Whether a selector and its template do not fit, which no value of a placeholder could mend.
fn is_of_selector(cause: &RefusalCause) -> bool {
    cause.rule() == Some(&FieldRule::SelectorMatchesTemplate)
}

/// Whether what is refused is a variable or a directive: `$HOST`, `$patch`.
fn is_of_variable(cause: &RefusalCause) -> bool {
    match cause {
        RefusalCause::UnknownField(field) => field.starts_with('$'),
        RefusalCause::Invalid(error) => {
            error.value.as_ref().is_some_and(|value| value.to_string().contains("\"$"))
        }
        RefusalCause::Undecodable(_) | RefusalCause::UnservedKind => false,
    }
}

/// Whether what is refused is a sentence for people in place of a name: `<domain>, please fill in`.
fn is_prose(cause: &RefusalCause) -> bool {
    cause.refused_text().is_some_and(|value| !value.is_ascii() && value.contains(' '))
}

/// Whether what is refused has a variable in it, which `envsubst` or the like fills in:
/// `api.$CLUSTER_DOMAIN`.
fn has_variable(cause: &RefusalCause) -> bool {
    const SHORTEST: usize = 3;
    let mut names = cause.refused_text().into_iter().flat_map(|value| value.split('$').skip(1));
    names.any(|rest| {
        let is_name = |c: &char| c.is_ascii_uppercase() || c.is_ascii_digit() || *c == '_';
        rest.starts_with(|c: char| c.is_ascii_uppercase())
            && rest.chars().take_while(is_name).count() >= SHORTEST
    })
}

/// Whether what is refused stands for something else: `APPNAME`, `STORAGE_CLASS`, `<app>-api`,
/// `$DNS_ADDRESS`, `your_domain`.
fn is_stand_in(cause: &RefusalCause) -> bool {
    let Some(value) = cause.refused_text() else { return false };
    let mut constants = value.split(|c: char| !(c.is_ascii_uppercase() || c == '_'));
    let brackets = value.split_once('<').and_then(|(_, rest)| rest.split_once('>'));
    let is_constant =
        |name: &str| name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    let is_of_words = |name: &str| name.split('_').filter(|word| word.len() > 1).count() > 1;
    let mut words = value.split(|c: char| !c.is_ascii_alphanumeric());
    constants.any(|word| word.ends_with("NAME") || is_of_words(word))
        || words.any(|word| matches!(word, "your" | "YOUR"))
        || value.strip_prefix('$').is_some_and(|name| !name.is_empty() && is_constant(name))
        || brackets.is_some_and(|(name, _)| !name.is_empty())
}

/// Whether the repository turns on the feature that allows what is refused by default.
fn is_gated(survey: &Survey, fault: &ApiRefusal) -> bool {
    const GATES: [(&str, i64, &str); 1] = [("spec.minReplicas", 0, "HPAScaleToZero")];
    let is_refused = |field: &str, value: i64| {
        let is_it = |it: &FieldError| it.field == field && it.value == Some(value.into());
        fault.cause.field_error().is_some_and(is_it)
    };
    let mut gates = GATES.iter().filter(|(field, value, _)| is_refused(field, *value));
    let is_on = |gate: &str| {
        let forms = [format!("{gate}=true"), format!("{gate}: true"), format!("{gate} = true")];
        let has = |path: &str| {
            survey.files.text(path).is_some_and(|text| forms.iter().any(|form| text.contains(form)))
        };
        survey.files.paths().any(|path| has(path))
    };
    gates.any(|(.., gate)| is_on(gate))
}

fn built_in(object: &Object, gvk: &GroupVersionKind, ty: TypeRef<'_>) -> Vec<ApiRefusal> {
    let mut value = object.value().clone();
    let decoded = match tiphys_schema::decode(ty, &mut value) {
        Ok(decoded) => decoded,
        Err(error) => return vec![undecodable(object, gvk, error)],
    };
    let mut faults: Vec<ApiRefusal> =
        decoded.unknown_fields.iter().map(|field| unknown(gvk, field, Some(ty))).collect();
    let errors = if gvk.kind == "CustomResourceDefinition" {
        name_fully(&mut value);
        tiphys_schema::validate_crd(&value, None)
    } else {
        tiphys_schema::apply_defaults(gvk, &mut value);
        tiphys_schema::validate_create(gvk, &value)
    };
    // What a cluster's own configuration decides is not known from the repository.
    let errors = errors.iter().filter(|error| error.rule != Some(FieldRule::ClusterConfiguration));
    faults.extend(metadata(object).iter().chain(errors).map(|error| invalid(object, gvk, error)));
    faults
}

/// Fields that the pods of a Rollout do not have: its definition has those of a Deployment in their place.
fn rollout_pods(object: &Object, gvk: &GroupVersionKind) -> Vec<ApiRefusal> {
    if gvk.group != "argoproj.io" || gvk.kind != "Rollout" {
        return Vec::new();
    }
    let template = object.value()["spec"]["template"].clone();
    let mut like = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": template}});
    let Some(ty) = Catalog::latest().type_of(&like.gvk()) else { return Vec::new() };
    let Ok(decoded) = tiphys_schema::decode(ty, &mut like) else { return Vec::new() };
    let unknown = decoded.unknown_fields.iter().map(|field| unknown(gvk, field, Some(ty)));
    unknown
        .map(|mut fault| {
            fault.downgrade_to_warning();
            fault
        })
        .collect()
}

/// Fills in the names that the API server derives from the kind of a definition.
fn name_fully(definition: &mut Value) {
    let Some(names) = definition["spec"].get_mut("names").and_then(Value::as_object_mut) else { return };
    let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    for (field, name) in [("singular", kind.to_lowercase()), ("listKind", format!("{kind}List"))] {
        if names.get(field).and_then(Value::as_str).unwrap_or_default().is_empty() {
            names.insert(field.to_owned(), name.into());
        }
    }
}

fn custom(object: &Object, gvk: &GroupVersionKind, definitions: &Definitions<'_>) -> Vec<ApiRefusal> {
    let mut best: Option<Vec<ApiRefusal>> = None;
    let misnamed = unknown_metadata(object, gvk);
    for custom in definitions.schemas(object, gvk) {
        let mut value = object.value().clone();
        let mut faults: Vec<ApiRefusal> =
            custom.schema.prune(&mut value).iter().map(|field| unknown(gvk, field, None)).collect();
        keep_one_of_all(object, &value, &mut faults);
        custom.schema.apply_defaults(&mut value);
        let mut errors = custom.validate(&value);
        // What is of a wrong type is none of the values either: said once.
        let is_mistyped = |error: &&FieldError| matches!(error.rule, Some(FieldRule::JsonType { .. }));
        let mistyped: Vec<String> =
            errors.iter().filter(is_mistyped).map(|error| error.field.clone()).collect();
        errors.retain(|error| is_mistyped(&error) || !mistyped.contains(&error.field));
        if custom.is_shipped && !errors.is_empty() {
            let told: Vec<FieldPath> = told_by_others(object).collect();
            errors.retain(|error| is_mistyped(&error) || !told.iter().any(|field| is_about(error, field)));
        }
        let errors: Vec<ApiRefusal> = errors.iter().map(|error| invalid(object, gvk, error)).collect();
        // What is not even of the type that is wanted has no fields to be known.
        let mistyped: Vec<FieldPath> = mistyped.iter().map(|field| field_paths::of_api(field)).collect();
        faults.retain(|unknown| !mistyped.iter().any(|field| unknown.field.starts_with(field)));
        faults.extend(errors);
        if custom.is_shipped {
            faults.iter_mut().for_each(ApiRefusal::downgrade_to_warning);
        }
        let is_better = best.as_ref().is_none_or(|best| faults.len() < best.len());
        if is_better {
            best = Some(faults);
        }
    }
    let mut faults = best.unwrap_or_default();
    faults.extend(misnamed);
    // What another tool calls a kind need not have an object's metadata.
    if gvk.group.contains('.') {
        faults.extend(undecodable_metadata(object, gvk));
        faults.extend(metadata(object).iter().map(|error| invalid(object, gvk, error)));
    }
    faults
}

/// The fields of an object that another rule refuses, in words that say more than the limit.
fn told_by_others(object: &Object) -> impl Iterator<Item = FieldPath> {
    let refused = admission::refusals(object).into_iter().flat_map(|(_, found)| found);
    refused.map(|refusal| refusal.field).chain(c2_schedule::unreadable(object).map(|(_, field, _)| field))
}

/// Whether a limit is that of a field, or of the object or list that the field is in.
fn is_about(error: &FieldError, field: &FieldPath) -> bool {
    let limited = field_paths::of_api(&error.field);
    field.starts_with(&limited) && field.0.len() <= limited.0.len() + 1
}

/// Where a definition keeps nothing of what an object has below `spec`, the first field stands for all.
fn keep_one_of_all(object: &Object, pruned: &Value, faults: &mut Vec<ApiRefusal>) {
    let fields =
        |value: &Value| value.get("spec").and_then(Value::as_object).map_or(0, |spec| spec.iter().count());
    if fields(object.value()) < 2 || fields(pruned) > 0 || pruned.get("spec").is_none() {
        return;
    }
    let is_below = |fault: &ApiRefusal| fault.field.to_string().trim_start_matches('.').starts_with("spec.");
    let Some(first) = faults.iter().position(is_below) else { return };
    let mut at = 0..;
    faults.retain(|fault| at.next() == Some(first) || !is_below(fault));
    for fault in faults.iter_mut().filter(|fault| is_below(fault)) {
        fault.is_of_all = true;
        fault.help = Some(
            "the definition of this kind names no field below spec, so that all of them are dropped: take the definition that its project publishes".to_owned(),
        );
    }
}

/// Metadata of a wrong type, which is read in one way for all kinds.
fn undecodable_metadata(object: &Object, gvk: &GroupVersionKind) -> Option<ApiRefusal> {
    let plain = GroupVersionKind { group: String::new(), version: "v1".into(), kind: "ConfigMap".into() };
    let ty = Catalog::latest().type_of(&plain)?;
    let mut value =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": object.value().get("metadata")?});
    let error = tiphys_schema::decode(ty, &mut value).err()?;
    Some(undecodable(object, gvk, error))
}

/// Fields of the metadata that no object has; of those that are nearly right, which is meant.
fn unknown_metadata(object: &Object, gvk: &GroupVersionKind) -> Vec<ApiRefusal> {
    const KNOWN: [&str; 15] = [
        "annotations",
        "clusterName",
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "finalizers",
        "generateName",
        "generation",
        "labels",
        "managedFields",
        "name",
        "namespace",
        "ownerReferences",
        "resourceVersion",
        "selfLink",
    ];
    let fields = object.value()["metadata"].as_object().into_iter().flat_map(|map| map.keys());
    let unknown_ones = fields.filter(|field| !KNOWN.contains(&field.as_str()) && *field != "uid");
    // What another tool calls a kind need not have an object's metadata.
    let is_sent = gvk.group.contains('.');
    let fault = |field: &String| {
        let plain = unknown(gvk, &format!("metadata.{field}"), None);
        let meant = similar_names::nearest_slip(field, KNOWN.into_iter());
        match meant {
            Some(meant) => Some(ApiRefusal {
                help: Some(format!("there is a field {meant}")),
                respelling: Some((field.clone(), meant.to_owned())),
                ..plain
            }),
            // What was meant for the object's metadata stands one level too deep.
            None if field == "metadata" => {
                Some(ApiRefusal { help: Some("move its fields one level up".to_owned()), ..plain })
            }
            None => None,
        }
    };
    if is_sent { unknown_ones.filter_map(fault).collect() } else { Vec::new() }
}

fn undecodable(object: &Object, gvk: &GroupVersionKind, error: DecodeError) -> ApiRefusal {
    let GroupVersionKind { kind, version, .. } = gvk;
    let message = format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {error}");
    let cause = RefusalCause::Undecodable(error);
    let names = cause.type_mismatch().map(|it| it.names.as_slice()).unwrap_or_default();
    ApiRefusal {
        message,
        field: match &cause {
            // The API server does not say which one it is.
            RefusalCause::Undecodable(DecodeError::Quantity(_)) => {
                wrong_quantity(object.value(), &FieldPath::default(), 0).unwrap_or_default()
            }
            cause => through_lists(object.value(), names, Wanted::from_refusal(cause)),
        },
        cause,
        severity: Severity::Error,
        help: None,
        respelling: None,
        is_doubtful: false,
        is_of_all: false,
    }
}

/// The first amount of a resource that is no quantity.
fn wrong_quantity(value: &Value, path: &FieldPath, depth: usize) -> Option<FieldPath> {
    const MAX_DEPTH: usize = 32;
    const OF_AMOUNTS: [&str; 7] = ["limits", "requests", "capacity", "hard", "overhead", "min", "max"];
    if depth > MAX_DEPTH {
        return None;
    }
    let is_wrong = |amount: &Value| amount.as_str().is_some_and(|it| it.trim().parse::<Quantity>().is_err());
    match value {
        Value::Object(fields) => fields.iter().find_map(|(key, inner)| {
            let path = path.key(key);
            let amounts = inner.as_object().filter(|_| OF_AMOUNTS.contains(&key.as_str()));
            let own = amounts.and_then(|amounts| amounts.iter().find(|(_, amount)| is_wrong(amount)));
            match own {
                Some((name, _)) => Some(path.key(name)),
                None => wrong_quantity(inner, &path, depth + 1),
            }
        }),
        Value::Array(items) => {
            let mut items = items.iter().enumerate();
            items.find_map(|(at, item)| wrong_quantity(item, &path.index(at), depth + 1))
        }
        _ => None,
    }
}

/// The path of a field that Go names without positions in lists: through the first items in which it is of
/// the wrong type, or else that have it.
fn through_lists(root: &Value, names: &[String], wanted: Option<Wanted>) -> FieldPath {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let is_wrong = |value: &Value| wanted.is_none_or(|wanted| wanted.is_wrong(value));
    let wrong = descend(root, &names, &FieldPath::default(), &is_wrong);
    wrong.or_else(|| descend(root, &names, &FieldPath::default(), &|_| true)).unwrap_or_else(|| {
        let steps = (1..names.len()).rev();
        let mut found =
            steps.filter_map(|end| descend(root, &names[..end], &FieldPath::default(), &|_| true));
        found.next().unwrap_or_default()
    })
}

/// The first place that steps lead to, through any item of a list, at which a value fits.
fn descend(at: &Value, names: &[&str], path: &FieldPath, fits: &dyn Fn(&Value) -> bool) -> Option<FieldPath> {
    if let (Value::Array(items), [_, ..]) = (at, names) {
        let mut items = items.iter().enumerate();
        return items.find_map(|(index, item)| descend(item, names, &path.index(index), fits));
    }
    let Some((name, rest)) = names.split_first() else { return fits(at).then(|| path.clone()) };
    descend(at.get(*name)?, rest, &path.key(*name), fits)
}

fn unknown(gvk: &GroupVersionKind, field: &str, ty: Option<TypeRef<'_>>) -> ApiRefusal {
    let GroupVersionKind { kind, version, .. } = gvk;
    let path = field_paths::of_api(field);
    let named = ty.and_then(|ty| intended_field(ty, &path));
    let wrong = field.rsplit(['.', ']']).next().unwrap_or(field);
    ApiRefusal {
        cause: RefusalCause::UnknownField(field.to_owned()),
        message: format!(
            "{kind} in version \"{version}\" cannot be handled as a {kind}: strict decoding error: unknown field \"{field}\""
        ),
        help: named.as_ref().map(|name| format!("there is a field {name}")),
        respelling: named.map(|name| (wrong.to_owned(), name)),
        field: path,
        severity: Severity::Warning,
        is_doubtful: false,
        is_of_all: false,
    }
}

/// The field of the same type that an unknown one was meant to be.
fn intended_field(ty: TypeRef<'_>, path: &FieldPath) -> Option<String> {
    let (last, above) = path.0.split_last()?;
    let Segment::Key(name) = last else { return None };
    let mut ty = ty;
    for step in above {
        ty = match step {
            Segment::Key(key) => ty.field(key)?,
            Segment::Index(_) => ty.items()?,
        };
    }
    let known = ty.definition()?.fields.keys();
    similar_names::nearest_slip(name, known.map(String::as_str)).map(str::to_owned)
}

fn invalid(object: &Object, gvk: &GroupVersionKind, error: &FieldError) -> ApiRefusal {
    let name = tiphys_schema::quote(object.value().name());
    ApiRefusal {
        cause: RefusalCause::Invalid(error.clone()),
        message: format!("{} {name} is invalid: {error}", gvk.group_kind()),
        field: field_paths::of_api(&error.field),
        severity: Severity::Error,
        help: None,
        respelling: None,
        is_doubtful: false,
        is_of_all: false,
    }
}

/// Faults of names and labels, which are the same for every built-in kind.
fn metadata(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let metadata = &object.value()["metadata"];
    let name = object.value().name();
    if !name.is_empty() {
        let path = Path::new("metadata.name");
        errors.extend(name_faults(object, name).into_iter().map(|why| FieldError::invalid(&path, name, why)));
    }
    let path = Path::new("metadata.labels");
    for (key, value) in metadata.get("labels").and_then(Value::as_object).into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        errors.extend(
            names::qualified_name(key).into_iter().map(|why| FieldError::invalid(&path, key.as_str(), why)),
        );
        errors
            .extend(names::label_value(value).into_iter().map(|why| FieldError::invalid(&path, value, why)));
    }
    errors
}

fn name_faults(object: &Object, name: &str) -> Vec<String> {
    match (object.key.group.as_str(), object.key.kind.as_str()) {
        ("rbac.authorization.k8s.io", _) => names::path_segment(name),
        ("", "Namespace") => names::dns1123_label(name),
        ("", "Service") => names::dns1123_label(name),
        ("apiregistration.k8s.io" | "apiextensions.k8s.io", _) => Vec::new(),
        // An API server of OpenShift's own serves these, and takes other names.
        ("image.openshift.io" | "user.openshift.io" | "oauth.openshift.io", _) => Vec::new(),
        _ => names::dns1123_subdomain(name),
    }
}
