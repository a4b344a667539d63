//! What a pod's specification names: the objects that it is configured with.

use std::fmt;

use tiphys_value::{ObjectExt as _, Value};

use super::{items, pods};

/// An object in the namespace of a pod that its specification names.
pub(crate) struct Reference<'a> {
    /// Its kind.
    pub kind: &'static str,
    /// Its name.
    pub name: &'a str,
    /// Whether the pod runs without it, too.
    pub is_optional: bool,
    /// What names it.
    pub named_by: NamedBy<'a>,
}

/// The part of a pod's specification that names an object, shown as a path.
#[derive(Clone, Copy)]
pub(crate) enum NamedBy<'a> {
    /// The volume of a name.
    Volume(&'a str),
    /// All variables that the container of a name takes from one object.
    Variables(&'a str),
    /// A variable of a container, by the names of both.
    Variable(&'a str, &'a str),
}

impl fmt::Display for NamedBy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Volume(volume) => write!(f, "spec.volumes[{volume}]"),
            Self::Variables(container) => write!(f, "spec.containers[{container}].envFrom"),
            Self::Variable(container, name) => write!(f, "spec.containers[{container}].env.{name}"),
        }
    }
}

/// Where a kind is named: the fields of the part that lead to the reference, and the field of its name.
type Field = (&'static str, &'static [&'static str], &'static str);

const OF_VOLUME: [Field; 3] = [
    ("PersistentVolumeClaim", &["persistentVolumeClaim"], "claimName"),
    ("ConfigMap", &["configMap"], "name"),
    ("Secret", &["secret"], "secretName"),
];
const OF_PROJECTION: [Field; 2] = [("ConfigMap", &["configMap"], "name"), ("Secret", &["secret"], "name")];
const OF_VARIABLES: [Field; 2] =
    [("ConfigMap", &["configMapRef"], "name"), ("Secret", &["secretRef"], "name")];
const OF_VARIABLE: [Field; 2] = [
    ("ConfigMap", &["valueFrom", "configMapKeyRef"], "name"),
    ("Secret", &["valueFrom", "secretKeyRef"], "name"),
];

/// What the volumes name.
pub(crate) fn of_volumes(spec: &Value) -> impl Iterator<Item = Reference<'_>> {
    items(spec, &["volumes"]).flat_map(|volume| {
        let named_by = NamedBy::Volume(volume.str_at(&["name"]).unwrap_or_default());
        let sources = items(volume, &["projected", "sources"]);
        let projected = sources.flat_map(move |source| references(source, &OF_PROJECTION, named_by));
        references(volume, &OF_VOLUME, named_by).chain(projected)
    })
}

/// What the variables of the containers name.
pub(crate) fn of_variables(spec: &Value) -> impl Iterator<Item = Reference<'_>> {
    pods::containers(spec).flat_map(|container| {
        let name = container.str_at(&["name"]).unwrap_or_default();
        let whole = items(container, &["envFrom"])
            .flat_map(move |from| references(from, &OF_VARIABLES, NamedBy::Variables(name)));
        let single = items(container, &["env"]).flat_map(move |variable| {
            let key = variable.str_at(&["name"]).unwrap_or_default();
            references(variable, &OF_VARIABLE, NamedBy::Variable(name, key))
        });
        whole.chain(single)
    })
}

fn references<'a>(
    part: &'a Value,
    fields: &'static [Field],
    named_by: NamedBy<'a>,
) -> impl Iterator<Item = Reference<'a>> {
    fields.iter().filter_map(move |(kind, path, key)| {
        let reference = part.at(path)?;
        let is_optional = reference.at(&["optional"]).and_then(Value::as_bool) == Some(true);
        Some(Reference { kind, name: reference.str_at(&[key])?, is_optional, named_by })
    })
}
