//! Copying a field of one object into fields of others.

use tiphys_gocompat::strconv::quote;

use super::{Transformer, patches::selects_nothing, structured};
use crate::{
    context::Context,
    error::{Error, Result},
    kustomization::model::{FieldOptions, ReplacementField, Selector, Source, Target},
    meter::Meter,
    node::{Kind, Node, PathMatcher, at_positions, lookup, positions, smarter_split},
    resid::{Gvk, ResId},
    resource::Resource,
    resource_map::ResourceMap,
    selector::Matcher,
    suggest::{nearest_field, with_similar},
};

/// The transformer.
pub(crate) struct Replacements {
    pub replacements: Vec<ReplacementField>,
}

const DEFAULT_PATH: &str = "metadata.name";

/// What is copied.
struct Value {
    node: Node,
    /// Where it stands, if it is a whole field: what is copied into that field is part of what is copied
    /// next, for kustomize copies from the object itself.
    place: Option<FieldLocation>,
}

/// A field of an object of the build.
struct FieldLocation {
    object: usize,
    positions: Vec<usize>,
}

impl Transformer for Replacements {
    fn transform(&self, objects: &mut ResourceMap, context: &mut Context<'_>) -> Result<()> {
        for replacement in &self.replacements {
            let targets = match &replacement.targets {
                Some(targets) if replacement.source.is_some() || replacement.source_value.is_some() => {
                    targets
                }
                _ => {
                    return Err(Error::transform(
                        "replacements must specify a source and at least one target",
                    ));
                }
            };
            let mut value = value_of(objects, replacement)?;
            for target in targets {
                apply(objects, &mut value, target, context)?;
            }
        }
        Ok(())
    }
}

fn value_of(objects: &ResourceMap, replacement: &ReplacementField) -> Result<Value> {
    match (&replacement.source_value, &replacement.source) {
        (Some(_), Some(_)) => Err(Error::transform("value and resource selectors are mutually exclusive")),
        (Some(text), None) => Ok(Value { node: Node::scalar(text.as_str()), place: None }),
        (None, Some(source)) => read_source(objects, source),
        (None, None) => Err(Error::transform("replacements must specify a source and at least one target")),
    }
}

fn read_source(objects: &ResourceMap, source: &Source) -> Result<Value> {
    let object = select_source(objects, source)?;
    let resource = &objects.list[object];
    let path = if source.field_path.is_empty() { DEFAULT_PATH } else { &source.field_path };
    let steps = smarter_split(path, '.');
    let advised = |error: Error| {
        let error = nearest_field(&resource.node, &steps).into_iter().fold(error, Error::advise);
        error.advise(format!("the source object stands in {}", resource.location))
    };
    let found = lookup(&resource.node, &steps).map_err(|error| {
        advised(Error::transform(format!("error looking up replacement source: {error}")))
    })?;
    let Some(found) = found.filter(|node| !node.is_empty()) else {
        return Err(advised(Error::transform(format!(
            "fieldPath `{path}` is missing for replacement source {}",
            source_id(source)
        ))));
    };
    let options = source.options.as_ref().filter(|options| !options.delimiter.is_empty());
    match options {
        Some(options) => Ok(Value { node: refine(options, found)?, place: None }),
        None => {
            let place =
                positions(&resource.node, &steps).map(|positions| FieldLocation { object, positions });
            Ok(Value { node: found.clone(), place })
        }
    }
}

fn source_id(source: &Source) -> ResId {
    ResId {
        gvk: source.gvk.clone(),
        name: source.name.as_str().into(),
        namespace: source.namespace.as_str().into(),
        cluster_scoped: false,
    }
}

fn describe(source: &Source) -> String {
    let mut text = source_id(source).to_string();
    if !source.field_path.is_empty() {
        text = format!("{text}:{}", source.field_path);
    }
    match &source.options {
        Some(options) if !options.delimiter.is_empty() || options.create => {
            format!("{text}:{}({}), create={}", options.delimiter, options.index, options.create)
        }
        _ => text,
    }
}

/// All ids of an object, the current one first.
fn ids(resource: &Resource) -> Vec<ResId> {
    std::iter::once(resource.id()).chain(resource.earlier_ids()).collect()
}

