//! What an Application renders to, and what that asked of the repository and of others.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use tiphys_model::SourceType;
use tiphys_value::RenderedObject;

use super::types::Outcome;

/// What an Application renders to.
pub(super) struct Rendering {
    pub outcome: Outcome,
    pub objects: Vec<Arc<RenderedObject>>,
    pub tools: Vec<Option<SourceType>>,
    pub read: Arc<BTreeSet<Arc<str>>>,
    /// The files that the objects were made from: what was read, unless only a part was seen.
    pub seen: Arc<BTreeSet<Arc<str>>>,
    pub missed: Vec<(String, String)>,
    pub touched: Touched,
    /// Whether it was not tried, because the Applications before it have too many objects.
    pub is_over_limit: bool,
}

impl Rendering {
    /// Of an Application that is not looked at, and why.
    pub(super) fn unseen(why: String) -> Self {
        Self {
            outcome: Outcome::Unseen(why),
            objects: Vec::new(),
            tools: Vec::new(),
            read: Arc::default(),
            seen: Arc::default(),
            missed: Vec::new(),
            touched: Touched::default(),
            is_over_limit: false,
        }
    }
}

/// Renderings by what the Application says.
pub(super) type Renderings = HashMap<String, Arc<Rendering>>;

/// The renderings of which something is true.
pub(super) fn those(all: &Renderings, is_kept: impl Fn(&Rendering) -> bool) -> Renderings {
    let kept = all.iter().filter(|(_, rendering)| is_kept(rendering));
    kept.map(|(key, rendering)| (key.clone(), rendering.clone())).collect()
}

/// What a rendering asked of the repository and of others.
#[derive(Default)]
pub(super) struct Touched {
    /// The files and folders that it read or looked for.
    pub paths: BTreeSet<Arc<str>>,
    /// The addresses of repositories.
    pub addresses: BTreeSet<String>,
}
