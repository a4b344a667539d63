//! Generators and transformers configured in files of their own, with the builtin kinds.

use std::{borrow::Cow, collections::BTreeMap};

use serde::Deserialize;
use tiphys_value::{Location, OriginKind};

use tiphys_gocompat::strconv::quote;

use crate::{
    context::Context,
    error::{Error, Result},
    functions::{self, Function},
    generate::{DataKind, HelmGenerator, IamPolicy},
    json_patch::JsonPatch,
    kustomization::{
        from_conformed,
        go_json::{Misfit, Mode, conform_noting},
        model::{
            FieldSpec, GeneratorArgs, HelmChart, HelmGlobals, Image, Patch, ReplacementField, Replica,
            Selector,
        },
        types,
    },
    loader::Loader,
    name_advice::one_of,
    node::to_json,
    provenance::Provenance,
    resource::Resource,
    resource_map::ResourceMap,
    transform::{
        Affix, Affixes, Annotations, Configured, ImageTag, JsonPatches, Labels, NamespaceTransformer,
        PatchText, Patches, Replacements, Replicas, StrategicPatches, SubjectMode, Transformer, ValueAdd,
        ValueAddTarget, add_hashes,
    },
};

/// What a generator makes.
pub(crate) enum Generator<'a> {
    Data(DataKind, GeneratorArgs),
    Helm(Box<HelmGenerator>),
    Iam(IamPolicy),
    Function(Box<Function<'a>>),
}

/// A generator with what configured it.
pub(crate) struct ConfiguredGenerator<'a> {
    pub generator: Generator<'a>,
    pub provenance: Option<Provenance>,
    pub location: Location,
    pub writer: u32,
}

/// Kinds of builtin generators.
const GENERATORS: [&str; 4] =
    ["ConfigMapGenerator", "SecretGenerator", "HelmChartInflationGenerator", "IAMPolicyGenerator"];

/// Kinds of builtin transformers.
const TRANSFORMERS: [&str; 14] = [
    "AnnotationsTransformer",
    "HashTransformer",
    "ImageTagTransformer",
    "LabelTransformer",
    "NamespaceTransformer",
    "PatchJson6902Transformer",
    "PatchStrategicMergeTransformer",
    "PatchTransformer",
    "PrefixSuffixTransformer",
    "PrefixTransformer",
    "SuffixTransformer",
    "ReplacementTransformer",
    "ReplicaCountTransformer",
    "ValueAddTransformer",
];

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
    namespace: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AddTarget {
    selector: Option<Selector>,
    field_path: String,
    file_path_position: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Service {
    name: String,
    namespace: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Account {
    name: String,
    project_id: String,
}

/// The fields of all builtin plugins together.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Config {
    metadata: Metadata,
    annotations: BTreeMap<String, String>,
    labels: BTreeMap<String, String>,
    field_specs: Option<Vec<FieldSpec>>,
    image_tag: Image,
    unset_only: bool,
    set_role_binding_subjects: String,
    target: Option<Selector>,
    path: String,
    json_op: String,
    patch: String,
    paths: Vec<String>,
    patches: String,
    prefix: String,
    suffix: String,
    replica: Replica,
    replacements: Vec<ReplacementField>,
    value: String,
    targets: Vec<AddTarget>,
    target_file_path: String,
    cloud: String,
    kubernetes_service: Service,
    service_account: Account,
}

/// Reads plugin configurations as generators.
///
/// # Errors
/// Plugins that are no builtin generators, configurations that do not fit.
pub(crate) fn generators<'a>(
    configs: &[Resource],
    loader: &Loader<'a>,
    context: &mut Context<'_>,
) -> Result<Vec<ConfiguredGenerator<'a>>> {
    configs
        .iter()
        .map(|config| {
            generator(config, loader, context).map_err(|error| {
                error.context("failed to load generator").located_at(Some(config.location.clone()))
            })
        })
        .collect()
}

