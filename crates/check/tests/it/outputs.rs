//! The machine-readable forms of one small check, held against golden files. `TIPHYS_BLESS=1` writes them.

use std::{fs, path::PathBuf, sync::Arc};

use tiphys_check::{
    Config, Context, Options, Severity, Survey, judge,
    output::{self, ReportContents, View},
    rules,
};
use tiphys_vfs::MemTree;

use crate::common;

const APP: &str = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata:\n  name: NAME\n  namespace: argocd\nspec:\n  \
    project: default\n  source:\n    repoURL: https://git.example.com/x.git\n    path: shared\n  destination:\n    \
    server: https://kubernetes.default.svc\n    namespace: shop\n";

fn two_apps() -> Survey {
    let (one, two) = (APP.replace("NAME", "one"), APP.replace("NAME", "two"));
    let tree = MemTree::from_files([
        ("apps/one.yaml", one.as_str()),
        ("apps/two.yaml", two.as_str()),
        (
            "shared/settings.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\ndata:\n  a: <b> & \"c\"\n",
        ),
    ]);
    common::survey(Arc::new(tree))
}

#[test]
fn every_form_is_as_it_was() {
    let survey = two_apps();
    let config = Config::default();
    let rules = rules::ALL.iter().copied().filter(|rule| rule.id == "B3-two-owners").collect();
    let checked = judge(&Context::new(&survey, None), &Options::new(rules, &config, None));
    let sources = survey.files.source_map();
    let shown = ReportContents {
        checked: &checked,
        survey: &survey,
        sources: &sources,
        threshold: Severity::Info,
        view: View::default(),
    };
    let forms = [
        ("check.txt", output::text(&shown, false)),
        ("check-brief.txt", output::brief(&shown)),
        ("applications.txt", output::applications(&shown)),
        ("check.html", output::html(&shown)),
        ("check.json", format!("{:#}\n", output::json(&shown))),
        ("check.github", output::github(&shown)),
        ("check.md", output::markdown(&shown)),
        ("check.xml", output::junit(&shown)),
    ];
    for (name, text) in forms {
        let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/outputs").join(name);
        if std::env::var_os("TIPHYS_BLESS").is_some() {
            fs::create_dir_all(golden.parent().expect("a folder")).expect("writable");
            fs::write(&golden, &text).expect("writable");
        }
        assert_eq!(text, fs::read_to_string(&golden).unwrap_or_default(), "{name}");
    }
}

#[test]
fn sarif_names_every_rule_and_points_at_them() {
    let survey = two_apps();
    let config = Config::default();
    let rules = rules::ALL.iter().copied().filter(|rule| rule.id == "B3-two-owners").collect();
    let checked = judge(&Context::new(&survey, None), &Options::new(rules, &config, None));
    let sources = survey.files.source_map();
    let sarif = output::sarif(&ReportContents {
        checked: &checked,
        survey: &survey,
        sources: &sources,
        threshold: Severity::Info,
        view: View::default(),
    });
    let run = &sarif["runs"][0];
    let result = &run["results"][0];
    let index = result["ruleIndex"].as_u64().expect("an index") as usize;
    assert_eq!(run["tool"]["driver"]["rules"][index]["id"], result["ruleId"]);
    assert_eq!(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "shared/settings.yaml");
    assert_eq!(result["locations"][0]["physicalLocation"]["region"]["startLine"], 2);
}
