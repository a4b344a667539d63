//! The fields of a kustomization, as Go declares them, for [`conform`](super::go_json::conform).

use super::go_json::{Field, Object, Type};

const fn text(name: &'static str) -> Field {
    Field { name, inside: "", of: &Type::Text }
}

const fn flag(name: &'static str) -> Field {
    Field { name, inside: "", of: &Type::Bool }
}

const fn of(name: &'static str, of: &'static Type) -> Field {
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
        of("labels", &Type::TextMap),
        of("annotations", &Type::TextMap),
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
        of("target", &Type::Object(&SELECTOR)),
        of("options", &Type::Object(&PATCH_OPTIONS)),
    ],
};

static IMAGE: Object = Object {
    name: "Image",
    fields: &[text("name"), text("newName"), text("tagSuffix"), text("newTag"), text("digest")],
};

static REPLICA: Object =
    Object { name: "Replica", fields: &[text("name"), of("count", &Type::Int("int64"))] };

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
        of("pairs", &Type::TextMap),
        flag("includeSelectors"),
        flag("includeTemplates"),
        of("fields", &FIELD_SPECS),
    ],
};

static GENERATOR_OPTIONS: Object = Object {
    name: "GeneratorOptions",
    fields: &[
        of("labels", &Type::TextMap),
        of("annotations", &Type::TextMap),
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
    fields: &[text("delimiter"), of("index", &Type::Int("int")), text("encoding"), flag("create")],
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
        of("options", &Type::Object(&FIELD_OPTIONS)),
    ],
};

static TARGET: Object = Object {
    name: "TargetSelector",
    fields: &[
        of("select", &Type::Object(&SELECTOR)),
        of("reject", &Type::List(&Type::Object(&SELECTOR))),
        of("fieldPaths", &TEXTS),
        of("options", &Type::Object(&FIELD_OPTIONS)),
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
        of("objref", &Type::Object(&VAR_TARGET)),
        of("fieldref", &Type::Object(&VAR_FIELD)),
    ],
};

static LEGACY_SORT: Object =
    Object { name: "LegacySortOptions", fields: &[of("orderFirst", &TEXTS), of("orderLast", &TEXTS)] };

static SORT: Object = Object {
    name: "SortOptions",
    fields: &[of("order", &Type::Named("SortOrder")), of("legacySortOptions", &Type::Object(&LEGACY_SORT))],
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
        of("additionalValuesFiles", &TEXTS),
        text("valuesFile"),
        of("valuesInline", &Type::AnyMap),
        text("valuesMerge"),
        flag("includeCRDs"),
        flag("skipHooks"),
        of("apiVersions", &TEXTS),
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
        of("valuesLocal", &Type::AnyMap),
        text("valuesMerge"),
        text("releaseName"),
        text("releaseNamespace"),
        of("extraArgs", &TEXTS),
    ],
};

/// A kustomization file.
pub(crate) static KUSTOMIZATION: Object = Object {
    name: "Kustomization",
    fields: &[
        inside("TypeMeta.", "kind", &Type::Text),
        inside("TypeMeta.", "apiVersion", &Type::Text),
        of("metadata", &Type::Object(&METADATA)),
        of("openapi", &Type::TextMap),
        text("namePrefix"),
        text("nameSuffix"),
        text("namespace"),
        of("commonLabels", &Type::TextMap),
        of("labels", &Type::List(&Type::Object(&LABEL))),
        of("commonAnnotations", &Type::TextMap),
        of("patchesStrategicMerge", &Type::List(&Type::Named("PatchStrategicMerge"))),
        of("patchesJson6902", &Type::List(&Type::Object(&PATCH))),
        of("patches", &Type::List(&Type::Object(&PATCH))),
        of("images", &Type::List(&Type::Object(&IMAGE))),
        of("imageTags", &Type::List(&Type::Object(&IMAGE))),
        of("replacements", &Type::List(&Type::Object(&REPLACEMENT))),
        of("replicas", &Type::List(&Type::Object(&REPLICA))),
        of("vars", &Type::List(&Type::Object(&VAR))),
        of("sortOptions", &Type::Object(&SORT)),
        of("resources", &TEXTS),
        of("components", &TEXTS),
        of("crds", &TEXTS),
        of("bases", &TEXTS),
        of("configMapGenerator", &Type::List(&Type::Object(&CONFIG_MAP))),
        of("secretGenerator", &Type::List(&Type::Object(&SECRET))),
        of("helmGlobals", &Type::Object(&HELM_GLOBALS)),
        of("helmCharts", &Type::List(&Type::Object(&HELM_CHART))),
        of("helmChartInflationGenerator", &Type::List(&Type::Object(&OLD_HELM_CHART))),
        of("generatorOptions", &Type::Object(&GENERATOR_OPTIONS)),
        of("configurations", &TEXTS),
        of("generators", &TEXTS),
        of("transformers", &TEXTS),
        of("validators", &TEXTS),
        of("buildMetadata", &TEXTS),
    ],
};

