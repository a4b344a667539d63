//! Looking objects up by where they would live and what they are called.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use tiphys_value::ResourceKey;

use super::{EnvironmentId, Object, ObjectId, Owner, Survey, Unit, UnitId, UnitKind};

/// What shares a name space of objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectScope {
    /// A cluster, as the Applications of one environment fill it.
    Cluster(EnvironmentId, Arc<str>),
    /// What no Application reaches: it lives only with what the same unit renders.
    Unit(UnitId),
}

impl Object {
    /// Where it would live.
    pub fn world(&self) -> ObjectScope {
        match (self.environment, self.owner) {
            (Some(environment), _) => ObjectScope::Cluster(environment, self.cluster.clone()),
            (None, Owner::Unit(unit)) => ObjectScope::Unit(unit),
            // An Application always has an environment.
            (None, Owner::App(_)) => ObjectScope::Cluster(EnvironmentId(0), self.cluster.clone()),
        }
    }
}

/// The objects by where they would live and by key.
#[derive(Debug, Default)]
pub(crate) struct Index {
    worlds: BTreeMap<ObjectScope, Vec<ObjectId>>,
    keys: HashMap<ResourceKey, Namesakes>,
    kinds: HashMap<String, Vec<ObjectId>>,
}

/// The objects of one key.
#[derive(Debug)]
struct Namesakes {
    ids: Vec<ObjectId>,
    /// Whether something renders one of them, so that they do not only stand in files.
    is_rendered: bool,
}

impl Index {
    /// Sorts objects.
    pub(crate) fn from_objects(objects: &[Object], units: &[Unit]) -> Self {
        let is_file = |id: UnitId| units.get(id.0).is_some_and(|unit| unit.kind == UnitKind::Manifest);
        let mut index = Self::default();
        for object in objects {
            index.worlds.entry(object.world()).or_default().push(object.id);
            match index.kinds.get_mut(&object.key.kind) {
                Some(known) => known.push(object.id),
                None => drop(index.kinds.insert(object.key.kind.clone(), vec![object.id])),
            }
            let is_rendered = !matches!(object.owner, Owner::Unit(id) if is_file(id));
            match index.keys.get_mut(&object.key) {
                Some(known) => {
                    known.ids.push(object.id);
                    known.is_rendered |= is_rendered;
                }
                None => {
                    let known = Namesakes { ids: vec![object.id], is_rendered };
                    index.keys.insert(object.key.clone(), known);
                }
            }
        }
        index
    }
}

impl Survey {
    /// Every world and what lives in it.
    pub fn worlds(&self) -> impl Iterator<Item = (&ObjectScope, impl Iterator<Item = &Object> + Clone)> {
        let worlds = self.index().worlds.iter();
        worlds.map(|(world, ids)| (world, ids.iter().map(|id| self.object(*id))))
    }

    /// What lives in a world.
    pub fn objects_in(&self, world: &ObjectScope) -> impl Iterator<Item = &Object> {
        let ids = self.index().worlds.get(world).map(Vec::as_slice).unwrap_or_default();
        ids.iter().map(|id| self.object(*id))
    }

    /// The objects of one key in a world.
    pub fn lookup<'a>(
        &'a self,
        world: &'a ObjectScope,
        key: &'a ResourceKey,
    ) -> impl Iterator<Item = &'a Object> + use<'a> {
        self.with_key(key).filter(move |object| object.world() == *world)
    }

    /// The objects of one key in all worlds.
    pub fn with_key(&self, key: &ResourceKey) -> impl Iterator<Item = &Object> {
        let ids = self.index().keys.get(key).map(|known| known.ids.as_slice()).unwrap_or_default();
        ids.iter().map(|id| self.object(*id))
    }

    /// The objects of a group and kind.
    pub fn of_kind<'a>(&'a self, group: &'a str, kind: &str) -> impl Iterator<Item = &'a Object> + use<'a> {
        let ids = self.index().kinds.get(kind).map(Vec::as_slice).unwrap_or_default();
        ids.iter().map(|id| self.object(*id)).filter(move |object| object.key.group == group)
    }

    /// Whether an object of a key is rendered, and does not only stand in files that nothing reads.
    pub fn is_rendered(&self, key: &ResourceKey) -> bool {
        self.index().keys.get(key).is_some_and(|known| known.is_rendered)
    }

    fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::from_objects(&self.objects, &self.units))
    }
}
