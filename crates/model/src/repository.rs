//! Repository addresses: when two spellings mean the same repository.

/// The address in one spelling: `https://host/path`, lower case, without user, default port, `.git` and
/// slashes at the end. The `user@host:path` form, `ssh://` and `http(s)://` come out the same. Globs pass
/// through, so that patterns can be normalised too. Other schemes (`oci://`, `file://`) keep theirs.
pub fn normalize(address: &str) -> String {
    let text = address.trim();
    let text = text.trim_end_matches('/');
    let text = text.strip_suffix(".git").unwrap_or(text).to_lowercase();
    if let Some((scheme, rest)) = text.split_once("://") {
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let default_port = match scheme {
            "https" => ":443",
            "http" => ":80",
            "ssh" | "git+ssh" => ":22",
            _ => "",
        };
        let host =
            if default_port.is_empty() { host } else { host.strip_suffix(default_port).unwrap_or(host) };
        return match scheme {
            "https" | "http" | "ssh" | "git+ssh" | "git" => join("https", host, path),
            other => join(other, host, path),
        };
    }
    match text.split_once(':') {
        Some((authority, path)) if !authority.contains('/') && authority.contains('@') => {
            let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
            join("https", host, path.trim_start_matches('/'))
        }
        _ => text,
    }
}

fn join(scheme: &str, host: &str, path: &str) -> String {
    let path = path.trim_end_matches('/');
    if path.is_empty() { format!("{scheme}://{host}") } else { format!("{scheme}://{host}/{path}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_are_one() {
        for text in [
            "https://github.com/Acme/shop.git",
            "http://github.com/acme/shop/",
            "git@github.com:acme/shop.git",
            "ssh://git@github.com:22/acme/shop",
            "https://user:token@github.com/acme/shop",
        ] {
            assert_eq!(normalize(text), "https://github.com/acme/shop", "{text}");
        }
        assert_eq!(normalize("oci://ghcr.io/acme/charts"), "oci://ghcr.io/acme/charts");
        assert_eq!(normalize("https://host:8443/a"), "https://host:8443/a");
    }
}