fn generator<'a>(
    config: &Resource,
    loader: &Loader<'a>,
    context: &mut Context<'_>,
) -> Result<ConfiguredGenerator<'a>> {
    let location = config.location.clone();
    let Some(kind) = builtin_kind(config)? else {
        let generator = Generator::Function(Box::new(functions::load(config, loader, context)?));
        let kind = config.gvk().kind;
        let writer =
            context.tracker.writer(OriginKind::Generator, &location.file, &format!("function {kind}"));
        let provenance = Provenance::of_plugin(&config.node);
        return Ok(ConfiguredGenerator { generator, provenance, location, writer });
    };
    if TRANSFORMERS.contains(&kind.as_str()) {
        return Err(Error::transform(format!("plugin {} not a generator", config.original_id())));
    }
    let mut read = || -> Result<Generator<'a>> {
        let value = to_json(&config.node).map_err(Error::transform)?;
        let value = lenient(&kind, &value, &config.location, context)?;
        let fields: Config = from_conformed(&value)?;
        match kind.as_str() {
            "ConfigMapGenerator" | "SecretGenerator" => {
                let mut args: GeneratorArgs = from_conformed(&value)?;
                if args.name.is_empty() {
                    args.name = fields.metadata.name;
                }
                if args.namespace.is_empty() {
                    args.namespace = fields.metadata.namespace;
                }
                let kind = if kind == "SecretGenerator" { DataKind::Secret } else { DataKind::ConfigMap };
                Ok(Generator::Data(kind, args))
            }
            "IAMPolicyGenerator" => Ok(Generator::Iam(IamPolicy {
                cloud: fields.cloud,
                service_name: fields.kubernetes_service.name,
                service_namespace: fields.kubernetes_service.namespace,
                account_name: fields.service_account.name,
                project_id: fields.service_account.project_id,
            })),
            _ => {
                let chart: HelmChart = from_conformed(&value)?;
                let globals: HelmGlobals = from_conformed(&value)?;
                let helm = HelmGenerator { chart, globals };
                helm.check(loader, context)?;
                Ok(Generator::Helm(Box::new(helm)))
            }
        }
    };
    let generator = read().map_err(|error| fails_configuration(error, config))?;
    let writer = context.tracker.writer(OriginKind::Generator, &location.file, &kind);
    Ok(ConfiguredGenerator { generator, provenance: Provenance::of_plugin(&config.node), location, writer })
}

/// Reads plugin configurations as transformers.
///
/// # Errors
/// Plugins that are no builtin transformers, configurations that do not fit.
pub(crate) fn transformers<'a>(
    configs: &[Resource],
    loader: &Loader<'a>,
    context: &mut Context<'_>,
) -> Result<Vec<Configured<'a>>> {
    configs
        .iter()
        .map(|config| {
            transformer(config, loader, context)
                .map_err(|error| error.located_at(Some(config.location.clone())))
        })
        .collect()
}

fn transformer<'a>(
    config: &Resource,
    loader: &Loader<'a>,
    context: &mut Context<'_>,
) -> Result<Configured<'a>> {
    let Some(kind) = builtin_kind(config)? else {
        let transformer = Box::new(functions::load(config, loader, context)?);
        let location = config.location.clone();
        let detail = format!("function {}", config.gvk().kind);
        let writer = context.tracker.writer(OriginKind::Transformer, &location.file, &detail);
        return Ok(Configured {
            transformer,
            provenance: Provenance::of_plugin(&config.node),
            writer,
            location,
        });
    };
    if GENERATORS.contains(&kind.as_str()) {
        return Err(Error::transform(format!("plugin {} not a transformer", config.original_id())));
    }
    let location = config.location.clone();
    let writer = context.tracker.writer(OriginKind::Transformer, &location.file, &kind);
    let transformer = make_transformer(&kind, config, loader, context, writer)
        .map_err(|error| fails_configuration(error, config))?;
    Ok(Configured { transformer, provenance: Provenance::of_plugin(&config.node), writer, location })
}

fn fails_configuration(error: Error, config: &Resource) -> Error {
    error.context(format!("plugin {} fails configuration", config.original_id()))
}

/// The kind of a builtin plugin; `None` of a function or other plugin.
///
/// # Errors
/// A builtin that there is not.
fn builtin_kind(config: &Resource) -> Result<Option<String>> {
    let gvk = config.gvk();
    let known = GENERATORS.iter().chain(&TRANSFORMERS).any(|kind| *kind == gvk.kind);
    if config.node.api_version() == "builtin" {
        return if known {
            Ok(Some(gvk.kind.to_string()))
        } else {
            let kinds = GENERATORS.iter().chain(&TRANSFORMERS).copied();
            Err(Error::transform(format!("unable to load builtin {gvk}")).advise(one_of(&gvk.kind, kinds)))
        };
    }
    Ok(None)
}

