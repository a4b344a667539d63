//! Symbolic links of trees that follow them themselves.

use crate::{MAX_LINKS, VfsErrorKind, join, parent};

/// Why links were followed no further, and the path that was looked for last.
pub(crate) type Stopped = (VfsErrorKind, String);

/// The path that the links on the way of a normalised path lead to, whether something stands there or not.
/// `link_at` tells the target of the link at a path, if one stands there.
///
/// # Errors
/// With the path that was looked for last: a link leads out of the tree, there are too many, or one cannot be
/// read.
pub(crate) fn follow_links(
    path: &str,
    link_at: impl Fn(&str) -> Option<Result<String, VfsErrorKind>>,
) -> Result<String, Stopped> {
    let mut wanted = path.to_owned();
    for _ in 0..MAX_LINKS {
        let mut ends = wanted.match_indices('/').map(|(at, _)| at).chain([wanted.len()]);
        let first = ends.find_map(|end| Some((end, link_at(&wanted[..end])?)));
        let Some((end, target)) = first else { return Ok(wanted) };
        let (link, rest) = wanted.split_at(end);
        let target = target.map_err(|kind| (kind, link.to_owned()))?;
        wanted = match join(parent(link).unwrap_or_default(), &format!("{target}/{rest}")) {
            Ok(led) if !target.starts_with('/') => led,
            _ => return Err((VfsErrorKind::OutsideTree, wanted)),
        };
    }
    Err((VfsErrorKind::TooManyLinks, wanted))
}
