//! Telling several environments side by side from several Applications that belong together.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_graph::survey::environment_of;

use super::{Catalogue, Found, catalogue::Node};

/// What to run.
pub enum Choice<'a> {
    /// These Applications. Of two of one name the first is among them; each such pair is named.
    Run(Vec<&'a Found>, Vec<(&'a Found, &'a Found)>),
    /// One of several environments; each with its folder, or its file, and its Applications.
    Ask(BTreeMap<String, Vec<&'a Found>>),
}

/// Decides what is to be run of the Applications that nothing else renders.
pub fn choose<'a>(roots: Vec<&'a Found>, catalogue: &Catalogue) -> Choice<'a> {
    let environments = group(&roots);
    if environments.len() > 1 && (clash(&roots, catalogue) || are_environments(&environments)) {
        return Choice::Ask(environments);
    }
    let files = group_by_file(&roots, catalogue);
    if files.len() > 1 {
        return Choice::Ask(files);
    }
    let mut seen: BTreeMap<Node, &Found> = BTreeMap::new();
    let (mut run, mut passed_over) = (Vec::new(), Vec::new());
    for root in roots {
        match seen.get(&root.node()) {
            Some(first) => passed_over.push((*first, root)),
            None => {
                seen.insert(root.node(), root);
                run.push(root);
            }
        }
    }
    Choice::Run(run, passed_over)
}

/// Groups the roots by a folder in which two of them differ while everything below it is alike:
/// `envs/dev/root.yaml` and `envs/prod/root.yaml`. Of folders at several depths those count that are called as
/// environments are, else those nearest to the root. Empty if there is no such folder.
fn group<'a>(roots: &[&'a Found]) -> BTreeMap<String, Vec<&'a Found>> {
    // Where such folders lie, by their depth.
    let mut parents: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
    for (index, first) in roots.iter().enumerate() {
        for second in &roots[index + 1..] {
            if let Some(depth) = differing_folder(&first.file, &second.file) {
                parents.entry(depth).or_default().insert(steps(&first.file, depth));
            }
        }
    }
    let at = |(depth, parents): (usize, BTreeSet<String>)| {
        let mut groups: BTreeMap<String, Vec<&Found>> = BTreeMap::new();
        for root in roots {
            // What stands beside or above the folders belongs to none of them.
            let is_within = root.file.split('/').count() > depth + 1;
            if is_within && parents.contains(&steps(&root.file, depth)) {
                groups.entry(steps(&root.file, depth + 1)).or_default().push(root);
            }
        }
        groups
    };
    let mut all: Vec<_> = parents.into_iter().map(at).collect();
    let best = all.iter().position(are_environments).unwrap_or_default();
    if all.is_empty() { BTreeMap::new() } else { all.swap_remove(best) }
}

/// Groups roots by their files that mostly lead to the same Applications: `root-dev.yaml` beside `root-prod.yaml`. All at
/// once they would fight over each of those. Empty if there are none.
fn group_by_file<'a>(roots: &[&'a Found], catalogue: &Catalogue) -> BTreeMap<String, Vec<&'a Found>> {
    let reached: Vec<BTreeSet<Node>> = roots
        .iter()
        .map(|root| {
            let mut reached = BTreeSet::new();
            catalogue.reach(root.node(), &mut reached);
            reached.remove(&root.node());
            reached
        })
        .collect();
    let mut groups: BTreeMap<String, Vec<&Found>> = BTreeMap::new();
    for (at, root) in roots.iter().enumerate() {
        let contends = |other: usize| {
            let shared = reached[at].intersection(&reached[other]).count();
            let fewer = reached[at].len().min(reached[other].len());
            roots[other].file != root.file && shared > 0 && 2 * shared >= fewer
        };
        if (0..roots.len()).any(contends) {
            groups.entry(root.file.clone()).or_default().push(*root);
        }
    }
    groups
}

/// The first steps of a path.
fn steps(path: &str, count: usize) -> String {
    path.split('/').take(count).collect::<Vec<_>>().join("/")
}

