//! Go's `path`: paths with slashes, without looking at any file.

/// `path.Clean`: the shortest equal path.
pub fn clean(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if rooted => {}
            part => parts.push(part),
        }
    }
    match (rooted, parts.is_empty()) {
        (true, _) => format!("/{}", parts.join("/")),
        (false, true) => ".".to_owned(),
        (false, false) => parts.join("/"),
    }
}

/// `path.Base`: the last element.
pub fn base(path: &str) -> &str {
    if path.is_empty() {
        return ".";
    }
    let trimmed = path.trim_end_matches('/');
    if trimmed.is_empty() {
        return "/";
    }
    trimmed.rsplit('/').next().unwrap_or(trimmed)
}

/// `path.Dir`: all but the last element, cleaned.
pub fn dir(path: &str) -> String {
    clean(path.rfind('/').map_or("", |at| &path[..=at]))
}

/// `path.Ext`: from the last dot of the last element on.
pub fn ext(path: &str) -> &str {
    let last = path.rfind('/').map_or(path, |at| &path[at + 1..]);
    last.rfind('.').map_or("", |at| &last[at..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_go() {
        for (path, cleaned, last, parent, extension) in [
            ("", ".", ".", ".", ""),
            ("/", "/", "/", "/", ""),
            ("a//b/../c.x/", "a/c.x", "c.x", "a/c.x", ""),
            ("../../a.b.c", "../../a.b.c", "a.b.c", "../..", ".c"),
            ("/../a", "/a", "a", "/", ""),
        ] {
            assert_eq!(clean(path), cleaned);
            assert_eq!(base(path), last);
            assert_eq!(dir(path), parent);
            assert_eq!(ext(path), extension);
        }
    }
}
