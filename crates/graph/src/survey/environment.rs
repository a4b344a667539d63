//! Telling environments apart by where their roots are declared.

/// Folder names that say: each of us holds one environment.
const PARENTS: [&str; 13] = [
    "environments",
    "environment",
    "envs",
    "env",
    "clusters",
    "cluster",
    "stages",
    "overlays",
    "landscapes",
    "tenants",
    "regions",
    "targets",
    "instances",
];
/// Folder names that say: I am an environment.
const NAMES: [&str; 24] = [
    "dev",
    "develop",
    "development",
    "test",
    "testing",
    "qa",
    "uat",
    "int",
    "integration",
    "stage",
    "staging",
    "stg",
    "preprod",
    "pre-prod",
    "prod",
    "prd",
    "production",
    "live",
    "sandbox",
    "demo",
    "local",
    "preview",
    "canary",
    "dr",
];

/// Words in the name of a file that say the same: `root-apps/dev.yaml`, `root-prod.yaml`.
const WORDS: [&str; 11] =
    ["dev", "development", "qa", "uat", "stage", "staging", "stg", "preprod", "prod", "prd", "production"];

/// The innermost folder above a file that names an environment, such as `envs/prod`; else the path up to the
/// word in the file's own name; empty if there is none.
pub fn environment_of(path: &str) -> &str {
    let mut start = 0;
    let mut parent = "";
    let mut found = "";
    while let Some(length) = path[start..].find('/') {
        let step = &path[start..start + length];
        if PARENTS.contains(&parent) || NAMES.contains(&step) {
            found = &path[..start + length];
        }
        parent = step;
        start += length + 1;
    }
    if found.is_empty() { of_name(path, start) } else { found }
}

/// The folder in which the path of a root parts from that of another: the name of an environment, where
/// the two cannot live in one. `None` if they lie in one folder.
pub fn parting<'a>(path: &'a str, other: &str) -> Option<&'a str> {
    let (own, others) = (path.rsplit_once('/')?.0, other.rsplit_once('/').map_or("", |(folder, _)| folder));
    if own == others {
        return None;
    }
    let mut end = 0;
    let mut steps = others.split('/');
    for step in own.split('/') {
        let is_same = steps.next() == Some(step);
        end += step.len() + usize::from(end > 0);
        if !is_same {
            return Some(&path[..end]);
        }
    }
    Some(own)
}

/// The path up to the word in a file's name, which begins at `start`, that names an environment.
fn of_name(path: &str, start: usize) -> &str {
    let stem = path[start..].split('.').next().unwrap_or_default();
    let mut at = start;
    for word in stem.split(['-', '_']) {
        if WORDS.contains(&word) {
            return &path[..at + word.len()];
        }
        at += word.len() + 1;
    }
    ""
}

/// The environment that a name means: that of the name, or the only one whose name ends in it.
///
/// # Errors
/// There is none, or more than one: with what there is.
pub(super) fn find_by_name<'a>(name: &str, all: impl Iterator<Item = &'a String>) -> Result<&'a str, String> {
    let all: Vec<&str> = all.map(String::as_str).collect();
    let name = name.trim_matches('/');
    let ends =
        |it: &&str| it.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with(['/', '-']));
    let exact = all.iter().copied().find(|it| *it == name);
    let found: Vec<&str> =
        exact.map_or_else(|| all.iter().copied().filter(ends).collect(), |only| vec![only]);
    match found[..] {
        [only] => Ok(only),
        [] if all.is_empty() => Err(format!("there is no environment {name:?}; the repository has none")),
        [] => Err(format!("there is no environment {name:?}; there are {}", all.join(", "))),
        _ => Err(format!("{name:?} is the end of several environments: {}", found.join(", "))),
    }
}

/// What is left of a name without the word for an environment, and that word: `root-dev` is `root` in `dev`.
/// `None` if no word of it is one.
pub(super) fn worded(name: &str) -> Option<(String, &str)> {
    let words: Vec<&str> = name.split(['-', '_', '.']).collect();
    let at = words.iter().position(|word| NAMES.contains(word))?;
    let rest: Vec<&str> =
        words.iter().enumerate().filter(|(index, _)| *index != at).map(|(_, word)| *word).collect();
    Some((rest.join("-"), words[at]))
}

#[cfg(test)]
mod tests {
    use super::{environment_of, find_by_name, parting, worded};

    #[test]
    fn an_environment_is_meant_by_its_name_or_the_end_of_it() {
        let all = ["envs/dev", "envs/prod", "envs/eu-prod"].map(str::to_owned);
        let named = |name: &str| find_by_name(name, all.iter());
        assert_eq!(named("dev"), Ok("envs/dev"));
        assert_eq!(named("envs/prod/"), Ok("envs/prod"));
        assert!(named("prod").unwrap_err().contains("envs/prod, envs/eu-prod"));
        assert!(named("test").unwrap_err().contains("there are envs/dev, envs/prod, envs/eu-prod"));
    }

    #[test]
    fn environments_are_told_by_folder() {
        assert_eq!(environment_of("envs/eu-1/root.yaml"), "envs/eu-1");
        assert_eq!(environment_of("argocd/prod/root.yaml"), "argocd/prod");
        assert_eq!(environment_of("apps/shop.yaml"), "");
        assert_eq!(environment_of("clusters/root.yaml"), "");
        assert_eq!(environment_of("overlays/infra/envs/eu/root.yaml"), "overlays/infra/envs/eu");
    }

    #[test]
    fn names_tell_environments_too() {
        assert_eq!(worded("shop-prod-root"), Some(("shop-root".to_owned(), "prod")));
        assert_eq!(worded("dev"), Some((String::new(), "dev")));
        assert_eq!(worded("production2"), None);
    }

    #[test]
    fn roots_part_where_their_folders_do() {
        assert_eq!(parting("aws/apps/a.yaml", "gcp/apps/a.yaml"), Some("aws"));
        assert_eq!(parting("x/aws/a.yaml", "x/gcp/a.yaml"), Some("x/aws"));
        assert_eq!(parting("x/y/a.yaml", "x/a.yaml"), Some("x/y"));
        assert_eq!(parting("x/a.yaml", "x/y/a.yaml"), Some("x"));
        assert_eq!(parting("x/a.yaml", "x/b.yaml"), None);
        assert_eq!(environment_of("root-apps/dev.yaml"), "root-apps/dev");
        assert_eq!(environment_of("apps/root-prod.yaml"), "apps/root-prod");
        assert_eq!(environment_of("apps/devices.yaml"), "");
    }
}
