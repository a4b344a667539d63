//! A survey that was left something by an earlier one says the same as one that was not, whatever happened to
//! the files in between.

use std::{collections::BTreeMap, fmt::Write as _, sync::Arc};

use proptest::prelude::*;
use tiphys_graph::{Input, Kept, Survey};
use tiphys_vfs::MemTree;

const ROOT: &str = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: root, namespace: argocd}\nspec:\n  \
    project: default\n  source: {repoURL: 'https://git.example.com/shop', path: apps}\n  destination: {name: in-cluster}\n";
const CHILD: &str = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: NAME, namespace: argocd}\nspec:\n  \
    project: default\n  source: {repoURL: 'https://git.example.com/shop', path: NAME}\n  \
    destination: {name: in-cluster, namespace: shop}\n";
const SET: &str = "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: set, namespace: argocd}\nspec:\n  \
    generators: [{git: {repoURL: 'https://git.example.com/shop', directories: [{path: many/*}]}}]\n  template:\n    \
    metadata: {name: '{{path.basename}}'}\n    spec: {project: default, source: {repoURL: 'https://git.example.com/shop', \
    path: '{{path}}'}, destination: {name: in-cluster, namespace: many}}\n";
const CONFIG: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\ndata: {colour: blue}\n";

/// The files that come, go and change, with the texts that they may have.
const FILES: [(&str, &[&str]); 15] = [
    ("root.yaml", &[ROOT]),
    ("apps/plain.yaml", &["CHILD plain"]),
    ("apps/overlay.yaml", &["CHILD overlay"]),
    ("apps/chart.yaml", &["CHILD chart"]),
    ("apps/set.yaml", &[SET]),
    ("plain/a.yaml", &["CONFIG a", "CONFIG b", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a\n"]),
    ("plain/sub/b.yaml", &["CONFIG c"]),
    ("base/config.yaml", &["CONFIG base", "CONFIG other"]),
    ("base/kustomization.yaml", &["resources: [config.yaml]\n", "resources: [config.yaml, linked.yaml]\n"]),
    ("overlay/kustomization.yaml", &["resources: [../base]\nnamePrefix: one-\n", "resources: [../base]\n"]),
    ("chart/Chart.yaml", &["apiVersion: v2\nname: chart\nversion: 1.0.0\n", "name: chart\n"]),
    ("chart/values.yaml", &["colour: red\n", "colour: green\n"]),
    (
        "chart/templates/config.yaml",
        &[
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: chart}\ndata: {colour: '{{ .Values.colour }}'}\n",
        ],
    ),
    ("many/one/a.yaml", &["CONFIG one", "CONFIG two"]),
    ("many/two/a.yaml", &["CONFIG three"]),
];

/// What a Kustomization of Flux says of a folder, and more of its specification.
const PART: &str = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: NAME, namespace: \
    flux-system}\nspec:\n  path: ./NAME\n  sourceRef: {kind: GitRepository, name: flux-system}\n";
const FILL: &str =
    "  targetNamespace: shop\n  postBuild: {substituteFrom: [{kind: ConfigMap, name: vars}]}\n";
const RELEASE: &str = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web, namespace: shop}\nspec:\n  \
    chart: {spec: {chart: ./chart, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}}}\n  \
    valuesFrom: [{kind: ConfigMap, name: values}]\n";

/// The same of a repository that Flux applies.
const OF_FLUX: [(&str, &[&str]); 13] = [
    ("clusters/one/plain.yaml", &["PART plain", "FILL plain"]),
    ("clusters/one/overlay.yaml", &["PART overlay", "PART plain"]),
    ("clusters/one/root.yaml", &["PART clusters/one", "PART clusters/two"]),
    ("clusters/one/vars.yaml", &["VARS blue", "VARS red"]),
    ("clusters/two/plain.yaml", &["FILL plain"]),
    (
        "plain/a.yaml",
        &["CONFIG a", "CONFIG ${COLOUR}", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a\n"],
    ),
    ("plain/sub/b.yaml", &["CONFIG c"]),
    ("plain/release.yaml", &[RELEASE]),
    ("plain/values.yaml", &["VALUES red", "VALUES green"]),
    (
        "overlay/kustomization.yaml",
        &["resources: [../plain/a.yaml]\nnamePrefix: one-\n", "resources: [../plain/sub]\n"],
    ),
    ("chart/Chart.yaml", &["apiVersion: v2\nname: chart\nversion: 1.0.0\n", "name: chart\n"]),
    ("chart/values.yaml", &["colour: red\n", "colour: green\n"]),
    (
        "chart/templates/config.yaml",
        &[
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: chart}\ndata: {colour: '{{ .Values.colour }}'}\n",
        ],
    ),
];

