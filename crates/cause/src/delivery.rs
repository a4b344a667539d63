//! What Argo CD, Flux and Helm say about a delivery that does not work.

use crate::{
    Cause,
    admission::refusal,
    network::Failure,
    pattern::{has_any, pattern},
};

/// Words in lower case, and the mechanism that they tell of. The first row that fits counts.
const WORDS: &[(Cause, &[&str])] = &[
    (
        Cause::GitopsSourceAuth,
        &[
            "authentication required",
            "authentication failed",
            "repository not accessible",
            "could not read username",
            "invalid username or password",
            "permission denied (publickey)",
            "unable to authenticate",
            "ssh: handshake failed",
            "error creating ssh agent",
            "ssh_auth_sock",
            "could not read from remote repository",
            "401 unauthorized",
            "403 forbidden",
            "unauthorized: authentication",
            "status code 401",
            "status code 403",
            "status code: 401",
            "status code: 403",
            "repository not found",
            "knownhosts: key mismatch",
            "host key verification failed",
            "bad credentials",
            "denied: denied",
            "requested access to the resource is denied",
            "invalid credentials",
            "authorization failed",
            "access denied",
            "accessdenied",
            "signaturedoesnotmatch",
            "invalidaccesskeyid",
            "basic auth",
            "access token",
        ],
    ),
    (
        Cause::GitopsRevision,
        &[
            "unable to resolve",
            "couldn't find remote ref",
            "reference not found",
            "unable to checkout",
            "failed to checkout branch",
            "failed to checkout tag",
            "no chart version found",
            "no matching version",
            "improper constraint",
            "no version matching",
            "could not find version",
            "version not found",
            "is ambiguous or not found",
            "unknown revision",
            "revision not found",
            "invalid revision",
            "could not find protocol handler",
            "no such version",
            "chart version",
        ],
    ),
    (Cause::GitopsNamespace, &["there are no clusters with this name", "unable to find destination server"]),
    (
        Cause::GitopsProject,
        &[
            "is not permitted in project",
            "is not permitted to use project",
            "not allowed in project",
            "which does not exist",
            "is not allowed to be managed by",
            "application destination",
            "do not match any of the allowed destinations",
            "application repo",
            "resource is not permitted",
        ],
    ),
    // Helm says of a chart that does not render that the upgrade failed.
    (
        Cause::GitopsRender,
        &[
            "yaml parse error",
            "execution error at",
            "error converting yaml to json",
            "values don't meet the specifications of the schema",
            "template: ",
        ],
    ),
    (
        Cause::GitopsHelmRelease,
        &[
            "another operation (install/upgrade/rollback) is in progress",
            "has no deployed releases",
            "upgrade retries exhausted",
            "install retries exhausted",
            "cannot re-use a name that is still in use",
            "exhausted retries",
            "missing target release for rollback",
            "helm upgrade failed",
            "helm install failed",
            "pending-upgrade",
            "pending-install",
            "pending-rollback",
        ],
    ),
    (
        Cause::GitopsRender,
        &[
            "helm template",
            "kustomize build",
            "failed to generate manifest",
            "manifest generation error",
            "error converting yaml to json",
            "parse error at",
            "executing \"",
            "failed to load target state",
            "app path does not exist",
            "kustomization path not found",
            "kustomization.yaml",
            "accumulating resources",
            "values don't meet the specifications of the schema",
            "template:",
            "nil pointer evaluating",
            "failed to unmarshal manifest",
            "unable to build kustomize",
            "config management plugin",
            "could not parse",
            "yaml: line",
            "jsonnet",
            "kustomize",
            "missing in charts/ directory",
            "found in chart.yaml, but missing",
        ],
    ),
];

/// The mechanism that a comparison, build or source error tells of.
#[must_use]
pub fn delivery_fault(message: &str) -> Option<Cause> {
    let low = message.to_ascii_lowercase();
    if let Some(cause) =
        refusal(message).cause.filter(|cause| !matches!(cause, Cause::AdmitSchema | Cause::AdmitConflict))
    {
        return Some(cause);
    }
    let found = WORDS.iter().find(|(_, words)| has_any(&low, words)).map(|(cause, _)| *cause);
    found.or_else(|| refusal(message).cause)
}

