//! The fields of a kustomization, as Go declares them, for [`conform`](super::go_json::conform).

use super::go_json::{Field, Object, Type};

const fn text(name: &'static str) -> Field {
    Field { name, inside: "", of: &Type::Text }
}

const fn flag(name: &'static str) -> Field {
    Field { name, inside: "", of: &Type::Bool }
}

const fn typed(name: &'static str, of: &'static Type) -> Field {
    Field { name, inside: "", of }
}

const fn inside(inside: &'static str, name: &'static str, of: &'static Type) -> Field {
    Field { name, inside, of }
}

static TEXTS: Type = Type::List(&Type::Text);

static METADATA: Object = Object {
    name: "ObjectMeta",
    fields: &[
        text("name"),
        text("namespace"),
        typed("labels", &Type::TextMap),
        typed("annotations", &Type::TextMap),
    ],
};

static SELECTOR: Object = Object {
    name: "Selector",
    fields: &[
        inside("ResId.Gvk.", "group", &Type::Text),
        inside("ResId.Gvk.", "version", &Type::Text),
        inside("ResId.Gvk.", "kind", &Type::Text),
        inside("ResId.", "name", &Type::Text),
        inside("ResId.", "namespace", &Type::Text),
        text("annotationSelector"),
        text("labelSelector"),
    ],
};

static PATCH_OPTIONS: Object =
    Object { name: "PatchArgs", fields: &[flag("allowNameChange"), flag("allowKindChange")] };

/// An entry of `patches` and `patchesJson6902`.
pub(crate) static PATCH: Object = Object {
    name: "Patch",
    fields: &[
        text("path"),
        text("patch"),
        typed("target", &Type::Object(&SELECTOR)),
        typed("options", &Type::Object(&PATCH_OPTIONS)),
    ],
};

static IMAGE: Object = Object {
    name: "Image",
    fields: &[text("name"), text("newName"), text("tagSuffix"), text("newTag"), text("digest")],
};

static REPLICA: Object =
    Object { name: "Replica", fields: &[text("name"), typed("count", &Type::Int("int64"))] };

static FIELD_SPEC: Object = Object {
    name: "FieldSpec",
    fields: &[
        inside("Gvk.", "group", &Type::Text),
        inside("Gvk.", "version", &Type::Text),
        inside("Gvk.", "kind", &Type::Text),
        text("path"),
        flag("create"),
    ],
};

static FIELD_SPECS: Type = Type::List(&Type::Object(&FIELD_SPEC));

static LABEL: Object = Object {
    name: "Label",
    fields: &[
        typed("pairs", &Type::TextMap),
        flag("includeSelectors"),
        flag("includeTemplates"),
        typed("fields", &FIELD_SPECS),
    ],
};

static GENERATOR_OPTIONS: Object = Object {
    name: "GeneratorOptions",
    fields: &[
        typed("labels", &Type::TextMap),
        typed("annotations", &Type::TextMap),
        flag("disableNameSuffixHash"),
        flag("immutable"),
    ],
};

macro_rules! generator_fields {
    ($($more:expr),*) => {
        &[
            inside("GeneratorArgs.", "namespace", &Type::Text),
            inside("GeneratorArgs.", "name", &Type::Text),
            inside("GeneratorArgs.", "behavior", &Type::Text),
            inside("GeneratorArgs.KvPairSources.", "literals", &TEXTS),
            inside("GeneratorArgs.KvPairSources.", "files", &TEXTS),
            inside("GeneratorArgs.KvPairSources.", "envs", &TEXTS),
            inside("GeneratorArgs.KvPairSources.", "env", &Type::Text),
            inside("GeneratorArgs.", "options", &Type::Object(&GENERATOR_OPTIONS)),
            $($more),*
        ]
    };
}

static CONFIG_MAP: Object = Object { name: "ConfigMapArgs", fields: generator_fields!() };
static SECRET: Object = Object { name: "SecretArgs", fields: generator_fields!(text("type")) };

static FIELD_OPTIONS: Object = Object {
    name: "FieldOptions",
    fields: &[text("delimiter"), typed("index", &Type::Int("int")), text("encoding"), flag("create")],
};