/// The position of the one object that a source selects.
fn select_source(objects: &ResourceMap, source: &Source) -> Result<usize> {
    let wanted = source_id(source);
    let fits = |id: &ResId| {
        (wanted.name.is_empty() || wanted.name == id.name)
            && (wanted.namespace.is_empty() || wanted.effective_namespace() == id.effective_namespace())
            && id.gvk.is_selected_by(&wanted.gvk)
    };
    let mut found = objects.list.iter().enumerate().filter(|(_, resource)| ids(resource).iter().any(fits));
    match (found.next(), found.next()) {
        (Some((only, _)), None) => Ok(only),
        (Some((_, first)), Some((_, second))) => {
            Err(Error::transform(format!("multiple matches for selector {}", describe(source)))
                .advise(format!("{} and {} both match; narrow the selector", first.id(), second.id())))
        }
        (None, _) => {
            let error = Error::transform(format!("nothing selected by {}", describe(source)));
            Err(with_similar(error, &wanted, objects))
        }
    }
}

/// The part of a text that options name.
fn refine(options: &FieldOptions, node: &Node) -> Result<Node> {
    if node.kind() != Kind::Scalar {
        return Err(Error::transform("delimiter option can only be used with scalar nodes"));
    }
    let parts: Vec<&str> = node.value().split(&options.delimiter).collect();
    let part = usize::try_from(options.index).ok().and_then(|index| parts.get(index));
    let Some(part) = part else {
        return Err(Error::transform(format!(
            "options.index {} is out of bounds for value {}",
            options.index,
            node.value()
        )));
    };
    let mut refined = node.clone();
    refined.assign_value(*part);
    Ok(refined)
}

fn apply(
    objects: &mut ResourceMap,
    value: &mut Value,
    target: &Target,
    context: &mut Context<'_>,
) -> Result<()> {
    let Some(select) = &target.select else {
        return Err(Error::transform("target must specify resources to select"));
    };
    let matcher = |selector| {
        Matcher::new(selector).map_err(|error| error.context("error creating target selector".to_owned()))
    };
    let rejects = target.reject.iter().map(|reject| Ok((reject, matcher(reject)?)));
    let (matcher, rejects) = (matcher(select)?, rejects.collect::<Result<Vec<_>>>()?);
    let default = [DEFAULT_PATH.to_owned()];
    let paths: &[String] = if target.field_paths.is_empty() { &default } else { &target.field_paths };
    let mut found = false;
    for (at, resource) in objects.list.iter_mut().enumerate() {
        context.check_time()?;
        if !is_target(resource, &matcher, &rejects)? {
            continue;
        }
        found = true;
        resource.touched = true;
        for path in paths {
            let copied = copy(at, &mut resource.node, value, path, target.options.as_ref(), &context.meter);
            copied.map_err(|message| {
                let missing = nearest_field(&resource.node, &smarter_split(path, '.'));
                let error = missing.into_iter().fold(Error::transform(message), Error::advise);
                error.advise(format!("in {}", resource.location))
            })?;
        }
        resource.kind_may_have_changed();
        resource.sync();
    }
    if !found {
        context.notes.push(selects_nothing("a target of the replacement", select, objects));
    }
    Ok(())
}

fn is_target(resource: &Resource, select: &Matcher, rejects: &[(&Selector, Matcher)]) -> Result<bool> {
    if !select.fits_metadata(resource)? {
        return Ok(false);
    }
    for (_, reject) in rejects.iter().filter(|(_, reject)| reject.has_metadata()) {
        if reject.fits_metadata(resource)? {
            return Ok(false);
        }
    }
    let ids = ids(resource);
    let fits = |matcher: &Matcher, id: &ResId| matcher.fits_id(&id.gvk, &id.name, &id.namespace);
    let mut rejected = rejects.iter().filter(|(selector, _)| names_something(selector));
    if rejected.any(|(_, reject)| ids.iter().any(|id| fits(reject, id))) {
        return Ok(false);
    }
    Ok(ids.iter().any(|id| fits(select, id)))
}

fn names_something(selector: &Selector) -> bool {
    selector.gvk != Gvk::default() || !selector.name.is_empty() || !selector.namespace.is_empty()
}

/// The fields of an object that are copied into.
struct Field<'a> {
    steps: &'a [String],
    path: &'a str,
    options: Option<&'a FieldOptions>,
    meter: &'a Meter,
}

impl Field<'_> {
    /// The kind of what is made where there is none, if something is.
    fn created(&self, value: &Node) -> Option<Kind> {
        self.options.filter(|options| options.create).map(|_| value.kind())
    }
}