fn text(said: &str) -> String {
    match said.split_once(' ') {
        Some(("CHILD", name)) => CHILD.replace("NAME", name),
        Some(("CONFIG", name)) => CONFIG.replace("NAME", name),
        Some(("PART", name)) => PART.replacen("NAME", &name.replace('/', "-"), 1).replace("NAME", name),
        Some(("FILL", name)) => PART.replace("NAME", name) + FILL,
        Some(("VARS", colour)) => CONFIG
            .replace("NAME", "vars, namespace: flux-system")
            .replace("colour: blue", &format!("COLOUR: {colour}")),
        Some(("VALUES", colour)) => CONFIG
            .replace("NAME", "values, namespace: shop")
            .replace("colour: blue", &format!("values.yaml: 'colour: {colour}'")),
        _ => said.to_owned(),
    }
}

fn tree(files: &BTreeMap<&str, String>) -> Arc<MemTree> {
    let mut tree = MemTree::from_files(files.iter().map(|(path, text)| (*path, text.as_str())));
    tree.insert_symlink("base/linked.yaml", "../plain/a.yaml").expect("a link inside the tree");
    Arc::new(tree)
}

fn survey(tree: Arc<MemTree>, kept: &Kept, known: &str) -> (Survey, Kept) {
    let input = Input { is_given: &|url| url.contains(known), ..Input::alone(tree) };
    Survey::keeping(&input, kept)
}

/// All that a survey says.
fn survey_text(survey: &Survey) -> String {
    let mut out = format!("{:?} {:?}\n", survey.adopted, survey.unseen);
    for app in &survey.apps {
        writeln!(out, "{:?}", (app.name(), app.environment, &app.outcome, &app.objects, &app.read)).unwrap();
    }
    for unit in &survey.units {
        writeln!(out, "{unit:?}").unwrap();
    }
    for object in &survey.objects {
        writeln!(out, "{:?} {} {:?}", object.owner, object.value(), object.rendered.origins).unwrap();
    }
    for fault in &survey.faults {
        writeln!(out, "{} {}", fault.file, fault.error).unwrap();
    }
    for set in &survey.sets {
        writeln!(out, "{:?}", (&set.apps, &set.fault)).unwrap();
    }
    writeln!(
        out,
        "{:?} {}",
        survey.flux_sources,
        survey.flux.as_deref().map(survey_text).unwrap_or_default()
    )
    .unwrap();
    out
}

/// The edits of a case: of which file, and the text that it has then, if it is there at all.
type Steps = Vec<Vec<(usize, Option<usize>)>>;

fn steps(files: usize) -> impl Strategy<Value = Steps> {
    proptest::collection::vec(
        proptest::collection::vec((0..files, proptest::option::weighted(0.8, 0..3_usize)), 1..3),
        1..8,
    )
}

/// Holds each survey that was left something against a fresh one; returns in how many of them Flux fills a
/// cluster.
fn changes_nothing(
    all: &[(&'static str, &[&str])],
    known: &str,
    steps: Steps,
) -> Result<usize, TestCaseError> {
    let mut files: BTreeMap<&str, String> = all.iter().map(|(path, texts)| (*path, text(texts[0]))).collect();
    let (mut before, mut kept) = survey(tree(&files), &Kept::default(), known);
    let mut filled = usize::from(before.flux.is_some());
    for step in steps {
        let mut changed = Vec::new();
        for (file, variant) in step {
            let (path, texts) = all[file];
            match variant {
                Some(variant) => drop(files.insert(path, text(texts[variant % texts.len()]))),
                None => drop(files.remove(path)),
            }
            changed.push(path.to_owned());
        }
        let now = tree(&files);
        let left = kept.after(&before.files, now.as_ref(), &changed);
        let fresh = survey(now.clone(), &Kept::default(), known).0;
        (before, kept) = survey(now, &left, known);
        filled += usize::from(before.flux.is_some());
        prop_assert_eq!(survey_text(&before), survey_text(&fresh));
    }
    Ok(filled)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]
    #[test]
    fn what_is_kept_changes_nothing(is_known in any::<bool>(), steps in steps(FILES.len())) {
        let known = if is_known { "git.example.com" } else { "nowhere" };
        changes_nothing(&FILES, known, steps)?;
    }

    #[test]
    fn what_is_kept_changes_nothing_for_flux(steps in steps(OF_FLUX.len())) {
        prop_assert!(changes_nothing(&OF_FLUX, "git.example.com", steps)? > 0);
    }
}

#[test]
fn what_an_edit_does_not_concern_is_not_rendered_again() {
    let mut files: BTreeMap<&str, String> =
        FILES.iter().map(|(path, texts)| (*path, text(texts[0]))).collect();
    let (before, kept) = survey(tree(&files), &Kept::default(), "git.example.com");
    files.insert("chart/values.yaml", "colour: green\n".to_owned());
    let now = tree(&files);
    let left = kept.after(&before.files, now.as_ref(), &["chart/values.yaml".to_owned()]);
    let (after, _) = survey(now, &left, "git.example.com");
    let is_same = |name: &str| {
        let find = |survey: &Survey| {
            let app = survey.apps.iter().find(|app| app.name() == name).expect("the Application is there");
            survey.object(app.objects[0]).rendered.clone()
        };
        Arc::ptr_eq(&find(&before), &find(&after))
    };
    assert!(is_same("plain") && is_same("root") && is_same("one"));
    assert!(!is_same("chart"));
    assert!(is_same("overlay"), "the link is not read");
}