static SOURCE: Object = Object {
    name: "SourceSelector",
    fields: &[
        inside("ResId.Gvk.", "group", &Type::Text),
        inside("ResId.Gvk.", "version", &Type::Text),
        inside("ResId.Gvk.", "kind", &Type::Text),
        inside("ResId.", "name", &Type::Text),
        inside("ResId.", "namespace", &Type::Text),
        text("fieldPath"),
        typed("options", &Type::Object(&FIELD_OPTIONS)),
    ],
};

static TARGET: Object = Object {
    name: "TargetSelector",
    fields: &[
        typed("select", &Type::Object(&SELECTOR)),
        typed("reject", &Type::List(&Type::Object(&SELECTOR))),
        typed("fieldPaths", &TEXTS),
        typed("options", &Type::Object(&FIELD_OPTIONS)),
    ],
};

/// An entry of `replacements`, or of a file that one names.
pub(crate) static REPLACEMENT: Object = Object {
    name: "ReplacementField",
    fields: &[
        inside("Replacement.", "source", &Type::Object(&SOURCE)),
        inside("Replacement.", "targets", &Type::List(&Type::Object(&TARGET))),
        inside("Replacement.", "sourceValue", &Type::Text),
        text("path"),
    ],
};

static VAR_TARGET: Object = Object {
    name: "Target",
    fields: &[
        text("apiVersion"),
        inside("Gvk.", "group", &Type::Text),
        inside("Gvk.", "version", &Type::Text),
        inside("Gvk.", "kind", &Type::Text),
        text("name"),
        text("namespace"),
    ],
};

static VAR_FIELD: Object = Object { name: "FieldSelector", fields: &[text("fieldPath")] };

static VAR: Object = Object {
    name: "Var",
    fields: &[
        text("name"),
        typed("objref", &Type::Object(&VAR_TARGET)),
        typed("fieldref", &Type::Object(&VAR_FIELD)),
    ],
};

static LEGACY_SORT: Object =
    Object { name: "LegacySortOptions", fields: &[typed("orderFirst", &TEXTS), typed("orderLast", &TEXTS)] };

static SORT: Object = Object {
    name: "SortOptions",
    fields: &[
        typed("order", &Type::Named("SortOrder")),
        typed("legacySortOptions", &Type::Object(&LEGACY_SORT)),
    ],
};

static HELM_GLOBALS: Object =
    Object { name: "HelmGlobals", fields: &[text("chartHome"), text("configHome")] };

static HELM_CHART: Object = Object {
    name: "HelmChart",
    fields: &[
        text("name"),
        text("version"),
        text("repo"),
        text("releaseName"),
        text("namespace"),
        typed("additionalValuesFiles", &TEXTS),
        text("valuesFile"),
        typed("valuesInline", &Type::AnyMap),
        text("valuesMerge"),
        flag("includeCRDs"),
        flag("skipHooks"),
        typed("apiVersions", &TEXTS),
        text("kubeVersion"),
        text("nameTemplate"),
        flag("skipTests"),
        flag("debug"),
        flag("devel"),
    ],
};

static OLD_HELM_CHART: Object = Object {
    name: "HelmChartArgs",
    fields: &[
        text("chartName"),
        text("chartVersion"),
        text("chartRepoUrl"),
        text("chartHome"),
        text("chartRepoName"),
        text("helmBin"),
        text("helmHome"),
        text("values"),
        typed("valuesLocal", &Type::AnyMap),
        text("valuesMerge"),
        text("releaseName"),
        text("releaseNamespace"),
        typed("extraArgs", &TEXTS),
    ],
};