/// Copies into an object, which may be the one that is copied from.
fn copy(
    object: usize,
    node: &mut Node,
    value: &mut Value,
    path: &str,
    options: Option<&FieldOptions>,
    meter: &Meter,
) -> Result<(), String> {
    let steps = smarter_split(path, '.');
    // What does not lead deeper than the source does not lead into it.
    let own = value.place.as_ref().filter(|place| {
        place.object == object && steps.len() > place.positions.len() && !steps.iter().any(|step| step == "-")
    });
    let to = Field { steps: &steps, path, options, meter };
    let Some(place) = own else { return copy_to(node, &value.node, &to, None) };
    // Every field is there, though empty, before the first is written.
    let count = count_fields(node, &value.node, &to)?;
    for only in 0..count {
        if let Some(current) = at_positions(node, &place.positions) {
            value.node = current.clone();
        }
        copy_to(node, &value.node, &to, Some(only))?;
    }
    if let Some(current) = at_positions(node, &place.positions) {
        value.node = current.clone();
    }
    Ok(())
}

/// How many fields a path leads to, those included that are made for it.
fn count_fields(node: &mut Node, value: &Node, to: &Field<'_>) -> Result<usize, String> {
    let count = PathMatcher { path: to.steps, create: to.created(value) }.each(node, &mut |_| Ok(()));
    match count {
        // What is a document in a text is written as one, and what is wrong is told by who writes.
        Ok(0) | Err(_) => copy_to(node, value, to, None).map(|()| 0),
        Ok(count) => Ok(count),
    }
}

/// Writes a value to the fields that a path leads to, or to one of them.
fn copy_to(node: &mut Node, value: &Node, to: &Field<'_>, only: Option<usize>) -> Result<(), String> {
    let create = to.created(value);
    to.meter.take_node(value, to.steps.len())?;
    if structured::set(node, value, to.steps, create) {
        return Ok(());
    }
    let not_found = || {
        let what = if create.is_some() { "find or create" } else { "find" };
        format!("unable to {what} field {} in replacement target", quote(to.path))
    };
    let matcher = PathMatcher { path: to.steps, create };
    let mut failure = None;
    let mut seen = 0;
    let count = matcher
        .each(node, &mut |field| {
            seen += 1;
            if only.is_some_and(|only| only + 1 != seen) {
                return Ok(());
            }
            set_field(to, field, value).inspect_err(|error| failure = Some(error.clone()))
        })
        .map_err(|error| failure.take().unwrap_or_else(|| format!("{}: {error}", not_found())))?;
    if count == 0 { Err(not_found()) } else { Ok(()) }
}

/// A text with another part at an index, or one more at an end. The parts are not gathered: there may be as
/// many as letters.
fn with_part(whole: &str, delimiter: &str, index: i64, part: &str) -> String {
    let Ok(index) = usize::try_from(index) else { return [part, whole].join(delimiter) };
    let mut parts = whole.split(delimiter);
    let start: usize = parts.by_ref().take(index).map(|before| before.len() + delimiter.len()).sum();
    match parts.next() {
        Some(old) => [&whole[..start], part, &whole[start + old.len()..]].concat(),
        None => [whole, part].join(delimiter),
    }
}

fn set_field(to: &Field<'_>, field: &mut Node, value: &Node) -> Result<(), String> {
    let mut value = value.clone();
    if let Some(options) = to.options.filter(|options| !options.delimiter.is_empty()) {
        if field.kind() != Kind::Scalar {
            return Err("delimiter option can only be used with scalar nodes".to_owned());
        }
        let text = if value.is_null() { "" } else { value.value() };
        // Counted before it is made; the part that is replaced may be empty.
        to.meter.take(field.value().len() + options.delimiter.len() + text.len())?;
        let joined = with_part(field.value(), &options.delimiter, options.index, text);
        value.assign_value(joined);
    }
    to.meter.take_node(&value, to.steps.len())?;
    if field.kind() == Kind::Scalar {
        field.assign_value(value.value_smol());
    } else {
        value.origin = 0;
        field.assign(value);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_replaced_or_added_at_an_end() {
        let with = |index| with_part("a--bb--c", "--", index, "X");
        assert_eq!(with(0), "X--bb--c");
        assert_eq!(with(1), "a--X--c");
        assert_eq!(with(2), "a--bb--X");
        assert_eq!(with(3), "a--bb--c--X");
        assert_eq!(with(9), "a--bb--c--X");
        assert_eq!(with(-1), "X--a--bb--c");
        assert_eq!(with_part("", "-", 0, "X"), "X");
    }
}
