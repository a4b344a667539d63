//! Variables: `$(NAME)` in fields, replaced by fields of objects. Deprecated, and in use.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_value::{Location, OriginKind};

use crate::{
    context::Context,
    error::{Error, ErrorKind, Result},
    fields::apply,
    kustomization::model::{FieldSpec, Var},
    meter::Meter,
    node::{Content, Kind, Node, Resolved, Tag, go_float, lookup, resolve, smarter_split},
    resid::ResId,
    resource::Resource,
    resource_map::ResourceMap,
    suggest::{nearest_field, with_similar},
};

const DEFAULT_PATH: &str = "metadata.name";

/// The vars of a kustomization and what it includes, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vars {
    known: BTreeMap<String, Var>,
}

/// What a var stands for.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Text(String),
    Int(String),
    Float(f64),
    Bool(bool),
    /// Lists and mappings cannot be put into text.
    Structure,
}

impl Vars {
    /// Adds vars, and notes in objects which of them read it.
    ///
    /// # Errors
    /// A name that is known already, an object reference that fits several objects.
    pub(crate) fn add(&mut self, vars: &[Var], objects: &mut ResourceMap) -> Result<()> {
        for var in vars {
            note_object(var, objects)?;
        }
        vars.iter().try_for_each(|var| self.insert(var.clone()))
    }

    /// Takes over the vars of an included kustomization.
    ///
    /// # Errors
    /// A name that is known already.
    pub(crate) fn merge(&mut self, other: Vars) -> Result<()> {
        other.known.into_values().try_for_each(|var| self.insert(var))
    }

    fn insert(&mut self, mut var: Var) -> Result<()> {
        if self.known.contains_key(&var.name) {
            return Err(Error::new(ErrorKind::Conflict, format!("var '{}' already encountered", var.name)));
        }
        if var.fieldref.field_path.is_empty() {
            var.fieldref.field_path = DEFAULT_PATH.to_owned();
        }
        self.known.insert(var.name.clone(), var);
        Ok(())
    }

    /// Replaces all vars in all objects.
    ///
    /// # Errors
    /// A var whose object or field is not there.
    pub(crate) fn resolve(
        &self,
        objects: &mut ResourceMap,
        specs: &[FieldSpec],
        context: &mut Context<'_>,
    ) -> Result<()> {
        if self.known.is_empty() {
            return Ok(());
        }
        let mut values = BTreeMap::new();
        for (name, var) in &self.known {
            values.insert(name.as_str(), value_of(var, objects)?);
        }
        let mut replacer = Replacer { values: &values, used: BTreeSet::new(), meter: &context.meter };
        let replaced = objects.list.iter_mut().try_for_each(|resource| {
            resource.touched = true;
            specs.iter().try_for_each(|spec| {
                apply(&mut resource.node, spec, None, &mut |field| replacer.set(field))
                    .map_err(Error::transform)
            })
        });
        let unused: Vec<&str> =
            values.keys().copied().filter(|name| !replacer.used.contains(*name)).collect();
        if !unused.is_empty() {
            context
                .warnings
                .push(format!("well-defined vars that were never replaced: {}", unused.join(",")));
        }
        replaced?;
        let writer = context.tracker.writer(OriginKind::Transformer, "", "vars");
        crate::transform::finish(objects, context, writer, &Location::new("", 0, 0));
        Ok(())
    }
}

/// The id of a var's object; `apiVersion` fills group and version.
fn target_id(var: &Var) -> ResId {
    let target = &var.objref;
    let mut gvk = target.gvk.clone();
    match target.api_version.split('/').collect::<Vec<_>>().as_slice() {
        [group, version] => (gvk.group, gvk.version) = ((*group).into(), (*version).into()),
        [version] if !version.is_empty() => gvk.version = (*version).into(),
        _ => {}
    }
    ResId {
        gvk,
        name: target.name.as_str().into(),
        namespace: target.namespace.as_str().into(),
        cluster_scoped: false,
    }
}