/// A kustomization file.
pub(crate) static KUSTOMIZATION: Object = Object {
    name: "Kustomization",
    fields: &[
        inside("TypeMeta.", "kind", &Type::Text),
        inside("TypeMeta.", "apiVersion", &Type::Text),
        typed("metadata", &Type::Object(&METADATA)),
        typed("openapi", &Type::TextMap),
        text("namePrefix"),
        text("nameSuffix"),
        text("namespace"),
        typed("commonLabels", &Type::TextMap),
        typed("labels", &Type::List(&Type::Object(&LABEL))),
        typed("commonAnnotations", &Type::TextMap),
        typed("patchesStrategicMerge", &Type::List(&Type::Named("PatchStrategicMerge"))),
        typed("patchesJson6902", &Type::List(&Type::Object(&PATCH))),
        typed("patches", &Type::List(&Type::Object(&PATCH))),
        typed("images", &Type::List(&Type::Object(&IMAGE))),
        typed("imageTags", &Type::List(&Type::Object(&IMAGE))),
        typed("replacements", &Type::List(&Type::Object(&REPLACEMENT))),
        typed("replicas", &Type::List(&Type::Object(&REPLICA))),
        typed("vars", &Type::List(&Type::Object(&VAR))),
        typed("sortOptions", &Type::Object(&SORT)),
        typed("resources", &TEXTS),
        typed("components", &TEXTS),
        typed("crds", &TEXTS),
        typed("bases", &TEXTS),
        typed("configMapGenerator", &Type::List(&Type::Object(&CONFIG_MAP))),
        typed("secretGenerator", &Type::List(&Type::Object(&SECRET))),
        typed("helmGlobals", &Type::Object(&HELM_GLOBALS)),
        typed("helmCharts", &Type::List(&Type::Object(&HELM_CHART))),
        typed("helmChartInflationGenerator", &Type::List(&Type::Object(&OLD_HELM_CHART))),
        typed("generatorOptions", &Type::Object(&GENERATOR_OPTIONS)),
        typed("configurations", &TEXTS),
        typed("generators", &TEXTS),
        typed("transformers", &TEXTS),
        typed("validators", &TEXTS),
        typed("buildMetadata", &TEXTS),
    ],
};

static NAME_REFERENCE: Object = Object {
    name: "NameBackReferences",
    fields: &[
        inside("Gvk.", "group", &Type::Text),
        inside("Gvk.", "version", &Type::Text),
        inside("Gvk.", "kind", &Type::Text),
        typed("fieldSpecs", &FIELD_SPECS),
    ],
};

/// A file of `configurations`.
pub(crate) static CONFIGURATION: Object = Object {
    name: "TransformerConfig",
    fields: &[
        typed("namePrefix", &FIELD_SPECS),
        typed("nameSuffix", &FIELD_SPECS),
        typed("namespace", &FIELD_SPECS),
        typed("commonLabels", &FIELD_SPECS),
        typed("labels", &FIELD_SPECS),
        typed("templateLabels", &FIELD_SPECS),
        typed("commonAnnotations", &FIELD_SPECS),
        typed("nameReference", &Type::List(&Type::Object(&NAME_REFERENCE))),
        typed("varReference", &FIELD_SPECS),
        typed("images", &FIELD_SPECS),
        typed("replicas", &FIELD_SPECS),
    ],
};

static MOUNT: Object =
    Object { name: "StorageMount", fields: &[text("type"), text("src"), text("dst"), flag("rw")] };

static CONTAINER: Object = Object {
    name: "ContainerSpec",
    fields: &[
        text("image"),
        flag("network"),
        typed("mounts", &Type::List(&Type::Object(&MOUNT))),
        typed("envs", &TEXTS),
    ],
};

static EXEC: Object =
    Object { name: "ExecSpec", fields: &[text("path"), typed("args", &TEXTS), typed("envs", &TEXTS)] };

/// The specification of a KRM function in its annotation.
pub(crate) static FUNCTION: Object = Object {
    name: "FunctionSpec",
    fields: &[
        flag("deferFailure"),
        typed("container", &Type::Object(&CONTAINER)),
        typed("exec", &Type::Object(&EXEC)),
    ],
};

static VALUE_ADD_TARGET: Object = Object {
    name: "Target",
    fields: &[
        typed("selector", &Type::Object(&SELECTOR)),
        text("fieldPath"),
        typed("filePathPosition", &Type::Int("int")),
    ],
};

static KUBERNETES_SERVICE: Object =
    Object { name: "KubernetesService", fields: &[text("name"), text("namespace")] };

static CLOUD_ACCOUNT: Object = Object { name: "ServiceAccount", fields: &[text("name"), text("projectId")] };

