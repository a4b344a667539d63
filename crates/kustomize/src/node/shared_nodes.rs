//! Bringing shared nodes in line: labels and annotations that one transformer added in several
//! places of an object are one node in kustomize, so that a patch of one changes all.

use std::collections::BTreeMap;

use super::{Content, GROUP_WRITTEN, Node, WRITTEN};

/// Gives every member of a group the content that was last written to one of them.
pub(crate) fn sync_shared(node: &mut Node) {
    if !has_written(node) {
        return;
    }
    let mut written = BTreeMap::new();
    collect(node, &mut written);
    if !written.is_empty() {
        spread(node, &written);
    }
}

/// Whether a member was written at all: mostly none was.
fn has_written(node: &Node) -> bool {
    node.group & GROUP_WRITTEN != 0
        || match &node.content {
            Content::Scalar(_) => false,
            Content::Seq(items) => items.iter().any(has_written),
            Content::Map(pairs) => pairs.iter().any(|(_, value)| has_written(value)),
        }
}

/// The members that were written; of several in one group the last in the order of sorted keys, in
/// which kyaml walks.
fn collect(node: &mut Node, written: &mut BTreeMap<u32, Node>) {
    if node.group & GROUP_WRITTEN != 0 {
        node.group &= !GROUP_WRITTEN;
        written.insert(node.group, node.clone());
    }
    match &mut node.content {
        Content::Scalar(_) => {}
        Content::Seq(items) => items.iter_mut().for_each(|item| collect(item, written)),
        Content::Map(pairs) => {
            let mut order: Vec<usize> = (0..pairs.len()).collect();
            order.sort_by(|a, b| pairs[*a].0.value().cmp(pairs[*b].0.value()));
            order.into_iter().for_each(|at| collect(&mut pairs[at].1, written));
        }
    }
}

fn spread(node: &mut Node, written: &BTreeMap<u32, Node>) {
    if let Some(source) = written.get(&node.group).filter(|_| node.group != 0)
        && (node.content != source.content || node.tag != source.tag || node.style != source.style)
    {
        node.content = source.content.clone();
        node.tag = source.tag;
        node.style = source.style;
        node.origin |= WRITTEN;
    }
    match &mut node.content {
        Content::Scalar(_) => {}
        Content::Seq(items) => items.iter_mut().for_each(|item| spread(item, written)),
        Content::Map(pairs) => pairs.iter_mut().for_each(|(_, value)| spread(value, written)),
    }
}
