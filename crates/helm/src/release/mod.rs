//! What a release consists of: documents split, hooks distinguished, install order.

mod document_head;
mod order;
mod parallel_reader;
mod sort;
mod split;

pub(crate) use parallel_reader::{Examined, Examiner};
pub(crate) use sort::sort_manifests;
pub(crate) use split::split_manifests;
