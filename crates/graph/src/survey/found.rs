//! What is known of a repository before it is sorted into environments.

use std::{collections::HashMap, sync::Arc};

use tiphys_appset::ClusterInfo;
use tiphys_value::RenderedObject;

use super::{application_sets::Yielded, files::Files, input::Input, render_cache::Memo};

/// Everything that was found, before it is sorted into environments.
pub(super) struct Found<'a> {
    pub input: &'a Input<'a>,
    pub files: Arc<Files>,
    pub memo: Memo<'a>,
    /// What each ApplicationSet yields, by its text.
    pub sets: HashMap<String, Yielded>,
    /// The clusters that generators find.
    pub clusters: Vec<ClusterInfo>,
}

/// What starts a tree of Applications.
pub(super) struct Seed {
    pub declared: Arc<RenderedObject>,
    /// The unit that renders it; `None` if it stands in a file.
    pub unit: Option<usize>,
    /// The environment whose values file makes the unit render it.
    pub environment: Option<String>,
}
