//! Lists whose items are merged by keys. kyaml moves pointers to items between lists; here items
//! stand in one store and lists hold their numbers.

use std::collections::HashSet;

use smol_str::SmolStr;

use super::{DIRECTIVE, Directive, Merger, Outcome, keyed_list::KeyedList, parse_directive};
use crate::{
    meter::Meter,
    node::{Content, Kind, Node},
    schema::Schema,
};

/// The values of the merge keys of one item; empty where it has none.
pub(super) type Tuple = Vec<SmolStr>;

/// Items, and the two lists being merged.
struct Lists {
    store: Vec<Node>,
    target: Vec<usize>,
    patch: Vec<usize>,
}

impl Lists {
    fn new(target: Vec<Node>, patch: Vec<Node>) -> Self {
        let count = target.len();
        let total = count + patch.len();
        let mut store = target;
        store.extend(patch);
        Self { store, target: (0..count).collect(), patch: (count..total).collect() }
    }

    /// A list with itself.
    fn doubled(items: Vec<Node>) -> Self {
        let numbers: Vec<usize> = (0..items.len()).collect();
        Self { store: items, target: numbers.clone(), patch: numbers }
    }
}

/// The directive of a list: an item that has nothing but `$patch`.
pub(super) fn list_directive(list: &mut Node) -> Result<Directive, String> {
    let found = list.items().iter().find(|item| item.get(DIRECTIVE).is_some());
    let Some(value) = found.filter(|item| item.pairs().len() == 1).and_then(|item| item.get(DIRECTIVE))
    else {
        return Ok(Directive::Merge);
    };
    let text = value.value_smol();
    let directive = parse_directive(&text)?;
    let mut lists = Lists::new(list.items_mut().map(std::mem::take).unwrap_or_default(), Vec::new());
    let kept = set_item(&lists.store, &lists.target, None, &[DIRECTIVE], &[text])?;
    let items = kept.into_iter().map(|at| std::mem::replace(&mut lists.store[at], Node::null())).collect();
    list.content = Content::Seq(items);
    Ok(directive)
}

