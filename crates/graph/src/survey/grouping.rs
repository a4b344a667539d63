//! Which roots share an environment: by the folders that they are declared in and, where two folders
//! hold Applications of the same names, apart by those.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
};

use tiphys_value::{ObjectExt, Value};
use tiphys_vfs::is_below;

use super::{
    build::{self, Found, Seed},
    environment,
};

/// How deep Applications are followed.
const MAX_DEPTH: usize = 32;

/// A root and the Applications below it.
struct Tree {
    /// The file or folder that declares the root.
    path: String,
    /// What its path alone says of its environment.
    usual: String,
    /// The names that may tell its environment: its file's and its own.
    called: [String; 2],
    /// The cluster and the namespace that the root renders into; `None` if it does not say.
    destination: Option<(String, String)>,
    /// Namespace and name of every Application, and what tells two of one name apart.
    names: BTreeMap<(String, String), u64>,
}

/// The environment of each root, by its name.
pub fn environments(seeds: &[Seed], folders: &[String], found: &Found<'_>) -> Vec<String> {
    let mut trees: Vec<Tree> = seeds.iter().map(|seed| tree(seed, folders, found)).collect();
    part_by_name(&mut trees);
    let mut owners: HashMap<(&str, &(String, String)), Vec<usize>> = HashMap::new();
    for (index, tree) in trees.iter().enumerate() {
        for name in tree.names.keys() {
            owners.entry((tree.usual.as_str(), name)).or_default().push(index);
        }
    }
    let mut splits: Vec<(String, String)> = Vec::new();
    let mut environments: Vec<String> = Vec::with_capacity(trees.len());
    for (index, tree) in trees.iter().enumerate() {
        let mut environment = split_of(&splits, tree);
        let rival =
            tree.names.keys().flat_map(|name| &owners[&(tree.usual.as_str(), name)]).copied().find(|other| {
                *other < index && environments[*other] == environment && differ(tree, &trees[*other])
            });
        if let Some(folder) = rival.and_then(|rival| environment::parting(&tree.path, &trees[rival].path))
            && is_parallel(folder, tree, &trees, &owners)
        {
            environment = folder.to_owned();
            splits.push((tree.usual.clone(), environment.clone()));
        }
        environments.push(environment);
    }
    environments
}

/// Roots of one folder whose names differ only in the word for an environment are of several: `dev.yaml` beside
/// `prod.yaml`, `root-dev` beside `root-prod`.
fn part_by_name(trees: &mut [Tree]) {
    let mut words: BTreeMap<(String, usize, String), BTreeSet<String>> = BTreeMap::new();
    let folder = |tree: &Tree| tiphys_vfs::parent(&tree.path).unwrap_or_default().to_owned();
    for tree in trees.iter() {
        for (which, name) in tree.called.iter().enumerate() {
            if let Some((rest, word)) = environment::worded(name) {
                words.entry((folder(tree), which, rest)).or_default().insert(word.to_owned());
            }
        }
    }
    let shared: BTreeSet<String> =
        words.keys().map(|(folder, ..)| folder.clone()).filter(|it| is_shared(it, trees)).collect();
    let parted: BTreeSet<(String, String)> = words
        .into_iter()
        .filter(|((folder, ..), words)| words.len() > 1 && !shared.contains(folder))
        .flat_map(|((folder, _, _), words)| words.into_iter().map(move |word| (folder.clone(), word)))
        .collect();
    for tree in trees {
        let word =
            tree.called.iter().find_map(|name| environment::worded(name)).map(|(_, word)| word.to_owned());
        if let Some(word) = word.filter(|word| parted.contains(&(folder(tree), word.clone()))) {
            tree.usual = format!("{}/{word}", folder(tree));
        }
    }
}