static NAME_REFERENCE: Object = Object {
    name: "NameBackReferences",
    fields: &[
        inside("Gvk.", "group", &Type::Text),
        inside("Gvk.", "version", &Type::Text),
        inside("Gvk.", "kind", &Type::Text),
        of("fieldSpecs", &FIELD_SPECS),
    ],
};

/// A file of `configurations`.
pub(crate) static CONFIGURATION: Object = Object {
    name: "TransformerConfig",
    fields: &[
        of("namePrefix", &FIELD_SPECS),
        of("nameSuffix", &FIELD_SPECS),
        of("namespace", &FIELD_SPECS),
        of("commonLabels", &FIELD_SPECS),
        of("labels", &FIELD_SPECS),
        of("templateLabels", &FIELD_SPECS),
        of("commonAnnotations", &FIELD_SPECS),
        of("nameReference", &Type::List(&Type::Object(&NAME_REFERENCE))),
        of("varReference", &FIELD_SPECS),
        of("images", &FIELD_SPECS),
        of("replicas", &FIELD_SPECS),
    ],
};

static MOUNT: Object =
    Object { name: "StorageMount", fields: &[text("type"), text("src"), text("dst"), flag("rw")] };

static CONTAINER: Object = Object {
    name: "ContainerSpec",
    fields: &[
        text("image"),
        flag("network"),
        of("mounts", &Type::List(&Type::Object(&MOUNT))),
        of("envs", &TEXTS),
    ],
};

static EXEC: Object =
    Object { name: "ExecSpec", fields: &[text("path"), of("args", &TEXTS), of("envs", &TEXTS)] };

/// The specification of a KRM function in its annotation.
pub(crate) static FUNCTION: Object = Object {
    name: "FunctionSpec",
    fields: &[
        flag("deferFailure"),
        of("container", &Type::Object(&CONTAINER)),
        of("exec", &Type::Object(&EXEC)),
    ],
};

static VALUE_ADD_TARGET: Object = Object {
    name: "Target",
    fields: &[
        of("selector", &Type::Object(&SELECTOR)),
        text("fieldPath"),
        of("filePathPosition", &Type::Int("int")),
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
                of("metadata", &Type::Object(&METADATA)),
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
        of("metadata", &Type::Object(&METADATA)),
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
        of("metadata", &Type::Object(&METADATA)),
        of("annotations", &Type::TextMap),
        of("labels", &Type::TextMap),
        of("fieldSpecs", &FIELD_SPECS),
        of("imageTag", &Type::Object(&IMAGE)),
        flag("unsetOnly"),
        text("setRoleBindingSubjects"),
        of("target", &Type::Object(&SELECTOR)),
        text("path"),
        text("jsonOp"),
        text("patch"),
        of("paths", &TEXTS),
        of("patches", &Type::Text),
        text("prefix"),
        text("suffix"),
        of("replica", &Type::Object(&REPLICA)),
        of("replacements", &Type::List(&Type::Object(&REPLACEMENT))),
        text("value"),
        of("targets", &Type::List(&Type::Object(&VALUE_ADD_TARGET))),
        text("targetFilePath"),
        text("cloud"),
        of("kubernetesService", &Type::Object(&KUBERNETES_SERVICE)),
        of("serviceAccount", &Type::Object(&CLOUD_ACCOUNT)),
        of("sortOptions", &Type::Object(&SORT)),
    ],
};