pattern!(HOOK_JOB, r"\bjobs?(?:\.batch)? ([a-z0-9][a-z0-9.-]*) failed");

/// The Job of a hook that Helm says has failed.
#[must_use]
pub fn failed_hook(message: &str) -> Option<&str> {
    let low = message.to_ascii_lowercase();
    let is_of_hook =
        ["install hooks failed", "upgrade hooks failed", "rollback hooks failed", "delete hooks failed"];
    let it = HOOK_JOB.captures(message).filter(|_| has_any(&low, &is_of_hook))?;
    it.get(1).map(|it| it.as_str())
}

pattern!(LEFTOVER_JOB, r#"\bjobs?(?:\.batch)? \\?"([a-z0-9][a-z0-9.-]*)\\?" already exists"#);

/// The Job of a hook that Helm cannot make, for that of an earlier run is still there.
#[must_use]
pub fn leftover_hook(message: &str) -> Option<&str> {
    let is_of_hook = message.contains("hooks failed") || message.contains("Hook ");
    let it = LEFTOVER_JOB.captures(message).filter(|_| is_of_hook)?;
    it.get(1).map(|it| it.as_str())
}

pattern!(
    VALUES,
    r#"(Secret|ConfigMap) (?:chart )?values reference '(?:([^'/]+)/)?([^'/]+)'(?: with key '([^']+)')?"#
);
pattern!(SUBSTITUTE, r#"substitute from '(Secret|ConfigMap)/([^']+)' error"#);

/// What a release or a build reads its values from, and does not find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValuesAbsent {
    /// `Secret` or `ConfigMap`.
    pub kind: String,
    /// Its namespace; empty if it is not told.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The key that it lacks, if it is there itself.
    pub key: Option<String>,
}

/// Reads which source of values Flux cannot read.
#[must_use]
pub fn values_absent(message: &str) -> Option<ValuesAbsent> {
    let low = message.to_ascii_lowercase();
    if !low.contains("not found") && !low.contains("missing key") {
        return None;
    }
    let text = |it: Option<regex::Match<'_>>| it.map_or("", |it| it.as_str()).to_owned();
    if let Some(it) = SUBSTITUTE.captures(message) {
        let name = it[2].to_owned();
        return Some(ValuesAbsent { kind: it[1].to_owned(), namespace: String::new(), name, key: None });
    }
    let it = VALUES.captures(message)?;
    let lacks_key = low.contains("missing key") || low.contains("key not found");
    let key = it.get(4).filter(|_| lacks_key).map(|key| key.as_str().to_owned());
    Some(ValuesAbsent { kind: it[1].to_owned(), namespace: text(it.get(2)), name: it[3].to_owned(), key })
}

/// How a source could not be reached, if the network is at fault.
#[must_use]
pub fn source_unreachable(message: &str) -> Option<Failure> {
    Failure::read(message).filter(|failure| !matches!(failure, Failure::Status(401 | 403 | 404)))
}

/// The object that an operation waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitsFor {
    /// The kind.
    pub kind: String,
    /// The name.
    pub name: String,
    /// Whether it waits for the object's end.
    pub deletion: bool,
}

pattern!(
    WAIT,
    r"waiting for (healthy state|completion|deletion|pruning|finalizing)[a-z ]* of (?:hook )?([\w.-]*)/?(\w+)/([\w.:-]+)"
);

/// Reads the objects that Argo CD's operation waits for.
#[must_use]
pub fn waits_for(message: &str) -> Option<WaitsFor> {
    let it = WAIT.captures(message)?;
    let deletion = matches!(&it[1], "deletion" | "pruning" | "finalizing");
    Some(WaitsFor { kind: it[3].to_owned(), name: it[4].to_owned(), deletion })
}

