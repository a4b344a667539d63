//! The containers of a pod, of every sort.

use serde_json::Value;

use super::list;
use crate::Path;

/// All containers with their paths, in the order in which the API server visits them.
pub(super) fn every_container<'a>(
    spec: &'a Value,
    path: &'a Path,
) -> impl Iterator<Item = (&'a Value, Path)> {
    ["initContainers", "containers", "ephemeralContainers"].into_iter().flat_map(move |name| {
        let containers = list(spec, name).iter().enumerate();
        containers.map(move |(at, container)| (container, path.child(name).index(at)))
    })
}
