//! Cases of the suite: a valid base object and what is changed in it.

use anyhow::{Context, bail};
use serde_json::{Map, Value, json};

/// One change of an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Edit {
    /// Puts a value at a JSON pointer; `-` at its end appends to a list. Objects on the way are made.
    Set(String, Value),
    /// Takes away what stands at a JSON pointer.
    Remove(String),
}

impl Edit {
    /// Its form in files: `{set: POINTER, to: VALUE}` or `{remove: POINTER}`.
    pub(super) fn to_json(&self) -> Value {
        match self {
            Self::Set(pointer, value) => json!({"set": pointer, "to": value}),
            Self::Remove(pointer) => json!({"remove": pointer}),
        }
    }

    /// Reads it back.
    ///
    /// # Errors
    /// It is neither of the two.
    pub(super) fn from_json(value: &Value) -> anyhow::Result<Self> {
        match (value["set"].as_str(), value["remove"].as_str()) {
            (Some(pointer), None) => Ok(Self::Set(pointer.to_owned(), value["to"].clone())),
            (None, Some(pointer)) => Ok(Self::Remove(pointer.to_owned())),
            _ => bail!("an edit is {{set: POINTER, to: VALUE}} or {{remove: POINTER}}, not {value}"),
        }
    }

    fn apply(&self, object: &mut Value) -> anyhow::Result<()> {
        let (Self::Set(pointer, _) | Self::Remove(pointer)) = self;
        let (parent, last) = pointer.rsplit_once('/').with_context(|| format!("{pointer} is no pointer"))?;
        let last = last.replace("~1", "/").replace("~0", "~");
        let mut slot = object;
        for step in parent.split('/').skip(1) {
            let step = step.replace("~1", "/").replace("~0", "~");
            slot = match slot {
                Value::Array(items) => step
                    .parse::<usize>()
                    .ok()
                    .and_then(|at| items.get_mut(at))
                    .with_context(|| pointer.clone())?,
                Value::Object(fields) => fields.entry(step).or_insert_with(|| Map::new().into()),
                _ => bail!("{pointer} leads through a scalar"),
            };
        }
        match (slot, self) {
            (Value::Array(items), Self::Set(_, value)) if last == "-" => items.push(value.clone()),
            (Value::Array(items), Self::Set(_, value)) => {
                let item = last.parse::<usize>().ok().and_then(|at| items.get_mut(at));
                *item.with_context(|| pointer.clone())? = value.clone();
            }
            (Value::Array(items), Self::Remove(_)) => {
                let at = last.parse::<usize>().ok().filter(|at| *at < items.len());
                items.remove(at.with_context(|| pointer.clone())?);
            }
            (Value::Object(fields), Self::Set(_, value)) => drop(fields.insert(last, value.clone())),
            (Value::Object(fields), Self::Remove(_)) => {
                fields.remove(&last).with_context(|| format!("{pointer}: nothing stands there"))?;
            }
            _ => bail!("{pointer} leads through a scalar"),
        }
        Ok(())
    }
}

/// A base object with changes.
#[derive(Clone, Debug)]
pub(super) struct Case {
    /// Name of the base.
    pub base: String,
    /// The changes, in order.
    pub edits: Vec<Edit>,
}

impl Case {
    /// The changed object.
    ///
    /// # Errors
    /// A change does not fit the base.
    pub(super) fn object(&self, base: &Value) -> anyhow::Result<Value> {
        let mut object = base.clone();
        for edit in &self.edits {
            edit.apply(&mut object).with_context(|| format!("{}: {:?}", self.base, self.edits))?;
        }
        Ok(object)
    }
}

/// The rows of a file of rules: a list of changes per base.
///
/// # Errors
/// The file has another form.
pub(super) fn read_rules(rules: &Value) -> anyhow::Result<Vec<Case>> {
    let mut cases = Vec::new();
    for (base, rows) in rules.as_object().into_iter().flatten() {
        for row in rows.as_array().into_iter().flatten() {
            let edits = row.as_array().into_iter().flatten().map(Edit::from_json);
            let edits = edits.collect::<anyhow::Result<Vec<_>>>().with_context(|| base.clone())?;
            cases.push(Case { base: base.clone(), edits });
        }
    }
    Ok(cases)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_set_append_and_remove() {
        let base = json!({"spec": {"list": [1, 2], "a/b": 1}});
        let edits = vec![
            Edit::Set("/spec/list/-".into(), json!(3)),
            Edit::Remove("/spec/list/0".into()),
            Edit::Set("/spec/new/inner".into(), json!("x")),
            Edit::Remove("/spec/a~1b".into()),
        ];
        assert!(edits.iter().all(|edit| Edit::from_json(&edit.to_json()).unwrap() == *edit));
        let case = Case { base: "b".into(), edits };
        assert_eq!(case.object(&base).unwrap(), json!({"spec": {"list": [2, 3], "new": {"inner": "x"}}}));
        let wrong = Case { base: "b".into(), edits: vec![Edit::Remove("/spec/none".into())] };
        assert!(wrong.object(&base).is_err());
    }
}
