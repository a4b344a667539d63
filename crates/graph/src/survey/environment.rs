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

/// The folder above a file that names its environment, such as `envs/prod`; empty if there is none.
pub fn of(path: &str) -> &str {
    let mut start = 0;
    let mut parent = "";
    while let Some(length) = path[start..].find('/') {
        let step = &path[start..start + length];
        if PARENTS.contains(&parent) || NAMES.contains(&step) {
            return &path[..start + length];
        }
        parent = step;
        start += length + 1;
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn environments_are_told_by_folder() {
        assert_eq!(of("envs/eu-1/root.yaml"), "envs/eu-1");
        assert_eq!(of("argocd/prod/root.yaml"), "argocd/prod");
        assert_eq!(of("apps/shop.yaml"), "");
        assert_eq!(of("clusters/root.yaml"), "");
    }
}