/// The only step in which two paths differ, if it is a folder.
fn differing_folder(a: &str, b: &str) -> Option<usize> {
    let (a, b): (Vec<&str>, Vec<&str>) = (a.split('/').collect(), b.split('/').collect());
    if a.len() != b.len() {
        return None;
    }
    let mut different = a.iter().zip(&b).enumerate().filter(|(_, (a, b))| a != b).map(|(at, _)| at);
    let at = different.next()?;
    (different.next().is_none() && at + 1 < a.len()).then_some(at)
}

/// Whether folders side by side are called as environments are: at least half of them, for a folder of test tools among
/// those of other programs is none.
fn are_environments<T>(folders: &BTreeMap<String, T>) -> bool {
    let named = folders.keys().filter(|folder| environment_of(&format!("{folder}/")) == **folder);
    2 * named.count() >= folders.len()
}

/// Whether two roots lead to Applications of one name.
fn clash(roots: &[&Found], catalogue: &Catalogue) -> bool {
    let mut all: BTreeSet<Node> = BTreeSet::new();
    for root in roots {
        let mut reached = BTreeSet::new();
        catalogue.reach(root.node(), &mut reached);
        if reached.into_iter().any(|node| !all.insert(node)) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    fn found(file: &str, name: &str) -> Found {
        Found { file: file.into(), line: 1, object: json!({"metadata": {"name": name}}) }
    }

    fn asked(files: &[(&str, &str)]) -> Option<Vec<String>> {
        let all: Vec<Found> = files.iter().map(|(file, name)| found(file, name)).collect();
        match choose(all.iter().collect(), &Catalogue::default()) {
            Choice::Ask(groups) => Some(groups.into_keys().collect()),
            Choice::Run(..) => None,
        }
    }

    #[test]
    fn environments_are_asked_for() {
        let folders = Some(vec!["envs/dev".to_owned(), "envs/prod".to_owned()]);
        assert_eq!(asked(&[("envs/dev/root.yaml", "dev"), ("envs/prod/root.yaml", "prod")]), folders);
        let same_name = asked(&[("one/root.yaml", "root"), ("two/root.yaml", "root")]);
        assert_eq!(same_name, Some(vec!["one".to_owned(), "two".to_owned()]));
    }

    #[test]
    fn of_several_depths_the_one_with_environments_counts() {
        let files =
            ["roots/dev", "roots/prod", "overlays/dev"].map(|folder| format!("{folder}/kustomization.yaml"));
        let apps = files.each_ref().map(|file| (file.as_str(), "root"));
        assert_eq!(asked(&apps), Some(vec!["roots/dev".to_owned(), "roots/prod".to_owned()]));
    }

    #[test]
    fn what_stands_elsewhere_is_no_environment() {
        let apps = [("envs/dev/root.yaml", "a"), ("envs/prod/root.yaml", "a"), ("tools/dev/x/y.yaml", "b")];
        assert_eq!(asked(&apps), Some(vec!["envs/dev".to_owned(), "envs/prod".to_owned()]));
    }

    #[test]
    fn applications_side_by_side_are_no_environments() {
        assert_eq!(asked(&[("apps/a.yaml", "a"), ("apps/b.yaml", "b")]), None);
        assert_eq!(asked(&[("apps/a/application.yaml", "a"), ("apps/b/application.yaml", "b")]), None);
    }

    #[test]
    fn one_folder_called_like_an_environment_makes_none() {
        let apps = ["dns", "media", "testing"].map(|folder| (format!("argocd/{folder}/app.yaml"), folder));
        let apps = apps.each_ref().map(|(file, name)| (file.as_str(), *name));
        assert_eq!(asked(&apps), None);
    }

    #[test]
    fn of_two_of_one_name_the_first_runs() {
        let all = [found("a.yaml", "x"), found("sub/b.yaml", "x"), found("c.yaml", "y")];
        let Choice::Run(run, passed_over) = choose(all.iter().collect(), &Catalogue::default()) else {
            panic!("no environments")
        };
        let files = |list: &[&Found]| list.iter().map(|found| found.file.clone()).collect::<Vec<_>>();
        assert_eq!(files(&run), ["a.yaml", "c.yaml"]);
        assert_eq!(files(&[passed_over[0].0, passed_over[0].1]), ["a.yaml", "sub/b.yaml"]);
    }
}