fn note_object(var: &Var, objects: &mut ResourceMap) -> Result<()> {
    let id = target_id(var);
    let fits = |other: &ResId| {
        let named = other.name == id.name && other.gvk == id.gvk;
        named && (id.namespace.is_empty() || other.effective_namespace() == id.effective_namespace())
    };
    match objects.find_by_any_id(fits).as_slice() {
        [] => Ok(()),
        [at] => {
            objects.list[*at].vars.push(var.name.clone());
            Ok(())
        }
        several => Err(Error::new(
            ErrorKind::Conflict,
            format!(
                "found {} resId matches for var {} (unable to disambiguate)",
                several.len(),
                describe(var)
            ),
        )),
    }
}

/// A var as Go prints the struct once its object was looked up.
fn describe(var: &Var) -> String {
    format!("{{{} {} {{{}}}}}", var.name, target_id(var).gvk, var.fieldref.field_path)
}

/// Vars as Go prints them before.
pub(crate) fn describe_all(vars: &[Var]) -> String {
    let one = |var: &Var| format!("{{{} {} {{{}}}}}", var.name, var.objref.gvk, var.fieldref.field_path);
    format!("[{}]", vars.iter().map(one).collect::<Vec<_>>().join(" "))
}

fn value_of(var: &Var, objects: &ResourceMap) -> Result<Value> {
    let reads = |resource: &&Resource| resource.vars.contains(&var.name);
    let Some(resource) = objects.list.iter().find(reads) else {
        let text =
            format!("var '{}' cannot be mapped to a field in the set of known resources", describe(var));
        return Err(with_similar(Error::transform(text), &target_id(var), objects));
    };
    field_value(&resource.node, &var.fieldref.field_path).ok_or_else(|| {
        let text = format!("field specified in var '{}' not found in corresponding resource", describe(var));
        let missing = nearest_field(&resource.node, &index_steps(&var.fieldref.field_path));
        let error = Error::transform(text).located_at(Some(resource.location.clone()));
        missing.into_iter().fold(error, Error::advise)
    })
}

/// Splits `a[0]` into `a` and `0`.
fn index_steps(path: &str) -> Vec<String> {
    let mut steps = Vec::new();
    for step in smarter_split(path, '.') {
        let split = step.strip_suffix(']').and_then(|inner| inner.rsplit_once('['));
        match split.filter(|(_, index)| !index.is_empty() && index.bytes().all(|b| b.is_ascii_digit())) {
            Some((name, index)) => {
                steps.extend((!name.is_empty()).then(|| name.to_owned()));
                steps.push(index.to_owned());
            }
            None => steps.push(step),
        }
    }
    steps
}

fn field_value(node: &Node, path: &str) -> Option<Value> {
    let field = lookup(node, &index_steps(path)).ok()??;
    if field.kind() != Kind::Scalar {
        return Some(Value::Structure);
    }
    let text = field.value();
    match field.tag {
        Tag::Int => text.parse::<i64>().ok().map(|_| Value::Int(text.to_owned())),
        Tag::Float => match resolve(text) {
            Resolved::Float(value) => Some(Value::Float(value)),
            Resolved::Int(value) => Some(Value::Float(value as f64)),
            _ => None,
        },
        Tag::Bool => match text {
            "true" | "True" | "TRUE" => Some(Value::Bool(true)),
            "false" | "False" | "FALSE" => Some(Value::Bool(false)),
            _ => None,
        },
        _ => Some(Value::Text(text.to_owned())),
    }
}

impl Value {
    /// As Go's `%v` prints it inside a text.
    fn printed(&self, name: &str) -> String {
        match self {
            Self::Text(text) | Self::Int(text) => text.clone(),
            Self::Float(value) => go_float(*value),
            Self::Bool(value) => value.to_string(),
            Self::Structure => format!("$({name})"),
        }
    }

