//! A list of items that are found and replaced by the values of their keys.
//!
//! As long as every item has all keys, and no two the same values, it is known where each stands. Of any
//! other list every item is looked at, as kyaml does it always.

use std::collections::HashMap;

use smol_str::SmolStr;

use super::lists::{Tuple, find_item, set_item};
use crate::node::{Kind, Node};

/// Numbers of items in a store.
pub(super) struct KeyedList<'k> {
    keys: Vec<&'k str>,
    /// Those that were taken out leave a gap while there are places.
    items: Vec<Option<usize>>,
    /// By the values of the keys where an item stands, if the list is regular.
    places: Option<HashMap<Tuple, usize>>,
}

impl<'k> KeyedList<'k> {
    /// A list of items of a store, and the keys by which it is asked.
    pub(super) fn new(store: &[Node], items: Vec<usize>, keys: &[&'k str]) -> Self {
        let mut places = HashMap::with_capacity(items.len());
        #[cfg(test)]
        let mut is_regular = !tests::LOOKS_AT_ALL.get();
        #[cfg(not(test))]
        let mut is_regular = true;
        for (place, at) in items.iter().enumerate() {
            let Some(values) = values_of(&store[*at], keys) else {
                is_regular = false;
                break;
            };
            if places.insert(values, place).is_some() {
                is_regular = false;
                break;
            }
        }
        Self {
            keys: keys.to_vec(),
            items: items.into_iter().map(Some).collect(),
            places: is_regular.then_some(places),
        }
    }

    /// The items, in order.
    pub(super) fn numbers(&self) -> Vec<usize> {
        self.items.iter().flatten().copied().collect()
    }

    /// Whether the list is asked by these keys, with all values, and knows its places.
    fn knows(&self, keys: &[&str], values: &[SmolStr]) -> bool {
        let has_all =
            values.len() == keys.len() && (keys == [""] || values.iter().all(|value| !value.is_empty()));
        self.places.is_some() && self.keys == keys && has_all
    }

    /// Whether it is known where each item stands.
    pub(super) fn is_regular(&self) -> bool {
        self.places.is_some()
    }

    /// Looks at every item from now on.
    pub(super) fn forget_places(&mut self) {
        self.places = None;
    }

    /// Notes that an item that was found by values was changed; it has them still, or its place is not known.
    pub(super) fn note_change(&mut self, store: &[Node], at: Option<usize>, values: &[SmolStr]) {
        if at.is_some_and(|at| values_of(&store[at], &self.keys).is_none_or(|own| own != values)) {
            self.places = None;
        }
    }

    /// As [`find_item`].
    pub(super) fn find(
        &self,
        store: &[Node],
        keys: &[&str],
        values: &[SmolStr],
    ) -> Result<Option<usize>, String> {
        if self.knows(keys, values)
            && let Some(places) = &self.places
        {
            return Ok(places.get(values).and_then(|place| self.items[*place]));
        }
        find_item(store, &self.numbers(), keys, values)
    }

    /// As [`set_item`].
    pub(super) fn set(
        &mut self,
        store: &[Node],
        item: Option<usize>,
        keys: &[&str],
        values: &[SmolStr],
    ) -> Result<(), String> {
        let is_own = |at: usize| values_of(&store[at], keys).is_some_and(|own| own == values);
        if self.knows(keys, values)
            && item.is_none_or(is_own)
            && let Some(places) = &mut self.places
        {
            match (places.get(values).copied(), item) {
                (Some(place), Some(_)) => self.items[place] = item,
                (Some(place), None) => {
                    self.items[place] = None;
                    places.remove(values);
                }
                (None, Some(_)) => {
                    places.insert(values.to_vec(), self.items.len());
                    self.items.push(item);
                }
                (None, None) => {}
            }
            return Ok(());
        }
        self.places = None;
        self.items = set_item(store, &self.numbers(), item, keys, values)?.into_iter().map(Some).collect();
        Ok(())
    }

    /// Appends an item.
    pub(super) fn push(&mut self, at: usize) {
        self.places = None;
        self.items.push(Some(at));
    }
}

/// The values of an item's keys, if it has them all; of a scalar, which has no keys, its text.
fn values_of(item: &Node, keys: &[&str]) -> Option<Tuple> {
    if keys == [""] {
        return (item.kind() == Kind::Scalar && !item.is_null()).then(|| vec![item.value_smol()]);
    }
    if item.kind() != Kind::Map {
        return None;
    }
    let value = |key: &&str| item.get(key).map(Node::value_smol).filter(|value| !value.is_empty());
    keys.iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tiphys_vfs::MemTree;

    use super::*;

    thread_local! {
        /// Whether every list looks at all of its items.
        pub(super) static LOOKS_AT_ALL: Cell<bool> = const { Cell::new(false) };
    }

    /// Patches of lists with gaps, doubles, nulls and directives come out the same.
    #[test]
    fn builds_are_the_same_with_places_and_without() {
        let mut seed = 7_u64;
        let mut draw = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        let mut merged = 0;
        for _ in 0..1_000 {
            let irregular = draw(4) == 0;
            let mut list = |of_patch: bool| -> String {
                let count = draw(6);
                let mut item = |_| {
                    let odd = if irregular { draw(8) } else { 8 };
                    let directive = match (of_patch, draw(6)) {
                        (true, 0) => ", $patch: delete",
                        (true, 1) => ", $patch: replace",
                        _ => "",
                    };
                    let (name, port, value) = (draw(7), 80 + draw(4), draw(9));
                    match odd {
                        0 => format!("{{value: '{value}'{directive}}}"),
                        1 => format!("{{name: null, containerPort: {port}{directive}}}"),
                        2 => format!("{{containerPort: {port}, name: n{name}{directive}}}"),
                        3 => "{}".to_owned(),
                        _ => {
                            let protocol = if draw(2) == 0 { "TCP" } else { "UDP" };
                            format!(
                                "{{name: n{name}, containerPort: {port}, protocol: {protocol}, value: '{value}'{directive}}}"
                            )
                        }
                    }
                };
                (0..count).map(&mut item).collect::<Vec<_>>().join(", ")
            };
            let mut object = |of_patch: bool| {
                format!(
                    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: d, finalizers: [a, b]}}\nspec: {{template: {{spec: {{containers: [{{name: a, env: [{}], ports: [{}]}}]}}}}}}\n",
                    list(of_patch),
                    list(of_patch)
                )
            };
            let (target, patch) = (object(false), object(true));
            let tree = MemTree::from_files([
                ("kustomization.yaml", "resources: [d.yaml]\npatches: [{path: p.yaml}]\n"),
                ("d.yaml", target.as_str()),
                ("p.yaml", patch.as_str()),
            ]);
            let built = |looks_at_all: bool| {
                LOOKS_AT_ALL.set(looks_at_all);
                let built = crate::build(&tree, "", &crate::BuildOptions::default());
                built.map(|built| built.to_yaml()).map_err(|error| error.to_string())
            };
            let (quick, slow) = (built(false), built(true));
            assert_eq!(quick, slow, "{target}---\n{patch}");
            merged += usize::from(quick.is_ok());
        }
        assert!(merged > 500, "{merged} are merged");
    }

    fn item(name: &str, protocol: &str) -> Node {
        let field = |key: &str, value: &str| (Node::scalar(key), Node::scalar(value));
        let fields = [field("name", name), field("protocol", protocol)];
        Node::map(fields.into_iter().filter(|(_, value)| !value.value().is_empty()).collect())
    }

    /// With places and without, the same items are found, replaced and taken out.
    #[test]
    fn places_change_nothing_but_the_time() {
        let names = ["a", "b", "c", "d"];
        for keys in [vec!["name"], vec!["name", "protocol"]] {
            let store: Vec<Node> = names
                .iter()
                .chain(&["c", "x"])
                .map(|name| item(name, "TCP"))
                .chain([item("y", "")])
                .collect();
            let mut quick = KeyedList::new(&store, (0..4).collect(), &keys);
            let mut slow = KeyedList::new(&store, (0..4).collect(), &keys);
            slow.forget_places();
            assert!(quick.is_regular() && !slow.is_regular());
            let values = |name: &str| -> Tuple {
                [name, "TCP"].into_iter().take(keys.len()).map(SmolStr::from).collect()
            };
            for (name, number) in [
                ("c", Some(4)),
                ("a", None),
                ("x", Some(5)),
                ("none", None),
                ("b", Some(1)),
                ("y", Some(6)),
                ("x", None),
            ] {
                for list in [&mut quick, &mut slow] {
                    list.set(&store, number, &keys, &values(name)).unwrap();
                }
                assert_eq!(quick.numbers(), slow.numbers(), "{name}");
                let found = |list: &KeyedList<'_>| list.find(&store, &keys, &values("c")).unwrap();
                assert_eq!(found(&quick), found(&slow));
            }
        }
    }
}