impl Merger<'_> {
    pub(super) fn merged_list(
        &mut self,
        target: &mut Node,
        mut patch: Node,
        schema: Schema<'_>,
        keys: &[String],
    ) -> Result<Outcome, String> {
        if target.is_null() {
            let outcome = self.added_list(patch, schema, keys)?;
            return Ok(match outcome {
                Outcome::Patch(added) => self.replace(target, added),
                other => other,
            });
        }
        if patch.is_null() {
            return Ok(Outcome::Gone);
        }
        match list_directive(&mut patch)? {
            Directive::Delete => Ok(Outcome::Gone),
            Directive::Replace => match self.list_with_itself(patch, schema, keys)? {
                Some(added) => Ok(self.replace(target, added)),
                None => Ok(Outcome::Gone),
            },
            Directive::Merge => {
                let lists = Lists::new(take_items(target), take_items(&mut patch));
                target.content = Content::Seq(self.merge_items(lists, schema, keys)?);
                Ok(Outcome::Target)
            }
        }
    }

    /// A list that only the target has.
    pub(super) fn kept_list(
        &mut self,
        target: &mut Node,
        schema: Schema<'_>,
        keys: &[String],
    ) -> Result<Outcome, String> {
        if is_regular(target.items(), keys) {
            let below = schema.items();
            for item in target.items_mut().into_iter().flatten() {
                self.walk(Some(item), None, below)?;
            }
            return Ok(Outcome::Target);
        }
        let lists = Lists::new(take_items(target), Vec::new());
        target.content = Content::Seq(self.merge_items(lists, schema, keys)?);
        Ok(Outcome::Target)
    }

    /// A list that only the patch has; directives in it are not read.
    pub(super) fn added_list(
        &mut self,
        mut patch: Node,
        schema: Schema<'_>,
        keys: &[String],
    ) -> Result<Outcome, String> {
        let lists = Lists::doubled(take_items(&mut patch));
        patch.content = Content::Seq(self.merge_items(lists, schema, keys)?);
        Ok(Outcome::Patch(patch))
    }

    /// A list below a new mapping.
    pub(super) fn list_with_itself(
        &mut self,
        mut list: Node,
        schema: Schema<'_>,
        keys: &[String],
    ) -> Result<Option<Node>, String> {
        if list_directive(&mut list)? == Directive::Delete {
            return Ok(None);
        }
        let lists = Lists::doubled(take_items(&mut list));
        list.content = Content::Seq(self.merge_items(lists, schema, keys)?);
        Ok(Some(list))
    }

    fn merge_items(
        &mut self,
        lists: Lists,
        schema: Schema<'_>,
        keys: &[String],
    ) -> Result<Vec<Node>, String> {
        let of_scalars = keys.is_empty();
        let keys: Vec<&str> = if of_scalars { vec![""] } else { keys.iter().map(String::as_str).collect() };
        let mut tuples = if of_scalars { scalar_tuples(&lists) } else { key_tuples(&lists, &keys) };
        if tuples.is_empty() {
            return Ok(pick(lists.store, &lists.target));
        }
        // Filling gaps of tuples brings no key into use.
        let used = used_keys(&tuples, keys.len());
        let valid: Vec<&str> = used.iter().map(|index| keys[*index]).collect();
        let Lists { mut store, target, patch } = lists;
        let mut lists = [KeyedList::new(&store, target, &valid), KeyedList::new(&store, patch, &valid)];
        // Where no item lacks a key there are no gaps.
        if keys.len() > 1 && !lists.iter().all(KeyedList::is_regular) {
            unify(&mut tuples, self.meter)?;
        }
        let below = schema.items();
        let mut merged = KeyedList::new(&store, Vec::new(), &valid);
        for tuple in &tuples {
            self.meter.check_time()?;
            let values: Tuple = used.iter().filter_map(|index| tuple.get(*index).cloned()).collect();
            let outcome = self.merge_item(&mut store, &mut lists, &valid, &values, below)?;
            let at = match outcome {
                Some(at) if !store[at].is_empty_map() => at,
                _ => {
                    for _ in &valid {
                        lists[0].set(&store, None, &valid, &values)?;
                    }
                    continue;
                }
            };
            complete(&mut store[at], &valid, &values)?;
            // An item that is found by several tuples changes after it was merged.
            if !lists.iter().all(KeyedList::is_regular) {
                merged.forget_places();
            }
            merged.set(&store, Some(at), &valid, &values)?;
        }
        let result = append_all(&store, merged, &lists[0].numbers(), &valid, self.meter)?;
        Ok(pick(store, &result))
    }

    /// Merges the items of both lists that have a tuple; returns the number of the result.
    fn merge_item(
        &mut self,
        store: &mut [Node],
        [targets, patches]: &mut [KeyedList<'_>; 2],
        keys: &[&str],
        values: &[SmolStr],
        schema: Option<Schema<'_>>,
    ) -> Result<Option<usize>, String> {
        let single = [values.to_vec()];
        let used = used_keys(&single, keys.len());
        let keys: Vec<&str> = used.iter().map(|index| keys[*index]).collect();
        let values: Tuple = used.iter().filter_map(|index| values.get(*index).cloned()).collect();
        let target = targets.find(store, &keys, &values)?;
        let patch = patches.find(store, &keys, &values)?;
        let outcome = match (target, patch) {
            (None, None) => None,
            (Some(target), Some(patch)) if target == patch => {
                let node = std::mem::replace(&mut store[target], Node::null());
                let node = self.merge_with_itself(node, schema)?;
                let found = node.as_ref().is_some_and(|node| !node.is_null());
                store[target] = node.unwrap_or_else(Node::null);
                found.then_some(target)
            }
            (target, patch) => {
                let patch_node = patch.map(|at| store[at].clone());
                let outcome = self.walk(target.map(|at| &mut store[at]), patch_node, schema)?;
                match (outcome, target, patch) {
                    (Outcome::Target, target, _) => target,
                    (Outcome::Patch(node), _, Some(at)) => {
                        store[at] = node;
                        Some(at)
                    }
                    _ => None,
                }
            }
        };
        // What is gone is taken out by its values next.
        if outcome.is_some() {
            targets.note_change(store, target, &values);
            patches.note_change(store, patch, &values);
        }
        Ok(outcome)
    }
}