fn lenient(
    kind: &str,
    value: &serde_json::Value,
    place: &Location,
    context: &mut Context<'_>,
) -> Result<serde_json::Value> {
    let mut unknown = Vec::new();
    let object = match kind {
        "ConfigMapGenerator" => &types::CONFIG_MAP_PLUGIN,
        "SecretGenerator" => &types::SECRET_PLUGIN,
        "HelmChartInflationGenerator" => &types::HELM_PLUGIN,
        _ => &types::PLUGIN,
    };
    // These two are read by another library.
    let mode =
        if matches!(kind, "PrefixTransformer" | "SuffixTransformer") { Mode::Yaml } else { Mode::Lenient };
    let read = conform_noting(value, object, mode, &mut unknown).map_err(|misfit| {
        Error::transform(format!("error unmarshaling JSON: while decoding JSON: {}", misfit.message))
    })?;
    warn_unknown(&unknown, place, context);
    Ok(read)
}

/// Kustomize drops unknown fields of plugins and replacements silently.
fn warn_unknown(unknown: &[Misfit], place: &Location, context: &mut Context<'_>) {
    for misfit in unknown {
        // Its own object metadata is nobody's business.
        let field = misfit.path.join(".");
        if matches!(field.as_str(), "apiVersion" | "kind") || field.starts_with("metadata.") {
            continue;
        }
        let advice = misfit.nearest.map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default();
        context.warnings.push(format!("# Warning: {place}: the field `{field}` is not known{advice}"));
    }
}

fn make_transformer(
    kind: &str,
    config: &Resource,
    loader: &Loader<'_>,
    context: &mut Context<'_>,
    writer: u32,
) -> Result<Box<dyn Transformer>> {
    let value = to_json(&config.node).map_err(Error::transform)?;
    let value = lenient(kind, &value, &config.location, context)?;
    let fields: Config = from_conformed(&value)?;
    let file = config.location.file.to_string();
    let specs = fields.field_specs.clone().unwrap_or_default();
    let inline = |text: &str| PatchText { text: text.to_owned(), file: file.clone(), line_offset: 0, writer };
    Ok(match kind {
        "AnnotationsTransformer" => Box::new(Annotations { annotations: fields.annotations, specs }),
        "LabelTransformer" => Box::new(Labels { labels: fields.labels, specs }),
        "HashTransformer" => Box::new(Hashes),
        "ImageTagTransformer" => Box::new(ImageTag { image: fields.image_tag, specs }),
        "ReplicaCountTransformer" => Box::new(Replicas { replica: fields.replica, specs }),
        "NamespaceTransformer" => Box::new(NamespaceTransformer {
            namespace: fields.metadata.namespace,
            specs,
            unset_only: fields.unset_only,
            subjects: SubjectMode::parse(&fields.set_role_binding_subjects)?,
        }),
        "PrefixTransformer" | "SuffixTransformer" | "PrefixSuffixTransformer" => affixes(kind, fields)?,
        "ReplacementTransformer" => Box::new(load_replacements(&fields.replacements, loader, context)?),
        "PatchTransformer" => {
            let patch: Patch = from_conformed(&value)?;
            Box::new(load_patch(&patch, &inline(patch.patch.trim()), loader, context)?)
        }
        "PatchJson6902Transformer" => {
            let text = inline(&fields.json_op);
            Box::new(load_json_patch(fields.target.as_ref(), &fields.path, text, loader, context)?)
        }
        "PatchStrategicMergeTransformer" => {
            let mut patches = Vec::new();
            if fields.paths.is_empty() && fields.patches.is_empty() {
                return Err(Error::transform("empty file path and empty patch content"));
            }
            for path in &fields.paths {
                patches.extend(strategic_patch(path, &inline(path), loader, context)?);
            }
            if !fields.patches.is_empty() {
                patches.extend(inline(&fields.patches).objects(context)?);
            }
            Box::new(strategic(patches, &fields.paths, &fields.patches)?)
        }
        _ => value_add(fields, loader, context)?,
    })
}

struct Hashes;

impl Transformer for Hashes {
    fn transform(&self, objects: &mut ResourceMap, _: &mut Context<'_>) -> Result<()> {
        add_hashes(objects)
    }
}

/// Several transformers as one.
struct Both(Vec<Affixes>);

impl Transformer for Both {
    fn transform(&self, objects: &mut ResourceMap, context: &mut Context<'_>) -> Result<()> {
        self.0.iter().try_for_each(|affixes| affixes.transform(objects, context))
    }
}

