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

/// The address as projects compare it with their patterns, which is less than [`normalize`] does: lower case,
/// without `.git` at the end, `user@host/path` for both forms of SSH. Globs pass through, but for what an
/// address cannot have: it stands as `%7B` in a path, and of a host nothing is left.
pub fn spelling(address: &str) -> String {
    let text = address.trim().to_lowercase();
    let rest = text.strip_prefix("ssh://").unwrap_or(&text);
    let is_ssh = rest
        .split_once('@')
        .is_some_and(|(user, rest)| !user.contains(['/', ':']) && !rest.is_empty() && !rest.contains('@'));
    let spelt = match is_ssh && rest.len() == text.len() {
        true => rest.replacen(':', "/", 1),
        false => rest.to_owned(),
    };
    let spelt = spelt.strip_suffix(".git").unwrap_or(&spelt);
    let before = spelt.find("://").map_or(0, |at| at + "://".len());
    let path = spelt[before..].find('/').map_or(spelt.len(), |at| before + at);
    if (before > 0 || is_ssh) && spelt[..path].contains(|c| FOREIGN.contains(&c)) {
        return String::new();
    }
    spelt.chars().fold(String::new(), |mut out, c| {
        match FOREIGN.contains(&c) {
            true => out.push_str(&format!("%{:02X}", u32::from(c))),
            false => out.push(c),
        }
        out
    })
}

/// Characters that an address has only in another form.
const FOREIGN: [char; 7] = [' ', '\\', '^', '`', '{', '|', '}'];

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

    #[test]
    fn projects_tell_spellings_apart() {
        for (address, spelt) in [
            (" https://GitHub.com/Acme/Shop.git", "https://github.com/acme/shop"),
            ("git@github.com:acme/shop.git", "git@github.com/acme/shop"),
            ("ssh://git@github.com:22/acme/shop", "git@github.com:22/acme/shop"),
            ("https://user@github.com:443/acme/", "https://user@github.com:443/acme/"),
            ("https://*.example.com/{a,b}/*", "https://*.example.com/%7Ba,b%7D/*"),
            ("https://{a,b}.example.com/*", ""),
        ] {
            assert_eq!(spelling(address), spelt);
        }
    }
}