fn take_items(list: &mut Node) -> Vec<Node> {
    list.items_mut().map(std::mem::take).unwrap_or_default()
}

/// The items of a list, in order; one that is in it twice is copied.
fn pick(store: Vec<Node>, list: &[usize]) -> Vec<Node> {
    let mut store: Vec<Option<Node>> = store.into_iter().map(Some).collect();
    let mut taken: Vec<Node> = Vec::with_capacity(list.len());
    let mut place = vec![None; store.len()];
    for at in list {
        let node = match (store[*at].take(), place[*at]) {
            (Some(node), _) => node,
            (None, Some(earlier)) => {
                let earlier: usize = earlier;
                taken[earlier].clone()
            }
            (None, None) => continue,
        };
        place[*at].get_or_insert(taken.len());
        taken.push(node);
    }
    taken
}

/// Whether merging a list with nothing leaves its order: every item is a mapping that has all keys
/// in use, and no two have the same.
fn is_regular(items: &[Node], keys: &[String]) -> bool {
    if keys.is_empty() {
        let mut seen = HashSet::new();
        return items.iter().all(|item| {
            item.kind() == Kind::Scalar && !item.value().is_empty() && seen.insert(item.value())
        });
    }
    let has = |item: &Node, key: &String| {
        item.get(key).is_some_and(|value| !value.is_empty() && !value.value().is_empty())
    };
    let used: Vec<&String> = keys.iter().filter(|key| items.iter().any(|item| has(item, key))).collect();
    if used.is_empty() {
        return items.is_empty();
    }
    let mut seen = HashSet::new();
    items.iter().all(|item| {
        item.kind() == Kind::Map
            && used.iter().all(|key| has(item, key))
            && seen.insert(used.iter().map(|key| item.text_of(key)).collect::<Vec<_>>())
    })
}

/// The tuples of all items, the patch's first.
fn key_tuples(lists: &Lists, keys: &[&str]) -> Vec<Tuple> {
    let mut seen = HashSet::new();
    let tuple = |at: &usize| -> Tuple {
        let value = |key: &&str| {
            lists.store[*at]
                .get(key)
                .filter(|value| !value.is_empty())
                .map(Node::value_smol)
                .unwrap_or_default()
        };
        keys.iter().map(value).collect()
    };
    lists.patch.iter().chain(&lists.target).map(tuple).filter(|tuple| seen.insert(tuple.clone())).collect()
}

fn scalar_tuples(lists: &Lists) -> Vec<Tuple> {
    let mut seen = HashSet::new();
    let values = lists.patch.iter().chain(&lists.target).map(|at| lists.store[*at].value_smol());
    values.filter(|value| seen.insert(value.clone())).map(|value| vec![value]).collect()
}

/// Fills gaps of tuples from others that agree with them.
fn unify(tuples: &mut [Tuple], meter: &Meter) -> Result<(), String> {
    for i in 0..tuples.len() {
        meter.check_time()?;
        for j in 0..tuples.len() {
            if let Some(both) = agree(&tuples[i], &tuples[j]) {
                tuples[i].clone_from(&both);
                tuples[j] = both;
            }
        }
    }
    Ok(())
}

fn agree(a: &Tuple, b: &Tuple) -> Option<Tuple> {
    let mut common = false;
    let mut both = Vec::with_capacity(a.len());
    for (a, b) in a.iter().zip(b) {
        if a == b {
            common = true;
        } else if !a.is_empty() && !b.is_empty() {
            return None;
        }
        both.push(if a.is_empty() { b.clone() } else { a.clone() });
    }
    common.then_some(both)
}

