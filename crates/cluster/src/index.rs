//! Live objects with the indexes that the engine asks for.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use parking_lot::{Mutex, MutexGuard};
use tiphys_value::{GroupKind, ObjectExt, ResourceKey, Resting, Value};

struct Entry {
    object: Resting,
    mark: Option<String>,
}

/// Objects by key, by kind, by mark (of the Application they belong to) and by owner.
#[derive(Default)]
pub(crate) struct Index {
    objects: HashMap<ResourceKey, Entry>,
    by_kind: HashMap<GroupKind, BTreeSet<ResourceKey>>,
    by_mark: HashMap<String, HashSet<ResourceKey>>,
    by_owner: HashMap<String, HashSet<ResourceKey>>,
    /// The objects that do not rest.
    awake: Mutex<HashSet<ResourceKey>>,
}

impl Index {
    pub(crate) fn get(&self, key: &ResourceKey) -> Option<Arc<Value>> {
        let (object, rested) = self.objects.get(key)?.object.get();
        if rested {
            self.awake().insert(key.clone());
        }
        Some(object)
    }

    /// An object for whoever only looks at it: it rests on.
    pub(crate) fn peek(&self, key: &ResourceKey) -> Option<Arc<Value>> {
        self.objects.get(key).map(|entry| entry.object.peek())
    }

    /// Takes out the keys of the objects that do not rest.
    pub(crate) fn drain_awake(&self) -> HashSet<ResourceKey> {
        std::mem::take(&mut *self.awake())
    }

    /// Lets an object rest unless it was asked for since this was last called.
    pub(crate) fn pack_if_idle(&self, key: ResourceKey) {
        if self.objects.get(&key).is_some_and(|entry| !entry.object.pack_if_idle()) {
            self.awake().insert(key);
        }
    }

    fn awake(&self) -> MutexGuard<'_, HashSet<ResourceKey>> {
        self.awake.lock()
    }

    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    /// The keys of all objects, in no order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &ResourceKey> {
        self.objects.keys()
    }

    pub(crate) fn tracked_by(&self, mark: &str) -> Vec<Arc<Value>> {
        self.lookup(self.by_mark.get(mark))
    }

    /// The objects of a kind, in key order. They rest on.
    pub(crate) fn of_kind(&self, kind: &GroupKind) -> Vec<Arc<Value>> {
        self.keys_of(kind).filter_map(|key| self.peek(key)).collect()
    }

    /// The keys of a kind's objects, in order.
    pub(crate) fn keys_of(&self, kind: &GroupKind) -> impl Iterator<Item = &ResourceKey> {
        self.by_kind.get(kind).into_iter().flatten()
    }

    pub(crate) fn owned_by(&self, uid: &str) -> Vec<Arc<Value>> {
        self.lookup(self.by_owner.get(uid))
    }

    fn lookup(&self, keys: Option<&HashSet<ResourceKey>>) -> Vec<Arc<Value>> {
        let keys: BTreeSet<&ResourceKey> = keys.into_iter().flatten().collect();
        keys.into_iter().filter_map(|key| self.peek(key)).collect()
    }

    /// Puts an object in; returns the one it replaces.
    pub(crate) fn insert(
        &mut self,
        key: ResourceKey,
        mark: Option<String>,
        object: Arc<Value>,
    ) -> Option<Arc<Value>> {
        let old = self.remove(&key);
        if let Some(mark) = &mark {
            self.by_mark.entry(mark.clone()).or_default().insert(key.clone());
        }
        for owner in owners(&object) {
            self.by_owner.entry(owner.to_owned()).or_default().insert(key.clone());
        }
        self.by_kind.entry(key.group_kind()).or_default().insert(key.clone());
        self.awake().insert(key.clone());
        self.objects.insert(key, Entry { object: Resting::new(object), mark });
        old
    }

    /// Takes an object out.
    pub(crate) fn remove(&mut self, key: &ResourceKey) -> Option<Arc<Value>> {
        let Entry { object, mark } = self.objects.remove(key)?;
        self.awake().remove(key);
        let object = object.into_object();
        let kind = key.group_kind();
        if let Some(keys) = self.by_kind.get_mut(&kind) {
            keys.remove(key);
            if keys.is_empty() {
                self.by_kind.remove(&kind);
            }
        }
        for owner in owners(&object) {
            forget(&mut self.by_owner, owner, key);
        }
        if let Some(mark) = mark {
            forget(&mut self.by_mark, &mark, key);
        }
        Some(object)
    }
}

fn forget(index: &mut HashMap<String, HashSet<ResourceKey>>, entry: &str, key: &ResourceKey) {
    if let Some(keys) = index.get_mut(entry) {
        keys.remove(key);
        if keys.is_empty() {
            index.remove(entry);
        }
    }
}

fn owners(object: &Value) -> impl Iterator<Item = &str> {
    object.owner_references().iter().filter_map(|owner| owner.get("uid")?.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    fn object(name: &str, owner: &str) -> (ResourceKey, Arc<Value>) {
        let value = json!({"kind": "Pod", "metadata": {"name": name, "ownerReferences": [{"uid": owner}]}});
        (value.resource_key(), Arc::new(value))
    }

    #[test]
    fn indexes_follow_changes_and_removals() {
        let mut index = Index::default();
        let (key, first) = object("a", "u1");
        assert!(index.insert(key.clone(), Some("app1".into()), first).is_none());
        let (_, second) = object("a", "u2");
        assert!(index.insert(key.clone(), Some("app2".into()), second).is_some());
        assert!(index.tracked_by("app1").is_empty() && index.owned_by("u1").is_empty());
        assert_eq!((index.tracked_by("app2").len(), index.owned_by("u2").len()), (1, 1));
        assert_eq!(index.of_kind(&GroupKind::new("", "Pod")).len(), 1);
        assert!(index.of_kind(&GroupKind::new("", "Secret")).is_empty());
        index.remove(&key);
        let left = (index.len(), index.by_mark.len(), index.by_owner.len(), index.by_kind.len());
        assert_eq!((left, index.drain_awake().len()), ((0, 0, 0, 0), 0));
    }

    #[test]
    fn who_is_asked_for_is_awake_until_nobody_asks() {
        let mut index = Index::default();
        let (key, value) = object("a", "u1");
        index.insert(key.clone(), None, value.clone());
        drop(value);
        let rest = |index: &Index| index.drain_awake().into_iter().for_each(|key| index.pack_if_idle(key));
        rest(&index);
        assert!(index.awake().is_empty());
        assert!(index.peek(&key).is_some() && index.awake().is_empty());
        assert_eq!(index.get(&key).map(|read| read.resource_key()), Some(key.clone()));
        assert_eq!(index.drain_awake(), HashSet::from([key.clone()]));
        assert!(index.remove(&key).is_some());
    }
}
