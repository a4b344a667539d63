//! `tiphys why APP/KIND/NAME [FIELD]`.

use std::collections::BTreeSet;

use anyhow::{Context as _, bail};
use tiphys_diff::mask_secret;
use tiphys_graph::{App, Options, Outcome, Survey};
use tiphys_value::{FieldPath, ObjectExt, Origin, OriginKind, RenderedObject, Value, json};

use crate::{
    output::{Format, print},
    repository::{self, Given, Repository, to_run, with_environment},
    revisions::masked_by,
};

/// Which field of which object.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Application, kind and name of the object: `shop/Deployment/cart`.
    #[arg(value_name = "APP/KIND/NAME")]
    object: String,
    /// The field, such as `.spec.replicas` or `.spec.template.spec.containers[0].image`; without it,
    /// every field is listed.
    field: Option<String>,
    /// The repository: a folder, or an address that Git takes.
    #[arg(long, default_value = ".", value_name = "PATH_OR_URL")]
    repo: String,
    /// Look at this branch, tag or commit in place of the files as they are.
    #[arg(long, alias = "rev", value_name = "REV")]
    revision: Option<String>,
    /// One of several environments that stand side by side: its name, or the end of that.
    #[arg(long, value_name = "NAME")]
    environment: Option<String>,
    /// Look for Applications in this folder of the repository only.
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    /// Fetch nothing.
    #[arg(long)]
    offline: bool,
    /// Show the values of Secrets, which are masked otherwise.
    #[arg(long)]
    show_secrets: bool,
    /// How the result is written.
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// Prints where the fields came from.
///
/// # Errors
/// There is no such Application, object or field, or the Application does not render.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let [app, kind, name] = args.object.split('/').collect::<Vec<_>>()[..] else {
        bail!("{:?} is not of the form APP/KIND/NAME", args.object);
    };
    let field: Option<FieldPath> = args.field.as_deref().map(str::parse).transpose()?;
    let repository = Repository::open(&Given {
        place: &args.repo,
        revision: args.revision.as_deref(),
        path: args.path.as_deref(),
        respect_revisions: false,
        offline: args.offline,
    })?;
    let options = Options { origins: true, ..to_run() };
    let survey = with_environment(repository.survey(options, args.environment.as_deref(), &[]))?;
    if args.environment.is_none() && survey.choices.len() > 1 {
        let environments: Vec<&str> = survey.choices.keys().map(String::as_str).collect();
        eprintln!(
            "note: several environments stand side by side, and of Applications of one name the first is told of; --environment chooses one of {}",
            environments.join(", ")
        );
    }
    let entry = survey.apps.iter().find(|it| it.name() == app);
    let entry = entry.with_context(|| not_there(app, &survey))?;
    match &entry.outcome {
        Outcome::Failed(error) => bail!("Application {app}: {error:#}"),
        Outcome::Unseen(why) if entry.objects.is_empty() => bail!("Application {app}: {why}"),
        _ => {}
    }
    let objects: Vec<&RenderedObject> = survey.objects_of(entry.id).map(|it| it.rendered.as_ref()).collect();
    let object = find(&objects, kind, name).with_context(|| {
        let known: Vec<String> =
            objects.iter().map(|o| format!("{}/{}", o.value.kind(), o.value.name())).collect();
        let known = if known.is_empty() { "nothing".to_owned() } else { known.join(", ") };
        format!("Application {app} renders no {kind}/{name}; it renders {known}")
    })?;
    let mut object = object.clone();
    if !args.show_secrets {
        let settings = survey.settings.config_maps.iter().map(|it| &it.value);
        let annotations: Vec<String> = settings.flat_map(masked_by).collect();
        mask_secret(&mut [&mut object.value], &annotations);
    }
    let object = &object;
    let (text, fields) = match field {
        Some(field) => explain(object, &field)?,
        None => list(object),
    };
    let value = json!({"application": app, "kind": object.value.kind(), "name": object.value.name(),
        "location": object.location.to_string(), "fields": fields});
    Ok(print(args.output, &text, &value)?)
}

