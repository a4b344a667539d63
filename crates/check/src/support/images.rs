//! Names of images.

/// An image name, taken apart as container runtimes do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Image<'a> {
    /// Registry; that of Docker unless it names one.
    pub registry: &'a str,
    /// Path in the registry, without `library/`.
    pub path: &'a str,
    /// Tag, if it has one.
    pub tag: Option<&'a str>,
    /// Whether a digest follows.
    pub has_digest: bool,
}

/// The registry of names that name none.
pub(crate) const DOCKER: &str = "docker.io";

impl<'a> Image<'a> {
    /// Takes a name apart; nothing if it is empty or waits to be filled in.
    pub(crate) fn parse(name: &'a str) -> Option<Self> {
        let name = name.trim();
        if name.is_empty() || name.contains(['$', '{', '<', ' ']) {
            return None;
        }
        let (rest, has_digest) = match name.split_once('@') {
            Some((rest, _)) => (rest, true),
            None => (name, false),
        };
        let (registry, rest) = match rest.split_once('/') {
            Some((first, below)) if first.contains(['.', ':']) || first == "localhost" => (first, below),
            _ => (DOCKER, rest),
        };
        let registry = match registry {
            "index.docker.io" | "registry-1.docker.io" => DOCKER,
            other => other,
        };
        let (path, tag) = match rest.rsplit_once(':') {
            Some((path, tag)) if !tag.contains('/') => (path, Some(tag).filter(|tag| !tag.is_empty())),
            _ => (rest, None),
        };
        let path = if registry == DOCKER { path.strip_prefix("library/").unwrap_or(path) } else { path };
        Some(Self { registry, path, tag, has_digest })
    }

    /// Registry and first step of the path: who publishes it.
    pub(crate) fn publisher(&self) -> (&'a str, &'a str) {
        (self.registry, self.path.split_once('/').map_or("", |(first, _)| first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        let of = |name| Image::parse(name).expect("a name");
        assert_eq!(of("nginx"), Image { registry: DOCKER, path: "nginx", tag: None, has_digest: false });
        assert_eq!(of("docker.io/library/nginx:1").path, "nginx");
        assert_eq!(of("host:5000/a/b:v1@sha256:0").tag, Some("v1"));
        assert_eq!(of("ghcr.io/shop/web").publisher(), ("ghcr.io", "shop"));
        assert_eq!(Image::parse("${IMAGE}"), None);
    }
}
