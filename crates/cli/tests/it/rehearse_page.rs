//! The page that `tiphys rehearse --output html` writes: what is in it, and how it works in a browser.

use std::{fs, process::Output};

use serde_json::{Value, json};

use crate::{
    browser::{Browser, chromium},
    common::{Repo, application, config_map},
};

fn deployment(name: &str, image: &str, env: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\nspec:\n  replicas: 2\n  selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n    spec:\n      containers:\n      - name: c\n        image: '{image}'\n{env}"
    )
}

/// A shop of which one of two workloads waits for a Secret, and another Application that is well.
fn shop() -> Repo {
    let env = "        env: [{name: PASSWORD, valueFrom: {secretKeyRef: {name: database, key: password}}}]\n";
    let repo = Repo::shop(&[
        ("manifests/web.yaml", &deployment("web", "registry.example.com/web:1", "")),
        ("manifests/api.yaml", &deployment("api", "registry.example.com/api:1", env)),
    ]);
    repo.write("more.yaml", application("more", "more"));
    repo.write("more/b.yaml", config_map("b", "1"));
    repo
}

fn page(repo: &Repo, args: &[&str]) -> String {
    let all = [&["rehearse", "repo", "--offline", "--output", "html"], args].concat();
    let Output { stdout, stderr, .. } = repo.command(&all).output().unwrap();
    assert!(!stdout.is_empty(), "{}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

/// The data of a page.
fn island(page: &str) -> Value {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"story\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn a_page_holds_the_verdict_the_causes_and_the_story_and_loads_nothing() {
    let page = page(&shop(), &[]);
    for told in [
        "<h1><span class=\"mark\" aria-hidden=\"true\">✕</span>Does not end green",
        "<code>config/missing</code>",
        "secret &quot;database&quot; not found",
        "Bring Secret shop/database",
        "<input id=\"time\" type=\"range\"",
        "role=\"tree\"",
    ] {
        assert!(page.contains(told), "{told}: {page}");
    }
    assert!(page.contains("default-src 'none'") && page.contains("script-src 'sha256-"), "{page}");
    for load in ["<link", "<img", "<iframe", "@import", "url(", "src=", "fetch(", "import("] {
        assert!(!page.contains(load), "{load}");
    }
    let data = island(&page);
    let names: Vec<&str> =
        data["apps"].as_array().unwrap().iter().filter_map(|app| app["name"].as_str()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(data["moments"].as_array().unwrap().len() > 10);
    assert_eq!(data["isGreen"], false);
}

#[test]
fn nothing_of_a_repository_breaks_out_of_the_page() {
    let evil = "r.io/a:</script><script>document.title=1</script>&amp;<!--";
    let repo = Repo::shop(&[("manifests/<b>web.yaml", &deployment("web", evil, ""))]);
    let page = page(&repo, &["--fault", "registry=r.io:404"]);
    assert_eq!(page.matches("</script>").count(), 2, "{page}");
    assert!(!page.contains("document.title=1</script>") && !page.contains("<b>web"), "{page}");
    let data = island(&page);
    let texts = data["texts"].as_array().unwrap();
    assert!(texts.iter().any(|text| text.as_str().unwrap().contains("</script><script>")), "{texts:#?}");
}

#[test]
fn a_page_names_what_never_begins() {
    let env = "        env: [{name: PASSWORD, valueFrom: {secretKeyRef: {name: database, key: password}}}]\n";
    let in_wave = |name: &str, wave: u8| {
        let annotated = format!("metadata:\n  annotations: {{argocd.argoproj.io/sync-wave: '{wave}'}}\n");
        application(name, name).replacen("metadata:\n", &annotated, 1)
    };
    let repo = Repo::shop(&[
        ("manifests/first.yaml", &in_wave("first", 0)),
        ("manifests/later.yaml", &in_wave("later", 1)),
        ("first/web.yaml", &deployment("web", "registry.example.com/web:1", env)),
        ("later/b.yaml", &config_map("b", "1")),
    ]);
    let page = page(&repo, &[]);
    let (_, list) = page.split_once("<h2>Never begins, because what comes before does not end</h2>").unwrap();
    assert!(list.starts_with("\n<ul>\n<li>Application argocd/later</li>\n</ul>\n"), "{list}");
}

#[test]
fn an_exploration_is_a_page_too() {
    let page = page(&shop(), &["--explore", "3"]);
    assert!(page.contains("<details class=\"ranked "), "{page}");
    assert!(page.contains("single faults"), "{page}");
}

#[test]
fn the_page_works_by_keyboard_on_wide_and_narrow_screens() {
    let Some(chromium) = chromium() else {
        println!("skipped: needs chromium");
        return;
    };
    let repo = shop();
    let file = repo.path("page.html");
    fs::write(&file, page(&repo, &[])).unwrap();
    let mut browser = Browser::open(&chromium, &file);
    for (width, is_dark) in [(1280, false), (390, true)] {
        browser.resize(width, is_dark);
        assert_eq!(browser.eval("document.documentElement.dataset.ready"), json!("true"));
        let fits = "document.documentElement.scrollWidth <= innerWidth";
        assert_eq!(browser.eval(fits), json!(true), "{width} is too narrow");
    }
    // Home goes to the beginning, where nothing is, and each arrow to the next moment.
    browser.eval("document.getElementById('time').focus()");
    browser.press("Home");
    assert_eq!(browser.eval("document.getElementById('clock').textContent"), json!("0s"));
    browser.press("ArrowRight");
    assert_ne!(browser.eval("document.getElementById('clock').textContent"), json!("0s"));
    browser.press("End");
    let told = browser.eval("document.getElementById('time').getAttribute('aria-valuetext')");
    assert!(told.as_str().unwrap().ends_with("1 green, 0 on the way, 1 not green"), "{told}");
    // The tree opens and closes with the arrows.
    let rows = "document.querySelectorAll('[role=treeitem]').length";
    browser.eval("document.querySelector('[role=treeitem][tabindex=\"0\"]').focus()");
    let before = browser.eval(rows).as_u64().unwrap();
    browser.press("ArrowRight");
    browser.press("ArrowLeft");
    browser.press("Home");
    browser.press("ArrowLeft");
    assert!(browser.eval(rows).as_u64().unwrap() < before, "nothing was closed");
    browser.press("ArrowRight");
    assert_eq!(browser.eval(rows).as_u64().unwrap(), before);
    assert_eq!(browser.faults(), Vec::<String>::new());
}
