//! How much of a repository is looked at, and how it is rendered.

use tiphys_model::Timestamp;

/// How much of a repository is looked at, and how it is rendered. By default everything is, for whoever
/// judges it.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// With the origins of fields.
    pub origins: bool,
    /// Only what somebody means to run: nothing of folders that are put away, and no templates for other
    /// tools, unless there is nothing else.
    pub only_used: bool,
    /// Applications of which no source is this repository are rendered too: their charts are fetched.
    pub foreign: bool,
    /// Charts and kustomizations that nothing reaches are rendered though they declare no Applications.
    pub all_units: bool,
    /// An ApplicationSet that asks for clusters, of which none is known, yields Applications for any cluster.
    pub any_cluster: bool,
    /// `targetRevision` counts for this repository too, not its files as they are.
    pub at_revisions: bool,
    /// The time that charts see; `None` for the machine's clock.
    pub now: Option<Timestamp>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            origins: true,
            only_used: false,
            foreign: true,
            all_units: true,
            any_cluster: true,
            at_revisions: false,
            now: None,
        }
    }
}

impl Options {
    /// For whoever runs a repository, or asks what of it would run.
    pub fn to_run(now: Timestamp) -> Self {
        Self {
            origins: false,
            only_used: true,
            all_units: false,
            any_cluster: false,
            now: Some(now),
            ..Self::default()
        }
    }
}