    /// As a node of its own.
    fn node(&self, name: &str) -> Node {
        match self {
            Self::Text(text) => {
                Node { style: crate::node::Style::Plain, ..Node::tagged(text.as_str(), Tag::Str) }
            }
            Self::Int(text) => Node::tagged(text.as_str(), Tag::Int),
            Self::Float(value) => Node::tagged(format!("{value}"), Tag::Float),
            Self::Bool(value) => Node::tagged(value.to_string(), Tag::Bool),
            Self::Structure => Node::tagged(format!("$({name})"), Tag::Str),
        }
    }
}

struct Replacer<'a> {
    values: &'a BTreeMap<&'a str, Value>,
    used: BTreeSet<String>,
    meter: &'a Meter,
}

impl Replacer<'_> {
    fn set(&mut self, field: &mut Node) -> Result<(), String> {
        if field.is_null() {
            return Ok(());
        }
        match &mut field.content {
            Content::Scalar(_) => self.set_text(field),
            Content::Map(pairs) => {
                for (key, value) in pairs {
                    if !key.is_string() {
                        return Err(format!("invalid map key: value='{}', tag='!!int'", key.value()));
                    }
                    self.set_text(value)?;
                }
                Ok(())
            }
            Content::Seq(items) => {
                for item in items {
                    if !item.is_string() {
                        return Err("invalid value type expect a string".to_owned());
                    }
                    self.set_text(item)?;
                }
                Ok(())
            }
        }
    }

    fn set_text(&mut self, node: &mut Node) -> Result<(), String> {
        if !node.is_string() {
            return Ok(());
        }
        let replaced = self.replace(node.value())?;
        let same = replaced.value() == node.value() && replaced.tag == Tag::Str;
        if same {
            // Kustomize resets tag and style even so.
            node.tag = Tag::Str;
            node.style = crate::node::Style::Plain;
            return Ok(());
        }
        node.assign(replaced);
        Ok(())
    }

    fn replace(&mut self, text: &str) -> Result<Node, String> {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('$').filter(|at| at + 1 < rest.len()) {
            out.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix('$') {
                out.push('$');
                rest = after;
            } else if let Some((name, after)) = rest.strip_prefix('(').and_then(|inner| inner.split_once(')'))
            {
                rest = after;
                match self.values.get(name) {
                    Some(value) => {
                        if *value != Value::Structure {
                            self.used.insert(name.to_owned());
                        }
                        if text.len() == name.len() + "$()".len() {
                            return Ok(value.node(name));
                        }
                        let printed = value.printed(name);
                        self.meter.take(printed.len())?;
                        out.push_str(&printed);
                    }
                    None => out.push_str(&format!("$({name})")),
                }
            } else {
                out.push('$');
                let next = rest.chars().next().map(char::len_utf8).unwrap_or_default();
                out.push_str(&rest[..next]);
                rest = &rest[next..];
            }
        }
        out.push_str(rest);
        Ok(Node { style: crate::node::Style::Plain, ..Node::tagged(out, Tag::Str) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_and_escapes() {
        let values = BTreeMap::from([("A", Value::Text("x".into())), ("N", Value::Int("5".into()))]);
        let meter = Meter::new(1 << 10, std::time::Duration::MAX);
        let mut replacer = Replacer { values: &values, used: BTreeSet::new(), meter: &meter };
        for (text, expected) in [
            ("a $(A) b", "a x b"),
            ("$$(A)", "$(A)"),
            ("$(B)", "$(B)"),
            ("$(A", "$(A"),
            ("$", "$"),
            ("$x$(N)", "$x5"),
        ] {
            assert_eq!(replacer.replace(text).unwrap().value(), expected, "{text}");
        }
        assert_eq!(replacer.replace("$(N)").unwrap().tag, Tag::Int);
    }

    #[test]
    fn indices_are_steps() {
        assert_eq!(index_steps("spec.ports[0].port"), ["spec", "ports", "0", "port"]);
    }
}
