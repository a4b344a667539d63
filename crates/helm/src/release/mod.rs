//! What a release consists of: documents split, hooks told apart, install order.

mod examine;
mod head;
mod order;
mod sort;
mod split;

pub(crate) use examine::{Examined, Examiner};
pub(crate) use sort::sort_manifests;
pub(crate) use split::split_manifests;
