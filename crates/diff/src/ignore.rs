//! Differences that do not count: JSON pointers, jq path expressions, trusted field managers
//! (Argo CD docs, "Diff Customization").

use serde_json::Value;
use tiphys_model::IgnoreDifference;
use tiphys_value::{FieldPath, ObjectExt, Segment};

use crate::{
    jq::{Ended, Program},
    ownership, paths,
};

/// The rules that concern one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IgnoreRules {
    pointers: Vec<String>,
    programs: Vec<Program>,
    managers: Vec<String>,
}

/// A rule that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("ignoreDifferences: jq path expression {expression:?}: {message}")]
pub struct IgnoreError {
    expression: String,
    message: String,
}

impl IgnoreRules {
    /// The rules of a list that concern an object. Group and kind are globs, name and namespace exact.
    ///
    /// # Errors
    /// A jq path expression cannot be used.
    pub fn for_object(object: &Value, rules: &[IgnoreDifference]) -> Result<Self, IgnoreError> {
        let gvk = object.gvk();
        let mut out = Self::default();
        for rule in rules {
            let concerns = tiphys_model::glob::matches(&rule.group, &gvk.group)
                && tiphys_model::glob::matches(&rule.kind, &gvk.kind)
                && (rule.name.is_empty() || rule.name == object.name())
                && (rule.namespace.is_empty() || rule.namespace == object.namespace());
            if !concerns {
                continue;
            }
            out.programs.extend(programs(rule)?);
            out.pointers.extend(rule.json_pointers.iter().cloned());
            out.managers.extend(rule.managed_fields_managers.iter().cloned());
        }
        Ok(out)
    }

    /// Whether the rules of a list can be used, whatever they concern.
    ///
    /// # Errors
    /// A jq path expression cannot be used.
    pub fn check(rules: &[IgnoreDifference]) -> Result<(), IgnoreError> {
        rules.iter().try_for_each(|rule| programs(rule).map(drop))
    }

    /// Whether nothing is ignored.
    pub fn is_empty(&self) -> bool {
        self.pointers.is_empty() && self.programs.is_empty() && self.managers.is_empty()
    }

    /// The paths in a value that pointers and expressions name, deepest and last first, so that deleting
    /// one does not move the next.
    fn paths(&self, value: &Value) -> Vec<FieldPath> {
        let mut all: Vec<FieldPath> =
            self.pointers.iter().filter_map(|text| paths::pointer(text, value)).collect();
        for program in &self.programs {
            match program.paths(value) {
                Ok(paths) => all.extend(paths),
                Err(ended) => warn_of(program, value, &ended),
            }
        }
        all.retain(|path| path.get(value).is_some());
        all.sort();
        all.dedup();
        all.reverse();
        all
    }

    /// What expressions that are whole programs make of a value.
    fn rewrite(&self, value: &mut Value) {
        for program in &self.programs {
            match program.rewrite(value) {
                Ok(Some(rewritten)) => *value = rewritten,
                Ok(None) => {}
                Err(ended) => warn_of(program, value, &ended),
            }
        }
    }

    /// An object without the fields that pointers and expressions name.
    pub fn without_ignored(&self, object: &Value) -> Value {
        let mut rest = object.clone();
        for path in self.paths(object) {
            paths::delete(&mut rest, &path);
        }
        self.rewrite(&mut rest);
        rest
    }

    /// Takes ignored differences out of both sides.
    pub(crate) fn apply(&self, target: &mut Value, live: &mut Value, managers: &ownership::Managers) {
        for manager in &self.managers {
            for fields in managers.fields_of(manager) {
                ownership::trust(fields, target, live, 0);
            }
        }
        for side in [target, live] {
            for path in self.paths(side) {
                paths::delete(side, &path);
            }
            self.rewrite(side);
        }
    }

    /// The target with the live values of ignored fields; of those that it does not set where they are added.
    pub(crate) fn with_ignored_fields(
        &self,
        target: &Value,
        live: &Value,
        is_added: &dyn Fn(&FieldPath) -> bool,
    ) -> Value {
        let mut out = target.clone();
        for path in self.paths(target) {
            if matches!(path.0.first(), Some(Segment::Key(key)) if key == "status") {
                continue;
            }
            match counterpart(&path, target, live).and_then(|path| path.get(live).cloned()) {
                Some(value) => paths::set(&mut out, &path, value),
                None => paths::delete(&mut out, &path),
            }
        }
        for path in self.paths(live) {
            let is_status = matches!(path.0.first(), Some(Segment::Key(key)) if key == "status");
            let through_list = path.0.iter().any(|step| matches!(step, Segment::Index(_)));
            if !is_status
                && !through_list
                && path.get(target).is_none()
                && is_added(&path)
                && let Some(value) = path.get(live)
            {
                paths::set(&mut out, &path, value.clone());
            }
        }
        self.keep_rewritten(&mut out, live);
        let managers = ownership::Managers::read(live);
        for manager in &self.managers {
            for fields in managers.fields_of(manager) {
                ownership::trust(fields, &mut out, live, 0);
            }
        }
        out
    }

    /// Gives a target the live values of fields whose values whole programs change, where the sides are alike
    /// then.
    fn keep_rewritten(&self, target: &mut Value, live: &Value) {
        let (mut mine, mut theirs) = (target.clone(), live.clone());
        self.rewrite(&mut mine);
        self.rewrite(&mut theirs);
        for path in paths::difference(live, &theirs) {
            if let Some(value) = path.get(live)
                && path.get(target).is_some()
                && path.get(&mine) == path.get(&theirs)
            {
                paths::set(target, &path, value.clone());
            }
        }
    }
}

/// As in Argo CD, an expression that takes too long ignores nothing.
fn warn_of(program: &Program, value: &Value, ended: &Ended) {
    tracing::warn!(
        kind = value.kind(),
        namespace = value.namespace(),
        name = value.name(),
        "ignoreDifferences: jq path expression {:?} names nothing: {ended}",
        program.text()
    );
}

fn programs(rule: &IgnoreDifference) -> Result<Vec<Program>, IgnoreError> {
    let read = |expression: &String| {
        Program::cached(expression).map_err(|message| IgnoreError { expression: expression.clone(), message })
    };
    rule.jq_path_expressions.iter().map(read).collect()
}

/// Whether a value has that in which a field would stand.
pub(crate) fn has_place(path: &FieldPath, value: &Value) -> bool {
    path.0.split_last().is_some_and(|(_, above)| FieldPath(above.to_vec()).get(value).is_some())
}

/// The path in the live object that corresponds to one in the target: list items are found by their
/// `name` where they have one, else by position.
fn counterpart(path: &FieldPath, target: &Value, live: &Value) -> Option<FieldPath> {
    let (mut wanted, mut have) = (target, live);
    let mut out = FieldPath::default();
    for step in &path.0 {
        match step {
            Segment::Key(key) => {
                (wanted, have) = (wanted.get(key)?, have.get(key)?);
                out = out.key(key);
            }
            Segment::Index(index) => {
                let item = wanted.get(index)?;
                let at = match item.get("name") {
                    Some(name) => have.as_array()?.iter().position(|live| live.get("name") == Some(name))?,
                    None => *index,
                };
                (wanted, have) = (item, have.get(at)?);
                out = out.index(at);
            }
        }
    }
    Some(out)
}
