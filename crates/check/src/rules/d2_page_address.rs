//! # The address of a page in place of that of a repository
//!
//! What a browser shows of a folder or a file (`…/tree/main/…`, `…/blob/main/…`) is a page, and no
//! repository: Git does not clone it, and kustomize finds no kustomization in it. Nor is the page of an owner
//! (`https://github.com/example`) one. And where a `chart` is named, the address is that of a chart repository,
//! whose index Git does not have.
//!
//! People see: `repository not found`, `unable to find one of 'kustomization.yaml'`, `evalsymlink failure`.
//!
//! ## Bad
//! ```yaml
//! source: {repoURL: https://github.com/example/shop/tree/main/deploy, targetRevision: main, path: .}
//! ```
//! ## Good
//! ```yaml
//! source: {repoURL: https://github.com/example/shop, targetRevision: main, path: deploy}
//! ```
//! ## When to suppress
//! Where a folder of the repository is really called so.

use std::sync::Arc;

use tiphys_diag::{Severity, Span};
use tiphys_value::Location;
use tiphys_vfs::base_name;

use crate::{
    Context, Finding, Report, Rule,
    support::{dedup::Once, field_paths, placeholders},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-page-address",
    incident: "D2",
    severity: Severity::Warning,
    title: "the address of a page in place of that of a repository",
    page: page!("d2_page_address.rs"),
    check,
};

/// Hosts whose pages are known.
const HOSTS: [&str; 2] = ["github.com", "gitlab.com"];
/// What stands in the address of a page behind that of its repository.
const PAGES: [&str; 4] = ["tree", "blob", "releases", "-"];

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for app in &context.survey.apps {
        let spec = &app.application.spec;
        for (at, source) in spec.effective_sources().iter().enumerate() {
            if !source.chart.is_empty() {
                if is_of_git(&source.repo_url) {
                    let field = field_paths::source(spec, at).key("repoURL");
                    let span = context.survey.app_span(app, &field);
                    let by = format!("Application {}", app.name());
                    let finding = no_chart_repository(&by, &source.repo_url, &source.chart, span);
                    once.add(&source.repo_url, finding.app(app.name()));
                }
                continue;
            }
            let field = field_paths::source(spec, at).key("repoURL");
            if is_owner(&source.repo_url) {
                let diagnostic = RULE
                    .diagnostic(format!("{} of Application {} is no repository", source.repo_url, app.name()))
                    .at(context.survey.app_span(app, &field), "the page of an owner")
                    .because("the address of a repository has the owner's name, and then its own")
                    .help("write the repository's name behind that of its owner");
                once.add(&source.repo_url, Finding::new(RULE.incident, diagnostic).app(app.name()));
            }
            if is_of_charts(&source.repo_url) && !source.path.is_empty() {
                let diagnostic = RULE
                    .diagnostic(format!(
                        "{} of Application {} is no repository of Git",
                        source.repo_url,
                        app.name()
                    ))
                    .at(context.survey.app_span(app, &field), "pages with charts")
                    .because("with `path` the engine clones the address, and pages have nothing to clone")
                    .help("name the repository of Git, or name the chart with `chart` in place of `path`");
                let finding = Finding::new(RULE.incident, diagnostic).app(app.name());
                once.add(&source.repo_url, finding.likely());
                continue;
            }
            let Some((repository, below)) = page(&source.repo_url) else { continue };
            let diagnostic = RULE
                .diagnostic(format!("{} of Application {} is a page", source.repo_url, app.name()))
                .at(context.survey.app_span(app, &field), "Git clones no page")
                .because("the address of a repository ends with its name; branch and folder have fields of their own")
                .help(format!("name the repository {repository}, and {below} in `targetRevision` and `path`"));
            once.add(&source.repo_url, Finding::new(RULE.incident, diagnostic).app(app.name()));
        }
    }
    for used in context.chart_uses().iter().filter(|it| it.parent.is_some() || it.is_inflated) {
        let own = format!("/{}", used.chart);
        let addresses = [Some(used.repository.as_str()), used.repository.strip_suffix(&own)];
        if let Some(address) = addresses.into_iter().flatten().find(|it| is_of_git(it)) {
            once.add(address, no_chart_repository(&used.by, address, &used.chart, used.span.clone()));
        }
    }
    for path in context.survey.files.paths() {
        if tiphys_kustomize::FILE_NAMES.contains(&base_name(path)) {
            kustomization(context, path, &mut once);
        }
    }
    once.report(report);
}

/// The repository that an address shows a page of, and what follows it.
fn page(address: &str) -> Option<(&str, &str)> {
    let host = HOSTS.iter().find_map(|host| address.find(host).map(|at| at + host.len()))?;
    let rest = address[host..].strip_prefix('/')?;
    let mut slashes = rest.match_indices('/').map(|(at, _)| at);
    let name = slashes.nth(1)?;
    let below = &rest[name + 1..];
    let is_page = below.split('/').next().is_some_and(|step| PAGES.contains(&step)) && below.contains('/');
    (is_page && !placeholders::is_in(address)).then(|| (&address[..host + 1 + name], below))
}