/// Whether the environments of a folder's roots share one cluster: each has namespaces of its own there, and a root that
/// is of none of them renders into one of these.
fn is_shared(folder: &str, trees: &[Tree]) -> bool {
    let word = |tree: &Tree| {
        tree.called.iter().find_map(|name| environment::worded(name)).map(|(_, word)| word.to_owned())
    };
    let mut of_words: BTreeMap<&(String, String), BTreeSet<String>> = BTreeMap::new();
    let mut of_none: BTreeSet<&(String, String)> = BTreeSet::new();
    for tree in trees.iter().filter(|tree| tiphys_vfs::parent(&tree.path).unwrap_or_default() == folder) {
        let Some(destination) = &tree.destination else { return false };
        match word(tree) {
            Some(word) => drop(of_words.entry(destination).or_default().insert(word)),
            None => drop(of_none.insert(destination)),
        }
    }
    of_words.values().all(|words| words.len() == 1) && of_none.iter().any(|it| of_words.contains_key(it))
}

/// The innermost folder known to be an environment of its own that a root lies in.
fn split_of(splits: &[(String, String)], tree: &Tree) -> String {
    let own = splits.iter().filter(|(usual, folder)| *usual == tree.usual && is_below(&tree.path, folder));
    own.map(|(_, folder)| folder).max_by_key(|folder| folder.len()).unwrap_or(&tree.usual).clone()
}

/// Whether two trees have an Application of one name that is not the same.
fn differ(one: &Tree, other: &Tree) -> bool {
    one.names.iter().any(|(name, hash)| other.names.get(name).is_some_and(|others| others != hash))
}

/// Whether most roots in a folder have a name that a root elsewhere has too: then the folder is one of
/// several copies, and not a place where somebody took a name twice.
fn is_parallel(
    folder: &str,
    tree: &Tree,
    trees: &[Tree],
    owners: &HashMap<(&str, &(String, String)), Vec<usize>>,
) -> bool {
    let here: Vec<&Tree> =
        trees.iter().filter(|other| other.usual == tree.usual && is_below(&other.path, folder)).collect();
    let is_doubled = |one: &&&Tree| {
        let all = one.names.keys().filter_map(|name| owners.get(&(tree.usual.as_str(), name)));
        all.flatten().any(|other| !is_below(&trees[*other].path, folder))
    };
    here.iter().filter(is_doubled).count() * 2 >= here.len()
}

fn tree(seed: &Seed, folders: &[String], found: &Found<'_>) -> Tree {
    let path =
        seed.unit.map_or_else(|| seed.declared.location.file.to_string(), |at| format!("{}/", folders[at]));
    let mut names = BTreeMap::new();
    gather(&seed.declared.value, found, &mut names, &mut HashSet::new(), 0);
    let file = tiphys_vfs::base_name(&path);
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem).to_owned();
    let called = [stem, seed.declared.value.name().to_owned()];
    let text = |field: &str| seed.declared.value.str_at(&["spec", "destination", field]);
    let cluster = text("server").or_else(|| text("name")).unwrap_or_default().to_owned();
    let destination =
        text("namespace").filter(|it| !it.is_empty()).map(|namespace| (cluster, namespace.to_owned()));
    Tree { destination, usual: environment::of(&path).to_owned(), path, called, names }
}

fn gather(
    declared: &Value,
    found: &Found<'_>,
    names: &mut BTreeMap<(String, String), u64>,
    seen: &mut HashSet<u64>,
    depth: usize,
) {
    if depth > MAX_DEPTH || !seen.insert(hash(declared)) {
        return;
    }
    if declared.kind() == "ApplicationSet" {
        let yielded = found.sets.get(&declared.to_string());
        for generated in yielded.map(|it| it.apps.as_slice()).unwrap_or_default() {
            gather(&generated.application, found, names, seen, depth + 1);
        }
        return;
    }
    let name = (declared.namespace().to_owned(), declared.name().to_owned());
    names.entry(name).or_insert_with(|| hash(&declared["spec"]));
    let Some(rendering) = found.memo.get(declared) else { return };
    for inner in rendering.objects.iter().filter(|object| build::declares(&object.value)) {
        gather(&inner.value, found, names, seen, depth + 1);
    }
}

fn hash(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.to_string().hash(&mut hasher);
    hasher.finish()
}
