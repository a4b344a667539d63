//! Strategic merge as kyaml does it (`merge2`), down to what it does with empty values, directives
//! in lists, and elements without their merge key.

mod keyed_list;
mod lists;

use std::collections::BTreeSet;

use crate::{
    meter::Meter,
    node::{Content, Kind, MAX_DEPTH, Node, kind_error},
    origins::Tracker,
    schema::{Schema, Schemas},
};

/// Merges patches into objects.
pub(crate) struct Merger<'a> {
    /// Merge keys by kind; without it every list is replaced.
    pub schemas: Option<&'a Schemas>,
    /// Records what was overwritten.
    pub tracker: &'a mut Tracker,
    /// Ends what takes too long.
    pub meter: &'a Meter,
    /// Levels entered.
    pub depth: usize,
}

/// What became of a node that was merged.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The target, changed in place.
    Target,
    /// The patch's node takes the target's place.
    Patch(Node),
    /// It is removed.
    Gone,
}

/// A directive `$patch` of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Directive {
    Merge,
    Replace,
    Delete,
}

const DIRECTIVE: &str = "$patch";

impl Merger<'_> {
    /// Merges `patch` into `target`; returns whether the target is still there.
    ///
    /// # Errors
    /// kyaml's text: kinds that do not fit, unknown directives.
    pub(crate) fn merge(&mut self, target: &mut Node, patch: Node) -> Result<bool, String> {
        match self.walk(Some(target), Some(patch), None)? {
            Outcome::Gone => Ok(false),
            // A directive to replace the whole object has no effect in kyaml.
            Outcome::Target | Outcome::Patch(_) => Ok(true),
        }
    }

    /// Merges one value. A missing target is one that the patch adds.
    fn walk<'s>(
        &mut self,
        target: Option<&mut Node>,
        patch: Option<Node>,
        schema: Option<Schema<'s>>,
    ) -> Result<Outcome, String>
    where
        Self: 's,
    {
        if self.depth > MAX_DEPTH {
            return Err(format!("exceeded max depth of {MAX_DEPTH}"));
        }
        self.depth += 1;
        let outcome = match (target, patch) {
            (None, None) => Ok(Outcome::Gone),
            (None, Some(patch)) => self.add(patch, schema),
            (Some(target), None) => self.keep(target, schema),
            (Some(target), Some(patch)) => self.merge_both(target, patch, schema),
        };
        self.depth -= 1;
        outcome
    }

    /// A schema given from above, or that of the object's own kind.
    fn schema_for<'s>(&self, given: Option<Schema<'s>>, nodes: [Option<&Node>; 2]) -> Option<Schema<'s>>
    where
        Self: 's,
    {
        let schemas: Option<&Schemas> = self.schemas;
        given.or_else(|| {
            let objects = nodes.into_iter().flatten().filter(|node| node.kind() == Kind::Map);
            objects.filter(|node| !node.object_kind().is_empty() && !node.api_version().is_empty()).find_map(
                |node| {
                    let schemas: &'s Schemas = extend(schemas?);
                    schemas.of_kind(node.api_version(), node.object_kind())
                },
            )
        })
    }

    /// Both sides are there.
    fn merge_both(
        &mut self,
        target: &mut Node,
        patch: Node,
        schema: Option<Schema<'_>>,
    ) -> Result<Outcome, String> {
        let schema = self.schema_for(schema, [Some(target), Some(&patch)]);
        let kind = match (target.is_null(), patch.is_null()) {
            (false, _) => target.kind(),
            (true, false) => patch.kind(),
            (true, true) => Kind::Map,
        };
        for node in [&*target, &patch] {
            if !node.is_null() && node.kind() != kind {
                return Err(kind_error(kind, node));
            }
        }
        match kind {
            Kind::Scalar => Ok(self.replace(target, patch)),
            Kind::Map => self.maps(target, patch, schema),
            Kind::Seq => match schema.and_then(|schema| schema.merge_keys().map(|keys| (schema, keys))) {
                Some((schema, keys)) => self.merged_list(target, patch, schema, keys),
                None => Ok(self.replace(target, patch)),
            },
        }
    }

    /// The patch's node, with the target's writers behind its own.
    fn replace(&mut self, target: &Node, mut patch: Node) -> Outcome {
        let unchanged = patch.kind() == Kind::Scalar && patch.content == target.content;
        patch.origin =
            if unchanged { target.origin } else { self.tracker.merge_entry(patch.origin, target.origin) };
        Outcome::Patch(patch)
    }

    fn maps(
        &mut self,
        target: &mut Node,
        mut patch: Node,
        schema: Option<Schema<'_>>,
    ) -> Result<Outcome, String> {
        if target.is_null() {
            if matches!(directive(&mut patch), Ok(Directive::Delete)) {
                return Ok(Outcome::Gone);
            }
            let added = self.add_fields(patch, schema)?;
            return Ok(self.replace(target, added));
        }
        if patch.is_null() {
            return Ok(Outcome::Gone);
        }
        match directive(&mut patch)? {
            Directive::Delete => Ok(Outcome::Gone),
            Directive::Replace => {
                let added = self.add_fields(patch, schema)?;
                Ok(self.replace(target, added))
            }
            Directive::Merge => {
                self.merge_fields(target, patch, schema)?;
                Ok(Outcome::Target)
            }
        }
    }

    fn merge_fields(
        &mut self,
        target: &mut Node,
        patch: Node,
        schema: Option<Schema<'_>>,
    ) -> Result<(), String> {
        let Content::Map(patch) = patch.content else { return Ok(()) };
        let mut patch: Vec<(Node, Option<Node>)> = patch.into_iter().map(|(k, v)| (k, Some(v))).collect();
        let names: BTreeSet<_> = target
            .pairs()
            .iter()
            .map(|(k, _)| k.value_smol())
            .chain(patch.iter().map(|(k, _)| k.value_smol()))
            .collect();
        for name in names {
            self.meter.step()?;
            let from_patch = patch.iter_mut().find(|(key, _)| key.value() == name);
            let (key, value) = match from_patch {
                Some((key, value)) => (Some(&*key), value.take()),
                None => (None, None),
            };
            let below = schema.and_then(|schema| schema.field(&name));
            let outcome = self.walk(target.get_mut(&name), value, below)?;
            set_outcome(target, &name, key, outcome)?;
        }
        Ok(())
    }

    /// Only the target has it. kyaml walks it nevertheless: fields without any value go, and lists
    /// that are merged by keys lose doubles.
    fn keep(&mut self, target: &mut Node, schema: Option<Schema<'_>>) -> Result<Outcome, String> {
        if target.is_null() {
            return Ok(if target.value().is_empty() { Outcome::Gone } else { Outcome::Target });
        }
        let schema = self.schema_for(schema, [Some(target), None]);
        match &mut target.content {
            Content::Scalar(_) => Ok(Outcome::Target),
            Content::Map(pairs) => {
                let mut gone = Vec::new();
                for (key, value) in pairs.iter_mut() {
                    let below = schema.and_then(|schema| schema.field(key.value()));
                    if matches!(self.walk(Some(value), None, below)?, Outcome::Gone) {
                        gone.push(key.value_smol());
                    }
                }
                pairs.retain(|(key, _)| !gone.contains(&key.value_smol()));
                Ok(Outcome::Target)
            }
            Content::Seq(_) => match schema.and_then(|schema| schema.merge_keys().map(|keys| (schema, keys)))
            {
                Some((schema, keys)) => self.kept_list(target, schema, keys),
                None => Ok(Outcome::Target),
            },
        }
    }

    /// Only the patch has it.
    fn add(&mut self, mut patch: Node, schema: Option<Schema<'_>>) -> Result<Outcome, String> {
        if patch.is_null() {
            return Ok(Outcome::Patch(patch));
        }
        let schema = self.schema_for(schema, [Some(&patch), None]);
        match patch.kind() {
            Kind::Scalar => Ok(Outcome::Patch(patch)),
            Kind::Map => {
                if matches!(directive(&mut patch), Ok(Directive::Delete)) {
                    return Ok(Outcome::Gone);
                }
                Ok(Outcome::Patch(self.add_fields(patch, schema)?))
            }
            Kind::Seq => match schema.and_then(|schema| schema.merge_keys().map(|keys| (schema, keys))) {
                Some((schema, keys)) => self.added_list(patch, schema, keys),
                None => Ok(Outcome::Patch(patch)),
            },
        }
    }

    /// The fields of a mapping that is new: nulls go, directives below are followed.
    fn add_fields(&mut self, mut node: Node, schema: Option<Schema<'_>>) -> Result<Node, String> {
        let Content::Map(pairs) = &mut node.content else { return Ok(node) };
        for (key, value) in std::mem::take(pairs) {
            let below = schema.and_then(|schema| schema.field(key.value()));
            match self.merge_with_itself(value, below)? {
                Some(value) if !value.is_null() => pairs.push((key, value)),
                _ => {}
            }
        }
        Ok(node)
    }

    /// A value below a new mapping: kyaml merges it with itself.
    fn merge_with_itself(
        &mut self,
        mut value: Node,
        schema: Option<Schema<'_>>,
    ) -> Result<Option<Node>, String> {
        if self.depth > MAX_DEPTH {
            return Err(format!("exceeded max depth of {MAX_DEPTH}"));
        }
        let schema = self.schema_for(schema, [Some(&value), None]);
        self.depth += 1;
        let result = match value.kind() {
            _ if value.is_null() => Ok(Some(value)),
            Kind::Scalar => Ok(Some(value)),
            Kind::Map => match directive(&mut value)? {
                Directive::Delete => Ok(None),
                Directive::Merge | Directive::Replace => self.add_fields(value, schema).map(Some),
            },
            Kind::Seq => match schema.and_then(|schema| schema.merge_keys().map(|keys| (schema, keys))) {
                Some((schema, keys)) => self.list_with_itself(value, schema, keys),
                None => Ok(Some(value)),
            },
        };
        self.depth -= 1;
        result
    }
}

