//! Which roots share an environment: by the folders that they are declared in and, where two folders
//! hold Applications of the same names, apart by those.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
};

use tiphys_value::{ObjectExt, Value};
use tiphys_vfs::is_below;

use super::{
    declarations, environment,
    found::{Found, Seed},
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

impl Tree {
    /// The Applications other than the root itself.
    fn below(&self) -> impl Iterator<Item = &(String, String)> {
        self.names.keys().filter(|(_, name)| *name != self.called[1])
    }
}

/// Which roots belong together.
pub(super) struct Groups {
    /// The environment of each root, by its name.
    pub names: Vec<String>,
    /// Several environments that stand side by side, of which one is chosen to run: what each is called, and
    /// the environments that it consists of.
    pub choices: BTreeMap<String, BTreeSet<String>>,
}

/// Sorts roots into environments.
pub(super) fn groups(seeds: &[Seed], folders: &[String], found: &Found<'_>) -> Groups {
    let mut trees: Vec<Tree> = seeds.iter().map(|seed| tree(seed, folders, found)).collect();
    part_by_name(&mut trees);
    let mut names = part_by_folder(&trees);
    part_by_file(&trees, &mut names);
    let choices = choices(&trees, &names);
    Groups { names, choices }
}

/// The environment of each root: what its path says, and where the roots of two folders have Applications of
/// one name, a folder in which the two differ.
fn part_by_folder(trees: &[Tree]) -> Vec<String> {
    let mut owners: HashMap<(&str, &(String, String)), Vec<usize>> = HashMap::new();
    for (index, tree) in trees.iter().enumerate() {
        for name in tree.names.keys() {
            owners.entry((tree.usual.as_str(), name)).or_default().push(index);
        }
    }
    let mut splits: Vec<(String, String)> = Vec::new();
    let mut environments: Vec<String> = Vec::with_capacity(trees.len());
    for (index, tree) in trees.iter().enumerate() {
        let environment = split_of(&splits, tree);
        let rival =
            tree.names.keys().flat_map(|name| &owners[&(tree.usual.as_str(), name)]).copied().find(|other| {
                *other < index && environments[*other] == environment && differ(tree, &trees[*other])
            });
        environments.push(environment);
        let Some(rival) = rival else { continue };
        let apart = |one: &Tree, other: &Tree| {
            let folder = environment::parting(&one.path, &other.path)?.to_owned();
            let are_parents = leads_on(tree) && leads_on(&trees[rival]);
            (are_parents || is_parallel(&folder, one, trees, &owners)).then_some(folder)
        };
        let Some(own) = apart(tree, &trees[rival]) else { continue };
        // Both sides get a folder, unless one lies above the other.
        let others = apart(&trees[rival], tree).filter(|folder| !is_below(&tree.path, folder));
        splits.push((tree.usual.clone(), own.clone()));
        environments[index] = own;
        if let Some(folder) = others {
            splits.push((tree.usual.clone(), folder));
            for (at, environment) in environments.iter_mut().enumerate() {
                *environment = split_of(&splits, &trees[at]);
            }
        }
    }
    environments
}

/// Parts roots of one folder that mostly lead to the same Applications, by their files: all at once they
/// would fight over each of those.
fn part_by_file(trees: &[Tree], names: &mut [String]) {
    let folder = |at: usize| tiphys_vfs::parent(&trees[at].path).unwrap_or_default();
    let contends = |one: usize, other: usize| {
        let (a, b) = (&trees[one], &trees[other]);
        let are_files = !a.path.ends_with('/') && !b.path.ends_with('/');
        if !are_files || names[one] != names[other] || a.path == b.path || folder(one) != folder(other) {
            return false;
        }
        let shared = a.below().filter(|name| b.below().any(|it| it == *name)).count();
        shared > 0 && 2 * shared >= a.below().count().min(b.below().count())
    };
    let all = 0..trees.len();
    let parted: Vec<usize> = all.clone().filter(|at| all.clone().any(|other| contends(*at, other))).collect();
    for at in parted {
        let path = &trees[at].path;
        names[at] = path.rsplit_once('.').map_or(path.as_str(), |(stem, _)| stem).to_owned();
    }
}

/// What may be chosen among: environments that are named. Folders that are called as environments are, beside
/// more that are not, are none: a folder of test tools among those of other programs. Environments of one
/// word that have nothing in common are one: `apps/overlays/prod` and `infra/overlays/prod`.
fn choices(trees: &[Tree], names: &[String]) -> BTreeMap<String, BTreeSet<String>> {
    let mut words: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let is_choice = |name: &&String| {
        !name.is_empty()
            && is_one_of_many(trees, name)
            && (is_folder(trees, names, name) || clashes(trees, names, name))
    };
    for name in names.iter().filter(is_choice) {
        words.entry(tiphys_vfs::base_name(name)).or_default().insert(name);
    }
    let mut choices: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (word, environments) in words {
        let own = |name: &str| -> BTreeSet<&(String, String)> {
            let trees = trees.iter().zip(names).filter(|(_, it)| *it == name);
            trees.flat_map(|(tree, _)| tree.names.keys()).collect()
        };
        let mut seen: BTreeSet<&(String, String)> = BTreeSet::new();
        let is_apart = environments.iter().all(|name| own(name).into_iter().all(|app| seen.insert(app)));
        let owned = |name: &&str| (*name).to_owned();
        if is_apart && environments.len() > 1 {
            choices.insert(word.to_owned(), environments.iter().map(owned).collect());
        } else {
            choices.extend(environments.iter().map(|name| (owned(name), BTreeSet::from([owned(name)]))));
        }
    }
    choices
}

/// Whether an environment is a folder with roots, or one that a chart is told.
fn is_folder(trees: &[Tree], names: &[String], name: &str) -> bool {
    let mut own = trees.iter().zip(names).filter(|(_, it)| *it == name);
    own.any(|(tree, _)| is_below(&tree.path, name))
}

/// Whether an environment has an Application of a name that another one has.
fn clashes(trees: &[Tree], names: &[String], name: &str) -> bool {
    let (own, others): (Vec<_>, Vec<_>) = trees.iter().zip(names).partition(|(_, it)| *it == name);
    let others: BTreeSet<_> = others.iter().flat_map(|(tree, _)| tree.names.keys()).collect();
    own.iter().flat_map(|(tree, _)| tree.names.keys()).any(|app| others.contains(app))
}

/// Whether at least half of the folders with roots beside that of an environment are environments too.
fn is_one_of_many(trees: &[Tree], name: &str) -> bool {
    let above = tiphys_vfs::parent(name).unwrap_or_default();
    let prefix = if above.is_empty() { String::new() } else { format!("{above}/") };
    let below = trees.iter().filter_map(|tree| tree.path.strip_prefix(prefix.as_str())?.split_once('/'));
    let beside: BTreeSet<&str> = below.map(|(folder, _)| folder).collect();
    let own = tiphys_vfs::base_name(name);
    // One that is named by a file, or apart for other reasons than its name, has no such folder.
    let path = format!("{prefix}{own}/");
    if !beside.contains(own) || environment::environment_of(&path) != name {
        return true;
    }
    let named = beside.iter().filter(|it| {
        let folder = format!("{prefix}{it}");
        environment::environment_of(&format!("{folder}/")) == folder
    });
    2 * named.count() >= beside.len()
}

/// Roots of one folder whose names differ only in the word for an environment are of several: `dev.yaml`
/// beside `prod.yaml`, `root-dev` beside `root-prod`.
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

/// Whether the environments of a folder's roots share one cluster: each has namespaces of its own there, and
/// a root that is of none of them renders into one of these.
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

/// Whether a root brings other Applications. Two of one name cannot stand in one cluster, and to look at one
/// alone would hide all that the other brings.
fn leads_on(tree: &Tree) -> bool {
    tree.below().next().is_some()
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
    let path = seed.environment.as_ref().map_or(path, |environment| format!("{environment}/"));
    let mut names = BTreeMap::new();
    gather(&seed.declared.value, found, &mut names, &mut HashSet::new(), 0);
    let file = tiphys_vfs::base_name(&path);
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem).to_owned();
    let called = [stem, seed.declared.value.name().to_owned()];
    let text = |field: &str| seed.declared.value.str_at(&["spec", "destination", field]);
    let cluster = text("server").or_else(|| text("name")).unwrap_or_default().to_owned();
    let destination =
        text("namespace").filter(|it| !it.is_empty()).map(|namespace| (cluster, namespace.to_owned()));
    let usual = seed.environment.clone().unwrap_or_else(|| environment::environment_of(&path).to_owned());
    Tree { destination, usual, path, called, names }
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
    for inner in rendering.objects.iter().filter(|object| declarations::declares(&object.value)) {
        gather(&inner.value, found, names, seen, depth + 1);
    }
}

fn hash(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.to_string().hash(&mut hasher);
    hasher.finish()
}