/// Why an Application is not known: it is left out, or there is none, perhaps because something does not
/// render.
fn not_there(app: &str, survey: &Survey) -> String {
    if let Some(folder) = survey.notices.iter().find_map(|notice| notice.leaves_out(app)) {
        return format!(
            "Application {app:?} lies in {folder}, which is left out: by its name it is of tests or put away; `tiphys up --path {folder}` runs it"
        );
    }
    let known: BTreeSet<&str> = survey.apps.iter().map(App::name).collect();
    let known: Vec<&str> = known.into_iter().collect();
    let mut text = match known.is_empty() {
        true => format!("there is no Application {app:?}; none is found in the repository"),
        false => format!("there is no Application {app:?}; there is {}", known.join(", ")),
    };
    let failed = survey.apps.iter().filter_map(|app| {
        let why = match &app.outcome {
            Outcome::Failed(error) => format!("{error:#}"),
            Outcome::Unseen(why) => why.clone(),
            Outcome::Rendered | Outcome::Duplicate(_) => return None,
        };
        Some(format!("Application {} does not render, and may lead to it: {why}", app.name()))
    });
    let sets = survey.sets.iter().filter_map(|set| {
        let (fault, name) = (set.fault.as_ref().or(set.partly.as_ref())?, set.declared.value.name());
        Some(format!("not all that ApplicationSet {name} yields is known: {fault}"))
    });
    let notices = repository::notices(survey).into_iter().chain(repository::faults(survey));
    for note in failed.chain(sets).chain(notices) {
        text.push_str(&format!("\nnote: {note}"));
    }
    text
}

fn find<'a>(objects: &[&'a RenderedObject], kind: &str, name: &str) -> Option<&'a RenderedObject> {
    objects.iter().copied().find(|o| o.value.kind().eq_ignore_ascii_case(kind) && o.value.name() == name)
}

/// One field: its value and the whole chain of writers.
fn explain(object: &RenderedObject, field: &FieldPath) -> anyhow::Result<(String, Vec<Value>)> {
    let value = field.get(&object.value).with_context(|| {
        let (kind, name) = (object.value.kind(), object.value.name());
        format!("{kind}/{name} has no field {field}{}", what_there_is(&object.value, field))
    })?;
    let chain = object.origins.lookup(field);
    let mut text = format!("{field} = {}\n", value_line(value));
    if chain.is_empty() {
        text.push_str(&format!(
            "  nothing is known of where it came from; the object starts at {}\n",
            object.location
        ));
    }
    for origin in chain {
        text.push_str(&format!("  {}\n", described(origin)));
    }
    Ok((text, vec![field_json(field, value, chain)]))
}

/// What stands where a field was looked for.
fn what_there_is(object: &Value, field: &FieldPath) -> String {
    let above = (0..field.0.len()).rev().map(|end| FieldPath(field.0[..end].to_vec()));
    let there = above.into_iter().find_map(|path| Some((path.get(object)?, path)));
    let Some((value, path)) = there else { return String::new() };
    let place = if path.0.is_empty() { "it".to_owned() } else { path.to_string() };
    match value {
        Value::Object(map) if !map.is_empty() => {
            format!("; {place} has {}", map.keys().map(String::as_str).collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) if !items.is_empty() => format!("; {place} has {} items", items.len()),
        value => format!("; {place} is {}", value_line(value)),
    }
}

/// Every leaf with its last writer.
fn list(object: &RenderedObject) -> (String, Vec<Value>) {
    let (mut text, mut fields) = (String::new(), Vec::new());
    for path in FieldPath::leaves(&object.value) {
        let value = path.get(&object.value).unwrap_or(&Value::Null);
        let chain = object.origins.lookup(&path);
        let origin = chain.first().map_or_else(|| object.location.to_string(), described);
        text.push_str(&format!("{path} = {}\n  {origin}\n", value_line(value)));
        fields.push(field_json(&path, value, chain));
    }
    (text, fields)
}

/// A field and its writers, the last one first, for programs.
fn field_json(path: &FieldPath, value: &Value, chain: &[Origin]) -> Value {
    json!({"path": path.to_string(), "value": value, "origins": chain})
}

/// A value on one line.
fn value_line(value: &Value) -> String {
    const LONGEST: usize = 100;
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn described(origin: &Origin) -> String {
    let what = match origin.kind {
        OriginKind::Manifest => "written in",
        OriginKind::Template => "by template",
        OriginKind::Include => "included from",
        OriginKind::Values => "from value",
        OriginKind::Patch => "by patch",
        OriginKind::Generator => "by generator",
        OriginKind::Transformer => "by transformer",
        OriginKind::Application => "by the Application's",
        OriginKind::Engine => "by tiphys:",
    };
    let detail = if origin.detail.is_empty() { String::new() } else { format!(" {}", origin.detail) };
    let place = origin.location.to_string();
    match (detail.is_empty(), place.is_empty()) {
        (_, true) => format!("{what}{detail}"),
        (true, false) => format!("{what} {place}"),
        (false, false) => format!("{what}{detail} at {place}"),
    }
}
