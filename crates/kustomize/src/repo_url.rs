//! Git URLs as kustomize reads them in `resources`: host, repository, path in it, and query.

use std::time::Duration;

/// A remote base: which repository, which revision, which folder in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepoUrl {
    /// The text as written.
    pub raw: String,
    /// Scheme, user and host with the separator that ends it: `https://github.com/`.
    pub host: String,
    /// Organisation and repository: `org/repo`.
    pub repo_path: String,
    /// Folder in the repository, empty for its top.
    pub folder: String,
    /// Branch, tag or commit; empty for the default branch.
    pub revision: String,
    /// Whether submodules are fetched.
    pub submodules: bool,
    /// How long fetching may take.
    pub timeout: Duration,
}

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(27);
const SCHEMES: [&str; 4] = ["ssh://", "https://", "http://", "file://"];

impl RepoUrl {
    /// Reads a URL; `None` if the text is no Git URL (kustomize then takes it for a path).
    pub fn parse(text: &str) -> Option<Self> {
        if text.starts_with('/') {
            return None;
        }
        let (path, query) = text.split_once('?').unwrap_or((text, ""));
        let (revision, timeout, submodules) = parse_query(query);
        let (host, rest) = split_host(path)?;
        let segments = if host.starts_with("file://") { None } else { Some(2) };
        let (repo_path, folder) = split_path(&rest, segments)?;
        if repo_path.is_empty() || leaves_repository(&folder) {
            return None;
        }
        let folder = folder.strip_prefix('/').unwrap_or(&folder).to_owned();
        Some(Self { raw: text.to_owned(), host, repo_path, folder, revision, submodules, timeout })
    }

    /// What `git clone` is given.
    pub fn clone_url(&self) -> String {
        format!("{}{}", self.host, self.repo_path)
    }
}

fn strip_prefix_ignore_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then(|| &text[prefix.len()..])
}

/// `user@` at the start, and what follows it.
fn split_user(text: &str) -> (&str, &str) {
    let Some(at) = text.find('@') else { return ("", text) };
    let user = &text[..at];
    let starts_well = user.starts_with(|c: char| c.is_ascii_alphabetic());
    if starts_well && user.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        text.split_at(at + 1)
    } else {
        ("", text)
    }
}

fn split_host(text: &str) -> Option<(String, String)> {
    let text = strip_prefix_ignore_case(text, "git::").unwrap_or(text);
    let found = SCHEMES.iter().find_map(|s| strip_prefix_ignore_case(text, s).map(|rest| (*s, rest)));
    let (scheme, rest) = found.unwrap_or(("", text));
    let (user, rest) = split_user(rest);
    let lower = rest.to_ascii_lowercase();
    let github = lower.starts_with("github.com/") || lower.starts_with("github.com:");
    let accepts_scp = scheme.is_empty() && (!user.is_empty() || github);
    if scheme.is_empty() && !accepts_scp {
        return None;
    }
    if scheme == "file://" {
        return Some((scheme.to_owned(), format!("{user}{rest}")));
    }
    let (host, path) = match host_end(rest, accepts_scp) {
        Some(at) => rest.split_at(at + 1),
        None => (rest, ""),
    };
    if github {
        let over_ssh = scheme == "ssh://" || !user.is_empty();
        let host = if over_ssh { format!("{user}github.com:") } else { "https://github.com/".to_owned() };
        return Some((host, path.to_owned()));
    }
    (!host.is_empty()).then(|| (format!("{scheme}{user}{host}"), path.to_owned()))
}

/// Where the host ends: at the first slash, or at the colon of `git@host:org/repo`.
fn host_end(text: &str, accepts_scp: bool) -> Option<usize> {
    let slash = text.find('/');
    if !accepts_scp {
        return slash;
    }
    match (slash, text.find(':')) {
        (None, colon) => colon,
        (Some(slash), Some(colon)) if colon > 0 && colon < slash => Some(colon),
        (slash, _) => slash,
    }
}