/// The positions of the keys that any item has; of all keys where no item has any.
fn used_keys(tuples: &[Tuple], count: usize) -> Vec<usize> {
    let is_used =
        |index: &usize| tuples.iter().any(|tuple| tuple.get(*index).is_some_and(|value| !value.is_empty()));
    let used: Vec<usize> = (0..count).filter(is_used).collect();
    if used.is_empty() { (0..count).collect() } else { used }
}

/// The first item that has these values (`ElementMatcher`).
pub(super) fn find_item(
    store: &[Node],
    list: &[usize],
    keys: &[&str],
    values: &[SmolStr],
) -> Result<Option<usize>, String> {
    if keys.first().is_none_or(|key| key.is_empty()) {
        let wanted = values.first().cloned().unwrap_or_default();
        return Ok(list.iter().copied().find(|at| store[*at].value() == wanted));
    }
    if keys.len() != values.len() {
        return Err("length of keys must equal length of values when MatchAnyValue is false".to_owned());
    }
    let has = |item: &Node| {
        keys.iter().zip(values).all(|(key, value)| item.get(key).is_some_and(|field| field.value() == value))
    };
    Ok(list.iter().copied().find(|at| has(&store[*at])))
}

/// Sets keys that the merged item lacks.
fn complete(item: &mut Node, keys: &[&str], values: &[SmolStr]) -> Result<(), String> {
    for (key, value) in keys.iter().zip(values) {
        if !key.is_empty() && item.get(key).is_none() && !value.is_empty() {
            item.set(key, Node::scalar(value.clone()))?;
        }
    }
    Ok(())
}

/// Replaces, removes or appends the item with these values (`ElementSetter`); nulls and empty
/// mappings drop out on the way.
pub(super) fn set_item(
    store: &[Node],
    list: &[usize],
    item: Option<usize>,
    keys: &[&str],
    values: &[SmolStr],
) -> Result<Vec<usize>, String> {
    let by_field =
        keys.first().is_some_and(|key| !key.is_empty()) && values.first().is_some_and(|v| !v.is_empty());
    let mut result = Vec::with_capacity(list.len() + 1);
    let mut found = false;
    for at in list {
        let node = &store[*at];
        if node.is_empty_map() {
            continue;
        }
        if node.kind() != Kind::Map && by_field {
            result.push(*at);
            continue;
        }
        if !matches(node, keys, values)? {
            if !values.is_empty() {
                result.push(*at);
            }
            continue;
        }
        found = true;
        result.extend(item);
    }
    if let (false, Some(item)) = (found, item)
        && !store[item].is_null()
    {
        result.push(item);
    }
    Ok(result)
}

fn matches(node: &Node, keys: &[&str], values: &[SmolStr]) -> Result<bool, String> {
    for (index, key) in keys.iter().enumerate() {
        let Some(value) = values.get(index) else {
            return Ok(index > 0);
        };
        if key.is_empty() {
            node.expect(Kind::Scalar)?;
            if node.value() != value {
                return Ok(false);
            }
            continue;
        }
        node.expect(Kind::Map)?;
        if !node.get(key).is_some_and(|field| value.is_empty() || field.value() == value) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Appends the target's items to the merged ones; those that are there already are put in place.
fn append_all(
    store: &[Node],
    mut list: KeyedList<'_>,
    target: &[usize],
    keys: &[&str],
    meter: &Meter,
) -> Result<Vec<usize>, String> {
    for at in target {
        meter.check_time()?;
        let node = &store[*at];
        if keys.first().is_none_or(|key| key.is_empty()) {
            list.set(store, Some(*at), &[""], &[node.value_smol()])?;
            continue;
        }
        let mut values = Vec::with_capacity(keys.len());
        for key in keys {
            node.expect(Kind::Map)?;
            match node.get(key) {
                Some(value) => values.push(value.value_smol()),
                None => list.push(*at),
            }
        }
        if keys.len() > 1 {
            list.set(store, None, keys, &values)?;
        }
        list.set(store, Some(*at), keys, &values)?;
    }
    Ok(list.numbers())
}