macro_rules! generator_plugin {
    ($name:literal, $args:literal, $($more:expr),*) => {
        Object {
            name: $name,
            fields: &[
                typed("metadata", &Type::Object(&METADATA)),
                inside(concat!($args, ".GeneratorArgs."), "namespace", &Type::Text),
                inside(concat!($args, ".GeneratorArgs."), "name", &Type::Text),
                inside(concat!($args, ".GeneratorArgs."), "behavior", &Type::Text),
                inside(concat!($args, ".GeneratorArgs.KvPairSources."), "literals", &TEXTS),
                inside(concat!($args, ".GeneratorArgs.KvPairSources."), "files", &TEXTS),
                inside(concat!($args, ".GeneratorArgs.KvPairSources."), "envs", &TEXTS),
                inside(concat!($args, ".GeneratorArgs.KvPairSources."), "env", &Type::Text),
                inside(concat!($args, ".GeneratorArgs."), "options", &Type::Object(&GENERATOR_OPTIONS)),
                $($more),*
            ],
        }
    };
}

/// The configuration of a `ConfigMapGenerator` in a file.
pub(crate) static CONFIG_MAP_PLUGIN: Object = generator_plugin!("ConfigMapGeneratorPlugin", "ConfigMapArgs",);

/// The configuration of a `SecretGenerator` in a file.
pub(crate) static SECRET_PLUGIN: Object =
    generator_plugin!("SecretGeneratorPlugin", "SecretArgs", inside("SecretArgs.", "type", &Type::Text));

/// The configuration of a `HelmChartInflationGenerator` in a file.
pub(crate) static HELM_PLUGIN: Object = Object {
    name: "HelmChartInflationGeneratorPlugin",
    fields: &[
        typed("metadata", &Type::Object(&METADATA)),
        inside("HelmGlobals.", "chartHome", &Type::Text),
        inside("HelmGlobals.", "configHome", &Type::Text),
        inside("HelmChart.", "name", &Type::Text),
        inside("HelmChart.", "version", &Type::Text),
        inside("HelmChart.", "repo", &Type::Text),
        inside("HelmChart.", "releaseName", &Type::Text),
        inside("HelmChart.", "namespace", &Type::Text),
        inside("HelmChart.", "additionalValuesFiles", &TEXTS),
        inside("HelmChart.", "valuesFile", &Type::Text),
        inside("HelmChart.", "valuesInline", &Type::AnyMap),
        inside("HelmChart.", "valuesMerge", &Type::Text),
        inside("HelmChart.", "includeCRDs", &Type::Bool),
        inside("HelmChart.", "skipHooks", &Type::Bool),
        inside("HelmChart.", "apiVersions", &TEXTS),
        inside("HelmChart.", "kubeVersion", &Type::Text),
        inside("HelmChart.", "nameTemplate", &Type::Text),
        inside("HelmChart.", "skipTests", &Type::Bool),
        inside("HelmChart.", "debug", &Type::Bool),
        inside("HelmChart.", "devel", &Type::Bool),
    ],
};

/// The configuration of any other builtin plugin in a file: the union of their fields, which do not
/// contradict each other.
pub(crate) static PLUGIN: Object = Object {
    name: "Plugin",
    fields: &[
        typed("metadata", &Type::Object(&METADATA)),
        typed("annotations", &Type::TextMap),
        typed("labels", &Type::TextMap),
        typed("fieldSpecs", &FIELD_SPECS),
        typed("imageTag", &Type::Object(&IMAGE)),
        flag("unsetOnly"),
        text("setRoleBindingSubjects"),
        typed("target", &Type::Object(&SELECTOR)),
        text("path"),
        text("jsonOp"),
        text("patch"),
        typed("paths", &TEXTS),
        typed("patches", &Type::Text),
        text("prefix"),
        text("suffix"),
        typed("replica", &Type::Object(&REPLICA)),
        typed("replacements", &Type::List(&Type::Object(&REPLACEMENT))),
        text("value"),
        typed("targets", &Type::List(&Type::Object(&VALUE_ADD_TARGET))),
        text("targetFilePath"),
        text("cloud"),
        typed("kubernetesService", &Type::Object(&KUBERNETES_SERVICE)),
        typed("serviceAccount", &Type::Object(&CLOUD_ACCOUNT)),
        typed("sortOptions", &Type::Object(&SORT)),
    ],
};