pattern!(
    WRAPPED,
    r"^(?:one or more (?:objects|synchronization tasks)[^:]*?(?:failed to apply|are not valid|completed unsuccessfully)[^:]*?(?:, reason)?: ?|error when (?:creating|patching|replacing)[^:]*: |Helm (?:install|upgrade|rollback|uninstall|test) failed[^:]*: |unable to build kubernetes objects from [a-z ]*manifest: |rpc error: code = \w+ desc = |ComparisonError: |Failed to load target state: |failed to generate manifest[^:]*: |Manifest generation error(?: \(cached\))?: )"
);

/// A message without what Argo CD and gRPC put around it.
#[must_use]
pub fn unwrapped(message: &str) -> &str {
    let mut rest = message.trim();
    while let Some(it) = WRAPPED.find(rest) {
        if it.end() == 0 {
            break;
        }
        rest = rest[it.end()..].trim_start();
    }
    rest.split(". Retrying attempt #").next().unwrap_or(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_deliveries() {
        for (words, cause) in [
            (
                "rpc error: code = Unknown desc = authentication required: Repository not found",
                Cause::GitopsSourceAuth,
            ),
            (
                "helm pull oci://charts.example.org/web failed: response status code 403: denied",
                Cause::GitopsSourceAuth,
            ),
            (
                "rpc error: code = Unknown desc = unable to resolve 'v9' to a commit SHA",
                Cause::GitopsRevision,
            ),
            (
                "`helm template . --name-template web` failed exit status 1: Error: execution error at (web/templates/x.yaml:3:4)",
                Cause::GitopsRender,
            ),
            (
                "application destination server 'https://x' and namespace 'y' do not match any of the allowed destinations in project 'team'",
                Cause::GitopsProject,
            ),
            (
                "Helm upgrade failed: another operation (install/upgrade/rollback) is in progress",
                Cause::GitopsHelmRelease,
            ),
        ] {
            assert_eq!(delivery_fault(words), Some(cause), "{words}");
        }
    }

    #[test]
    fn hooks_of_helm() {
        let words =
            "post-upgrade hooks failed: 1 error occurred:\n\t* job migrate failed: BackoffLimitExceeded";
        assert_eq!(failed_hook(words), Some("migrate"));
        assert_eq!(failed_hook("job migrate failed: BackoffLimitExceeded"), None);
    }

    #[test]
    fn values_that_are_absent() {
        let read = values_absent(
            "could not resolve ConfigMap chart values reference 'a/b' with key 'values.yaml': configmaps \"b\" not found",
        )
        .unwrap();
        assert_eq!(
            (read.kind.as_str(), read.namespace.as_str(), read.name.as_str()),
            ("ConfigMap", "a", "b")
        );
        assert_eq!(read.key, None);
        let read = values_absent(
            "could not resolve Secret chart values reference 'a/b' with key 'x': missing key 'x' in secret 'a/b'",
        )
        .unwrap();
        assert_eq!(read.key.as_deref(), Some("x"));
        let read = values_absent("substitute from 'Secret/vars' error: secrets \"vars\" not found").unwrap();
        assert_eq!((read.kind.as_str(), read.name.as_str()), ("Secret", "vars"));
        assert_eq!(values_absent("all values are there"), None);
    }

    #[test]
    fn waits_and_wrappers() {
        let wait = waits_for("waiting for healthy state of argoproj.io/Application/apps-prod").unwrap();
        assert_eq!(
            (wait.kind.as_str(), wait.name.as_str(), wait.deletion),
            ("Application", "apps-prod", false)
        );
        let wait = waits_for("waiting for completion of hook batch/Job/migrate").unwrap();
        assert_eq!((wait.kind.as_str(), wait.name.as_str()), ("Job", "migrate"));
        let text = "one or more objects failed to apply, reason: services \"a\" is invalid. Retrying attempt #3 at 8:00";
        assert_eq!(unwrapped(text), "services \"a\" is invalid");
        let text = "Helm install failed for release a/b with chart b@1.0.0: unable to build kubernetes objects from release manifest: resource mapping not found";
        assert_eq!(unwrapped(text), "resource mapping not found");
    }
}
