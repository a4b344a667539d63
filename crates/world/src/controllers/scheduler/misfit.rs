//! Why a pod fits on no node.

/// Why a pod does not fit on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Misfit {
    pub(super) reasons: Vec<String>,
    /// Whether taking other pods off the node could help.
    pub(super) is_resolvable: bool,
}

impl Misfit {
    pub(super) fn lasting(reason: &str) -> Self {
        Self { reasons: vec![reason.to_owned()], is_resolvable: false }
    }

    pub(super) fn resolvable(reason: &str) -> Self {
        Self { reasons: vec![reason.to_owned()], is_resolvable: true }
    }
}
