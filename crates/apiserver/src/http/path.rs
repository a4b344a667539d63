//! What a URL path is about.

/// A path, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route<'a> {
    /// `/api`.
    CoreVersions,
    /// `/apis`.
    Groups,
    /// `/apis/{group}`.
    Group(&'a str),
    /// `/api/v1` or `/apis/{group}/{version}`.
    Version(&'a str, &'a str),
    /// Objects.
    Resource(ResourcePath<'a>),
    /// Anything else.
    Other(&'a str),
}

/// The parts of a path to objects; empty where there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ResourcePath<'a> {
    pub group: &'a str,
    pub version: &'a str,
    pub namespace: &'a str,
    pub plural: &'a str,
    pub name: &'a str,
    pub subresource: Option<&'a str>,
    /// Whether the path has the deprecated `/watch/` in it.
    pub watch: bool,
}

pub(super) fn route(path: &str) -> Route<'_> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    match parts.as_slice() {
        ["api"] => Route::CoreVersions,
        ["apis"] => Route::Groups,
        ["apis", group] => Route::Group(group),
        ["api", version] => Route::Version("", version),
        ["apis", group, version] => Route::Version(group, version),
        ["api", version, rest @ ..] => resource("", version, rest, path),
        ["apis", group, version, rest @ ..] => resource(group, version, rest, path),
        _ => Route::Other(path),
    }
}

fn resource<'a>(group: &'a str, version: &'a str, rest: &[&'a str], path: &'a str) -> Route<'a> {
    let (watch, rest) = match rest {
        ["watch", rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let (namespace, rest) = match rest {
        // A namespace's own subresources are those of the cluster-scoped object.
        ["namespaces", _, "status" | "finalize"] => ("", rest),
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
        rest => ("", rest),
    };
    let base = ResourcePath { group, version, namespace, watch, ..ResourcePath::default() };
    match rest {
        [plural] => Route::Resource(ResourcePath { plural, ..base }),
        [plural, name] => Route::Resource(ResourcePath { plural, name, ..base }),
        [plural, name, sub] => Route::Resource(ResourcePath { plural, name, subresource: Some(sub), ..base }),
        // Proxies take any path behind them.
        [plural, name, "proxy", ..] => {
            Route::Resource(ResourcePath { plural, name, subresource: Some("proxy"), ..base })
        }
        _ => Route::Other(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(path: &str) -> (String, String, String, Option<String>) {
        match route(path) {
            Route::Resource(r) => {
                (r.namespace.into(), r.plural.into(), r.name.into(), r.subresource.map(str::to_owned))
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn takes_paths_apart() {
        let expect = |ns: &str, plural: &str, name: &str, sub: Option<&str>| {
            (ns.to_owned(), plural.to_owned(), name.to_owned(), sub.map(str::to_owned))
        };
        assert_eq!(parts("/api/v1/namespaces"), expect("", "namespaces", "", None));
        assert_eq!(parts("/api/v1/namespaces/a"), expect("", "namespaces", "a", None));
        assert_eq!(parts("/api/v1/namespaces/a/finalize"), expect("", "namespaces", "a", Some("finalize")));
        assert_eq!(parts("/api/v1/namespaces/a/pods"), expect("a", "pods", "", None));
        assert_eq!(
            parts("/apis/apps/v1/namespaces/a/deployments/b/scale"),
            expect("a", "deployments", "b", Some("scale"))
        );
        assert_eq!(parts("/apis/x.io/v1/things/t"), expect("", "things", "t", None));
        assert_eq!(route("/apis/apps/v1/"), Route::Version("apps", "v1"));
        assert!(matches!(route("/healthz"), Route::Other(_)));
    }
}