/// The schemas outlive every merge; the borrow checker only sees the merger's own borrow.
fn extend(schemas: &Schemas) -> &Schemas {
    schemas
}

/// Sets a field of the target to what became of it.
fn set_outcome(target: &mut Node, name: &str, key: Option<&Node>, outcome: Outcome) -> Result<(), String> {
    match outcome {
        Outcome::Target => Ok(()),
        Outcome::Gone => target.clear(name).map(drop),
        Outcome::Patch(value) => {
            let is_new = target.get(name).is_none();
            target.set(name, value)?;
            if let (true, Some(key), Some((slot, _))) =
                (is_new, key, target.pairs_mut().and_then(|pairs| pairs.last_mut()))
                && slot.value() == name
            {
                slot.style = key.style;
            }
            Ok(())
        }
    }
}

/// Reads the directive of a patch and takes it out.
fn directive(patch: &mut Node) -> Result<Directive, String> {
    match patch.kind() {
        Kind::Seq => lists::list_directive(patch),
        Kind::Map => {
            let Some(value) = patch.get(DIRECTIVE) else { return Ok(Directive::Merge) };
            let directive = parse_directive(value.value())?;
            patch.clear(DIRECTIVE)?;
            Ok(directive)
        }
        Kind::Scalar => {
            Err(format!("no implemented strategic merge patch strategy for '!!str' ('{}\n')", patch.value()))
        }
    }
}

fn parse_directive(text: &str) -> Result<Directive, String> {
    match text {
        "delete" => Ok(Directive::Delete),
        "replace" => Ok(Directive::Replace),
        "merge" => Ok(Directive::Merge),
        other => Err(format!("unknown patch strategy '{other}'")),
    }
}