/// Splits the path of the repository from the folder in it: at `_git/`, `//` or `.git`, else after
/// `segments` steps.
fn split_path(path: &str, segments: Option<usize>) -> Option<(String, String)> {
    if let Some(at) = path.find("_git/") {
        let (root, below) = path.split_at(at + "_git/".len());
        let (name, folder) = below.split_once('/').unwrap_or((below, ""));
        return Some((format!("{root}{name}"), folder.to_owned()));
    }
    if let Some((repo, folder)) = path.split_once("//") {
        return Some((repo.to_owned(), folder.to_owned()));
    }
    if let Some(at) = path.find(".git") {
        let (repo, folder) = path.split_at(at + ".git".len());
        return Some((repo.to_owned(), folder.to_owned()));
    }
    let Some(count) = segments else { return Some((path.to_owned(), String::new())) };
    let steps: Vec<&str> = path.split('/').collect();
    (steps.len() >= count).then(|| (steps[..count].join("/"), steps[count..].join("/")))
}

/// Whether a folder, once `..` is resolved, lies above the repository.
fn leaves_repository(folder: &str) -> bool {
    let mut depth = 0_i32;
    for step in folder.trim_start_matches('/').split('/') {
        match step {
            "" | "." => {}
            ".." => depth -= 1,
            _ => depth += 1,
        }
        if depth < 0 {
            return true;
        }
    }
    false
}

fn parse_query(query: &str) -> (String, Duration, bool) {
    let mut revision = String::new();
    let mut version = String::new();
    let mut timeout = DEFAULT_TIMEOUT;
    let mut submodules = true;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = percent_decode(value);
        match key {
            "ref" if revision.is_empty() => revision = value,
            "version" if version.is_empty() => version = value,
            "timeout" => timeout = parse_timeout(&value).unwrap_or(timeout),
            "submodules" => submodules = parse_bool(&value).unwrap_or(submodules),
            _ => {}
        }
    }
    (if revision.is_empty() { version } else { revision }, timeout, submodules)
}

fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let hex = |b: u8| (b as char).to_digit(16);
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => match (rest.next().and_then(hex), rest.next().and_then(hex)) {
                (Some(high), Some(low)) => bytes.push((high * 16 + low) as u8),
                _ => return text.to_owned(),
            },
            byte => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Go's `strconv.ParseBool`.
pub(crate) fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// Seconds, or a Go duration such as `1m30s`; not zero or below.
fn parse_timeout(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.parse::<u64>() {
        return (seconds > 0).then(|| Duration::from_secs(seconds));
    }
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let value: f64 = rest[..number].parse().ok()?;
        let unit_end = rest[number..].find(|c: char| c.is_ascii_digit() || c == '.');
        let unit = &rest[number..unit_end.map_or(rest.len(), |end| number + end)];
        let seconds = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        total += Duration::try_from_secs_f64(value * seconds).ok()?;
        rest = &rest[number + unit.len()..];
    }
    (!total.is_zero()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Option<(String, String, String)> {
        RepoUrl::parse(text).map(|url| (url.clone_url(), url.folder, url.revision))
    }

    #[test]
    fn splits_repository_folder_and_revision() {
        for (text, clone, folder, revision) in [
            (
                "https://github.com/org/repo//deploy/base?ref=v1",
                "https://github.com/org/repo",
                "deploy/base",
                "v1",
            ),
            ("github.com/org/repo/deploy?ref=main", "https://github.com/org/repo", "deploy", "main"),
            ("git@github.com:org/repo.git/a", "git@github.com:org/repo.git", "/a", ""),
            (
                "https://dev.example.com/x/_git/repo/a/b?version=r",
                "https://dev.example.com/x/_git/repo",
                "a/b",
                "r",
            ),
            ("ssh://git@example.com/org/repo", "ssh://git@example.com/org/repo", "", ""),
        ] {
            let folder = folder.trim_start_matches('/').to_owned();
            assert_eq!(parts(text), Some((clone.into(), folder, revision.into())), "{text}");
        }
    }

    #[test]
    fn leaves_paths_and_escapes_alone() {
        for text in ["../base", "base", "/abs/base", "https://example.com/one", "github.com/o/r/../../x"] {
            assert_eq!(parts(text), None, "{text}");
        }
    }

    #[test]
    fn reads_the_query() {
        let url = RepoUrl::parse("https://example.com/o/r?timeout=1m30s&submodules=false&ref=a%2Fb").unwrap();
        assert_eq!((url.timeout, url.submodules), (Duration::from_secs(90), false));
        assert_eq!(url.revision, "a/b");
        let url = RepoUrl::parse("https://example.com/o/r?timeout=x").unwrap();
        assert_eq!(url.timeout, DEFAULT_TIMEOUT);
    }
}