fn affixes(kind: &str, fields: Config) -> Result<Box<dyn Transformer>> {
    let Some(specs) = fields.field_specs else {
        return Err(Error::transform("fieldSpecs is not expected to be nil"));
    };
    let mut list = Vec::new();
    if kind != "SuffixTransformer" {
        list.push(Affixes { end: Affix::Prefix, text: fields.prefix, specs: specs.clone() });
    }
    if kind != "PrefixTransformer" {
        list.push(Affixes { end: Affix::Suffix, text: fields.suffix, specs });
    }
    Ok(Box::new(Both(list)))
}

fn value_add(fields: Config, loader: &Loader<'_>, context: &mut Context<'_>) -> Result<Box<dyn Transformer>> {
    let mut value = fields.value.trim().to_owned();
    if value.is_empty() {
        let root = loader.root();
        value = root.rsplit('/').next().unwrap_or_default().to_owned();
    }
    let mut targets = fields.targets;
    if !fields.target_file_path.is_empty() {
        let bytes = loader.load(&fields.target_file_path)?;
        let text = String::from_utf8_lossy(&bytes);
        let file = tiphys_yaml::from_yaml(&text).map_err(|error| Error::transform(error.to_string()))?;
        let place = Location::new(loader.file_name(&fields.target_file_path), 0, 0);
        let file: Config = from_conformed(&lenient("ValueAddTransformer", &file, &place, context)?)?;
        targets.extend(file.targets);
    }
    if targets.is_empty() {
        return Err(Error::transform("must specify at least one target"));
    }
    let target = |target: AddTarget| -> Result<ValueAddTarget> {
        if target.field_path.is_empty() {
            return Err(Error::transform("fieldPath cannot be empty"));
        }
        let position = usize::try_from(target.file_path_position).map_err(|_| {
            Error::transform(format!(
                "value of FilePathPosition ({}) cannot be negative",
                target.file_path_position
            ))
        })?;
        Ok(ValueAddTarget { selector: target.selector, field_path: target.field_path, position })
    };
    let targets = targets.into_iter().map(target).collect::<Result<_>>()?;
    Ok(Box::new(ValueAdd { value, targets }))
}

/// Reads a file as text: UTF-16 where its byte order mark says so; bytes that are no text are replaced.
fn load_text(loader: &Loader<'_>, path: &str) -> Result<String> {
    let bytes = loader.load(path)?;
    let decoded = tiphys_yaml::decode_text(&bytes).ok();
    Ok(decoded.unwrap_or_else(|| String::from_utf8_lossy(&bytes)).into_owned())
}

/// The text of a patch file.
fn file_patch(loader: &Loader<'_>, path: &str, context: &mut Context<'_>) -> Result<PatchText> {
    let text = load_text(loader, path)?;
    let file = loader.file_name(path);
    let writer = context.tracker.writer(OriginKind::Patch, &file, "");
    Ok(PatchText { text, file, line_offset: 0, writer })
}

/// An entry of `patches`: inline text, or a file.
///
/// # Errors
/// Neither or both given, a file that cannot be read, a text that is no patch.
pub(crate) fn load_patch(
    patch: &Patch,
    inline: &PatchText,
    loader: &Loader<'_>,
    context: &mut Context<'_>,
) -> Result<Patches> {
    let config = || tiphys_yaml::to_yaml(&serde_json::to_value(patch).unwrap_or_default());
    let (target, options) = (patch.target.as_ref(), patch.options);
    match (inline.text.is_empty(), patch.path.is_empty()) {
        (true, true) => Err(Error::transform(format!("must specify one of patch and path in\n{}", config()))),
        (false, false) => {
            Err(Error::transform(format!("patch and path can't be set at the same time\n{}", config())))
        }
        (false, true) => {
            let source = format!("[patch: {}]", quote(&inline.text));
            Patches::new(inline, source, target, options, context)
        }
        (true, false) => {
            let text = file_patch(loader, &patch.path, context).map_err(|error| {
                error.context(format!("failed to get the patch file from path({})", patch.path))
            })?;
            Patches::new(&text, format!("[path: {}]", quote(&patch.path)), target, options, context)
        }
    }
}

