//! `tiphys health FILE…`.

use std::path::PathBuf;

use serde_json::{Value, json};
use tiphys_health::{Assessment, RuleOrigin, Rules};
use tiphys_model::HealthCode;
use tiphys_value::ObjectExt;

use crate::{
    dump,
    exit::{Reported, WrongUse},
    output::{Format, one_line, print, table},
    settings,
};

/// Tell the health of every object given, as the engine would judge it
///
/// Objects come from `kubectl get -o yaml` or `-o json`, or from any file that holds them with their
/// status. A kind that no rule is known of has no health, and counts as done.
///
/// Exit codes: 0 every object that has a health is Healthy or Suspended; 1 some object is not; 2 a file
/// cannot be read.
///
/// Examples:
///   kubectl get deployments,pods -A -o yaml | tiphys health -
///   tiphys health dump/ --output json
///   tiphys health certificate.yaml --settings argocd-cm.yaml
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Files or folders with objects; - is the standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// A file with the ConfigMap argocd-cm, whose Lua comes before the built-in rules.
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
    /// Judge as Argo CD does where Tiphys differs on purpose.
    #[arg(long)]
    compat: bool,
    /// How the result is written.
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// Prints the health of every object.
///
/// # Errors
/// A file cannot be read, or some object is not healthy.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let rules = settings::rules(&settings::read(args.settings.as_deref())?, args.compat);
    let mut judged = Vec::new();
    for file in &args.files {
        let objects = dump::read(file).map_err(|error| WrongUse(format!("{error:#}")))?;
        judged.extend(objects.into_iter().map(|object| judge(&rules, object)));
    }
    let rows: Vec<[String; 5]> = judged.iter().map(row).collect();
    let values: Vec<Value> = judged.iter().map(value).collect();
    print(
        args.output,
        &table(["KIND", "NAMESPACE", "NAME", "HEALTH", "MESSAGE"], &rows),
        &Value::Array(values),
    )?;
    let is_bad = |(_, assessment): &(Value, Assessment)| {
        let health = assessment.health.as_ref();
        health.is_some_and(|health| !matches!(health.status, HealthCode::Healthy | HealthCode::Suspended))
    };
    if judged.iter().any(is_bad) { Err(Reported.into()) } else { Ok(()) }
}

fn judge(rules: &Rules, object: Value) -> (Value, Assessment) {
    let assessment = rules.judge(&object);
    (object, assessment)
}

fn row((object, assessment): &(Value, Assessment)) -> [String; 5] {
    let health = assessment.health.as_ref();
    [
        object.kind().to_owned(),
        object.namespace().to_owned(),
        object.name().to_owned(),
        health.map_or("-", |health| health.status.as_str()).to_owned(),
        health.map(|health| one_line(&health.message)).unwrap_or_default(),
    ]
}

fn value((object, assessment): &(Value, Assessment)) -> Value {
    let health = assessment.health.as_ref();
    let rule = match &assessment.origin {
        RuleOrigin::Deletion => json!("deletion"),
        RuleOrigin::User { key } => json!(key),
        RuleOrigin::BuiltIn => json!("built-in"),
        RuleOrigin::Unattended | RuleOrigin::None => Value::Null,
    };
    json!({
        "apiVersion": object.api_version(),
        "kind": object.kind(),
        "namespace": object.namespace(),
        "name": object.name(),
        "status": health.map(|health| health.status.as_str()),
        "message": health.map(|health| health.message.as_str()),
        "rule": rule,
    })
}