/// Whether an address is that of a repository of Git.
fn is_of_git(address: &str) -> bool {
    let rest = HOSTS.iter().find_map(|host| address.strip_prefix("https://")?.strip_prefix(host));
    let of_host = rest.and_then(|rest| rest.strip_prefix('/')).is_some_and(|rest| {
        // Longer ones may be files of a branch, as they are.
        rest.trim_end_matches('/').split('/').count() == 2
    });
    (of_host || address.ends_with(".git")) && !placeholders::is_in(address)
}

/// Whether an address is one at which charts are published, and no repository of Git.
fn is_of_charts(address: &str) -> bool {
    let host = address.strip_prefix("https://").and_then(|rest| rest.split('/').next()).unwrap_or_default();
    let is_of_pages = host.ends_with(".github.io") || host.ends_with(".gitlab.io");
    let is_named_so = host.starts_with("charts.") || host.starts_with("helm.");
    (is_of_pages || is_named_so) && !address.ends_with(".git") && !placeholders::is_in(address)
}

fn no_chart_repository(by: &str, address: &str, chart: &str, span: Span) -> Finding {
    let diagnostic = RULE
        .diagnostic(format!("{address} of {by} is no repository of charts"))
        .at(span, "a repository of Git")
        .because(format!(
            "for chart {chart} this address is asked for an index.yaml, which Git does not answer"
        ))
        .help("name the address of the chart repository; an Application may leave `chart` out and name the chart's folder as `path`");
    Finding::new(RULE.incident, diagnostic).likely()
}

/// Whether an address names an owner of repositories, and none of them.
fn is_owner(address: &str) -> bool {
    let rest = HOSTS.iter().find_map(|host| address.strip_prefix("https://")?.strip_prefix(host));
    let name = rest.and_then(|rest| rest.strip_prefix('/')).map(|rest| rest.trim_end_matches('/'));
    name.is_some_and(|name| !name.is_empty() && !name.contains('/')) && !placeholders::is_in(address)
}

/// Entries of a kustomization that are folders of a page; single files of a release can be fetched.
fn kustomization(context: &Context<'_>, path: &Arc<str>, once: &mut Once) {
    let files = &context.survey.files;
    let Some(text) = files.text(path).filter(|text| HOSTS.iter().any(|host| text.contains(host))) else {
        return;
    };
    for (line, entry) in (1..).zip(text.lines()) {
        let Some(entry) = entry.trim_start().strip_prefix("- ") else { continue };
        let entry = entry.split(" #").next().unwrap_or_default().trim().trim_matches(['"', '\'']);
        let Some((repository, below)) = page(entry).filter(|(_, below)| {
            !below.starts_with("releases/") && !entry.contains("raw=true") && !entry.contains(' ')
        }) else {
            continue;
        };
        let mut steps = below.trim_start_matches("-/").splitn(3, '/').skip(1);
        let (branch, folder) = (steps.next().unwrap_or_default(), steps.next().unwrap_or_default());
        let diagnostic = RULE
            .diagnostic(format!("the kustomization does not build: {entry} is a page"))
            .at(
                files.span(&Location::new(path.clone(), line, 0)),
                "kustomize finds no kustomization in a page",
            )
            .because("what follows the repository's name is taken for a folder in it")
            .help(format!("write {repository}//{folder}?ref={branch}"));
        once.add(entry, Finding::new(RULE.incident, diagnostic).likely());
    }
}

#[cfg(test)]
mod tests {
    use super::{is_of_charts, is_of_git, is_owner, page};

    #[test]
    fn git_has_no_index_of_charts() {
        assert!(
            is_of_git("https://github.com/example/charts") && is_of_git("https://git.example.com/shop.git")
        );
        assert!(
            !is_of_git("https://github.com/example/charts/raw/main/docs")
                && !is_of_git("https://charts.example.com")
        );
    }

    #[test]
    fn pages_of_charts_are_no_repositories() {
        assert!(
            is_of_charts("https://example.github.io/charts") && is_of_charts("https://charts.example.com")
        );
        for address in
            ["https://charts.example.com/a/b.git", "https://git.example.com/charts", "https://github.com/a/b"]
        {
            assert!(!is_of_charts(address), "{address}");
        }
    }

    #[test]
    fn an_owner_is_no_repository() {
        assert!(is_owner("https://github.com/example") && is_owner("https://gitlab.com/example/"));
        for address in
            ["https://github.com/example/shop", "https://git.example.com/shop", "https://github.com/"]
        {
            assert!(!is_owner(address), "{address}");
        }
    }

    #[test]
    fn pages_are_told_from_repositories() {
        for address in [
            "https://github.com/example/shop/tree/main/deploy",
            "github.com/example/shop/blob/main/a.yaml",
            "https://gitlab.com/example/shop/-/tree/main",
        ] {
            assert!(page(address).is_some_and(|(name, _)| name.ends_with("example/shop")), "{address}");
        }
        for address in [
            "https://github.com/example/shop.git",
            "https://github.com/example/shop//deploy?ref=main",
            "https://github.com/example/shop/deploy/base",
            "https://gitlab.com/group/below/shop",
        ] {
            assert!(page(address).is_none(), "{address}");
        }
    }
}