/// An entry of `patchesJson6902`.
///
/// # Errors
/// No target name, neither or both of path and operations, a text that is no JSON patch.
pub(crate) fn load_json_patch(
    target: Option<&Selector>,
    path: &str,
    inline: PatchText,
    loader: &Loader<'_>,
    context: &mut Context<'_>,
) -> Result<JsonPatches> {
    let Some(target) = target.filter(|target| !target.name.is_empty()) else {
        return Err(Error::transform("must specify the target name"));
    };
    let text = match (path.is_empty(), inline.text.is_empty()) {
        (true, true) => return Err(Error::transform("empty file path and empty jsonOp")),
        (false, false) => return Err(Error::transform("must specify a file path or jsonOp, not both")),
        (true, false) => inline,
        (false, true) => file_patch(loader, path, context)?,
    };
    if text.text.is_empty() {
        return Err(Error::transform(format!("patch file '{path}' empty seems to be empty")));
    }
    let patch = JsonPatch::parse(&text.text).map_err(|error| {
        Error::transform(format!("decoding {}: {error}", as_json(&text.text)))
            .located_at(Some(Location::new(text.file.as_str(), text.line_offset + 1, 0)))
    })?;
    if patch.len() == 0 {
        return Err(Error::transform(format!(
            "patch appears to be empty; file={path}, JsonOp={}",
            text.text
        )));
    }
    Ok(JsonPatches { places: text.places(context), patch, target: target.clone() })
}

/// The text of operations as kustomize shows it: what does not begin as a list of JSON was converted from
/// YAML.
fn as_json(text: &str) -> Cow<'_, str> {
    match tiphys_yaml::from_yaml(text) {
        Ok(value) if !text.starts_with('[') => value.to_string().into(),
        _ => text.into(),
    }
}

/// An entry of `patchesStrategicMerge`: inline text if it is objects, else a file.
///
/// # Errors
/// A file that cannot be read, or is no objects.
pub(crate) fn strategic_patch(
    entry: &str,
    inline: &PatchText,
    loader: &Loader<'_>,
    context: &mut Context<'_>,
) -> Result<Vec<Resource>> {
    if let Ok(objects) = inline.objects(context) {
        return Ok(objects);
    }
    let text = file_patch(loader, entry, context)?;
    text.objects(context).map_err(|error| in_file(error, entry))
}

/// Names the file in errors of the YAML parser, as kustomize does.
pub(crate) fn in_file(error: Error, path: &str) -> Error {
    if error.to_string().contains("MalformedYAMLError") {
        return error.reword(|text| format!("{text} in File: {path}"));
    }
    error
}

/// `patchesStrategicMerge` with at least one patch.
///
/// # Errors
/// No patch at all.
pub(crate) fn strategic(patches: Vec<Resource>, paths: &[String], inline: &str) -> Result<StrategicPatches> {
    if patches.is_empty() {
        let message = format!("patch appears to be empty; files=[{}], Patch={inline}", paths.join(" "));
        return Err(Error::transform(message));
    }
    Ok(StrategicPatches { patches })
}

/// Replacements, those in files read.
///
/// # Errors
/// Path and inline fields together, files that cannot be read or hold something else.
pub(crate) fn load_replacements(
    fields: &[ReplacementField],
    loader: &Loader<'_>,
    context: &mut Context<'_>,
) -> Result<Replacements> {
    let mut replacements = Vec::new();
    for field in fields {
        let has_targets = field.targets.as_ref().is_some_and(|targets| !targets.is_empty());
        if field.path.is_empty() {
            replacements.push(field.clone());
            continue;
        }
        if field.source.is_some() || has_targets {
            return Err(Error::transform("cannot specify both path and inline replacement"));
        }
        let text = load_text(loader, &field.path)?;
        let place = Location::new(loader.file_name(&field.path), 0, 0);
        let value = tiphys_yaml::from_yaml(&text).map_err(|error| {
            Error::transform(format!("error converting YAML to JSON: {error}"))
                .located_at(Some(place.clone()))
        })?;
        let items = match value {
            serde_json::Value::Array(items) => items,
            object @ serde_json::Value::Object(_) => vec![object],
            _ => {
                return Err(Error::transform(
                    "unsupported replacement type encountered within replacement path: invalid",
                )
                .located_at(Some(place)));
            }
        };
        for item in items {
            let mut unknown = Vec::new();
            let item = conform_noting(&item, &types::REPLACEMENT, Mode::Lenient, &mut unknown)
                .map_err(|misfit| Error::transform(misfit.message).located_at(Some(place.clone())))?;
            warn_unknown(&unknown, &place, context);
            replacements.push(from_conformed(&item)?);
        }
    }
    Ok(Replacements { replacements })
}
